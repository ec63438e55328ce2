//! What this edge says of each config, so that people at the hub see what is synced and what fails.
//!
//! A look counts what each config selects, a moment after anything has happened; what differs from what the hub has is
//! applied. Nothing is stored beside that: what fails is known to the report, what is synced to the inventories.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use driver::few::Few;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::config_kind::ConfigKind;
use super::configs::ConfigName;
use super::pace::{Differs, Pace, RARELY, Stores};
use crate::api::status::{self, DELETES_HELD, FieldProblem, OfEdge, Status};
use crate::api::{GROUP, VERSION};
use crate::sync::meta::Meta;

/// For each so many bytes of a config, that is a second more: each write makes the hub send it to all that follow it.
const BYTES_A_SECOND: usize = 64 << 10;
/// How long after a write what the hub reports may be from before it.
const OLDER: Duration = Duration::from_secs(10);
/// How long the first lists may take before the status says so.
const READING: Duration = Duration::from_secs(30);

/// What is known of the statuses of the configs.
#[derive(Default)]
pub(super) struct ConfigStatuses {
    known: BTreeMap<ConfigName, KnownStatus>,
    /// Whether the hub stores the status of a kind, as far as that was tried.
    kinds: Few<ConfigKind, Stores>,
    /// Since when not all lists are complete.
    reading_since: Option<Instant>,
    /// What is being written, and the version of the config before.
    writing: BTreeMap<ConfigName, (Status, u64)>,
}

/// The status of one config.
#[derive(Default)]
struct KnownStatus {
    generation: i64,
    /// As the hub has it.
    is: Status,
    /// The version at which it has that.
    version: u64,
    pace: Pace,
    /// The length of the config.
    bytes: usize,
}

impl ConfigStatuses {
    pub(super) fn remove(&mut self, config: &ConfigName) {
        self.known.remove(config);
    }

    /// The hub has reported a config. True once, if somebody else keeps writing what this sync target says of it, so that
    /// that is to be said.
    pub(super) fn config_seen(
        &mut self,
        (kind, meta): (ConfigKind, &Meta),
        object: &[u8],
        uid: &str,
        now: Instant,
        chance: impl FnOnce() -> f64,
    ) -> bool {
        let of = (kind, meta.name.clone());
        // What is being written may be reported before its answer comes.
        let is_being_written = self.writing.contains_key(&of);
        let known = self.known.entry(of).or_default();
        let version = meta.version_number();
        let (generation, is) = Status::of_config(object);
        (known.generation, known.bytes) = (generation, object.len());
        // Whatever was reported on its way to us while we wrote is older; a hub that was restored has older ones for good.
        let is_older = version < known.version && known.pace.written.is_some_and(|at| now.duration_since(at) < OLDER);
        if is_older {
            return false;
        }
        let is_news = known.pace.written.is_some() && version > known.version;
        let of_us = |status: &Status| status.only_of(uid).without_tries().edges;
        let is_overwritten = is_news && !is_being_written && of_us(&known.is) != of_us(&is);
        (known.is, known.version) = (is, version);
        is_overwritten && known.pace.is_overwritten(now, chance())
    }

    /// What differs from what the hub has, to be applied as this sync target; and when that is to be checked again, if
    /// something waits. `clock` is for people.
    pub(super) fn differing(
        &mut self,
        of_edge: Vec<(ConfigName, OfEdge)>,
        uid: &str,
        clock: &str,
        now: Instant,
    ) -> (Vec<(ConfigKind, String, Bytes)>, Option<Instant>) {
        self.writing.clear();
        let mut configs = Vec::new();
        let mut again: Option<Instant> = None;
        for ((kind, name), ours) in of_edge {
            if self.is_lacking(kind, now) {
                continue;
            }
            let known = self.known.entry((kind, name.clone())).or_default();
            let is_pending = ours.pending > 0;
            let is = known.is.only_of(uid);
            let status = known.is.with(ours, clock);
            let mine = status.only_of(uid);
            let (was, will_be) = (is.without_tries(), mine.clone().without_tries());
            let differs = match (will_be != was, is_news(&was, &will_be)) {
                (false, _) => Differs::Not,
                (true, false) => Differs::ByCounts(known.rarely()),
                (true, true) => Differs::ByMore,
            };
            if let Some(until) = known.pace.waits(is_pending, differs, now) {
                again = Some(again.map_or(until, |again| again.min(until)));
            } else if differs != Differs::Not {
                configs.push((kind, name.clone(), applied(kind.kind(), &name, &mine)));
                let before = known.version;
                self.writing.insert((kind, name), (status, before));
            }
        }
        (configs, again)
    }

