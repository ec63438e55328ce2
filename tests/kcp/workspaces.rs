//! What kcp does that no other API server does: types that are bound, and workspaces that come and go.

use serde_json::{Value, json};

use crate::support::kcp::{Kcp, Workspace};
use crate::support::objects::{config_map, namespace, secret};
use crate::support::stage::{CONFIG_API, Stage, own_group, stage};
use crate::support::statuses::{returns, set_status};
use crate::support::story::{
    SOON, a_while, arrives, becomes, config_map_entry, copy_equals, crd, custom_object, gone, install_crd,
};
use crate::support::{Objects, PairLease, Syncer, eventually, holds_throughout, unique_suffix};

/// A workspace with a bound type, `gauges`, whose objects go down; and the same type at the edge, as a CRD.
struct Mailbox {
    hub: Workspace,
    provider: Workspace,
    edge: Objects,
    group: String,
    version: String,
    shop: String,
}

impl Mailbox {
    async fn begin(kcp: &Kcp, edge: &Objects, shop: &str) -> Self {
        let (group, version) = own_group(shop);
        let suffix = unique_suffix();
        let provider = kcp.workspace(&format!("provider-{suffix}")).await;
        provider.exports(&group, "gauges", "Gauge").await;
        let hub = kcp.hub(&format!("mailbox-{suffix}")).await;
        hub.binds(&provider, &group, "gauges").await;
        install_crd(&[edge], &crd(&group, "gauges", true)).await;
        let mailbox = Self {
            hub,
            provider,
            edge: edge.clone(),
            group,
            version,
            shop: shop.to_owned(),
        };
        mailbox.fill(&["a", "b"]).await;
        mailbox
    }

    /// A namespace with gauges and a `ConfigMap`, all of which a config selects; and upsync of Secrets.
    async fn fill(&self, names: &[&str]) {
        let (hub, shop) = (&self.hub.objects, &self.shop);
        hub.create(&namespace(shop)).await;
        hub.create(&config_map(shop, "settings", json!({"v": "1"}))).await;
        self.create(names).await;
        let gauges = json!({"group": self.group, "resource": "gauges", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]});
        let spec = json!({
            "namespacedObjects": [gauges, config_map_entry(shop, &["settings"])],
            "upsync": [{"resources": ["secrets"], "namespaces": [shop], "names": ["*"]}],
        });
        self.hub.select(&spec).await;
    }

    async fn create(&self, names: &[&str]) {
        for name in names {
            let gauge = custom_object(&self.group, "gauges", &self.shop, name, 1);
            eventually("the workspace takes a gauge", SOON, async || {
                let created = self.hub.objects.try_create(&gauge).await;
                created.map(|_| ()).map_err(|error| error.to_string())
            })
            .await;
        }
    }

    /// A syncer that lives in a namespace of its own, so that its record is not that of another test with another hub.
    async fn syncer(&self, pair: &PairLease) -> Syncer {
        let own = pair.namespace("own");
        self.edge.create(&namespace(&own)).await;
        let env = [("NAMESPACE", own.as_str())];
        let flags = ["--heartbeat-interval=1s"];
        Syncer::start_with_env(&self.hub.kubeconfig, &pair.edge.kubeconfig(), &flags, &env)
    }

    /// UIDs of the copies, once they are there.
    async fn copies(&self) -> Vec<Value> {
        let mut uids = Vec::new();
        for name in ["a", "b"] {
            let copy = arrives(&self.edge, &self.version, "gauges", &self.shop, name).await;
            uids.push(copy["metadata"]["uid"].clone());
        }
        uids
    }

    async fn stay(&self, uids: &[Value]) {
        holds_throughout("the copies stay", a_while(), async || {
            let found = self.edge.try_list(&self.version, "gauges", &self.shop, "").await;
            let found = found.map_err(|error| error.to_string())?;
            let found: Vec<_> = found.iter().map(|copy| copy["metadata"]["uid"].clone()).collect();
            (found == uids).then_some(()).ok_or(format!("{found:?}"))
        })
        .await;
    }

    /// Waits until the config says so of held deletes.
    async fn says(&self, reason: &str, words: &str) {
        let at = [CONFIG_API, "syncerconfigs", "", "the-one"];
        becomes(&self.hub.objects, at, &format!("says {reason} {words}"), |config| {
            let conditions = config["status"]["conditions"].as_array();
            let held = conditions
                .into_iter()
                .flatten()
                .find(|one| one["type"] == "DeletesHeld");
            held.is_some_and(|one| {
                one["reason"] == reason && one["message"].as_str().unwrap_or_default().contains(words)
            })
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn objects_of_bound_types_go_down_statuses_come_back_and_secrets_go_up() {
    let Stage { pair, shop, edge, .. } = stage().await;
    let mailbox = Mailbox::begin(Kcp::shared().await, &edge, &shop).await;
    let (hub, version) = (&mailbox.hub.objects, &mailbox.version);
    let _syncer = mailbox.syncer(&pair).await;
    mailbox.copies().await;
    copy_equals(&edge, &shop, "settings", &json!({"v": "1"})).await;
    let a = [version.as_str(), "gauges", &*shop, "a"];
    set_status(&edge, a, true, &json!({"size": 7})).await;
    returns(hub, a, &json!({"size": 7})).await;
    edge.create(&secret(&shop, "key", "x")).await;
    arrives(hub, "v1", "secrets", &shop, "key").await;
    hub.merge_patch("v1", "configmaps", &shop, "settings", &json!({"data": {"v": "2"}}))
        .await;
    copy_equals(&edge, &shop, "settings", &json!({"v": "2"})).await;
    hub.delete(version, "gauges", &shop, "b").await;
    gone(&edge, version, "gauges", &shop, "b").await;
    mailbox.says("NothingHeld", "").await;
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn copies_outlive_the_binding_of_their_type() {
    let Stage { pair, shop, edge, .. } = stage().await;
    let mailbox = Mailbox::begin(Kcp::shared().await, &edge, &shop).await;
    let _syncer = mailbox.syncer(&pair).await;
    let copies = mailbox.copies().await;
    mailbox.hub.unbinds("gauges").await;
    mailbox.stay(&copies).await;
    mailbox.hub.binds(&mailbox.provider, &mailbox.group, "gauges").await;
    mailbox
        .says("TypeWithdrawn", "is defined again; 2 objects are held")
        .await;
    mailbox.create(&["a", "b"]).await;
    mailbox.says("NothingHeld", "").await;
    mailbox.stay(&copies).await;
    mailbox.hub.objects.delete(&mailbox.version, "gauges", &shop, "a").await;
    gone(&edge, &mailbox.version, "gauges", &shop, "a").await;
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn copies_outlive_their_workspace_and_another_one_of_its_name() {
    let Stage { pair, shop, edge, .. } = stage().await;
    let kcp = Kcp::shared().await;
    let mut mailbox = Mailbox::begin(kcp, &edge, &shop).await;
    let mut syncer = mailbox.syncer(&pair).await;
    let copies = mailbox.copies().await;
    kcp.delete(&mailbox.hub).await;
    syncer.wait_for_log("deletes are held", SOON).await;
    mailbox.stay(&copies).await;
    mailbox.hub = kcp.hub(&mailbox.hub.name).await;
    mailbox.hub.binds(&mailbox.provider, &mailbox.group, "gauges").await;
    mailbox.fill(&["a"]).await;
    mailbox.says("OtherCluster", "another cluster answers").await;
    mailbox.stay(&copies).await;
}
