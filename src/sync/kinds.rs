//! What of a hub object is synced, kind by kind.
//!
//! What the hub's API server or its controllers filled in is not synced, so that the edge's own values stay: they
//! belong to no field that is applied. What the hub's user set is synced. Objects of kinds without rules are passed on
//! as raw slices; of the others only the field that a rule names is parsed, since a CRD can be a megabyte of schema.
//!
//! Who set a field is in the object's `managedFields`. Seen on kube-apiserver 1.36, for POST, PUT, patch and apply alike:
//! what the server allocates (`clusterIP`, `nodePort`), what admission adds (a storage class, a pod's tolerations) and
//! what a binding sets (`nodeName`) is owned by nobody, also after a client has read the object and written it. A
//! default of the schema (`replicas: 1`) is owned by the client that sends whole objects, and by nobody after an apply. Of
//! such a client that notes in an annotation what people have given it, the note says whether they have set the field.

mod accounts;
mod unset;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use kube_lite::fields::from_text;
use kube_lite::{Error, ResourceType};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use self::unset::found_at;
pub(crate) use self::unset::retain_unset;
use super::managed_fields::{MADE_UP, is_controller};
use super::top_fields::object_of;
use crate::plan::Direction;

/// Cleans one value in place; `Null` says that it is not synced at all.
type Clean = fn(&mut Value, &Hub<'_>);

/// Group and plural of a type (`*` for all types), the path from the top of its objects to a value, and what is done to that value.
type Rule = (&'static str, &'static str, &'static [&'static str], Clean);

/// Where clients that send whole objects note what people have given them.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const ADMISSION: &str = "admissionregistration.k8s.io";
const BATCH: &str = "batch";

#[rustfmt::skip]
const RULES: &[Rule] = &[
    ("", "namespaces", &["spec"], drop_value),
    ("", "persistentvolumeclaims", &["spec", "volumeName"], |value, hub| hub.keep_if_set(value, &["f:spec", "f:volumeName"])),
    // The hub's default class, from admission or later from the volume controller.
    ("", "persistentvolumeclaims", &["spec", "storageClassName"], |value, hub| hub.drop_if_unset(value, &["f:spec", "f:storageClassName"])),
    ("", "persistentvolumes", &["spec", "claimRef"], claim_ref),
    ("", "pods", &["spec"], pod),
    ("", "serviceaccounts", &["imagePullSecrets"], pull_secrets),
    ("", "serviceaccounts", &["secrets"], accounts::secrets),
    ("", "services", &["spec"], service),
    (ADMISSION, "mutatingwebhookconfigurations", &["webhooks"], ca_bundles),
    (ADMISSION, "validatingwebhookconfigurations", &["webhooks"], ca_bundles),
    ("apiextensions.k8s.io", "customresourcedefinitions", &["spec", "conversion"], ca_bundles),
    ("apiregistration.k8s.io", "apiservices", &["spec"], ca_bundles),
    // A default that nobody asked for; so an autoscaler at the edge can decide.
    ("*", "*", &["spec", "replicas"], |value, hub| hub.drop_if_unset(value, &["f:spec", "f:replicas"])),
    (BATCH, "jobs", &["spec"], job),
    // The hub's default class, from admission.
    ("networking.k8s.io", "ingresses", &["spec", "ingressClassName"], |value, hub| hub.drop_if_unset(value, &["f:spec", "f:ingressClassName"])),
    ("rbac.authorization.k8s.io", "clusterroles", &["rules"], aggregated_rules),
];

/// Annotations that the hub's controllers write, by group, plural and prefix.
const HUB_ANNOTATIONS: &[(&str, &str, &str)] = &[
    // OpenShift assigns ranges of user ids to namespaces, and registry credentials to service accounts.
    ("", "namespaces", "openshift.io/sa.scc."),
    ("", "persistentvolumeclaims", "pv.kubernetes.io/"),
    (
        "",
        "persistentvolumeclaims",
        "volume.beta.kubernetes.io/storage-provisioner",
    ),
    ("", "persistentvolumeclaims", "volume.kubernetes.io/selected-node"),
    ("", "persistentvolumeclaims", "volume.kubernetes.io/storage-provisioner"),
    ("", "persistentvolumeclaims", "volume.kubernetes.io/storage-resizer"),
    ("", "persistentvolumes", BOUND_BY_CONTROLLER),
    ("", "serviceaccounts", "openshift.io/internal-registry-pull-secret-ref"),
    ("apps", "daemonsets", "deprecated.daemonset.template.generation"),
    ("apps", "deployments", "deployment.kubernetes.io/"),
    ("apps", "replicasets", "deployment.kubernetes.io/"),
];