    /// True if the first lists are not complete, and have not been for so long that the status has to say it.
    pub(super) fn waits_for_lists(&mut self, are_complete: bool, now: Instant) -> bool {
        if are_complete {
            self.reading_since = None;
        }
        !are_complete && now.duration_since(*self.reading_since.get_or_insert(now)) < READING
    }

    /// The hub has stored what was written to a config, at this version. Returns the one before.
    pub(super) fn is_written(&mut self, of: &ConfigName, version: u64, now: Instant) -> Option<u64> {
        let (status, before) = self.writing.remove(of)?;
        self.kinds.insert(of.0, Stores::It);
        let known = self.known.get_mut(of)?;
        known.pace.is_written(now);
        // What the hub has reported meanwhile may be newer, or another hub's.
        let has_gone_back = known.version < before;
        let is_newer = known.version > before && known.version > version && version != 0;
        if !is_newer {
            (known.is, known.version) = (status, version);
        }
        Some(if has_gone_back { 0 } else { before })
    }

    /// The hub has refused what was to be written to a config: it waits with increasing back-off, and others do not.
    pub(super) fn is_refused(&mut self, of: &ConfigName, now: Instant, chance: f64) {
        if let Some(known) = self.known.get_mut(of) {
            known.pace.is_refused(now, chance);
        }
    }

    /// True if other edges follow a config too, as far as the hub says.
    pub(super) fn is_shared(&self, of: &ConfigName, uid: &str) -> bool {
        let known = self.known.get(of).map(|known| &known.is.edges);
        known.into_iter().flatten().any(|edge| edge.uid != uid)
    }

    /// Since when the hub has had a problem of this sync target; `None` if it has not.
    pub(super) fn said_since(&self, of: &ConfigName, uid: &str, problem: &FieldProblem) -> Option<&str> {
        let entry = self.known.get(of)?.is.edges.iter().find(|edge| edge.uid == uid)?;
        entry.since(problem)
    }

    /// The generation of a config as it was last reported.
    pub(super) fn generation(&self, of: &ConfigName) -> i64 {
        self.known.get(of).map_or(0, |known| known.generation)
    }

    /// True if the status of a config has more than what is merged into it where the hub stores no more.
    pub(super) fn has_more(&self, of: &ConfigName) -> bool {
        let conditions = self.known.get(of).map(|known| &known.is.conditions);
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.r#type != DELETES_HELD)
    }

    /// The hub does not store the status of this kind. Returns whether that was not known, and whether it was never so.
    pub(super) fn is_not_stored(&mut self, kind: ConfigKind, now: Instant) -> (bool, bool) {
        self.kinds.or_default(kind).is_not_stored(now)
    }

    /// True if the hub stores the status of configs of that kind.
    pub(super) fn is_stored(&self, kind: ConfigKind) -> bool {
        self.kinds.get(kind) == Some(&Stores::It)
    }

    /// True unless it was tried and was not stored, until it is: that it is tried once more is no news for other kinds.
    pub(super) fn may_be_stored(&self, kind: ConfigKind) -> bool {
        !matches!(self.kinds.get(kind), Some(Stores::Less(..)))
    }

    /// True if it does not, and is not to be tried again yet.
    pub(super) fn is_lacking(&self, kind: ConfigKind, now: Instant) -> bool {
        self.kinds.get(kind).is_some_and(|stores| stores.is_lacking(now))
    }
}

impl KnownStatus {
    /// How rarely nothing but counts is written.
    fn rarely(&self) -> Duration {
        RARELY.max(Duration::from_secs((self.bytes / BYTES_A_SECOND) as u64))
    }
}

/// True if more has changed than counts.
fn is_news(was: &Status, is: &Status) -> bool {
    fn rules(of: &OfEdge) -> impl Iterator<Item = &str> {
        of.denied.iter().map(|denied| &*denied.rule)
    }
    let named = |ours: &OfEdge, other: &OfEdge| {
        ours.observed_generation == other.observed_generation
            && (&ours.failures, &ours.problems, &ours.unmatched, &ours.hold)
                == (&other.failures, &other.problems, &other.unmatched, &other.hold)
            && rules(ours).eq(rules(other))
    };
    let is_named_alike = match (was.edges.first(), is.edges.first()) {
        (Some(was), Some(is)) => named(was, is),
        (was, is) => was.is_none() && is.is_none(),
    };
    !is_named_alike || !status::reasons(&was.conditions).eq(status::reasons(&is.conditions))
}

