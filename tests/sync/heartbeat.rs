//! The heartbeat on the configs, and hubs that have only one kind of configs.

use std::convert::Infallible;
use std::time::Duration;

use http::Method;

use crate::support::modes::{Mode, POLL, WATCH, in_both_modes, in_mode};
use crate::support::objects::{MERGE_PATCH, config_map, edge_sync_config, namespace, path, syncer_config};
use crate::support::rbac::{allow, configs, disallow, limited};
use crate::support::stage::{
    CONFIG_API, Stage, config_map_ref, config_maps, namespace_ref, select, select_by_kind, stage, stock,
};
use crate::support::story::{SOON, a_while, arrives, becomes, config_map_entry, copy_equals, gone, redefine, serve};
use crate::support::{
    AuditEvent, AuditMark, Objects, Pair, PairLease, PairOptions, SYNCER, Server, Syncer, comes_to_rest, eventually,
    holds_throughout, shared_pair,
};
use serde_json::{Value, json};

in_both_modes!(
    the_heartbeat_of_configs_of_both_kinds_advances_and_their_specs_stay_as_they_are,
    a_config_that_comes_later_gets_a_heartbeat_and_a_config_edit_is_not_lost,
    a_new_config_does_not_wait_for_the_next_heartbeat,
    the_heartbeat_ends_with_the_syncer,
    without_an_interval_there_is_no_heartbeat,
    a_forbidden_heartbeat_is_reported_once_and_blocks_nothing,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    a_heartbeat_causes_no_other_request,
);
in_mode!(
    poll_only,
    crate::support::modes::POLL,
    a_heartbeat_causes_at_most_one_read_of_its_config,
);

const EACH_SECOND: &str = "--heartbeat-interval=1s";

fn time_of(config: &Value) -> Option<String> {
    config["status"]["lastSyncerHeartbeatTime"].as_str().map(str::to_owned)
}

/// Waits until a config has another heartbeat than this one, and gives it.
async fn beats(hub: &Objects, plural: &str, name: &str, last: Option<&String>) -> String {
    let config = becomes(hub, [CONFIG_API, plural, "", name], "has a new heartbeat", |config| {
        let time = time_of(config);
        time.is_some() && time.as_ref() != last
    })
    .await;
    time_of(&config).expect("it was waited for")
}

/// Checks for a while that nobody writes the config `the-one`.
async fn stays_as(hub: &Objects, config: Option<&Value>, period: Duration) {
    holds_throughout("the config stays as it is", period, async || {
        if hub.get(CONFIG_API, "syncerconfigs", "", "the-one").await.as_ref() == config {
            Ok(())
        } else {
            Err("it was written")
        }
    })
    .await;
}

async fn the_heartbeat_of_configs_of_both_kinds_advances_and_their_specs_stay_as_they_are(flags: Mode) {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let plain = json!({"namespaceScope": {"namespaces": [], "resources": []}, "clusterScope": [
        {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": []},
    ]});
    let configs = [
        ("syncerconfigs", syncer_config("the-one", plain)),
        ("syncerconfigs", syncer_config("empty", json!({}))),
        ("edgesyncconfigs", edge_sync_config("site", json!({"conversions": []}))),
    ];
    let mut before = Vec::new();
    for (plural, config) in &configs {
        before.push((*plural, hub.create(config).await));
    }
    let _syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    for (plural, config) in &before {
        let name = config["metadata"]["name"].as_str().expect("it has a name");
        let mut last = None;
        for _ in 0..3 {
            let time = beats(&hub, plural, name, last.as_ref()).await;
            assert!(time.ends_with('Z') && time.len() >= 20, "{time}");
            assert!(last.is_none_or(|last| last < time), "it goes forward");
            last = Some(time);
        }
        let now = hub.get(CONFIG_API, plural, "", name).await.expect("it is there");
        assert_eq!(now["spec"], config["spec"]);
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            assert_eq!(now["metadata"][field], config["metadata"][field], "{field}");
        }
    }
}

