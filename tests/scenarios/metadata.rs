//! What of an object's metadata is synced, and what each side keeps for itself.

use serde_json::{Value, json};

use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, all_of, config_maps, own_group, select, stage};
use crate::support::story::{arrives, becomes, copy_equals, crd, custom_object, drop_crds, gone, install_crd, remains};

in_both_modes!(
    what_edge_controllers_add_to_a_copy_survives_hub_updates,
    owners_finalizers_and_kcp_metadata_of_the_hub_do_not_arrive,
);

async fn what_edge_controllers_add_to_a_copy_survives_hub_updates(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    let metadata = json!({"labels": {"from": "hub", "dropped": "x"}, "annotations": {"from": "hub", "dropped": "x"}});
    for name in ["applied", "updated"] {
        hub.create(&with_metadata(config_map(&shop, name, json!({"v": "1"})), &metadata))
            .await;
    }
    let gauge = custom_object(&group, "gauges", &shop, "gauge", 1);
    hub.create(&with_metadata(gauge, &metadata)).await;
    hub.patch_status(&version, "gauges", &shop, "gauge", &json!({"at": "hub"}))
        .await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), (&group, "gauges")])).await;
    let _syncer = pair.syncer(flags);

    let copies = [
        ["v1", "configmaps", &shop, "applied"],
        ["v1", "configmaps", &shop, "updated"],
        [&version, "gauges", &shop, "gauge"],
    ];
    for at in copies {
        add_at_edge(&edge, at).await;
    }
    edge.patch_status(&version, "gauges", &shop, "gauge", &json!({"at": "edge"}))
        .await;
    for round in 2..4 {
        for at in copies {
            update_at_hub(&hub, at, round).await;
        }
        for at in copies {
            has_both(&edge, at, round).await;
        }
    }
    for side in [&hub, &edge] {
        side.delete_all(&version, "gauges", &shop).await;
    }
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

/// A controller at the edge adds to the metadata of a copy.
async fn add_at_edge(edge: &Objects, [api_version, plural, shop, name]: [&str; 4]) {
    let added = json!({
        "labels": {"added": "edge"}, "annotations": {"added": "edge"}, "finalizers": ["example.org/edge"],
    });
    let mut copy = arrives(edge, api_version, plural, shop, name).await;
    if name == "updated" {
        // Whatever the syncer does to it meanwhile.
        copy["metadata"]["resourceVersion"].take();
        // As a controller without server-side apply.
        edge.update_as("some-controller", &with_metadata(copy, &added)).await;
    } else {
        let part =
            json!({"apiVersion": api_version, "kind": copy["kind"], "metadata": {"namespace": shop, "name": name}});
        edge.apply_as("some-controller", &with_metadata(part, &added)).await;
    }
}

/// People change metadata and content of an object at the hub.
async fn update_at_hub(hub: &Objects, [api_version, plural, shop, name]: [&str; 4], round: u32) {
    let metadata = json!({"from": format!("hub-{round}"), "dropped": null});
    let mut patch = json!({"metadata": {"labels": metadata, "annotations": metadata}});
    if plural == "gauges" {
        patch["spec"] = json!({"size": round});
    } else {
        patch["data"] = json!({"v": round.to_string()});
    }
    hub.merge_patch(api_version, plural, shop, name, &patch).await;
}

/// Waits until a copy has the content of this round, and checks that it has the metadata of both sides then.
async fn has_both(edge: &Objects, at: [&str; 4], round: u32) {
    let [_, plural, _, name] = at;
    let copy = becomes(edge, at, &format!("has update {round}"), |copy| {
        copy["data"]["v"] == json!(round.to_string()) || copy["spec"]["size"] == json!(round)
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

async fn owners_finalizers_and_kcp_metadata_of_the_hub_do_not_arrive(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
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
    select(&hub, &config_maps(&shop, &["owned"])).await;
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
