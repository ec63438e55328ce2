//! One read of both sides, for the commands that ask and do not sync: the configs as they are at the hub, and what both
//! sides serve of what they select.
//!
//! Reads only, with the same client, planner and discovery as `run`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;
use kube_lite::discovery::{self, Discovery, GroupVersion, Served};
use kube_lite::{Cluster, Content, Error, ListRequest};

use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;
use crate::api::{GROUP, SYNC_TARGET_NAME, SYNC_TARGET_UID, VERSION, edge};
use crate::engine::record;
use crate::model::effect::{ConfigKind, Names};
use crate::permissions::Situation;
use crate::plan::{ConfigPlace, Filter, Plan, Wanted};
use crate::side::Side;
use crate::sync::definition::{Hub, ask_hub};
use crate::sync::meta::Meta;
use crate::sync::ownership::SyncTarget;

/// How often the plan asks for more: each answer may lead to another question.
const ROUNDS: usize = 10;

/// What was found.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Survey {
    /// The configs, as `Kind//name`.
    pub(crate) configs: Vec<String>,
    /// Configs that cannot be read, and why.
    pub(crate) unreadable: Vec<String>,
    /// The plurals of the kinds of configs that the hub serves.
    pub(crate) kinds: Vec<&'static str>,
    /// The hub serves none, and the edge does: they may be exchanged.
    pub(crate) edge_has_configs: bool,
    /// The hub keeps a status of configs in a subresource.
    pub(crate) has_config_status: bool,
    /// The hub has objects that stand for edges.
    pub(crate) has_edges: bool,
    /// The hub is a workspace of kcp.
    pub(crate) is_kcp: bool,
    /// What is to be synced.
    pub(crate) plan: Plan,
    /// Namespaces that the hub must have for that, each with the first place that names it.
    pub(crate) namespaces: BTreeMap<String, ConfigPlace>,
    /// Edges that are registered at the hub, as `gen` has noted on configs.
    pub(crate) registrations: Vec<Registration>,
    /// What each side serves.
    hub: Discovery,
    edge: Discovery,
    /// What a side did not report: a group and version, or its list of groups.
    pub(crate) unreported: Vec<(Side, String, Error)>,
}

/// An edge that is registered at the hub.
#[derive(Debug)]
pub(crate) struct Registration {
    /// The name of its sync target.
    pub(crate) name: String,
    /// The UID of its sync target.
    pub(crate) uid: String,
}

impl Registration {
    /// As a config says, if it does.
    fn of(config: &Bytes) -> Option<Self> {
        let mut meta = Meta::parse(config).ok()?;
        Some(Self {
            name: meta.labels.remove(SYNC_TARGET_NAME)?,
            uid: meta.annotations.remove(SYNC_TARGET_UID)?,
        })
    }
}

/// The configs of the hub.
#[derive(Default)]
struct Configs {
    syncer: Vec<SyncerConfig>,
    edge_sync: Vec<EdgeSyncConfig>,
    /// Those that cannot be read, and why.
    unreadable: Vec<String>,
    registrations: Vec<Registration>,
}

impl Configs {
    /// Reads all of one kind.
    async fn read(&mut self, hub: &Rc<Cluster>, kind: ConfigKind) -> Result<(), Error> {
        let mut listing = hub.list(ListRequest::of_all(kind.resource_type(), Content::Full));
        while let Some(object) = listing.next().await? {
            self.registrations.extend(Registration::of(&object));
            let parsed = match kind {
                ConfigKind::SyncerConfig => SyncerConfig::parse(&object).map(|config| self.syncer.push(config)),
                ConfigKind::EdgeSyncConfig => EdgeSyncConfig::parse(&object).map(|config| self.edge_sync.push(config)),
            };
            if let Err(error) = parsed {
                let words = format!("a {} cannot be read: {error}", kind.kind());
                self.unreadable.push(words);
            }
        }
        Ok(())
    }

    /// Leaves those with this name.
    fn retain(&mut self, name: &str) {
        self.syncer.retain(|config| config.name == name);
        self.edge_sync.retain(|config| config.name == name);
    }

    /// Those that can be read, as `Kind//name`.
    fn names(&self) -> Vec<String> {
        let syncer = self.syncer.iter().map(|it| (ConfigKind::SyncerConfig, &it.name));
        let edge_sync = self.edge_sync.iter().map(|it| (ConfigKind::EdgeSyncConfig, &it.name));
        let all = syncer.chain(edge_sync);
        all.map(|(kind, name)| kind.of_name(name)).collect()
    }
}

/// How a syncer would see the configs.
pub(crate) struct View<'a> {
    pub(crate) sync_target: &'a SyncTarget,
    pub(crate) filter: &'a Filter,
    pub(crate) own_namespace: Option<&'a str>,
    pub(crate) renaming: bool,
    /// Only this config, if there were no other.
    pub(crate) config: Option<&'a str>,
}

