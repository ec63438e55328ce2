//! From configs and discovery to running sources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::asking::is_gone;
use super::inventory::Inventory;
use super::{Engine, Feed, TypeId, TypeState};
use crate::api::edge_sync_config::{self, EdgeSyncConfig};
use crate::api::syncer_config::{self, SyncerConfig};
use crate::api::{GROUP, VERSION};
use crate::cluster::discovery::Discovery;
use crate::cluster::{Error, ResourceType, Scope, Side};
use crate::plan::{Direction, Missing, Pair, Place, Plan, Problem, SyncedType, TypePlan, Unknown, Wanted};
use crate::report::Subject;
use crate::source::{Reading, Style};
use crate::sync::object::Meta;

/// Between two questions for a kind of configs that the hub does not serve, while it serves the other one.
const KIND_INTERVAL: Duration = Duration::from_secs(600);
/// Questions for a kind that the hub used to serve before they become rare: some minutes.
const KIND_TRIES: u32 = 10;
/// The same for one that it has not served so far: half a minute, in which a hub that starts, or what stands before it, has
/// come to its senses.
const FIRST_KIND_TRIES: u32 = 5;

/// The kinds of configs. Objects of both count, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConfigKind {
    SyncerConfig,
    EdgeSyncConfig,
}

impl ConfigKind {
    const ALL: [Self; 2] = [Self::SyncerConfig, Self::EdgeSyncConfig];

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::SyncerConfig => syncer_config::KIND,
            Self::EdgeSyncConfig => edge_sync_config::KIND,
        }
    }

    pub(super) fn resource_type(self) -> ResourceType {
        let resource = match self {
            Self::SyncerConfig => syncer_config::RESOURCE,
            Self::EdgeSyncConfig => edge_sync_config::RESOURCE,
        };
        ResourceType {
            group: GROUP.into(),
            version: VERSION.into(),
            resource: resource.into(),
            kind: self.kind().into(),
            namespaced: false,
        }
    }
}

/// One config.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Config {
    SyncerConfig(SyncerConfig),
    EdgeSyncConfig(EdgeSyncConfig),
}

impl Config {
    fn parse(kind: ConfigKind, object: &[u8]) -> Result<Self, serde_json::Error> {
        match kind {
            ConfigKind::SyncerConfig => SyncerConfig::parse(object).map(Self::SyncerConfig),
            ConfigKind::EdgeSyncConfig => EdgeSyncConfig::parse(object).map(Self::EdgeSyncConfig),
        }
    }
}

/// Kind and name of a config.
type ConfigName = (ConfigKind, String);

/// How far the configs of one kind are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// They have not been read.
    #[default]
    No,
    /// The hub says that it has no such kind.
    NotServed,
    /// They have been read completely.
    Yes,
}

/// The configs, and what they ask for.
#[derive(Default)]
pub(super) struct Selecting {
    configs: BTreeMap<ConfigName, Config>,
    /// Names that the list of a kind under way has given so far.
    listing: BTreeMap<ConfigKind, BTreeSet<String>>,
    known: BTreeMap<ConfigKind, Known>,
    /// How often in a row the hub has said that it does not serve a kind.
    not_served: BTreeMap<ConfigKind, u32>,
    /// When to ask again for a kind that the hub does not serve, while it serves the other one.
    ask_again: BTreeMap<ConfigKind, Instant>,
    /// The configs are not what the plan was made from.
    changed: bool,
    pub(super) wanted: Wanted,
    pub(super) missing: Vec<Missing>,
    pub(super) unknown: Unknown,
    /// Types may be selected that do not exist yet.
    pub(super) open_ended: bool,
    problems: BTreeSet<Problem>,
    /// How often in a row a side has said that it does not serve the origins of a type.
    pub(super) gone: BTreeMap<SyncedType, u32>,
    /// Types whose copies' side has confirmed that it does not serve them.
    pub(super) without_copies: BTreeSet<SyncedType>,
    /// Configs that cannot be read; their last readable form stays in force.
    unreadable: BTreeMap<ConfigName, Problem>,
}

impl Selecting {
    pub(super) fn list_begins(&mut self, kind: ConfigKind) {
        self.listing.insert(kind, BTreeSet::new());
    }

