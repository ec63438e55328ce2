//! How it runs, and what happens meanwhile: scenarios A25 to A28 and A30.

use std::time::Duration;

use serde_json::{Value, json};

use crate::of_role::Agent;
use crate::simulated::{Refusal, Simulated};
use crate::stage::{Stage, Which};
use crate::support::objects::namespace;
use crate::support::story::{SOON, becomes, gone};
use crate::support::{comes_to_rest, eventually, free_port, holds_throughout, in_parallel};
use crate::wire::fetch;
use crate::world::{A_WHILE, APIS, FINALIZER, SYNCAGENT, World};

pub(crate) async fn one_of_two_replicas_works_and_the_other_takes_over(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let flags = ["--enable-leader-election=true"];
    let mut first = world.agent(&flags);
    let lease = format!("syncagent.{}", world.agent_name());
    let at = ["coordination.k8s.io/v1", "leases", &world.space, &lease];
    becomes(&world.local, at, "has a holder", |it| {
        it["spec"]["holderIdentity"].is_string()
    })
    .await;
    let mut second = world.agent(&flags);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "one", &json!({"size": 1})).await;
    world.copied(&consumer, "one", &json!({"size": 1})).await;
    assert!(second.0.is_running() && first.0.is_running());
    first.0.kill();
    world.open(&consumer, "two", &json!({"size": 2})).await;
    world.copied(&consumer, "two", &json!({"size": 2})).await;
    second.ends_well().await;
}

