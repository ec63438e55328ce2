//! Whose syncer has written the status of a hub object: the field manager says so, which has the UID of the sync target.
//!
//! The server gives fields to whoever changes them. So when the syncers of two sync targets write one status in turns,
//! each finds the manager of the other there.

use kube_lite::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::managed_fields::{Entries, parse};
use super::ownership::SyncTarget;
use crate::api::STATUS_FIELD_MANAGER;

/// The longest field manager that an API server takes, in bytes.
const LONGEST: usize = 128;

/// The field manager of the statuses that the syncer of a sync target writes.
pub fn status_manager(uid: &str) -> String {
    manager_of(STATUS_FIELD_MANAGER, uid)
}

/// A field manager of the syncer of a sync target.
pub fn manager_of(begin: &str, uid: &str) -> String {
    let mut manager = format!("{begin}-");
    for one in uid.chars().filter(|one| !one.is_control()) {
        if manager.len() + one.len_utf8() > LONGEST {
            break;
        }
        manager.push(one);
    }
    manager
}

/// An entry of `managedFields`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(default, borrow)]
    manager: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    time: std::borrow::Cow<'a, str>,
    #[serde(default)]
    fields_v1: Fields,
}

#[derive(Default, Deserialize)]
struct Fields {
    #[serde(rename = "f:status")]
    status: Option<IgnoredAny>,
}

/// The field manager of another sync target that has written the status of an object after us; `None` if the last one
/// was somebody else. Times are in seconds, so several may be the last.
pub fn other_status_manager(object: &[u8], we: &SyncTarget) -> Result<Option<String>, Error> {
    let mut last: Vec<Entry<'_>> = Vec::new();
    for (entry, _) in Entries::of(object)?.iter() {
        let entry: Entry<'_> = parse(entry.get().as_bytes())?;
        if entry.fields_v1.status.is_none() || last.first().is_some_and(|last| last.time > entry.time) {
            continue;
        }
        last.retain(|last| last.time == entry.time);
        last.push(entry);
    }
    let ours = [&we.uid].into_iter().chain(&we.former);
    let ours: Vec<String> = ours.map(|uid| status_manager(uid)).collect();
    last.retain(|entry| !ours.iter().any(|ours| *ours == entry.manager));
    let are_syncers = last.iter().all(|entry| entry.manager.starts_with(STATUS_FIELD_MANAGER));
    let other = last.iter().map(|entry| &*entry.manager).min();
    Ok(other.filter(|_| are_syncers).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manager_names_the_sync_target_and_is_one_that_a_server_takes() {
        for (uid, expected) in [
            ("site-7", "edge-syncer-status-site-7".to_owned()),
            ("a\nb", "edge-syncer-status-ab".to_owned()),
            (&"x".repeat(500), format!("edge-syncer-status-{}", "x".repeat(109))),
            (
                &"\u{e9}".repeat(500),
                format!("edge-syncer-status-{}", "\u{e9}".repeat(54)),
            ),
        ] {
            assert_eq!(status_manager(uid), expected);
        }
    }

    #[test]
    fn another_sync_target_is_known_by_what_has_written_the_status_last() {
        let we = SyncTarget {
            uid: "b".into(),
            former: vec!["before".into()],
        };
        let entry = |&(manager, second): &(&str, u32)| {
            let fields = if manager.contains("edit") { "f:spec" } else { "f:status" };
            json!({"manager": manager, "operation": "Update", "time": format!("2026-01-01T00:00:0{second}Z"),
                "fieldsV1": {fields: {}}})
        };
        let (ours, other) = ("edge-syncer-status-b", "edge-syncer-status-a");
        for (entries, expected) in [
            (vec![], None),
            (vec![(ours, 1)], None),
            (vec![(ours, 1), (other, 2)], Some(other)),
            (vec![(other, 2), (ours, 1)], Some(other)),
            (vec![(other, 1), (ours, 1)], Some(other)),
            (vec![(other, 1), ("edge-syncer-status-z", 1)], Some(other)),
            // A sync target that is gone.
            (vec![(other, 1), (ours, 2)], None),
            (vec![(other, 1), ("controller", 2)], None),
            (vec![(other, 1), ("controller", 1)], None),
            (vec![(other, 1), ("kubectl-edit", 2)], Some(other)),
            (vec![("edge-syncer-status-before", 2), (ours, 1)], None),
            // A syncer from before the manager had the UID.
            (vec![("edge-syncer-status", 2), (ours, 1)], Some("edge-syncer-status")),
        ] {
            let fields: Vec<_> = entries.iter().map(entry).collect();
            let object = json!({"metadata": {"managedFields": fields}}).to_string();
            let found = other_status_manager(object.as_bytes(), &we).unwrap();
            assert_eq!(found.as_deref(), expected, "{entries:?}");
        }
        assert_eq!(other_status_manager(br#"{"metadata":{}}"#, &we), Ok(None));
        assert!(other_status_manager(b"{", &we).is_err());
    }
}
