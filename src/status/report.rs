//! What `status` has found: plain data, as it is printed as JSON. docs/status-command.md has a row for each field.

use std::time::Duration;

use kube_lite::logging::times;
use serde::Serialize;

use crate::api::status::{Condition, OfEdge};

/// Whether something is synced. The worst counts: what is not known may be worse than what is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum Verdict {
    #[default]
    Synced,
    NotSynced,
    Unknown,
}

/// All that was found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The worst of all that follows.
    pub(super) verdict: Verdict,
    /// The address of the hub.
    pub(super) hub: String,
    /// By which ages are counted: the hub's clock, if it has said what it is.
    pub(super) time: String,
    pub(super) configs: Vec<OfConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edge: Option<Copies>,
    /// What `--object` asks for: one for each type and direction that it may be of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) objects: Vec<Explained>,
    /// What could not be read, and what to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) errors: Vec<String>,
}

impl Report {
    /// The verdict that follows from all parts.
    pub(super) fn judge(&mut self) {
        let configs = self.configs.iter().map(|config| config.verdict);
        let edge = self.edge.iter().map(|edge| edge.verdict);
        let error = (!self.errors.is_empty()).then_some(Verdict::Unknown);
        let parts: Verdict = if self.objects.is_empty() {
            configs.chain(edge).max().unwrap_or_default()
        } else {
            let objects = self.objects.iter().map(|object| object.verdict);
            objects.max().unwrap_or_default()
        };
        self.verdict = parts.max(error.unwrap_or_default());
    }
}

/// One config.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfConfig {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) generation: i64,
    pub(super) verdict: Verdict,
    /// Why nothing is known of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    pub(super) conditions: Vec<Condition>,
    pub(super) edges: Vec<Followed>,
    /// Holds that no edge's entry has, of a hub that stores no entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirm: Option<String>,
}

/// What one edge says of a config.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Followed {
    #[serde(flatten)]
    pub(super) says: OfEdge,
    pub(super) verdict: Verdict,
    /// One word for what is wrong first of all.
    pub(super) state: State,
    /// When the hub has last heard of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_seen: Option<String>,
    /// How long ago that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seconds_ago: Option<u64>,
    /// The command that confirms the deletes that it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirm: Option<String>,
}

/// How a config is followed at an edge, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) enum State {
    /// The edge was not heard of for too long.
    Stale,
    /// An entry of the config cannot be followed.
    Invalid,
    Failing,
    DeletesHeld,
    Pending,
    #[default]
    Synced,
}

impl State {
    fn of(says: &OfEdge, generation: i64, ago: Option<u64>, stale_after: Duration) -> Self {
        if ago.is_none_or(|ago| ago > stale_after.as_secs()) {
            Self::Stale
        } else if says.problem_count > 0 || !says.problems.is_empty() {
            Self::Invalid
        } else if says.failing + says.conflicts > 0 || !says.failures.is_empty() {
            Self::Failing
        } else if says.hold.is_some() {
            Self::DeletesHeld
        } else if says.pending > 0 || says.synced < says.selected || says.observed_generation < generation {
            Self::Pending
        } else {
            Self::Synced
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            Self::Stale => Verdict::Unknown,
            Self::Invalid | Self::Failing | Self::DeletesHeld | Self::Pending => Verdict::NotSynced,
            Self::Synced => Verdict::Synced,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Invalid => "invalid",
            Self::Failing => "failing",
            Self::DeletesHeld => "held",
            Self::Pending => "pending",
            Self::Synced => "synced",
        }
    }
}

impl Followed {
    /// What an entry comes to, at this time, if its edge was last heard of then (both in seconds since 1970).
    pub(super) fn judge(says: OfEdge, generation: i64, seen: Option<u64>, now: u64, stale_after: Duration) -> Self {
        // A clock that is ahead makes nothing fresh that was never heard of.
        let ago = seen.map(|seen| now.saturating_sub(seen));
        let state = State::of(&says, generation, ago, stale_after);
        Self {
            verdict: state.verdict(),
            state,
            last_seen: seen.map(|seen| times::date_and_time(Duration::from_secs(seen))),
            seconds_ago: ago,
            confirm: None,
            says,
        }
    }

    /// What people call the edge.
    pub(super) fn edge(&self) -> &str {
        if self.says.name.is_empty() {
            &self.says.uid
        } else {
            &self.says.name
        }
    }
}

/// What was found by comparing both sides.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Copies {
    /// The address of the edge.
    pub(super) address: String,
    #[serde(rename = "syncTargetUID")]
    pub(super) sync_target: String,
    pub(super) verdict: Verdict,
    pub(super) types: Vec<OfType>,
    /// Those that are not in place.
    pub(super) objects: Vec<OutOfPlace>,
}

/// The objects of one type, one way.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfType {
    /// `plural.group`, as the side of the origins has it.
    pub(super) resource: String,
    /// `downsync` or `upsync`.
    pub(super) direction: String,
    /// Origins that are selected.
    pub(super) selected: usize,
    /// Those that have a copy.
    pub(super) in_place: usize,
    /// Those that have none, or something else in its place.
    pub(super) out_of_place: usize,
    /// Copies without an origin that is selected.
    pub(super) left: usize,
    /// All copies that this sync target has.
    pub(super) copies: usize,
}

/// An object that is not in place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutOfPlace {
    /// The copy, as `Kind/namespace/name`.
    pub(super) object: String,
    /// At which side.
    pub(super) side: &'static str,
    pub(super) state: CopyFinding,
}

/// What is in the place of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum CopyFinding {
    /// The copy.
    Right,
    /// Nothing.
    Missing,
    /// An object that no syncer has made.
    Foreign,
    /// A copy that the syncer of another sync target has made.
    OfAnotherSyncer,
    /// A copy of an earlier object of the same name.
    OfEarlierOrigin,
    /// The copy, which is being deleted.
    Terminating,
    /// A copy without the label that selects all copies.
    Unlabelled,
    /// A copy whose origin is gone, or not selected any more.
    Left,
    /// The copy, in which fields differ.
    Differs,
}

impl CopyFinding {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Right => "in place",
            Self::Missing => "missing",
            Self::Foreign => "an object that no syncer has made is in its place",
            Self::OfAnotherSyncer => "the copy of another sync target is in its place",
            Self::OfEarlierOrigin => "the copy is that of an earlier object of the same name",
            Self::Terminating => "being deleted",
            Self::Unlabelled => "has lost the label that selects all copies",
            Self::Left => "left over: its origin is gone, or not selected any more",
            Self::Differs => "differs from its origin",
        }
    }
}

/// One object.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    /// The origin, as `Kind/namespace/name`.
    pub(super) object: String,
    /// `downsync` or `upsync`; empty if nothing of its kind is selected.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) direction: String,
    pub(super) verdict: Verdict,
    /// What is known of it, one sentence each.
    pub(super) findings: Vec<String>,
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
