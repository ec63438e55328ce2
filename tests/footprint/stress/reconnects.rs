//! Links that break as soon as they hold.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::stage::{DOWN, Stage};
use crate::load::{config_maps, create_all, name};
use crate::table::seconds;

const OBJECTS: u32 = 200;
/// Connections to either side that are made again in all.
const RECONNECTS: u64 = 1000;
/// How long a connection may hold before it is cut: enough to start all watches, not to be idle.
const HOLDS: Duration = Duration::from_millis(50);
/// Far more than the longest back-off.
const RETURN: Duration = Duration::from_secs(120);

pub(super) async fn run(stage: &mut Stage, longest: Duration) {
    create_all(&stage.hub, config_maps(DOWN, 0..OBJECTS, 1 << 10)).await;
    stage.select().await;
    stage.catch_up(&format!("{OBJECTS} ConfigMaps")).await;
    stage.progress(&format!(
        "cutting both links until it has connected again {RECONNECTS} times, or for {} s",
        longest.as_secs()
    ));
    let (start, mut cuts) = (Instant::now(), 0);
    let first: u64 = connections(stage).iter().sum();
    let reconnects = |stage: &Stage| connections(stage).iter().sum::<u64>() - first;
    let mut reported = start;
    while reconnects(stage) < RECONNECTS && start.elapsed() < longest {
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
        if reported.elapsed() > super::MINUTE {
            reported = Instant::now();
            stage.note(&format!("after {} reconnects", reconnects(stage)));
        }
    }
    let what = format!(
        "{} reconnects after {cuts} cuts of both links in {}",
        reconnects(stage),
        seconds(start.elapsed())
    );
    stage.catch_up(&what).await;
}

/// How often the syncer has connected to each side.
fn connections(stage: &Stage) -> [u64; 2] {
    [&stage.life.hub, &stage.life.edge].map(|link| link.traffic().connections)
}
