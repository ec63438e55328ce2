//! The first step: all configs merged into one selection per resource.

use std::collections::BTreeMap;

use super::Problem;
use super::selector::{ALL, Names, Selector};
use crate::api::syncer_config::{ResourceRef, Spec, SyncerConfig};

/// Everything that the configs ask for, by group and plural.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The resources.
    pub types: BTreeMap<(String, String), WantedType>,
    /// What in the configs cannot be followed, whatever the servers serve.
    pub problems: Vec<Problem>,
}

/// What the configs ask of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedType {
    /// The version of the first config (by name) that names the resource.
    pub version: String,
    /// The objects.
    pub selector: Selector,
    /// Each place that names it: config, field, and whether that place is for namespaced resources.
    pub origins: Vec<Origin>,
}

/// A place in a config that names a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the config.
    pub config: String,
    /// The field, `namespacedObjects[0]`.
    pub field: String,
    /// True where namespaced resources belong, false where cluster-scoped ones do, absent where it is implied.
    pub namespaced: Option<bool>,
}

impl Wanted {
    /// Merges the configs. The result does not depend on their order.
    pub fn from_configs<'a>(configs: impl IntoIterator<Item = &'a SyncerConfig>) -> Self {
        let mut configs: Vec<_> = configs.into_iter().collect();
        configs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut wanted = Self::default();
        for config in configs {
            Merge {
                wanted: &mut wanted,
                config: &config.name,
            }
            .spec(&config.spec);
        }
        wanted
    }
}

/// A resource type that was synced once: its copies may still be there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncedType {
    /// API group.
    pub group: String,
    /// Version it was synced at.
    pub version: String,
    /// Lowercase plural.
    pub resource: String,
}

impl Wanted {
    /// Adds types that were synced and are no longer asked for, with an empty selection: their copies are looked at, and
    /// go when their hub objects are gone.
    pub fn retain<'a>(&mut self, synced: impl IntoIterator<Item = &'a SyncedType>) {
        for known in synced {
            let key = (known.group.clone(), known.resource.clone());
            self.types.entry(key).or_insert_with(|| WantedType {
                version: known.version.clone(),
                selector: Selector::default(),
                origins: Vec::new(),
            });
        }
    }
}

impl WantedType {
    /// True if a config asks for it; false if it is only retained.
    pub fn is_selected(&self) -> bool {
        !self.origins.is_empty()
    }
}

/// One config on its way into the whole.
struct Merge<'a> {
    wanted: &'a mut Wanted,
    config: &'a str,
}

