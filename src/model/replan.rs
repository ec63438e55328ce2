//! From what configs select and what discovery has found to running sources.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::discovery::Discovery;
use kube_lite::logging::log_line;
use kube_lite::{ObjectName, ResourceType};

use super::asking::is_gone;
use super::timers::Timer;
use super::turns::{Compared, Following, Making};
use super::{Model, TypeId, TypeState};
use crate::plan::{Added, Direction, Origins, Pair, Plan, SyncedType, TypePlan, steps_are_taken};
use crate::report::Subject;
use crate::side::Side;
use crate::sync::definition::DefinedBy;

/// How many things a plan may be made of without a pause after it: entries of configs, types and objects.
const WITHOUT_PAUSE: usize = 1000;
/// The pause after a larger plan, for each of its things. Making it takes a tenth of that or less, also on a slow board:
/// however often configs or discovery change, the rest of the time is for all else.
const PAUSE: Duration = Duration::from_micros(50);
/// How many steps of the planning one turn of the loop takes: some milliseconds on a fast machine, and less than a tenth
/// of a second on a slow board. Configs of some hundred entries are planned in one turn.
pub const PLAN_SLICE: usize = 4000;
/// What it costs to follow the plan of one type, in such steps.
const STEPS_OF_A_TYPE: usize = 10;
/// Of how many types the record forgets at once that there were copies.
const DROPPED_AT_ONCE: usize = 100;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Model {
    /// Makes the running sources what configs and discovery say: at once, unless that is much and was done just now. One
    /// that is being resolved already is void.
    pub(super) fn replan(&mut self) {
        self.selecting.turns.drop_resolved();
        self.plan_changes();
    }

    /// The same if only the configs have changed: what is being planned already is finished first, so that somebody who
    /// changes them all the time does not keep it from ever being followed.
    pub(super) fn plan_changes(&mut self) {
        match (&self.selecting.turns.plan, self.selecting.pause_until) {
            (Some(Making::Following(_) | Making::Ending(_)), _) => self.selecting.turns.again = true,
            (None, Some(end)) if end > self.now => self.timers.set(Timer::Plan, end),
            _ => self.plan(),
        }
    }

    /// Plans what has changed in the pause after the last plan, however much that is, or continues with a large plan.
    pub(super) fn plan_what_is_due(&mut self) {
        let had_none = self.selecting.turns.spent == 0;
        if had_none && self.timers.fires(Timer::Plan, self.now) {
            self.plan();
        }
        self.selecting.turns.spent = 0;
    }

    /// Puts the configs together, resolves what they ask for, logs what cannot be followed, and follows the plan: as much of
    /// that as fits into a turn of the loop, in steps of the planning. Between two turns, all else is served.
    fn plan(&mut self) {
        let are_known = self.record.saved.is_some() && self.selecting.are_known();
        if !are_known && !self.selecting.turns.are_following() {
            // Which copies may exist is not known yet, or which configs.
            self.selecting.turns.plan = None;
            return;
        }
        let slice = self.settings.plan_slice.max(1);
        let mut left = slice.saturating_sub(self.selecting.turns.spent);
        self.timers.set(Timer::Plan, self.now);
        while left > 0 {
            let making = self.selecting.turns.plan.take();
            let making = making.unwrap_or_else(|| self.begin_plan());
            self.selecting.turns.plan = self.go_on_with_plan(making, &mut left);
            self.selecting.turns.spent = slice - left;
            if self.selecting.turns.plan.is_none() {
                self.timers.clear(Timer::Plan);
                return self.plan_again_if_due();
            }
        }
    }

    fn begin_plan(&mut self) -> Making {
        if self.selecting.changed && !self.selecting.merged {
            self.report.configs_changed();
            self.note_unlearnt();
            return Making::Merging(self.selecting.merging(self.settings.renaming));
        }
        let wanted = Rc::make_mut(&mut self.selecting.wanted);
        wanted.retained = self.record.types().unwrap_or_default();
        wanted.let_go.clone_from(self.guard.vanished.let_go());
        wanted.deselected.clone_from(self.deselections.proved());
        let served = |side| Rc::clone(&self.sides.of(side).asking.discovery);
        Making::Resolving(Plan::resolving(
            Rc::clone(&self.selecting.wanted),
            Rc::clone(&self.settings.filter),
            served(Side::Hub),
            served(Side::Edge),
            self.settings.own_namespace.clone(),
        ))
    }

    /// Continues with a plan, for no more steps than are left. `None` once it is followed.
    fn go_on_with_plan(&mut self, making: Making, left: &mut usize) -> Option<Making> {
        Some(match making {
            Making::Merging(mut wanted) => match wanted.go_on(left) {
                None => Making::Merging(wanted),
                Some(wanted) => {
                    self.selecting.wanted = Rc::new(wanted);
                    // That of the configs which has changed since is planned next.
                    let is_all = std::mem::replace(&mut self.selecting.merged, true);
                    let next = self.begin_plan();
                    self.selecting.merged = is_all;
                    next
                }
            },
            Making::Resolving(mut plan) => match plan.go_on(left) {
                None => Making::Resolving(plan),
                Some(plan) => Making::Resolved(plan),
            },
            Making::Resolved(plan) => {
                spend(left, plan.problems.len() + plan.missing.len());
                self.report_plan(&plan);
                let selected = |state: &TypeState| (Rc::clone(&state.plan.selector), Rc::clone(&state.plan.yields_to));
                let known = self.types.values().map(|state| (pair_of(&state.plan), selected(state)));
                Making::Comparing(Compared::with(plan, known.collect()))
            }
            Making::Comparing(mut compared) => match compared.go_on(left) {
                None => Making::Comparing(compared),
                Some(compared) => {
                    spend(left, compared.plan.types.len() + self.types.len());
                    Making::Following(self.begin_to_follow(compared))
                }
            },
            Making::Following(mut following) => {
                while *left > 0 {
                    let Some((pair, planned)) = following.types.next() else {
                        self.plan_is_followed();
                        return Some(Making::Ending(self.deselected_types().into_iter()));
                    };
                    let known = following.known.get(&pair).copied();
                    let added = following.added.remove(&pair).unwrap_or_default();
                    spend(left, self.follow_type(known, planned, &added));
                }
                Making::Following(following)
            }
            Making::Ending(mut deselected) => {
                let next: Vec<TypeId> = deselected.by_ref().take(DROPPED_AT_ONCE).collect();
                if next.is_empty() {
                    return None;
                }
                spend(left, next.len() * STEPS_OF_A_TYPE);
                self.drop_types_without_copies(&next);
                Making::Ending(deselected)
            }
        })
    }

    /// Notes what a plan says beyond its types, and ends what it says nothing of.
    fn begin_to_follow(&mut self, compared: Compared) -> Following {
        let Compared { mut plan, added } = compared;
        for side in [Side::Hub, Side::Edge] {
            if plan.unknown.has_more_than(&self.selecting.unknown, side) {
                self.asks_at_once(side);
            }
        }
        self.selecting.unknown.clone_from(&plan.unknown);
        if !plan.is_puzzled {
            self.drop_catalogue();
        }
        self.selecting.open.clone_from(&plan.open);
        self.note_selected(&plan);
        self.note_vanished(&plan);
        self.retire_types(&plan);
        self.note_selected_namespaces(std::mem::take(&mut plan.namespaces));
        self.update_record(&mut plan);
        let known = self.types.iter().map(|(&id, state)| (pair_of(&state.plan), id));
        Following {
            known: known.collect(),
            types: plan.types.into_iter(),
            added,
        }
    }

    /// Returns how many steps that took.
    fn follow_type(&mut self, known: Option<TypeId>, planned: TypePlan, added: &Added) -> usize {
        let state = known.and_then(|id| self.types.get(&id));
        let changed = state.filter(|state| !state.plan.is(&planned));
        let objects = changed.map_or(0, |state| state.inventory.len());
        self.plan_type(known, planned, added);
        STEPS_OF_A_TYPE + objects
    }

    /// All types follow the new plan.
    fn plan_is_followed(&mut self) {
        self.selecting.changed &= !self.selecting.merged;
        for side in [Side::Hub, Side::Edge] {
            self.ask_for_what_is_unknown(side);
        }
        self.drop_needless_questions();
        self.watch_hub_namespaces();
        self.start_origin_sources();
        self.pause_planning();
    }

    /// Nothing is left to do of the plan.
    fn plan_again_if_due(&mut self) {
        if std::mem::take(&mut self.selecting.turns.again) || self.selecting.changed {
            let pause = self.selecting.pause_until.unwrap_or(self.now);
            self.timers.set(Timer::Plan, pause);
        }
    }

    /// How many things a plan is made of.
    fn things(&self) -> usize {
        let wanted = &self.selecting.wanted;
        let objects = self.types.values().map(|state| 1 + state.inventory.len());
        wanted.entries.len() + wanted.conversions.len() + objects.sum::<usize>()
    }

    fn pause_planning(&mut self) {
        let things = self.things();
        let pause = u32::try_from(things).map_or(Duration::MAX, |things| PAUSE * things);
        let is_long = things > WITHOUT_PAUSE;
        self.selecting.pause_until = is_long.then(|| self.now + pause.min(LONGEST_PAUSE));
    }

    /// Brings the record up to date, and takes out of the plan what has to wait for that: types that it does not name
    /// yet, and types of which the side of their origins has not yet said often enough that it lacks them.
    fn update_record(&mut self, plan: &mut Plan) {
        let mut record = self.record.types().unwrap_or_default();
        record.extend(plan.types.values().filter(|planned| planned.selected).map(synced_type));
        // A retained type that the side of its copies no longer serves has no copies.
        let lost = plan
            .missing
            .iter()
            .filter(|missing| !missing.is_origin() && missing.place.is_none());
        let lost = lost.map(|missing| (missing.direction, &*missing.group, &*missing.resource));
        let lost: BTreeSet<_> = lost.collect();
        let lost = |known: &SyncedType| {
            lost.contains(&(known.direction, &*known.group, &*known.resource))
                && self.selecting.without_copies.contains(known)
        };
        record.retain(|known| !lost(known));
        self.set_record(record);
        let gone = &self.selecting.gone;
        plan.types.retain(|_, planned| {
            let synced = synced_type(planned);
            let rounds = gone.get(&synced).map_or(0, |(rounds, _)| *rounds);
            self.record.names(&synced) && (!planned.gone_at_origin || is_gone(rounds, planned.selected))
        });
    }

    fn plan_type(&mut self, known: Option<TypeId>, planned: TypePlan, added: &Added) {
        let known = known.and_then(|id| self.types.get(&id).map(|state| (id, state)));
        if let Some((type_id, state)) = known {
            if state.plan.is(&planned) {
                return;
            }
            if state.plan.at_hub == planned.at_hub && state.plan.at_edge == planned.at_edge {
                if state.plan.not_stored.is_none() {
                    note_what_is_not_stored(&planned);
                }
                self.change_plan(type_id, planned, added);
                return;
            }
            self.drop_type(type_id);
        }
        if planned.at_edge.version != planned.at_hub.version {
            log_line!(
                Info,
                OtherVersionUsed,
                "a side serves another version, which is used there",
                side = planned.direction.copy().word(),
                resource = planned.at_hub.qualified(),
                hub = planned.at_hub.version,
                edge = planned.at_edge.version
            );
        }
        note_what_is_not_stored(&planned);
        let type_id = self.next_type;
        self.next_type += 1;
        let filter = Rc::clone(&self.settings.filter);
        self.types
            .insert(type_id, TypeState::new(planned, filter, self.hashing));
        self.timers.set(Timer::Definitions, self.now);
        self.ask_about_held(type_id);
        self.start_copy_source(type_id);
    }

    /// Stops types that a side is known not to serve any more. Deselected ones are still in the plan, retained. One that
    /// is served at several versions is not in it as long as it is not known which of them is preferred.
    fn retire_types(&mut self, plan: &Plan) {
        let answered =
            |discovery: &Discovery, resource: &ResourceType| discovery.knows(&resource.group, &resource.version);
        let gone: Vec<TypeId> = self
            .types
            .iter()
            .filter(|(_, state)| {
                !plan.types.contains_key(&pair_of(&state.plan))
                    && !plan.unknown.groups.contains(&state.plan.direction.origin())
                    && answered(self.sides.discovery(Side::Hub), &state.plan.at_hub)
                    && answered(self.sides.discovery(Side::Edge), &state.plan.at_edge)
            })
            .map(|(&id, _)| id)
            .collect();
        for type_id in gone {
            self.drop_type(type_id);
        }
    }

    /// Reads both sides of a type again, because what is selected of it has changed.
    pub(super) fn restart_type(&mut self, type_id: TypeId) {
        self.end_sources(type_id);
        self.forget_all_without_copy(type_id);
        self.queue.remove_where(|key| key.type_id == type_id);
        self.ask_about_held(type_id);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.inventory.list_again();
        }
        self.start_copy_source(type_id);
    }

    /// The same, and nothing that is known of its copies counts any more: their versions cannot be compared with new
    /// ones.
    pub(super) fn restart_type_with_nothing_known(&mut self, type_id: TypeId) {
        self.clear_failures(type_id);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.drop_all_known();
        }
        self.restart_type(type_id);
    }

    fn end_sources(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.copies_listed = false;
        let copies = state.copy_source.take();
        let origins = std::mem::take(&mut state.origin_sources);
        let unlabelled = std::mem::take(&mut state.unlabelled_sources);
        let once = std::mem::take(&mut state.read_once);
        let all = origins.into_values().chain(once.into_values());
        for id in all.chain(unlabelled.into_values()).chain(copies) {
            self.end_source(id);
        }
    }

    /// Nothing of the type counts as failing any more.
    fn clear_failures(&mut self, type_id: TypeId) {
        for (_, subjects) in self.may_be_failing(type_id) {
            self.report.clear_all(&subjects);
        }
        self.returns_no_status(type_id);
    }

    /// What is reported of the objects of a type, by the names of their copies, if anything at all is failing.
    pub(super) fn may_be_failing(&self, type_id: TypeId) -> Vec<(ObjectName, [Subject; 2])> {
        let Some(state) = self.types.get(&type_id).filter(|_| self.report.failing() > 0) else {
            return Vec::new();
        };
        let names = state.inventory.names(|_| true).into_iter();
        names
            .filter_map(|name| state.subjects(&name).map(|subjects| (name, subjects)))
            .collect()
    }

    fn drop_type(&mut self, type_id: TypeId) {
        self.clear_failures(type_id);
        self.forget_all_without_copy(type_id);
        self.end_sources(type_id);
        self.queue.remove_where(|key| key.type_id == type_id);
        let Some(TypeState { plan, .. }) = self.types.remove(&type_id) else {
            return;
        };
        self.type_is_dropped(type_id, &plan);
        // What is served again may be defined by something that can be deleted.
        let resource = plan.at_hub.qualified();
        if self.definitions.known(&resource) == Some(&DefinedBy::Nothing) {
            self.definitions_mut().remove(&resource);
        }
    }

    /// Those of which nothing was dropped until all types follow the new plan.
    fn deselected_types(&self) -> Vec<TypeId> {
        let deselected = self.types.iter().filter(|(_, state)| !state.plan.selected);
        deselected.map(|(&id, _)| id).collect()
    }

    /// A deselected type is dropped, and leaves the record, when no copy of it is left. The plan that is being followed may
    /// select it again.
    pub(super) fn drop_type_without_copies(&mut self, type_id: TypeId) {
        if !self.selecting.turns.are_following() {
            self.drop_types_without_copies(&[type_id]);
        }
    }

    /// The same of several, for which the record is changed once.
    fn drop_types_without_copies(&mut self, types: &[TypeId]) {
        let mut dropped = BTreeSet::new();
        for &type_id in types {
            let Some(of) = self.without_copies(type_id) else {
                continue;
            };
            self.drop_type(type_id);
            self.drop_finished(&of);
            // A later run has to know that there was upsync, to delete these namespaces.
            if of.direction == Direction::Down || !self.hub_namespaces.are_left() {
                dropped.insert(Pair::of_synced(&of));
            }
        }
        if dropped.is_empty() {
            return;
        }
        let mut record = self.record.types().unwrap_or_default();
        record.retain(|known| !dropped.contains(&Pair::of_synced(known)));
        self.set_record(record);
    }

    /// What the record keeps of a deselected type of which no copy is left.
    fn without_copies(&self, type_id: TypeId) -> Option<SyncedType> {
        let state = self.types.get(&type_id)?;
        let may_have_copies = state.inventory.may_have_ours() || !state.ends.is_empty();
        let of = synced_type(&state.plan);
        let cannot_be_listed = !state.copies_listed && state.has_listed_copies(&self.sources);
        let are_known = state.shows_all_copies() || cannot_be_listed && self.record.never_had_copies(&of);
        (!state.plan.selected && are_known && !may_have_copies).then_some(of)
    }
}

