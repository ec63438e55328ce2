//! Whose a copy is: several hubs on one edge, several edges on one hub, and controllers that copy marks.

use serde_json::{Value, json};

use crate::bench::{At, LONG_ENOUGH, says, stays_the_same, syncer_of, uid};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, config_maps, own_group, select, stage, stock};
use crate::support::statuses::{deployment, returns, select_deployments, set_status, status_writes, web};
use crate::support::story::{
    SOON, arrives, copy_equals, crd, custom_object, edit, gone, install_crd, remains, upsync_all,
};
use crate::support::{Objects, PairLease, Server, ServerOptions, Syncer, install_crds, shared_pair};

/// What the sync targets of two hubs, or of two edges, are called.
const FIRST: &str = "uid-of-the-first";
const SECOND: &str = "uid-of-the-second";

fn settings<'a>(shop: &'a str, name: &'a str) -> At<'a> {
    ["v1", "configmaps", shop, name]
}

async fn uid_of(at: &Objects, of: At<'_>) -> String {
    let [api_version, plural, namespace, name] = of;
    uid(&arrives(at, api_version, plural, namespace, name).await)
}

/// Two hubs, each with a config for the same namespace, and one edge.
struct TwoHubs {
    // First, so that on drop the syncers end before what they talk to.
    syncers: [Syncer; 2],
    shop: String,
    hubs: [Objects; 2],
    edge: Objects,
    second: Server,
    pair: PairLease,
}

impl TwoHubs {
    /// `both` is at both of them, `first` and `second` at one.
    async fn begin() -> Self {
        let pair = shared_pair().await;
        let second = Server::start("hub", ServerOptions::default()).await;
        install_crds(&second.objects()).await;
        let shop = pair.namespace("shop");
        let (hubs, edge) = ([pair.hub.objects(), second.objects()], pair.edge.objects());
        for (hub, own) in hubs.iter().zip(["first", "second"]) {
            stock(hub, &shop, &["both", own], &json!({"from": own})).await;
            select(hub, &config_maps(&shop, &["*"])).await;
        }
        // In this order, so that the first one has what both want.
        let first = syncer_of(FIRST, &pair.hub, &pair.edge);
        copy_equals(&edge, &shop, "both", &json!({"from": "first"})).await;
        copy_equals(&edge, &shop, "first", &json!({"from": "first"})).await;
        let other = syncer_of(SECOND, &second, &pair.edge);
        copy_equals(&edge, &shop, "second", &json!({"from": "second"})).await;
        Self {
            syncers: [first, other],
            shop,
            hubs,
            edge,
            second,
            pair,
        }
    }
}

#[tokio::test]
async fn two_hubs_on_one_edge_leave_each_others_copies_alone() {
    let two = TwoHubs::begin().await;
    let shop = &two.shop;
    let mut uids = Vec::new();
    for name in ["both", "first", "second"] {
        uids.push((name, uid_of(&two.edge, settings(shop, name)).await));
    }
    for (name, uid) in &uids {
        stays_the_same(&two.edge, settings(shop, name), uid, LONG_ENOUGH / 3).await;
    }
    // What goes at one hub goes, and nothing else.
    two.hubs[0].delete("v1", "configmaps", shop, "first").await;
    gone(&two.edge, "v1", "configmaps", shop, "first").await;
    two.hubs[1].create(&config_map(shop, "later", json!({}))).await;
    arrives(&two.edge, "v1", "configmaps", shop, "later").await;
    stays_the_same(&two.edge, settings(shop, "second"), &uids[2].1, LONG_ENOUGH / 3).await;
}

