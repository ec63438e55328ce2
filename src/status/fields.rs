//! Which fields of a copy are not as its origin wants them, as far as reading shows that.

use serde_json::Value;

/// So many are named.
const MOST: usize = 10;

/// The paths of fields that are wanted and not so: what a server has added is left out, and so are values that mean
/// nothing.
pub(super) fn differing(wanted: &Value, found: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare(wanted, found, "", &mut paths);
    paths
}

fn compare(wanted: &Value, found: &Value, path: &str, paths: &mut Vec<String>) {
    if paths.len() >= MOST {
        return;
    }
    match (wanted, found) {
        (Value::Object(fields), Value::Object(there)) => {
            for (key, value) in fields {
                let field = if path.is_empty() {
                    key.clone()
                } else if key.contains(['.', '/']) {
                    format!("{path}[{key:?}]")
                } else {
                    format!("{path}.{key}")
                };
                compare(value, there.get(key).unwrap_or(&Value::Null), &field, paths);
            }
        }
        (Value::Array(items), Value::Array(there)) => {
            let is_there = |item: &Value| there.iter().any(|found| differing(item, found).is_empty());
            if !items.iter().all(is_there) {
                paths.push(path.to_owned());
            }
        }
        (wanted, Value::Null) if is_nothing(wanted) => {}
        (wanted, found) if wanted == found => {}
        _ => paths.push(path.to_owned()),
    }
}

/// Servers leave out what is empty.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_wanted_and_not_so_is_named() {
        let spec = json!({"list": [{"name": "x", "port": 1}], "no": null, "empty": {}});
        let wanted = json!({"data": {"a": "1", "b.c": "2"}, "spec": spec});
        for (found, expected) in [
            (wanted.clone(), &[][..]),
            (
                json!({"data": {"a": "1", "b.c": "2", "more": "3"}, "status": {},
                    "spec": {"list": [{"name": "y"}, {"name": "x", "port": 1, "protocol": "TCP"}]}}),
                &[],
            ),
            (
                json!({"data": {"a": "2"}, "spec": {"list": [{"name": "x", "port": 2}]}}),
                &["data.a", "data[\"b.c\"]", "spec.list"],
            ),
            (json!({}), &["data", "spec"]),
        ] {
            assert_eq!(differing(&wanted, &found), expected, "{found}");
        }
        let many: Value = (0..50)
            .map(|at| (format!("k{at}"), json!(1)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(differing(&many, &json!({})).len(), MOST);
    }
}
