//! Holds on the deletes of single types: of one that the hub deletes as a whole, and of one that it has defined again.
//!
//! What defines the type is being deleted, and its objects were deleted with it. Their copies stay until the type is no
//! longer selected or is defined again ([`super::vanished`] while the hub has no definition). Once it is defined again,
//! they stay until the hub has answered without a break for the time of a hold. In that time its objects can be
//! restored.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Hold, Reason, TypeIs};
use crate::cluster::{Error, Side};
use crate::logging::log_line;
use crate::model::inventory::{Held, Permit};
use crate::model::{Key, Model, Request, TypeId};
use crate::plan::Direction;
use crate::queue;
use crate::sync::definition::Withdrawal;

/// How often the hub is asked whether a type is still being deleted.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Deletes of one type that are held.
#[derive(Debug)]
pub(super) struct TypeHold {
    pub(super) hold: Hold,
    withdrawal: Withdrawal,
    resource: String,
}

/// The holds of all types.
#[derive(Debug, Default)]
pub(in crate::model) struct TypeHolds(BTreeMap<TypeId, TypeHold>);

impl TypeHolds {
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().filter_map(|known| known.hold.until).min()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (TypeId, &TypeHold)> {
        self.0.iter().map(|(&type_id, known)| (type_id, known))
    }

    /// True if deletes of the type are held.
    pub(super) fn holds_type(&self, type_id: TypeId) -> bool {
        self.0.contains_key(&type_id)
    }

    /// What confirms the deletes of the type, if they are held.
    pub(super) fn token(&self, type_id: TypeId) -> Option<String> {
        self.0.get(&type_id).map(|known| known.hold.token.clone())
    }

