//! The hub is gone, and at the edge everything changes that can: copies, statuses, objects that go up.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use super::MINUTE;
use super::stage::{DOWN, Stage, UP};
use crate::load::{GAUGES_V1, config_maps, create_all, each, gauges, name};
use crate::support::Objects;

/// Of each kind.
const OBJECTS: u32 = 300;
/// Between two rounds of changes, so that the servers have other things to do too.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn run(stage: &mut Stage, minutes: u32) {
    create_all(&stage.hub, config_maps(DOWN, 0..OBJECTS, 1 << 10)).await;
    create_all(&stage.hub, gauges(DOWN, OBJECTS)).await;
    create_all(&stage.edge, config_maps(UP, 0..OBJECTS, 1 << 10)).await;
    stage.select().await;
    let what = format!("{OBJECTS} ConfigMaps down, {OBJECTS} up, {OBJECTS} objects with a status");
    stage.catch_up(&what).await;
    stage.progress(&format!("the hub is gone for {minutes} minutes"));
    stage.life.hub.cut().await;
    let (start, mut rounds) = (Instant::now(), 0);
    for minute in 1..=minutes {
        while start.elapsed() < MINUTE * minute {
            rounds += 1;
            change_everything(&stage.edge, rounds).await;
            sleep(PAUSE).await;
        }
        let changes = rounds * (3 * (OBJECTS - 1) + 2);
        stage.note(&format!("hub gone, minute {minute}: {changes} changes at the edge"));
    }
    stage.life.hub.heal().await;
    stage.catch_up("the hub is back").await;
}

/// Changes each object but the last, creates one that goes up, and deletes the last one before it.
async fn change_everything(edge: &Objects, round: u32) {
    each(0..OBJECTS - 1, async |index| {
        let name = name(index);
        // What the hub sets, so that it is corrected: what others add to a copy would stay.
        let data = json!({"data": {"body": format!("round {round}")}});
        let status = json!({"round": round});
        edge.merge_patch("v1", "configmaps", UP, &name, &data).await;
        edge.merge_patch("v1", "configmaps", DOWN, &name, &data).await;
        edge.patch_status(GAUGES_V1, "gauges", DOWN, &name, &status).await;
    })
    .await;
    let passing = OBJECTS + round;
    create_all(edge, config_maps(UP, passing..passing + 1, 1 << 10)).await;
    edge.delete("v1", "configmaps", UP, &name(passing - 1)).await;
}
