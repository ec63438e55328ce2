//! Namespaces that upsync makes at the hub and clears away again, and what deselecting and restarts mean to upsync
//! (spec sections 3.7 and 4, scenarios 34, 37 and 39).

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::modes::{Mode, in_both_modes, in_mode};
use support::objects::{config_map, namespace, syncer_config};
use support::story::{
    SOON, annotation, arrives, copy_equals, gone, leaves, remains, reselect, stays_absent, upsync_all,
};
use support::{AuditEvent, Objects, Pair, eventually, shared_pair};

in_both_modes!(
    a_namespace_is_made_at_the_hub_for_the_first_object_and_marked,
    only_an_empty_namespace_that_upsync_has_made_is_deleted_at_the_hub,
    what_comes_back_after_its_namespace_has_been_deleted_gets_a_new_one,
    a_namespace_emptied_while_the_syncer_was_away_is_deleted_at_the_hub,
    deselecting_keeps_what_is_at_the_hub_until_the_edge_deletes_it_in_either_order,
    what_the_edge_deletes_while_it_is_away_goes_also_when_nothing_selects_it_any_more,
    an_edge_restart_loses_and_doubles_nothing,
    an_outage_of_the_hub_delays_upsync_and_loses_nothing,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    kill_9_at_any_moment_loses_nothing_on_the_way_up,
    a_restart_with_everything_in_step_writes_nothing_at_the_hub,
);

const SYNCER: &str = "edge-syncer/";

fn select(shop: &str, names: &[&str]) -> Value {
    json!({"upsync": [{"resources": ["configmaps"], "namespaces": [shop], "names": names}]})
}

async fn a_namespace_is_made_at_the_hub_for_the_first_object_and_marked(flags: Mode) {
    let pair = shared_pair().await;
    let [used, unused] = ["used", "unused"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&used, &unused] {
        edge.create(&namespace(space)).await;
        edge.create(&config_map(space, "not-selected", json!({}))).await;
    }
    hub.create(&syncer_config(
        "the-one",
        json!({"upsync": [{"resources": ["configmaps"], "namespaces": ["*"], "names": ["a", "proof"]}]}),
    ))
    .await;
    let _syncer = pair.syncer(flags);
    edge.create(&config_map("default", "proof", json!({"v": used}))).await;
    copy_equals(&hub, "default", "proof", &json!({"v": used})).await;
    for space in [&used, &unused] {
        stays_absent(&hub, "v1", "namespaces", "", space).await;
    }
    edge.create(&config_map(&used, "a", json!({}))).await;
    arrives(&hub, "v1", "configmaps", &used, "a").await;
    let space = arrives(&hub, "v1", "namespaces", "", &used).await;
    assert_eq!(annotation(&space, "upsynced"), json!(format!("Namespace//{used}")));
    stays_absent(&hub, "v1", "namespaces", "", &unused).await;
    edge.delete("v1", "configmaps", "default", "proof").await;
    gone(&hub, "v1", "configmaps", "default", "proof").await;
}

async fn only_an_empty_namespace_that_upsync_has_made_is_deleted_at_the_hub(flags: Mode) {
    let pair = shared_pair().await;
    let [there, shared, made] = ["there", "shared", "made"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&there)).await;
    let mut items = Vec::new();
    for space in [&there, &shared, &made] {
        edge.create(&namespace(space)).await;
        edge.create(&config_map(space, "a", json!({}))).await;
        items.push(upsync_all("", &["configmaps"], space));
    }
    hub.create(&syncer_config("the-one", json!({"upsync": items}))).await;
    let _syncer = pair.syncer(flags);
    for space in [&there, &shared, &made] {
        arrives(&hub, "v1", "configmaps", space, "a").await;
    }
    // What every cluster puts into a namespace does not count, anything else does.
    hub.create(&config_map(&made, "kube-root-ca.crt", json!({}))).await;
    hub.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shared, "name": "theirs"}}))
        .await;
    // In this order, so that the last one to go is the proof that the others were looked at.
    for space in [&there, &shared, &made] {
        edge.delete("v1", "configmaps", space, "a").await;
        gone(&hub, "v1", "configmaps", space, "a").await;
    }
    leaves(&hub, &made).await;
    let space = remains(&hub, "v1", "namespaces", "", &there).await;
    assert_eq!(annotation(&space, "upsynced"), Value::Null);
    let space = remains(&hub, "v1", "namespaces", "", &shared).await;
    assert_eq!(annotation(&space, "upsynced"), json!(format!("Namespace//{shared}")));
    remains(&hub, "v1", "secrets", &shared, "theirs").await;
}

