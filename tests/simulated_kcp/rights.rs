//! Who may do what: RBAC in a workspace, and the rules of a type for its initializer.

use serde_json::Value;

use super::request::Request;
use super::state::{Cluster, State};

/// Who may do everything, as kcp's own administrator.
pub(crate) const ADMIN: &str = "kcp-admin";

fn has(list: &Value, wanted: &str) -> bool {
    let mut items = list.as_array().into_iter().flatten();
    items.any(|item| item == "*" || *item == *wanted)
}

/// Whether a rule is for a request.
fn allows(rule: &Value, request: &Request) -> bool {
    if !has(&rule["verbs"], request.verb) {
        return false;
    }
    if request.resource.is_empty() {
        let paths = rule["nonResourceURLs"].as_array();
        return paths.into_iter().flatten().filter_map(Value::as_str).any(|path| {
            let stem = path.strip_suffix('*');
            stem.map_or(path == request.path, |stem| request.path.starts_with(stem))
        });
    }
    let resource = if request.subresource.is_empty() {
        request.resource.clone()
    } else {
        format!("{}/{}", request.resource, request.subresource)
    };
    let names = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
    // What lists or watches one object is allowed as what reads that.
    let selected = request
        .query
        .get("fieldSelector")
        .and_then(|fields| fields.strip_prefix("metadata.name="));
    let wanted = selected.filter(|_| request.name.is_empty()).unwrap_or(&request.name);
    has(&rule["apiGroups"], &request.group)
        && has(&rule["resources"], &resource)
        && names.is_none_or(|names| names.iter().any(|name| *name == *wanted))
}

/// Whether rules allow a request.
pub(crate) fn allowed_by(rules: &Value, request: &Request) -> bool {
    rules.as_array().into_iter().flatten().any(|rule| allows(rule, request))
}

fn is_subject(binding: &Value, user: &str) -> bool {
    let subjects = binding["subjects"].as_array();
    subjects.into_iter().flatten().any(|subject| {
        subject["kind"] == "User" && *user == subject["name"]
            || subject["kind"] == "Group" && subject["name"] == "system:authenticated"
    })
}

/// Whether the bindings of a workspace allow a request.
fn bound(cluster: &Cluster, request: &Request) -> bool {
    let mut bindings: Vec<(&Value, &str)> = of(cluster, "clusterrolebindings", "").map(|one| (one, "")).collect();
    if !request.namespace.is_empty() {
        let local = of(cluster, "rolebindings", &request.namespace);
        bindings.extend(local.map(|one| (one, request.namespace.as_str())));
    }
    bindings.iter().any(|(binding, namespace)| {
        let role = &binding["roleRef"];
        let mut roles = if role["kind"] == "ClusterRole" {
            of(cluster, "clusterroles", "")
        } else {
            of(cluster, "roles", namespace)
        };
        is_subject(binding, &request.user)
            && roles.any(|found| found["metadata"]["name"] == role["name"] && allowed_by(&found["rules"], request))
    })
}

fn of<'a>(cluster: &'a Cluster, resource: &'a str, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
    cluster.of("rbac.authorization.k8s.io", resource, namespace)
}

/// Why a request in a workspace is forbidden, if it is.
pub(crate) fn refusal(cluster: &Cluster, request: &Request) -> Option<String> {
    if request.user == ADMIN || request.user == cluster.creator {
        return None;
    }
    let access = Request {
        verb: "access",
        path: "/".to_owned(),
        user: request.user.clone(),
        ..Request::default()
    };
    let (user, verb) = (&request.user, request.verb);
    let what = if request.resource.is_empty() {
        format!("forbidden: User {user:?} cannot {verb} path {:?}", request.path)
    } else {
        let scope = if request.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", request.namespace)
        };
        let name = if request.name.is_empty() {
            String::new()
        } else {
            format!(" {:?}", request.name)
        };
        let (resource, group) = (&request.resource, &request.group);
        let qualified = request.qualified();
        format!(
            "{qualified}{name} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
        )
    };
    if !bound(cluster, &access) {
        return Some(format!("{what}: access denied"));
    }
    let is_public = request.resource.is_empty() || request.resource == "selfsubjectaccessreviews";
    (!is_public && !bound(cluster, request)).then_some(what)
}

/// Why somebody may not initialize workspaces of a type, if so. A refusal is kept for a while, as kcp does.
pub(crate) fn may_not_initialize(state: &mut State, request: &Request, type_cluster: &str, type_name: &str) -> bool {
    let now = tokio::time::Instant::now();
    let key = (request.user.clone(), format!("{type_cluster}:{type_name}"));
    if state.refused.get(&key).is_some_and(|until| *until > now) {
        return true;
    }
    let asked = Request {
        verb: "initialize",
        group: "tenancy.kcp.io".to_owned(),
        resource: "workspacetypes".to_owned(),
        name: type_name.to_owned(),
        user: request.user.clone(),
        ..Request::default()
    };
    let cluster = state.clusters.get(type_cluster);
    let refused = cluster.is_none_or(|cluster| refusal(cluster, &asked).is_some());
    if refused {
        state.refused.insert(key, now + state.times.refused);
    }
    refused
}
