//! Acceptance scenarios of the specification (its section 11) that no other file has, in each mode.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use support::modes::{Mode, in_both_modes};
use support::objects::{config_map, namespace, syncer_config};
use support::story::{
    SOON, annotation, arrives, config_map_entry, copy_equals, crd, custom_object, gone, remains, stays_absent,
};
use support::{AuditEvent, Objects, Server, eventually, shared_pair, wait_for_crd};

/// How the user agent of the syncer begins.
const SYNCER: &str = "edge-syncer/";

in_both_modes!(
    what_edge_controllers_add_to_a_copy_survives_hub_updates,
    owners_finalizers_and_kcp_metadata_of_the_hub_do_not_arrive,
    cluster_infrastructure_is_left_alone_on_both_sides_under_wildcards,
    both_sides_are_asked_at_the_configured_version_whatever_they_prefer,
    an_edge_that_serves_only_another_version_gets_its_objects_through_that_one,
    two_configs_act_as_their_union_and_deleting_one_keeps_what_the_other_covers,
    hub_changes_during_an_edge_restart_arrive_without_recreating_any_copy,
    a_thousand_config_maps_in_twenty_namespaces_converge_with_bounded_memory_and_requests,
    a_namespace_goes_after_all_in_it_when_all_went_while_the_syncer_was_away,
);

// Spec scenario 18.
async fn what_edge_controllers_add_to_a_copy_survives_hub_updates(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{shop}.example.org");
    let version = format!("{group}/v1");
    for side in [&hub, &edge] {
        side.create(&crd(&group, "gauges", true)).await;
        wait_for_crd(side, &format!("gauges.{group}")).await;
    }
    hub.create(&namespace(&shop)).await;
    let metadata = json!({"labels": {"from": "hub", "dropped": "x"}, "annotations": {"from": "hub", "dropped": "x"}});
    for name in ["applied", "updated"] {
        hub.create(&with_metadata(config_map(&shop, name, json!({"v": "1"})), &metadata))
            .await;
    }
    hub.create(&with_metadata(
        custom_object(&group, "gauges", &shop, "gauge", 1),
        &metadata,
    ))
    .await;
    hub.patch_status(&version, "gauges", &shop, "gauge", &json!({"at": "hub"}))
        .await;
    hub.create(&syncer_config(
        "the-one",
        json!({"namespaceScope": {"namespaces": [shop], "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": group, "resource": "gauges", "apiVersion": "v1"},
        ]}}),
    ))
    .await;
    let _syncer = pair.syncer(flags);

    let copies = [
        ("v1", "ConfigMap", "configmaps", "applied"),
        ("v1", "ConfigMap", "configmaps", "updated"),
        (version.as_str(), "Gauge", "gauges", "gauge"),
    ];
    let added = json!({
        "labels": {"added": "edge"}, "annotations": {"added": "edge"}, "finalizers": ["example.org/edge"],
    });
    for (api_version, kind, plural, name) in copies {
        let mut copy = arrives(&edge, api_version, plural, &shop, name).await;
        if name == "updated" {
            // As a controller without server-side apply.
            copy = with_metadata(copy, &added);
            edge.update_as("some-controller", &copy).await;
        } else {
            let part = json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": shop, "name": name}});
            edge.apply_as("some-controller", &with_metadata(part, &added)).await;
        }
    }
    edge.patch_status(&version, "gauges", &shop, "gauge", &json!({"at": "edge"}))
        .await;

    for round in 2..4 {
        for (api_version, _, plural, name) in copies {
            let mut patch = json!({"metadata": {
                "labels": {"from": format!("hub {round}").replace(' ', "-"), "dropped": null},
                "annotations": {"from": format!("hub-{round}"), "dropped": null},
            }});
            if plural == "gauges" {
                patch["spec"] = json!({"size": round});
            } else {
                patch["data"] = json!({"v": round.to_string()});
            }
            hub.merge_patch(api_version, plural, &shop, name, &patch).await;
        }
        for (api_version, _, plural, name) in copies {
            let copy = eventually(&format!("update {round} of {name} arrives"), SOON, async || {
                let copy = edge.get(api_version, plural, &shop, name).await.ok_or("it is gone")?;
                let content = [&copy["data"]["v"], &copy["spec"]["size"]];
                if content.contains(&&json!(round)) || content.contains(&&json!(round.to_string())) {
                    Ok(copy)
                } else {
                    Err("not yet")
                }
            })
            .await;
            let metadata = &copy["metadata"];
            for field in ["labels", "annotations"] {
                let of = &metadata[field];
                assert_eq!(of["added"], json!("edge"), "{name}: {field} {of}");
                assert_eq!(of["from"], json!(format!("hub-{round}")), "{name}: {field} {of}");
                assert_eq!(of["dropped"], Value::Null, "{name}: {field} {of}");
            }
            assert_eq!(metadata["finalizers"], json!(["example.org/edge"]), "{name}");
            if plural == "gauges" {
                assert_eq!(copy["status"], json!({"at": "edge"}));
            }
        }
    }
    for side in [&hub, &edge] {
        side.delete_all(&version, "gauges", &shop).await;
    }
    drop_crds(&[&hub, &edge], &format!("gauges.{group}")).await;
}

