//! What an edge gets: the objects of `manifests/`, with the values of one registration.
//!
//! Promises: what is printed is what `kubectl kustomize` makes from the same base and components, with the same values,
//! but for a Namespace that every cluster has; in the order of the KubeStellar-Syncer's manifest; no placeholder is left,
//! and no value is empty.

use std::collections::BTreeMap;

use kube_lite::is_of_every_cluster;
use serde_json::{Value, json};

use super::hub::{Rbac, Rules};
use super::patch;
use super::scoped::Scope;

/// The base and the components, as they are in `manifests/`.
const BASE: &str = include_str!("../../manifests/base/edge-syncer.yaml");
const WIDE: Component = Component {
    kustomization: include_str!("../../manifests/components/wide/kustomization.yaml"),
    objects: include_str!("../../manifests/components/wide/rbac.yaml"),
};
const SCOPED: Component = Component {
    kustomization: include_str!("../../manifests/components/scoped/kustomization.yaml"),
    objects: include_str!("../../manifests/components/scoped/rbac.yaml"),
};
const HA: Component = Component {
    kustomization: include_str!("../../manifests/components/ha/kustomization.yaml"),
    objects: include_str!("../../manifests/components/ha/pdb.yaml"),
};
const POLL: Component = Component {
    kustomization: include_str!("../../manifests/components/poll/kustomization.yaml"),
    objects: "",
};
const METERED: Component = Component {
    kustomization: include_str!("../../manifests/components/metered/kustomization.yaml"),
    objects: "",
};
/// The roles at the hub.
const WIDE_AT_HUB: &str = include_str!("../../manifests/hub/wide.yaml");
const SCOPED_AT_HUB: &str = include_str!("../../manifests/hub/scoped.yaml");

/// The units for a machine, by the names of their files.
pub(super) const UNITS: [(&str, &str); 3] = [
    (
        "edge-syncer.service",
        include_str!("../../manifests/systemd/edge-syncer.service"),
    ),
    (
        "edge-syncer-files.service",
        include_str!("../../manifests/systemd/edge-syncer-files.service"),
    ),
    (
        "edge-syncer-files.path",
        include_str!("../../manifests/systemd/edge-syncer-files.path"),
    ),
];

/// The order of documents: what others need comes first.
const ORDER: [&str; 9] = [
    "Namespace",
    "ServiceAccount",
    TOKEN_SECRET,
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Secret",
    "Deployment",
];
/// The Secret with the token of the service account, which comes before other Secrets.
const TOKEN_SECRET: &str = "Secret of a token";

/// What is chosen beside the base and its permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Components {
    /// Two syncers, of which one is active.
    pub is_ha: bool,
    /// The hub is polled.
    pub is_polled: bool,
    /// There are fewer heartbeats and status writes.
    pub is_metered: bool,
}

impl Components {
    fn chosen(self) -> impl Iterator<Item = &'static Component> {
        let all = [(self.is_ha, &HA), (self.is_polled, &POLL), (self.is_metered, &METERED)];
        all.into_iter()
            .filter_map(|(is_chosen, component)| is_chosen.then_some(component))
    }

    /// The flags that they add to the syncer.
    pub(super) fn flags(self) -> Vec<String> {
        let operations = self.chosen().flat_map(Component::operations);
        let added = operations.flat_map(|(_, operations)| operations);
        let flags = added.filter(|operation| operation["path"].as_str().is_some_and(|path| path.ends_with("/args/-")));
        flags
            .filter_map(|operation| operation["value"].as_str().map(str::to_owned))
            .collect()
    }
}

struct Component {
    kustomization: &'static str,
    objects: &'static str,
}

impl Component {
    /// The targets that it changes, each with the operations of a patch.
    fn operations(&self) -> Vec<(Value, Vec<Value>)> {
        let kustomization = parse(self.kustomization).swap_remove(0);
        let of = |wanted: &Value| {
            let patch = parse(wanted["patch"].as_str().unwrap_or_default()).swap_remove(0);
            let operations = patch.as_array().cloned().unwrap_or_default();
            (wanted["target"]["kind"].clone(), operations)
        };
        kustomization["patches"]
            .as_array()
            .into_iter()
            .flatten()
            .map(of)
            .collect()
    }
}

/// What distinguishes one registration's manifest from another's.
#[derive(Clone, Debug)]
pub(super) struct Values<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) namespace: &'a str,
    pub(super) image: &'a str,
    pub(super) qps: Option<&'a str>,
    pub(super) burst: Option<&'a str>,
    pub(super) replicas: u8,
    pub(super) components: Components,
    pub(super) rbac: Rbac,
    /// What the configs need at the edge, which replaces the rules in `manifests/`.
    pub(super) scope: Option<&'a Scope>,
    /// The kubeconfig for the hub.
    pub(super) kubeconfig: &'a str,
}

