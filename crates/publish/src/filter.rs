//! Which objects are synced.

use serde_json::{Map, Value};

use crate::kinds::Filter;

impl Filter {
    /// Whether this object in this namespace is synced. One in no namespace does not match a filter of namespaces.
    pub fn matches(&self, object: &Value, namespace: Option<&Value>) -> bool {
        let of_namespace = self.namespace.as_ref().is_none_or(|selector| {
            let found = namespace.filter(|found| !found.is_null());
            found.is_some_and(|found| selector.matches(labels(found)))
        });
        of_namespace
            && self
                .object
                .as_ref()
                .is_none_or(|selector| selector.matches(labels(object)))
    }
}

fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("labels")?.as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::read;

    #[test]
    fn both_filters_have_to_match() {
        let with = |labels: Value| json!({"metadata": {"labels": labels}});
        let (plain, blue) = (with(json!({})), with(json!({"color": "blue"})));
        let color = json!({"matchLabels": {"color": "blue"}});
        for (filter, object, namespace, expected) in [
            (json!({}), &plain, None, true),
            (json!({"resource": color}), &blue, None, true),
            (json!({"resource": color}), &plain, Some(&blue), false),
            (json!({"namespace": color}), &plain, Some(&blue), true),
            (json!({"namespace": color}), &blue, Some(&plain), false),
            (json!({"namespace": color}), &blue, None, false),
            (json!({"namespace": {}}), &blue, None, false),
            (json!({"namespace": color, "resource": color}), &blue, Some(&blue), true),
            (
                json!({"namespace": color, "resource": color}),
                &plain,
                Some(&blue),
                false,
            ),
        ] {
            let spec = json!({"resource": {"apiGroup": "g", "kind": "K"}, "filter": filter});
            let filter = read(&json!({"spec": spec})).unwrap().filter;
            assert_eq!(
                filter.matches(object, namespace),
                expected,
                "{spec} {object} {namespace:?}"
            );
        }
    }
}
