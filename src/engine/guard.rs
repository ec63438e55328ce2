//! Guards before deletes: what may be a disaster is held until it is proved, or confirmed by people (DESIGN section 4).
//!
//! Two things hold the deletes of a direction. Its origins' side is not the one that the copies are from: another
//! cluster answers, or the same one has gone back to older versions, restored from a backup; that lasts until it is
//! confirmed. Or too many copies are to go at once; that lasts for a time in which that side answers steadily, or until
//! it is confirmed. Held copies are left as they are and cost no requests; everything else goes on.
//!
//! To confirm, people set an annotation on a config to the token that the log and the condition name. A token holds for
//! the one hold that it was made for.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Engine, Feed, Key, TaskEnd, TypeId};
use crate::cluster::{Error, Side};
use crate::plan::Direction;
use crate::report::Subject;
use crate::source::SourceId;
use crate::sync::identity;

/// Deletes within this time are one pass, also when they come one by one.
const PASS: Duration = Duration::from_secs(60);
/// How often what is doomed is counted.
const COUNTED: Duration = Duration::from_millis(200);

/// When too many are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// More deletes than this in a pass, and more than half of all copies, are held.
    pub most: usize,
    /// For how long; none are held if it is zero.
    pub grace: Duration,
}

/// Why deletes are held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// Another cluster answers.
    OtherCluster { expected: String, found: String },
    /// A type has gone back to an older version.
    WentBack { resource: String, from: u64, to: u64 },
    /// Too many are to go.
    TooMany { doomed: usize, of: usize },
}

impl Reason {
    /// As the condition names it.
    fn word(&self) -> &'static str {
        match self {
            Self::OtherCluster { .. } => "OtherCluster",
            Self::WentBack { .. } => "OlderVersions",
            Self::TooMany { .. } => "TooMany",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherCluster { expected, found } => {
                write!(f, "another cluster answers: {found} instead of {expected}")
            }
            Self::WentBack { resource, from, to } => {
                write!(
                    f,
                    "{resource} went back from version {from} to {to}, as after a restore from a backup"
                )
            }
            Self::TooMany { doomed, of } => write!(f, "{doomed} of {of} copies are to go at once"),
        }
    }
}

/// Deletes of one direction that are held.
#[derive(Clone, Debug)]
struct Hold {
    reason: Reason,
    token: String,
    /// When they go on by themselves; never if absent.
    until: Option<Instant>,
}

/// The guard of one direction.
#[derive(Debug, Default)]
struct Gate {
    hold: Option<Hold>,
    held: BTreeSet<Key>,
    /// Released by people or by time.
    allowed: BTreeSet<Key>,
    /// Deletes of the last minute.
    done: VecDeque<Instant>,
    /// What is to go and what there is, and when it was counted.
    counted: Option<(Instant, usize, usize)>,
}

/// The guards of both directions.
#[derive(Debug, Default)]
pub(super) struct Guard {
    gates: BTreeMap<Direction, Gate>,
    /// Highest version seen of the origins of each type, by direction and `resource.group`.
    pub(super) versions: BTreeMap<(Direction, String), u64>,
    /// Tokens on the configs.
    confirmed: BTreeMap<String, String>,
    /// Sides whose identity is being asked for.
    asking: BTreeSet<Side>,
}

/// A condition for the configs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) held: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Gate {
    /// Whether so many deletes at once are a disaster.
    fn are_too_many(&self, doomed: usize, copies: usize, limits: Limits) -> bool {
        let pass = doomed + self.done.len();
        !limits.grace.is_zero() && pass > limits.most && pass * 2 > copies + self.done.len()
    }

    fn forget_old(&mut self, now: Instant) {
        while self.done.front().is_some_and(|&at| now.duration_since(at) >= PASS) {
            self.done.pop_front();
        }
    }

    fn hold(&mut self, direction: Direction, reason: Reason, until: Option<Instant>) {
        let mut hasher = DefaultHasher::new();
        (direction, &reason).hash(&mut hasher);
        let token = format!("{:08x}", hasher.finish() as u32);
        log::warn!(
            "deletes are held direction={direction} reason=\"{reason}\" advice=\"look at the {}; to let them go on at once, \
             annotate a config there with {}={token}\"",
            direction.origin(),
            crate::api::CONFIRM_DELETES,
        );
        self.hold = Some(Hold { reason, token, until });
    }

    /// Lets go what was held.
    fn release(&mut self) -> Vec<Key> {
        self.hold = None;
        let held: Vec<Key> = std::mem::take(&mut self.held).into_iter().collect();
        self.allowed.extend(held.iter().cloned());
        held
    }
}

