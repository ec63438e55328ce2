//! Whether the edge is what the hub wants, judged by what both stores hold and nothing else.
//!
//! Selection and cleaning are written here a second time, after the spec, for the few types that a run has.

use std::collections::BTreeMap;

use serde_json::Value;

use super::choices::Choices;
use super::converged_up;
use super::fields;
use super::flows::{DOWNSYNC, OWNER, SOURCE, UPSYNC, is_another_targets};
use super::ledger::{BYSTANDER, RECORD};
use super::store::{Key, Store};
use super::takers;
use super::types::{self, Type};

/// Said of a copy whose origin is gone.
pub const LEFT_OVER: &str = "is left over";

const CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";

/// How an object is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selected {
    No,
    /// A namespace that has to exist.
    Implied,
    Whole,
}

/// Everything in which either side is not what the other wants, and the objects that it is about.
pub fn differences(
    hub: &Store,
    edge: &Store,
    bystanders: &BTreeMap<Key, Value>,
    choices: Choices,
) -> Vec<(String, Key)> {
    let specs: Vec<&Value> = hub.of(CONFIGS, "").map(|(_, config)| &config["spec"]).collect();
    let mut all = converged_up::differences(hub, edge, &specs, choices);
    for ty in types::served(hub) {
        if types::by_name(edge, &ty.qualified()).is_none() || ty.group == "edge.kubestellar.io" {
            continue;
        }
        let qualified = ty.qualified();
        for (key, origin) in hub.of(&qualified, "").filter(|(key, _)| !choices.denies(key)) {
            let selected = match selection(&specs, &ty, key) {
                // One that upsync has made has to be there for its contents all the same.
                Selected::Whole if ty.is_namespace() && UPSYNC.owns(origin) => Selected::Implied,
                _ if !ty.is_namespace() && goes_up(&specs, key, origin) => continue,
                selected => selected,
            };
            if selected != Selected::No && !key.name.starts_with("poison") {
                if selected == Selected::Implied && is_bare(&specs, hub, key, choices) {
                    continue;
                }
                let copy = edge.get(key).map(std::ops::Deref::deref);
                let found =
                    copy_is_wrong(selected, origin, copy).or_else(|| status_is_wrong(&ty, selected, origin, copy?));
                all.extend(found.map(|why| (why, key.clone())));
            }
        }
    }
    for (key, copy) in edge.all() {
        let is_left = hub.get(key).is_none() && DOWNSYNC.owns(copy) && may_go(&specs, hub, edge, key, copy, choices);
        if choices.denies(key) && DOWNSYNC.owns(copy) {
            all.push(("is denied".to_owned(), key.clone()));
        }
        if is_left {
            all.push((LEFT_OVER.to_owned(), key.clone()));
        }
        let is_foreign = key.name.starts_with(BYSTANDER);
        if is_foreign && bystanders.get(key).is_some_and(|uid| *uid != copy["metadata"]["uid"]) {
            all.push(("was made anew".to_owned(), key.clone()));
        }
    }
    all
}

/// What upsync has made or selects is not for downsync.
fn goes_up(specs: &[&Value], key: &Key, object: &Value) -> bool {
    UPSYNC.owns(object) || converged_up::is_selected(specs.iter().copied(), key)
}

/// True if a copy without origin has to go, or to be released.
fn may_go(specs: &[&Value], hub: &Store, edge: &Store, key: &Key, copy: &Value, choices: Choices) -> bool {
    let protected = &*key.resource == "namespaces" && (&*key.name == "default" || key.name.starts_with("kube-"));
    // Something of others would go with it.
    let is_needed = !takers::kept(hub, edge, key, choices).is_empty();
    // A type that the hub no longer serves, but somebody still selects, is a riddle and no proof.
    let riddle = types::by_name(hub, &key.resource).is_none() && is_named(specs, &key.resource);
    !protected && !is_needed && !riddle && !is_hands_off(copy) && &*key.name != RECORD
}

/// True for a namespace without anything selected in it. One that was at the edge before carries no mark and is not
/// watched there, so that its loss is noticed only when something has to go into it.
fn is_bare(specs: &[&Value], hub: &Store, namespace: &Key, choices: Choices) -> bool {
    let types = types::served(hub);
    // Poison is refused before anybody looks for its namespace.
    let selected = |key: &Key| {
        !key.name.starts_with("poison")
            && !choices.denies(key)
            && types
                .iter()
                .any(|ty| ty.qualified() == *key.resource && selection(specs, ty, key) == Selected::Whole)
    };
    !hub.all()
        .any(|(key, object)| key.namespace == namespace.name && selected(key) && !goes_up(specs, key, object))
}

/// True if the copy is left to the edge.
pub fn is_hands_off(object: &Value) -> bool {
    let value = object["metadata"]["annotations"]["edge.kubestellar.io/downsync-overwrite"].as_str();
    value.is_some_and(|value| !value.is_empty() && value != "true")
}

/// The items of a list in a spec.
pub fn items<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    spec[field].as_array().into_iter().flatten()
}

fn names_type(item: &Value, group: &str, resource: &str) -> bool {
    item["group"] == group && item["resource"] == resource
}

