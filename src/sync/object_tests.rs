use serde_json::Value;

use super::*;

fn config_maps() -> ResourceType {
    ResourceType {
        group: String::new(),
        version: "v1".into(),
        resource: "configmaps".into(),
        kind: "ConfigMap".into(),
        namespaced: true,
    }
}

fn we() -> SyncTarget {
    SyncTarget {
        uid: "site-7".into(),
        ..SyncTarget::default()
    }
}

fn address(resource: ResourceType, namespace: &str, name: &str) -> Address {
    Address {
        resource,
        name: ObjectName::new(namespace, name),
    }
}

fn bytes(object: &str) -> Bytes {
    Bytes::copy_from_slice(object.as_bytes())
}

/// An object with these fields beside its metadata.
fn with_name(fields: &str) -> Bytes {
    let fields = fields.trim_start_matches('{');
    let comma = if fields == "}" { "" } else { "," };
    Bytes::from(format!(r#"{{"metadata":{{"name":"a"}}{comma}{fields}"#))
}

fn parsed(object: &Bytes) -> Object {
    Object::parse(object.clone()).unwrap()
}

/// The copy at the edge of an origin, if it is to have one.
fn down(origin: &Address, copy: &Address, object: &str) -> Option<Desired> {
    Desired::from_origin(Direction::Down, origin, copy, Selection::Full, &parsed(&bytes(object))).unwrap()
}

fn desired_as(resource: ResourceType, selection: Selection, object: &Value) -> Option<Desired> {
    let object = &bytes(&object.to_string());
    let object = parsed(object);
    let name = object.meta.object_name();
    let same = Address { resource, name };
    Desired::from_origin(Direction::Down, &same, &same, selection, &object).unwrap()
}

fn desired(object: &Value) -> Option<Desired> {
    desired_as(config_maps(), Selection::Full, object)
}

fn body(desired: &Desired, resource: ResourceType, namespace: &str, name: &str) -> Value {
    let copy = address(resource, namespace, name);
    serde_json::from_slice(&desired.body(Direction::Down, &copy, &we(), &Marks::default())).unwrap()
}

fn applied(object: &Value) -> Value {
    body(&desired(object).unwrap(), config_maps(), "shop", "prices")
}

#[test]
fn what_belongs_to_the_hub_alone_does_not_travel() {
    let body = applied(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "prices", "namespace": "shop", "uid": "u", "resourceVersion": "5", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "deletionGracePeriodSeconds": 0, "selfLink": "/x", "generateName": "pri", "managedFields": [{"manager": "m"}],
            "ownerReferences": [{"uid": "x"}], "finalizers": ["hub.example.org/f"],
            "labels": {"app": "web", "internal.kcp.io/replicate": "true"},
            "annotations": {"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}", "kcp.io/cluster": "root", "x.kcp.io/path": "p", "mykcp.io/kept": "1",
                "edge.kubestellar.io/downsynced": "ConfigMap/other/name", "edge.kubestellar.io/adopted": "true"},
        },
        "data": {"a": "1"}, "binaryData": {}, "immutable": true, "status": {"x": 1},
    }));
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "prices", "namespace": "shop",
                "labels": {"app": "web", "edge.kubestellar.io/downsynced": "true"},
                "annotations": {"note": "kept", "mykcp.io/kept": "1", "edge.kubestellar.io/downsynced": "ConfigMap/shop/prices",
                    "edge.kubestellar.io/owner": "u/configmaps/site-7"},
            },
            "data": {"a": "1"}, "binaryData": {}, "immutable": true,
        })
    );
}

#[test]
fn the_hash_changes_with_what_is_synced_and_with_nothing_else() {
    let object = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "data": {"k": "v"}, "status": {"s": 1}});
    let hash = |object: &Value| desired(object).unwrap().hash;
    let base = hash(&object);
    let changed = |pointer: &str, value: Value| {
        let mut other = object.clone();
        other[pointer] = value;
        hash(&other)
    };
    assert_eq!(changed("status", json!({"s": 2})), base);
    assert_eq!(
        changed(
            "metadata",
            json!({"name": "a", "namespace": "n", "resourceVersion": "2", "managedFields": []})
        ),
        base
    );
    assert_ne!(changed("data", json!({"k": "w"})), base);
    assert_ne!(
        changed("metadata", json!({"name": "a", "namespace": "n", "labels": {"l": "1"}})),
        base
    );
    assert_ne!(
        changed(
            "metadata",
            json!({"name": "a", "namespace": "n", "annotations": {"l": "1"}})
        ),
        base
    );
}

