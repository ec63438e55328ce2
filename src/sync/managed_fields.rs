//! Whose fields an edge copy has: noticing drift, taking over what other writers left, naming who changes a copy back.
//!
//! The API server keeps for each field manager the set of fields that it owns. Whoever changes or removes a field that
//! we applied takes it out of our set; what others add beside our fields, and status, leaves it as it is. So a change
//! of our set is drift. The only other drift is an apply of other values under our own name: the late request of a
//! syncer that is no longer the leader. The server gives our entry a new time then, and only then. [`marks`] detects
//! both between one version of a copy and the next, without knowing any value, also from metadata alone.
//!
//! Server-side apply removes a field only when its last owner stops applying it. So fields that people added with
//! kubectl, and all fields of copies that the Go syncer wrote with plain updates, are first made ours by editing
//! `metadata.managedFields`, and then fall away with the next apply, because the hub does not have them. (Flux does the
//! same.)

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::field_set::FieldSet;
use super::fields::with_fields;
use crate::bounded::at_most;
use crate::cluster::{Error, FIELD_MANAGER, ResourceType};
use crate::plan::Direction;

/// Field managers of the Go syncer: its user agent begins with the name of its executable. Its updates clear
/// `managedFields`; the API server then names what it finds at the first apply `before-first-apply`.
const GO_SYNCER: [&str; 3] = ["syncer", "kubestellar-syncer", "before-first-apply"];

/// Group and plural of a type (all types, if that is empty), and where API servers and controllers fill something in, as a
/// path for [`FieldSet::only`]. It may be in the field set of the manager that wrote the object first, but must stay when
/// its fields are removed.
type FilledIn = (&'static str, &'static str, &'static [&'static str]);

/// Filled in where people do not set it afterwards.
#[rustfmt::skip]
const FILLED_IN: &[FilledIn] = &[
    ("", "", &["f:status"]),
    ("", "", &["f:metadata", "f:finalizers"]),
    ("", "", &["f:metadata", "f:ownerReferences"]),
    // Its value is the syncer's own, and is patched together with the pull secrets, not applied.
    ("", "", &["f:metadata", "f:annotations", "f:edge.kubestellar.io/pull-secrets"]),
    ("", "persistentvolumeclaims", &["f:metadata", "f:annotations", "f:pv.kubernetes.io/*"]),
    ("", "persistentvolumeclaims", &["f:metadata", "f:annotations", "f:volume.beta.kubernetes.io/storage-provisioner"]),
    ("", "persistentvolumeclaims", &["f:metadata", "f:annotations", "f:volume.kubernetes.io/*"]),
    // Without it the update would be refused, and the claim replaced where that is allowed.
    ("", "persistentvolumeclaims", &["f:spec", "f:storageClassName"]),
    ("", "persistentvolumeclaims", &["f:spec", "f:volumeMode"]),
    ("", "persistentvolumeclaims", &["f:spec", "f:volumeName"]),
    ("", "persistentvolumes", &["f:metadata", "f:annotations", "f:pv.kubernetes.io/*"]),
    ("", "persistentvolumes", &["f:spec", "f:claimRef"]),
    // Hardly anything of it can be changed.
    ("", "pods", &["f:spec"]),
    ("", "serviceaccounts", &["f:imagePullSecrets"]),
    ("", "serviceaccounts", &["f:secrets"]),
    ("", "services", &["f:spec", "f:clusterIP"]),
    ("", "services", &["f:spec", "f:clusterIPs"]),
    ("", "services", &["f:spec", "f:healthCheckNodePort"]),
    ("", "services", &["f:spec", "f:ipFamilies"]),
    ("", "services", &["f:spec", "f:ipFamilyPolicy"]),
    ("", "services", &["f:spec", "f:ports", "*", "f:nodePort"]),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", &["f:webhooks", "*", "f:clientConfig", "f:caBundle"]),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", &["f:webhooks", "*", "f:clientConfig", "f:caBundle"]),
    ("apiextensions.k8s.io", "customresourcedefinitions", &["f:spec", "f:conversion", "f:webhook", "f:clientConfig", "f:caBundle"]),
    ("apiregistration.k8s.io", "apiservices", &["f:spec", "f:caBundle"]),
    ("batch", "jobs", &["f:spec", "f:selector"]),
    ("batch", "jobs", &["f:spec", "f:template"]),
];

