//! Links are taken through everything that can be reported of them, in any order, and keep what they promise.

use driver::source::Covers;
use kube_lite::ObjectName;
use proptest::prelude::*;

use super::permits::Held;
use super::states::{LeftOpen, Origin, Permit, Retirement, Trace};
use super::{Inventory, Link};
use crate::sync::job::Seen;
use crate::sync::ownership::{Copy, CopyState};

/// What is reported of one of a few objects.
#[derive(Clone, Debug)]
enum Step {
    Origin {
        wanted: u64,
    },
    Unselected,
    OriginUnchanged,
    OriginGone,
    Deselected,
    Selected,
    LookedAtAgain,
    OriginsListed,
    Copy {
        state: CopyState,
        labelled: bool,
        hash: u64,
        keep: bool,
    },
    CopyGone,
    CopiesListed(bool),
    Judged,
    Taken,
    Failed(LeftOpen),
    Settled {
        wanted: u64,
        copy: Option<CopyState>,
    },
    Finished {
        wanted: u64,
    },
    Revoked,
    Released(Held, Permit),
}

fn copy_state() -> impl Strategy<Value = CopyState> {
    prop_oneof![
        3 => Just(CopyState::Ours),
        1 => Just(CopyState::Foreign),
        1 => Just(CopyState::Anothers),
        1 => Just(CopyState::Absent),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let left_open = prop_oneof![Just(LeftOpen::Nothing), Just(LeftOpen::Refused), Just(LeftOpen::Unsure)];
    let held = prop_oneof![Just(Held::WithoutPermit), Just(Held::All)];
    let permit = prop_oneof![Just(Permit::Given), Just(Permit::Needed)];
    let copy = (copy_state(), any::<bool>(), 70..73_u64, any::<bool>());
    prop_oneof![
        3 => (5..8_u64).prop_map(|wanted| Step::Origin { wanted }),
        1 => Just(Step::Unselected),
        1 => Just(Step::OriginUnchanged),
        1 => Just(Step::OriginGone),
        1 => Just(Step::Deselected),
        1 => Just(Step::Selected),
        1 => Just(Step::LookedAtAgain),
        1 => Just(Step::OriginsListed),
        3 => copy.prop_map(|(state, labelled, hash, keep)| Step::Copy { state, labelled, hash, keep }),
        1 => Just(Step::CopyGone),
        1 => any::<bool>().prop_map(Step::CopiesListed),
        1 => Just(Step::Judged),
        4 => Just(Step::Taken),
        1 => left_open.prop_map(Step::Failed),
        3 => (prop_oneof![Just(0), 5..8_u64], proptest::option::of(copy_state()))
            .prop_map(|(wanted, copy)| Step::Settled { wanted, copy }),
        1 => (5..8_u64).prop_map(|wanted| Step::Finished { wanted }),
        1 => Just(Step::Revoked),
        1 => (held, permit).prop_map(|(held, permit)| Step::Released(held, permit)),
    ]
}

/// An inventory, and what its sources and workers count by.
#[derive(Default)]
struct Walk {
    inventory: Inventory,
    origins_list: u32,
    copies_list: u32,
    version: u64,
}

impl Walk {
    fn seen(&mut self, state: CopyState, labelled: bool, hash: u64) -> Seen {
        self.version += 1;
        if state == CopyState::Absent {
            return Seen::ABSENT;
        }
        Seen {
            copy: Copy {
                state,
                ..Copy::default()
            },
            labelled,
            hash,
            version: self.version,
        }
    }

    fn go(&mut self, name: &ObjectName, step: &Step) {
        let is_busy = self.inventory.get(name).is_some_and(Link::is_busy);
        let list = self.origins_list + 1;
        match *step {
            Step::Origin { wanted } => drop(self.inventory.at_origin(name, list, wanted)),
            Step::Unselected => self.inventory.unselected_at_origin(name, list),
            Step::OriginUnchanged => self.inventory.still_at_origin(name, list, 0),
            Step::OriginGone => drop(self.inventory.gone_from_origin(name)),
            Step::Deselected => self.inventory.deselect(std::slice::from_ref(name)),
            Step::Selected => self.inventory.ask_for(name),
            Step::LookedAtAgain => self.inventory.list_again(),
            Step::OriginsListed => {
                self.origins_list += 1;
                self.inventory.origins_listed(|_| true, self.origins_list);
            }
            Step::Copy {
                state,
                labelled,
                hash,
                keep,
            } if state != CopyState::Absent => {
                let seen = self.seen(state, labelled, hash);
                self.inventory.copy_seen(name, self.copies_list + 1, seen, keep);
            }
            Step::CopyGone | Step::Copy { .. } => {
                self.version += 1;
                self.inventory.copy_gone(name, self.version);
            }
            Step::CopiesListed(all) => {
                self.copies_list += 1;
                let covers = if all { Covers::Everything } else { Covers::Labelled };
                self.inventory.copies_listed(self.copies_list, covers, self.version);
            }
            Step::Judged if self.inventory.is_orphan(name) => self.inventory.cannot_verify(name),
            Step::Taken if !is_busy => drop(self.inventory.take(name).is_some()),
            Step::Failed(left_open) if is_busy => self.inventory.failed(name, left_open),
            Step::Settled { wanted, copy } if is_busy => {
                let seen = copy.map(|state| self.seen(state, state == CopyState::Ours, 70));
                self.inventory.settle(name, wanted, seen);
            }
            Step::Finished { wanted } => self.inventory.has_finished(name, wanted),
            Step::Revoked => self.inventory.revoke_permits(),
            Step::Released(held, permit) => {
                let waits = self.inventory.count_held(held);
                assert_eq!(self.inventory.release(held, permit).len(), waits, "all are read");
            }
            Step::Judged | Step::Taken | Step::Failed(_) | Step::Settled { .. } => {}
        }
    }

    fn check(&self, name: &ObjectName) {
        let Some(link) = self.inventory.get(name) else { return };
        assert!(
            link.may_have_copy() || link.origin_list() != 0 || link.wanted != 0,
            "a link that ties nothing together"
        );
        assert!(!(link.is_synced() && link.wanted == 0), "synced with nothing");
        assert!(
            link.wanted == 0 || link.is_synced() != link.needs_worker() || link.is_retiring() || link.is_unverified(),
            "what is wanted is synced, or there is something to do"
        );
        assert!(!link.is_lost() || !link.has_copy(), "a copy that is seen is not lost");
        assert!(!link.is_finished() || link.wanted != 0 || link.has_copy() || link.is_busy());
        assert!(
            link.permit == Permit::Needed || link.is_retiring(),
            "nothing else is let go"
        );
        for held in [Held::WithoutPermit, Held::All]
            .into_iter()
            .filter(|&held| link.is_held(held) && !link.is_lost())
        {
            let mut due = self.inventory.out_of_sync(held, None);
            assert!(due.all(|due| due != name), "what is held is not asked for");
        }
        if link.origin == Origin::Unverified {
            assert!(!link.is_orphan(), "it is asked for once");
        }
        if link.is_retiring() && link.may_have_ours() {
            assert!(link.needs_worker(), "a copy without an origin is seen to");
        }
        if link.origin == Origin::Absent(Retirement::Done) {
            // nobody would search for it any more.
            assert!(link.trace != Trace::Lost || link.wanted != 0 || link.is_busy());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn links_keep_their_promises_whatever_is_reported(steps in prop::collection::vec((any::<bool>(), step()), 1..60)) {
        let mut walk = Walk::default();
        for (first, step) in &steps {
            let name = ObjectName::new("shop", if *first { "a" } else { "b" });
            walk.go(&name, step);
            for name in ["a", "b"] {
                walk.check(&ObjectName::new("shop", name));
            }
        }
        // Nothing more is reported, and workers handle what is left: that comes to an end.
        for _ in 0..4 {
            for name in ["a", "b"].map(|name| ObjectName::new("shop", name)) {
                let link = walk.inventory.get(&name);
                // What has to be read is something else once it was read.
                let wanted = link.map_or(0, |link| if link.unread().is_some() { 7 } else { link.wanted });
                walk.go(&name, &Step::Taken);
                let copy = if wanted == 0 { CopyState::Absent } else { CopyState::Ours };
                walk.go(&name, &Step::Settled { wanted, copy: Some(copy) });
                walk.check(&name);
            }
        }
        prop_assert!(walk.inventory.out_of_sync(Held::Nothing, None).next().is_none(), "{:?}", walk.inventory);
    }
}
