//! `status` of a config: what each edge that follows it says, and the conditions that sum that up.
//!
//! Each syncer applies its own entry of `status.edges` and the summary under its own field manager. The summary follows
//! from the entries alone, so that all syncers of a config write the same one (Kubernetes API conventions: `Ready` sums up
//! the others; a transition time changes with the status of its condition only).

mod summary;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use self::summary::total;
pub(super) use self::summary::{Said, sum_up};
pub use super::field_problem::FieldProblem;

/// How many failures and problems an entry names.
pub const NAMED: usize = 10;
/// How many rules of the edge's owner an entry names.
const RULES: usize = 5;
/// The most entries that are read: no API server stores more.
const MOST_ENTRIES: usize = 10_000;
/// How many characters a message of a condition has: the conventions allow 32768, and people read few.
const LONGEST_MESSAGE: usize = 1024;
/// That about held deletes has tokens in it.
const LONGEST_OF_HOLDS: usize = 32_000;
/// How many bytes an entry has at most as the hub gets it, and how many of them its hold.
const MOST_BYTES: usize = 7 << 10;
const MOST_BYTES_OF_HOLD: usize = 4 << 10;
/// What follows then.
const REST: &str = "; the rest is in the log";

/// Condition: all conditions that matter are good.
pub const READY: &str = "Ready";
/// Condition: each entry of the config can be followed.
pub const CONFIG_VALID: &str = "ConfigValid";
/// Condition: what the config selects is synced.
pub const SYNCED: &str = "Synced";
/// Condition: deletes are held.
pub const DELETES_HELD: &str = "DeletesHeld";

/// All conditions, in the order in which they are written.
const ORDER: [&str; 4] = [READY, CONFIG_VALID, SYNCED, DELETES_HELD];

/// Reasons of `ConfigValid`, `Synced` and `Ready`, beside those of holds.
pub const ALL_FOLLOWED: &str = "AllEntriesFollowed";
/// See [`ALL_FOLLOWED`].
pub const NOT_FOLLOWED: &str = "EntriesNotFollowed";
/// See [`ALL_FOLLOWED`].
pub const ALL_SYNCED: &str = "AllSynced";
/// See [`ALL_FOLLOWED`].
pub const FAILING: &str = "Failing";
/// See [`ALL_FOLLOWED`].
pub const PENDING: &str = "Pending";
/// See [`ALL_FOLLOWED`].
pub const NOTHING_HELD: &str = "NothingHeld";

/// What one edge says of a config.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct OfEdge {
    /// UID of its sync target: what identifies it.
    #[serde(rename = "syncTargetUID")]
    pub uid: String,
    /// Name of its sync target.
    #[serde(rename = "syncTargetName", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `metadata.generation` of the config that it follows.
    pub observed_generation: i64,
    /// How many objects the config selects there.
    pub selected: usize,
    /// How many of them are in sync.
    pub synced: usize,
    /// How many are not yet.
    pub pending: usize,
    /// How many fail.
    pub failing: usize,
    /// How many have somebody else's object in their place.
    pub conflicts: usize,
    /// How many copies wait with their delete.
    pub held: usize,
    /// How many have a status that the syncer of another edge writes too.
    #[serde(skip_serializing_if = "is_zero")]
    pub contested: usize,
    /// What the owner of the edge does not allow of what the config selects; it counts nowhere else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denied>,
    /// What fails, the oldest first; [`NAMED`] at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Entries that cannot be followed; [`NAMED`] at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FieldProblem>,
    /// How many there are in all.
    #[serde(skip_serializing_if = "is_zero")]
    pub problem_count: usize,
    /// Entries of all that is in some namespaces of the edge, where nothing is; [`NAMED`] at most. They are followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<FieldProblem>,
    /// Why deletes are held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// Something that fails.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// Since when, in RFC 3339.
    pub since: String,
    /// The object, as `Kind/namespace/name`, or what else fails, such as a type; empty for a whole side.
    pub object: String,
    /// At which side, `hub` or `edge`.
    pub side: String,
    /// The reason of its line in the log.
    pub reason: String,
    /// The server's words.
    pub message: String,
    /// What was being done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// How often it had failed when this was written: that it goes on is no news.
    pub tries: u32,
}

/// Objects that the owner of the edge does not allow.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Denied {
    /// The flag that forbids them.
    pub rule: String,
    /// How many they are, as far as they are counted.
    pub objects: usize,
}

/// Why deletes are held.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Hold {
    /// One of [`super::HOLD_REASONS`].
    pub reason: String,
    /// With the token that confirms it.
    pub message: String,
}

/// A condition, as API conventions have it.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// When the status changed last.
    pub last_transition_time: String,
    /// `metadata.generation` of the config that all entries follow at least.
    pub observed_generation: i64,
}

