//! Whether the edge is what the hub wants, judged by what both stores hold and nothing else.
//!
//! Selection and cleaning are written here a second time, after the spec, for the few types that a run has.

use std::collections::BTreeMap;

use serde_json::Value;

use super::choices::Choices;
use super::converged_up;
use super::conversions::{Conversions, NAMERS, RENAMED_FROM, origin_of, qualified};
use super::fields;
use super::flows::{DOWNSYNC, OWNER, SOURCE, UPSYNC, is_another_targets};
use super::history::History;
use super::ledger::{BYSTANDER, RECORD};
use super::store::{Key, Store};
use super::takers;
use super::types::{self, DEFINITIONS, Type};

/// Said of a copy whose origin is gone.
pub const LEFT_OVER: &str = "is left over";

const CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";

/// How an object is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Selected {
    No,
    /// A namespace that has to exist.
    Implied,
    Whole,
}

/// The configs of a hub.
pub fn specs_of(hub: &Store) -> Vec<&Value> {
    let all = [CONFIGS, NAMERS].into_iter().flat_map(|kind| hub.of(kind, ""));
    all.map(|(_, config)| &config["spec"]).collect()
}

/// Everything in which either side is not what the other wants, and the objects that it is about.
pub fn differences(
    hub: &Store,
    edge: &Store,
    bystanders: &BTreeMap<Key, Value>,
    (choices, history): (Choices, &History),
) -> Vec<(String, Key)> {
    let specs = specs_of(hub);
    let names = Conversions::at(hub);
    let mut all = converged_up::differences(hub, edge, &specs, choices);
    for ty in types::served(hub).iter().filter(|ty| ty.group != "edge.kubestellar.io") {
        for (key, origin) in hub.of(&ty.qualified(), "") {
            let Some(at_edge) = names.at_edge(key).filter(|at_edge| !choices.denies(at_edge)) else {
                continue;
            };
            let is_left_out = key.name.starts_with("poison") || key.is_each_sides_own();
            if types::by_name(edge, &at_edge.resource).is_none() || is_left_out {
                continue;
            }
            let selected = match selection(&specs, &names, key) {
                // One that upsync has made has to be there for its contents all the same.
                Selected::Whole if ty.is_namespace() && UPSYNC.owns(origin) => Selected::Implied,
                _ if !ty.is_namespace() && goes_up(&specs, &names, &at_edge, origin) => continue,
                selected => selected,
            };
            if selected == Selected::No || selected == Selected::Implied && is_bare(&specs, hub, key, choices) {
                continue;
            }
            let copy = edge.get(&at_edge).map(std::ops::Deref::deref);
            let goes = |copy: &Value| may_go(&specs, hub, edge, &at_edge, copy, choices);
            let had_place = |of: &Key| history.had_place(of, &at_edge);
            if copy.is_some_and(|copy| is_anothers_copy(hub, key, &at_edge, copy, had_place, goes)) {
                continue;
            }
            let found = copy_is_wrong(selected, (key, origin), (&at_edge, copy));
            let found = found.or_else(|| status_is_wrong(ty, selected, origin, copy?));
            all.extend(found.map(|why| (why, at_edge)));
        }
    }
    for (key, copy) in edge.all() {
        let is_left = hub.get(&origin_of(key, copy)).is_none()
            && DOWNSYNC.owns(copy)
            && may_go(&specs, hub, edge, key, copy, choices);
        if choices.denies(key) && DOWNSYNC.owns(copy) {
            all.push(("is denied".to_owned(), key.clone()));
        }
        if is_left {
            all.push((LEFT_OVER.to_owned(), key.clone()));
        }
        let is_foreign = key.name.starts_with(BYSTANDER);
        if is_foreign && bystanders.get(key).is_some_and(|uid| *uid != copy["metadata"]["uid"]) {
            all.push(("was created again".to_owned(), key.clone()));
        }
    }
    all
}

/// True if the copy in the place of the hub's `key` was made of another object when that had this place: it stays as long as
/// that is there, and whoever is to have its place waits. When that is gone it is [`LEFT_OVER`], and no more than that: as long as
/// deletes are held, nobody else gets its place, and one that is preserved stays.
fn is_anothers_copy(
    hub: &Store,
    key: &Key,
    at_edge: &Key,
    copy: &Value,
    had_place: impl Fn(&Key) -> bool,
    goes: impl Fn(&Value) -> bool,
) -> bool {
    let origin = origin_of(at_edge, copy);
    let is_of_another = origin != *key && DOWNSYNC.owns(copy) && had_place(&origin);
    is_of_another && (hub.get(&origin).is_some() || goes(copy) || is_create_only(copy))
}