impl Guard {
    /// When a hold ends by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        self.gates.values().filter_map(|gate| gate.hold.as_ref()?.until).min()
    }

    /// What the configs say about holds.
    pub(super) fn condition(&self) -> Condition {
        let held = |(direction, gate): (&Direction, &Gate)| {
            let hold = gate.hold.as_ref()?;
            let message = format!(
                "{direction}: {}; {} objects are held; confirm with the annotation {}={}",
                hold.reason,
                gate.held.len(),
                crate::api::CONFIRM_DELETES,
                hold.token
            );
            Some((hold.reason.word(), message))
        };
        let holds: Vec<_> = self.gates.iter().filter_map(held).collect();
        Condition {
            held: !holds.is_empty(),
            reason: holds.first().map_or("NothingHeld", |(reason, _)| reason),
            message: holds
                .into_iter()
                .map(|(_, message)| message)
                .collect::<Vec<_>>()
                .join("; "),
        }
    }

    /// True if the delete of a copy is held.
    pub(super) fn holds(&self, key: &Key, direction: Direction) -> bool {
        let gate = self.gates.get(&direction);
        gate.is_some_and(|gate| gate.hold.is_some() && gate.held.contains(key))
    }

    /// A delete has been done.
    pub(super) fn deleted(&mut self, key: &Key, direction: Direction, now: Instant) {
        let gate = self.gates.entry(direction).or_default();
        gate.done.push_back(now);
        gate.allowed.remove(key);
        gate.counted = None;
    }
}

impl Engine {
    /// True if a copy whose origin is gone may be deleted now. What may not is kept in mind until it may.
    pub(super) fn may_delete(&mut self, key: &Key, direction: Direction) -> bool {
        let now = Instant::now();
        let limits = self.setup.delete_limits;
        let gate = self.guard.gates.entry(direction).or_default();
        gate.forget_old(now);
        if gate.allowed.contains(key) && gate.hold.is_none() {
            return true;
        }
        if gate.hold.is_none() {
            let fresh = gate.counted.filter(|(at, ..)| now.duration_since(*at) < COUNTED);
            let (_, doomed, copies) = fresh.unwrap_or_else(|| self.count_doomed(direction, now));
            let gate = self.guard.gates.entry(direction).or_default();
            gate.counted = Some((now, doomed, copies));
            if gate.are_too_many(doomed, copies, limits) {
                let reason = Reason::TooMany {
                    doomed: doomed + gate.done.len(),
                    of: copies + gate.done.len(),
                };
                gate.hold(direction, reason, Some(now + limits.grace));
                self.tell_of_holds();
            }
        }
        let gate = self.guard.gates.entry(direction).or_default();
        if gate.hold.is_none() {
            return true;
        }
        gate.held.insert(key.clone());
        false
    }

    /// How many copies of a direction are to go and are not allowed to yet, and how many there are.
    fn count_doomed(&self, direction: Direction, now: Instant) -> (Instant, usize, usize) {
        let (mut doomed, mut copies) = (0, 0);
        for state in self.types.values().filter(|state| state.plan.direction == direction) {
            let (more_doomed, more_copies) = state.inventory.count_doomed();
            doomed += more_doomed;
            copies += more_copies;
        }
        let allowed = self.guard.gates.get(&direction).map_or(0, |gate| gate.allowed.len());
        (now, doomed.saturating_sub(allowed), copies)
    }

