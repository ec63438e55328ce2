//! `run --dry-run`.

use serde_json::json;

use crate::bench::{mark, only_dry_runs_since, versions};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, all_of, select, stage, stock};
use crate::support::story::{SOON, arrives, edit, stays_absent};

/// Lines about what would be done to an object.
fn lines(log: &str, object: &str) -> usize {
    let about = |line: &&str| line.contains("reason=WouldChange") && line.ends_with(&format!("object={object}"));
    log.lines().filter(about).count()
}

#[tokio::test]
async fn it_is_the_loop_of_run_with_a_line_for_each_action_and_changes_nothing() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &["same", "changed", "deleted"], &json!({"apple": "1"})).await;
    select(hub, &all_of(shop, &[("", "configmaps")])).await;
    let mut syncer = pair.syncer(&[]);
    for name in ["same", "changed", "deleted"] {
        arrives(edge, "v1", "configmaps", shop, name).await;
    }
    syncer.wait_for_log("reason=InSync", SOON).await;
    syncer.terminate().await;
    edit(hub, shop, "changed", &json!({"data": {"apple": "2"}})).await;
    hub.delete("v1", "configmaps", shop, "deleted").await;
    hub.create(&config_map(shop, "created", json!({"a": "1"}))).await;

    let (before, since) = (versions(&stage).await, mark(&stage));
    let mut syncer = pair.syncer(&[
        "--dry-run",
        "--leader-elect",
        "--heartbeat-interval=1s",
        "--mode=poll",
        "--edge-mode=poll",
        "--poll-interval=1s",
    ]);
    syncer.wait_for_log("reason=DryRunComplete", SOON).await;
    let named = |name: &str| format!("ConfigMap/{shop}/{name}");
    let log = syncer.log();
    assert!(log.contains("reason=DryRun "), "{log}");
    for (name, words) in [
        ("changed", "would be updated"),
        ("deleted", "would be deleted"),
        ("created", "would be created"),
    ] {
        let line = log
            .lines()
            .find(|line| line.ends_with(&format!("object={}", named(name))));
        assert!(
            line.is_some_and(|line| line.contains(words) && line.contains("side=edge")),
            "{name}: {log}"
        );
    }
    assert_eq!(versions(&stage).await, before, "nothing has changed at either side");

    // What is changed later has one line more, and what is as it was has none.
    edit(hub, shop, "created", &json!({"data": {"a": "2"}})).await;
    hub.create(&config_map(shop, "later", json!({"a": "1"}))).await;
    syncer.wait_for_log(&named("later"), SOON).await;
    hub.create(&namespace(&pair.namespace("other"))).await;
    stays_absent(edge, "v1", "configmaps", shop, "created").await;
    let log = syncer.log();
    let counts = ["same", "changed", "deleted", "created", "later"].map(|name| lines(&log, &named(name)));
    assert_eq!(counts, [0, 1, 1, 2, 1], "{log}");
    syncer.terminate().await;
    let tried = only_dry_runs_since(&stage, since);
    assert!(tried >= 3, "each change was tried: {tried} dry runs");
}