// Spec scenario 19.
async fn owners_finalizers_and_kcp_metadata_of_the_hub_do_not_arrive(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    let owner = hub.create(&config_map(&shop, "owner", json!({}))).await;
    let kcp = json!({"kcp.io/cluster": "x", "internal.workspace.kcp.io/shard": "y", "plain": "z"});
    let metadata = json!({
        "annotations": kcp,
        "labels": kcp,
        "finalizers": ["example.org/hub"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}],
    });
    hub.create(&with_metadata(config_map(&shop, "owned", json!({"v": "1"})), &metadata))
        .await;
    hub.create(&syncer_config(
        "the-one",
        json!({"namespacedObjects": [config_map_entry(&shop, &["owned"])]}),
    ))
    .await;
    let _syncer = pair.syncer(flags);
    for round in ["1", "2"] {
        let data = json!({"v": round});
        hub.merge_patch("v1", "configmaps", &shop, "owned", &json!({"data": data}))
            .await;
        let copy = copy_equals(&edge, &shop, "owned", &data).await;
        let metadata = &copy["metadata"];
        assert_eq!(metadata["ownerReferences"], Value::Null);
        assert_eq!(metadata["finalizers"], Value::Null);
        for field in ["labels", "annotations"] {
            let keys: Vec<&String> = metadata[field]
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::keys)
                .collect();
            assert!(!keys.iter().any(|key| key.contains("kcp.io/")), "{field}: {keys:?}");
            assert!(keys.iter().any(|key| *key == "plain"), "{field}: {keys:?}");
        }
    }
    // The hub's finalizer holds the hub object, and its copy with it, until it is done.
    hub.delete("v1", "configmaps", &shop, "owned").await;
    remains(&edge, "v1", "configmaps", &shop, "owned").await;
    hub.merge_patch(
        "v1",
        "configmaps",
        &shop,
        "owned",
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    gone(&edge, "v1", "configmaps", &shop, "owned").await;
}

/// What every cluster makes for itself in a namespace, with something in it that tells the sides apart.
fn infrastructure(space: &str, side: &str) -> Vec<Value> {
    let secret = |name: &str, kind: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": {"token": side},
            "metadata": {"namespace": space, "name": name, "annotations": annotations},
        })
    };
    let of_default = json!({"kubernetes.io/service-account.name": "default"});
    vec![
        config_map(space, "kube-root-ca.crt", json!({"ca.crt": side})),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": side}],
            "metadata": {"namespace": space, "name": "default", "annotations": {"side": side}},
        }),
        secret("default-token", "kubernetes.io/service-account-token", of_default),
        secret("bootstrap", "bootstrap.kubernetes.io/token", json!({})),
    ]
}

/// Objects of the same types that are nobody's infrastructure.
fn ordinary(space: &str) -> Vec<Value> {
    let metadata = json!({"namespace": space, "name": "ordinary"});
    vec![
        config_map(space, "ordinary", json!({})),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}}),
    ]
}

