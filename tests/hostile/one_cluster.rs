//! Two kubeconfigs that lead to one cluster.

use std::path::PathBuf;

use serde_json::json;

use crate::bench::says;
use crate::support::objects::config_map;
use crate::support::stage::{Stage, all_of, select, stage, stock};
use crate::support::story::{SOON, arrives, copy_equals};
use crate::support::{AuditEvent, SYNCER, Server, Syncer, eventually, install_crds};

/// A kubeconfig for the hub that can be replaced.
fn replaceable(of: &Server, at: &Server) -> PathBuf {
    let file = at.folder().join("replaceable.kubeconfig");
    std::fs::copy(of.kubeconfig(), &file).expect("the folder is ours");
    file
}

#[tokio::test]
async fn hub_and_edge_that_are_one_cluster_are_refused_before_anything_is_written() {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    // As by another name and another user of the same server.
    let (from, to) = (pair.hub.kubeconfig(), replaceable(&pair.hub, &pair.hub));
    for flags in [&["--heartbeat-interval=1s"][..], &["--mode=poll", "--edge-mode=poll"]] {
        let mark = pair.hub.audit_mark();
        let mut syncer = Syncer::start(&from, &to, flags);
        let status = syncer.wait(SOON).await;
        let log = syncer.log();
        assert_eq!(status.code(), Some(2), "{log}");
        let last = log.lines().last().unwrap_or_default();
        let url = pair.hub.url();
        assert!(
            last.contains(&format!("hub {url} and edge {url} are the same cluster")),
            "{log}"
        );
        let writes: Vec<_> = pair
            .hub
            .requests_since(SYNCER, mark)
            .into_iter()
            .filter(AuditEvent::is_write)
            .collect();
        assert!(writes.is_empty(), "{writes:#?}");
    }
}

#[tokio::test]
async fn nothing_is_written_when_a_replaced_kubeconfig_makes_hub_and_edge_one_cluster() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    // With them, its watches are all in order while it is taken for the hub: nothing else is asked.
    install_crds(&edge).await;
    let file = replaceable(&pair.hub, &pair.edge);
    let mut syncer = Syncer::start(&file, &pair.edge.kubeconfig(), &["--heartbeat-interval=1s"]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let theirs = edge.create(&config_map(&shop, "theirs", json!({}))).await;
    let replaced = pair.edge.audit_mark();
    std::fs::copy(pair.edge.kubeconfig(), &file).expect("it is ours");
    says(
        &mut syncer,
        &["nothing is synced", "are the same cluster", pair.edge.url()],
    )
    .await;
    // Only now: the record of what was done before the change is written a few seconds after it.
    let held = pair.edge.audit_mark();
    edge.create(&config_map(&shop, "later", json!({}))).await;
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    eventually("the edge is read as a hub", SOON, async || {
        let reads = pair.edge.requests_since(SYNCER, replaced).into_iter();
        match reads.filter(|one| one.uri.contains("syncerconfigs")).count() {
            0 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let writes = pair.edge.requests_since(SYNCER, held).into_iter();
    let writes: Vec<_> = writes.filter(AuditEvent::is_write).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    std::fs::copy(pair.hub.kubeconfig(), &file).expect("it is ours");
    says(&mut syncer, &["two clusters again"]).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "2"})).await;
    let now = edge
        .get("v1", "configmaps", &shop, "theirs")
        .await
        .expect("it is there");
    assert_eq!(
        now["metadata"]["resourceVersion"],
        theirs["metadata"]["resourceVersion"]
    );
}
