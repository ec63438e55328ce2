//! What configs say of an edge that leaves the hub: its entries are taken out, and what sums them up follows from the others.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_lite::logging::times::date_and_time;
use serde_json::{Value, json};

use super::JoinError;
use super::register::Work;
use crate::api::status::{CONFIG_VALID, DELETES_HELD, READY, SYNCED, Status};
use crate::api::{GROUP, VERSION};

/// How many configs are read at once: an answer with so many of the largest is not too large.
const PAGE: usize = 5;
/// How often a config is read again that somebody else writes at the same time.
const TRIES: usize = 8;

/// Takes the entries of sync targets out of all configs of these kinds. True if there was any.
pub(super) async fn leave(
    work: &mut Work<'_>,
    plurals: &[&'static str],
    uids: &BTreeSet<String>,
    now: Duration,
) -> Result<bool, JoinError> {
    let now = date_and_time(now);
    let mut found = false;
    for plural in plurals {
        let collection = format!("/apis/{GROUP}/{VERSION}/{plural}");
        let mut token = String::new();
        loop {
            let path = format!("{collection}?limit={PAGE}&continue={token}");
            let list = work.client.get(&path).await;
            let list = list.map_err(|error| work.failed(&format!("cannot list {collection}"), &error))?;
            for config in list["items"].as_array().into_iter().flatten() {
                found |= take_out(work, &collection, config, uids, &now).await?;
            }
            let more = list["metadata"]["continue"].as_str().unwrap_or_default();
            if more.is_empty() {
                break;
            }
            more.clone_into(&mut token);
        }
    }
    Ok(found)
}

/// Takes the entries out of one config. True if there was any.
async fn take_out(
    work: &mut Work<'_>,
    collection: &str,
    config: &Value,
    uids: &BTreeSet<String>,
    now: &str,
) -> Result<bool, JoinError> {
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{collection}/{name}");
    let mut known = Some(config.clone());
    let mut last = None;
    for _ in 0..TRIES {
        let Some(config) = known else { return Ok(false) };
        let Some(status) = without(&config, uids, now) else {
            return Ok(false);
        };
        // Servers leave the kinds of items out of lists.
        let label = format!("{}//{name}", collection.rsplit('/').next().unwrap_or_default());
        if work.is_dry {
            (work.say)(&format!("{label}: what it says of the edge would be taken out"));
            return Ok(true);
        }
        let operations = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": config["metadata"]["resourceVersion"]},
            {"op": "replace", "path": "/status", "value": status},
        ]);
        match work.client.json_patch(&format!("{path}/status"), &operations).await {
            Ok(_) => {
                (work.say)(&format!("{label}: what it says of the edge was taken out"));
                work.made.push(format!("{label} changed"));
                return Ok(true);
            }
            // Somebody else has written it meanwhile.
            Err(error) if error.is_conflict() || error.is_invalid() => last = Some(error),
            Err(error) => return Err(work.failed(&format!("cannot change the status of {label}"), &error)),
        }
        let again = work.client.find(&path).await;
        known = again.map_err(|error| work.failed(&format!("cannot read {path}"), &error))?;
    }
    match last {
        Some(error) => Err(work.failed(&format!("cannot change the status of {path}"), &error)),
        None => Ok(false),
    }
}

/// The status of a config without the entries of these sync targets; `None` if it has none of them.
fn without(config: &Value, uids: &BTreeSet<String>, now: &str) -> Option<Value> {
    const OURS: [&str; 4] = [READY, CONFIG_VALID, SYNCED, DELETES_HELD];
    let is_theirs = |edge: &Value| edge["syncTargetUID"].as_str().is_some_and(|uid| uids.contains(uid));
    let edges = config["status"]["edges"].as_array()?;
    if !edges.iter().any(is_theirs) {
        return None;
    }
    let (_, status) = Status::of_config(config.to_string().as_bytes());
    let sum = status.without(|uid| uids.contains(uid), now);
    let mut status = config["status"].as_object()?.clone();
    let conditions = config["status"]["conditions"].as_array().into_iter().flatten();
    let others = conditions.filter(|condition| !condition["type"].as_str().is_some_and(|of| OURS.contains(&of)));
    let mut conditions: Vec<Value> = others.cloned().collect();
    if let Some(sum) = sum {
        let edges: Vec<Value> = edges.iter().filter(|edge| !is_theirs(edge)).cloned().collect();
        conditions.extend(sum.conditions.iter().map(|condition| json!(condition)));
        let fields = [("edges", json!(edges)), ("synced", json!(sum.synced))].into_iter();
        status.extend(
            fields
                .chain([("failing", json!(sum.failing)), ("held", json!(sum.held))])
                .map(|(name, value)| (name.to_owned(), value)),
        );
    } else {
        for field in ["edges", "synced", "failing", "held"] {
            status.remove(field);
        }
    }
    status.insert("conditions".to_owned(), conditions.into());
    Some(status.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: &str, synced: usize) -> Value {
        json!({"syncTargetUID": uid, "selected": 2, "synced": synced, "lastHeartbeatTime": "then"})
    }

    fn left(edges: &[Value], uid: &str) -> Option<Value> {
        let config = json!({"metadata": {"name": "a"}, "status": {
            "lastSyncerHeartbeatTime": "then",
            "synced": "3/4",
            "failing": 1,
            "held": 0,
            "edges": edges,
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "Pending", "lastTransitionTime": "then"},
                {"type": "Mine", "status": "True"},
            ],
        }});
        without(&config, &[uid.to_owned()].into(), "now")
    }

    #[test]
    fn what_is_left_of_a_status_sums_up_the_others_and_keeps_what_is_not_ours() {
        let status = left(&[entry("a", 2), entry("b", 1)], "b").unwrap();
        assert_eq!(status["edges"], json!([entry("a", 2)]));
        assert_eq!((&status["synced"], &status["failing"]), (&json!("2/2"), &json!(0)));
        assert_eq!(status["lastSyncerHeartbeatTime"], "then");
        let types: Vec<&Value> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["type"])
            .collect();
        assert_eq!(types, ["Mine", READY, CONFIG_VALID, SYNCED, DELETES_HELD]);
        let ready = &status["conditions"][1];
        assert_eq!(
            (&ready["status"], &ready["lastTransitionTime"]),
            (&json!("True"), &json!("now"))
        );
    }

    #[test]
    fn where_no_other_edge_is_left_nothing_sums_anything_up() {
        let status = left(&[entry("b", 1)], "b").unwrap();
        let conditions = json!([{"type": "Mine", "status": "True"}]);
        assert_eq!(
            status,
            json!({"lastSyncerHeartbeatTime": "then", "conditions": conditions})
        );
    }

    #[test]
    fn a_config_that_says_nothing_of_the_edge_is_not_written() {
        assert_eq!(left(&[entry("a", 2)], "b"), None);
        assert_eq!(
            without(&json!({"metadata": {"name": "a"}}), &["b".to_owned()].into(), "now"),
            None
        );
    }
}
