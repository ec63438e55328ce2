//! Links that break as soon as they hold.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::stage::{DOWN, Stage};
use crate::load::{config_maps, create_all, name};
use crate::table::seconds;

const OBJECTS: u32 = 200;
/// What is broken in all.
const CUTS: u32 = 1000;
/// How long a connection may hold before it is cut: enough to start all watches, not to be at rest.
const HOLDS: Duration = Duration::from_millis(50);
/// Far more than the longest back-off.
const RETURN: Duration = Duration::from_secs(120);

pub(super) async fn run(stage: &mut Stage, longest: Duration) {
    create_all(&stage.hub, config_maps(DOWN, 0..OBJECTS, 1 << 10)).await;
    stage.select().await;
    stage.catch_up(&format!("{OBJECTS} ConfigMaps")).await;
    stage.progress(&format!(
        "cutting both links {CUTS} times, or for {} s",
        longest.as_secs()
    ));
    let (start, mut cuts) = (Instant::now(), 0);
    let mut told = start;
    while cuts < CUTS && start.elapsed() < longest {
        let before = connections(stage);
        stage.life.hub.cut().await;
        stage.life.edge.cut().await;
        stage.life.hub.heal().await;
        stage.life.edge.heal().await;
        cuts += 1;
        let patch = json!({"data": {"cut": cuts.to_string()}});
        stage
            .hub
            .merge_patch("v1", "configmaps", DOWN, &name(cuts % OBJECTS), &patch)
            .await;
        let back = timeout(RETURN, async {
            while connections(stage)
                .iter()
                .zip(&before)
                .any(|(now, before)| now == before)
            {
                sleep(Duration::from_millis(5)).await;
            }
        });
        back.await.expect("the syncer connects again");
        sleep(HOLDS).await;
        if told.elapsed() > super::MINUTE {
            told = Instant::now();
            stage.note(&format!("after {cuts} cuts"));
        }
    }
    let what = format!("{cuts} cuts of both links in {}", seconds(start.elapsed()));
    stage.catch_up(&what).await;
}

/// How often the syncer has connected to each side.
fn connections(stage: &Stage) -> [u64; 2] {
    [&stage.life.hub, &stage.life.edge].map(|link| link.traffic().connections)
}
