//! JSON patches (RFC 6902), as far as the components in `manifests/` use them.

use serde_json::Value;

/// Does one operation: `add`, `replace` or `remove`. The error says what does not fit.
pub(super) fn apply(object: &mut Value, operation: &Value) -> Result<(), String> {
    let path = operation["path"].as_str().ok_or("the path is missing")?;
    let (parent, last) = path.rsplit_once('/').ok_or("the path is that of the whole object")?;
    let key = last.replace("~1", "/").replace("~0", "~");
    let missing = || format!("{path}: there is no such field");
    let parent = object.pointer_mut(parent).ok_or_else(missing)?;
    let value = operation["value"].clone();
    match (operation["op"].as_str(), parent) {
        (Some("add"), Value::Array(items)) if key == "-" => items.push(value),
        (Some("add"), Value::Object(fields)) => drop(fields.insert(key, value)),
        (Some("replace"), Value::Object(fields)) => *fields.get_mut(&key).ok_or_else(missing)? = value,
        (Some("remove"), Value::Object(fields)) => drop(fields.remove(&key).ok_or_else(missing)?),
        _ => return Err(format!("{path}: no operation of a component")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn does_what_components_ask_for() {
        let object = json!({"a": {"b/c": 1}, "list": [1]});
        for (operation, expected) in [
            (
                json!({"op": "add", "path": "/a/d", "value": 2}),
                Some(json!({"a": {"b/c": 1, "d": 2}, "list": [1]})),
            ),
            (
                json!({"op": "add", "path": "/list/-", "value": 2}),
                Some(json!({"a": {"b/c": 1}, "list": [1, 2]})),
            ),
            (
                json!({"op": "replace", "path": "/a/b~1c", "value": 2}),
                Some(json!({"a": {"b/c": 2}, "list": [1]})),
            ),
            (
                json!({"op": "remove", "path": "/a/b~1c"}),
                Some(json!({"a": {}, "list": [1]})),
            ),
            (json!({"op": "replace", "path": "/a/x", "value": 2}), None),
            (json!({"op": "remove", "path": "/a/x"}), None),
            (json!({"op": "add", "path": "/x/y", "value": 2}), None),
            (json!({"op": "add", "path": "/list/0", "value": 2}), None),
            (json!({"op": "copy", "path": "/a/b", "from": "/list"}), None),
            (json!({"op": "add", "value": 2}), None),
        ] {
            let mut found = object.clone();
            let result = apply(&mut found, &operation);
            assert_eq!(result.ok().map(|()| found), expected, "{operation}");
        }
    }
}