/// So many steps are taken of those that are left.
fn spend(left: &mut usize, steps: usize) {
    steps_are_taken(steps);
    *left = left.saturating_sub(steps);
}

pub(super) fn pair_of(plan: &TypePlan) -> Pair {
    let key = |resource: &ResourceType| (resource.group.clone(), resource.resource.clone());
    Pair {
        direction: plan.direction,
        hub: key(&plan.at_hub),
        edge: key(&plan.at_edge),
    }
}

/// What the record keeps of a type, so that a later run finds its copies.
pub(super) fn synced_type(plan: &TypePlan) -> SyncedType {
    let (copies, origins) = match plan.direction {
        Direction::Down => (&plan.at_edge, &plan.at_hub),
        Direction::Up => (&plan.at_hub, &plan.at_edge),
    };
    let of = Origins {
        group: origins.group.clone(),
        resource: origins.resource.clone(),
        kind: origins.kind.clone(),
    };
    SyncedType {
        direction: plan.direction,
        group: copies.group.clone(),
        version: copies.version.clone(),
        resource: copies.resource.clone(),
        of: Some(of).filter(|_| origins.qualified() != copies.qualified()),
    }
}

/// Says that the objects of a type are stored at another version than the one that is synced.
fn note_what_is_not_stored(planned: &TypePlan) {
    if let Some(place) = &planned.not_stored {
        log_line!(
            Info,
            NotStoredVersion,
            "objects are stored at another version; what the configured one lacks is not synced",
            side = planned.direction.origin().word(),
            resource = planned.at_origin().qualified(),
            version = planned.at_origin().version,
            config = place.config,
            field = format_args!("spec.{}", place.field)
        );
    }
}
