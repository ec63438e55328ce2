//! The groups that have lost keys because room was missing, and how their keys come back.
//!
//! A group is visited as a whole in rounds, each as long as there is room. A round continues at the key that the last
//! one had no room for, so that every key gets its turn, however many there are; a rotation is over when a round
//! reaches the end. Whatever is lost while a rotation is under way calls for another one.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::sides::Sides;

/// What became of a key that lost its entry, or got none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lost {
    /// It was ready, or new: it is wanted back as soon as there is room.
    Ready,
    /// It was waiting, after so many failures, until then.
    Waiting(Instant, u32),
}

/// One round.
#[derive(Debug)]
pub(super) struct Round<G, S, K> {
    pub(super) group: G,
    pub(super) needs: Sides<S>,
    /// Where it continues; `None` is the beginning.
    pub(super) from: Option<K>,
    /// The failures that keys without an entry are taken to have.
    pub(super) failures: u32,
}

/// All such groups. Keys of a group that need other sides are counted apart, since they cannot come back at the same
/// time.
pub(super) struct Overflow<G, S, K> {
    groups: BTreeMap<(G, Sides<S>), Group<K>>,
    next_turn: u64,
}

struct Group<K> {
    /// The groups take turns: the lowest comes next.
    turn: u64,
    /// Where the rotation under way continues; `None` if none is.
    from: Option<K>,
    /// The failures that keys begin with in the rotation under way.
    failures: u32,
    /// Something was lost since it began that was not waiting.
    lost_ready: bool,
    /// Something was lost since it began that was waiting: the last due time and the highest number of failures.
    lost_waiting: Option<(Instant, u32)>,
}

impl<K> Group<K> {
    /// Not before this; `None` is at once.
    ///
    /// A rotation that only brings back what was waiting has to wait as long as that. Keys that were ready do not wait
    /// for those that failed; instead, one that failed may be tried early, once in each rotation.
    fn not_before(&self) -> Option<Instant> {
        let at_once = self.from.is_some() || self.lost_ready;
        self.lost_waiting.map(|(due, _)| due).filter(|_| !at_once)
    }
}

impl<G: Copy + Ord, S: Copy + Ord, K> Overflow<G, S, K> {
    pub(super) fn new() -> Self {
        Self {
            groups: BTreeMap::new(),
            next_turn: 0,
        }
    }

    /// A key of `group` has no entry any more.
    pub(super) fn lost(&mut self, group: G, needs: Sides<S>, lost: Lost) {
        let turn = self.next_turn;
        let of_group = self.groups.entry((group, needs)).or_insert_with(|| Group {
            turn,
            from: None,
            failures: 0,
            lost_ready: false,
            lost_waiting: None,
        });
        self.next_turn += 1;
        match lost {
            Lost::Ready => of_group.lost_ready = true,
            Lost::Waiting(due, failures) => {
                let (last_due, most) = of_group.lost_waiting.unwrap_or((due, failures));
                of_group.lost_waiting = Some((last_due.max(due), most.max(failures)));
            }
        }
    }

    /// The group whose turn has come, among those whose needs `may` be taken.
    pub(super) fn next(&self, now: Instant, may: impl Fn(Sides<S>) -> bool) -> Option<(G, Sides<S>)> {
        let groups = self.groups.iter().filter(|((_, needs), _)| may(*needs));
        let ready = groups.filter(|(_, group)| group.not_before().is_none_or(|at| at <= now));
        let next = ready.min_by_key(|(_, group)| group.turn);
        next.map(|(group, _)| *group)
    }

    /// Begins a round.
    pub(super) fn begin(&mut self, (group, needs): (G, Sides<S>)) -> Option<Round<G, S, K>> {
        let of_group = self.groups.get_mut(&(group, needs))?;
        of_group.turn = self.next_turn;
        self.next_turn += 1;
        let from = of_group.from.take();
        if from.is_none() {
            // The failures of ready keys are not known any more, and these keys cannot be distinguished from the
            // others.
            let failures = of_group.lost_waiting.take().map_or(0, |(_, failures)| failures);
            of_group.failures = if of_group.lost_ready { 0 } else { failures };
            of_group.lost_ready = false;
        }
        Some(Round {
            group,
            needs,
            from,
            failures: of_group.failures,
        })
    }

    /// A round ends: at a key that there is no room for, or at the end.
    pub(super) fn end(&mut self, (group, needs): (G, Sides<S>), no_room_for: Option<K>) {
        let Some(of_group) = self.groups.get_mut(&(group, needs)) else {
            return;
        };
        of_group.from = no_room_for;
        if of_group.from.is_none() && !of_group.lost_ready && of_group.lost_waiting.is_none() {
            self.groups.remove(&(group, needs));
        }
    }

    /// For each group its needs, and the time before which it is not visited.
    pub(super) fn wakes_at(&self) -> impl Iterator<Item = (Sides<S>, Option<Instant>)> {
        let groups = self.groups.iter();
        groups.map(|((_, needs), of_group)| (*needs, of_group.not_before()))
    }

    /// The groups, each once.
    pub(super) fn groups(&self) -> impl Iterator<Item = G> {
        let mut last = None;
        let groups = self.groups.keys().map(|&(group, _)| group);
        groups.filter(move |&group| last.replace(group) != Some(group))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}
