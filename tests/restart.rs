//! What survives a restart, and what a syncer finds that another one left behind.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use support::modes::{Mode, in_both_modes, in_mode};
use support::objects::{config_map, namespace, syncer_config};
use support::story::{
    SOON, annotation, arrives, config_map_entry, copy_equals, crd, custom_object, gone, remains, reselect,
};
use support::{Objects, eventually, shared_pair, wait_for_crd};

in_both_modes!(
    deselecting_keeps_a_copy_until_the_hub_deletes_its_object_in_either_order,
    what_was_deleted_while_it_was_away_goes_also_when_it_is_no_longer_selected,
    a_type_that_no_config_names_any_more_is_remembered_across_a_restart,
    copies_go_when_the_config_is_emptied_and_the_api_removed_and_the_namespace_stays,
    copies_of_the_go_syncer_are_taken_over_and_lose_what_the_hub_has_dropped,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    kill_9_at_any_moment_is_followed_by_convergence_without_recreating_anything,
);

const NOTHING: &str = "the record of synced types is empty";

/// Makes the hub serve a CRD's type, or stop that without deleting its objects.
async fn serve(hub: &Objects, definition: &str, served: bool) {
    let mut object = hub
        .get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", definition)
        .await
        .expect("the CRD was created by the test");
    object["spec"]["versions"][0]["served"] = json!(served);
    hub.replace(&object).await;
}

fn select(shop: &str, names: &[&str]) -> Value {
    json!({"namespacedObjects": [config_map_entry(shop, names)]})
}

