//! What the objects of both sides show.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bench::{comes_to, compared};
use crate::support::objects::config_map;
use crate::support::stage::{Stage, all_of, select, stage, stock};

const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
const OWNER: &str = "edge.kubestellar.io/owner";

/// Copies of all these, and a Secret that is never synced; the syncer has ended.
async fn synced(names: &[&str]) -> Stage {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, names, &json!({"k": "v"})).await;
    let account =
        json!({"metadata": {"namespace": shop, "name": "default"}, "apiVersion": "v1", "kind": "ServiceAccount"});
    hub.create(&account).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "token",
        "annotations": {"kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"});
    hub.create(&secret).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("", "secrets")])).await;
    let mut syncer = pair.syncer(&[]);
    comes_to(&stage, 0, &[]).await;
    compared(&stage, &[]).await.ends_with(0);
    syncer.terminate().await;
    stage
}

/// What is done to the copies of these names, and to their origins.
async fn spoil(Stage { shop, hub, edge, .. }: &Stage) {
    for (name, patch) in [
        (
            "foreign",
            json!({"metadata": {"annotations": {DOWNSYNCED: null, OWNER: null}}}),
        ),
        (
            "another",
            json!({"metadata": {"annotations": {OWNER: "u/configmaps/another"}}}),
        ),
        ("unlabelled", json!({"metadata": {"labels": {DOWNSYNCED: null}}})),
        ("differing", json!({"data": {"k": "other"}})),
    ] {
        edge.merge_patch("v1", "configmaps", shop, name, &patch).await;
    }
    edge.delete("v1", "configmaps", shop, "missing").await;
    for name in ["replaced", "gone"] {
        hub.delete("v1", "configmaps", shop, name).await;
    }
    hub.create(&config_map(shop, "replaced", json!({"k": "v"}))).await;
}

/// The states of those that are not in place, by the last part of their names.
fn states(report: &Value) -> BTreeMap<String, Value> {
    let objects = report["edge"]["objects"].as_array().cloned().unwrap_or_default();
    let state = |object: &Value| {
        assert_eq!(object["side"], "edge");
        let name = object["object"].as_str().unwrap_or_default().rsplit('/').next();
        (name.unwrap_or_default().to_owned(), object["state"].clone())
    };
    objects.iter().map(state).collect()
}

#[tokio::test]
async fn each_object_that_is_not_in_place_is_named_with_what_is_there() {
    let names = [
        "same",
        "missing",
        "foreign",
        "another",
        "replaced",
        "gone",
        "differing",
        "unlabelled",
    ];
    let stage = synced(&names).await;
    spoil(&stage).await;
    let shop = &stage.shop;
    let mut expected: BTreeMap<String, Value> = [
        ("another", "OfAnotherSyncer"),
        ("foreign", "Foreign"),
        ("gone", "Left"),
        ("missing", "Missing"),
        ("replaced", "OfEarlierOrigin"),
        ("unlabelled", "Unlabelled"),
    ]
    .map(|(name, state)| (name.to_owned(), json!(state)))
    .into();
    let found = compared(&stage, &["-o", "json"]).await;
    assert_eq!(states(&found.ends_with(1).json()), expected, "{}", found.out);
    // Of one config, what others select is not left over.
    let found = compared(&stage, &["-o", "json", "--config=the-one"]).await;
    expected.remove("gone");
    assert_eq!(states(&found.ends_with(1).json()), expected, "{}", found.out);

    for (name, code, words) in [
        ("same", 0, "in place"),
        ("missing", 1, "edge: there is no ConfigMap/"),
        ("foreign", 1, "an object that no syncer has made is in its place"),
        ("another", 1, "the copy of another sync target is in its place"),
        ("replaced", 1, "the copy is that of an earlier object of the same name"),
        ("gone", 1, "hub: there is no ConfigMap/"),
        // Metadata do not show that.
        ("differing", 1, "differs from its origin: data.k"),
    ] {
        let object = format!("ConfigMap/{shop}/{name}");
        let found = compared(&stage, &["--object", &object]).await;
        found.ends_with(code).says(words);
    }
    for (object, words) in [
        (format!("Secret/{shop}/token"), "is never synced"),
        (
            format!("Pod/{shop}/a"),
            "no config selects objects of the kind Pod in namespaces",
        ),
    ] {
        compared(&stage, &["--object", &object]).await.ends_with(1).says(words);
    }
}
