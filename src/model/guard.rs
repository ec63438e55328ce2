//! Guards before deletes: a delete that may be an accident is held until it is proved or confirmed by people.
//! Two things hold the deletes of a direction ([`withdrawn`] holds those of a type). Either the origins' side is not
//! the one that the copies are from: another cluster answers, or the same one was restored from a backup and has gone
//! back to older versions. That lasts until it is confirmed. Or too many copies are to be deleted at once. That lasts
//! until it is confirmed, or until that side has answered without a break for a certain time. Held copies stay as they
//! are and cost no requests; everything else continues.
//!
//! To confirm, people set an annotation on a config to the token that the log and the condition name. A token confirms
//! only the hold that it was made for.

mod cascades;
mod counting;
mod highest_versions;
mod hold;
mod needless;
mod resumed;
mod tokens;
pub(super) mod vanished;
mod withdrawn;

use std::collections::BTreeSet;
use std::time::Duration;

use driver::few::Few;
use kube_lite::logging::log_line;
use tokio::time::Instant;

use self::cascades::CascadeHolds;
use self::counting::DeletesDone;
use self::highest_versions::HighestVersions;
use self::hold::Hold;
pub(super) use self::hold::{NewTokens, Reason, TypeIs, is_hold};
use self::tokens::Tokens;
use self::vanished::VanishedTypes;
use self::withdrawn::TypeHolds;
use super::count::Count;
use super::inventory::{Held, Permit};
use super::{Key, Model, Task, TypeId, TypeState, Types};
use crate::plan::{Direction, TypePlan};
use crate::sync::ownership::origin_hash;

/// The most holds that are listed in the condition, the most severe first.
const MESSAGES: usize = 8;

/// How many deletes are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// More deletes than this, and more than half of all copies, are held: within a minute, or net of what is created
    /// within an hour.
    pub most: usize,
    /// For how long; none are held if it is zero.
    pub grace: Duration,
}

/// The guard of one direction.
#[derive(Debug, Default)]
struct Gate {
    hold: Option<Hold>,
    /// The line about its hold waits until the origins' side has said which cluster it is.
    is_unlogged: bool,
    /// The last hold of too many deletes that people have confirmed, until all of these are carried out: a restart
    /// needs it.
    confirmed: Option<Hold>,
    done: DeletesDone,
    /// Since when deletes wait until it is known whether other copies have to be deleted too.
    waits_since: Option<Instant>,
    /// When the copies that are to be deleted were last counted, and the result.
    counted: Option<(Instant, Count)>,
}

/// The guards of both directions.
#[derive(Debug, Default)]
pub(super) struct Guard {
    gates: Few<Direction, Gate>,
    /// What holds the deletes of single types.
    pub(super) types: TypeHolds,
    /// Types that the hub no longer has, though there are copies.
    pub(super) vanished: VanishedTypes,
    /// What holds the deletes of single objects that would delete others too.
    cascades: CascadeHolds,
    /// The versions that origins have reached.
    pub(super) versions: HighestVersions,
    /// Tokens on the configs.
    tokens: Tokens,
}

/// A condition for the configs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) held: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// How many deletes are held.
    pub(super) objects: usize,
}

impl Gate {
    /// Whether so many deletes at once are an accident.
    fn are_too_many(&self, pending: usize, copies: usize, limits: Limits) -> bool {
        let done = self.done.without_permit();
        let pass = pending + done;
        !limits.grace.is_zero() && pass > limits.most && pass * 2 > copies + done
    }
}

impl Guard {
    /// When a hold ends by itself, or a side is to be asked again which cluster it is.
    pub(super) fn due(&self) -> Option<Instant> {
        let holds = self.gates.values().filter_map(|gate| gate.hold.as_ref()?.until);
        let types = self.types.due().into_iter().chain(self.vanished.due());
        holds.chain(types).min()
    }

