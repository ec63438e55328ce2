//! Conversions of `EdgeSyncConfig`: objects that are called otherwise at the edge than at the hub.

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, edge_sync_config, namespace};
use crate::support::stage::{
    CONFIG_API, Stage, config_map_ref, config_maps, custom_ref, deselect_by_kind, namespace_ref, own_group,
    reselect_by_kind, select, select_by_kind, stage, stock,
};
use crate::support::statuses::{returns, set_status};
use crate::support::story::{
    SOON, annotation, arrives, becomes, copy_equals, crd, custom_object, drop_crds, gone, install_crd, remains,
    stays_absent,
};
use crate::support::{Objects, Syncer, eventually, shared_pair};
use serde_json::{Value, json};

in_both_modes!(
    a_denatured_crd_arrives_by_its_own_name_whichever_name_the_entry_has,
    a_denatured_crd_follows_and_goes_and_the_edge_serves_its_type,
    only_what_a_conversion_names_is_renamed_also_beside_a_wildcard,
    a_conversion_that_comes_later_takes_effect_without_restart,
    a_renamed_copy_outlives_its_conversion_as_long_as_its_origin_exists,
    what_waits_for_the_name_of_a_former_conversions_copy_is_reported_and_gets_it_in_the_end,
    what_loses_its_name_to_a_conversion_is_reported,
    what_was_renamed_is_found_again_after_a_restart_and_not_recreated,
    conversions_are_ignored_where_the_environment_says_so,
    an_object_goes_up_under_another_name,
    the_status_of_a_renamed_object_returns_to_its_origin,
    of_contradicting_conversions_the_first_by_config_name_counts_and_the_other_is_reported,
    a_conversion_may_join_two_kinds,
    an_object_goes_up_as_another_kind,
    what_was_given_another_kind_goes_with_its_origin_also_when_nothing_selects_it,
);

const CRDS: [&str; 3] = ["apiextensions.k8s.io/v1", "customresourcedefinitions", ""];

fn crd_ref(name: &str) -> Value {
    json!({"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "name": name})
}

/// A conversion of a `ConfigMap`.
fn renamed(hub: &str, edge: &str) -> Value {
    json!({"upstream": {"kind": "ConfigMap", "name": hub}, "downstream": {"kind": "ConfigMap", "name": edge}})
}

/// The spec of a config for a namespace with all of its `ConfigMap`s.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!([...]) in place")]
fn all_config_maps(shop: &str, conversions: Value) -> Value {
    json!({
        "downSyncedResources": [namespace_ref(shop), config_map_ref(shop, "*")],
        "conversions": conversions,
    })
}

/// Creates a namespace with two `ConfigMap`s that hold their own names.
async fn two_that_differ(at: &Objects, space: &str, names: [&str; 2]) {
    at.create(&namespace(space)).await;
    for name in names {
        at.create(&config_map(space, name, json!({"was": name}))).await;
    }
}

async fn a_denatured_crd_arrives_by_its_own_name_whichever_name_the_entry_has(flags: Mode) {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let base = pair.namespace("g");
    let _syncer = pair.syncer(flags);
    for (config, uses_hub_name) in [("by-hub-name", true), ("by-edge-name", false)] {
        let group = format!("{config}.{base}.example.org");
        let (at_hub, at_edge) = (format!("gauges.{group}.denatured"), format!("gauges.{group}"));
        hub.create(&crd(&format!("{group}.denatured"), "gauges", true)).await;
        let entry = crd_ref(if uses_hub_name { &at_hub } else { &at_edge });
        hub.create(&edge_sync_config(
            config,
            json!({
                "downSyncedResources": [entry],
                "conversions": [{"upstream": crd_ref(&at_hub), "downstream": crd_ref(&at_edge)}],
            }),
        ))
        .await;
        let copy = arrives(&edge, CRDS[0], CRDS[1], CRDS[2], &at_edge).await;
        assert_eq!(copy["spec"]["group"], json!(group));
        assert_eq!(copy["spec"]["names"]["plural"], json!("gauges"));
        assert_eq!(
            annotation(&copy, "downsynced"),
            json!(format!("CustomResourceDefinition//{at_edge}"))
        );
        stays_absent(&edge, CRDS[0], CRDS[1], CRDS[2], &at_hub).await;
        drop_crds(&[&hub, &edge], &[&at_hub, &at_edge]).await;
    }
}

async fn a_denatured_crd_follows_and_goes_and_the_edge_serves_its_type(flags: Mode) {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{}.example.org", pair.namespace("g"));
    let (at_hub, at_edge) = (format!("gauges.{group}.denatured"), format!("gauges.{group}"));
    install_crd(&[&hub], &crd(&format!("{group}.denatured"), "gauges", false)).await;
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [crd_ref(&at_edge)],
            "conversions": [{"upstream": crd_ref(&at_hub), "downstream": crd_ref(&at_edge)}],
        }),
    )
    .await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, CRDS[0], CRDS[1], CRDS[2], &at_edge).await;
    crate::support::wait_for_crd(&edge, &at_edge).await;
    edge.create(&custom_object(&group, "gauges", "", "a", 1)).await;
    // An update: a short name and a label.
    let names = json!({"spec": {"names": {"shortNames": ["ggg"]}}, "metadata": {"labels": {"l": "1"}}});
    hub.merge_patch(CRDS[0], CRDS[1], "", &at_hub, &names).await;
    let at = [CRDS[0], CRDS[1], CRDS[2], &at_edge];
    let copy = becomes(&edge, at, "has the short name", |copy| {
        copy["spec"]["names"]["shortNames"] == json!(["ggg"])
    })
    .await;
    assert_eq!(copy["spec"]["group"], json!(group));
    assert_eq!(copy["metadata"]["labels"]["l"], json!("1"));
    // Drift.
    edge.merge_patch(
        CRDS[0],
        CRDS[1],
        "",
        &at_edge,
        &json!({"metadata": {"labels": {"l": "2"}}}),
    )
    .await;
    becomes(&edge, at, "is corrected", |copy| {
        copy["metadata"]["labels"]["l"] == json!("1")
    })
    .await;
    // What the edge has made of the type would go with the CRD, so that it would stay.
    edge.delete(&format!("{group}/v1"), "gauges", "", "a").await;
    drop_crds(&[&hub], &[&at_hub]).await;
    gone(&edge, CRDS[0], CRDS[1], CRDS[2], &at_edge).await;
}

