//! The virtual workspace of an export: `/services/apiexport/<id>/<export>/clusters/<id or *>/…`, and what kcp does for
//! exports, their bindings and claims.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kinds::{Kind, always, discovery};
use super::objects::{ends, listed, not_found, scope};
use super::request::{Answer, Request, not_served, status, status_of};
use super::state::{Cluster, Key, State, key};
use super::{objects, rights};

/// The id of a workspace, and the name of an export there.
type Export = (String, String);

/// With what the labels begin by which kcp marks the objects that an export has claimed.
const CLAIMED: &str = "claimed.internal.apis.kcp.io/";
/// As long as a binding has it, the objects of its types are not gone.
const UNBINDING: &str = "apis.kcp.io/apibinding-finalizer";

/// What a virtual workspace shows of a type.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// The bindings of this export.
    Bindings(Export),
    /// The objects of its own types, where they are bound.
    Exported(Export),
    /// Those that it has claimed, where that is accepted: they have this label.
    Claimed(String),
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Answers a request below `/clusters/<what>` for an export, at the URL of a shard.
pub(crate) fn answer(
    state: &mut State,
    shard: Option<usize>,
    [id, name]: [&str; 2],
    what: &str,
    request: &Request,
) -> Answer {
    let export = (id.to_owned(), name.to_owned());
    let Some(offered) = offered(state, &export) else {
        return not_served();
    };
    let content = Request {
        group: "apis.kcp.io".to_owned(),
        resource: "apiexports".to_owned(),
        subresource: "content".to_owned(),
        name: name.to_owned(),
        namespace: String::new(),
        ..request.clone()
    };
    if let Some(message) = rights::refusal(&state.clusters[id], &content) {
        return status_of(403, "Forbidden", &message, "apis.kcp.io", "apiexports", name);
    }
    if request.resource.is_empty() {
        let kinds: Vec<&Kind> = offered.iter().map(|(kind, _)| kind).collect();
        let aggregates = state.faults.aggregates;
        return discovery(&kinds, &request.path, &request.accept, aggregates).unwrap_or_else(not_served);
    }
    let of_request = |(kind, _): &&(Kind, Shown)| {
        kind.group == request.group && kind.versions.contains(&request.version) && kind.resource == request.resource
    };
    let Some((kind, shown)) = offered.iter().find(of_request) else {
        return not_served();
    };
    match what {
        "*" => wildcard(state, shard, (kind, shown), request),
        id => within(state, id, (kind, shown), request),
    }
}

/// The types that an export has: its own, those that it claims, and bindings. `None` if there is no such export.
fn offered(state: &State, export: &Export) -> Option<Vec<(Kind, Shown)>> {
    let cluster = state.clusters.get(&export.0)?;
    let object = cluster.get(&key("apis.kcp.io", "apiexports", "", &export.1))?;
    let now = Instant::now();
    let own = schemas(cluster, object).map(|schema| {
        (
            Kind::defined(&schema["spec"], now, now),
            Shown::Exported(export.clone()),
        )
    });
    let claims: Vec<[String; 2]> = list(&object["spec"]["permissionClaims"]).map(type_of).collect();
    let others = always().into_iter().filter_map(|kind| {
        let claim = [kind.group.clone(), kind.resource.clone()];
        if kind.resource == "apibindings" {
            return Some((kind, Shown::Bindings(export.clone())));
        }
        claims
            .contains(&claim)
            .then(|| (kind, Shown::Claimed(label(export, &claim))))
    });
    Some(own.chain(others).collect())
}

fn schemas<'a>(cluster: &'a Cluster, export: &'a Value) -> impl Iterator<Item = &'a Value> {
    let latest = list(&export["spec"]["latestResourceSchemas"]);
    let others = list(&export["spec"]["resources"]).map(|one| &one["schema"]);
    let names = latest.chain(others).filter_map(Value::as_str);
    names.filter_map(|name| cluster.get(&key("apis.kcp.io", "apiresourceschemas", "", name)))
}

