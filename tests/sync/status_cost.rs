//! What status return costs the hub, and what it does when it is refused or interrupted.

use crate::support::crashes::Crashes;
use crate::support::edge_watch::EdgeWatch;
use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{config_map, namespace, path};
use crate::support::rbac::{allow, configs, disallow, heartbeats, limited};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::statuses::{
    deployed, deployment, returns, scale, select_deployments, set_status, status_writes, web,
};
use crate::support::story::{SOON, arrives, becomes, copy_equals, crd, custom_object, drop_crds, install_crd};
use crate::support::{Syncer, eventually};
use serde_json::{Value, json};
use tokio::time::Instant;

in_both_modes!(
    a_forbidden_status_is_reported_blocks_nothing_and_arrives_when_granted,
    an_equal_status_is_not_written_not_even_after_a_restart,
    a_hundred_changes_in_a_moment_cost_few_writes_and_the_last_one_arrives,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    kill_9_at_any_moment_loses_no_status,
);

async fn a_forbidden_status_is_reported_blocks_nothing_and_arrives_when_granted(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    hub.create(&deployment(&shop, "web:1")).await;
    hub.create(&config_map(&shop, "beside", json!({"v": "1"}))).await;
    select(&hub, &all_of(&shop, &[("apps", "deployments"), ("", "configmaps")])).await;
    allow(
        &hub,
        &shop,
        json!([
            configs(&["get", "list", "watch"]),
            heartbeats(),
            {"apiGroups": ["", "apps"], "resources": ["namespaces", "configmaps", "deployments"], "verbs": ["get", "list", "watch"]},
        ]),
    )
    .await;
    let mut syncer = Syncer::start(&limited(&pair.hub), &pair.edge.kubeconfig(), flags);
    arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    let at = web(&shop);
    set_status(&edge, at, true, &json!({"replicas": 1})).await;
    syncer
        .wait_for_log("deployments.apps \\\"web\\\" is forbidden", SOON)
        .await;
    syncer
        .wait_for_log("cannot patch resource \\\"deployments/status\\\"", SOON)
        .await;
    hub.replace(&config_map(&shop, "beside", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "beside", &json!({"v": "2"})).await;
    scale(&hub, &edge, &shop).await;
    let status = format!("{shop}-status");
    allow(
        &hub,
        &status,
        json!([{"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["patch"]}]),
    )
    .await;
    returns(&hub, at, &json!({"replicas": 1})).await;
    let log = syncer.log();
    // A server that knows the binding and not yet the role says so, which is another reason.
    let refused =
        |line: &&str| line.contains("cannot patch resource \\\"deployments/status\\\"") && !line.contains("not found");
    assert_eq!(log.lines().filter(refused).count(), 1, "{log}");
    syncer.terminate().await;
    disallow(&hub, &status).await;
    disallow(&hub, &shop).await;
}

async fn an_equal_status_is_not_written_not_even_after_a_restart(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    for name in ["a", "b"] {
        hub.create(&custom_object(&group, "gauges", &shop, name, 1)).await;
    }
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let mut syncer = pair.syncer(flags);
    let [a, b] = ["a", "b"].map(|name| [version.as_str(), "gauges", &*shop, name]);
    for at in [a, b] {
        arrives(&edge, &version, "gauges", &shop, at[3]).await;
        set_status(&edge, at, true, &json!({"x": 1, "y": [1, 2]})).await;
        returns(&hub, at, &json!({"x": 1, "y": [1, 2]})).await;
    }
    let mark = pair.hub.audit_mark();
    // Neither the syncer's own write nor another change of the object makes it write the status again.
    let edit = json!({"spec": {"size": 2}, "metadata": {"labels": {"l": "1"}}});
    hub.merge_patch(&version, "gauges", &shop, "a", &edit).await;
    becomes(&edge, a, "has size 2", |copy| copy["spec"]["size"] == json!(2)).await;
    edge.merge_patch(
        &version,
        "gauges",
        &shop,
        "a",
        &json!({"metadata": {"labels": {"edge": "1"}}}),
    )
    .await;
    syncer.terminate().await;
    let _syncer = pair.syncer(flags);
    // What differs later does go up, and is the proof that the others were read.
    set_status(&edge, b, true, &json!({"x": 2})).await;
    returns(&hub, b, &json!({"x": 2})).await;
    eventually("its write is in the audit log", SOON, async || {
        match status_writes(&pair, mark, "/gauges/b").len() {
            0 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(status_writes(&pair, mark, "/gauges/b").len(), 1);
    assert_eq!(status_writes(&pair, mark, "/gauges/a"), []);
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn a_hundred_changes_in_a_moment_cost_few_writes_and_the_last_one_arrives(flags: Mode) {
    const CHANGES: u64 = 100;
    let (Stage { pair, shop, hub, edge }, _syncer) = deployed(flags).await;
    let at = web(&shop);
    let mark = pair.hub.audit_mark();
    let start = Instant::now();
    for change in 1..=CHANGES {
        let status = json!({"observedGeneration": change});
        edge.patch_status("apps/v1", "deployments", &shop, "web", &status).await;
    }
    returns(&hub, at, &json!({"observedGeneration": CHANGES})).await;
    // One at once, and one for each interval of a second that has passed.
    let most = start.elapsed().as_secs() + 1;
    let writes = eventually("the writes are in the audit log", SOON, async || {
        match status_writes(&pair, mark, "/deployments/web/status").len() {
            0 => Err("none"),
            count => Ok(count),
        }
    })
    .await;
    assert!(writes as u64 <= most, "{writes} writes instead of at most {most}");
}

async fn kill_9_at_any_moment_loses_no_status(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    for index in 0..10 {
        let mut object = deployment(&shop, "web:1");
        object["metadata"]["name"] = json!(format!("web{index}"));
        hub.create(&object).await;
    }
    select_deployments(&hub, &shop).await;
    {
        let _syncer = pair.syncer(flags);
        for index in 0..10 {
            arrives(&edge, "apps/v1", "deployments", &shop, &format!("web{index}")).await;
        }
    }
    let mut crashes = Crashes::of(10);
    let mut last = json!({});
    while let Some(round) = crashes.begin() {
        last = json!({"observedGeneration": round});
        for index in 0..10 {
            let at = ["apps/v1", "deployments", &shop, &format!("web{index}")];
            set_status(&edge, at, true, &last).await;
        }
        let is_done = |object: &Value| object["status"] == last;
        let path = path("apps/v1", "deployments", &shop, "");
        let watch = EdgeWatch::from_now(hub.client(), &path).await;
        let mut syncer = pair.syncer(flags);
        crashes.moment(watch, is_done).await;
        syncer.kill();
        let objects = hub.list("apps/v1", "deployments", &shop, "").await;
        crashes.saw(objects.iter().filter(|object| is_done(object)).count());
    }
    let _syncer = pair.syncer(flags);
    for index in 0..10 {
        let name = format!("web{index}");
        returns(&hub, ["apps/v1", "deployments", &shop, &name], &last).await;
    }
}