async fn only_what_a_conversion_names_is_renamed_also_beside_a_wildcard(flags: Mode) {
    let pair = shared_pair().await;
    let [shop, other] = ["shop", "other"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&shop, &other] {
        two_that_differ(&hub, space, ["x", "a"]).await;
    }
    hub.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "x"}}))
        .await;
    let mut spec = all_config_maps(&shop, json!([renamed("x", "y")]));
    spec["downSyncedResources"]
        .as_array_mut()
        .expect("built above")
        .push(json!({"version": "v1", "kind": "Secret", "namespace": shop, "name": "*"}));
    select_by_kind(&hub, &spec).await;
    // Conversions count for all configs.
    select(&hub, &config_maps(&other, &["x", "a"])).await;
    let _syncer = pair.syncer(flags);
    for space in [&shop, &other] {
        let copy = copy_equals(&edge, space, "y", &json!({"was": "x"})).await;
        assert_eq!(annotation(&copy, "downsynced"), json!(format!("ConfigMap/{space}/y")));
        copy_equals(&edge, space, "a", &json!({"was": "a"})).await;
        stays_absent(&edge, "v1", "configmaps", space, "x").await;
    }
    arrives(&edge, "v1", "secrets", &shop, "x").await;
    hub.replace(&config_map(&shop, "x", json!({"was": "x", "now": "2"})))
        .await;
    copy_equals(&edge, &shop, "y", &json!({"was": "x", "now": "2"})).await;
    hub.delete("v1", "configmaps", &shop, "x").await;
    gone(&edge, "v1", "configmaps", &shop, "y").await;
    remains(&edge, "v1", "configmaps", &shop, "a").await;
    remains(&edge, "v1", "configmaps", &other, "y").await;
}

async fn a_conversion_that_comes_later_takes_effect_without_restart(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["x"], &json!({"v": "1"})).await;
    select_by_kind(&hub, &all_config_maps(&shop, json!([]))).await;
    let _syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "x", &json!({"v": "1"})).await;
    // Added, and changed.
    for name in ["y", "z"] {
        reselect_by_kind(&hub, &all_config_maps(&shop, json!([renamed("x", name)]))).await;
        copy_equals(&edge, &shop, name, &json!({"v": "1"})).await;
    }
    hub.replace(&config_map(&shop, "x", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "z", &json!({"v": "2"})).await;
    // The copies from before are kept as long as their origin exists, and no longer.
    for name in ["x", "y"] {
        remains(&edge, "v1", "configmaps", &shop, name).await;
    }
    hub.delete("v1", "configmaps", &shop, "x").await;
    for name in ["x", "y", "z"] {
        gone(&edge, "v1", "configmaps", &shop, name).await;
    }
}

