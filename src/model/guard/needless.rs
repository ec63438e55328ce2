//! What is held now, and the end of holds that hold nothing any more.

use std::collections::{BTreeMap, BTreeSet};

use driver::source::SourceId;
use kube_lite::logging::log_line;

use super::{Condition, Guard, Reason};
use crate::model::inventory::Held;
use crate::model::replan::pair_of;
use crate::model::sources::SourceState;
use crate::model::{Model, TypeState, Types};
use crate::plan::{Direction, Pair, SyncedType};

impl Guard {
    /// How many deletes are held, by direction and reason.
    pub(in crate::model) fn held_by_reason(&self, types: &Types) -> BTreeMap<(Direction, &'static str), usize> {
        let mut held = BTreeMap::new();
        for (direction, hold, objects) in self.all_holds(types) {
            *held.entry((direction, hold.reason.word())).or_default() += objects;
        }
        held
    }
}

impl Model {
    /// What the configs say about holds.
    pub(in crate::model) fn hold_condition(&self) -> Condition {
        self.guard.condition(&self.types)
    }

    /// Ends holds that hold nothing any more, since the origins are back or the copies gone.
    pub(in crate::model) fn end_needless_holds(&mut self) {
        self.end_holds_of_cascades_that_came_back();
        self.end_holds_of_types_without_copies();
        self.end_holds_of_types_that_came_back();
        for direction in [Direction::Down, Direction::Up] {
            self.end_wait_of_deletes(direction);
            self.end_hold_of_too_many(direction);
            self.end_what_was_confirmed(direction);
        }
    }

    /// Too many copies were to be deleted, and none is any more: the next accident is held for the whole time, and with
    /// a token of its own.
    fn end_hold_of_too_many(&mut self, direction: Direction) {
        let hold = self.guard.gates.get(direction).and_then(|gate| gate.hold.as_ref());
        let is_of_many = hold.is_some_and(|hold| matches!(hold.reason, Reason::TooMany { .. }));
        if !is_of_many
            || !self.has_read_all()
            || self.holds_some_of(direction)
            || !self.sees_all(|known| known.direction == direction)
        {
            return;
        }
        self.guard.gates.or_default(direction).hold = None;
        log_line!(
            Info,
            HoldEnded,
            "nothing is held any more, since the origins are back or the copies gone",
            direction = direction
        );
        self.holds_have_changed();
    }

    /// True if nothing that a hold keeps of these types can be out of sight: of each of which there may be copies, they have
    /// been listed, and the origins too if there are any. A hold belongs to what has happened at the side of the origins.
    /// So it outlasts that one side does not serve a type for a while, or does not let it be listed.
    pub(super) fn sees_all(&self, concerns: impl Fn(&SyncedType) -> bool) -> bool {
        let has_listed = |id: SourceId| self.sources.get(&id).is_some_and(SourceState::has_listed);
        let has_listed_origins =
            |state: &TypeState| state.has_listed_origins(&self.sources) && state.origin_readers().all(has_listed);
        let is_seen = |state: &TypeState| {
            state.copies_listed
                && state.copy_source.is_some_and(has_listed)
                && (!state.inventory.may_have_ours() || has_listed_origins(state))
        };
        let seen = self.types.values().filter(|state| is_seen(state));
        let seen: BTreeSet<Pair> = seen.map(|state| pair_of(&state.plan)).collect();
        let is_denied = |known: &SyncedType| self.settings.filter.refuses_synced(known);
        let is_out_of_sight = |known: &SyncedType| !seen.contains(&Pair::of_synced(known)) && !is_denied(known);
        !self
            .record
            .each_type()
            .any(|known| concerns(known) && is_out_of_sight(known))
    }

    /// True if a hold on the direction keeps copies, or may turn out to once the lists under way are complete.
    fn holds_some_of(&self, direction: Direction) -> bool {
        let mut gated = self.guard.gated(direction, &self.types);
        let mut all = self.types.values().filter(|state| state.plan.direction == direction);
        gated.any(|(_, state)| state.inventory.has_held(Held::WithoutPermit))
            || all.any(|state| {
                let mut readers = state.origin_readers().chain(state.copy_source);
                let is_listing = readers.any(|id| self.sources.get(&id).is_some_and(|source| source.listing));
                is_listing || state.inventory.has_unverified()
            })
    }
}
