//! A CRD is deleted at the hub, which deletes its objects first: their copies stay.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::bench::{CONFIRM, EACH_SECOND, confirm, is_held, nothing_is_held};
use crate::support::lines;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{code, namespace};
use crate::support::stage::{Stage, own_group, select, stage};
use crate::support::story::{
    SOON, a_while, arrives, crd, custom_object, drop_crds, gone, install_crd, reselect, serve,
};
use crate::support::{Objects, eventually, holds_throughout};

in_both_modes!(
    copies_stay_when_their_crd_is_deleted_and_while_it_is_defined_again_until_that_is_confirmed,
    what_was_defined_again_while_the_syncer_was_down_is_held_for_a_time,
    a_hold_ends_when_all_objects_are_back,
    a_hold_outlasts_that_the_edge_does_not_serve_the_type_for_a_while,
    that_copies_outlive_their_type_is_said_until_the_hub_has_it_again_also_after_a_restart,
    copies_that_outlive_their_type_go_when_that_is_confirmed_or_nothing_selects_them,
    a_type_that_has_another_scope_for_a_while_is_held_and_synced_again_without_a_restart,
    copies_go_when_nothing_selects_them_or_that_is_confirmed_while_their_type_has_another_scope,
);

const REASON: &str = "TypeWithdrawn";
const AGAIN: &str = "is defined again";
const GONE: &str = "is missing at the hub as it was; its copies are preserved until it is back or no config selects it; 3 objects are held";

const OTHER_SCOPE: &str = "is a cluster-scoped Gauge at the origin's side and a namespaced Gauge at the copy's side";

/// A custom type on both sides, and who reads it.
pub(crate) struct Gauges<'a> {
    hub: &'a Objects,
    edge: &'a Objects,
    pub(crate) version: String,
    definition: Value,
    shop: &'a str,
}

/// Names and UIDs.
pub(crate) type Copies = BTreeMap<String, Value>;

impl<'a> Gauges<'a> {
    /// Objects `a`, `b` and `c` at the hub, which a config selects.
    pub(crate) async fn begin(hub: &'a Objects, edge: &'a Objects, shop: &'a str) -> Self {
        let (group, version) = own_group(shop);
        let definition = crd(&group, "gauges", true);
        let gauges = Self {
            hub,
            edge,
            version,
            definition,
            shop,
        };
        install_crd(&[hub, edge], &gauges.definition).await;
        hub.create(&namespace(shop)).await;
        gauges.create(&["a", "b", "c"]).await;
        gauges.select().await;
        gauges
    }

