//! The story of the demo under the printed roles and nothing more.

use serde_json::{Value, json};

use crate::bench::{Site, documents, ensure_namespace, pair, roles};
use crate::support::objects::{config_map, syncer_config};
use crate::support::statuses::{deployment, returns, set_status, web};
use crate::support::story::{SOON, arrives, copy_equals, edit, gone, remains};
use crate::support::{AuditMark, Objects, PairLease, SYNCER};

/// What the config of the demo asks for, in this namespace.
pub(crate) fn selection(shop: &str) -> Value {
    json!({
        "namespaceScope": {
            "namespaces": [shop],
            "resources": [
                {"group": "", "resource": "configmaps", "apiVersion": "v1"},
                {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
            ],
        },
        "upsync": [{"apiGroup": "", "resources": ["configmaps"], "namespaces": [shop], "names": ["sales"]}],
    })
}

/// The story of the demo: all that can become of objects while both sides are there.
pub(crate) async fn plays_the_story(hub: &Objects, edge: &Objects, shop: &str) {
    ensure_namespace(hub, shop).await;
    hub.create(&config_map(shop, "prices", json!({"apple": "1"}))).await;
    copy_equals(edge, shop, "prices", &json!({"apple": "1"})).await;
    hub.create(&deployment(shop, "web:1")).await;
    arrives(edge, "apps/v1", "deployments", shop, "web").await;
    edit(hub, shop, "prices", &json!({"data": {"apple": "2"}})).await;
    copy_equals(edge, shop, "prices", &json!({"apple": "2"})).await;
    // What people change and delete at the edge comes back.
    edit(edge, shop, "prices", &json!({"data": {"apple": "999"}})).await;
    copy_equals(edge, shop, "prices", &json!({"apple": "2"})).await;
    edge.delete("v1", "configmaps", shop, "prices").await;
    copy_equals(edge, shop, "prices", &json!({"apple": "2"})).await;
    let status = json!({"observedGeneration": 1, "replicas": 2});
    set_status(edge, web(shop), true, &status).await;
    returns(hub, web(shop), &status).await;
    edge.create(&config_map(shop, "sales", json!({"apples": "1"}))).await;
    copy_equals(hub, shop, "sales", &json!({"apples": "1"})).await;
    edit(edge, shop, "sales", &json!({"data": {"apples": "2"}})).await;
    copy_equals(hub, shop, "sales", &json!({"apples": "2"})).await;
    edge.delete("v1", "configmaps", shop, "sales").await;
    gone(hub, "v1", "configmaps", shop, "sales").await;
}

/// Fails if a server has refused the syncer anything since these marks.
pub(crate) fn nothing_was_refused(pair: &PairLease, marks: [AuditMark; 2]) {
    for (server, mark) in [&pair.hub, &pair.edge].into_iter().zip(marks) {
        let requests = server.requests_since(SYNCER, mark);
        assert!(!requests.is_empty(), "the {} was asked nothing", server.name());
        let refused = requests.iter().find(|request| matches!(request.code, 401 | 403));
        assert_eq!(refused, None, "refused at the {}", server.name());
    }
}

#[tokio::test]
async fn the_story_of_the_demo_needs_no_more_than_the_printed_roles() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    let shop = &*shop;
    pair.hub.objects().create(&syncer_config("demo", selection(shop))).await;
    let mut site = Site::prepare(pair, &["--leader-elect"]).await;
    let mut syncer = site.syncer(&["--leader-elect", "--heartbeat-interval=1s"]);
    let marks = [site.pair.hub.audit_mark(), site.pair.edge.audit_mark()];
    plays_the_story(&site.hub, &site.edge, shop).await;
    nothing_was_refused(&site.pair, marks);
    site.pair.hub.stop_apiserver();
    remains(&site.edge, "v1", "configmaps", shop, "prices").await;
    site.pair.hub.start_apiserver().await;
    let (hub, edge) = (&site.pair.hub.objects(), &site.edge);
    edit(hub, shop, "prices", &json!({"data": {"apple": "3"}})).await;
    copy_equals(edge, shop, "prices", &json!({"apple": "3"})).await;
    // A server that has just started does not know its roles yet, and refuses everything for a moment.
    let marks = [site.pair.hub.audit_mark(), site.pair.edge.audit_mark()];
    hub.delete("v1", "configmaps", shop, "prices").await;
    gone(edge, "v1", "configmaps", shop, "prices").await;
    hub.delete("apps/v1", "deployments", shop, "web").await;
    gone(edge, "apps/v1", "deployments", shop, "web").await;
    arrives(
        edge,
        "coordination.k8s.io/v1",
        "leases",
        "edge-syncer",
        "edge-syncer-site-7",
    )
    .await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", syncer.log());
    nothing_was_refused(&site.pair, marks);
}

#[tokio::test]
async fn roles_are_left_out_unless_they_are_asked_for() {
    let pair = pair().await;
    let spec = json!({"clusterScope": [{"group": "rbac.authorization.k8s.io", "resource": "clusterroles",
        "apiVersion": "v1", "objects": ["reader"]}]});
    pair.hub.objects().create(&syncer_config("roles", spec)).await;
    let without = roles(&pair, "edge", &[]).await;
    assert!(
        without.contains("# Left out: clusterroles.rbac.authorization.k8s.io."),
        "{without}"
    );
    let names = |text: &str| {
        let rules = documents(text)
            .into_iter()
            .filter(|document| document["kind"] == "ClusterRole");
        rules.map(|role| role["rules"].to_string()).collect::<String>()
    };
    assert!(!names(&without).contains("clusterroles"));
    let with = roles(&pair, "edge", &["--allow-escalation"]).await;
    assert!(
        names(&with).contains("escalate") && !with.contains("Left out"),
        "{with}"
    );
    pair.edge
        .objects()
        .delete("rbac.authorization.k8s.io/v1", "clusterroles", "", "reader")
        .await;
}

/// To look for what is in it and to delete it are optional permissions.
#[tokio::test]
async fn a_namespace_that_upsync_has_emptied_is_kept_with_one_line_and_is_no_failure() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    pair.hub
        .objects()
        .create(&syncer_config("demo", selection(&shop)))
        .await;
    let site = Site::prepare(pair, &[]).await;
    let (hub, edge) = (&site.hub, &site.edge);
    let mut syncer = site.syncer(&[]);
    ensure_namespace(edge, &shop).await;
    edge.create(&config_map(&shop, "sales", json!({"apples": "1"}))).await;
    copy_equals(hub, &shop, "sales", &json!({"apples": "1"})).await;
    edge.delete("v1", "configmaps", &shop, "sales").await;
    gone(hub, "v1", "configmaps", &shop, "sales").await;
    syncer.wait_for_log("reason=NamespaceLeft", SOON).await;
    assert!(hub.get("v1", "namespaces", "", &shop).await.is_some());
    let log = syncer.log();
    assert!(!log.contains("reason=Forbidden"), "{log}");
    assert_eq!(log.matches("reason=NamespaceLeft").count(), 1, "{log}");
}