// Spec scenario 28.
async fn deselecting_keeps_a_copy_until_the_hub_deletes_its_object_in_either_order(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    for name in ["a", "b", "c"] {
        hub.create(&config_map(&shop, name, json!({}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["a", "b", "c"])))
        .await;
    let _syncer = pair.syncer(flags);
    for name in ["a", "b", "c"] {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    // Deleted first, deselected second.
    hub.delete("v1", "configmaps", &shop, "a").await;
    reselect(&hub, &select(&shop, &["c"])).await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    remains(&edge, "v1", "configmaps", &shop, "b").await;
    // Deselected first, deleted second.
    hub.delete("v1", "configmaps", &shop, "b").await;
    gone(&edge, "v1", "configmaps", &shop, "b").await;
    remains(&edge, "v1", "configmaps", &shop, "c").await;
    // The whole config goes, and then its object.
    hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
        .await;
    remains(&edge, "v1", "configmaps", &shop, "c").await;
    hub.delete("v1", "configmaps", &shop, "c").await;
    gone(&edge, "v1", "configmaps", &shop, "c").await;
}

// Spec scenario 37.
async fn what_was_deleted_while_it_was_away_goes_also_when_it_is_no_longer_selected(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    for name in ["selected", "deselected", "kept", "lost"] {
        hub.create(&config_map(&shop, name, json!({}))).await;
    }
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let mut syncer = pair.syncer(flags);
    let mut uids = BTreeMap::new();
    for name in ["selected", "deselected", "kept", "lost"] {
        let copy = arrives(&edge, "v1", "configmaps", &shop, name).await;
        uids.insert(name, copy["metadata"]["uid"].clone());
    }
    syncer.kill();
    reselect(&hub, &select(&shop, &["selected", "lost"])).await;
    hub.delete("v1", "configmaps", &shop, "selected").await;
    hub.delete("v1", "configmaps", &shop, "deselected").await;
    edge.delete("v1", "configmaps", &shop, "lost").await;
    let _syncer = pair.syncer(flags);
    gone(&edge, "v1", "configmaps", &shop, "selected").await;
    gone(&edge, "v1", "configmaps", &shop, "deselected").await;
    arrives(&edge, "v1", "configmaps", &shop, "lost").await;
    let kept = remains(&edge, "v1", "configmaps", &shop, "kept").await;
    assert_eq!(kept["metadata"]["uid"], uids["kept"]);
}

// The same for a whole type: nothing names it any more when the syncer comes back.
async fn a_type_that_no_config_names_any_more_is_remembered_across_a_restart(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    hub.create(&config_map(&shop, "a", json!({}))).await;
    hub.create(&syncer_config("the-one", select(&shop, &["a"]))).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.kill();
    hub.delete("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
        .await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    let _syncer = pair.syncer(flags);
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    let space = arrives(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(
        space["metadata"]["deletionTimestamp"],
        Value::Null,
        "its hub namespace exists"
    );
    hub.remove_namespaces(std::slice::from_ref(&shop)).await;
    eventually(NOTHING, SOON, async || {
        let record = edge
            .get("v1", "configmaps", "default", "edge-syncer-types")
            .await
            .ok_or("no record")?;
        let types = record["data"]["types"].as_str().unwrap_or_default().to_owned();
        if types.contains("configmaps") {
            Err(types)
        } else {
            Ok(())
        }
    })
    .await;
}

// Spec scenario 29.
async fn copies_go_when_the_config_is_emptied_and_the_api_removed_and_the_namespace_stays(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{shop}.example.org");
    let (version, definition) = (format!("{group}/v1"), format!("gauges.{group}"));
    for side in [&hub, &edge] {
        side.create(&crd(&group, "gauges", true)).await;
        wait_for_crd(side, &definition).await;
    }
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [{"group": group, "resource": "gauges", "apiVersion": "v1"}]}});
    hub.create(&syncer_config("the-one", spec.clone())).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, &version, "gauges", &shop, "a").await;

    // Spec scenario 30: while it is selected, a vanished API proves nothing.
    serve(&hub, &definition, false).await;
    syncer.wait_for_log("does not serve a selected resource", SOON).await;
    let before = remains(&edge, &version, "gauges", &shop, "a").await;
    serve(&hub, &definition, true).await;
    eventually("the hub serves the type again", SOON, async || {
        let mut object = custom_object(&group, "gauges", &shop, "a", 2);
        let path = format!("/apis/{group}/v1/namespaces/{shop}/gauges/a");
        let current = hub.read(&path).await.map_err(|error| error.to_string())?;
        object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        hub.try_replace(&object).await.map_err(|error| error.to_string())
    })
    .await;
    eventually("it goes on", SOON, async || {
        let copy = edge.get(&version, "gauges", &shop, "a").await.ok_or("it was deleted")?;
        if copy["metadata"]["uid"] != before["metadata"]["uid"] {
            return Err("it was created again");
        }
        if copy["spec"]["size"] == json!(2) {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await;

    reselect(&hub, &json!({"namespaceScope": {"namespaces": [], "resources": []}})).await;
    serve(&hub, &definition, false).await;
    eventually(
        "the copy goes once the hub has confirmed",
        Duration::from_secs(90),
        async || match edge.get(&version, "gauges", &shop, "a").await {
            None => Ok(()),
            Some(_) => Err("it is still there"),
        },
    )
    .await;
    let space = arrives(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(space["metadata"]["deletionTimestamp"], Value::Null);
    for side in [&hub, &edge] {
        side.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition)
            .await;
    }
}

// Spec scenario 37.
async fn kill_9_at_any_moment_is_followed_by_convergence_without_recreating_anything(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(&shop)).await;
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    for index in 0..30 {
        hub.create(&config_map(&shop, &format!("c{index}"), json!({"round": "0"})))
            .await;
    }
    let mut uids: BTreeMap<String, Value> = BTreeMap::new();
    for round in 1..=12_u64 {
        let mut syncer = pair.syncer(flags);
        // From before it has connected to after it has come to rest.
        tokio::time::sleep(Duration::from_millis(round * round * 2)).await;
        syncer.kill();
        for copy in edge
            .list("v1", "configmaps", &shop, "edge.kubestellar.io/downsynced=true")
            .await
        {
            let name = copy["metadata"]["name"].as_str().expect("it has a name").to_owned();
            let uid = copy["metadata"]["uid"].clone();
            assert_eq!(
                *uids.entry(name.clone()).or_insert_with(|| uid.clone()),
                uid,
                "{name} was created again"
            );
        }
        for index in 0..30 {
            hub.replace(&config_map(
                &shop,
                &format!("c{index}"),
                json!({"round": round.to_string()}),
            ))
            .await;
        }
    }
    hub.delete("v1", "configmaps", &shop, "c0").await;
    let _syncer = pair.syncer(flags);
    for index in 1..30 {
        let copy = copy_equals(&edge, &shop, &format!("c{index}"), &json!({"round": "12"})).await;
        assert_eq!(
            annotation(&copy, "adopted"),
            Value::Null,
            "our own copy is not somebody else's"
        );
    }
    gone(&edge, "v1", "configmaps", &shop, "c0").await;
}

async fn copies_of_the_go_syncer_are_taken_over_and_lose_what_the_hub_has_dropped(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    // As the Go syncer writes: no label, a plain update by the manager "syncer".
    for name in ["kept", "orphan"] {
        edge.create(&config_map(&shop, name, json!({}))).await;
        let mut copy = config_map(&shop, name, json!({"a": "old", "dropped": "x"}));
        copy["metadata"]["annotations"] = json!({"edge.kubestellar.io/downsynced": format!("ConfigMap/{shop}/{name}")});
        edge.update_as("syncer", &copy).await;
    }
    let before = edge
        .get("v1", "configmaps", &shop, "kept")
        .await
        .expect("written above");
    hub.create(&config_map(&shop, "kept", json!({"a": "new"}))).await;
    hub.create(&syncer_config("the-one", select(&shop, &["*"]))).await;
    let _syncer = pair.syncer(flags);
    let copy = copy_equals(&edge, &shop, "kept", &json!({"a": "new"})).await;
    assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        copy["metadata"]["labels"]["edge.kubestellar.io/downsynced"],
        json!("true")
    );
    assert_eq!(annotation(&copy, "adopted"), Value::Null, "it is ours");
    gone(&edge, "v1", "configmaps", &shop, "orphan").await;
}
