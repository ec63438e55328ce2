//! What is written to copies, row by row.

use super::*;

const TERMS: Terms<'_> = Terms {
    marks: Marks::Primary("agent"),
    subresources: &["status"],
};

fn key() -> ObjectKey {
    ObjectKey {
        cluster: "c1".to_owned(),
        workspace_path: None,
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    }
}

/// An object in kcp.
fn object(more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "demo.example.org/v1", "kind": "Shop",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "finalizers": ["x"], "resourceVersion": "7"},
        "spec": {"a": 1, "b": [1, 2]},
        "status": {"ready": false},
    });
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn with_metadata(place: &str, texts: &Value) -> Value {
    object(&json!({"metadata": {"name": "web", "namespace": "shop", place: texts}}))
}

fn created(object: &Value) -> Value {
    let name = CopyName {
        namespace: "c1".to_owned(),
        name: "copy".to_owned(),
    };
    create(object, &TERMS, &key(), "local.example.org/v2", "LocalShop", &name)
}

/// The patch after this change of an object whose copy is as it was created.
fn patched(before: &Value, after: &Value) -> Option<Value> {
    patch(
        &state(before, TERMS.subresources),
        after,
        &created(before),
        &TERMS,
        &key(),
    )
}

#[test]
fn a_new_copy_has_the_content_and_leads_back() {
    let expected = json!({
        "apiVersion": "local.example.org/v2", "kind": "LocalShop",
        "metadata": {
            "name": "copy", "namespace": "c1",
            "labels": {
                "syncagent.kcp.io/agent-name": "agent",
                "syncagent.kcp.io/remote-object-cluster": "c1",
                "syncagent.kcp.io/remote-object-name-hash": "ca84d1343b96baa8137c943ed1860e522cacb238",
                "syncagent.kcp.io/remote-object-namespace-hash": crate::json::hash("shop"),
            },
            "annotations": {
                "syncagent.kcp.io/remote-object-name": "web",
                "syncagent.kcp.io/remote-object-namespace": "shop",
            },
        },
        "spec": {"a": 1, "b": [1, 2]},
    });
    assert_eq!(created(&object(&json!({}))), expected);
    let related = Terms {
        marks: Marks::None,
        subresources: &[],
    };
    let name = CopyName {
        namespace: String::new(),
        name: "copy".to_owned(),
    };
    let bare = create(&object(&json!({})), &related, &key(), "v1", "Secret", &name);
    assert_eq!(bare["metadata"], json!({"name": "copy"}));
    // Where the type has no such subresource, it is a field like any other.
    assert_eq!(bare["status"], json!({"ready": false}));
}

