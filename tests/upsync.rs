//! Upsync between two real API servers, in each mode (spec section 4, scenarios 34 to 36).

mod support;

use serde_json::json;
use support::modes::{Mode, in_both_modes};
use support::objects::{config_map, namespace, syncer_config};
use support::story::{SOON, annotation, arrives, copy_equals, gone};
use support::{Objects, eventually, shared_pair};

/// Waits until the namespace is being deleted; without a controller manager it stays so.
async fn leaves(objects: &Objects, namespace: &str) {
    let what = format!("namespace {namespace} is deleted");
    eventually(&what, SOON, async || {
        match objects.get("v1", "namespaces", "", namespace).await {
            Some(object) if object["metadata"]["deletionTimestamp"].is_null() => Err("it is there".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
}

in_both_modes!(named_and_starred_objects_go_up_follow_and_go,);

async fn named_and_starred_objects_go_up_follow_and_go(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let _syncer = pair.syncer(flags);
    edge.create(&namespace(&shop)).await;
    edge.create(&config_map(&shop, "a", json!({"k": "1"}))).await;
    hub.create(&syncer_config(
        "the-one",
        json!({"upsync": [{"resources": ["configmaps"], "namespaces": [shop], "names": ["*"]}]}),
    ))
    .await;
    let copy = arrives(&hub, "v1", "configmaps", &shop, "a").await;
    assert_eq!(annotation(&copy, "upsynced"), json!(format!("ConfigMap/{shop}/a")));
    edge.replace(&config_map(&shop, "a", json!({"l": "2"}))).await;
    copy_equals(&hub, &shop, "a", &json!({"l": "2"})).await;
    edge.delete("v1", "configmaps", &shop, "a").await;
    gone(&hub, "v1", "configmaps", &shop, "a").await;
    leaves(&hub, &shop).await;
}
