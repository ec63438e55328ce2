//! Objects that come, change and go, under a new name each time, at both sides.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep_until};

use super::MINUTE;
use super::stage::{DOWN, Stage, UP};
use crate::load::{await_count, config_maps, create_all, each, name};
use crate::support::Objects;

/// So many that come and go would have their deletes held.
pub(super) const FLAGS: [&str; 1] = ["--hold-deletes-above=1000000000"];
/// Objects that stay, of each direction.
const STAY: u32 = 300;
/// Objects that come and go in a cycle, of each direction.
const PASS: u32 = 100;
/// How long a cycle takes at least. All deletes of the last minute are remembered, so that their number is to stay the same.
const CYCLE: Duration = Duration::from_secs(3);

pub(super) async fn run(stage: &mut Stage, minutes: u32) {
    create_all(&stage.hub, config_maps(DOWN, 0..STAY, 1 << 10)).await;
    create_all(&stage.edge, config_maps(UP, 0..STAY, 1 << 10)).await;
    stage.select().await;
    stage.catch_up(&format!("{STAY} ConfigMaps down, {STAY} up")).await;
    let (start, mut first, mut created) = (Instant::now(), STAY, Vec::new());
    for minute in 1..=minutes {
        while start.elapsed() < MINUTE * minute {
            let next = Instant::now() + CYCLE;
            tokio::join!(
                come_and_go(&stage.hub, &stage.edge, DOWN, first),
                come_and_go(&stage.edge, &stage.hub, UP, first),
            );
            first += PASS;
            sleep_until(next).await;
        }
        stage.life.settle().await;
        stage.note(&format!(
            "minute {minute}: {} objects came and went",
            2 * (first - STAY)
        ));
        created.push(stage.life.syncer.resident_kb());
    }
    let last = created[created.len() - 1];
    // The deletes of a minute are remembered, so that memory fills at first.
    stage.note_growth("minute 1", created[0], last);
    let half = created.len() / 2;
    stage.note_growth(&format!("minute {}", half + 1), created[half], last);
    stage.catch_up("in the end").await;
}

/// One cycle in one direction.
async fn come_and_go(from: &Objects, to: &Objects, space: &str, first: u32) {
    let names = first..first + PASS;
    create_all(from, config_maps(space, names.clone(), 1 << 10)).await;
    await_count(to, "v1", "configmaps", space, STAY + PASS).await;
    each(names.clone(), async |index| {
        let patch = json!({"data": {"changed": "yes"}});
        from.merge_patch("v1", "configmaps", space, &name(index), &patch).await;
    })
    .await;
    each(names, async |index| {
        from.delete("v1", "configmaps", space, &name(index)).await;
    })
    .await;
    await_count(to, "v1", "configmaps", space, STAY).await;
}