/// What upsync has made or selects is not for downsync.
fn goes_up(specs: &[&Value], names: &Conversions, at_edge: &Key, object: &Value) -> bool {
    UPSYNC.owns(object) || converged_up::is_selected(specs.iter().copied(), names, at_edge)
}

/// True if a copy without origin has to go, or to be released.
fn may_go(specs: &[&Value], hub: &Store, edge: &Store, key: &Key, copy: &Value, choices: Choices) -> bool {
    let protected = &*key.resource == "namespaces" && (&*key.name == "default" || key.name.starts_with("kube-"));
    // Something of others would go with it.
    let is_needed = !takers::kept(hub, edge, key, choices).is_empty();
    // A type that the hub no longer serves, but somebody still selects, is a riddle and no proof.
    let of = origin_of(key, copy).resource;
    let riddle = types::by_name(hub, &of).is_none() && is_named(specs, &of);
    !protected && !is_needed && !riddle && !is_create_only(copy) && &*key.name != RECORD
}

/// True for a namespace without anything selected in it. One that was at the edge before carries no mark and is not
/// watched there, so that its loss is noticed only when something has to go into it.
fn is_bare(specs: &[&Value], hub: &Store, namespace: &Key, choices: Choices) -> bool {
    let (types, names) = (types::served(hub), Conversions::at(hub));
    // Poison is refused before anybody looks for its namespace.
    let goes_down = |key: &Key, object: &Value| {
        let at_edge = names.at_edge(key).filter(|at_edge| !choices.denies(at_edge));
        let is_served = || types.iter().any(|ty| ty.qualified() == *key.resource);
        at_edge.is_some_and(|at_edge| {
            !key.name.starts_with("poison")
                && !key.is_each_sides_own()
                && selection(specs, &names, key) == Selected::Whole
                && is_served()
                && !goes_up(specs, &names, &at_edge, object)
        })
    };
    !hub.all()
        .any(|(key, object)| key.namespace == namespace.name && goes_down(key, object))
}

/// True if the copy is left to the edge.
pub fn is_create_only(object: &Value) -> bool {
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
pub fn is_named(specs: &[&Value], qualified_name: &str) -> bool {
    let (resource, group) = qualified_name.split_once('.').unwrap_or((qualified_name, ""));
    specs.iter().any(|spec| {
        let scope = items(&spec["namespaceScope"], "resources");
        let all = items(spec, "namespacedObjects")
            .chain(items(spec, "clusterScope"))
            .chain(scope);
        // One that lists no object at all selects nothing of its type.
        let is_empty = |item: &Value| item["objectsByNamespace"].as_array().is_some_and(Vec::is_empty);
        let mut refs = items(spec, "downSyncedResources");
        all.into_iter()
            .any(|item| names_type(item, group, resource) && !is_empty(item))
            || refs.any(|item| type_of_ref(item) == qualified_name)
    })
}

/// The type that an item of an `EdgeSyncConfig` names by its kind.
pub fn type_of_ref(item: &Value) -> String {
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    qualified(text("kind"), text("group"))
}

/// True if a list of names has this one, or all.
pub fn contains(list: &Value, name: &str) -> bool {
    let names = list.as_array().into_iter().flatten();
    names.into_iter().any(|one| one == "*" || one == name)
}

/// True for the configs themselves.
pub fn is_config(key: &Key) -> bool {
    [CONFIGS, NAMERS].contains(&&*key.resource)
}

/// True for the objects that stand for edges.
pub fn is_edge(key: &Key) -> bool {
    &*key.resource == "edges.edge.kubestellar.io"
}

/// True if any of these selects the hub's object as a whole.
pub fn is_selected(specs: &[Value], names: &Conversions, key: &Key) -> bool {
    let specs: Vec<&Value> = specs.iter().collect();
    selection(&specs, names, key) == Selected::Whole
}

/// How an object of the hub is selected: an entry may call it as the hub does, or as the edge does. If the edge has it as
/// another kind, an entry for all of that kind does not mean it.
fn selection(specs: &[&Value], names: &Conversions, key: &Key) -> Selected {
    let Some(at_edge) = names.at_edge(key) else {
        return Selected::No;
    };
    let called = Called { key, by_name: false };
    let also_called = Called {
        key: &at_edge,
        by_name: at_edge.resource != key.resource,
    };
    selection_as(specs, called).max(selection_as(specs, also_called))
}

/// What an object is called in the configs.
#[derive(Clone, Copy)]
pub struct Called<'a> {
    /// Its key at one of the sides.
    pub key: &'a Key,
    /// `*` does not mean it.
    pub by_name: bool,
}