/// `status`, as far as the syncer reads and writes it, without the heartbeat.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// See [`Condition`].
    pub conditions: Vec<Condition>,
    /// By the UIDs of their sync targets.
    pub edges: Vec<OfEdge>,
    /// `41/42`, of all edges.
    pub synced: String,
    /// How many objects fail or have a conflict, of all edges.
    pub failing: usize,
    /// How many deletes are held, of all edges.
    pub held: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Status {
    /// Reads it from a config, with its `metadata.generation`; nothing of it if it cannot be read.
    pub fn of_config(object: &[u8]) -> (i64, Self) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wire<'a> {
            metadata: WireMeta,
            #[serde(borrow)]
            status: Option<&'a RawValue>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct WireMeta {
            generation: i64,
        }
        let wire: Wire<'_> = serde_json::from_slice(object).unwrap_or_default();
        let status = wire.status.and_then(|status| serde_json::from_str(status.get()).ok());
        (wire.metadata.generation, Self::read(&status.unwrap_or_default()))
    }

    /// Reads it as far as it is what a syncer writes. Others may add conditions of their own, and a server may keep another
    /// order. Field by field, since derived code for that takes 27 kB of the binary for edges.
    fn read(status: &Value) -> Self {
        let named = |of: &&str| items(&status["conditions"]).find(|condition| condition["type"] == **of);
        Self {
            conditions: ORDER.iter().filter_map(named).map(Condition::read).collect(),
            edges: items(&status["edges"]).map(OfEdge::read).collect(),
            synced: text(status, "synced"),
            failing: count(status, "failing"),
            held: count(status, "held"),
        }
    }

    /// What the status is with this entry of ours, beside those of others. A condition or problem that is as it was keeps
    /// its time.
    #[must_use]
    pub fn with(&self, mut ours: OfEdge, now: &str) -> Self {
        let known = self.edges.iter().find(|edge| edge.uid == ours.uid);
        for problem in ours.problems.iter_mut().chain(&mut ours.unmatched) {
            let since = known.and_then(|known| known.since(problem)).unwrap_or(now);
            problem.since = since.to_owned();
        }
        let failures = known.map_or(&[][..], |known| &known.failures);
        for failure in &mut ours.failures {
            let is_it = |known: &&Failure| {
                (&known.object, &known.side, &known.reason) == (&failure.object, &failure.side, &failure.reason)
            };
            // It may have failed before this process began, or another replica may have seen it first.
            if let Some(known) = failures.iter().find(is_it).filter(|known| known.since < failure.since) {
                failure.since.clone_from(&known.since);
            }
        }
        ours.failures.sort();
        let mut edges = self.edges.clone();
        edges.retain(|edge| edge.uid != ours.uid);
        edges.push(ours);
        edges.sort_by(|a, b| a.uid.cmp(&b.uid));
        self.summed(edges, now)
    }

    /// What the status is without the entries of these sync targets. Where no other is left, nothing sums anything up.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn without(&self, is_theirs: impl Fn(&str) -> bool, now: &str) -> Option<Self> {
        let others = self.edges.iter().filter(|edge| !is_theirs(&edge.uid));
        let others: Vec<OfEdge> = others.cloned().collect();
        (!others.is_empty()).then(|| self.summed(others, now))
    }

    fn summed(&self, edges: Vec<OfEdge>, now: &str) -> Self {
        Self {
            conditions: since(sum_up(&edges), &self.conditions, now),
            synced: format!(
                "{}/{}",
                total(&edges, |edge| edge.synced),
                total(&edges, |edge| edge.selected)
            ),
            failing: total(&edges, |edge| edge.failing + edge.conflicts),
            held: total(&edges, |edge| edge.held),
            edges,
        }
    }

    /// Without what grows while all stays as it is: how often each thing has failed.
    #[must_use]
    pub fn without_tries(mut self) -> Self {
        let failures = self.edges.iter_mut().flat_map(|edge| &mut edge.failures);
        failures.for_each(|failure| failure.tries = 0);
        self
    }

    /// Without the entries of others, as this syncer applies it.
    #[must_use]
    pub fn only_of(&self, uid: &str) -> Self {
        let ours = self.edges.iter().filter(|edge| edge.uid == uid);
        Self {
            conditions: self.conditions.clone(),
            edges: ours.cloned().collect(),
            synced: self.synced.clone(),
            ..*self
        }
    }
}