    /// When to ask again for a kind that the hub does not serve.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ask_again.values().min().copied()
    }

    /// Kinds and names of all configs.
    pub(super) fn names(&self) -> Vec<ConfigName> {
        let all: BTreeSet<_> = self.configs.keys().chain(self.unreadable.keys()).cloned().collect();
        all.into_iter().collect()
    }

    fn known(&self, kind: ConfigKind) -> Known {
        self.known.get(&kind).copied().unwrap_or_default()
    }

    /// True once all configs have been read. A kind that the hub does not serve has none, as long as it serves the
    /// other one: a hub with neither may not be the hub at all.
    pub(super) fn are_known(&self) -> bool {
        let known = ConfigKind::ALL.map(|kind| self.known(kind));
        !known.contains(&Known::No) && known.contains(&Known::Yes)
    }

    fn wanted(&self, renaming: bool) -> Wanted {
        let syncer_configs = self.configs.values().filter_map(|config| match config {
            Config::SyncerConfig(config) => Some(config),
            Config::EdgeSyncConfig(_) => None,
        });
        let edge_sync_configs = self.configs.values().filter_map(|config| match config {
            Config::EdgeSyncConfig(config) => Some(config),
            Config::SyncerConfig(_) => None,
        });
        Wanted::from_configs(syncer_configs, edge_sync_configs, renaming)
    }
}

impl Engine {
    pub(super) fn watch_configs(&mut self) {
        for kind in ConfigKind::ALL {
            self.watch_configs_of(kind);
        }
    }

    fn watch_configs_of(&mut self, kind: ConfigKind) {
        let reading = Reading {
            resource: kind.resource_type(),
            scope: Scope::default(),
            style: Style::Whole,
        };
        self.start_source(Feed::Configs(kind), reading);
    }

    /// Asks again for the kinds that the hub did not serve, where that is due.
    pub(super) fn look_for_config_kinds(&mut self) {
        let now = Instant::now();
        for kind in ConfigKind::ALL {
            if self.selecting.ask_again.get(&kind).is_some_and(|&at| at <= now) {
                self.selecting.ask_again.remove(&kind);
                self.watch_configs_of(kind);
            }
        }
    }

    pub(super) fn config_object(&mut self, kind: ConfigKind, object: &[u8]) {
        let Ok(meta) = Meta::parse(object) else {
            return;
        };
        if let Some(listing) = self.selecting.listing.get_mut(&kind) {
            listing.insert(meta.name.clone());
        }
        let full_name = format!("{}//{}", kind.kind(), meta.name);
        self.config_confirms(full_name, meta.annotations.get(crate::api::CONFIRM_DELETES));
        let name = (kind, meta.name);
        let was_unreadable = self.selecting.unreadable.remove(&name).is_some();
        match Config::parse(kind, object) {
            Ok(config) => {
                let old = self.selecting.configs.insert(name, config.clone());
                if old.as_ref() == Some(&config) && !was_unreadable {
                    return;
                }
            }
            Err(error) => {
                let problem = Problem {
                    place: Place {
                        config: format!("{}//{}", kind.kind(), name.1),
                        field: String::new(),
                    },
                    message: format!("cannot be read, its last readable form stays in force: {error}"),
                };
                self.selecting.unreadable.insert(name, problem);
            }
        }
        self.selecting.changed = true;
        if self.selecting.are_known() && self.selecting.listing.is_empty() {
            self.replan();
        }
    }

    pub(super) fn config_unchanged(&mut self, kind: ConfigKind, meta: &Meta) {
        if let Some(listing) = self.selecting.listing.get_mut(&kind) {
            listing.insert(meta.name.clone());
        }
    }

    pub(super) fn config_gone(&mut self, kind: ConfigKind, object: &[u8]) {
        let Ok(meta) = Meta::parse(object) else {
            return;
        };
        let name = (kind, meta.name);
        self.selecting.unreadable.remove(&name);
        self.selecting.configs.remove(&name);
        self.selecting.changed = true;
        if self.selecting.are_known() {
            self.replan();
        }
    }

    pub(super) fn configs_listed(&mut self, kind: ConfigKind) {
        let selecting = &mut self.selecting;
        let Some(named) = selecting.listing.remove(&kind) else {
            return;
        };
        let is_there = |(of_kind, name): &ConfigName| *of_kind != kind || named.contains(name);
        let before = selecting.names().len();
        selecting.configs.retain(|name, _| is_there(name));
        selecting.unreadable.retain(|name, _| is_there(name));
        selecting.not_served.remove(&kind);
        let first = selecting.known.insert(kind, Known::Yes) != Some(Known::Yes);
        if first || selecting.changed || selecting.names().len() != before {
            self.configs_may_be_known();
        }
    }

