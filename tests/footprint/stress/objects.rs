//! Many objects, or large ones: listed, changed, and listed again by the next syncer.

use serde_json::json;

use super::stage::{DOWN, Stage};
use crate::load::{config_maps, create_all, each, name};
use crate::table::bytes;

pub(super) async fn run(stage: &mut Stage, count: u32, size: usize) {
    let what = format!("{count} ConfigMaps of {}", bytes(size as u64));
    stage.progress(&format!("creating {what} at the hub"));
    create_all(&stage.hub, config_maps(DOWN, 0..count, size)).await;
    stage.progress("waiting for the copies");
    stage.select().await;
    stage.catch_up(&what).await;
    stage.progress("changing each of them");
    let hub = &stage.hub;
    each(0..count, async |index| {
        let change = json!({"data": {"changed": "yes"}});
        hub.merge_patch("v1", "configmaps", DOWN, &name(index), &change).await;
    })
    .await;
    stage.catch_up("each changed").await;
    stage.restart().await;
    stage.catch_up("restarted").await;
}
