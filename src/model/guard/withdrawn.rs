//! Holds on the deletes of single types: of one that the hub deletes as a whole, and of one that it has defined again.
//!
//! What defines the type is being deleted, and its objects were deleted with it. Their copies stay until the type is no
//! longer selected or is defined again ([`super::vanished`] while the hub has no definition). Once it is defined again,
//! they stay until the hub has answered without a break for the time of a hold. In that time its objects can be
//! restored.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use driver::queue;
use kube_lite::Error;
use kube_lite::logging::log_line;
use tokio::time::Instant;

use super::{Hold, Reason, TypeIs};
use crate::model::inventory::{Held, Permit};
use crate::model::{Model, Request, TypeId, TypeState, Types};
use crate::plan::{Direction, TypePlan};
use crate::side::Side;
use crate::sync::definition::Withdrawal;

/// How often the hub is asked whether a type is still being deleted.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Deletes of the copies of one type that are held, whatever types a conversion makes of it.
#[derive(Debug)]
pub(super) struct TypeHold {
    pub(super) hold: Hold,
    withdrawal: Withdrawal,
}

/// The holds of all types, by `resource.group` at the hub.
#[derive(Debug, Default)]
pub(in crate::model) struct TypeHolds(BTreeMap<String, TypeHold>);

impl TypeHolds {
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().filter_map(|known| known.hold.until).min()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &TypeHold)> {
        self.0.iter().map(|(resource, known)| (&**resource, known))
    }

    /// The types of which the hold is such a one.
    fn where_it(&self, is: impl Fn(&str, &TypeHold) -> bool) -> Vec<String> {
        let such = self.0.iter().filter(|(resource, known)| is(resource, known));
        such.map(|(resource, _)| resource.clone()).collect()
    }

    /// True if deletes of the type's copies are held.
    pub(super) fn holds(&self, plan: &TypePlan) -> bool {
        let may_hold = !self.0.is_empty() && plan.direction == Direction::Down;
        may_hold && self.0.contains_key(&plan.at_hub.qualified())
    }

    /// What holds them.
    pub(super) fn of(&self, plan: &TypePlan) -> Option<&Hold> {
        let known = self.0.get(&plan.at_hub.qualified());
        known.filter(|_| self.holds(plan)).map(|known| &known.hold)
    }

    /// The same, by the name of the type.
    pub(super) fn holds_any_of(&self, resource: &str) -> bool {
        self.0.contains_key(resource)
    }

    /// What confirms the deletes of the type, if they are held because the hub deletes it.
    pub(super) fn token_of_going(&self, resource: &str) -> Option<String> {
        let known = self.0.get(resource)?;
        matches!(known.withdrawal, Withdrawal::Going(_)).then(|| known.hold.token.clone())
    }

    /// The hub does not answer steadily: the time of holds begins again.
    pub(super) fn are_unsteady(&mut self, now: Instant, grace: Duration) {
        let redefined = |known: &&mut TypeHold| matches!(known.withdrawal, Withdrawal::Redefined(_));
        for known in self.0.values_mut().filter(redefined) {
            known.hold.until = Some(now + grace);
        }
    }
}

impl Model {
    /// The delete of a copy is held, because the hub deletes its type as a whole or has done so.
    pub(in crate::model) fn hold_type(&mut self, resource: String, withdrawal: &Withdrawal) -> queue::Done<Side> {
        if self.settings.delete_limits.grace.is_zero() && matches!(withdrawal, Withdrawal::Redefined(_)) {
            self.definitions_mut().accept(&resource, withdrawal.clone());
            return queue::Done::Again;
        }
        let known = self.guard.types.0.remove(&resource);
        let known = self.hold_still(&resource, known, withdrawal);
        self.guard.types.0.insert(resource, known);
        queue::Done::Finished
    }

    /// A hold for this reason, from now on, which replaces a known one.
    fn hold_still(&mut self, resource: &str, known: Option<TypeHold>, withdrawal: &Withdrawal) -> TypeHold {
        if self.definitions_mut().note_withdrawal(resource, withdrawal) {
            self.keep_guard_in_record();
        }
        let redefined = matches!(withdrawal, Withdrawal::Redefined(_));
        let time = if redefined {
            self.settings.delete_limits.grace
        } else {
            ASK_AGAIN
        };
        let until = Some(self.now + time);
        match known {
            Some(known) if is_same_hold(&known.withdrawal, withdrawal) => TypeHold {
                hold: Hold { until, ..known.hold },
                withdrawal: withdrawal.clone(),
            },
            _ => {
                self.report_holds();
                if redefined {
                    self.ask_what_is_defined_now(resource);
                }
                let reason = Reason::Withdrawn {
                    resource: resource.to_owned(),
                    is: if redefined { TypeIs::Redefined } else { TypeIs::Going },
                };
                TypeHold {
                    hold: Hold::begin(Direction::Down, reason, until, &mut self.new_tokens),
                    withdrawal: withdrawal.clone(),
                }
            }
        }
    }

