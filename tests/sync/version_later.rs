//! A type whose configured version the edge serves a moment later than another one.

use crate::support::objects::namespace;
use crate::support::stage::{Stage, select, stage};
use crate::support::story::{SOON, arrives, crd, custom_object, drop_crds};
use crate::support::wait_for_crd;
use serde_json::{Value, json};

/// Found with the `ClusterPolicies` of Kyverno, which exist at `v1` and `v2beta1`: an API server publishes the versions of a new
/// CRD one after the other. Read in between, the edge served `v2beta1` only, and the copies were refused for good.
#[tokio::test]
async fn a_version_that_the_edge_serves_later_than_another_is_used_from_then_on() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    let at_hub = crd(&group, "gauges", true);
    let mut at_edge = at_hub.clone();
    // It does not have the fields of v1.
    let other = json!({"name": "v2", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}});
    at_edge["spec"]["versions"] = json!([other]);
    hub.create(&at_hub).await;
    edge.create(&at_edge).await;
    for side in [&hub, &edge] {
        wait_for_crd(side, &definition).await;
    }
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "gauge", 1)).await;
    let selection = json!({"namespaceScope": {"namespaces": [shop], "resources": [
        {"group": group, "resource": "gauges", "apiVersion": "v1"},
    ]}});
    select(&hub, &selection).await;
    let mut syncer = pair.syncer(&[]);
    syncer
        .wait_for_log(
            "reason=OtherVersionUsed msg=\"a side serves another version, which is used there\" side=edge",
            SOON,
        )
        .await;

    let mut both = json!([at_hub["spec"]["versions"][0], other]);
    both[1]["storage"] = json!(false);
    let patch = json!({"spec": {"versions": both}});
    edge.merge_patch(
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "",
        &definition,
        &patch,
    )
    .await;
    let copy = arrives(&edge, &format!("{group}/v1"), "gauges", &shop, "gauge").await;
    assert_eq!(copy["spec"], json!({"size": 1}));
    assert_eq!(copy["status"], Value::Null);
    drop_crds(&[&hub, &edge], &[&definition]).await;
}
