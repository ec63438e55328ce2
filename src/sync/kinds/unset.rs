//! Fields that nobody has set at the origin: the API server there has filled in the default of its schema.
//!
//! Where the copy's side has another value there, set by whoever is in charge of it, that is not changed: the origin's is
//! nobody's wish. As long as nobody has set one, both sides have a value, whichever that is.
//!
//! An API server forgets what a manager has set at a version that is served no longer. So a field that is nobody's may
//! have been wanted all the same, and is left out only where somebody at the copy's side has taken it.

use kube_lite::may_be_a_crd;
use serde_json::{Map, Value};

use super::hub::{Hub, Owner, found_at};
use crate::plan::Direction;
use crate::sync::field_set::Path;
use crate::sync::meta::Object;

/// Leaves of these paths those of fields that an origin has from nobody. It is at `api_version`: who has set something at
/// another version may have set each.
pub(crate) fn retain_unset(paths: &mut Vec<Path>, origin: &Object, api_version: &str) {
    let hub = Hub::of(Direction::Down, origin);
    let setters = || {
        let owners = hub.owners().iter();
        owners.filter(|one| !one.is_controller() && one.subresource != "status")
    };
    if hub.owners().is_empty() || setters().any(|one| one.api_version != api_version) {
        paths.clear();
        return;
    }
    // What the origin has not is set for it by a rule, such as the type of a Secret.
    let whole: Map<String, Value> = serde_json::from_slice(origin.bytes()).unwrap_or_default();
    paths.retain(|path| gives(&whole, path));
    let note = hub.note();
    // Nobody who sends whole objects is named for what is empty in them, such as a selector that means all.
    let sends_whole = setters().any(|one| !one.applies());
    let is_empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let may_be_wanted = |path: &Path| sends_whole && note.as_ref().is_none_or(|note| gives(note, path));
    paths.retain(|path| !(may_be_wanted(path) && matches!(found_at(&whole, path), Ok(Some(value)) if is_empty(value))));
    let has_set = |one: &Owner, path: &Path| {
        let is_filled_in = || path.last().is_some_and(|field| field == CA_BUNDLE) && one.only_injects();
        one.owns_within(path)
            && !(one.notes_what_is_wanted() && note.as_ref().is_some_and(|note| !gives(note, path)))
            && !is_filled_in()
    };
    // That of a custom type is known to its definition alone.
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let was_scaled = |path: &Path| {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        !may_be_a_crd(group) && matches!(found_at(&whole, path), Ok(Some(value)) if hub.was_scaled(&keys, value))
    };
    paths.retain(|path| !was_scaled(path) && !setters().any(|one| has_set(one, path)));
}

/// The certificates by which a server knows another one.
const CA_BUNDLE: &str = "f:caBundle";

impl Owner {
    /// A controller that fills in CA bundles: it has set nothing else of the object. The certificates are those of its own
    /// cluster, so that they count only where nobody at the copy's side has filled in others.
    fn only_injects(&self) -> bool {
        let is_place = |key: &str| key == "." || key.starts_with("k:");
        let mut open = vec![&self.fields_v1];
        while let Some(fields) = open.pop() {
            for (key, below) in fields.as_object().into_iter().flatten() {
                let is_leaf = below.as_object().is_none_or(Map::is_empty);
                if is_leaf && key != CA_BUNDLE && !is_place(key) {
                    return false;
                }
                open.push(below);
            }
        }
        !self.is_person()
    }

    /// Whether it has set the field at that path, or something that the field is a part of.
    fn owns_within(&self, path: &Path) -> bool {
        let mut fields = &self.fields_v1;
        for key in path {
            fields = &fields[key];
            match fields {
                Value::Null => return false,
                Value::Object(below) if below.is_empty() => return true,
                _ => {}
            }
        }
        true
    }
}