    /// A config selects all objects of the namespace.
    pub(crate) async fn select(&self) {
        let all = json!([{"group": own_group(self.shop).0, "resource": "gauges", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": self.shop, "names": ["*"]}]}]);
        select(self.hub, &json!({"namespacedObjects": all})).await;
    }

    pub(crate) async fn create(&self, names: &[&str]) {
        let (group, _) = own_group(self.shop);
        for name in names {
            self.hub
                .create(&custom_object(&group, "gauges", self.shop, name, 1))
                .await;
        }
    }

    pub(crate) async fn have_arrived(&self) -> Copies {
        for name in ["a", "b", "c"] {
            arrives(self.edge, &self.version, "gauges", self.shop, name).await;
        }
        self.copies().await.expect("the edge serves them")
    }

    async fn copies(&self) -> Result<Copies, String> {
        let found = self.edge.try_list(&self.version, "gauges", self.shop, "").await;
        let found = found.map_err(|error| error.to_string())?;
        let name_and_uid = |object: &Value| {
            let meta = &object["metadata"];
            (
                meta["name"].as_str().unwrap_or_default().to_owned(),
                meta["uid"].clone(),
            )
        };
        Ok(found.iter().map(name_and_uid).collect())
    }

    pub(crate) async fn stay(&self, expected: &Copies) {
        holds_throughout("the copies stay", a_while(), async || {
            let found = self.copies().await?;
            if found == *expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }

    /// Deletes the CRD at the hub, and waits until that is done.
    pub(crate) async fn withdraw(&self) {
        drop_crds(&[self.hub], &[self.name()]).await;
        let (api, definitions) = ("apiextensions.k8s.io/v1", "customresourcedefinitions");
        gone(self.hub, api, definitions, "", self.name()).await;
        eventually("the hub has deleted the type", SOON, async || {
            match self.hub.try_list(&self.version, "gauges", self.shop, "").await {
                Err(error) if code(&error) == 404 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    pub(crate) async fn define_again(&self) {
        install_crd(&[self.hub], &self.definition).await;
    }

    async fn define_cluster_scoped(&self) {
        install_crd(&[self.hub], &crd(&own_group(self.shop).0, "gauges", false)).await;
    }

    pub(crate) fn name(&self) -> &str {
        self.definition["metadata"]["name"].as_str().expect("it has a name")
    }

    /// Waits until the record says that this CRD, as it is at the hub, defines its type.
    pub(crate) async fn definition_is_in_record(&self, name: &str) {
        let found = self
            .hub
            .get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", name)
            .await
            .expect("it is there");
        let uid = found["metadata"]["uid"].as_str().expect("it has a UID");
        let line = format!("{name} {uid}");
        eventually("the record says what defines the type", SOON, async || {
            let known = self.definitions_in_record().await?;
            known.lines().any(|known| known == line).then_some(()).ok_or(known)
        })
        .await;
    }

    /// Waits until the record says nothing of what defines a type.
    pub(crate) async fn definition_leaves_record(&self, name: &str) {
        eventually("the record says no more what defines the type", SOON, async || {
            let known = self.definitions_in_record().await?;
            (!known.contains(name)).then_some(()).ok_or(known)
        })
        .await;
    }

    async fn definitions_in_record(&self) -> Result<String, String> {
        let records = self.edge.try_list("v1", "configmaps", "", "").await;
        let records = records.map_err(|error| error.to_string())?;
        let known = records
            .iter()
            .filter_map(|record| record["data"]["hub-definitions"].as_str());
        Ok(known.collect::<Vec<_>>().join("\n"))
    }

    async fn end(&self) {
        drop_crds(&[self.hub, self.edge], &[self.name()]).await;
    }
}

async fn copies_stay_when_their_crd_is_deleted_and_while_it_is_defined_again_until_that_is_confirmed(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let copies = gauges.have_arrived().await;
    gauges.withdraw().await;
    gauges.stay(&copies).await;
    gauges.define_again().await;
    is_held(&hub, "the-one", REASON, AGAIN).await;
    is_held(&hub, "the-one", REASON, "3 objects are held").await;
    gauges.stay(&copies).await;
    gauges.create(&["a"]).await;
    let token = is_held(&hub, "the-one", REASON, "2 objects are held").await;
    gauges.stay(&copies).await;
    syncer.wait_for_log(&format!("{CONFIRM}={token}"), SOON).await;
    confirm(&hub, "the-one", &token).await;
    for name in ["b", "c"] {
        gone(&edge, &gauges.version, "gauges", &shop, name).await;
    }
    nothing_is_held(&hub, "the-one").await;
    let kept = gauges.copies().await.expect("the edge serves them");
    let a = copies.into_iter().filter(|(name, _)| name == "a").collect::<Copies>();
    assert_eq!(kept, a, "it was never deleted");
    // What goes alone goes as ever.
    hub.delete(&gauges.version, "gauges", &shop, "a").await;
    gone(&edge, &gauges.version, "gauges", &shop, "a").await;
    gauges.end().await;
}

async fn what_was_defined_again_while_the_syncer_was_down_is_held_for_a_time(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let flags = [flags, &[EACH_SECOND, "--hold-deletes-for=30s"]].concat();
    let mut syncer = pair.syncer(&flags);
    let copies = gauges.have_arrived().await;
    gauges.definition_is_in_record(gauges.name()).await;
    syncer.terminate().await;
    gauges.withdraw().await;
    gauges.define_again().await;
    let mut syncer = pair.syncer(&flags);
    is_held(&hub, "the-one", REASON, "3 objects are held").await;
    gauges.stay(&copies).await;
    syncer
        .wait_for_log("because=\"the time is over\" objects=3", SOON)
        .await;
    for name in copies.keys() {
        gone(&edge, &gauges.version, "gauges", &shop, name).await;
    }
    nothing_is_held(&hub, "the-one").await;
    gauges.end().await;
}

async fn a_hold_ends_when_all_objects_are_back(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let copies = gauges.have_arrived().await;
    gauges.withdraw().await;
    gauges.define_again().await;
    is_held(&hub, "the-one", REASON, "3 objects are held").await;
    gauges.create(&["a", "b", "c"]).await;
    nothing_is_held(&hub, "the-one").await;
    syncer
        .wait_for_log("all objects are back, deletes are not held any more", SOON)
        .await;
    gauges.stay(&copies).await;
    hub.delete(&gauges.version, "gauges", &shop, "b").await;
    gone(&edge, &gauges.version, "gauges", &shop, "b").await;
    let left: BTreeSet<String> = gauges
        .copies()
        .await
        .expect("the edge serves them")
        .into_keys()
        .collect();
    assert_eq!(left, BTreeSet::from(["a".to_owned(), "c".to_owned()]));
    gauges.end().await;
}

async fn a_hold_outlasts_that_the_edge_does_not_serve_the_type_for_a_while(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let copies = gauges.have_arrived().await;
    gauges.definition_is_in_record(gauges.name()).await;
    gauges.withdraw().await;
    gauges.define_again().await;
    is_held(&hub, "the-one", REASON, AGAIN).await;
    let token = is_held(&hub, "the-one", REASON, "3 objects are held").await;
    serve(&edge, gauges.name(), false).await;
    syncer.wait_for_log(&lines::not_served("edge", "gauges"), SOON).await;
    is_held(&hub, "the-one", REASON, AGAIN).await;
    serve(&edge, gauges.name(), true).await;
    syncer.wait_for_log("a selected type is served now", SOON).await;
    assert_eq!(
        is_held(&hub, "the-one", REASON, "3 objects are held").await,
        token,
        "it is the same hold"
    );
    gauges.stay(&copies).await;
    confirm(&hub, "the-one", &token).await;
    for name in copies.keys() {
        gone(&edge, &gauges.version, "gauges", &shop, name).await;
    }
    nothing_is_held(&hub, "the-one").await;
    gauges.end().await;
}

async fn that_copies_outlive_their_type_is_said_until_the_hub_has_it_again_also_after_a_restart(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let flags = [flags, &[EACH_SECOND]].concat();
    let mut syncer = pair.syncer(&flags);
    let copies = gauges.have_arrived().await;
    gauges.withdraw().await;
    let token = is_held(&hub, "the-one", REASON, GONE).await;
    syncer
        .wait_for_log(GONE.split(';').next().expect("it has a part"), SOON)
        .await;
    syncer.wait_for_log(&format!("{CONFIRM}={token}"), SOON).await;
    gauges.stay(&copies).await;
    is_held(&hub, "the-one", REASON, GONE).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&flags);
    syncer
        .wait_for_log(GONE.split(';').next().expect("it has a part"), SOON)
        .await;
    is_held(&hub, "the-one", REASON, GONE).await;
    gauges.stay(&copies).await;
    gauges.define_again().await;
    syncer
        .wait_for_log("because=\"the hub has the type again\"", SOON)
        .await;
    is_held(&hub, "the-one", REASON, AGAIN).await;
    gauges.create(&["a", "b", "c"]).await;
    nothing_is_held(&hub, "the-one").await;
    gauges.stay(&copies).await;
    gauges.end().await;
}

async fn copies_that_outlive_their_type_go_when_that_is_confirmed_or_nothing_selects_them(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    for is_confirmed in [true, false] {
        let copies = gauges.have_arrived().await;
        gauges.withdraw().await;
        let token = is_held(&hub, "the-one", REASON, GONE).await;
        gauges.stay(&copies).await;
        let why = if is_confirmed {
            confirm(&hub, "the-one", &token).await;
            "because=confirmed objects=3"
        } else {
            reselect(&hub, &json!({"namespacedObjects": []})).await;
            "because=\"nothing selects the type as it was any more\""
        };
        syncer.wait_for_log(why, SOON).await;
        for name in copies.keys() {
            gone(&edge, &gauges.version, "gauges", &shop, name).await;
        }
        nothing_is_held(&hub, "the-one").await;
        // What comes later is synced as ever.
        gauges.define_again().await;
        gauges.create(&["a", "b", "c"]).await;
    }
    gauges.end().await;
}

async fn a_type_that_has_another_scope_for_a_while_is_held_and_synced_again_without_a_restart(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    let flags = [flags, &[EACH_SECOND]].concat();
    let mut syncer = pair.syncer(&flags);
    let copies = gauges.have_arrived().await;
    gauges.withdraw().await;
    let token = is_held(&hub, "the-one", REASON, GONE).await;
    // The copies are counted meanwhile, which has to find that the hub does not define the type.
    gauges.stay(&copies).await;
    gauges.define_cluster_scoped().await;
    syncer.wait_for_log(OTHER_SCOPE, SOON).await;
    gauges.stay(&copies).await;
    assert_eq!(is_held(&hub, "the-one", REASON, GONE).await, token);
    gauges.withdraw().await;
    gauges.define_again().await;
    is_held(&hub, "the-one", REASON, AGAIN).await;
    is_held(&hub, "the-one", REASON, "3 objects are held").await;
    gauges.create(&["d"]).await;
    arrives(&edge, &gauges.version, "gauges", &shop, "d").await;
    syncer.wait_for_log("reason=ConfigCorrected", SOON).await;
    let copies = gauges.copies().await.expect("the edge serves them");
    assert_eq!(copies.len(), 4, "{copies:?}");
    syncer.terminate().await;
    let _syncer = pair.syncer(&flags);
    is_held(&hub, "the-one", REASON, "3 objects are held").await;
    gauges.stay(&copies).await;
    gauges.end().await;
}

async fn copies_go_when_nothing_selects_them_or_that_is_confirmed_while_their_type_has_another_scope(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let gauges = Gauges::begin(&hub, &edge, &shop).await;
    // So many namespaces that all are read at once: by a list that is at the same path with both scopes.
    let all = json!({"namespacedObjects": [], "namespaceScope": {
        "namespaces": (0..100).map(|i| format!("{shop}-{i}")).chain([shop.clone()]).collect::<Vec<_>>(),
        "resources": [{"group": own_group(&shop).0, "resource": "gauges", "apiVersion": "v1"}],
    }});
    reselect(&hub, &all).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    for is_confirmed in [true, false] {
        let copies = gauges.have_arrived().await;
        gauges.withdraw().await;
        gauges.define_cluster_scoped().await;
        hub.create(&custom_object(&own_group(&shop).0, "gauges", "", "whole", 1))
            .await;
        let token = is_held(&hub, "the-one", REASON, GONE).await;
        gauges.stay(&copies).await;
        if is_confirmed {
            confirm(&hub, "the-one", &token).await;
            syncer.wait_for_log("because=confirmed objects=3", SOON).await;
        } else {
            reselect(&hub, &json!({"namespaceScope": null})).await;
        }
        for name in copies.keys() {
            gone(&edge, &gauges.version, "gauges", &shop, name).await;
        }
        nothing_is_held(&hub, "the-one").await;
        gauges.withdraw().await;
        gauges.define_again().await;
        gauges.create(&["a", "b", "c"]).await;
    }
    gauges.end().await;
}