/// What is applied to an object of that kind, of which that is the status.
pub(super) fn applied(kind: &str, name: &str, status: &impl Serialize) -> Bytes {
    let body = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": kind,
        "metadata": {"name": name},
        "status": status,
    });
    Bytes::from(body.to_string())
}

#[cfg(test)]
mod tests {
    use kube_lite::Error;

    use super::super::pace::LONGEST_LACKING;
    use super::*;

    const UID: &str = "ours";

    fn config(name: &str) -> ConfigName {
        (ConfigKind::SyncerConfig, name.to_owned())
    }

    fn synced(count: usize) -> OfEdge {
        OfEdge {
            uid: UID.to_owned(),
            selected: count,
            synced: count,
            ..OfEdge::default()
        }
    }

    fn sees(statuses: &mut ConfigStatuses, name: &str, version: u64, status: &Status, now: Instant) -> bool {
        let meta = Meta {
            name: name.to_owned(),
            resource_version: version.to_string(),
            ..Meta::default()
        };
        let object = json!({"metadata": {"name": name, "generation": 1}, "status": status}).to_string();
        let half = || 0.5;
        statuses.config_seen((ConfigKind::SyncerConfig, &meta), object.as_bytes(), UID, now, half)
    }

    // Two syncers with one UID wrote each second, for ever, and nothing said so.
    #[test]
    fn who_else_writes_what_this_edge_says_is_noticed_and_answered_ever_less_often() {
        let (mut statuses, mut now) = (ConfigStatuses::default(), Instant::now());
        let (mut version, mut said, mut writes) = (0, 0, 0);
        let minute = Duration::from_secs(60);
        let end = now + 10 * minute;
        while now < end {
            if !written(&mut statuses, &["a"], 7, now).is_empty() {
                writes += 1;
                version += 1;
                statuses.is_written(&config("a"), version, now);
            }
            // One of another edge is no matter of ours.
            let others = OfEdge {
                uid: "b".to_owned(),
                synced: version.try_into().unwrap(),
                ..OfEdge::default()
            };
            version += 1;
            let theirs = Status::default().with(synced(if writes < 20 { 3 } else { 7 }), "then");
            said += usize::from(sees(&mut statuses, "a", version, &theirs.with(others, "then"), now));
            now += Duration::from_secs(1);
        }
        assert!((5..15).contains(&writes), "{writes}");
        assert_eq!(said, 1);
        // Alone again, it is as it was.
        now += 120 * minute;
        sees(
            &mut statuses,
            "a",
            version + 1,
            &Status::default().with(synced(3), "then"),
            now,
        );
        now += minute;
        assert_eq!(written(&mut statuses, &["a"], 7, now), ["a"]);
    }

    fn written(statuses: &mut ConfigStatuses, names: &[&str], count: usize, now: Instant) -> Vec<String> {
        let of_edge = names.iter().map(|name| (config(name), synced(count))).collect();
        let (configs, _) = statuses.differing(of_edge, UID, "now", now);
        configs.into_iter().map(|(_, name, _)| name).collect()
    }

    // Otherwise deletes would be held, as if the hub had gone back to older versions.
    #[test]
    fn what_the_hub_reports_of_a_config_while_it_is_written_is_newer_and_no_sign_of_a_restore() {
        let now = Instant::now();
        let others = Status::default().with(
            OfEdge {
                uid: "b".into(),
                ..OfEdge::default()
            },
            "now",
        );
        // Seen before the write and during it, the answer, and the version before that and what is known then.
        for (before, during, answer, expected, is_ours) in [
            (90, None, 100, 90, true),
            (90, Some(105), 100, 90, false),
            (90, Some(95), 100, 90, true),
            // It has gone back unseen, which the answer shows.
            (90, None, 8, 90, true),
            // Another hub, or one that was restored, has been reported: what its answer says is judged by that.
            (90, Some(7), 8, 0, true),
        ] {
            let mut statuses = ConfigStatuses::default();
            sees(&mut statuses, "a", before, &Status::default(), now);
            assert_eq!(written(&mut statuses, &["a"], 1, now), ["a"]);
            if let Some(during) = during {
                sees(&mut statuses, "a", during, &others, now);
            }
            assert_eq!(
                statuses.is_written(&config("a"), answer, now),
                Some(expected),
                "{during:?}"
            );
            let edges = &statuses.known[&config("a")].is.edges;
            assert_eq!(edges.iter().any(|edge| edge.uid == UID), is_ours, "{during:?}");
        }
    }

