//! Events of a role: what people see with `kubectl describe`. An Event that says the same again becomes the same object.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use bytes::Bytes;
use kube_lite::logging::times::date_and_time;
use kube_lite::{Cluster, Error, ObjectName, ResourceType};
use serde_json::json;

/// Where Events of objects are that are in no namespace.
pub const NAMESPACE: &str = "default";
/// The longest message that the API takes, in bytes.
const LONGEST: usize = 1024;

/// Something for people to see at an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The object.
    pub object: ObjectName,
    /// Its version and kind.
    pub type_of: [String; 2],
    /// Its UID.
    pub uid: String,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// One word.
    pub reason: &'static str,
    /// What has happened.
    pub message: String,
    /// What has noticed it.
    pub reporter: &'static str,
}

/// Writes an Event, or that what it says has happened again. `now` is since 1970.
pub async fn write(record: &Record, server: &Cluster, now: Duration) -> Result<(), Error> {
    let object = &record.object;
    let mut hasher = DefaultHasher::new();
    (&record.uid, record.reason, &record.message).hash(&mut hasher);
    // The longest name of an object leaves no room for the rest.
    let begin: String = object.name.chars().take(200).collect();
    let name = format!("{begin}.{:016x}", hasher.finish());
    let namespace = namespace_of(object);
    let name = ObjectName::in_workspace(object.workspace(), namespace, &name);
    let now = date_and_time(now);
    let [api_version, kind] = &record.type_of;
    let mut involved = json!({"apiVersion": api_version, "kind": kind, "name": object.name, "uid": record.uid});
    if !object.namespace().is_empty() {
        involved["namespace"] = json!(object.namespace());
    }
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name.name, "namespace": namespace},
        "involvedObject": involved,
        "type": if record.is_warning { "Warning" } else { "Normal" },
        "reason": record.reason,
        "message": cut(&record.message),
        "source": {"component": record.reporter},
        "reportingComponent": record.reporter,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    });
    match server.create(&events(), &name, Bytes::from(event.to_string())).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_there() => {
            let again = json!({"lastTimestamp": now}).to_string();
            server.merge_patch(&events(), &name, Bytes::from(again)).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

fn events() -> ResourceType {
    ResourceType::new(["", "v1", "events", "Event"], true)
}

/// The namespace of Events about an object.
pub fn namespace_of(object: &ObjectName) -> &str {
    match object.namespace() {
        "" => NAMESPACE,
        namespace => namespace,
    }
}

/// A message that the API takes.
pub fn cut(message: &str) -> &str {
    let end = (0..=LONGEST.min(message.len()))
        .rev()
        .find(|&end| message.is_char_boundary(end));
    &message[..end.unwrap_or_default()]
}
