//! The same guards for upsync: what goes at the edge does not at once go at the hub.

use std::time::Duration;

use serde_json::json;

use crate::bench::{
    EACH_SECOND, UPSYNCED, confirm, copies_become, copies_stay, create, delete, identity, is_held, names,
    nothing_is_held,
};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, select, stage};
use crate::support::story::{a_while, arrives, config_map_entry, upsync_all};
use crate::support::{Pair, PairOptions};

in_both_modes!(
    thirty_of_forty_that_go_at_the_edge_are_held_at_the_hub,
    another_edge_deletes_nothing_at_the_hub,
    another_edge_deletes_nothing_at_the_hub_also_if_the_syncer_has_ended_with_the_first,
);

async fn thirty_of_forty_that_go_at_the_edge_are_held_at_the_hub(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    create(&edge, &shop, 40).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    copies_become(&hub, &shop, UPSYNCED, &names(0..40)).await;
    syncer.signal("STOP");
    delete(&edge, &shop, &names(0..30)).await;
    syncer.signal("CONT");
    let token = is_held(&hub, "the-one", "TooMany", "upsync: ").await;
    let left = hub.try_list("v1", "configmaps", &shop, UPSYNCED).await;
    assert!(left.expect("the hub answers").len() >= 20);
    edge.create(&config_map(&shop, "new", json!({}))).await;
    arrives(&hub, "v1", "configmaps", &shop, "new").await;
    let mut expected = names(30..40);
    expected.insert("new".into());
    confirm(&hub, "the-one", &token).await;
    copies_become(&hub, &shop, UPSYNCED, &expected).await;
    nothing_is_held(&hub, "the-one").await;
}

async fn another_edge_deletes_nothing_at_the_hub(flags: Mode) {
    edge_is_another(flags, true).await;
}

async fn another_edge_deletes_nothing_at_the_hub_also_if_the_syncer_has_ended_with_the_first(flags: Mode) {
    edge_is_another(flags, false).await;
}

/// The edge is replaced by an empty one, while the syncer runs or not.
async fn edge_is_another(flags: Mode, runs: bool) {
    let mut pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    create(&pair.edge.objects(), "up", 3).await;
    create(&hub, "down", 3).await;
    let selected = json!({
        "namespacedObjects": [config_map_entry("down", &["*"])],
        "upsync": [upsync_all("", &["configmaps"], "up")],
    });
    select(&hub, &selected).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    copies_become(&hub, "up", UPSYNCED, &names(0..3)).await;
    nothing_is_held(&hub, "the-one").await;
    if !runs {
        syncer.terminate().await;
    }
    pair.edge.stop();
    pair.edge.lose_data();
    pair.edge.start_again().await;
    let edge = pair.edge.objects();
    // One that has just begun to start is nobody yet.
    let another = format!("upsync: another cluster answers: {} instead of", identity(&edge).await);
    if !runs {
        syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    }
    let token = is_held(&hub, "the-one", "OtherCluster", &another).await;
    // What comes from the hub is there again.
    for name in names(0..3) {
        arrives(&edge, "v1", "configmaps", "down", &name).await;
    }
    edge.create(&namespace("up")).await;
    edge.create(&config_map("up", "c0", json!({"v": "2"}))).await;
    is_held(&hub, "the-one", "OtherCluster", "2 objects are held").await;
    copies_stay(
        &hub,
        "up",
        UPSYNCED,
        &names(0..3),
        a_while().max(Duration::from_secs(2)),
    )
    .await;
    confirm(&hub, "the-one", &token).await;
    copies_become(&hub, "up", UPSYNCED, &names(0..1)).await;
    nothing_is_held(&hub, "the-one").await;
    assert!(syncer.is_running());
}
