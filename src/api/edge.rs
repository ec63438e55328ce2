//! `status` of the object that stands for an edge at its hub: what its syncer says of itself, and of all configs together.
//!
//! One syncer writes it and nobody else, so it is applied as a whole; the heartbeat alone has another field manager. The
//! conditions are those of a config for everything that all configs select, and two about what the way to both sides needs.

use std::time::Duration;

use kube_lite::ResourceType;
use kube_lite::logging::times::date_and_time;
use serde::Serialize;
use serde_json::{Value, json};

use super::status::{self, Condition, DELETES_HELD, OfEdge, READY, Said, items};
use super::{GROUP, VERSION};

/// Plural of the kind.
pub const RESOURCE: &str = "edges";
/// Its kind.
pub const KIND: &str = "Edge";

/// Condition: both sides accept the credentials, and these have not ended.
pub const CREDENTIALS_VALID: &str = "CredentialsValid";
/// Condition: the clocks of both sides and of the machine of the syncer agree.
pub const CLOCK_SYNCED: &str = "ClockSynced";

/// How long before their end credentials that nobody renews are said to end soon: the second of the lines about that.
const SOON: u64 = 7 * 86_400;

/// The type.
pub fn resource_type() -> ResourceType {
    ResourceType::new([GROUP, VERSION, RESOURCE, KIND], false)
}

/// `status`, without the heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeStatus {
    /// See [`Identity`].
    pub identity: Identity,
    /// The versions of both API servers, as far as they are known.
    pub kubernetes_versions: KubernetesVersions,
    /// Of what all configs select, each object once.
    pub counts: Counts,
    /// `41/42`.
    pub synced: String,
    /// How many objects fail or have a conflict.
    pub failing: usize,
    /// How many deletes are held.
    pub held: usize,
    /// See [`Condition`].
    pub conditions: Vec<Condition>,
}

/// What stays the same as long as the process lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// UID of the sync target.
    pub uid: String,
    /// Name of the sync target.
    pub name: String,
    /// The version of the syncer.
    pub version: String,
    /// Who syncs, as the holder of the Lease is called.
    pub holder: String,
    /// The time between two heartbeats.
    pub heartbeat_interval_seconds: u64,
}

/// The versions of both API servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesVersions {
    /// That of the hub.
    pub hub: String,
    /// That of the edge.
    pub edge: String,
}

/// See [`OfEdge`].
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
#[expect(missing_docs, reason = "as there")]
pub struct Counts {
    pub selected: usize,
    pub synced: usize,
    pub pending: usize,
    pub failing: usize,
    pub conflicts: usize,
    pub held: usize,
}

/// What is known of the way to one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// `hub` or `edge`.
    pub side: &'static str,
    /// It refuses the credentials.
    pub is_refusing: bool,
    /// When these end, in seconds since 1970, if that is known.
    pub credentials_end: Option<u64>,
    /// The syncer renews them.
    pub are_renewed: bool,
    /// By how many seconds its clock is ahead of that of this machine, if it has said its time, and whether that is too many.
    pub clock: Option<(i64, bool)>,
}

impl EdgeStatus {
    /// What follows from all that is known. A condition whose status is as in `known` keeps its time.
    pub fn of(
        identity: &Identity,
        versions: &KubernetesVersions,
        total: &OfEdge,
        conditions: Vec<Condition>,
        (known, now): (&[Condition], &str),
    ) -> Self {
        Self {
            identity: identity.clone(),
            kubernetes_versions: versions.clone(),
            counts: Counts {
                selected: total.selected,
                synced: total.synced,
                pending: total.pending,
                failing: total.failing,
                conflicts: total.conflicts,
                held: total.held,
            },
            synced: format!("{}/{}", total.synced, total.selected),
            failing: total.failing + total.conflicts,
            held: total.held,
            conditions: status::since(conditions, known, now),
        }
    }

    /// As it is applied.
    pub fn to_json(&self) -> Value {
        let Self {
            identity,
            kubernetes_versions,
            counts,
            ..
        } = self;
        let mut versions = json!({});
        for (side, version) in [("hub", &kubernetes_versions.hub), ("edge", &kubernetes_versions.edge)] {
            if !version.is_empty() {
                versions[side] = version.as_str().into();
            }
        }
        json!({
            "syncer": {
                "syncTargetUID": identity.uid,
                "syncTargetName": identity.name,
                "version": identity.version,
                "holder": identity.holder,
                "heartbeatIntervalSeconds": identity.heartbeat_interval_seconds,
                "kubernetesVersions": versions,
            },
            "counts": counts,
            "synced": self.synced,
            "failing": self.failing,
            "held": self.held,
            "conditions": self.conditions,
        })
    }

