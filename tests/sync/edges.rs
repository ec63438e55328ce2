//! What people at the hub see of each edge: the object that stands for it, and the page that kubectl prints of all.

use std::time::Duration;

use serde_json::{Value, json};

use crate::metrics::{ANYWHERE, address_of, get, refuse_config_maps};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::config_map;
use crate::support::rbac::{allow, configs, disallow, limited};
use crate::support::stage::{CONFIG_API, Stage, config_maps, select, stage, stock};
use crate::support::story::{SOON, arrives, becomes, copy_equals, redefine};
use crate::support::tables::{OF_EDGES, printed};
use crate::support::{Objects, Pair, PairOptions, Syncer, eventually};

in_both_modes!(
    the_page_of_edges_says_of_each_how_it_is,
    an_edge_that_is_killed_is_not_kept_fresh_by_another_of_its_configs,
    a_hub_without_the_type_has_all_else,
    an_edge_that_may_not_be_written_has_one_line_and_all_else_goes_on,
);

const EACH_SECOND: &str = "--heartbeat-interval=1s";
const ONE: [&str; 4] = [CONFIG_API, "syncerconfigs", "", "the-one"];

fn condition(edge: &Value, of: &str) -> Value {
    let conditions = edge["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == of);
    found.unwrap_or_default()
}

fn heartbeat(edge: &Value) -> &str {
    edge["status"]["lastHeartbeatTime"].as_str().unwrap_or_default()
}

/// Waits until an edge has another heartbeat than this one.
async fn beats(hub: &Objects, edge: &str, last: &str) -> Value {
    becomes(hub, [CONFIG_API, "edges", "", edge], "has another heartbeat", |edge| {
        !heartbeat(edge).is_empty() && heartbeat(edge) != last
    })
    .await
}

async fn the_page_of_edges_says_of_each_how_it_is(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({"k": "v"})).await;
    select(&hub, &config_maps(&shop, &["a", "b", "c"])).await;
    let target = format!("--sync-target-uid={shop}-uid");
    let named = format!("--sync-target-name={shop}");
    let flags = [flags, &[&*target, &*named, EACH_SECOND]].concat();
    let mut syncer = pair.syncer(&flags);
    let of_it = format!("edge.kubestellar.io/sync-target-name={shop}");
    let name = eventually("it has made its object", SOON, async || {
        let all = hub.list(CONFIG_API, "edges", "", &of_it).await;
        let name = all.first().and_then(|one| one["metadata"]["name"].as_str());
        name.map(str::to_owned).ok_or("not yet")
    })
    .await;
    assert!(name.starts_with(&format!("{shop}-")), "{name}");
    let at = [CONFIG_API, "edges", "", &*name];
    let ready = |edge: &Value| condition(edge, "Ready")["status"] == "True" && edge["status"]["synced"] == "2/2";
    let before = becomes(&hub, at, "is ready", ready).await;
    for (of, status, reason) in [
        ("Ready", "True", "AllSynced"),
        ("CredentialsValid", "True", "Valid"),
        ("ClockSynced", "True", "Agrees"),
        ("DeletesHeld", "False", "NothingHeld"),
    ] {
        let found = condition(&before, of);
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!(status), &json!(reason)),
            "{of}"
        );
        assert_eq!(found["observedGeneration"], before["metadata"]["generation"], "{of}");
    }
    let version = before["status"]["syncer"]["version"]
        .as_str()
        .expect("it says its version")
        .to_owned();
    assert_eq!(before["status"]["syncer"]["heartbeatIntervalSeconds"], 1);
    assert!(
        before["status"]["syncer"]["holder"]
            .as_str()
            .is_some_and(|holder| !holder.is_empty())
    );
    let counts = json!({"selected": 2, "synced": 2, "pending": 0, "failing": 0, "conflicts": 0, "held": 0});
    assert_eq!(before["status"]["counts"], counts);
    let lines = printed(&pair.hub, &["get", "edges", "-l", &of_it]).remove(0);
    assert_eq!(lines[0], OF_EDGES);
    assert_eq!(lines[1][..5], [&*name, "True", "2/2", "0", "0"]);
    assert_eq!(lines[1][6], version);
    let wide = printed(&pair.hub, &["get", "edges", &name, "-o", "wide"]).remove(0);
    let versions = ["hub", "edge"].map(|side| before["status"]["syncer"]["kubernetesVersions"][side].clone());
    assert!(
        versions
            .iter()
            .all(|version| version.as_str().is_some_and(|it| it.starts_with("v1."))),
        "{versions:?}"
    );
    assert_eq!(json!(wide[1][7..9]), json!(versions));
    assert_eq!(wide[1][9..].join(" "), "2 of 2 objects are synced");

    // The edge refuses the third.
    refuse_config_maps(&edge, &shop).await;
    hub.create(&config_map(&shop, "c", json!({}))).await;
    becomes(&hub, at, "says that one does not work", |edge| {
        edge["status"]["failing"] == 1
    })
    .await;
    let lines = printed(&pair.hub, &["get", "edges", &name]).remove(0);
    assert_eq!(lines[1][..5], [&*name, "False", "2/3", "1", "0"]);

    // After a restart it is the same object, and what has not changed has its time.
    let ready_since = |edge: &Value, of: &str| condition(edge, of)["lastTransitionTime"].clone();
    syncer.terminate().await;
    edge.delete("v1", "resourcequotas", &shop, "none").await;
    let _again = pair.syncer(&flags);
    let after = becomes(&hub, at, "is ready again", |edge| {
        condition(edge, "Ready")["status"] == "True" && edge["status"]["synced"] == "3/3"
    })
    .await;
    assert_eq!(ready_since(&after, "DeletesHeld"), ready_since(&before, "DeletesHeld"));
    // One that was deleted is made again.
    hub.delete(CONFIG_API, "edges", "", &name).await;
    becomes(&hub, at, "is there again", |edge| edge["status"]["synced"] == "3/3").await;
}

