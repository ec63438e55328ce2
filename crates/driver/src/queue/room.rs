//! Who gets an entry when there are not enough, and how those come back that got none.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::entries::State;
use super::lanes::Turn;
use super::overflow::Lost;
use super::sides::{Gate, Sides};
use super::{Class, FIRST_SHARE, NEWS_SHARE, Queue, QueueKey, REFILL_SHARE, WAITING_SHARE};

impl<K: QueueKey> Queue<K> {
    /// Visits one group that has lost keys as a whole, if there is room and the turn of one has come. False if not.
    ///
    /// `out_of_sync` gives all keys of a group that need a worker, in ascending order, from the given key on, or from
    /// the first one. Nothing more than there is room for is taken from it. For a group that no longer exists it gives
    /// nothing.
    pub fn refill<I>(&mut self, now: Instant, out_of_sync: impl FnOnce(K::Group, Option<K>) -> I) -> bool
    where
        I: IntoIterator<Item = (K, Class)>,
    {
        self.wake(now);
        if !self.may_refill() {
            return false;
        }
        let next = self.overflow.next(now, |needs| self.may_run(needs, now));
        let Some(round) = next.and_then(|group| self.overflow.begin(group)) else {
            return false;
        };
        let (mut has_added, mut no_room_for) = (false, None);
        for (key, class) in out_of_sync(round.group, round.from) {
            if self.entries.contains_key(&key) {
                continue;
            }
            let needs = Sides::of(key.needs());
            let runs = self.may_run(needs, now);
            let is_enough = runs && self.refilled >= self.share(REFILL_SHARE);
            if !is_enough && self.make_room(class, runs) {
                self.insert(&key, class, needs, round.failures);
                let counts = self.gates.all_up(needs);
                self.entry(&key).refilled = counts;
                self.refilled += usize::from(counts);
                self.make_ready(key, Turn::after(round.failures));
                has_added = true;
            } else if runs {
                no_room_for = Some(key);
                break;
            } else {
                self.overflow.lost(round.group, needs, Lost::Ready);
            }
        }
        let goes_on = has_added || no_room_for.is_none();
        self.overflow.end((round.group, round.needs), no_room_for);
        goes_on
    }

    /// When the next refill has something to do, if it has to wait for its time.
    pub(super) fn refill_due(&self) -> Option<Instant> {
        let due = |(needs, not_before): (Sides<K::Side>, Option<Instant>)| {
            if self.gates.all_up(needs) {
                return not_before;
            }
            let probe = self.gates.opens_at(needs).filter(|_| self.parked(needs) == 0)?;
            Some(not_before.map_or(probe, |at| at.max(probe)))
        };
        self.overflow
            .wakes_at()
            .filter_map(due)
            .min()
            .filter(|_| self.may_refill())
    }

    /// True if a key with these needs could be taken now, or would be a probe for which there is no other key.
    fn may_run(&self, needs: Sides<K::Side>, now: Instant) -> bool {
        let may_probe = || self.parked(needs) == 0 && self.gates.gate(needs, now) != Gate::Shut;
        self.gates.all_up(needs) || may_probe()
    }

    /// One in `parts` of the capacity.
    pub(super) fn share(&self, parts: usize) -> usize {
        self.capacity / parts
    }

    /// True if a new key of `class` may have a place among those that could be taken at once. Keys of class Last do not
    /// take the room of others, since they may have to wait for these.
    pub(super) fn may_have_news(&self, class: Class) -> bool {
        let ready = self
            .ready
            .count_up_to(class.max(Class::Normal), |needs| self.gates.all_up(needs));
        let load = self.running + ready;
        let firsts = if class == Class::First {
            self.share(FIRST_SHARE)
        } else {
            0
        };
        load.saturating_sub(self.refilled) < self.share(NEWS_SHARE) + firsts
    }

    /// Half of what a refill fills its share up to, so that it does not visit a whole group for each single key.
    fn may_refill(&self) -> bool {
        self.refilled < self.share(REFILL_SHARE) / 2
    }

    /// Ready keys with just these needs.
    fn parked(&self, needs: Sides<K::Side>) -> usize {
        self.ready.count(|lane| lane == needs)
    }

    /// Makes room for one more entry, of a key that `runs` if it could be taken at once. False if there is none.
    pub(super) fn make_room(&mut self, class: Class, runs: bool) -> bool {
        let kept_free = if class == Class::First {
            0
        } else {
            self.share(FIRST_SHARE)
        };
        if self.entries.len() < self.capacity - kept_free {
            return true;
        }
        if !runs {
            return false;
        }
        let victim = self.victim(&[Class::Normal, Class::Last]);
        let Some(key) = victim.or_else(|| self.victim(&[Class::First])) else {
            return false;
        };
        self.give_up(&key);
        true
    }

    /// The key of these classes that gives up its place, if there is one.
    fn victim(&self, classes: &[Class]) -> Option<K> {
        // One of each stays: it is the next probe.
        let spare = |needs| !self.gates.all_up(needs) && self.parked(needs) > 1;
        let parked = |class: &Class| self.ready.newest(*class, spare);
        if let Some(key) = classes.iter().find_map(parked) {
            return Some(key.clone());
        }
        let waiting: usize = self.waiting.iter().map(BTreeMap::len).sum();
        if waiting <= self.share(WAITING_SHARE) {
            return None;
        }
        let last = |class: &Class| self.waiting[*class as usize].last_key_value();
        let last = classes.iter().filter_map(last).max_by_key(|(at, _)| **at);
        last.map(|(_, key)| key.clone())
    }

    /// Drops a key that cannot be taken now, and marks its group.
    fn give_up(&mut self, key: &K) {
        let Some(entry) = self.remove(key) else {
            return;
        };
        let lost = match entry.state {
            State::Waiting { due, .. } => Lost::Waiting(due, entry.failures),
            State::Ready(..) | State::Running { .. } => Lost::Ready,
        };
        self.overflow.lost(key.group(), entry.needs, lost);
    }
}
