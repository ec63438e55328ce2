//! Copies that somebody else changes or deletes: corrected at once, and backed off when that turns into contention.

use std::collections::BTreeMap;

use kube_lite::ObjectName;
use kube_lite::logging::log_line;

use super::inventory::Link;
use super::{Key, Model, Task, TypeId};
use crate::side::Side;
use crate::sync::job::Ending;
use crate::sync::managed_fields::last_writer;

/// Of so many copies it is kept what others have done to them.
const MANY: usize = 256;

const CORRECTED: &str = "a copy was changed by somebody else; what its origin sets is corrected";
const WHEN_IT_ANSWERS: &str =
    "a copy was changed by somebody else; what its origin sets is corrected when the other side answers";

/// What others have done to copies that are not corrected yet.
#[derive(Default)]
pub(super) struct Drifts(BTreeMap<Key, Drift>);

/// What somebody has done to a copy.
struct Drift {
    /// In words.
    words: String,
    /// Who, and which fields, for the line that says so once it is corrected; none if there was one.
    line: Option<[String; 2]>,
}

impl Default for Drift {
    /// What is said if nothing was kept.
    fn default() -> Self {
        Self {
            words: "it was changed by somebody else".to_owned(),
            line: None,
        }
    }
}

impl Model {
    /// The copies' side says that a copy is gone, at this version (0 if unknown). One that its origin wants is created
    /// again.
    pub(super) fn copy_is_lost(&mut self, type_id: TypeId, name: &ObjectName, version: u64) {
        let now = self.now;
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let is_taken_away = state.inventory.is_taken_away(name);
        if !state.inventory.copy_gone(name, version) {
            return;
        }
        if is_taken_away {
            let side = state.plan.direction.copy();
            let copy = name.of_kind(&state.copy_type().kind).to_string();
            if state.inventory.is_contention_news(name, true, now) {
                warn_of_deletes(side, &copy);
            }
            let damped = state.inventory.is_known_contention(name, now);
            let message = if self.sides.of(state.plan.direction.origin()).answering.is_silent() {
                "a copy was deleted, or has lost its label, by somebody else; it is corrected when the other side answers"
            } else {
                "a copy was deleted, or has lost its label, by somebody else; it is corrected"
            };
            self.report.drift(side, &copy, (message, "", ""), damped);
            let words = "it was deleted, or has lost its label, by somebody else".to_owned();
            self.keep_drift(type_id, name, Drift { words, line: None });
        }
        self.enqueue(type_id, name.clone(), None);
    }

    /// The same of one that counts as present.
    pub(super) fn was_wrong_about(&mut self, type_id: TypeId, name: &ObjectName) {
        let state = self.types.get(&type_id);
        if state.is_some_and(|state| state.inventory.counts_as_present(name)) {
            self.copy_is_lost(type_id, name, 0);
        }
    }

    /// Somebody else has changed a copy. If that keeps happening, who does it is logged once.
    pub(super) fn drifted(&mut self, type_id: TypeId, name: ObjectName, object: &[u8], is_ending: bool) {
        let now = self.now;
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let side = state.plan.direction.copy();
        let copy = name.of_kind(&state.copy_type().kind).to_string();
        let (manager, fields) = last_writer(object).unwrap_or_default();
        if state.inventory.is_contention_news(&name, true, now) {
            warn_of_changes(side, &copy, &manager, &fields);
        }
        // One that is being deleted has a line when it is gone; one that nothing wants stays as it is.
        // In a dry run nothing is, and what would be is shown.
        if state.inventory.is_wanted(&name) && !is_ending && !self.settings.dry_run {
            let damped = state.inventory.is_known_contention(&name, now);
            let words = match &*manager {
                "" => Drift::default().words,
                manager => format!("it was changed by {manager} ({fields})"),
            };
            let is_silent = self.sides.of(state.plan.direction.origin()).answering.is_silent();
            // What cannot be kept until then is said now.
            let line = if is_silent || !self.has_room_for_drift() {
                let message = if is_silent { WHEN_IT_ANSWERS } else { CORRECTED };
                self.report.drift(side, &copy, (message, &manager, &fields), damped);
                None
            } else {
                Some([manager, fields])
            };
            self.keep_drift(type_id, &name, Drift { words, line });
        }
        // What has failed is not tried earlier for that.
        if !self.queue.has(&Key::new(type_id, Task::Object, name.clone())) {
            self.enqueue(type_id, name, None);
        }
    }