/// Set by the volume controller on what it has bound by its own choice (pkg/controller/volume/persistentvolume).
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// What the API server gives to a Job and its pods (pkg/registry/batch/job/strategy.go).
const JOB_LABELS: [&str; 4] = [
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

/// `"key":value` for every top-level field of a hub object that is synced, each with a leading comma.
pub(crate) fn synced_fields(
    direction: Direction,
    resource: &ResourceType,
    top: &BTreeMap<String, &RawValue>,
) -> Result<String, Error> {
    let hub = Hub {
        direction,
        top,
        meta: OnceCell::new(),
    };
    let mut fields = String::new();
    for (key, &value) in top {
        if matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            continue;
        }
        let mut cleaned: Option<Box<RawValue>> = None;
        for (_, _, path, clean) in RULES
            .iter()
            .filter(|rule| (rule.0 == "*" || resource.is(rule.0, rule.1)) && rule.2[0] == key)
        {
            let current = cleaned.as_deref().unwrap_or(value);
            let edited = edit(current, &path[1..], &|value| clean(value, &hub))
                .map_err(|error| Error::BadAnswer(format!("{key}: {error}")))?;
            cleaned = edited.or(cleaned);
        }
        let text = cleaned.as_deref().unwrap_or(value).get();
        if cleaned.is_none() || text != "null" {
            fields.push(',');
            fields.push_str(&json!(key).to_string());
            fields.push(':');
            fields.push_str(text);
        }
    }
    Ok(fields)
}

/// False for a label of a hub object that its API server or controllers wrote.
pub(crate) fn is_synced_label(resource: &ResourceType, key: &str) -> bool {
    !(resource.is(BATCH, "jobs") && JOB_LABELS.contains(&key))
}

/// False for an annotation of a hub object that its API server or controllers wrote.
pub(crate) fn is_synced_annotation(resource: &ResourceType, key: &str) -> bool {
    !HUB_ANNOTATIONS
        .iter()
        .any(|(group, plural, prefix)| resource.is(group, plural) && key.starts_with(prefix))
}

/// True for types whose objects run once, so that another object of the same name has to run again, and must not be an
/// update of the former.
pub(crate) fn runs_once(resource: &ResourceType) -> bool {
    resource.is(BATCH, "jobs") || resource.is("", "pods")
}

/// True for types of which servers keep values silently.
pub(crate) fn may_keep_silently(resource: &ResourceType) -> bool {
    resource.is("", "services")
}

/// The field of an object (`found`, whole) that keeps its value, though `fields`, those that are synced, each with a leading
/// comma, want another and the server does not object: the address of a Service that has none and is to get one.
pub(crate) fn keeps_silently(
    resource: &ResourceType,
    fields: &str,
    found: &[u8],
) -> Result<Option<&'static str>, Error> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(rename = "clusterIP", default, borrow)]
        address: std::borrow::Cow<'a, str>,
    }
    if !may_keep_silently(resource) {
        return Ok(None);
    }
    let bad = |error: serde_json::Error| Error::BadAnswer(format!("a Service: {error}"));
    let wanted = object_of(fields);
    let wanted: Wire<'_> = from_text(&wanted).map_err(bad)?;
    let found: Wire<'_> = serde_json::from_slice(found).map_err(bad)?;
    let stays_headless = found.spec.address == "None" && wanted.spec.address != "None";
    Ok(stays_headless.then_some("spec.clusterIP"))
}