impl Called<'_> {
    /// True if a list of names has this one.
    pub fn is_in(self, list: &Value) -> bool {
        let mut names = list.as_array().into_iter().flatten();
        names.any(|one| self.is(one))
    }

    /// True if this is its name, or stands for all.
    pub fn is(self, name: &Value) -> bool {
        *name == *self.key.name || *name == "*" && !self.by_name
    }
}

fn selection_as(specs: &[&Value], called: Called<'_>) -> Selected {
    let key = called.key;
    let (resource, group) = key.resource.split_once('.').unwrap_or((&key.resource, ""));
    let (namespaced, is_namespace) = (!key.namespace.is_empty(), &*key.resource == "namespaces");
    let is_ours = |item: &&Value| names_type(item, group, resource);
    let mut selected = Selected::No;
    for spec in specs {
        let scope = &spec["namespaceScope"];
        let mut whole = contains(&scope["namespaces"], &key.namespace)
            && items(scope, "resources").any(|item| is_ours(&item))
            && namespaced
            && !called.by_name;
        let mut implied = is_namespace && contains(&scope["namespaces"], &key.name);
        for item in items(spec, "namespacedObjects") {
            for within in items(item, "objectsByNamespace") {
                whole |= namespaced
                    && is_ours(&item)
                    && within["namespace"] == *key.namespace
                    && called.is_in(&within["names"]);
                let names = within["names"].as_array().is_some_and(|names| !names.is_empty());
                implied |= is_namespace && names && within["namespace"] == *key.name;
            }
        }
        for item in items(spec, "clusterScope").filter(is_ours) {
            let all = item["objects"].is_null() && !called.by_name;
            whole |= !namespaced && (all || called.is_in(&item["objects"]));
        }
        whole |= items(spec, "downSyncedResources").any(|item| {
            let of_type = type_of_ref(item) == *key.resource;
            of_type && called.is(&item["name"]) && (!namespaced || item["namespace"] == *key.namespace)
        });
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
fn copy_is_wrong(
    selected: Selected,
    (of, origin): (&Key, &Value),
    (key, copy): (&Key, Option<&Value>),
) -> Option<String> {
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
    if is_create_only(origin) {
        return (!is_create_only(copy)).then(|| "does not say that it is preserved".into());
    }
    if !DOWNSYNC.owns(copy) {
        return Some("is not marked as ours".into());
    }
    if copy["metadata"]["labels"][DOWNSYNC.mark] != "true" {
        return Some("lacks the label".into());
    }
    if is_create_only(copy) {
        return Some("still says that it is preserved".into());
    }
    if origin_of(key, copy) != *of {
        return Some(format!("does not say that it is of {of}"));
    }
    let mut expected = to_be_synced(origin);
    if key != of && &*key.resource == DEFINITIONS {
        // The group is what follows the plural.
        let group = key.name.split_once('.').map_or("", |(_, group)| group);
        expected["spec"]["group"] = group.into();
    }
    if let Some(path) = lacks(&expected, copy, String::new()) {
        return Some(format!("differs in {path}"));
    }
    let (path, manager) = extra_field(&expected, copy)?;
    Some(format!("has {} of {manager}, which the hub has not", path.join(".")))
}

/// A field of a copy, and its manager, that ought to have gone: it is the syncer's or people's, and not expected.
pub fn extra_field(expected: &Value, copy: &Value) -> Option<(Vec<String>, String)> {
    fields::owners(copy).into_iter().find(|(path, manager)| {
        let ours = manager == "edge-syncer" || manager.starts_with("kubectl") || manager == "installer";
        // What nobody at the other side says is scaled by whoever wants to.
        let is_scaled = path == &["spec", "replicas"] && manager != "edge-syncer";
        ours && !is_marked(path) && !is_scaled && !has(expected, path)
    })
}

/// What is wrong with the status at the hub, if anything is.
fn status_is_wrong(ty: &Type, selected: Selected, origin: &Value, copy: &Value) -> Option<String> {
    let returns = ty.status && !ty.is_namespace() && !ty.is_definition() && selected == Selected::Whole;
    let ours = DOWNSYNC.owns(copy) || is_create_only(copy);
    let differs = copy["status"].is_object() && copy["status"] != origin["status"];
    (returns && ours && differs).then(|| "has another status at the hub".into())
}

/// What of an object is to be at the other side.
pub fn to_be_synced(origin: &Value) -> Value {
    let mut expected = origin.clone();
    let is_namespace = origin["kind"] == "Namespace";
    if !fields::owns_replicas(origin)
        && let Some(spec) = expected.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("replicas");
    }
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
    [DOWNSYNC.mark, UPSYNC.mark, OWNER, SOURCE, RENAMED_FROM].contains(&key) || Some(key) == DOWNSYNC.adopted
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
