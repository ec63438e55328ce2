//! What the tests of `examples/` work with: the shared pair, and the files.

use http::Method;
use serde_json::{Value, json};

use crate::pages::read;
use crate::support::objects::{JSON, path};
use crate::support::story::{crd, drop_crds, gone};
use crate::support::{Objects, PairLease, shared_pair};

/// The API of CRDs.
pub(crate) const CRDS: [&str; 3] = ["apiextensions.k8s.io/v1", "customresourcedefinitions", ""];
/// The API of roles.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// The API of the reports that the examples select.
pub(crate) const REPORTS: &str = "wgpolicyk8s.io/v1alpha2";

/// The namespaces that the examples name, and one that they do not.
const NAMESPACES: [&str; 5] = ["shop", "billing", "unused", "other", "edge-syncer"];
/// The CRDs that the examples name.
const DEFINITIONS: [&str; 4] = [
    "gauges.metrics.example.org",
    "gauges.metrics.example.org.denatured",
    "policyreports.wgpolicyk8s.io",
    "clusterpolicyreports.wgpolicyk8s.io",
];
/// The roles and their bindings.
const ROLES: [&str; 3] = ["reader", "writer", "edge-syncer-site-7"];

/// Two clusters that have nothing of what the examples name.
pub(crate) struct Bench {
    pub(crate) pair: PairLease,
    pub(crate) hub: Objects,
    pub(crate) edge: Objects,
}

/// Waits for the shared pair, and removes what a test before has left of what the examples name.
pub(crate) async fn bench() -> Bench {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    tokio::join!(clear(&hub), clear(&edge));
    Bench { pair, hub, edge }
}

async fn clear(side: &Objects) {
    side.remove_namespaces(&NAMESPACES.map(str::to_owned)).await;
    drop_crds(&[side], &DEFINITIONS).await;
    let [api, plural, nowhere] = CRDS;
    for name in DEFINITIONS {
        gone(side, api, plural, nowhere, name).await;
    }
    for name in ROLES {
        side.delete(RBAC, "clusterrolebindings", "", name).await;
        side.delete(RBAC, "clusterroles", "", name).await;
        side.delete(RBAC, "rolebindings", "default", name).await;
        side.delete(RBAC, "roles", "default", name).await;
    }
    // What a syncer knows of the clusters from before.
    side.delete("v1", "configmaps", "default", "edge-syncer-types-test")
        .await;
}

/// The objects in a YAML file of the repository.
pub(crate) fn documents(file: &str) -> Vec<Value> {
    let text = read(file);
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}")))
        .collect()
}

/// Creates all objects of a file at a server that takes no field that it does not know.
pub(crate) async fn create_all(side: &Objects, file: &str) {
    for object in documents(file) {
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = field(&object["metadata"]["namespace"]);
        let collection = path(&field(&object["apiVersion"]), &field(&object["kind"]), &namespace, "");
        let strictly = format!("{collection}?fieldValidation=Strict");
        let created = side.send(Method::POST, &strictly, JSON, Some(&object)).await;
        created.unwrap_or_else(|error| panic!("{file}: {}: {error}", object["metadata"]["name"]));
    }
}

/// A CRD of reports, as the examples name them.
pub(crate) fn reports(kind: &str, namespaced: bool) -> Value {
    let mut definition = crd("wgpolicyk8s.io", &format!("{}s", kind.to_lowercase()), namespaced);
    definition["spec"]["names"]["kind"] = json!(kind);
    definition["spec"]["versions"][0]["name"] = json!("v1alpha2");
    definition
}

/// A report; an empty namespace for one of the cluster.
pub(crate) fn report(namespace: &str, name: &str) -> Value {
    let mut report = json!({"apiVersion": REPORTS, "kind": "ClusterPolicyReport", "metadata": {"name": name}});
    if !namespace.is_empty() {
        report["kind"] = json!("PolicyReport");
        report["metadata"]["namespace"] = json!(namespace);
    }
    report
}

/// A Service in the namespace shop.
pub(crate) fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": name},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}})
}
