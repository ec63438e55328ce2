//! Items of lists that nobody owns.
//!
//! A CRD that makes a list one that is merged by keys or values, or that changes its keys, takes what we have applied from us:
//! as a whole, or by other keys, it was ours, and of its items only those that we apply next become ours. What the origin has
//! dropped by then would stay for ever. No API server adds an item to a list that has owners without one of its own, so what
//! nobody owns beside items of ours was ours: it is made that, and goes with the next apply.
//!
//! Of an object whose fields were owned as a whole, the same cannot be said: the schema may have defaults for them.

use std::collections::BTreeSet;

use kube_lite::fields::{from_text, with_fields};
use kube_lite::{Error, ResourceType, may_be_a_crd};
use serde_json::{Map, Value, json};

use super::emptied::parts;
use super::field_set::FieldSet;
use super::managed_fields::{Entries, field_set};

/// The patch that makes such items of a copy of this type ours; `None` if there are none.
pub(super) fn take(object: &[u8], entries: &Entries<'_>, resource: &ResourceType) -> Result<Option<String>, Error> {
    let version = resource.api_version();
    let are_comparable = may_be_a_crd(&resource.group) && entries.iter().all(|(_, owner)| owner.api_version == version);
    let ours = entries.iter().find(|(_, owner)| owner.is_our_apply());
    let Some((_, owner)) = ours.filter(|_| are_comparable) else {
        return Ok(None);
    };
    let mut ours = field_set(owner)?;
    if !ours.has_items() {
        return Ok(None);
    }
    let others = entries.iter().filter(|(_, owner)| !owner.is_our_apply());
    let others: Vec<FieldSet> = others.map(|(_, owner)| field_set(owner)).collect::<Result<_, _>>()?;
    // Nested too deep, it has nothing of this kind.
    let Ok(found) = serde_json::from_slice::<Value>(object) else {
        return Ok(None);
    };
    let left = items_of_nobody(&found, &ours, &others);
    if left.is_empty() {
        return Ok(None);
    }
    for item in &left {
        ours.add(item);
    }
    let all = entries.iter().map(|(entry, owner)| {
        if owner.is_our_apply() {
            with_fields(entry, &[("fieldsV1", &ours.render())])
        } else {
            Ok(entry.get().to_owned())
        }
    });
    Ok(Some(entries.patch(&all.collect::<Result<Vec<_>, _>>()?)))
}

