//! What objects, configs and errors look like.

use super::*;
use crate::api::{DOWNSYNCED, OWNER, SOURCE, UPSYNCED};
use crate::sync::definition::{DefinedBy, TypeDefinition};
use crate::sync::object::{Address, Status};

pub(super) fn bytes(object: &Value) -> Bytes {
    Bytes::from(object.to_string())
}

/// An object as a source reports it.
pub(super) fn read(object: &Value) -> Box<kube_lite::Object> {
    Box::new(kube_lite::Object::take_apart(bytes(object)).expect("it is an object"))
}

/// What a worker sees in the place of the copy of its job.
pub(super) fn seen(job: &Job, found: &Value) -> Seen {
    let found = bytes(found);
    let object = Object::parse(found).expect("it is an object");
    let seen = Seen::of(
        job.direction,
        &job.copy_at.resource,
        &object,
        &job.policy,
        job.selection,
    );
    seen.expect("it has managed fields")
}

/// [`Status::hash_of`] an object that has this status.
pub(super) fn hash_of_status(status: &Value) -> u64 {
    let object = bytes(&json!({"metadata": {"name": "a"}, "status": status}));
    Status::hash_of(&Object::parse(object).expect("it is an object"))
}

/// A `ConfigMap` of the namespace `shop` at the hub.
pub(super) fn config_map(name: &str, version: u64) -> Value {
    object(&ResourceType::config_maps(), "shop", name, version)
}

/// An object whose content differs with its version.
pub(super) fn object(resource: &ResourceType, namespace: &str, name: &str, version: u64) -> Value {
    let mut object = json!({"apiVersion": resource.api_version(), "kind": resource.kind,
        "data": {"at": version.to_string()},
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// A copy of ours as this sync target makes it, of the object with the UID `origin`.
pub(super) fn copy(direction: Direction, at: &Address, origin: &str, version: u64) -> Value {
    let Address { resource, name } = at;
    let mark = match direction {
        Direction::Down => DOWNSYNCED,
        Direction::Up => UPSYNCED,
    };
    let cluster = match direction {
        Direction::Down => THE_HUB,
        Direction::Up => THE_EDGE,
    };
    let mut copy = object(resource, name.namespace(), &name.name, version);
    copy["metadata"]["uid"] = json!(format!("copy-of-{origin}"));
    copy["metadata"]["labels"] = json!({mark: "true"});
    copy["metadata"]["annotations"] = json!({
        mark: at.for_people(),
        OWNER: format!("{origin}/{}/st", resource.qualified()),
        SOURCE: format!("{cluster}/1"),
    });
    copy
}

/// The copy of a `ConfigMap` of the namespace `shop` at the edge.
pub(super) fn copy_of(name: &str, version: u64) -> Value {
    let at = Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("shop", name),
    };
    copy(Direction::Down, &at, name, version)
}

/// The same after somebody has changed what we had written.
pub(super) fn changed(mut copy: Value, version: u64) -> Value {
    copy["metadata"]["resourceVersion"] = json!(version.to_string());
    copy["metadata"]["managedFields"] = json!([{"manager": "edge-syncer", "operation": "Apply",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:at": {}, "f:n": version.to_string()}}}]);
    copy
}

/// The same, being deleted.
pub(super) fn ending(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

pub(super) fn with_status(mut object: Value, status: &Value) -> Value {
    object["status"] = status.clone();
    object
}

pub(super) fn widgets() -> ResourceType {
    ResourceType {
        group: "example.org".into(),
        version: "v1".into(),
        resource: "widgets".into(),
        kind: "Widget".into(),
        namespaced: true,
    }
}

pub(super) fn jobs() -> ResourceType {
    ResourceType {
        group: "batch".into(),
        version: "v1".into(),
        resource: "jobs".into(),
        kind: "Job".into(),
        namespaced: true,
    }
}

pub(super) fn in_shop(resource: &ResourceType, name: &str) -> Address {
    Address {
        resource: resource.clone(),
        name: ObjectName::new("shop", name),
    }
}

/// A `SyncerConfig`.
pub(super) fn config(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec})
}

/// One that selects these of the namespace `shop`, each `resource` or `resource.group`.
pub(super) fn shop(resources: &[&str]) -> Value {
    let resources: Vec<Value> = resources
        .iter()
        .map(|resource| {
            let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
            json!({"group": group, "resource": resource, "apiVersion": "v1"})
        })
        .collect();
    config(
        "all",
        &json!({"namespaceScope": {"namespaces": ["shop"], "resources": resources}}),
    )
}

/// A spec that selects these `ConfigMap`s of the namespace `shop`.
pub(super) fn named(names: &[&str]) -> Value {
    json!({"namespacedObjects": [{"resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": names}]}]})
}

/// A spec that upsyncs the `ConfigMap`s of these namespaces.
pub(super) fn upsync(namespaces: &[&str]) -> Value {
    json!({"upsync": [{"apiGroup": "", "resources": ["configmaps"], "namespaces": namespaces, "names": ["*"]}]})
}

pub(super) fn outcome(ending: impl Into<Ending>) -> Outcome {
    Outcome {
        ending: ending.into(),
        desired_hash: 0,
        copy: None,
        status: None,
        origin: None,
        ends: false,
        waits_for: Vec::new(),
        kept_versions: Vec::new(),
    }
}

pub(super) fn failure(side: Side, error: Error) -> Failure {
    Failure {
        side,
        doing: "applying",
        error,
    }
}

pub(super) fn unreachable() -> Error {
    Error::Unreachable("no route".into())
}

pub(super) fn answer(code: u16, reason: &str, message: &str) -> Error {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
    Error::from_answer(code, None, body.to_string().as_bytes())
}

pub(super) fn forbidden() -> Error {
    answer(403, "Forbidden", "not allowed")
}

pub(super) fn invalid() -> Error {
    answer(422, "Invalid", "no")
}

pub(super) fn conflict() -> Error {
    answer(409, "Conflict", "it has been modified")
}

pub(super) fn broken() -> Error {
    answer(500, "InternalError", "no")
}

pub(super) fn not_served() -> Error {
    answer(404, "NotFound", "the server could not find the requested resource")
}

pub(super) fn not_found(kind: &str, name: &str) -> Error {
    let body = json!({"kind": "Status", "code": 404, "reason": "NotFound", "details": {"kind": kind, "name": name}});
    Error::from_answer(404, None, body.to_string().as_bytes())
}

/// UIDs of clusters.
pub(super) const THE_HUB: &str = "00000000-0000-4000-8000-000000000001";
pub(super) const THE_EDGE: &str = "00000000-0000-4000-8000-000000000002";
pub(super) const ANOTHER: &str = "00000000-0000-4000-8000-000000000003";
pub(super) const OLDER: &str = "00000000-0000-4000-8000-000000000004";

/// UIDs of definitions.
pub(super) const CRD: &str = "00000000-0000-4000-8000-000000000005";
pub(super) const NEXT: &str = "00000000-0000-4000-8000-000000000006";

/// What defines a type at the hub, and stays.
pub(super) fn defined_by(uid: &str) -> TypeDefinition {
    TypeDefinition {
        uid: uid.into(),
        being_deleted: false,
    }
}

/// The same, as it is known.
pub(super) fn uid(uid: &str) -> DefinedBy {
    DefinedBy::Uid(uid.into())
}
