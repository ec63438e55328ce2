//! Several syncers for one edge: one is active, another takes over; and without an election they do each other no harm.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use support::objects::{JSON, config_map, namespace, path, syncer_config};
use support::process::complain;
use support::story::{SOON, annotation, arrives, config_map_entry, copy_equals, gone, stays_absent};
use support::{
    AuditEvent, KubeconfigParts, Objects, Pair, PairLease, Server, Syncer, User, eventually, holds_throughout,
    shared_pair,
};
use tokio::time::Instant;

const SYNCER: &str = "edge-syncer/";
const LEASES: &str = "coordination.k8s.io/v1";
/// The Lease of the sync target that the harness names.
const LEASE: &str = "edge-syncer-test";
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/edge-syncer-ha.yaml");

const BEGINS: &str = "leading, syncing begins";
const ENDS: &str = "no longer leading";
const STANDBY: &str = "standing by";
/// A short one, where a test waits until it has expired.
const SHORT: &str = "--lease-duration=6s";

/// The pair without the Lease of the test before, and one `ConfigMap` that is selected.
async fn pair_with_one_config_map() -> (PairLease, String) {
    let pair = shared_pair().await;
    pair.edge.objects().delete(LEASES, "leases", "default", LEASE).await;
    let shop = pair.namespace("shop");
    let hub = pair.hub.objects();
    hub.create(&namespace(&shop)).await;
    hub.create(&config_map(&shop, "a", json!({"v": "0"}))).await;
    let spec = json!({"namespacedObjects": [config_map_entry(&shop, &["*"])]});
    hub.create(&syncer_config("the-one", spec)).await;
    (pair, shop)
}

fn candidate(pair: &Pair, flags: &[&str]) -> Syncer {
    pair.syncer(&[&["--leader-elect"], flags].concat())
}

/// A leader and a standby.
async fn two_candidates(pair: &Pair, flags: &[&str]) -> (Syncer, Syncer) {
    let mut leader = candidate(pair, flags);
    leader.wait_for_log(BEGINS, SOON).await;
    let mut standby = candidate(pair, flags);
    standby.wait_for_log(STANDBY, SOON).await;
    (leader, standby)
}

/// True if the last that it has said is that it leads.
fn leads(syncer: &Syncer) -> bool {
    let log = syncer.log();
    log.rfind(BEGINS) > log.rfind(ENDS)
}

fn count(syncer: &Syncer, text: &str) -> usize {
    syncer.log().matches(text).count()
}

async fn lease(edge: &Objects) -> Value {
    let lease = edge.try_get(LEASES, "leases", "default", LEASE).await;
    lease.ok().flatten().unwrap_or_default()
}

/// A candidate that is called another name by the servers, where it may do everything too.
async fn other_candidate(pair: &Pair, flags: &[&str]) -> Syncer {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "limited-may-do-everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}],
    });
    for side in [&pair.hub, &pair.edge] {
        side.objects().update_as("harness", &binding).await;
    }
    let all = [&["--leader-elect"], flags].concat();
    Syncer::start(&limited(&pair.hub), &limited(&pair.edge), &all)
}

async fn take_rights_back(pair: &Pair) {
    for side in [&pair.hub, &pair.edge] {
        let rbac = "rbac.authorization.k8s.io/v1";
        side.objects()
            .delete(rbac, "clusterrolebindings", "", "limited-may-do-everything")
            .await;
    }
}

fn limited(server: &Server) -> std::path::PathBuf {
    let parts = KubeconfigParts {
        user: User::Limited,
        ..KubeconfigParts::default()
    };
    server.write_kubeconfig("limited.kubeconfig", &parts)
}

fn is_about_the_lease(event: &AuditEvent) -> bool {
    event.uri.contains("/leases")
}

/// What user `limited` has asked for since, but for its Lease.
fn others_of_limited(server: &Server, mark: u64) -> Vec<String> {
    let requests = server.requests_since(SYNCER, mark);
    let of_it = requests
        .iter()
        .filter(|event| event.user == "limited" && !is_about_the_lease(event));
    of_it.map(|event| format!("{} {}", event.verb, event.uri)).collect()
}

