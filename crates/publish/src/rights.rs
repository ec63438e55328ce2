//! Which rights the agent needs at each server, for `check`.

use serde_json::{Value, json};

use crate::agent::Parts;
use crate::kinds::{Locator, Origin, Related, StatusSync};
use crate::run::{self, Settings};

/// A verb, and what becomes of it where that is not allowed, if the agent can do without.
pub(crate) type Right = (Value, Option<&'static str>);

/// What the agent needs whatever is published.
pub(crate) fn of_service(settings: &Settings) -> Vec<Right> {
    let namespace = &settings.namespace;
    let all = |group: &str, resource: &str, verb: &str| {
        let attributes = json!({"group": group, "resource": resource, "verb": verb});
        (attributes, None)
    };
    let mut rights = Vec::new();
    for verb in ["list", "watch"] {
        rights.push(all("syncagent.kcp.io", "publishedresources", verb));
        rights.push(all("apiextensions.k8s.io", "customresourcedefinitions", verb));
    }
    if settings.parts.sync {
        rights.push(all("", "namespaces", "create"));
        rights.extend(of_states(namespace));
    }
    if settings.elects {
        for verb in ["get", "create", "patch"] {
            let attributes = json!({"group": "coordination.k8s.io", "resource": "leases", "verb": verb,
                "namespace": namespace, "name": run::lease_of(&settings.agent)});
            rights.push((attributes, None));
        }
    }
    rights
}

/// What the agent needs for the states of objects.
fn of_states(namespace: &str) -> Vec<Right> {
    let right = |verb: &str, without| {
        let attributes = json!({"group": "", "resource": "secrets", "verb": verb, "namespace": namespace});
        (attributes, without)
    };
    let mut rights: Vec<Right> = ["get", "create", "update"].map(|verb| right(verb, None)).into();
    // The Go agent's chart does not give it.
    let without = "the states of objects that are gone are emptied, and stay";
    rights.push(right("delete", Some(without)));
    rights
}

/// What the agent needs on the service cluster for what belongs to an object: to read it where it comes from, else to write it.
pub(crate) fn of_related(related: &Related) -> Vec<Right> {
    let of = related.type_on(Origin::Service);
    let right = |verb: &str, subresource: &str| {
        let attributes = json!({"group": of.group, "version": of.version, "resource": of.resource,
            "subresource": subresource, "verb": verb});
        (attributes, None)
    };
    let is_selected = matches!(related.object, Locator::Selector(_));
    let verbs: &[&str] = match related.origin {
        Origin::Kcp => &["get", "create", "update", "patch", "delete"],
        Origin::Service if related.watch.is_some() => &["get", "list", "watch"],
        Origin::Service if is_selected => &["get", "list"],
        Origin::Service => &["get"],
    };
    let mut rights: Vec<Right> = verbs.iter().map(|verb| right(verb, "")).collect();
    if related.origin == Origin::Kcp && related.status == StatusSync::On {
        rights.push(right("update", "status"));
    }
    rights
}

/// What the agent needs in the workspace of the export.
pub(crate) fn of_export(name: &str, parts: Parts) -> Vec<Right> {
    let named = |resource: &str, subresource: &str, verb: &str| {
        let attributes = json!({"group": "apis.kcp.io", "resource": resource, "subresource": subresource, "verb": verb, "name": name});
        (attributes, None)
    };
    let mut rights: Vec<Right> = vec![named("apiexports", "", "get")];
    if parts.export {
        rights.push(named("apiexports", "", "update"));
    }
    if parts.sync {
        rights.push(named("apiexports", "content", "*"));
    }
    for verb in ["get", "create"].iter().filter(|_| parts.schemas) {
        let attributes = json!({"group": "apis.kcp.io", "resource": "apiresourceschemas", "verb": verb});
        rights.push((attributes, None));
    }
    rights
}

/// A right as people write it.
pub(crate) fn words_of(attributes: &Value) -> String {
    let text = |key: &str| attributes[key].as_str().unwrap_or_default();
    let mut resource = text("resource").to_owned();
    if !text("subresource").is_empty() {
        resource = format!("{resource}/{}", text("subresource"));
    }
    if !text("group").is_empty() {
        resource = format!("{resource} of {}", text("group"));
    }
    let place = match (text("namespace"), text("name")) {
        ("", "") => String::new(),
        ("", name) => format!(" ({name})"),
        (namespace, _) => format!(" in {namespace}"),
    };
    format!("{} {resource}{place}", text("verb"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn what_belongs_to_an_object_is_read_where_it_comes_from_and_written_at_the_other_side() {
        let rights = |related: Value| {
            let object = json!({"metadata": {"name": "shops"}, "spec": {
                "resource": {"apiGroup": "g", "kind": "Shop", "versions": ["v1"]}, "related": [related]}});
            let resource = kinds::read(&object).unwrap();
            let all: Vec<String> = of_related(&resource.related[0])
                .iter()
                .map(|(right, _)| words_of(right))
                .collect();
            all.join(", ")
        };
        let of = |origin: &str, more: Value| {
            let mut related = json!({"identifier": "keys", "origin": origin, "version": "v1", "resource": "secrets",
                "object": {"reference": {"path": "spec.secret"}}});
            for (key, value) in more.as_object().into_iter().flatten() {
                related[key] = value.clone();
            }
            related
        };
        for (related, expected) in [
            (of("service", json!({})), "get secrets"),
            (
                of("service", json!({"watch": {"byOwner": {}}})),
                "get secrets, list secrets, watch secrets",
            ),
            (
                of(
                    "service",
                    json!({"object": {"selector": {"matchLabels": {"a": "b"}, "rewrite": {"template": {"template": "x"}}}}}),
                ),
                "get secrets, list secrets",
            ),
            (
                of("kcp", json!({"syncStatus": true})),
                "get secrets, create secrets, update secrets, patch secrets, delete secrets, update secrets/status",
            ),
            (
                of("kcp", json!({"projection": {"resource": "configmaps"}})),
                "get configmaps, create configmaps, update configmaps, patch configmaps, delete configmaps",
            ),
        ] {
            assert_eq!(rights(related.clone()), expected, "{related}");
        }
    }

    // Found by an audit: `check` said that something will not work.
    #[test]
    fn the_agent_can_do_without_the_right_to_delete_states() {
        let rights = of_states("kcp-system");
        let [optional, needed] = [true, false].map(|is_optional| {
            let some = rights.iter().filter(|(_, without)| without.is_some() == is_optional);
            some.map(|(right, _)| words_of(right)).collect::<Vec<_>>().join(", ")
        });
        assert_eq!(optional, "delete secrets in kcp-system");
        assert_eq!(
            needed,
            "get secrets in kcp-system, create secrets in kcp-system, update secrets in kcp-system"
        );
    }

    #[test]
    fn parts_that_do_not_work_need_no_rights() {
        let rights = |schemas, export, sync| {
            let rights = of_export("e", Parts { schemas, export, sync });
            rights
                .iter()
                .map(|(right, _)| words_of(right))
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(rights(false, false, false), "get apiexports of apis.kcp.io (e)");
        assert_eq!(
            rights(false, true, true),
            "get apiexports of apis.kcp.io (e), update apiexports of apis.kcp.io (e), * apiexports/content of apis.kcp.io (e)"
        );
        assert!(rights(true, false, false).ends_with("create apiresourceschemas of apis.kcp.io"));
    }

    #[test]
    fn a_right_is_named_as_people_write_it() {
        for (attributes, expected) in [
            (json!({"resource": "namespaces", "verb": "create"}), "create namespaces"),
            (
                json!({"resource": "secrets", "verb": "get", "namespace": "kcp-system"}),
                "get secrets in kcp-system",
            ),
            (
                json!({"group": "apis.kcp.io", "resource": "apiexports", "subresource": "content", "verb": "*", "name": "e"}),
                "* apiexports/content of apis.kcp.io (e)",
            ),
        ] {
            assert_eq!(words_of(&attributes), expected);
        }
    }
}