    /// A type that was defined again may be of another kind or scope, though no source has failed meanwhile.
    fn ask_what_is_defined_now(&mut self, resource: &str) {
        let origin = self.copied_types(resource).next();
        if let Some(origin) = origin.map(|(_, state)| state.origin_type().clone()) {
            self.void_discovery_of(Side::Hub, &origin);
        }
    }

    /// The types that are synced from this one of the hub, `resource.group`.
    pub(in crate::model) fn copied_types(&self, resource: &str) -> impl Iterator<Item = (TypeId, &TypeState)> {
        copied_types(&self.types, resource)
    }

    /// A type is read, for the first time or again: the hub is asked at once whether it still deletes it.
    pub(in crate::model) fn ask_about_held(&mut self, type_id: TypeId) {
        let now = self.now;
        let resource = self.types.get(&type_id).map(|state| state.plan.at_hub.qualified());
        let known = resource.and_then(|resource| self.guard.types.0.get_mut(&resource));
        if let Some(known) = known.filter(|known| matches!(known.withdrawal, Withdrawal::Going(_))) {
            known.hold.until = known.hold.until.map(|_| now);
        }
    }

    /// Nothing of a type is read any more. What the hub has done to it holds its copies all the same, as long as there may
    /// be some: a side that does not serve it now may serve it again.
    pub(in crate::model) fn type_is_dropped(&mut self, type_id: TypeId, plan: &TypePlan) {
        self.guard.cascades.remove_type(type_id);
        self.is_held_as_vanished(&plan.at_hub.qualified());
    }

    /// Types of which no copies can be left are held no longer.
    pub(super) fn end_holds_of_types_without_copies(&mut self) {
        let over = self.guard.types.where_it(|resource, _| {
            let is_read = self.copied_types(resource).next().is_some();
            !is_read && !self.may_have_copies_of(resource)
        });
        for resource in over {
            self.guard.types.0.remove(&resource);
            log_line!(
                Info,
                HoldEnded,
                "no copies of the type are left, deletes are not held any more",
                resource = resource
            );
            self.report_holds();
        }
    }

    /// True if there may be copies of a type of the hub, `resource.group`, whatever types conversions make of it.
    pub(super) fn may_have_copies_of(&self, resource: &str) -> bool {
        let mut known = self.record.each_type();
        known.any(|known| {
            (known.direction, &*known.qualified_origin()) == (Direction::Down, resource) && self.may_have_copies(known)
        })
    }

    /// Once nothing is read of a type that the hub has no longer, it is held as that, and not twice.
    pub(super) fn is_held_as_vanished(&mut self, resource: &str) {
        if self.guard.vanished.has(resource) && self.copied_types(resource).next().is_none() {
            self.guard.types.0.remove(resource);
        }
    }

    /// Ends the holds of types whose time is over. The hub is asked again about a type that is being deleted.
    pub(super) fn end_type_holds(&mut self, now: Instant) {
        if self.guard.types.due().is_none_or(|due| due > now) {
            return;
        }
        if self.sides.of(Side::Hub).answering.is_silent() {
            self.guard.types.are_unsteady(now, self.settings.delete_limits.grace);
            // What is held causes no requests, so perhaps none was sent since the hub came back.
            self.ask_identity(Side::Hub);
        }
        let is_over = |_: &str, known: &TypeHold| known.hold.until.is_some_and(|until| until <= now);
        let over = self.guard.types.where_it(is_over);
        for resource in over {
            match self.guard.types.0.get(&resource) {
                Some(known) if matches!(known.withdrawal, Withdrawal::Going(_)) => self.ask_for_withdrawal(&resource),
                _ => self.release_type(&resource, "the time is over", Permit::Needed),
            }
        }
    }

