//! `EdgeSyncConfig`: objects by kind, in both directions. What it renames is in `renaming.rs`.

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::shared_pair;
use crate::support::stage::{
    CONFIG_API, Stage, config_map_ref, custom_ref, deselect_by_kind, later_configs_are_followed, namespace_ref,
    own_group, reselect_by_kind, select_by_kind, stage, stock,
};
use crate::support::story::{
    SOON, annotation, arrives, config_map_entry, copy_equals, crd, custom_object, drop_crds, gone, install_crd,
    remains, stays_absent,
};
use serde_json::{Value, json};

in_both_modes!(
    it_downsyncs_what_it_names_by_kind_and_nothing_else,
    it_upsyncs_from_one_namespace_and_from_all,
    configs_of_both_kinds_act_as_their_union_and_deleting_one_keeps_what_another_covers,
    a_namespace_is_not_implied_and_needs_its_own_entry,
    entries_that_make_no_sense_are_reported_and_block_nothing,
    a_kind_that_nobody_serves_is_reported_and_picked_up_when_it_appears,
    deselecting_an_object_keeps_its_copy_until_the_hub_deletes_it,
);

async fn it_downsyncs_what_it_names_by_kind_and_nothing_else(flags: Mode) {
    let pair = shared_pair().await;
    let [named, starred, other] = ["named", "starred", "other"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&named);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", false)).await;
    for name in ["a", "b"] {
        hub.create(&custom_object(&group, "gauges", "", name, 1)).await;
    }
    for space in [&named, &starred, &other] {
        stock(&hub, space, &["a", "b"], &json!({"v": "1"})).await;
    }
    select_by_kind(
        &hub,
        &json!({"downSyncedResources": [
            namespace_ref(&named),
            namespace_ref(&starred),
            config_map_ref(&named, "a"),
            config_map_ref(&starred, "*"),
            {"group": group, "version": "v1", "kind": "Gauge", "name": "a"},
        ]}),
    )
    .await;
    let _syncer = pair.syncer(flags);
    for (space, name) in [(&named, "a"), (&starred, "a"), (&starred, "b")] {
        let copy = arrives(&edge, "v1", "configmaps", space, name).await;
        assert_eq!(
            annotation(&copy, "downsynced"),
            json!(format!("ConfigMap/{space}/{name}"))
        );
    }
    arrives(&edge, &version, "gauges", "", "a").await;
    stays_absent(&edge, "v1", "configmaps", &named, "b").await;
    stays_absent(&edge, &version, "gauges", "", "b").await;
    assert_eq!(edge.get("v1", "namespaces", "", &other).await, None);
    // They follow, and go.
    hub.replace(&config_map(&starred, "a", json!({"w": "2"}))).await;
    copy_equals(&edge, &starred, "a", &json!({"w": "2"})).await;
    hub.delete("v1", "configmaps", &starred, "a").await;
    gone(&edge, "v1", "configmaps", &starred, "a").await;
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn it_upsyncs_from_one_namespace_and_from_all(flags: Mode) {
    let pair = shared_pair().await;
    let [one, two] = ["one", "two"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&one);
    for plural in ["heres", "everywheres"] {
        install_crd(&[&hub, &edge], &crd(&group, plural, true)).await;
    }
    install_crd(&[&hub, &edge], &crd(&group, "clusters", false)).await;
    for space in [&one, &two] {
        edge.create(&namespace(space)).await;
        for plural in ["heres", "everywheres"] {
            edge.create(&custom_object(&group, plural, space, "a", 1)).await;
        }
    }
    edge.create(&custom_object(&group, "clusters", "", "a", 1)).await;
    select_by_kind(
        &hub,
        &json!({"upSyncedResources": [
            custom_ref(&group, "Here", json!(one), "*"),
            custom_ref(&group, "Everywhere", json!("*"), "*"),
            custom_ref(&group, "Cluster", Value::Null, "*"),
        ]}),
    )
    .await;
    let _syncer = pair.syncer(flags);
    for (plural, space) in [
        ("heres", &*one),
        ("everywheres", &*one),
        ("everywheres", &*two),
        ("clusters", ""),
    ] {
        arrives(&hub, &version, plural, space, "a").await;
    }
    stays_absent(&hub, &version, "heres", &two, "a").await;
    edge.delete(&version, "everywheres", &two, "a").await;
    gone(&hub, &version, "everywheres", &two, "a").await;
    let definitions = ["heres", "everywheres", "clusters"].map(|plural| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn configs_of_both_kinds_act_as_their_union_and_deleting_one_keeps_what_another_covers(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    // Named by these configs: the first SyncerConfig, the second, the EdgeSyncConfig.
    let names = [
        "first",
        "second",
        "site",
        "first-second",
        "first-site",
        "second-site",
        "all",
    ];
    for name in names {
        hub.create(&config_map(&shop, name, json!({"v": "1"}))).await;
    }
    let of = |config: &str| -> Vec<&str> {
        let all = names.into_iter();
        all.filter(|name| *name == "all" || name.split('-').any(|part| part == config))
            .collect()
    };
    for config in ["first", "second"] {
        let spec = json!({"namespacedObjects": [config_map_entry(&shop, &of(config))]});
        hub.create(&syncer_config(config, spec)).await;
    }
    let refs: Vec<Value> = of("site").iter().map(|name| config_map_ref(&shop, name)).collect();
    select_by_kind(&hub, &json!({"downSyncedResources": refs})).await;
    let _syncer = pair.syncer(flags);
    for name in names {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    deselect_by_kind(&hub).await;
    hub.delete(CONFIG_API, "syncerconfigs", "", "second").await;
    later_configs_are_followed(&hub, &edge, &shop).await;
    for name in names {
        hub.replace(&config_map(&shop, name, json!({"v": "2"}))).await;
    }
    for name in of("first") {
        copy_equals(&edge, &shop, name, &json!({"v": "2"})).await;
    }
    // The others are no longer synced, and stay.
    for name in ["second", "site", "second-site"] {
        remains(&edge, "v1", "configmaps", &shop, name).await;
    }
    hub.replace(&config_map(&shop, "second-site", json!({"v": "3"}))).await;
    hub.replace(&config_map(&shop, "all", json!({"v": "3"}))).await;
    copy_equals(&edge, &shop, "all", &json!({"v": "3"})).await;
    let copy = remains(&edge, "v1", "configmaps", &shop, "second-site").await;
    assert_ne!(copy["data"], json!({"v": "3"}));
}

async fn a_namespace_is_not_implied_and_needs_its_own_entry(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut space = namespace(&shop);
    space["metadata"]["labels"] = json!({"from": "hub"});
    hub.create(&space).await;
    hub.create(&config_map(&shop, "a", json!({}))).await;
    hub.create(&config_map("default", &shop, json!({}))).await;
    select_by_kind(
        &hub,
        &json!({"downSyncedResources": [config_map_ref(&shop, "*"), config_map_ref("default", &shop)]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", "default", &shop).await;
    let place = "config=EdgeSyncConfig//site field=spec.downSyncedResources[0]";
    let line = format!("that no config selects\" side=edge namespace={shop} {place}");
    syncer.wait_for_log(&line, SOON).await;
    stays_absent(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(syncer.log().matches(&line).count(), 1);
    let spec = json!({"downSyncedResources": [config_map_ref(&shop, "*"), config_map_ref("default", &shop), namespace_ref(&shop)]});
    reselect_by_kind(&hub, &spec).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let copy = arrives(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(copy["metadata"]["labels"]["from"], json!("hub"));
    hub.delete("v1", "configmaps", "default", &shop).await;
    gone(&edge, "v1", "configmaps", "default", &shop).await;
}

async fn entries_that_make_no_sense_are_reported_and_block_nothing(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [
                {"version": "v1", "kind": "ConfigMap", "name": "a"},
                {"version": "v1", "kind": "ConfigMap", "name": "a", "namespace": "*"},
                {"version": "v1", "kind": "ConfigMap", "namespace": shop},
                {"kind": "ConfigMap", "name": "a", "namespace": shop},
                {"version": "v1", "name": "a"},
                {"version": "v1", "kind": "Event", "name": "*", "namespace": shop},
                namespace_ref(&shop),
                config_map_ref(&shop, "a"),
            ],
            "upSyncedResources": [{"version": "v1", "kind": "Secret", "name": "a"}],
        }),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    for index in 0..6 {
        let field = format!("downSyncedResources[{index}]");
        syncer.wait_for_log(&field, SOON).await;
    }
    syncer.wait_for_log("upSyncedResources[0]", SOON).await;
    syncer.wait_for_log("needs a namespace", SOON).await;
    assert!(!syncer.log().contains("downSyncedResources[6]"), "{}", syncer.log());
}

async fn a_kind_that_nobody_serves_is_reported_and_picked_up_when_it_appears(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    stock(&hub, &shop, &["a"], &json!({})).await;
    select_by_kind(
        &hub,
        &json!({"downSyncedResources": [
            namespace_ref(&shop),
            config_map_ref(&shop, "a"),
            custom_ref(&group, "Gauge", json!(shop), "*"),
        ]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log("resource=Gauge", SOON).await;
    install_crd(&[&hub], &crd(&group, "gauges", true)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    syncer
        .wait_for_log(&crate::support::lines::not_served("edge", ""), SOON)
        .await;
    install_crd(&[&edge], &crd(&group, "gauges", true)).await;
    arrives(&edge, &format!("{group}/v1"), "gauges", &shop, "a").await;
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn deselecting_an_object_keeps_its_copy_until_the_hub_deletes_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({})).await;
    let all = json!({"downSyncedResources": [namespace_ref(&shop), config_map_ref(&shop, "*")]});
    select_by_kind(&hub, &all).await;
    let _syncer = pair.syncer(flags);
    for name in ["a", "b"] {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    reselect_by_kind(&hub, &json!({"downSyncedResources": null})).await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    remains(&edge, "v1", "configmaps", &shop, "b").await;
    deselect_by_kind(&hub).await;
    remains(&edge, "v1", "configmaps", &shop, "b").await;
    hub.delete("v1", "configmaps", &shop, "b").await;
    gone(&edge, "v1", "configmaps", &shop, "b").await;
}