#[test]
fn system_objects_are_never_synced() {
    let secret = |kind: &str| json!({"metadata": {"name": "s", "namespace": "n"}, "type": kind});
    for (resource, object, is_synced) in [
        (
            "configmaps",
            json!({"metadata": {"name": "kube-root-ca.crt", "namespace": "n"}}),
            false,
        ),
        (
            "configmaps",
            json!({"metadata": {"name": "mine", "namespace": "n"}}),
            true,
        ),
        (
            "serviceaccounts",
            json!({"metadata": {"name": "default", "namespace": "n"}}),
            false,
        ),
        (
            "serviceaccounts",
            json!({"metadata": {"name": "app", "namespace": "n"}}),
            true,
        ),
        ("secrets", secret("kubernetes.io/service-account-token"), false),
        ("secrets", secret("bootstrap.kubernetes.io/token"), false),
        ("secrets", secret("Opaque"), true),
        (
            "services",
            json!({"metadata": {"name": "kubernetes", "namespace": "default"}}),
            false,
        ),
    ] {
        let resource = ResourceType {
            resource: resource.into(),
            ..config_maps()
        };
        let desired = desired_as(resource, Selection::Full, &object);
        assert_eq!(desired.is_some(), is_synced, "{object}");
    }
}

/// A cluster-scoped thing of the hub, or one in the namespace `n`.
fn thing(kind: &str) -> ResourceType {
    ResourceType {
        group: "g.io".into(),
        resource: format!("{}s", kind.to_lowercase()),
        kind: kind.into(),
        ..config_maps()
    }
}

// Issue 41: a conversion gave a copy the kind or the name of what is never synced.
#[test]
fn what_may_be_written_is_decided_by_the_type_name_and_content_of_the_copy() {
    let role = |plural: &str, kind: &str| ResourceType {
        group: "rbac.authorization.k8s.io".into(),
        resource: plural.into(),
        kind: kind.into(),
        ..config_maps()
    };
    let token = json!({"type": "kubernetes.io/service-account-token"});
    let bootstrapped = json!({"metadata": {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}});
    for (origin, copy, namespace, name, more, is_synced) in [
        (thing("Thing"), ResourceType::secrets(), "n", "s", &token, false),
        (thing("Thing"), thing("Other"), "n", "s", &token, true),
        (config_maps(), config_maps(), "n", "kube-root-ca.crt", &json!({}), false),
        (
            thing("Thing"),
            ResourceType::service_accounts(),
            "n",
            "default",
            &json!({}),
            false,
        ),
        (thing("Thing"), role("roles", "Role"), "n", "x", &bootstrapped, false),
        (thing("Thing"), role("roles", "Role"), "n", "x", &json!({}), true),
    ] {
        let mut object = json!({"metadata": {"name": "a", "namespace": namespace}});
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object["metadata"]["name"] = json!("a");
        object["metadata"]["namespace"] = json!(namespace);
        let (at, to) = (address(origin, namespace, "a"), address(copy, namespace, name));
        let made = down(&at, &to, &object.to_string());
        assert_eq!(made.is_some(), is_synced, "{to:?} {object}");
    }
}

