//! Writing the object that stands for this edge at the hub.
//!
//! It is made if it is not there: `gen` of an earlier version has not made it. A hub without its type is no error, also where
//! the syncer lacks the permission for that type: a server refuses that first.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kube_lite::discovery::{Served, discover};
use kube_lite::{Cluster, Content, Error, ObjectName};
use serde_json::Value;
use tokio::time::timeout;

use crate::api::edge::{self, KubernetesVersions};
use crate::api::{GROUP, HEARTBEAT_FIELD_MANAGER, STATUS_FIELD_MANAGER, VERSION};
use crate::model::effect::{EdgeBeat, EdgeBeaten, EdgeResult, EdgeSeen, EdgeToWrite};

/// How long the next heartbeat may wait for the version of a server.
const VERSION_WAIT: Duration = Duration::from_secs(5);

/// Writes a heartbeat.
pub(super) async fn beat(hub: &Cluster, edge: &Rc<Cluster>, beat: EdgeBeat) -> EdgeBeaten {
    let result = match write(hub, &beat).await {
        Ok(answer) => EdgeResult::Kept(seen(&answer)),
        Err(error) if error.is_type_not_served() => EdgeResult::NotServed,
        Err(error) if error.is_forbidden() && !serves(hub).await => EdgeResult::NotServed,
        Err(error) => EdgeResult::Failed(error),
    };
    let versions = match result {
        EdgeResult::Kept(_) if beat.asks_versions => Some(KubernetesVersions {
            hub: version(hub).await,
            edge: version(edge).await,
        }),
        _ => None,
    };
    EdgeBeaten { result, versions }
}

/// Writes the heartbeat into the object, which is made if it is not there.
async fn write(hub: &Cluster, beat: &EdgeBeat) -> Result<Bytes, Error> {
    let (resource, at) = (edge::resource_type(), ObjectName::new("", &beat.name));
    let content = if beat.is_unknown {
        Content::Full
    } else {
        Content::Metadata
    };
    let apply = || hub.apply_status(&resource, &at, HEARTBEAT_FIELD_MANAGER, beat.body.clone(), content);
    match apply().await {
        Err(error) if error.proves_absent(&beat.name) => {
            hub.apply(&resource, &at, beat.object.clone(), Content::Metadata)
                .await?;
            apply().await
        }
        answer => answer,
    }
}

/// Writes what the edge says of itself.
pub(super) async fn write_status(hub: &Cluster, EdgeToWrite { name, body }: EdgeToWrite) -> Result<(), Error> {
    let (resource, at) = (edge::resource_type(), ObjectName::new("", &name));
    let answer = hub.apply_status(&resource, &at, STATUS_FIELD_MANAGER, body, Content::Metadata);
    answer.await.map(drop)
}

/// False if the hub says that it does not serve the type.
async fn serves(hub: &Cluster) -> bool {
    match discover(hub, &(GROUP.into(), VERSION.into())).await {
        Ok(Served::Resources(resources)) => resources.contains_key(edge::RESOURCE),
        Ok(Served::NotServed) => false,
        Err(_) => true,
    }
}

fn seen(answer: &[u8]) -> EdgeSeen {
    let object: Value = serde_json::from_slice(answer).unwrap_or_default();
    let metadata = &object["metadata"];
    EdgeSeen {
        uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        conditions: edge::conditions_of(&object),
    }
}

/// The version of a server; empty if it does not say it, or not soon.
async fn version(server: &Cluster) -> String {
    let answer = timeout(VERSION_WAIT, server.get_path("/version")).await;
    let answer = answer.ok().and_then(Result::ok).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    answer["gitVersion"].as_str().unwrap_or_default().to_owned()
}
