//! Links of 64 kbit/s, on which a large answer or a large object takes longer than any time limit for silence.

use std::time::Duration;

use serde_json::json;
use tokio::join;

use crate::story::{Links, Story, common_pair};
use crate::support::modes::{Mode, POLL_THE_HUB, WATCH};
use crate::support::objects::config_map;
use crate::support::{Pair, PairOptions, Server};

/// 64 kbit/s, in kB/s.
const NARROW: u32 = 8;

/// Far more than the transfers of these tests take.
const LONG: Duration = Duration::from_secs(900);

#[tokio::test]
async fn a_link_of_64_kbit_a_second_is_no_outage() {
    join!(narrow(WATCH), narrow(POLL_THE_HUB));
}

async fn narrow(mode: Mode) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    links.hub.narrow(NARROW).await;
    let mut story = Story::between(pair, &links, mode).await;
    story.change_hub().await;
    story.is_in_step().await;
    story.ends_well().await;
    assert!(!story.syncer.log().contains("cannot reach"));
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn a_list_that_takes_minutes_is_read_to_its_end_when_watching() {
    large_list(WATCH).await;
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn a_list_that_takes_minutes_is_read_to_its_end_when_polling() {
    large_list(&["--mode=poll", "--poll-interval=15s", "--edge-mode=poll"]).await;
}

async fn large_list(mode: Mode) {
    let pair = Pair::start(PairOptions::default()).await;
    let links = Links::to(&pair).await;
    let shop = Story::prepare(&pair.hub).await;
    // 800 kB: 100 s.
    fill(&pair.hub, &shop, 200, 4000).await;
    links.hub.narrow(NARROW).await;
    let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
    let syncer = Story::syncer(&shop, &hub, &edge, mode);
    let mut story = Story::begin_within(LONG, &pair.hub, &pair.edge, shop, syncer).await;
    story.change_hub().await;
    story.is_in_step_within(LONG).await;
    assert!(!story.syncer.log().contains("cannot reach"));
    links.hub.heal().await;
    story.ends_well().await;
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn objects_that_take_long_to_send_arrive_one_after_the_other() {
    let pair = Pair::start(PairOptions::default()).await;
    let links = Links::to(&pair).await;
    let shop = Story::prepare(&pair.hub).await;
    // 13 s each, of the 34 s that an API server allows: side by side, all would fail.
    fill(&pair.hub, &shop, 6, 100_000).await;
    links.edge.narrow(NARROW).await;
    let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
    let syncer = Story::syncer(&shop, &hub, &edge, POLL_THE_HUB);
    let mut story = Story::begin_within(LONG, &pair.hub, &pair.edge, shop, syncer).await;
    assert!(!story.syncer.log().contains("cannot reach"));
    assert!(!story.syncer.log().contains("failed"));
    links.edge.heal().await;
    story.ends_well().await;
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn an_object_that_takes_minutes_to_receive_arrives_when_watching() {
    let pair = Pair::start(PairOptions::default()).await;
    let links = Links::to(&pair).await;
    let shop = Story::prepare(&pair.hub).await;
    fill(&pair.hub, &shop, 1, 900_000).await;
    links.hub.narrow(NARROW).await;
    let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
    let syncer = Story::syncer(&shop, &hub, &edge, WATCH);
    let mut story = Story::begin_within(LONG, &pair.hub, &pair.edge, shop, syncer).await;
    assert!(!story.syncer.log().contains("cannot reach"));
    links.hub.heal().await;
    story.ends_well().await;
}

/// Creates objects that hold so many bytes each, which no compression makes fewer.
async fn fill(at: &Server, shop: &str, count: u32, bytes: usize) {
    let objects = at.objects();
    let mut random = fastrand::Rng::with_seed(7);
    for index in 0..count {
        let text: String = (0..bytes).map(|_| random.alphanumeric()).collect();
        objects
            .create(&config_map(shop, &format!("large-{index}"), json!({"text": text})))
            .await;
    }
}
