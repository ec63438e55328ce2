//! What is left of values of which servers and controllers of the hub have filled in a part, kind by kind.

use serde_json::{Map, Value, json};

use super::hub::Hub;
use crate::plan::Direction;

/// What the API server gives to a Job and its pods (pkg/registry/batch/job/strategy.go).
pub(super) const JOB_LABELS: [&str; 4] = [
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
];

/// Annotations that ask a controller to fill in `caBundle`: the value from the hub's controller is not for the edge.
const CA_INJECTIONS: [&str; 4] = [
    "cert-manager.io/inject-apiserver-ca",
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "service.beta.openshift.io/inject-cabundle",
];

/// Set by the volume controller on what it has bound by its own choice (pkg/controller/volume/persistentvolume).
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Removes the fields of an object that have become `Null`.
fn remove_nulls(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
}

/// Keeps the items of the list `key` for which `keep` is true; an empty list is removed.
fn retain_items(fields: &mut Map<String, Value>, key: &str, keep: impl Fn(&Value) -> bool) {
    if let Some(Value::Array(items)) = fields.get_mut(key) {
        items.retain(keep);
        if items.is_empty() {
            fields.remove(key);
        }
    }
}

/// An address that is allocated to a Service. No IP (`None`) is always the user's choice.
pub(super) fn address(value: &mut Value, hub: &Hub<'_>, field: &str) {
    if !hub.is_headless() {
        hub.keep_if_set(value, &["f:spec", field]);
    }
}

/// The ports of nodes that are allocated to the ports of a Service.
pub(super) fn node_ports(ports: &mut Value, hub: &Hub<'_>) {
    let ports = ports.as_array_mut();
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        let item = format!("k:{}", json!({"port": port.get("port"), "protocol": protocol}));
        if let Some(value) = port.get_mut("nodePort") {
            hub.keep_if_set(value, &["f:spec", "f:ports", &item, "f:nodePort"]);
        }
        remove_nulls(port);
    }
}

/// `OpenShift` makes a secret for each registry and lists it. [`crate::sync::pull_secrets`] handles the rest.
pub(super) fn pull_secrets(secrets: &mut Value, hub: &Hub<'_>) {
    let generated = format!("{}-dockercfg-", hub.object.meta.name);
    if let Value::Array(items) = secrets {
        items.retain(|item| !item["name"].as_str().is_some_and(|name| name.starts_with(&generated)));
        if items.is_empty() {
            *secrets = Value::Null;
        }
    }
}

/// What the admission plugins Priority, `RuntimeClass`, `ServiceAccount` and `DefaultTolerationSeconds`, the scheduler and
/// `kubectl debug` add to a pod. The edge's admission adds its own, and refuses other values for the first three fields.
pub(super) fn pod(spec: &mut Value, hub: &Hub<'_>) {
    const DEFAULT_TOLERATIONS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let Value::Object(fields) = spec else { return };
    for key in [
        "priority",
        "preemptionPolicy",
        "overhead",
        "serviceAccount",
        "ephemeralContainers",
    ] {
        fields.remove(key);
    }
    // The node on which a Pod of the edge runs is what the hub is to see.
    if hub.direction == Direction::Down
        && let Some(node) = fields.get_mut("nodeName")
    {
        hub.keep_if_set(node, &["f:spec", "f:nodeName"]);
    }
    for (key, owned) in [
        ("imagePullSecrets", "f:imagePullSecrets"),
        ("priorityClassName", "f:priorityClassName"),
    ] {
        if let Some(value) = fields.get_mut(key) {
            hub.drop_if_unset(value, &["f:spec", owned]);
        }
    }
    remove_nulls(fields);
    retain_items(fields, "tolerations", |one| {
        let added = one["operator"] == "Exists" && one["effect"] == "NoExecute" && one["tolerationSeconds"] == 300;
        !(added
            && one["key"]
                .as_str()
                .is_some_and(|key| DEFAULT_TOLERATIONS.contains(&key)))
    });
    let is_token = |one: &Value| {
        one["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("kube-api-access-"))
    };
    retain_items(fields, "volumes", |volume| !is_token(volume));
    for list in ["containers", "initContainers"] {
        let containers = fields.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            retain_items(container, "volumeMounts", |mount| !is_token(mount));
        }
    }
}

/// The selector that the API server makes from a Job's UID, and the labels that go with it.
pub(super) fn job(spec: &mut Value, _: &Hub<'_>) {
    let Value::Object(fields) = spec else { return };
    if fields.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    fields.remove("selector");
    let Some(Value::Object(template)) = fields.get_mut("template") else {
        return;
    };
    if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|key, _| !JOB_LABELS.contains(&key.as_str()));
        }
        // An empty map would be owned by us as a whole, with the edge's labels in it.
        metadata.retain(|_, value| *value != json!({}));
        if metadata.is_empty() {
            template.remove("metadata");
        }
    }
}

/// What names another object, without its UID at the hub; nothing if the hub's controller chose it, as the claim of a volume.
pub(super) fn reference(value: &mut Value, hub: &Hub<'_>) {
    if hub.is_annotated(BOUND_BY_CONTROLLER) {
        *value = Value::Null;
    } else if let Value::Object(fields) = value {
        without_uid(fields);
    }
}

/// The same of what is behind each address of a Service.
pub(super) fn targets_of_addresses(value: &mut Value, _: &Hub<'_>) {
    // As servers print it: without any.
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    targets(value);
}

fn targets(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(targets),
        Value::Object(fields) => {
            if let Some(Value::Object(reference)) = fields.get_mut("targetRef") {
                without_uid(reference);
            }
            fields.values_mut().for_each(targets);
        }
        _ => {}
    }
}

fn without_uid(reference: &mut Map<String, Value>) {
    reference.remove("uid");
    reference.remove("resourceVersion");
}

/// Removes each `caBundle` that is empty or a placeholder, or that a controller of the hub has filled in.
pub(super) fn ca_bundles(value: &mut Value, hub: &Hub<'_>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| ca_bundles(item, hub)),
        Value::Object(fields) => {
            // A line end, what kubebuilder writes where a value is required and is not known.
            let placeholder = |bundle: &Value| bundle.as_str().is_none_or(|text| matches!(text, "" | "Cg=="));
            let injected = CA_INJECTIONS.iter().any(|key| hub.is_annotated(key));
            fields.retain(|key, value| key != "caBundle" || !(injected || placeholder(value)));
            fields.values_mut().for_each(|value| ca_bundles(value, hub));
        }
        _ => {}
    }
}

/// The rules of an aggregated role are gathered by each cluster's controller. A role that is no longer aggregated and
/// has no rules must grant nothing at the edge either; null would keep the rules that were gathered there.
pub(super) fn aggregated_rules(rules: &mut Value, hub: &Hub<'_>) {
    if hub.object.field("aggregationRule").is_some_and(|rule| rule != "null") {
        *rules = Value::Null;
    } else if rules.is_null() {
        *rules = json!([]);
    }
}
