//! The keys that are ready, in the order in which they became so.

use std::collections::{BTreeMap, BTreeSet};

use super::sides::Sides;
use super::{Class, NOT_NOW, QueueKey};
use crate::few::Few;

/// Which lane it is.
type Which<S> = (Class, Turn, Sides<S>);

/// One lane for each class, turn and set of needed sides, so that what needs a side that is down is skipped without
/// being visited. No lane is empty.
pub(super) struct Lanes<K: QueueKey>(Few<Which<K::Side>, Lane<K>>);

/// Keys by the number under which they became ready.
struct Lane<K: QueueKey> {
    keys: BTreeMap<u64, K>,
    /// The numbers of each lot, none of which is empty.
    lots: BTreeMap<K::Lot, BTreeSet<u64>>,
}

impl<K: QueueKey> Default for Lane<K> {
    fn default() -> Self {
        Self {
            keys: BTreeMap::new(),
            lots: BTreeMap::new(),
        }
    }
}

impl<K: QueueKey> Lane<K> {
    fn put(&mut self, number: u64, key: K) {
        self.lots.entry(key.lot()).or_default().insert(number);
        self.keys.insert(number, key);
    }

    fn remove(&mut self, number: u64) -> Option<K> {
        let key = self.keys.remove(&number)?;
        self.leaves_lot(number, &key.lot());
        Some(key)
    }

    fn leaves_lot(&mut self, number: u64, lot: &K::Lot) {
        if let Some(numbers) = self.lots.get_mut(lot) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.lots.remove(lot);
            }
        }
    }

    /// The first of the lowest rank, none of those that may not be taken now. No rank is lower than 0, and all keys of a lot
    /// have the same: each lot is visited once at most, however many keys it has.
    fn best(&self, rank: impl Fn(&K) -> usize) -> Option<(usize, u64)> {
        let ranked = |(&number, key): (&u64, &K)| (rank(key), number);
        let first = ranked(self.keys.first_key_value()?);
        if first.0 == 0 {
            return Some(first);
        }
        let firsts = self.lots.values().filter_map(BTreeSet::first);
        let firsts = firsts.filter_map(|number| self.keys.get_key_value(number));
        firsts.map(ranked).min().filter(|(rank, _)| *rank != NOT_NOW)
    }
}

/// Why a key is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Something about it is new.
    News,
    /// It has failed, and its back-off is over; there is no sign that it would succeed now.
    Retry,
}

impl Turn {
    fn other(self) -> Self {
        match self {
            Self::News => Self::Retry,
            Self::Retry => Self::News,
        }
    }

    /// The turn of a key whose wait is over.
    pub(super) fn after(failures: u32) -> Self {
        if failures > 0 { Self::Retry } else { Self::News }
    }
}

/// Where a ready key is. Numbers grow, so the lowest one was ready first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position<S> {
    pub(super) class: Class,
    pub(super) turn: Turn,
    pub(super) needs: Sides<S>,
    pub(super) number: u64,
}

impl<S> Position<S> {
    fn lane(self) -> Which<S> {
        (self.class, self.turn, self.needs)
    }
}

impl<K: QueueKey> Lanes<K> {
    pub(super) fn new() -> Self {
        Self(Few::default())
    }

    pub(super) fn put(&mut self, place: Position<K::Side>, key: K) {
        self.0.or_default(place.lane()).put(place.number, key);
    }

    pub(super) fn remove(&mut self, place: Position<K::Side>) -> Option<K> {
        let lane = self.0.get_mut(place.lane())?;
        let key = lane.remove(place.number);
        if lane.keys.is_empty() {
            self.0.remove(place.lane());
        }
        key
    }

    /// The key to be taken next, up to class `last`, among those whose needs `may` be taken. Within its class it is the one
    /// of the lowest `rank`, then one whose turn is `whose`, then the first.
    pub(super) fn first(
        &self,
        last: Class,
        whose: Turn,
        may: impl Fn(Sides<K::Side>) -> bool,
        rank: impl Fn(&K) -> usize,
    ) -> Option<Position<K::Side>> {
        let classes = Class::ALL.into_iter().take_while(|&class| class <= last);
        let best_of = |class, turn| {
            let lanes = self
                .of(class)
                .filter(|&((_, of_turn, needs), _)| of_turn == turn && may(needs));
            let bests = lanes.filter_map(|((class, turn, needs), lane)| {
                let (rank, number) = lane.best(&rank)?;
                let place = Position {
                    class,
                    turn,
                    needs,
                    number,
                };
                Some((rank, place))
            });
            bests.min_by_key(|(rank, place)| (*rank, place.number))
        };
        classes
            .into_iter()
            .find_map(|class| {
                let both = [whose, whose.other()].map(|turn| best_of(class, turn));
                both.into_iter().flatten().min_by_key(|(rank, _)| *rank)
            })
            .map(|(_, place)| place)
    }

    /// The key of `class` that became ready last, among those for whose needs `are` is true.
    pub(super) fn newest(&self, class: Class, are: impl Fn(Sides<K::Side>) -> bool) -> Option<&K> {
        let lanes = self.of(class).filter(|&((_, _, needs), _)| are(needs));
        let newest = lanes.filter_map(|(_, lane)| lane.keys.last_key_value());
        newest.max_by_key(|(number, _)| **number).map(|(_, key)| key)
    }

    /// The sets of sides that any key needs, some of them more than once.
    pub(super) fn needs(&self) -> impl Iterator<Item = Sides<K::Side>> {
        self.0.keys().map(|(_, _, needs)| needs)
    }

    /// How many keys there are for whose needs `are` is true.
    pub(super) fn count(&self, are: impl Fn(Sides<K::Side>) -> bool) -> usize {
        self.count_up_to(Class::Last, are)
    }

    /// The same of classes up to `last`.
    pub(super) fn count_up_to(&self, last: Class, are: impl Fn(Sides<K::Side>) -> bool) -> usize {
        let lanes = self.0.iter();
        let lanes = lanes.filter(|&((class, _, needs), _)| class <= last && are(needs));
        lanes.map(|(_, lane)| lane.keys.len()).sum()
    }

    /// How many keys a lot has.
    pub(super) fn of_lot(&self, lot: &K::Lot) -> usize {
        let lanes = self.0.iter().filter_map(|(_, lane)| lane.lots.get(lot));
        lanes.map(BTreeSet::len).sum()
    }

    /// All keys for whose needs `are` is true.
    pub(super) fn keys(&self, are: impl Fn(Sides<K::Side>) -> bool) -> impl Iterator<Item = &K> {
        let lanes = self.0.iter().filter(move |&((_, _, needs), _)| are(needs));
        lanes.flat_map(|(_, lane)| lane.keys.values())
    }

    /// Drops every key that `which` picks.
    pub(super) fn remove_where(&mut self, which: impl Fn(&K) -> bool) {
        self.0.retain(|_, lane| {
            let gone = lane.keys.iter().filter(|(_, key)| which(key));
            let gone: Vec<u64> = gone.map(|(&number, _)| number).collect();
            for number in gone {
                lane.remove(number);
            }
            !lane.keys.is_empty()
        });
    }

    fn of(&self, class: Class) -> impl Iterator<Item = (Which<K::Side>, &Lane<K>)> {
        self.0.iter().filter(move |&((of_class, _, _), _)| of_class == class)
    }
}
