//! Several at once: other agents, many workspaces, an agent that dies: scenarios 13, 22 and 24.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::objects::{FACTS, has_facts};
use crate::stage::Which;
use crate::support::objects::{JSON_PATCH, code};
use crate::support::story::{SOON, arrives, crd};
use crate::support::{AuditEvent, Objects, eventually, micros_of};
use crate::world::{CORE, World, create, is_ready};

/// Takes an initializer off, as another agent does that owns it: it reads, waits a moment, and tries again if that was wrong.
async fn takes_off(at: &Objects, initializer: &str, pause: Duration) {
    let path = crate::support::objects::path(CORE, "logicalclusters", "", "cluster");
    eventually("another takes its initializer off", SOON, async || {
        let logical = match at.read(&path).await {
            Ok(logical) => logical,
            Err(error) if code(&error) == 404 => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let initializers = logical["status"]["initializers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let Some(index) = initializers.iter().position(|one| *one == *initializer) else {
            return Ok(());
        };
        tokio::time::sleep(pause).await;
        let at_index = format!("/status/initializers/{index}");
        let removal =
            json!([{"op": "test", "path": at_index, "value": initializer}, {"op": "remove", "path": at_index}]);
        let sent = at
            .send(Method::PATCH, &format!("{path}/status"), JSON_PATCH, Some(&removal))
            .await;
        sent.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

pub(crate) async fn an_initializer_that_another_takes_off_meanwhile_stays_off(which: Which) {
    let world = World::of(which).await;
    world.dev_on_base().await;
    world.template("dev", FACTS).await;
    world.target("dev", "dev", &["dev"]).await;
    let _agent = world.agent(&[]);
    let other = world.initializer("base").await;
    let names: Vec<String> = (0..8).map(|i| format!("w-{i}")).collect();
    let all = names.iter().enumerate().map(|(i, name)| {
        let (world, other) = (&world, &other);
        async move {
            world.workspace(name, "dev").await;
            let id = eventually("the workspace has an id", SOON, async || {
                let shown = world.shown(name).await;
                let is_placed = shown["status"]["phase"] == "Initializing";
                let id = shown["spec"]["cluster"].as_str().filter(|_| is_placed);
                id.map(str::to_owned).ok_or(shown["status"].clone())
            })
            .await;
            let below = format!("/services/initializingworkspaces/{other}/clusters/{id}");
            let at = world.stage.objects(&world.folder, &below, None).await;
            takes_off(&at, other, Duration::from_millis(30 * i as u64)).await;
            has_facts(world, &world.ready(name).await, name).await;
        }
    });
    crate::support::in_parallel(all, 8).await;
}

/// When the agent has begun with each workspace, and when it has let it go, as far as its requests tell.
fn spans<'a>(events: &[AuditEvent], ids: &'a BTreeSet<String>) -> BTreeMap<&'a str, (u64, u64)> {
    let mut spans: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for event in events {
        let Some(id) = ids.get(&event.cluster) else {
            continue;
        };
        let at = micros_of(&event.received);
        let is_removal = event.is_write() && event.uri.contains("/logicalclusters/cluster/status");
        let (begun, ended) = spans.entry(id).or_insert((at, u64::MAX));
        *begun = at.min(*begun);
        if is_removal && event.code < 300 {
            *ended = at.min(*ended);
        }
    }
    spans
}

pub(crate) async fn twenty_workspaces_are_served_at_once_and_four_at_a_time(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let names: Vec<String> = (0..20).map(|i| format!("w-{i}")).collect();
    for name in &names {
        world.workspace(name, "dev").await;
    }
    let mut ids = BTreeSet::new();
    for name in &names {
        ids.insert(world.waits(name).await);
    }
    let _agent = world.agent(&[]);
    for name in &names {
        has_facts(&world, &world.ready(name).await, name).await;
    }
    let events = world.requests();
    let spans = spans(&events, &ids);
    assert_eq!(spans.len(), 20);
    for (begun, ended) in spans.values() {
        assert_ne!(*ended, u64::MAX, "{events:#?}");
        let at_once = spans
            .values()
            .filter(|(one, other)| one <= begun && begun < other)
            .count();
        assert!(at_once <= 4, "{at_once} at once: {spans:?}");
    }
}

pub(crate) async fn a_workspace_costs_few_requests(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let _agent = world.agent(&[]);
    world.workspace("first", "dev").await;
    world.ready("first").await;
    let before = world.requests().len();
    world.workspace("second", "dev").await;
    world.ready("second").await;
    let events = world.requests().split_off(before);
    let count = events.iter().filter(|event| event.verb != "watch").count();
    let shown: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event.verb, event.uri))
        .collect();
    // Now and then a real kcp brings an initializer back, and all has to be done again.
    let runs = events
        .iter()
        .filter(|event| event.uri.contains("/logicalclusters/cluster/status"))
        .count();
    assert!(count <= 8 * runs, "{shown:#?}");
}

pub(crate) async fn a_workspace_that_waits_is_asked_for_what_it_lacks_alone(which: Which) {
    let world = World::of(which).await;
    let group = format!("{}.example.com", world.suffix);
    let more = format!("---\napiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: first}}\n");
    world.serve("dev", &(FACTS.to_owned() + &more)).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let asked = |what: &str| {
        let events = world.requests();
        events
            .iter()
            .filter(|event| event.verb == "get" && event.uri.contains(what))
            .count()
    };
    let group_path = format!("/apis/{group}/v1");
    eventually("it is looked for what is lacking", SOON, async || {
        let count = asked(&group_path);
        (count > 4).then_some(()).ok_or(count)
    })
    .await;
    // The template is read for what the target says of itself, too.
    for (other, most) in [("/logicalclusters/cluster", 1), ("/inittemplates/dev", 2)] {
        let count = asked(other);
        assert!(count <= most, "{other}: {count}");
    }
    let inside = world.inside("w").await;
    create(&inside, &crd(&group, "widgets", false)).await;
    let inside = world.ready("w").await;
    arrives(&inside, &format!("{group}/v1"), "widgets", "", "first").await;
    has_facts(&world, &inside, "w").await;
}

pub(crate) async fn an_agent_that_is_killed_halfway_is_finished_by_the_next(which: Which) {
    let world = World::of(which).await;
    let one = |i: u32| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{i}, namespace: base}}\ndata: {{v: \"{i}\"}}\n"
        )
    };
    let text = FACTS.to_owned() + &(0..40).map(one).collect::<String>();
    world.serve("dev", &text).await;
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let inside = world.inside("w").await;
    let mut agent = world.agent(&[]);
    arrives(&inside, "v1", "configmaps", "base", "of-3").await;
    agent.0.kill();
    if !is_ready(&world.shown("w").await) {
        world.keeps_waiting("w").await;
    }
    let mut agent = world.agent(&[]);
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    let found = inside.list("v1", "configmaps", "base", "").await;
    let named = |object: &&Value| {
        object["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("of-"))
    };
    assert_eq!(found.iter().filter(named).count(), 40);
    assert_eq!(crate::objects::updates(&world), Vec::<String>::new());
    agent.ends_well().await;
}
