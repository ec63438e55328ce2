//! What a workspace answers: the objects of the types that it serves.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::kinds::{Kind, discovery};
use super::request::{Answer, Request, Scope, Watch, not_served, status, status_of};
use super::state::{Key, State};
use super::{patch, rights, workspaces};

/// Answers a request in a workspace, whoever has checked that it is allowed.
pub(crate) fn answer(state: &mut State, id: &str, request: &Request) -> Answer {
    let Some(cluster) = state.clusters.get(id) else {
        return not_served();
    };
    if request.resource.is_empty() {
        let aggregates = state.faults.aggregates;
        let kinds: Vec<&Kind> = cluster.kinds.iter().collect();
        return discovery(&kinds, &request.path, &request.accept, aggregates).unwrap_or_else(not_served);
    }
    let of_type = |kind: &&Kind| {
        kind.group == request.group && kind.versions.contains(&request.version) && kind.resource == request.resource
    };
    let Some(kind) = cluster
        .kinds
        .iter()
        .find(of_type)
        .filter(|kind| kind.is_served())
        .cloned()
    else {
        return not_served();
    };
    if kind.resource == "selfsubjectaccessreviews" {
        return review(state, id, request);
    }
    match request.verb {
        "list" | "watch" => listed(state, &kind, request, scope(request, Some(id.to_owned()))),
        "create" => create(state, id, &kind, request),
        _ => one(state, id, &kind, request),
    }
}

/// What the objects of a request are.
pub(crate) fn scope(request: &Request, cluster: Option<String>) -> Scope {
    let query = |name: &str| request.query.get(name).cloned().unwrap_or_default();
    let mut fields = query("fieldSelector");
    if !request.name.is_empty() {
        fields = format!("metadata.name={}", request.name);
    }
    Scope {
        cluster,
        group: request.group.clone(),
        version: request.version.clone(),
        resource: request.resource.clone(),
        namespace: request.namespace.clone(),
        labels: query("labelSelector"),
        fields,
        waits_for: None,
        through: None,
    }
}

/// Answers a list, or begins a watch.
pub(crate) fn listed(state: &State, kind: &Kind, request: &Request, scope: Scope) -> Answer {
    if request.verb == "list" {
        let (items, version) = state.list(&scope);
        return Answer::Json(
            200,
            json!({"apiVersion": request.api_version(), "kind": format!("{}List", kind.name),
                "metadata": {"resourceVersion": version.to_string()}, "items": items}),
        );
    }
    let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    let since = query("resourceVersion");
    let since: Option<u64> = since.parse().ok().filter(|&since| since > 0);
    if since.is_some_and(|since| since < state.compacted) {
        return status(410, "Expired", "too old resource version");
    }
    Answer::Watch(Box::new(Watch {
        scope,
        kind: kind.name.clone(),
        initial: query("sendInitialEvents") == "true" || since.is_none(),
        since: since.unwrap_or(state.version),
        bookmarks: query("allowWatchBookmarks") == "true",
        seconds: query("timeoutSeconds").parse().ok(),
        deaf: false,
    }))
}

fn key_of(request: &Request, name: &str) -> Key {
    (
        request.group.clone(),
        request.resource.clone(),
        request.namespace.clone(),
        name.to_owned(),
    )
}

fn shown(request: &Request, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(request.api_version());
    object
}

pub(crate) fn not_found(request: &Request, name: &str) -> Answer {
    let message = format!("{} {name:?} not found", request.qualified());
    status_of(404, "NotFound", &message, &request.group, &request.resource, name)
}

/// Letters and digits as `generateName` has them.
pub(crate) fn random(length: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let letters = (0..length).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]));
    letters.collect()
}

