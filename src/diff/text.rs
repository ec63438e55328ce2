//! An object as the text that is compared: YAML, as kubectl shows it, with sorted keys.

use serde_json::Value;

/// How far a level is indented.
const INDENT: usize = 2;

/// The object as text.
pub(super) fn of(object: &Value) -> String {
    let mut text = String::new();
    if let Value::Object(_) | Value::Array(_) = object {
        block(&mut text, object, 0);
    } else {
        text = scalar(object, 0) + "\n";
    }
    text
}

fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = " ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                text.extend([&*indent, &plain(name), ":"]);
                below(text, value, depth + INDENT, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                text.extend([&*indent, "-"]);
                below(&mut inner, item, depth + INDENT, depth + INDENT);
                // The first field of an item is in the line of its dash.
                match inner.strip_prefix('\n') {
                    Some(lines) => text.extend([" ", lines.trim_start()]),
                    None => text.push_str(&inner),
                }
            }
        }
        _ => {}
    }
}

/// What follows a key or a dash. Lists are as deep as their key.
fn below(text: &mut String, value: &Value, depth: usize, list_depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            block(text, value, depth);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            block(text, value, list_depth);
        }
        _ => {
            text.extend([" ", &scalar(value, depth), "\n"]);
        }
    }
}

fn scalar(value: &Value, depth: usize) -> String {
    match value {
        Value::String(text) if is_block(text) => literal(text, depth),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// True for a text of several lines that a literal block can hold.
fn is_block(text: &str) -> bool {
    let mut chars = text.chars();
    let is_shown = chars.all(|one| one == '\n' || !one.is_control());
    text.contains('\n') && is_shown && !text.starts_with([' ', '\n']) && !text.ends_with("\n\n")
}

fn literal(text: &str, depth: usize) -> String {
    let mut block = String::from(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.lines() {
        block.push('\n');
        if !line.is_empty() {
            block.push_str(&" ".repeat(depth));
            block.push_str(line);
        }
    }
    block
}

/// A text as it is, or in quotes where it would be read as something else.
fn plain(text: &str) -> String {
    let is_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '/' | '.');
    let may_begin = text.starts_with(is_word) && text.ends_with(|one: char| one != ':' && one != ' ');
    let is_clear = !text.contains(": ") && !text.contains(" #") && !text.chars().any(char::is_control);
    let lower = text.to_ascii_lowercase();
    let is_word_of_yaml = matches!(
        &*lower,
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let is_number = text.starts_with(|one: char| one.is_ascii_digit() || one == '.');
    if may_begin && is_clear && !is_word_of_yaml && !is_number {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_yaml_with_sorted_keys() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"x/y": "true", "n": "1"}, "finalizers": ["f", "g"]},
            "data": {"file": "one\n\ntwo\n", "end": "one\ntwo", "odd": "- a: b", "none": "", "tab": "a\tb\n"},
            "spec": {"list": [{"name": "x", "value": 1, "deep": [[1, 2], {}]}, []], "empty": {}, "no": null},
        });
        let expected = r#"apiVersion: v1
data:
  end: |-
    one
    two
  file: |
    one

    two
  none: ""
  odd: "- a: b"
  tab: "a\tb\n"
kind: ConfigMap
metadata:
  finalizers:
  - f
  - g
  labels:
    "n": "1"
    x/y: "true"
  name: a
spec:
  empty: {}
  list:
  - deep:
    - - 1
      - 2
    - {}
    name: x
    value: 1
  - []
  "no": null
"#;
        assert_eq!(of(&object), expected);
        let read: Value = serde_saphyr::from_str(expected).unwrap();
        assert_eq!(read, object, "it reads as the same");
    }
}
