//! Another hub answers behind the same URL, truthfully, that nothing of ours exists.

use serde_json::json;

use crate::bench::{
    DOWNSYNCED, EACH_SECOND, confirm, copies, copies_become, copies_stay, create, identity, is_held, names,
    nothing_is_held, secret, select_all,
};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, syncer_config};
use crate::support::stage::stock;
use crate::support::story::{SOON, a_while, arrives, copy_equals, gone};
use crate::support::{Pair, PairOptions, Syncer, eventually, install_crds};

in_both_modes!(
    while_the_syncer_runs_the_copies_stay_until_it_is_confirmed,
    while_the_syncer_is_down_the_copies_stay_until_it_is_confirmed,
    without_its_record_the_copies_stay_until_it_is_confirmed,
    without_its_record_one_copy_of_another_hub_outvotes_nobody,
    an_empty_hub_with_an_empty_config_deletes_nothing,
    what_was_confirmed_is_carried_out_though_the_syncer_is_killed_in_between,
);

/// Two copies, and a syncer that has seen them.
async fn begin(flags: Mode) -> (Pair, Syncer) {
    let pair = Pair::start(PairOptions::default()).await;
    create(&pair.hub.objects(), "shop", 3).await;
    select_all(&pair.hub.objects(), "shop").await;
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    copies_become(&pair.edge.objects(), "shop", DOWNSYNCED, &names(0..3)).await;
    nothing_is_held(&pair.hub.objects(), "the-one").await;
    (pair, syncer)
}

/// Puts another cluster in place of the hub. It has the types of the configs, and nothing else. Gives what is said of it
/// once it is known: one that has just begun to start is nobody yet.
async fn replace_hub(pair: &mut Pair) -> String {
    pair.hub.stop();
    pair.hub.lose_data();
    pair.hub.start_again().await;
    install_crds(&pair.hub.objects()).await;
    format!(
        "another cluster answers: {} instead of",
        identity(&pair.hub.objects()).await
    )
}

fn said(syncer: &Syncer, text: &str) -> usize {
    syncer.log().matches(text).count()
}

/// The new hub selects the same namespace, and has only `c0` and something new in it.
async fn lives_on_until_confirmed(pair: &Pair, syncer: &mut Syncer, another: &str) {
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    stock(&hub, "shop", &["c0", "new"], &json!({"v": "2"})).await;
    select_all(&hub, "shop").await;
    let token = is_held(&hub, "the-one", "OtherCluster", another).await;
    let mut all = names(0..3);
    all.insert("new".into());
    // All else continues: creates, updates, upsync.
    copies_become(&edge, "shop", DOWNSYNCED, &all).await;
    copy_equals(&edge, "shop", "c0", &json!({"v": "2"})).await;
    edge.create(&secret("shop", "up")).await;
    arrives(&hub, "v1", "secrets", "shop", "up").await;
    hub.replace(&config_map("shop", "new", json!({"v": "3"}))).await;
    copy_equals(&edge, "shop", "new", &json!({"v": "3"})).await;
    is_held(&hub, "the-one", "OtherCluster", "2 objects are held").await;
    confirm(&hub, "the-one", "wrong").await;
    copies_stay(&edge, "shop", DOWNSYNCED, &all, a_while()).await;
    let log = syncer.log();
    let reported = log
        .lines()
        .filter(|line| line.contains("deletes are held") && line.contains(another));
    assert_eq!(reported.count(), 1, "{log}");
    // A poll may notice first that versions have gone back, and anybody that the hub is nobody yet.
    assert!(said(syncer, "deletes are held") <= 3, "{}", syncer.log());
    confirm(&hub, "the-one", &token).await;
    copies_become(&edge, "shop", DOWNSYNCED, &["c0".to_owned(), "new".to_owned()].into()).await;
    nothing_is_held(&hub, "the-one").await;
    // The new hub is the hub from now on.
    hub.delete("v1", "configmaps", "shop", "new").await;
    copies_become(&edge, "shop", DOWNSYNCED, &["c0".to_owned()].into()).await;
    syncer
        .wait_for_log(
            "reason=DeletesReleased msg=\"held deletes are carried out\" direction=downsync because=confirmed",
            SOON,
        )
        .await;
}

async fn while_the_syncer_runs_the_copies_stay_until_it_is_confirmed(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    let another = replace_hub(&mut pair).await;
    lives_on_until_confirmed(&pair, &mut syncer, &another).await;
    // Also after a restart.
    syncer.terminate().await;
    let _syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.delete("v1", "configmaps", "shop", "c0").await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..0)).await;
}

