//! Links of 64 kbit/s, on which a large answer or a large object takes longer than any time limit for silence.

use std::time::Duration;

use serde_json::json;
use tokio::join;

use crate::story::{Links, Story};
use crate::support::modes::{Mode, POLL_THE_HUB, WATCH};
use crate::support::objects::config_map;
use crate::support::{Pair, PairOptions, Server};

/// 64 kbit/s, in kB/s.
const NARROW: u32 = 8;

/// Far more than the transfers of these tests take.
const LONG: Duration = Duration::from_secs(900);

#[tokio::test]
async fn a_link_of_64_kbit_a_second_is_no_outage() {
    // Not the common one: what other stories have left there would be read through these links.
    let pair = Pair::start(PairOptions::default()).await;
    join!(narrow(&pair, WATCH), narrow(&pair, POLL_THE_HUB));
}

async fn narrow(pair: &Pair, mode: Mode) {
    let links = Links::to(pair).await;
    links.hub.narrow(NARROW).await;
    let mut story = Story::between(pair, &links, mode).await;
    story.change_hub().await;
    story.change_edge().await;
    story.is_synced().await;
    story.ends_well().await;
    assert!(!story.syncer.log().contains("SideUnreachable"));
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
    // 800 kB: 100 s.
    let mut large = Large::begin("hub", mode, 200, 4000).await;
    large.story.change_hub().await;
    large.story.change_edge().await;
    large.story.is_synced_within(LONG).await;
    large.was_no_outage();
    large.ends_well().await;
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn objects_that_take_long_to_send_arrive_one_after_the_other() {
    // 13 s each, of the 34 s that an API server allows: side by side, all would fail.
    let large = Large::begin("edge", POLL_THE_HUB, 6, 100_000).await;
    large.was_no_outage();
    assert!(!large.story.syncer.log().contains("Failed"));
    large.ends_well().await;
}

#[tokio::test]
#[ignore = "takes minutes: scripts/test --long"]
async fn an_object_that_takes_minutes_to_receive_arrives_when_watching() {
    let large = Large::begin("hub", WATCH, 1, 900_000).await;
    large.was_no_outage();
    large.ends_well().await;
}

/// A story with large objects over a narrow link.
struct Large {
    // First, so that on drop the syncer ends before what it talks to.
    story: Story,
    links: Links,
    /// Which of the links is narrow.
    side: &'static str,
    _pair: Pair,
}

impl Large {
    /// Creates so many objects of so many bytes at the hub, and waits until they are at the edge.
    async fn begin(side: &'static str, mode: Mode, count: u32, bytes: usize) -> Self {
        let pair = Pair::start(PairOptions::default()).await;
        let links = Links::to(&pair).await;
        let shop = Story::prepare(&pair.hub).await;
        fill(&pair.hub, &shop, count, bytes).await;
        links.at(side).narrow(NARROW).await;
        let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
        let syncer = Story::syncer(&shop, &hub, &edge, mode);
        let story = Story::begin_within(LONG, &pair.hub, &pair.edge, shop, syncer).await;
        Self {
            story,
            links,
            side,
            _pair: pair,
        }
    }

    fn was_no_outage(&self) {
        assert!(!self.story.syncer.log().contains("SideUnreachable"));
    }

    async fn ends_well(mut self) {
        self.links.at(self.side).heal().await;
        self.story.ends_well().await;
    }
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
