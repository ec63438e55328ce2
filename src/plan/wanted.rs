//! The first step: all configs as one list of what they ask for, without knowing any server.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::selector::{ALL, Names};
use super::{Direction, Problem, words};
use crate::api::edge_sync_config::{self, EdgeSyncConfig, Ref};
use crate::api::syncer_config::{self, ResourceRef, SyncerConfig};

/// What is wrong with a field that has to be there.
const NOTHING: &str = "is empty; the entry selects nothing";

/// Everything that the configs ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What is asked for, in the order of the configs' names.
    pub entries: Vec<Entry>,
    /// Objects with another name at the edge, in order of precedence.
    pub conversions: Vec<Conversion>,
    /// Types that were synced once: their copies may still be there.
    pub retained: BTreeSet<SyncedType>,
    /// Types, `resource.group`, of which people have let the copies go, though they are selected and the hub does not serve
    /// them.
    pub let_go: BTreeSet<String>,
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
    /// Where it stands.
    pub place: Place,
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

/// The objects of an entry, in its config's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// In one namespace (`Some`), or cluster-scoped (`None`); a resource of the other scope does not belong there.
    In(Option<String>, Names),
    /// All that is in these namespaces.
    Within(Rc<BTreeSet<String>>),
    /// Namespaces that have to exist for their contents, without their details (spec 3.2).
    Implied(Rc<BTreeSet<String>>),
    /// In these namespaces, or cluster-scoped, as the type may be.
    Anywhere {
        /// Namespaces of namespaced objects; absent for all.
        namespaces: Option<Rc<BTreeSet<String>>>,
        /// Names.
        names: Rc<Names>,
    },
    /// In this namespace, or cluster-scoped, as the type may be; a namespaced one needs a namespace.
    Ref {
        /// Namespace; empty if none is given.
        namespace: String,
        /// Names: one, or all.
        names: Names,
    },
}

/// A place in a config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The config as `Kind//name`.
    pub config: String,
    /// The field in its spec, `namespacedObjects[0]`.
    pub field: String,
}

/// One object, or one in each namespace, under both its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
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

    /// `resource.group` of the copies.
    pub fn qualified(&self) -> String {
        crate::cluster::qualified(&self.group, &self.resource)
    }

    /// True if the other one is the same, whatever its version.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.direction, &self.group, &self.resource, self.origin())
            == (other.direction, &other.group, &other.resource, other.origin())
    }
}

impl Wanted {
    /// Puts the configs together. The result does not depend on their order. Without `renaming`, conversions count for
    /// nothing.
    pub fn from_configs<'a>(
        syncer_configs: impl IntoIterator<Item = &'a SyncerConfig>,
        edge_sync_configs: impl IntoIterator<Item = &'a EdgeSyncConfig>,
        renaming: bool,
    ) -> Self {
        let mut syncer_configs: Vec<_> = syncer_configs.into_iter().collect();
        syncer_configs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut edge_sync_configs: Vec<_> = edge_sync_configs.into_iter().collect();
        edge_sync_configs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut wanted = Self::default();
        for config in syncer_configs {
            let config_name = format!("{}//{}", syncer_config::KIND, config.name);
            Merge::new(&mut wanted, config_name).syncer_config(&config.spec);
        }
        for config in edge_sync_configs {
            let config_name = format!("{}//{}", edge_sync_config::KIND, config.name);
            let mut merge = Merge::new(&mut wanted, config_name);
            merge.edge_sync_config(&config.spec);
            if renaming {
                merge.conversions(&config.spec.conversions);
            }
        }
        wanted
    }
}

/// One config on its way into the whole.
struct Merge<'a> {
    wanted: &'a mut Wanted,
    config: String,
}

impl<'a> Merge<'a> {
    fn new(wanted: &'a mut Wanted, config: String) -> Self {
        Self { wanted, config }
    }

    fn syncer_config(&mut self, spec: &syncer_config::Spec) {
        self.namespace_scope(spec);
        for (index, item) in spec.namespaced_objects.iter().enumerate() {
            let field = format!("namespacedObjects[{index}]");
            if !self.accept(&field, &item.resource) {
                continue;
            }
            for (at, objects) in item.objects_by_namespace.iter().enumerate() {
                let namespace_field = format!("{field}.objectsByNamespace[{at}].namespace");
                if objects.names.is_empty() || !self.accept_namespace(&namespace_field, &objects.namespace) {
                    continue;
                }
                let names_field = format!("{field}.objectsByNamespace[{at}].names");
                let names = self.names(&names_field, &item.resource.group, &objects.names);
                if !names.is_empty() {
                    let selected = Objects::In(Some(objects.namespace.clone()), names);
                    self.downsync(&field, &item.resource, selected);
                    self.imply(&field, &Rc::new(BTreeSet::from([objects.namespace.clone()])));
                }
            }
        }
        for (index, item) in spec.cluster_scope.iter().enumerate() {
            let field = format!("clusterScope[{index}]");
            if self.accept(&field, &item.resource) {
                let listed = item.objects.as_deref();
                let names = listed.map_or(Names::All, |names| {
                    self.names(&format!("{field}.objects"), &item.resource.group, names)
                });
                self.downsync(&field, &item.resource, Objects::In(None, names));
            }
        }
        for (index, item) in spec.upsync.iter().enumerate() {
            self.upsync(&format!("upsync[{index}]"), item);
        }
    }