/// True if an object or a note of one has something at that path, also null, or cannot be followed so far.
pub(crate) fn gives(whole: &Map<String, Value>, path: &Path) -> bool {
    !matches!(found_at(whole, path), Ok(None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::hub::LAST_APPLIED;
    use super::*;

    const MODE: &[&str] = &["f:spec", "f:mode"];
    const PROTOCOL: &[&str] = &["f:spec", "f:ports", r#"k:{"port":80,"protocol":"TCP"}"#, "f:name"];

    fn is_unset(path: &[&str], owners: &Value, note: Option<&Value>) -> bool {
        let mut metadata = json!({"name": "a", "managedFields": owners});
        let spec = json!({"mode": "a", "ports": [{"port": 80, "protocol": "TCP", "name": "a"}]});
        if let Some(note) = note {
            metadata["annotations"] = json!({LAST_APPLIED: note.to_string()});
        }
        let mut paths = vec![path.iter().map(|&key| key.to_owned()).collect()];
        let origin = json!({"metadata": metadata, "spec": spec}).to_string();
        let origin = Object::parse(origin.into()).unwrap();
        retain_unset(&mut paths, &origin, "example.org/v1");
        !paths.is_empty()
    }

    fn owner(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "example.org/v1", "fieldsV1": fields})
    }

    #[test]
    fn a_field_is_unset_where_no_manager_has_it_or_what_it_is_a_part_of() {
        let of_others = json!({"f:spec": {"f:size": {}}});
        let set = json!({"f:spec": {"f:mode": {}}});
        let within = json!({"f:spec": {}});
        let in_other_version = json!({"manager": "argocd", "operation": "Apply", "apiVersion": "example.org/v1beta1",
            "fieldsV1": of_others});
        let mut status = owner("operator", "Update", &set);
        status["subresource"] = json!("status");
        let mut scaled = owner("kube-controller-manager", "Update", &set);
        scaled["subresource"] = json!("scale");
        let has_nothing = json!([owner("argocd", "Apply", &of_others)]);
        assert!(
            !is_unset(&["f:type"], &has_nothing, None),
            "the origin has no such field"
        );
        for (owners, expected) in [
            (json!([owner("argocd", "Apply", &of_others)]), true),
            (json!([owner("argocd", "Apply", &set)]), false),
            (json!([owner("argocd", "Apply", &within)]), false),
            (json!([owner("helm", "Update", &set)]), false),
            (
                json!([
                    owner("argocd", "Apply", &of_others),
                    owner("kubectl-edit", "Update", &set)
                ]),
                false,
            ),
            // What a controller of the hub has set is nobody's wish, unless it scales.
            (
                json!([
                    owner("argocd", "Apply", &of_others),
                    owner("kube-controller-manager", "Update", &set)
                ]),
                true,
            ),
            (json!([owner("argocd", "Apply", &of_others), scaled]), false),
            (json!([owner("argocd", "Apply", &of_others), status]), true),
            // Nothing is known.
            (json!([]), false),
            (json!([in_other_version]), false),
            (json!([owner("before-first-apply", "Update", &set)]), false),
        ] {
            assert_eq!(is_unset(MODE, &owners, None), expected, "{owners}");
        }
    }

    // A controller at the hub has filled in what one at the edge fills in there, and both corrected each other for ever.
    #[test]
    fn a_ca_bundle_that_a_controller_has_filled_in_is_nobodys_wish() {
        let webhook = |fields: &Value| json!({"f:webhooks": {r#"k:{"name":"a"}"#: {"f:clientConfig": fields}}});
        let injected = webhook(&json!({"f:caBundle": {}}));
        let service = webhook(&json!({"f:service": {"f:name": {}}}));
        let whole = webhook(&json!({"f:caBundle": {}, "f:service": {"f:name": {}}}));
        let helm = owner("helm", "Update", &service);
        for (owners, expected) in [
            (json!([helm, owner("pilot-discovery", "Update", &injected)]), true),
            (json!([helm]), true),
            (json!([helm, owner("kubectl-patch", "Update", &injected)]), false),
            (json!([helm, owner("argocd", "Apply", &injected)]), false),
            (json!([owner("helm", "Update", &whole)]), false),
            (
                json!([
                    owner("helm", "Update", &whole),
                    owner("pilot-discovery", "Update", &injected)
                ]),
                false,
            ),
        ] {
            let webhooks = json!([{"name": "a", "clientConfig": {"caBundle": "Q0E=", "service": {"name": "x"}}}]);
            let origin = json!({"metadata": {"name": "a", "managedFields": owners}, "webhooks": webhooks});
            let path = ["f:webhooks", r#"k:{"name":"a"}"#, "f:clientConfig", "f:caBundle"];
            let mut paths = vec![path.map(str::to_owned).to_vec()];
            let origin = Object::parse(origin.to_string().into()).unwrap();
            retain_unset(&mut paths, &origin, "example.org/v1");
            assert_eq!(!paths.is_empty(), expected, "{owners}");
        }
    }

    // Found from outside: a policy for all pods was one for some at the edge.
    #[test]
    fn what_is_empty_may_be_wanted_by_whoever_sends_whole_objects() {
        let fields = json!({"f:spec": {"f:policyTypes": {}}});
        for (operation, note, expected) in [
            ("Update", None, false),
            ("Update", Some(json!({"spec": {"podSelector": {}}})), false),
            ("Update", Some(json!({"spec": {}})), true),
            ("Apply", None, true),
        ] {
            let owners = json!([owner("helm", operation, &fields)]);
            let mut metadata = json!({"name": "a", "managedFields": owners});
            if let Some(note) = &note {
                metadata["annotations"] = json!({LAST_APPLIED: note.to_string()});
            }
            let origin = json!({"metadata": metadata, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}});
            let mut paths = vec![vec!["f:spec".to_owned(), "f:podSelector".to_owned()]];
            let origin = Object::parse(origin.to_string().into()).unwrap();
            retain_unset(&mut paths, &origin, "example.org/v1");
            assert_eq!(!paths.is_empty(), expected, "{operation} {note:?}");
        }
    }

    #[test]
    fn a_number_of_replicas_that_is_no_default_was_set_by_scaling() {
        let mut owners = json!([owner("argocd", "Apply", &json!({"f:spec": {"f:size": {}}}))]);
        for (api_version, field, number, is_left_out) in [
            ("apps/v1", "replicas", 1, true),
            ("apps/v1", "replicas", 0, false),
            ("apps/v1", "replicas", 7, false),
            ("v1", "replicas", 7, false),
            ("apps/v1", "size", 1, false),
            ("apps/v1", "more", 7, true),
            // Its default may be any number.
            ("example.org/v1", "replicas", 7, true),
        ] {
            owners[0]["apiVersion"] = json!(api_version);
            let origin = json!({"metadata": {"name": "a", "managedFields": owners}, "spec": {field: number}});
            let mut paths = vec![vec!["f:spec".to_owned(), format!("f:{field}")]];
            let origin = Object::parse(origin.to_string().into()).unwrap();
            retain_unset(&mut paths, &origin, api_version);
            assert_eq!(!paths.is_empty(), is_left_out, "{api_version} {field}: {number}");
        }
    }

    #[test]
    fn of_a_client_that_notes_what_it_was_given_the_note_says_what_is_set() {
        let fields = json!({
            "f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}},
            "f:spec": {"f:mode": {}, "f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {"f:name": {}}}},
        });
        let owners = json!([owner("kubectl-client-side-apply", "Update", &fields)]);
        for (path, note, expected) in [
            (MODE, Some(json!({"spec": {"size": 1}})), true),
            (MODE, Some(json!({"spec": null})), true),
            (MODE, Some(json!({})), true),
            (MODE, Some(json!({"spec": {"mode": "a"}})), false),
            (MODE, Some(json!({"spec": {"mode": null}})), false),
            (MODE, Some(json!({"spec": "odd"})), false),
            (MODE, Some(json!("no object")), false),
            (MODE, None, false),
            (PROTOCOL, Some(json!({"spec": {"ports": [{"port": 80}]}})), true),
            (
                PROTOCOL,
                Some(json!({"spec": {"ports": [{"port": 81, "name": "a"}]}})),
                true,
            ),
            (
                PROTOCOL,
                Some(json!({"spec": {"ports": [{"port": 80, "name": "a"}]}})),
                false,
            ),
        ] {
            assert_eq!(is_unset(path, &owners, note.as_ref()), expected, "{path:?} {note:?}");
        }
        let edited = json!([
            owners[0],
            owner("kubectl-edit", "Update", &json!({"f:spec": {"f:mode": {}}}))
        ]);
        assert!(!is_unset(MODE, &edited, Some(&json!({"spec": {}}))));
    }
}