pub(crate) async fn two_agents_share_out_what_is_published(which: Which) {
    let world = World::of(which).await;
    world.define("carts", true).await;
    for (name, kind, of) in [("shops", "Shop", "one"), ("carts", "Cart", "two")] {
        let mut published = world.published(name, kind, &json!({}));
        published["metadata"]["labels"]["of"] = json!(of);
        world.local.create(&published).await;
    }
    let selector = |of: &str| format!("--published-resource-selector=world={},of={of}", world.suffix);
    let _one = world.agent(&[&selector("one"), "--agent-name=one"]);
    let _two = world.agent(&[&selector("two"), "--agent-name=two"]);
    world.exports(2, 1).await;
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    assert_eq!(copy["metadata"]["labels"]["syncagent.kcp.io/agent-name"], "one");
    let cart = json!({"apiVersion": world.v1(), "kind": "Cart", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"size": 2}});
    crate::world::create(&consumer.objects, &cart).await;
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    eventually("the other one has its copy", SOON, async || {
        let all = world.local.list(&world.v1(), "carts", "", &of).await;
        let is_it = all.len() == 1 && all[0]["metadata"]["labels"]["syncagent.kcp.io/agent-name"] == "two";
        is_it.then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    for plural in ["shops", "carts"] {
        consumer.objects.delete(&world.v1(), plural, "shop", "web").await;
        gone(&consumer.objects, &world.v1(), plural, "shop", "web").await;
    }
}

pub(crate) async fn an_edit_leaves_one_loop_and_a_delete_none(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for at in 0..5 {
        let name = format!("s{at}");
        world.open(&consumer, &name, &json!({"size": at})).await;
        let step = json!({"template": {"path": "spec.by", "template": format!("rule {at}")}});
        world.republish(&json!({"mutation": {"spec": [step]}})).await;
        world.edit(&consumer, &name, &json!({"spec": {"again": at}})).await;
    }
    for at in 0..5 {
        world
            .copy(&consumer, &format!("s{at}"), "follows the last rule", |copy| {
                copy["spec"]["by"] == "rule 4" && copy["spec"]["again"] == at
            })
            .await;
    }
    if which == Which::Simulated {
        // Those of former rules end with them.
        eventually("one watch is open", SOON, async || {
            let open = world.stage.simulated().open_watches("/shops");
            (open == 1).then_some(()).ok_or(open)
        })
        .await;
    }
    world
        .local
        .delete(SYNCAGENT, "publishedresources", "", &world.name_of("shops"))
        .await;
    if which == Which::Simulated {
        eventually("no watch is open", SOON, async || {
            let open = world.stage.simulated().open_watches("/shops");
            (open == 0).then_some(()).ok_or(open)
        })
        .await;
    }
    world.open(&consumer, "late", &json!({"size": 1})).await;
    holds_throughout("nothing is synced and nothing is deleted", A_WHILE, async || {
        let all = world.copies(&consumer).await.len();
        (all == 5).then_some(()).ok_or(all)
    })
    .await;
    world.publish(&json!({})).await;
    world.copied(&consumer, "late", &json!({"size": 1})).await;
}

pub(crate) async fn a_workspace_that_unbinds_is_left_with_its_copies(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let [leaves, stays] = [world.consumer("a").await, world.consumer("b").await];
    for consumer in [&leaves, &stays] {
        world.open(consumer, "web", &json!({"size": 1})).await;
        world.copied(consumer, "web", &json!({"size": 1})).await;
    }
    // With a binding go the objects of its types; they wait for their copies.
    leaves.objects.delete(APIS, "apibindings", "", &world.export).await;
    world.has_no_copies(&leaves).await;
    gone(&leaves.objects, APIS, "apibindings", "", &world.export).await;
    agent.says(&["WorkspaceUnbound"]).await;
    let of_workspace = || {
        world
            .requests()
            .iter()
            .filter(|event| event.cluster == leaves.id)
            .count()
    };
    comes_to_rest("nothing is asked of it", 2 * A_WHILE, SOON, async || {
        Ok::<_, String>(of_workspace())
    })
    .await;
    world.edit(&stays, "web", &json!({"spec": {"size": 2}})).await;
    world.copied(&stays, "web", &json!({"size": 2})).await;
    world.bind(&leaves, &[["", "events"]]).await;
    world.open(&leaves, "web", &json!({"size": 3})).await;
    world.copied(&leaves, "web", &json!({"size": 3})).await;
}

#[tokio::test]
async fn shards_come_and_go_without_a_delete() {
    let world = World::on(Stage::Simulated(Simulated::start(2))).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let simulated = world.stage.simulated();
    let shard = |id: &str| simulated.state().clusters[id].shard;
    let mut consumers = vec![world.consumer("a").await];
    // Workspaces take turns on the shards.
    while shard(&consumers[0].id) == shard(&consumers[consumers.len() - 1].id) {
        consumers.push(world.consumer(&format!("b{}", consumers.len())).await);
    }
    let [first, other] = [&consumers[0], &consumers[consumers.len() - 1]];
    for consumer in [first, other] {
        world.open(consumer, "web", &json!({"size": 1})).await;
        world.copied(consumer, "web", &json!({"size": 1})).await;
    }
    let at = [APIS, "apiexportendpointslices", "", &world.export];
    let slice = world
        .provider
        .get(at[0], at[1], at[2], at[3])
        .await
        .expect("it is there");
    let all = slice["status"]["endpoints"].as_array().expect("they are there").clone();
    assert_eq!(all.len(), 2, "{all:?}");
    let of_first = shard(&first.id);
    let url = simulated.state().shards[of_first].clone();
    let kept: Vec<&Value> = all
        .iter()
        .filter(|one| one["url"].as_str().is_some_and(|it| it.starts_with(&url)))
        .collect();
    let status = json!({"endpoints": kept});
    world
        .provider
        .patch_status(APIS, "apiexportendpointslices", "", &world.export, &status)
        .await;
    agent.says(&["ShardLeft"]).await;
    eventually("the watches of one shard are left", SOON, async || {
        let open = simulated.open_watches("/shops");
        (open == 1).then_some(()).ok_or(open)
    })
    .await;
    world.edit(other, "web", &json!({"spec": {"size": 2}})).await;
    other.objects.delete(&world.v1(), "shops", "shop", "web").await;
    world.edit(first, "web", &json!({"spec": {"size": 2}})).await;
    world.copied(first, "web", &json!({"size": 2})).await;
    holds_throughout("the copies of the other one stay", A_WHILE, async || {
        let all = world.copies(other).await;
        (all.len() == 1 && all[0]["spec"]["size"] == 1)
            .then_some(())
            .ok_or(format!("{all:?}"))
    })
    .await;
    let status = json!({"endpoints": all});
    world
        .provider
        .patch_status(APIS, "apiexportendpointslices", "", &world.export, &status)
        .await;
    world.has_no_copies(other).await;
    gone(&other.objects, &world.v1(), "shops", "shop", "web").await;
}

// Found by an audit: what was under way at a shard counted for ever, and soon nothing was done any more.
#[tokio::test]
async fn what_is_under_way_at_a_shard_that_leaves_is_over() {
    let world = World::on(Stage::Simulated(Simulated::start(1))).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let [one, two] = [world.consumer("a").await, world.consumer("b").await];
    for consumer in [&one, &two] {
        world.open(consumer, "first", &json!({"size": 1})).await;
        world.copied(consumer, "first", &json!({"size": 1})).await;
    }
    let simulated = world.stage.simulated();
    for round in 0..3 {
        simulated.state().faults.hangs = true;
        for (at, consumer) in [&one, &two].into_iter().enumerate() {
            for name in (0..30).map(|each| format!("s{round}-{each}")) {
                world.open(consumer, &name, &json!({"size": at})).await;
            }
        }
        eventually("much is under way", SOON, async || {
            let hung = std::mem::take(&mut simulated.state().faults.hung);
            (hung > 0).then_some(()).ok_or(hung)
        })
        .await;
        comes_to_rest("as much as may be", A_WHILE, SOON, async || {
            Ok::<_, String>(simulated.state().faults.hung)
        })
        .await;
        simulated.leaves_out(&[0]);
        eventually("the shard has left", SOON, async || {
            let left = agent.0.log().matches("ShardLeft").count();
            (left > round).then_some(()).ok_or(left)
        })
        .await;
        simulated.state().faults.hangs = false;
        simulated.leaves_out(&[]);
        eventually("all have copies", SOON, async || {
            let copies = [world.copies(&one).await.len(), world.copies(&two).await.len()];
            let expected = 1 + 30 * (round + 1);
            (copies == [expected; 2]).then_some(()).ok_or(format!("{copies:?}"))
        })
        .await;
    }
}

// Found by an audit: a moment without an answer at the start, and the slice was never read again.
#[tokio::test]
async fn a_slice_that_cannot_be_read_at_the_start_is_not_taken_for_none() {
    let world = World::on(Stage::Simulated(Simulated::start(1))).await;
    world.publish(&json!({})).await;
    let mut flags = world.flags();
    flags.retain(|flag| !flag.starts_with("--apiexportendpointslice-ref"));
    flags.push(format!("--apiexport-ref={}", world.export));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let simulated = world.stage.simulated();
    simulated.state().faults.refusals.push(Refusal {
        verb: "get",
        path: "/apiexportendpointslices/",
        code: 503,
        text: "it starts",
        times: 9,
    });
    let mut agent = Agent::of_role("publish", &flags);
    let status = agent.0.wait(SOON).await;
    assert_eq!(status.code(), Some(1), "{}", agent.0.log());
    simulated.state().faults.refusals.clear();
    // Where there is none, one that comes later is found.
    let at = [APIS, "apiexportendpointslices", "", &world.export];
    let mut slice = world
        .provider
        .get(at[0], at[1], at[2], at[3])
        .await
        .expect("it is there");
    world.provider.delete(at[0], at[1], at[2], at[3]).await;
    let mut agent = Agent::of_role("publish", &flags);
    agent.says(&["ExportUnbound"]).await;
    slice["metadata"] = json!({"name": world.export});
    world.provider.create(&slice).await;
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

#[tokio::test]
async fn that_nobody_has_bound_the_export_is_said_where_its_slice_has_no_url() {
    let world = World::on(Stage::Simulated(Simulated::start(1))).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    agent.says(&["ExportUnbound"]).await;
    let consumer = world.consumer("a").await;
    agent.says(&["ExportBound"]).await;
    world.stage.simulated().leaves_out(&[0]);
    eventually("it says so again", SOON, async || {
        let said = agent.0.log().matches("ExportUnbound").count();
        (said == 2).then_some(()).ok_or(said)
    })
    .await;
    world.stage.simulated().leaves_out(&[]);
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

pub(crate) async fn kcp_that_is_away_costs_no_copy_and_what_has_changed_is_caught_up_with(which: Which) {
    let mut world = World::on(Stage::own(which).await).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let mut consumer = world.consumer("a").await;
    for name in ["changes", "goes", "stays"] {
        world.open(&consumer, name, &json!({"size": 1})).await;
        world.copied(&consumer, name, &json!({"size": 1})).await;
    }
    let copy = world.copied(&consumer, "stays", &json!({"size": 1})).await;
    let away = Duration::from_secs(if which == Which::Real { 30 } else { 4 });
    let status = json!({"ready": 7});
    // Written as long as nobody can reach kcp.
    tokio::join!(world.stage.restart(away), world.operate(&copy, &status));
    let still = world.copies(&consumer).await.len();
    assert_eq!(still, 3);
    world.is_back(&mut consumer).await;
    world.edit(&consumer, "changes", &json!({"spec": {"size": 2}})).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "goes").await;
    world.copied(&consumer, "changes", &json!({"size": 2})).await;
    world
        .shows(&consumer, "stays", "has its status", |it| it["status"]["ready"] == 7)
        .await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "goes").await;
    assert!(agent.0.is_running());
    assert_eq!(world.copies(&consumer).await.len(), 2);
}

pub(crate) async fn an_agent_that_is_killed_anywhere_is_finished_by_the_next(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let consumer = world.visitor("a").await;
    let mut agent = world.agent(&[]);
    world.exports(1, 1).await;
    world.bind(&consumer, &[["", "events"]]).await;
    consumer.objects.create(&namespace("shop")).await;
    let names: Vec<String> = (0..6).map(|at| format!("s{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        world.open(&consumer, name, &json!({"size": at})).await;
        agent.0.kill();
        agent = world.agent(&[]);
    }
    for (at, name) in names.iter().enumerate() {
        let copy = world.copied(&consumer, name, &json!({"size": at})).await;
        world.operate(&copy, &json!({"ready": at})).await;
    }
    agent.0.kill();
    for name in &names[..3] {
        consumer.objects.delete(&world.v1(), "shops", "shop", name).await;
    }
    agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", &names[0]).await;
    agent.0.kill();
    let _agent = world.agent(&[]);
    for name in &names[..3] {
        gone(&consumer.objects, &world.v1(), "shops", "shop", name).await;
    }
    for (at, name) in names.iter().enumerate().skip(3) {
        let origin = world
            .shows(&consumer, name, "has its status", |it| it["status"]["ready"] == at)
            .await;
        assert_eq!(origin["metadata"]["finalizers"], json!([FINALIZER]));
    }
    eventually("each has one copy and one state", SOON, async || {
        let found = (world.copies(&consumer).await.len(), world.states(&consumer).await.len());
        (found == (3, 3)).then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
}

pub(crate) async fn probes_and_metrics_say_what_is_published(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let (metrics, health) = (free_port(), free_port());
    let _agent = world.agent(&[
        &format!("--metrics-address=127.0.0.1:{metrics}"),
        &format!("--health-address=127.0.0.1:{health}"),
    ]);
    world.schema_of("shops").await;
    for path in ["/healthz", "/readyz"] {
        eventually(&format!("{path} answers 200"), SOON, async || {
            match fetch(health, path).await {
                Ok((200, _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    let says = async |count: usize| {
        let line = format!("sync_agent_published_resource {count}");
        eventually(&format!("/metrics has {line}"), SOON, async || {
            match fetch(metrics, "/metrics").await {
                Ok((200, text)) if text.lines().any(|one| one == line) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    };
    says(1).await;
    world
        .local
        .delete(SYNCAGENT, "publishedresources", "", &world.name_of("shops"))
        .await;
    says(0).await;
}

pub(crate) async fn a_group_of_the_service_cluster_that_fails_stops_nothing_else(which: Which) {
    let world = World::of(which).await;
    let group = format!("broken.{}", world.group);
    // Nobody serves it.
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")}, "spec": {"group": group, "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 15, "insecureSkipTLSVerify": true,
        "service": {"namespace": "default", "name": "nobody"}}});
    world.local.create(&service).await;
    let broken = json!({"resource": {"apiGroup": group, "kind": "Broken"}});
    world.local.create(&world.published("broken", "Broken", &broken)).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    let name = format!("v1.{group}");
    world
        .local
        .delete("apiregistration.k8s.io/v1", "apiservices", "", &name)
        .await;
}

#[tokio::test]
async fn one_workspace_with_many_objects_keeps_no_other_waiting() {
    const MANY: usize = 300;
    let world = World::of(Which::Simulated).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let [many, few] = [world.consumer("a").await, world.consumer("b").await];
    world.open(&many, "first", &json!({})).await;
    drop(agent);
    let shops: Vec<Value> = (0..MANY).map(|at| world.shop(&format!("s{at}"), &json!({}))).collect();
    in_parallel(shops.iter().map(|shop| many.objects.create(shop)), 8).await;
    world.open(&few, "web", &json!({"size": 1})).await;
    let _agent = world.agent(&[]);
    world.copied(&few, "web", &json!({"size": 1})).await;
    let copies = world.copies(&many).await.len();
    assert!(copies < MANY, "all of the other one had their turn before");
    eventually("all have copies", SOON, async || {
        let copies = world.copies(&many).await.len();
        (copies > MANY).then_some(()).ok_or(copies)
    })
    .await;
}
