//! What servers compress is read on each architecture.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::{LARGE, end};
use crate::link::Link;
use crate::support::KubeconfigParts;
use crate::support::dist;
use crate::support::objects::config_map;
use crate::support::stage::{Stage, config_maps, select, stage, stock};
use crate::support::story::copy_equals;

/// Lists and objects come compressed, in place of the streams of events that a watch begins with.
const POLL: [&str; 2] = ["--mode=poll", "--poll-interval=1s"];

#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn each_reads_what_the_hub_has_compressed() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let large = "some words and 12345 numbers; ".repeat(LARGE / 30);
    let names: Vec<String> = dist::archs().into_iter().map(|arch| arch.name).collect();
    stock(&hub, &shop, &["first"], &json!({})).await;
    let names_of_all: Vec<&str> = names.iter().map(String::as_str).collect();
    select(&hub, &config_maps(&shop, &names_of_all)).await;
    let link = Link::open(pair.hub.url(), &Arc::new(Notify::new())).await;
    let parts = KubeconfigParts::with(|parts| parts.server = Some(link.url()));
    let (from, to) = (pair.hub.write_kubeconfig("linked", &parts), pair.edge.kubeconfig());
    for arch in dist::archs() {
        let before = link.traffic();
        let data = json!({"text": large, "by": arch.name});
        hub.create(&config_map(&shop, &arch.name, data.clone())).await;
        let mut syncer = arch.start(&from, &to, &POLL);
        copy_equals(&edge, &shop, &arch.name, &data).await;
        end(&mut syncer).await;
        let received = link.traffic().since(before).received;
        assert!(
            received * 5 < large.len() as u64,
            "{}: {received} of {} bytes",
            arch.name,
            large.len()
        );
    }
}
