//! Events at targets: what people see with `kubectl describe`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use bytes::Bytes;
use kube_lite::logging::times::date_and_time;
use kube_lite::{Cluster, Error, ObjectName, ResourceType};
use serde_json::json;

use crate::agent::Record;
use crate::kinds::API_VERSION;

/// Where Events of objects are that are in no namespace.
const NAMESPACE: &str = "default";
/// The longest message that the API takes, in bytes.
const LONGEST: usize = 1024;

/// Writes an Event, or that what it says has happened again. `now` is since 1970.
pub(crate) async fn write(record: &Record, config: &Cluster, now: Duration) -> Result<(), Error> {
    let target = &record.target;
    let mut hasher = DefaultHasher::new();
    (&record.uid, record.reason, &record.message).hash(&mut hasher);
    let name = format!("{}.{:016x}", target.name, hasher.finish());
    let name = ObjectName::in_workspace(target.workspace(), NAMESPACE, &name);
    let now = date_and_time(now);
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name.name, "namespace": NAMESPACE},
        "involvedObject": {"apiVersion": API_VERSION, "kind": "InitTarget", "name": target.name, "uid": &*record.uid},
        "type": "Warning",
        "reason": record.reason,
        "message": cut(&record.message),
        "source": {"component": "init-agent"},
        "reportingComponent": "init-agent",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    });
    match config.create(&events(), &name, Bytes::from(event.to_string())).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_there() => {
            let again = json!({"lastTimestamp": now}).to_string();
            config.merge_patch(&events(), &name, Bytes::from(again)).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

fn events() -> ResourceType {
    ResourceType::new(["", "v1", "events", "Event"], true)
}

/// A message that the API takes.
fn cut(message: &str) -> &str {
    let end = (0..=LONGEST.min(message.len()))
        .rev()
        .find(|&end| message.is_char_boundary(end));
    &message[..end.unwrap_or_default()]
}
