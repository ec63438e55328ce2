//! How much memory 5,000 objects take.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::objects::{config_map, namespace};
use crate::support::stage::{config_maps, select};
use crate::support::{Pair, PairOptions, Printed, Syncer, in_parallel};

const COUNT: usize = 5000;

/// The highest resident memory of a process so far, in kB, while it runs.
fn peak_kb(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A copy as the syncer leaves it.
fn copy(origin: &Value) -> Value {
    let mut copy = origin.clone();
    let (name, uid) = (&origin["metadata"]["name"], &origin["metadata"]["uid"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    copy["metadata"] = json!({
        "namespace": "load", "name": name,
        "labels": {"edge.kubestellar.io/downsynced": "true"},
        "annotations": {
            "edge.kubestellar.io/downsynced": format!("ConfigMap/load/{}", text(name)),
            "edge.kubestellar.io/owner": format!("{}/configmaps/test", text(uid)),
        },
    });
    copy
}

#[tokio::test]
async fn five_thousand_objects_at_both_sides_take_less_than_20_mb() {
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for side in [&hub, &edge] {
        side.create(&namespace("load")).await;
    }
    let body = "x".repeat(4096);
    let creations = (0..COUNT).map(|index| {
        let (hub, edge, body) = (&hub, &edge, &body);
        async move {
            let name = format!("c{index:04}");
            let origin = hub.create(&config_map("load", &name, json!({"body": body}))).await;
            edge.create(&copy(&origin)).await;
        }
    });
    in_parallel(creations, 16).await;
    select(&hub, &config_maps("load", &["*"])).await;
    let mut process = Command::new(Syncer::program());
    process
        .arg("status")
        .arg(format!("--from-kubeconfig={}", pair.hub.kubeconfig().display()))
        .arg(format!("--to-kubeconfig={}", pair.edge.kubeconfig().display()))
        .args(["--sync-target-uid=test", "--qps=-1", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let process = process.spawn().expect("the binary can be started");
    let pid = process.id().expect("it runs");
    let watch = tokio::spawn(async move {
        let mut peak = 0;
        while let Some(found) = peak_kb(pid) {
            peak = found;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        peak
    });
    let found = Printed::of(&process.wait_with_output().await.expect("it ends"));
    let peak = watch.await.expect("it ends with the process");
    let json = found.json();
    let of_type = &json["edge"]["types"];
    let all = of_type.as_array().cloned().unwrap_or_default();
    let config_maps = all
        .iter()
        .find(|of| of["resource"] == "configmaps")
        .expect("they are compared");
    assert_eq!(
        (&config_maps["inPlace"], &config_maps["outOfPlace"]),
        (&json!(COUNT), &json!(0)),
        "{of_type:#} {}",
        found.err
    );
    assert!(
        found.err.contains("edge-syncer: 1000 objects read so far\n"),
        "{}",
        found.err
    );
    // The debug binary that cargo builds for the tests has several times the code in memory.
    let most = if std::env::var_os("EDGE_SYNCER_BIN").is_some() {
        20_000
    } else {
        40_000
    };
    assert!((1000..most).contains(&peak), "peak memory {peak} kB");
}