/// What admission, autoscalers and controllers fill in, and people may want to change.
#[rustfmt::skip]
const FILLED_IN_OR_SET: &[FilledIn] = &[
    ("", "namespaces", &["f:metadata", "f:annotations", "f:openshift.io/sa.scc.*"]),
    ("apps", "daemonsets", &["f:metadata", "f:annotations", "f:deprecated.daemonset.template.generation"]),
    ("apps", "deployments", &["f:metadata", "f:annotations", "f:deployment.kubernetes.io/*"]),
    ("apps", "deployments", &["f:spec", "f:replicas"]),
    ("apps", "replicasets", &["f:metadata", "f:annotations", "f:deployment.kubernetes.io/*"]),
    ("apps", "replicasets", &["f:spec", "f:replicas"]),
    ("apps", "statefulsets", &["f:spec", "f:replicas"]),
    ("networking.k8s.io", "ingresses", &["f:spec", "f:ingressClassName"]),
    ("rbac.authorization.k8s.io", "clusterroles", &["f:rules"]),
];

const SPEC: &[&str] = &["f:spec"];

/// More field managers than any object has.
const MOST_MANAGERS: usize = 1000;
/// Paths named in a log line.
const NAMED_FIELDS: usize = 3;

#[derive(Deserialize)]
struct Wire {
    metadata: WireMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta {
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
    managed_fields: Vec<Value>,
}

/// The same with its entries unparsed: an entry is as deep as the object.
#[derive(Deserialize)]
struct RawWire<'a> {
    #[serde(borrow)]
    metadata: RawMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta<'a> {
    #[serde(default)]
    resource_version: String,
    #[serde(default, borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
    managed_fields: Vec<&'a RawValue>,
}

/// One entry of `managedFields`, its field set unparsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    #[serde(default, borrow)]
    manager: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    operation: std::borrow::Cow<'a, str>,
    #[serde(default, borrow, rename = "apiVersion")]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    subresource: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    time: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    fields_v1: Option<&'a RawValue>,
}

/// Whose fields are reverted in a copy: of these field managers, names or prefixes that end in `*`, and of the Go syncer;
/// with `None`, nobody's.
pub type RevertFrom<'a> = Option<&'a [String]>;

/// A hash of what we control in a copy: the fields that we own, those that people own and that are to be reverted, and
/// whether it is being deleted. Another value means that somebody else has changed it. Never 0.
pub fn marks(object: &[u8], direction: Direction, revert_from: RevertFrom) -> Result<u64, Error> {
    #[derive(Deserialize)]
    struct Marked<'a> {
        #[serde(borrow)]
        metadata: MarkedMeta<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct MarkedMeta<'a> {
        #[serde(default)]
        deletion_timestamp: Option<String>,
        #[serde(default, borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
        managed_fields: Vec<Owner<'a>>,
    }
    let marked: Marked = parse(object)?;
    let mut hasher = DefaultHasher::new();
    marked.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    for owner in &marked.metadata.managed_fields {
        let ours = owner.is_our_apply();
        if owner.subresource.is_empty() && (ours || is_taken(&owner.manager, &owner.operation, direction, revert_from))
        {
            owner.manager.hash(&mut hasher);
            owner.time.hash(&mut hasher);
            owner.fields_v1.map(RawValue::get).hash(&mut hasher);
        }
    }
    Ok(hasher.finish().max(1))
}

/// True if a field manager is this syncer or the Go syncer.
pub fn is_syncer(manager: &str) -> bool {
    manager == FIELD_MANAGER || GO_SYNCER.contains(&manager)
}

/// Whose fields are taken over. Entries of subresources (`status`, `scale`) never are.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// Those of managers that are reverted, and what we have written at the hub by a create.
    Reverted(RevertFrom<'a>),
    /// Those of all managers in the spec.
    Everybodys,
}