    /// The origins' side of a direction is not to be trusted until it is confirmed.
    pub(super) fn hold_deletes(&mut self, direction: Direction, reason: Reason, key: Option<Key>) {
        let gate = self.guard.gates.entry(direction).or_default();
        gate.held.extend(key);
        let is_known = gate.hold.as_ref().is_some_and(|hold| hold.until.is_none());
        if !is_known {
            let released = std::mem::take(&mut gate.allowed);
            gate.held.extend(released);
            gate.hold(direction, reason, None);
            self.tell_of_holds();
            self.look_for_confirmation();
        }
    }

    /// The origins' side of a direction does not answer steadily: the time of a hold begins anew.
    pub(super) fn origins_are_unsteady(&mut self, direction: Direction) {
        let grace = self.setup.delete_limits.grace;
        if let Some(hold) = self.guard.gates.get_mut(&direction).and_then(|gate| gate.hold.as_mut())
            && hold.until.is_some()
        {
            hold.until = Some(Instant::now() + grace);
        }
    }

    /// Ends the holds whose time is over.
    pub(super) fn end_holds(&mut self) {
        let now = Instant::now();
        let over: Vec<Direction> = self
            .guard
            .gates
            .iter()
            .filter(|(_, gate)| {
                let until = gate.hold.as_ref().and_then(|hold| hold.until);
                until.is_some_and(|until| until <= now)
            })
            .map(|(&direction, _)| direction)
            .collect();
        for direction in over {
            self.release_deletes(direction, "the time is over");
        }
    }

    /// A config has, or no longer has, a token of confirmation.
    pub(super) fn config_confirms(&mut self, config: String, token: Option<&String>) {
        match token {
            Some(token) => {
                self.guard.confirmed.insert(config, token.clone());
                self.look_for_confirmation();
            }
            None => {
                self.guard.confirmed.remove(&config);
            }
        }
    }

    fn look_for_confirmation(&mut self) {
        let tokens: BTreeSet<&String> = self.guard.confirmed.values().collect();
        let confirmed: Vec<(Direction, Reason)> = self
            .guard
            .gates
            .iter()
            .filter_map(|(&direction, gate)| {
                let hold = gate.hold.as_ref()?;
                tokens.contains(&hold.token).then(|| (direction, hold.reason.clone()))
            })
            .collect();
        for (direction, reason) in confirmed {
            match reason {
                Reason::OtherCluster { found, .. } => {
                    self.identity(direction.origin()).expect(found);
                    self.forget_versions(direction);
                }
                Reason::WentBack { .. } => self.forget_versions(direction),
                Reason::TooMany { .. } => {}
            }
            self.release_deletes(direction, "confirmed");
        }
    }

    /// The origins' side begins anew, as people have confirmed.
    fn forget_versions(&mut self, direction: Direction) {
        self.guard.versions.retain(|(of, _), _| *of != direction);
        for source in self.sources.values_mut() {
            if source.feed.side() == direction.origin() {
                source.version = 0;
            }
        }
        self.keep_guard_in_record();
    }

    fn release_deletes(&mut self, direction: Direction, why: &str) {
        let held = self.guard.gates.entry(direction).or_default().release();
        log::warn!(
            "deletes go on direction={direction} because=\"{why}\" objects={}",
            held.len()
        );
        for key in held {
            if let Some(state) = self.types.get(&key.type_id) {
                let class = state.class(&key.name);
                self.queue.add(key, class, None::<bytes::Bytes>);
            }
        }
        self.tell_of_holds();
    }

    /// A source of origins has told of something at this version. A list that is older than what the same source told
    /// before, or than what was known when it began, comes from a restored backup. (What other sources tell meanwhile
    /// may well be newer.)
    pub(super) fn origins_are_at(&mut self, id: SourceId, type_id: TypeId, version: u64, is_list: bool) {
        let (Some(source), Some(state)) = (self.sources.get_mut(&id), self.types.get(&type_id)) else {
            return;
        };
        let (direction, resource) = (state.plan.direction, state.origin_type().qualified());
        let from = source.version;
        source.version = from.max(version);
        if is_list && version < from && version != 0 {
            let reason = Reason::WentBack {
                resource,
                from,
                to: version,
            };
            self.hold_deletes(direction, reason, None);
            return;
        }
        let known = self.guard.versions.entry((direction, resource)).or_default();
        if version > *known {
            *known = version;
            self.keep_versions_in_record();
        }
    }

