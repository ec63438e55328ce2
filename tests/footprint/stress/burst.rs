//! Changes as fast as the servers take them.

use std::cell::Cell;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::stage::{DOWN, Stage};
use crate::load::{config_maps, create_all, each, name};
use crate::table::seconds;

const OBJECTS: u32 = 500;
const CHANGES: u32 = 100_000;
/// A slow machine makes fewer changes.
const LONGEST: Duration = Duration::from_secs(240);

pub(super) async fn run(stage: &mut Stage) {
    create_all(&stage.hub, config_maps(DOWN, 0..OBJECTS, 1 << 10)).await;
    stage.select().await;
    stage.catch_up(&format!("{OBJECTS} ConfigMaps")).await;
    stage.progress(&format!("changing them {CHANGES} times in all"));
    let (hub, made, start) = (&stage.hub, Cell::new(0), Instant::now());
    each(0..CHANGES, async |change| {
        if start.elapsed() > LONGEST {
            return;
        }
        let patch = json!({"data": {"change": change.to_string()}});
        hub.merge_patch("v1", "configmaps", DOWN, &name(change % OBJECTS), &patch)
            .await;
        made.set(made.get() + 1);
        if made.get() % 10_000 == 0 {
            stage.progress(&format!("{} changes after {}", made.get(), seconds(start.elapsed())));
        }
    })
    .await;
    let what = format!("{} changes in {}", made.get(), seconds(start.elapsed()));
    stage.catch_up(&what).await;
    let writes = stage
        .pair
        .edge
        .requests("edge-syncer/")
        .iter()
        .filter(|one| one.is_write())
        .count();
    stage.note(&format!("{writes} writes at the edge since the start"));
}
