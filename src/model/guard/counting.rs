//! How many copies are to be deleted, and whether that is known yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kube_lite::ObjectName;
use tokio::time::Instant;

use crate::model::count::Count;
use crate::model::{Key, Model, TypeState};
use crate::plan::Direction;
use crate::sync::kinds::runs_once;

/// How often the pending deletes are counted, at most.
const COUNTED: Duration = Duration::from_millis(200);
/// Deletes within this time are counted together, also when they come one by one.
pub(super) const PASS: Duration = Duration::from_secs(60);
/// For so long it is remembered how many copies there were: what they have become fewer by since then counts as well.
const MEMORY: Duration = Duration::from_secs(3600);

/// What the delete of a copy is a sign of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing: people or time have ended the hold that kept it.
    Permitted,
    /// Jobs and Pods are made for one run: that there are fewer of them after an hour is their ordinary life, and only
    /// many within a minute may be an accident.
    OfOneRun,
    /// Many may be an accident.
    Lasting,
}

impl Loss {
    fn of(state: Option<&TypeState>, name: &ObjectName) -> Self {
        match state {
            Some(state) if state.inventory.may_go(name) => Self::Permitted,
            Some(state) if runs_once(state.copy_type()) => Self::OfOneRun,
            _ => Self::Lasting,
        }
    }
}

/// The deletes of the last minute, and how the number of copies has changed in the last hour.
#[derive(Debug, Default)]
pub(super) struct DeletesDone {
    all: VecDeque<Delete>,
    /// How many of them no hold had kept.
    without_permit: usize,
    /// The copies that are gone, though the copies' side may not have reported that yet, and when they were deleted.
    gone: BTreeMap<Key, Instant>,
    level: Level,
}

/// How many copies there are, compared with the most in the last hour. What is created in place of what is deleted counts,
/// so that coming and going is no loss.
#[derive(Debug, Default)]
struct Level {
    /// Copies created less copies deleted, since the start.
    now: i64,
    /// The highest of each minute, and when that began, the oldest first.
    highest: VecDeque<(Instant, i64)>,
}

impl Level {
    fn moves(&mut self, by: i64, at: Instant) {
        let before = self.now;
        self.now += by;
        match self
            .highest
            .back_mut()
            .filter(|(begin, _)| at.duration_since(*begin) < PASS)
        {
            Some((_, highest)) => *highest = self.now.max(*highest),
            None => self.highest.push_back((at, self.now.max(before))),
        }
    }

    fn drop_old(&mut self, now: Instant) {
        self.highest.retain(|(begin, _)| now.duration_since(*begin) < MEMORY);
    }

