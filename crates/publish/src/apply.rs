//! What is written to a copy by server-side apply (`--enable-server-side-apply`): the whole desired state, of which the
//! server takes away what the object no longer has, and leaves alone what others have added.
//!
//! Promises: what this agent, or the Go agent, has written by other verbs before is the applied state's from then on, so
//! that it goes when the object drops it.

use serde_json::{Map, Value, json};

use crate::copy::{self, Terms};
use crate::keys::{ObjectKey, RELATED_TO_PREFIX};
use crate::naming::CopyName;

/// The field manager of other writes, as the Go agent has it.
pub(crate) const WRITER: &str = "api-syncagent";

/// The field manager of what this agent applies.
pub(crate) fn manager(agent: &str) -> String {
    if agent.is_empty() {
        WRITER.to_owned()
    } else {
        format!("{WRITER}/{agent}")
    }
}

/// What is applied to the copy that was found: that one, and no other of its name.
pub(crate) fn body(wanted: &Value, found: &Value, terms: &Terms<'_>, key: &ObjectKey) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &found["metadata"];
    let name = CopyName {
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
    };
    let (api_version, kind) = (text(&found["apiVersion"]), text(&found["kind"]));
    let mut body = copy::create(wanted, terms, key, &api_version, &kind, &name);
    body["metadata"]["uid"] = metadata["uid"].clone();
    // It may belong to others too.
    let labels = metadata["labels"].as_object().into_iter().flatten();
    for (label, value) in labels.filter(|(label, _)| label.starts_with(RELATED_TO_PREFIX)) {
        body["metadata"]["labels"][label] = value.clone();
    }
    body
}

/// The merge patch by which what was written by other verbs becomes what `manager` has applied; none if there is nothing.
pub(crate) fn take_over(found: &Value, manager: &str) -> Option<Value> {
    let metadata = &found["metadata"];
    let is_ours = |entry: &&Value| {
        let is_written = entry["operation"] == "Update" && entry["subresource"].as_str().unwrap_or_default().is_empty();
        is_written && (entry["manager"] == WRITER || entry["manager"] == manager)
    };
    let all = metadata["managedFields"].as_array()?;
    let written: Vec<&Value> = all.iter().filter(is_ours).collect();
    let newest = written.last()?;
    let is_applied = |entry: &&Value| entry["operation"] == "Apply" && entry["manager"] == manager;
    let applied = all.iter().find(is_applied);
    let mut fields = applied.map_or_else(|| json!({}), |entry| entry["fieldsV1"].clone());
    for entry in &written {
        unite(&mut fields, &entry["fieldsV1"]);
    }
    let mut entry = applied.unwrap_or(newest).clone();
    entry["manager"] = json!(manager);
    entry["operation"] = json!("Apply");
    entry["fieldsV1"] = fields;
    let others = all
        .iter()
        .filter(|entry| !is_ours(entry) && !is_applied(entry))
        .cloned();
    let managers: Vec<Value> = others.chain([entry]).collect();
    Some(json!({"metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "managedFields": managers,
    }}))
}

