//! Events: what people see with `kubectl describe` and `kubectl events`, at the edge on the object there, at the hub on the
//! configs. They say what the report and the status of configs say already; nothing is known here alone.
//!
//! At the edge an Event is always about the edge's own object: the copy of what is downsynced, the origin of what is
//! upsynced. What is about the syncer as a whole is on its record, which each installation has, in a pod or not. At the
//! hub it is on the configs, so that nothing has to be allowed there in namespaces of others.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use driver::few::Few;
use kube_lite::logging::log_line;
use kube_lite::logging::times::date_and_time;
use kube_lite::{Error, ObjectName, ResourceType};
use tokio::time::Instant;

pub use self::kept::EventReason;
pub(crate) use self::kept::{EventDone, EventKey, EventToWrite};
use self::kept::{Kept, SOON};
use super::configs::ConfigName;
use super::timers::Timer;
use super::{Effect, Key, Model, Request, Task, TypeId};
use crate::api::status::{Failure, OfEdge};
use crate::plan::Direction;
use crate::report::{Subject, is_permission};
use crate::side::Side;
use crate::sync::job::{Change, Ending};
use crate::sync::own_objects::record_name;

/// How long the hub is silent until there is an Event: most outages are over before.
const LOST: Duration = Duration::from_secs(10);
/// How long a copy may take to end until there is one: most finalizers are removed before.
const ENDING: Duration = Duration::from_secs(30);
/// Of how many copies it is known since when they end.
const MANY: usize = 64;
/// On so many configs there are Events about the whole edge.
const CONFIGS: usize = 3;

/// What is known of Events.
#[derive(Default)]
pub(super) struct Events {
    kept: Kept,
    /// When it is seen whether these copies still end.
    ending: BTreeMap<Key, Instant>,
    /// Since when the hub is lost, if there is an Event about it.
    hub_lost: Option<String>,
    /// What concerns the whole edge, until the configs are known on which it is said.
    for_configs: BTreeMap<EventReason, String>,
    /// How it was with each config.
    configs: BTreeMap<ConfigName, ConfigIs>,
    /// How often it was logged that the credentials for each side end.
    ends: Few<Side, u64>,
}

/// How it is with a config, as far as an Event says it.
#[derive(Default)]
struct ConfigIs {
    hold: Option<String>,
    /// Why something fails.
    fails: BTreeSet<EventReason>,
}

impl Model {
    fn happens(&mut self, side: Side, (resource, name): (ResourceType, ObjectName), reason: EventReason, note: String) {
        // Without a heartbeat, nothing is written to configs either.
        if self.settings.dry_run || side == Side::Hub && self.settings.heartbeat.is_none() {
            return;
        }
        let key = EventKey {
            side,
            resource,
            name,
            reason,
        };
        let clock = (self.settings.clock)();
        self.events.kept.happens(key, note, &clock, self.now);
        self.plan_events(side);
    }

    /// Something has happened to an object at the edge.
    fn happens_to(&mut self, key: &Key, reason: EventReason, note: String) {
        let state = self.types.get(&key.type_id);
        if let Some((_, edge)) = state.and_then(|state| state.hub_and_edge(&key.name)) {
            self.happens(Side::Edge, (edge.resource, edge.name), reason, note);
        }
    }

    /// Something has happened that concerns all that the edge has.
    fn happens_to_edge(&mut self, reason: EventReason, note: String) {
        let namespace = self.settings.own_namespace.as_deref().unwrap_or("default");
        let name = record_name(&self.settings.policy.sync_target.uid);
        let at = (ResourceType::config_maps(), ObjectName::new(namespace, &name));
        self.happens(Side::Edge, at, reason, note);
    }

    /// The same, for people at the hub.
    fn happens_to_configs(&mut self, reason: EventReason, note: String) {
        self.events.for_configs.insert(reason, note);
        self.tell_configs();
    }

    /// What was seen before the configs were known is said once they are.
    pub(super) fn tell_configs(&mut self) {
        if self.events.for_configs.is_empty() || !self.selecting.are_known() {
            return;
        }
        for (reason, note) in std::mem::take(&mut self.events.for_configs) {
            for of in self.selecting.names().into_iter().take(CONFIGS) {
                self.happens_to_config(&of, reason, &note);
            }
        }
    }