async fn an_edge_that_is_killed_is_not_kept_fresh_by_another_of_its_configs(flags: Mode) {
    let Stage { pair, shop, hub, .. } = stage().await;
    select(&hub, &json!({})).await;
    let start = |uid: &str| {
        let target = format!("--sync-target-uid={uid}");
        pair.syncer(&[flags, &[&*target, EACH_SECOND]].concat())
    };
    let names = ["a", "b"].map(|which| format!("{shop}-{which}"));
    let (_one, mut two) = (start(&names[0]), start(&names[1]));
    for name in &names {
        beats(&hub, name, "").await;
    }
    two.kill();
    let killed = hub.get(CONFIG_API, "edges", "", &names[1]).await.expect("it is there");
    let mut other = hub.get(CONFIG_API, "edges", "", &names[0]).await.expect("it is there");
    for _ in 0..3 {
        other = beats(&hub, &names[0], heartbeat(&other)).await;
    }
    let after = hub.get(CONFIG_API, "edges", "", &names[1]).await.expect("it is there");
    let [killed, after, other] = [&killed, &after, &other].map(heartbeat);
    // One may have been on its way when it was killed.
    assert!(killed <= after && after < other, "{killed} {after} {other}");
}

async fn a_hub_without_the_type_has_all_else(flags: Mode) {
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge, shop) = (pair.hub.objects(), pair.edge.objects(), "shop");
    let definitions = "apiextensions.k8s.io/v1";
    let of_edges = "edges.edge.kubestellar.io";
    hub.delete(definitions, "customresourcedefinitions", "", of_edges).await;
    stock(&hub, shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(shop, &["*"])).await;
    // Also one that may not write what is not there.
    let rules = json!([
        configs(&["get", "list", "watch"]),
        {"apiGroups": ["edge.kubestellar.io"], "resources": ["syncerconfigs/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list", "watch"]},
    ]);
    allow(&hub, "without", rules).await;
    for kubeconfig in [pair.hub.kubeconfig(), limited(&pair.hub)] {
        let mut syncer = Syncer::start(&kubeconfig, &pair.edge.kubeconfig(), &[flags, &[EACH_SECOND]].concat());
        let is_whole = |config: &Value| config["status"]["synced"] == "1/1";
        let before = becomes(&hub, ONE, "is synced", is_whole).await;
        arrives(&edge, "v1", "configmaps", shop, "a").await;
        becomes(&hub, ONE, "has another heartbeat", |config| {
            config["status"]["lastSyncerHeartbeatTime"] != before["status"]["lastSyncerHeartbeatTime"]
        })
        .await;
        let log = syncer.log();
        assert!(!log.contains("EdgeNotWritten"), "{log}");
        syncer.terminate().await;
    }
}