    /// The type is read again, or is gone.
    pub(in crate::model) fn remove(&mut self, type_id: TypeId) {
        self.0.remove(&type_id);
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
    pub(in crate::model) fn hold_type(&mut self, key: &Key, resource: String, withdrawal: &Withdrawal) -> queue::Done {
        if self.settings.delete_limits.grace.is_zero() && matches!(withdrawal, Withdrawal::Redefined(_)) {
            self.definitions_mut().accept(&resource, withdrawal.clone());
            return queue::Done::Again;
        }
        let known = self.guard.types.0.remove(&key.type_id);
        let known = self.hold_still(key.type_id, known, resource, withdrawal);
        self.guard.types.0.insert(key.type_id, known);
        queue::Done::Finished
    }

    /// A hold for this reason, from now on, which replaces a known one.
    fn hold_still(
        &mut self,
        type_id: TypeId,
        known: Option<TypeHold>,
        resource: String,
        withdrawal: &Withdrawal,
    ) -> TypeHold {
        self.definitions_mut().note_withdrawal(&resource, withdrawal);
        let redefined = matches!(withdrawal, Withdrawal::Redefined(_));
        let time = if redefined {
            self.settings.delete_limits.grace
        } else {
            ASK_AGAIN
        };
        let until = Some(self.now + time);
        match known {
            Some(known) if known.withdrawal == *withdrawal => TypeHold {
                hold: Hold { until, ..known.hold },
                ..known
            },
            _ => {
                self.report_holds();
                if redefined {
                    self.ask_what_is_defined_now(type_id);
                }
                let reason = Reason::Withdrawn {
                    resource: resource.clone(),
                    is: if redefined { TypeIs::Redefined } else { TypeIs::Going },
                };
                TypeHold {
                    hold: Hold::begin(Direction::Down, reason, until, &mut self.chance),
                    withdrawal: withdrawal.clone(),
                    resource,
                }
            }
        }
    }

    /// A type that was defined again may be of another kind or scope, though no source has failed meanwhile.
    fn ask_what_is_defined_now(&mut self, type_id: TypeId) {
        if let Some(origin) = self.types.get(&type_id).map(|state| state.origin_type().clone()) {
            self.void_discovery_of(Side::Hub, &origin);
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
        let is_over = |known: &TypeHold| known.hold.until.is_some_and(|until| until <= now);
        let over = self.guard.types.0.iter().filter(|(_, known)| is_over(known));
        let over: Vec<TypeId> = over.map(|(&type_id, _)| type_id).collect();
        for type_id in over {
            match self.guard.types.0.get_mut(&type_id) {
                Some(known) if matches!(known.withdrawal, Withdrawal::Going(_)) => {
                    known.hold.until = None;
                    self.ask_for_withdrawal(type_id);
                }
                _ => self.release_type(type_id, "the time is over", Permit::Needed),
            }
        }
    }

    fn ask_for_withdrawal(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let (resource, gone) = (state.origin_type().clone(), state.plan.gone_at_origin);
        self.request(Request::Verify(type_id, resource, gone, Rc::clone(&self.definitions)));
    }

    /// The hub has been asked whether a type is still being deleted.
    pub(in crate::model) fn withdrawal_is(&mut self, type_id: TypeId, result: Result<Option<Withdrawal>, Error>) {
        let Some(mut known) = self.guard.types.0.remove(&type_id) else {
            return; // It was confirmed meanwhile, or the type is gone.
        };
        let resource = known.resource.clone();
        match result {
            Ok(Some(withdrawal)) => known = self.hold_still(type_id, Some(known), resource, &withdrawal),
            Ok(None) => {
                log_line!(
                    Info,
                    HoldEnded,
                    "the hub does not delete the type any more, deletes are not held any more",
                    resource = resource
                );
                self.release_copies_of(type_id, Held::All, Permit::Needed);
                return;
            }
            Err(error) => {
                known.hold.until = Some(self.now + ASK_AGAIN);
                if error.is_unreachable() {
                    self.side_is_silent(Side::Hub, "reading what defines a type", &error);
                }
            }
        }
        self.guard.types.0.insert(type_id, known);
    }

    /// Releases what people have confirmed.
    pub(super) fn confirm_types(&mut self, tokens: &BTreeSet<String>) {
        let is_confirmed = |known: &TypeHold| tokens.contains(&known.hold.token);
        let confirmed = self.guard.types.0.iter().filter(|(_, known)| is_confirmed(known));
        let confirmed: Vec<TypeId> = confirmed.map(|(&type_id, _)| type_id).collect();
        for type_id in confirmed {
            self.release_type(type_id, "confirmed", Permit::Given);
        }
    }

    fn release_type(&mut self, type_id: TypeId, why: &str, permit: Permit) {
        let Some(known) = self.guard.types.0.remove(&type_id) else {
            return;
        };
        let resource = known.resource.clone();
        self.definitions_mut().accept(&known.resource, known.withdrawal);
        self.keep_guard_in_record();
        let released = self.release_copies_of(type_id, Held::All, permit);
        log_line!(
            Warn,
            DeletesReleased,
            "held deletes are carried out",
            resource = resource,
            because = why,
            objects = released
        );
    }

    /// Types that were defined again and whose objects are all back are held no longer.
    pub(super) fn end_holds_of_types_that_came_back(&mut self) {
        let is_back = |type_id: &TypeId| {
            let Some(state) = self.types.get(type_id) else {
                return true;
            };
            let mut origins = state.origin_readers().filter_map(|id| self.sources.get(&id));
            state.copies_listed
                && self.has_listed_origins(state)
                && origins.all(|source| !source.listing)
                && !state.inventory.has_suspects()
                // One may be hidden, without its label.
                && !state.inventory.has_held(Held::All)
        };
        let types = self.guard.types.0.iter();
        let is_redefined = |known: &TypeHold| matches!(known.withdrawal, Withdrawal::Redefined(_));
        let back = types.filter(|(type_id, known)| is_redefined(known) && is_back(type_id));
        let back: Vec<TypeId> = back.map(|(&type_id, _)| type_id).collect();
        for type_id in back {
            if let Some(known) = self.guard.types.0.remove(&type_id) {
                log_line!(
                    Info,
                    HoldEnded,
                    "all objects are back, deletes are not held any more",
                    resource = known.resource
                );
                self.definitions_mut().accept(&known.resource, known.withdrawal);
                self.holds_have_changed();
            }
        }
    }
}
