//! What the writing verbs do to a store: the rules of a real API server about creating, changing and deleting.
//!
//! Callers have checked that the type is served. A write that changes nothing makes no new version.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::fields::{self, Writer};
use super::refusal::Refusal;
use super::store::{Key, Object, Store};
use super::types::Type;
use super::{patch, types};

/// What a write came to.
pub struct Written {
    /// The object after it; its last state if it is gone.
    pub object: Object,
    /// It did not exist before.
    pub created: bool,
}

/// What must hold for a delete.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    /// `uid`.
    pub uid: Option<String>,
    /// `resourceVersion`.
    pub resource_version: Option<String>,
}

/// POST.
pub fn create(
    store: &mut Store,
    ty: &Type,
    key: &Key,
    object: Value,
    by: Writer<'_>,
    dry: bool,
) -> Result<Written, Refusal> {
    may_create(store, ty, key)?;
    let mut object = object;
    drop_status(ty, by, &mut object, None);
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        meta.remove("resourceVersion");
        meta.remove("deletionTimestamp");
    }
    let named = named(ty, key, object);
    validate(ty, key, &named, None)?;
    // The storage is the last to be asked.
    if store.get(key).is_some() {
        return Err(Refusal::exists(ty, &key.name));
    }
    // What the server fills in counts as written by whoever creates without an apply.
    let object = fields::update(&Value::Null, with_defaults(ty, named), by);
    Ok(written(born(store, ty, key, object, by, dry), true))
}

/// Server-side apply.
pub fn apply(
    store: &mut Store,
    ty: &Type,
    key: &Key,
    mut config: Value,
    by: Writer<'_>,
    force: bool,
) -> Result<Written, Refusal> {
    let live = store.get(key).cloned();
    drop_status(ty, by, &mut config, None);
    if config["metadata"]["name"] != *key.name || config["kind"] != ty.kind || config["apiVersion"] != ty.api_version()
    {
        return Err(Refusal::bad_request("the object does not match the path"));
    }
    let Some(live) = live else {
        if !config["metadata"]["uid"].is_null() {
            let why = "uid mismatch: the provided object specified a uid, and no existing object was found";
            return Err(Refusal::conflict(ty, &key.name, why));
        }
        if !by.subresource.is_empty() {
            return Err(Refusal::not_found(ty, &key.name));
        }
        may_create(store, ty, key)?;
        let object = with_defaults(ty, fields::apply(&named(ty, key, json!({})), &config, by));
        validate(ty, key, &object, None)?;
        return Ok(written(born(store, ty, key, object, by, false), true));
    };
    is_the_one(ty, key, &config, &live)?;
    let managers = live["metadata"]["managedFields"].as_array();
    let mut versions = managers.into_iter().flatten().map(|entry| &entry["apiVersion"]);
    if versions.any(|version| *version == *ty.former_version()) {
        return Err(Refusal::gone_version(ty));
    }
    let contested = fields::contested(&live, &config, by);
    if !force && !contested.is_empty() {
        return Err(Refusal::contested(ty, &key.name, &contested));
    }
    let next = with_defaults(ty, fields::apply(&live, &config, by));
    validate(ty, key, &next, Some(&live))?;
    Ok(written(commit(store, ty, key, &live, next), false))
}

/// Merge patch or JSON patch of an object or its status.
pub fn patch(
    store: &mut Store,
    ty: &Type,
    key: &Key,
    change: impl FnOnce(&mut Value) -> Result<(), String>,
    by: Writer<'_>,
) -> Result<Written, Refusal> {
    let live = Rc::clone(store.get(key).ok_or_else(|| Refusal::not_found(ty, &key.name))?);
    let mut next = (*live).clone();
    change(&mut next).map_err(|why| Refusal::invalid(ty, &key.name, "patch", &why))?;
    is_the_one(ty, key, &next, &live)?;
    replace(store, ty, key, next, by)
}

/// PUT of an object or its status.
pub fn replace(store: &mut Store, ty: &Type, key: &Key, mut next: Value, by: Writer<'_>) -> Result<Written, Refusal> {
    let live = Rc::clone(store.get(key).ok_or_else(|| Refusal::not_found(ty, &key.name))?);
    for field in ["resourceVersion", "uid"] {
        let asked = &next["metadata"][field];
        if !asked.is_null() && asked != &live["metadata"][field] {
            return Err(Refusal::conflict(
                ty,
                &key.name,
                &format!("Precondition failed: {field}"),
            ));
        }
    }
    if by.subresource == "status" {
        let status = next["status"].take();
        next = (*live).clone();
        next["status"] = status;
    } else {
        drop_status(ty, by, &mut next, Some(&live));
    }
    let next = with_defaults(ty, named(ty, key, next));
    validate(ty, key, &next, Some(&live))?;
    let next = fields::update(&live, next, by);
    Ok(written(commit(store, ty, key, &live, next), false))
}

