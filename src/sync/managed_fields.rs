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
use super::fields::with_field;
use crate::bounded::at_most;
use crate::cluster::{Error, FIELD_MANAGER};
use crate::plan::Direction;

/// Field managers of the Go syncer: its user agent begins with the name of its executable. Its updates clear
/// `managedFields`; the API server then names what it finds at the first apply `before-first-apply`.
const GO_SYNCER: [&str; 3] = ["syncer", "kubestellar-syncer", "before-first-apply"];

/// Fields that API servers and controllers fill in. They may be in the field set of the manager that wrote the object
/// first, but must stay when its fields are removed.
const EDGES_OWN: [&str; 16] = [
    "f:finalizers",
    "f:ownerReferences",
    "f:clusterIP",
    "f:clusterIPs",
    "f:ipFamilies",
    "f:ipFamilyPolicy",
    "f:nodePort",
    "f:healthCheckNodePort",
    "f:nodeName",
    "f:volumeName",
    "f:secrets",
    "f:imagePullSecrets",
    // Its value is the syncer's own, and is patched together with the pull secrets, not applied.
    "f:edge.kubestellar.io/pull-secrets",
    "f:caBundle",
    "f:controller-uid",
    "f:status",
];

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
        let ours = owner.manager == FIELD_MANAGER && owner.operation == "Apply";
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

/// The patch that makes the fields of taken-over managers ours, to be followed by an apply. `None` if there are none.
///
/// Entries of subresources (`status`, `scale`) are not touched. The patch is valid only as long as nobody changes the
/// object (its resource version is in it).
pub fn take_over(object: &[u8], direction: Direction, revert_from: RevertFrom) -> Result<Option<String>, Error> {
    if direction == Direction::Down && !names_any(object, revert_from) {
        return Ok(None);
    }
    let wire: RawWire<'_> = parse(object)?;
    let (mut kept, mut ours, mut taken) = (Vec::new(), None, FieldSet::default());
    let mut any = false;
    for &entry in &wire.metadata.managed_fields {
        let owner: Owner = parse(entry.get().as_bytes())?;
        let whole = owner.subresource.is_empty();
        if whole && is_taken(&owner.manager, &owner.operation, direction, revert_from) {
            let mut fields = field_set(&owner)?;
            fields.leave_out(&EDGES_OWN);
            taken.add(&fields);
            any = true;
            continue;
        }
        if ours.is_none() && owner.manager == FIELD_MANAGER && owner.operation == "Apply" {
            ours = Some((kept.len(), entry, field_set(&owner)?));
        }
        kept.push(entry.get().to_owned());
    }
    let Some((at, entry, mut fields)) = ours.filter(|_| any) else {
        return Ok(None);
    };
    fields.add(&taken);
    if let Some(written) = kept.get_mut(at) {
        *written = with_field(entry, "fieldsV1", &fields.render())?;
    }
    let version = json!(wire.metadata.resource_version);
    let kept = kept.join(",");
    Ok(Some(format!(
        r#"{{"metadata":{{"resourceVersion":{version},"managedFields":[{kept}]}}}}"#
    )))
}

/// The fields that we have applied, and those that others own or that we have written in another way.
pub(super) fn owned(object: &[u8]) -> Result<(FieldSet, FieldSet), Error> {
    let wire: RawWire<'_> = parse(object)?;
    let (mut ours, mut others) = (FieldSet::default(), FieldSet::default());
    for &entry in &wire.metadata.managed_fields {
        let owner: Owner = parse(entry.get().as_bytes())?;
        let applied = owner.manager == FIELD_MANAGER && owner.operation == "Apply" && owner.subresource.is_empty();
        let set = if applied { &mut ours } else { &mut others };
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
        let object = json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries}}).to_string();
        let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
        take_over(object.as_bytes(), Direction::Down, Some(&patterns))
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
        let patch = take_over(object.as_bytes(), Direction::Down, Some(&["kubectl-*".to_owned()]))
            .unwrap()
            .unwrap();
        let whole = format!("{},\"f:b\":{{}}}}", &deep[..deep.len() - 1]);
        assert!(patch.contains(&format!("\"fieldsV1\":{whole}")), "{patch}");
    }

    #[test]
    fn what_the_edge_has_filled_in_is_not_taken() {
        let service = json!({"f:spec": {"f:clusterIP": {}, "f:type": {}, "f:ports": {"k:{\"port\":80}": {"f:nodePort": {}}}},
            "f:metadata": {"f:finalizers": {}, "f:labels": {"f:x": {}}}});
        let patch = take(&[entry("before-first-apply", "Update", &service), ours()]).unwrap();
        let fields = &patch["metadata"]["managedFields"][0]["fieldsV1"];
        assert_eq!(
            fields["f:spec"],
            json!({"f:type": {}, "f:ports": {"k:{\"port\":80}": {}}})
        );
        assert_eq!(fields["f:metadata"], json!({"f:labels": {"f:x": {}}}));
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
        assert_eq!(take(&[entry("kubectl", "Update", &json!({}))]), None, "not ours at all");
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
            assert_eq!(
                take_over(object.as_bytes(), Direction::Down, None).unwrap(),
                None,
                "{manager}"
            );
        }
        let robbed = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        assert_ne!(marks_of(&copy(&[robbed])), base);
    }

    #[test]
    fn what_a_create_at_the_hub_wrote_becomes_what_we_apply() {
        let created = entry("edge-syncer", "Update", &json!({"f:data": {"f:b": {}}}));
        let object =
            json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": [created, ours()]}}).to_string();
        let patch = take_over(object.as_bytes(), Direction::Up, Some(&[])).unwrap().unwrap();
        let patch: Value = serde_json::from_str(&patch).unwrap();
        let fields = &patch["metadata"]["managedFields"];
        assert_eq!(fields.as_array().unwrap().len(), 1);
        assert_eq!(fields[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(take_over(object.as_bytes(), Direction::Down, Some(&[])).unwrap(), None);
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