async fn a_config_that_comes_later_gets_a_heartbeat_and_a_config_edit_is_not_lost(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let names: Vec<String> = (0..5).map(|index| format!("c{index}")).collect();
    for name in &names {
        hub.create(&config_map(&shop, name, json!({}))).await;
    }
    let _syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    select(&hub, &json!({})).await;
    let mut last = beats(&hub, "syncerconfigs", "the-one", None).await;
    let mut selected: Vec<&str> = Vec::new();
    for name in &names {
        selected.push(name);
        let spec = json!({"namespacedObjects": [config_map_entry(&shop, &selected)]});
        crate::support::story::reselect(&hub, &spec).await;
        arrives(&edge, "v1", "configmaps", &shop, name).await;
        last = beats(&hub, "syncerconfigs", "the-one", Some(&last)).await;
        let config = hub
            .get(CONFIG_API, "syncerconfigs", "", "the-one")
            .await
            .expect("it is there");
        assert_eq!(config["spec"], spec);
    }
}

async fn a_new_config_does_not_wait_for_the_next_heartbeat(flags: Mode) {
    let Stage { pair, hub, .. } = stage().await;
    select(&hub, &json!({})).await;
    let _syncer = pair.syncer(&[flags, &["--heartbeat-interval=1h"]].concat());
    beats(&hub, "syncerconfigs", "the-one", None).await;
    hub.create(&syncer_config("another", json!({}))).await;
    beats(&hub, "syncerconfigs", "another", None).await;
}

// "Stale by design when the syncer stops."
async fn the_heartbeat_ends_with_the_syncer(flags: Mode) {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    select(&hub, &json!({})).await;
    let mut syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    let first = beats(&hub, "syncerconfigs", "the-one", None).await;
    beats(&hub, "syncerconfigs", "the-one", Some(&first)).await;
    syncer.terminate().await;
    // The last one may have been on its way.
    comes_to_rest("nobody writes the config", Duration::from_secs(4), SOON, async || {
        hub.try_get(CONFIG_API, "syncerconfigs", "", "the-one").await
    })
    .await;
}

async fn without_an_interval_there_is_no_heartbeat(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let before = hub.get(CONFIG_API, "syncerconfigs", "", "the-one").await;
    let _syncer = pair.syncer(&[flags, &["--heartbeat-interval=0s"]].concat());
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    stays_as(&hub, before.as_ref(), a_while()).await;
}