/// The part of a merge patch that empties objects, which are wanted to be there; none if it has none. An API server makes
/// null of an object of which an apply drops all fields, and may refuse that.
pub(crate) fn emptied(wanted: &Value, patch: &Value) -> Option<Value> {
    let fields = patch.as_object()?.iter().filter_map(|(key, change)| {
        let part = match wanted.get(key)?.as_object()? {
            of if of.is_empty() => change.is_object().then(|| change.clone())?,
            _ => emptied(&wanted[key], change)?,
        };
        Some((key.clone(), part))
    });
    let fields: Map<String, Value> = fields.collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// The fields of both.
fn unite(fields: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return };
    if !fields.is_object() {
        *fields = Value::Object(Map::new());
    }
    let Some(fields) = fields.as_object_mut() else { return };
    for (key, value) in more {
        unite(fields.entry(key.clone()).or_insert_with(|| json!({})), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn what_empties_an_object_that_stays_is_patched_before_the_apply() {
        let wanted = json!({"spec": {"m": {}, "n": {"o": {}, "p": 1}, "new": {}}, "list": []});
        for (patch, expected) in [
            (
                json!({"spec": {"m": {"k": null}, "q": null}}),
                Some(json!({"spec": {"m": {"k": null}}})),
            ),
            (
                json!({"spec": {"n": {"o": {"a": null, "b": null}}}}),
                Some(json!({"spec": {"n": {"o": {"a": null, "b": null}}}})),
            ),
            (json!({"spec": {"n": {"p": 1, "x": null}}, "list": []}), None),
            (
                json!({"spec": {"gone": null, "new": {}}}),
                Some(json!({"spec": {"new": {}}})),
            ),
            (json!({"metadata": {"labels": {"a": "b"}}}), None),
        ] {
            assert_eq!(emptied(&wanted, &patch), expected, "{patch}");
        }
        let empty = json!({"spec": {}});
        assert_eq!(
            emptied(&empty, &json!({"spec": {"a": null}})),
            Some(json!({"spec": {"a": null}}))
        );
    }

    fn taken(managers: &[Value]) -> Option<Value> {
        let found = json!({"metadata": {"uid": "u1", "resourceVersion": "7", "managedFields": managers}});
        let mut patch = take_over(&found, "api-syncagent/a")?;
        assert_eq!(patch["metadata"]["uid"], "u1");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        Some(patch["metadata"]["managedFields"].take())
    }

    #[test]
    fn what_was_written_before_is_applied_from_then_on() {
        let (spec, data) = (
            json!({"f:spec": {"f:a": {}}}),
            json!({"f:spec": {"f:b": {}}, "f:data": {}}),
        );
        let both = json!({"f:spec": {"f:a": {}, "f:b": {}}, "f:data": {}});
        let other = entry("kubectl", "Update", &spec);
        let mut status = entry("api-syncagent", "Update", &spec);
        status["subresource"] = json!("status");
        let ours = |fields: &Value| entry("api-syncagent/a", "Apply", fields);
        for (managers, expected) in [
            (vec![], None),
            (vec![other.clone(), ours(&spec), status.clone()], None),
            (vec![entry("api-syncagent", "Apply", &spec)], None),
            (
                vec![entry("api-syncagent", "Update", &spec), other.clone()],
                Some(json!([other, ours(&spec)])),
            ),
            (
                vec![
                    entry("api-syncagent", "Update", &spec),
                    status.clone(),
                    entry("api-syncagent/a", "Update", &data),
                ],
                Some(json!([status, ours(&both)])),
            ),
            (
                vec![ours(&data), entry("api-syncagent/a", "Update", &spec)],
                Some(json!([ours(&both)])),
            ),
        ] {
            assert_eq!(taken(&managers), expected, "{managers:?}");
        }
    }

    #[test]
    fn the_body_is_the_whole_state_for_just_that_copy() {
        let key = ObjectKey {
            cluster: "c1".to_owned(),
            workspace_path: None,
            namespace: String::new(),
            name: "web".to_owned(),
        };
        let wanted = json!({"apiVersion": "demo/v2", "kind": "Store", "spec": {"a": 1}, "status": {"b": 1},
            "metadata": {"name": "web", "uid": "of kcp", "labels": {"x": "y"}}});
        let found = json!({"apiVersion": "demo/v1", "kind": "Shop", "spec": {"a": 2, "local": 3},
            "metadata": {"name": "copy", "uid": "u1", "resourceVersion": "7"}});
        let terms = Terms {
            marks: copy::Marks::None,
            subresources: &["status"],
        };
        let expected = json!({"apiVersion": "demo/v1", "kind": "Shop", "spec": {"a": 1},
            "metadata": {"name": "copy", "uid": "u1", "labels": {"x": "y"}}});
        assert_eq!(body(&wanted, &found, &terms, &key), expected);
    }

    #[test]
    fn an_agent_has_a_manager_of_its_own() {
        assert_eq!(manager("a"), "api-syncagent/a");
        assert_eq!(manager(""), "api-syncagent");
    }
}