impl Merge<'_> {
    fn spec(&mut self, spec: &Spec) {
        self.namespace_scope(spec);
        for (index, item) in spec.namespaced_objects.iter().enumerate() {
            let field = format!("namespacedObjects[{index}]");
            if !self.accept(&field, &item.resource) {
                continue;
            }
            for (at, objects) in item.objects_by_namespace.iter().enumerate() {
                if objects.names.is_empty() {
                    continue;
                }
                if self.accept_namespace(
                    &format!("{field}.objectsByNamespace[{at}].namespace"),
                    &objects.namespace,
                ) {
                    self.select(
                        &field,
                        &item.resource,
                        Some(true),
                        &objects.namespace,
                        Names::from_list(&objects.names),
                    );
                    self.imply(&field, &objects.namespace);
                }
            }
        }
        for (index, item) in spec.cluster_scope.iter().enumerate() {
            let field = format!("clusterScope[{index}]");
            let names = item.objects.as_deref().map_or(Names::All, Names::from_list);
            if self.accept(&field, &item.resource) {
                self.select(&field, &item.resource, Some(false), "", names);
            }
        }
        if !spec.upsync.is_empty() {
            self.problem(
                "upsync",
                "upsync is not available in this version; nothing travels to the hub",
            );
        }
    }

    fn namespace_scope(&mut self, spec: &Spec) {
        let scope = &spec.namespace_scope;
        let mut namespaces = Vec::new();
        for (index, namespace) in scope.namespaces.iter().enumerate() {
            let field = format!("namespaceScope.namespaces[{index}]");
            if self.accept_namespace(&field, namespace) {
                self.imply(&field, namespace);
                namespaces.push(namespace);
            }
        }
        for (index, resource) in scope.resources.iter().enumerate() {
            let field = format!("namespaceScope.resources[{index}]");
            if self.accept(&field, resource) {
                for namespace in &namespaces {
                    self.select(&field, resource, Some(true), namespace, Names::All);
                }
            }
        }
    }

    /// True if the reference can name a resource at all; reports it otherwise.
    fn accept(&mut self, field: &str, resource: &ResourceRef) -> bool {
        let name = resource.resource.as_str();
        let (part, why) = match () {
            () if name.is_empty() => ("resource", "is empty; the entry selects nothing".to_owned()),
            () if name == ALL => (
                "resource",
                "\"*\" is not supported for downsync; name each resource".to_owned(),
            ),
            () if name.contains('/') => ("resource", format!("{name:?} is a subresource and cannot be synced")),
            () if resource.api_version.is_empty() => {
                ("apiVersion", "is empty; write the version, such as \"v1\"".to_owned())
            }
            () if resource.api_version.contains('/') => {
                let version = &resource.api_version;
                (
                    "apiVersion",
                    format!("{version:?} holds a group; write the version alone, such as \"v1\""),
                )
            }
            () if never_downsynced(&resource.group, name) => (
                "resource",
                format!(
                    "{} never travels to the edge",
                    crate::cluster::qualified(&resource.group, name)
                ),
            ),
            () => return true,
        };
        self.problem(&format!("{field}.{part}"), &why);
        false
    }

    fn accept_namespace(&mut self, field: &str, namespace: &str) -> bool {
        let why = match namespace {
            "" => "is empty; the entry selects nothing",
            ALL => "\"*\" is not supported for namespaces of downsync; name each namespace",
            _ => return true,
        };
        self.problem(field, why);
        false
    }

    fn imply(&mut self, field: &str, namespace: &str) {
        let namespaces = ResourceRef {
            group: String::new(),
            resource: "namespaces".into(),
            api_version: "v1".into(),
        };
        self.wanted_type(field, &namespaces, None).selector.imply(namespace);
    }

    fn select(&mut self, field: &str, resource: &ResourceRef, namespaced: Option<bool>, namespace: &str, names: Names) {
        self.wanted_type(field, resource, namespaced)
            .selector
            .add(namespace, names);
    }

    fn wanted_type(&mut self, field: &str, resource: &ResourceRef, namespaced: Option<bool>) -> &mut WantedType {
        let key = (resource.group.clone(), resource.resource.clone());
        let known = self.wanted.types.get(&key).map(|known| known.version.clone());
        if let Some(version) = known.filter(|version| *version != resource.api_version) {
            let why = format!(
                "{:?} differs from {version:?}, which another entry gives for {}; {version:?} is used",
                resource.api_version,
                crate::cluster::qualified(&resource.group, &resource.resource),
            );
            self.problem(&format!("{field}.apiVersion"), &why);
        }
        let wanted = self.wanted.types.entry(key).or_insert_with(|| WantedType {
            version: resource.api_version.clone(),
            selector: Selector::default(),
            origins: Vec::new(),
        });
        let origin = Origin {
            config: self.config.to_owned(),
            field: field.to_owned(),
            namespaced,
        };
        if !wanted.origins.contains(&origin) {
            wanted.origins.push(origin);
        }
        wanted
    }

    fn problem(&mut self, field: &str, message: &str) {
        let problem = Problem {
            config: self.config.to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        };
        if !self.wanted.problems.contains(&problem) {
            self.wanted.problems.push(problem);
        }
    }
}

