//! What is read of a PublishedResource, and what is said of one that is wrong.

use serde_json::{Value, json};

use super::*;

/// One with this spec, beside a type.
fn with(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["resource"] = json!({"apiGroup": "demo.example.org", "kind": "Shop"});
    json!({"metadata": {"name": "shops"}, "spec": spec})
}

fn errors(spec: &Value) -> Vec<String> {
    read(&with(spec)).map_or_else(|invalid| invalid.errors, |_| Vec::new())
}

/// A related Secret with this besides what it needs.
fn related(more: &Value) -> Value {
    let mut item = json!({
        "identifier": "a", "origin": "service", "version": "v1", "resource": "secrets",
        "object": {"template": {"template": "x"}},
    });
    for (key, value) in more.as_object().unwrap() {
        item[key] = value.clone();
    }
    json!({"related": [item]})
}

#[test]
fn what_is_not_there_has_its_default() {
    let found = read(&with(&json!({}))).unwrap();
    let expected = PublishedResource {
        name: "shops".to_owned(),
        created: String::new(),
        labels: BTreeMap::new(),
        is_deleted: false,
        source: Source {
            group: "demo.example.org".to_owned(),
            kind: "Shop".to_owned(),
            versions: Vec::new(),
        },
        filter: Filter::default(),
        naming: Naming::default(),
        workspace_paths: false,
        projection: Projection::default(),
        mutation: Mutation::default(),
        related: Vec::new(),
        is_synced: true,
        schema_name: None,
    };
    assert_eq!(found, expected);
    let lenient =
        json!({"filter": null, "naming": {"name": ""}, "later": {"x": 1}, "projection": {"shortNames": null}});
    assert_eq!(read(&with(&lenient)), Ok(expected));
}

