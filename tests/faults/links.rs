//! Links that break.

use std::time::Duration;

use driver::logger::time_of_day_in_micros;
use tokio::join;

use crate::story::{Links, RECOVERED, Story, common_pair};
use crate::support::fault_proxy::Link;
use crate::support::lines;
use crate::support::micros_of;
use crate::support::modes::{Mode, POLL, WATCH};
use crate::support::process::complain;

/// How soon a half-open link must have been noticed by the syncer's clock: 30 s, and what a busy machine may add. Without
/// a limit of the syncer's own it would take a quarter of an hour.
const NOTICED: Duration = Duration::from_secs(45);

/// A round trip over a satellite.
const LATENCY: Duration = Duration::from_millis(600);

#[tokio::test]
async fn a_half_open_link_is_noticed_within_30_seconds_and_caught_up_with() {
    join!(
        half_open("hub", WATCH),
        half_open("hub", POLL),
        half_open("edge", WATCH),
        half_open("edge", POLL),
    );
}

async fn half_open(side: &str, mode: Mode) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    let mut story = Story::between(pair, &links, mode).await;
    links.at(side).swallow().await;
    let cut = micros_of(&time_of_day_in_micros());
    // Where it is not heard of, so that a syncer that watches has nothing to send over the link.
    match side {
        "hub" => story.change_hub().await,
        _ => story.change_edge().await,
    }
    let line = lines::unreachable(side);
    story.says(&line, RECOVERED).await;
    let noticed = Duration::from_micros(story.syncer.printed_at(&line).saturating_sub(cut));
    let what = format!("half-open link to the {side} noticed after {noticed:?}, {mode:?}");
    // A figure for people, shown with --nocapture.
    complain(&what);
    assert!(noticed < NOTICED, "{what}");
    match side {
        "hub" => story.change_edge().await,
        _ => story.change_hub().await,
    }
    recovers(&links, side, story).await;
}

/// Puts the link right, and checks that the outage was one and has been made up for.
async fn recovers(links: &Links, side: &str, mut story: Story) {
    links.at(side).heal().await;
    story.is_synced().await;
    story.reports_one_outage(side).await;
    story.ends_well().await;
}

#[tokio::test]
async fn a_link_that_is_cut_is_resumed() {
    join!(
        cut("hub", WATCH),
        cut("hub", POLL),
        cut("edge", WATCH),
        cut("edge", POLL)
    );
}

async fn cut(side: &str, mode: Mode) {
    broken(side, mode, Link::cut).await;
}

/// A link breaks in a way that is noticed as soon as something is sent.
async fn broken(side: &str, mode: Mode, fault: impl AsyncFn(&Link)) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    let mut story = Story::between(pair, &links, mode).await;
    fault(links.at(side)).await;
    story.change_hub().await;
    story.change_edge().await;
    story.says(&lines::unreachable(side), RECOVERED).await;
    recovers(&links, side, story).await;
}

#[tokio::test]
async fn connections_that_are_reset_are_opened_again() {
    join!(
        reset("hub", WATCH),
        reset("hub", POLL),
        reset("edge", WATCH),
        reset("edge", POLL)
    );
}

async fn reset(side: &str, mode: Mode) {
    broken(side, mode, Link::reset).await;
}

#[tokio::test]
async fn latency_of_600_ms_is_no_outage() {
    join!(latency(WATCH), latency(POLL));
}

async fn latency(mode: Mode) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    links.hub.delay(LATENCY).await;
    links.edge.delay(LATENCY).await;
    let mut story = Story::between(pair, &links, mode).await;
    story.change_hub().await;
    story.is_synced().await;
    story.change_edge().await;
    story.is_synced().await;
    story.ends_well().await;
    assert!(!story.syncer.log().contains("SideUnreachable"));
}

#[tokio::test]
async fn a_side_that_cannot_be_reached_at_start_is_waited_for() {
    join!(
        unreachable_at_start("hub", WATCH),
        unreachable_at_start("hub", POLL),
        unreachable_at_start("edge", WATCH),
        unreachable_at_start("edge", POLL),
    );
}

async fn unreachable_at_start(side: &str, mode: Mode) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    links.at(side).cut().await;
    let shop = Story::prepare(&pair.hub).await;
    let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
    let mut syncer = Story::syncer(&shop, &hub, &edge, mode);
    let line = lines::unreachable(side);
    syncer.wait_for_log(&line, RECOVERED).await;
    links.at(side).heal().await;
    let mut story = Story::begin(&pair.hub, &pair.edge, shop, syncer).await;
    story.reports_one_outage(side).await;
    story.ends_well().await;
}
