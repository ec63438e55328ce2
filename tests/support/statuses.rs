//! What the tests of status share.

use serde_json::{Value, json};

use super::modes::Mode;
use super::objects::{JSON, Objects, namespace, path};
use super::stage::{Stage, all_of, select, stage};
use super::story::{SOON, arrives, becomes};
use super::{AuditEvent, AuditMark, Pair, SYNCER, Syncer, eventually};

/// A Deployment called `web`.
pub fn deployment(shop: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": shop, "name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

/// Selects all Deployments of a namespace.
pub async fn select_deployments(hub: &Objects, shop: &str) {
    select(hub, &all_of(shop, &[("apps", "deployments")])).await;
}

/// An object by `apiVersion`, plural, namespace and name.
pub type At<'a> = [&'a str; 4];

/// Replaces the whole status of an object, through the subresource or in the object itself.
pub async fn set_status(side: &Objects, at: At<'_>, subresource: bool, status: &Value) {
    let [api_version, plural, namespace, name] = at;
    let path = path(api_version, plural, namespace, name);
    let target = if subresource {
        format!("{path}/status")
    } else {
        path.clone()
    };
    eventually("the status is set", SOON, async || {
        let mut object = side.read(&path).await.map_err(|error| error.to_string())?;
        object["status"] = status.clone();
        let written = side.send(http::Method::PUT, &target, JSON, Some(&object)).await;
        written.map_err(|error| error.to_string())
    })
    .await;
}

/// Waits until the status of an object at the hub is exactly this.
pub async fn returns(hub: &Objects, at: At<'_>, status: &Value) -> Value {
    becomes(hub, at, &format!("has the status {status}"), |object| {
        object["status"] == *status
    })
    .await
}

/// The requests of the syncer that wrote a status of an object to the hub since `mark`.
pub fn status_writes(pair: &Pair, mark: AuditMark, object: &str) -> Vec<AuditEvent> {
    let requests = pair.hub.requests_since(SYNCER, mark).into_iter();
    requests
        .filter(|event| event.is_write() && event.uri.contains(object))
        .collect()
}

/// The Deployment of [`deployment`] at either side.
pub fn web(shop: &str) -> At<'_> {
    ["apps/v1", "deployments", shop, "web"]
}

/// People change the Deployment at the hub, and the copy follows; gives the copy.
pub async fn scale(hub: &Objects, edge: &Objects, shop: &str) -> Value {
    let patch = json!({"spec": {"replicas": 5}});
    hub.merge_patch("apps/v1", "deployments", shop, "web", &patch).await;
    let is_scaled = |copy: &Value| copy["spec"]["replicas"] == json!(5);
    becomes(edge, web(shop), "has 5 replicas", is_scaled).await
}

/// A test that begins with a Deployment that has arrived at the edge.
pub async fn deployed(flags: Mode) -> (Stage, Syncer) {
    let stage = stage().await;
    stage.hub.create(&namespace(&stage.shop)).await;
    stage.hub.create(&deployment(&stage.shop, "web:1")).await;
    select_deployments(&stage.hub, &stage.shop).await;
    let syncer = stage.pair.syncer(flags);
    arrives(&stage.edge, "apps/v1", "deployments", &stage.shop, "web").await;
    (stage, syncer)
}
