//! The set-up that most tests begin with: the shared pair, a namespace of the test's own, `ConfigMap`s in it, and a
//! config called `the-one` that selects them.

use serde_json::{Value, json};

use super::objects::{Objects, config_map, edge_sync_config, namespace, syncer_config};
use super::story::{arrives, config_map_entry};
use super::{PairLease, shared_pair};

/// Version of both kinds of configs.
pub const CONFIG_API: &str = "edge.kubestellar.io/v2alpha1";

/// What one test works with; most take it apart at once.
pub struct Stage {
    /// The shared pair.
    pub pair: PairLease,
    /// Name of a namespace for this test, which is at neither side yet.
    pub shop: String,
    /// What is at the hub.
    pub hub: Objects,
    /// What is at the edge.
    pub edge: Objects,
}

/// Waits for the shared pair, and names a namespace for the test.
pub async fn stage() -> Stage {
    let pair = shared_pair().await;
    Stage {
        shop: pair.namespace("shop"),
        hub: pair.hub.objects(),
        edge: pair.edge.objects(),
        pair,
    }
}

/// Creates a namespace, and in it `ConfigMap`s of these names, which all hold the same data.
pub async fn stock(at: &Objects, shop: &str, names: &[impl AsRef<str>], data: &Value) {
    at.create(&namespace(shop)).await;
    for name in names {
        at.create(&config_map(shop, name.as_ref(), data.clone())).await;
    }
}

/// So many names: `c0`, `c1`, ...
pub fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("c{index}")).collect()
}

/// Creates the `SyncerConfig` `the-one`. [`super::story::reselect`] changes it.
pub async fn select(hub: &Objects, spec: &Value) {
    hub.create(&syncer_config("the-one", spec.clone())).await;
}

/// Deletes the `SyncerConfig` `the-one`.
pub async fn deselect(hub: &Objects) {
    hub.delete(CONFIG_API, "syncerconfigs", "", "the-one").await;
}

/// Creates a config of each kind, called `later`, that selects something new in a namespace, and waits until that has
/// arrived. Then the syncer also knows what has become of all configs before.
pub async fn later_configs_are_followed(hub: &Objects, edge: &Objects, shop: &str) {
    let names = ["proof", "proof-by-kind"];
    for name in names {
        hub.create(&config_map(shop, name, json!({}))).await;
    }
    hub.create(&syncer_config("later", config_maps(shop, &names[..1])))
        .await;
    let refs = [config_map_ref(shop, names[1])];
    hub.create(&edge_sync_config("later", json!({"downSyncedResources": refs})))
        .await;
    for name in names {
        arrives(edge, "v1", "configmaps", shop, name).await;
    }
}

/// The spec of a `SyncerConfig` that selects `ConfigMap`s of one namespace and nothing else.
pub fn config_maps(shop: &str, names: &[&str]) -> Value {
    json!({"namespacedObjects": [config_map_entry(shop, names)]})
}

/// The spec of a `SyncerConfig` that selects all objects of some types, each a group and a plural, in one namespace, at
/// version `v1`.
pub fn all_of(shop: &str, types: &[(&str, &str)]) -> Value {
    all_of_each(&[shop], types)
}

/// As [`all_of`], in several namespaces.
pub fn all_of_each(namespaces: &[impl AsRef<str>], types: &[(&str, &str)]) -> Value {
    let namespaces: Vec<&str> = namespaces.iter().map(AsRef::as_ref).collect();
    json!({"namespaceScope": {"namespaces": namespaces, "resources": resources(types)}})
}

/// How a `SyncerConfig` names types, each a group and a plural, at version `v1`.
pub fn resources(types: &[(&str, &str)]) -> Vec<Value> {
    let resource = |(group, plural): &(&str, &str)| json!({"group": group, "resource": plural, "apiVersion": "v1"});
    types.iter().map(resource).collect()
}

/// How a `SyncerConfig` names cluster-scoped objects of a type at version `v1`.
pub fn cluster_objects(group: &str, plural: &str, names: &[&str]) -> Value {
    json!({"group": group, "resource": plural, "apiVersion": "v1", "objects": names})
}

/// Creates the `EdgeSyncConfig` `site`.
pub async fn select_by_kind(hub: &Objects, spec: &Value) {
    hub.create(&edge_sync_config("site", spec.clone())).await;
}

/// Changes the spec of the `EdgeSyncConfig` `site`; a list in it replaces the old one.
pub async fn reselect_by_kind(hub: &Objects, spec: &Value) {
    hub.merge_patch(CONFIG_API, "edgesyncconfigs", "", "site", &json!({"spec": spec}))
        .await;
}

/// Deletes the `EdgeSyncConfig` `site`.
pub async fn deselect_by_kind(hub: &Objects) {
    hub.delete(CONFIG_API, "edgesyncconfigs", "", "site").await;
}

/// The spec of an `EdgeSyncConfig` with about as much as the limits allow: in `shop`, `h2` at the hub is `c2` at the edge,
/// and so on.
pub fn largest(shop: &str) -> Value {
    let named = |kind: &str, name: String| json!({"version": "v1", "kind": kind, "name": name});
    let entry = |index: usize| {
        let name = if index < 4000 {
            format!("h{index}")
        } else {
            format!("e{index}")
        };
        let mut entry = named("ConfigMap", name);
        entry["namespace"] = json!(shop);
        entry
    };
    let conversion = |index: usize| {
        let kind = if index.is_multiple_of(2) { "ConfigMap" } else { "Secret" };
        json!({"upstream": named("ConfigMap", format!("h{index}")), "downstream": named(kind, format!("c{index}"))})
    };
    let entries: Vec<Value> = (0..11_000).map(entry).collect();
    let conversions: Vec<Value> = (0..4000).map(conversion).collect();
    json!({"downSyncedResources": entries, "conversions": conversions})
}

/// How an `EdgeSyncConfig` names `ConfigMap`s; the name may be `*`.
pub fn config_map_ref(namespace: &str, name: &str) -> Value {
    json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name})
}

/// How an `EdgeSyncConfig` names a namespace.
pub fn namespace_ref(name: &str) -> Value {
    json!({"version": "v1", "kind": "Namespace", "name": name})
}

/// How an `EdgeSyncConfig` names objects of a kind at version `v1`; the namespace is `null` for a cluster-scoped kind.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!(...) in place")]
pub fn custom_ref(group: &str, kind: &str, namespace: Value, name: &str) -> Value {
    json!({"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name})
}

/// An API group that only the test of this namespace has, and its version `v1`.
pub fn own_group(shop: &str) -> (String, String) {
    let group = format!("{shop}.example.org");
    let version = format!("{group}/v1");
    (group, version)
}
