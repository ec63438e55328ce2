//! A copy that something writes to all the time.

use std::time::Duration;

use serde_json::json;

use crate::support::fault_proxy::FaultProxy;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{code, namespace};
use crate::support::stage::{Stage, stage};
use crate::support::statuses::{deployment, select_deployments};
use crate::support::story::{arrives, gone};
use crate::support::{Objects, Syncer};

in_both_modes!(a_copy_whose_status_changes_all_the_time_goes_with_its_origin_over_a_slow_link);

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