/// Group and plural of a claim.
fn type_of(claim: &Value) -> [String; 2] {
    [text(&claim["group"]), text(&claim["resource"])]
}

/// The label of what an export has claimed of a type.
fn label((id, name): &Export, [group, resource]: &[String; 2]) -> String {
    let parts = [id, name, group, resource].map(|part| part.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    format!("{CLAIMED}{}", parts.join("_"))
}

/// All workspaces of a shard: only to be read.
fn wildcard(state: &State, shard: Option<usize>, (kind, shown): (&Kind, &Shown), request: &Request) -> Answer {
    if !matches!(request.verb, "list" | "watch") {
        return not_allowed();
    }
    let mut scope = scope(request, None);
    scope.through = Some((shown.clone(), shard));
    let answer = listed(state, kind, request, scope);
    let Shown::Exported((id, name)) = shown else {
        return answer;
    };
    let of_type = [id, name, &kind.group, &kind.resource].map(String::clone);
    if state
        .exported
        .get(&of_type)
        .is_some_and(|since| *since <= Instant::now())
    {
        return answer;
    }
    match answer {
        // Discovery has it already.
        Answer::Json(200, mut list) if state.faults.empty_until_served => {
            list["items"] = json!([]);
            list["metadata"] = json!({});
            Answer::Json(200, list)
        }
        Answer::Watch(mut watch) if state.faults.empty_until_served => {
            watch.deaf = true;
            Answer::Watch(watch)
        }
        _ => not_served(),
    }
}

fn not_allowed() -> Answer {
    status(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

/// One workspace.
fn within(state: &mut State, id: &str, (kind, shown): (&Kind, &Shown), request: &Request) -> Answer {
    let of_type = (id.to_owned(), kind.group.clone(), kind.resource.clone());
    let Some(cluster) = state.clusters.get(id) else {
        return not_served();
    };
    if matches!(request.verb, "list" | "watch") {
        let mut scope = scope(request, Some(id.to_owned()));
        scope.through = Some((shown.clone(), None));
        return listed(state, kind, request, scope);
    }
    match shown {
        Shown::Exported(export) if state.bound.get(&of_type) != Some(export) => return not_served(),
        Shown::Bindings(_) if request.verb != "get" => return not_allowed(),
        Shown::Exported(_) | Shown::Bindings(_) => {}
        Shown::Claimed(label) => {
            let accepted = accepted(state, id, &[kind.group.clone(), kind.resource.clone()]);
            let at = key(&kind.group, &kind.resource, &request.namespace, &request.name);
            let is_hidden = cluster
                .get(&at)
                .is_none_or(|object| object["metadata"]["labels"][label].is_null());
            if request.verb == "create" && !accepted.contains(label) {
                let message = format!("{} is forbidden: the claim is not accepted", request.qualified());
                return status_of(403, "Forbidden", &message, &kind.group, &kind.resource, "");
            }
            if request.verb != "create" && is_hidden {
                return not_found(request, &request.name);
            }
        }
    }
    objects::answer(state, id, request)
}

/// The export that a binding names.
pub(crate) fn bound_by(state: &State, binding: &Value) -> Option<Export> {
    let export = &binding["spec"]["reference"]["export"];
    let path = export["path"].as_str().filter(|path| !path.is_empty());
    let path = path.or(binding["metadata"]["annotations"]["kcp.io/cluster"].as_str())?;
    Some((state.id_of(path)?, text(&export["name"])))
}

/// The labels that objects of a type get in a workspace, by its bindings.
fn accepted(state: &State, id: &str, of_type: &[String; 2]) -> BTreeSet<String> {
    let bindings = state.clusters[id].of("apis.kcp.io", "apibindings", "");
    let labels = bindings.filter_map(|binding| {
        let is_accepted = |claim: &Value| claim["state"] == "Accepted" && type_of(claim) == *of_type;
        let export = bound_by(state, binding)?;
        let at = key("apis.kcp.io", "apiexports", "", &export.1);
        let claims = &state.clusters.get(&export.0)?.get(&at)?["spec"]["permissionClaims"];
        let is_claimed = list(claims).any(|claim| type_of(claim) == *of_type);
        let is_both = is_claimed && list(&binding["spec"]["permissionClaims"]).any(is_accepted);
        is_both.then(|| label(&export, of_type))
    });
    labels.collect()
}

fn is_claim(label: &str) -> bool {
    label.starts_with(CLAIMED)
}

/// A new object gets the labels of the claims that are accepted for its type, and no others.
pub(crate) fn claim(state: &State, id: &str, key: &Key, object: &mut Value) {
    let labels = accepted(state, id, &[key.0.clone(), key.1.clone()]);
    mark(object, &labels);
}

fn mark(object: &mut Value, wanted: &BTreeSet<String>) {
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.retain(|label, _| !is_claim(label));
    }
    for label in wanted {
        object["metadata"]["labels"][label] = json!("claimed");
    }
}

/// Nobody but kcp changes these labels.
pub(crate) fn keep_claims(before: &Value, next: &mut Value) {
    let labels = before["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten().map(|(label, _)| label.clone());
    mark(next, &labels.filter(|label| is_claim(label)).collect());
}

/// All objects of a workspace get the labels that they should have.
pub(crate) fn label_all(state: &mut State, id: &str) {
    let keys: Vec<Key> = state.clusters[id].objects.keys().cloned().collect();
    for at in keys {
        let wanted = accepted(state, id, &[at.0.clone(), at.1.clone()]);
        state.edit(id, &at, |object| {
            if !wanted.is_empty() || object["metadata"]["labels"].is_object() {
                mark(object, &wanted);
            }
        });
    }
}

/// The workspaces with a binding of an export, and those bindings.
fn bindings_of(state: &State, export: &Export) -> Vec<(String, Key)> {
    let mut found = Vec::new();
    for (id, cluster) in &state.clusters {
        for binding in cluster.of("apis.kcp.io", "apibindings", "") {
            if bound_by(state, binding).as_ref() == Some(export) {
                let name = text(&binding["metadata"]["name"]);
                found.push((id.clone(), key("apis.kcp.io", "apibindings", "", &name)));
            }
        }
    }
    found
}

/// An export is new: kcp makes a slice of its URLs.
pub(crate) fn new_export(state: &mut State, id: &str, name: &str) {
    let path = state.clusters[id].path.clone();
    let slice = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice",
        "metadata": {"name": name, "uid": format!("slice-{id}-{name}"), "annotations": {"kcp.io/cluster": id}},
        "spec": {"export": {"path": path, "name": name}}});
    let at = key("apis.kcp.io", "apiexportendpointslices", "", name);
    if state.clusters[id].get(&at).is_none() {
        state.put(id, &at, Some(slice));
    }
    endpoints(state);
}

/// An export has changed: so does what is bound of it.
pub(crate) fn export_changed(state: &mut State, id: &str, name: &str) {
    let export = (id.to_owned(), name.to_owned());
    let bindings: Vec<_> = bindings_of(state, &export);
    for (id, at) in bindings {
        let is_bound = state.clusters[&id]
            .get(&at)
            .is_some_and(|it| it["status"]["phase"] == "Bound");
        if is_bound {
            bind(state, &id, &export);
        }
        label_all(state, &id);
    }
}

/// Serves what an export offers in a workspace.
pub(crate) fn bind(state: &mut State, id: &str, export: &Export) {
    let found = state.clusters.get(&export.0).and_then(|cluster| {
        let object = cluster.get(&key("apis.kcp.io", "apiexports", "", &export.1))?;
        let now = Instant::now();
        Some(
            schemas(cluster, object)
                .map(|schema| Kind::defined(&schema["spec"], now, now))
                .collect(),
        )
    });
    let kinds: Vec<Kind> = found.unwrap_or_default();
    let served = Instant::now() + state.times.exported;
    let Some(cluster) = state.clusters.get_mut(id) else {
        return;
    };
    for kind in kinds {
        cluster
            .kinds
            .retain(|other| (&other.group, &other.resource) != (&kind.group, &kind.resource));
        let of_type = [&export.0, &export.1, &kind.group, &kind.resource].map(String::clone);
        state.exported.entry(of_type).or_insert(served);
        let bound = (id.to_owned(), kind.group.clone(), kind.resource.clone());
        state.bound.insert(bound, export.clone());
        cluster.kinds.push(kind);
    }
}

/// A binding is done.
pub(crate) fn binding_done(state: &mut State, id: &str, at: &Key) {
    let found = state.clusters.get(id).and_then(|cluster| cluster.get(at)).cloned();
    let Some(export) = found.and_then(|binding| bound_by(state, &binding)) else {
        return;
    };
    bind(state, id, &export);
    state.edit(id, at, |object| {
        object["status"] = json!({"phase": "Bound", "conditions": [{"type": "Ready", "status": "True"}]});
    });
    label_all(state, id);
    endpoints(state);
}

/// A binding is new; it stays until its objects are gone.
pub(crate) fn new_binding(state: &mut State, id: &str, at: &Key) {
    state.edit(id, at, |object| object["metadata"]["finalizers"] = json!([UNBINDING]));
}

/// A binding is being deleted: with it go the objects of its types. True once all of them are gone, and it with them.
pub(crate) fn unbind(state: &mut State, id: &str, at: &Key) -> bool {
    let Some(binding) = state.clusters.get(id).and_then(|cluster| cluster.get(at)).cloned() else {
        return true;
    };
    let Some(export) = bound_by(state, &binding) else {
        return true;
    };
    let types = state.bound.iter().filter(|((of, ..), it)| of == id && **it == export);
    let types: Vec<_> = types.map(|(of_type, _)| of_type.clone()).collect();
    let objects = state.clusters[id].objects.iter();
    let left = objects.filter(|(key, _)| {
        types
            .iter()
            .any(|(_, group, plural)| (group, plural) == (&key.0, &key.1))
    });
    let left: Vec<(Key, Value)> = left.map(|(key, object)| (key.clone(), (**object).clone())).collect();
    let mut is_over = true;
    for (key, object) in left {
        is_over &= ends(state, id, &key, object);
    }
    if !is_over {
        return false;
    }
    for of_type in &types {
        state.bound.remove(of_type);
        let cluster = state.clusters.get_mut(id).expect("it was just there");
        cluster
            .kinds
            .retain(|kind| (&kind.group, &kind.resource) != (&of_type.1, &of_type.2));
    }
    state.put(id, at, None);
    label_all(state, id);
    endpoints(state);
    true
}

/// Every slice names the shards on which its export is bound, but for those that a test leaves out.
pub(crate) fn endpoints(state: &mut State) {
    let slices: Vec<(String, Key, Value)> = state
        .clusters
        .iter()
        .flat_map(|(id, cluster)| {
            let slices = cluster.of("apis.kcp.io", "apiexportendpointslices", "");
            slices.map(|slice| {
                let name = text(&slice["metadata"]["name"]);
                (
                    id.clone(),
                    key("apis.kcp.io", "apiexportendpointslices", "", &name),
                    slice.clone(),
                )
            })
        })
        .collect();
    for (id, at, slice) in slices {
        let export = &slice["spec"]["export"];
        let path = export["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(&id);
        let Some(of) = state.id_of(path) else { continue };
        let export = (of, text(&export["name"]));
        let bindings = bindings_of(state, &export).into_iter();
        let bound = bindings.filter(|(id, at)| {
            let binding = state.clusters[id].get(at);
            binding.is_some_and(|binding| binding["status"]["phase"] == "Bound")
        });
        let shards: BTreeSet<usize> = bound.map(|(id, _)| state.clusters[&id].shard).collect();
        let named = shards.iter().filter(|shard| !state.faults.unnamed.contains(shard));
        let urls = named.map(|shard| {
            let url = format!("{}/services/apiexport/{}/{}", state.shards[*shard], export.0, export.1);
            json!({"url": url})
        });
        let urls: Vec<Value> = urls.collect();
        state.edit(&id, &at, |slice| slice["status"] = json!({"endpoints": urls}));
    }
}