    /// The types of a direction whose deletes no hold of their own keeps.
    fn gated<'a>(&'a self, direction: Direction, types: &'a Types) -> impl Iterator<Item = (TypeId, &'a TypeState)> {
        let types = types.iter().map(|(&type_id, state)| (type_id, state));
        types.filter(move |(_, state)| state.plan.direction == direction && !self.types.holds(&state.plan))
    }

    /// How many deletes a hold on the direction keeps.
    fn held_by_gate(&self, direction: Direction, types: &Types) -> usize {
        let types = self.gated(direction, types);
        types
            .map(|(_, state)| state.inventory.count_held(Held::WithoutPermit))
            .sum()
    }

    /// All holds, with their direction and the number of objects that they hold.
    fn all_holds<'a>(&'a self, types: &'a Types) -> impl Iterator<Item = (Direction, &'a Hold, usize)> {
        let gates = self.gates.iter();
        let of_gates = gates.filter_map(move |(direction, gate)| {
            Some((direction, gate.hold.as_ref()?, self.held_by_gate(direction, types)))
        });
        let of_types = self.types.all().map(move |(resource, known)| {
            let copied = withdrawn::copied_types(types, resource);
            let held = copied.map(|(_, state)| state.inventory.count_held(Held::All));
            (Direction::Down, &known.hold, held.sum())
        });
        of_gates
            .chain(of_types)
            .chain(self.vanished.all())
            .chain(self.cascades.all())
    }

    /// What is held of a type.
    pub(super) fn held_of(&self, plan: &TypePlan) -> Held {
        let gate = self.gates.get(plan.direction);
        if self.types.holds(plan) {
            Held::All
        } else if gate.is_some_and(|gate| gate.hold.is_some()) {
            Held::WithoutPermit
        } else {
            Held::Nothing
        }
    }

    /// Why the deletes of a type are held, if they are.
    pub(super) fn why_held(&self, plan: &TypePlan) -> Option<String> {
        let of_type = self.types.of(plan);
        let gate = self.gates.get(plan.direction).and_then(|gate| gate.hold.as_ref());
        of_type.or(gate).map(|hold| hold.reason.to_string())
    }

    /// What the configs say about holds.
    fn condition(&self, types: &Types) -> Condition {
        let all: Vec<_> = self.all_holds(types).collect();
        let holds = all.len();
        let mut messages: Vec<String> = all
            .iter()
            .take(MESSAGES)
            .map(|&(direction, hold, held)| hold.message(direction, held))
            .collect();
        if holds > MESSAGES {
            messages.push(format!("{} more holds are in the log", holds - MESSAGES));
        }
        Condition {
            held: holds > 0,
            reason: all.first().map_or("NothingHeld", |(_, hold, _)| hold.reason.word()),
            message: messages.join("; "),
            objects: all.iter().map(|(_, _, held)| held).sum(),
        }
    }

    /// True if deletes are held because another cluster answered.
    pub(super) fn distrusts(&self, direction: Direction) -> bool {
        let hold = self.gates.get(direction).and_then(|gate| gate.hold.as_ref());
        hold.is_some_and(|hold| matches!(hold.reason, Reason::OtherCluster { .. }))
    }
}

impl Model {
    /// Each hold, with its direction, and the token that confirms it.
    pub(super) fn holds_in_words(&self) -> impl Iterator<Item = (Direction, String)> {
        let all = self.guard.all_holds(&self.types);
        all.map(|(direction, hold, held)| (direction, hold.message(direction, held)))
    }

    /// True if a copy whose origin is gone may be deleted now. One that may not be is handled again when its hold ends.
    pub(super) fn may_delete(&mut self, key: &Key, direction: Direction) -> bool {
        let state = self.types.get(&key.type_id);
        if state.is_some_and(|state| self.guard.types.holds(&state.plan)) {
            return false;
        }
        if state.is_some_and(|state| state.inventory.may_go(&key.name)) {
            return true;
        }
        if self.shows_whose_copies_are(key, direction) {
            return true;
        }
        let now = self.now;
        let limits = self.settings.delete_limits;
        let gate = self.guard.gates.or_default(direction);
        if gate.hold.is_none() {
            let Count { pending, copies, .. } = self.counted(direction, now);
            let gate = self.guard.gates.or_default(direction);
            if gate.are_too_many(pending, copies, limits) {
                let done = gate.done.without_permit();
                let reason = Reason::TooMany {
                    pending: pending + done,
                    of: copies + done,
                };
                gate.hold = Some(Hold::begin(
                    direction,
                    reason,
                    Some(now + limits.grace),
                    &mut self.new_tokens,
                ));
                self.holds_have_changed();
            }
        }
        let gate = self.guard.gates.or_default(direction);
        gate.hold.is_none()
    }

