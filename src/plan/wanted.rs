//! The first step: all configs as one list of what they ask for, without knowing any server.

mod conversions;
mod merge;

use std::collections::BTreeSet;
use std::rc::Rc;

pub use self::conversions::Conversions;
use self::merge::Merge;

use super::names::{ALL, Names};
use super::steps::Sliced;
use super::{Direction, Problem, steps, words};
use crate::api::edge_sync_config::{self, EdgeSyncConfig, Ref};
use crate::api::syncer_config::{self, SyncerConfig};

/// Everything that the configs ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What is asked for, in the order of the configs' names.
    pub entries: Vec<Entry>,
    /// Objects with another name at the edge, in order of precedence.
    pub conversions: Conversions,
    /// Types that were synced once: their copies may still be there.
    pub retained: BTreeSet<SyncedType>,
    /// Types, `resource.group`, of which people have confirmed the held deletes, though they are selected and the hub
    /// does not serve them.
    pub let_go: BTreeSet<String>,
    /// Types, `resource.group` at the hub, that people are known to have deselected. Others count as selected where the hub
    /// lacks them.
    pub deselected: BTreeSet<String>,
    /// What in the configs cannot be followed, whatever the servers serve.
    pub problems: BTreeSet<Problem>,
}

/// One thing that a config asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which way.
    pub direction: Direction,
    /// Of which types.
    pub types: Types,
    /// Which objects.
    pub objects: Objects,
    /// Its place in the config.
    pub place: ConfigPlace,
}

/// The types of an entry, in its config's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types {
    /// By plural, at the version that is given, or at the one that the origin's side prefers.
    Plural {
        /// API group.
        group: String,
        /// Version, if one is given.
        version: Option<String>,
        /// Lowercase plural.
        resource: String,
    },
    /// Every type of an API group, at the versions that the origin's side prefers.
    Group(String),
    /// By kind.
    Kind {
        /// API group.
        group: String,
        /// Version.
        version: String,
        /// Kind.
        kind: String,
    },
}

impl Types {
    /// Their API group.
    pub fn group(&self) -> &str {
        match self {
            Self::Plural { group, .. } | Self::Group(group) | Self::Kind { group, .. } => group,
        }
    }
}

/// The objects of an entry, in its config's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// In one namespace (`Some`), or cluster-scoped (`None`); a resource of the other scope does not belong there.
    In(Option<String>, Names),
    /// All that is in these namespaces.
    Within {
        /// The namespaces.
        namespaces: Rc<BTreeSet<String>>,
        /// How many entries have the same.
        entries: usize,
    },
    /// Namespaces that have to exist for their contents, without their details.
    Implied(Rc<BTreeSet<String>>),
    /// In these namespaces, or cluster-scoped, as the type may be.
    Anywhere {
        /// Namespaces of namespaced objects; absent for all.
        namespaces: Option<Rc<BTreeSet<String>>>,
        /// Names.
        names: Rc<Names>,
        /// How many entries have the same namespaces and names: one for each resource that is named with them.
        entries: usize,
    },
    /// In this namespace, or cluster-scoped, as the type may be; a namespaced one needs a namespace.
    Ref {
        /// Namespace; empty if none is given.
        namespace: String,
        /// Names: one, or all.
        names: Names,
    },
}

impl Objects {
    /// True if each of them is named, and nothing selects them all.
    pub(super) fn are_named(&self) -> bool {
        match self {
            Self::In(_, names) | Self::Ref { names, .. } => *names != Names::All,
            Self::Anywhere { names, .. } => **names != Names::All,
            Self::Within { .. } | Self::Implied(_) => false,
        }
    }
}

/// A place in a config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigPlace {
    /// The config as `Kind//name`.
    pub config: Rc<str>,
    /// The field in its spec, `namespacedObjects[0]`.
    pub field: String,
}

/// One object, or one in each namespace, under both its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Where it is asked for: what is wrong with it is no matter of those whose entries select the object.
    pub place: ConfigPlace,
    /// At the hub.
    pub hub: Triple,
    /// At the edge.
    pub edge: Triple,
}

/// What a conversion matches by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Triple {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A resource type that was synced once: its copies may still be there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncedType {
    /// Which way.
    pub direction: Direction,
    /// API group of the copies.
    pub group: String,
    /// Version it was synced at.
    pub version: String,
    /// Lowercase plural.
    pub resource: String,
    /// What the origins are, where a conversion gave the copies another kind.
    pub of: Option<Origins>,
}