    /// True if it says more than another one than how many objects there are.
    pub fn is_news(&self, before: &Self) -> bool {
        (&self.identity, &self.kubernetes_versions) != (&before.identity, &before.kubernetes_versions)
            || !status::reasons(&self.conditions).eq(status::reasons(&before.conditions))
    }
}

/// The conditions that follow from what is selected, of all configs together, and from the ways to both sides. `since_1970` is
/// the time of this machine's clock.
pub fn conditions(total: &OfEdge, ways: &[Way], since_1970: Duration) -> Vec<Condition> {
    let mut all = status::sum_up(std::slice::from_ref(total));
    all.retain(|condition| [READY, DELETES_HELD].contains(&&*condition.r#type));
    let generation = total.observed_generation;
    let (is_valid, said) = credentials(ways, since_1970.as_secs());
    let credentials = Condition::new(CREDENTIALS_VALID, status::word(is_valid), said, generation);
    if let Some(ready) = all.first_mut().filter(|_| !is_valid) {
        let of_credentials = credentials.clone();
        *ready = Condition {
            r#type: READY.to_owned(),
            ..of_credentials
        };
    }
    let (status, said) = clocks(ways);
    let clock = Condition::new(CLOCK_SYNCED, status, said, generation);
    all.splice(1..1, [credentials, clock]);
    all
}

/// The conditions in the answer of a hub.
pub fn conditions_of(object: &Value) -> Vec<Condition> {
    items(&object["status"]["conditions"]).map(Condition::read).collect()
}

/// Whether both sides accept the credentials, and for how long: the worst of what there is to say.
fn credentials(ways: &[Way], now: u64) -> (bool, Said) {
    let date = |end: u64| date_and_time(Duration::from_secs(end));
    if let Some(Way { side, .. }) = ways.iter().find(|way| way.is_refusing) {
        return (false, ("Refused", format!("the {side} refuses the credentials")));
    }
    let ends = ways.iter().filter_map(|way| Some((way, way.credentials_end?)));
    let Some((Way { side, are_renewed, .. }, end)) =
        ends.min_by_key(|(way, end)| (*end > now && way.are_renewed, *end))
    else {
        return (true, ("Valid", String::new()));
    };
    if end <= now {
        let message = format!("the credentials for the {side} have ended at {}", date(end));
        (false, ("Ended", message))
    } else if end - now <= SOON && !are_renewed {
        let message = format!("the credentials for the {side} end at {}", date(end));
        (true, ("EndSoon", message))
    } else {
        (true, ("Valid", String::new()))
    }
}

/// Whether the clocks agree. Nothing waits for that, so it does not count for `Ready`.
fn clocks(ways: &[Way]) -> (&'static str, Said) {
    let known = || ways.iter().filter_map(|way| Some((way.side, way.clock?)));
    if let Some((side, (ahead, _))) = known().find(|(_, (_, differs))| *differs) {
        let (seconds, way) = (ahead.unsigned_abs(), if ahead < 0 { "behind" } else { "ahead of" });
        let message = format!("the clock of the {side} is {seconds} s {way} that of the machine of the syncer");
        return ("False", ("Differs", message));
    }
    match known().next() {
        Some(_) => ("True", ("Agrees", String::new())),
        None => ("Unknown", ("NotSaid", "no side has said what time it is".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::status::{ALL_SYNCED, FAILING, Failure};

    const NOW: u64 = 1_000_000_000;

    fn all(total: &OfEdge, ways: &[Way]) -> Vec<(String, String, String, String)> {
        let all = conditions(total, ways, Duration::from_secs(NOW));
        let text = |it: Condition| (it.r#type, it.status, it.reason, it.message);
        all.into_iter().map(text).collect()
    }

    fn one(total: &OfEdge, ways: &[Way], of: &str) -> (String, String, String) {
        let all = all(total, ways);
        let found = all.into_iter().find(|it| it.0 == of).unwrap();
        (found.1, found.2, found.3)
    }

    fn synced() -> OfEdge {
        OfEdge {
            selected: 42,
            synced: 42,
            observed_generation: 1,
            ..OfEdge::default()
        }
    }

    #[test]
    fn an_edge_that_is_well_says_so_in_four_conditions() {
        let order: Vec<String> = all(&synced(), &[]).into_iter().map(|it| it.0).collect();
        assert_eq!(order, [READY, CREDENTIALS_VALID, CLOCK_SYNCED, DELETES_HELD]);
        let ready = one(&synced(), &[], READY);
        let words = "42 of 42 objects are synced";
        assert_eq!(ready, ("True".into(), ALL_SYNCED.into(), words.into()));
    }

    #[test]
    fn it_is_not_ready_while_something_fails_or_the_credentials_are_bad_and_clocks_do_not_count() {
        let failing = OfEdge {
            synced: 41,
            failing: 1,
            failures: vec![Failure {
                object: "ConfigMap/shop/a".into(),
                side: "edge".into(),
                message: "no".into(),
                ..Failure::default()
            }],
            ..synced()
        };
        let refused = Way {
            side: "edge",
            is_refusing: true,
            ..Way::default()
        };
        let late = Way {
            side: "hub",
            clock: Some((-31, true)),
            ..Way::default()
        };
        for (total, ways, status, reason, words) in [
            (
                &failing,
                vec![],
                "False",
                FAILING,
                "41 of 42 objects are synced; ConfigMap/shop/a at the edge: no",
            ),
            (
                &failing,
                vec![refused],
                "False",
                "Refused",
                "the edge refuses the credentials",
            ),
            (
                &synced(),
                vec![refused],
                "False",
                "Refused",
                "the edge refuses the credentials",
            ),
            (&synced(), vec![late], "True", ALL_SYNCED, "42 of 42 objects are synced"),
        ] {
            assert_eq!(one(total, &ways, READY), (status.into(), reason.into(), words.into()));
        }
    }

    #[test]
    fn credentials_are_bad_once_they_are_refused_or_have_ended_and_said_to_end_if_nobody_renews_them() {
        const DAY: u64 = 86_400;
        let way = |side, end: Option<u64>, are_renewed| Way {
            side,
            credentials_end: end,
            are_renewed,
            ..Way::default()
        };
        for (ways, status, reason, words) in [
            (vec![], "True", "Valid", ""),
            (vec![way("hub", None, false)], "True", "Valid", ""),
            (vec![way("hub", Some(NOW + 8 * DAY), false)], "True", "Valid", ""),
            (vec![way("hub", Some(NOW + DAY), true)], "True", "Valid", ""),
            (
                vec![
                    way("hub", Some(NOW + DAY), true),
                    way("edge", Some(NOW + 2 * DAY), false),
                ],
                "True",
                "EndSoon",
                "the credentials for the edge end at 2001-09-11T01:46:40Z",
            ),
            (
                vec![way("hub", Some(NOW), true), way("edge", Some(NOW + DAY), false)],
                "False",
                "Ended",
                "the credentials for the hub have ended at 2001-09-09T01:46:40Z",
            ),
        ] {
            let found = one(&synced(), &ways, CREDENTIALS_VALID);
            assert_eq!(found, (status.into(), reason.into(), words.into()), "{ways:?}");
        }
    }

    #[test]
    fn clocks_are_named_that_differ() {
        let way = |side, clock| Way {
            side,
            clock,
            ..Way::default()
        };
        for (ways, status, words) in [
            (vec![], "Unknown", "no side has said what time it is"),
            (vec![way("hub", Some((3, false))), way("edge", None)], "True", ""),
            (
                vec![way("hub", Some((0, false))), way("edge", Some((31, true)))],
                "False",
                "the clock of the edge is 31 s ahead of that of the machine of the syncer",
            ),
            (
                vec![way("hub", Some((-3600, true)))],
                "False",
                "the clock of the hub is 3600 s behind that of the machine of the syncer",
            ),
        ] {
            let (found, _, message) = one(&synced(), &ways, CLOCK_SYNCED);
            assert_eq!((&*found, &*message), (status, words), "{ways:?}");
        }
    }

    #[test]
    fn counts_alone_are_no_news() {
        let of = |total: &OfEdge, version: &str| {
            let identity = Identity {
                version: version.to_owned(),
                ..Identity::default()
            };
            let conditions = conditions(total, &[], Duration::ZERO);
            EdgeStatus::of(
                &identity,
                &KubernetesVersions::default(),
                total,
                conditions,
                (&[], "now"),
            )
        };
        let first = of(&synced(), "1");
        assert_eq!((&*first.synced, first.failing, first.held), ("42/42", 0, 0));
        let more = OfEdge {
            selected: 43,
            synced: 43,
            ..synced()
        };
        assert!(!of(&more, "1").is_news(&first));
        assert!(of(&more, "2").is_news(&first));
        let waits = OfEdge {
            selected: 43,
            ..synced()
        };
        assert!(of(&waits, "1").is_news(&first));
    }
}
