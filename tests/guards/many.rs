//! Too many are deleted at the hub at once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::bench::{
    DOWNSYNCED, EACH_SECOND, condition, confirm, copies, copies_become, copies_stay, create, delete, is_held, names,
    nothing_is_held, select_all,
};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, syncer_config};
use crate::support::stage::{CONFIG_API, Stage, config_maps, stage, stock};
use crate::support::story::{SOON, a_while, becomes, copy_equals};
use crate::support::{Pair, PairOptions, Syncer, comes_to_rest, eventually, lines, shared_pair};

in_both_modes!(
    thirty_of_forty_are_held_until_they_are_confirmed_each_time_again,
    what_comes_back_is_kept_and_what_is_still_wanted_is_updated,
    held_deletes_go_on_after_their_time,
    what_is_held_is_held_after_the_syncer_has_ended_and_died_too,
    what_was_confirmed_is_carried_out_though_the_syncer_dies_in_between,
    what_is_deleted_while_the_syncer_is_down_needs_a_token_of_its_own,
    an_outage_of_the_hub_begins_the_time_again,
    a_config_that_selects_nothing_of_what_is_held_is_ready,
    few_or_a_small_part_are_not_held,
    without_a_time_nothing_is_held,
    a_token_that_fits_no_hold_is_reported_once_with_the_one_that_would,
);

/// A namespace with copies of so many objects, and a syncer.
async fn begin(pair: &Pair, shop: &str, flags: Mode, more: &[&str], count: usize) -> Syncer {
    create(&pair.hub.objects(), shop, count).await;
    select_all(&pair.hub.objects(), shop).await;
    let syncer = pair.syncer(&[flags, &[EACH_SECOND], more].concat());
    copies_become(&pair.edge.objects(), shop, DOWNSYNCED, &names(0..count)).await;
    nothing_is_held(&pair.hub.objects(), "the-one").await;
    syncer
}

/// Deletes objects at the hub, as one event for the syncer.
async fn delete_at_once(pair: &Pair, syncer: &mut Syncer, shop: &str, gone: &BTreeSet<String>) {
    syncer.signal("STOP");
    delete(&pair.hub.objects(), shop, gone).await;
    syncer.signal("CONT");
}

/// Waits until deletes are held, when the first of them may have been done, and gives the token and the copies that are
/// left. `kept` is how many copies are not to go at all.
async fn some_are_held(pair: &Pair, shop: &str, all: usize, kept: usize) -> (String, BTreeSet<String>) {
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let token = is_held(&hub, "the-one", "TooMany", "copies are to be deleted at once").await;
    // Those that were under way are done when no more are left than are held, and it stays so: at first they count as held.
    let rest = Duration::from_secs(2);
    let left = comes_to_rest("what is not held has gone", rest, SOON, async || {
        let left = copies(&edge, shop, DOWNSYNCED).await?;
        let condition = condition(&hub, "the-one").await?;
        let message = condition["message"].as_str().unwrap_or_default();
        let held = left.len().saturating_sub(kept);
        if message.contains(&format!("; {held} objects are held;")) {
            Ok(left)
        } else {
            Err(format!("{} are left: {message}", left.len()))
        }
    })
    .await;
    assert!(left.len() + 20 >= all, "only {} of {all} are left", left.len());
    (token, left)
}

async fn thirty_of_forty_are_held_until_they_are_confirmed_each_time_again(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &[], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    let (token, _) = some_are_held(&pair, &shop, 40, 10).await;
    syncer.wait_for_log(&format!("confirm-deletes={token}"), SOON).await;
    assert_eq!(syncer.log().matches("deletes are held").count(), 1);
    confirm(&hub, "the-one", &token).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(30..40)).await;
    nothing_is_held(&hub, "the-one").await;
    syncer.wait_for_log("reason=DeletesReleased", SOON).await;
    assert_eq!(syncer.log().matches("reason=DeletesReleased").count(), 1);
    // The token, which still stands on the config, is for that hold alone.
    for name in names(0..30) {
        hub.create(&config_map(&shop, &name, json!({"v": "2"}))).await;
    }
    copies_become(&edge, &shop, DOWNSYNCED, &names(0..40)).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    let (next, _) = some_are_held(&pair, &shop, 40, 10).await;
    assert_ne!(next, token);
    confirm(&hub, "the-one", &next).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(30..40)).await;
}