async fn what_comes_back_after_its_namespace_has_been_deleted_gets_a_new_one(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    edge.create(&config_map(&shop, "a", json!({}))).await;
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    arrives(&hub, "v1", "configmaps", &shop, "a").await;
    edge.delete("v1", "configmaps", &shop, "a").await;
    leaves(&hub, &shop).await;
    // As long as it is on its way out, nothing can be created in it.
    edge.create(&config_map(&shop, "a", json!({"v": "2"}))).await;
    syncer.wait_for_log("is being terminated", SOON).await;
    hub.remove_namespaces(std::slice::from_ref(&shop)).await;
    copy_equals(&hub, &shop, "a", &json!({"v": "2"})).await;
    let space = arrives(&hub, "v1", "namespaces", "", &shop).await;
    assert_eq!(annotation(&space, "upsynced"), json!(format!("Namespace//{shop}")));
}

async fn a_namespace_emptied_while_the_syncer_was_away_is_deleted_at_the_hub(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    edge.create(&config_map(&shop, "a", json!({}))).await;
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    arrives(&hub, "v1", "configmaps", &shop, "a").await;
    syncer.kill();
    edge.remove_namespaces(std::slice::from_ref(&shop)).await;
    let _syncer = pair.syncer(flags);
    gone(&hub, "v1", "configmaps", &shop, "a").await;
    leaves(&hub, &shop).await;
}

