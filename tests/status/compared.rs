//! What the objects of both sides show.

use serde_json::{Value, json};

use crate::bench::{comes_to, compared};
use crate::support::objects::config_map;
use crate::support::stage::{Stage, all_of, select, stage, stock};

const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
const OWNER: &str = "edge.kubestellar.io/owner";

#[tokio::test]
async fn each_object_that_is_not_in_place_is_named_with_what_is_there() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
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
    stock(hub, shop, &names, &json!({"k": "v"})).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "token",
        "annotations": {"kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"});
    hub.create(
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": shop, "name": "default"}}),
    )
    .await;
    hub.create(&secret).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("", "secrets")])).await;
    let mut syncer = pair.syncer(&[]);
    comes_to(&stage, 0, &[]).await;
    compared(&stage, &[]).await.ends_with(0);
    syncer.terminate().await;

    let annotate = |name: &'static str, annotations: Value| async move {
        let patch = json!({"metadata": {"annotations": annotations}});
        edge.merge_patch("v1", "configmaps", shop, name, &patch).await;
    };
    edge.delete("v1", "configmaps", shop, "missing").await;
    annotate("foreign", json!({DOWNSYNCED: null, OWNER: null})).await;
    annotate("another", json!({OWNER: "u/configmaps/another"})).await;
    annotate("unlabelled", json!({})).await;
    let label = json!({"metadata": {"labels": {DOWNSYNCED: null}}});
    edge.merge_patch("v1", "configmaps", shop, "unlabelled", &label).await;
    edge.merge_patch("v1", "configmaps", shop, "differing", &json!({"data": {"k": "other"}}))
        .await;
    for name in ["replaced", "gone"] {
        hub.delete("v1", "configmaps", shop, name).await;
    }
    hub.create(&config_map(shop, "replaced", json!({"k": "v"}))).await;

    let json = compared(&stage, &["-o", "json"]).await.ends_with(1).json();
    let objects = json["edge"]["objects"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<(String, String)> = objects
        .iter()
        .map(|object| {
            assert_eq!(object["side"], "edge");
            let name = object["object"].as_str().unwrap_or_default().rsplit('/').next();
            (
                name.unwrap_or_default().to_owned(),
                object["state"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    found.sort();
    let expected = [
        ("another", "OfAnotherSyncer"),
        ("foreign", "Foreign"),
        ("gone", "Left"),
        ("missing", "Missing"),
        ("replaced", "OfEarlierOrigin"),
        ("unlabelled", "Unlabelled"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(name, state)| (name.to_owned(), state.to_owned())).into();
    assert_eq!(found, expected, "{json:#}");
    // Of one config, what others select is not left over.
    let json = compared(&stage, &["-o", "json", "--config=the-one"])
        .await
        .ends_with(1)
        .json();
    let objects = json["edge"]["objects"].as_array().cloned().unwrap_or_default();
    assert!(objects.iter().all(|object| object["state"] != "Left"), "{json:#}");

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
        compared(&stage, &["--object", &object])
            .await
            .ends_with(code)
            .says(words);
    }
    let token = format!("Secret/{shop}/token");
    compared(&stage, &["--object", &token])
        .await
        .ends_with(1)
        .says("is never synced");
    let other = format!("Pod/{shop}/a");
    compared(&stage, &["--object", &other])
        .await
        .ends_with(1)
        .says("no config selects objects of the kind Pod in namespaces");
}
