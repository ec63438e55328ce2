//! All that is known of each side itself, in one record a side: whether it answers, which cluster it is, what it
//! serves. A side is an id ([`Side`]), so that there may be more than two; the shell says at each moment which ones
//! there are.

use std::rc::Rc;

use driver::few::Few;
use kube_lite::Standing;
use kube_lite::discovery::Discovery;
use tokio::time::Instant;

use super::asking::DiscoveryState;
use super::identities::IdentityCheck;
use super::reachability::Reachability;
use crate::side::Side;
use crate::sync::identity::Identity;

/// What is known of one side.
#[derive(Default)]
pub(super) struct SideState {
    /// The contact with it as it is now.
    pub(super) contact: Standing,
    /// Whether it answers, as far as the model knows.
    pub(super) answering: Reachability,
    /// What it serves.
    pub(super) asking: DiscoveryState,
    /// Which cluster it is. Workers that have begun continue with what was known when they began.
    pub(super) identity: Rc<Identity>,
    /// How far asking which cluster it is has come.
    pub(super) question: IdentityCheck,
    /// When the copies of a type last showed that it has lost what it had confirmed.
    pub(super) lost_at: Option<Instant>,
}

impl SideState {
    /// What it serves, as far as it was asked.
    pub(super) fn discovery(&self) -> &Discovery {
        &self.asking.discovery
    }

    /// Which cluster it is, to be changed.
    pub(super) fn identity_mut(&mut self) -> &mut Identity {
        Rc::make_mut(&mut self.identity)
    }
}

/// The sides that there are.
#[derive(Default)]
pub(super) struct Sides {
    states: Few<Side, SideState>,
    ids: Rc<[Side]>,
    /// What is returned for a side that is not there: nothing is known of it.
    unknown: SideState,
}

impl Sides {
    /// These are all sides that there are now, with the contact with each. What was known of others is dropped.
    pub(super) fn meet(&mut self, contacts: Vec<(Side, Standing)>) {
        let is_same = contacts.iter().map(|(side, _)| side).eq(self.ids.iter());
        if !is_same {
            self.ids = contacts.iter().map(|(side, _)| *side).collect();
            let ids = &self.ids;
            self.states.retain(|side, _| ids.contains(&side));
        }
        for (side, contact) in contacts {
            self.states.or_default(side).contact = contact;
        }
    }

    /// Those that there are. Cheap, and no borrow, so that each of them can be changed.
    pub(super) fn ids(&self) -> Rc<[Side]> {
        Rc::clone(&self.ids)
    }

    pub(super) fn of(&self, side: Side) -> &SideState {
        self.states.get(side).unwrap_or(&self.unknown)
    }

    pub(super) fn of_mut(&mut self, side: Side) -> &mut SideState {
        self.states.or_default(side)
    }

    /// Which cluster a side is.
    pub(super) fn identity(&self, side: Side) -> &Rc<Identity> {
        &self.of(side).identity
    }

    /// How far asking a side what it serves has come, to be changed.
    pub(super) fn asking(&mut self, side: Side) -> &mut DiscoveryState {
        &mut self.of_mut(side).asking
    }

    /// What a side serves, as far as it was asked.
    pub(super) fn discovery(&self, side: Side) -> &Discovery {
        self.of(side).discovery()
    }

    /// The same of the hub and of the edge.
    pub(super) fn discoveries(&self) -> (&Discovery, &Discovery) {
        (self.discovery(Side::Hub), self.discovery(Side::Edge))
    }

    /// True if it is so of all.
    pub(super) fn all(&self, is: impl Fn(&SideState) -> bool) -> bool {
        self.states.values().all(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contacts(sides: &[Side], moves: u64) -> Vec<(Side, Standing)> {
        let standing = || Standing {
            moves,
            ..Standing::default()
        };
        sides.iter().map(|&side| (side, standing())).collect()
    }

    #[test]
    fn sides_come_and_go_and_what_is_known_goes_with_them() {
        let mut sides = Sides::default();
        assert!(sides.ids().is_empty());
        sides.meet(contacts(&[Side::Hub], 1));
        sides.of_mut(Side::Hub).identity_mut().expect("first".into());
        sides.meet(contacts(&[Side::Hub, Side::Edge], 2));
        assert_eq!(
            sides.of(Side::Hub).identity.expected(),
            Some("first"),
            "it is still there"
        );
        assert_eq!(sides.of(Side::Edge).contact.moves, 2);
        sides.meet(contacts(&[Side::Edge], 3));
        assert_eq!(*sides.ids(), [Side::Edge]);
        sides.meet(contacts(&[Side::Hub, Side::Edge], 4));
        assert_eq!(sides.of(Side::Hub).identity.expected(), None, "it is another one");
        assert!(sides.all(|side| side.contact.moves == 4));
    }

    #[test]
    fn of_a_side_that_is_not_there_nothing_is_known() {
        let mut sides = Sides::default();
        sides.meet(contacts(&[Side::Hub], 1));
        assert_eq!(sides.of(Side::Edge).contact.moves, 0);
        assert!(sides.of(Side::Edge).discovery().groups.is_none());
    }
}