    /// Keeps what somebody has done to a copy until a worker has corrected it, if that is what comes of it: where nobody has
    /// set a field at the origin, another value is left as it is.
    fn keep_drift(&mut self, type_id: TypeId, name: &ObjectName, drift: Drift) {
        if self.has_room_for_drift() {
            let key = Key::new(type_id, Task::Object, name.clone());
            self.drifts.0.insert(key, drift);
        }
    }

    /// True if one more can be kept. Of what is not wanted any more, nothing is corrected: it makes room.
    fn has_room_for_drift(&mut self) -> bool {
        if self.drifts.0.len() >= MANY {
            let types = &self.types;
            self.drifts.0.retain(|key, _| {
                let state = types.get(&key.type_id);
                state.is_some_and(|state| state.inventory.is_wanted(&key.name))
            });
        }
        self.drifts.0.len() < MANY
    }

    /// A worker has synced an object; if it `corrects` what somebody had done to its copy, that is said.
    pub(super) fn drift_is_over(&mut self, key: &Key, (side, copy): (Side, &str), ending: &Ending, corrects: bool) {
        let drift = self.drifts.0.remove(key).unwrap_or_default();
        let Ending::Changed(change) = ending else { return };
        if !corrects || change.word().is_none() {
            return;
        }
        if let Some([manager, fields]) = &drift.line {
            let state = self.types.get(&key.type_id);
            let damped = state.is_some_and(|state| state.inventory.is_known_contention(&key.name, self.now));
            self.report.drift(side, copy, (CORRECTED, manager, fields), damped);
        }
        self.event_of_drift(key, &drift.words);
    }

    /// A key was put off. Where what it waits for was seen only by workers, nothing has logged that yet.
    pub(super) fn was_put_off(&mut self, key: &Key) {
        let now = self.now;
        let Some(state) = self.types.get_mut(&key.type_id).filter(|_| key.task == Task::Object) else {
            return;
        };
        if !state.inventory.is_contention_news(&key.name, false, now) {
            return;
        }
        let side = state.plan.direction.copy();
        let copy = key.name.of_kind(&state.copy_type().kind).to_string();
        if state.inventory.get(&key.name).is_some_and(Link::is_lost) {
            warn_of_deletes(side, &copy);
        } else {
            warn_of_changes(side, &copy, "", "");
        }
    }
}

fn warn_of_deletes(side: Side, copy: &str) {
    log_line!(
        Warn,
        CopyDeletedRepeatedly,
        "something keeps deleting a copy, or takes the syncer's label from it; it is recreated with increasing back-off",
        side = side.word(),
        object = copy,
        advice = "find out who does that, such as a cleanup job or another deploy tool (no server names it but in its audit \
                  log), and stop it there, or take the object out of the config"
    );
}

fn warn_of_changes(side: Side, copy: &str, manager: &str, fields: &str) {
    let or = match side {
        Side::Edge => "annotate the hub object with edge.kubestellar.io/downsync-overwrite: false",
        Side::Hub => "take the object out of what is upsynced",
    };
    log_line!(
        Warn,
        CopyChangedRepeatedly,
        "something keeps changing a copy; it is corrected with increasing back-off",
        side = side.word(),
        object = copy,
        manager = manager,
        fields = fields,
        advice = format_args!("stop it, or {or}")
    );
}
