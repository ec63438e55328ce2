//! One config after the other becomes entries, conversions and problems.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::{ConfigPlace, Conversion, Entry, Objects, Triple, Types, Wanted};
use crate::api::edge_sync_config::{self, Ref};
use crate::api::syncer_config::{self, ResourceRef};
use crate::plan::names::{ALL, Names};
use crate::plan::{Direction, Problem, steps, words};

/// What is wrong with a field that has to be there.
const NOTHING: &str = "is empty; the entry selects nothing";

/// One config that is being merged.
pub(super) struct Merge<'a> {
    wanted: &'a mut Wanted,
    config: Rc<str>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(wanted: &'a mut Wanted, config: &str) -> Self {
        Self {
            wanted,
            config: config.into(),
        }
    }

    pub(super) async fn syncer_config(&mut self, spec: &syncer_config::Spec) {
        self.namespace_scope(spec).await;
        for (index, item) in spec.namespaced_objects.iter().enumerate() {
            steps::pause().await;
            let field = format!("namespacedObjects[{index}]");
            if !self.accept(&field, &item.resource) {
                continue;
            }
            for (at, objects) in item.objects_by_namespace.iter().enumerate() {
                steps::pause().await;
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
            steps::pause().await;
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
            self.upsync(&format!("upsync[{index}]"), item).await;
        }
    }

    async fn namespace_scope(&mut self, spec: &syncer_config::Spec) {
        let scope = &spec.namespace_scope;
        let mut namespaces = BTreeSet::new();
        for (index, namespace) in scope.namespaces.iter().enumerate() {
            steps::one();
            steps::pause().await;
            if self.accept_namespace(&format!("namespaceScope.namespaces[{index}]"), namespace) {
                namespaces.insert(namespace.clone());
            }
        }
        // Every resource shares them.
        let namespaces = Rc::new(namespaces);
        self.imply("namespaceScope.namespaces", &namespaces);
        let entries = scope.resources.len();
        for (index, resource) in scope.resources.iter().enumerate() {
            steps::pause().await;
            let field = format!("namespaceScope.resources[{index}]");
            if self.accept(&field, resource) {
                let namespaces = Rc::clone(&namespaces);
                self.downsync(&field, resource, Objects::Within { namespaces, entries });
            }
        }
    }

    async fn upsync(&mut self, field: &str, item: &syncer_config::Upsync) {
        for (part, list) in [("names", &item.names), ("resources", &item.resources)] {
            if list.is_empty() {
                return self.problem(&format!("{field}.{part}"), NOTHING);
            }
        }
        let group = &item.api_group;
        let names = self.names(&format!("{field}.names"), group, &item.names);
        steps::many(item.namespaces.len());
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
            steps::pause().await;
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
                entries: item.resources.len(),
            };
            self.entry(Direction::Up, &format!("{field}.resources[{index}]"), types, objects);
        }
    }

    pub(super) async fn edge_sync_config(&mut self, spec: &edge_sync_config::Spec) {
        let down = spec.down_synced_resources.iter().map(|item| (Direction::Down, item));
        let up = spec.up_synced_resources.iter().map(|item| (Direction::Up, item));
        for (list, items) in [
            ("downSyncedResources", down.collect::<Vec<_>>()),
            ("upSyncedResources", up.collect()),
        ] {
            for (index, (direction, item)) in items.into_iter().enumerate() {
                self.reference(direction, &format!("{list}[{index}]"), item);
                steps::pause().await;
            }
        }
    }

    fn reference(&mut self, direction: Direction, field: &str, item: &Ref) {
        let bad = words::bad_reference(item);
        let (part, why) = if item.kind.is_empty() {
            ("kind", NOTHING.to_owned())
        } else if item.name.is_empty() {
            ("name", NOTHING.to_owned())
        } else if direction == Direction::Down && item.namespace == ALL {
            (
                "namespace",
                "\"*\" is not supported for downsync; name each namespace".to_owned(),
            )
        } else if words::is_never_synced(&item.group, &item.kind) {
            ("kind", format!("{} of {:?} is never synced", item.kind, item.group))
        } else if bad.is_some() {
            bad.unwrap_or_default()
        } else {
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
        };
        self.problem(&format!("{field}.{part}"), &why);
    }

    /// Takes over the conversions that do not contradict one that came before.
    pub(super) async fn conversions(&mut self, conversions: &[edge_sync_config::Conversion]) {
        for (index, item) in conversions.iter().enumerate() {
            steps::one();
            steps::pause().await;
            let field = format!("conversions[{index}]");
            let conversion = Conversion {
                place: self.place(&field),
                hub: Triple::of(&item.upstream),
                edge: Triple::of(&item.downstream),
            };
            if let Some((part, why)) = conversion.cannot_be() {
                self.problem(&format!("{field}.{part}"), why);
                continue;
            }
            let why = self.wanted.conversions.add(conversion).err().map(|first| {
                format!(
                    "contradicts another conversion, of {} to {}, which comes first by the names of the configs and is \
                     used",
                    first.hub, first.edge
                )
            });
            self.note(&field, why.as_deref());
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
        let why = if resource.is_empty() {
            NOTHING.to_owned()
        } else if resource.contains('/') {
            format!("{} is a subresource and cannot be synced", words::cut(resource))
        } else if words::is_never_synced(group, resource) {
            format!("{} is never synced", kube_lite::qualified(group, resource))
        } else {
            return !self.note(field, words::bad_word("resource", resource).as_deref());
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
        steps::many(names.len());
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
        steps::one();
        self.wanted.entries.push(Entry {
            direction,
            types,
            objects,
            place: self.place(field),
        });
    }

    fn place(&self, field: &str) -> ConfigPlace {
        ConfigPlace {
            config: Rc::clone(&self.config),
            field: field.to_owned(),
        }
    }

    fn problem(&mut self, field: &str, message: &str) {
        steps::one();
        let problem = Problem {
            place: self.place(field),
            message: message.to_owned(),
        };
        self.wanted.problems.insert(problem);
    }
}
