//! Whether the hub has what the edge is to give it, judged by what both stores hold and nothing else.

use serde_json::Value;

use super::choices::Choices;
use super::converged::{Called, LEFT_OVER, contains, extra_field, items, lacks, to_be_synced, type_of_ref};
use super::conversions::{Conversions, origin_of};
use super::flows::{DOWNSYNC, UPSYNC, is_another_targets};
use super::ledger::RECORD;
use super::store::{Key, Store};
use super::types;

/// Said of a namespace at the hub that upsync has made and nothing is in any more.
pub const IDLE: &str = "is a namespace of upsync and empty";

/// True if any of these configs selects the edge's object for upsync. One without a namespace is of a cluster-scoped type.
/// An entry may call it as the edge does, or as the hub does; if the hub has it as another kind, an entry for all of that
/// kind does not mean it.
pub fn is_selected<'a>(specs: impl IntoIterator<Item = &'a Value>, names: &Conversions, key: &Key) -> bool {
    let Some(at_hub) = names.at_hub(key) else {
        return false;
    };
    let called = [
        Called { key, by_name: false },
        Called {
            key: &at_hub,
            by_name: at_hub.resource != key.resource,
        },
    ];
    let selects = |spec: &Value| called.iter().any(|&called| selects(spec, called));
    specs.into_iter().any(selects)
}

fn selects(spec: &Value, called: Called<'_>) -> bool {
    let key = called.key;
    let (resource, group) = key.resource.split_once('.').unwrap_or((&key.resource, ""));
    let is_within = |list: &Value| key.namespace.is_empty() || contains(list, &key.namespace);
    let by_plural = |item: &Value| {
        item["apiGroup"].as_str().unwrap_or_default() == group
            && contains(&item["resources"], resource)
            && called.is_in(&item["names"])
            && is_within(&item["namespaces"])
    };
    let by_kind = |item: &Value| {
        type_of_ref(item) == *key.resource
            && called.is(&item["name"])
            && (key.namespace.is_empty() || item["namespace"] == "*" || item["namespace"] == *key.namespace)
    };
    items(spec, "upsync").any(by_plural) || items(spec, "upSyncedResources").any(by_kind)
}

/// Everything in which the hub is not what the edge is to give it, and the objects that it is about.
pub fn differences(hub: &Store, edge: &Store, specs: &[&Value], choices: Choices) -> Vec<(String, Key)> {
    let mut all = Vec::new();
    let names = Conversions::at(hub);
    let wanted = |key: &Key| is_selected(specs.iter().copied(), &names, key) && !choices.denies(key);
    for ty in types::served(edge)
        .iter()
        .filter(|ty| ty.group != "edge.kubestellar.io")
    {
        for (key, origin) in edge.of(&ty.qualified(), "") {
            let Some(at_hub) = names.at_hub(key).filter(|_| wanted(key)) else {
                continue;
            };
            let is_served = types::by_name(hub, &at_hub.resource).is_some();
            let is_of_its_side = &*key.name == RECORD || key.is_each_sides_own();
            if is_served && !DOWNSYNC.owns(origin) && !is_of_its_side {
                let copy = hub.get(&at_hub).map(std::ops::Deref::deref);
                let why = copy_is_wrong(ty.status, (key, origin), (&at_hub, copy));
                all.extend(why.map(|why| (why, at_hub)));
            }
        }
    }
    for (key, copy) in hub.all().filter(|(_, object)| UPSYNC.owns(object)) {
        let origin = origin_of(key, copy);
        if &*key.resource == "namespaces" {
            let goes_up_itself = wanted(key) && edge.get(key).is_some();
            if !goes_up_itself && is_idle(hub, edge, wanted, key) {
                all.push((IDLE.to_owned(), key.clone()));
            }
            continue;
        }
        if choices.denies(&origin) {
            all.push(("is denied".to_owned(), key.clone()));
        }
        // One that has lost its label while nobody was looking is never found again.
        let is_labelled = copy["metadata"]["labels"][UPSYNC.mark] == "true";
        if is_labelled && edge.get(&origin).is_none() {
            all.push((LEFT_OVER.to_owned(), key.clone()));
        }
        if is_labelled && edge.get(&origin).is_some_and(|at| DOWNSYNC.owns(at)) {
            all.push(("is a copy of its own copy".into(), key.clone()));
        }
    }
    all
}