/// Asks both sides. An edge that cannot be asked is assumed to serve what the hub serves. An error means that a side
/// has not reported enough for a plan.
pub(crate) async fn survey(
    hub: &Rc<Cluster>,
    edge: Option<&Rc<Cluster>>,
    view: &View<'_>,
) -> Result<Survey, (Side, Error)> {
    let at_hub = |error| (Side::Hub, error);
    let mut found = Survey::default();
    let served = discovery::discover(hub, &(GROUP.into(), VERSION.into()))
        .await
        .map_err(at_hub)?;
    found.has_edges = matches!(&served, Served::Resources(resources) if resources.contains_key(edge::RESOURCE));
    let mut configs = Configs::default();
    for kind in ConfigKind::ALL {
        let config = match &served {
            Served::Resources(resources) => resources.get(kind.plural()),
            Served::NotServed => None,
        };
        let Some(config) = config else { continue };
        found.kinds.push(kind.plural());
        found.has_config_status |= config.status_subresource;
        configs.read(hub, kind).await.map_err(at_hub)?;
    }
    if let Some(name) = view.config {
        configs.retain(name);
    }
    if found.kinds.is_empty()
        && let Some(edge) = edge
    {
        let served = discovery::discover(edge, &(GROUP.into(), VERSION.into())).await;
        found.edge_has_configs = matches!(served, Ok(Served::Resources(_)));
    }
    found.is_kcp = matches!(ask_hub(hub).await.map_err(at_hub)?, Some(Hub::Kcp(_)));
    found.configs = configs.names();
    let mut wanted = Wanted::from_configs(&configs.syncer, &configs.edge_sync, view.renaming);
    found.unreadable = configs.unreadable;
    found.registrations = configs.registrations;
    // Copies of what was once selected may still be there, if the record at the edge can be read.
    let names = Names::of(view.sync_target, view.own_namespace.unwrap_or("default"));
    if let Some(edge) = edge
        && let Ok(kept) = record::read(edge, &names).await
    {
        wanted.retained = kept.types;
    }
    let edge = edge.unwrap_or(hub);
    found
        .make_plan([(Side::Hub, hub), (Side::Edge, edge)], &wanted, view)
        .await?;
    found.namespaces = std::mem::take(&mut found.plan.namespaces);
    Ok(found)
}

impl Survey {
    /// Makes the plan, and asks both sides for what it needs until nothing is missing.
    async fn make_plan(
        &mut self,
        sides: [(Side, &Rc<Cluster>); 2],
        wanted: &Wanted,
        view: &View<'_>,
    ) -> Result<(), (Side, Error)> {
        for _ in 0..ROUNDS {
            self.plan = Plan::resolve(wanted, view.filter, &self.hub, &self.edge, view.own_namespace);
            let mut is_complete = true;
            for (side, cluster) in sides {
                if self.needs_groups(side) {
                    is_complete = false;
                    let groups = discovery::groups(cluster).await;
                    self.of(side).groups = Some(groups.map_err(|error| (Side::of(cluster), error))?);
                }
                if side == Side::Edge && self.plan.unknown.catalogue {
                    is_complete = false;
                    // It only says what may be meant.
                    self.of(side).catalogue = Some(discovery::catalogue(cluster).await.unwrap_or_default());
                }
                for group_version in self.questions(side) {
                    is_complete = false;
                    self.ask(side, cluster, group_version).await?;
                }
            }
            if is_complete {
                break;
            }
        }
        Ok(())
    }

    fn of(&mut self, side: Side) -> &mut Discovery {
        match side {
            Side::Edge => &mut self.edge,
            Side::Hub => &mut self.hub,
        }
    }

    /// What a side serves.
    pub(crate) fn discovery(&self, side: Side) -> &Discovery {
        match side {
            Side::Edge => &self.edge,
            Side::Hub => &self.hub,
        }
    }

    /// True if the groups of a side are needed and not known. What is missing may be there at another version.
    fn needs_groups(&self, side: Side) -> bool {
        let is_missing = self.plan.missing.iter().any(|missing| missing.side == side);
        let is_asked = self.plan.unknown.groups.contains(&side) || is_missing;
        is_asked && self.discovery(side).groups.is_none()
    }

    /// What is to be asked of a side.
    fn questions(&self, side: Side) -> BTreeSet<GroupVersion> {
        let discovery = self.discovery(side);
        let unknown = self.plan.unknown.group_versions.iter();
        let unknown = unknown
            .filter(|(of, _)| *of == side)
            .map(|(_, version)| version.clone());
        let missing = self.plan.missing.iter().filter(|missing| missing.side == side);
        let elsewhere = missing.flat_map(|missing| {
            let versions = discovery.versions(&missing.group).unwrap_or_default().into_iter();
            versions.map(|version| (missing.group.clone(), version.to_owned()))
        });
        let all = unknown.chain(elsewhere);
        all.filter(|(group, version)| !discovery.knows(group, version))
            .collect()
    }

    /// Asks for one group and version. If a side cannot answer, as for an aggregated API that is unavailable, it counts
    /// as not served, which is noted.
    async fn ask(&mut self, side: Side, cluster: &Cluster, group_version: GroupVersion) -> Result<(), (Side, Error)> {
        let served = match discovery::discover(cluster, &group_version).await {
            Ok(served) => served,
            Err(error) if error.is_unreachable() || error.is_unauthorized() => return Err((Side::of(cluster), error)),
            Err(error) => {
                let (group, version) = &group_version;
                self.unreported.push((side, format!("{group}/{version}"), error));
                Served::NotServed
            }
        };
        self.of(side).known.insert(group_version, served);
        Ok(())
    }

    /// What the permissions depend on, for a single syncer with the usual flags that does not renew its credentials.
    pub(crate) fn situation<'a>(
        &'a self,
        sync_target: &'a SyncTarget,
        own_namespace: &'a str,
        polled: &'a [Side],
    ) -> Situation<'a> {
        Situation {
            plan: &self.plan,
            own_namespace,
            sync_target,
            is_kcp: self.is_kcp,
            // A hub without the CRDs will have those of this version.
            has_config_status: self.has_config_status || self.kinds.is_empty(),
            has_heartbeat: true,
            edge: None,
            elects_leader: false,
            polled,
            allows_escalation: false,
            account: None,
            secret: None,
        }
    }
}
