//! What survives a restart, and what a syncer finds that another one left behind.

use std::time::Duration;

use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, all_of, config_maps, deselect, numbered, select, stage, stock};
use crate::support::story::{
    SOON, annotation, arrives, copy_equals, crd, custom_object, drop_crds, gone, install_crd, remains, reselect, serve,
};
use crate::support::{eventually, flow, holds_throughout};
use serde_json::{Value, json};

in_both_modes!(
    deselecting_keeps_a_copy_until_the_hub_deletes_its_object_in_either_order,
    what_was_deleted_while_it_was_away_goes_also_when_it_is_no_longer_selected,
    a_type_that_no_config_names_any_more_is_remembered_across_a_restart,
    copies_go_when_the_config_is_emptied_and_the_api_removed_and_the_namespace_stays,
    copies_of_the_go_syncer_are_taken_over_and_lose_what_the_hub_has_dropped,
    a_hub_in_the_record_that_is_no_uid_is_not_believed,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    kill_9_at_any_moment_is_followed_by_convergence_without_recreating_anything,
);

const NOTHING: &str = "the record of synced types is empty";

async fn deselecting_keeps_a_copy_until_the_hub_deletes_its_object_in_either_order(flags: Mode) {
    let flow = flow::downsync().await;
    let _syncer = flow.deselected_in_either_order(flags).await;
}

async fn what_was_deleted_while_it_was_away_goes_also_when_it_is_no_longer_selected(flags: Mode) {
    let flow = flow::downsync().await;
    let _syncer = flow.changed_while_it_is_away(flags).await;
}

// The same for a whole type: nothing names it any more when the syncer comes back.
async fn a_type_that_no_config_names_any_more_is_remembered_across_a_restart(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["a"])).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.kill();
    deselect(&hub).await;
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
            .get("v1", "configmaps", "default", "edge-syncer-types-test")
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

/// A record that somebody else has written to named a hub that no hub can be: every delete was held for ever.
async fn a_hub_in_the_record_that_is_no_uid_is_not_believed(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
    syncer.kill();
    let written = json!({"data": {"hub": "not-a-uid\n", "former-hubs": "a/b", "confirmed": "..", "holds": "downsync TooMany  1 0"}});
    edge.merge_patch("v1", "configmaps", "default", "edge-syncer-types-test", &written)
        .await;
    let mut syncer = pair.syncer(flags);
    let line = "side=edge object=ConfigMap/default/edge-syncer-types-test keys=holds,hub,former-hubs,confirmed";
    syncer.wait_for_log(line, SOON).await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    remains(&edge, "v1", "configmaps", &shop, "b").await;
}

async fn copies_go_when_the_config_is_emptied_and_the_api_removed_and_the_namespace_stays(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let (version, definition) = (format!("{group}/v1"), format!("gauges.{group}"));
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, &version, "gauges", &shop, "a").await;

    // While it is selected, a vanished API proves nothing.
    serve(&hub, &definition, false).await;
    syncer.wait_for_log("reason=TypeNotServed", SOON).await;
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
    eventually("it continues", SOON, async || {
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
    // Its objects are there as long as its CRD is.
    holds_throughout("the copy stays", Duration::from_secs(20), async || {
        let copy = edge.get(&version, "gauges", &shop, "a").await;
        copy.map(|_| ()).ok_or("it was deleted")
    })
    .await;
    drop_crds(&[&hub], &[&definition]).await;
    eventually(
        "the copy goes once the hub has confirmed",
        Duration::from_secs(300),
        async || match edge.get(&version, "gauges", &shop, "a").await {
            None => Ok(()),
            Some(_) => Err("it is still there"),
        },
    )
    .await;
    let space = arrives(&edge, "v1", "namespaces", "", &shop).await;
    assert_eq!(space["metadata"]["deletionTimestamp"], Value::Null);
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

async fn kill_9_at_any_moment_is_followed_by_convergence_without_recreating_anything(flags: Mode) {
    let flow = flow::downsync().await;
    let (_syncer, data) = flow.survives_crashes(flags).await;
    for name in &numbered(30)[1..] {
        let copy = copy_equals(&flow.to, &flow.shop, name, &data).await;
        let adopted = annotation(&copy, "adopted");
        assert_eq!(adopted, Value::Null, "our own copy is not somebody else's");
    }
    flow.copy_goes("c0").await;
}

async fn copies_of_the_go_syncer_are_taken_over_and_lose_what_the_hub_has_dropped(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
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
    select(&hub, &config_maps(&shop, &["*"])).await;
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