// Spec scenario 22.
async fn cluster_infrastructure_is_left_alone_on_both_sides_under_wildcards(flags: Mode) {
    const TYPES: [&str; 3] = ["configmaps", "secrets", "serviceaccounts"];
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // Where a namespace is selected by `names: ["*"]` and by `namespaceScope`: infrastructure on both sides, and only on one.
    let starred = ["both", "hub", "edge"].map(|at| (at, pair.namespace(&format!("star-{at}"))));
    let scoped = ["both", "hub", "edge"].map(|at| (at, pair.namespace(&format!("scope-{at}"))));
    let mut there = Vec::new();
    for (at, space) in starred.iter().chain(&scoped) {
        for (name, side) in [("hub", &hub), ("edge", &edge)] {
            side.create(&namespace(space)).await;
            if *at == "both" || *at == name {
                for object in infrastructure(space, name) {
                    there.push((side, side.create(&object).await));
                }
            }
        }
        for object in ordinary(space) {
            hub.create(&object).await;
        }
    }
    let names = |spaces: &[(&str, String)]| spaces.iter().map(|(_, space)| space.clone()).collect::<Vec<_>>();
    let stars: Vec<Value> = names(&starred)
        .iter()
        .map(|space| json!({"namespace": space, "names": ["*"]}))
        .collect();
    let types = TYPES.map(|plural| json!({"group": "", "resource": plural, "apiVersion": "v1"}));
    let entries = types.clone().map(|mut entry| {
        entry["objectsByNamespace"] = json!(stars);
        entry
    });
    hub.create(&syncer_config(
        "the-one",
        json!({
            "namespacedObjects": entries,
            "namespaceScope": {"namespaces": names(&scoped), "resources": types},
        }),
    ))
    .await;
    let _syncer = pair.syncer(flags);
    for (_, space) in starred.iter().chain(&scoped) {
        for plural in TYPES {
            arrives(&edge, "v1", plural, space, "ordinary").await;
        }
    }
    let untouched = async || {
        for (at, space) in starred.iter().chain(&scoped) {
            let spared = infrastructure(space, "");
            for object in spared.iter().filter(|_| *at == "hub") {
                assert_eq!(edge.reread(object).await, None, "it has arrived: {object}");
            }
            for object in spared.iter().filter(|_| *at == "edge") {
                assert_eq!(hub.reread(object).await, None, "it was made at the hub: {object}");
            }
        }
        for (side, before) in &there {
            let now = side.reread(before).await;
            assert_eq!(now.as_ref(), Some(before), "somebody has changed it");
        }
    };
    let secret = infrastructure(&starred[1].1, "").remove(2);
    let name = secret["metadata"]["name"].as_str().expect("it has a name");
    stays_absent(&edge, "v1", "secrets", &starred[1].1, name).await;
    untouched().await;

    // What the hub drops is not taken from the edge.
    for (_, space) in [&starred[0], &scoped[0]] {
        for (plural, name) in [
            ("configmaps", "kube-root-ca.crt"),
            ("configmaps", "ordinary"),
            ("secrets", "default-token"),
            ("secrets", "ordinary"),
            ("serviceaccounts", "default"),
            ("serviceaccounts", "ordinary"),
        ] {
            hub.delete("v1", plural, space, name).await;
        }
        for plural in TYPES {
            gone(&edge, "v1", plural, space, "ordinary").await;
        }
    }
    there.retain(|(_, object)| {
        let metadata = &object["metadata"];
        let space = metadata["namespace"].as_str().expect("it is namespaced");
        let dropped = metadata["name"] != "bootstrap" && (space == starred[0].1 || space == scoped[0].1);
        let at_hub = object["metadata"]["annotations"]["side"] == "hub"
            || object["data"]["ca.crt"] == "hub"
            || object["data"]["token"] == "aHVi";
        !(dropped && at_hub)
    });
    for (side, before) in &there {
        let now = side.reread(before).await;
        assert_eq!(now.as_ref(), Some(before), "somebody has changed it");
    }
}

/// A CRD as [`crd`] makes it, at several versions, stored at the last.
fn crd_at(group: &str, plural: &str, versions: &[&str]) -> Value {
    let mut definition = crd(group, plural, true);
    let template = definition["spec"]["versions"][0].take();
    let last = versions.last().expect("a CRD has a version");
    let versions = versions.iter().map(|version| {
        let mut entry = template.clone();
        entry["name"] = json!(version);
        entry["storage"] = json!(version == last);
        entry
    });
    definition["spec"]["versions"] = versions.collect();
    definition
}

/// The version of a group that a server prefers, once it says so.
async fn prefers(side: &Objects, group: &str, version: &str) {
    eventually(&format!("{version} of {group} is preferred"), SOON, async || {
        let found = side.read(&format!("/apis/{group}")).await;
        let found = found.map_err(|error| error.to_string())?["preferredVersion"]["version"].clone();
        if found == json!(version) {
            Ok(())
        } else {
            Err(format!("{found} is preferred"))
        }
    })
    .await;
}