/// All documents, in order.
pub(super) fn documents(values: &Values<'_>) -> Vec<Value> {
    let mut objects = parse(BASE);
    let rbac = match values.rbac {
        Rbac::Wide => &WIDE,
        Rbac::Scoped => &SCOPED,
    };
    // `kubectl delete -f` would delete it with everything in it.
    objects.retain(|object| object["kind"] != "Namespace" || !is_of_every_cluster(values.namespace));
    add(&mut objects, rbac);
    for component in values.components.chosen() {
        add(&mut objects, component);
    }
    for deployment in objects.iter_mut().filter(|object| object["kind"] == "Deployment") {
        if !values.components.is_ha {
            deployment["spec"]["replicas"] = values.replicas.into();
        }
        let args = &mut deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        if let Some(args) = args.as_array_mut() {
            args.extend(rate(values.qps, values.burst).into_iter().map(Value::from));
        }
    }
    for object in &mut objects {
        // Before the placeholders are filled in: the kubeconfig has its values already.
        if is_kubeconfig(object) {
            object["stringData"]["kubeconfig"] = values.kubeconfig.into();
        }
        fill(object, values);
        if let Some(rules) = values.scope.and_then(|scope| scope.rules(object)) {
            object["rules"] = parse(rules).pop().unwrap_or_else(|| json!([]));
        }
    }
    objects.sort_by_key(place);
    objects
}

/// The syncer's flags for its rate of requests, where that is not to be its own default.
pub(super) fn rate(qps: Option<&str>, burst: Option<&str>) -> Vec<String> {
    let given = [("--qps", qps), ("--burst", burst)].into_iter();
    given
        .filter_map(|(flag, value)| Some(format!("{flag}={}", value?)))
        .collect()
}

/// The Secret with the kubeconfig alone.
pub(super) fn secret(values: &Values<'_>) -> Vec<Value> {
    let mut documents = documents(values);
    documents.retain(is_kubeconfig);
    documents
}

/// The rules of the syncer's roles at the hub. `edge` is the name of the object that stands for its edge.
pub(super) fn hub_rules(rbac: Rbac, id: &str, edge: &str) -> Rules {
    let text = match rbac {
        Rbac::Wide => WIDE_AT_HUB,
        Rbac::Scoped => SCOPED_AT_HUB,
    };
    let mut found = Rules {
        everywhere: Value::Null,
        within: BTreeMap::new(),
    };
    for mut role in parse(text) {
        each_text(&mut role, &|text| {
            replace(&replace(text, "syncer_id", id), "edge_name", edge)
        });
        let rules = role["rules"].take();
        match role["metadata"]["namespace"].as_str() {
            Some(namespace) => drop(found.within.insert(namespace.to_owned(), rules)),
            None => found.everywhere = rules,
        }
    }
    found
}

/// A kubeconfig that has the hub as its only context.
pub(super) fn kubeconfig(cluster: &Value, namespace: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "contexts": [{
            "name": "default-context",
            "context": {"cluster": "default-cluster", "namespace": namespace, "user": "default-user"},
        }],
        "current-context": "default-context",
        "users": [{"name": "default-user", "user": {"token": token}}],
    })
}

/// Documents as YAML, each after a line that separates it from the one before. Rules for the configs have their
/// comments.
pub(super) fn print(documents: &[Value], scope: Option<&Scope>) -> Result<String, String> {
    let text = |document: &Value| match scope.and_then(|scope| scope.rules(document)) {
        // Without rules, all is granted by the other role.
        None | Some("") => yaml(document),
        Some(rules) => {
            let mut rest = document.clone();
            rest.as_object_mut().map(|fields| fields.remove("rules"));
            Ok([&yaml(&rest)?, "rules:\n", rules].concat())
        }
    };
    let texts: Result<Vec<String>, String> = documents.iter().map(text).collect();
    Ok(texts?.join("---\n"))
}

/// One document as YAML.
pub(super) fn yaml(document: &Value) -> Result<String, String> {
    serde_saphyr::to_string(document).map_err(|error| format!("cannot be written as YAML: {error}"))
}

fn is_kubeconfig(object: &Value) -> bool {
    object["stringData"]["kubeconfig"].is_string()
}

fn place(object: &Value) -> usize {
    let kind = match object["type"].as_str() {
        Some("kubernetes.io/service-account-token") => TOKEN_SECRET,
        _ => object["kind"].as_str().unwrap_or_default(),
    };
    ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
}

/// The files in `manifests/` are valid YAML: a test reads each of them.
fn parse(text: &str) -> Vec<Value> {
    if text.is_empty() {
        return Vec::new();
    }
    serde_saphyr::from_multiple(text).expect("manifests/ is valid YAML")
}

fn add(objects: &mut Vec<Value>, component: &Component) {
    objects.extend(parse(component.objects));
    for (kind, operations) in component.operations() {
        for object in objects.iter_mut().filter(|object| object["kind"] == kind) {
            for operation in &operations {
                patch::apply(object, operation).expect("the patches in manifests/ fit its base");
            }
        }
    }
}

/// Fills in the placeholders `${...}`.
fn fill(object: &mut Value, values: &Values<'_>) {
    let filled = [
        ("syncer_id", values.id),
        ("downstream_namespace", values.namespace),
        ("image", values.image),
        ("sync_target_name", values.name),
        ("sync_target_uid", values.uid),
    ];
    each_text(object, &|text| {
        let mut text = text.to_owned();
        for (name, value) in filled {
            text = replace(&text, name, value);
        }
        text
    });
}

fn replace(text: &str, name: &str, value: &str) -> String {
    text.replace(&["${", name, "}"].concat(), value)
}

/// Changes each text in a value, but for the names of fields.
fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        _ => {}
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