/// DELETE.
pub fn delete(store: &mut Store, ty: &Type, key: &Key, only_if: &Preconditions, now: &str) -> Result<Object, Refusal> {
    let live = Rc::clone(store.get(key).ok_or_else(|| Refusal::not_found(ty, &key.name))?);
    let meta = &live["metadata"];
    let holds = |asked: &Option<String>, field: &str| asked.as_ref().is_none_or(|asked| meta[field] == **asked);
    for (asked, field) in [(&only_if.uid, "uid"), (&only_if.resource_version, "resourceVersion")] {
        if !holds(asked, field) {
            let why = format!("the {field} in the precondition does not match the {field} in record");
            return Err(Refusal::conflict(ty, &key.name, &why));
        }
    }
    if meta["deletionTimestamp"].is_string() {
        return Ok(live);
    }
    if ty.is_namespace() || has_finalizers(&live) {
        let mut next = (*live).clone();
        next["metadata"]["deletionTimestamp"] = json!(now);
        if ty.is_namespace() {
            next["status"]["phase"] = json!("Terminating");
        }
        return Ok(store.put(key, next));
    }
    store.remove(key);
    Ok(live)
}

/// Carries out a merge patch on a value, for [`patch`].
pub fn merging(change: &Value) -> impl FnOnce(&mut Value) -> Result<(), String> + '_ {
    move |object| {
        patch::merge(object, change);
        Ok(())
    }
}

/// What a patch says of version and UID holds: both are compared after the patch was laid over the object, the UID as a
/// field that cannot change.
fn is_the_one(ty: &Type, key: &Key, next: &Value, live: &Value) -> Result<(), Refusal> {
    let (asked, meta) = (&next["metadata"], &live["metadata"]);
    let differs = |field: &str| !asked[field].is_null() && asked[field] != meta[field];
    if differs("resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(ty, &key.name, why));
    }
    if differs("uid") {
        return Err(Refusal::invalid(ty, &key.name, "metadata.uid", "field is immutable"));
    }
    Ok(())
}

/// The schema of a `ConfigMap`, the one type whose contents are read.
fn validate(ty: &Type, key: &Key, next: &Value, live: Option<&Value>) -> Result<(), Refusal> {
    if !ty.group.is_empty() || ty.resource != "configmaps" {
        return Ok(());
    }
    let invalid = |why: &str| Err(Refusal::invalid(ty, &key.name, "data", why));
    let data = &next["data"];
    match data {
        Value::Null => {}
        Value::Object(pairs) if pairs.values().all(Value::is_string) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !pairs.keys().all(|key| !key.is_empty() && key.chars().all(is_plain)) {
                return invalid("a valid config key must consist of alphanumeric characters, '-', '_' or '.'");
            }
        }
        _ => return Err(Refusal::bad_request("json: cannot unmarshal into ConfigMap.data")),
    }
    let Some(live) = live.filter(|live| live["immutable"] == true) else {
        return Ok(());
    };
    let changed = ["immutable", "data", "binaryData"]
        .into_iter()
        .find(|field| live[field] != next[field]);
    changed.map_or(Ok(()), |field| {
        let why = "field is immutable when `immutable` is set";
        Err(Refusal::unchangeable(ty, &key.name, field, why))
    })
}

fn written(object: Object, created: bool) -> Written {
    Written { object, created }
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|list| !list.is_empty())
}

/// Namespaces and types that are going take nothing new.
fn may_create(store: &Store, ty: &Type, key: &Key) -> Result<(), Refusal> {
    if ty.custom {
        let definition = Key::new(types::DEFINITIONS, "", &ty.qualified());
        if store
            .get(&definition)
            .is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string())
        {
            return Err(Refusal::terminating_type());
        }
    }
    let Some(home) = key.home() else {
        return Ok(());
    };
    let Some(namespace) = store.get(&home) else {
        return Err(Refusal::no_namespace(&key.namespace));
    };
    if namespace["metadata"]["deletionTimestamp"].is_string() {
        return Err(Refusal::terminating_namespace(ty, key));
    }
    Ok(())
}

/// Writes that are not about status leave it as it is.
fn drop_status(ty: &Type, by: Writer<'_>, object: &mut Value, live: Option<&Value>) {
    if !ty.status || by.subresource == "status" {
        return;
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match live.and_then(|live| live.get("status")) {
        Some(status) => fields.insert("status".into(), status.clone()),
        None => fields.remove("status"),
    };
}

/// The object with the name and type that its path says. Typed metadata knows no empty lists and maps.
fn named(ty: &Type, key: &Key, mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        let is_empty =
            |value: &Value| value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        meta.retain(|key, value| !matches!(key.as_str(), "labels" | "annotations" | "finalizers") || !is_empty(value));
    }
    object["apiVersion"] = json!(ty.api_version());
    object["kind"] = json!(ty.kind);
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"]["name"] = json!(*key.name);
    if ty.namespaced {
        object["metadata"]["namespace"] = json!(*key.namespace);
    }
    object
}

