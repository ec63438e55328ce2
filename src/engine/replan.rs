//! From configs and discovery to running sources.

use std::collections::{BTreeMap, BTreeSet};

use super::asking::GONE_ROUNDS;
use super::{Engine, Feed, TypeId, TypeState};
use crate::api::syncer_config::{self, SyncerConfig};
use crate::api::{GROUP, VERSION};
use crate::cluster::discovery::Discovery;
use crate::cluster::{Error, ResourceType, Scope, Side};
use crate::plan::{Missing, Plan, Problem, SyncedType, TypePlan, Wanted};
use crate::report::Subject;
use crate::source::{Reading, Style};
use crate::sync::object::Meta;

/// The configs, and what they ask for.
#[derive(Default)]
pub(super) struct Selecting {
    configs: BTreeMap<String, SyncerConfig>,
    /// Names that the list under way has given so far.
    listing: Option<BTreeSet<String>>,
    /// The configs have been read completely once.
    known: bool,
    /// The configs are not what the plan was made from.
    changed: bool,
    pub(super) wanted: Wanted,
    pub(super) missing: Vec<Missing>,
    problems: BTreeSet<Problem>,
    /// How often in a row the hub has said that it does not serve a retained type, by group and plural.
    pub(super) gone: BTreeMap<(String, String), u32>,
    /// Configs that cannot be read, by name; their last readable form stays in force.
    unreadable: BTreeSet<Problem>,
}

impl Selecting {
    pub(super) fn list_begins(&mut self) {
        self.listing = Some(BTreeSet::new());
    }

    /// True if the config was known to be unreadable.
    fn forget_problem(&mut self, config: &str) -> bool {
        let before = self.unreadable.len();
        self.unreadable.retain(|problem| problem.config != config);
        self.unreadable.len() < before
    }
}

impl Engine {
    pub(super) fn watch_configs(&mut self) {
        let resource = ResourceType {
            group: GROUP.into(),
            version: VERSION.into(),
            resource: syncer_config::RESOURCE.into(),
            kind: syncer_config::KIND.into(),
            namespaced: false,
        };
        let reading = Reading {
            resource,
            scope: Scope::default(),
            style: Style::Whole,
        };
        self.start_source(Feed::Configs, reading);
    }

    pub(super) fn config_object(&mut self, object: &[u8]) {
        let Ok(meta) = Meta::parse(object) else {
            return;
        };
        if let Some(listing) = &mut self.selecting.listing {
            listing.insert(meta.name.clone());
        }
        let name = meta.name;
        let was_unreadable = self.selecting.forget_problem(&name);
        match SyncerConfig::parse(object) {
            Ok(config) => {
                let old = self.selecting.configs.insert(name, config.clone());
                if old.as_ref() == Some(&config) && !was_unreadable {
                    return;
                }
            }
            Err(error) => {
                let problem = Problem {
                    config: name,
                    field: String::new(),
                    message: format!("cannot be read, its last readable form stays in force: {error}"),
                };
                self.selecting.unreadable.insert(problem);
            }
        }
        self.selecting.changed = true;
        if self.selecting.known && self.selecting.listing.is_none() {
            self.replan();
        }
    }

    pub(super) fn config_unchanged(&mut self, meta: &Meta) {
        if let Some(listing) = &mut self.selecting.listing {
            listing.insert(meta.name.clone());
        }
    }

    pub(super) fn config_gone(&mut self, object: &[u8]) {
        let Ok(meta) = Meta::parse(object) else {
            return;
        };
        self.selecting.forget_problem(&meta.name);
        self.selecting.configs.remove(&meta.name);
        self.selecting.changed = true;
        if self.selecting.known {
            self.replan();
        }
    }

