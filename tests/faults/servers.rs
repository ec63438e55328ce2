//! Servers that stop or crash.

use std::time::Duration;

use tokio::join;
use tokio::time::{Instant, sleep_until};

use crate::story::{RECOVERED, Story};
use crate::support::modes::{Mode, POLL, WATCH};
use crate::support::{Pair, PairOptions, Server, lines};

/// How long a stopped server says nothing, while the kernel continues accepting connections for it.
const STOPPED: Duration = Duration::from_secs(40);

fn at<'a>(pair: &'a mut Pair, side: &str) -> &'a mut Server {
    match side {
        "hub" => &mut pair.hub,
        _ => &mut pair.edge,
    }
}

async fn begin(pair: &Pair, mode: Mode) -> Story {
    let shop = Story::prepare(&pair.hub).await;
    let syncer = Story::syncer(&shop, &pair.hub.kubeconfig(), &pair.edge.kubeconfig(), mode);
    Story::begin(&pair.hub, &pair.edge, shop, syncer).await
}

#[tokio::test]
async fn a_server_that_stops_for_40_seconds_is_noticed_and_caught_up_with() {
    join!(stopped("hub"), stopped("edge"));
}

async fn stopped(side: &str) {
    let mut pair = Pair::start(PairOptions::default()).await;
    let mut watching = begin(&pair, WATCH).await;
    let mut polling = begin(&pair, POLL).await;
    let start = Instant::now();
    at(&mut pair, side).pause();
    for story in [&mut watching, &mut polling] {
        match side {
            "edge" => story.change_hub().await,
            _ => story.change_edge().await,
        }
    }
    for story in [&mut watching, &mut polling] {
        story.says(&lines::unreachable(side), RECOVERED).await;
    }
    // It is to be away for all that time, also when it has been noticed long before.
    sleep_until(start + STOPPED).await;
    at(&mut pair, side).resume();
    for story in [&mut watching, &mut polling] {
        story.is_synced().await;
        story.reports_one_outage(side).await;
        story.ends_well().await;
    }
}

#[tokio::test]
async fn api_servers_that_crash_with_their_etcd_are_resumed_on_the_same_data() {
    let mut pair = Pair::start(PairOptions::default()).await;
    let mut watching = begin(&pair, WATCH).await;
    let mut polling = begin(&pair, POLL).await;
    for side in ["hub", "edge"] {
        // It may take less than a second, so that nobody has noticed.
        at(&mut pair, side).crash_and_restart().await;
        for story in [&mut watching, &mut polling] {
            story.change_hub().await;
            story.change_edge().await;
            story.is_synced().await;
        }
    }
    for story in [&mut watching, &mut polling] {
        story.ends_well().await;
    }
}

#[tokio::test]
async fn both_sides_gone_at_once_are_waited_for() {
    let mut pair = Pair::start(PairOptions::default()).await;
    let mut story = begin(&pair, WATCH).await;
    pair.hub.stop_apiserver();
    pair.edge.stop_apiserver();
    for side in ["hub", "edge"] {
        story.says(&lines::unreachable(side), RECOVERED).await;
    }
    pair.edge.start_apiserver().await;
    pair.hub.start_apiserver().await;
    story.ends_well().await;
}