/// True if `status` is that of a Job which has finished, successfully or not: it does not run again.
pub(crate) fn has_finished(resource: &ResourceType, status: Option<&RawValue>) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status<'a> {
        #[serde(borrow)]
        conditions: Option<Vec<Condition<'a>>>,
    }
    #[derive(Deserialize)]
    struct Condition<'a> {
        #[serde(rename = "type", default, borrow)]
        kind: Cow<'a, str>,
        #[serde(default, borrow)]
        status: Cow<'a, str>,
    }
    let Some(status) = status.filter(|_| resource.is(BATCH, "jobs")) else {
        return false;
    };
    let status: Status = from_text(status.get()).unwrap_or_default();
    let ends = |one: &Condition<'_>| matches!(&*one.kind, "Complete" | "Failed") && one.status == "True";
    status.conditions.iter().flatten().any(ends)
}

/// Cleans the value at `path` within `raw` and leaves everything around it as raw slices. `None` if there is no such
/// value.
fn edit(raw: &RawValue, path: &[&str], clean: &dyn Fn(&mut Value)) -> serde_json::Result<Option<Box<RawValue>>> {
    let Some((&key, rest)) = path.split_first() else {
        let mut value: Value = from_text(raw.get())?;
        clean(&mut value);
        return serde_json::value::to_raw_value(&value).map(Some);
    };
    let Some(mut fields) = from_text::<Option<BTreeMap<String, &RawValue>>>(raw.get())? else {
        return Ok(None);
    };
    let Some(edited) = fields
        .get(key)
        .map(|inner| edit(inner, rest, clean))
        .transpose()?
        .flatten()
    else {
        return Ok(None);
    };
    if edited.get() == "null" {
        fields.remove(key);
    } else {
        fields.insert(key.to_owned(), &edited);
    }
    serde_json::value::to_raw_value(&fields).map(Some)
}

/// The hub object that a value is from: what else the rules have to know of it.
struct Hub<'a> {
    direction: Direction,
    top: &'a BTreeMap<String, &'a RawValue>,
    /// Read when the first rule asks.
    meta: OnceCell<HubMeta>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HubMeta {
    name: String,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<Owner>>,
}

/// One entry of `managedFields`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    fields_v1: Value,
}

impl Owner {
    /// Whether it has set the field at `path`, written as in `fieldsV1`.
    fn owns(&self, path: &[&str]) -> bool {
        let mut fields = &self.fields_v1;
        path.iter().all(|&key| {
            fields = &fields[key];
            !fields.is_null()
        })
    }

    /// The cluster's own controllers. What they write through `scale` is an autoscaler's decision, which counts as the
    /// user's: dropping it would set the copy back to 1.
    fn is_controller(&self) -> bool {
        is_controller(&self.manager) && self.subresource != "scale"
    }

    /// A client that sends whole objects, and is named for defaults too, but notes what people have given it (`kubectl
    /// apply` without `--server-side`, and Argo CD).
    fn notes_what_is_wanted(&self) -> bool {
        const NOTE: &str = "f:kubectl.kubernetes.io/last-applied-configuration";
        self.operation == "Update" && self.owns(&["f:metadata", "f:annotations", NOTE])
    }

    /// Surely no controller that writes whole objects, whatever its name.
    fn is_person(&self) -> bool {
        (self.operation == "Apply" || self.manager.starts_with("kubectl")) && !self.is_controller()
    }

    /// The server makes this entry, of all fields, for an object that had none when it was first applied.
    fn is_made_up(&self) -> bool {
        self.manager == MADE_UP
    }
}