    pub(super) fn configs_listed(&mut self) {
        let Some(named) = self.selecting.listing.take() else {
            return;
        };
        let count = |selecting: &Selecting| selecting.configs.len() + selecting.unreadable.len();
        let before = count(&self.selecting);
        self.selecting.configs.retain(|name, _| named.contains(name));
        self.selecting
            .unreadable
            .retain(|problem| named.contains(&problem.config));
        let first = !std::mem::replace(&mut self.selecting.known, true);
        if !first && !self.selecting.changed && count(&self.selecting) == before {
            return;
        }
        if named.is_empty() {
            log::info!("there is no SyncerConfig at the hub; waiting for one");
        }
        self.replan();
    }

    pub(super) fn report_no_configs(&mut self, error: &Error) {
        let thing = "SyncerConfig (apply manifests/crds to the hub, or bind the API)".to_owned();
        self.report.failed(Subject::Thing(Side::Hub, thing), "watching", error);
    }

    /// Makes the running sources what configs and discovery say.
    pub(super) fn replan(&mut self) {
        let Some(saved) = &self.record.saved else {
            return; // Which copies may exist is not known yet.
        };
        if !self.selecting.known {
            return;
        }
        self.selecting.changed = false;
        let mut wanted = Wanted::from_configs(self.selecting.configs.values());
        wanted.retain(saved);
        self.selecting.wanted = wanted;
        let (hub, edge) = self.discoveries();
        let mut plan = Plan::resolve(&self.selecting.wanted, hub, edge);
        self.report_plan(&plan);
        self.selecting.missing.clone_from(&plan.missing);
        self.retire_types(&plan);
        self.update_record(&mut plan);
        for planned in std::mem::take(&mut plan.types).into_values() {
            self.plan_type(planned);
        }
        for side in [Side::Hub, Side::Edge] {
            self.ask_for_what_is_unknown(side);
        }
        self.start_hub_sources();
    }

    /// Brings the record up to date, and takes out of the plan what has to wait for that: types that it does not name
    /// yet, and types that the hub has not said often enough that it lacks.
    fn update_record(&mut self, plan: &mut Plan) {
        let synced = |planned: &TypePlan| SyncedType {
            group: planned.resource.group.clone(),
            version: planned.resource.version.clone(),
            resource: planned.resource.resource.clone(),
        };
        let mut record = self.record.saved.clone().unwrap_or_default();
        record.extend(plan.types.values().filter(|planned| planned.selected).map(synced));
        // A retained type that the edge no longer serves has no copies.
        let lost = |known: &SyncedType| {
            plan.missing.iter().any(|missing| {
                missing.side == Side::Edge
                    && missing.config.is_empty()
                    && (&missing.group, &missing.resource) == (&known.group, &known.resource)
            })
        };
        record.retain(|known| !lost(known));
        self.record.set(record);
        let gone = &self.selecting.gone;
        plan.types.retain(|key, planned| {
            let rounds = gone.get(key).copied().unwrap_or_default();
            self.record.names(&synced(planned)) && (!planned.gone_at_hub || rounds >= GONE_ROUNDS)
        });
    }

    fn plan_type(&mut self, planned: TypePlan) {
        let (group, resource) = (&planned.resource.group, &planned.resource.resource);
        let known = self.types.iter().find(|(_, state)| state.resource.is(group, resource));
        if let Some((&type_id, state)) = known {
            let same_type = state.resource == planned.resource && state.at_edge == planned.at_edge;
            let same_selection = state.selected == planned.selected && state.selector == planned.selector;
            if same_type && same_selection && state.gone_at_hub == planned.gone_at_hub {
                return;
            }
            if same_type {
                let state = self.types.get_mut(&type_id).expect("found above");
                state.selector = planned.selector;
                state.selected = planned.selected;
                state.gone_at_hub = planned.gone_at_hub;
                self.restart_type(type_id);
                return;
            }
            self.drop_type(type_id);
        }
        if planned.at_edge.version != planned.resource.version {
            log::info!(
                "the edge serves another version, which is used there resource={} hub={} edge={}",
                planned.resource.qualified(),
                planned.resource.version,
                planned.at_edge.version
            );
        }
        let type_id = self.next_type;
        self.next_type += 1;
        let state = TypeState {
            resource: planned.resource,
            at_edge: planned.at_edge,
            selector: planned.selector,
            selected: planned.selected,
            gone_at_hub: planned.gone_at_hub,
            inventory: super::Inventory::default(),
            edge_source: None,
            looked: false,
            hub_sources: BTreeMap::new(),
        };
        self.types.insert(type_id, state);
        self.start_edge_source(type_id);
    }