// Spec section 4: as scenario 28, the other way round.
async fn deselecting_keeps_what_is_at_the_hub_until_the_edge_deletes_it_in_either_order(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    for name in ["a", "b", "c"] {
        edge.create(&config_map(&shop, name, json!({}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["a", "b", "c"])))
        .await;
    let _syncer = pair.syncer(flags);
    for name in ["a", "b", "c"] {
        arrives(&hub, "v1", "configmaps", &shop, name).await;
    }
    // Deleted first, deselected second.
    edge.delete("v1", "configmaps", &shop, "a").await;
    reselect(&hub, &select(&shop, &["c"])).await;
    gone(&hub, "v1", "configmaps", &shop, "a").await;
    remains(&hub, "v1", "configmaps", &shop, "b").await;
    // Deselected first, deleted second.
    edge.delete("v1", "configmaps", &shop, "b").await;
    gone(&hub, "v1", "configmaps", &shop, "b").await;
    remains(&hub, "v1", "configmaps", &shop, "c").await;
    // The whole config goes, and then its object.
    hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
        .await;
    remains(&hub, "v1", "configmaps", &shop, "c").await;
    edge.delete("v1", "configmaps", &shop, "c").await;
    gone(&hub, "v1", "configmaps", &shop, "c").await;
    leaves(&hub, &shop).await;
}

// Spec scenario 37.
async fn what_the_edge_deletes_while_it_is_away_goes_also_when_nothing_selects_it_any_more(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    let names = ["selected", "deselected", "kept", "lost"];
    for name in names {
        edge.create(&config_map(&shop, name, json!({}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    let mut uids = BTreeMap::new();
    for name in names {
        let copy = arrives(&hub, "v1", "configmaps", &shop, name).await;
        uids.insert(name, copy["metadata"]["uid"].clone());
    }
    syncer.kill();
    reselect(&hub, &select(&shop, &["selected", "lost"])).await;
    edge.delete("v1", "configmaps", &shop, "selected").await;
    edge.delete("v1", "configmaps", &shop, "deselected").await;
    hub.delete("v1", "configmaps", &shop, "lost").await;
    let mut syncer = pair.syncer(flags);
    gone(&hub, "v1", "configmaps", &shop, "selected").await;
    gone(&hub, "v1", "configmaps", &shop, "deselected").await;
    arrives(&hub, "v1", "configmaps", &shop, "lost").await;
    let kept = remains(&hub, "v1", "configmaps", &shop, "kept").await;
    assert_eq!(kept["metadata"]["uid"], uids["kept"]);
    // No config names the type any more when it comes back.
    syncer.kill();
    hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
        .await;
    edge.delete("v1", "configmaps", &shop, "kept").await;
    let _syncer = pair.syncer(flags);
    gone(&hub, "v1", "configmaps", &shop, "kept").await;
    remains(&hub, "v1", "configmaps", &shop, "lost").await;
}

// Spec scenario 39.
async fn an_edge_restart_loses_and_doubles_nothing(flags: Mode) {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    let name = |index: usize| format!("c{index}");
    for index in 0..10 {
        edge.create(&config_map(&shop, &name(index), json!({"v": "1"}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    let mut uids = Vec::new();
    for index in 0..10 {
        let copy = arrives(&hub, "v1", "configmaps", &shop, &name(index)).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    // At once, so that the syncer may or may not have heard of these.
    edge.delete("v1", "configmaps", &shop, "c0").await;
    edge.replace(&config_map(&shop, "c1", json!({"v": "2"}))).await;
    edge.create(&config_map(&shop, "new", json!({"v": "1"}))).await;
    pair.edge.stop_apiserver();
    syncer.wait_for_log("cannot reach the edge", SOON).await;
    // What people do at the hub meanwhile is put right as well.
    hub.merge_patch("v1", "configmaps", &shop, "c2", &json!({"data": {"v": "tampered"}}))
        .await;
    pair.edge.start_apiserver().await;
    let edge = pair.edge.objects();
    edge.replace(&config_map(&shop, "c3", json!({"v": "3"}))).await;
    gone(&hub, "v1", "configmaps", &shop, "c0").await;
    copy_equals(&hub, &shop, "new", &json!({"v": "1"})).await;
    for (index, uid) in uids.iter().enumerate().skip(1) {
        let value = match index {
            1 => "2",
            3 => "3",
            _ => "1",
        };
        let copy = copy_equals(&hub, &shop, &name(index), &json!({"v": value})).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "c{index} was created again");
    }
    assert!(syncer.is_running());
}

async fn an_outage_of_the_hub_delays_upsync_and_loses_nothing(flags: Mode) {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    for name in ["changed", "deleted"] {
        edge.create(&config_map(&shop, name, json!({"v": "1"}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    for name in ["changed", "deleted"] {
        arrives(&hub, "v1", "configmaps", &shop, name).await;
    }
    pair.hub.stop_apiserver();
    syncer.wait_for_log("cannot reach the hub", SOON).await;
    edge.replace(&config_map(&shop, "changed", json!({"v": "2"}))).await;
    edge.delete("v1", "configmaps", &shop, "deleted").await;
    edge.create(&config_map(&shop, "new", json!({"v": "1"}))).await;
    pair.hub.start_apiserver().await;
    let hub = pair.hub.objects();
    copy_equals(&hub, &shop, "changed", &json!({"v": "2"})).await;
    copy_equals(&hub, &shop, "new", &json!({"v": "1"})).await;
    gone(&hub, "v1", "configmaps", &shop, "deleted").await;
}

// Spec scenario 37.
async fn kill_9_at_any_moment_loses_nothing_on_the_way_up(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    for index in 0..30 {
        edge.create(&config_map(&shop, &format!("c{index}"), json!({"round": "0"})))
            .await;
    }
    let mut uids: BTreeMap<String, Value> = BTreeMap::new();
    for round in 1..=12_u64 {
        let mut syncer = pair.syncer(flags);
        // From before it has connected to after it has come to rest.
        tokio::time::sleep(std::time::Duration::from_millis(round * round * 2)).await;
        syncer.kill();
        for copy in hub
            .list("v1", "configmaps", &shop, "edge.kubestellar.io/upsynced=true")
            .await
        {
            let name = copy["metadata"]["name"].as_str().expect("it has a name").to_owned();
            let uid = copy["metadata"]["uid"].clone();
            let known = uids.entry(name.clone()).or_insert_with(|| uid.clone());
            assert_eq!(*known, uid, "{name} was created again");
        }
        for index in 0..30 {
            let data = json!({"round": round.to_string()});
            edge.replace(&config_map(&shop, &format!("c{index}"), data)).await;
        }
    }
    edge.delete("v1", "configmaps", &shop, "c0").await;
    let _syncer = pair.syncer(flags);
    for index in 1..30 {
        copy_equals(&hub, &shop, &format!("c{index}"), &json!({"round": "12"})).await;
    }
    gone(&hub, "v1", "configmaps", &shop, "c0").await;
}

async fn a_restart_with_everything_in_step_writes_nothing_at_the_hub(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&shop)).await;
    for index in 0..10 {
        edge.create(&config_map(&shop, &format!("c{index}"), json!({"v": "1"})))
            .await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(&[flags, &["--heartbeat-interval=0s"]].concat());
    // Created, and half of them updated, which leaves other field managers behind.
    for index in 0..10 {
        arrives(&hub, "v1", "configmaps", &shop, &format!("c{index}")).await;
    }
    for index in 0..5 {
        edge.replace(&config_map(&shop, &format!("c{index}"), json!({"w": "2"})))
            .await;
        copy_equals(&hub, &shop, &format!("c{index}"), &json!({"w": "2"})).await;
    }
    syncer.terminate().await;
    let before = copies(&hub, &shop).await;
    let mark = pair.hub.audit_mark();
    let _syncer = pair.syncer(&[flags, &["--heartbeat-interval=0s"]].concat());
    watches_the_hub(&pair, mark).await;
    // The proof that it works: one change, one write.
    edge.replace(&config_map(&shop, "c9", json!({"v": "2"}))).await;
    copy_equals(&hub, &shop, "c9", &json!({"v": "2"})).await;
    let others = |copies: &[(String, String)]| -> Vec<(String, String)> {
        copies
            .iter()
            .filter(|(name, _)| !name.contains("c9"))
            .cloned()
            .collect()
    };
    assert_eq!(others(&copies(&hub, &shop).await), others(&before));
    let writes: Vec<AuditEvent> = pair
        .hub
        .requests_since(SYNCER, mark)
        .into_iter()
        .filter(|event| event.is_write() && !event.uri.contains("/c9"))
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

/// Name and resource version of each copy.
async fn copies(hub: &Objects, shop: &str) -> Vec<(String, String)> {
    let copies = hub
        .list("v1", "configmaps", shop, "edge.kubestellar.io/upsynced=true")
        .await;
    let text = |copy: &Value, field: &str| copy["metadata"][field].to_string();
    copies
        .iter()
        .map(|copy| (text(copy, "name"), text(copy, "resourceVersion")))
        .collect()
}

async fn watches_the_hub(pair: &Pair, mark: u64) {
    eventually("the syncer watches the hub's copies", SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        let is_watch = |event: &&AuditEvent| event.verb == "watch" && event.uri.contains("/configmaps");
        requests.iter().find(is_watch).map(|_| ()).ok_or("not yet")
    })
    .await;
}