/// True if any of these names the type.
pub fn is_named(specs: &[&Value], qualified: &str) -> bool {
    let (resource, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    specs.iter().any(|spec| {
        let scope = items(&spec["namespaceScope"], "resources");
        let all = items(spec, "namespacedObjects")
            .chain(items(spec, "clusterScope"))
            .chain(scope);
        // One that lists no object at all selects nothing of its type.
        let is_empty = |item: &Value| item["objectsByNamespace"].as_array().is_some_and(Vec::is_empty);
        all.into_iter()
            .any(|item| names_type(item, group, resource) && !is_empty(item))
    })
}

/// True if a list of names has this one, or all.
pub fn contains(list: &Value, name: &str) -> bool {
    let names = list.as_array().into_iter().flatten();
    names.into_iter().any(|one| one == "*" || one == name)
}

/// True for the configs themselves.
pub fn is_config(key: &Key) -> bool {
    &*key.resource == CONFIGS
}

/// True if any of these selects the object as a whole.
pub fn is_selected(specs: &[Value], ty: &Type, key: &Key) -> bool {
    let specs: Vec<&Value> = specs.iter().collect();
    selection(&specs, ty, key) == Selected::Whole
}

fn selection(specs: &[&Value], ty: &Type, key: &Key) -> Selected {
    let mut selected = Selected::No;
    for spec in specs {
        let scope = &spec["namespaceScope"];
        let is_ours = |item: &&Value| names_type(item, &ty.group, &ty.resource);
        let mut whole = contains(&scope["namespaces"], &key.namespace)
            && items(scope, "resources").any(|item| is_ours(&item))
            && ty.namespaced;
        let mut implied = ty.is_namespace() && contains(&scope["namespaces"], &key.name);
        for item in items(spec, "namespacedObjects") {
            for within in items(item, "objectsByNamespace") {
                whole |= ty.namespaced
                    && is_ours(&item)
                    && within["namespace"] == *key.namespace
                    && contains(&within["names"], &key.name);
                let names = within["names"].as_array().is_some_and(|names| !names.is_empty());
                implied |= ty.is_namespace() && names && within["namespace"] == *key.name;
            }
        }
        for item in items(spec, "clusterScope").filter(is_ours) {
            whole |= !ty.namespaced && (item["objects"].is_null() || contains(&item["objects"], &key.name));
        }
        if whole {
            return Selected::Whole;
        }
        if implied {
            selected = Selected::Implied;
        }
    }
    selected
}

/// What is wrong with a copy, if anything is.
fn copy_is_wrong(selected: Selected, origin: &Value, copy: Option<&Value>) -> Option<String> {
    let Some(copy) = copy else {
        return Some("is missing".into());
    };
    if is_another_targets(copy) {
        // It stays as it is.
        return None;
    }
    if copy["metadata"]["deletionTimestamp"].is_string() {
        return Some("is terminating".into());
    }
    if selected == Selected::Implied {
        return None;
    }
    if is_hands_off(origin) {
        return (!is_hands_off(copy)).then(|| "does not say that it is left alone".into());
    }
    if !DOWNSYNC.owns(copy) {
        return Some("is not marked as ours".into());
    }
    if copy["metadata"]["labels"][DOWNSYNC.mark] != "true" {
        return Some("lacks the label".into());
    }
    if is_hands_off(copy) {
        return Some("still says that it is left alone".into());
    }
    let expected = travelling(origin);
    if let Some(path) = lacks(&expected, copy, String::new()) {
        return Some(format!("differs in {path}"));
    }
    let (path, manager) = extra_field(&expected, copy)?;
    Some(format!("has {} of {manager}, which the hub has not", path.join(".")))
}

/// A field of a copy, and its manager, that ought to have gone: it is the syncer's or people's, and not expected.
pub fn extra_field(expected: &Value, copy: &Value) -> Option<(Vec<String>, String)> {
    fields::owners(copy).into_iter().find(|(path, manager)| {
        let ours = manager == "edge-syncer" || manager.starts_with("kubectl");
        ours && !is_marked(path) && !has(expected, path)
    })
}

/// What is wrong with the status at the hub, if anything is (spec section 5).
fn status_is_wrong(ty: &Type, selected: Selected, origin: &Value, copy: &Value) -> Option<String> {
    let returns = ty.status && !ty.is_namespace() && !ty.is_definition() && selected == Selected::Whole;
    let ours = DOWNSYNC.owns(copy) || is_hands_off(copy);
    let differs = copy["status"].is_object() && copy["status"] != origin["status"];
    (returns && ours && differs).then(|| "has another status at the hub".into())
}

/// What of an object is to be at the other side.
pub fn travelling(origin: &Value) -> Value {
    let mut expected = origin.clone();
    let is_namespace = origin["kind"] == "Namespace";
    let Some(top) = expected.as_object_mut() else {
        return expected;
    };
    top.retain(|key, _| !(matches!(key.as_str(), "apiVersion" | "kind" | "status") || is_namespace && key == "spec"));
    let Some(meta) = expected["metadata"].as_object_mut() else {
        return expected;
    };
    meta.retain(|key, _| matches!(key.as_str(), "labels" | "annotations"));
    for pairs in meta.values_mut().filter_map(Value::as_object_mut) {
        pairs.retain(|key, _| !key.contains("kcp.io/") && !is_mark(key));
    }
    expected
}

fn is_mark(key: &str) -> bool {
    [DOWNSYNC.mark, UPSYNC.mark, OWNER, SOURCE].contains(&key) || Some(key) == DOWNSYNC.adopted
}

/// Marks, and what belongs to the edge whoever wrote it.
fn is_marked(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["status", ..] | ["metadata", "finalizers", ..] | ["spec", "finalizers"] => true,
        ["metadata", "labels" | "annotations", key] => is_mark(key) || key == "kubernetes.io/metadata.name",
        _ => false,
    }
}

/// The first path at which `object` has not what `expected` has.
pub fn lacks(expected: &Value, object: &Value, path: String) -> Option<String> {
    let Some(fields) = expected.as_object() else {
        return (expected != object).then_some(path);
    };
    fields
        .iter()
        .find_map(|(key, value)| lacks(value, &object[key], format!("{path}.{key}")))
}

fn has(object: &Value, path: &[String]) -> bool {
    let found = path.iter().try_fold(object, |value, key| value.as_object()?.get(key));
    found.is_some()
}
