//! what deletes others too when it goes: a CRD its objects, a namespace all that is in it.

use serde_json::{Value, json};

use crate::bench::{At, LONG_ENOUGH, deletes_are_held, says, stays_the_same, uid};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, cluster_objects, config_maps, own_group, select, stage, stock};
use crate::support::story::{SOON, a_while, arrives, crd, custom_object, drop_crds, edit, gone, install_crd};
use crate::support::{Objects, PairLease, Syncer, eventually, shared_pair_with_controllers};

in_both_modes!(a_crd_that_is_selected_itself_takes_nothing_along_when_the_hub_deletes_it);

const CRD_API: &str = "apiextensions.k8s.io/v1";
const CRDS: &str = "customresourcedefinitions";

async fn a_crd_that_is_selected_itself_takes_nothing_along_when_the_hub_deletes_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let elsewhere = pair.namespace("elsewhere");
    let (group, version) = own_group(&shop);
    let definition = crd(&group, "gauges", true);
    let name = definition["metadata"]["name"].as_str().expect("it has a name");
    install_crd(&[&hub], &definition).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    let all = json!([{"group": group, "resource": "gauges", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]}]);
    let crds = [cluster_objects("apiextensions.k8s.io", CRDS, &[name])];
    select(&hub, &json!({"namespacedObjects": all, "clusterScope": crds})).await;
    let _syncer = pair.syncer(&[flags, &["--heartbeat-interval=1s"]].concat());
    let copy = arrives(&edge, &version, "gauges", &shop, "a").await;
    // The edge has one of its own.
    edge.create(&namespace(&elsewhere)).await;
    let own = edge
        .create(&custom_object(&group, "gauges", &elsewhere, "own", 1))
        .await;
    let at_edge = arrives(&edge, CRD_API, CRDS, "", name).await;
    drop_crds(&[&hub], &[name]).await;
    gone(&hub, CRD_API, CRDS, "", name).await;
    let [at_edge, copy, own] = [uid(&at_edge), uid(&copy), uid(&own)];
    let stay = async |period| {
        tokio::join!(
            stays_the_same(&edge, [CRD_API, CRDS, "", name], &at_edge, period),
            stays_the_same(&edge, [&version, "gauges", &shop, "a"], &copy, period),
            stays_the_same(&edge, [&version, "gauges", &elsewhere, "own"], &own, period),
        )
    };
    tokio::join!(stay(LONG_ENOUGH), deletes_are_held(&hub, "the-one"));
    stay(a_while()).await;
    drop_crds(&[&edge], &[name]).await;
}

/// The scope of a CRD cannot be changed, so the hub's new one could only take the place of the edge's by deleting that.
#[tokio::test]
async fn a_crd_of_another_scope_takes_the_place_of_none_that_has_objects() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let definition = crd(&group, "gauges", true);
    let name = definition["metadata"]["name"].as_str().expect("it has a name");
    install_crd(&[&hub], &definition).await;
    select(
        &hub,
        &json!({"clusterScope": [cluster_objects("apiextensions.k8s.io", CRDS, &[name])]}),
    )
    .await;
    let mut syncer = pair.syncer(&[]);
    let at_edge = arrives(&edge, CRD_API, CRDS, "", name).await;
    edge.create(&namespace(&shop)).await;
    let own = custom_object(&group, "gauges", &shop, "own", 1);
    let own = eventually("the type is served", SOON, async || edge.try_create(&own).await).await;
    drop_crds(&[&hub], &[name]).await;
    gone(&hub, CRD_API, CRDS, "", name).await;
    install_crd(&[&hub], &crd(&group, "gauges", false)).await;
    says(&mut syncer, &["WARN", name, "would delete", "own"]).await;
    let [at_edge, own] = [uid(&at_edge), uid(&own)];
    tokio::join!(
        stays_the_same(&edge, [CRD_API, CRDS, "", name], &at_edge, LONG_ENOUGH / 3),
        stays_the_same(&edge, [&version, "gauges", &shop, "own"], &own, LONG_ENOUGH / 3),
    );
    drop_crds(&[&hub, &edge], &[name]).await;
}

