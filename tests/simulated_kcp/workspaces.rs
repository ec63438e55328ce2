//! What kcp itself does: workspaces of types, their phases and initializers, CRDs and bindings.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::exports;
use super::kinds::Kind;
use super::objects::random;
use super::state::{Key, State, key, logical_key};

/// Something that happens to a workspace by itself.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It is placed, and waits for these.
    Scheduled(Vec<String>),
    /// These exports, path and name, are bound; the initializer for that goes.
    Bound(Vec<(String, String)>),
    /// The namespaces that a universal workspace has are made.
    Filled,
    /// A CRD is established.
    Established(Key),
    /// A binding is done.
    BindingDone(Key),
    /// A binding that is being deleted may be gone.
    Unbind(Key),
    /// An initializer that was taken off is there again.
    Back(String),
}

const BINDINGS: &str = "system:apibindings";
const UNIVERSAL: &str = "root:universal";

/// The types that come with kcp, and what they extend.
pub(crate) fn bootstrap(state: &mut State) {
    for name in ["universal", "organization"] {
        let with = if name == "universal" {
            json!([])
        } else {
            json!([{"name": "universal", "path": "root"}])
        };
        let object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
            "metadata": {"name": name, "uid": name, "annotations": {"kcp.io/cluster": "root"}},
            "spec": {"initializer": name == "universal", "extend": {"with": with}}});
        state.put("root", &key("tenancy.kcp.io", "workspacetypes", "", name), Some(object));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// An object has been made.
pub(crate) fn created(state: &mut State, id: &str, key: &Key, user: &str) {
    match key.1.as_str() {
        "workspaces" => new_workspace(state, id, key, user),
        "workspacetypes" => new_type(state, id, key),
        "customresourcedefinitions" => new_definition(state, id, key),
        "apibindings" => {
            exports::new_binding(state, id, key);
            later(state, id, state.times.bound, Step::BindingDone(key.clone()));
        }
        "apiexports" => exports::new_export(state, id, &key.3),
        "apiexportendpointslices" => exports::endpoints(state),
        _ => {}
    }
}

/// An initializer has gone, and comes back if that is asked for.
pub(crate) fn taken(state: &mut State, id: &str, initializer: &str) {
    if state.faults.come_back > 0 {
        state.faults.come_back -= 1;
        later(state, id, state.times.scheduled, Step::Back(initializer.to_owned()));
    }
}

/// An object has changed.
pub(crate) fn changed(state: &mut State, id: &str, key: &Key) {
    match key.1.as_str() {
        "logicalclusters" => settle(state, id),
        "customresourcedefinitions" => redefine(state, id, key),
        "apiexports" => exports::export_changed(state, id, &key.3),
        "apibindings" => {
            exports::label_all(state, id);
            let binding = state.clusters[id].get(key);
            if binding.is_some_and(|binding| !binding["metadata"]["deletionTimestamp"].is_null()) {
                later(state, id, state.times.scheduled, Step::Unbind(key.clone()));
            }
        }
        _ => {}
    }
}

/// An object is gone.
pub(crate) fn deleted(state: &mut State, id: &str, key: &Key, object: &Value) {
    match key.1.as_str() {
        "workspaces" => {
            let of = text(&object["spec"]["cluster"]);
            // Those who watch it see it go.
            state.put(&of, &logical_key(), None);
            state.clusters.remove(&of);
        }
        "customresourcedefinitions" => {
            let spec = &object["spec"];
            let cluster = state.clusters.get_mut(id).expect("the request was for it");
            let is_other = |kind: &Kind| *kind.group != spec["group"] || *kind.resource != spec["names"]["plural"];
            cluster.kinds.retain(is_other);
        }
        _ => {}
    }
}

fn later(state: &mut State, id: &str, wait: std::time::Duration, step: Step) {
    let cluster = state.clusters.get_mut(id).expect("it is there");
    cluster.steps.push((Instant::now() + wait, step));
}