/// Types that belong to one side alone (spec 3.8): kcp's own APIs, the syncer's configs, and what controllers use to
/// talk to each other.
fn never_downsynced(group: &str, resource: &str) -> bool {
    group == crate::api::GROUP
        || group == "kcp.io"
        || group.ends_with(".kcp.io")
        || matches!(
            (group, resource),
            ("" | "events.k8s.io", "events") | ("coordination.k8s.io", "leases")
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ObjectName;
    use crate::plan::Selection;

    fn config(name: &str, spec: &serde_json::Value) -> SyncerConfig {
        let object = serde_json::json!({"metadata": {"name": name}, "spec": spec});
        SyncerConfig::parse(object.to_string().as_bytes()).unwrap()
    }

    fn wanted(spec: &serde_json::Value) -> Wanted {
        Wanted::from_configs([&config("the-one", spec)])
    }

    fn selection(wanted: &Wanted, group: &str, resource: &str, namespace: &str, name: &str) -> Selection {
        wanted
            .types
            .get(&(group.to_owned(), resource.to_owned()))
            .map_or(Selection::None, |wanted| {
                wanted.selector.selects(&ObjectName::new(namespace, name))
            })
    }

    #[test]
    fn selects_what_spec_section_1_says() {
        let wanted = wanted(&serde_json::json!({
            "namespaceScope": {
                "namespaces": ["shop"],
                "resources": [{"group": "apps", "resource": "deployments", "apiVersion": "v1"}],
            },
            "namespacedObjects": [{
                "group": "", "resource": "configmaps", "apiVersion": "v1",
                "objectsByNamespace": [
                    {"namespace": "shop", "names": ["settings"]},
                    {"namespace": "billing", "names": ["*"]},
                    {"namespace": "unused", "names": []},
                    {"namespace": "absent"},
                ],
            }],
            "clusterScope": [
                {"group": "m.example.org", "resource": "gauges", "apiVersion": "v1"},
                {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": []},
                {"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "apiVersion": "v1", "objects": ["*"]},
                {"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1", "objects": ["a.b"]},
                {"group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["billing"]},
            ],
        }));
        assert_eq!(wanted.problems, []);
        let rbac = "rbac.authorization.k8s.io";
        for (group, resource, namespace, name, expected) in [
            ("apps", "deployments", "shop", "any", Selection::Full),
            ("apps", "deployments", "billing", "any", Selection::None),
            ("", "configmaps", "shop", "settings", Selection::Full),
            ("", "configmaps", "shop", "other", Selection::None),
            ("", "configmaps", "billing", "any", Selection::Full),
            ("", "configmaps", "unused", "any", Selection::None),
            ("m.example.org", "gauges", "", "any", Selection::Full),
            (rbac, "clusterroles", "", "any", Selection::None),
            (rbac, "clusterrolebindings", "", "any", Selection::Full),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "",
                "a.b",
                Selection::Full,
            ),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "",
                "c.d",
                Selection::None,
            ),
            ("", "namespaces", "", "shop", Selection::Implied),
            ("", "namespaces", "", "billing", Selection::Full),
            ("", "namespaces", "", "unused", Selection::None),
            ("", "namespaces", "", "absent", Selection::None),
        ] {
            let got = selection(&wanted, group, resource, namespace, name);
            assert_eq!(got, expected, "{resource}.{group} {namespace}/{name}");
        }
    }

    #[test]
    fn several_configs_act_as_their_union_in_any_order() {
        let a = config(
            "a",
            &serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}]}),
        );
        let b = config(
            "b",
            &serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["x", "y"]}]}]}),
        );
        let both = Wanted::from_configs([&a, &b]);
        assert_eq!(both, Wanted::from_configs([&b, &a]));
        assert_eq!(selection(&both, "", "configmaps", "shop", "x"), Selection::Full);
        assert_eq!(selection(&both, "", "configmaps", "shop", "y"), Selection::Full);
        let only_a = Wanted::from_configs([&a]);
        assert_eq!(selection(&only_a, "", "configmaps", "shop", "x"), Selection::Full);
        assert_eq!(selection(&only_a, "", "configmaps", "shop", "y"), Selection::None);
    }

    #[test]
    fn reports_what_cannot_be_followed_and_follows_the_rest() {
        let cases = [
            (
                "clusterScope",
                serde_json::json!([{"group": "", "resource": "*", "apiVersion": "v1"}]),
                "clusterScope[0].resource",
            ),
            (
                "clusterScope",
                serde_json::json!([{"group": "", "resource": "", "apiVersion": "v1"}]),
                "clusterScope[0].resource",
            ),
            (
                "clusterScope",
                serde_json::json!([{"group": "apps", "resource": "deployments/scale", "apiVersion": "v1"}]),
                "clusterScope[0].resource",
            ),
            (
                "clusterScope",
                serde_json::json!([{"group": "apps", "resource": "x", "apiVersion": "apps/v1"}]),
                "clusterScope[0].apiVersion",
            ),
            (
                "clusterScope",
                serde_json::json!([{"group": "apis.kcp.io", "resource": "apibindings", "apiVersion": "v1alpha1"}]),
                "clusterScope[0].resource",
            ),
            (
                "namespaceScope",
                serde_json::json!({"namespaces": ["*"], "resources": []}),
                "namespaceScope.namespaces[0]",
            ),
        ];
        for (key, value, field) in cases {
            let mut spec = serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
                "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}]});
            spec[key] = value;
            let wanted = wanted(&spec);
            assert_eq!(
                wanted
                    .problems
                    .iter()
                    .map(|problem| problem.field.as_str())
                    .collect::<Vec<_>>(),
                [field]
            );
            assert_eq!(selection(&wanted, "", "configmaps", "shop", "x"), Selection::Full);
        }
    }
}