    /// By how many copies there are fewer than at the highest level.
    fn lost(&self) -> usize {
        let highest = self.highest.iter().map(|(_, highest)| *highest).max();
        let lost = highest.map_or(0, |highest| highest - self.now);
        usize::try_from(lost).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Delete {
    at: Instant,
    key: Key,
    /// People or time have ended the hold that kept it: it is no sign of an accident.
    is_permitted: bool,
}

impl DeletesDone {
    pub(super) fn push(&mut self, key: Key, loss: Loss, at: Instant) {
        let is_permitted = loss == Loss::Permitted;
        self.without_permit += usize::from(!is_permitted);
        if loss == Loss::Lasting {
            self.level.moves(-1, at);
        }
        self.gone.insert(key.clone(), at);
        self.all.push_back(Delete { at, key, is_permitted });
    }

    /// A copy is there that may have been deleted before.
    pub(super) fn is_made(&mut self, key: &Key, loss: Loss, at: Instant) {
        self.gone.remove(key);
        if loss == Loss::Lasting {
            self.level.moves(1, at);
        }
    }

    /// People or time have ended a hold: what was lost before was no accident.
    pub(super) fn forgive(&mut self) {
        self.level.highest.clear();
        self.all.iter_mut().for_each(|delete| delete.is_permitted = true);
        self.without_permit = 0;
    }

    pub(super) fn drop_old(&mut self, now: Instant) {
        self.level.drop_old(now);
        let is_old = |delete: &Delete| now.duration_since(delete.at) >= PASS;
        while let Some(delete) = self.all.pop_front() {
            if !is_old(&delete) {
                self.all.push_front(delete);
                break;
            }
            self.without_permit -= usize::from(!delete.is_permitted);
            // It may have been made again and deleted once more.
            if self.gone.get(&delete.key) == Some(&delete.at) {
                self.gone.remove(&delete.key);
            }
        }
    }

    /// How many of them no hold had kept: of the last minute, or as many as the copies have become fewer by in the last
    /// hour.
    pub(super) fn without_permit(&self) -> usize {
        self.without_permit.max(self.level.lost())
    }
}

impl Model {
    /// A copy has been deleted or released.
    pub(in crate::model) fn copy_was_deleted(&mut self, key: &Key, direction: Direction) {
        let state = self.types.get(&key.type_id);
        let loss = Loss::of(state, &key.name);
        let gate = self.guard.gates.or_default(direction);
        gate.done.push(key.clone(), loss, self.now);
        gate.counted = None;
    }

    /// A copy is there that may have been deleted before.
    pub(in crate::model) fn copy_was_made(&mut self, key: &Key, direction: Direction) {
        let loss = Loss::of(self.types.get(&key.type_id), &key.name);
        let gate = self.guard.gates.or_default(direction);
        gate.done.is_made(key, loss, self.now);
    }

    /// True if a copy whose origin is gone has to wait because it is not known yet whether too many are to be deleted, or
    /// whether lists show that the origins' side has gone back. What cannot be found out in the time of a hold is not
    /// waited for any longer.
    pub(in crate::model) fn may_have_to_be_held(&mut self, key: &Key, direction: Direction, all_listed: bool) -> bool {
        let state = self.types.get(&key.type_id);
        if state.is_some_and(|state| state.inventory.may_go(&key.name)) {
            return false;
        }
        let (is_open, now) = (self.is_count_open(direction, all_listed), self.now);
        let grace = self.settings.delete_limits.grace;
        let gate = self.guard.gates.or_default(direction);
        if !is_open {
            gate.waits_since = None;
            return false;
        }
        let since = *gate.waits_since.get_or_insert(now);
        now.duration_since(since) < grace
    }

    /// True if nothing is held of a direction, and it may turn out that something has to be.
    fn is_count_open(&mut self, direction: Direction, all_listed: bool) -> bool {
        let count = self.counted(direction, self.now);
        let limits = self.settings.delete_limits;
        let gate = self.guard.gates.or_default(direction);
        let are_too_many = |pending| gate.are_too_many(pending, count.copies, limits);
        let may_be_too_many = !all_listed || are_too_many(count.pending + count.unverified);
        gate.hold.is_none() && !are_too_many(count.pending) && may_be_too_many
    }

    /// It is known by now whether too many are to be deleted: the deletes that waited for that continue.
    pub(in crate::model) fn end_wait_of_deletes(&mut self, direction: Direction) {
        let gate = self.guard.gates.get(direction);
        if gate.is_none_or(|gate| gate.waits_since.is_none()) {
            return;
        }
        let all_listed = self.all_listed();
        if all_listed {
            // The last count may include what has just been judged, and nothing else would wake those that wait.
            self.guard.gates.or_default(direction).counted = None;
        }
        if self.is_count_open(direction, all_listed) {
            return;
        }
        self.guard.gates.or_default(direction).waits_since = None;
        let types = &self.types;
        self.queue.wake_where(|key| {
            let state = types.get(&key.type_id);
            state.is_some_and(|state| state.plan.direction == direction && state.inventory.is_retiring(&key.name))
        });
    }

    /// So many more copies are to be deleted than were counted last.
    pub(in crate::model) fn more_pending_deletes(&mut self, direction: Direction, more: usize) {
        if more > 0 {
            self.read_hub_kind(direction);
        }
        let gate = self.guard.gates.or_default(direction);
        if let Some((_, count)) = &mut gate.counted {
            count.pending += more;
        }
        if more > 0 && gate.hold.is_some() {
            // The configs say how many are held, which people read before they confirm.
            self.heartbeat_soon();
        }
    }

    /// The copies of a direction, as they were counted a moment ago.
    pub(super) fn counted(&mut self, direction: Direction, now: Instant) -> Count {
        let gate = self.guard.gates.or_default(direction);
        gate.done.drop_old(now);
        if let Some((_, count)) = gate.counted.filter(|(at, _)| now.duration_since(*at) < COUNTED) {
            return count;
        }
        let count = self.count_pending_deletes(direction);
        self.guard.gates.or_default(direction).counted = Some((now, count));
        count
    }

    fn count_pending_deletes(&self, direction: Direction) -> Count {
        let states = self.types.values().filter(|state| state.plan.direction == direction);
        let mut count: Count = states.map(|state| state.inventory.count_pending_deletes()).sum();
        let Some(gate) = self.guard.gates.get(direction) else {
            return count;
        };
        // These count as deleted already.
        for key in gate.done.gone.keys() {
            let state = self.types.get(&key.type_id);
            let late = state
                .map(|state| state.inventory.count_pending_deletes_of(&key.name))
                .unwrap_or_default();
            count.pending = count.pending.saturating_sub(late.pending);
            count.copies = count.copies.saturating_sub(late.copies);
        }
        count
    }
}
