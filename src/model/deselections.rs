//! Types that nothing selects any more because configs are gone: people have deleted these, or they went with their own
//! type, as when somebody deletes all CRDs of the hub.
//!
//! That a config is gone is followed at once, which deletes nothing: copies are deleted only with their origins. But a
//! type that the hub lacks and that nothing selects is gone for good. So while there are configs of a kind, what defines
//! it is known like what defines types, also over a restart; when one is gone, the hub is asked whether that is still in
//! place. Until it has said so, and from then on if it is not, the types that may have been deselected with the config
//! count as selected where the hub lacks them: their copies are held ([`super::guard::vanished`]), until people confirm,
//! or a config selects the type again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::config_kind::ConfigKind;
use super::timers::Timer;
use super::{Model, Request};
use crate::cluster::{Error, Side};
use crate::plan::{Direction, Plan};
use crate::sync::definition::{DefinedBy, Withdrawal};

/// See the module's doc. Types are named as they are at the hub, `resource.group`.
#[derive(Debug, Default)]
pub(super) struct Deselections {
    /// Of each kind whose configs are gone, or may have gone before this run, the types that they may have selected,
    /// as long as the hub was not asked.
    to_ask: BTreeMap<ConfigKind, BTreeSet<String>>,
    /// The same while the hub is asked.
    asked: BTreeMap<ConfigKind, BTreeSet<String>>,
    /// Types that nothing selects since their configs were deleted with their own type.
    unproved: BTreeSet<String>,
}

impl Deselections {
    /// All types that count as selected where the hub lacks them.
    pub(super) fn in_doubt(&self) -> BTreeSet<String> {
        let asked = self.to_ask.values().chain(self.asked.values()).flatten();
        asked.chain(&self.unproved).cloned().collect()
    }

    /// Those of which the hub has said that the configs went with their type.
    pub(super) fn unproved(&self) -> &BTreeSet<String> {
        &self.unproved
    }

    /// People have confirmed that the type is to be deselected.
    pub(super) fn confirm(&mut self, resource: &str) {
        self.unproved.remove(resource);
        for types in self.to_ask.values_mut().chain(self.asked.values_mut()) {
            types.remove(resource);
        }
    }

    /// Only of these types there may be copies.
    pub(super) fn retain(&mut self, has_copies: &BTreeSet<String>) {
        self.unproved.retain(|resource| has_copies.contains(resource));
    }
}

impl Model {
    /// A config of this kind is about to be gone.
    pub(super) fn doubt_deselection(&mut self, kind: ConfigKind) {
        let selected = self.types.values().filter(|state| state.plan.selected);
        let down = selected.filter(|state| state.plan.direction == Direction::Down);
        let types = down.map(|state| state.plan.at_hub.qualified());
        let types: BTreeSet<String> = types.chain(self.guard.vanished.names().cloned()).collect();
        self.ask_about_config_kind(kind, types);
    }

    /// Asks the hub whether what defines a kind of configs is in place, if that is known; these types may have been
    /// deselected with configs of it.
    pub(super) fn ask_about_config_kind(&mut self, kind: ConfigKind, types: BTreeSet<String>) {
        if self.definitions.known(&kind.resource_type().qualified()).is_some() {
            self.deselections.to_ask.entry(kind).or_default().extend(types);
            self.timers.set_if_idle(Timer::ConfigKind(kind), self.now);
        }
    }

    /// An earlier run knew these deselections as unproved. Configs may have gone since.
    pub(super) fn restore_deselections(&mut self, unproved: BTreeSet<String>) {
        self.deselections.unproved = unproved;
        let types = self.record.downsynced();
        for kind in ConfigKind::ALL {
            self.ask_about_config_kind(kind, types.clone());
        }
    }

    /// Asks the hub about kinds of configs where that is due, and the configs of the kind have been read.
    pub(super) fn verify_config_kinds(&mut self) {
        for kind in ConfigKind::ALL {
            let timer = Timer::ConfigKind(kind);
            if self.selecting.are_known() && self.timers.fires(timer, self.now) {
                self.timers.starts(timer);
                let types = self.deselections.to_ask.remove(&kind).unwrap_or_default();
                self.deselections.asked.insert(kind, types);
                let definitions = Rc::clone(&self.definitions);
                self.request(Request::VerifyConfigs(kind, definitions));
            }
        }
    }

    /// The hub has been asked whether what defines a kind of configs is in place.
    pub(super) fn config_kind_is(&mut self, kind: ConfigKind, result: Result<Option<Withdrawal>, Error>) {
        let timer = Timer::ConfigKind(kind);
        self.timers.ends(timer);
        let types = self.deselections.asked.remove(&kind).unwrap_or_default();
        let withdrawal = match result {
            Ok(withdrawal) => withdrawal,
            Err(error) => {
                self.deselections.to_ask.entry(kind).or_default().extend(types);
                self.timers.retry(timer, self.now, self.chance.f64());
                if error.is_unreachable() {
                    self.side_is_silent(Side::Hub, "reading what defines a type", &error);
                }
                return;
            }
        };
        self.timers.succeeds(timer);
        let resource = kind.resource_type().qualified();
        let has_any = self.selecting.has_any(kind);
        match &withdrawal {
            // It may still be deleting them.
            None | Some(Withdrawal::Going(Some(_))) if has_any => {}
            Some(Withdrawal::Redefined(uid)) if has_any => {
                self.definitions_mut().set(&resource, DefinedBy::Uid(uid.clone()));
            }
            _ => self.definitions_mut().remove(&resource),
        }
        if withdrawal.is_some() {
            let let_go = self.guard.vanished.let_go();
            let types = types.into_iter().filter(|resource| !let_go.contains(resource));
            self.deselections.unproved.extend(types);
        }
        self.keep_guard_in_record();
        // Those that are selected leave the list with it.
        self.replan();
    }

    /// A new plan says what configs select.
    pub(super) fn note_selected(&mut self, plan: &Plan) {
        let before = self.deselections.unproved.len();
        self.deselections
            .unproved
            .retain(|resource| !plan.selects_at_hub(resource));
        if self.deselections.unproved.len() < before {
            self.keep_guard_in_record();
        }
    }
}