async fn what_comes_back_is_kept_and_what_is_still_wanted_is_updated(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &[], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    let (token, left) = some_are_held(&pair, &shop, 40, 10).await;
    hub.replace(&config_map(&shop, "c35", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "c35", &json!({"v": "2"})).await;
    hub.create(&config_map(&shop, "new", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "new", &json!({"v": "2"})).await;
    let deleted = names(0..30);
    let back: Vec<&String> = left.intersection(&deleted).take(2).collect();
    assert_eq!(back.len(), 2);
    let uid = async |name: &str| {
        let copy = edge.get("v1", "configmaps", &shop, name).await;
        copy.expect("it is held")["metadata"]["uid"].clone()
    };
    let before = [uid(back[0]).await, uid(back[1]).await];
    for name in &back {
        hub.create(&config_map(&shop, name, json!({"v": "back"}))).await;
        copy_equals(&edge, &shop, name, &json!({"v": "back"})).await;
    }
    confirm(&hub, "the-one", &token).await;
    let mut expected = names(30..40);
    expected.insert("new".into());
    expected.extend(back.iter().map(|&name| name.clone()));
    copies_become(&edge, &shop, DOWNSYNCED, &expected).await;
    assert_eq!(
        before,
        [uid(back[0]).await, uid(back[1]).await],
        "they were never deleted"
    );
    nothing_is_held(&hub, "the-one").await;
}

/// A pair with copies of so many objects, of which the first are deleted; that is confirmed, and the syncer dies before
/// the edge has carried it out. Gives the token and the copies that are left.
async fn dies_after_a_confirmation(
    flags: Mode,
    shop: &str,
    all: usize,
    gone: usize,
) -> (Pair, String, BTreeSet<String>) {
    // Of its own, since its edge stands still for a while.
    let mut pair = Pair::start(PairOptions::default()).await;
    let mut syncer = begin(&pair, shop, flags, &[], all).await;
    delete_at_once(&pair, &mut syncer, shop, &names(0..gone)).await;
    let (token, left) = some_are_held(&pair, shop, all, all - gone).await;
    pair.edge.pause();
    confirm(&pair.hub.objects(), "the-one", &token).await;
    syncer.wait_for_log("reason=DeletesReleased", SOON).await;
    syncer.kill();
    pair.edge.resume();
    (pair, token, left)
}

async fn what_was_confirmed_is_carried_out_though_the_syncer_dies_in_between(flags: Mode) {
    let shop = "shop";
    let (pair, _, left) = dies_after_a_confirmation(flags, shop, 40, 30).await;
    let hub = pair.hub.objects();
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    copies_become(&pair.edge.objects(), shop, DOWNSYNCED, &names(30..40)).await;
    let deletes = syncer.log().matches("reason=ObjectDeleted").count();
    assert!(deletes > 0 && deletes <= left.len(), "{deletes} of {left:?}");
    nothing_is_held(&hub, "the-one").await;
    // The record names it no longer: the same word is for no other hold.
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    nothing_is_held(&hub, "the-one").await;
    assert!(!syncer.log().contains("reason=DeletesHeld"), "{}", syncer.log());
    syncer.terminate().await;
}

async fn what_is_deleted_while_the_syncer_is_down_needs_a_token_of_its_own(flags: Mode) {
    let shop = "shop";
    let (pair, token, left) = dies_after_a_confirmation(flags, shop, 120, 70).await;
    let hub = pair.hub.objects();
    delete(&hub, shop, &names(70..115)).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    // The token on the config is for fewer: it fits nothing any more.
    syncer.wait_for_log("reason=ConfirmationUnknown", SOON).await;
    copies_stay(&pair.edge.objects(), shop, DOWNSYNCED, &left, a_while()).await;
    // What the first one has said stays there for a moment.
    let next = eventually("the config names another token", SOON, async || {
        let next = is_held(&hub, "the-one", "TooMany", "objects are held").await;
        if next == token { Err(next) } else { Ok(next) }
    })
    .await;
    confirm(&hub, "the-one", &next).await;
    copies_become(&pair.edge.objects(), shop, DOWNSYNCED, &names(115..120)).await;
    nothing_is_held(&hub, "the-one").await;
    syncer.terminate().await;
}

async fn what_is_held_is_held_after_the_syncer_has_ended_and_died_too(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &[], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..40)).await;
    let (token, left) = some_are_held(&pair, &shop, 40, 0).await;
    // So few that they would be no mass.
    let others: BTreeSet<String> = left.iter().skip(10).cloned().collect();
    delete(&edge, &shop, &others).await;
    let left: BTreeSet<String> = left.difference(&others).cloned().collect();
    copies_become(&edge, &shop, DOWNSYNCED, &left).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    syncer.wait_for_log("deletes are held", SOON).await;
    copies_stay(&edge, &shop, DOWNSYNCED, &left, a_while() * 5).await;
    syncer.kill();
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    syncer.wait_for_log("deletes are held", SOON).await;
    copies_stay(&edge, &shop, DOWNSYNCED, &left, a_while() * 5).await;
    assert_eq!(is_held(&hub, "the-one", "TooMany", "objects are held").await, token);
    confirm(&hub, "the-one", &token).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(0..0)).await;
    nothing_is_held(&hub, "the-one").await;
}