/// The namespaces of upsync at the hub in which there is no copy, but something of others.
pub fn used_by_others(hub: &Store) -> usize {
    let ours = hub.of("namespaces", "").filter(|(_, object)| UPSYNC.owns(object));
    ours.filter(|(key, _)| {
        let within = hub.all().filter(|(inner, _)| inner.namespace == key.name);
        let within = within.filter(|(inner, _)| !inner.is_each_sides_own());
        // What has lost its label may be unknown to the syncer.
        let is_known = |object: &Value| UPSYNC.owns(object) && object["metadata"]["labels"][UPSYNC.mark] == "true";
        let owned: Vec<bool> = within.map(|(_, object)| is_known(object)).collect();
        !owned.is_empty() && !owned.contains(&true)
    })
    .count()
}

/// True if the object that either side calls `key` is not to go up because somebody else's object is in its place, or not
/// to go down because another sync target's is.
pub fn is_in_conflict(hub: &Store, edge: &Store, key: &Key) -> bool {
    let names = Conversions::at(hub);
    let as_hub = names
        .at_edge(key)
        .is_some_and(|at_edge| are_in_conflict(hub, edge, key, &at_edge));
    let as_edge = || {
        names
            .at_hub(key)
            .is_some_and(|at_hub| are_in_conflict(hub, edge, &at_hub, key))
    };
    as_hub || as_edge()
}

fn are_in_conflict(hub: &Store, edge: &Store, at_hub: &Key, at_edge: &Key) -> bool {
    if hub.get(at_hub).is_some() && edge.get(at_edge).is_some_and(|copy| is_another_targets(copy)) {
        return true;
    }
    let is_foreign = hub.get(at_hub).is_some_and(|object| !UPSYNC.owns(object));
    is_foreign && edge.get(at_edge).is_some_and(|object| !DOWNSYNC.owns(object))
}

/// True if nothing is in a namespace at the hub, and nothing is to come into it.
fn is_idle(hub: &Store, edge: &Store, wanted: impl Fn(&Key) -> bool, namespace: &Key) -> bool {
    let within = |key: &Key| key.namespace == namespace.name && !key.is_each_sides_own();
    let is_empty = !hub.all().any(|(key, _)| within(key));
    let is_needed = edge
        .all()
        .any(|(key, object)| within(key) && wanted(key) && !DOWNSYNC.owns(object));
    is_empty && !is_needed
}

fn copy_is_wrong(status: bool, (of, origin): (&Key, &Value), (key, copy): (&Key, Option<&Value>)) -> Option<String> {
    let Some(copy) = copy else {
        return Some("is missing at the hub".into());
    };
    if !UPSYNC.owns(copy) {
        // Somebody else's, which stays as it is.
        return None;
    }
    if copy["metadata"]["deletionTimestamp"].is_string() {
        return Some("is terminating at the hub".into());
    }
    if copy["metadata"]["labels"][UPSYNC.mark] != "true" {
        return Some("lacks the label at the hub".into());
    }
    if origin_of(key, copy) != *of {
        return Some(format!("does not say that it is of {of}"));
    }
    let expected = to_be_synced(origin);
    if let Some(path) = lacks(&expected, copy, String::new()) {
        return Some(format!("differs at the hub in {path}"));
    }
    if status && origin["status"].is_object() && copy["status"] != origin["status"] {
        return Some("has another status at the hub".into());
    }
    let (path, manager) = extra_field(&expected, copy)?;
    Some(format!(
        "has {} of {manager} at the hub, which the edge has not",
        path.join(".")
    ))
}