#[test]
fn every_field_is_read() {
    let object = json!({
        "metadata": {"name": "shops", "labels": {"a": "b"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "resource": {"apiGroup": "", "kind": "ConfigMap", "versions": ["v1"]},
            "filter": {"namespace": {"matchLabels": {"a": "b"}}, "resource": {}},
            "naming": {"name": "n", "namespace": "ns"},
            "enableWorkspacePaths": true,
            "projection": {
                "group": "g", "kind": "K", "plural": "ks", "versions": {"v1": "v2"}, "scope": "Cluster",
                "shortNames": [], "categories": ["all"],
            },
            "mutation": {
                "spec": [
                    {"delete": {"path": "a"}},
                    {"regex": {"path": "b", "pattern": "x"}},
                    {"template": {"path": "c", "template": ""}},
                    {"cel": {"path": "d", "expression": "1"}},
                ],
                "status": [{"cel": {"path": "e", "expression": "2"}}],
            },
            "related": [
                {
                    "identifier": "up", "origin": "service", "kind": "Secret", "cleanup": true, "syncStatus": true,
                    "object": {
                        "reference": {"path": "spec.secret", "regex": {"pattern": "a", "replacement": "b"}},
                        "namespace": {
                            "selector": {"matchLabels": {"{{ .x }}": ""}, "rewrite": {"template": {"template": "t"}}},
                        },
                    },
                    "watch": {"byOwner": {}},
                },
                {
                    "identifier": "down", "origin": "kcp", "group": "g", "version": "v1", "resource": "things",
                    "identityHash": "h", "projection": {"version": "v2", "resource": "others"},
                    "object": {"selector": {"rewrite": {"regex": {"pattern": "p"}}}},
                    "watch": {"bySelector": {"matchLabels": {"a": "b"}}},
                },
            ],
            "synchronization": {"enabled": false},
        },
        "status": {"resourceSchemaName": "v1.shops.g"},
    });
    let found = read(&object).unwrap();
    assert!(found.is_deleted && found.workspace_paths && !found.is_synced);
    assert_eq!(found.source.versions, ["v1"]);
    assert_eq!(found.schema_name.as_deref(), Some("v1.shops.g"));
    assert_eq!(found.filter.object, Some(Selector::default()));
    assert_eq!(found.projection.short_names, Some(vec![]));
    assert_eq!(found.projection.scope, Some(Scope::Cluster));
    assert_eq!(found.mutation.spec.len(), 4);
    assert_eq!(found.mutation.status.len(), 1);
    let [up, down] = &found.related[..] else {
        panic!("{:?}", found.related)
    };
    assert_eq!(up.watch, Some(Watch::ByOwner));
    assert_eq!((up.cleanup, up.status), (Cleanup::Delete, StatusSync::On));
    assert_eq!(up.type_on(Origin::Kcp).resource, "secrets");
    let on_service = down.type_on(Origin::Service);
    assert_eq!(
        (&*on_service.group, &*on_service.version, &*on_service.resource),
        ("g", "v2", "others")
    );
    assert_eq!(down.type_on(Origin::Kcp).version, "v1");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let object = json!({"spec": {
        "resource": {"versions": ["a", 1], "version": "b"},
        "synchronization": {},
        "enableWorkspacePaths": "yes",
        "naming": [],
    }});
    let expected = [
        "spec.synchronization.enabled: is missing",
        "spec.resource.versions[1]: must be a text",
        "spec.resource.version: must not be set together with versions",
        "spec.resource.apiGroup: is missing",
        "spec.resource.kind: is missing",
        "spec.naming: must be a mapping",
        "spec.enableWorkspacePaths: must be true or false",
    ];
    assert_eq!(read(&object).unwrap_err().errors, expected);
    assert_eq!(read(&json!({})).unwrap_err().errors, ["spec: is missing"]);
}

#[test]
fn a_reference_of_too_many_segments_is_refused() {
    for (segments, is_wrong) in [(100, false), (101, true), (50_000, true)] {
        let reference = json!({"reference": {"path": vec!["a"; segments].join(".")}});
        for object in [
            reference.clone(),
            json!({"template": {"template": "x"}, "namespace": reference}),
        ] {
            let found = errors(&related(&json!({"object": object})));
            let said = format!("reference.path: path has {segments} segments, and may have 100");
            let is_said = found.len() == 1 && found[0].ends_with(&said);
            assert_eq!(is_said, is_wrong, "{found:?}");
        }
    }
}

#[test]
fn what_is_wrong_has_its_place() {
    for (spec, expected) in [
        (
            json!({"projection": {"scope": "cluster"}}),
            "spec.projection.scope: \"cluster\" must be Cluster or Namespaced",
        ),
        (
            json!({"projection": {"version": "v1", "versions": {"v1": "v2"}}}),
            "spec.projection.version: must not be set together with versions",
        ),
        (
            json!({"mutation": {"spec": [{}]}}),
            "spec.mutation.spec[0]: must have delete, regex, template or cel",
        ),
        (
            json!({"mutation": {"status": [{"regex": {"pattern": "x"}}]}}),
            "spec.mutation.status[0].regex.path: is missing",
        ),
        (
            json!({"filter": {"resource": {"matchLabels": {"a": "x y"}}}}),
            "spec.filter.resource.matchLabels: \"x y\" is no value of a label",
        ),
        (
            related(&json!({"kind": "Secret"})),
            "spec.related[0].kind: must not be set together with version and resource",
        ),
        (
            related(&json!({"kind": "Pod", "version": null, "resource": null})),
            "spec.related[0].kind: \"Pod\" must be ConfigMap or Secret",
        ),
        (
            related(&json!({"version": null})),
            "spec.related[0].version: is missing",
        ),
        (
            related(&json!({"resource": null})),
            "spec.related[0].resource: is missing",
        ),
        (
            related(&json!({"kind": "Secret", "group": "g", "version": null, "resource": null})),
            "spec.related[0].group: needs version and resource",
        ),
        (
            related(&json!({"identityHash": "h"})),
            "spec.related[0].identityHash: needs group, version and resource",
        ),
        (
            related(&json!({"syncStatus": true})),
            "spec.related[0].syncStatus: needs watch when the origin is service",
        ),
        (
            related(&json!({"watch": {"byOwner": {}, "bySelector": {}}})),
            "spec.related[0].watch: must have byOwner or bySelector",
        ),
        (
            related(&json!({"origin": "other"})),
            "spec.related[0].origin: \"other\" must be service or kcp",
        ),
        (
            related(&json!({"identifier": "a b"})),
            "spec.related[0].identifier: \"a b\" is no part of the key of an annotation",
        ),
        (related(&json!({"object": null})), "spec.related[0].object: is missing"),
        (
            related(&json!({"object": {}})),
            "spec.related[0].object: must have one of reference, selector and template",
        ),
        (
            related(&json!({"object": {"selector": {"rewrite": {}}}})),
            "spec.related[0].object.selector.rewrite: must have regex or template",
        ),
        (
            related(&json!({"object": {"selector": {}}})),
            "spec.related[0].object.selector.rewrite: is missing",
        ),
    ] {
        assert_eq!(errors(&spec), [expected], "{spec}");
    }
    let mut twice = related(&json!({}));
    let item = twice["related"][0].clone();
    twice["related"].as_array_mut().unwrap().push(item);
    assert_eq!(errors(&twice), ["spec.related[1].identifier: \"a\" is there twice"]);
}