    fn namespace_scope(&mut self, spec: &syncer_config::Spec) {
        let scope = &spec.namespace_scope;
        let mut namespaces = BTreeSet::new();
        for (index, namespace) in scope.namespaces.iter().enumerate() {
            if self.accept_namespace(&format!("namespaceScope.namespaces[{index}]"), namespace) {
                namespaces.insert(namespace.clone());
            }
        }
        // Every resource shares them.
        let namespaces = Rc::new(namespaces);
        self.imply("namespaceScope.namespaces", &namespaces);
        for (index, resource) in scope.resources.iter().enumerate() {
            let field = format!("namespaceScope.resources[{index}]");
            if self.accept(&field, resource) {
                self.downsync(&field, resource, Objects::Within(Rc::clone(&namespaces)));
            }
        }
    }

    fn upsync(&mut self, field: &str, item: &syncer_config::Upsync) {
        for (part, list) in [("names", &item.names), ("resources", &item.resources)] {
            if list.is_empty() {
                return self.problem(&format!("{field}.{part}"), NOTHING);
            }
        }
        let group = &item.api_group;
        let names = self.names(&format!("{field}.names"), group, &item.names);
        let (namespaces, bad) = words::namespaces(&item.namespaces);
        self.note(&format!("{field}.namespaces"), bad.as_deref());
        let bad = words::bad_group(group);
        if self.note(&format!("{field}.apiGroup"), bad.as_deref()) || names.is_empty() {
            return;
        }
        let names = Rc::new(names);
        let namespaces = match namespaces {
            Names::All => None,
            Names::These(namespaces) => Some(Rc::new(namespaces)),
        };
        for (index, resource) in item.resources.iter().enumerate() {
            if !self.accept_resource(&format!("{field}.resources[{index}]"), group, resource) {
                continue;
            }
            let types = if resource == ALL {
                Types::Group(group.clone())
            } else {
                Types::Plural {
                    group: group.clone(),
                    version: None,
                    resource: resource.clone(),
                }
            };
            let objects = Objects::Anywhere {
                namespaces: namespaces.clone(),
                names: Rc::clone(&names),
            };
            self.entry(Direction::Up, &format!("{field}.resources[{index}]"), types, objects);
        }
    }

    fn edge_sync_config(&mut self, spec: &edge_sync_config::Spec) {
        let down = spec.down_synced_resources.iter().map(|item| (Direction::Down, item));
        let up = spec.up_synced_resources.iter().map(|item| (Direction::Up, item));
        for (list, items) in [
            ("downSyncedResources", down.collect::<Vec<_>>()),
            ("upSyncedResources", up.collect()),
        ] {
            for (index, (direction, item)) in items.into_iter().enumerate() {
                self.reference(direction, &format!("{list}[{index}]"), item);
            }
        }
    }

    fn reference(&mut self, direction: Direction, field: &str, item: &Ref) {
        let bad = words::bad_reference(item);
        let (part, why) = match () {
            () if item.kind.is_empty() => ("kind", NOTHING.to_owned()),
            () if item.name.is_empty() => ("name", NOTHING.to_owned()),
            () if direction == Direction::Down && item.namespace == ALL => (
                "namespace",
                "\"*\" is not supported for downsync; name each namespace".to_owned(),
            ),
            () if words::is_never_synced_as_kind(&item.group, &item.kind) => {
                ("kind", format!("{} of {:?} is never synced", item.kind, item.group))
            }
            () if bad.is_some() => bad.unwrap_or_default(),
            () => {
                let types = Types::Kind {
                    group: item.group.clone(),
                    version: item.version.clone(),
                    kind: item.kind.clone(),
                };
                let objects = Objects::Ref {
                    namespace: item.namespace.clone(),
                    names: Names::from_list(std::slice::from_ref(&item.name)),
                };
                self.entry(direction, field, types, objects);
                return;
            }
        };
        self.problem(&format!("{field}.{part}"), &why);
    }