    /// A list of a kind has broken off, if one was under way: what is known counts, and the other kind does not wait for its
    /// end, which may never come.
    pub(super) fn configs_broke_off(&mut self, kind: ConfigKind) {
        let selecting = &mut self.selecting;
        let broke_off = selecting.listing.remove(&kind).is_some();
        if broke_off && selecting.changed && selecting.are_known() && selecting.listing.is_empty() {
            self.replan();
        }
    }

    /// The hub has no such kind. Once its configs were read, that is no reason to forget them.
    pub(super) fn configs_not_served(&mut self, kind: ConfigKind, error: &Error) {
        if self.selecting.known(kind) == Known::No {
            self.selecting.known.insert(kind, Known::NotServed);
            self.configs_may_be_known();
        }
        let known = ConfigKind::ALL.map(|kind| self.selecting.known(kind));
        if known == [Known::NotServed; 2] {
            let thing = "SyncerConfig (apply manifests/crds to the hub, or bind the API)".to_owned();
            self.report.failed(Subject::Thing(Side::Hub, thing), "watching", error);
            return;
        }
        let tries = self.selecting.not_served.entry(kind).or_default();
        *tries += 1;
        let tries = *tries;
        // One that was served may come back soon; otherwise few hubs get the other kind later, and asking costs.
        let was_served = self.selecting.known(kind) == Known::Yes;
        if tries > if was_served { KIND_TRIES } else { FIRST_KIND_TRIES } {
            log::debug!("the hub does not serve a kind of configs kind={}", kind.kind());
            self.sources.retain(|_, source| source.feed != Feed::Configs(kind));
            let wait = KIND_INTERVAL.mul_f64(0.5 + fastrand::f64() / 2.0);
            self.selecting.ask_again.insert(kind, Instant::now() + wait);
        }
    }

    fn configs_may_be_known(&mut self) {
        if !self.selecting.are_known() {
            return;
        }
        if self.selecting.names().is_empty() {
            log::info!("there is no SyncerConfig or EdgeSyncConfig at the hub; waiting for one");
        }
        self.replan();
        self.begin_to_beat();
    }

    /// Makes the running sources what configs and discovery say.
    pub(super) fn replan(&mut self) {
        let Some(retained) = self.record.types() else {
            return; // Which copies may exist is not known yet.
        };
        if !self.selecting.are_known() {
            return;
        }
        self.selecting.changed = false;
        let mut wanted = self.selecting.wanted(self.setup.renaming);
        wanted.retained = retained;
        self.selecting.wanted = wanted;
        let (hub, edge) = self.discoveries();
        let own = self.setup.own_namespace.as_deref();
        let mut plan = Plan::resolve(&self.selecting.wanted, hub, edge, own);
        self.report_plan(&plan);
        self.selecting.missing.clone_from(&plan.missing);
        self.selecting.unknown.clone_from(&plan.unknown);
        self.selecting.open_ended = plan.open_ended;
        self.retire_types(&plan);
        self.update_record(&mut plan);
        for (pair, planned) in std::mem::take(&mut plan.types) {
            self.plan_type(&pair, planned);
        }
        for side in [Side::Hub, Side::Edge] {
            self.ask_for_what_is_unknown(side);
        }
        self.watch_hub_namespaces();
        self.start_origin_sources();
    }