    fn happens_to_config(&mut self, (kind, name): &ConfigName, reason: EventReason, note: &str) {
        let edge = self.settings.edge_name();
        let note = format!("edge {edge}: {note}");
        self.happens(
            Side::Hub,
            (kind.resource_type(), ObjectName::new("", name)),
            reason,
            note,
        );
    }

    /// An object fails, as the report says it, unless that may soon pass.
    pub(super) fn event_of_failure(&mut self, key: &Key, side: Side, object: String) {
        let Some(note) = self.report.note_of(&Subject::object(side, object)) else {
            return;
        };
        let reason = note.reason.as_str();
        let words = format!("{reason} at the {side}: {}", note.message);
        self.happens_to(key, EventReason::of_failure(reason), words);
    }

    /// A worker has synced an object.
    pub(super) fn event_of_success(&mut self, key: &Key, ending: &Ending) {
        if *ending == Change::Replaced {
            let words = "the server could not change it, so it was deleted and created again";
            self.happens_to(key, EventReason::Replaced, words.to_owned());
        }
    }

    /// Somebody else has changed or deleted a copy, and a worker has corrected that.
    pub(super) fn event_of_drift(&mut self, key: &Key, drift: &str) {
        let direction = self.types.get(&key.type_id).map(|state| state.plan.direction);
        let whose = if direction == Some(Direction::Up) {
            "its copy at the hub: "
        } else {
            ""
        };
        let words = format!("{whose}{drift}; what its origin sets is there again");
        self.happens_to(key, EventReason::DriftCorrected, words);
    }

    /// A copy at the edge is being deleted.
    pub(super) fn copy_ends(&mut self, type_id: TypeId, name: &ObjectName) {
        let is_down = self
            .types
            .get(&type_id)
            .is_some_and(|state| state.plan.direction == Direction::Down);
        if is_down && !self.settings.dry_run && self.events.ending.len() < MANY {
            let key = Key::new(type_id, Task::Object, name.clone());
            self.events.ending.entry(key).or_insert(self.now + ENDING);
            self.plan_events(Side::Edge);
        }
    }

