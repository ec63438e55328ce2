//! What an origin wants to be false, 0 or empty, where servers print no such value: `paused: false`, `ingress: []`.
//!
//! The objects of built-in types lack most fields that are so, as if nobody had said anything of them. Whoever applies them,
//! or notes what people have given, is still named for them; null stands for such a value in any type of field. Without it,
//! what somebody has set there in the copy would stay, with the origin against it.

use kube_lite::fields::from_text;
use kube_lite::{ResourceType, is_of_kubernetes};
use serde_json::{Map, Value, json};

use super::filled_in::filled_in;
use super::hub::{Hub, at, found_at};
use crate::sync::field_set::{Path, is_meant};
use crate::sync::managed_fields::NO_CONTENTS;
use crate::sync::top_fields::{fields_of, object_of};

/// Adds them to the fields that are synced, each with a leading comma.
pub(super) fn add(resource: &ResourceType, hub: &Hub<'_>, fields: &mut String) {
    // A CRD may be a megabyte, has no field of this kind that would matter, and is not parsed for it.
    let is_crd = || resource.is("apiextensions.k8s.io", "customresourcedefinitions");
    if !is_of_kubernetes(&resource.group) || is_crd() {
        return;
    }
    let version = resource.api_version();
    let owners = hub.owners().iter();
    let appliers = owners.filter(|one| one.applies() && one.api_version == version);
    let mut named: Vec<&Value> = appliers.map(|one| &one.fields_v1).collect();
    let note = hub.note().filter(|_| !hub.owners().is_empty());
    let noted = note.map(|note| named_by(&Value::Object(note)));
    named.extend(noted.as_ref().filter(|noted| **noted != json!({})));
    if named.is_empty() {
        return;
    }
    // What cannot be read has nothing to be added to.
    let Ok(whole) = serde_json::from_slice::<Map<String, Value>>(hub.object.bytes()) else {
        return;
    };
    let mut lacking: Vec<Path> = named.into_iter().flat_map(|set| leaves_of(set, &whole)).collect();
    lacking.retain(|path| !is_filled_in(resource, path) && matches!(found_at(&whole, path), Ok(None)));
    if lacking.is_empty() {
        return;
    }
    let Ok(mut contents) = from_text::<Value>(&object_of(fields)) else {
        return;
    };
    for (last, path) in lacking.iter().filter_map(|path| path.split_last()) {
        let within = at(&mut contents, path).and_then(Value::as_object_mut);
        if let Some((within, field)) = within.zip(last.strip_prefix("f:")) {
            within.entry(field).or_insert(Value::Null);
        }
    }
    *fields = contents.as_object().map(fields_of).unwrap_or_default();
}

/// True for what servers and controllers of each side fill in: to want nothing there asks for that.
fn is_filled_in(resource: &ResourceType, path: &Path) -> bool {
    filled_in(resource).any(|(filled, ..)| {
        let mut keys = path.iter().zip(*filled);
        path.len() >= filled.len() && keys.all(|(key, wanted)| is_meant(key, wanted))
    })
}

/// The fields that a field set names and that are in an object which is there, or that itself.
fn leaves_of(set: &Value, whole: &Map<String, Value>) -> Vec<Path> {
    let (mut leaves, mut open) = (Vec::new(), vec![(Path::new(), set)]);
    while let Some((path, fields)) = open.pop() {
        for (key, below) in fields.as_object().into_iter().flatten() {
            if key == "." || path.is_empty() && NO_CONTENTS.iter().any(|no| *no == [key.as_str()]) {
                continue;
            }
            let path: Path = path.iter().chain([key]).cloned().collect();
            if below.as_object().is_some_and(Map::is_empty) {
                leaves.push(path);
            } else if matches!(found_at(whole, &path), Ok(Some(_))) {
                open.push((path, below));
            }
        }
    }
    leaves
}

