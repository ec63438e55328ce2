//! Whether people have deselected a type, or its configs went with their own type, as when somebody deletes all CRDs of
//! the hub.
//!
//! A type that nothing selects is read on, and its copies are deleted with their origins. If the hub lacks the type
//! itself, its origins are gone for good; so then its copies are deleted only if people have deselected it, which has to
//! be proved. The proof: the hub is asked, after nothing selects the type any more, whether what defines each kind of
//! configs is still what it was when they selected it. That is known like what defines types, as long as there are
//! configs, also over a restart. Without a proof, copies of a type that the hub lacks are held
//! ([`super::guard::vanished`]), until people confirm, or a config has selected it again and no longer does.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::Error;

use super::config_kind::ConfigKind;
use super::definitions::definition_of;
use super::timers::Timer;
use super::{Model, Request};
use crate::plan::{Plan, Selects};
use crate::report::Subject;
use crate::side::Side;
use crate::sync::definition::{DefinedBy, Withdrawal};

/// How long what defines a kind of configs is known though there are none any more, as long as nothing depends on it.
const UNUSED_WAIT: Duration = Duration::from_secs(10);

/// Types of the record that nothing selects and that a CRD may define, as they are named at the hub, `resource.group`.
/// Each is in one of the first three.
#[derive(Debug, Default)]
pub(super) struct Deselections {
    /// The hub has not said yet whether people have deselected them.
    open: BTreeSet<String>,
    /// People have deselected them.
    proved: BTreeSet<String>,
    /// Their configs were deleted with their own type, or may have been.
    unproved: BTreeSet<String>,
    /// Those of `open` that the question under way is about.
    asked: BTreeSet<String>,
    /// Kinds of which there were configs when the last plan was made, and of which it was not known then what defines
    /// them.
    unlearnt: Vec<ConfigKind>,
    /// The same of the plan that is being made: its configs may be gone before it is followed.
    unlearnt_of_next: Vec<ConfigKind>,
    /// Configs may have selected what is proved, and gone again, while nobody watched: before this run, or before a list
    /// that was not as the one before it. The hub has not been asked since.
    has_gap: bool,
}

/// Why a type that nothing selects is held where the hub lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproved {
    /// Its configs were deleted with their own type, or may have been.
    WithConfigs,
    /// The hub has not said yet.
    Open,
}

impl Deselections {
    /// Those that people have deselected.
    pub(super) fn proved(&self) -> &BTreeSet<String> {
        &self.proved
    }

    /// Those whose configs were deleted with their own type, or may have been.
    pub(super) fn unproved(&self) -> &BTreeSet<String> {
        &self.unproved
    }

    /// True if the hub has not said of some yet whether people have deselected them.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Why it is not proved that people have deselected the type; `None` if it is, or if a config selects it.
    pub(super) fn why(&self, resource: &str) -> Option<Unproved> {
        if self.unproved.contains(resource) {
            Some(Unproved::WithConfigs)
        } else if self.open.contains(resource) {
            Some(Unproved::Open)
        } else {
            None
        }
    }

    /// People have confirmed that the type is deselected.
    pub(super) fn confirm(&mut self, resource: &str) {
        self.keep_if(|known| known != resource);
        self.proved.insert(resource.to_owned());
    }

    fn keep_if(&mut self, is_kept: impl Fn(&str) -> bool) {
        for types in [&mut self.open, &mut self.proved, &mut self.unproved, &mut self.asked] {
            types.retain(|resource| is_kept(resource));
        }
    }

    /// The hub has the type again: that people had confirmed its deselection says nothing of what comes after.
    pub(super) fn is_back(&mut self, resource: &str) {
        if self.proved.remove(resource) {
            self.unproved.insert(resource.to_owned());
        }
    }

