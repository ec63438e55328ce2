//! Three times as many watches as an API server allows streams on one HTTP/2 connection.

use serde_json::{Value, json};

use crate::support::objects::{namespace, syncer_config};
use crate::support::stage::{CONFIG_API, all_of_each};
use crate::support::story::{SOON, becomes, crd, custom_object, install_crd};
use crate::support::{AuditEvent, Objects, Pair, PairOptions, SYNCER, ServerOptions, eventually, in_parallel};

const GROUP: &str = "many.example";
const TYPES: u8 = 75;
/// The most that are watched one by one: of more, the whole type is.
const NAMESPACES: usize = 4;

/// What a syncer says that has lost its lead.
const LOST: &str = "no longer leading";

fn types() -> Vec<String> {
    let letter = |index| char::from(b'a' + index);
    (0..TYPES)
        .map(|index| format!("{}{}os", letter(index / 26), letter(index % 26)))
        .collect()
}

fn namespaces() -> Vec<String> {
    (0..NAMESPACES).map(|index| format!("shop-{index}")).collect()
}

/// Both sides with 75 types, and an object of each in 4 namespaces at the hub, all selected.
async fn stocked(hub: &Objects, edge: &Objects) {
    let definitions: Vec<Value> = types().iter().map(|plural| crd(GROUP, plural, true)).collect();
    let sides = [hub, edge];
    in_parallel(definitions.iter().map(|definition| install_crd(&sides, definition)), 8).await;
    let namespaces = namespaces();
    for name in &namespaces {
        hub.create(&namespace(name)).await;
    }
    let types = types();
    let objects: Vec<Value> = namespaces
        .iter()
        .flat_map(|namespace| {
            types
                .iter()
                .map(|plural| custom_object(GROUP, plural, namespace, "one", 1))
        })
        .collect();
    in_parallel(objects.iter().map(|object| hub.create(object)), 8).await;
    let types: Vec<(&str, &str)> = types.iter().map(|plural| (GROUP, plural.as_str())).collect();
    hub.create(&syncer_config("the-one", all_of_each(&namespaces, &types)))
        .await;
}

/// Every object is at the edge with this size.
async fn all_have_size(edge: &Objects, size: u32) {
    let api = format!("{GROUP}/v1");
    for plural in types() {
        for namespace in namespaces() {
            becomes(edge, [&api, &plural, &namespace, "one"], "has the size", |object| {
                object["spec"]["size"] == size
            })
            .await;
        }
    }
}

async fn heartbeat_after(hub: &Objects, last: Option<String>) -> Option<String> {
    let time = |config: &Value| config["status"]["lastSyncerHeartbeatTime"].as_str().map(str::to_owned);
    let is_new = |config: &Value| time(config).is_some() && time(config) != last;
    time(&becomes(hub, [CONFIG_API, "syncerconfigs", "", "the-one"], "beats", is_new).await)
}

async fn works_with_300_watches(extra_args: &[&str]) {
    let side = ServerOptions {
        extra_args: extra_args.iter().map(|&arg| arg.to_owned()).collect(),
        ..ServerOptions::default()
    };
    let pair = Pair::start(PairOptions {
        hub: side.clone(),
        edge: side,
    })
    .await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    stocked(&hub, &edge).await;
    // A short Lease: whatever keeps its renewal waiting for some seconds loses it.
    let flags = ["--leader-elect", "--lease-duration=15s", "--heartbeat-interval=1s"];
    let mut syncer = pair.syncer(&flags);
    all_have_size(&edge, 1).await;
    let open = |request: &&AuditEvent| request.verb == "watch" && request.stage == "ResponseStarted";
    // What has been listed is watched a moment later.
    eventually("each type is watched in each namespace", SOON, async || {
        let watches = pair.hub.requests(SYNCER).iter().filter(open).count();
        let is_all = watches >= usize::from(TYPES) * NAMESPACES;
        if is_all {
            Ok(())
        } else {
            Err(format!("{watches} watches"))
        }
    })
    .await;
    let mut beat = None;
    for _ in 0..3 {
        beat = heartbeat_after(&hub, beat).await;
    }
    // All of them are watched: a change of each arrives, in both directions of a copy.
    let api = format!("{GROUP}/v1");
    for plural in types() {
        for namespace in namespaces() {
            let patch = json!({"spec": {"size": 2}});
            hub.merge_patch(&api, &plural, &namespace, "one", &patch).await;
        }
    }
    all_have_size(&edge, 2).await;
    for plural in types() {
        edge.merge_patch(&api, &plural, "shop-3", "one", &json!({"spec": {"size": 3}}))
            .await;
    }
    all_have_size(&edge, 2).await;
    heartbeat_after(&hub, beat).await;
    assert!(!syncer.log().contains(LOST), "{}", syncer.log());
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn three_times_as_many_watches_as_a_connection_carries_do_not_stop_a_side() {
    works_with_300_watches(&[]).await;
}

#[tokio::test]
async fn a_server_that_allows_few_streams_does_not_stop_a_side() {
    works_with_300_watches(&["--http2-max-streams-per-connection=20"]).await;
}
