//! Many objects that the edge refuses, each with 20 kB of reasons: a reason is logged and not kept.

use serde_json::{Value, json};

use super::stage::{DOWN, Stage};
use crate::load::{GROUP, create_all, name};
use crate::support::objects::syncer_config;
use crate::support::story::{crd, install_crd};

const COUNT: u32 = 1500;
const SIZE: usize = 20_000;

pub(super) async fn run(stage: &mut Stage) {
    stage.progress("making a type of which the edge takes no long texts");
    let free = crd(GROUP, "notes", true);
    let mut strict = free.clone();
    let text = json!({"type": "string", "pattern": "^short$"});
    strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"spec": {"type": "object", "properties": {"text": text}}});
    install_crd(&[&stage.hub], &free).await;
    install_crd(&[&stage.edge], &strict).await;
    let note = |index| -> Value {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Note", "metadata": {"namespace": DOWN, "name": name(index)},
            "spec": {"text": "x".repeat(SIZE)}})
    };
    create_all(&stage.hub, (0..COUNT).map(note)).await;
    let resource = json!({"group": GROUP, "resource": "notes", "apiVersion": "v1"});
    let spec = json!({"namespaceScope": {"namespaces": [DOWN], "resources": [resource]}});
    stage.hub.create(&syncer_config("notes", spec)).await;
    stage.life.settle().await;
    stage.note(&format!("{COUNT} objects refused with {SIZE} bytes each"));
}