    /// Stops types that a side is known not to serve any more. Deselected ones are still in the plan, retained.
    fn retire_types(&mut self, plan: &Plan) {
        let gone: Vec<TypeId> = self
            .types
            .iter()
            .filter(|(_, state)| {
                let ResourceType {
                    group,
                    resource,
                    version,
                    ..
                } = &state.resource;
                let answered = |discovery: &Discovery| discovery.knows(group, version);
                !plan.types.contains_key(&(group.clone(), resource.clone()))
                    && answered(&self.hub_asking.discovery)
                    && answered(&self.edge_asking.discovery)
            })
            .map(|(&id, _)| id)
            .collect();
        for type_id in gone {
            self.drop_type(type_id);
        }
    }

    /// Looks at both sides of a type again, because what is selected of it has changed.
    pub(super) fn restart_type(&mut self, type_id: TypeId) {
        self.end_sources(type_id);
        self.queue.forget(|(queued, _)| *queued == type_id);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.inventory.look_again();
        }
        self.start_edge_source(type_id);
    }

    fn end_sources(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.looked = false;
        let edge = state.edge_source.take();
        let hub = std::mem::take(&mut state.hub_sources);
        for id in hub.into_values().chain(edge) {
            self.sources.remove(&id);
        }
    }

    fn drop_type(&mut self, type_id: TypeId) {
        self.end_sources(type_id);
        self.types.remove(&type_id);
        self.queue.forget(|(queued, _)| *queued == type_id);
    }

    /// A deselected type is dropped, and leaves the record, when no copy of it is left.
    pub(super) fn drop_type_without_copies(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        if state.selected || !state.looked || state.inventory.ours().next().is_some() {
            return;
        }
        let ResourceType { group, resource, .. } = state.resource.clone();
        self.drop_type(type_id);
        let mut record = self.record.saved.clone().unwrap_or_default();
        record.retain(|known| (&known.group, &known.resource) != (&group, &resource));
        self.record.set(record);
    }

    /// Tells what is new in what cannot be followed, and what no longer stands in the way.
    fn report_plan(&mut self, plan: &Plan) {
        let problems: BTreeSet<_> = plan
            .problems
            .iter()
            .chain(&self.selecting.unreadable)
            .cloned()
            .collect();
        for problem in problems.difference(&self.selecting.problems) {
            log::warn!("a config cannot be followed here: {problem}");
        }
        for problem in self.selecting.problems.difference(&problems) {
            log::info!("no longer a problem: {problem}");
        }
        self.selecting.problems = problems;
        let new = |missing: &&Missing| !self.selecting.missing.contains(missing) && !missing.config.is_empty();
        for missing in plan.missing.iter().filter(new) {
            let Missing {
                side,
                group,
                version,
                resource,
                config,
                field,
            } = missing;
            log::warn!(
                "the {side} does not serve a selected resource; it is synced as soon as it appears \
                 resource={resource} group={group:?} version={version} config=SyncerConfig//{config} field=spec.{field}"
            );
        }
        let solved = |missing: &&Missing| !plan.missing.contains(missing) && !missing.config.is_empty();
        for missing in self.selecting.missing.iter().filter(solved) {
            let Missing {
                side,
                group,
                version,
                resource,
                ..
            } = missing;
            log::info!("no longer missing at the {side} resource={resource} group={group:?} version={version}");
        }
    }
}