async fn a_renamed_copy_outlives_its_conversion_as_long_as_its_origin_exists(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for restarts in [false, true] {
        let [x, y] = ["x", "y"].map(|name| format!("{name}-{restarts}"));
        if !restarts {
            hub.create(&namespace(&shop)).await;
        }
        hub.create(&config_map(&shop, &x, json!({"v": "1"}))).await;
        let with = all_config_maps(&shop, json!([renamed(&x, &y)]));
        select_by_kind(&hub, &with).await;
        let mut syncer = pair.syncer(flags);
        copy_equals(&edge, &shop, &y, &json!({"v": "1"})).await;
        if restarts {
            syncer.kill();
        }
        reselect_by_kind(&hub, &all_config_maps(&shop, Value::Null)).await;
        let mut another = restarts.then(|| pair.syncer(flags));
        copy_equals(&edge, &shop, &x, &json!({"v": "1"})).await;
        let copy = remains(&edge, "v1", "configmaps", &shop, &y).await;
        assert_eq!(copy["data"], json!({"v": "1"}));
        if restarts {
            // Gone while nobody looks.
            another.take().expect("started above").kill();
        }
        hub.delete("v1", "configmaps", &shop, &x).await;
        let _third = restarts.then(|| pair.syncer(flags));
        gone(&edge, "v1", "configmaps", &shop, &x).await;
        gone(&edge, "v1", "configmaps", &shop, &y).await;
        deselect_by_kind(&hub).await;
    }
}

async fn what_waits_for_the_name_of_a_former_conversions_copy_is_reported_and_gets_it_in_the_end(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    two_that_differ(&hub, &shop, ["x", "y"]).await;
    select_by_kind(
        &hub,
        &all_config_maps(&shop, json!([renamed("x", "y"), renamed("y", "z")])),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "y", &json!({"was": "x"})).await;
    copy_equals(&edge, &shop, "z", &json!({"was": "y"})).await;
    reselect_by_kind(&hub, &all_config_maps(&shop, Value::Null)).await;
    copy_equals(&edge, &shop, "x", &json!({"was": "x"})).await;
    let reported = format!("object=ConfigMap/{shop}/y copy=ConfigMap/{shop}/y copy_of=ConfigMap/{shop}/x");
    syncer.wait_for_log(&reported, SOON).await;
    edge.delete("v1", "configmaps", &shop, "y").await;
    copy_equals(&edge, &shop, "y", &json!({"was": "y"})).await;
}

async fn what_loses_its_name_to_a_conversion_is_reported(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    two_that_differ(&hub, &shop, ["x", "y"]).await;
    select_by_kind(&hub, &all_config_maps(&shop, json!([renamed("x", "y")]))).await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "y", &json!({"was": "x"})).await;
    let reported = format!("object=ConfigMap/{shop}/y copy_of=ConfigMap/{shop}/x");
    syncer.wait_for_log(&reported, SOON).await;
}

async fn what_was_renamed_is_found_again_after_a_restart_and_not_recreated(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["kept", "deleted", "proof"], &json!({"v": "1"})).await;
    let conversions = json!([renamed("kept", "kept-there"), renamed("deleted", "deleted-there")]);
    select_by_kind(&hub, &all_config_maps(&shop, conversions)).await;
    let mut syncer = pair.syncer(flags);
    for name in ["kept-there", "deleted-there", "proof"] {
        copy_equals(&edge, &shop, name, &json!({"v": "1"})).await;
    }
    let before = edge.get("v1", "configmaps", &shop, "kept-there").await;
    syncer.kill();
    hub.delete("v1", "configmaps", &shop, "deleted").await;
    let _syncer = pair.syncer(flags);
    gone(&edge, "v1", "configmaps", &shop, "deleted-there").await;
    hub.replace(&config_map(&shop, "proof", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "proof", &json!({"v": "2"})).await;
    assert_eq!(edge.get("v1", "configmaps", &shop, "kept-there").await, before);
    assert_eq!(edge.get("v1", "configmaps", &shop, "kept").await, None);
}

