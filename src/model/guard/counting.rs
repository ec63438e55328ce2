//! How many copies are to be deleted, and whether that is known yet.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::count::Count;
use crate::model::{Key, Model};
use crate::plan::Direction;

/// How often the doomed copies are counted, at most.
const COUNTED: Duration = Duration::from_millis(200);

impl Model {
    /// True if a copy whose origin is gone has to wait because it is not known yet whether too many are to be deleted.
    /// What cannot be found out in the time of a hold is not waited for any longer.
    pub(in crate::model) fn may_be_one_of_too_many(&mut self, key: &Key, direction: Direction) -> bool {
        let now = self.now;
        let count = self.counted(direction, now);
        let limits = self.settings.delete_limits;
        let state = self.types.get(&key.type_id);
        let may_go = state.is_some_and(|state| state.inventory.may_go(&key.name));
        let gate = self.guard.gates.entry(direction).or_default();
        gate.drop_old(now);
        let is_judged = gate.hold.is_some() || may_go;
        let are_too_many = |doomed| gate.are_too_many(doomed, count.copies, limits);
        if is_judged || are_too_many(count.doomed) || !are_too_many(count.doomed + count.suspect) {
            gate.waits_since = None;
            return false;
        }
        let since = *gate.waits_since.get_or_insert(now);
        now.duration_since(since) < limits.grace
    }

    /// One copy less is suspect. When none is left, the deletes that waited for that continue.
    pub(in crate::model) fn suspect_is_judged(&mut self, direction: Direction) {
        let Some(gate) = self.guard.gates.get_mut(&direction) else {
            return;
        };
        let types = &self.types;
        let has_suspects = || {
            let mut states = types.values().filter(|state| state.plan.direction == direction);
            states.any(|state| state.inventory.has_suspects())
        };
        if gate.waits_since.is_none() || has_suspects() {
            return;
        }
        gate.waits_since = None;
        gate.counted = None;
        self.queue.wake_where(|key| {
            let state = types.get(&key.type_id);
            state.is_some_and(|state| state.plan.direction == direction && state.inventory.is_doomed(&key.name))
        });
    }

    /// So many more copies are to be deleted than were counted last.
    pub(in crate::model) fn more_are_doomed(&mut self, direction: Direction, more: usize) {
        if more > 0 {
            self.read_hub_kind(direction);
        }
        let gate = self.guard.gates.entry(direction).or_default();
        if let Some((_, count)) = &mut gate.counted {
            count.doomed += more;
        }
        if more > 0 && gate.hold.is_some() {
            // The configs say how many are held, which people read before they confirm.
            self.heartbeat_soon();
        }
    }

    /// The copies of a direction, as they were counted a moment ago.
    pub(super) fn counted(&mut self, direction: Direction, now: Instant) -> Count {
        let gate = self.guard.gates.get(&direction);
        let fresh = gate.and_then(|gate| gate.counted.filter(|(at, _)| now.duration_since(*at) < COUNTED));
        if let Some((_, count)) = fresh {
            return count;
        }
        let count = self.count_doomed(direction);
        self.guard.gates.entry(direction).or_default().counted = Some((now, count));
        count
    }

    fn count_doomed(&self, direction: Direction) -> Count {
        let mut count = Count::default();
        for state in self.types.values().filter(|state| state.plan.direction == direction) {
            let more = state.inventory.count_doomed();
            count.doomed += more.doomed;
            count.suspect += more.suspect;
            count.copies += more.copies;
        }
        let Some(gate) = self.guard.gates.get(&direction) else {
            return count;
        };
        // The copies' side may not have reported yet that these are gone, and they count as deleted already.
        let is_ours = |key: &Key| {
            let state = self.types.get(&key.type_id);
            state.is_some_and(|state| state.inventory.has_ours(&key.name))
        };
        let reported_late = gate.done.iter().filter(|(_, key)| is_ours(key)).count();
        Count {
            copies: count.copies.saturating_sub(reported_late),
            ..count
        }
    }
}