async fn an_edge_that_may_not_be_written_has_one_line_and_all_else_goes_on(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let rules = json!([
        configs(&["get", "list", "watch"]),
        {"apiGroups": ["edge.kubestellar.io"], "resources": ["syncerconfigs/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list", "watch"]},
    ]);
    allow(&hub, &shop, rules).await;
    let target = format!("--sync-target-uid={shop}");
    let flags = [flags, &[&*target, EACH_SECOND]].concat();
    let mut syncer = Syncer::start(&limited(&pair.hub), &pair.edge.kubeconfig(), &flags);
    let line = format!(
        "WARN reason=EdgeNotWritten msg=\"the object that stands for this edge at the hub cannot be written\" side=hub object=Edge//{shop}"
    );
    syncer.wait_for_log(&line, SOON).await;
    syncer.wait_for_log("edge-syncer gen rbac prints", SOON).await;
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "2"})).await;
    // It does not count as what fails of a config.
    becomes(&hub, ONE, "is synced", |config| {
        config["status"]["synced"] == "1/1" && config["status"]["failing"] == 0
    })
    .await;
    assert_eq!(
        syncer.log().matches("reason=EdgeNotWritten").count(),
        1,
        "{}",
        syncer.log()
    );
    assert_eq!(hub.get(CONFIG_API, "edges", "", &shop).await, None);
    let of_edges = format!("{shop}-edges");
    let rules = json!([
        {"apiGroups": ["edge.kubestellar.io"], "resources": ["edges", "edges/status"], "resourceNames": [shop],
            "verbs": ["create", "patch"]},
    ]);
    allow(&hub, &of_edges, rules).await;
    becomes(&hub, [CONFIG_API, "edges", "", &shop], "is there", |edge| {
        edge["status"]["synced"] == "1/1"
    })
    .await;
    syncer.terminate().await;
    disallow(&hub, &of_edges).await;
    disallow(&hub, &shop).await;
}

// A schema of another version, in which a field is missing: it is as if the hub had no such type, but for one line.
#[tokio::test]
async fn an_edge_whose_fields_the_hub_lacks_has_one_line_and_the_heartbeat() {
    let pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    let counts = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/counts";
    let without = json!([{"op": "remove", "path": counts}]);
    redefine(&hub, "edges.edge.kubestellar.io", &without).await;
    select(&hub, &json!({})).await;
    let mut syncer = pair.syncer(&[EACH_SECOND]);
    syncer.wait_for_log("reason=EdgeNotWritten", SOON).await;
    syncer
        .wait_for_log("apply the same version of its CRD there", SOON)
        .await;
    let edge = hub.get(CONFIG_API, "edges", "", "test").await.expect("it was made");
    assert_eq!(edge["status"]["synced"], Value::Null);
}

/// Bytes on both links, and heartbeats, as the metrics have them.
async fn figures(syncer: &mut Syncer) -> [f64; 2] {
    let address = address_of(syncer).await;
    let (_, page) = get(address, "/metrics").await;
    let sum = |begin: &str| -> f64 {
        let lines = page.lines().filter(|line| line.starts_with(begin));
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        values.sum()
    };
    [
        sum("edge_syncer_link_bytes_total{side=\"hub\""),
        sum("edge_syncer_writes_total{side=\"hub\",result=\"heartbeat\"}"),
    ]
}

#[tokio::test]
async fn a_heartbeat_has_fifteen_hundred_bytes_at_most_and_an_interval_no_more_than_without_it() {
    let Stage { pair, shop, hub, .. } = stage().await;
    let target = format!("--sync-target-uid={shop}-1c2d3e4f5a6b");
    let named = format!("--sync-target-name={shop}");
    let mut syncer = pair.syncer(&[&*target, &*named, EACH_SECOND, ANYWHERE]);
    let of_it = format!("edge.kubestellar.io/sync-target-name={shop}");
    eventually("it says how it is", SOON, async || {
        let all = hub.list(CONFIG_API, "edges", "", &of_it).await;
        let says = all.first().is_some_and(|edge| edge["status"]["synced"] == "0/0");
        if says { Ok(()) } else { Err("not yet") }
    })
    .await;
    let each = each_heartbeat(&mut syncer).await;
    crate::support::process::complain(&format!("a heartbeat on the edge: {each:.0} bytes"));
    assert!(each <= 1500.0, "{each}");
    // With a config, five are written in four intervals: four on the edge, one on the config, which the watch then reports.
    select(&hub, &json!({})).await;
    becomes(&hub, ONE, "says that nothing is selected", |config| {
        config["status"]["synced"] == "0/0"
    })
    .await;
    let interval = each_heartbeat(&mut syncer).await * 1.25;
    let on_config = 4.0 * (interval - each);
    crate::support::process::complain(&format!(
        "an interval: {interval:.0} bytes, of which a heartbeat on the config has {on_config:.0}, one of four"
    ));
    // The whole config is in what is sent, in the answer, and in what the watch reports.
    assert!(on_config <= 6000.0, "{on_config}");
    assert!(interval <= 3300.0, "{interval}: more than when only configs had them");
}

/// How many bytes a heartbeat has on average, once nothing else is sent any more.
async fn each_heartbeat(syncer: &mut Syncer) -> f64 {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = figures(syncer).await;
    let after = eventually("twenty more heartbeats", SOON, async || {
        let now = figures(syncer).await;
        if now[1] >= before[1] + 20.0 {
            Ok(now)
        } else {
            Err(now[1])
        }
    })
    .await;
    (after[0] - before[0]) / (after[1] - before[1])
}