#[tokio::test]
async fn one_is_active_and_the_standby_only_looks_at_the_lease() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let mut leader = candidate(&pair, &[]);
    copy_equals(&edge, &shop, "a", &json!({"v": "0"})).await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let mut standby = other_candidate(&pair, &[]).await;
    standby.wait_for_log(STANDBY, SOON).await;
    for version in ["1", "2"] {
        hub.replace(&config_map(&shop, "a", json!({"v": version}))).await;
        copy_equals(&edge, &shop, "a", &json!({"v": version})).await;
    }

    let held = lease(&edge).await;
    let holder = held["spec"]["holderIdentity"]
        .as_str()
        .expect("it has a holder")
        .to_owned();
    assert!(leader.log().contains(&format!("identity={holder} ")), "{holder}");
    assert!(standby.log().contains(&format!("holder={holder} ")), "{holder}");
    assert_eq!(held["spec"]["leaseDurationSeconds"], json!(15));
    assert_eq!(held["spec"]["leaseTransitions"], json!(0));
    let time = held["spec"]["renewTime"].as_str().expect("it has a time").to_owned();
    assert_eq!(time.len(), "2026-11-21T14:03:07.123456Z".len(), "{time}");

    // The leader renews, and nothing else of the Lease changes.
    eventually("it is renewed", SOON, async || {
        let now = lease(&edge).await;
        assert_eq!(now["spec"]["acquireTime"], held["spec"]["acquireTime"]);
        if now["spec"]["renewTime"].as_str() > Some(&time) {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
    for (side, mark) in [(&pair.hub, marks[0]), (&pair.edge, marks[1])] {
        assert_eq!(others_of_limited(side, mark), Vec::<String>::new(), "{}", side.name());
    }
    let looks = pair.edge.requests_since(SYNCER, marks[1]);
    assert!(looks.iter().any(|event| event.user == "limited" && event.verb == "get"));
    assert!(leads(&leader) && !leads(&standby));
    assert_eq!((count(&leader, BEGINS), count(&standby, STANDBY)), (1, 1));
    leader.terminate().await;
    standby.terminate().await;
    take_rights_back(&pair).await;
}

#[tokio::test]
async fn sigterm_hands_over_in_seconds() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (mut leader, mut standby) = two_candidates(&pair, &[]).await;
    for round in 1..=5_i64 {
        // At any moment between two looks of the standby.
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..2000))).await;
        let start = Instant::now();
        let (status, ending) = leader.terminate().await;
        assert_eq!(status.code(), Some(0));
        assert!(leader.log().contains("released the lease"), "it says so");
        standby.wait_for_log(BEGINS, Duration::from_secs(10)).await;
        let leading = start.elapsed();
        let data = json!({"v": round.to_string()});
        hub.replace(&config_map(&shop, "a", data.clone())).await;
        copy_equals(&edge, &shop, "a", &data).await;
        complain(&format!(
            "ended after {ending:?}, other leads after {leading:?}, syncs after {:?}",
            start.elapsed()
        ));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert_eq!(lease(&edge).await["spec"]["leaseTransitions"], json!(round));
        leader = standby;
        standby = candidate(&pair, &[]);
        standby.wait_for_log(STANDBY, SOON).await;
    }
}

