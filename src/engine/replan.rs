//! From configs and discovery to running sources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Engine, Feed, TaskEnd, TypeId, TypeState};
use crate::api::syncer_config::{self, SyncerConfig};
use crate::api::{GROUP, VERSION};
use crate::cluster::discovery::{self, Discovery, GroupVersion, Served};
use crate::cluster::{Cluster, Error, ResourceType, Scope, Side};
use crate::plan::{Missing, Plan, Problem, SyncedType, TypePlan, Wanted};
use crate::queue::back_off;
use crate::report::Subject;
use crate::source::{Reading, SourceId, Style};
use crate::sync::object::Meta;

/// Between a sign that a missing type may be there and asking for it: one CRD causes several events as it comes up.
const SETTLE: Duration = Duration::from_millis(100);
/// How often in a row the hub must say that it does not serve a type before the copies of a deselected one go. With the
/// waits in between this takes about a quarter of a minute, in which a hub that starts has all of its APIs.
const GONE_ROUNDS: u32 = 3;
/// Failures that the wait between two looks for a missing type starts from: about 6 s, growing to 5 minutes.
const PATIENCE: u32 = 4;

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
    wanted: Wanted,
    missing: Vec<Missing>,
    problems: BTreeSet<Problem>,
    /// How often in a row the hub has said that it does not serve a retained type.
    gone: BTreeMap<GroupVersion, u32>,
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

/// What is known of one side, and when to ask it more.
#[derive(Default)]
pub(super) struct Asking {
    pub(super) discovery: Discovery,
    under_way: bool,
    /// When to ask next for what is not known or missing.
    due: Option<Instant>,
    /// Asked in vain since something was learnt.
    failures: u32,
    /// Watches CRDs while something is missing.
    definitions: Option<SourceId>,
}

impl Asking {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// Something has changed that may make a missing type appear.
    pub(super) fn ask_again_soon(&mut self) {
        self.failures = 0;
        self.due = Some(Instant::now() + SETTLE);
    }

    /// A type that was served no longer is: what was known of its group version is void.
    pub(super) fn forget(&mut self, resource: &ResourceType) {
        self.discovery
            .known
            .remove(&(resource.group.clone(), resource.version.clone()));
        self.ask_again_soon();
    }

