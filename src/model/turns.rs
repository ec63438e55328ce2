//! A plan that is made and followed in several turns of the loop, a slice in each.
//!
//! The model works on with the plan that it follows until the new one is resolved. What was read of the configs for it may
//! be a moment old: what changes in them meanwhile is planned next. What the sides serve and the record may not: if they
//! change, it is resolved from the beginning.

use std::collections::{BTreeMap, btree_map};
use std::rc::Rc;

use super::TypeId;
use super::reselect::NAMES;
use crate::plan::{Added, Pair, Plan, Selector, Sliced, TypePlan, Wanted, pause, steps_are_taken};

/// How far a plan is.
pub(super) enum Making {
    /// The configs are being put together.
    Merging(Sliced<Wanted>),
    /// What they ask for is being resolved.
    Resolving(Sliced<Plan>),
    /// Nothing was done with it.
    Resolved(Plan),
    /// What cannot be followed of it has been logged, and it is being compared with the plan that is followed.
    Comparing(Sliced<Compared>),
    /// It is being followed. Nothing is written before that has ended, and what has changed is planned after it.
    Following(Following),
    /// All types follow it. Those that no config selects are dropped, if no copies of them are left.
    Ending(std::vec::IntoIter<TypeId>),
}

#[cfg(test)]
impl Making {
    /// What the next turn continues with.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Merging(_) => "merging",
            Self::Resolving(_) => "resolving",
            Self::Resolved(_) | Self::Comparing(_) | Self::Following(_) | Self::Ending(_) => "following",
        }
    }
}

/// The plan that is being made.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) plan: Option<Making>,
    /// What the plan that is being followed was made of has changed.
    pub(super) again: bool,
    /// How many steps were taken in this turn of the loop already, while its event was handled.
    pub(super) spent: usize,
}

impl Turns {
    /// True from the moment in which the first type follows the new plan until the last one does.
    pub(super) fn are_following(&self) -> bool {
        matches!(self.plan, Some(Making::Following(_)))
    }

    /// What a plan is resolved from has changed: one that is not followed yet is void.
    pub(super) fn drop_resolved(&mut self) {
        let is_void =
            |plan: &mut Making| matches!(plan, Making::Resolving(_) | Making::Resolved(_) | Making::Comparing(_));
        self.plan.take_if(is_void);
    }
}

/// What is left to do of a plan that is being followed.
pub(super) struct Following {
    /// The types that do not follow it yet.
    pub(super) types: btree_map::IntoIter<Pair, TypePlan>,
    /// The types that there were before.
    pub(super) known: BTreeMap<Pair, TypeId>,
    /// What they select more.
    pub(super) added: BTreeMap<Pair, Rc<Added>>,
}

/// What is selected of a type, and what that yields to.
pub(super) type Selected = (Rc<Selector>, Rc<Selector>);

/// A plan, and what the types that there are select more by it.
pub(super) struct Compared {
    pub(super) plan: Plan,
    pub(super) added: BTreeMap<Pair, Rc<Added>>,
}

impl Compared {
    /// Compares a plan with what is selected so far. A selection that has not changed stays the one that it was.
    pub(super) fn with(mut plan: Plan, known: BTreeMap<Pair, Selected>) -> Sliced<Self> {
        Sliced::new(async move {
            let (mut last, mut added) = (Last::default(), BTreeMap::new());
            let (mut selectors, mut others) = (Same::default(), Same::default());
            for (pair, planned) in &mut plan.types {
                steps_are_taken(1);
                pause().await;
                let Some((selector, yields_to)) = known.get(pair) else {
                    continue;
                };
                selectors.keep_if_same(selector, &mut planned.selector);
                others.keep_if_same(yields_to, &mut planned.yields_to);
                pause().await;
                if !Rc::ptr_eq(selector, &planned.selector) {
                    added.insert(pair.clone(), last.added(selector, &planned.selector).await);
                }
            }
            Self { plan, added }
        })
    }
}

/// Two selections that were compared last. Those of many types may be long and alike: each then costs no more than its
/// pointers.
#[derive(Default)]
struct Same(Option<(Rc<Selector>, Rc<Selector>, bool)>);

impl Same {
    fn keep_if_same(&mut self, old: &Rc<Selector>, new: &mut Rc<Selector>) {
        let known = self.0.as_ref();
        let known = known.filter(|(known, other, _)| known == old && other == new);
        let is_same = known.map_or_else(|| old == new, |(.., is_same)| *is_same);
        self.0 = Some((Rc::clone(old), Rc::clone(new), is_same));
        if is_same {
            *new = Rc::clone(old);
        }
    }
}

/// What was found last that a selection has more than another: the same for selections that are alike.
#[derive(Default)]
struct Last(Option<(Rc<Selector>, Rc<Selector>, Rc<Added>)>);

impl Last {
    async fn added(&mut self, old: &Rc<Selector>, new: &Rc<Selector>) -> Rc<Added> {
        if let Some((_, _, added)) = self.0.as_ref().filter(|(known, by, _)| known == old && by == new) {
            return Rc::clone(added);
        }
        let added = Rc::new(new.adding_to(old).await.with_names_up_to(NAMES));
        self.0 = Some((Rc::clone(old), Rc::clone(new), Rc::clone(&added)));
        added
    }
}
