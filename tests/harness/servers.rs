//! Servers that stop and come back, and what one test leaves to the next.

use std::time::Duration;

use serde_json::{Value, json};

use crate::SOON;
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::stage::CONFIG_API;
use crate::support::{Server, ServerOptions, eventually, shared_pair};

#[tokio::test]
async fn a_paused_server_does_not_answer_until_resumed() {
    let mut pair = shared_pair().await;
    let hub = pair.hub.objects();
    pair.hub.pause();
    let answer = tokio::time::timeout(Duration::from_millis(500), hub.read("/version")).await;
    assert!(answer.is_err(), "a paused server has answered");
    pair.edge
        .objects()
        .read("/version")
        .await
        .expect("the other side is not paused");
    pair.hub.resume();
    tokio::time::timeout(SOON, hub.read("/version"))
        .await
        .expect("in time")
        .expect("a resumed server answers");
}

#[tokio::test]
async fn a_stopped_server_comes_back_with_its_data() {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let edge = pair.edge.objects();
    let before = edge.create(&namespace(&shop)).await;
    let url = pair.edge.url().to_owned();
    pair.edge.stop_apiserver();
    edge.read("/version").await.expect_err("nobody listens");
    pair.edge.start_apiserver().await;
    assert_eq!(pair.edge.url(), url);
    let after = edge
        .get("v1", "namespaces", "", &shop)
        .await
        .expect("the namespace has survived");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // The next test finds both sides running whatever this one leaves behind.
    pair.hub.pause();
    pair.edge.stop_apiserver();
}

#[tokio::test]
async fn a_lease_starts_without_configs_and_with_fresh_namespaces() {
    let first = shared_pair().await;
    let (hub, edge) = (first.hub.objects(), first.edge.objects());
    let shop = first.namespace("shop");
    assert_ne!(shop, first.namespace("shop"));
    let mut config = syncer_config("held", json!({}));
    config["metadata"]["finalizers"] = json!(["example.org/held"]);
    hub.create(&config).await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
        let mut held = config_map(&shop, "held", json!({}));
        held["metadata"]["finalizers"] = json!(["example.org/held"]);
        side.create(&held).await;
    }
    let waiting = tokio::time::timeout(Duration::from_millis(200), shared_pair()).await;
    assert!(waiting.is_err(), "two tests have the pair at the same time");
    drop(first);

    let second = shared_pair().await;
    assert_eq!(hub.list(CONFIG_API, "syncerconfigs", "", "").await, Vec::<Value>::new());
    for side in [&hub, &edge] {
        assert_eq!(side.get("v1", "configmaps", &shop, "held").await, None);
        assert_eq!(side.get("v1", "namespaces", "", &shop).await, None);
    }
    drop(second);
}

#[tokio::test]
async fn the_controller_manager_removes_namespaces() {
    let options = ServerOptions {
        controller_manager: true,
        extra_args: Vec::new(),
    };
    let server = Server::start("edge", options).await;
    let objects = server.objects();
    objects.create(&namespace("shop")).await;
    objects.create(&config_map("shop", "web", json!({}))).await;
    objects.delete("v1", "namespaces", "", "shop").await;
    eventually("the namespace goes", SOON, async || {
        match objects.try_get("v1", "namespaces", "", "shop").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
