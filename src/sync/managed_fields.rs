//! Whose fields a copy has: noticing drift, and naming who changes a copy back. [`super::take_over`] makes what other
//! writers have left ours.
//!
//! The API server keeps for each field manager the set of fields that it owns. Whoever changes or removes a field that
//! we applied takes it out of our set; what others add beside our fields, and status, leaves it as it is. So a change
//! of our set is drift. The only other drift is an apply of other values under our own name: the late request of a
//! syncer that is no longer the leader. The server gives our entry a new time then, and only then. [`marks`] detects
//! both between one version of a copy and the next, without knowing any value, also from metadata alone.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::field_set::FieldSet;
use crate::bounded::at_most;
use crate::cluster::{Error, FIELD_MANAGER};
use crate::plan::Direction;

/// Field managers of the Go syncer: its user agent begins with the name of its executable. Its updates clear
/// `managedFields`; the API server then names what it finds at the first apply `before-first-apply`.
pub(super) const GO_SYNCER: [&str; 3] = ["syncer", "kubestellar-syncer", "before-first-apply"];

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
pub(super) struct RawWire<'a> {
    #[serde(borrow)]
    pub(super) metadata: RawMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawMeta<'a> {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default, borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
    pub(super) managed_fields: Vec<&'a RawValue>,
}

/// One entry of `managedFields`, its field set unparsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner<'a> {
    #[serde(default, borrow)]
    pub(super) manager: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) operation: std::borrow::Cow<'a, str>,
    #[serde(default, borrow, rename = "apiVersion")]
    pub(super) api_version: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) subresource: std::borrow::Cow<'a, str>,
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

impl Owner<'_> {
    pub(super) fn is_our_apply(&self) -> bool {
        self.manager == FIELD_MANAGER && self.operation == "Apply" && self.subresource.is_empty()
    }
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

pub(super) fn is_taken(manager: &str, operation: &str, direction: Direction, revert_from: RevertFrom) -> bool {
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

pub(super) fn parse<'a, T: Deserialize<'a>>(object: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(format!("managed fields: {error}")))
}

pub(super) fn field_set(owner: &Owner<'_>) -> Result<FieldSet, Error> {
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
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::sync) fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    pub(in crate::sync) fn ours() -> Value {
        entry("edge-syncer", "Apply", &json!({"f:data": {"f:a": {}}}))
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
        }
        let robbed = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        assert_ne!(marks_of(&copy(&[robbed])), base);
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
