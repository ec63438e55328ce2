//! What targets say of themselves in their status, for whoever looks with kubectl: what is to be written there, and when.
//!
//! Promises: nothing is written that is there already; one thing at a time is done, and soon again only if a condition has
//! changed; where the CRD has no status, or it may not be written, little is asked, and nothing depends on it.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use kube_lite::{Error, ObjectName};
use serde::Deserialize;
use tokio::time::Instant;

use crate::fill::Trouble;
use crate::kinds::{Condition, TargetStatus};

/// What comes within this time is said together.
const GATHER: Duration = Duration::from_secs(1);
/// At least so long between two writes at one target: for conditions, and for the number of those that wait.
const SOON: Duration = Duration::from_secs(5);
const LATER: Duration = Duration::from_secs(30);
/// When to try again where statuses cannot be written, and after another failure.
const WITHOUT: Duration = Duration::from_secs(600);
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The longest message of a condition, in characters.
const LONGEST: usize = 256;

/// What is read of a target beside what it wants.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Stored {
    #[serde(default)]
    metadata: StoredMetadata,
    #[serde(default)]
    status: Option<TargetStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct StoredMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    generation: u64,
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) is_true: bool,
    pub(super) reason: &'static str,
    pub(super) words: String,
}

/// What there is to say of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// It can be served: its type, its sources and its templates are there, and can be understood.
    pub(super) ready: Finding,
    /// A workspace cannot be initialized now.
    pub(super) stalled: Finding,
    /// How many workspaces wait.
    pub(super) waiting: usize,
}

/// What is to be done at a target.
#[derive(Debug)]
pub(super) enum TargetWork {
    /// Its templates are to be read, as they are after so many changes.
    Examine(ObjectName, u64),
    /// This is to be written. The times of conditions that have changed are empty.
    Write {
        name: ObjectName,
        uid: String,
        status: TargetStatus,
    },
}

#[derive(Default)]
struct Entry {
    stored: Stored,
    /// Its templates were read, and this is wrong with them.
    is_examined: bool,
    trouble: Option<Trouble>,
    /// Grows with each change of what it uses.
    changes: u64,
    written: Option<Instant>,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Statuses {
    entries: BTreeMap<ObjectName, Entry>,
    is_busy: bool,
    off_until: Option<Instant>,
    /// The server has said of this one that there is no such target.
    missed: Option<ObjectName>,
    look_at: Option<Instant>,
}

impl Statuses {
    /// A target is there, and what is stored of it.
    pub(super) fn is_there(&mut self, name: ObjectName, stored: Stored) {
        self.entries.entry(name).or_default().stored = stored;
    }

    /// Other targets are served no longer.
    pub(super) fn keep(&mut self, which: impl Fn(&ObjectName) -> bool) {
        self.entries.retain(|name, _| which(name));
    }

    /// What these targets want, or a template that they use, has changed.
    pub(super) fn changes(&mut self, which: impl Fn(&ObjectName) -> bool) {
        for (_, entry) in self.entries.iter_mut().filter(|(name, _)| which(name)) {
            entry.changes += 1;
            (entry.is_examined, entry.trouble) = (false, None);
        }
    }

    /// Something has happened that statuses may tell of.
    pub(super) fn touch(&mut self, now: Instant) {
        if self.off_until.is_some_and(|until| now < until) {
            return;
        }
        self.off_until = None;
        let at = now + GATHER;
        self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
    }

    /// When there may be something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.look_at.filter(|_| !self.is_busy)
    }

    /// What is to be done now. `facts` says what there is to say of a target in whose templates this is wrong, if that is
    /// known.
    pub(super) fn next(
        &mut self,
        facts: impl Fn(&ObjectName, Option<&Trouble>) -> Option<Facts>,
        now: Instant,
    ) -> Option<TargetWork> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        let mut look_at = None;
        for (name, entry) in &self.entries {
            if !entry.is_examined {
                self.is_busy = true;
                return Some(TargetWork::Examine(name.clone(), entry.changes));
            }
            let Some(facts) = facts(name, entry.trouble.as_ref()) else {
                continue;
            };
            let Some((status, is_urgent)) = entry.stored.next(&facts) else {
                continue;
            };
            let gap = if is_urgent { SOON } else { LATER };
            let due = entry.written.map_or(now, |written| written + gap);
            if due <= now {
                self.is_busy = true;
                let (name, uid) = (name.clone(), entry.stored.metadata.uid.clone());
                return Some(TargetWork::Write { name, uid, status });
            }
            look_at = Some(look_at.map_or(due, |before: Instant| before.min(due)));
        }
        self.look_at = look_at;
        None
    }

    /// The templates of a target were read.
    pub(super) fn is_examined(&mut self, name: &ObjectName, changes: u64, trouble: Option<Trouble>) {
        self.is_busy = false;
        if let Some(entry) = self.entries.get_mut(name).filter(|entry| entry.changes == changes) {
            (entry.is_examined, entry.trouble) = (true, trouble);
        }
    }

    /// A status was to be written. True if it cannot be, here and now, whatever it says.
    pub(super) fn is_written(
        &mut self,
        name: &ObjectName,
        result: Result<&TargetStatus, &Error>,
        now: Instant,
    ) -> bool {
        self.is_busy = false;
        let is_missing = result.is_err_and(|error| error.proves_absent(&name.name));
        // Where a CRD has no status, servers say that too; one that is gone is no longer known by the next time.
        let missed = mem::replace(&mut self.missed, is_missing.then(|| name.clone()));
        let may_be_gone = is_missing && missed.is_none_or(|missed| !self.entries.contains_key(&missed));
        if let Some(entry) = self.entries.get_mut(name) {
            entry.written = Some(now);
            if let Ok(status) = result {
                entry.stored.status = Some(status.clone());
            }
        }
        let Err(error) = result else { return false };
        let is_without = error.status().is_some_and(|status| matches!(status.code, 403..=405));
        if is_without && !may_be_gone {
            (self.off_until, self.look_at) = (Some(now + WITHOUT), None);
            return true;
        }
        self.look_at = Some(now + AFTER_FAILURE);
        false
    }
}

impl Stored {
    /// What the status has to become, if it has to change; and whether that is about a condition.
    fn next(&self, facts: &Facts) -> Option<(TargetStatus, bool)> {
        let before = self.status.clone().unwrap_or_default();
        let generation = self.metadata.generation;
        let conditions = [("Ready", &facts.ready), ("Stalled", &facts.stalled)];
        let mut next = TargetStatus {
            observed_generation: generation,
            waiting_workspaces: facts.waiting,
            // Others may have some of their own.
            conditions: before.conditions.clone(),
        };
        for (name, finding) in conditions {
            let known = next.conditions.iter_mut().find(|condition| condition.name == name);
            let condition = condition(name, finding, generation, known.as_deref());
            match known {
                Some(known) => *known = condition,
                None => next.conditions.push(condition),
            }
        }
        let is_urgent = next.conditions != before.conditions;
        (next != before).then_some((next, is_urgent))
    }
}

/// A condition. It has changed at the time of the one before if both say the same; otherwise the time is not known yet.
fn condition(name: &str, finding: &Finding, generation: u64, before: Option<&Condition>) -> Condition {
    let status = if finding.is_true { "True" } else { "False" };
    let since = before.filter(|before| before.status == status);
    Condition {
        name: name.to_owned(),
        status: status.to_owned(),
        reason: finding.reason.to_owned(),
        message: finding.words.chars().take(LONGEST).collect(),
        observed_generation: generation,
        last_transition_time: since.map_or(String::new(), |before| before.last_transition_time.clone()),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