/// The type of origins whose copies are of another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origins {
    /// API group.
    pub group: String,
    /// Lowercase plural.
    pub resource: String,
    /// Kind; empty if it is not known.
    pub kind: String,
}

impl SyncedType {
    /// Group and plural of the origins.
    pub fn origin(&self) -> (&str, &str) {
        match &self.of {
            Some(of) => (&of.group, &of.resource),
            None => (&self.group, &self.resource),
        }
    }

    /// `resource.group` of the origins.
    pub fn qualified_origin(&self) -> String {
        let (group, resource) = self.origin();
        kube_lite::qualified(group, resource)
    }

    /// `resource.group` of the copies.
    pub fn qualified(&self) -> String {
        kube_lite::qualified(&self.group, &self.resource)
    }

    /// True if the other one is the same, whatever its version.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.direction, &self.group, &self.resource, self.origin())
            == (other.direction, &other.group, &other.resource, other.origin())
    }
}

impl Wanted {
    /// Puts the configs together. The result does not depend on their order. Without `renaming`, conversions are
    /// ignored.
    pub fn from_configs<'a>(
        syncer_configs: impl IntoIterator<Item = &'a SyncerConfig>,
        edge_sync_configs: impl IntoIterator<Item = &'a EdgeSyncConfig>,
        renaming: bool,
    ) -> Self {
        let syncer_configs = syncer_configs.into_iter().collect();
        let edge_sync_configs = edge_sync_configs.into_iter().collect();
        steps::whole(merge(syncer_configs, edge_sync_configs, renaming))
    }

    /// The same in slices.
    pub(crate) fn merging(
        syncer_configs: Vec<Rc<SyncerConfig>>,
        edge_sync_configs: Vec<Rc<EdgeSyncConfig>>,
        renaming: bool,
    ) -> Sliced<Self> {
        Sliced::new(async move {
            let syncer_configs = syncer_configs.iter().map(|config| &**config).collect();
            let edge_sync_configs = edge_sync_configs.iter().map(|config| &**config).collect();
            merge(syncer_configs, edge_sync_configs, renaming).await
        })
    }
}

async fn merge(
    mut syncer_configs: Vec<&SyncerConfig>,
    mut edge_sync_configs: Vec<&EdgeSyncConfig>,
    renaming: bool,
) -> Wanted {
    syncer_configs.sort_by(|a, b| a.name.cmp(&b.name));
    edge_sync_configs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut wanted = Wanted::default();
    for config in syncer_configs {
        let config_name = format!("{}//{}", syncer_config::KIND, config.name);
        Merge::new(&mut wanted, &config_name).syncer_config(&config.spec).await;
    }
    for config in edge_sync_configs {
        let config_name = format!("{}//{}", edge_sync_config::KIND, config.name);
        let mut merge = Merge::new(&mut wanted, &config_name);
        merge.edge_sync_config(&config.spec).await;
        if renaming {
            merge.conversions(&config.spec.conversions).await;
        }
    }
    wanted
}

impl Triple {
    fn of(reference: &Ref) -> Self {
        Self {
            group: reference.group.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
        }
    }
}

impl std::fmt::Display for Triple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", kube_lite::qualified(&self.group, &self.kind), self.name)
    }
}

impl Conversion {
    /// True if both names are of one kind.
    pub(super) fn keeps_kind(&self) -> bool {
        (&self.hub.group, &self.hub.kind) == (&self.edge.group, &self.edge.kind)
    }

    /// Both kinds with their groups, hub first.
    pub(super) fn kinds(&self) -> [(&str, &str); 2] {
        [&self.hub, &self.edge].map(|triple| (&*triple.group, &*triple.kind))
    }

    /// The part that makes no sense, and why.
    fn cannot_be(&self) -> Option<(&'static str, &'static str)> {
        for (part, triple) in [("upstream", &self.hub), ("downstream", &self.edge)] {
            if triple.kind.is_empty() || triple.name.is_empty() {
                return Some((part, "needs a kind and a name; the conversion is not used"));
            }
            if !words::are_usable(&triple.group, &triple.kind, &triple.name) {
                return Some((part, "has a name that nothing can have; the conversion is not used"));
            }
            if triple.name == ALL {
                return Some((part, "\"*\" is not supported in a conversion, which is not used"));
            }
        }
        (self.hub == self.edge).then_some(("downstream", "is the same as upstream; the conversion changes nothing"))
    }
}

#[cfg(test)]
#[path = "wanted_tests.rs"]
mod tests;