async fn held_deletes_go_on_after_their_time(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &["--hold-deletes-for=45s"], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    some_are_held(&pair, &shop, 40, 10).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(30..40)).await;
    syncer
        .wait_for_log(
            "held deletes are carried out\" direction=downsync because=\"the time is over\"",
            SOON,
        )
        .await;
    nothing_is_held(&hub, "the-one").await;
}

async fn an_outage_of_the_hub_begins_the_time_again(flags: Mode) {
    const HELD_FOR: Duration = Duration::from_secs(45);
    let mut pair = Pair::start(PairOptions::default()).await;
    let shop = "shop".to_owned();
    let edge = pair.edge.objects();
    let mut syncer = begin(&pair, &shop, flags, &["--hold-deletes-for=45s"], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    let (_, left) = some_are_held(&pair, &shop, 40, 10).await;
    pair.hub.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    // Longer than they are held.
    copies_stay(&edge, &shop, DOWNSYNCED, &left, HELD_FOR + Duration::from_secs(2)).await;
    // It answers later than this.
    let back = Instant::now();
    pair.hub.start_apiserver().await;
    syncer.wait_for_log(&lines::reachable("hub"), SOON).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(30..40)).await;
    assert!(
        back.elapsed() > HELD_FOR,
        "they went {:?} after the outage",
        back.elapsed()
    );
}

async fn a_config_that_selects_nothing_of_what_is_held_is_ready(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &[], 40).await;
    let mall = format!("{shop}-mall");
    stock(&hub, &mall, &["x"], &json!({"v": "1"})).await;
    hub.create(&syncer_config("other", config_maps(&mall, &["x"]))).await;
    copy_equals(&edge, &mall, "x", &json!({"v": "1"})).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    some_are_held(&pair, &shop, 40, 10).await;
    let other = [CONFIG_API, "syncerconfigs", "", "other"];
    becomes(&hub, other, "is ready, and holds nothing", |config| {
        let conditions = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |of: &str, status: &str| conditions.iter().any(|it| it["type"] == of && it["status"] == status);
        is("Ready", "True") && is("DeletesHeld", "False") && config["status"]["edges"][0]["hold"].is_null()
    })
    .await;
}

async fn few_or_a_small_part_are_not_held(flags: Mode) {
    for (gone, all) in [(10, 40), (21, 60)] {
        let pair = shared_pair().await;
        let shop = pair.namespace("shop");
        let mut syncer = begin(&pair, &shop, flags, &[], all).await;
        delete_at_once(&pair, &mut syncer, &shop, &names(0..gone)).await;
        copies_become(&pair.edge.objects(), &shop, DOWNSYNCED, &names(gone..all)).await;
        assert!(!syncer.log().contains("held"), "{}", syncer.log());
        let condition = condition(&pair.hub.objects(), "the-one").await.expect("it has one");
        assert_eq!(condition["status"], "False");
    }
}

async fn without_a_time_nothing_is_held(flags: Mode) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let mut syncer = begin(&pair, &shop, flags, &["--hold-deletes-for=0s"], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..40)).await;
    copies_become(&pair.edge.objects(), &shop, DOWNSYNCED, &names(0..0)).await;
    assert!(!syncer.log().contains("held"), "{}", syncer.log());
}

async fn a_token_that_fits_no_hold_is_reported_once_with_the_one_that_would(flags: Mode) {
    const WRONG: &str = "a token confirms no deletes that are held";
    let Stage { pair, shop, hub, edge } = stage().await;
    let mut syncer = begin(&pair, &shop, flags, &[], 40).await;
    delete_at_once(&pair, &mut syncer, &shop, &names(0..30)).await;
    let (token, left) = some_are_held(&pair, &shop, 40, 10).await;
    confirm(&hub, "the-one", "deadbeef").await;
    let reported = format!(
        "{WRONG}\" config=SyncerConfig//the-one annotation=edge.kubestellar.io/confirm-deletes token=deadbeef \
         advice=\"what is held is confirmed by {token} (downsync: "
    );
    syncer.wait_for_log(&reported, SOON).await;
    copies_stay(&edge, &shop, DOWNSYNCED, &left, a_while()).await;
    // The wrong one may stay beside the right one, and what stands around them does not count.
    confirm(&hub, "the-one", &format!(" deadbeef,\n{token}\n")).await;
    copies_become(&edge, &shop, DOWNSYNCED, &names(30..40)).await;
    nothing_is_held(&hub, "the-one").await;
    let lives = async |name: &str| {
        hub.create(&config_map(&shop, name, json!({"v": "2"}))).await;
        copy_equals(&edge, &shop, name, &json!({"v": "2"})).await;
    };
    lives("late").await;
    assert_eq!(syncer.log().matches(WRONG).count(), 1, "{}", syncer.log());
    // Nor is it wrong that they still stand there when the syncer starts again.
    syncer.kill();
    let syncer = pair.syncer(flags);
    lives("later").await;
    assert!(!syncer.log().contains(WRONG), "{}", syncer.log());
}