/// A namespace that has gone from the hub, with all that was in it.
struct Deserted {
    // First, so that on drop the syncer ends before what it talks to.
    syncer: Syncer,
    pair: PairLease,
    shop: String,
    edge: Objects,
    space: Value,
}

impl Deserted {
    /// Copies of `a` and of `more`, and what `add` does at the edge before the namespace goes from the hub.
    async fn begin(more: &[Value], add: impl AsyncFn(&Objects, &str)) -> Self {
        let pair = shared_pair_with_controllers().await;
        let shop = pair.namespace("shop");
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        stock(&hub, &shop, &["a"], &json!({})).await;
        for object in more {
            let mut object = object.clone();
            object["metadata"]["namespace"] = json!(shop);
            hub.create(&object).await;
        }
        select(&hub, &config_maps(&shop, &["*"])).await;
        let syncer = pair.syncer(&["--heartbeat-interval=1s"]);
        arrives(&edge, "v1", "configmaps", &shop, "a").await;
        for object in more {
            let name = object["metadata"]["name"].as_str().expect("it has a name");
            arrives(&edge, "v1", "configmaps", &shop, name).await;
        }
        add(&edge, &shop).await;
        let space = arrives(&edge, "v1", "namespaces", "", &shop).await;
        hub.remove_namespaces(std::slice::from_ref(&shop)).await;
        Self {
            syncer,
            pair,
            shop,
            edge,
            space,
        }
    }

    fn at<'a>(&'a self, name: &'a str) -> At<'a> {
        ["v1", "configmaps", &self.shop, name]
    }

    /// The namespace stays for the sake of one object, what is to go goes, and that is logged; when that object has gone,
    /// the namespace goes.
    async fn stays_for(mut self, name: &str) {
        let kept = arrives(&self.edge, "v1", "configmaps", &self.shop, name).await;
        let space = uid(&self.space);
        let (spaces, kept) = (["v1", "namespaces", "", &self.shop], uid(&kept));
        tokio::join!(
            stays_the_same(&self.edge, spaces, &space, LONG_ENOUGH),
            stays_the_same(&self.edge, self.at(name), &kept, LONG_ENOUGH),
            gone(&self.edge, "v1", "configmaps", &self.shop, "a"),
        );
        let shop = self.shop.clone();
        says(&mut self.syncer, &["WARN", &format!("Namespace//{shop}"), name]).await;
        self.edge.delete("v1", "configmaps", &shop, name).await;
        gone(&self.edge, "v1", "namespaces", "", &shop).await;
        drop(self.pair);
    }
}

#[tokio::test]
async fn a_namespace_is_held_while_an_object_of_the_edge_is_in_it() {
    let own = async |edge: &Objects, shop: &str| {
        edge.create(&config_map(shop, "own", json!({}))).await;
    };
    Deserted::begin(&[], own).await.stays_for("own").await;
}

#[tokio::test]
async fn a_namespace_is_held_while_a_copy_is_in_it_that_is_left_to_the_edge() {
    let mut object = config_map("", "kept", json!({}));
    object["metadata"]["annotations"] = json!({"edge.kubestellar.io/downsync-overwrite": "false"});
    let edited = async |edge: &Objects, shop: &str| edit(edge, shop, "kept", &json!({"data": {"by": "edge"}})).await;
    Deserted::begin(&[object], edited).await.stays_for("kept").await;
}

/// A service account, a certificate and Events are in every namespace.
#[tokio::test]
async fn a_namespace_goes_with_what_every_namespace_has() {
    let usual = async |edge: &Objects, shop: &str| {
        arrives(edge, "v1", "serviceaccounts", shop, "default").await;
        arrives(edge, "v1", "configmaps", shop, "kube-root-ca.crt").await;
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": shop, "name": "it"},
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": shop, "name": "a"},
            "reason": "Test", "message": "test", "type": "Normal"});
        edge.create(&event).await;
    };
    let deserted = Deserted::begin(&[], usual).await;
    gone(&deserted.edge, "v1", "namespaces", "", &deserted.shop).await;
}
