//! The virtual workspace of an initializer: `/services/initializingworkspaces/<initializer>/clusters/<id or *>/…`.

use serde_json::Value;

use super::kinds::{Kind, always, discovery};
use super::objects::{listed, not_found, not_patched, patched, scope};
use super::request::{Answer, Request, not_served, status, status_of};
use super::state::{Cluster, State, logical_key, waits};
use super::{objects, rights, workspaces};

/// Answers a request below `/clusters/<what>` for an initializer, at the URL of a shard.
pub(crate) fn answer(
    state: &mut State,
    shard: Option<usize>,
    initializer: &str,
    what: &str,
    request: &Request,
) -> Answer {
    let Some((type_cluster, type_name)) = initializer.rsplit_once(':') else {
        return status(
            403,
            "Forbidden",
            "unable to determine initializer: access not permitted",
        );
    };
    if what.contains(':') {
        return status(
            403,
            "Forbidden",
            &format!(
                "forbidden: User {:?} cannot {} path {:?}",
                request.user, request.verb, request.path
            ),
        );
    }
    if request.user != rights::ADMIN && rights::may_not_initialize(state, request, type_cluster, type_name) {
        let message = if request.resource.is_empty() {
            format!("forbidden: User {:?} cannot get path {:?}", request.user, request.path)
        } else {
            format!(
                "{} is forbidden: User {:?} cannot {} resource {:?} in API group {:?} at the cluster scope: access denied",
                request.qualified(),
                request.user,
                request.verb,
                request.resource,
                request.group
            )
        };
        return status_of(
            403,
            "Forbidden",
            &message,
            &request.group,
            &request.resource,
            &request.name,
        );
    }
    let is_logical = request.group == "core.kcp.io" && request.resource == "logicalclusters";
    match (what, is_logical) {
        ("*", true) => wildcard(state, shard, initializer, request),
        ("*", false) => discovered(state, request),
        (id, true) => logical(state, id, initializer, request),
        (id, false) => forwarded(state, id, initializer, request),
    }
}

fn logical_kind() -> Kind {
    let mut kinds = always().into_iter();
    kinds
        .find(|kind| kind.resource == "logicalclusters")
        .expect("it is in the table")
}

fn not_allowed() -> Answer {
    status(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

/// On `*`, discovery knows one type, and nothing else is served.
fn discovered(state: &State, request: &Request) -> Answer {
    if !request.resource.is_empty() {
        return not_served();
    }
    discovery(
        &[&logical_kind()],
        &request.path,
        &request.accept,
        state.faults.aggregates,
    )
    .unwrap_or_else(not_served)
}

fn wildcard(state: &State, shard: Option<usize>, initializer: &str, request: &Request) -> Answer {
    if !matches!(request.verb, "list" | "watch") {
        return not_allowed();
    }
    let mut scope = scope(request, None);
    scope.waits_for = Some((initializer.to_owned(), shard));
    listed(state, &logical_kind(), request, scope)
}

fn logical(state: &mut State, id: &str, initializer: &str, request: &Request) -> Answer {
    let is_status = request.subresource == "status";
    match request.verb {
        "get" => {}
        "update" | "patch" if is_status => {}
        _ => return not_allowed(),
    }
    if request.verb == "patch"
        && let Some(other) = state.faults.taken_between.take()
    {
        workspaces::take_off(state, id, &other);
    }
    let found = state.clusters.get(id).and_then(Cluster::logical);
    let Some(before) = found.filter(|logical| waits(logical, initializer)).cloned() else {
        return not_found(request, &request.name);
    };
    if request.verb == "get" {
        return Answer::Json(200, before);
    }
    let mut sent = before.clone();
    if request.verb == "update" {
        sent = request.body.clone();
    } else if let Err(why) = patched(request, &mut sent) {
        return not_patched(request, &why);
    }
    let version = &sent["metadata"]["resourceVersion"];
    if !version.is_null() && *version != before["metadata"]["resourceVersion"] {
        return status_of(
            409,
            "Conflict",
            "the object has been modified",
            &request.group,
            &request.resource,
            &request.name,
        );
    }
    let mut next = before.clone();
    next["status"] = sent["status"].take();
    if let Some(why) = refused_list(&before, &next, initializer) {
        return status_of(422, "Invalid", &why, "core.kcp.io", "LogicalCluster", "cluster");
    }
    state.put(id, &logical_key(), Some(next.clone()));
    workspaces::changed(state, id, &logical_key());
    workspaces::taken(state, id, initializer);
    let now = state.clusters.get(id).and_then(Cluster::logical);
    Answer::Json(200, now.cloned().unwrap_or(next))
}

/// Why the list of initializers may not become this.
fn refused_list(before: &Value, next: &Value, initializer: &str) -> Option<String> {
    let list = |object: &Value| object["status"]["initializers"].as_array().cloned().unwrap_or_default();
    let (before, next) = (list(before), list(next));
    let is_shorter = before.len() == next.len() + 1 && !next.iter().any(|one| *one == *initializer);
    let is_fine = before.len() == next.len() || is_shorter;
    (!is_fine).then(|| {
        format!("LogicalCluster.tenancy.kcp.io \"cluster\" is invalid: status.initializers: Invalid value: only removing the {initializer:?} initializer is supported")
    })
}

/// What is for the workspace itself: with all rights of who has made it, or with those that the type gives.
fn forwarded(state: &mut State, id: &str, initializer: &str, request: &Request) -> Answer {
    let Some(cluster) = state.clusters.get(id) else {
        let why =
            format!("error getting logicalcluster {id}|cluster: logicalcluster.core.kcp.io \"cluster\" not found\n");
        return Answer::Text(500, why);
    };
    if !cluster.logical().is_some_and(|logical| waits(logical, initializer)) {
        return Answer::Text(
            403,
            format!("initializer {initializer:?} cannot access this workspace\n"),
        );
    }
    let found = initializer.rsplit_once(':').and_then(|(of, name)| {
        let key = super::state::key("tenancy.kcp.io", "workspacetypes", "", name);
        state.clusters.get(of)?.get(&key)
    });
    let Some(of_type) = found else {
        let why = format!(
            "initializer {initializer:?}: WorkspaceType not found in local or cached indexer; refusing to fall back to owner impersonation: not found\n"
        );
        return Answer::Text(503, why);
    };
    let rules = &of_type["spec"]["initializerPermissions"];
    let has_rules = rules.as_array().is_some_and(|rules| !rules.is_empty());
    if has_rules && !rights::allowed_by(rules, request) {
        return Answer::Text(
            403,
            format!(
                "initializer {initializer:?} denied by initializerPermissions: no rule allows {}\n",
                described(request)
            ),
        );
    }
    objects::answer(state, id, request)
}

fn described(request: &Request) -> String {
    if request.resource.is_empty() {
        return format!("{} on {}", request.verb, request.path);
    }
    let group = if request.group.is_empty() {
        "core"
    } else {
        &request.group
    };
    let mut text = format!("{} on {group}/{}", request.verb, request.resource);
    if !request.name.is_empty() {
        text.extend([" (", &request.name, ")"]);
    }
    if !request.namespace.is_empty() {
        text.extend([" in namespace ", &request.namespace]);
    }
    text
}