#[tokio::test]
async fn a_crash_is_followed_by_a_takeover_when_the_lease_has_expired() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (mut leader, mut standby) = two_candidates(&pair, &[SHORT]).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    // So that a renewal has been seen.
    tokio::time::sleep(Duration::from_secs(3)).await;
    leader.kill();
    let start = Instant::now();
    hub.replace(&config_map(&shop, "a", json!({"v": "1"}))).await;
    standby.wait_for_log(BEGINS, Duration::from_secs(15)).await;
    let took = start.elapsed();
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    complain(&format!("leads after {took:?}, syncs after {:?}", start.elapsed()));
    // The last renewal was at most two seconds before the crash.
    assert!(took > Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn a_leader_that_was_paused_writes_nothing_when_it_goes_on() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let mut leader = other_candidate(&pair, &[SHORT, "--heartbeat-interval=1s"]).await;
    leader.wait_for_log(BEGINS, SOON).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "0"})).await;
    let mut standby = candidate(&pair, &[SHORT]);
    standby.wait_for_log(STANDBY, SOON).await;

    leader.signal("STOP");
    // It will have a lot to do when it goes on.
    for index in 0..20 {
        hub.create(&config_map(&shop, &format!("c{index}"), json!({"v": "1"})))
            .await;
    }
    standby.wait_for_log(BEGINS, SOON).await;
    for index in 0..20 {
        copy_equals(&edge, &shop, &format!("c{index}"), &json!({"v": "1"})).await;
    }
    for index in 0..20 {
        edge.delete("v1", "configmaps", &shop, &format!("c{index}")).await;
    }
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    leader.signal("CONT");
    leader.wait_for_log(ENDS, SOON).await;
    leader.wait_for_log(STANDBY, SOON).await;
    let period = Duration::from_secs(3);
    holds_throughout("it stands by and writes nothing", period, async || {
        let writes = |server: &Server, mark| {
            let requests = server.requests_since(SYNCER, mark);
            let mut writes = requests
                .into_iter()
                .filter(|event| event.user == "limited" && event.is_write());
            writes.next().map(|event| format!("{} {}", event.verb, event.uri))
        };
        match writes(&pair.hub, marks[0]).or_else(|| writes(&pair.edge, marks[1])) {
            Some(write) => Err(write),
            None if leads(&leader) || !leads(&standby) => Err("the wrong one leads".to_owned()),
            None => Ok(()),
        }
    })
    .await;
    for index in 0..20 {
        copy_equals(&edge, &shop, &format!("c{index}"), &json!({"v": "1"})).await;
    }
    leader.kill();
    take_rights_back(&pair).await;
}

#[tokio::test]
async fn a_restart_of_the_edge_leaves_one_leader() {
    let (mut pair, shop) = pair_with_one_config_map().await;
    let (leader, standby) = two_candidates(&pair, &[]).await;
    let mut both = [leader, standby];
    // Short enough for the leader to stay; long enough for it to stop.
    for (round, away) in [(1, Duration::from_secs(1)), (2, Duration::from_secs(12))] {
        pair.edge.stop_apiserver();
        tokio::time::sleep(away).await;
        if round == 2 {
            eventually("nobody leads", SOON, async || {
                match both.iter().find(|one| leads(one)) {
                    None => Ok(()),
                    Some(_) => Err("one leads"),
                }
            })
            .await;
        }
        pair.edge.start_apiserver().await;
        let data = json!({"v": round.to_string()});
        pair.hub.objects().replace(&config_map(&shop, "a", data.clone())).await;
        copy_equals(&pair.edge.objects(), &shop, "a", &data).await;
        assert_eq!(both.iter().filter(|one| leads(one)).count(), 1);
        assert!(both.iter_mut().all(Syncer::is_running));
    }
    let begun: usize = both.iter().map(|one| count(one, BEGINS)).sum();
    complain(&format!("the lead began {begun} times"));
    assert!(begun <= 3, "{begun}");
}

#[tokio::test]
async fn it_waits_for_an_edge_that_is_away_at_the_start() {
    let (mut pair, shop) = pair_with_one_config_map().await;
    pair.edge.stop_apiserver();
    let mut syncer = candidate(&pair, &[]);
    syncer
        .wait_for_log("the lease cannot be used, will try again", SOON)
        .await;
    // It ends at once all the same when it is asked to.
    let mut other = candidate(&pair, &[]);
    other
        .wait_for_log("the lease cannot be used, will try again", SOON)
        .await;
    let (status, took) = other.terminate().await;
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    pair.edge.start_apiserver().await;
    syncer.wait_for_log(BEGINS, SOON).await;
    copy_equals(&pair.edge.objects(), &shop, "a", &json!({"v": "0"})).await;
    assert_eq!(count(&syncer, "the lease cannot be used"), 1, "{}", syncer.log());
}