fn create(state: &mut State, id: &str, kind: &Kind, request: &Request) -> Answer {
    static UIDS: AtomicU32 = AtomicU32::new(0);
    if kind.namespaced == request.namespace.is_empty() {
        return status(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
    }
    let mut object = request.body.clone();
    if object["kind"] != *kind.name || object["apiVersion"] != *request.api_version() {
        return status(400, "BadRequest", "the object does not match the path");
    }
    let meta = &object["metadata"];
    let name = match (meta["name"].as_str(), meta["generateName"].as_str()) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, Some(stem)) if !stem.is_empty() => format!("{stem}{}", random(5)),
        _ => {
            let message = format!(
                "{} \"\" is invalid: metadata.name: Required value: name or generateName is required",
                kind.name
            );
            return status_of(422, "Invalid", &message, &kind.group, &kind.name, "");
        }
    };
    if meta["namespace"]
        .as_str()
        .is_some_and(|namespace| namespace != request.namespace)
    {
        return status(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        );
    }
    let cluster = &state.clusters[id];
    let space = super::state::key("", "namespaces", "", &request.namespace);
    if kind.namespaced && cluster.get(&space).is_none() {
        let message = format!("namespaces {:?} not found", request.namespace);
        return status_of(404, "NotFound", &message, "", "namespaces", &request.namespace);
    }
    let key = key_of(request, &name);
    if cluster.get(&key).is_some() {
        let message = format!("{} {name:?} already exists", request.qualified());
        return status_of(409, "AlreadyExists", &message, &kind.group, &kind.resource, &name);
    }
    let meta = &mut object["metadata"];
    meta["name"] = json!(name);
    if kind.namespaced {
        meta["namespace"] = json!(request.namespace);
    }
    meta["uid"] = json!(format!("uid-{}", UIDS.fetch_add(1, Ordering::Relaxed)));
    meta["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    meta["generation"] = json!(1);
    meta["annotations"]["kcp.io/cluster"] = json!(id);
    for field in ["resourceVersion", "deletionTimestamp"] {
        meta.as_object_mut().expect("it is an object").remove(field);
    }
    if kind.has_status {
        object.as_object_mut().expect("it is an object").remove("status");
    }
    super::exports::claim(state, id, &key, &mut object);
    let stored = state.put(id, &key, Some(object));
    workspaces::created(state, id, &key, &request.user);
    let stored = state.clusters[id]
        .get(&key)
        .cloned()
        .or(stored.map(|object| (*object).clone()));
    Answer::Json(201, shown(request, &stored.unwrap_or_default()))
}

/// Applies a patch by its content type; the error is the message of a 422.
pub(crate) fn patched(request: &Request, object: &mut Value) -> Result<(), String> {
    if request.content_type == "application/json-patch+json" {
        return patch::json_patch(object, &request.body);
    }
    patch::merge(object, &request.body);
    Ok(())
}

/// The answer to a JSON patch that cannot be applied.
pub(crate) fn not_patched(request: &Request, why: &str) -> Answer {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    status_of(
        422,
        "Invalid",
        &message,
        &request.group,
        &request.resource,
        &request.name,
    )
}

fn one(state: &mut State, id: &str, kind: &Kind, request: &Request) -> Answer {
    if request.subresource == "status" && !kind.has_status {
        // Of a type that a definition makes it is said that there is no such object.
        return if kind.served.is_some() {
            not_found(request, &request.name)
        } else {
            not_served()
        };
    }
    let key = key_of(request, &request.name);
    let Some(before) = state.clusters[id].get(&key).cloned() else {
        // Server-side apply creates.
        if request.verb == "patch" && request.content_type.starts_with("application/apply-patch") {
            return create(state, id, kind, request);
        }
        return not_found(request, &request.name);
    };
    match request.verb {
        "get" => Answer::Json(200, shown(request, &before)),
        "delete" => delete(state, id, &key, request, before),
        "update" => change(state, (id, &key, kind), request, &before, request.body.clone()),
        _ => {
            let mut next = before.clone();
            if let Err(why) = patched(request, &mut next) {
                return not_patched(request, &why);
            }
            change(state, (id, &key, kind), request, &before, next)
        }
    }
}

fn conflict(request: &Request, why: &str) -> Answer {
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: {why}",
        request.qualified(),
        request.name
    );
    status_of(
        409,
        "Conflict",
        &message,
        &request.group,
        &request.resource,
        &request.name,
    )
}