/// Each has a record of its own, though both keep it in the same namespace: it says which hub its copies are from.
#[tokio::test]
async fn a_restart_of_two_hubs_syncers_in_one_namespace_holds_no_deletes() {
    let mut two = TwoHubs::begin().await;
    for syncer in &mut two.syncers {
        syncer.terminate().await;
    }
    let _syncers = [
        syncer_of(FIRST, &two.pair.hub, &two.pair.edge),
        syncer_of(SECOND, &two.second, &two.pair.edge),
    ];
    for (hub, own) in two.hubs.iter().zip(["first", "second"]) {
        hub.delete("v1", "configmaps", &two.shop, own).await;
        gone(&two.edge, "v1", "configmaps", &two.shop, own).await;
    }
}

#[tokio::test]
async fn the_hub_that_selects_a_name_second_is_shown_whose_the_copy_is() {
    let mut two = TwoHubs::begin().await;
    let shop = two.shop.clone();
    let object = format!("ConfigMap/{shop}/both");
    says(&mut two.syncers[1], &["WARN", &object, FIRST]).await;
    let copy = copy_equals(&two.edge, &shop, "both", &json!({"from": "first"})).await;
    // What the second hub does with its own says nothing about this copy.
    edit(&two.hubs[1], &shop, "both", &json!({"data": {"from": "another"}})).await;
    two.hubs[1].create(&config_map(&shop, "later", json!({}))).await;
    arrives(&two.edge, "v1", "configmaps", &shop, "later").await;
    stays_the_same(&two.edge, settings(&shop, "both"), &uid(&copy), LONG_ENOUGH / 3).await;
    two.hubs[1].delete("v1", "configmaps", &shop, "both").await;
    stays_the_same(&two.edge, settings(&shop, "both"), &uid(&copy), LONG_ENOUGH / 3).await;
    let after = copy_equals(&two.edge, &shop, "both", &json!({"from": "first"})).await;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        copy["metadata"]["resourceVersion"]
    );
    // It is still the first one's to change and to delete.
    edit(&two.hubs[0], &shop, "both", &json!({"data": {"from": "once more"}})).await;
    copy_equals(&two.edge, &shop, "both", &json!({"from": "once more"})).await;
    two.hubs[0].delete("v1", "configmaps", &shop, "both").await;
    gone(&two.edge, "v1", "configmaps", &shop, "both").await;
    assert!(
        !two.syncers[0].log().contains(SECOND),
        "the first one has met no other's"
    );
}

#[tokio::test]
async fn the_second_hub_has_the_name_when_the_first_gives_it_up() {
    let mut two = TwoHubs::begin().await;
    let shop = two.shop.clone();
    says(&mut two.syncers[1], &["WARN", &format!("ConfigMap/{shop}/both"), FIRST]).await;
    let copy = copy_equals(&two.edge, &shop, "both", &json!({"from": "first"})).await;
    two.hubs[0].delete("v1", "configmaps", &shop, "both").await;
    let other = copy_equals(&two.edge, &shop, "both", &json!({"from": "second"})).await;
    assert_ne!(uid(&copy), uid(&other));
}

/// Their marks are the same, so that each syncer takes the copies of the other hub for its own. It says why it does not delete
/// them, and no advice says so.
#[tokio::test]
async fn two_hubs_with_one_uid_delete_nothing_of_each_other_and_the_log_names_the_cause() {
    let pair = shared_pair().await;
    let second = Server::start("hub", ServerOptions::default()).await;
    install_crds(&second.objects()).await;
    let shop = pair.namespace("shop");
    let (hubs, edge) = ([pair.hub.objects(), second.objects()], pair.edge.objects());
    for (hub, own) in hubs.iter().zip(["first", "second"]) {
        stock(hub, &shop, &[own], &json!({"from": own})).await;
        select(hub, &config_maps(&shop, &["*"])).await;
    }
    let mut first = syncer_of(FIRST, &pair.hub, &pair.edge);
    copy_equals(&edge, &shop, "first", &json!({"from": "first"})).await;
    first.wait_for_log("reason=InSync", SOON).await;
    let mut other = syncer_of(FIRST, &second, &pair.edge);
    copy_equals(&edge, &shop, "second", &json!({"from": "second"})).await;
    for syncer in [&mut first, &mut other] {
        says(syncer, &["WARN", "same --sync-target-uid", "give each its own"]).await;
    }
    for name in ["first", "second"] {
        let copy = uid_of(&edge, settings(&shop, name)).await;
        stays_the_same(&edge, settings(&shop, name), &copy, LONG_ENOUGH).await;
    }
    for syncer in [&first, &other] {
        let log = syncer.log();
        // Not without the other cause, which is to be looked for first.
        for line in log
            .lines()
            .filter(|line| line.contains("by hand") || line.contains("confirm-deletes"))
        {
            assert!(line.contains("same --sync-target-uid"), "{line}\n{log}");
        }
    }
}

