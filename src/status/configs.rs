//! What the hub knows of its configs, and when it has last heard of each edge.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::discovery::{self, Served};
use kube_lite::logging::times;
use kube_lite::{Cluster, Content, Error, ListRequest, since_1970_of, spelling};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::holds::Kubectl;
use super::report::{Followed, OfConfig, Verdict};
use crate::api::status::{DELETES_HELD, OfEdge, Status};
use crate::api::{GROUP, HEARTBEAT_FIELD_MANAGER, STATUS_FIELD_MANAGER, VERSION, edge};
use crate::ask::{self, CannotAsk};
use crate::model::effect::ConfigKind;
use crate::sync::status_writer::{manager_of, status_manager};

/// A config as the hub has it, without what it selects.
#[derive(Debug)]
pub(super) struct Config {
    kind: ConfigKind,
    name: String,
    generation: i64,
    status: Status,
    /// When each field manager has last changed something, in seconds since 1970 by the hub's clock.
    written: BTreeMap<String, u64>,
    /// The same by the clocks of the edges, by their UIDs; empty for that of any.
    heartbeats: BTreeMap<String, u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire<'a> {
    metadata: WireMeta,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireMeta {
    name: String,
    managed_fields: Vec<WireManager>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireManager {
    manager: String,
    time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireStatus {
    last_syncer_heartbeat_time: Option<String>,
    edges: Vec<WireEdge>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireEdge {
    #[serde(rename = "syncTargetUID")]
    uid: String,
    last_heartbeat_time: Option<String>,
}

/// The status of the object that stands for an edge.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireOfEdge {
    syncer: WireSyncer,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSyncer {
    #[serde(rename = "syncTargetUID")]
    uid: String,
}

impl WireMeta {
    /// When each field manager has last changed something.
    fn written(&mut self) -> BTreeMap<String, u64> {
        let mut written = BTreeMap::new();
        for entry in std::mem::take(&mut self.managed_fields) {
            if let Some(time) = entry.time.as_deref().and_then(seconds) {
                let known = written.entry(entry.manager).or_insert(time);
                *known = time.max(*known);
            }
        }
        written
    }
}

impl Config {
    /// Reads it from the JSON of the whole object.
    pub(super) fn parse(kind: ConfigKind, object: &[u8]) -> Result<Self, serde_json::Error> {
        let mut wire: Wire<'_> = serde_json::from_slice(object)?;
        let of_status: WireStatus = match wire.status {
            Some(status) => serde_json::from_str(status.get()).unwrap_or_default(),
            None => WireStatus::default(),
        };
        let written = wire.metadata.written();
        let of_any = of_status.last_syncer_heartbeat_time.as_deref().and_then(seconds);
        let of_edges = of_status
            .edges
            .into_iter()
            .filter_map(|edge| Some((edge.uid, edge.last_heartbeat_time.as_deref().and_then(seconds)?)));
        let (generation, status) = Status::of_config(object);
        Ok(Self {
            kind,
            name: wire.metadata.name,
            generation,
            status,
            written,
            heartbeats: of_any
                .map(|time| (String::new(), time))
                .into_iter()
                .chain(of_edges)
                .collect(),
        })
    }

    /// The UIDs of the edges that follow it.
    pub(super) fn uids(&self) -> impl Iterator<Item = &str> {
        self.status.edges.iter().map(|edge| &*edge.uid)
    }

    /// When the hub has last heard of an edge, here or by the object that stands for it: by the hub's own clock where it
    /// has noted that, since the clock of a board may be wrong.
    fn seen(&self, uid: &str, edges: &Seen) -> Option<u64> {
        let managers = [manager_of(HEARTBEAT_FIELD_MANAGER, uid), status_manager(uid)];
        let noted = managers.iter().filter_map(|manager| self.written.get(manager));
        let noted = noted.chain(edges.get(uid)).copied();
        noted.max().or_else(|| self.heartbeats.get(uid).copied())
    }

    /// What it comes to, for one sync target or all.
    pub(super) fn judge(self, only: Option<&str>, judged: &Judged<'_>) -> OfConfig {
        let entry = |says: OfEdge| {
            let seen = self.seen(&says.uid, judged.edges);
            let mut found = Followed::judge(says, self.generation, seen, judged.now, judged.stale_after);
            let hold = found.says.hold.as_ref();
            found.confirm = hold.and_then(|hold| judged.kubectl.confirm(self.kind, &self.name, &hold.message));
            found
        };
        let entries = self
            .status
            .edges
            .iter()
            .filter(|edge| only.is_none_or(|uid| edge.uid == uid));
        let edges: Vec<Followed> = entries.cloned().map(entry).collect();
        let (mut message, mut confirm) = (String::new(), None);
        if edges.is_empty() {
            message = self.unfollowed(only, judged);
            let held = self
                .status
                .conditions
                .iter()
                .find(|condition| condition.r#type == DELETES_HELD);
            let held = held.filter(|condition| condition.status == "True");
            confirm = held.and_then(|held| judged.kubectl.confirm(self.kind, &self.name, &held.message));
        }
        let worst = edges.iter().map(|edge| edge.verdict).max();
        OfConfig {
            kind: self.kind.kind(),
            name: self.name,
            generation: self.generation,
            verdict: worst.unwrap_or(Verdict::Unknown),
            message,
            conditions: self.status.conditions,
            edges,
            confirm,
        }
    }

    /// Why there is no entry of an edge.
    fn unfollowed(&self, only: Option<&str>, judged: &Judged<'_>) -> String {
        let heartbeat = self.heartbeats.get("").copied();
        match (heartbeat, only) {
            (Some(at), None) => {
                let ago = judged.now.saturating_sub(at);
                let at = times::date_and_time(Duration::from_secs(at));
                if ago > judged.stale_after.as_secs() {
                    format!("the last heartbeat is from {at}: whatever has followed it is silent")
                } else {
                    format!(
                        "its last heartbeat is from {at}, and the hub keeps no more of it: apply manifests/crds of this \
                         version to the hub"
                    )
                }
            }
            (_, Some(uid)) => {
                format!("nothing says that the syncer of {uid} follows it: see that it runs, with that UID")
            }
            (None, None) => "no syncer has followed it yet: see that one runs with this hub".to_owned(),
        }
    }
}

/// By what configs are judged.
pub(super) struct Judged<'a> {
    /// The time in seconds since 1970.
    pub(super) now: u64,
    pub(super) stale_after: Duration,
    pub(super) kubectl: &'a Kubectl,
    pub(super) edges: &'a Seen,
}

/// When the hub has last noted that an edge wrote to the object that stands for it, in seconds since 1970, by UIDs.
pub(super) type Seen = BTreeMap<String, u64>;

fn seconds(text: &str) -> Option<u64> {
    // Fractions do not count.
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    since_1970_of(&format!("{}Z", whole.trim_end_matches('Z')))
}

/// All configs of the hub, and what it knows of its edges; what cannot be read is an error among the others.
pub(super) async fn read(hub: &Rc<Cluster>, errors: &mut Vec<String>) -> (Vec<Config>, Seen) {
    let address = hub.standing().place.address.clone();
    let served = match discovery::discover(hub, &(GROUP.into(), VERSION.into())).await {
        Ok(served) => served,
        Err(error) => {
            errors.push(CannotAsk::new(hub, error).to_string());
            return Default::default();
        }
    };
    let has = |plural: &str| match &served {
        Served::Resources(resources) => resources.get(plural).is_some(),
        Served::NotServed => false,
    };
    let kinds = ConfigKind::ALL.into_iter().filter(|kind| has(kind.plural()));
    let kinds: Vec<ConfigKind> = kinds.collect();
    if kinds.is_empty() {
        errors.push(format!(
            "hub {address}: {}: apply manifests/crds to the hub, bind the API, or name the hub's kubeconfig",
            ask::NO_CONFIGS
        ));
        return Default::default();
    }
    let mut configs = Vec::new();
    for kind in kinds {
        if let Err(error) = read_kind(hub, kind, &mut configs, errors).await {
            errors.push(format!(
                "the {} of the hub: {}",
                kind.plural(),
                CannotAsk::new(hub, error)
            ));
        }
    }
    let mut seen = Seen::new();
    if has(edge::RESOURCE) {
        // Whoever may not read them, such as a syncer, has what the configs say.
        let _ = read_edges(hub, &mut seen).await;
    }
    (configs, seen)
}

/// Reads when each edge has last written to the object that stands for it.
async fn read_edges(hub: &Rc<Cluster>, seen: &mut Seen) -> Result<(), Error> {
    let mut listing = hub.list(ListRequest::of_all(edge::resource_type(), Content::Full));
    while let Some(object) = listing.next().await? {
        seen.extend(of_edge(&object));
    }
    Ok(())
}

/// Whose it is, and when the hub has noted the last write of its syncer.
fn of_edge(object: &[u8]) -> Option<(String, u64)> {
    let mut wire: Wire<'_> = serde_json::from_slice(object).ok()?;
    let status: WireOfEdge = serde_json::from_str(wire.status?.get()).ok()?;
    let mut written = wire.metadata.written();
    written.retain(|manager, _| [HEARTBEAT_FIELD_MANAGER, STATUS_FIELD_MANAGER].contains(&&**manager));
    Some((status.syncer.uid, *written.values().max()?))
}

/// Leaves those of this name. The error is for the case that there is none, and all were read.
pub(super) fn retain(configs: &mut Vec<Config>, name: &str) -> Result<(), String> {
    let is_any = configs.iter().any(|config| config.name == name);
    let hint = spelling::hint(name, configs.iter().map(|config| &*config.name));
    configs.retain(|config| config.name == name);
    if is_any {
        Ok(())
    } else {
        Err(format!("--config {name:?}: the hub has no such config{hint}"))
    }
}

/// Reads all of one kind. One that is no object is an error among the others.
async fn read_kind(
    hub: &Rc<Cluster>,
    kind: ConfigKind,
    configs: &mut Vec<Config>,
    errors: &mut Vec<String>,
) -> Result<(), Error> {
    let mut listing = hub.list(ListRequest::of_all(kind.resource_type(), Content::Full));
    while let Some(object) = listing.next().await? {
        match Config::parse(kind, &object) {
            Ok(config) => configs.push(config),
            Err(error) => errors.push(format!("a {} cannot be read: {error}: correct it", kind.kind())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: &serde_json::Value) -> Config {
        Config::parse(ConfigKind::SyncerConfig, value.to_string().as_bytes()).unwrap()
    }

    fn judged(config: Config, only: Option<&str>) -> OfConfig {
        let judged = Judged {
            now: since_1970_of("2026-11-21T14:00:00Z").unwrap(),
            stale_after: Duration::from_secs(300),
            kubectl: &Kubectl::default(),
            edges: &Seen::new(),
        };
        config.judge(only, &judged)
    }

    // The clock of an edge may be wrong by years.
    #[test]
    fn an_edge_was_last_heard_of_when_the_hub_noted_it() {
        let manager = |name: &str, time: &str| json!({"manager": name, "operation": "Apply", "time": time});
        let of = |managers: serde_json::Value, heartbeat: serde_json::Value| {
            let found = config(&json!({
                "metadata": {"name": "a", "generation": 1, "managedFields": managers},
                "status": {"edges": [{"syncTargetUID": "u", "observedGeneration": 1, "lastHeartbeatTime": heartbeat}]},
            }));
            judged(found, None).edges.remove(0).last_seen
        };
        let ours = manager("edge-syncer-heartbeat-u", "2026-11-21T13:59:00Z");
        let status = manager("edge-syncer-status-u", "2026-11-21T13:59:30Z");
        let others = manager("edge-syncer-heartbeat-v", "2026-11-21T13:59:50Z");
        let edge = json!("1970-01-01T00:05:00Z");
        for (managers, heartbeat, expected) in [
            (json!([ours, others]), edge.clone(), Some("2026-11-21T13:59:00Z")),
            (
                json!([ours, status, others]),
                edge.clone(),
                Some("2026-11-21T13:59:30Z"),
            ),
            (json!([others]), edge.clone(), Some("1970-01-01T00:05:00Z")),
            (
                json!([]),
                json!("2026-11-21T13:58:00.250Z"),
                Some("2026-11-21T13:58:00Z"),
            ),
            (json!([]), json!(null), None),
            (json!([]), json!("soon"), None),
        ] {
            assert_eq!(of(managers.clone(), heartbeat).as_deref(), expected, "{managers}");
        }
    }

    /// Its configs may have few heartbeats.
    #[test]
    fn what_an_edge_wrote_to_the_object_that_stands_for_it_counts_too() {
        let manager = |name: &str, time: &str| json!({"manager": name, "operation": "Apply", "time": time});
        let (by_us, by_others) = ("edge-syncer-heartbeat", "kubectl");
        for (managers, status, expected) in [
            (
                json!([
                    manager(by_us, "2026-11-21T13:59:00Z"),
                    manager(by_others, "2026-11-21T13:59:30Z")
                ]),
                json!({"syncer": {"syncTargetUID": "u"}}),
                Some(("u".to_owned(), since_1970_of("2026-11-21T13:59:00Z").unwrap())),
            ),
            (json!([]), json!({"syncer": {"syncTargetUID": "u"}}), None),
            (json!([manager(by_us, "2026-11-21T13:59:00Z")]), json!("x"), None),
        ] {
            let object = json!({"metadata": {"name": "a", "managedFields": managers}, "status": status});
            assert_eq!(of_edge(object.to_string().as_bytes()), expected, "{object}");
        }
        let (old, new) = ("2026-11-21T13:00:00Z", since_1970_of("2026-11-21T13:59:00Z").unwrap());
        let found = config(&json!({
            "metadata": {"name": "a", "managedFields": [manager("edge-syncer-heartbeat-u", old)]},
            "status": {"edges": [{"syncTargetUID": "u"}]},
        }));
        assert_eq!(found.seen("u", &Seen::new()), since_1970_of(old));
        assert_eq!(found.seen("u", &Seen::from([("u".to_owned(), new)])), Some(new));
        assert_eq!(
            found.seen("u", &Seen::from([("v".to_owned(), new)])),
            since_1970_of(old)
        );
    }

    #[test]
    fn a_config_that_nobody_follows_says_what_to_do() {
        for (status, only, expected) in [
            (json!({}), None, "no syncer has followed it yet"),
            (
                json!({}),
                Some("site-7"),
                "nothing says that the syncer of site-7 follows it",
            ),
            (
                json!({"lastSyncerHeartbeatTime": "2026-11-21T13:59:00Z"}),
                None,
                "its last heartbeat is from 2026-11-21T13:59:00Z, and the hub keeps no more of it: apply manifests/crds",
            ),
            (
                json!({"lastSyncerHeartbeatTime": "2026-11-20T13:59:00Z"}),
                None,
                "the last heartbeat is from 2026-11-20T13:59:00Z: whatever has followed it is silent",
            ),
            (
                json!({"edges": [{"syncTargetUID": "site-8"}]}),
                Some("site-7"),
                "nothing says that the syncer of site-7",
            ),
        ] {
            let found = config(&json!({"metadata": {"name": "a", "generation": 1}, "status": status}));
            let found = judged(found, only);
            assert_eq!(found.verdict, Verdict::Unknown);
            assert!(found.message.starts_with(expected), "{}", found.message);
        }
    }

    #[test]
    fn what_an_older_hub_keeps_of_holds_can_be_confirmed() {
        let message = "downsync: 3 objects held; confirm with the annotation edge.kubestellar.io/confirm-deletes=a1b2";
        let condition = json!({"type": "DeletesHeld", "status": "True", "reason": "TooMany", "message": message});
        let found = config(&json!({"metadata": {"name": "a"}, "status": {"conditions": [condition]}}));
        let confirm = judged(found, None).confirm.unwrap();
        assert!(
            confirm.ends_with(
                "annotate syncerconfigs.edge.kubestellar.io a --overwrite edge.kubestellar.io/confirm-deletes=a1b2"
            ),
            "{confirm}"
        );
    }

    #[test]
    fn what_is_no_config_is_an_error_and_a_status_of_another_form_is_none() {
        assert!(Config::parse(ConfigKind::SyncerConfig, b"<html>").is_err());
        for status in [json!("x"), json!({"edges": "x"}), json!({"edges": [1]}), json!(null)] {
            let found = config(&json!({"metadata": {"name": "a"}, "status": status}));
            assert!(
                judged(found, None)
                    .edges
                    .iter()
                    .all(|edge| edge.verdict == Verdict::Unknown),
                "{status}"
            );
        }
    }
}
