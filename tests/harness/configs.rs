//! The schema of `SyncerConfig` is that of `KubeStellar`.

use serde_json::{Value, json};

use crate::support::objects::{JSON, code, path, syncer_config};
use crate::support::shared_pair;
use crate::support::stage::{CONFIG_API, select};

#[tokio::test]
async fn syncer_config_keeps_absent_and_empty_lists_apart() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let roles = json!({"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1"});
    let mut none = roles.clone();
    none["objects"] = json!([]);
    let spec = json!({"clusterScope": [roles, none]});
    select(&hub, &spec.clone()).await;
    let stored = hub
        .get(CONFIG_API, "SyncerConfig", "", "the-one")
        .await
        .expect("it was created above");
    assert_eq!(stored["spec"], spec);
}

#[tokio::test]
async fn syncer_config_takes_all_fields_of_kubestellar() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let config = syncer_config("the-one", complete_spec());
    // Strict: a field that the schema does not know is an error and is not dropped silently.
    let strict = format!("{}?fieldValidation=Strict", path(CONFIG_API, "syncerconfigs", "", ""));
    let stored = hub
        .send(http::Method::POST, &strict, JSON, Some(&config))
        .await
        .expect("the schema has all fields");
    assert_eq!(stored["spec"], config["spec"]);
    assert_eq!(stored["metadata"]["generation"], 1);

    let status = json!({"lastSyncerHeartbeatTime": "2024-01-15T10:00:15Z"});
    let written = hub
        .patch_status(CONFIG_API, "syncerconfigs", "", "the-one", &status)
        .await;
    assert_eq!(written["status"], status);
    assert_eq!(
        written["metadata"]["generation"], 1,
        "a heartbeat is no change of the spec"
    );
}

#[tokio::test]
async fn syncer_config_refuses_what_kubestellar_refuses() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let wrong = [
        (
            "upsync without resources",
            json!({"upsync": [{"apiGroup": "apps", "names": ["*"]}]}),
        ),
        (
            "no version",
            json!({"clusterScope": [{"group": "", "resource": "nodes"}]}),
        ),
        (
            "no group",
            json!({"clusterScope": [{"resource": "nodes", "apiVersion": "v1"}]}),
        ),
        (
            "no resource",
            json!({"namespaceScope": {"resources": [{"group": "", "apiVersion": "v1"}]}}),
        ),
        ("not a list", json!({"namespaceScope": {"namespaces": "shop"}})),
        (
            "no namespace",
            json!({"namespacedObjects": [{
                "group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": [{"names": ["a"]}],
            }]}),
        ),
    ];
    for (what, spec) in wrong {
        let refused = hub.try_create(&syncer_config("wrong", spec)).await;
        assert_eq!(code(&refused.expect_err(what)), 422, "{what}");
    }
    for (what, spec) in [
        ("empty", json!({})),
        ("only resources", json!({"upsync": [{"resources": []}]})),
    ] {
        hub.try_create(&syncer_config(&what.replace(' ', "-"), spec))
            .await
            .expect(what);
    }
}

/// The example of the specification, with every field that there is.
fn complete_spec() -> Value {
    json!({
        "namespaceScope": {
            "namespaces": ["shop"],
            "resources": [
                {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
                {"group": "", "resource": "services", "apiVersion": "v1"},
            ],
        },
        "namespacedObjects": [{
            "group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [
                {"namespace": "shop", "names": ["web-settings", "prices"]},
                {"namespace": "billing", "names": ["*"]},
                {"namespace": "unused", "names": []},
                {"namespace": "unnamed"},
            ],
        }],
        "clusterScope": [
            {"group": "", "resource": "nodes", "apiVersion": "v1", "objects": ["one"]},
            {"group": "metrics.example.org", "resource": "gauges", "apiVersion": "v1beta1"},
            {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": []},
        ],
        "upsync": [
            {"apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": ["shop"], "names": ["*"]},
            {"resources": ["events"]},
        ],
    })
}
