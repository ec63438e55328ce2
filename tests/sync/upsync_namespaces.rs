//! Namespaces that upsync makes at the hub and clears away again, and what deselecting and restarts mean to upsync.

use crate::support::flow::upsync_config_maps;
use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, deselect, numbered, select, stage, stock};
use crate::support::story::{
    SOON, annotation, arrives, copy_equals, edit, gone, leaves, remains, stays_absent, uids, upsync_all,
};
use crate::support::{AuditEvent, AuditMark, Objects, Pair, SYNCER, Syncer, eventually, flow, lines, shared_pair};
use serde_json::{Value, json};

in_both_modes!(
    a_namespace_is_made_at_the_hub_for_the_first_object_and_marked,
    only_an_empty_namespace_that_upsync_has_made_is_deleted_at_the_hub,
    what_comes_back_after_its_namespace_has_been_deleted_gets_a_new_one,
    a_namespace_emptied_while_the_syncer_was_away_is_deleted_at_the_hub,
    a_namespace_emptied_just_before_a_restart_is_deleted_at_the_hub,
    deselecting_keeps_what_is_at_the_hub_until_the_edge_deletes_it_in_either_order,
    what_the_edge_deletes_while_it_is_away_goes_also_when_nothing_selects_it_any_more,
    an_edge_restart_loses_and_doubles_nothing,
    an_outage_of_the_hub_delays_upsync_and_loses_nothing,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    kill_9_at_any_moment_loses_nothing_on_the_way_up,
    a_restart_with_everything_synced_writes_nothing_at_the_hub,
);

/// A test that begins with one `ConfigMap` that has gone up.
async fn one_goes_up(flags: Mode) -> (Stage, Syncer) {
    let stage = stage().await;
    stock(&stage.edge, &stage.shop, &["a"], &json!({})).await;
    select(&stage.hub, &upsync_config_maps(&stage.shop, &["*"])).await;
    let syncer = stage.pair.syncer(flags);
    arrives(&stage.hub, "v1", "configmaps", &stage.shop, "a").await;
    (stage, syncer)
}

async fn a_namespace_is_made_at_the_hub_for_the_first_object_and_marked(flags: Mode) {
    let pair = shared_pair().await;
    let [used, unused] = ["used", "unused"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&used, &unused] {
        stock(&edge, space, &["not-selected"], &json!({})).await;
    }
    select(
        &hub,
        &json!({"upsync": [{"resources": ["configmaps"], "namespaces": ["*"], "names": ["a", "proof"]}]}),
    )
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
        stock(&edge, space, &["a"], &json!({})).await;
        items.push(upsync_all("", &["configmaps"], space));
    }
    select(&hub, &json!({"upsync": items})).await;
    let _syncer = pair.syncer(flags);
    for space in [&there, &shared, &made] {
        arrives(&hub, "v1", "configmaps", space, "a").await;
    }
    // What every cluster puts into a namespace does not count, anything else does.
    hub.create(&config_map(&made, "kube-root-ca.crt", json!({}))).await;
    hub.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shared, "name": "theirs"}}))
        .await;
    // In this order, so that the last one to go is the proof that the others were read.
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

// It is kept for ten seconds, in which the syncer crashes; after that nothing selects anything.
async fn a_namespace_emptied_just_before_a_restart_is_deleted_at_the_hub(flags: Mode) {
    let (Stage { pair, shop, hub, edge }, mut syncer) = one_goes_up(flags).await;
    deselect(&hub).await;
    edge.delete("v1", "configmaps", &shop, "a").await;
    gone(&hub, "v1", "configmaps", &shop, "a").await;
    syncer.kill();
    remains(&hub, "v1", "namespaces", "", &shop).await;
    let _syncer = pair.syncer(flags);
    leaves(&hub, &shop).await;
}

async fn what_comes_back_after_its_namespace_has_been_deleted_gets_a_new_one(flags: Mode) {
    let (stage, mut syncer) = one_goes_up(flags).await;
    let (shop, hub, edge) = (&stage.shop, &stage.hub, &stage.edge);
    edge.delete("v1", "configmaps", shop, "a").await;
    leaves(hub, shop).await;
    // As long as it is on its way out, nothing can be created in it.
    edge.create(&config_map(shop, "a", json!({"v": "2"}))).await;
    syncer.wait_for_log("is being terminated", SOON).await;
    hub.remove_namespaces(std::slice::from_ref(shop)).await;
    copy_equals(hub, shop, "a", &json!({"v": "2"})).await;
    let space = arrives(hub, "v1", "namespaces", "", shop).await;
    assert_eq!(annotation(&space, "upsynced"), json!(format!("Namespace//{shop}")));
}