    /// True if the delete of a copy cannot be proved, since it is from another cluster than the one that answers, and
    /// will show that all may be: that is graver than their number.
    fn shows_whose_copies_are(&self, key: &Key, direction: Direction) -> bool {
        let hold = self.guard.gates.get(direction).and_then(|gate| gate.hold.as_ref());
        let of_number = hold.is_none_or(|hold| matches!(hold.reason, Reason::TooMany { .. }));
        let (identity, state) = (self.sides.identity(direction.origin()), self.types.get(&key.type_id));
        let (Some(present), Some(state)) = (identity.contested().filter(|_| of_number), state) else {
            return false;
        };
        identity.former().is_empty() && state.inventory.is_from_another(&key.name, origin_hash(present))
    }

    /// Copies of a direction are from another cluster than the one that answers: if some are to be deleted, one shows
    /// it, also if they are held because they are many.
    pub(super) fn ask_whose_copies_are(&mut self, direction: Direction) {
        let Some(present) = self.sides.identity(direction.origin()).contested().map(origin_hash) else {
            return;
        };
        let pending = self.guard.gated(direction, &self.types).find_map(|(type_id, state)| {
            let name = state.inventory.pending_delete_from_another(present)?;
            Some(Key::new(type_id, Task::Object, name.clone()))
        });
        if let Some(key) = pending {
            self.go_on_with(key);
        }
    }

    /// The change is logged, and written to the record for a restart.
    fn holds_have_changed(&mut self) {
        self.keep_guard_in_record();
        self.report_holds();
    }

    /// The origins' side of a direction is not to be trusted until it is confirmed.
    pub(super) fn hold_deletes(&mut self, direction: Direction, reason: Reason) {
        let gate = self.guard.gates.or_default(direction);
        if gate
            .hold
            .as_ref()
            .is_none_or(|hold| reason.is_graver_than(&hold.reason))
        {
            // Another cluster has lower versions too, and a line and an advice of its own.
            gate.is_unlogged = matches!(reason, Reason::WentBack { .. });
            let hold = Hold::new(reason, None, &mut self.new_tokens);
            if !gate.is_unlogged {
                hold.log(direction);
            }
            gate.hold = Some(hold);
            let types = self.types.values_mut();
            for state in types.filter(|state| state.plan.direction == direction) {
                state.inventory.revoke_permits();
            }
            self.holds_have_changed();
            self.reread_side(direction.origin());
            // A side that has gone back may be another cluster altogether.
            self.ask_identity(direction.origin());
        }
    }

    /// The origins' side of a direction has said which cluster it is: what is held because it has gone back is logged now.
    pub(super) fn log_hold(&mut self, direction: Direction) {
        if let Some(gate) = self.guard.gates.get_mut(direction)
            && std::mem::take(&mut gate.is_unlogged)
            && let Some(hold) = gate
                .hold
                .as_ref()
                .filter(|hold| matches!(hold.reason, Reason::WentBack { .. }))
        {
            hold.log(direction);
        }
    }

    /// The origins' side of a direction does not answer steadily: the time of a hold begins again.
    pub(super) fn origins_are_unsteady(&mut self, direction: Direction) {
        let grace = self.settings.delete_limits.grace;
        if let Some(hold) = self.guard.gates.get_mut(direction).and_then(|gate| gate.hold.as_mut())
            && hold.until.is_some()
        {
            hold.until = Some(self.now + grace);
        }
        if direction == Direction::Down {
            self.guard.types.are_unsteady(self.now, grace);
        }
    }