#[tokio::test]
async fn two_edges_on_one_hub_leave_each_others_copies_alone() {
    let pair = shared_pair().await;
    let second = Server::start("edge", ServerOptions::default()).await;
    let shop = pair.namespace("shop");
    let (hub, edges) = (pair.hub.objects(), [pair.edge.objects(), second.objects()]);
    for (edge, own) in edges.iter().zip(["first", "second"]) {
        stock(edge, &shop, &["both", own], &json!({"from": own})).await;
    }
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let _first = syncer_of(FIRST, &pair.hub, &pair.edge);
    copy_equals(&hub, &shop, "both", &json!({"from": "first"})).await;
    copy_equals(&hub, &shop, "first", &json!({"from": "first"})).await;
    let mut other = syncer_of(SECOND, &pair.hub, &second);
    copy_equals(&hub, &shop, "second", &json!({"from": "second"})).await;
    says(&mut other, &["WARN", &format!("ConfigMap/{shop}/both"), FIRST]).await;
    let copies: [String; 3] = [
        uid_of(&hub, settings(&shop, "both")).await,
        uid_of(&hub, settings(&shop, "first")).await,
        uid_of(&hub, settings(&shop, "second")).await,
    ];
    edges[1].delete("v1", "configmaps", &shop, "both").await;
    edges[1].create(&config_map(&shop, "later", json!({}))).await;
    arrives(&hub, "v1", "configmaps", &shop, "later").await;
    for (name, uid) in ["both", "first", "second"].into_iter().zip(&copies) {
        stays_the_same(&hub, settings(&shop, name), uid, LONG_ENOUGH / 3).await;
    }
    copy_equals(&hub, &shop, "both", &json!({"from": "first"})).await;
    for name in ["both", "first"] {
        edges[0].delete("v1", "configmaps", &shop, name).await;
        gone(&hub, "v1", "configmaps", &shop, name).await;
    }
    stays_the_same(&hub, settings(&shop, "second"), &copies[2], LONG_ENOUGH / 3).await;
}

/// The hub has one status for an object, that of one edge. Before, each overwrote the other's for ever.
#[tokio::test]
async fn two_edges_that_return_the_status_of_one_object_do_not_fight() {
    let pair = shared_pair().await;
    let second = Server::start("edge", ServerOptions::default()).await;
    let shop = pair.namespace("shop");
    let (hub, edges) = (pair.hub.objects(), [pair.edge.objects(), second.objects()]);
    hub.create(&namespace(&shop)).await;
    hub.create(&deployment(&shop, "web:1")).await;
    select_deployments(&hub, &shop).await;
    let servers = [(FIRST, &pair.edge), (SECOND, &second)];
    let mut syncers = servers.map(|(target, edge)| syncer_of(target, &pair.hub, edge));
    for edge in &edges {
        arrives(edge, "apps/v1", "deployments", &shop, "web").await;
    }
    let change = async |count: u32| {
        for (edge, replicas) in edges.iter().zip([1, 2]) {
            let status = json!({"replicas": replicas, "observedGeneration": count});
            set_status(edge, web(&shop), true, &status).await;
        }
    };
    change(1).await;
    says(
        &mut syncers[1],
        &["WARN", "reason=StatusOfAnother", "deployments.apps", FIRST],
    )
    .await;
    // The first in the alphabet goes on, and the other does not, though both have more to say.
    let mark = pair.hub.audit_mark();
    for count in 2..8 {
        change(count).await;
        returns(&hub, web(&shop), &json!({"replicas": 1, "observedGeneration": count})).await;
    }
    let writes = status_writes(&pair, mark, "/deployments/web/status");
    assert!(writes.len() <= 6 + 2, "{} writes of 6 statuses", writes.len());
    assert_eq!(
        syncers[1].log().matches("reason=StatusOfAnother").count(),
        1,
        "one line"
    );
}