    fn ask_later(&mut self) {
        self.failures = (self.failures + 1).min(30);
        self.due = Some(Instant::now() + back_off(self.failures, fastrand::f64()));
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
            self.watch_definitions_while_missing(side);
            if !self.unknown(side).is_empty() && self.asking(side).due.is_none() {
                self.asking(side).due = Some(Instant::now());
            }
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
        plan.types.retain(|(group, _), planned| {
            let rounds = gone.get(&(group.clone(), planned.resource.version.clone()));
            self.record.names(&synced(planned))
                && (!planned.gone_at_hub || rounds.is_some_and(|&rounds| rounds >= GONE_ROUNDS))
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
    fn restart_type(&mut self, type_id: TypeId) {
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

    /// What a side has not answered for yet, and what it is known to miss.
    fn unknown(&self, side: Side) -> BTreeSet<GroupVersion> {
        let (hub, edge) = self.discoveries();
        let discovery = if side == Side::Hub { hub } else { edge };
        let wanted = self.selecting.wanted.group_versions();
        wanted
            .filter(|(group, version)| !discovery.knows(group, version))
            .collect()
    }

    fn missing(&self, side: Side) -> BTreeSet<GroupVersion> {
        let missing = self.selecting.missing.iter();
        missing
            .filter(|missing| missing.side == side)
            .map(Missing::group_version)
            .collect()
    }

    /// Asks each side what it serves, where that is due.
    pub(super) fn ask_what_is_due(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            if self.asking(side).due().is_none_or(|due| due > Instant::now()) {
                continue;
            }
            let questions: Vec<_> = self.unknown(side).union(&self.missing(side)).cloned().collect();
            let asking = self.asking(side);
            asking.due = None;
            if questions.is_empty() {
                continue;
            }
            asking.under_way = true;
            let cluster = std::rc::Rc::clone(self.cluster(side));
            let ask = async move {
                let mut answers = Vec::new();
                for question in questions {
                    let answer = discovery::discover(&cluster, &question).await;
                    answers.push((question, answer));
                }
                if side == Side::Edge {
                    ask_other_versions(&cluster, &mut answers).await;
                }
                TaskEnd::Discovered(side, answers)
            };
            self.tasks.push(ask.boxed_local());
        }
    }

    pub(super) fn discovered(&mut self, side: Side, answers: Vec<(GroupVersion, Result<Served, Error>)>) {
        let before = self.asking(side).discovery.known.clone();
        self.asking(side).under_way = false;
        let gone_before = self.selecting.gone.clone();
        for (group_version, answer) in answers {
            let (group, version) = &group_version;
            let thing = format!("discovery of {group}/{version}");
            match answer {
                Ok(served) => {
                    self.side_answers(side);
                    self.report.works(&Subject::Thing(side, thing));
                    if side == Side::Hub {
                        self.count_gone(&group_version, &served);
                    }
                    self.asking(side).discovery.known.insert(group_version, served);
                }
                Err(error) if error.is_unreachable() => {
                    self.report.failed(Subject::Side(side), "asking", &error);
                }
                Err(error) => {
                    self.side_answers(side);
                    self.report.failed(Subject::Thing(side, thing), "asking", &error);
                }
            }
        }
        let learnt = self.asking(side).discovery.known != before;
        if learnt {
            self.asking(side).failures = 0;
        }
        if learnt || self.selecting.gone != gone_before {
            self.replan();
        }
        let unknown = !self.unknown(side).is_empty();
        let missing = !self.missing(side).is_empty();
        let confirming = side == Side::Hub && self.selecting.gone.values().any(|&rounds| rounds < GONE_ROUNDS);
        let asking = self.asking(side);
        if confirming {
            asking.failures = 0;
        }
        if (unknown || missing) && asking.due.is_none() {
            if !unknown {
                asking.failures = asking.failures.max(PATIENCE - 1);
            }
            asking.ask_later();
        }
    }

    /// Counts how often in a row the hub has answered that it lacks a type that is only retained.
    fn count_gone(&mut self, group_version: &GroupVersion, served: &Served) {
        let lacks = |missing: &&Missing| {
            let has = match served {
                Served::Resources(resources) => resources.contains_key(&missing.resource),
                Served::NotServed => false,
            };
            missing.side == Side::Hub && missing.config.is_empty() && missing.group_version() == *group_version && !has
        };
        if self.selecting.missing.iter().any(|missing| lacks(&missing)) {
            let rounds = self.selecting.gone.entry(group_version.clone()).or_default();
            *rounds = (*rounds + 1).min(GONE_ROUNDS);
        } else {
            self.selecting.gone.remove(group_version);
        }
    }

    /// While something is missing, CRDs are watched (names only), because their coming is what makes types appear.
    fn watch_definitions_while_missing(&mut self, side: Side) {
        let missing = !self.missing(side).is_empty();
        if let Some(id) = self.asking(side).definitions.take_if(|_| !missing) {
            self.sources.remove(&id);
        }
        if missing && self.asking(side).definitions.is_none() {
            let resource = ResourceType {
                group: "apiextensions.k8s.io".into(),
                version: "v1".into(),
                resource: "customresourcedefinitions".into(),
                kind: "CustomResourceDefinition".into(),
                namespaced: false,
            };
            let reading = Reading {
                resource,
                scope: Scope::default(),
                style: Style::Metadata,
            };
            let id = self.start_source(Feed::Definitions(side), reading);
            self.asking(side).definitions = Some(id);
        }
    }

    /// A CRD came or changed. Those of the first list were there when the side was asked.
    pub(super) fn definition_changed(&mut self, id: SourceId, side: Side) {
        if self.sources.get(&id).is_some_and(|source| source.settled) {
            self.asking(side).ask_again_soon();
        }
    }

    /// A source was told that its type is not served.
    pub(super) fn type_vanished(&mut self, id: SourceId, side: Side) {
        if let Some(resource) = self.sources.get(&id).map(|source| source.resource.clone()) {
            self.asking(side).forget(&resource);
        }
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

/// For each group version that a side does not have: what the other versions of the group serve.
async fn ask_other_versions(cluster: &Cluster, answers: &mut Vec<(GroupVersion, Result<Served, Error>)>) {
    let groups: BTreeSet<String> = answers
        .iter()
        .filter(|((group, _), answer)| !group.is_empty() && matches!(answer, Ok(Served::NotServed)))
        .map(|((group, _), _)| group.clone())
        .collect();
    for mut group in groups {
        for version in discovery::versions(cluster, &group).await.unwrap_or_default() {
            let other = (group, version);
            if !answers.iter().any(|(asked, _)| *asked == other) {
                let answer = discovery::discover(cluster, &other).await;
                answers.push((other.clone(), answer));
            }
            group = other.0;
        }
    }
}