/// An object that has finalizers stays until they are gone.
fn delete(state: &mut State, id: &str, key: &Key, request: &Request, before: Value) -> Answer {
    let uid = &request.body["preconditions"]["uid"];
    if !uid.is_null() && *uid != before["metadata"]["uid"] {
        return conflict(request, "the UID in the precondition does not match the UID in record");
    }
    if ends(state, id, key, before) {
        let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        return Answer::Json(200, done);
    }
    let left = state.clusters[id].get(key).cloned().unwrap_or_default();
    Answer::Json(200, shown(request, &left))
}

/// Somebody has deleted an object. True if it is gone.
pub(crate) fn ends(state: &mut State, id: &str, key: &Key, before: Value) -> bool {
    let mut before = before;
    if has_finalizers(&before) {
        if before["metadata"]["deletionTimestamp"].is_null() {
            before["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
            state.put(id, key, Some(before));
            workspaces::changed(state, id, key);
        }
        return false;
    }
    state.put(id, key, None);
    workspaces::deleted(state, id, key, &before);
    true
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|all| !all.is_empty())
}

/// Writes what somebody has made of an object.
fn change(
    state: &mut State,
    (id, key, kind): (&str, &Key, &Kind),
    request: &Request,
    before: &Value,
    mut next: Value,
) -> Answer {
    let sent = &next["metadata"];
    if !sent["resourceVersion"].is_null() && sent["resourceVersion"] != before["metadata"]["resourceVersion"] {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return conflict(request, why);
    }
    if !sent["uid"].is_null() && sent["uid"] != before["metadata"]["uid"] {
        return conflict(request, "the UID in the precondition does not match the UID in record");
    }
    if request.subresource.is_empty() {
        if kind.has_status {
            next["status"] = before["status"].clone();
        }
    } else {
        let mut status = next["status"].take();
        if let (Some(kept), Some(all)) = (&kind.status_fields, status.as_object_mut()) {
            all.retain(|field, _| kept.contains(field));
        }
        next = before.clone();
        next["status"] = status;
    }
    if next["status"].is_null() {
        next.as_object_mut().expect("it is an object").remove("status");
    }
    for field in [
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "deletionTimestamp",
        "generation",
    ] {
        let value = before["metadata"][field].clone();
        let metadata = next["metadata"].as_object_mut().expect("it has metadata");
        if value.is_null() {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), value);
        }
    }
    next["metadata"]["annotations"]["kcp.io/cluster"] = json!(id);
    if next["spec"] != before["spec"] {
        let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
        next["metadata"]["generation"] = json!(generation + 1);
    }
    super::exports::keep_claims(before, &mut next);
    if !has_finalizers(&next) {
        let metadata = next["metadata"].as_object_mut().expect("it has metadata");
        metadata.remove("finalizers");
    }
    let is_over = next["metadata"]["deletionTimestamp"].is_string() && !has_finalizers(&next);
    if is_over {
        state.put(id, key, None);
        workspaces::deleted(state, id, key, &next);
        return Answer::Json(200, shown(request, &next));
    }
    let stored = state.put(id, key, Some(next));
    workspaces::changed(state, id, key);
    Answer::Json(
        200,
        shown(request, &stored.map(|object| (*object).clone()).unwrap_or_default()),
    )
}

/// What somebody may do.
fn review(state: &State, id: &str, request: &Request) -> Answer {
    let spec = &request.body["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verb = text(&spec["resourceAttributes"]["verb"]) + &text(&spec["nonResourceAttributes"]["verb"]);
    let asked = Request {
        verb: String::leak(verb),
        group: text(&spec["resourceAttributes"]["group"]),
        resource: text(&spec["resourceAttributes"]["resource"]),
        subresource: text(&spec["resourceAttributes"]["subresource"]),
        namespace: text(&spec["resourceAttributes"]["namespace"]),
        name: text(&spec["resourceAttributes"]["name"]),
        path: text(&spec["nonResourceAttributes"]["path"]),
        user: request.user.clone(),
        ..Request::default()
    };
    let allowed = rights::refusal(&state.clusters[id], &asked).is_none();
    let mut answer = request.body.clone();
    answer["status"] = json!({"allowed": allowed});
    Answer::Json(201, answer)
}
