//! What cannot be known is exit code 2, and what is known is shown.

use serde_json::json;

use crate::bench::{EACH_SECOND, comes_to, compared, nowhere, status, status_at};
use crate::support::objects::syncer_config;
use crate::support::rbac::{allow, disallow, limited};
use crate::support::stage::{Stage, config_maps, select, select_by_kind, stage, stock};
use crate::support::story::SOON;
use crate::support::{Printed, eventually};

/// One line of this program.
fn is_one_line(found: &Printed, words: &str) {
    found.ends_with(2);
    assert_eq!(found.out, "", "{}", found.err);
    let lines: Vec<&str> = found.err.lines().collect();
    assert!(
        matches!(&lines[..], [line] if line.starts_with("edge-syncer: ") && line.contains(words)),
        "{words:?}: {}",
        found.err
    );
}

#[tokio::test]
async fn an_edge_that_is_silent_for_too_long_cannot_be_judged() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a"], &json!({})).await;
    select(hub, &config_maps(shop, &["a"])).await;
    let mut syncer = pair.syncer(&[EACH_SECOND]);
    comes_to(&stage, 0, &[]).await;
    syncer.kill();
    let found = comes_to(&stage, 2, &["--stale-after=2s"]).await;
    assert_eq!(found.rows()[1][2], "stale");
    found.says("not heard of since 20");
    // The edge has what it had.
    compared(&stage, &["--stale-after=2s"])
        .await
        .ends_with(2)
        .says("configmaps  downsync  1         1         0    0     1");
    // For five minutes it may only be slow.
    status(&stage, &[]).await.ends_with(0);
    status(&stage, &["--sync-target-uid=another"])
        .await
        .ends_with(2)
        .says("nothing says that the syncer of another follows it");
}

#[tokio::test]
async fn a_config_that_no_syncer_follows_cannot_be_judged() {
    let stage = stage().await;
    let Stage { shop, hub, .. } = &stage;
    let none = status(&stage, &[]).await;
    none.ends_with(0);
    assert_eq!(
        (&*none.out, &*none.err),
        ("", "edge-syncer: the hub has no config: nothing is selected\n")
    );
    stock(hub, shop, &["a"], &json!({})).await;
    select(hub, &config_maps(shop, &["a"])).await;
    status(&stage, &[])
        .await
        .ends_with(2)
        .says("SyncerConfig/the-one: no syncer has followed it yet");
    let found = compared(&stage, &[]).await;
    found.ends_with(2);
    assert!(found.err.contains("--sync-target-uid is missing"), "{}", found.err);
    compared(&stage, &["--sync-target-uid=site-7"])
        .await
        .ends_with(2)
        .says(&format!("ConfigMap/{shop}/a at the edge: missing"));
}

#[tokio::test]
async fn a_hub_that_is_away_is_one_line_and_the_copies_are_counted() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a", "b"], &json!({})).await;
    select(hub, &config_maps(shop, &["a", "b"])).await;
    let mut syncer = pair.syncer(&[]);
    comes_to(&stage, 0, &[]).await;
    syncer.terminate().await;
    let away = nowhere(&pair.hub);
    is_one_line(&status_at(&away, &[]).await, "https://127.0.0.1:1");
    let edge = format!("--to-kubeconfig={}", pair.edge.kubeconfig().display());
    let found = status_at(&away, &[&edge, "--sync-target-uid=test"]).await;
    found
        .ends_with(2)
        .says("configmaps  downsync  0         0         0    0     2");
    assert!(found.err.contains("https://127.0.0.1:1"), "{}", found.err);
    let found = status_at(&away, &[&edge, "--sync-target-uid=test", "-o", "json"]).await;
    assert_eq!(found.ends_with(2).json()["verdict"], "Unknown");
    // And the other way round.
    let edge = format!("--to-kubeconfig={}", nowhere(&pair.edge).display());
    let found = status(&stage, &[&edge]).await;
    found.ends_with(2).says("SyncerConfig/the-one");
    assert!(found.err.contains("https://127.0.0.1:1"), "{}", found.err);
}

#[tokio::test]
async fn what_one_may_read_is_shown_and_what_not_is_said() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &["a"], &json!({})).await;
    select(hub, &config_maps(shop, &["a"])).await;
    select_by_kind(hub, &json!({"downSyncedResources": []})).await;
    let _syncer = pair.syncer(&[]);
    comes_to(&stage, 0, &[]).await;
    let role = format!("half-{shop}");
    let rules = json!([{"apiGroups": ["edge.kubestellar.io"], "resources": ["syncerconfigs"], "verbs": ["list"]}]);
    allow(hub, &role, rules).await;
    let found = eventually("the role is known", SOON, async || {
        let found = status_at(&limited(&pair.hub), &[]).await;
        if found.out.contains("SyncerConfig/the-one") {
            Ok(found)
        } else {
            Err(found.out + &found.err)
        }
    })
    .await;
    found.ends_with(2);
    assert!(!found.out.contains("EdgeSyncConfig"), "{}", found.out);
    assert!(found.err.contains("the edgesyncconfigs of the hub: "), "{}", found.err);
    assert_eq!(found.err.lines().count(), 1, "{}", found.err);
    disallow(hub, &role).await;

    // One type that cannot be read at the edge.
    let role = format!("namespaces-{shop}");
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list"]}]);
    allow(edge, &role, rules).await;
    let limited = format!("--to-kubeconfig={}", limited(&pair.edge).display());
    let found = eventually("the role is known", SOON, async || {
        let found = status(&stage, &[&limited]).await;
        if found.out.contains("namespaces  downsync") {
            Ok(found)
        } else {
            Err(found.out + &found.err)
        }
    })
    .await;
    found.ends_with(2);
    assert!(found.err.contains("configmaps"), "{}", found.err);
    disallow(edge, &role).await;
}

#[tokio::test]
async fn what_is_wrong_with_the_command_line_is_one_line() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    hub.create(&syncer_config("prices", config_maps(shop, &["a"]))).await;
    for (flag, words) in [
        (
            "--object=nonsense",
            "must be Kind/namespace/name, such as ConfigMap/shop/prices",
        ),
        ("--output=yaml", "-o \"yaml\": must be wide or json"),
        ("--nonsense", "unknown flag --nonsense (see edge-syncer status --help)"),
        (
            "--stale-after=often",
            "must be a duration above 0s, such as 5m or 1h30m",
        ),
        (
            "--config=price",
            "--config \"price\": the hub has no such config, did you mean prices?",
        ),
        (
            "--to-kubeconfig=/nonexistent --sync-target-uid=a --config=no",
            "the hub has no such config",
        ),
    ] {
        let flags: Vec<&str> = flag.split(' ').collect();
        is_one_line(&status(&stage, &flags).await, words);
    }
    // The edge has no configs.
    is_one_line(
        &status_at(&pair.edge.kubeconfig(), &[]).await,
        "it serves neither syncerconfigs nor edgesyncconfigs",
    );
    let missing = std::path::Path::new("/nonexistent");
    is_one_line(&status_at(missing, &[]).await, "/nonexistent");
}
