//! From what configs select and what discovery has found to running sources.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use super::asking::is_gone;
use super::configs::Unfollowed;
use super::timers::Timer;
use super::{Model, TypeId, TypeState};
use crate::cluster::discovery::Discovery;
use crate::cluster::{ObjectName, ResourceType, Side};
use crate::logging::log_line;
use crate::plan::{Direction, Origins, Pair, Plan, Selector, SyncedType, TypePlan};
use crate::report::Subject;
use crate::sync::definition::DefinedBy;

/// How many things a plan may be made of without a pause after it: entries of configs, types and objects.
const WITHOUT_PAUSE: usize = 1000;
/// The pause after a larger plan, for each of its things. Making it takes a tenth of that or less, also on a slow board:
/// however often configs or discovery change, the rest of the time is for all else.
const PAUSE: Duration = Duration::from_micros(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Model {
    /// Makes the running sources what configs and discovery say: at once, unless that is much and was done just now.
    pub(super) fn replan(&mut self) {
        self.drop_resolved();
        match self.selecting.pause_until {
            Some(end) if end > self.now => self.timers.set(Timer::Plan, end),
            _ => self.plan(),
        }
    }

    /// What a plan is made of has changed: one that is not followed yet is void.
    pub(super) fn drop_resolved(&mut self) {
        let turns = &mut self.selecting.turns;
        turns.overtaken |= turns.plan.take().is_some();
    }

    /// Plans what has changed in the pause after the last plan, however much that is, or continues with a large plan.
    pub(super) fn plan_what_is_due(&mut self) {
        let had_one = std::mem::take(&mut self.selecting.turns.had_one);
        if !had_one && self.timers.fires(Timer::Plan, self.now) {
            self.plan();
            self.selecting.turns.had_one = false;
        }
    }

    /// Puts the configs together, resolves what they ask for, logs what cannot be followed, and follows the plan. Where that
    /// is much, each of them has a turn of the loop: between them, all else is served.
    fn plan(&mut self) {
        let Some(retained) = self.record.types() else {
            return; // Which copies may exist is not known yet.
        };
        if !self.selecting.are_known() {
            return;
        }
        self.timers.clear(Timer::Plan);
        self.selecting.turns.had_one = true;
        match self.selecting.turns.plan.take() {
            Some(Unfollowed::Resolved(plan)) => {
                self.report_plan(&plan);
                self.continue_next_turn(Unfollowed::Reported(plan));
                return;
            }
            Some(Unfollowed::Reported(plan)) => {
                self.follow(plan);
                return;
            }
            None => {}
        }
        if self.selecting.changed && !self.selecting.merged {
            self.report.configs_changed();
            self.selecting.merge(self.settings.renaming);
            if self.things() > WITHOUT_PAUSE {
                self.timers.set(Timer::Plan, self.now);
                return;
            }
        }
        let wanted = &mut self.selecting.wanted;
        wanted.retained = retained;
        wanted.let_go.clone_from(self.guard.vanished.let_go());
        wanted.deselected.clone_from(self.deselections.proved());
        let (hub, edge) = self.discoveries();
        let own = self.settings.own_namespace.as_deref();
        let plan = Plan::resolve(&self.selecting.wanted, &self.settings.filter, hub, edge, own);
        if self.things() > WITHOUT_PAUSE && !self.selecting.turns.overtaken {
            self.continue_next_turn(Unfollowed::Resolved(plan));
        } else {
            self.report_plan(&plan);
            self.follow(plan);
        }
    }

    fn continue_next_turn(&mut self, plan: Unfollowed) {
        self.selecting.turns.plan = Some(plan);
        self.timers.set(Timer::Plan, self.now);
    }

    fn follow(&mut self, mut plan: Plan) {
        (self.selecting.changed, self.selecting.turns.overtaken) = (false, false);
        self.selecting.unknown.clone_from(&plan.unknown);
        self.selecting.open.clone_from(&plan.open);
        self.note_selected(&plan);
        self.note_vanished(&plan);
        self.retire_types(&plan);
        self.note_selected_namespaces(&plan);
        self.update_record(&mut plan);
        let known = self.types.iter().map(|(&id, state)| (pair_of(&state.plan), id));
        let known: BTreeMap<Pair, TypeId> = known.collect();
        let mut compared = Compared::default();
        for (pair, mut planned) in std::mem::take(&mut plan.types) {
            let known = known.get(&pair).copied();
            if let Some(state) = known.and_then(|id| self.types.get(&id)) {
                compared.keep_if_same(&state.plan.selector, &mut planned.selector);
                compared.keep_if_same(&state.plan.yields_to, &mut planned.yields_to);
            }
            self.plan_type(known, planned);
        }
        self.selecting.added = None;
        for side in [Side::Hub, Side::Edge] {
            self.ask_for_what_is_unknown(side);
        }
        self.drop_needless_questions();
        self.watch_hub_namespaces();
        self.start_origin_sources();
        self.pause_planning();
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

    fn plan_type(&mut self, known: Option<TypeId>, planned: TypePlan) {
        let known = known.and_then(|id| self.types.get(&id).map(|state| (id, state)));
        if let Some((type_id, state)) = known {
            if state.plan == planned {
                return;
            }
            if state.plan.at_hub == planned.at_hub && state.plan.at_edge == planned.at_edge {
                self.change_plan(type_id, planned);
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
        let type_id = self.next_type;
        self.next_type += 1;
        let filter = Rc::clone(&self.settings.filter);
        self.types
            .insert(type_id, TypeState::new(planned, filter, self.hashing));
        self.timers.set(Timer::Definitions, self.now);
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
                    && answered(self.discovery(Side::Hub), &state.plan.at_hub)
                    && answered(self.discovery(Side::Edge), &state.plan.at_edge)
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
        self.end_sources(type_id);
        self.queue.remove_where(|key| key.type_id == type_id);
        let Some(TypeState { plan, .. }) = self.types.remove(&type_id) else {
            return;
        };
        self.end_holds_of(type_id, &plan);
        // What is served again may be defined by something that can be deleted.
        let resource = plan.at_hub.qualified();
        if self.definitions.known(&resource) == Some(&DefinedBy::Nothing) {
            self.definitions_mut().remove(&resource);
        }
    }

    /// A deselected type is dropped, and leaves the record, when no copy of it is left.
    pub(super) fn drop_type_without_copies(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let may_have_copies = state.inventory.may_have_ours() || !state.ends.is_empty();
        if state.plan.selected || !state.copies_listed || may_have_copies {
            return;
        }
        let dropped = synced_type(&state.plan);
        self.drop_type(type_id);
        self.drop_finished(&dropped);
        if dropped.direction == Direction::Up && self.hub_namespaces.are_left() {
            // A later run has to know that there was upsync, to delete these namespaces.
            return;
        }
        let mut record = self.record.types().unwrap_or_default();
        record.retain(|known| !known.is_same(&dropped));
        self.set_record(record);
    }
}

/// The last two selections that were compared, and whether they select the same. Those of many types may be long and
/// alike: each then costs no more than its pointers.
#[derive(Default)]
struct Compared(Option<(Rc<Selector>, Rc<Selector>, bool)>);

impl Compared {
    /// A selection that has not changed stays the one that it was.
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

fn pair_of(plan: &TypePlan) -> Pair {
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