    /// Asks whether the hub still deletes a type: later, as long as nothing is read of it.
    fn ask_for_withdrawal(&mut self, resource: &str) {
        let (_, state) = self.copied_types(resource).next().unzip();
        let question = state.map(|state| (state.origin_type().clone(), state.plan.gone_at_origin));
        if let Some(known) = self.guard.types.0.get_mut(resource) {
            known.hold.until = Some(self.now + ASK_AGAIN).filter(|_| question.is_none());
        }
        if let Some((origin, gone)) = question {
            self.effects
                .request(Request::Verify(origin, gone, Rc::clone(&self.definitions)));
        }
    }

    /// The hub has been asked whether a type is still being deleted.
    pub(in crate::model) fn on_withdrawal(&mut self, resource: String, result: Result<Option<Withdrawal>, Error>) {
        let Some(mut known) = self.guard.types.0.remove(&resource) else {
            return; // It was confirmed meanwhile, or the type is gone.
        };
        match result {
            Ok(Some(withdrawal)) => known = self.hold_still(&resource, Some(known), &withdrawal),
            Ok(None) => {
                log_line!(
                    Info,
                    HoldEnded,
                    "the hub does not delete the type any more, deletes are not held any more",
                    resource = resource
                );
                self.release_type_copies(&resource, Permit::Needed);
                return;
            }
            Err(error) => {
                known.hold.until = Some(self.now + ASK_AGAIN);
                if error.is_unreachable() {
                    self.side_is_silent(Side::Hub, "reading what defines a type", &error);
                }
            }
        }
        self.guard.types.0.insert(resource, known);
    }

    /// Releases what people have confirmed.
    pub(super) fn confirm_types(&mut self, tokens: &BTreeSet<String>) {
        let is_confirmed = |_: &str, known: &TypeHold| tokens.contains(&known.hold.token);
        let confirmed = self.guard.types.where_it(is_confirmed);
        for resource in confirmed {
            self.release_type(&resource, "confirmed", Permit::Given);
        }
    }

    fn release_type(&mut self, resource: &str, why: &str, permit: Permit) {
        let Some(known) = self.guard.types.0.remove(resource) else {
            return;
        };
        self.definitions_mut().accept(resource, known.withdrawal);
        self.keep_guard_in_record();
        let released = self.release_type_copies(resource, permit);
        log_line!(
            Warn,
            DeletesReleased,
            "held deletes are carried out",
            resource = resource,
            because = why,
            objects = released
        );
    }

    fn release_type_copies(&mut self, resource: &str, permit: Permit) -> usize {
        let types: Vec<TypeId> = self.copied_types(resource).map(|(type_id, _)| type_id).collect();
        self.release_copies_of(&types, Held::All, permit)
    }

    /// Types that were defined again and whose objects are all back are held no longer.
    pub(super) fn end_holds_of_types_that_came_back(&mut self) {
        // One may be hidden, without its label.
        let is_back = |state: &TypeState| !state.inventory.has_unverified() && !state.inventory.has_held(Held::All);
        let back = self.guard.types.where_it(|resource, known| {
            let is_redefined = matches!(known.withdrawal, Withdrawal::Redefined(_));
            is_redefined
                && self.copied_types(resource).all(|(_, state)| is_back(state))
                && self.sees_all(|known| known.direction == Direction::Down && known.qualified_origin() == resource)
        });
        for resource in back {
            if let Some(known) = self.guard.types.0.remove(&resource) {
                log_line!(
                    Info,
                    HoldEnded,
                    "all objects are back, deletes are not held any more",
                    resource = resource
                );
                self.definitions_mut().accept(&resource, known.withdrawal);
                self.holds_have_changed();
            }
        }
    }
}

/// True if both hold the same deletes: a type that was being deleted is gone in the end.
fn is_same_hold(before: &Withdrawal, now: &Withdrawal) -> bool {
    matches!((before, now), (Withdrawal::Going(_), Withdrawal::Going(_))) || before == now
}

/// The types that are synced from this one of the hub, `resource.group`.
pub(super) fn copied_types<'a>(
    types: &'a Types,
    resource: &str,
) -> impl Iterator<Item = (TypeId, &'a TypeState)> + use<'a> {
    let resource = resource.to_owned();
    let is_from = move |plan: &TypePlan| plan.direction == Direction::Down && plan.at_hub.qualified() == resource;
    let types = types.iter().map(|(&type_id, state)| (type_id, state));
    types.filter(move |(_, state)| is_from(&state.plan))
}