/// The object with what the server fills in where nobody says anything. Nobody who applies owns that.
fn with_defaults(ty: &Type, mut object: Value) -> Value {
    if ty.resource == "deployments"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        for (field, default) in [("replicas", 1), ("revisionHistoryLimit", 10)] {
            spec.entry(field).or_insert(json!(default));
        }
    }
    object
}

/// A new object with what the server gives it.
fn born(store: &mut Store, ty: &Type, key: &Key, mut object: Value, by: Writer<'_>, dry: bool) -> Object {
    let meta = &mut object["metadata"];
    meta["uid"] = json!(store.new_uid());
    meta["creationTimestamp"] = json!(by.now);
    if key.resource.as_ref() != "configmaps" {
        meta["generation"] = json!(1);
    }
    if ty.is_namespace() {
        meta["labels"]["kubernetes.io/metadata.name"] = json!(*key.name);
        object["spec"] = json!({"finalizers": ["kubernetes"]});
        object["status"] = json!({"phase": "Active"});
    }
    if dry {
        return Rc::new(object);
    }
    let made = store.put(key, object);
    if ty.is_namespace() && store.fills_namespaces {
        store.root_certificate(&key.name);
    }
    made
}

/// Stores what an object became, unless that is what it was. The last finalizer of a deleted one takes it along.
fn commit(store: &mut Store, ty: &Type, key: &Key, live: &Object, mut next: Value) -> Object {
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "resourceVersion",
    ] {
        let value = live["metadata"][field].clone();
        let meta = next["metadata"].as_object_mut().expect("every object has metadata");
        if value.is_null() {
            meta.remove(field);
        } else {
            meta.insert(field.to_owned(), value);
        }
    }
    if ty.is_namespace() {
        next["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(*key.name);
    }
    if next == **live {
        return Rc::clone(live);
    }
    if let Some(generation) = live["metadata"]["generation"].as_u64()
        && content(ty, &next) != content(ty, live)
    {
        next["metadata"]["generation"] = json!(generation + 1);
    }
    let going = next["metadata"]["deletionTimestamp"].is_string();
    if going && !ty.is_namespace() && !has_finalizers(&next) {
        store.remove(key);
        return Rc::new(next);
    }
    store.put(key, next)
}

/// What counts for `generation`.
fn content<'a>(ty: &Type, object: &'a Value) -> Vec<(&'a String, &'a Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| *key != "metadata" && (*key != "status" || !ty.status))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(manager: &str) -> Writer<'_> {
        Writer {
            manager,
            subresource: "",
            now: "2026-01-01T00:00:00Z",
        }
    }

    fn shop() -> (Store, Type, Key) {
        let mut store = Store::new("u", 10);
        let namespaces = types::find(&store, "", "v1", "namespaces").unwrap();
        create(
            &mut store,
            &namespaces,
            &namespaces.key("", "shop"),
            json!({}),
            by("people"),
            false,
        )
        .unwrap();
        let ty = types::find(&store, "", "v1", "configmaps").unwrap();
        let key = ty.key("shop", "a");
        (store, ty, key)
    }

    #[test]
    fn a_write_that_changes_nothing_makes_no_version() {
        let (mut store, ty, key) = shop();
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
        assert!(
            apply(&mut store, &ty, &key, config.clone(), by("one"), true)
                .unwrap()
                .created
        );
        let version = store.version();
        let later = Writer {
            now: "later",
            ..by("one")
        };
        assert!(!apply(&mut store, &ty, &key, config, later, true).unwrap().created);
        let same = json!({"data": {"x": "1"}});
        patch(&mut store, &ty, &key, merging(&same), later).unwrap();
        assert_eq!(store.version(), version);
    }

    #[test]
    fn a_finalizer_keeps_a_deleted_object_until_it_is_taken_off() {
        let (mut store, ty, key) = shop();
        let object = json!({"metadata": {"finalizers": ["x/y"]}});
        create(&mut store, &ty, &key, object, by("people"), false).unwrap();
        delete(&mut store, &ty, &key, &Preconditions::default(), "now").unwrap();
        assert!(store.get(&key).unwrap()["metadata"]["deletionTimestamp"].is_string());
        let off = json!({"metadata": {"finalizers": null}});
        patch(&mut store, &ty, &key, merging(&off), by("people")).unwrap();
        assert!(store.get(&key).is_none());
    }

    #[test]
    fn preconditions_that_do_not_hold_are_conflicts() {
        let (mut store, ty, key) = shop();
        create(&mut store, &ty, &key, json!({}), by("people"), false).unwrap();
        let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"x": "2"}});
        assert_eq!(
            patch(&mut store, &ty, &key, merging(&stale), by("one"))
                .err()
                .unwrap()
                .code,
            409
        );
        let only_if = Preconditions {
            uid: Some("other".into()),
            ..Preconditions::default()
        };
        assert_eq!(delete(&mut store, &ty, &key, &only_if, "now").unwrap_err().code, 409);
    }
}