async fn a_forbidden_heartbeat_is_reported_once_and_blocks_nothing(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let rules = json!([
        configs(&["get", "list", "watch"]),
        {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list", "watch"]},
    ]);
    allow(&hub, &shop, rules).await;
    let mark = pair.hub.audit_mark();
    let mut syncer = Syncer::start(
        &limited(&pair.hub),
        &pair.edge.kubeconfig(),
        &[flags, &[EACH_SECOND]].concat(),
    );
    let text = "reason=HeartbeatFailed msg=\"the heartbeat cannot be written\" side=hub object=SyncerConfig//the-one";
    syncer.wait_for_log(text, SOON).await;
    syncer
        .wait_for_log("cannot patch resource \\\"syncerconfigs/status\\\"", SOON)
        .await;
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "2"})).await;
    // It tries again, and says no more.
    eventually("it tries a third time", SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        match requests.iter().filter(|event| event.code == 403).count() {
            0..3 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(syncer.log().matches(text).count(), 1, "{}", syncer.log());
    syncer.terminate().await;
    disallow(&hub, &shop).await;
}

// No endless self-triggered work.
async fn a_heartbeat_causes_no_other_request(flags: Mode) {
    let (pair, _syncer) = beating_idle(flags, |event| !is_heartbeat(event)).await;
    let requests = five_more_heartbeats(&pair).await;
    let others: Vec<&AuditEvent> = requests.iter().filter(|event| !is_heartbeat(event)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

// The next look shows that a config has another version, which may hold an edit: it is read once more, if at all.
async fn a_heartbeat_causes_at_most_one_read_of_its_config(flags: Mode) {
    let (pair, _syncer) = beating_idle(flags, |event| !is_heartbeat(event) && !is_look(event) && !reads(event)).await;
    let requests = five_more_heartbeats(&pair).await;
    let others = |event: &&AuditEvent| !is_heartbeat(event) && !is_look(event) && !reads(event);
    let others: Vec<&AuditEvent> = requests.iter().filter(others).collect();
    assert!(others.is_empty(), "{others:#?}");
    for plural in ["/syncerconfigs/", "/edgesyncconfigs/"] {
        let of_one = |event: &&AuditEvent| event.uri.contains(plural);
        let (beats, reads): (Vec<_>, Vec<_>) = requests.iter().filter(of_one).partition(|event| is_heartbeat(event));
        // The first may be for a heartbeat from before.
        assert!(reads.len() <= beats.len() + 1, "{} reads: {reads:#?}", reads.len());
    }
}

fn is_heartbeat(event: &AuditEvent) -> bool {
    event.verb == "patch" && event.uri.contains("/edge.kubestellar.io/")
}

/// Whether it is what polling asks all the time.
fn is_look(event: &AuditEvent) -> bool {
    event.verb == "list"
}

/// Whether it reads one config.
fn reads(event: &AuditEvent) -> bool {
    event.verb == "get" && event.uri.contains("/edge.kubestellar.io/")
}

/// All requests of the syncer to both sides.
fn requests(pair: &Pair, marks: [AuditMark; 2]) -> Vec<AuditEvent> {
    let servers = [&pair.hub, &pair.edge].into_iter().zip(marks);
    servers
        .flat_map(|(server, mark): (&Server, AuditMark)| server.requests_since(SYNCER, mark))
        .collect()
}

/// A syncer that has a config of each kind, with something to go down and something to go up, and that has not sent what
/// `is_work` tells from the rest for a while.
async fn beating_idle(flags: Mode, is_work: impl Fn(&AuditEvent) -> bool) -> (PairLease, Syncer) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let spec = json!({"namespacedObjects": [config_map_entry(&shop, &["*"])],
        "upsync": [{"resources": ["secrets"], "namespaces": [shop], "names": ["*"]}]});
    select(&hub, &spec).await;
    select_by_kind(&hub, &json!({})).await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let rest = Duration::from_secs(3);
    comes_to_rest("it sends nothing but heartbeats", rest, SOON, async || {
        let requests = requests(&pair, marks);
        Ok::<_, Infallible>(requests.iter().filter(|event| is_work(event)).count())
    })
    .await;
    (pair, syncer)
}

/// Waits for five more heartbeats on the config of each kind, and gives all that was sent meanwhile.
async fn five_more_heartbeats(pair: &Pair) -> Vec<AuditEvent> {
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    eventually("five more heartbeats on each", SOON, async || {
        let requests = requests(pair, marks);
        let on = |plural: &str| {
            let beats = requests.iter().filter(|event| is_heartbeat(event));
            beats.filter(|event| event.uri.contains(plural)).count()
        };
        if on("/syncerconfigs/") >= 5 && on("/edgesyncconfigs/") >= 5 {
            Ok(requests.clone())
        } else {
            Err(format!("{}", requests.len()))
        }
    })
    .await
}

/// The CRD that has only one version.
const SYNCER_CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";

#[tokio::test]
async fn the_heartbeat_goes_to_where_the_hub_keeps_it_also_when_that_changes() {
    let pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    let config = hub.create(&syncer_config("the-one", json!({}))).await;
    let mut last = None;
    let mark = pair.hub.audit_mark();
    let subresources = "/spec/versions/0/subresources";
    let with = json!([{"op": "add", "path": subresources, "value": {"status": {}}}]);
    let without = json!([{"op": "remove", "path": subresources}]);
    let _syncer = pair.syncer(&[EACH_SECOND]);
    last = Some(beats(&hub, "syncerconfigs", "the-one", last.as_ref()).await);
    let now = hub
        .get(CONFIG_API, "syncerconfigs", "", "the-one")
        .await
        .expect("it is there");
    assert_eq!(now["metadata"]["generation"], config["metadata"]["generation"]);
    for change in [&without, &with, &without] {
        redefine(&hub, SYNCER_CONFIGS, change).await;
        // One may have been on its way.
        for _ in 0..3 {
            last = Some(beats(&hub, "syncerconfigs", "the-one", last.as_ref()).await);
        }
    }
    let requests = pair.hub.requests_since(SYNCER, mark);
    let asked = requests.iter().filter(|event| event.uri.ends_with(CONFIG_API)).count();
    assert!((4..12).contains(&asked), "{asked} questions where the status goes");
}

#[tokio::test]
async fn a_heartbeat_that_the_hub_does_not_keep_is_reported_and_counts_for_none() {
    let pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    redefine(&hub, SYNCER_CONFIGS, &json!([{"op": "remove", "path": status}])).await;
    // Nor has it an object for the edge, which would keep it.
    let [definitions, of_edges] = ["customresourcedefinitions", "edges.edge.kubestellar.io"];
    hub.delete("apiextensions.k8s.io/v1", definitions, "", of_edges).await;
    gone(&hub, "apiextensions.k8s.io/v1", definitions, "", of_edges).await;
    hub.create(&syncer_config("the-one", json!({}))).await;
    let time = json!({"status": {"lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z"}});
    let target = format!("{}/status", path(CONFIG_API, "syncerconfigs", "", "the-one"));
    eventually("the new definition is in force", SOON, async || {
        let answer = hub.send(Method::PATCH, &target, MERGE_PATCH, Some(&time)).await;
        match answer.expect("it can be sent").get("status") {
            Some(kept) => Err(format!("{kept} is kept")),
            None => Ok(()),
        }
    })
    .await;
    let mut syncer = pair.syncer(&[EACH_SECOND, crate::figures::ANYWHERE]);
    let text =
        "reason=HeartbeatNotKept msg=\"the hub does not store the heartbeat\" side=hub object=SyncerConfig//the-one";
    syncer.wait_for_log(text, SOON).await;
    let mark = pair.hub.audit_mark();
    eventually("it tries again", SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        match requests.iter().filter(|event| is_heartbeat(event)).count() {
            0..3 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    let log = syncer.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("does not store the heartbeat"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("kept nothing of it"), "{}", lines[0]);
    let address = crate::figures::address_of(&mut syncer).await;
    let page = crate::figures::page(address).await.expect("it answers");
    assert!(
        !page.contains("edge_syncer_last_heartbeat_timestamp_seconds "),
        "{page}"
    );
    redefine(
        &hub,
        SYNCER_CONFIGS,
        &json!([{"op": "add", "path": status,
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]),
    )
    .await;
    beats(&hub, "syncerconfigs", "the-one", None).await;
    syncer.wait_for_log("works again", SOON).await;
}

// Each kind is enough by itself.
#[tokio::test]
async fn a_hub_that_serves_only_one_kind_of_configs_is_enough() {
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace("shop")).await;
    let refs = [namespace_ref("shop"), config_map_ref("shop", "*")];
    let kinds = [
        (
            "syncerconfigs",
            "edgesyncconfigs",
            syncer_config("one", config_maps("shop", &["*"])),
        ),
        (
            "edgesyncconfigs",
            "syncerconfigs",
            edge_sync_config("one", json!({"downSyncedResources": refs})),
        ),
    ];
    for (there, lacking, config) in kinds {
        serve_configs(&hub, there, true).await;
        serve_configs(&hub, lacking, false).await;
        for (mode, flags) in [("watch", WATCH), ("poll", POLL)] {
            let name = format!("{there}-{mode}");
            hub.create(&config_map("shop", &name, json!({}))).await;
            hub.create(&config).await;
            let syncer = pair.syncer(&[flags, &[EACH_SECOND]].concat());
            arrives(&edge, "v1", "configmaps", "shop", &name).await;
            beats(&hub, there, "one", None).await;
            hub.delete("v1", "configmaps", "shop", &name).await;
            gone(&edge, "v1", "configmaps", "shop", &name).await;
            assert!(!syncer.log().contains("WARN"), "{}", syncer.log());
            hub.delete(CONFIG_API, there, "", "one").await;
        }
    }
}

/// Makes the hub serve a kind of configs, or stop that, and name it among its types or not.
async fn serve_configs(hub: &Objects, plural: &str, served: bool) {
    serve(hub, &format!("{plural}.edge.kubestellar.io"), served).await;
    eventually("the hub serves what it should", SOON, async || {
        let types = hub.read(&format!("/apis/{CONFIG_API}")).await;
        let types = types.map_err(|error| error.to_string())?;
        let mut types = types["resources"].as_array().into_iter().flatten();
        let named = types.any(|one| one["name"] == plural);
        let listed = hub.try_list(CONFIG_API, plural, "", "").await.is_ok();
        if [named, listed] == [served; 2] {
            Ok(())
        } else {
            Err(format!("named: {named}, listed: {listed}"))
        }
    })
    .await;
}