async fn a_namespace_emptied_while_the_syncer_was_away_is_deleted_at_the_hub(flags: Mode) {
    let (Stage { pair, shop, hub, edge }, mut syncer) = one_goes_up(flags).await;
    syncer.kill();
    edge.remove_namespaces(std::slice::from_ref(&shop)).await;
    let _syncer = pair.syncer(flags);
    gone(&hub, "v1", "configmaps", &shop, "a").await;
    leaves(&hub, &shop).await;
}

// As in `restart.rs`, the other way round.
async fn deselecting_keeps_what_is_at_the_hub_until_the_edge_deletes_it_in_either_order(flags: Mode) {
    let flow = flow::upsync().await;
    let _syncer = flow.deselected_in_either_order(flags).await;
    leaves(&flow.to, &flow.shop).await;
}

async fn what_the_edge_deletes_while_it_is_away_goes_also_when_nothing_selects_it_any_more(flags: Mode) {
    let flow = flow::upsync().await;
    let mut syncer = flow.changed_while_it_is_away(flags).await;
    // No config names the type any more when it comes back.
    syncer.kill();
    deselect(&flow.to).await;
    flow.from.delete("v1", "configmaps", &flow.shop, "kept").await;
    let _syncer = flow.pair.syncer(flags);
    flow.copy_goes("kept").await;
    flow.copy_remains("lost").await;
}

async fn an_edge_restart_loses_and_doubles_nothing(flags: Mode) {
    let Stage {
        mut pair,
        shop,
        hub,
        edge,
    } = stage().await;
    let names = numbered(10);
    stock(&edge, &shop, &names, &json!({"v": "1"})).await;
    select(&hub, &upsync_config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    let uids = uids(&hub, &shop, &names, &json!({"v": "1"})).await;
    // At once, so that the syncer may or may not have heard of these.
    edge.delete("v1", "configmaps", &shop, "c0").await;
    edge.replace(&config_map(&shop, "c1", json!({"v": "2"}))).await;
    edge.create(&config_map(&shop, "new", json!({"v": "1"}))).await;
    pair.edge.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("edge"), SOON).await;
    // What people do at the hub meanwhile is corrected as well.
    edit(&hub, &shop, "c2", &json!({"data": {"v": "tampered"}})).await;
    pair.edge.start_apiserver().await;
    let edge = pair.edge.objects();
    edge.replace(&config_map(&shop, "c3", json!({"v": "3"}))).await;
    gone(&hub, "v1", "configmaps", &shop, "c0").await;
    copy_equals(&hub, &shop, "new", &json!({"v": "1"})).await;
    for (name, uid) in names.iter().zip(&uids).skip(1) {
        let value = match name.as_str() {
            "c1" => "2",
            "c3" => "3",
            _ => "1",
        };
        let copy = copy_equals(&hub, &shop, name, &json!({"v": value})).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "{name} was created again");
    }
    assert!(syncer.is_running());
}

async fn an_outage_of_the_hub_delays_upsync_and_loses_nothing(flags: Mode) {
    let Stage {
        mut pair,
        shop,
        hub,
        edge,
    } = stage().await;
    stock(&edge, &shop, &["changed", "deleted"], &json!({"v": "1"})).await;
    select(&hub, &upsync_config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    for name in ["changed", "deleted"] {
        arrives(&hub, "v1", "configmaps", &shop, name).await;
    }
    pair.hub.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    edge.replace(&config_map(&shop, "changed", json!({"v": "2"}))).await;
    edge.delete("v1", "configmaps", &shop, "deleted").await;
    edge.create(&config_map(&shop, "new", json!({"v": "1"}))).await;
    pair.hub.start_apiserver().await;
    let hub = pair.hub.objects();
    copy_equals(&hub, &shop, "changed", &json!({"v": "2"})).await;
    copy_equals(&hub, &shop, "new", &json!({"v": "1"})).await;
    gone(&hub, "v1", "configmaps", &shop, "deleted").await;
}

async fn kill_9_at_any_moment_loses_nothing_on_the_way_up(flags: Mode) {
    let flow = flow::upsync().await;
    let (_syncer, data) = flow.survives_crashes(flags).await;
    for name in &numbered(30)[1..] {
        copy_equals(&flow.to, &flow.shop, name, &data).await;
    }
    flow.copy_goes("c0").await;
}

async fn a_restart_with_everything_synced_writes_nothing_at_the_hub(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &numbered(10), &json!({"v": "1"})).await;
    select(&hub, &upsync_config_maps(&shop, &["*"])).await;
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

async fn watches_the_hub(pair: &Pair, mark: AuditMark) {
    eventually("the syncer watches the hub's copies", SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        let is_watch = |event: &&AuditEvent| event.verb == "watch" && event.uri.contains("/configmaps");
        requests.iter().find(is_watch).map(|_| ()).ok_or("not yet")
    })
    .await;
}