/// The objects of the manifest, with its placeholders filled in.
fn manifest(space: &str) -> Vec<Value> {
    let values = [
        ("syncer_id", "test"),
        ("downstream_namespace", space),
        ("server_url", "https://hub.example.org:6443/clusters/abc"),
        ("cacrt", "eA=="),
        ("token", "t"),
        ("image", "registry.example.org/edge-syncer:latest"),
    ];
    let mut text = std::fs::read_to_string(MANIFEST).expect("the manifest exists");
    for (name, value) in values {
        assert!(
            text.contains(&format!("# | ${{{name}}}")),
            "{name} is explained at the top"
        );
        text = text.replace(&format!("${{{name}}}"), value);
    }
    assert!(!text.contains("${"), "a placeholder is not explained");
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).expect("it is YAML"))
        .collect()
}

fn collection_of(object: &Value) -> String {
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    path(
        &field(&object["apiVersion"]),
        &field(&object["kind"]),
        &field(&object["metadata"]["namespace"]),
        "",
    )
}

#[tokio::test]
async fn the_manifest_is_what_an_api_server_takes() {
    let pair = shared_pair().await;
    let space = pair.namespace("syncer");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let objects = manifest(&space);
    assert_eq!(objects.len(), 8);
    for object in &objects {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", collection_of(object));
        match edge.send(Method::POST, &path, JSON, Some(object)).await {
            Ok(_) => {}
            Err(error) if object["kind"] == "Namespace" => assert!(error.to_string().contains("already exists")),
            Err(error) => panic!("{}: {error}", object["kind"]),
        }
    }
    let container = &objects[7]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(objects[7]["spec"]["replicas"], json!(2));
    let args = container["args"].as_array().expect("it has arguments");
    assert!(args.contains(&json!("--leader-elect")));
    // The arguments are ones that the program takes.
    let words = args.iter().filter_map(Value::as_str).map(Into::into);
    let parsed = edge_syncer::cli::parse(["syncer".into()].into_iter().chain(words));
    assert!(matches!(parsed, Ok(edge_syncer::cli::Invocation::Run(_))), "{parsed:?}");
}

#[tokio::test]
async fn a_refused_lease_is_told_and_the_role_of_the_manifest_is_enough() {
    let (pair, shop) = pair_with_one_config_map().await;
    let space = pair.namespace("syncer");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let flags = ["--leader-elect"];
    let env = [("NAMESPACE", space.as_str())];
    let mut syncer = Syncer::start_with_env(&pair.hub.kubeconfig(), &limited(&pair.edge), &flags, &env);
    syncer
        .wait_for_log("the edge refuses the lease, so nothing is synced", SOON)
        .await;
    let advice =
        format!("advice=\"allow it to get, create and patch leases.coordination.k8s.io in namespace {space}\"");
    assert!(syncer.log().contains(&advice));
    stays_absent(&edge, "v1", "configmaps", &shop, "a").await;
    assert!(syncer.is_running());
    assert_eq!(count(&syncer, "refuses the lease"), 1, "it is told once");

    for mut object in manifest(&space) {
        if object["kind"] == "RoleBinding" {
            object["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]);
        } else if object["kind"] != "Role" {
            continue;
        }
        edge.create(&object).await;
    }
    syncer.wait_for_log(BEGINS, SOON).await;
    // The record of synced types is within the role too.
    arrives(&edge, LEASES, "leases", &space, LEASE).await;
    eventually("the lease is renewed", SOON, async || {
        let requests = pair.edge.requests(SYNCER);
        let renewals = requests.iter().filter(|event| {
            is_about_the_lease(event) && event.uri.contains(&space) && event.verb == "patch" && event.code == 200
        });
        if renewals.count() > 0 { Ok(()) } else { Err("not yet") }
    })
    .await;
    assert!(!syncer.log().contains("cannot keep the record"), "{}", syncer.log());
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0));
    let released = edge.get(LEASES, "leases", &space, LEASE).await.expect("it stays");
    assert_eq!(released["spec"]["holderIdentity"].as_str().unwrap_or_default(), "");
}