async fn conversions_are_ignored_where_the_environment_says_so(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["x"], &json!({})).await;
    select_by_kind(&hub, &all_config_maps(&shop, json!([renamed("x", "y")]))).await;
    let env = [("ENABLE_DENATURING", "false")];
    let _syncer = Syncer::start_with_env(&pair.hub.kubeconfig(), &pair.edge.kubeconfig(), flags, &env);
    arrives(&edge, "v1", "configmaps", &shop, "x").await;
    stays_absent(&edge, "v1", "configmaps", &shop, "y").await;
}

async fn an_object_goes_up_under_another_name(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    two_that_differ(&edge, &shop, ["y", "a"]).await;
    select_by_kind(
        &hub,
        &json!({"upSyncedResources": [config_map_ref(&shop, "*")], "conversions": [renamed("x", "y")]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    let copy = copy_equals(&hub, &shop, "x", &json!({"was": "y"})).await;
    assert_eq!(annotation(&copy, "upsynced"), json!(format!("ConfigMap/{shop}/x")));
    copy_equals(&hub, &shop, "a", &json!({"was": "a"})).await;
    stays_absent(&hub, "v1", "configmaps", &shop, "y").await;
    edge.replace(&config_map(&shop, "y", json!({"now": "2"}))).await;
    copy_equals(&hub, &shop, "x", &json!({"now": "2"})).await;
    // Deleted while it is away.
    syncer.kill();
    edge.delete("v1", "configmaps", &shop, "y").await;
    let _syncer = pair.syncer(flags);
    gone(&hub, "v1", "configmaps", &shop, "x").await;
    remains(&hub, "v1", "configmaps", &shop, "a").await;
}

async fn the_status_of_a_renamed_object_returns_to_its_origin(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    // The one called y at the hub has nothing to do with the one called y at the edge.
    for name in ["x", "y"] {
        hub.create(&custom_object(&group, "gauges", &shop, name, 1)).await;
    }
    let gauge = |name: &str| custom_ref(&group, "Gauge", json!(shop), name);
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [namespace_ref(&shop), gauge("x")],
            "conversions": [{"upstream": gauge("x"), "downstream": gauge("y")}],
        }),
    )
    .await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, &version, "gauges", &shop, "y").await;
    for status in [json!({"a": 1}), json!({"b": 2})] {
        set_status(&edge, [&version, "gauges", &shop, "y"], true, &status).await;
        returns(&hub, [&version, "gauges", &shop, "x"], &status).await;
    }
    let other = hub.get(&version, "gauges", &shop, "y").await.expect("created above");
    assert_eq!(other["status"], Value::Null);
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn of_contradicting_conversions_the_first_by_config_name_counts_and_the_other_is_reported(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["x"], &json!({})).await;
    // Created in the other order.
    hub.create(&edge_sync_config("b", json!({"conversions": [renamed("x", "from-b")]})))
        .await;
    hub.create(&edge_sync_config(
        "a",
        all_config_maps(&shop, json!([renamed("x", "from-a"), renamed("x", "second")])),
    ))
    .await;
    let syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "from-a").await;
    for name in ["from-b", "second", "x"] {
        stays_absent(&edge, "v1", "configmaps", &shop, name).await;
    }
    for config in ["EdgeSyncConfig//a", "EdgeSyncConfig//b"] {
        let reports = || {
            let log = syncer.log();
            let of_it = |line: &&str| line.contains("contradicts another conversion") && line.contains(config);
            log.lines().filter(of_it).count()
        };
        eventually("a contradiction is reported", SOON, async || match reports() {
            0 => Err(syncer.log()),
            _ => Ok(()),
        })
        .await;
        assert_eq!(reports(), 1, "{config}: {}", syncer.log());
    }
    // With the first one gone, the other counts.
    hub.delete(CONFIG_API, "edgesyncconfigs", "", "a").await;
    hub.create(&edge_sync_config("c", all_config_maps(&shop, Value::Null)))
        .await;
    arrives(&edge, "v1", "configmaps", &shop, "from-b").await;
}

/// The hub has one kind, and the edge another.
async fn alphas_and_betas(hub: &Objects, edge: &Objects, group: &str) {
    install_crd(&[hub], &crd(group, "alphas", true)).await;
    install_crd(&[edge], &crd(group, "betas", true)).await;
}

/// The one that is renamed, as it is called at the hub.
fn alpha(group: &str, shop: &str) -> Value {
    custom_ref(group, "Alpha", json!(shop), "a")
}

/// The same, as it is called at the edge.
fn beta(group: &str, shop: &str) -> Value {
    custom_ref(group, "Beta", json!(shop), "b")
}

