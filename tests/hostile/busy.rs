//! A copy that something writes to all the time.

use std::time::Duration;

use serde_json::json;

use crate::support::fault_proxy::FaultProxy;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{code, namespace};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::statuses::{deployment, returns, select_deployments};
use crate::support::story::{
    arrives, crd, crd_without_status, custom_object, drop_crds, gone, install_crd, most_corrections, upsync_all,
};
use crate::support::{Objects, Syncer};

in_both_modes!(
    a_copy_whose_status_changes_all_the_time_goes_with_its_origin_over_a_slow_link,
    a_copy_that_is_changed_back_with_a_new_status_each_time_is_written_ever_less_often,
    a_copy_at_the_hub_that_is_changed_back_with_a_new_status_each_time_is_written_ever_less_often,
);

/// A round trip to the hub.
const LATENCY: Duration = Duration::from_millis(300);
/// Between two changes of the status: less than one round trip.
const BEAT: Duration = Duration::from_millis(100);

async fn a_copy_whose_status_changes_all_the_time_goes_with_its_origin_over_a_slow_link(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let proxy = FaultProxy::start().await;
    let link = proxy.link(&pair.hub).await;
    link.delay(LATENCY).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&deployment(&shop, "web:1")).await;
    select_deployments(&hub, &shop).await;
    let _syncer = Syncer::start(&link.kubeconfig(&pair.hub), &pair.edge.kubeconfig(), flags);
    arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    let controller = keep_busy(&edge, &shop);
    let story = async {
        hub.delete("apps/v1", "deployments", &shop, "web").await;
        gone(&edge, "apps/v1", "deployments", &shop, "web").await;
    };
    tokio::select! {
        () = controller => {}
        () = story => {}
    }
    gone(&edge, "apps/v1", "deployments", &shop, "web").await;
}

/// As a controller does that carries out an order, takes it away, and says in the status that it was done. The status goes
/// to the hub, whose watch reports the origin each time.
async fn a_copy_that_is_changed_back_with_a_new_status_each_time_is_written_ever_less_often(flags: Mode) {
    is_written_ever_less_often(flags, false).await;
}

/// The same of an upsynced copy, over which another client of the hub fights, while the status of its origin changes.
async fn a_copy_at_the_hub_that_is_changed_back_with_a_new_status_each_time_is_written_ever_less_often(flags: Mode) {
    is_written_ever_less_often(flags, true).await;
}

async fn is_written_ever_less_often(flags: Mode, up: bool) {
    const WHILE: Duration = Duration::from_secs(12);
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let (origins, copies) = if up { (&edge, &hub) } else { (&hub, &edge) };
    origins.create(&namespace(&shop)).await;
    let types = [
        ("orders", crd(&group, "orders", true)),
        ("parcels", crd_without_status(&group, "parcels", true)),
    ];
    for (plural, definition) in &types {
        install_crd(&[&hub, &edge], definition).await;
        origins.create(&custom_object(&group, plural, &shop, "it", 1)).await;
    }
    let spec = if up {
        json!({"upsync": [upsync_all(&group, &["orders", "parcels"], &shop)]})
    } else {
        all_of(&shop, &[(&group, "orders"), (&group, "parcels")])
    };
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    for (plural, _) in &types {
        arrives(copies, &version, plural, &shop, "it").await;
    }
    let (mut rounds, begin) = ([0, 0], tokio::time::Instant::now());
    while begin.elapsed() < WHILE {
        for ((plural, _), rounds) in types.iter().zip(&mut rounds) {
            let copy = copies
                .get(&version, plural, &shop, "it")
                .await
                .expect("it is never deleted");
            if copy["spec"]["size"] == json!(1) {
                *rounds += 1;
                let (size, status) = (json!({"spec": {"size": 9}}), json!({"rounds": rounds}));
                copies.merge_patch(&version, plural, &shop, "it", &size).await;
                // It is that of the edge in both directions.
                if *plural == "orders" {
                    edge.patch_status(&version, plural, &shop, "it", &status).await;
                } else {
                    edge.merge_patch(&version, plural, &shop, "it", &json!({"status": status}))
                        .await;
                }
            }
        }
        tokio::time::sleep(BEAT).await;
    }
    let fought = begin.elapsed();
    for ((plural, _), rounds) in types.iter().zip(rounds) {
        let most = most_corrections(fought);
        assert!((3..=most).contains(&rounds), "{rounds} of {plural} in {fought:?}");
        let at_edge = edge
            .get(&version, plural, &shop, "it")
            .await
            .expect("it is never deleted");
        returns(&hub, [&version, plural, &shop, "it"], &at_edge["status"]).await;
    }
    drop_crds(
        &[&hub, &edge],
        &types
            .each_ref()
            .map(|(_, of)| of["metadata"]["name"].as_str().expect("it has one")),
    )
    .await;
}

/// Changes the status of the Deployment again and again, until it is gone.
async fn keep_busy(edge: &Objects, shop: &str) {
    let path = format!("/apis/apps/v1/namespaces/{shop}/deployments/web/status");
    for count in 1.. {
        let body = json!({"status": {"observedGeneration": 1, "collisionCount": count}});
        let kind = crate::support::objects::MERGE_PATCH;
        match edge.send(http::Method::PATCH, &path, kind, Some(&body)).await {
            Err(error) if code(&error) == 404 => return,
            // One that came between is no matter.
            Err(error) if code(&error) == 409 => {}
            other => {
                other.unwrap_or_else(|error| panic!("cannot change the status: {error}"));
            }
        }
        tokio::time::sleep(BEAT).await;
    }
}