/// The versions at which the syncer has asked for objects of a group, with what it did.
fn versions_asked(server: &Server, group: &str) -> BTreeMap<String, Vec<String>> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in server.requests(SYNCER) {
        let rest = event.uri.strip_prefix(&format!("/apis/{group}/"));
        // Without a slash it is discovery.
        if let Some((version, _)) = rest.and_then(|rest| rest.split_once('/')) {
            versions.entry(version.to_owned()).or_default().push(event.verb);
        }
    }
    versions
}

/// Creates a gauge at the hub, and takes it through an arrival, an update, a drift and a delete. `at_edge` is the version by
/// which the test sees the edge.
async fn gauge_lives_and_dies(hub: &Objects, edge: &Objects, group: &str, shop: &str, at_edge: &str) {
    let (at_hub, at_edge) = (format!("{group}/v1"), format!("{group}/{at_edge}"));
    let has_size = async |size: u32| {
        eventually(&format!("the copy has size {size}"), SOON, async || {
            let copy = edge.try_get(&at_edge, "gauges", shop, "a").await;
            let copy = copy.map_err(|error| error.to_string())?.ok_or("it is not there")?;
            if copy["spec"] == json!({"size": size}) {
                Ok(copy)
            } else {
                Err(copy["spec"].to_string())
            }
        })
        .await
    };
    hub.create(&custom_object(group, "gauges", shop, "a", 1)).await;
    let copy = has_size(1).await;
    assert_eq!(annotation(&copy, "downsynced"), json!(format!("Gauge/{shop}/a")));
    let spec = |size: u32| json!({"spec": {"size": size}});
    hub.merge_patch(&at_hub, "gauges", shop, "a", &spec(2)).await;
    has_size(2).await;
    edge.merge_patch(&at_edge, "gauges", shop, "a", &spec(9)).await;
    has_size(2).await;
    hub.delete(&at_hub, "gauges", shop, "a").await;
    gone(edge, &at_edge, "gauges", shop, "a").await;
}

// Spec scenario 24.
async fn both_sides_are_asked_at_the_configured_version_whatever_they_prefer(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    hub.create(&crd_at(&group, "gauges", &["v1", "v2", "v3"])).await;
    edge.create(&crd_at(&group, "gauges", &["v1", "v2"])).await;
    for (side, preferred) in [(&hub, "v3"), (&edge, "v2")] {
        wait_for_crd(side, &definition).await;
        prefers(side, &group, preferred).await;
    }
    hub.create(&namespace(&shop)).await;
    hub.create(&syncer_config("the-one", gauges(&group, &shop))).await;
    let _syncer = pair.syncer(flags);
    gauge_lives_and_dies(&hub, &edge, &group, &shop, "v1").await;
    for (server, verb) in [(&pair.hub, "list"), (&pair.edge, "patch")] {
        logged(server, &group, "v1", verb).await;
        let asked = versions_asked(server, &group);
        let versions: Vec<&str> = asked.keys().map(String::as_str).collect();
        assert_eq!(versions, ["v1"], "{}: {asked:?}", server.name());
    }
    drop_crds(&[&hub, &edge], &definition).await;
}

// The other half of spec scenario 24.
async fn an_edge_that_serves_only_another_version_gets_its_objects_through_that_one(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    hub.create(&crd_at(&group, "gauges", &["v2", "v1"])).await;
    edge.create(&crd_at(&group, "gauges", &["v2"])).await;
    for side in [&hub, &edge] {
        wait_for_crd(side, &definition).await;
    }
    hub.create(&namespace(&shop)).await;
    hub.create(&syncer_config("the-one", gauges(&group, &shop))).await;
    let mut syncer = pair.syncer(flags);
    gauge_lives_and_dies(&hub, &edge, &group, &shop, "v2").await;
    let said = format!("the edge serves another version, which is used there resource={definition} hub=v1 edge=v2");
    syncer.wait_for_log(&said, SOON).await;
    for (server, version, verb) in [(&pair.hub, "v1", "list"), (&pair.edge, "v2", "patch")] {
        logged(server, &group, version, verb).await;
        let asked = versions_asked(server, &group);
        let versions: Vec<&str> = asked.keys().map(String::as_str).collect();
        assert_eq!(versions, [version], "{}: {asked:?}", server.name());
    }
    drop_crds(&[&hub, &edge], &definition).await;
}