async fn a_conversion_may_join_two_kinds(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    alphas_and_betas(&hub, &edge, &group).await;
    hub.create(&namespace(&shop)).await;
    for name in ["a", "other"] {
        hub.create(&custom_object(&group, "alphas", &shop, name, 1)).await;
    }
    let (at_hub, at_edge) = (alpha(&group, &shop), beta(&group, &shop));
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [namespace_ref(&shop), at_hub],
            "conversions": [{"upstream": at_hub, "downstream": at_edge}],
        }),
    )
    .await;
    let _syncer = pair.syncer(flags);
    let at = [version.as_str(), "betas", &shop, "b"];
    let copy = becomes(&edge, at, "is there", |copy| copy["spec"] == json!({"size": 1})).await;
    assert_eq!(annotation(&copy, "downsynced"), json!(format!("Beta/{shop}/b")));
    hub.merge_patch(&version, "alphas", &shop, "a", &json!({"spec": {"size": 2}}))
        .await;
    becomes(&edge, at, "follows", |copy| copy["spec"] == json!({"size": 2})).await;
    set_status(&edge, at, true, &json!({"a": 1})).await;
    returns(&hub, [&version, "alphas", &shop, "a"], &json!({"a": 1})).await;
    assert_eq!(edge.list(&version, "betas", "", "").await.len(), 1);
    hub.delete(&version, "alphas", &shop, "a").await;
    gone(&edge, &version, "betas", &shop, "b").await;
    drop_crds(&[&hub, &edge], &[&format!("alphas.{group}"), &format!("betas.{group}")]).await;
}

async fn an_object_goes_up_as_another_kind(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    alphas_and_betas(&hub, &edge, &group).await;
    edge.create(&namespace(&shop)).await;
    edge.create(&custom_object(&group, "betas", &shop, "b", 1)).await;
    let (at_hub, at_edge) = (alpha(&group, &shop), beta(&group, &shop));
    select_by_kind(
        &hub,
        &json!({
            "upSyncedResources": [at_edge],
            "conversions": [{"upstream": at_hub, "downstream": at_edge}],
        }),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    let at = [version.as_str(), "alphas", &shop, "a"];
    let copy = becomes(&hub, at, "is there", |copy| copy["spec"] == json!({"size": 1})).await;
    assert_eq!(annotation(&copy, "upsynced"), json!(format!("Alpha/{shop}/a")));
    set_status(&edge, [&version, "betas", &shop, "b"], true, &json!({"x": 1})).await;
    returns(&hub, at, &json!({"x": 1})).await;
    // Deleted while it is away.
    syncer.kill();
    edge.delete(&version, "betas", &shop, "b").await;
    let _syncer = pair.syncer(flags);
    gone(&hub, &version, "alphas", &shop, "a").await;
    drop_crds(&[&hub, &edge], &[&format!("alphas.{group}"), &format!("betas.{group}")]).await;
}

// Of both directions at once: while the syncer is away, the config goes, and then the origins.
async fn what_was_given_another_kind_goes_with_its_origin_also_when_nothing_selects_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    alphas_and_betas(&hub, &edge, &group).await;
    hub.create(&namespace(&shop)).await;
    edge.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "alphas", &shop, "down", 1)).await;
    edge.create(&custom_object(&group, "betas", &shop, "up", 1)).await;
    let item = |kind: &str, name: &str| custom_ref(&group, kind, json!(shop), name);
    let join = |name: &str| json!({"upstream": item("Alpha", name), "downstream": item("Beta", name)});
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [item("Alpha", "down")],
            "upSyncedResources": [item("Beta", "up")],
            "conversions": [join("down"), join("up")],
        }),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, &version, "betas", &shop, "down").await;
    arrives(&hub, &version, "alphas", &shop, "up").await;
    syncer.kill();
    deselect_by_kind(&hub).await;
    let mut syncer = pair.syncer(flags);
    remains(&edge, &version, "betas", &shop, "down").await;
    remains(&hub, &version, "alphas", &shop, "up").await;
    syncer.kill();
    hub.delete(&version, "alphas", &shop, "down").await;
    edge.delete(&version, "betas", &shop, "up").await;
    let _syncer = pair.syncer(flags);
    gone(&edge, &version, "betas", &shop, "down").await;
    gone(&hub, &version, "alphas", &shop, "up").await;
    drop_crds(&[&hub, &edge], &[&format!("alphas.{group}"), &format!("betas.{group}")]).await;
}