/// What a note wants to be false, 0 or empty, as a field set. Of a list it has the items that have names.
fn named_by(note: &Value) -> Value {
    let below = |(key, value): (String, &Value)| {
        let inner = named_by(value);
        let is_any = inner.as_object().is_some_and(|inner| !inner.is_empty());
        (is_any || is_none(value)).then_some((key, inner))
    };
    let named = match note {
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(field, value)| below((format!("f:{field}"), value)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .filter_map(|item| below((format!("k:{}", json!({"name": item.get("name")?})), item)))
            .collect(),
        _ => Map::new(),
    };
    Value::Object(named)
}

/// True for a value that servers do not print.
fn is_none(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_so) => !is_so,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hub::LAST_APPLIED;
    use super::*;
    use crate::plan::Direction;
    use crate::sync::meta::Object;

    /// What is synced of a Deployment's spec with these managers and this note of it.
    fn synced(resource: &ResourceType, spec: &Value, owners: &Value, note: Option<&Value>) -> Value {
        let mut metadata = json!({"name": "a", "managedFields": owners});
        if let Some(note) = note {
            metadata["annotations"] = json!({LAST_APPLIED: json!({"spec": note, "status": {}}).to_string()});
        }
        let object = json!({"metadata": metadata, "spec": spec}).to_string();
        let object = Object::parse(object.into()).unwrap();
        let mut fields = format!(",\"spec\":{spec}");
        add(resource, &Hub::of(Direction::Down, &object), &mut fields);
        from_text::<Value>(&object_of(&fields)).unwrap()["spec"].take()
    }

    fn deployments() -> ResourceType {
        ResourceType::new(["apps", "v1", "deployments", "Deployment"], true)
    }

    fn owner(operation: &str, version: &str, fields: &Value) -> Value {
        json!([{"manager": "flux", "operation": operation, "apiVersion": version, "fieldsV1": {"f:spec": fields,
            "f:metadata": {"f:labels": {}}, "f:status": {}}}])
    }

    // Found from outside: a policy that lets nothing in was adopted, and let in what the former one did.
    #[test]
    fn what_is_applied_as_false_or_empty_is_wanted_though_no_server_prints_it() {
        let spec = json!({"template": {"containers": [{"name": "c", "env": [{"name": "E"}]}]}});
        let env = json!({".": {}, "f:name": {}, "f:value": {}});
        let container = json!({"f:name": {}, "f:args": {}, "f:env": {r#"k:{"name":"E"}"#: env}});
        let fields = json!({"f:paused": {}, "f:gone": {"f:x": {}},
            "f:template": {"f:tolerations": {}, "f:containers": {r#"k:{"name":"c"}"#: container, r#"k:{"name":"d"}"#: container}}});
        let container = json!({"name": "c", "args": null, "env": [{"name": "E", "value": null}]});
        let expected = json!({"paused": null, "template": {"tolerations": null, "containers": [container]}});
        let of = |resource: &ResourceType, owners: &Value| synced(resource, &spec, owners, None);
        assert_eq!(of(&deployments(), &owner("Apply", "apps/v1", &fields)), expected);
        for (operation, version) in [("Update", "apps/v1"), ("Apply", "apps/v1beta1")] {
            assert_eq!(
                of(&deployments(), &owner(operation, version, &fields)),
                spec,
                "{operation} {version}"
            );
        }
        // The objects of custom types have all that was set, and may have owners of what is gone.
        let custom = ResourceType::new(["example.org", "v1", "works", "Work"], true);
        assert_eq!(of(&custom, &owner("Apply", "example.org/v1", &fields)), spec);
    }

    // To want none asks the edge for its own: it would be set back, or could not be written.
    #[test]
    fn what_each_side_fills_in_is_not_wanted_to_be_empty() {
        for (group, plural, spec, note) in [
            ("", "persistentvolumeclaims", json!({}), json!({"volumeName": ""})),
            ("", "pods", json!({}), json!({"nodeName": "", "hostPID": false})),
            (
                "",
                "services",
                json!({"ports": [{"name": "a", "port": 1}]}),
                json!({"clusterIP": "", "healthCheckNodePort": 0, "ports": [{"name": "a", "nodePort": 0}]}),
            ),
            (
                "apiregistration.k8s.io",
                "apiservices",
                json!({}),
                json!({"caBundle": ""}),
            ),
        ] {
            let resource = ResourceType::new([group, "v1", plural, "X"], true);
            let owners = owner("Update", &resource.api_version(), &json!({"f:x": {}}));
            assert_eq!(synced(&resource, &spec, &owners, Some(&note)), spec, "{plural}");
        }
    }

    #[test]
    fn what_a_note_gives_as_false_or_empty_is_wanted_though_no_server_prints_it() {
        let owners = owner("Update", "apps/v1", &json!({"f:replicas": {}}));
        let spec =
            json!({"replicas": 0, "containers": [{"name": "c", "env": [{"name": "E"}]}], "ports": [{"port": 1}]});
        let env = json!([{"name": "E", "value": ""}, {"name": "F", "value": ""}]);
        let note = json!({"replicas": 0, "paused": false, "seconds": 0, "more": null, "x": {"y": 1}, "tolerations": [],
            "selector": {}, "containers": [{"name": "c", "env": env, "tty": false, "image": "i"}], "ports": [{"port": 1, "name": ""}]});
        let container = json!({"name": "c", "env": [{"name": "E", "value": null}], "tty": null});
        let expected = json!({"replicas": 0, "containers": [container], "ports": [{"port": 1}], "paused": null,
            "seconds": null, "tolerations": null, "selector": null});
        assert_eq!(synced(&deployments(), &spec, &owners, Some(&note)), expected);
        for note in [json!("odd"), json!(null), json!([{"a": false}])] {
            assert_eq!(synced(&deployments(), &spec, &owners, Some(&note)), spec, "{note}");
        }
    }
}