/// The patch that makes fields of a copy of this type ours, to be followed by an apply. `None` if there are none to take.
///
/// The patch is valid only as long as nobody changes the object (its resource version is in it).
pub fn take_over(
    object: &[u8],
    resource: &ResourceType,
    direction: Direction,
    whose: Whose,
) -> Result<Option<String>, Error> {
    if let Whose::Reverted(revert_from) = whose
        && direction == Direction::Down
        && !names_any(object, revert_from)
    {
        return Ok(None);
    }
    let wire: RawWire<'_> = parse(object)?;
    let owners = wire
        .metadata
        .managed_fields
        .iter()
        .map(|entry| parse(entry.get().as_bytes()));
    let owners: Vec<Owner> = owners.collect::<Result<_, _>>()?;
    let entries = || wire.metadata.managed_fields.iter().copied().zip(&owners);
    let includes = |owner: &Owner| owner.subresource.is_empty() && whose.includes(owner, direction);
    let ours = entries().find(|(_, owner)| owner.is_our_apply());
    // Before the first apply, one of the others becomes our entry.
    let Some((base, base_owner)) = ours.or_else(|| entries().find(|(_, owner)| includes(owner))) else {
        return Ok(None);
    };
    let (mut kept, mut taken) = (Vec::new(), FieldSet::default());
    for (entry, owner) in entries().filter(|(_, owner)| !owner.is_our_apply()) {
        // A field set of another version of the type would not fit ours.
        if !includes(owner) || owner.api_version != base_owner.api_version {
            kept.push(entry.get().to_owned());
            continue;
        }
        let (fields, rest) = whose.split(owner, resource)?;
        match (fields.is_empty(), rest.is_empty()) {
            (true, _) => kept.push(entry.get().to_owned()),
            (false, true) => {}
            (false, false) => kept.push(with_fields(entry, &[("fieldsV1", &rest.render())])?),
        }
        taken.add(&fields);
    }
    if taken.is_empty() {
        return Ok(None);
    }
    if ours.is_some() {
        taken.add(&field_set(base_owner)?);
    }
    let (manager, fields) = (json!(FIELD_MANAGER).to_string(), taken.render());
    let all = [
        ("manager", &*manager),
        ("operation", "\"Apply\""),
        ("fieldsV1", &*fields),
    ];
    kept.push(with_fields(base, &all)?);
    let version = json!(wire.metadata.resource_version);
    let kept = kept.join(",");
    Ok(Some(format!(
        r#"{{"metadata":{{"resourceVersion":{version},"managedFields":[{kept}]}}}}"#
    )))
}

impl Whose<'_> {
    fn includes(self, owner: &Owner<'_>, direction: Direction) -> bool {
        match self {
            Self::Reverted(revert_from) => is_taken(&owner.manager, &owner.operation, direction, revert_from),
            // What we have written by patches is no part of an apply.
            Self::Everybodys => owner.manager != FIELD_MANAGER,
        }
    }

    /// The fields of an entry that are taken, and those that stay theirs.
    fn split(self, owner: &Owner<'_>, resource: &ResourceType) -> Result<(FieldSet, FieldSet), Error> {
        let (mut taken, mut rest) = (field_set(owner)?, FieldSet::default());
        let is_anybodys = match self {
            Self::Reverted(_) => GO_SYNCER.contains(&&*owner.manager),
            Self::Everybodys => true,
        };
        let more = FILLED_IN_OR_SET.iter().filter(|_| is_anybodys);
        for (_, _, path) in FILLED_IN.iter().chain(more).filter(|known| is_of(known, resource)) {
            rest.add(&taken.only(path));
            taken.leave_out(path);
        }
        if matches!(self, Self::Everybodys) {
            let spec = taken.only(SPEC);
            taken.leave_out(SPEC);
            rest.add(&taken);
            taken = spec;
        }
        Ok((taken, rest))
    }
}

impl Owner<'_> {
    fn is_our_apply(&self) -> bool {
        self.manager == FIELD_MANAGER && self.operation == "Apply" && self.subresource.is_empty()
    }
}

fn is_of((group, plural, _): &FilledIn, resource: &ResourceType) -> bool {
    plural.is_empty() || resource.is(group, plural)
}

/// The fields that we have applied, and those that others own or that we have written in another way.
pub(super) fn owned(object: &[u8]) -> Result<(FieldSet, FieldSet), Error> {
    let wire: RawWire<'_> = parse(object)?;
    let (mut ours, mut others) = (FieldSet::default(), FieldSet::default());
    for &entry in &wire.metadata.managed_fields {
        let owner: Owner = parse(entry.get().as_bytes())?;
        let set = if owner.is_our_apply() { &mut ours } else { &mut others };
        set.add(&field_set(&owner)?);
    }
    Ok((ours, others))
}

