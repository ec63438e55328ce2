//! Types that a side serves at several versions, or not at the configured one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{namespace, syncer_config};
use crate::support::stage::{CONFIG_API, Stage, all_of, select, stage};
use crate::support::story::{SOON, annotation, arrives, becomes, crd, custom_object, drop_crds, gone};
use crate::support::{Objects, SYNCER, Server, eventually, wait_for_crd};

in_both_modes!(
    both_sides_are_asked_at_the_configured_version_whatever_they_prefer,
    an_edge_that_serves_only_another_version_gets_its_objects_through_that_one,
    of_two_configured_versions_the_hubs_preferred_is_used_and_a_change_of_it_deletes_nothing,
    autoscalers_that_are_selected_at_v1_lose_nothing_and_keep_nothing,
);

async fn both_sides_are_asked_at_the_configured_version_whatever_they_prefer(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    hub.create(&crd_at(&group, "gauges", &["v1", "v2", "v3"])).await;
    edge.create(&crd_at(&group, "gauges", &["v1", "v2"])).await;
    for (side, preferred) in [(&hub, "v3"), (&edge, "v2")] {
        wait_for_crd(side, &definition).await;
        prefers(side, &group, preferred).await;
    }
    hub.create(&namespace(&shop)).await;
    select(&hub, &gauges(&group, &shop)).await;
    let mut syncer = pair.syncer(flags);
    gauge_lives_and_dies(&hub, &edge, &group, &shop, "v1").await;
    for (server, verb) in [(&pair.hub, "list"), (&pair.edge, "patch")] {
        logged(server, &group, "v1", verb).await;
        let asked = versions_asked(server, &group);
        let versions: Vec<&str> = asked.keys().map(String::as_str).collect();
        assert_eq!(versions, ["v1"], "{}: {asked:?}", server.name());
    }
    // The hub stores it at v3.
    let said = format!(
        "reason=NotStoredVersion msg=\"objects are stored at another version; what the configured one \
        lacks is not synced\" side=hub resource={definition} version=v1 config=SyncerConfig//the-one"
    );
    syncer.wait_for_log(&said, SOON).await;
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

async fn an_edge_that_serves_only_another_version_gets_its_objects_through_that_one(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    hub.create(&crd_at(&group, "gauges", &["v2", "v1"])).await;
    edge.create(&crd_at(&group, "gauges", &["v2"])).await;
    for side in [&hub, &edge] {
        wait_for_crd(side, &definition).await;
    }
    hub.create(&namespace(&shop)).await;
    select(&hub, &gauges(&group, &shop)).await;
    let mut syncer = pair.syncer(flags);
    gauge_lives_and_dies(&hub, &edge, &group, &shop, "v2").await;
    let said = format!("which is used there\" side=edge resource={definition} hub=v1 edge=v2");
    syncer.wait_for_log(&said, SOON).await;
    for (server, version, verb) in [(&pair.hub, "v1", "list"), (&pair.edge, "v2", "patch")] {
        logged(server, &group, version, verb).await;
        let asked = versions_asked(server, &group);
        let versions: Vec<&str> = asked.keys().map(String::as_str).collect();
        assert_eq!(versions, [version], "{}: {asked:?}", server.name());
    }
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

async fn of_two_configured_versions_the_hubs_preferred_is_used_and_a_change_of_it_deletes_nothing(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    for (side, versions) in [(&hub, ["v1", "v2"]), (&edge, ["v2", "v1"])] {
        side.create(&crd_at(&group, "gauges", &versions)).await;
        wait_for_crd(side, &definition).await;
        prefers(side, &group, "v2").await;
    }
    hub.create(&namespace(&shop)).await;
    for name in ["a", "b"] {
        hub.create(&custom_object(&group, "gauges", &shop, name, 1)).await;
    }
    let one = |name: &str, version: &str| {
        json!({"namespacedObjects": [{"group": group, "resource": "gauges", "apiVersion": version,
            "objectsByNamespace": [{"namespace": shop, "names": [name]}]}]})
    };
    select(&hub, &one("a", "v1")).await;
    let mut syncer = pair.syncer(flags);
    let at = format!("{group}/v1");
    let first = arrives(&edge, &at, "gauges", &shop, "a").await;
    assert!(!versions_asked(&pair.hub, &group).contains_key("v2"));
    // Its place among the configs does not matter.
    hub.create(&syncer_config("zoo", one("b", "v2"))).await;
    let second = arrives(&edge, &at, "gauges", &shop, "b").await;
    logged(&pair.hub, &group, "v2", "list").await;
    syncer
        .wait_for_log(
            "config=SyncerConfig//the-one field=spec.namespacedObjects[0] error=",
            SOON,
        )
        .await;
    let mark = pair.edge.audit_mark();
    hub.delete(CONFIG_API, "syncerconfigs", "", "zoo").await;
    syncer
        .wait_for_log(
            "reason=ConfigCorrected msg=\"no longer a problem\" config=SyncerConfig//the-one",
            SOON,
        )
        .await;
    hub.merge_patch(&at, "gauges", &shop, "a", &json!({"spec": {"size": 2}}))
        .await;
    for (name, uid, size) in [("a", &first, 2), ("b", &second, 1)] {
        eventually(&format!("{name} has size {size}"), SOON, async || {
            let copy = edge.get(&at, "gauges", &shop, name).await.ok_or("it is gone")?;
            assert_eq!(
                copy["metadata"]["uid"], uid["metadata"]["uid"],
                "{name} was created again"
            );
            if copy["spec"]["size"] == json!(size) {
                Ok(())
            } else {
                Err("it is as before")
            }
        })
        .await;
    }
    let requests = pair.edge.requests_since(SYNCER, mark).into_iter();
    let deletes = requests.filter(|request| request.verb == "delete" && request.uri.contains(&group));
    assert_eq!(deletes.count(), 0);
    hub.delete(&at, "gauges", &shop, "b").await;
    gone(&edge, &at, "gauges", &shop, "b").await;
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

// Issue 41: at v1, metrics and behavior are annotations, and what the hub dropped of them stayed in the copy.
async fn autoscalers_that_are_selected_at_v1_lose_nothing_and_keep_nothing(flags: Mode) {
    const SCALERS: &str = "horizontalpodautoscalers";
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    edge.create(&namespace(&shop)).await;
    let metric = |name: &str, percent: u32| {
        json!({"type": "Resource",
            "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": percent}}})
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let scaler = |name: &str| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"namespace": shop, "name": name},
            "spec": {"maxReplicas": 5, "scaleTargetRef": target, "metrics": [metric("memory", 80), metric("cpu", 60)],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}}}})
    };
    for name in ["new", "old"] {
        hub.create(&scaler(name)).await;
    }
    // A copy as it was applied at v1 before.
    let mut old = hub
        .get("autoscaling/v1", SCALERS, &shop, "old")
        .await
        .expect("it was created");
    old["metadata"] = json!({"namespace": shop, "name": "old", "annotations": old["metadata"]["annotations"]});
    edge.apply_as("edge-syncer", &old).await;
    select(&hub, &all_of(&shop, &[("autoscaling", SCALERS)])).await;
    let _syncer = pair.syncer(flags);
    for name in ["new", "old"] {
        let at = ["autoscaling/v2", SCALERS, &shop, name];
        let origin = hub.get(at[0], at[1], at[2], at[3]).await.expect("it was created");
        becomes(&edge, at, "is as at the hub", |copy| copy["spec"] == origin["spec"]).await;
        let dropped = json!({"spec": {"behavior": null, "metrics": [metric("cpu", 60)], "maxReplicas": 7}});
        let origin = hub.merge_patch(at[0], at[1], at[2], at[3], &dropped).await;
        becomes(&edge, at, "is as at the hub again", |copy| {
            copy["spec"] == origin["spec"]
        })
        .await;
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

/// Selects the gauges of a namespace at `v1`.
fn gauges(group: &str, shop: &str) -> Value {
    json!({"namespaceScope": {"namespaces": [shop], "resources": [
        {"group": group, "resource": "gauges", "apiVersion": "v1"},
    ]}})
}
