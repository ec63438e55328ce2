//! Which copies wait for the end of a hold before they are deleted.
//!
//! A hold keeps no list: what is held follows from the hold and the links. When a hold ends, all that it kept may be
//! deleted, whether or not a worker has asked for it.

use kube_lite::ObjectName;

use super::Inventory;
use super::states::Permit;

/// Which of the copies of a type that are to be deleted have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Held {
    /// None.
    Nothing,
    /// Those without a permit from a hold that has ended: deletes of the direction are held.
    WithoutPermit,
    /// All: deletes of the type are held.
    All,
}

impl Inventory {
    /// True if people or time have ended the hold of the copy.
    pub(in crate::model) fn may_go(&self, name: &ObjectName) -> bool {
        let link = self.objects.get(name);
        link.is_some_and(|link| link.permit == Permit::Given)
    }

    /// Copies that had a permit have to wait after all.
    pub(in crate::model) fn revoke_permits(&mut self) {
        for link in self.objects.values_mut() {
            link.permit = Permit::Needed;
        }
    }

    /// True if the delete of the copy has to wait.
    pub(in crate::model) fn is_held(&self, name: &ObjectName, held: Held) -> bool {
        self.objects.get(name).is_some_and(|link| link.is_held(held))
    }

    /// How many copies wait.
    pub(in crate::model) fn count_held(&self, held: Held) -> usize {
        self.objects.values().filter(|link| link.waits_for_hold(held)).count()
    }

    /// True if any copy waits.
    pub(in crate::model) fn has_held(&self, held: Held) -> bool {
        self.objects
            .values()
            .any(|link| link.is_held(held) && link.may_have_ours())
    }

    /// True if any copy that is to be deleted need not wait, since its hold has ended.
    pub(in crate::model) fn has_permitted(&self) -> bool {
        let mut links = self.objects.values();
        links.any(|link| link.permit == Permit::Given && link.is_held(Held::All) && link.may_have_ours())
    }

    /// A hold has ended: gives the copies that it kept this permit, and returns them in order.
    pub(in crate::model) fn release(&mut self, held: Held, permit: Permit) -> Vec<ObjectName> {
        let links = self.objects.iter_mut();
        let mut released: Vec<ObjectName> = links
            .filter(|(_, link)| link.is_held(held) && link.may_have_ours())
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
    use crate::sync::job::Seen;
    use crate::sync::ownership::{Copy, CopyState};

    fn name(name: &str) -> ObjectName {
        ObjectName::new("shop", name)
    }

    /// Two copies whose origins are gone, and one whose origin is there.
    fn inventory() -> Inventory {
        let mut inventory = Inventory::default();
        for (of, is_gone) in [("a", true), ("b", true), ("c", false)] {
            inventory.at_origin(&name(of), 1, 7);
            inventory.take(&name(of));
            let copy = Copy {
                state: CopyState::Ours,
                ..Copy::default()
            };
            inventory.settle(
                &name(of),
                7,
                Some(Seen {
                    copy,
                    labelled: true,
                    hash: 70,
                    version: 3,
                }),
            );
            if is_gone {
                inventory.gone_from_origin(&name(of));
            }
        }
        inventory
    }

    #[test]
    fn a_hold_keeps_what_is_to_be_deleted_and_lets_all_of_it_go_when_it_ends() {
        let mut inventory = inventory();
        let counts = |inventory: &Inventory| {
            [Held::Nothing, Held::WithoutPermit, Held::All].map(|held| inventory.count_held(held))
        };
        assert_eq!(counts(&inventory), [0, 2, 2]);
        assert_eq!(inventory.out_of_sync(Held::WithoutPermit, None).count(), 0);
        assert_eq!(
            inventory.release(Held::WithoutPermit, Permit::Given),
            [name("a"), name("b")]
        );
        assert!(inventory.may_go(&name("a")) && !inventory.may_go(&name("c")) && !inventory.may_go(&name("none")));
        assert_eq!(counts(&inventory), [0, 0, 2]);
        assert_eq!(inventory.out_of_sync(Held::WithoutPermit, None).count(), 2);
        assert_eq!(inventory.out_of_sync(Held::All, None).count(), 0);
        assert_eq!(inventory.release(Held::All, Permit::Needed), [name("a"), name("b")]);
        assert!(!inventory.may_go(&name("a")));
    }

    #[test]
    fn what_was_let_go_is_held_after_all_when_a_graver_reason_comes() {
        let mut inventory = inventory();
        inventory.release(Held::All, Permit::Given);
        inventory.revoke_permits();
        assert_eq!(inventory.count_held(Held::WithoutPermit), 2);
    }

    #[test]
    fn an_origin_that_comes_back_ends_what_was_let_go() {
        let mut inventory = inventory();
        inventory.release(Held::All, Permit::Given);
        inventory.at_origin(&name("a"), 2, 7);
        inventory.gone_from_origin(&name("a"));
        assert!(!inventory.may_go(&name("a")) && inventory.may_go(&name("b")));
    }
}
