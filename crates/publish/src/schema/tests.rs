//! What the Go agent made of the same types, and the vectors of the contract.

use gotemplate::yaml;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{PublishedResource, read};

const CASES: &str = include_str!("../../tests/data/generate/schemas.yaml");
const SCHEMAS: &str = include_str!("../../tests/data/schemas.jsonl");
const OPENAPI: &str = include_str!("../../tests/data/generate/openapi.yaml");
const BUILTINS: &str = include_str!("../../tests/data/builtins.jsonl");

fn document(text: &str) -> Value {
    yaml::documents(text).unwrap().remove(0).value
}

fn rows(table: &str) -> Vec<Value> {
    table.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

fn published(spec: &Value) -> PublishedResource {
    let mut spec = if spec.is_null() { json!({}) } else { spec.clone() };
    spec["resource"]["apiGroup"] = json!("g");
    spec["resource"]["kind"] = json!("K");
    read(&json!({"spec": spec})).unwrap()
}

/// What Go writes: no creation timestamps, which are null there.
fn without_nulls(value: Value) -> Value {
    let mut value = value;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !value.is_null());
    }
    value
}

#[test]
fn schemas_are_those_of_the_go_agent() {
    let all = document(CASES);
    let (cases, rows) = (all["cases"].as_array().unwrap(), rows(SCHEMAS));
    assert_eq!(cases.len(), rows.len());
    for (case, row) in cases.iter().zip(rows) {
        let crd = Crd::read(&all["crds"][case["crd"].as_str().unwrap()]).unwrap();
        let found = project(&crd, &published(&case["spec"]));
        match (row.get("error"), found) {
            (None, Ok(found)) => assert_eq!(found.schema("agent", false), without_nulls(row), "{case}"),
            (Some(_), Err(_)) => {}
            (_, found) => panic!("{case}: {found:?}, where the Go agent has {row}"),
        }
    }
}

#[test]
fn built_in_types_are_those_of_the_go_agent() {
    let document = document(OPENAPI);
    let rows = rows(BUILTINS);
    assert_eq!(rows.len(), 3);
    for row in rows {
        let kind = match row.get("error") {
            Some(_) => "Endless",
            None => row["model"].as_str().unwrap().rsplit('.').next().unwrap(),
        };
        match (row.get("error"), builtin(kind, &document).crd()) {
            (None, Ok(crd)) => {
                let found = Projected::new(crd).unwrap().schema("agent", false);
                assert_eq!(found["spec"]["versions"][0]["schema"], row["schema"], "{kind}");
            }
            (Some(_), Err(_)) => {}
            (_, found) => panic!("{kind}: {found:?}, where the Go agent has {row}"),
        }
    }
}

fn builtin<'a>(kind: &str, openapi: &'a Value) -> Builtin<'a> {
    Builtin {
        group: "example.com",
        names: Names {
            plural: "things".to_owned(),
            kind: kind.to_owned(),
            ..Names::default()
        },
        scope: Scope::Namespaced,
        preferred: "v1",
        versions: vec![BuiltinVersion {
            name: "v1",
            has_status: true,
            has_scale: true,
            openapi,
        }],
    }
}

#[test]
fn both_versions_of_openapi_give_the_same() {
    let second = document(OPENAPI);
    let text = second["definitions"]
        .to_string()
        .replace("#/definitions/", "#/components/schemas/");
    let third = json!({"components": {"schemas": serde_json::from_str::<Value>(&text).unwrap()}});
    let found = builtin("Thing", &third).crd().unwrap();
    assert_eq!(found, builtin("Thing", &second).crd().unwrap());
    assert_eq!(
        (&*found.names.singular, &*found.names.list_kind),
        ("thing", "ThingList")
    );
    let version = &found.versions[0];
    assert!(version.is_served && version.is_stored && version.has("status") && version.has("scale"));
    let wrapped = json!({"allOf": [{"$ref": "#/components/schemas/a.b"}], "description": "d"});
    let models = json!({"components": {"schemas": {
        "a.b": {"type": "object", "description": "own", "properties": {"x": {"type": "string"}}},
        "k": {
            "type": "object", "properties": {"f": wrapped},
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "K"}],
        },
    }}});
    let found = builtin("K", &models).crd().unwrap();
    let field = &found.versions[0].fields["schema"]["openAPIV3Schema"]["properties"]["f"];
    assert_eq!(
        field,
        &json!({"type": "object", "description": "d", "properties": {"x": {"type": "string"}}})
    );
}

#[test]
fn types_of_protected_groups_are_approved() {
    let openapi = json!({"definitions": {"a": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "rbac.k8s.io", "version": "v1", "kind": "K"}],
    }}});
    let mut builtin = builtin("K", &openapi);
    builtin.group = "rbac.k8s.io";
    let crd = builtin.crd().unwrap();
    assert!(crd.approval.is_some());
    let projected = project(&crd, &published(&json!({}))).unwrap();
    let schema = projected.schema("agent", false);
    assert!(schema["metadata"]["annotations"][APPROVED].is_string(), "{schema}");
    builtin.group = "notk8s.io";
    assert!(builtin.crd().is_err());
}