    /// Follows a plan: returns the types that nothing selects any more, and of which that was not known.
    fn follow(&mut self, selects: &BTreeMap<String, Selects>) -> BTreeSet<String> {
        self.keep_if(|resource| selects.get(resource).is_some_and(|selects| *selects != Selects::Yes));
        let deselected = selects.iter().filter(|(_, selects)| **selects == Selects::No);
        let deselected = deselected.map(|(resource, _)| resource);
        let is_known = |resource: &String| self.proved.contains(resource) || self.why(resource).is_some();
        deselected.filter(|resource| !is_known(resource)).cloned().collect()
    }
}

impl Model {
    /// A new plan says what configs select.
    pub(super) fn note_selected(&mut self, plan: &Plan) {
        let before = (self.deselections.proved.len(), self.deselections.unproved.len());
        let new = self.deselections.follow(&plan.selects);
        let of_configs = std::mem::take(&mut self.deselections.unlearnt_of_next);
        let kinds = ConfigKind::ALL.into_iter().filter(|_| !plan.selects.is_empty());
        let unlearnt = kinds.filter(|kind| of_configs.contains(kind) || self.is_unlearnt(*kind));
        let unlearnt = unlearnt.collect();
        let before_plan = std::mem::replace(&mut self.deselections.unlearnt, unlearnt);
        let mut unlearnt = before_plan.iter().chain(&self.deselections.unlearnt);
        // Without any kind that is known, the record is that of a run that did not know it either.
        if unlearnt.all(|&kind| self.knows_what_defines(kind)) && self.known_kinds().next().is_some() {
            self.deselections.open.extend(new);
        } else {
            self.deselections.unproved.extend(new);
        }
        if before != (self.deselections.proved.len(), self.deselections.unproved.len()) {
            self.keep_guard_in_record();
        }
        self.ask_about_configs_if_open();
    }

    /// The configs as they are now become the next plan.
    pub(super) fn note_unlearnt(&mut self) {
        let kinds = ConfigKind::ALL.into_iter();
        self.deselections.unlearnt_of_next = kinds.filter(|&kind| self.is_unlearnt(kind)).collect();
    }

    fn is_unlearnt(&self, kind: ConfigKind) -> bool {
        self.selecting.has_any(kind) && !self.knows_what_defines(kind)
    }

    fn knows_what_defines(&self, kind: ConfigKind) -> bool {
        self.definitions.known(&kind.qualified()).is_some()
    }

    /// Kinds that there are or were configs of.
    fn known_kinds(&self) -> impl Iterator<Item = ConfigKind> {
        ConfigKind::ALL
            .into_iter()
            .filter(|&kind| self.knows_what_defines(kind))
    }

    /// True if there are none any more of a kind, which people may have deleted.
    fn has_unused_kind(&self) -> bool {
        self.known_kinds().any(|kind| !self.selecting.has_any(kind))
    }

    fn ask_about_configs_if_open(&mut self) {
        if self.deselections.open.len() > self.deselections.asked.len() {
            self.timers.set_if_idle(Timer::ConfigKinds, self.now);
        } else if self.has_unused_kind() {
            self.timers.set_if_idle(Timer::ConfigKinds, self.now + UNUSED_WAIT);
        }
    }

    /// A list of configs is not as the one before it, or the first.
    pub(super) fn configs_have_a_gap(&mut self) {
        self.deselections.has_gap = true;
        self.ask_about_configs();
    }

    /// Configs may be defined again, by another definition.
    pub(super) fn ask_about_configs(&mut self) {
        if self.known_kinds().next().is_some() {
            self.timers.set_earlier(Timer::ConfigKinds, self.now);
        }
    }

    /// An earlier run knew these. What this one has found out since counts.
    pub(super) fn restore_deselections(&mut self, proved: BTreeSet<String>, unproved: BTreeSet<String>) {
        let known = &mut self.deselections;
        let of_this_run = |resource: &String| known.proved.contains(resource) || known.why(resource).is_some();
        let proved: Vec<String> = proved.into_iter().filter(|resource| !of_this_run(resource)).collect();
        let unproved = unproved.into_iter().filter(|resource| !known.proved.contains(resource));
        known.unproved.extend(unproved);
        known.proved.extend(proved);
        let Deselections { open, unproved, .. } = known;
        open.retain(|resource| !unproved.contains(resource));
        self.configs_have_a_gap();
    }

