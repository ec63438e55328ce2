//! More to do at once than the queue has room for.

use serde_json::{Value, json};

use crate::support::modes::{POLL, WATCH};
use crate::support::objects::config_map;
use crate::support::stage::{Stage, config_maps, numbered, select, stage, stock};
use crate::support::story::{SOON, edit};
use crate::support::{Objects, eventually, in_parallel};

/// Several times what the queue holds.
const MANY: usize = 200;

#[tokio::test]
async fn what_finds_no_room_in_the_queue_is_seen_to_all_the_same() {
    nothing_is_forgotten(WATCH).await;
}

#[tokio::test]
async fn what_finds_no_room_in_the_queue_is_seen_to_all_the_same_when_polling() {
    nothing_is_forgotten(POLL).await;
}

async fn nothing_is_forgotten(mode: &[&str]) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let names = numbered(MANY);
    stock(&hub, &shop, &names, &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let flags = [mode, &["--queue-capacity=32"]].concat();
    let mut syncer = pair.syncer(&flags);
    all_hold(&edge, &shop, &json!({"v": "1"})).await;

    // The edge reports its own changes whatever the room, since the hub's wait for their copies to be known.
    syncer.signal("STOP");
    let change = json!({"data": {"v": "changed at the edge"}});
    in_parallel(names.iter().map(|name| edit(&edge, &shop, name, &change)), 16).await;
    syncer.signal("CONT");
    all_hold(&edge, &shop, &json!({"v": "1"})).await;

    // And once more, with as much news from the hub.
    syncer.signal("STOP");
    let newer = json!({"data": {"v": "2"}});
    in_parallel(names.iter().map(|name| edit(&hub, &shop, name, &newer)), 16).await;
    hub.create(&config_map(&shop, "last", json!({"v": "2"}))).await;
    in_parallel(names.iter().map(|name| edit(&edge, &shop, name, &change)), 16).await;
    syncer.signal("CONT");
    all_hold(&edge, &shop, &newer["data"]).await;
    syncer.terminate().await;
}

/// Waits until all `ConfigMap`s of ours in a namespace hold `data`.
async fn all_hold(edge: &Objects, shop: &str, data: &Value) {
    eventually("all copies hold what the hub has", SOON * 2, async || {
        let copies = edge
            .try_list("v1", "configmaps", shop, "edge.kubestellar.io/downsynced")
            .await;
        let copies = copies.map_err(|error| error.to_string())?;
        let good = copies.iter().filter(|copy| copy["data"] == *data).count();
        if good == copies.len() && good >= MANY {
            Ok(())
        } else {
            Err(format!("{good} of {}", copies.len()))
        }
    })
    .await;
}
