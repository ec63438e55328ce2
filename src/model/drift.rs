//! Copies that somebody else changes or deletes: corrected at once, and backed off when that turns into contention.

use std::time::Duration;

use tokio::time::Instant;

use super::{Key, Model, Task, TypeId};
use crate::cluster::{ObjectName, Side};
use crate::logging::log_line;
use crate::queue::back_off;
use crate::sync::managed_fields::last_writer;

/// Changes of one copy that are corrected without a wait.
const PATIENCE: u32 = 3;
/// A copy that nobody else has changed for so long starts at zero again.
const FORGIVEN: Duration = Duration::from_secs(600);

/// How often somebody else has changed one copy, or one status, lately.
#[derive(Debug, Default)]
pub(super) struct Contention {
    changes: u32,
    last: Option<Instant>,
}

impl Contention {
    /// Counts a change by somebody else.
    pub(super) fn count(&mut self, now: Instant) -> u32 {
        if self.last.is_some_and(|last| now.duration_since(last) >= FORGIVEN) {
            self.changes = 0;
        }
        self.changes += 1;
        self.last = Some(now);
        self.changes
    }

    /// How often it was changed until now.
    fn so_far(&self) -> u32 {
        self.changes
    }
}

/// How long a copy that was changed so often waits before it is corrected again.
pub(super) fn wait(changes: u32, jitter: f64) -> Option<Duration> {
    (changes > PATIENCE).then(|| back_off(changes - PATIENCE, jitter))
}

impl Model {
    /// Somebody else has deleted a copy that its origin wants. It is created again, at once for the first few times.
    pub(super) fn taken_away(&mut self, type_id: TypeId, name: ObjectName) {
        let now = self.now;
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let changes = state
            .inventory
            .contention(&name)
            .map_or(0, |contention| contention.count(now));
        let (class, side) = (state.class(&name), state.plan.direction.copy());
        let copy = name.of_kind(&state.copy_type().kind).to_string();
        let key = Key::new(type_id, Task::Object, name);
        let Some(wait) = wait(changes, self.chance.f64()) else {
            log_line!(
                Debug,
                CopyDrifted,
                "a copy was deleted by somebody else",
                side = side.word(),
                object = copy
            );
            self.queue.add(key, class, None);
            return;
        };
        if changes == PATIENCE + 1 {
            log_line!(
                Warn,
                CopyDeletedRepeatedly,
                "something keeps deleting a copy; it is recreated with increasing back-off",
                side = side.word(),
                object = copy,
                advice = "stop it, or take the object out of the config"
            );
        }
        log_line!(
            Debug,
            CopyDrifted,
            "a copy was deleted by somebody else",
            side = side.word(),
            object = copy,
            times = changes,
            wait = format_args!("{wait:?}")
        );
        self.queue.add_after(key, class, wait, now);
    }

    /// Somebody else has changed a copy. The first few times it is corrected at once; then it is backed off, and who
    /// does it is logged once.
    pub(super) fn drifted(&mut self, type_id: TypeId, name: ObjectName, object: &[u8]) {
        let now = self.now;
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let class = state.class(&name);
        let side = state.plan.direction.copy();
        let copy = name.of_kind(&state.copy_type().kind).to_string();
        let key = Key::new(type_id, Task::Object, name);
        // Only a change of what was corrected is contention. While the hub is gone nothing is corrected, so changes in
        // that time cause neither a line nor a wait when the hub is back.
        let counts = !self.queue.waits(&key);
        let changes = state.inventory.contention(&key.name).map_or(0, |contention| {
            if counts {
                contention.count(now)
            } else {
                contention.so_far()
            }
        });
        let (manager, fields) = last_writer(object).unwrap_or_default();
        let Some(wait) = wait(changes, self.chance.f64()) else {
            log_line!(
                Debug,
                CopyDrifted,
                "a copy was changed by somebody else",
                side = side.word(),
                object = copy,
                manager = manager,
                fields = fields
            );
            self.queue.add(key, class, None);
            return;
        };
        if counts && changes == PATIENCE + 1 {
            warn_of_contention(side, &copy, &manager, &fields);
        }
        log_line!(
            Debug,
            CopyDrifted,
            "a copy was changed by somebody else",
            side = side.word(),
            object = copy,
            manager = manager,
            fields = fields,
            times = changes,
            wait = format_args!("{wait:?}")
        );
        self.queue.add_after(key, class, wait, now);
    }
}

fn warn_of_contention(side: Side, copy: &str, manager: &str, fields: &str) {
    let or = match side {
        Side::Edge => "annotate the hub object with edge.kubestellar.io/downsync-overwrite: false",
        Side::Hub | Side::Shard(_) => "take the object out of what is upsynced",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_keeps_being_changed_waits_ever_longer_and_is_forgiven_in_the_end() {
        let mut contention = Contention::default();
        let mut now = Instant::now();
        let waits: Vec<_> = (0..6).map(|_| wait(contention.count(now), 1.0)).collect();
        assert_eq!(waits[..3], [None, None, None]);
        assert!(waits[3] < waits[4] && waits[4] < waits[5] && waits[3].is_some());
        assert_eq!(contention.so_far(), 6);
        now += FORGIVEN;
        assert_eq!(wait(contention.count(now), 1.0), None);
    }
}
