//! What the tests of status share.

use serde_json::{Value, json};

use super::objects::{JSON, Objects, path, syncer_config};
use super::story::{SOON, becomes};
use super::{AuditEvent, Pair, eventually};

/// How the user agent of the syncer begins.
const SYNCER: &str = "edge-syncer/";

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

/// A config that selects all Deployments of a namespace.
pub fn select_deployments(shop: &str) -> Value {
    syncer_config(
        "the-one",
        json!({"namespaceScope": {"namespaces": [shop], "resources": [
            {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
        ]}}),
    )
}

/// An object by `apiVersion`, plural, namespace and name.
type At<'a> = [&'a str; 4];

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
pub fn status_writes(pair: &Pair, mark: u64, object: &str) -> Vec<AuditEvent> {
    let requests = pair.hub.requests_since(SYNCER, mark).into_iter();
    requests
        .filter(|event| event.is_write() && event.uri.contains(object))
        .collect()
}
