//! Several configs at once, and an edge that is away while the hub changes.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::stage::{
    CONFIG_API, Stage, all_of, config_maps, later_configs_are_followed, numbered, select, stage, stock,
};
use crate::support::story::{SOON, annotation, config_map_entry, copy_equals, gone, remains, stays_absent, uids};
use crate::support::{Objects, lines, shared_pair};

in_both_modes!(
    two_configs_act_as_their_union_and_deleting_one_keeps_what_the_other_covers,
    hub_changes_during_an_edge_restart_arrive_without_recreating_any_copy,
);

/// Creates the configs `one`, which selects `first` and `common` in `shop` and all in `other`, and `two`, which selects
/// `common` and `second` in `shop` and `common` in `other`.
async fn select_by_two(hub: &Objects, shop: &str, other: &str) {
    let mut one = all_of(other, &[("", "configmaps")]);
    one["namespacedObjects"] = json!([config_map_entry(shop, &["first", "common"])]);
    hub.create(&syncer_config("one", one)).await;
    let two = [
        config_map_entry(shop, &["common", "second"]),
        config_map_entry(other, &["common"]),
    ];
    hub.create(&syncer_config("two", json!({"namespacedObjects": two})))
        .await;
}

// For `SyncerConfig`s.
async fn two_configs_act_as_their_union_and_deleting_one_keeps_what_the_other_covers(flags: Mode) {
    let pair = shared_pair().await;
    let [shop, other] = ["shop", "other"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let names = [
        (&shop, "first"),
        (&shop, "common"),
        (&shop, "second"),
        (&other, "common"),
        (&other, "first"),
    ];
    for space in [&shop, &other] {
        hub.create(&namespace(space)).await;
    }
    for (space, name) in names {
        hub.create(&config_map(space, name, json!({"v": "1"}))).await;
    }
    hub.create(&config_map(&shop, "neither", json!({}))).await;
    select_by_two(&hub, &shop, &other).await;
    let _syncer = pair.syncer(flags);
    let mut uids = Vec::new();
    for (space, name) in names {
        let copy = copy_equals(&edge, space, name, &json!({"v": "1"})).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    stays_absent(&edge, "v1", "configmaps", &shop, "neither").await;

    hub.delete(CONFIG_API, "syncerconfigs", "", "one").await;
    later_configs_are_followed(&hub, &edge, &shop).await;
    remains(&edge, "v1", "configmaps", &shop, "first").await;
    for (space, name) in names {
        hub.replace(&config_map(space, name, json!({"v": "2"}))).await;
    }
    for ((space, name), uid) in names.into_iter().zip(&uids) {
        // What no config covers any more stays as it was.
        let data = json!({"v": if name == "first" { "1" } else { "2" }});
        let copy = copy_equals(&edge, space, name, &data).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "{space}/{name} was created again");
    }
    remains(&edge, "v1", "configmaps", &shop, "first").await;
    copy_equals(&edge, &shop, "first", &json!({"v": "1"})).await;
    copy_equals(&edge, &other, "first", &json!({"v": "1"})).await;
    // A copy that is covered is still corrected, and all go with their hub objects.
    edge.delete("v1", "configmaps", &other, "common").await;
    copy_equals(&edge, &other, "common", &json!({"v": "2"})).await;
    for (space, name) in names {
        hub.delete("v1", "configmaps", space, name).await;
    }
    for (space, name) in names {
        gone(&edge, "v1", "configmaps", space, name).await;
    }
}

// For downsync.
async fn hub_changes_during_an_edge_restart_arrive_without_recreating_any_copy(flags: Mode) {
    let Stage {
        mut pair,
        shop,
        hub,
        edge,
    } = stage().await;
    let names = numbered(20);
    stock(&hub, &shop, &names, &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    let uids = uids(&edge, &shop, &names, &json!({"v": "1"})).await;
    // The first changes are on their way when the edge goes.
    for name in &names {
        hub.replace(&config_map(&shop, name, json!({"v": "2"}))).await;
        if name == "c5" {
            pair.edge.stop_apiserver();
        }
    }
    hub.delete("v1", "configmaps", &shop, "c0").await;
    hub.create(&config_map(&shop, "new", json!({"v": "2"}))).await;
    // So that it has met the closed door.
    syncer.wait_for_log(&lines::unreachable("edge"), SOON).await;
    pair.edge.start_apiserver().await;
    hub.replace(&config_map(&shop, "c1", json!({"v": "3"}))).await;

    let edge = pair.edge.objects();
    gone(&edge, "v1", "configmaps", &shop, "c0").await;
    copy_equals(&edge, &shop, "new", &json!({"v": "2"})).await;
    for (name, uid) in names.iter().zip(&uids).skip(1) {
        let data = if name == "c1" { "3" } else { "2" };
        let copy = copy_equals(&edge, &shop, name, &json!({"v": data})).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "{name} was created again");
        assert_eq!(annotation(&copy, "adopted"), Value::Null, "{name} is our own copy");
    }
    // It has not missed the restart: changes at the edge and at the hub are seen again.
    edge.delete("v1", "configmaps", &shop, "c2").await;
    copy_equals(&edge, &shop, "c2", &json!({"v": "2"})).await;
    hub.replace(&config_map(&shop, "c3", json!({"v": "4"}))).await;
    copy_equals(&edge, &shop, "c3", &json!({"v": "4"})).await;
    assert!(syncer.is_running());
}
