//! Which copies wait for the end of a hold before they are deleted.
//!
//! Whoever holds keeps no list: each link says whether it is held. Once its origin is there again, or the copy has been seen
//! to, it is not.

use super::states::{Holder, Permit};
use super::{Inventory, Link};
use crate::cluster::ObjectName;

impl Inventory {
    /// True if people or time have let the copy go.
    pub(in crate::model) fn may_go(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(|link| link.permit == Permit::Given)
    }

    /// A copy that is to be deleted has to wait.
    pub(in crate::model) fn hold(&mut self, name: &ObjectName, holder: Holder) {
        if let Some(link) = self.objects.get_mut(name).filter(|link| link.is_retiring()) {
            link.permit = Permit::Held(holder);
        }
    }

    /// What was let go has to wait after all.
    pub(in crate::model) fn hold_what_may_go(&mut self, holder: Holder) {
        for link in self.objects.values_mut().filter(|link| link.permit == Permit::Given) {
            link.permit = Permit::Held(holder);
        }
    }

    /// How many are held.
    pub(in crate::model) fn count_held(&self, holder: Holder) -> usize {
        let is_held = |link: &&Link| link.permit == Permit::Held(holder);
        self.objects.values().filter(is_held).count()
    }

    /// A hold has ended: these are held no longer, and are to be looked at.
    pub(in crate::model) fn release(&mut self, holder: Holder, permit: Permit) -> Vec<ObjectName> {
        let held = self
            .objects
            .iter_mut()
            .filter(|(_, link)| link.permit == Permit::Held(holder));
        let mut released: Vec<ObjectName> = held
            .map(|(name, link)| {
                link.permit = permit;
                name.clone()
            })
            .collect();
        released.sort_unstable();
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("shop", name)
    }

    /// Two origins that are gone, and one that is there.
    fn inventory() -> Inventory {
        let mut inventory = Inventory::default();
        for (of, is_gone) in [("a", true), ("b", true), ("c", false)] {
            inventory.at_origin(&name(of), 1, 7);
            inventory.take(&name(of));
            if is_gone {
                inventory.gone_from_origin(&name(of));
            }
        }
        inventory
    }

    #[test]
    fn only_what_is_to_be_deleted_is_held_and_each_hold_releases_its_own() {
        let mut inventory = inventory();
        inventory.hold(&name("a"), Holder::Direction);
        inventory.hold(&name("b"), Holder::Type);
        inventory.hold(&name("c"), Holder::Direction);
        inventory.hold(&name("none"), Holder::Direction);
        assert_eq!(
            [Holder::Direction, Holder::Type].map(|by| inventory.count_held(by)),
            [1, 1]
        );
        assert_eq!(inventory.release(Holder::Direction, Permit::Given), [name("a")]);
        assert_eq!(inventory.release(Holder::Direction, Permit::Given), []);
        assert!(inventory.may_go(&name("a")) && !inventory.may_go(&name("b")) && !inventory.may_go(&name("none")));
        assert_eq!(inventory.release(Holder::Type, Permit::Unasked), [name("b")]);
        assert!(!inventory.may_go(&name("b")));
    }

    #[test]
    fn what_was_let_go_is_held_after_all_when_a_graver_reason_comes() {
        let mut inventory = inventory();
        inventory.hold(&name("a"), Holder::Type);
        inventory.release(Holder::Type, Permit::Given);
        inventory.hold_what_may_go(Holder::Direction);
        assert!(!inventory.may_go(&name("a")));
        assert_eq!(
            inventory.count_held(Holder::Direction),
            1,
            "and b, which nobody has asked for, is not"
        );
    }

    #[test]
    fn an_origin_that_comes_back_ends_the_hold_of_its_copy_and_what_was_let_go() {
        for is_released in [false, true] {
            let mut inventory = inventory();
            inventory.hold(&name("a"), Holder::Direction);
            if is_released {
                inventory.release(Holder::Direction, Permit::Given);
            }
            inventory.at_origin(&name("a"), 2, 7);
            inventory.gone_from_origin(&name("a"));
            assert!(!inventory.may_go(&name("a")), "{is_released}");
            assert_eq!(inventory.count_held(Holder::Direction), 0);
        }
    }
}
