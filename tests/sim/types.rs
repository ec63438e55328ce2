//! What a side serves: built-in types, and those that its CRDs define.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::store::{Key, Object, Store};

/// A served type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural.
    pub resource: String,
    /// Kind.
    pub kind: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// True if it has a status subresource, so that other writes leave status alone.
    pub status: bool,
    /// True if a CRD defines it.
    pub custom: bool,
}

/// Plural of CRDs with their group.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Plural of the kind of configs that not every hub has.
pub const EDGE_SYNC_CONFIGS: &str = "edgesyncconfigs";

/// Plural of the objects that stand for edges, which not every hub has either.
pub const EDGES: &str = "edges";

/// Group, version, plural, kind, namespaced, status subresource.
const BUILT_IN: [BuiltIn; 9] = [
    ("", "v1", "namespaces", "Namespace", false, true),
    ("", "v1", "configmaps", "ConfigMap", true, false),
    ("", "v1", "events", "Event", true, false),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false),
    ("apps", "v1", "deployments", "Deployment", true, true),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
        true,
    ),
    // Built in, because how the hub got it is not what is read here. The one has the status as a subresource, the other one
    // is from a CRD without.
    (
        "edge.kubestellar.io",
        "v2alpha1",
        "syncerconfigs",
        "SyncerConfig",
        false,
        true,
    ),
    (
        "edge.kubestellar.io",
        "v2alpha1",
        EDGE_SYNC_CONFIGS,
        "EdgeSyncConfig",
        false,
        false,
    ),
    ("edge.kubestellar.io", "v2alpha1", EDGES, "Edge", false, true),
];

impl Type {
    /// `resource.group`, or the plural alone.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// `group/version`, or the version alone.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// What is before the present version: the type has it no longer.
    pub fn former_version(&self) -> String {
        let former = Self {
            version: "v0".to_owned(),
            ..self.clone()
        };
        former.api_version()
    }

    /// The key of an object of this type.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(&self.qualified(), namespace, name)
    }

    /// `details` of a `Status` about an object of this type.
    pub fn details(&self, name: &str) -> Value {
        if self.group.is_empty() {
            json!({"name": name, "kind": self.resource})
        } else {
            json!({"name": name, "group": self.group, "kind": self.resource})
        }
    }

    /// True if a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    /// True if a CRD.
    pub fn is_definition(&self) -> bool {
        self.resource == "customresourcedefinitions"
    }
}

type BuiltIn = (&'static str, &'static str, &'static str, &'static str, bool, bool);

fn built_in_type(&(group, version, resource, kind, namespaced, status): &BuiltIn) -> Type {
    Type {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        status,
        custom: false,
    }
}

/// The types of one CRD, one for each served version.
fn defined_by(definition: &Value) -> Vec<Type> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .map(|version| Type {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            resource: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            namespaced: spec["scope"] == "Namespaced",
            status: version["subresources"]["status"].is_object(),
            custom: true,
        })
        .collect()
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|one| one["type"] == "Established" && one["status"] == "True")
}

fn built_in(store: &Store) -> impl Iterator<Item = &'static BuiltIn> {
    BUILT_IN.iter().filter(|ty| !store.lacks.contains(ty.2))
}

/// Everything that is served now.
pub fn served(store: &Store) -> Vec<Type> {
    let is_served = |(key, object): &(&Key, &Object)| is_established(object) && !store.hidden.contains_key(&*key.name);
    let definitions = store.of(DEFINITIONS, "").filter(is_served);
    built_in(store)
        .map(built_in_type)
        .chain(definitions.flat_map(|(_, object)| defined_by(object)))
        .collect()
}

/// Everything that discovery reports: not what is served, but not reported yet.
fn reported_by(store: &Store, unreported: &BTreeSet<Key>) -> Vec<Type> {
    let mut types = served(store);
    types.retain(|ty| !unreported.contains(&Key::new(DEFINITIONS, "", &ty.qualified())));
    types
}

/// One type, if it is served.
pub fn find(store: &Store, group: &str, version: &str, resource: &str) -> Option<Type> {
    let is_it = |ty: &Type| ty.group == group && ty.version == version && ty.resource == resource;
    let known = built_in(store).find(|ty| (ty.0, ty.1, ty.2) == (group, version, resource));
    let definition = || {
        let key = Key::new(DEFINITIONS, "", &format!("{resource}.{group}"));
        let is_served = |object: &&Object| is_established(object) && !store.hidden.contains_key(&*key.name);
        let object = store.get(&key).filter(is_served)?;
        defined_by(object).into_iter().find(|ty| is_it(ty))
    };
    known.map(built_in_type).or_else(definition)
}

/// A type by its qualified name, at any version.
pub fn by_name(store: &Store, qualified: &str) -> Option<Type> {
    let (resource, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    let known = built_in(store).find(|ty| (ty.0, ty.2) == (group, resource));
    let of_definition = || {
        let definition = store.get(&Key::new(DEFINITIONS, "", qualified))?;
        let is_served = is_established(definition) && !store.hidden.contains_key(qualified);
        is_served.then(|| defined_by(definition).into_iter().next())?
    };
    known.map(built_in_type).or_else(of_definition)
}

/// True if the group is one of the server's own, whose 404s are `Status` objects.
pub fn is_built_in_group(group: &str) -> bool {
    BUILT_IN.iter().any(|ty| ty.0 == group)
}

/// `/apis`, without the types of these CRDs.
pub fn groups(store: &Store, unreported: &BTreeSet<Key>) -> Value {
    let types = reported_by(store, unreported);
    let mut groups: Vec<&str> = types
        .iter()
        .map(|ty| ty.group.as_str())
        .filter(|group| !group.is_empty())
        .collect();
    groups.sort_unstable();
    groups.dedup();
    let group = |name: &str| {
        let mut versions: Vec<&str> = Vec::new();
        for ty in types.iter().filter(|ty| ty.group == name) {
            if !versions.contains(&ty.version.as_str()) {
                versions.push(&ty.version);
            }
        }
        let versions: Vec<Value> = versions
            .into_iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({"name": name, "preferredVersion": versions[0], "versions": versions})
    };
    let groups: Vec<Value> = groups.into_iter().map(group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/group/version` without the types of these CRDs; `None` if it is empty.
pub fn resources(store: &Store, unreported: &BTreeSet<Key>, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for ty in reported_by(store, unreported)
        .into_iter()
        .filter(|ty| ty.group == group && ty.version == version)
    {
        let one = |name: String, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": ty.namespaced, "kind": ty.kind, "verbs": verbs});
        let verbs = [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        resources.push(one(ty.resource.clone(), &verbs));
        if ty.status {
            resources.push(one(format!("{}/status", ty.resource), &["get", "patch", "update"]));
        }
    }
    let version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!resources.is_empty()).then(
        || json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}),
    )
}
