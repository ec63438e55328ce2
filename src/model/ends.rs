//! Ends of copies that a watch has yet to report: of those that a worker has deleted, or let go without their label.
//!
//! Nothing else is known of such a copy any more. If its side loses the delete, as when it is restored from a backup, the
//! copy is there again, and a watch that resumes where it was says nothing of it. An end that is not reported for some
//! time shows that, and a list names what is there.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::source::Mode;
use kube_lite::ObjectName;
use tokio::time::Instant;

use super::timers::Timer;
use super::{Model, TypeId};

/// How long a watch may take to report an end, longer than one that does not notice that its server is another one.
const LATE: Duration = Duration::from_secs(180);
/// How many ends of one type are awaited at once. A few show enough.
const MANY: usize = 64;

/// The ends of one type's copies that are awaited, and since when.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<ObjectName, Instant>);

impl Ends {
    /// A worker has brought it about.
    fn is_to_come(&mut self, name: ObjectName, now: Instant) {
        if self.0.len() < MANY {
            self.0.insert(name, now);
        }
    }

    /// The copies' side has reported the object, or its end. True if nothing is awaited any more.
    pub(super) fn is_reported(&mut self, name: &ObjectName) -> bool {
        self.0.remove(name).is_some() && self.0.is_empty()
    }

    /// A list names what is there.
    pub(super) fn are_listed(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if one is late. They are given as long again.
    fn are_late(&mut self, now: Instant) -> bool {
        let mut is_one_late = false;
        for since in self.0.values_mut().filter(|since| **since + LATE <= now) {
            is_one_late = true;
            *since = now;
        }
        is_one_late
    }

    fn due(&self) -> Option<Instant> {
        self.0.values().min().map(|since| *since + LATE)
    }
}

impl Model {
    /// A worker has deleted a copy that is watched, or has taken its label away.
    pub(super) fn end_is_to_come(&mut self, type_id: TypeId, name: &ObjectName) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        // A poll is a list, which names what is there.
        if self.settings.mode(state.plan.direction.copy()) == Mode::Watch {
            state.ends.is_to_come(name.clone(), self.now);
            self.timers.set_if_idle(Timer::Ends, self.now + LATE);
        }
    }

    /// The source of copies has reported an object, or its end.
    pub(super) fn end_is_reported(&mut self, type_id: TypeId, name: &ObjectName) {
        let state = self.types.get_mut(&type_id);
        if state.is_some_and(|state| state.ends.is_reported(name)) {
            self.drop_type_without_copies(type_id);
        }
    }

    /// Lists the copies again of which an end is late, if that is due.
    pub(super) fn ask_about_late_ends(&mut self) {
        if !self.timers.fires(Timer::Ends, self.now) {
            return;
        }
        let mut late = Vec::new();
        for (&type_id, state) in &mut self.types {
            let side = state.plan.direction.copy();
            let source = state.copy_source.and_then(|id| self.sources.get(&id));
            // Whatever cannot be read now begins where it was, or with a list.
            let is_read = source.is_some_and(|source| source.settled && !source.fails && !source.listing);
            if state.ends.are_late(self.now) && is_read && !self.sides.of(side).answering.is_silent() {
                late.push((type_id, side));
            }
        }
        for (type_id, side) in late {
            self.type_is_unverified(type_id, side);
        }
        let due = self.types.values().filter_map(|state| state.ends.due()).min();
        if let Some(due) = due {
            self.timers.set(Timer::Ends, due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_late_when_its_side_says_nothing_of_it_for_long() {
        let (begin, name) = (Instant::now(), |name: &str| ObjectName::new("shop", name));
        let mut ends = Ends::default();
        assert_eq!(ends.due(), None);
        ends.is_to_come(name("a"), begin);
        ends.is_to_come(name("b"), begin + LATE / 2);
        assert_eq!(ends.due(), Some(begin + LATE));
        assert!(!ends.are_late(begin + LATE / 2));
        assert!(!ends.is_reported(&name("a")), "another is awaited");
        assert!(!ends.are_late(begin + LATE) && ends.are_late(begin + LATE * 3 / 2));
        assert!(!ends.are_late(begin + LATE * 2), "it is given as long again");
        assert!(!ends.is_reported(&name("c")) && ends.is_reported(&name("b")) && ends.is_empty());
    }

    #[test]
    fn no_more_are_kept_than_show_enough() {
        let (now, mut ends) = (Instant::now(), Ends::default());
        for index in 0..2 * MANY {
            ends.is_to_come(ObjectName::new("shop", &index.to_string()), now);
        }
        assert_eq!(ends.0.len(), MANY);
        ends.are_listed();
        assert!(ends.is_empty());
    }
}
