//! What belongs to primaries, so that what several of them have goes with the last one.
//!
//! Promises: a primary that is being deleted counts no more from its turn on, so that of several that end at once the last
//! one cleans up; what a primary is to let go it has no more, so that of several that do so at once one does.

use std::collections::BTreeMap;

use crate::sides::Primary;
use crate::turn::{FoundUses, OwnUses, Use};

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Uses {
    of: BTreeMap<Primary, One>,
    /// How many primaries have something, apart from those that are being deleted.
    counts: BTreeMap<Use, usize>,
}

#[derive(Debug)]
struct One {
    found: FoundUses,
    counts: bool,
}

impl One {
    /// What others see that it has.
    fn counted(&self) -> impl Iterator<Item = &Use> {
        self.found.all.difference(&self.found.left).filter(|_| self.counts)
    }
}

impl Uses {
    /// It is the turn of a primary.
    pub(super) fn turn(&mut self, primary: &Primary, is_ending: bool) -> OwnUses {
        if is_ending {
            self.release(primary);
        } else {
            self.take_back(primary);
        }
        let Some(one) = self.of.get(primary) else {
            return OwnUses::default();
        };
        let own = |used: &Use| usize::from(one.counts && !one.found.left.contains(used));
        let is_shared = |used: &&Use| self.counts.get(used).is_some_and(|count| *count > own(used));
        OwnUses {
            shared: one.found.all.iter().filter(is_shared).copied().collect(),
            known: one.found.all.clone(),
            is_known: true,
            are_all_known: false,
        }
    }

    /// Something is to be let go by a primary that stays.
    pub(super) fn leaves(&self, primary: &Primary) -> bool {
        self.of.get(primary).is_some_and(|one| !one.found.left.is_empty())
    }

    /// This belongs to a primary, and nothing else.
    pub(super) fn are(&mut self, primary: &Primary, found: FoundUses) {
        let counts = self.of.get(primary).is_none_or(|one| one.counts);
        self.release(primary);
        let one = One { found, counts };
        for used in one.counted() {
            *self.counts.entry(*used).or_default() += 1;
        }
        self.of.insert(primary.clone(), one);
    }

    /// A primary is there no longer.
    pub(super) fn are_over(&mut self, primary: &Primary) {
        self.release(primary);
        self.of.remove(primary);
    }

    /// What was deleted, or gone, is there again.
    fn take_back(&mut self, primary: &Primary) {
        let Some(one) = self.of.get_mut(primary).filter(|one| !one.counts) else {
            return;
        };
        one.counts = true;
        for used in one.counted() {
            *self.counts.entry(*used).or_default() += 1;
        }
    }

    fn release(&mut self, primary: &Primary) {
        let Some(one) = self.of.get_mut(primary).filter(|one| one.counts) else {
            return;
        };
        for used in one.counted() {
            super::one_less(&mut self.counts, used);
        }
        one.counts = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kube_lite::ObjectName;

    use super::*;
    use crate::sides::Side;

    fn primary(name: &str) -> Primary {
        Primary {
            route: 1,
            workspace: 7,
            sides: [Side::Service, Side::Shard(0)],
            name: ObjectName::in_workspace("c1", "shop", name),
        }
    }

    fn set(all: &[Use]) -> BTreeSet<Use> {
        all.iter().copied().collect()
    }

    fn found(all: &[Use]) -> FoundUses {
        FoundUses {
            all: set(all),
            left: set(&[]),
        }
    }

    #[test]
    fn the_last_of_those_that_have_something_knows_that_it_is_the_last() {
        let mut uses = Uses::default();
        let (web, api, old) = (primary("web"), primary("api"), primary("old"));
        uses.are(&web, found(&[1, 2]));
        uses.are(&api, found(&[2, 3]));
        uses.are(&old, found(&[3]));
        let shared = |uses: &mut Uses, primary: &Primary, is_ending| uses.turn(primary, is_ending).shared;
        assert_eq!(shared(&mut uses, &web, false), set(&[2]));
        assert_eq!(shared(&mut uses, &api, false), set(&[2, 3]));
        // All end at once: each turn begins before the one before has ended.
        assert_eq!(shared(&mut uses, &web, true), set(&[2]));
        assert_eq!(shared(&mut uses, &api, true), set(&[3]));
        assert_eq!(shared(&mut uses, &old, true), set(&[]));
        // And comes again.
        assert_eq!(shared(&mut uses, &web, true), set(&[]));
        uses.are(&web, found(&[1, 2, 3]));
        assert_eq!(shared(&mut uses, &api, true), set(&[]));
        for primary in [&web, &api, &old] {
            uses.are_over(primary);
        }
        assert!(uses.of.is_empty() && uses.counts.is_empty());
    }

    #[test]
    fn what_comes_back_counts_again() {
        let mut uses = Uses::default();
        let (web, api) = (primary("web"), primary("api"));
        uses.are(&web, found(&[1]));
        uses.are(&api, found(&[1]));
        uses.turn(&web, true);
        assert_eq!(uses.turn(&api, false).shared, set(&[]));
        for _ in 0..2 {
            assert_eq!(uses.turn(&web, false).shared, set(&[1]));
            assert_eq!(uses.turn(&api, false).shared, set(&[1]));
        }
        assert_eq!(uses.counts, [(1, 2)].into());
    }

    // Each of two took the other one for one that has it, and none let it go.
    #[test]
    fn what_several_are_to_let_go_at_once_none_of_them_has() {
        let mut uses = Uses::default();
        let [web, api, old] = ["web", "api", "old"].map(primary);
        for primary in [&web, &api] {
            let left = set(&[1, 2]);
            uses.are(
                primary,
                FoundUses {
                    all: set(&[1, 2, 3]),
                    left,
                },
            );
        }
        uses.are(&old, found(&[2]));
        for primary in [&web, &api] {
            let turn = uses.turn(primary, false);
            assert_eq!((turn.known, turn.shared), (set(&[1, 2, 3]), set(&[2, 3])));
            assert!(uses.leaves(primary));
        }
        assert_eq!(uses.turn(&old, false).shared, set(&[]));
        uses.are(&web, found(&[3]));
        assert!(!uses.leaves(&web));
        for primary in [&web, &api, &old] {
            uses.are_over(primary);
        }
        assert!(uses.of.is_empty() && uses.counts.is_empty());
    }

    #[test]
    fn what_a_primary_has_no_longer_is_not_shared() {
        let mut uses = Uses::default();
        let (web, api) = (primary("web"), primary("api"));
        assert_eq!(uses.turn(&web, false), OwnUses::default());
        uses.are(&web, found(&[1, 2]));
        uses.are(&web, found(&[1, 2]));
        uses.are(&api, found(&[1, 2]));
        uses.are(&api, found(&[2]));
        let turn = uses.turn(&web, false);
        assert_eq!((turn.known, turn.shared), (set(&[1, 2]), set(&[2])));
        uses.are_over(&api);
        assert_eq!(uses.turn(&web, false).shared, set(&[]));
        assert_eq!(uses.counts, [(1, 1), (2, 1)].into());
    }
}