#[tokio::test]
async fn two_without_an_election_converge_and_do_not_fight() {
    const COUNT: usize = 20;
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for index in 0..COUNT {
        hub.create(&config_map(&shop, &format!("c{index}"), json!({"v": "0"})))
            .await;
    }
    // What was there before, and is nobody's.
    edge.create(&namespace(&shop)).await;
    edge.create(&config_map(&shop, "own", json!({"mine": "yes"}))).await;
    let mark = pair.edge.audit_mark();
    let hub_mark = pair.hub.audit_mark();
    let _both = [(); 2].map(|()| pair.syncer(&["--heartbeat-interval=0s"]));
    let name = |index: usize| format!("c{index}");
    let mut uids = BTreeMap::new();
    for index in 0..COUNT {
        let copy = copy_equals(&edge, &shop, &name(index), &json!({"v": "0"})).await;
        uids.insert(index, copy["metadata"]["uid"].clone());
    }
    for round in 1..=5 {
        let data = json!({"v": round.to_string()});
        for index in 0..COUNT {
            hub.replace(&config_map(&shop, &name(index), data.clone())).await;
        }
        // Drift, which both see.
        let drift = json!({"data": {"v": "drift"}});
        edge.merge_patch("v1", "configmaps", &shop, "c3", &drift).await;
        for index in 0..COUNT {
            copy_equals(&edge, &shop, &name(index), &data).await;
        }
    }
    // Deleted at the edge: created again. Deleted at the hub: gone, and created anew, a new object.
    edge.delete("v1", "configmaps", &shop, "c4").await;
    hub.delete("v1", "configmaps", &shop, "c5").await;
    gone(&edge, "v1", "configmaps", &shop, "c5").await;
    copy_equals(&edge, &shop, "c4", &json!({"v": "5"})).await;
    hub.create(&config_map(&shop, "c5", json!({"v": "new"}))).await;
    copy_equals(&edge, &shop, "c5", &json!({"v": "new"})).await;

    let writes = || {
        let requests = pair.edge.requests_since(SYNCER, mark);
        requests.into_iter().filter(AuditEvent::is_write).collect::<Vec<_>>()
    };
    let mut last = (usize::MAX, Instant::now());
    eventually("writing ends", SOON, async || {
        let count = writes().len();
        if count != last.0 {
            last = (count, Instant::now());
        }
        if last.1.elapsed() > Duration::from_secs(5) {
            Ok(())
        } else {
            Err(count)
        }
    })
    .await;
    let all = writes();
    complain(&format!("{} writes at the edge by two syncers", all.len()));
    // Twice what one would write: each object at the start and in each round, each drift once more, and what was
    // deleted; and a few for the namespace, the record and conflicts.
    let one = (COUNT + 1) + 5 * (COUNT + 1) + 5;
    assert!(all.len() <= 2 * one + 20, "{} writes: {all:#?}", all.len());
    for index in 0..COUNT {
        let copy = arrives(&edge, "v1", "configmaps", &shop, &name(index)).await;
        assert_eq!(annotation(&copy, "adopted"), Value::Null, "{} is ours", name(index));
        let same = copy["metadata"]["uid"] == uids[&index];
        assert_eq!(same, ![4, 5].contains(&index), "{} was created again", name(index));
    }
    let own = edge.get("v1", "configmaps", &shop, "own").await.expect("it stays");
    assert_eq!(own["data"], json!({"mine": "yes"}));
    let hub_writes = pair.hub.requests_since(SYNCER, hub_mark);
    assert_eq!(hub_writes.iter().filter(|event| event.is_write()).count(), 0);
}