    /// Brings the record up to date, and takes out of the plan what has to wait for that: types that it does not name
    /// yet, and types that the side of their origins has not said often enough that it lacks.
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
        self.record.set(record);
        let gone = &self.selecting.gone;
        plan.types.retain(|_, planned| {
            let synced = synced_type(planned);
            let rounds = gone.get(&synced).copied().unwrap_or_default();
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
                let state = self.types.get_mut(&type_id).expect("found above");
                if state.plan.status != planned.status {
                    state.inventory.forget_written_statuses();
                }
                state.plan = planned;
                self.forget_failures(type_id, false);
                self.restart_type(type_id);
                return;
            }
            self.drop_type(type_id);
        }
        if planned.at_edge.version != planned.at_hub.version {
            log::info!(
                "the {} serves another version, which is used there resource={} hub={} edge={}",
                planned.direction.copy(),
                planned.at_hub.qualified(),
                planned.at_hub.version,
                planned.at_edge.version
            );
        }
        let type_id = self.next_type;
        self.next_type += 1;
        let filter = std::rc::Rc::clone(&self.setup.filter);
        self.types.insert(type_id, TypeState::new(planned, filter));
        self.start_copy_source(type_id);
    }

    /// Stops types that a side is known not to serve any more. Deselected ones are still in the plan, retained.
    fn retire_types(&mut self, plan: &Plan) {
        let answered =
            |discovery: &Discovery, resource: &ResourceType| discovery.knows(&resource.group, &resource.version);
        let gone: Vec<TypeId> = self
            .types
            .iter()
            .filter(|(_, state)| {
                !plan.types.contains_key(&pair_of(&state.plan))
                    && answered(&self.hub_asking.discovery, &state.plan.at_hub)
                    && answered(&self.edge_asking.discovery, &state.plan.at_edge)
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
        self.queue.forget(|key| key.type_id == type_id);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.inventory.look_again();
        }
        self.start_copy_source(type_id);
    }

    /// The same, and what is known of its copies counts for nothing: no version can be held against theirs.
    pub(super) fn restart_type_anew(&mut self, type_id: TypeId) {
        if let Some(state) = self.types.get_mut(&type_id) {
            state.inventory = Inventory::default();
        }
        self.restart_type(type_id);
    }

    fn end_sources(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.looked = false;
        let copies = state.copy_source.take();
        let origins = std::mem::take(&mut state.origin_sources);
        let unlabelled = std::mem::take(&mut state.unlabelled_sources);
        for id in origins.into_values().chain(unlabelled.into_values()).chain(copies) {
            self.end_source(id);
        }
    }

    fn drop_type(&mut self, type_id: TypeId) {
        self.forget_failures(type_id, true);
        self.end_sources(type_id);
        self.types.remove(&type_id);
        self.queue.forget(|key| key.type_id == type_id);
        self.guard.forget(type_id);
    }

    /// A deselected type is dropped, and leaves the record, when no copy of it is left.
    pub(super) fn drop_type_without_copies(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        if state.plan.selected || !state.looked || state.inventory.may_have_ours() {
            return;
        }
        let dropped = synced_type(&state.plan);
        self.drop_type(type_id);
        if dropped.direction == Direction::Up && self.hub_namespaces.are_left() {
            // A later run has to know that there was upsync, to clear them away.
            return;
        }
        let mut record = self.record.types().unwrap_or_default();
        record.retain(|known| !known.is_same(&dropped));
        self.record.set(record);
    }

    /// Tells what is new in what cannot be followed, and what no longer stands in the way.
    fn report_plan(&mut self, plan: &Plan) {
        let unreadable = self.selecting.unreadable.values();
        let problems: BTreeSet<_> = plan.problems.iter().chain(unreadable).cloned().collect();
        for problem in problems.difference(&self.selecting.problems) {
            log::warn!("a config cannot be followed here: {problem}");
        }
        for problem in self.selecting.problems.difference(&problems) {
            log::info!("no longer a problem: {problem}");
        }
        self.selecting.problems = problems;
        let is_news = |missing: &&Missing, known: &[Missing]| !missing.is_elsewhere && !known.contains(missing);
        let known = &self.selecting.missing;
        for missing in plan.missing.iter().filter(|missing| is_news(missing, known)) {
            if let Some(Place { config, field }) = &missing.place {
                log::warn!(
                    "the {} does not serve a selected resource; it is synced as soon as it appears {missing} \
                     config={config} field=spec.{field}",
                    missing.side
                );
            }
        }
        for missing in known.iter().filter(|missing| is_news(missing, &plan.missing)) {
            if missing.place.is_some() {
                log::info!("no longer missing at the {} {missing}", missing.side);
            }
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

/// What the record says of a type: it finds the copies.
pub(super) fn synced_type(plan: &TypePlan) -> SyncedType {
    let (copies, origins) = match plan.direction {
        Direction::Down => (&plan.at_edge, &plan.at_hub),
        Direction::Up => (&plan.at_hub, &plan.at_edge),
    };
    let of = (origins.group.clone(), origins.resource.clone());
    SyncedType {
        direction: plan.direction,
        group: copies.group.clone(),
        version: copies.version.clone(),
        resource: copies.resource.clone(),
        of: Some(of).filter(|_| origins.qualified() != copies.qualified()),
    }
}