fn crd(versions: &Value) -> Value {
    json!({
        "metadata": {"name": "shops.demo.example.org", "generation": 2, "annotations": {APPROVED: "yes", "a": "b"}},
        "spec": {
            "group": "demo.example.org",
            "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
            "scope": "Namespaced",
            "versions": versions,
        },
    })
}

#[test]
fn the_name_is_that_of_the_contract() {
    let schema = json!({"openAPIV3Schema": {"description": "a <b> & c", "type": "object"}});
    let crd = crd(&json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]));
    let crd = Crd::read(&crd).unwrap();
    let found = project(&crd, &published(&json!({}))).unwrap();
    assert_eq!(found.schema_name(), "va989209d.shops.demo.example.org");
    let schema = found.schema("mine", false);
    assert_eq!(
        schema["metadata"]["annotations"],
        json!({AGENT_NAME: "mine", SOURCE_GENERATION: "2", APPROVED: "yes"})
    );
    assert_eq!(schema["metadata"]["labels"], json!({AGENT_NAME: "mine"}));
}

#[test]
fn selectable_fields_are_there_where_kcp_knows_them() {
    let fields = json!([{"jsonPath": ".spec.a"}]);
    let crd = crd(&json!([{"name": "v1", "served": true, "storage": true, "selectableFields": fields}]));
    let found = project(&Crd::read(&crd).unwrap(), &published(&json!({}))).unwrap();
    assert_eq!(
        found.schema("a", true)["spec"]["versions"][0]["selectableFields"],
        fields
    );
    let without = found.schema("a", false);
    assert_eq!(without["spec"]["versions"][0].get("selectableFields"), None);
    // A version without a schema takes anything.
    assert_eq!(
        without["spec"]["versions"][0]["schema"],
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    );
}

/// The Go agent takes the last one of the list.
#[test]
fn the_highest_served_version_stores_objects_if_none_is_left_that_did() {
    let version = |name: &str, is_stored: bool| json!({"name": name, "served": name != "v3", "storage": is_stored});
    let crd = crd(&json!([
        version("v2", false),
        version("v1alpha1", true),
        version("v1beta1", false),
        version("v3", false)
    ]));
    let crd = Crd::read(&crd).unwrap();
    let wanted = published(&json!({"resource": {"versions": ["v2", "v1beta1", "v3"]}}));
    let found = project(&crd, &wanted).unwrap();
    let stored: Vec<_> = found.crd.versions.iter().filter(|version| version.is_stored).collect();
    assert_eq!(stored.iter().map(|version| &*version.name).collect::<Vec<_>>(), ["v2"]);
}

#[test]
fn what_gives_no_schema_says_why() {
    let versions = json!([
        {"name": "v1", "served": true, "storage": true},
        {"name": "v2", "served": false, "storage": false},
    ]);
    let crd = Crd::read(&crd(&versions)).unwrap();
    for (spec, expected) in [
        (
            json!({"resource": {"versions": ["v7", "v8"]}}),
            "the CRD has none of these versions: v7, v8",
        ),
        (
            json!({"resource": {"versions": ["v2"]}}),
            "none of the selected versions is served",
        ),
        (
            json!({"projection": {"version": "v9"}}),
            "spec.projection.version \"v9\" is for one version, and 2 are selected: use spec.projection.versions",
        ),
        (
            json!({"projection": {"versions": {"v1": "v2"}}}),
            "spec.projection.versions gives two versions the name v2",
        ),
        (
            json!({"projection": {"plural": "Shops"}}),
            "\"Shops.demo.example.org\" is no name that a schema can have",
        ),
    ] {
        let found = project(&crd, &published(&spec)).map_err(|error| error.to_string());
        assert_eq!(found.unwrap_err(), expected, "{spec}");
    }
    let mut core = crd;
    core.group = String::new();
    assert_eq!(project(&core, &published(&json!({}))), Err(SchemaError::NoGroup));
}

#[test]
fn what_is_no_crd_is_named() {
    for (object, expected) in [
        (json!({}), "the CRD cannot be used: spec is missing"),
        (
            json!({"spec": {"names": {}}}),
            "the CRD cannot be used: spec.versions is missing",
        ),
        (
            crd(&json!([{}])),
            "the CRD cannot be used: spec.versions[0].name is missing",
        ),
    ] {
        assert_eq!(Crd::read(&object).unwrap_err().to_string(), expected, "{object}");
    }
    let wrong = json!([{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"properties": {"a": {"type": 1}}}},
    }]);
    let found = project(&Crd::read(&crd(&wrong)).unwrap(), &published(&json!({})));
    assert_eq!(
        found.unwrap_err().to_string(),
        "the CRD cannot be used: spec.versions[0].schema.openAPIV3Schema.properties.a.type: must be a text"
    );
}