async fn while_the_syncer_is_down_the_copies_stay_until_it_is_confirmed(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    syncer.terminate().await;
    let another = replace_hub(&mut pair).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    lives_on_until_confirmed(&pair, &mut syncer, &another).await;
}

async fn without_its_record_the_copies_stay_until_it_is_confirmed(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    syncer.terminate().await;
    let edge = pair.edge.objects();
    assert!(
        edge.delete("v1", "configmaps", "default", "edge-syncer-types-test")
            .await
    );
    let another = replace_hub(&mut pair).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    lives_on_until_confirmed(&pair, &mut syncer, &another).await;
}

/// One that another hub had left, or whose mark somebody had changed.
async fn without_its_record_one_copy_of_another_hub_outvotes_nobody(flags: Mode) {
    let (pair, mut syncer) = begin(flags).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    syncer.terminate().await;
    let source =
        json!({"metadata": {"annotations": {"edge.kubestellar.io/source": "11111111-2222-4333-8444-555555555555/7"}}});
    edge.merge_patch("v1", "configmaps", "shop", "c0", &source).await;
    hub.delete("v1", "configmaps", "shop", "c0").await;
    edge.delete("v1", "configmaps", "default", "edge-syncer-types-test")
        .await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    syncer.wait_for_log("reason=CopyOfAnotherCluster", SOON).await;
    hub.delete("v1", "configmaps", "shop", "c1").await;
    gone(&edge, "v1", "configmaps", "shop", "c1").await;
    nothing_is_held(&hub, "the-one").await;
    copies_become(&edge, "shop", DOWNSYNCED, &["c0", "c2"].map(str::to_owned).into()).await;
}

async fn an_empty_hub_with_an_empty_config_deletes_nothing(flags: Mode) {
    let (mut pair, mut syncer) = begin(flags).await;
    let another = replace_hub(&mut pair).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&syncer_config("empty", json!({}))).await;
    is_held(&hub, "empty", "OtherCluster", &another).await;
    // The namespace is one of them.
    let first = is_held(&hub, "empty", "OtherCluster", "4 objects are held").await;
    copies_stay(&edge, "shop", DOWNSYNCED, &names(0..3), a_while()).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    // Another run, another token; until its first heartbeat the config shows the old one.
    let token = eventually("the config names a new token", SOON, async || {
        match is_held(&hub, "empty", "OtherCluster", "4 objects are held").await {
            token if token != first => Ok(token),
            token => Err(token),
        }
    })
    .await;
    copies_stay(&edge, "shop", DOWNSYNCED, &names(0..3), a_while()).await;
    confirm(&hub, "empty", &token).await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..0)).await;
    assert!(syncer.is_running());
}

async fn what_was_confirmed_is_carried_out_though_the_syncer_is_killed_in_between(flags: Mode) {
    let mut pair = Pair::start(PairOptions::default()).await;
    create(&pair.hub.objects(), "shop", 40).await;
    select_all(&pair.hub.objects(), "shop").await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let edge = pair.edge.objects();
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..40)).await;
    nothing_is_held(&pair.hub.objects(), "the-one").await;
    syncer.terminate().await;
    let another = replace_hub(&mut pair).await;
    let hub = pair.hub.objects();
    stock(&hub, "shop", &["c0"], &json!({"v": "2"})).await;
    select_all(&hub, "shop").await;
    // Slow enough to be killed before it has deleted all of them.
    let slow = ["--heartbeat-interval=5s", "--qps=10", "--burst=10"];
    let from = format!("--from-kubeconfig={}", pair.hub.kubeconfig().display());
    let to = format!("--to-kubeconfig={}", pair.edge.kubeconfig().display());
    let first = ["run", "--sync-target-uid=test", &from, &to];
    let mut syncer = Syncer::start_raw(&[&first, flags, &slow].concat(), &[]);
    is_held(&hub, "the-one", "OtherCluster", &another).await;
    let token = is_held(&hub, "the-one", "OtherCluster", "39 objects are held").await;
    confirm(&hub, "the-one", &token).await;
    eventually("some copies are deleted", SOON, async || {
        let left = copies(&edge, "shop", DOWNSYNCED).await?;
        (left.len() < 40).then_some(()).ok_or("none is".to_owned())
    })
    .await;
    syncer.kill();
    let left = copies(&edge, "shop", DOWNSYNCED).await.expect("the edge answers");
    assert!(left.len() > 1, "it was too fast: {left:?}");
    let _syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..1)).await;
    nothing_is_held(&hub, "the-one").await;
}