/// As Knative does: the core Service that a controller makes for a Service of its own has all labels and annotations of
/// that, the marks too.
#[tokio::test]
async fn an_object_of_another_group_that_carries_copied_marks_survives() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "services", true)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "services", &shop, "web", 1)).await;
    let core = service(&shop, "own", &json!({}));
    hub.create(&core).await;
    let all = |group: &str| {
        json!({"group": group, "resource": "services", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]})
    };
    select(&hub, &json!({"namespacedObjects": [all(&group), all("")]})).await;
    let _syncer = pair.syncer(&[]);
    let copy = arrives(&edge, &version, "services", &shop, "web").await;
    arrives(&edge, "v1", "services", &shop, "own").await;
    let made = edge.create(&service(&shop, "web", &copy["metadata"])).await;
    stays_the_same(&edge, ["v1", "services", &shop, "web"], &uid(&made), LONG_ENOUGH).await;
    // Not even when what it was copied from goes.
    hub.delete(&version, "services", &shop, "web").await;
    gone(&edge, &version, "services", &shop, "web").await;
    stays_the_same(&edge, ["v1", "services", &shop, "web"], &uid(&made), LONG_ENOUGH / 3).await;
}

/// A core Service with labels and annotations of other metadata.
fn service(shop: &str, name: &str, like: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": shop, "name": name, "labels": like["labels"], "annotations": like["annotations"]},
        "spec": {"ports": [{"port": 80}]},
    })
}

/// Somebody at the edge applies what is there already: nothing is written for that, and nothing is said.
#[tokio::test]
async fn an_equal_apply_at_the_edge_is_no_drift() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let object = |name: &str, data: Value| config_map(&shop, name, data);
    hub.create(&namespace(&shop)).await;
    for name in ["a", "b"] {
        hub.create(&object(name, json!({"x": "1", "y": "1"}))).await;
    }
    select(&hub, &config_maps(&shop, &["a", "b"])).await;
    let mut syncer = pair.syncer(&[]);
    for name in ["a", "b"] {
        copy_equals(&edge, &shop, name, &json!({"x": "1", "y": "1"})).await;
    }
    syncer.wait_for_log("reason=InSync", SOON).await;
    for manager in ["kubectl", "kubectl", "somebody"] {
        edge.apply_as(manager, &object("a", json!({"x": "1", "y": "1"}))).await;
    }
    let applied = remains(&edge, "v1", "configmaps", &shop, "a").await;
    // The same watch reports this after it.
    edge.apply_as("kubectl", &object("b", json!({"x": "2"}))).await;
    let line = |name: &str| format!("side=edge object=ConfigMap/{shop}/{name} manager=kubectl");
    syncer.wait_for_log(&line("b"), SOON).await;
    copy_equals(&edge, &shop, "b", &json!({"x": "1", "y": "1"})).await;
    let left = remains(&edge, "v1", "configmaps", &shop, "a").await;
    assert_eq!(
        left["metadata"]["resourceVersion"],
        applied["metadata"]["resourceVersion"]
    );
    assert!(!syncer.log().contains(&line("a")), "{}", syncer.log());
    // What the hub drops goes all the same, though others have applied it too.
    let less = json!({"data": {"y": null}});
    hub.merge_patch("v1", "configmaps", &shop, "a", &less).await;
    copy_equals(&edge, &shop, "a", &json!({"x": "1"})).await;
}
