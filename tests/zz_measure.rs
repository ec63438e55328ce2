//! Temporary.
mod support;
use serde_json::json;
use std::time::Duration;
use support::objects::{config_map, namespace, syncer_config};
use support::story::config_map_entry;
use support::{Pair, PairOptions, eventually};

fn bytes(pid: u32) -> (u64, u64) {
    let out = std::process::Command::new("ss").args(["-tinp"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let (mut sent, mut got) = (0, 0);
    for i in 0..lines.len() {
        if lines[i].contains(&format!("pid={pid},")) {
            let info = lines.get(i + 1).copied().unwrap_or("");
            for w in info.split_whitespace() {
                if let Some(v) = w.strip_prefix("bytes_sent:") {
                    sent += v.parse::<u64>().unwrap();
                }
                if let Some(v) = w.strip_prefix("bytes_received:") {
                    got += v.parse::<u64>().unwrap();
                }
            }
        }
    }
    (sent, got)
}

#[tokio::test]
async fn measure() {
    for count in [1000usize, 5000] {
        let pair = Pair::start(PairOptions::default()).await;
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        hub.create(&namespace("load")).await;
        let body = "x".repeat(4096);
        for i in 0..count {
            hub.create(&config_map("load", &format!("c{i:04}"), json!({"body": body})))
                .await;
        }
        hub.create(&syncer_config(
            "the-one",
            json!({"namespacedObjects": [config_map_entry("load", &["*"])]}),
        ))
        .await;
        for args in [&["--mode=poll", "--edge-mode=poll"][..], &["--mode=poll"][..]] {
            let start = [pair.hub.audit_mark(), pair.edge.audit_mark()];
            let t = tokio::time::Instant::now();
            let mut syncer = pair.syncer(args);
            eventually("written", Duration::from_secs(300), async || {
                let w = pair
                    .edge
                    .requests_since("edge-syncer/", start[1])
                    .iter()
                    .filter(|e| e.is_write())
                    .count();
                if w >= count + 1 { Ok(()) } else { Err(w) }
            })
            .await;
            let converged = t.elapsed();
            tokio::time::sleep(Duration::from_secs(35)).await;
            let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
            let before = bytes(syncer.pid());
            let cpu = |pid: u32| {
                std::fs::read_to_string(format!("/proc/{pid}/stat"))
                    .unwrap()
                    .rsplit(')')
                    .next()
                    .unwrap()
                    .split_whitespace()
                    .skip(11)
                    .take(2)
                    .map(|v| v.parse::<u64>().unwrap())
                    .sum::<u64>()
            };
            let c0 = cpu(syncer.pid());
            tokio::time::sleep(Duration::from_secs(60)).await;
            let after = bytes(syncer.pid());
            let c1 = cpu(syncer.pid());
            let h = pair.hub.requests_since("edge-syncer/", marks[0]);
            let e = pair.edge.requests_since("edge-syncer/", marks[1]);
            let gets = pair
                .edge
                .requests_since("edge-syncer/", start[1])
                .iter()
                .filter(|e| e.verb == "get")
                .count();
            let lists: Vec<_> = h.iter().chain(&e).filter(|e| e.verb != "list").collect();
            println!(
                "n={count} {args:?} converged={converged:?} hub={} edge={} nonlist={} sent={} got={} cpu_ticks={} rss={} peak={} edge_gets_total={gets}",
                h.len(),
                e.len(),
                lists.len(),
                after.0 - before.0,
                after.1 - before.1,
                c1 - c0,
                syncer.resident_kb(),
                syncer.peak_kb()
            );
            syncer.terminate().await;
        }
        let _ = edge;
    }
}