#[test]
fn what_belongs_to_an_object_names_its_workspace_on_the_service_cluster_alone() {
    let name = CopyName {
        namespace: "c1".to_owned(),
        name: "copy".to_owned(),
    };
    let terms = |marks| Terms {
        marks,
        subresources: &[],
    };
    let from = Marks::Related {
        label: "claimed.internal.apis.kcp.io/related-to-1",
        namespace: "shop",
        name: "keys",
    };
    let (none, related) = (terms(Marks::None), terms(from));
    let origin = with_metadata("annotations", &json!({kcp::CLUSTER: "of the consumer", "a": "b"}));
    let copy = create(&origin, &related, &key(), "v1", "Secret", &name);
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({"a": "b", kcp::CLUSTER: "c1/shop/keys"})
    );
    let labels = json!({"claimed.internal.apis.kcp.io/related-to-1": "true"});
    assert_eq!(copy["metadata"]["labels"], labels);
    assert_eq!(patch(&origin, &origin, &copy, &related, &key()), None);
    // One that the Go agent has made is marked.
    let bare = create(&origin, &none, &key(), "v1", "Secret", &name);
    assert_eq!(bare["metadata"]["annotations"], json!({"a": "b"}));
    let marked = patch(&origin, &origin, &bare, &related, &key());
    let marks = json!({kcp::CLUSTER: "c1/shop/keys"});
    assert_eq!(
        marked,
        Some(json!({"metadata": {"annotations": marks, "labels": labels}}))
    );
    // What goes the other way takes no mark along.
    let back = create(&copy, &none, &key(), "v1", "Secret", &name);
    assert_eq!(back["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(back["metadata"]["labels"], Value::Null);
}

#[test]
fn what_belongs_to_one_side_is_not_copied() {
    let labels = json!({
        "a": "b",
        "claimed.internal.apis.kcp.io/x": "y",
        "syncagent.kcp.io/agent-name": "of the consumer",
    });
    let annotations = json!({
        "a": "b",
        "kcp.io/cluster": "c1",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "related-resources.syncagent.kcp.io/x.0": "{}",
        "syncagent.kcp.io/deletion-propagation-policy": "orphan",
    });
    for (place, texts) in [("labels", labels), ("annotations", annotations)] {
        let state = state(&with_metadata(place, &texts), &[]);
        assert_eq!(
            state["metadata"],
            json!({"name": "web", "namespace": "shop", place: {"a": "b"}})
        );
    }
}

#[test]
fn only_what_the_object_changed_is_written() {
    let before = object(&json!({}));
    for (change, expected) in [
        (json!({}), None),
        (json!({"status": {"ready": true}}), None),
        (json!({"apiVersion": "demo.example.org/v2"}), None),
        (json!({"spec": {"a": 2, "b": [1, 2]}}), Some(json!({"spec": {"a": 2}}))),
        (json!({"spec": {"b": [1, 2]}}), Some(json!({"spec": {"a": null}}))),
        (json!({"spec": {"a": 1, "b": [2]}}), Some(json!({"spec": {"b": [2]}}))),
        (json!({"data": {"x": "y"}}), Some(json!({"data": {"x": "y"}}))),
    ] {
        assert_eq!(patched(&before, &object(&change)), expected, "{change}");
    }
}

#[test]
fn labels_of_the_object_are_copied_one_by_one() {
    let both = with_metadata("labels", &json!({"a": "1", "b": "2"}));
    let one = with_metadata("labels", &json!({"a": "3"}));
    let none = object(&json!({}));
    let labels = |labels: Value| Some(json!({"metadata": {"labels": labels}}));
    assert_eq!(patched(&both, &one), labels(json!({"a": "3", "b": null})));
    // Those that lead back stay.
    assert_eq!(patched(&both, &none), labels(json!({"a": null, "b": null})));
    assert_eq!(patched(&none, &one), labels(json!({"a": "3"})));
}

#[test]
fn a_copy_that_leads_nowhere_is_repaired() {
    let object = object(&json!({}));
    let state = state(&object, TERMS.subresources);
    for (place, mark) in [
        ("labels", "syncagent.kcp.io/agent-name"),
        ("labels", "syncagent.kcp.io/remote-object-name-hash"),
        ("annotations", "syncagent.kcp.io/remote-object-namespace"),
    ] {
        let mut copy = created(&object);
        let right = copy["metadata"][place][mark].clone();
        copy["metadata"][place][mark] = json!("other");
        let expected = json!({"metadata": {place: {mark: right}}});
        assert_eq!(patch(&state, &object, &copy, &TERMS, &key()), Some(expected.clone()));
        copy["metadata"][place].as_object_mut().unwrap().remove(mark);
        assert_eq!(patch(&state, &object, &copy, &TERMS, &key()), Some(expected));
    }
}

#[test]
fn without_a_last_state_all_content_is_written_over_the_copy() {
    let object = with_metadata("labels", &json!({"a": "1"}));
    let mut copy = created(&object);
    copy["metadata"]["resourceVersion"] = json!("9");
    copy["metadata"]["labels"] = json!({"local": "x", "a": "0"});
    copy["spec"] = json!({"a": 5, "defaulted": true});
    copy["status"] = json!({"ready": true});
    copy["local"] = json!({});
    let new = replace(&object, &copy, &TERMS, &key());
    assert_eq!(new["spec"], object["spec"]);
    assert_eq!(new["status"], json!({"ready": true}));
    assert_eq!(new["local"], json!({}));
    assert_eq!(new["kind"], "LocalShop");
    assert_eq!(new["metadata"]["name"], "copy");
    assert_eq!(new["metadata"]["resourceVersion"], "9");
    let labels = new["metadata"]["labels"].as_object().unwrap();
    assert_eq!((&labels["local"], &labels["a"]), (&json!("x"), &json!("1")));
    assert_eq!(labels["syncagent.kcp.io/agent-name"], "agent");
}

#[test]
fn the_status_goes_back_if_it_differs() {
    for (own, of_copy, expected) in [
        (json!({}), json!({}), None),
        (json!({"status": {"a": 1}}), json!({"status": {"a": 1}}), None),
        (
            json!({"status": {"a": 1}}),
            json!({"status": {"a": 2}}),
            Some(json!({"a": 2})),
        ),
        (json!({}), json!({"status": {}}), Some(json!({}))),
        (json!({"status": {"a": 1}}), json!({}), Some(Value::Null)),
    ] {
        assert_eq!(status(&own, &of_copy), expected, "{own} {of_copy}");
    }
}

// Found from outside: it was kept when the copy was made, and removed by each later change.
#[test]
fn what_is_wanted_to_be_null_is_null() {
    let wanted = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"n": null, "deep": {"x": null}, "list": [null, {"z": null}]}});
    let patch = json!({"metadata": {"labels": {"a": "b", "old": null}},
        "spec": {"n": null, "gone": null, "deep": {"x": null, "y": null}, "list": [null, {"z": null}], "new": {"v": null}}});
    let copy = json!({"metadata": {"uid": "u", "labels": {"old": "1", "own": "2"}}, "status": {"ready": 1},
        "spec": {"n": 3, "gone": 4, "deep": {"x": 1, "y": 2, "drift": 5}, "list": [1]}});
    let expected = json!({"metadata": {"uid": "u", "labels": {"a": "b", "own": "2"}}, "status": {"ready": 1},
        "spec": {"n": null, "deep": {"x": null, "drift": 5}, "list": [null, {"z": null}], "new": {"v": null}}});
    assert!(has_null(&wanted) && !has_null(&json!({"status": {"x": null}, "spec": {"x": [1]}})));
    assert_eq!(merged(&patch, &wanted, &copy), expected);
}