fn new_type(state: &mut State, id: &str, key: &Key) {
    let name = &key.3;
    let entries = state.shards.iter().flat_map(|url| {
        ["initializing", "terminating"].map(|what| {
            let mut entry = json!({"url": format!("{url}/services/{what}workspaces/{id}:{name}")});
            if state.faults.types_urls {
                entry["type"] = json!(what);
            }
            entry
        })
    });
    let entries: Vec<Value> = entries.collect();
    state.edit(id, key, |object| {
        object["status"] = json!({"virtualWorkspaces": entries,
            "conditions": [{"type": "Ready", "status": "True"}]});
    });
}

fn new_definition(state: &mut State, id: &str, key: &Key) {
    let now = Instant::now();
    let (listed, served) = (state.times.listed, state.times.served);
    let cluster = state.clusters.get_mut(id).expect("the request was for it");
    let spec = cluster
        .get(key)
        .map(|object| object["spec"].clone())
        .unwrap_or_default();
    cluster.kinds.push(Kind::defined(&spec, now + listed, now + served));
    later(state, id, listed, Step::Established(key.clone()));
}

/// A definition has changed; of that, only what it says of statuses counts here.
fn redefine(state: &mut State, id: &str, key: &Key) {
    let Some(cluster) = state.clusters.get_mut(id) else {
        return;
    };
    let spec = cluster
        .get(key)
        .map(|object| object["spec"].clone())
        .unwrap_or_default();
    let of = |kind: &&mut Kind| *kind.group == spec["group"] && *kind.resource == spec["names"]["plural"];
    for kind in cluster.kinds.iter_mut().filter(of) {
        kind.has_status = super::kinds::has_status(&spec);
    }
}

/// A type and all that it extends: the ids of their workspaces, and the objects.
fn resolved(state: &State, parent: &str, of: &Value) -> Vec<(String, Value)> {
    let (path, name) = (text(&of["path"]), text(&of["name"]));
    let id = if path.is_empty() {
        Some(parent.to_owned())
    } else {
        state.id_of(&path)
    };
    let key = key("tenancy.kcp.io", "workspacetypes", "", &name);
    let found = id.and_then(|id| {
        let object = state.clusters.get(&id)?.get(&key)?.clone();
        Some((id, object))
    });
    let Some((id, object)) = found else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for extended in object["spec"]["extend"]["with"].as_array().into_iter().flatten() {
        all.extend(resolved(state, &id, extended));
    }
    all.push((id, object));
    all
}

fn new_workspace(state: &mut State, parent: &str, key: &Key, user: &str) {
    let id = random(16);
    let path = format!("{}:{}", state.clusters[parent].path, key.3);
    state.next += 1;
    let shard = state.next % state.shards.len();
    state.add_cluster(&id, &path, user, shard);
    let mut of = state.clusters[parent]
        .get(key)
        .map(|object| object["spec"]["type"].clone())
        .unwrap_or_default();
    if of.is_null() {
        of = json!({"name": "universal", "path": "root"});
    }
    let types = resolved(state, parent, &of);
    let initializers = types.iter().filter(|(_, object)| object["spec"]["initializer"] == true);
    let mut initializers: Vec<String> = initializers
        .map(|(of, object)| format!("{of}:{}", text(&object["metadata"]["name"])))
        .collect();
    initializers.dedup();
    let exports = types.iter().flat_map(|(_, object)| {
        let bindings = object["spec"]["defaultAPIBindings"].as_array().cloned();
        bindings.unwrap_or_default()
    });
    let exports: Vec<_> = exports.map(|one| (text(&one["path"]), text(&one["export"]))).collect();
    let is_universal = initializers.iter().any(|one| one == UNIVERSAL);
    if is_universal || !exports.is_empty() {
        initializers.insert(0, BINDINGS.to_owned());
    }
    let url = format!("{}/clusters/{path}", state.shards[0]);
    state.edit(parent, key, |object| {
        object["spec"] = json!({"type": of, "cluster": id, "URL": url});
        object["status"] = json!({"phase": "Scheduling"});
    });
    let logical = json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "uid": id, "annotations": {"kcp.io/cluster": id, "kcp.io/path": path},
            "generation": 1},
        "spec": {"createdBy": {"username": user}, "initializers": initializers,
            "owner": {"cluster": parent, "name": key.3, "resource": "workspaces"}},
        "status": {"phase": "Scheduling"}});
    state.put(&id, &logical_key(), Some(logical));
    let times = state.times;
    later(state, &id, times.scheduled, Step::Scheduled(initializers));
    later(state, &id, times.scheduled + times.bound, Step::Bound(exports));
    if is_universal {
        later(state, &id, times.scheduled + times.bound, Step::Filled);
    }
}

