//! The keys that are ready, in the order in which they became so.

use std::collections::BTreeMap;

use super::Class;
use super::sides::Sides;

/// One lane for each class, turn and set of needed sides, so that what needs a side that is down is passed by without
/// being looked at.
pub(super) struct Lanes<K>([[[BTreeMap<u64, K>; Sides::SETS]; Turn::ALL.len()]; Class::ALL.len()]);

/// Why a key is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something about it is new.
    News,
    /// It has failed, and its back-off is over: nothing says that it would succeed now.
    Retry,
}

impl Turn {
    const ALL: [Self; 2] = [Self::News, Self::Retry];

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
pub(super) struct Place {
    pub(super) class: Class,
    pub(super) turn: Turn,
    pub(super) needs: Sides,
    pub(super) number: u64,
}

impl<K> Lanes<K> {
    pub(super) fn new() -> Self {
        Self(Default::default())
    }

    pub(super) fn put(&mut self, place: Place, key: K) {
        self.lane_mut(place).insert(place.number, key);
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<K> {
        self.lane_mut(place).remove(&place.number)
    }

    /// The key to be taken next, up to class `last`, among those whose needs `may` be taken. Within its class it is the one
    /// of the lowest `rank`, then one whose turn is `whose`, then the first.
    pub(super) fn first(
        &self,
        last: Class,
        whose: Turn,
        may: impl Fn(Sides) -> bool,
        rank: impl Fn(&K) -> usize,
    ) -> Option<Place> {
        let classes = Class::ALL.into_iter().take_while(|&class| class <= last);
        let best_of = |class, turn| {
            let lanes = Sides::sets().filter(|&needs| may(needs));
            let bests = lanes.filter_map(|needs| {
                let lane = self.lane(class, turn, needs);
                let (rank, number) = best(lane.iter().map(|(&number, key)| (rank(key), number)))?;
                let place = Place {
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

    /// The key of `class` that was ready last, among those whose needs `are` such.
    pub(super) fn newest(&self, class: Class, are: impl Fn(Sides) -> bool) -> Option<&K> {
        let sets = Sides::sets().filter(|&needs| are(needs));
        let lanes = sets.flat_map(|needs| self.turns(class, needs));
        let newest = lanes.filter_map(BTreeMap::last_key_value);
        newest.max_by_key(|(number, _)| **number).map(|(_, key)| key)
    }

    /// How many keys there are whose needs `are` such.
    pub(super) fn count(&self, are: impl Fn(Sides) -> bool) -> usize {
        self.which(are).map(BTreeMap::len).sum()
    }

    /// The same of classes up to `last`.
    pub(super) fn count_up_to(&self, last: Class, are: impl Fn(Sides) -> bool) -> usize {
        let classes = || Class::ALL.into_iter().take_while(|&class| class <= last);
        let sets = Sides::sets().filter(|&needs| are(needs));
        let lanes = sets.flat_map(|needs| classes().flat_map(move |class| self.turns(class, needs)));
        lanes.map(BTreeMap::len).sum()
    }

    /// All keys whose needs `are` such.
    pub(super) fn keys(&self, are: impl Fn(Sides) -> bool) -> impl Iterator<Item = &K> {
        self.which(are).flat_map(BTreeMap::values)
    }

    /// Drops every key that `which` picks.
    pub(super) fn remove_where(&mut self, which: impl Fn(&K) -> bool) {
        for lane in self.0.iter_mut().flatten().flatten() {
            lane.retain(|_, key| !which(key));
        }
    }

    fn which(&self, are: impl Fn(Sides) -> bool) -> impl Iterator<Item = &BTreeMap<u64, K>> {
        let sets = Sides::sets().filter(move |&needs| are(needs));
        sets.flat_map(move |needs| Class::ALL.into_iter().flat_map(move |class| self.turns(class, needs)))
    }

    fn turns(&self, class: Class, needs: Sides) -> [&BTreeMap<u64, K>; Turn::ALL.len()] {
        Turn::ALL.map(|turn| self.lane(class, turn, needs))
    }

    fn lane(&self, class: Class, turn: Turn, needs: Sides) -> &BTreeMap<u64, K> {
        &self.0[class as usize][turn as usize][needs.index()]
    }

    fn lane_mut(&mut self, place: Place) -> &mut BTreeMap<u64, K> {
        &mut self.0[place.class as usize][place.turn as usize][place.needs.index()]
    }
}

/// The first of the lowest rank. None is lower than 0, so that it ends there.
fn best(keys: impl Iterator<Item = (usize, u64)>) -> Option<(usize, u64)> {
    let mut best: Option<(usize, u64)> = None;
    for (rank, number) in keys {
        if best.is_none_or(|(lowest, _)| rank < lowest) {
            best = Some((rank, number));
        }
        if rank == 0 {
            break;
        }
    }
    best
}
