//! What an apply removes of a copy whose fields were made ours before it ([`super::take_over`]), for a dry run: the server
//! has not kept who owns what, so its answer to the apply still has these fields.

use kube_lite::fields::from_text;
use serde_json::{Map, Value};

use super::field_set::{FieldSet, Path};
use super::managed_fields::{Entries, field_set};

/// The answer to the dry run of an apply, as it would be if the copy had been `taken`: without what is ours there and was not
/// applied, and nobody else's.
pub(crate) fn without_given_up(applied: Value, taken: &Value) -> Value {
    without(applied.clone(), taken).unwrap_or(applied)
}

fn without(mut applied: Value, taken: &Value) -> Option<Value> {
    let (before, after) = (taken.to_string(), applied.to_string());
    let (before, after) = (
        Entries::of(before.as_bytes()).ok()?,
        Entries::of(after.as_bytes()).ok()?,
    );
    let (mut ours, mut kept, mut version) = (FieldSet::default(), FieldSet::default(), None);
    for (_, owner) in before.iter() {
        if owner.is_our_apply() {
            ours.add(&field_set(owner).ok()?);
            version = Some(owner.api_version.clone());
        } else {
            kept.add(&field_set(owner).ok()?);
        }
    }
    let mut managers = Vec::new();
    for (entry, owner) in after.iter().filter(|(_, owner)| owner.is_our_apply()) {
        // A set of another version names other fields.
        if version.as_ref() != Some(&owner.api_version) {
            return None;
        }
        kept.add(&field_set(owner).ok()?);
        managers.push(serde_json::from_str::<Value>(entry.get()).ok()?);
    }
    ours.subtract(&kept);
    for path in ours.leaves() {
        remove(&mut applied, &path, &kept);
    }
    let theirs = before.iter().filter(|(_, owner)| !owner.is_our_apply());
    for (entry, _) in theirs {
        managers.push(serde_json::from_str(entry.get()).ok()?);
    }
    applied["metadata"]["managedFields"] = Value::from(managers);
    Some(applied)
}

/// Removes a field, what is empty then, and an item of a list that nobody keeps as a whole.
fn remove(object: &mut Value, path: &Path, kept: &FieldSet) {
    let mut node = Some(0);
    for (at, key) in path.iter().enumerate() {
        node = node.and_then(|node| kept.below(node, &Value::from(key.as_str()).to_string()));
        if node.is_none() && key.starts_with("k:") {
            return remove_at(object, &path[..=at]);
        }
    }
    for at in (0..path.len()).rev() {
        let is_empty = |value: &Value| match value {
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if at + 1 < path.len() && !find(object, &path[..=at]).is_some_and(|value| is_empty(value)) {
            break;
        }
        remove_at(object, &path[..=at]);
    }
}

fn remove_at(object: &mut Value, path: &[String]) {
    let Some((last, above)) = path.split_last() else { return };
    match (find(object, above), last.split_at_checked(2)) {
        (Some(Value::Object(fields)), Some(("f:", field))) => drop(fields.remove(field)),
        (Some(Value::Array(items)), Some(("k:", keys))) => items.retain(|item| !has_keys(item, keys)),
        _ => {}
    }
}

fn find<'v>(object: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter()
        .try_fold(object, |at, key| match (at, key.split_at_checked(2)?) {
            (Value::Object(fields), ("f:", field)) => fields.get_mut(field),
            (Value::Array(items), ("k:", keys)) => items.iter_mut().find(|item| has_keys(item, keys)),
            _ => None,
        })
}

fn has_keys(item: &Value, keys: &str) -> bool {
    let keys: Map<String, Value> = from_text(keys).unwrap_or_default();
    !keys.is_empty() && keys.iter().all(|(key, value)| item.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::FIELD_MANAGER;

    fn entry(manager: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields})
    }

    #[test]
    fn what_was_taken_and_is_not_applied_goes() {
        let applied = json!({"f:data": {"f:a": {}}});
        for (taken, data, expected) in [
            (
                json!({"f:data": {"f:a": {}}}),
                json!({"a": "1", "b": "2"}),
                json!({"a": "1", "b": "2"}),
            ),
            (
                json!({"f:data": {"f:a": {}, "f:b": {}}}),
                json!({"a": "1", "b": "2"}),
                json!({"a": "1"}),
            ),
            (
                json!({"f:data": {"f:a": {}, "f:b": {"f:c": {}}}}),
                json!({"a": "1", "b": {"c": "2"}}),
                json!({"a": "1"}),
            ),
            (
                json!({"f:data": {"f:a": {}, "f:l": {"k:{\"n\":\"x\"}": {".": {}, "f:n": {}, "f:v": {}}}}}),
                json!({"a": "1", "l": [{"n": "x", "v": "1"}, {"n": "y", "v": "2"}]}),
                json!({"a": "1", "l": [{"n": "y", "v": "2"}]}),
            ),
            // Somebody else has it too.
            (
                json!({"f:data": {"f:a": {}, "f:theirs": {}}}),
                json!({"theirs": "3"}),
                json!({"theirs": "3"}),
            ),
        ] {
            let theirs = entry("other", &json!({"f:data": {"f:theirs": {}}}));
            let before = json!({"metadata": {"managedFields": [entry(FIELD_MANAGER, &taken), theirs]}});
            let after = json!({"metadata": {"managedFields": [entry(FIELD_MANAGER, &applied)]}, "data": data});
            assert_eq!(without_given_up(after, &before)["data"], expected, "{taken}");
        }
    }
}