impl Hub<'_> {
    fn meta(&self) -> &HubMeta {
        self.meta.get_or_init(|| {
            let metadata = self.top.get("metadata").map_or("{}", |metadata| metadata.get());
            // Metadata that cannot be read counts as absent: the rules handle that.
            from_text(metadata).unwrap_or_default()
        })
    }

    fn owners(&self) -> &[Owner] {
        self.meta().managed_fields.as_deref().unwrap_or_default()
    }

    fn is_annotated(&self, key: &str) -> bool {
        self.meta()
            .annotations
            .as_ref()
            .is_some_and(|all| all.contains_key(key))
    }

    /// For values that a server allocates: kept if it is known that a user set it.
    fn keep_if_set(&self, value: &mut Value, path: &[&str]) {
        let set_by_user = |one: &Owner| one.owns(path) && !one.is_controller() && !one.is_made_up();
        if !self.owners().iter().any(set_by_user) {
            *value = Value::Null;
        }
    }

    /// For values that have a default: dropped if it is known that no user set it.
    fn drop_if_unset(&self, value: &mut Value, path: &[&str]) {
        let owners = self.owners();
        let has_set = |one: &Owner| {
            one.owns(path)
                && !one.is_controller()
                && !(one.notes_what_is_wanted() && self.was_given(path) == Some(false))
        };
        if !owners.is_empty() && !owners.iter().any(has_set) {
            *value = Value::Null;
        }
    }

    /// What people have given to a client that notes it.
    fn note(&self) -> Option<Map<String, Value>> {
        let note = self.meta().annotations.as_ref()?.get(LAST_APPLIED)?;
        from_text(note).ok()
    }

    /// Whether that has a value at this path; `None` if there is no note that can be read.
    fn was_given(&self, path: &[&str]) -> Option<bool> {
        let note = self.note()?;
        Some(matches!(found_at(&note, path), Ok(Some(value)) if !value.is_null()))
    }
}

fn drop_value(value: &mut Value, _: &Hub<'_>) {
    *value = Value::Null;
}

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

/// Addresses and ports that are allocated to a Service, and its IP families. No IP (`None`) is always the user's choice.
fn service(spec: &mut Value, hub: &Hub<'_>) {
    let Value::Object(fields) = spec else { return };
    let headless = fields.get("clusterIP").is_some_and(|address| address == "None");
    for (key, owned) in [
        ("clusterIP", "f:clusterIP"),
        ("clusterIPs", "f:clusterIPs"),
        ("healthCheckNodePort", "f:healthCheckNodePort"),
        ("ipFamilies", "f:ipFamilies"),
        ("ipFamilyPolicy", "f:ipFamilyPolicy"),
    ] {
        if let Some(value) = fields.get_mut(key)
            && !(headless && key.starts_with("clusterIP"))
        {
            hub.keep_if_set(value, &["f:spec", owned]);
        }
    }
    remove_nulls(fields);
    let ports = fields.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        let item = format!("k:{}", json!({"port": port.get("port"), "protocol": protocol}));
        if let Some(value) = port.get_mut("nodePort") {
            hub.keep_if_set(value, &["f:spec", "f:ports", &item, "f:nodePort"]);
        }
        remove_nulls(port);
    }
}

/// `OpenShift` makes a secret for each registry and lists it. [`super::pull_secrets`] handles the rest.
fn pull_secrets(secrets: &mut Value, hub: &Hub<'_>) {
    let generated = format!("{}-dockercfg-", hub.meta().name);
    if let Value::Array(items) = secrets {
        items.retain(|item| !item["name"].as_str().is_some_and(|name| name.starts_with(&generated)));
        if items.is_empty() {
            *secrets = Value::Null;
        }
    }
}

/// What the admission plugins Priority, `RuntimeClass`, `ServiceAccount` and `DefaultTolerationSeconds`, the scheduler and
/// `kubectl debug` add to a pod. The edge's admission adds its own, and refuses other values for the first three fields.
fn pod(spec: &mut Value, hub: &Hub<'_>) {
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
fn job(spec: &mut Value, _: &Hub<'_>) {
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

/// A volume's claim: what the user chose, without the UID of the hub's claim; nothing if the hub's controller chose it.
fn claim_ref(claim: &mut Value, hub: &Hub<'_>) {
    if hub.is_annotated(BOUND_BY_CONTROLLER) {
        *claim = Value::Null;
    } else if let Value::Object(fields) = claim {
        fields.remove("uid");
        fields.remove("resourceVersion");
    }
}

/// Removes each `caBundle` that is empty or a placeholder, or that a controller of the hub has filled in.
fn ca_bundles(value: &mut Value, hub: &Hub<'_>) {
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
fn aggregated_rules(rules: &mut Value, hub: &Hub<'_>) {
    if hub.top.get("aggregationRule").is_some_and(|rule| rule.get() != "null") {
        *rules = Value::Null;
    } else if rules.is_null() {
        *rules = json!([]);
    }
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
