//! From what configs select and what discovery has found to running sources.

use super::asking::is_gone;
use super::timers::Timer;
use super::{Model, TypeId, TypeState};
use crate::cluster::discovery::Discovery;
use crate::cluster::{ObjectName, ResourceType, Side};
use crate::logging::log_line;
use crate::plan::{Direction, Origins, Pair, Plan, SyncedType, TypePlan};
use crate::report::Subject;
use crate::sync::definition::DefinedBy;

impl Model {
    /// Makes the running sources what configs and discovery say.
    pub(super) fn replan(&mut self) {
        let Some(retained) = self.record.types() else {
            return; // Which copies may exist is not known yet.
        };
        if !self.selecting.are_known() {
            return;
        }
        if std::mem::take(&mut self.selecting.changed) {
            self.report.configs_changed();
        }
        let mut wanted = self.selecting.wanted(self.settings.renaming);
        wanted.retained = retained;
        wanted.let_go.clone_from(self.guard.vanished.let_go());
        wanted.deselected.clone_from(self.deselections.proved());
        self.selecting.wanted = wanted;
        let (hub, edge) = self.discoveries();
        let own = self.settings.own_namespace.as_deref();
        let mut plan = Plan::resolve(&self.selecting.wanted, &self.settings.filter, hub, edge, own);
        self.report_plan(&plan);
        self.selecting.missing.clone_from(&plan.missing);
        self.selecting.unknown.clone_from(&plan.unknown);
        self.selecting.open.clone_from(&plan.open);
        self.note_selected(&plan);
        self.note_vanished(&plan);
        self.retire_types(&plan);
        self.update_record(&mut plan);
        for (pair, planned) in std::mem::take(&mut plan.types) {
            self.plan_type(&pair, planned);
        }
        for side in [Side::Hub, Side::Edge] {
            self.ask_for_what_is_unknown(side);
        }
        self.drop_needless_questions();
        self.watch_hub_namespaces();
        self.start_origin_sources();
    }

    /// Brings the record up to date, and takes out of the plan what has to wait for that: types that it does not name
    /// yet, and types of which the side of their origins has not yet said often enough that it lacks them.
    fn update_record(&mut self, plan: &mut Plan) {
        let mut record = self.record.types().unwrap_or_default();
        record.extend(plan.types.values().filter(|planned| planned.selected).map(synced_type));
        // A retained type that the side of its copies no longer serves has no copies.
        let lost = |known: &SyncedType| {
            let is_retained = plan.missing.iter().any(|missing| {
                !missing.is_origin()
                    && missing.place.is_none()
                    && (missing.direction, &missing.group, &missing.resource)
                        == (known.direction, &known.group, &known.resource)
            });
            is_retained && self.selecting.without_copies.contains(known)
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

    fn plan_type(&mut self, pair: &Pair, planned: TypePlan) {
        let known = self.types.iter().find(|(_, state)| pair_of(&state.plan) == *pair);
        if let Some((&type_id, state)) = known {
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
        let filter = std::rc::Rc::clone(&self.settings.filter);
        self.types.insert(type_id, TypeState::new(planned, filter));
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