/// Selects the gauges of a namespace at `v1`.
fn gauges(group: &str, shop: &str) -> Value {
    json!({"namespaceScope": {"namespaces": [shop], "resources": [
        {"group": group, "resource": "gauges", "apiVersion": "v1"},
    ]}})
}

/// Waits until the audit log has a request that surely was sent: it is written behind the answers.
async fn logged(server: &Server, group: &str, version: &str, verb: &str) {
    eventually(
        &format!("{} has logged a {verb} at {version}", server.name()),
        SOON,
        async || {
            let asked = versions_asked(server, group);
            // A streaming list is a watch.
            let found = asked
                .get(version)
                .is_some_and(|verbs| verbs.iter().any(|done| done == verb || done == "watch"));
            if found { Ok(()) } else { Err(format!("{asked:?}")) }
        },
    )
    .await;
}

// Spec scenario 27, for SyncerConfigs.
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
    hub.create(&syncer_config(
        "one",
        json!({
            "namespacedObjects": [config_map_entry(&shop, &["first", "common"])],
            "namespaceScope": {"namespaces": [other], "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}]},
        }),
    ))
    .await;
    let two = [
        config_map_entry(&shop, &["common", "second"]),
        config_map_entry(&other, &["common"]),
    ];
    hub.create(&syncer_config("two", json!({"namespacedObjects": two})))
        .await;
    let _syncer = pair.syncer(flags);
    let mut uids = Vec::new();
    for (space, name) in names {
        let copy = copy_equals(&edge, space, name, &json!({"v": "1"})).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    stays_absent(&edge, "v1", "configmaps", &shop, "neither").await;

    hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "one")
        .await;
    remains(&edge, "v1", "configmaps", &shop, "first").await;
    for (space, name) in names {
        hub.replace(&config_map(space, name, json!({"v": "2"}))).await;
    }
    for ((space, name), uid) in names.into_iter().zip(&uids) {
        // What no config covers any more stays as it was.
        let data = if name == "first" {
            json!({"v": "1"})
        } else {
            json!({"v": "2"})
        };
        let copy = copy_equals(&edge, space, name, &data).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "{space}/{name} was created again");
    }
    remains(&edge, "v1", "configmaps", &shop, "first").await;
    copy_equals(&edge, &shop, "first", &json!({"v": "1"})).await;
    copy_equals(&edge, &other, "first", &json!({"v": "1"})).await;
    // A copy that is covered is still put right, and all go with their hub objects.
    edge.delete("v1", "configmaps", &other, "common").await;
    copy_equals(&edge, &other, "common", &json!({"v": "2"})).await;
    for (space, name) in names {
        hub.delete("v1", "configmaps", space, name).await;
    }
    for (space, name) in names {
        gone(&edge, "v1", "configmaps", space, name).await;
    }
}