/// Says of each condition since when it is so: one whose status is as in `known` keeps its time.
pub(super) fn since(mut conditions: Vec<Condition>, known: &[Condition], now: &str) -> Vec<Condition> {
    for condition in &mut conditions {
        let known = known.iter().find(|known| known.r#type == condition.r#type);
        let same = known.filter(|known| known.status == condition.status && !known.last_transition_time.is_empty());
        condition.last_transition_time = same.map_or(now, |known| &known.last_transition_time).to_owned();
    }
    conditions
}

/// Which conditions there are and why, but for those that say that something fails: these go with counts and names.
pub(crate) fn reasons(conditions: &[Condition]) -> impl Iterator<Item = (&str, &str)> {
    let others = conditions.iter().filter(|condition| condition.reason != FAILING);
    others.map(|condition| (&*condition.r#type, &*condition.reason))
}

/// The status of a condition that is known.
pub(crate) fn word(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}

pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(MOST_ENTRIES)
}

fn text(of: &Value, field: &str) -> String {
    of[field].as_str().unwrap_or_default().to_owned()
}

fn count(of: &Value, field: &str) -> usize {
    let number = of[field].as_u64().and_then(|number| usize::try_from(number).ok());
    number.unwrap_or_default()
}

impl Condition {
    /// One without a time.
    pub(super) fn new(r#type: &str, status: &str, (reason, message): Said, observed_generation: i64) -> Self {
        let longest = match r#type {
            DELETES_HELD => LONGEST_OF_HOLDS,
            _ => LONGEST_MESSAGE,
        };
        Self {
            r#type: r#type.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: cut(message, longest),
            last_transition_time: String::new(),
            observed_generation,
        }
    }

    pub(super) fn read(of: &Value) -> Self {
        Self {
            r#type: text(of, "type"),
            status: text(of, "status"),
            reason: text(of, "reason"),
            message: text(of, "message"),
            last_transition_time: text(of, "lastTransitionTime"),
            observed_generation: of["observedGeneration"].as_i64().unwrap_or_default(),
        }
    }
}

impl Denied {
    /// By the rules, of which the first are kept.
    pub fn most(rules: BTreeMap<String, usize>) -> Vec<Self> {
        let all = rules.into_iter().map(|(rule, objects)| Self { rule, objects });
        all.take(RULES).collect()
    }
}

/// Ends a message that is too long where a sentence ends, so that a token in it is a whole one.
fn cut_at_a_sentence(message: &mut String) {
    if message.len() <= MOST_BYTES_OF_HOLD {
        return;
    }
    let starts = message.char_indices().map(|(index, _)| index);
    let within = starts.take_while(|index| *index <= MOST_BYTES_OF_HOLD).last();
    let within = within.unwrap_or_default();
    message.truncate(message[..within].rfind("; ").unwrap_or(within));
    message.push_str(REST);
}

/// How many bytes it has as the hub gets it.
fn length(of: &impl Serialize) -> usize {
    serde_json::to_string(of).map_or(0, |text| text.len())
}

impl OfEdge {
    fn read(of: &Value) -> Self {
        let denied = |of: &Value| Denied {
            rule: text(of, "rule"),
            objects: count(of, "objects"),
        };
        let failure = |of: &Value| Failure {
            since: text(of, "since"),
            object: text(of, "object"),
            side: text(of, "side"),
            reason: text(of, "reason"),
            message: text(of, "message"),
            doing: text(of, "doing"),
            tries: u32::try_from(count(of, "tries")).unwrap_or(u32::MAX),
        };
        let problem = |of: &Value| FieldProblem {
            field: text(of, "field"),
            message: text(of, "message"),
            since: text(of, "since"),
        };
        let hold = of["hold"].as_object().map(|_| Hold {
            reason: text(&of["hold"], "reason"),
            message: text(&of["hold"], "message"),
        });
        Self {
            uid: text(of, "syncTargetUID"),
            name: text(of, "syncTargetName"),
            observed_generation: of["observedGeneration"].as_i64().unwrap_or_default(),
            selected: count(of, "selected"),
            synced: count(of, "synced"),
            pending: count(of, "pending"),
            failing: count(of, "failing"),
            conflicts: count(of, "conflicts"),
            held: count(of, "held"),
            contested: count(of, "contested"),
            denied: items(&of["denied"]).map(denied).collect(),
            failures: items(&of["failures"]).map(failure).collect(),
            problems: items(&of["problems"]).map(problem).collect(),
            problem_count: count(of, "problemCount"),
            unmatched: items(&of["unmatched"]).map(problem).collect(),
            hold,
        }
    }

    /// Without the latest of what it names, as far as all of it has too many bytes as the hub gets it.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if let Some(hold) = &mut self.hold {
            cut_at_a_sentence(&mut hold.message);
        }
        while length(&self) > MOST_BYTES {
            let problems = length(&self.problems) + length(&self.unmatched);
            let has_lost = if length(&self.failures) >= problems {
                self.failures.pop().is_some()
            } else {
                self.unmatched.pop().is_some() || self.problems.pop().is_some()
            };
            if !has_lost {
                break;
            }
        }
        self
    }

    /// Adds the problems of a config to those of all.
    pub fn add_problems(&mut self, config: &str, of_config: &Self) {
        self.problem_count += of_config.problem_count;
        for (all, of_config) in [
            (&mut self.problems, &of_config.problems),
            (&mut self.unmatched, &of_config.unmatched),
        ] {
            let left = NAMED - all.len();
            all.extend(of_config.iter().take(left).map(|problem| problem.of(config)));
        }
    }

    /// Since when it has said this of an entry; `None` if it does not.
    pub fn since(&self, problem: &FieldProblem) -> Option<&str> {
        problem.since_in(self.problems.iter().chain(&self.unmatched))
    }

    /// How a message that speaks of several edges begins.
    fn called(&self) -> String {
        let name = if self.name.is_empty() { &self.uid } else { &self.name };
        format!("edge {name}: ")
    }
}

fn cut(mut message: String, longest: usize) -> String {
    if let Some((end, _)) = message.char_indices().nth(longest) {
        message.truncate(end);
        message.push_str(" ...");
    }
    message
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
