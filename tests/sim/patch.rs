//! Merge patches (RFC 7386) and JSON patches (RFC 6902, without `move` and `copy`).

use serde_json::{Map, Value};

/// Lays a merge patch over `target`.
pub fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("made an object above");
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Carries out a JSON patch. The error says which operation failed and how.
pub fn json_patch(target: &mut Value, operations: &Value) -> Result<(), String> {
    for operation in operations.as_array().ok_or("a JSON patch is a list")? {
        let path = operation["path"].as_str().ok_or("an operation without a path")?;
        let value = &operation["value"];
        match operation["op"].as_str().unwrap_or_default() {
            "test" if target.pointer(path).unwrap_or(&Value::Null) == value => {}
            "test" => return Err(format!("testing value {path} failed")),
            "add" => add(target, path, value.clone())?,
            "replace" => *target.pointer_mut(path).ok_or_else(|| missing("replace", path))? = value.clone(),
            "remove" => remove(target, path)?,
            other => return Err(format!("unknown operation {other:?}")),
        }
    }
    Ok(())
}

fn missing(operation: &str, path: &str) -> String {
    format!("{operation} operation does not apply: doc is missing path: {path}")
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let Some((parent, last)) = split(path) else {
        *target = value;
        return Ok(());
    };
    match target.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(last, value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let index = if last == "-" {
                Some(items.len())
            } else {
                last.parse().ok()
            };
            let index = index
                .filter(|&index| index <= items.len())
                .ok_or_else(|| missing("add", path))?;
            items.insert(index, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<(), String> {
    let (parent, last) = split(path).ok_or_else(|| missing("remove", path))?;
    let removed = match target.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&last),
        Some(Value::Array(items)) => {
            let index = last.parse().ok().filter(|&index: &usize| index < items.len());
            index.map(|index| items.remove(index))
        }
        _ => None,
    };
    removed.map(|_| ()).ok_or_else(|| missing("remove", path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_json_patch_that_fails_a_test_says_so() {
        let mut object = json!({"metadata": {"uid": "u"}, "status": {"a": 1}});
        let patch = json!([{"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "add", "path": "/status", "value": {"b": [1]}}, {"op": "add", "path": "/status/b/-", "value": 2},
            {"op": "remove", "path": "/status/b/0"}, {"op": "replace", "path": "/status/b/0", "value": 3}]);
        assert_eq!(json_patch(&mut object, &patch), Ok(()));
        assert_eq!(object["status"], json!({"b": [3]}));
        let patch = json!([{"op": "test", "path": "/metadata/uid", "value": "v"}]);
        assert!(json_patch(&mut object, &patch).is_err());
    }

    #[test]
    fn a_merge_patch_removes_with_null() {
        let mut object = json!({"a": {"b": 1, "c": 2}});
        merge(&mut object, &json!({"a": {"b": null, "d": {"e": null}}}));
        assert_eq!(object, json!({"a": {"c": 2, "d": {}}}));
    }
}
