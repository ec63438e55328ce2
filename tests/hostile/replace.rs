//! `edge.kubestellar.io/replace` deletes a copy to recreate it: never what was there before, and only if the edge would take
//! the new one.

use serde_json::{Value, json};

use crate::bench::{LONG_ENOUGH, says, stays_the_same, uid};
use crate::managers::patch_as;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace, path};
use crate::support::stage::{Stage, config_maps, own_group, select, stage};
use crate::support::story::{
    a_while, annotation, arrives, becomes, copy_equals, crd, custom_object, drop_crds, edit, install_crd,
};

in_both_modes!(
    what_was_there_before_is_never_replaced,
    what_the_edge_would_not_take_as_a_new_object_is_not_replaced,
    what_somebody_makes_immutable_at_the_edge_is_replaced_where_the_hub_allows_it,
);

fn replaceable(mut object: Value) -> Value {
    object["metadata"]["annotations"] = json!({"edge.kubestellar.io/replace": "true"});
    object
}

async fn what_was_there_before_is_never_replaced(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    let before = edge
        .create(&config_map(&shop, "a", json!({"v": "edge", "kept": "x"})))
        .await;
    hub.create(&namespace(&shop)).await;
    for name in ["a", "b"] {
        hub.create(&replaceable(config_map(&shop, name, json!({"v": "1"}))))
            .await;
    }
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    let is_adopted = |copy: &Value| copy["data"]["v"] == "1" && annotation(copy, "adopted") == "true";
    becomes(&edge, ["v1", "configmaps", &shop, "a"], "is adopted", is_adopted).await;
    let other = copy_equals(&edge, &shop, "b", &json!({"v": "1"})).await;
    // A controller at the edge sees to it that nobody changes them.
    for name in ["a", "b"] {
        edit(&edge, &shop, name, &json!({"immutable": true})).await;
        edit(&hub, &shop, name, &json!({"data": {"v": "2"}})).await;
    }
    let (object, of, before) = (
        format!("ConfigMap/{shop}/a"),
        ["v1", "configmaps", &shop, "a"],
        uid(&before),
    );
    let words = ["WARN", &object, "immutable"];
    tokio::join!(
        stays_the_same(&edge, of, &before, LONG_ENOUGH / 3),
        says(&mut syncer, &words),
    );
    // What the syncer has made itself is replaced.
    let replaced = copy_equals(&edge, &shop, "b", &json!({"v": "2"})).await;
    assert_ne!(uid(&replaced), uid(&other));
    stays_the_same(&edge, of, &before, a_while()).await;
    let copy = arrives(&edge, "v1", "configmaps", &shop, "a").await;
    assert_eq!(copy["data"]["kept"], "x");
}

async fn what_the_edge_would_not_take_as_a_new_object_is_not_replaced(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let plain = crd(&group, "gauges", true);
    let mut strict = plain.clone();
    strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [
            {"rule": "self.size >= 2", "message": "a gauge is immutable below 2"}]}}});
    install_crd(&[&hub], &plain).await;
    install_crd(&[&edge], &strict).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&replaceable(custom_object(&group, "gauges", &shop, "a", 2)))
        .await;
    let all = json!([{"group": group, "resource": "gauges", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]}]);
    select(&hub, &json!({"namespacedObjects": all})).await;
    let mut syncer = pair.syncer(flags);
    let copy = arrives(&edge, &version, "gauges", &shop, "a").await;
    let smaller = json!({"spec": {"size": 1}});
    hub.merge_patch(&version, "gauges", &shop, "a", &smaller).await;
    let (object, of, copy) = (
        format!("Gauge/{shop}/a"),
        [version.as_str(), "gauges", &shop, "a"],
        uid(&copy),
    );
    let words = ["WARN", &object, "is immutable below"];
    tokio::join!(
        stays_the_same(&edge, of, &copy, LONG_ENOUGH / 3),
        says(&mut syncer, &words),
    );
    stays_the_same(&edge, of, &copy, a_while()).await;
    // What it does take arrives.
    hub.merge_patch(&version, "gauges", &shop, "a", &json!({"spec": {"size": 3}}))
        .await;
    let copy = becomes(&edge, of, "has grown", |copy| copy["spec"]["size"] == 3).await;
    stays_the_same(&edge, of, &uid(&copy), a_while()).await;
    let name = plain["metadata"]["name"].as_str().expect("it has a name");
    drop_crds(&[&hub, &edge], &[name]).await;
}

// Found from outside: the advice was to change the field back where the object comes from, which does not have it.
async fn what_somebody_makes_immutable_at_the_edge_is_replaced_where_the_hub_allows_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let names = ["kept", "replaced"];
    for name in names {
        let object = config_map(&shop, name, json!({"v": "1"}));
        let object = if name == "kept" { object } else { replaceable(object) };
        hub.create(&object).await;
    }
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    for name in names {
        let before = uid(&copy_equals(&edge, &shop, name, &json!({"v": "1"})).await);
        let target = path("v1", "configmaps", &shop, name);
        patch_as(&edge, "kubectl-replace", &target, &json!({"immutable": true})).await;
        edit(&hub, &shop, name, &json!({"data": {"v": "2"}})).await;
        if name == "kept" {
            let object = format!("ConfigMap/{shop}/kept");
            says(
                &mut syncer,
                &["WARN", &object, "the copy itself is immutable: delete it there"],
            )
            .await;
            edge.delete("v1", "configmaps", &shop, name).await;
        }
        let copy = copy_equals(&edge, &shop, name, &json!({"v": "2"})).await;
        assert!(uid(&copy) != before && copy["immutable"].is_null(), "{copy}");
    }
}