/// Each such item, as a field set of its own.
fn items_of_nobody(object: &Value, ours: &FieldSet, others: &[FieldSet]) -> Vec<FieldSet> {
    let (mut found, mut places) = (
        Vec::new(),
        vec![(
            object,
            0,
            others.iter().map(|_| Some(0)).collect::<Vec<_>>(),
            Vec::new(),
        )],
    );
    while let Some((value, node, theirs, way)) = places.pop() {
        if let Value::Array(items) = value {
            let all = others.iter().zip(&theirs);
            let all = all.filter_map(|(set, node)| Some((set, (*node)?)));
            let left = left_in(items, &all.chain([(ours, node)]).collect::<Vec<_>>());
            found.extend(left.iter().filter_map(|(key, is_known_by)| {
                let inner = if *is_known_by { r#"{".":{}}"# } else { "{}" };
                let nested = |inner: String, key: &String| format!("{{{key}:{inner}}}");
                let text = [key].into_iter().chain(way.iter().rev()).fold(inner.to_owned(), nested);
                FieldSet::parse(&text)
            }));
        }
        for part in parts(value, ours, node) {
            let below = others.iter().zip(&theirs);
            let below = below.map(|(set, node)| set.below((*node)?, part.key)).collect();
            let way = way.iter().cloned().chain([part.key.to_owned()]).collect();
            places.push((part.value, part.below, below, way));
        }
    }
    found
}

/// The items that none of these sets, at nodes of this list, names: their keys as a field set writes them, and whether they are
/// known by fields. None if one of them has the list as a whole, or knows its items by other fields.
fn left_in(items: &[Value], sets: &[(&FieldSet, usize)]) -> Vec<(String, bool)> {
    let mut named = BTreeSet::new();
    let mut known_by: Option<Option<Vec<String>>> = None;
    for (set, node) in sets {
        let keys: Vec<String> = set.fields(*node).filter_map(|(key, _)| from_text(key).ok()).collect();
        let marks = keys
            .iter()
            .filter_map(|key| key.split_once(':').filter(|(kind, _)| *kind != "f"));
        let marks: Vec<Value> = marks.filter_map(|(_, mark)| from_text(mark).ok()).collect();
        if marks.is_empty() {
            return Vec::new();
        }
        for mark in marks {
            let by = mark.as_object().map(|mark| mark.keys().cloned().collect());
            if *known_by.get_or_insert_with(|| by.clone()) != by {
                return Vec::new();
            }
            named.insert(mark.to_string());
        }
    }
    let Some(known_by) = known_by else {
        return Vec::new();
    };
    let key = |item: &Value| match &known_by {
        Some(fields) => {
            let mark = fields
                .iter()
                .map(|field| Some((field.clone(), item.get(field)?.clone())));
            mark.collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
        None => Some(item.clone()),
    };
    let kind = if known_by.is_some() { "k" } else { "v" };
    let left = items
        .iter()
        .filter_map(key)
        .filter(|mark| !named.contains(&mark.to_string()));
    left.map(|mark| (json!(format!("{kind}:{mark}")).to_string(), known_by.is_some()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::managed_fields::tests::entry;
    use super::*;

    fn topos() -> ResourceType {
        ResourceType::new(["example.org", "v1", "topos", "Topo"], true)
    }

    fn by(manager: &str, operation: &str, fields: &Value) -> Value {
        let mut entry = entry(manager, operation, fields);
        entry["apiVersion"] = json!("example.org/v1");
        entry
    }

    /// What is ours then of `spec`; `None` if nothing is taken.
    fn taken(spec: &Value, entries: &[Value]) -> Option<Value> {
        let object = json!({"spec": spec, "metadata": {"resourceVersion": "7", "managedFields": entries}}).to_string();
        let found = Entries::of(object.as_bytes()).unwrap();
        let patch: Value = from_text(&take(object.as_bytes(), &found, &topos()).unwrap()?).unwrap();
        let all = patch["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(all.len(), entries.len());
        Some(all[0]["fieldsV1"]["f:spec"].clone())
    }

    fn item(name: &str) -> String {
        format!("k:{{\"name\":\"{name}\"}}")
    }

    #[test]
    fn an_item_that_nobody_owns_beside_ours_becomes_ours() {
        let spec = json!({"l": [{"name": "a", "s": ["x", "y"]}, {"name": "b"}, {"name": "c"}]});
        let a = json!({".": {}, "f:name": {}, "f:s": {"v:\"x\"": {}}});
        let ours = json!({"f:spec": {"f:l": {item("a"): a}}});
        let c = json!({"f:spec": {"f:l": {item("c"): {".": {}, "f:name": {}}}}});
        let found = taken(&spec, &[by("edge-syncer", "Apply", &ours), by("tool", "Update", &c)]);
        let mut expected = a.clone();
        expected["f:s"]["v:\"y\""] = json!({});
        assert_eq!(found, Some(json!({"f:l": {item("a"): expected, item("b"): {".": {}}}})));
    }

    #[test]
    fn nothing_is_taken_where_somebody_may_own_it() {
        let spec = json!({"l": [{"name": "a"}, {"name": "b"}], "m": {"x": 1, "y": 2}});
        let of_l = |fields: Value| json!({"f:spec": {"f:l": fields}});
        let ours = by(
            "edge-syncer",
            "Apply",
            &of_l(json!({item("a"): {".": {}, "f:name": {}}})),
        );
        for (who, others) in [
            (
                "by items",
                vec![by("tool", "Update", &of_l(json!({item("b"): {".": {}}})))],
            ),
            ("as a whole", vec![by("tool", "Update", &of_l(json!({})))]),
            (
                "by other keys",
                vec![by("tool", "Update", &of_l(json!({"k:{\"id\":1}": {".": {}}})))],
            ),
            (
                "at another version",
                vec![entry("tool", "Update", &json!({"f:spec": {"f:x": {}}}))],
            ),
        ] {
            let all: Vec<Value> = [ours.clone()].into_iter().chain(others).collect();
            assert_eq!(taken(&spec, &all), None, "{who}");
        }
        let of_fields = json!({"f:spec": {"f:m": {"f:x": {}}, "f:l": {}}});
        assert_eq!(
            taken(&spec, &[by("edge-syncer", "Apply", &of_fields)]),
            None,
            "a default, or the whole"
        );
    }
}
