//! What the tests of the guards share: many objects, and what the configs say of holds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::stage::{CONFIG_API, numbered, select, stock};
use crate::support::story::{SOON, arrives, config_map_entry};
use crate::support::{Objects, eventually, holds_throughout};

/// Annotation by which people confirm.
pub(crate) const CONFIRM: &str = "edge.kubestellar.io/confirm-deletes";
/// Heartbeats often, so that a test need not wait for what they bring.
pub(crate) const EACH_SECOND: &str = "--heartbeat-interval=1s";
pub(crate) const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced=true";
pub(crate) const UPSYNCED: &str = "edge.kubestellar.io/upsynced=true";

/// Selects the `ConfigMap`s of a namespace, and Secrets of it upward.
pub(crate) async fn select_all(hub: &Objects, shop: &str) {
    let spec = json!({
        "namespacedObjects": [config_map_entry(shop, &["*"])],
        "upsync": [{"resources": ["secrets"], "namespaces": [shop], "names": ["*"]}],
    });
    select(hub, &spec).await;
}

/// `c0`, `c1`, ...
pub(crate) fn names(range: std::ops::Range<usize>) -> BTreeSet<String> {
    range.map(|index| format!("c{index}")).collect()
}

/// Creates a namespace with so many `ConfigMap`s in it.
pub(crate) async fn create(at: &Objects, shop: &str, count: usize) {
    stock(at, shop, &numbered(count), &json!({"v": "1"})).await;
}

pub(crate) async fn delete(at: &Objects, shop: &str, names: &BTreeSet<String>) {
    for name in names {
        at.delete("v1", "configmaps", shop, name).await;
    }
}

/// The names of the copies in a namespace.
pub(crate) async fn copies(at: &Objects, shop: &str, label: &str) -> Result<BTreeSet<String>, String> {
    let found = at.try_list("v1", "configmaps", shop, label).await;
    let found = found.map_err(|error| error.to_string())?;
    let there = found
        .iter()
        .filter(|object| object["metadata"]["deletionTimestamp"].is_null());
    Ok(there
        .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

async fn are(at: &Objects, shop: &str, label: &str, expected: &BTreeSet<String>) -> Result<(), String> {
    let found = copies(at, shop, label).await?;
    if found == *expected {
        Ok(())
    } else {
        Err(format!("{} instead of {}: {found:?}", found.len(), expected.len()))
    }
}

/// Waits until a namespace holds exactly these copies.
pub(crate) async fn copies_become(at: &Objects, shop: &str, label: &str, expected: &BTreeSet<String>) {
    eventually("exactly the expected copies are there", SOON, async || {
        are(at, shop, label, expected).await
    })
    .await;
}

/// Checks that a namespace holds exactly these copies all the time.
pub(crate) async fn copies_stay(
    at: &Objects,
    shop: &str,
    label: &str,
    expected: &BTreeSet<String>,
    period: std::time::Duration,
) {
    holds_throughout("the copies stay", period, async || are(at, shop, label, expected).await).await;
}

/// Condition `DeletesHeld` of a config.
pub(crate) async fn condition(hub: &Objects, config: &str) -> Result<Value, String> {
    let found = hub.try_get(CONFIG_API, "syncerconfigs", "", config).await;
    let config = found.map_err(|error| error.to_string())?.ok_or("there is no config")?;
    let conditions = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let held = conditions
        .into_iter()
        .find(|condition| condition["type"] == "DeletesHeld");
    held.ok_or_else(|| format!("no condition: {}", config["status"]))
}

/// Waits until a config says that deletes are held for this reason and with these words in its message, and gives the
/// token that confirms them.
pub(crate) async fn is_held(hub: &Objects, config: &str, reason: &str, words: &str) -> String {
    eventually("the config says that deletes are held", SOON, async || {
        let condition = condition(hub, config).await?;
        let message = condition["message"].as_str().unwrap_or_default();
        if condition["status"] != "True" || condition["reason"] != reason || !message.contains(words) {
            return Err(condition.to_string());
        }
        let (_, token) = message
            .split_once(&format!("{CONFIRM}="))
            .ok_or_else(|| message.to_owned())?;
        Ok(token.split(';').next().unwrap_or_default().to_owned())
    })
    .await
}

/// Waits until a config says that nothing is held.
pub(crate) async fn nothing_is_held(hub: &Objects, config: &str) {
    eventually("the config says that nothing is held", SOON, async || {
        let condition = condition(hub, config).await?;
        if condition["status"] == "False" && condition["reason"] == "NothingHeld" {
            Ok(())
        } else {
            Err(condition.to_string())
        }
    })
    .await;
}

/// The UID that tells a cluster from others, once it has one.
pub(crate) async fn identity(side: &Objects) -> String {
    let space = arrives(side, "v1", "namespaces", "", "kube-system").await;
    space["metadata"]["uid"].as_str().expect("it has a UID").to_owned()
}

/// Does what the message asks people to do.
pub(crate) async fn confirm(hub: &Objects, config: &str, token: &str) {
    let patch = json!({"metadata": {"annotations": {CONFIRM: token}}});
    hub.merge_patch(CONFIG_API, "syncerconfigs", "", config, &patch).await;
}

/// A Secret, for upsync.
pub(crate) fn secret(shop: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": name}, "stringData": {"k": "v"}})
}