    #[test]
    fn a_config_that_the_hub_refuses_waits_and_others_do_not() {
        let mut now = Instant::now();
        let mut statuses = ConfigStatuses::default();
        for name in ["a", "b"] {
            sees(&mut statuses, name, 1, &Status::default(), now);
        }
        assert_eq!(written(&mut statuses, &["a", "b"], 1, now), ["a", "b"]);
        statuses.is_refused(&config("a"), now, 0.5);
        statuses.is_written(&config("b"), 2, now);
        assert_eq!(written(&mut statuses, &["a", "b"], 1, now), Vec::<String>::new());
        now += Duration::from_secs(3600);
        assert_eq!(written(&mut statuses, &["a", "b"], 1, now), ["a"]);
    }

    #[test]
    fn counts_alone_are_written_rarely_and_more_so_for_a_large_config() {
        for (bytes, wait) in [(0, 4), (640 << 10, 11)] {
            let mut now = Instant::now();
            let mut statuses = ConfigStatuses::default();
            sees(&mut statuses, "a", 1, &Status::default(), now);
            assert_eq!(written(&mut statuses, &["a"], 1, now), ["a"]);
            statuses.is_written(&config("a"), 2, now);
            statuses.known.get_mut(&config("a")).unwrap().bytes = bytes;
            now += Duration::from_secs(2);
            assert_eq!(written(&mut statuses, &["a"], 2, now), Vec::<String>::new());
            now += Duration::from_secs(wait);
            assert_eq!(written(&mut statuses, &["a"], 2, now), ["a"]);
        }
    }

    // An hour in which nothing happens has heartbeats alone, also while an object fails.
    #[test]
    fn that_something_is_tried_again_is_written_with_other_news_and_is_none_itself() {
        let mut now = Instant::now();
        let mut statuses = ConfigStatuses::default();
        sees(&mut statuses, "a", 1, &Status::default(), now);
        // How often it has failed, the server's words, and what is written.
        for (tries, message, expected) in [
            (1, "no", Some(1)),
            (2, "no", None),
            (4_000_000_000, "no", None),
            (4_000_000_001, "never", Some(4_000_000_001_u64)),
            (4_000_000_001, "never", None),
        ] {
            let failure = status::Failure {
                message: message.to_owned(),
                doing: "applying".to_owned(),
                tries,
                ..status::Failure::default()
            };
            let ours = OfEdge {
                failing: 1,
                failures: vec![failure],
                ..synced(1)
            };
            now += Duration::from_secs(3600);
            let (configs, again) = statuses.differing(vec![(config("a"), ours)], UID, "now", now);
            let written = configs.first().map(|(_, _, body)| {
                let body: serde_json::Value = serde_json::from_slice(body).expect("it is JSON");
                let failure = &body["status"]["edges"][0]["failures"][0];
                assert_eq!(failure["doing"], "applying");
                failure["tries"].as_u64().expect("it is a number")
            });
            assert_eq!((written, again), (expected, None), "{tries} {message}");
            statuses.is_written(&config("a"), 2, now);
        }
    }

    #[test]
    fn a_kind_that_is_not_stored_is_tried_with_increasing_back_off() {
        let mut now = Instant::now();
        let mut statuses = ConfigStatuses::default();
        let kind = ConfigKind::SyncerConfig;
        assert_eq!(statuses.is_not_stored(kind, now), (true, true));
        assert_eq!(
            statuses.is_not_stored(kind, now),
            (false, false),
            "the next of the same kind"
        );
        assert!(!statuses.may_be_stored(kind));
        now += LONGEST_LACKING;
        assert!(!statuses.is_lacking(kind, now));
        // Otherwise what other configs say of a hold would change for that moment.
        assert!(!statuses.may_be_stored(kind));
        assert_eq!(statuses.is_not_stored(kind, now), (true, false));
        assert!(statuses.is_lacking(kind, now + LONGEST_LACKING - Duration::from_secs(1)));
    }

    #[test]
    fn only_what_says_that_the_schema_is_an_older_one_counts_as_not_stored() {
        use crate::sync::undeclared::is_not_stored;

        let error = |code: u16, message: &str| {
            let body = json!({"kind": "Status", "reason": "x", "message": message});
            Error::from_answer(code, None, body.to_string().as_bytes())
        };
        let older =
            "failed to create typed patch object (/x; g/v, Kind=X): .status.edges: field not declared in schema";
        for (error, expected) in [
            (error(500, older), true),
            (Error::WithoutEffect("no subresource".into()), true),
            (error(500, "etcdserver: leader changed"), false),
            (error(500, "failed calling webhook \"x\": EOF"), false),
            (error(422, "SyncerConfig \"a\" is invalid: spec: no"), false),
            (error(403, "forbidden"), false),
        ] {
            assert_eq!(is_not_stored(&error), expected, "{error}");
        }
    }
}