    /// The version that origins of a type are known to have reached.
    pub(super) fn known_version(&self, feed: Feed) -> u64 {
        let Feed::Origins(type_id, _) = feed else { return 0 };
        let Some(state) = self.types.get(&type_id) else {
            return 0;
        };
        let key = (state.plan.direction, state.origin_type().qualified());
        self.guard.versions.get(&key).copied().unwrap_or_default()
    }

    /// Asks a side who it is, at the start and when it comes back.
    pub(super) fn ask_identity(&mut self, side: Side) {
        if !self.guard.asking.insert(side) {
            return;
        }
        let cluster = Rc::clone(self.cluster(side));
        let task = async move { TaskEnd::Identified(side, identity::read(&cluster).await) };
        self.tasks.push(task.boxed_local());
    }

    pub(super) fn identified(&mut self, side: Side, result: Result<Option<String>, Error>) {
        self.guard.asking.remove(&side);
        match result {
            Ok(Some(found)) => self.side_is(side, found),
            Ok(None) => {}
            Err(error) if error.is_unreachable() => {
                self.report.failed(Subject::Side(side), "asking", &error);
            }
            Err(error) => {
                let thing = "Namespace//kube-system (it tells clusters apart)".to_owned();
                self.report.failed(Subject::Thing(side, thing), "reading", &error);
            }
        }
    }

    fn side_is(&mut self, side: Side, found: String) {
        match self.identity(side).expected() {
            None => {
                self.identity(side).expect(found);
                // The record lies at the edge, so it says nothing of the edge.
                if side == Side::Hub {
                    self.keep_guard_in_record();
                }
            }
            Some(expected) if expected != found => {
                let direction = match side {
                    Side::Hub => Direction::Down,
                    Side::Edge => Direction::Up,
                };
                let reason = Reason::OtherCluster { expected, found };
                self.hold_deletes(direction, reason, None);
            }
            Some(_) => {}
        }
    }

    pub(super) fn identity(&self, side: Side) -> &Rc<identity::Identity> {
        match side {
            Side::Hub => &self.hub_identity,
            Side::Edge => &self.edge_identity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        most: 20,
        grace: Duration::from_secs(600),
    };

    #[test]
    fn many_and_most_are_too_many() {
        let now = Instant::now();
        for (doomed, done, copies, held) in [
            (20, 0, 20, false),
            (21, 0, 21, true),
            (21, 0, 41, true),
            (21, 0, 42, false),
            (1, 20, 10, true),
            (1, 20, 60, false),
            (500, 0, 1001, false),
        ] {
            let gate = Gate {
                done: std::iter::repeat_n(now, done).collect(),
                ..Gate::default()
            };
            assert_eq!(
                gate.are_too_many(doomed, copies, LIMITS),
                held,
                "{doomed} {done} {copies}"
            );
        }
        let never = Limits {
            grace: Duration::ZERO,
            ..LIMITS
        };
        assert!(!Gate::default().are_too_many(100, 100, never));
    }

    #[test]
    fn deletes_one_by_one_are_one_pass_for_a_minute() {
        let now = Instant::now();
        let mut gate = Gate::default();
        gate.done.extend([now, now + PASS / 2]);
        gate.forget_old(now + PASS);
        assert_eq!(gate.done.len(), 1);
    }

    #[test]
    fn a_token_is_for_one_hold() {
        let token = |reason| {
            let mut gate = Gate::default();
            gate.hold(Direction::Down, reason, None);
            gate.hold.unwrap().token
        };
        let too_many = |doomed| Reason::TooMany { doomed, of: 50 };
        assert_ne!(token(too_many(30)), token(too_many(31)));
        assert_eq!(token(too_many(30)), token(too_many(30)));
    }
}