/// Who changed a copy last, other than ourselves, and which fields: `manager=x fields=spec.replicas`.
pub fn last_writer(object: &[u8]) -> Option<(String, String)> {
    let wire: Wire = parse(object).ok()?;
    let others = wire
        .metadata
        .managed_fields
        .iter()
        .filter(|entry| text(entry, "manager") != FIELD_MANAGER && text(entry, "subresource").is_empty());
    let last = others.max_by_key(|entry| text(entry, "time").to_owned())?;
    let mut paths = Vec::new();
    collect_paths(&last["fieldsV1"], &mut String::new(), &mut paths);
    Some((text(last, "manager").to_owned(), paths.join(",")))
}

/// A cheap check before the parse: most copies have none of these managers.
fn names_any(object: &[u8], revert_from: RevertFrom) -> bool {
    let Some(revert_from) = revert_from else { return false };
    let patterns = revert_from.iter().map(|pattern| pattern.trim_end_matches('*'));
    let object = String::from_utf8_lossy(object);
    patterns
        .chain(GO_SYNCER)
        .any(|name| object.contains(&format!("\"manager\":\"{name}")))
}

fn is_taken(manager: &str, operation: &str, direction: Direction, revert_from: RevertFrom) -> bool {
    // A copy at the hub is created by us, not applied.
    if direction == Direction::Up && manager == FIELD_MANAGER {
        return operation == "Update";
    }
    let Some(revert_from) = revert_from else { return false };
    let by_people = revert_from.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => manager.starts_with(prefix),
        None => manager == pattern,
    });
    by_people || (GO_SYNCER.contains(&manager) && operation == "Update")
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}

fn parse<'a, T: Deserialize<'a>>(object: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(format!("managed fields: {error}")))
}

fn field_set(owner: &Owner<'_>) -> Result<FieldSet, Error> {
    let Some(raw) = owner.fields_v1 else {
        return Ok(FieldSet::default());
    };
    FieldSet::parse(raw.get()).ok_or_else(|| Error::BadAnswer("managed fields that are no field set".into()))
}