// Spec scenario 39, for downsync.
async fn hub_changes_during_an_edge_restart_arrive_without_recreating_any_copy(flags: Mode) {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    let name = |index: usize| format!("c{index}");
    for index in 0..20 {
        hub.create(&config_map(&shop, &name(index), json!({"v": "1"}))).await;
    }
    hub.create(&syncer_config(
        "the-one",
        json!({"namespacedObjects": [config_map_entry(&shop, &["*"])]}),
    ))
    .await;
    let mut syncer = pair.syncer(flags);
    let mut uids = Vec::new();
    for index in 0..20 {
        let copy = copy_equals(&edge, &shop, &name(index), &json!({"v": "1"})).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    // The first changes are on their way when the edge goes.
    for index in 0..20 {
        hub.replace(&config_map(&shop, &name(index), json!({"v": "2"}))).await;
        if index == 5 {
            pair.edge.stop_apiserver();
        }
    }
    hub.delete("v1", "configmaps", &shop, "c0").await;
    hub.create(&config_map(&shop, "new", json!({"v": "2"}))).await;
    // So that it has met the closed door.
    syncer.wait_for_log("cannot reach the edge", SOON).await;
    pair.edge.start_apiserver().await;
    hub.replace(&config_map(&shop, "c1", json!({"v": "3"}))).await;

    let edge = pair.edge.objects();
    gone(&edge, "v1", "configmaps", &shop, "c0").await;
    copy_equals(&edge, &shop, "new", &json!({"v": "2"})).await;
    for (index, uid) in uids.iter().enumerate().skip(1) {
        let data = if index == 1 { "3" } else { "2" };
        let copy = copy_equals(&edge, &shop, &name(index), &json!({"v": data})).await;
        assert_eq!(copy["metadata"]["uid"], *uid, "c{index} was created again");
        assert_eq!(annotation(&copy, "adopted"), Value::Null, "c{index} is our own copy");
    }
    // It has not missed the restart: changes at the edge and at the hub are seen again.
    edge.delete("v1", "configmaps", &shop, "c2").await;
    copy_equals(&edge, &shop, "c2", &json!({"v": "2"})).await;
    hub.replace(&config_map(&shop, "c3", json!({"v": "4"}))).await;
    copy_equals(&edge, &shop, "c3", &json!({"v": "4"})).await;
    assert!(syncer.is_running());
}

// Spec scenario 41, but for the comparison with Go.
async fn a_thousand_config_maps_in_twenty_namespaces_converge_with_bounded_memory_and_requests(flags: Mode) {
    const SPACES: usize = 20;
    const EACH: usize = 50;
    /// Discovery, lists, watches, the record of types, and a few writes that are told to come again.
    const OTHERS: usize = 60;
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let spaces: Vec<String> = (0..SPACES).map(|_| pair.namespace("load")).collect();
    let body = "x".repeat(1024);
    for space in &spaces {
        hub.create(&namespace(space)).await;
    }
    let objects = spaces
        .iter()
        .flat_map(|space| (0..EACH).map(move |index| (space, index)))
        .map(|(space, index)| config_map(space, &format!("c{index}"), json!({"body": body})));
    in_parallel(
        objects.map(|object| {
            let hub = &hub;
            async move { hub.create(&object).await }
        }),
        16,
    )
    .await;
    hub.create(&syncer_config(
        "the-one",
        json!({"namespaceScope": {"namespaces": spaces, "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}]}}),
    ))
    .await;
    let marks = [&pair.hub, &pair.edge].map(Server::audit_mark);
    let mut syncer = pair.syncer(flags);
    eventually("all copies arrive", Duration::from_secs(120), async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let copies = edge.try_list("v1", "configmaps", "", "edge.kubestellar.io/downsynced=true");
        let copies = copies.await.map_err(|error| error.to_string())?;
        let ours = |copy: &&Value| {
            spaces.iter().any(|space| copy["metadata"]["namespace"] == **space) && copy["data"]["body"] == *body
        };
        match copies.iter().filter(ours).count() {
            count if count == SPACES * EACH => Ok(()),
            count => Err(format!("{count} copies")),
        }
    })
    .await;
    let peak = syncer.peak_kb();
    // The debug binary that cargo builds for the tests has several times the code in memory.
    let most = if std::env::var_os("EDGE_SYNCER_BIN").is_some() {
        10_000
    } else {
        40_000
    };
    assert!(peak < most, "peak memory {peak} kB, not below {most}");

    let sent = || -> Vec<AuditEvent> {
        let servers = [&pair.hub, &pair.edge].into_iter().zip(marks);
        servers
            .flat_map(|(server, mark)| server.requests_since(SYNCER, mark))
            .collect()
    };
    let needed = SPACES * EACH + SPACES;
    eventually("all writes are in the audit log", SOON, async || {
        let writes = sent().iter().filter(|event| event.is_write()).count();
        if writes >= needed { Ok(()) } else { Err(writes) }
    })
    .await;
    syncer.terminate().await;
    let copies = edge
        .list("v1", "configmaps", "", "edge.kubestellar.io/downsynced=true")
        .await;
    let adopted = copies.iter().filter(|copy| !annotation(copy, "adopted").is_null());
    assert_eq!(adopted.count(), 0, "nobody else has made any of them");
    // Each poll interval adds requests, so that only watching has a bound.
    if flags.is_empty() {
        let all = sent();
        let mut kinds: BTreeMap<(&str, u16), usize> = BTreeMap::new();
        for event in &all {
            *kinds.entry((&event.verb, event.code)).or_default() += 1;
        }
        assert!(
            all.len() <= needed + OTHERS,
            "{} requests; expected at most one write for each of {} objects and {SPACES} namespaces, and {OTHERS} \
             others: {kinds:?}",
            all.len(),
            SPACES * EACH,
        );
    }
}

// Spec 3.5 and 3.7.
async fn a_namespace_goes_after_all_in_it_when_all_went_while_the_syncer_was_away(flags: Mode) {
    // So many deletes at once would be held.
    const TYPES: [&str; 3] = ["configmaps", "secrets", "serviceaccounts"];
    // So many deletes at once would be held.
    let flags: Vec<&str> = flags.iter().copied().chain(["--hold-deletes-for=0s"]).collect();
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // Which list is there first is a matter of luck.
    for _ in 0..3 {
        let spaces = ["a", "b"].map(|prefix| pair.namespace(prefix));
        for space in &spaces {
            hub.create(&namespace(space)).await;
            for object in ordinary(space) {
                hub.create(&object).await;
            }
            for index in 0..30 {
                hub.create(&config_map(space, &format!("c{index}"), json!({}))).await;
            }
        }
        let types = TYPES.map(|plural| json!({"group": "", "resource": plural, "apiVersion": "v1"}));
        hub.create(&syncer_config(
            "the-one",
            json!({"namespaceScope": {"namespaces": spaces, "resources": types}}),
        ))
        .await;
        let mut syncer = pair.syncer(&flags);
        for space in &spaces {
            for plural in TYPES {
                arrives(&edge, "v1", plural, space, "ordinary").await;
            }
            for index in 0..30 {
                arrives(&edge, "v1", "configmaps", space, &format!("c{index}")).await;
            }
        }
        syncer.terminate().await;
        hub.remove_namespaces(&spaces).await;
        let mark = pair.edge.audit_mark();
        let _syncer = pair.syncer(&flags);
        let deletes = |space: &str| -> Vec<AuditEvent> {
            let path = format!("/api/v1/namespaces/{space}");
            let requests = pair.edge.requests_since(SYNCER, mark);
            let mine = requests.into_iter().filter(|event| event.uri.starts_with(&path));
            mine.filter(|event| event.verb == "delete" && event.code < 300)
                .collect()
        };
        for space in &spaces {
            for plural in TYPES {
                eventually(&format!("{plural} of {space} go"), SOON, async || {
                    let left = edge.try_list("v1", plural, space, "edge.kubestellar.io/downsynced=true");
                    match left.await {
                        Ok(left) if left.is_empty() => Ok(()),
                        Ok(left) => Err(format!("{} are left", left.len())),
                        Err(error) => Err(error.to_string()),
                    }
                })
                .await;
            }
            // 30 and the ordinary ConfigMap, Secret and ServiceAccount, and the namespace.
            eventually("each is deleted once", SOON, async || match deletes(space).len() {
                34 => Ok(()),
                count => Err(format!("{count} deletes")),
            })
            .await;
            let of_namespace = |event: &AuditEvent| event.uri.split('/').count() == 5;
            let position = deletes(space).iter().position(of_namespace);
            assert_eq!(position, Some(33), "the namespace goes last");
            eventually("the namespace is deleted", SOON, async || {
                let copy = edge.get("v1", "namespaces", "", space).await;
                if copy.is_none_or(|copy| !copy["metadata"]["deletionTimestamp"].is_null()) {
                    Ok(())
                } else {
                    Err("not yet")
                }
            })
            .await;
        }
        hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
            .await;
    }
}

/// The object with more of `metadata`.
fn with_metadata(mut object: Value, metadata: &Value) -> Value {
    for (field, value) in metadata.as_object().expect("it is an object") {
        let target = &mut object["metadata"][field];
        match (target.as_object_mut(), value.as_object()) {
            (Some(old), Some(new)) => old.extend(new.clone()),
            _ => *target = value.clone(),
        }
    }
    object
}

/// Deletes a CRD at both sides; its objects must not be held by finalizers.
async fn drop_crds(sides: &[&Objects], definition: &str) {
    for side in sides {
        side.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", "", definition)
            .await;
    }
}

/// Runs futures, so many at once.
async fn in_parallel<F: Future>(futures: impl Iterator<Item = F>, at_once: usize) {
    use futures_util::StreamExt;
    futures_util::stream::iter(futures)
        .buffer_unordered(at_once)
        .for_each(|_| async {})
        .await;
}