/// Does what is due.
pub(crate) fn tick(state: &mut State) {
    let now = Instant::now();
    let mut due = Vec::new();
    for cluster in state.clusters.values_mut() {
        let (ready, waiting) = std::mem::take(&mut cluster.steps)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        cluster.steps = waiting;
        let ready: Vec<(Instant, Step)> = ready;
        due.extend(ready.into_iter().map(|(_, step)| (cluster.id.clone(), step)));
    }
    for (id, step) in due {
        take(state, &id, step);
    }
}

fn take(state: &mut State, id: &str, step: Step) {
    match step {
        Step::Scheduled(initializers) => {
            state.edit(id, &logical_key(), |object| {
                object["status"] = json!({"phase": "Initializing", "initializers": initializers});
            });
            settle(state, id);
        }
        Step::Bound(exports) => {
            for (path, name) in exports {
                if let Some(provider) = state.id_of(&path) {
                    exports::bind(state, id, &(provider, name));
                }
            }
            take_off(state, id, BINDINGS);
        }
        Step::Filled => {
            for name in ["default", "kube-system"] {
                let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name}});
                state.put(id, &key("", "namespaces", "", name), Some(object));
            }
            take_off(state, id, UNIVERSAL);
        }
        Step::Established(at) => state.edit(id, &at, |object| {
            object["status"] = json!({"conditions": [{"type": "Established", "status": "True"},
                {"type": "NamesAccepted", "status": "True"}]});
        }),
        Step::Back(initializer) => {
            state.edit(id, &logical_key(), |object| {
                object["status"] = json!({"phase": "Initializing", "initializers": [initializer]});
            });
            settle(state, id);
        }
        Step::BindingDone(at) => exports::binding_done(state, id, &at),
        Step::Unbind(at) => {
            if !exports::unbind(state, id, &at) {
                later(state, id, state.times.scheduled, Step::Unbind(at));
            }
        }
    }
}

/// Takes an initializer off, as who owns it does.
pub(crate) fn take_off(state: &mut State, id: &str, initializer: &str) {
    state.edit(id, &logical_key(), |object| {
        if let Some(initializers) = object["status"]["initializers"].as_array_mut() {
            initializers.retain(|one| *one != *initializer);
        }
    });
    settle(state, id);
}

/// A workspace that waits for nothing is ready; its parent shows how it is.
fn settle(state: &mut State, id: &str) {
    let Some(logical) = state.clusters.get(id).and_then(super::state::Cluster::logical).cloned() else {
        return;
    };
    let is_done = logical["status"]["initializers"].as_array().is_none_or(Vec::is_empty);
    if logical["status"]["phase"] == "Initializing" && is_done {
        state.edit(id, &logical_key(), |object| object["status"]["phase"] = json!("Ready"));
    }
    let Some(logical) = state.clusters.get(id).and_then(super::state::Cluster::logical).cloned() else {
        return;
    };
    let owner = &logical["spec"]["owner"];
    let at = key("tenancy.kcp.io", "workspaces", "", &text(&owner["name"]));
    state.edit(&text(&owner["cluster"]), &at, |object| {
        object["status"]["phase"] = logical["status"]["phase"].clone();
        object["status"]["initializers"] = logical["status"]["initializers"].clone();
    });
}
