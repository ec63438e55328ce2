//! A dry run: what remains once all was tried. What a worker has shown will not happen, so an object that it has shown
//! counts as done until its origin or its copy changes ([`Trace::Shown`](super::inventory)).

use super::guard::Guard;
use super::inventory::Link;
use super::{Key, Task, Types};
use crate::side::Side;
use crate::sync::object::Address;

/// What remains of a dry run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Remaining {
    /// Deletes that are held.
    pub(crate) held: Vec<HeldDelete>,
    /// How many objects wait for something else, or fail.
    pub(crate) waiting: usize,
    /// How many things have failed and not worked since.
    pub(crate) failing: usize,
}

/// A copy that would be deleted if that were not held.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldDelete {
    pub(crate) side: Side,
    pub(crate) at: Address,
    /// Why it is held.
    pub(crate) why: String,
}

/// What was last said of that.
#[derive(Default)]
pub(super) struct Said(Option<Remaining>);

impl Said {
    /// The same, if it is news.
    pub(super) fn news(&mut self, remaining: Remaining) -> Option<Remaining> {
        let is_news = self.0.as_ref() != Some(&remaining);
        is_news.then(|| self.0.insert(remaining).clone())
    }
}

impl Remaining {
    /// What follows from the links and the holds.
    pub(super) fn of(types: &Types, guard: &Guard, failing: usize) -> Self {
        let held = held_deletes(types, guard);
        let open: usize = types.values().map(|state| state.inventory.count_synced().1).sum();
        Self {
            waiting: open.saturating_sub(held.len()),
            failing,
            held,
        }
    }
}

fn held_deletes(types: &Types, guard: &Guard) -> Vec<HeldDelete> {
    let mut all = Vec::new();
    for (&type_id, state) in types {
        let held = guard.held_of(&state.plan);
        for name in state.inventory.names(Link::is_pending_delete) {
            let key = Key::new(type_id, Task::Object, name);
            let is_held = state.inventory.is_held(&key.name, held);
            let of_type = || guard.why_held(&state.plan).filter(|_| is_held);
            let why = guard.why_cascade(&key).or_else(of_type);
            all.extend(why.zip(state.both(&key.name)).map(|(why, (_, at))| HeldDelete {
                side: state.plan.direction.copy(),
                at,
                why,
            }));
        }
    }
    all
}