    /// Takes over the conversions that do not contradict one that came before.
    fn conversions(&mut self, conversions: &[edge_sync_config::Conversion]) {
        for (index, item) in conversions.iter().enumerate() {
            let field = format!("conversions[{index}]");
            let conversion = Conversion {
                hub: Triple::of(&item.upstream),
                edge: Triple::of(&item.downstream),
            };
            if let Some((part, why)) = conversion.cannot_be() {
                self.problem(&format!("{field}.{part}"), why);
                continue;
            }
            if self.wanted.conversions.contains(&conversion) {
                continue;
            }
            let contradicts = |known: &&Conversion| known.hub == conversion.hub || known.edge == conversion.edge;
            match self.wanted.conversions.iter().find(contradicts) {
                Some(first) => {
                    let why = format!(
                        "contradicts another conversion, of {} to {}, which comes first by the names of the configs and is \
                         used",
                        first.hub, first.edge
                    );
                    self.problem(&field, &why);
                }
                None => self.wanted.conversions.push(conversion),
            }
        }
    }

    /// True if the reference can name a resource at all; reports it otherwise.
    fn accept(&mut self, field: &str, resource: &ResourceRef) -> bool {
        if resource.resource == ALL {
            let why = "\"*\" is not supported for downsync; name each resource";
            self.problem(&format!("{field}.resource"), why);
            return false;
        }
        if !self.accept_resource(&format!("{field}.resource"), &resource.group, &resource.resource) {
            return false;
        }
        let bad = words::bad_group(&resource.group);
        let bad_version = words::bad_version(&resource.api_version);
        !self.note(&format!("{field}.group"), bad.as_deref())
            && !self.note(&format!("{field}.apiVersion"), bad_version.as_deref())
    }

    fn accept_resource(&mut self, field: &str, group: &str, resource: &str) -> bool {
        let why = match () {
            () if resource.is_empty() => NOTHING.to_owned(),
            () if resource.contains('/') => format!("{} is a subresource and cannot be synced", words::cut(resource)),
            () if words::is_never_synced(group, resource) => {
                format!("{} is never synced", crate::cluster::qualified(group, resource))
            }
            () => return !self.note(field, words::bad_word("resource", resource).as_deref()),
        };
        self.problem(field, &why);
        false
    }

    fn accept_namespace(&mut self, field: &str, namespace: &str) -> bool {
        let why = match namespace {
            "" => Some(NOTHING.to_owned()),
            ALL => Some("\"*\" is not supported for namespaces of downsync; name each namespace".to_owned()),
            _ => words::bad_namespace(namespace),
        };
        !self.note(field, why.as_deref())
    }

    /// The names that objects of the group may have; reports the others.
    fn names(&mut self, field: &str, group: &str, names: &[String]) -> Names {
        let (names, bad) = words::names(group, names);
        self.note(field, bad.as_deref());
        names
    }

    /// True if there is something wrong with the field, which is reported.
    fn note(&mut self, field: &str, why: Option<&str>) -> bool {
        if let Some(why) = why {
            self.problem(field, why);
        }
        why.is_some()
    }

    fn imply(&mut self, field: &str, namespaces: &Rc<BTreeSet<String>>) {
        let resource = ResourceRef {
            group: String::new(),
            resource: "namespaces".into(),
            api_version: "v1".into(),
        };
        if !namespaces.is_empty() {
            self.downsync(field, &resource, Objects::Implied(Rc::clone(namespaces)));
        }
    }

    fn downsync(&mut self, field: &str, resource: &ResourceRef, objects: Objects) {
        let types = Types::Plural {
            group: resource.group.clone(),
            version: Some(resource.api_version.clone()),
            resource: resource.resource.clone(),
        };
        self.entry(Direction::Down, field, types, objects);
    }

    fn entry(&mut self, direction: Direction, field: &str, types: Types, objects: Objects) {
        self.wanted.entries.push(Entry {
            direction,
            types,
            objects,
            place: Place {
                config: self.config.clone(),
                field: field.to_owned(),
            },
        });
    }

    fn problem(&mut self, field: &str, message: &str) {
        let problem = Problem {
            place: Place {
                config: self.config.clone(),
                field: field.to_owned(),
            },
            message: message.to_owned(),
        };
        self.wanted.problems.insert(problem);
    }
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
        write!(
            f,
            "{} {}",
            crate::cluster::qualified(&self.group, &self.kind),
            self.name
        )
    }
}

impl Conversion {
    /// True if both names are of one kind.
    pub(super) fn keeps_kind(&self) -> bool {
        (&self.hub.group, &self.hub.kind) == (&self.edge.group, &self.edge.kind)
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
