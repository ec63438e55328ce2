//! Secret values are never shown. Those that are equal have equal masks, so that it can be seen what changes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::RENAMED_FROM;
use crate::sync::kinds::LAST_APPLIED;

/// The same object before and after, with masks in place of the values of a Secret. The masks are numbers: nothing of a value
/// can be guessed from them.
pub(super) fn masked(objects: [&Option<Value>; 2]) -> [Option<Value>; 2] {
    let is_secret = objects.iter().any(|object| object.as_ref().is_some_and(is_secret));
    let mut masks = Masks::default();
    objects.map(|object| {
        let mut object = object.clone()?;
        if is_secret {
            for field in ["data", "stringData"] {
                masks.cover(object.get_mut(field));
            }
            let annotations = object.pointer_mut("/metadata/annotations");
            masks.cover(annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)));
        }
        Some(object)
    })
}

/// True for a Secret, and for a copy that a conversion has made of one.
fn is_secret(object: &Value) -> bool {
    let made_of = object
        .pointer("/metadata/annotations")
        .and_then(|all| all[RENAMED_FROM].as_str());
    object["kind"] == "Secret" || made_of.is_some_and(|from| from.starts_with("Secret/"))
}

#[derive(Default)]
struct Masks(BTreeMap<String, usize>);

impl Masks {
    fn cover(&mut self, value: Option<&mut Value>) {
        match value {
            Some(Value::Object(fields)) => self.cover_all(fields),
            Some(Value::Null) | None => {}
            Some(value) => {
                let next = self.0.len() + 1;
                let mask = self.0.entry(value.to_string()).or_insert(next);
                *value = Value::from(format!("***{mask}"));
            }
        }
    }

    fn cover_all(&mut self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|value| self.cover(Some(value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_have_equal_masks_and_no_value_is_shown() {
        let secret = |a: &str, b: &str| {
            json!({"kind": "Secret", "type": "Opaque", "data": {"a": a, "b": b},
                "metadata": {"name": "s", "annotations": {LAST_APPLIED: format!("{{{a}}}"), "note": "seen"}}})
        };
        let [before, now] = masked([&Some(secret("cGFzcw==", "b2xk")), &Some(secret("cGFzcw==", "cGFzcw=="))]);
        let (before, now) = (before.unwrap(), now.unwrap());
        assert_eq!(before["data"], json!({"a": "***1", "b": "***2"}));
        assert_eq!(now["data"], json!({"a": "***1", "b": "***1"}));
        for object in [before, now] {
            let text = object.to_string();
            assert!(!text.contains("cGFzcw") && !text.contains("b2xk"), "{text}");
            assert_eq!(
                (&object["type"], &object["metadata"]["annotations"]["note"]),
                (&json!("Opaque"), &json!("seen"))
            );
        }
    }

    #[test]
    fn what_is_made_of_a_secret_is_one_and_all_else_is_shown() {
        let of = |kind: &str, from: Value| json!({"kind": kind, "metadata": {"annotations": from}, "data": {"a": "x"}});
        for (object, is_masked) in [
            (of("ConfigMap", json!({})), false),
            (of("ConfigMap", json!({RENAMED_FROM: "Secret/a"})), true),
            (of("Secret", Value::Null), true),
        ] {
            let [found, none] = masked([&Some(object.clone()), &None]);
            assert_eq!(
                (found.unwrap()["data"]["a"] != "x", none),
                (is_masked, None),
                "{object}"
            );
        }
    }
}