fn collect_paths(fields: &Value, path: &mut String, paths: &mut Vec<String>) {
    let Some(fields) = fields.as_object() else {
        return;
    };
    for (key, value) in fields {
        if paths.len() == NAMED_FIELDS {
            return;
        }
        let length = path.len();
        if let Some(name) = key.strip_prefix("f:") {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
        if value.as_object().is_some_and(serde_json::Map::is_empty) && key != "." {
            paths.push(path.clone());
        } else {
            collect_paths(value, path, paths);
        }
        path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    fn take(entries: &[Value]) -> Option<Value> {
        take_of(&ResourceType::config_maps(), entries)
    }

    fn take_of(resource: &ResourceType, entries: &[Value]) -> Option<Value> {
        let object = json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries}}).to_string();
        let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
        take_over(
            object.as_bytes(),
            resource,
            Direction::Down,
            Whose::Reverted(Some(&patterns)),
        )
        .unwrap()
        .map(|patch| serde_json::from_str(&patch).unwrap())
    }

    fn ours() -> Value {
        entry("edge-syncer", "Apply", &json!({"f:data": {"f:a": {}}}))
    }

    #[test]
    fn fields_of_people_and_of_the_go_syncer_become_ours() {
        for (manager, operation) in [("kubectl-edit", "Update"), ("kubectl", "Apply"), ("syncer", "Update")] {
            let patch = take(&[entry(manager, operation, &json!({"f:data": {"f:b": {}}})), ours()]).unwrap();
            assert_eq!(patch["metadata"]["resourceVersion"], "7");
            let kept = patch["metadata"]["managedFields"].as_array().unwrap();
            assert_eq!(kept.len(), 1, "{manager}");
            assert_eq!(kept[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        }
    }

    #[test]
    fn fields_as_deep_as_the_object_are_taken_too() {
        let deep = format!("{}{{}}{}", "{\"f:a\":".repeat(500), "}".repeat(500));
        let entry = |manager: &str, operation: &str, fields: &str| {
            format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
        };
        let entries = [
            entry("kubectl-edit", "Update", &deep),
            entry("edge-syncer", "Apply", r#"{"f:b":{}}"#),
        ];
        let object = format!(
            r#"{{"metadata":{{"resourceVersion":"7","managedFields":[{}]}}}}"#,
            entries.join(",")
        );
        let patterns = ["kubectl-*".to_owned()];
        let reverted = Whose::Reverted(Some(&patterns));
        let patch = take_over(
            object.as_bytes(),
            &ResourceType::config_maps(),
            Direction::Down,
            reverted,
        )
        .unwrap()
        .unwrap();
        let whole = format!("{},\"f:b\":{{}}}}", &deep[..deep.len() - 1]);
        assert!(patch.contains(&format!("\"fieldsV1\":{whole}")), "{patch}");
    }

    fn of(group: &str, resource: &str) -> ResourceType {
        ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            kind: resource.into(),
            namespaced: true,
        }
    }

    #[test]
    fn what_the_edge_has_filled_in_is_not_taken() {
        let port = json!({".": {}, "f:nodePort": {}, "f:port": {}});
        let service = json!({"f:spec": {"f:clusterIP": {}, "f:type": {}, "f:ports": {"k:{\"port\":80}": port}},
            "f:metadata": {"f:finalizers": {}, "f:labels": {"f:x": {}}}});
        let claim = json!({"f:spec": {"f:volumeName": {}, "f:storageClassName": {}, "f:resources": {}}});
        let replicas = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        for (resource, fields, taken) in [
            (
                of("", "services"),
                service,
                json!({"f:spec": {"f:type": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}},
                    "f:metadata": {"f:labels": {"f:x": {}}}}),
            ),
            (
                of("", "persistentvolumeclaims"),
                claim,
                json!({"f:spec": {"f:resources": {}}}),
            ),
            (of("apps", "deployments"), replicas, json!({"f:spec": {"f:paused": {}}})),
        ] {
            let patch = take_of(&resource, &[entry("before-first-apply", "Update", &fields), ours()]).unwrap();
            let mut expected = taken;
            expected["f:data"] = json!({"f:a": {}});
            let entries = &patch["metadata"]["managedFields"];
            assert_eq!(entries[0]["manager"], "before-first-apply", "the rest stays theirs");
            assert_eq!(entries[1]["fieldsV1"], expected, "{resource:?}");
        }
        let bundle = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
        let webhooks = of("admissionregistration.k8s.io", "validatingwebhookconfigurations");
        assert_eq!(take_of(&webhooks, &[entry("syncer", "Update", &bundle), ours()]), None);
    }

    #[test]
    fn what_people_have_set_is_taken_where_a_controller_might_have() {
        let fields = json!({"f:spec": {"f:replicas": {}}});
        for (manager, is_taken) in [("kubectl-edit", true), ("before-first-apply", false)] {
            let taken = take_of(&of("apps", "deployments"), &[entry(manager, "Update", &fields), ours()]);
            assert_eq!(taken.is_some(), is_taken, "{manager}");
        }
    }

    #[test]
    fn fields_of_another_version_of_the_type_stay_theirs() {
        let mut people = entry("kubectl-edit", "Update", &json!({"f:spec": {"f:b": {}}}));
        people["apiVersion"] = json!("example.org/v2");
        assert_eq!(take(&[people, ours()]), None);
    }

    // Found from outside: what people added under these names was left in objects of any type, wherever it was.
    #[test]
    fn what_only_has_the_name_of_something_filled_in_is_taken() {
        let fields = json!({"f:spec": {"f:clusterIP": {}, "f:caBundle": {}, "f:finalizers": {}, "f:volumeName": {},
            "f:template": {"f:spec": {"f:imagePullSecrets": {}}}, "f:status": {}}});
        let patch = take_of(
            &of("example.org", "services"),
            &[entry("kubectl-edit", "Update", &fields), ours()],
        )
        .unwrap();
        let taken = &patch["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
        assert_eq!(*taken, fields["f:spec"]);
    }

    #[test]
    fn where_we_have_applied_nothing_yet_the_first_entry_becomes_ours() {
        let fields = json!({"f:spec": {"f:a": {}}});
        let helm = entry(
            "helm",
            "Update",
            &json!({"f:spec": {"f:b": {}}, "f:metadata": {"f:labels": {}}}),
        );
        let mut made = entry("edge-syncer", "Update", &fields);
        made["apiVersion"] = json!("example.org/v1");
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": [helm, made]}}).to_string();
        let take = |whose| {
            let patch = take_over(object.as_bytes(), &of("", "x"), Direction::Up, whose)
                .unwrap()
                .unwrap();
            serde_json::from_str::<Value>(&patch).unwrap()["metadata"]["managedFields"].clone()
        };
        let mut expected = made.clone();
        expected["operation"] = json!("Apply");
        assert_eq!(take(Whose::Reverted(Some(&[]))), json!([helm, expected]));
        let now = take(Whose::Everybodys);
        let theirs = json!({"f:metadata": {"f:labels": {}}});
        assert_eq!(now[0], entry("helm", "Update", &theirs));
        assert_eq!(now[1], made, "what we have written in another way");
        assert_eq!(now[2], entry("edge-syncer", "Apply", &json!({"f:spec": {"f:b": {}}})));
    }

    #[test]
    fn fields_of_controllers_and_of_subresources_stay_theirs() {
        let mut scaled = entry("kubectl", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        scaled["subresource"] = json!("scale");
        for other in [
            entry("kube-controller-manager", "Update", &json!({"f:spec": {}})),
            entry("syncer-x", "Update", &json!({})),
            scaled,
        ] {
            assert_eq!(take(&[other, ours()]), None);
        }
    }

    #[test]
    fn drift_is_a_change_of_the_fields_that_are_ours_and_nothing_else() {
        let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
        let marks_of = |object: &Value| marks(object.to_string().as_bytes(), Direction::Down, Some(&patterns)).unwrap();
        let copy = |entries: &[Value]| json!({"metadata": {"name": "a", "managedFields": entries}, "data": {"x": "y"}});
        let base = marks_of(&copy(&[ours()]));
        let controller = entry("hpa", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        let mut later = ours();
        later["time"] = json!("2027-01-01T00:00:00Z");
        let mut status = entry("kubectl", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        for same in [vec![ours(), controller], vec![ours(), status]] {
            assert_eq!(marks_of(&copy(&same)), base, "{same:?}");
        }
        let mut deleted = copy(&[ours()]);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let taken = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        let people = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
        // Other values of the same fields, applied under our own name by a syncer that is no longer the leader.
        for other in [
            deleted,
            copy(&[taken]),
            copy(&[]),
            copy(&[ours(), people]),
            copy(&[later]),
        ] {
            assert_ne!(marks_of(&other), base, "{other}");
        }
    }

    #[test]
    fn where_nothing_is_reverted_what_others_add_is_no_drift() {
        let copy = |entries: &[Value]| {
            json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries}}).to_string()
        };
        let marks_of = |object: &str| marks(object.as_bytes(), Direction::Down, None).unwrap();
        let base = marks_of(&copy(&[ours()]));
        for manager in ["kubectl-edit", "syncer", "before-first-apply"] {
            let theirs = entry(manager, "Update", &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
            let object = copy(&[ours(), theirs]);
            assert_eq!(marks_of(&object), base, "{manager}");
            let taken = take_over(
                object.as_bytes(),
                &ResourceType::config_maps(),
                Direction::Down,
                Whose::Reverted(None),
            );
            assert_eq!(taken.unwrap(), None, "{manager}");
        }
        let robbed = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        assert_ne!(marks_of(&copy(&[robbed])), base);
    }

    #[test]
    fn what_a_create_at_the_hub_wrote_becomes_what_we_apply() {
        let created = entry("edge-syncer", "Update", &json!({"f:data": {"f:b": {}}}));
        let object =
            json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": [created, ours()]}}).to_string();
        let take = |direction| {
            let whose = Whose::Reverted(Some(&[]));
            take_over(object.as_bytes(), &ResourceType::config_maps(), direction, whose).unwrap()
        };
        let patch = take(Direction::Up).unwrap();
        let patch: Value = serde_json::from_str(&patch).unwrap();
        let fields = &patch["metadata"]["managedFields"];
        assert_eq!(fields.as_array().unwrap().len(), 1);
        assert_eq!(fields[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(take(Direction::Down), None);
    }

    #[test]
    fn names_who_changed_a_copy_last_and_what() {
        let mut later = entry(
            "hpa",
            "Update",
            &json!({"f:spec": {".": {}, "f:replicas": {}, "f:template": {"f:x": {}}}}),
        );
        later["time"] = json!("2026-01-02T00:00:00Z");
        let object =
            json!({"metadata": {"managedFields": [entry("old", "Update", &json!({})), later, ours()]}}).to_string();
        assert_eq!(
            last_writer(object.as_bytes()).unwrap(),
            ("hpa".to_owned(), "spec.replicas,spec.template.x".to_owned())
        );
    }
}
