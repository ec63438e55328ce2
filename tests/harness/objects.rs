//! Objects of a server, as tests write and read them.

use serde_json::json;

use crate::SOON;
use crate::support::objects::{code, config_map, namespace};
use crate::support::story::edit;
use crate::support::{Objects, TEST_USER_AGENT, User, eventually, shared_pair};

#[tokio::test]
async fn stores_objects_at_both_sides() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    for (server, colour) in [(&pair.hub, "red"), (&pair.edge, "blue")] {
        let objects = server.objects();
        objects.create(&namespace(&shop)).await;
        objects
            .create(&config_map(&shop, "web", json!({"colour": colour})))
            .await;
    }
    for (server, colour) in [(&pair.hub, "red"), (&pair.edge, "blue")] {
        let stored = server
            .objects()
            .get("v1", "ConfigMap", &shop, "web")
            .await
            .expect("it was created above");
        assert_eq!(stored["data"], json!({"colour": colour}), "at the {}", server.name());
    }
}

#[tokio::test]
async fn changes_objects_by_every_verb() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let hub = pair.hub.objects();
    hub.create(&namespace(&shop)).await;
    let mut map = hub.create(&config_map(&shop, "web", json!({"a": "1"}))).await;

    map["data"] = json!({"a": "2"});
    hub.replace(&map).await;
    edit(&hub, &shop, "web", &json!({"metadata": {"labels": {"tier": "front"}}})).await;
    let mut applied = config_map(&shop, "web", json!({"b": "3"}));
    applied["metadata"]["labels"] = json!({"team": "x"});
    hub.apply_as("kubectl", &applied).await;

    let now = hub.reread(&map).await.expect("nobody has deleted it");
    assert_eq!(now["data"], json!({"a": "2", "b": "3"}));
    assert_eq!(now["metadata"]["labels"], json!({"team": "x", "tier": "front"}));
    let managers = now["metadata"]["managedFields"]
        .as_array()
        .expect("the server keeps managed fields");
    assert!(
        managers
            .iter()
            .any(|entry| entry["manager"] == "kubectl" && entry["operation"] == "Apply")
    );

    for (selector, count) in [("tier=front,team in (x,y)", 1), ("tier!=front", 0)] {
        let found = hub.list("v1", "configmaps", &shop, selector).await;
        assert_eq!(found.len(), count, "{selector}");
    }
    let conflict = hub
        .try_create(&config_map(&shop, "web", json!({})))
        .await
        .expect_err("it exists");
    assert_eq!(code(&conflict), 409);

    changes_a_status(&hub, &shop).await;

    assert!(hub.delete("v1", "configmaps", &shop, "web").await);
    assert!(!hub.delete("v1", "configmaps", &shop, "web").await);
    assert_eq!(hub.get("v1", "configmaps", &shop, "web").await, None);
}

async fn changes_a_status(hub: &Objects, shop: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    hub.create(&pod).await;
    hub.patch_status("v1", "pods", shop, "web", &json!({"phase": "Running"}))
        .await;
    let pod = hub.get("v1", "Pod", shop, "web").await.expect("it exists");
    assert_eq!(pod["status"]["phase"], "Running");
}

#[tokio::test]
async fn counts_requests_by_user_agent() {
    let pair = shared_pair().await;
    let mark = pair.hub.audit_mark();
    let hub = pair.hub.objects();
    for _ in 0..3 {
        hub.get("v1", "configmaps", "default", "counted").await;
    }
    let requests = eventually("the requests are in the audit log", SOON, async || {
        let mut requests = pair.hub.requests_since(TEST_USER_AGENT, mark);
        requests.retain(|request| request.uri.contains("counted"));
        if requests.len() >= 3 {
            Ok(requests)
        } else {
            Err(format!("{requests:?}"))
        }
    })
    .await;
    assert_eq!(requests.len(), 3, "one event per request: {requests:?}");
    for request in &requests {
        assert_eq!((request.verb.as_str(), request.code), ("get", 404));
        assert_eq!(request.uri, "/api/v1/namespaces/default/configmaps/counted");
        assert_eq!(request.stage, "ResponseComplete");
        assert_eq!((request.user.as_str(), request.is_write()), ("admin", false));
    }
    assert_eq!(pair.hub.requests_since("somebody-else", mark), []);
}

#[tokio::test]
async fn the_limited_user_may_do_nothing() {
    let pair = shared_pair().await;
    let limited = Objects::new(pair.hub.client_as(User::Limited));
    let refused = limited
        .try_list("v1", "configmaps", "default", "")
        .await
        .expect_err("there is no role for it");
    assert_eq!(code(&refused), 403);
}
