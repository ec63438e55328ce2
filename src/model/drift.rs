//! Copies that somebody else changes or deletes: corrected at once, and backed off when that turns into contention.

use kube_lite::ObjectName;
use kube_lite::logging::log_line;

use super::inventory::Link;
use super::{Key, Model, Task, TypeId};
use crate::side::Side;
use crate::sync::managed_fields::last_writer;

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
            let words = "it was deleted, or has lost its label, by somebody else";
            self.event_of_drift(type_id, name, words.to_owned());
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
            let message = if self.sides.of(state.plan.direction.origin()).answering.is_silent() {
                "a copy was changed by somebody else; what its origin sets is corrected when the other side answers"
            } else {
                "a copy was changed by somebody else; what its origin sets is corrected"
            };
            self.report.drift(side, &copy, (message, &manager, &fields), damped);
            let words = match &*manager {
                "" => "it was changed by somebody else".to_owned(),
                manager => format!("it was changed by {manager} ({fields})"),
            };
            self.event_of_drift(type_id, &name, words);
        }
        // What has failed is not tried earlier for that.
        if !self.queue.has(&Key::new(type_id, Task::Object, name.clone())) {
            self.enqueue(type_id, name, None);
        }
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
