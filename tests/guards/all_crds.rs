//! All CRDs of the hub are deleted, those of the configs too, as `kubectl delete crd --all` does: that is not taken for
//! configs that people have deleted, so the copies stay.

use serde_json::json;

use crate::bench::{CONFIRM, EACH_SECOND, confirm, is_held, nothing_is_held};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::edge_sync_config;
use crate::support::stage::{CONFIG_API, deselect, own_group, select};
use crate::support::story::{SOON, arrives, drop_crds, gone};
use crate::support::{Objects, Pair, PairOptions, Syncer, install_crds};
use crate::withdrawn::{Copies, Gauges};

in_both_modes!(
    copies_stay_when_all_crds_of_the_hub_are_deleted_and_are_synced_again_when_all_is_back,
    copies_stay_when_the_configs_were_deleted_with_their_type_while_the_syncer_was_down_until_that_is_confirmed,
    copies_go_with_their_type_once_people_have_deleted_the_config_and_then_its_type,
    copies_go_with_their_type_after_a_config_of_the_other_kind_has_taken_over,
);

const REASON: &str = "TypeWithdrawn";
const CONFIGS: [&str; 2] = [
    "syncerconfigs.edge.kubestellar.io",
    "edgesyncconfigs.edge.kubestellar.io",
];
const OWN_TYPE: &str = "may have been deleted with their own type";
const WITH_CONFIGS: &str = "nothing selects it, but the configs may have been deleted with their own type; its copies are preserved until it is back; 3 objects";

async fn own_pair() -> (Pair, Objects, Objects) {
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    (pair, hub, edge)
}

/// Three copies, and a syncer that has written them and its record.
async fn begin(pair: &Pair, gauges: &Gauges<'_>, flags: Mode) -> (Syncer, Copies) {
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let copies = gauges.have_arrived().await;
    for defined in [gauges.name(), CONFIGS[0]] {
        gauges.definition_is_in_record(defined).await;
    }
    (syncer, copies)
}

/// Configs go with their type, whose CRD is gone in the end.
async fn drop_configs(hub: &Objects, definitions: &[&str]) {
    drop_crds(&[hub], definitions).await;
    for definition in definitions {
        gone(
            hub,
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "",
            definition,
        )
        .await;
    }
}

async fn copies_stay_when_all_crds_of_the_hub_are_deleted_and_are_synced_again_when_all_is_back(flags: Mode) {
    let (pair, hub, edge) = own_pair().await;
    let gauges = Gauges::begin(&hub, &edge, "shop").await;
    let (mut syncer, copies) = begin(&pair, &gauges, flags).await;
    drop_configs(&hub, &CONFIGS).await;
    gauges.withdraw().await;
    // By polls the configs may never be seen to be gone: then they stay in force.
    syncer.wait_for_log(&format!("condition={REASON}"), SOON).await;
    gauges.stay(&copies).await;
    install_crds(&hub).await;
    gauges.define_again().await;
    gauges.create(&["a", "b", "c"]).await;
    gauges.select().await;
    nothing_is_held(&hub, "the-one").await;
    gauges.stay(&copies).await;
    // What is deleted alone is deleted as ever.
    hub.delete(&gauges.version, "gauges", "shop", "a").await;
    gone(&edge, &gauges.version, "gauges", "shop", "a").await;
}

async fn copies_stay_when_the_configs_were_deleted_with_their_type_while_the_syncer_was_down_until_that_is_confirmed(
    flags: Mode,
) {
    let (pair, hub, edge) = own_pair().await;
    let gauges = Gauges::begin(&hub, &edge, "shop").await;
    let (mut syncer, copies) = begin(&pair, &gauges, flags).await;
    syncer.terminate().await;
    gauges.withdraw().await;
    drop_configs(&hub, &CONFIGS).await;
    install_crds(&hub).await;
    select(&hub, &json!({})).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let token = is_held(&hub, "the-one", REASON, WITH_CONFIGS).await;
    syncer.wait_for_log(&format!("{CONFIRM}={token}"), SOON).await;
    gauges.stay(&copies).await;
    confirm(&hub, "the-one", &token).await;
    for name in copies.keys() {
        gone(&edge, &gauges.version, "gauges", "shop", name).await;
    }
    nothing_is_held(&hub, "the-one").await;
}

async fn copies_go_with_their_type_once_people_have_deleted_the_config_and_then_its_type(flags: Mode) {
    let (pair, hub, edge) = own_pair().await;
    let gauges = Gauges::begin(&hub, &edge, "shop").await;
    let (mut syncer, copies) = begin(&pair, &gauges, flags).await;
    deselect(&hub).await;
    gauges.definition_leaves_record(CONFIGS[0]).await;
    drop_configs(&hub, &CONFIGS).await;
    gauges.withdraw().await;
    for name in copies.keys() {
        gone(&edge, &gauges.version, "gauges", "shop", name).await;
    }
    assert!(!syncer.log().contains(OWN_TYPE), "{}", syncer.log());
    syncer.terminate().await;
    assert!(hub.try_list(CONFIG_API, "syncerconfigs", "", "").await.is_err());
}

async fn copies_go_with_their_type_after_a_config_of_the_other_kind_has_taken_over(flags: Mode) {
    let (pair, hub, edge) = own_pair().await;
    let gauges = Gauges::begin(&hub, &edge, "shop").await;
    let (mut syncer, copies) = begin(&pair, &gauges, flags).await;
    let (group, version) = own_group("shop");
    let all = json!({"group": group, "version": "v1", "kind": "Gauge", "namespace": "shop", "name": "*"});
    hub.create(&edge_sync_config("taking-over", json!({"downSyncedResources": [all]})))
        .await;
    gauges.definition_is_in_record(CONFIGS[1]).await;
    drop_configs(&hub, &CONFIGS[..1]).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    gauges.create(&["d"]).await;
    arrives(&edge, &version, "gauges", "shop", "d").await;
    let none = json!({"spec": {"downSyncedResources": []}});
    hub.merge_patch(CONFIG_API, "edgesyncconfigs", "", "taking-over", &none)
        .await;
    gauges.withdraw().await;
    for name in copies.keys().map(String::as_str).chain(["d"]) {
        gone(&edge, &version, "gauges", "shop", name).await;
    }
    syncer.terminate().await;
    assert!(!syncer.log().contains(OWN_TYPE), "{}", syncer.log());
}