    /// Asks the hub about the kinds of configs where that is due.
    pub(super) fn verify_config_kinds(&mut self) {
        if !self.selecting.are_known() || !self.timers.fires(Timer::ConfigKinds, self.now) {
            return;
        }
        let kinds: Vec<ConfigKind> = self.known_kinds().collect();
        if kinds.is_empty() {
            self.are_unproved();
            return self.deselections_are_judged();
        }
        self.timers.starts(Timer::ConfigKinds);
        self.deselections.asked = self.deselections.open.clone();
        self.effects
            .request(Request::VerifyConfigs(kinds, Rc::clone(&self.definitions)));
    }

    /// The hub has been asked whether what defines the kinds of configs is in place.
    pub(super) fn on_config_kinds(&mut self, answers: Vec<(ConfigKind, Result<Option<Withdrawal>, Error>)>) {
        self.timers.ends(Timer::ConfigKinds);
        // One that cannot be read, and could not be before, may select anything.
        let (mut is_open, mut is_withdrawn) = (self.selecting.has_unread(), false);
        for (kind, answer) in answers {
            match answer {
                Ok(None) if self.selecting.has_listed(kind) => {
                    self.report.works(&what_defines(kind));
                }
                Ok(None) => {
                    // It is defined and not served: there may be configs of it.
                    is_open = true;
                    self.poll_config_kind_soon(kind);
                }
                Ok(Some(withdrawal)) => {
                    is_withdrawn = true;
                    self.config_kind_is_withdrawn(kind, withdrawal);
                }
                Err(error) if error.is_unreachable() => {
                    is_open = true;
                    self.side_is_silent(Side::Hub, "reading what defines the configs", &error);
                }
                Err(error) => {
                    is_open = true;
                    self.fails(what_defines(kind), "reading what defines the configs", &error);
                }
            }
        }
        let asked = std::mem::take(&mut self.deselections.asked);
        if is_withdrawn {
            self.are_unproved();
        } else if is_open {
            self.timers.retry(Timer::ConfigKinds, self.now, self.chance.f64());
            self.update_reasons();
            return;
        } else {
            let known = &mut self.deselections;
            known.open.retain(|resource| !asked.contains(resource));
            known.proved.extend(asked);
        }
        self.deselections_are_judged();
    }

    fn deselections_are_judged(&mut self) {
        self.timers.succeeds(Timer::ConfigKinds);
        self.deselections.has_gap = false;
        self.drop_unused_kinds();
        self.keep_guard_in_record();
        self.replan();
    }

    /// Whatever nothing selects by now may have been selected by configs that went with their own type; what was proved
    /// before too, if that was not seen.
    fn are_unproved(&mut self) {
        let known = &mut self.deselections;
        known.asked.clear();
        known.unproved.append(&mut known.open);
        if known.has_gap {
            known.unproved.append(&mut known.proved);
        }
    }

    fn config_kind_is_withdrawn(&mut self, kind: ConfigKind, withdrawal: Withdrawal) {
        self.report.works(&what_defines(kind));
        let resource = kind.qualified();
        if !self.selecting.has_any(kind) {
            self.definitions_mut().remove(&resource);
        } else if let Withdrawal::Redefined(uid) = withdrawal {
            // One that is being deleted may still be deleting its configs.
            self.definitions_mut().set(&resource, DefinedBy::Uid(uid));
        }
    }

    /// People have deleted all configs of a kind, one by one: what becomes of the kind says nothing any more. That is so
    /// only if there is nothing of which it is still to be asked.
    fn drop_unused_kinds(&mut self) {
        if !self.deselections.open.is_empty() || self.selecting.changed {
            return;
        }
        for kind in ConfigKind::ALL {
            if !self.selecting.has_any(kind) {
                self.definitions_mut().remove(&kind.qualified());
            }
        }
    }
}

fn what_defines(kind: ConfigKind) -> Subject {
    definition_of(&kind.qualified())
}
