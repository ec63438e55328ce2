//! The hub is restored from a backup: what was created since is gone there.

use serde_json::json;

use crate::bench::{
    DOWNSYNCED, EACH_SECOND, confirm, copies_become, copies_stay, create, identity, is_held, names, nothing_is_held,
    select_all,
};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::config_map;
use crate::support::story::{SOON, a_while, copy_equals};
use crate::support::{Pair, PairOptions, Syncer};

in_both_modes!(
    while_the_syncer_runs_what_came_since_stays_until_it_is_confirmed,
    while_the_syncer_is_down_what_came_since_stays_until_it_is_confirmed,
    after_a_crash_of_the_syncer_what_came_since_stays_too,
    what_came_since_stays_also_if_the_hub_has_more_versions_than_before_when_the_syncer_starts_again,
);

/// A backup with `c0` to `c2` in it, and `c3` and `c4` created since.
async fn begin(flags: Mode) -> (Pair, Syncer) {
    let mut pair = Pair::start(PairOptions::default()).await;
    create(&pair.hub.objects(), "shop", 3).await;
    select_all(&pair.hub.objects(), "shop").await;
    // The restored hub is the same one, so the backup has to have what tells who it is.
    identity(&pair.hub.objects()).await;
    pair.hub.stop();
    pair.hub.back_up();
    pair.hub.start_again().await;
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..3)).await;
    // Time continues at the hub, so that a restored one does not get as far while it starts.
    for round in 0..500 {
        hub.merge_patch(
            "v1",
            "configmaps",
            "shop",
            "c0",
            &json!({"data": {"v": round.to_string()}}),
        )
        .await;
    }
    for name in names(3..5) {
        hub.create(&config_map("shop", &name, json!({"v": "1"}))).await;
    }
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..5)).await;
    copy_equals(&edge, "shop", "c0", &json!({"v": "499"})).await;
    (pair, syncer)
}

async fn restore_hub(pair: &mut Pair) {
    pair.hub.stop();
    pair.hub.put_backup_back();
    pair.hub.start_again().await;
}

async fn is_kept_until_confirmed(pair: &Pair, syncer: &Syncer) {
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let token = is_held(&hub, "the-one", "OlderVersions", "went back from version").await;
    // All else is as the hub has it now.
    copy_equals(&edge, "shop", "c0", &json!({"v": "1"})).await;
    is_held(&hub, "the-one", "OlderVersions", "2 objects are held").await;
    copies_stay(&edge, "shop", DOWNSYNCED, &names(0..5), a_while()).await;
    let held = syncer.log().matches("deletes are held").count();
    assert_eq!(held, 1, "{}", syncer.log());
    // One of them comes back by itself: it is not deleted, now or later.
    hub.create(&config_map("shop", "c3", json!({"v": "back"}))).await;
    copy_equals(&edge, "shop", "c3", &json!({"v": "back"})).await;
    confirm(&hub, "the-one", &token).await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..4)).await;
    nothing_is_held(&hub, "the-one").await;
    hub.delete("v1", "configmaps", "shop", "c2").await;
    let mut left = names(0..2);
    left.insert("c3".into());
    copies_become(&edge, "shop", DOWNSYNCED, &left).await;
}

async fn while_the_syncer_runs_what_came_since_stays_until_it_is_confirmed(flags: Mode) {
    let (mut pair, syncer) = begin(flags).await;
    restore_hub(&mut pair).await;
    is_kept_until_confirmed(&pair, &syncer).await;
}

async fn while_the_syncer_is_down_what_came_since_stays_until_it_is_confirmed(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    syncer.terminate().await;
    restore_hub(&mut pair).await;
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    is_kept_until_confirmed(&pair, &syncer).await;
}

async fn what_came_since_stays_also_if_the_hub_has_more_versions_than_before_when_the_syncer_starts_again(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    restore_hub(&mut pair).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let token = is_held(&hub, "the-one", "OlderVersions", "went back from version").await;
    for round in 0..700 {
        let change = json!({"data": {"v": round.to_string()}});
        hub.merge_patch("v1", "configmaps", "shop", "c0", &change).await;
    }
    copy_equals(&edge, "shop", "c0", &json!({"v": "699"})).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    syncer.wait_for_log("deletes are held", SOON).await;
    copies_stay(&edge, "shop", DOWNSYNCED, &names(0..5), a_while() * 5).await;
    syncer.kill();
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    syncer.wait_for_log("deletes are held", SOON).await;
    copies_stay(&edge, "shop", DOWNSYNCED, &names(0..5), a_while() * 5).await;
    is_held(&hub, "the-one", "OlderVersions", "2 objects are held").await;
    confirm(&hub, "the-one", &token).await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..3)).await;
}

// The record is younger than the backup, since it is written when the first lists are complete.
async fn after_a_crash_of_the_syncer_what_came_since_stays_too(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    nothing_is_held(&pair.hub.objects(), "the-one").await;
    syncer.kill();
    restore_hub(&mut pair).await;
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    is_kept_until_confirmed(&pair, &syncer).await;
}