// Issue 41: the text of a type was compared, so that another spelling of it passed.
#[test]
fn the_type_of_a_secret_is_known_in_every_spelling() {
    for (spelt, is_synced) in [
        (r#""type":"kubernetes.io/service-account-token""#, false),
        (r#""type":"kubernetes.io\/service-account-token""#, false),
        (r#""typ\u0065":"kubernetes.io/service\u002daccount-token""#, false),
        (r#""type" : "bootstrap.kubernetes.io/tok\u0065n" "#, false),
        // The last one counts, and is the only one that is written.
        (r#""type":"Opaque","type":"kubernetes.io/service-account-token""#, false),
        (r#""type":"kubernetes.io/service-account-token","type":"Opaque""#, true),
        (r#""type":"kubernetes.io/tls""#, true),
        (r#""type":7"#, true),
    ] {
        let object = format!(r#"{{"metadata":{{"name":"s","namespace":"n"}},{spelt}}}"#);
        let same = address(ResourceType::secrets(), "n", "s");
        let made = down(&same, &same, &object);
        assert_eq!(made.is_some(), is_synced, "{spelt}");
        let body = made.map(|made| body(&made, ResourceType::secrets(), "n", "s"));
        assert!(
            body.is_none_or(|body| body["type"] != "kubernetes.io/service-account-token"),
            "{spelt}"
        );
    }
}

#[test]
fn what_becomes_a_secret_has_a_type() {
    for (given, expected) in [
        (json!({}), json!("Opaque")),
        (json!({"type": null}), json!("Opaque")),
        (json!({"type": ""}), json!("Opaque")),
        (json!({"type": "kubernetes.io/tls"}), json!("kubernetes.io/tls")),
    ] {
        let mut object = json!({"metadata": {"name": "a", "namespace": "n"}, "data": {}});
        object
            .as_object_mut()
            .unwrap()
            .extend(given.as_object().unwrap().clone());
        let (at, to) = (
            address(thing("Thing"), "n", "a"),
            address(ResourceType::secrets(), "n", "s"),
        );
        let made = down(&at, &to, &object.to_string());
        let made = made.unwrap();
        assert_eq!(
            body(&made, ResourceType::secrets(), "n", "s")["type"],
            expected,
            "{given}"
        );
    }
}

#[test]
fn what_is_named_is_synced_though_its_cluster_keeps_it_for_itself() {
    let services = ResourceType {
        resource: "services".into(),
        kind: "Service".into(),
        ..config_maps()
    };
    let object = json!({"metadata": {"name": "kubernetes", "namespace": "default"}});
    assert!(desired_as(services.clone(), Selection::Full, &object).is_none());
    assert!(desired_as(services, Selection::Named, &object).is_some());
    let root = json!({"metadata": {"name": "kube-root-ca.crt", "namespace": "n"}});
    assert!(desired_as(config_maps(), Selection::Named, &root).is_none());
}

#[test]
fn pull_secrets_are_added_to_those_of_the_edge() {
    let resource = ResourceType {
        resource: "serviceaccounts".into(),
        kind: "ServiceAccount".into(),
        ..config_maps()
    };
    let object = json!({"metadata": {"name": "app", "namespace": "n"}, "imagePullSecrets": [{"name": "mine"}],
        "automountServiceAccountToken": false});
    let desired = desired_as(resource.clone(), Selection::Full, &object).unwrap();
    let body = body(&desired, resource.clone(), "n", "app");
    assert_eq!(
        (&body["imagePullSecrets"], &body["automountServiceAccountToken"]),
        (&Value::Null, &json!(false))
    );
    let addition = |secrets: Value| {
        let copy = json!({"metadata": {"resourceVersion": "7"}, "imagePullSecrets": secrets}).to_string();
        desired.addition(&resource, copy.as_bytes()).unwrap()
    };
    let patch: Value = serde_json::from_slice(&addition(json!([{"name": "edge"}])).unwrap()).unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"resourceVersion": "7", "annotations": {"edge.kubestellar.io/pull-secrets": "[\"mine\"]"}},
            "imagePullSecrets": [{"name": "edge"}, {"name": "mine"}]})
    );
}

#[test]
fn an_implied_namespace_is_synced_without_its_details() {
    let resource = ResourceType {
        resource: "namespaces".into(),
        kind: "Namespace".into(),
        namespaced: false,
        ..config_maps()
    };
    let object = json!({"metadata": {"name": "shop", "labels": {"team": "a"}}, "spec": {"finalizers": ["kubernetes"]}});
    let desired = desired_as(resource.clone(), Selection::Implied, &object).unwrap();
    let body = body(&desired, resource, "", "shop");
    assert_eq!(
        body,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop",
        "labels": {"edge.kubestellar.io/downsynced": "true"},
        "annotations": {"edge.kubestellar.io/downsynced": "Namespace//shop",
            "edge.kubestellar.io/owner": "/namespaces/site-7"}}})
    );
}

#[test]
fn a_renamed_crd_has_the_group_of_its_new_name_and_says_where_it_is_from() {
    let crds = ResourceType {
        group: "apiextensions.k8s.io".into(),
        resource: "customresourcedefinitions".into(),
        kind: "CustomResourceDefinition".into(),
        namespaced: false,
        ..config_maps()
    };
    let origin = address(crds.clone(), "", "gauges.m.org.denatured");
    let copy = address(crds, "", "gauges.m.org");
    let object = json!({"metadata": {"name": "gauges.m.org.denatured"},
        "spec": {"group": "m.org.denatured", "names": {"plural": "gauges"}}});
    let desired = |origin: &Address, copy: &Address| {
        let desired = down(origin, copy, &object.to_string());
        desired.unwrap()
    };
    let renamed = desired(&origin, &copy);
    let body: Value = serde_json::from_slice(&renamed.body(Direction::Down, &copy, &we(), &Marks::default())).unwrap();
    assert_eq!(body["spec"], json!({"group": "m.org", "names": {"plural": "gauges"}}));
    assert_eq!(
        body["metadata"]["annotations"],
        json!({"edge.kubestellar.io/downsynced": "CustomResourceDefinition//gauges.m.org",
            "edge.kubestellar.io/owner": "/customresourcedefinitions.apiextensions.k8s.io/site-7",
            "edge.kubestellar.io/renamed-from": "CustomResourceDefinition.apiextensions.k8s.io/gauges.m.org.denatured"})
    );
    let meta = Meta::parse(body.to_string().as_bytes()).unwrap();
    let from = (
        "CustomResourceDefinition.apiextensions.k8s.io",
        "gauges.m.org.denatured",
    );
    assert_eq!(meta.renamed_from(), Some(from));
    assert_ne!(renamed.hash, desired(&origin, &origin).hash);
}

#[test]
fn an_upsynced_copy_carries_the_marks_of_upsync_and_its_version() {
    let object = json!({"metadata": {"name": "a", "namespace": "n", "ownerReferences": [{"uid": "x"}],
        "finalizers": ["f"], "annotations": {"edge.kubestellar.io/upsynced": "other"}}, "data": {}});
    let desired = desired(&object).unwrap();
    let copy = address(config_maps(), "n", "a");
    let marks = Marks {
        at_version: Some("7"),
        ..Marks::default()
    };
    let body: Value = serde_json::from_slice(&desired.body(Direction::Up, &copy, &we(), &marks)).unwrap();
    assert_eq!(
        body["metadata"],
        json!({"name": "a", "namespace": "n", "resourceVersion": "7",
            "labels": {"edge.kubestellar.io/upsynced": "true"},
            "annotations": {"edge.kubestellar.io/upsynced": "ConfigMap/n/a", "edge.kubestellar.io/owner": "/configmaps/site-7"}})
    );
}

#[test]
fn a_status_is_the_same_in_any_order_of_its_fields() {
    let hash = |object: &str| Status::hash_of(&parsed(&with_name(object)));
    let base = hash(r#"{"status":{"a":1,"b":{"c":2,"d":3}}}"#);
    assert_eq!(hash(r#"{"status": {"b": {"d":3,"c":2}, "a": 1}}"#), base);
    assert_ne!(hash(r#"{"status":{"a":1,"b":{"c":2,"d":4}}}"#), base);
    for none in ["{}", r#"{"status":null}"#, r#"{"status":"text"}"#, r#"{"status":[1]}"#] {
        assert_eq!(hash(none), 0, "{none}");
    }
}

#[test]
fn a_status_is_synced_as_it_is_written_however_deep() {
    let deep = format!("{}1{}", "{\"a\":[".repeat(500), "]}".repeat(500));
    for status in [
        r#"{"f":[0.1,1e21,123456789012345678901234567890,1.0,-0.0,0.30000000000000004,5e-324]}"#,
        &deep,
    ] {
        let object = format!(r#"{{"metadata":{{"name":"a"}},"spec":{status},"status":{status}}}"#);
        assert_eq!(Status::of(&parsed(&bytes(&object))).unwrap().text, status);
        let origin = Address {
            resource: ResourceType::config_maps(),
            name: ObjectName::new("shop", "a"),
        };
        let desired = down(&origin, &origin, &object).unwrap();
        assert!(desired.fields.contains(status));
    }
}

#[test]
fn only_a_pod_that_has_some_has_ephemeral_containers() {
    let pods = || ResourceType {
        resource: "pods".into(),
        kind: "Pod".into(),
        ..config_maps()
    };
    for (resource, object, expected) in [
        (pods(), r#"{"spec":{"ephemeralContainers":[{"name":"debug"}]}}"#, true),
        // However it is written.
        (pods(), r#"{"spec":{"ephemeral\u0043ontainers":[{}]}}"#, true),
        (pods(), r#"{"spec":{"ephemeralContainers":[]}}"#, false),
        (pods(), r#"{"spec":{"ephemeralContainers":null}}"#, false),
        (pods(), r#"{"spec":{}}"#, false),
        (pods(), "{}", false),
        (config_maps(), r#"{"spec":{"ephemeralContainers":[{}]}}"#, false),
    ] {
        let found = has_ephemeral_containers(&resource, &parsed(&with_name(object)));
        assert_eq!(found, expected, "{} {object}", resource.kind);
    }
}

#[test]
fn a_status_that_is_there_and_no_object_cannot_be_returned() {
    for (object, expected) in [
        (r#"{"status":"fine"}"#, true),
        (r#"{"status":[1]}"#, true),
        (r#"{"status":{}}"#, false),
        (r#"{"status":null}"#, false),
        ("{}", false),
    ] {
        assert_eq!(Status::is_no_object(&parsed(&with_name(object))), expected, "{object}");
    }
}

#[test]
fn a_conversion_that_leads_to_what_is_never_synced_is_known_by_what_the_copy_would_be() {
    const TOKEN: &str = "kubernetes.io/service-account-token";
    let address = |group: &str, resource: &str, kind: &str, name: &str| Address {
        resource: ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            kind: kind.into(),
            namespaced: true,
        },
        name: ObjectName::new("n", name),
    };
    let map = |name| address("", "configmaps", "ConfigMap", name);
    let secret = |name| address("", "secrets", "Secret", name);
    let thing = |name| address("g.io", "things", "Thing", name);

    for (origin, copy, kind, is_own, expected) in [
        (thing("a"), secret("a"), TOKEN, false, true),
        (
            thing("a"),
            secret("a"),
            "kubernetes.io\\/service-account-token",
            false,
            true,
        ),
        (thing("a"), secret("a"), "bootstrap.kubernetes.io/token", false, true),
        (thing("a"), secret("a"), "Opaque", false, false),
        (map("a"), secret("a"), "", false, false),
        (map("a"), map("kube-root-ca.crt"), "", false, true),
        (map("a"), map("edge-syncer-types-x"), "", true, true),
        (map("edge-syncer-types-x"), map("edge-syncer-types-x"), "", true, false),
        // It is not synced whatever it is called.
        (secret("a"), secret("b"), TOKEN, false, false),
        (secret("a"), secret("b"), "Opaque", false, false),
        (map("kube-root-ca.crt"), map("b"), "", false, false),
    ] {
        let name = &*origin.name.name;
        let object = format!(r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"u"}},"type":"{kind}"}}"#);
        let found = Desired::is_led_astray(&origin, &copy, Selection::Full, &parsed(&bytes(&object)), is_own);
        assert_eq!(found, expected, "{origin:?} {copy:?} {kind}");
        if expected && !is_own {
            assert!(down(&origin, &copy, &object).is_none());
        }
    }
}
