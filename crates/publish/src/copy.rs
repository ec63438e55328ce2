//! What is written to a copy: the desired state of its object, without what belongs to one side alone, and by the last
//! state that was written, so that what others change in the copy stays.
//!
//! Promises: nothing of the agent's own and nothing that the server sets is copied; what the object did not change since is
//! not written; a copy that leads to its object by wrong labels or annotations is repaired.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::json::taken;
use crate::kcp;
use crate::keys::{AGENT_NAME, OWN_PREFIX, ObjectKey, RELATED_PREFIX};
use crate::naming::CopyName;

/// Subresources that have a place of their own in objects.
pub const SUBRESOURCES: [&str; 2] = ["scale", "status"];

/// What is the same for all objects of a type.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// What copies are marked with.
    pub marks: Marks<'a>,
    /// The subresources of the version in which copies are stored: they are not part of the desired state.
    pub subresources: &'a [&'a str],
}

/// By what a copy is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks<'a> {
    /// It is the copy of a primary, and this agent's.
    Primary(&'a str),
    /// It belongs to a primary, and is on the service cluster: it names the workspace and the object there that it is from, so
    /// that no other one gets hold of it.
    Related {
        /// The namespace of its origin.
        namespace: &'a str,
        /// The name of its origin.
        name: &'a str,
        /// The label that says to which primary it belongs, beside others.
        label: &'a str,
    },
    /// It is in a workspace, where nobody has to know about the agent.
    None,
}

/// Whether a label or annotation of an object is copied.
fn is_copied(place: &str, key: &str) -> bool {
    let is_of_kcp = match place {
        "labels" => key.starts_with("claimed.internal.apis.kcp.io/"),
        _ => key == kcp::CLUSTER || key.starts_with(RELATED_PREFIX),
    };
    let is_of_kubectl = key == "kubectl.kubernetes.io/last-applied-configuration";
    !is_of_kcp && !is_of_kubectl && !key.starts_with(OWN_PREFIX)
}

/// The desired state of an object as it is kept, and as it is compared with what was kept before: its type, name, labels
/// and annotations, and its content.
pub fn state(object: &Value, subresources: &[&str]) -> Value {
    let mut state = object.as_object().cloned().unwrap_or_default();
    state.retain(|key, _| !subresources.contains(&key.as_str()));
    let mut metadata = Map::new();
    for key in ["name", "namespace"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    for place in ["labels", "annotations"] {
        let mut kept = texts(object, place).cloned().unwrap_or_default();
        kept.retain(|key, _| is_copied(place, key));
        if !kept.is_empty() {
            metadata.insert(place.to_owned(), Value::Object(kept));
        }
    }
    state.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(state)
}

/// The labels or annotations of an object.
fn texts<'a>(object: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    object.get("metadata")?.get(key)?.as_object()
}

/// The labels and annotations that a copy must have.
fn marks<'a>(terms: &Terms<'a>, key: &ObjectKey) -> [(&'static str, BTreeMap<&'a str, String>); 2] {
    let (labels, annotations) = match terms.marks {
        Marks::Primary(agent) => {
            let mut labels = key.labels();
            labels.insert(AGENT_NAME, agent.to_owned());
            (labels, key.annotations())
        }
        Marks::Related { namespace, name, label } => {
            let labels = BTreeMap::from([(label, "true".to_owned())]);
            let annotations = BTreeMap::from([(kcp::CLUSTER, key.related_mark(namespace, name))]);
            (labels, annotations)
        }
        Marks::None => Default::default(),
    };
    [("labels", labels), ("annotations", annotations)]
}

/// Sets labels and annotations.
fn mark(copy: &mut Map<String, Value>, terms: &Terms<'_>, key: &ObjectKey) {
    let mut metadata = taken(copy, "metadata");
    for (place, wanted) in marks(terms, key) {
        let mut all = taken(&mut metadata, place);
        all.extend(wanted.into_iter().map(|(key, value)| (key.to_owned(), json!(value))));
        if !all.is_empty() {
            metadata.insert(place.to_owned(), Value::Object(all));
        }
    }
    copy.insert("metadata".to_owned(), Value::Object(metadata));
}

/// The copy of an object that has none yet. The object is as mutations have left it.
pub fn create(
    object: &Value,
    terms: &Terms<'_>,
    key: &ObjectKey,
    api_version: &str,
    kind: &str,
    name: &CopyName,
) -> Value {
    let mut copy = match state(object, terms.subresources) {
        Value::Object(copy) => copy,
        _ => Map::new(),
    };
    copy.insert("apiVersion".to_owned(), json!(api_version));
    copy.insert("kind".to_owned(), json!(kind));
    let mut metadata = taken(&mut copy, "metadata");
    metadata.insert("name".to_owned(), json!(name.name));
    metadata.remove("namespace");
    if !name.namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(name.namespace));
    }
    copy.insert("metadata".to_owned(), Value::Object(metadata));
    mark(&mut copy, terms, key);
    Value::Object(copy)
}

