//! What goes wrong at a server, and that no workspace is let go half made or waits forever for that: scenario 21, and faults
//! that no test can ask a real kcp for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::objects::{FACTS, has_facts, widgets};
use crate::simulated::{Refusal, Simulated};
use crate::stage::Stage;
use crate::support::story::{SOON, arrives, crd};
use crate::support::{AuditEvent, eventually, holds_throughout};
use crate::world::{A_WHILE, TENANCY, World, is_ready};

async fn world(shards: usize) -> World {
    World::on(Stage::Simulated(Simulated::start(shards))).await
}

fn refuse(world: &World, refusals: &[(&'static str, &'static str, u16, &'static str, usize)]) {
    let mut state = world.stage.simulated().state();
    for &(verb, path, code, text, times) in refusals {
        state.faults.refusals.push(Refusal {
            verb,
            path,
            code,
            text,
            times,
        });
    }
}

#[tokio::test]
async fn refusals_in_plain_text_are_tried_again() {
    let world = world(1).await;
    world.serve("dev", FACTS).await;
    refuse(
        &world,
        &[
            ("list", "/logicalclusters", 503, "shard is not ready\n", 2),
            (
                "get",
                "/logicalclusters/cluster",
                500,
                "error getting logicalcluster\n",
                2,
            ),
            (
                "get",
                "/apis",
                503,
                "WorkspaceType not found in local or cached indexer\n",
                1,
            ),
            ("get", "/inittemplates/", 500, "etcdserver: request timed out\n", 1),
            (
                "create",
                "/namespaces",
                403,
                "initializer \"x\" cannot access this workspace\n",
                2,
            ),
            ("create", "/configmaps", 500, "had no createdBy recorded\n", 2),
            ("patch", "/cluster/status", 500, "internal\n", 2),
        ],
    );
    let mut agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    assert!(agent.0.is_running());
}

#[tokio::test]
async fn a_shard_that_is_not_served_yet_holds_no_other() {
    let world = world(2).await;
    world.serve("dev", FACTS).await;
    world.stage.simulated().state().faults.unserved.push(1);
    let _agent = world.agent(&[]);
    let names = ["a", "b", "c", "d"];
    for name in names {
        world.workspace(name, "dev").await;
    }
    eventually("those of one shard are ready", SOON, async || {
        let shown = futures_util::future::join_all(names.map(|name| world.shown(name))).await;
        let ready = shown.iter().filter(|shown| is_ready(shown)).count();
        (ready == 2).then_some(()).ok_or(ready)
    })
    .await;
    world.stage.simulated().state().faults.unserved.clear();
    for name in names {
        has_facts(&world, &world.ready(name).await, name).await;
    }
}

#[tokio::test]
async fn a_shard_that_is_taken_from_a_type_is_no_longer_served() {
    let world = world(2).await;
    world.serve("dev", FACTS).await;
    let _agent = world.agent(&[]);
    for name in ["a", "b"] {
        world.workspace(name, "dev").await;
        world.ready(name).await;
    }
    let dev = world
        .types
        .get(TENANCY, "workspacetypes", "", "dev")
        .await
        .expect("it is there");
    let urls = &dev["status"]["virtualWorkspaces"];
    let of_first = |entry: &&Value| {
        entry["url"]
            .as_str()
            .is_some_and(|url| url.starts_with(&world.stage.simulated().url))
    };
    let left: Vec<&Value> = urls.as_array().into_iter().flatten().filter(of_first).collect();
    set_urls(&world, &json!(left)).await;
    // What is asked of the other shard ends: nothing there is served any more.
    eventually("only one shard is watched", SOON, async || {
        let open = world.stage.simulated().open_watches("/initializingworkspaces/");
        (open == 1).then_some(()).ok_or(open)
    })
    .await;
    for name in ["c", "d"] {
        world.workspace(name, "dev").await;
    }
    holds_throughout("only one of them is served", A_WHILE, async || {
        let shown = [world.shown("c").await, world.shown("d").await];
        let ready = shown.iter().filter(|shown| is_ready(shown)).count();
        (ready < 2).then_some(()).ok_or(ready)
    })
    .await;
    set_urls(&world, urls).await;
    for name in ["c", "d"] {
        world.ready(name).await;
    }
}

async fn set_urls(world: &World, urls: &Value) {
    let status = json!({"virtualWorkspaces": urls});
    world
        .types
        .patch_status(TENANCY, "workspacetypes", "", "dev", &status)
        .await;
}

/// Every kind is found, whatever form discovery has.
async fn kinds_are_found(aggregates: &'static [&'static str], types_urls: bool) {
    let world = world(1).await;
    {
        let mut state = world.stage.simulated().state();
        state.faults.aggregates = aggregates;
        state.faults.types_urls = types_urls;
    }
    let text = FACTS.to_owned() + "---\n" + &widgets("old.example.com", "");
    world.serve("dev", &text).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    arrives(&inside, "old.example.com/v1", "widgets", "", "first").await;
}

#[tokio::test]
async fn an_older_server_has_no_aggregated_discovery_and_does_not_say_what_its_urls_are() {
    kinds_are_found(&[], false).await;
}

#[tokio::test]
async fn a_newer_server_may_have_all_of_discovery_in_two_answers() {
    kinds_are_found(&["api", "apis"], true).await;
}

#[tokio::test]
async fn a_type_may_be_served_before_discovery_lists_it() {
    let world = world(1).await;
    world.stage.simulated().state().times.listed = Duration::from_millis(1_500);
    world.serve("dev", &widgets("late.example.com", "")).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    arrives(&inside, "late.example.com/v1", "widgets", "", "first").await;
}

#[tokio::test]
async fn lists_that_are_behind_lose_nothing() {
    let world = world(1).await;
    world.serve("dev", FACTS).await;
    world.stage.simulated().state().faults.stale = Duration::from_millis(700);
    let mut agent = world.agent(&[]);
    let names = ["a", "b", "c"];
    for name in names {
        world.workspace(name, "dev").await;
    }
    agent.0.kill();
    let _agent = world.agent(&[]);
    for name in names {
        has_facts(&world, &world.ready(name).await, name).await;
    }
}

#[tokio::test]
async fn an_initializer_that_goes_just_before_the_own_one_is_never_put_back() {
    let world = world(1).await;
    world.new_type("base", Value::Null).await;
    for (name, extends) in [("after", "base"), ("dev", "after")] {
        let with = json!({"extend": {"with": [{"name": extends, "path": world.types_path}]}});
        world.new_type(name, with).await;
    }
    world.template("dev", FACTS).await;
    world.target("dev", "dev", &["dev"]).await;
    let other = world.initializer("base").await;
    world.stage.simulated().state().faults.taken_between = Some(other);
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    world.keeps_waiting("w").await;
    let left = world.shown("w").await["status"]["initializers"].clone();
    assert_eq!(left, json!([world.initializer("after").await]));
    has_facts(&world, &world.inside("w").await, "w").await;
}

#[tokio::test]
async fn an_initializer_that_comes_back_is_taken_off_again() {
    let world = world(1).await;
    world.serve("dev", FACTS).await;
    world.stage.simulated().state().faults.come_back = 1;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    eventually("it is taken off twice", SOON, async || {
        let events = world.requests();
        let removals = events
            .iter()
            .filter(|event| event.verb == "patch" && event.uri.ends_with("/cluster/status"));
        let count = removals.count();
        (count == 2).then_some(()).ok_or(count)
    })
    .await;
    has_facts(&world, &world.ready("w").await, "w").await;
    // All that was made is there: it is neither read nor made again.
    let events = world.requests();
    let of = |verb: &str, path: &str| {
        let found = events
            .iter()
            .filter(|event| event.verb == verb && event.uri.contains(path));
        found.count()
    };
    assert_eq!((of("get", "/logicalclusters/"), of("create", "/configmaps")), (1, 1));
    // For the status of the target, it is read once too.
    assert!(of("get", "/inittemplates/") <= 2);
}

#[tokio::test]
async fn many_at_once_cost_few_requests_although_kcp_puts_initializers_back() {
    let world = world(1).await;
    world.template("facts", FACTS).await;
    for number in 0..10 {
        let name = format!("t{number}");
        world.new_type(&name, Value::Null).await;
        world.target(&name, &name, &["facts"]).await;
    }
    let _agent = world.agent(&[]);
    world.workspace("first", "t0").await;
    world.ready("first").await;
    // The CRD of the Go agent has no status: one request finds that out.
    let statuses = || {
        let events = world.requests();
        events
            .iter()
            .filter(|event| event.uri.contains("/inittargets/"))
            .count()
    };
    eventually("a status is tried", SOON, async || {
        (statuses() == 1).then_some(()).ok_or(statuses())
    })
    .await;
    let before = world.requests().len();
    world.stage.simulated().state().faults.come_back = 17;
    let names: Vec<String> = (0..20).map(|number| format!("w-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        world.workspace(name, &format!("t{}", number % 10)).await;
    }
    let removals = || {
        let events = world.requests().split_off(before);
        let is_removal = |event: &&AuditEvent| event.verb == "patch" && event.uri.ends_with("/cluster/status");
        (events.iter().filter(is_removal).count(), events)
    };
    eventually("all are let go, some of them twice", SOON, async || {
        let (count, _) = removals();
        (count >= 37).then_some(()).ok_or(count)
    })
    .await;
    for name in &names {
        has_facts(&world, &world.ready(name).await, name).await;
    }
    let (_, events) = removals();
    let counted = events.iter().filter(|event| event.verb != "watch");
    let shown: Vec<String> = counted.map(|event| format!("{} {}", event.verb, event.uri)).collect();
    assert!(shown.len() <= 8 * 20, "{} requests: {shown:#?}", shown.len());
    assert_eq!(statuses(), 1);
}

#[tokio::test]
async fn what_a_waiting_workspace_has_is_created_once_and_looked_for_before_it_is_let_go() {
    let world = world(1).await;
    let nameless = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: one-, namespace: base}\n";
    world.template("facts", &(FACTS.to_owned() + nameless)).await;
    let late = "apiVersion: late.example.com/v1\nkind: Widget\nmetadata: {name: first}\n";
    world.template("late", late).await;
    world.new_type("dev", Value::Null).await;
    world.target("dev", "dev", &["facts", "late"]).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let inside = world.inside("w").await;
    has_facts(&world, &inside, "w").await;
    let count = |verb: &str, path: &str| {
        let events = world.requests();
        let found = events
            .iter()
            .filter(|event| event.verb == verb && event.uri.contains(path));
        found.count()
    };
    eventually("it is tried some times", SOON, async || {
        let tries = count("get", "/apis/late.example.com/v1");
        (tries >= 4).then_some(()).ok_or(tries)
    })
    .await;
    assert_eq!(count("create", "/configmaps"), 2);
    // Somebody takes away what was made, and brings what is waited for.
    inside.delete("v1", "configmaps", "base", "facts").await;
    crate::world::create(&inside, &crd("late.example.com", "widgets", false)).await;
    has_facts(&world, &world.ready("w").await, "w").await;
    let maps = inside.list("v1", "configmaps", "base", "").await;
    let made = |map: &&Value| map["metadata"]["generateName"] == "one-";
    assert_eq!(maps.iter().filter(made).count(), 1, "{maps:#?}");
}

#[tokio::test]
async fn two_agents_for_one_type_do_no_harm() {
    let world = world(1).await;
    world
        .serve("dev", &(FACTS.to_owned() + "---\n" + &widgets("two.example.com", "")))
        .await;
    let (mut one, mut other) = (world.agent(&[]), world.agent(&[]));
    let names: Vec<String> = (0..6).map(|i| format!("w-{i}")).collect();
    for name in &names {
        world.workspace(name, "dev").await;
    }
    for name in &names {
        has_facts(&world, &world.ready(name).await, name).await;
    }
    assert!(one.0.is_running() && other.0.is_running());
    assert_eq!(crate::objects::updates(&world), Vec::<String>::new());
}
