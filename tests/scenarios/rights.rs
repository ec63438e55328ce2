//! Rights at the hub that are taken away for a time: what cannot be read is not gone.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{code, config_map, namespace, secret};
use crate::support::rbac::{allow, configs, disallow, heartbeats, limited};
use crate::support::stage::{Stage, all_of, select, stage};
use crate::support::story::{SOON, arrives, copy_equals, gone, remains};
use crate::support::{AuditMark, Objects, PairLease, SYNCER, Syncer, User, eventually};

in_both_modes!(
    what_is_deleted_while_its_type_may_not_be_read_goes_when_it_may_again,
    what_is_deleted_while_nothing_may_be_read_goes_when_it_may_again,
);

/// The rules by which one type of the core group may be read.
fn reading(plural: &str) -> Value {
    json!({"apiGroups": [""], "resources": [plural], "verbs": ["get", "list", "watch"]})
}

/// Waits until the syncer's user is refused what it asks of these types.
async fn is_refused(pair: &PairLease, shop: &str, plurals: &[&str]) {
    let limited = Objects::new(pair.hub.client_as(User::Limited));
    for plural in plurals {
        eventually(&format!("{plural} may not be read"), SOON, async || {
            match limited.try_get("v1", plural, shop, "a").await {
                Err(error) if code(&error) == 403 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

/// Waits until the hub has refused the syncer something about a type since a mark, so that it has met that.
async fn meets_it(pair: &PairLease, mark: AuditMark, plural: &str) {
    eventually(&format!("the syncer is refused {plural}"), SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        let mut refused = requests.iter().filter(|event| event.code == 403);
        refused
            .find(|event| event.uri.contains(plural))
            .map(|_| ())
            .ok_or("not yet")
    })
    .await;
}

/// Two `ConfigMap`s and a Secret that have gone down, by a syncer with two sets of rights at the hub: one named as the
/// namespace for `ConfigMap`s, and one for all else.
async fn begin(flags: Mode) -> (Stage, Syncer) {
    let stage = stage().await;
    let (hub, shop) = (&stage.hub, &*stage.shop);
    hub.create(&namespace(shop)).await;
    for name in ["a", "b"] {
        hub.create(&config_map(shop, name, json!({"v": "1"}))).await;
    }
    hub.create(&secret(shop, "a", "1")).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("", "secrets")])).await;
    allow_all_else(hub, shop).await;
    allow(hub, shop, json!([reading("configmaps")])).await;
    let syncer = Syncer::start(&limited(&stage.pair.hub), &stage.pair.edge.kubeconfig(), flags);
    for name in ["a", "b"] {
        arrives(&stage.edge, "v1", "configmaps", shop, name).await;
    }
    arrives(&stage.edge, "v1", "secrets", shop, "a").await;
    (stage, syncer)
}

async fn allow_all_else(hub: &Objects, shop: &str) {
    let rules = json!([
        configs(&["get", "list", "watch"]),
        heartbeats(),
        reading("namespaces"),
        reading("secrets"),
    ]);
    allow(hub, &format!("{shop}-else"), rules).await;
}

/// The rights are back: what was deleted goes, and the rest is as it was, and follows.
async fn recovers(stage: &Stage, before: &Value) {
    let (hub, edge, shop) = (&stage.hub, &stage.edge, &*stage.shop);
    gone(edge, "v1", "configmaps", shop, "a").await;
    hub.replace(&config_map(shop, "b", json!({"v": "2"}))).await;
    let copy = copy_equals(edge, shop, "b", &json!({"v": "2"})).await;
    assert_eq!(copy["metadata"]["uid"], *before, "it was never touched");
    for name in [format!("{shop}-else"), shop.to_owned()] {
        disallow(hub, &name).await;
    }
}

/// The uid of the copy that stays.
async fn uid(edge: &Objects, shop: &str) -> Value {
    arrives(edge, "v1", "configmaps", shop, "b").await["metadata"]["uid"].clone()
}

async fn what_is_deleted_while_its_type_may_not_be_read_goes_when_it_may_again(flags: Mode) {
    let (stage, mut syncer) = begin(flags).await;
    let (pair, hub, edge, shop) = (&stage.pair, &stage.hub, &stage.edge, &*stage.shop);
    let before = uid(edge, shop).await;
    disallow(hub, shop).await;
    is_refused(pair, shop, &["configmaps"]).await;
    let mark = pair.hub.audit_mark();
    hub.delete("v1", "configmaps", shop, "a").await;
    meets_it(pair, mark, "configmaps").await;
    syncer.wait_for_log("is forbidden", SOON).await;
    remains(edge, "v1", "configmaps", shop, "a").await;
    // Meanwhile the rest continues.
    hub.create(&secret(shop, "later", "1")).await;
    arrives(edge, "v1", "secrets", shop, "later").await;
    hub.delete("v1", "secrets", shop, "a").await;
    gone(edge, "v1", "secrets", shop, "a").await;
    remains(edge, "v1", "configmaps", shop, "a").await;
    allow(hub, shop, json!([reading("configmaps")])).await;
    recovers(&stage, &before).await;
    assert!(syncer.is_running());
    syncer.terminate().await;
}

// The same with 403 for everything, by the syncer that has seen the delete, and by one that starts later.
async fn what_is_deleted_while_nothing_may_be_read_goes_when_it_may_again(flags: Mode) {
    let (stage, mut syncer) = begin(flags).await;
    let (pair, hub, edge, shop) = (&stage.pair, &stage.hub, &stage.edge, &*stage.shop);
    let before = uid(edge, shop).await;
    disallow(hub, shop).await;
    disallow(hub, &format!("{shop}-else")).await;
    is_refused(pair, shop, &["configmaps", "secrets", "namespaces"]).await;
    let mark = pair.hub.audit_mark();
    hub.delete("v1", "configmaps", shop, "a").await;
    meets_it(pair, mark, "configmaps").await;
    remains(edge, "v1", "configmaps", shop, "a").await;
    syncer.terminate().await;
    let mark = pair.hub.audit_mark();
    let mut syncer = Syncer::start(&limited(&pair.hub), &pair.edge.kubeconfig(), flags);
    meets_it(pair, mark, "syncerconfigs").await;
    syncer.wait_for_log("is forbidden", SOON).await;
    remains(edge, "v1", "configmaps", shop, "a").await;
    remains(edge, "v1", "secrets", shop, "a").await;
    allow_all_else(hub, shop).await;
    allow(hub, shop, json!([reading("configmaps")])).await;
    recovers(&stage, &before).await;
    assert!(syncer.is_running());
    syncer.terminate().await;
}