/// The merge patch that brings a copy from the last state to that of the object as mutations have left it; none if there
/// is nothing to write.
pub fn patch(last: &Value, object: &Value, copy: &Value, terms: &Terms<'_>, key: &ObjectKey) -> Option<Value> {
    let last = state(last, terms.subresources);
    let wanted = state(object, terms.subresources);
    let mut patch = match difference(&without_type(&last), &without_type(&wanted)) {
        Some(Value::Object(patch)) => patch,
        _ => Map::new(),
    };
    let mut metadata = taken(&mut patch, "metadata");
    for (place, marks) in marks(terms, key) {
        let mut all = match metadata.remove(place) {
            None => Map::new(),
            Some(Value::Object(changed)) => changed,
            // The object has none any more. On the copy there are others.
            Some(_) => {
                let before = texts(&last, place).into_iter().flatten();
                before.map(|(key, _)| (key.clone(), Value::Null)).collect()
            }
        };
        let found = texts(copy, place);
        for (key, value) in marks {
            if found.and_then(|found| found.get(key)).and_then(Value::as_str) != Some(value.as_str()) {
                all.insert(key.to_owned(), json!(value));
            }
        }
        if !all.is_empty() {
            metadata.insert(place.to_owned(), Value::Object(all));
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Types and names differ on both sides, and do not change.
fn without_type(state: &Value) -> Value {
    let mut state = state.as_object().cloned().unwrap_or_default();
    state.remove("apiVersion");
    state.remove("kind");
    if let Some(metadata) = state.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.remove("namespace");
    }
    Value::Object(state)
}

/// The copy with all content of the object, where no last state is known. What the object does not have stays.
pub fn replace(object: &Value, copy: &Value, terms: &Terms<'_>, key: &ObjectKey) -> Value {
    let mut wanted = match state(object, terms.subresources) {
        Value::Object(wanted) => wanted,
        _ => Map::new(),
    };
    let mut new = copy.as_object().cloned().unwrap_or_default();
    let own = taken(&mut wanted, "metadata");
    let mut metadata = taken(&mut new, "metadata");
    for place in ["labels", "annotations"] {
        let mut all = taken(&mut metadata, place);
        all.extend(own.get(place).and_then(Value::as_object).cloned().unwrap_or_default());
        if !all.is_empty() {
            metadata.insert(place.to_owned(), Value::Object(all));
        }
    }
    new.insert("metadata".to_owned(), Value::Object(metadata));
    wanted.retain(|key, _| key != "apiVersion" && key != "kind");
    new.extend(wanted);
    mark(&mut new, terms, key);
    Value::Object(new)
}

/// The status that an object gets from its copy, if it has another one: null if the copy has none.
pub fn status(object: &Value, copy: &Value) -> Option<Value> {
    let of = |object: &Value| object.get("status").cloned().unwrap_or(Value::Null);
    let (own, wanted) = (of(object), of(copy));
    (own != wanted).then_some(wanted)
}

/// True if something of an object is wanted to be null. A merge patch would remove it instead.
pub fn has_null(object: &Value) -> bool {
    let contents = object.as_object().into_iter().flatten();
    let contents = contents.filter(|(key, _)| *key != "metadata" && *key != "status");
    let mut open: Vec<&Value> = contents.map(|(_, value)| value).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Null => return true,
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

/// A copy with the changes of a merge patch, and with what is wanted to be null.
pub fn merged(patch: &Value, wanted: &Value, copy: &Value) -> Value {
    let mut new = copy.as_object().cloned().unwrap_or_default();
    for (key, change) in patch.as_object().into_iter().flatten() {
        let value = match (change, new.get(key), wanted.get(key)) {
            (Value::Null, _, None) => {
                new.remove(key);
                continue;
            }
            (Value::Object(_), Some(found @ Value::Object(_)), wanted) => {
                merged(change, wanted.unwrap_or(&Value::Null), found)
            }
            (change, ..) => change.clone(),
        };
        new.insert(key.clone(), value);
    }
    Value::Object(new)
}

/// The merge patch that leads from one value to the other; none if they are equal. Lists are replaced as a whole.
pub fn difference(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let gone = from.keys().filter(|key| !to.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in to {
        let changed = match from.get(key) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        patch.extend(changed.map(|changed| (key.clone(), changed)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