    /// Ends the holds whose time is over. None ends while the side of the origins does not answer.
    pub(super) fn end_holds(&mut self) {
        let now = self.now;
        self.end_type_holds(now);
        self.ask_about_vanished(now);
        for direction in [Direction::Down, Direction::Up] {
            let until = self
                .guard
                .gates
                .get(direction)
                .and_then(|gate| gate.hold.as_ref()?.until);
            let soon = now + self.settings.delete_limits.grace.saturating_sub(counting::PASS);
            if until.is_some_and(|until| until <= soon) && self.sides.of(direction.origin()).answering.is_silent() {
                self.origins_are_unsteady(direction);
                // What is held causes no requests, so perhaps none was sent since the side came back.
                self.ask_identity(direction.origin());
            }
        }
        let over: Vec<Direction> = self
            .guard
            .gates
            .iter()
            .filter(|(_, gate)| {
                let until = gate.hold.as_ref().and_then(|hold| hold.until);
                until.is_some_and(|until| until <= now)
            })
            .map(|(direction, _)| direction)
            .collect();
        for direction in over {
            self.release_deletes(direction, "the time is over");
        }
    }

    /// Releases the holds that have one of these tokens.
    fn confirm(&mut self, tokens: &BTreeSet<String>) {
        self.confirm_types(tokens);
        self.confirm_vanished(tokens);
        self.confirm_cascades(tokens);
        let confirmed: Vec<(Direction, Reason)> = self
            .guard
            .gates
            .iter()
            .filter_map(|(direction, gate)| {
                let hold = gate.hold.as_ref()?;
                tokens.contains(&hold.token).then(|| (direction, hold.reason.clone()))
            })
            .collect();
        for (direction, reason) in confirmed {
            let gate = self.guard.gates.or_default(direction);
            gate.confirmed = gate
                .hold
                .clone()
                .filter(|hold| matches!(hold.reason, Reason::TooMany { .. }));
            match reason {
                Reason::OtherCluster { expected, found } => {
                    let identity = self.identity_mut(direction.origin());
                    identity.give_up(expected);
                    identity.expect(found);
                    self.clear_versions(direction);
                    self.clear_definitions();
                }
                Reason::WentBack { .. } => {
                    self.identity_mut(direction.origin()).accept_older();
                    self.clear_versions(direction);
                    self.clear_definitions();
                }
                Reason::TooMany { .. } | Reason::Withdrawn { .. } | Reason::NotEmpty { .. } => {}
            }
            let hold = self.guard.gates.or_default(direction).hold.clone();
            let released = self.release_deletes(direction, "confirmed");
            self.keep_confirmed(direction, hold, released);
        }
    }

    /// The cluster that the copies are from answers again: what the other one lacked may be there, and is asked for
    /// again.
    pub(super) fn judge_again(&mut self, direction: Direction) {
        let gate = self.guard.gates.or_default(direction);
        gate.hold = None;
        log_line!(
            Info,
            HoldEnded,
            "the cluster that the copies are from is back, deletes are not held any more",
            side = direction.origin().word(),
            direction = direction
        );
        self.holds_have_changed();
        self.release_copies(direction, Permit::Needed);
        self.reset_gone_types(direction.origin());
    }

    fn release_deletes(&mut self, direction: Direction, why: &str) -> usize {
        let gate = self.guard.gates.or_default(direction);
        gate.hold = None;
        gate.done.forgive();
        self.holds_have_changed();
        let released = self.release_copies(direction, Permit::Given);
        log_line!(
            Warn,
            DeletesReleased,
            "held deletes are carried out",
            direction = direction,
            because = why,
            objects = released
        );
        released
    }

    /// The hold of a direction has ended: what it held is handled again. Returns how many objects that are.
    fn release_copies(&mut self, direction: Direction, permit: Permit) -> usize {
        let types = self.guard.gated(direction, &self.types);
        let types: Vec<TypeId> = types.map(|(type_id, _)| type_id).collect();
        self.release_copies_of(&types, Held::WithoutPermit, permit)
    }

    /// The same of these types.
    fn release_copies_of(&mut self, types: &[TypeId], held: Held, permit: Permit) -> usize {
        let mut count = 0;
        for &type_id in types {
            let state = self.types.get_mut(&type_id);
            let released = state.map(|state| state.inventory.release(held, permit));
            for name in released.into_iter().flatten() {
                count += 1;
                self.go_on_with(Key::new(type_id, Task::Object, name));
            }
        }
        count
    }

    /// An object is held no longer.
    fn go_on_with(&mut self, key: Key) {
        if let Some(state) = self.types.get(&key.type_id) {
            let class = state.class(&key.name);
            self.queue_up(key, class, None);
        }
        self.report_holds();
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
