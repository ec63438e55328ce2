//! Writing Events (`events.k8s.io/v1`): one that happens again is a patch of the same object.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use driver::events::{cut, namespace_of};
use driver::failures::kind_of_words;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::{Value, json};

use crate::model::effect::{EventDone, EventKey, EventToWrite};
use crate::model::events::EventReason;
use crate::side::Side;
use crate::sync::copy_place::{Found, found_at};

/// What writes them.
const REPORTER: &str = "edge-syncer";
/// The longest name of an instance that the API takes.
const LONGEST_INSTANCE: usize = 128;

/// Writes Events, until one shows that the others would not succeed.
pub(super) async fn write(server: &Cluster, uid: &str, events: Vec<EventToWrite>) -> Vec<(EventKey, EventDone)> {
    let mut is_over = false;
    let mut all = Vec::new();
    for event in events {
        let done = if is_over {
            EventDone::NotTried
        } else {
            match write_one(server, uid, &event).await {
                Ok(Some(at)) => EventDone::Written(at),
                Ok(None) => EventDone::Needless,
                Err(error) => EventDone::Failed(error),
            }
        };
        if let EventDone::Failed(error) = &done {
            is_over = error.is_unreachable() || error.is_forbidden() || error.is_type_not_served();
        }
        all.push((event.key, done));
    }
    all
}

/// Where the Event is then; nowhere if what it says is not so any more.
async fn write_one(server: &Cluster, uid: &str, event: &EventToWrite) -> Result<Option<ObjectName>, Error> {
    if let Some(at) = &event.at {
        match go_on(server, at, event).await {
            // It was kept for an hour and is gone.
            Err(error) if error.proves_absent(&at.name) => {}
            answer => return answer.map(|()| Some(at.clone())),
        }
    }
    let EventKey {
        side,
        resource,
        name,
        reason,
    } = &event.key;
    let found = match found_at(server, resource, name).await {
        Err(error) if error.is_unreachable() => return Err(error),
        found => found.ok().flatten().unwrap_or_default(),
    };
    let is_about_end = *reason == EventReason::WaitingForDeletion && *side == Side::Edge && event.note.is_empty();
    if is_about_end && (!found.is_ending || found.finalizers.is_empty()) {
        return Ok(None);
    }
    let at = ObjectName::new(namespace_of(name), &name_of(uid, &found, event));
    let body = body(uid, &at, &found, event);
    match server.create(&events(), &at, Bytes::from(body.to_string())).await {
        // An earlier run has written it.
        Err(error) if error.is_already_there() => go_on(server, &at, event).await?,
        answer => drop(answer?),
    }
    Ok(Some(at))
}

/// An Event that is there has happened again.
async fn go_on(server: &Cluster, at: &ObjectName, event: &EventToWrite) -> Result<(), Error> {
    let body = Bytes::from(json!({"series": series(event)}).to_string());
    server
        .merge_patch_for(&events(), at, body, Content::Metadata)
        .await
        .map(drop)
}

/// The same for the same words about the same object, so that a restart goes on with the Events that are there. A name of an
/// object is no part of it: not all of them could be.
fn name_of(uid: &str, found: &Found, event: &EventToWrite) -> String {
    let EventKey {
        resource, name, reason, ..
    } = &event.key;
    let mut hasher = DefaultHasher::new();
    (uid, &found.uid, &resource.group, &resource.kind, name).hash(&mut hasher);
    (reason.as_str(), kind_of_words(&event.note)).hash(&mut hasher);
    format!("{REPORTER}.{:016x}", hasher.finish())
}

fn body(uid: &str, at: &ObjectName, found: &Found, event: &EventToWrite) -> Value {
    let EventKey {
        resource, name, reason, ..
    } = &event.key;
    let mut about = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "name": name.name});
    for (key, value) in [("namespace", name.namespace()), ("uid", &found.uid)] {
        if !value.is_empty() {
            about[key] = json!(value);
        }
    }
    let note = match &*event.note {
        "" => format!(
            "it is being deleted, and waits for its finalizers: {}",
            found.finalizers.join(", ")
        ),
        note => note.to_owned(),
    };
    let mut body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": at.name, "namespace": at.namespace()},
        "eventTime": micro_time(&event.first),
        "reportingController": REPORTER,
        "reportingInstance": uid.get(..LONGEST_INSTANCE).unwrap_or(uid),
        "action": reason.action(),
        "reason": reason.as_str(),
        "type": if reason.is_warning() { "Warning" } else { "Normal" },
        "regarding": about,
        "note": cut(&note),
    });
    if event.count > 1 {
        body["series"] = series(event);
    }
    body
}

/// The API takes no series of one.
fn series(event: &EventToWrite) -> Value {
    json!({"count": event.count.max(2), "lastObservedTime": micro_time(&event.last)})
}

/// A time of whole seconds as a `MicroTime`.
fn micro_time(time: &str) -> String {
    time.replace('Z', ".000000Z")
}

fn events() -> ResourceType {
    ResourceType::new(["events.k8s.io", "v1", "events", "Event"], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(note: &str, count: u32) -> EventToWrite {
        EventToWrite {
            key: EventKey {
                side: Side::Edge,
                resource: ResourceType::config_maps(),
                name: ObjectName::new("shop", "a"),
                reason: EventReason::ApplyFailed,
            },
            note: note.into(),
            count,
            first: "2026-11-21T14:03:07Z".into(),
            last: "2026-11-21T14:04:07Z".into(),
            at: None,
        }
    }

    #[test]
    fn an_event_has_what_the_api_asks_for_and_no_series_of_one() {
        let at = ObjectName::new("shop", "e");
        let long = "ä".repeat(2000);
        for (count, series) in [
            (1, Value::Null),
            (
                3,
                json!({"count": 3, "lastObservedTime": "2026-11-21T14:04:07.000000Z"}),
            ),
        ] {
            let body = body(&long, &at, &Found::default(), &event(&long, count));
            assert_eq!(body["series"], series);
            assert_eq!(body["eventTime"], "2026-11-21T14:03:07.000000Z");
            assert_eq!(body["note"].as_str().map(str::len), Some(1024));
            assert_eq!(
                body["regarding"],
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "shop"})
            );
        }
    }

    #[test]
    fn the_same_words_about_the_same_object_are_the_same_event() {
        let name = |uid, note: &str| name_of(uid, &Found::default(), &event(note, 1));
        assert_eq!(name("a", "no 1"), name("a", "no 2"));
        assert_ne!(name("a", "no"), name("b", "no"));
        assert_ne!(name("a", "no"), name("a", "yes"));
    }
}