    fn notice_endings(&mut self) {
        let now = self.now;
        let ending = &mut self.events.ending;
        let late: Vec<Key> = ending
            .iter()
            .filter(|(_, due)| **due <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in late {
            self.events.ending.remove(&key);
            let state = self.types.get(&key.type_id);
            let link = state.and_then(|state| state.inventory.get(&key.name));
            if link.is_some_and(|link| link.seen.copy.terminating) {
                self.happens_to(&key, EventReason::WaitingForDeletion, String::new());
            }
        }
    }

    fn notice_loss(&mut self) {
        let silent = self.sides.of(Side::Hub).answering.silent_for(self.now);
        if silent.is_none_or(|silent| silent < LOST) || self.events.hub_lost.is_some() {
            return;
        }
        self.events.hub_lost = Some((self.settings.clock)());
        let why = self.report.note_of(&Subject::Side(Side::Hub));
        let why = why.map_or_else(String::new, |note| format!(": {}", note.message));
        let words = format!("the hub does not answer, and all that was synced stays as it is{why}");
        self.happens_to_edge(EventReason::HubLost, words);
    }

    /// A side that was silent answers.
    pub(super) fn event_of_return(&mut self, side: Side) {
        if side == Side::Hub
            && let Some(since) = self.events.hub_lost.take()
        {
            let words = format!("the hub answers again, which it had not done since {since}");
            self.happens_to_edge(EventReason::HubRestored, words);
            let words = format!("it has reached the hub again, which it had not done since {since}");
            self.happens_to_configs(EventReason::HubRestored, words);
        }
    }

    /// It may have been logged that the credentials for a side end.
    pub(super) fn notice_ends(&mut self) {
        for &side in &*self.sides.ids() {
            let contact = &self.sides.of(side).contact;
            let (notices, end) = (contact.end_notices, contact.credentials_end);
            if self.events.ends.get(side).copied().unwrap_or_default() == notices {
                continue;
            }
            self.events.ends.insert(side, notices);
            if let Some(end) = end {
                let end = date_and_time(Duration::from_secs(end));
                let words = format!("the credentials of the syncer for the {side} end at {end}");
                self.happens_to_edge(EventReason::CredentialExpiring, words.clone());
                self.happens_to_configs(EventReason::CredentialExpiring, words);
            }
        }
    }

    /// What the status of the configs says now.
    pub(super) fn events_of_configs(&mut self, all: &[(ConfigName, OfEdge)]) {
        let mut known = std::mem::take(&mut self.events.configs);
        for (of, ours) in all {
            let was = known.remove(of).unwrap_or_default();
            let hold = ours.hold.as_ref().filter(|_| ours.held > 0);
            if let Some(hold) = hold.filter(|hold| was.hold.as_ref() != Some(&hold.reason)) {
                self.happens_to_config(of, EventReason::DeleteHeld, &hold.message);
            }
            let mut fails = BTreeSet::new();
            for failure in &ours.failures {
                let reason = EventReason::of_failure(&failure.reason);
                // The oldest for each reason.
                if fails.insert(reason) && !was.fails.contains(&reason) {
                    self.happens_to_config(of, reason, &not_synced(failure, ours.failing + ours.conflicts));
                }
            }
            let hold = hold.map(|hold| hold.reason.clone());
            self.events.configs.insert(of.clone(), ConfigIs { hold, fails });
        }
    }

    /// When there is something to do about the Events of a side.
    pub(super) fn plan_events(&mut self, side: Side) {
        let mut due = self.events.kept.due(side);
        if side == Side::Edge {
            let silent = self.sides.of(Side::Hub).answering.silent_for(self.now);
            let silent = silent.filter(|_| self.events.hub_lost.is_none() && !self.settings.dry_run);
            let lost = silent.map(|silent| self.now + LOST.saturating_sub(silent));
            let ends = self.events.ending.values().min().copied();
            due = [due, lost, ends].into_iter().flatten().min();
        }
        if let Some(due) = due {
            self.timers.set_earlier(Timer::Events(side), due);
        }
    }

    /// Writes the Events that are due, while there is nothing else to do.
    pub(super) fn write_events(&mut self) {
        for &side in &*self.sides.ids() {
            let is_silent = self.sides.of(side).answering.is_silent();
            if is_silent || !self.timers.fires(Timer::Events(side), self.now) {
                continue;
            }
            if side == Side::Edge {
                self.notice_endings();
                self.notice_loss();
            }
            if !self.workers.have_room() {
                self.timers.set(Timer::Events(side), self.now + SOON);
                continue;
            }
            let events = self.events.kept.take(side, self.now);
            if events.is_empty() {
                self.plan_events(side);
            } else {
                self.timers.starts(Timer::Events(side));
                self.effects.push(Effect::Request(Request::Events(side, events)));
            }
        }
    }

    /// What became of Events. Returns the error that shows that the side does not answer, if one does.
    pub(super) fn on_events(&mut self, side: Side, written: Vec<(EventKey, EventDone)>) -> Option<Error> {
        self.timers.ends(Timer::Events(side));
        let mut silent = None;
        for (key, done) in written {
            self.events.kept.ended(&key, &done, self.now);
            let EventDone::Failed(error) = done else { continue };
            if error.is_unreachable() {
                silent = Some(error);
                continue;
            }
            log_line!(
                Debug,
                EventDropped,
                "an Event was not written",
                side = side,
                object = key.name.of_kind(&key.resource.kind),
                error = error
            );
            if is_permission(&error) || error.is_type_not_served() {
                self.events_are_refused(side, &error);
            }
        }
        self.plan_events(side);
        silent
    }

    fn events_are_refused(&mut self, side: Side, error: &Error) {
        let is_first = self.events.kept.is_refused(side, self.now);
        if is_first && is_permission(error) {
            log_line!(
                Warn,
                EventsRefused,
                "a side takes no Events from the syncer; all else continues",
                side = side,
                error = error,
                advice = "allow it there: apiGroups [events.k8s.io], resources [events], verbs [create, patch]; it is tried \
                          again in six hours, and after a restart"
            );
        }
    }
}

/// What an Event on a config says of the oldest failure, of so many.
fn not_synced(first: &Failure, count: usize) -> String {
    let Failure {
        object,
        side,
        reason,
        message,
        ..
    } = first;
    let who = if object.is_empty() { side } else { object };
    format!("not synced: {who}: {reason}: {message}; {count} fail in all")
}
