//! What the edge keeps for itself, whatever the hub asks for.

use serde_json::json;

use crate::support::Syncer;
use crate::support::flow::upsync_config_maps;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, select, stage, stock};
use crate::support::story::{SOON, arrives, becomes, config_map_entry, copy_equals, remains, reselect, stays_absent};

in_both_modes!(
    a_denied_namespace_is_not_created_either,
    what_people_write_on_an_implied_namespace_stays,
    the_system_and_the_syncers_own_are_out_of_bounds_unless_a_flag_says_otherwise,
);

// Upsync makes namespaces at the hub, and downsync recreates them at the edge for what goes into them.
async fn a_denied_namespace_is_not_created_either(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &["up"], &json!({})).await;
    let mut spec = upsync_config_maps(&shop, &["up"]);
    spec["namespacedObjects"] = json!([config_map_entry(&shop, &["down"])]);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(&[flags, &["--deny=namespaces"]].concat());
    arrives(&hub, "v1", "configmaps", &shop, "up").await;
    hub.create(&config_map(&shop, "down", json!({"v": "1"}))).await;
    copy_equals(&edge, &shop, "down", &json!({"v": "1"})).await;
    edge.remove_namespaces(std::slice::from_ref(&shop)).await;
    syncer
        .wait_for_log(
            &format!("further objects that this rule refuses have no line\" object=Namespace//{shop} rule=\"--deny namespaces\""),
            SOON,
        )
        .await;
    stays_absent(&edge, "v1", "namespaces", "", &shop).await;
    // The edge's owner makes it: what waits continues.
    edge.create(&namespace(&shop)).await;
    copy_equals(&edge, &shop, "down", &json!({"v": "1"})).await;
}

async fn what_people_write_on_an_implied_namespace_stays(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &json!({"namespacedObjects": [config_map_entry(&shop, &["*"])]})).await;
    let _syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    let (key, level) = ("pod-security.kubernetes.io/enforce", json!("restricted"));
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shop, "labels": {key: level}}});
    edge.apply_as("kubectl-label", &labelled).await;
    // The hub writes the namespace once more, with what comes after it as the proof that it was read.
    hub.merge_patch(
        "v1",
        "namespaces",
        "",
        &shop,
        &json!({"metadata": {"labels": {"x": "y"}}}),
    )
    .await;
    hub.create(&config_map(&shop, "b", json!({"v": "1"}))).await;
    copy_equals(&edge, &shop, "b", &json!({"v": "1"})).await;
    let copy = remains(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(copy["metadata"]["labels"][key], level);
    reselect(
        &hub,
        &json!({"namespacedObjects": [config_map_entry(&shop, &["*"])],
            "clusterScope": [{"group": "", "apiVersion": "v1", "resource": "namespaces", "objects": [shop]}]}),
    )
    .await;
    // Selected whole, it is as the hub has it.
    becomes(&edge, ["v1", "namespaces", "", &shop], "is as at the hub", |space| {
        space["metadata"]["labels"]["x"] == json!("y") && space["metadata"]["labels"][key].is_null()
    })
    .await;
}

async fn the_system_and_the_syncers_own_are_out_of_bounds_unless_a_flag_says_otherwise(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let own = pair.namespace("own");
    let secret = |space: &str, name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": space, "name": name}});
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []});
    let name = format!("{shop}-x");
    // Named: "everywhere" has never meant the syncer's own.
    let secrets_of =
        |space: &str| json!({"apiGroup": "", "resources": ["secrets"], "namespaces": [space], "names": [name]});
    for space in [&own, &shop] {
        hub.create(&namespace(space)).await;
        hub.create(&role(space)).await;
        hub.create(&config_map(space, &name, json!({"v": "1"}))).await;
    }
    hub.create(&config_map("kube-system", &name, json!({"v": "1"}))).await;
    edge.create(&namespace(&own)).await;
    for space in [&own, "kube-system", "default"] {
        edge.create(&secret(space, &name)).await;
    }
    let (roles, version) = ("clusterroles", "rbac.authorization.k8s.io/v1");
    let entries = [&own, "kube-system", &shop].map(|space| config_map_entry(space, &[&name]));
    let [a, b, c] = entries;
    select(
        &hub,
        &json!({
            "namespacedObjects": [a, b, c],
            "clusterScope": [
                {"group": "rbac.authorization.k8s.io", "apiVersion": "v1", "resource": roles, "objects": [own, shop]}
            ],
            "upsync": [secrets_of("*"), secrets_of(&own)],
        }),
    )
    .await;
    let start = |more: Mode| {
        let flags = [flags, more].concat();
        let (hub, edge) = (pair.hub.kubeconfig(), pair.edge.kubeconfig());
        Syncer::start_with_env(&hub, &edge, &flags, &[("NAMESPACE", &own)])
    };
    let mut syncer = start(&[]);
    copy_equals(&edge, &shop, &name, &json!({"v": "1"})).await;
    arrives(&edge, version, roles, "", &shop).await;
    arrives(&hub, "v1", "secrets", "default", &name).await;
    for reason in [
        "the namespace kube-system is",
        "the syncer's own namespace is",
        "the syncer's own roles are",
    ] {
        let line = format!("rule=\"{reason} protected; --allow-system lifts that\"");
        syncer.wait_for_log(&line, SOON).await;
    }
    for space in [&own, "kube-system"] {
        stays_absent(&edge, "v1", "configmaps", space, &name).await;
        stays_absent(&hub, "v1", "secrets", space, &name).await;
    }
    stays_absent(&edge, version, roles, "", &own).await;
    syncer.terminate().await;
    // As the Go syncer did.
    let _syncer = start(&["--allow-system"]);
    for space in [&own, "kube-system"] {
        copy_equals(&edge, space, &name, &json!({"v": "1"})).await;
        arrives(&hub, "v1", "secrets", space, &name).await;
    }
    arrives(&edge, version, roles, "", &own).await;
    for (side, other) in [(&hub, &edge), (&edge, &hub)] {
        for (plural, space) in [
            ("configmaps", "kube-system"),
            ("secrets", "kube-system"),
            ("secrets", "default"),
        ] {
            side.delete("v1", plural, space, &name).await;
            other.delete("v1", plural, space, &name).await;
        }
    }
}
