//! The end of objects whose workspace, service cluster, or rules are not as they were: nothing keeps one for ever.

use serde_json::{Value, json};

use crate::hostile::is_notified;
use crate::related::{holds, opened, world};
use crate::simulated::Refusal;
use crate::stage::Which;
use crate::support::eventually;
use crate::support::objects::{namespace, secret};
use crate::support::story::{SOON, arrives, gone, remains};
use crate::world::{APIS, Consumer, World, place};

pub(crate) async fn an_object_ends_though_the_claim_for_what_it_names_is_not_accepted(which: Which) {
    let keys = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}});
    let labelled = json!({"identifier": "labelled", "origin": "kcp", "kind": "Secret", "object": {"selector": {
        "matchLabels": {"of": "web"}, "rewrite": {"regex": {"pattern": "x", "replacement": "y"}}}}});
    let world = world(which, &json!([keys, labelled])).await;
    let agent = world.agent(&[]);
    let consumer = world.visitor("shy").await;
    world.bind(&consumer, &[["", "events"]]).await;
    consumer.objects.create(&namespace("shop")).await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    for name in ["one", "two"] {
        world.open(&consumer, name, &json!({"secret": "mine"})).await;
        world.copied(&consumer, name, &json!({"secret": "mine"})).await;
    }
    world.closes(&consumer, "one").await;
    drop(agent);
    consumer.objects.delete(&world.v1(), "shops", "shop", "two").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "two").await;
    world.has_no_copies(&consumer).await;
    let mine = arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    assert!(mine["metadata"]["finalizers"].is_null(), "{mine}");
}

pub(crate) async fn an_object_ends_though_the_path_of_its_workspace_is_not_shown_any_more(which: Which) {
    let keys = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}});
    let world = world(which, &json!([keys])).await;
    world.republish(&json!({"enableWorkspacePaths": true})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "mine"})).await;
    holds(&world.local, &space, "mine", "1").await;
    drop(agent);
    rejects_paths(&world, &consumer.objects).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    gone(&world.local, "v1", "secrets", &space, "mine").await;
    world.has_no_copies(&consumer).await;
    let mine = arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    assert!(mine["metadata"]["finalizers"].is_null(), "{mine}");
}

async fn rejects_paths(world: &World, at: &crate::support::Objects) {
    let claim = |resource: &str| json!({"resource": resource, "all": true, "state": "Accepted"});
    let mut claims: Vec<_> = ["events", "namespaces", "secrets", "configmaps"].map(claim).into();
    claims.push(json!({"group": "core.kcp.io", "resource": "logicalclusters", "all": true, "state": "Rejected"}));
    let patch = json!({"spec": {"permissionClaims": claims}});
    at.merge_patch(APIS, "apibindings", "", &world.export, &patch).await;
}

// Issue 45: of two kcps, each may have a cluster of the same name.
pub(crate) async fn the_copy_of_another_agent_stays_when_an_object_ends(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"size": 1});
    world.open(&consumer, "web", &spec).await;
    let copy = world.copied(&consumer, "web", &spec).await;
    drop(agent);
    let label = json!({"metadata": {"labels": {"syncagent.kcp.io/agent-name": "of-another-kcp"}}});
    world.touch(&copy, &label).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let mut agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    let (space, name) = place(&copy);
    remains(&world.local, &world.v1(), "shops", &space, &name).await;
    agent.says(&["CopyLeft", "web", "another agent's"]).await;
}

// Two agents with the same PublishedResources took each other's copies, and nobody said so.
pub(crate) async fn a_copy_that_another_agent_takes_is_said_and_made_its_own_again(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"size": 1});
    world.open(&consumer, "web", &spec).await;
    let copy = world.copied(&consumer, "web", &spec).await;
    let label = json!({"metadata": {"labels": {"syncagent.kcp.io/agent-name": "of-somebody"}}});
    world.touch(&copy, &label).await;
    let words = [
        "ObjectFailed",
        "web",
        "the agent of-somebody has taken it",
        "--published-resource-selector",
    ];
    agent.says(&words).await;
    world
        .copy(&consumer, "web", "is its copy again", |it| {
            it["metadata"]["labels"]["syncagent.kcp.io/agent-name"] == *world.agent_name()
        })
        .await;
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
}

/// Waits until so many states of a workspace's objects are kept.
async fn has_states(world: &World, consumer: &Consumer, count: usize) {
    eventually("the states are as many as they should be", SOON, async || {
        let states = world.states(consumer).await;
        (states.len() == count).then_some(()).ok_or(format!("{states:#?}"))
    })
    .await;
}

/// How an object goes without the agent.
#[derive(Clone, Copy, Debug)]
enum Goes {
    /// The agent hears of its end last.
    Unheard,
    /// The same, and somebody has deleted its copy.
    AfterItsCopy,
    /// Its copy is being deleted.
    BesideItsCopy,
}

// The state stayed for ever, with the finalizer and the copy of what belonged to the object.
pub(crate) async fn an_object_that_does_not_wait_leaves_neither_state_nor_finalizer(which: Which) {
    let keys = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}});
    let world = world(which, &json!([keys])).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let at = (&world.v1(), &consumer.objects);
    for (name, goes) in [
        ("unheard", Goes::Unheard),
        ("after", Goes::AfterItsCopy),
        ("beside", Goes::BesideItsCopy),
    ] {
        consumer.objects.create(&secret("shop", name, "1")).await;
        let space = opened(&world, &consumer, name, &json!({"secret": name})).await;
        holds(&world.local, &space, name, "1").await;
        has_states(&world, &consumer, 1).await;
        let copy = world.copied(&consumer, name, &json!({"secret": name})).await;
        let of_operator = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        match goes {
            Goes::Unheard => agent.0.signal("STOP"),
            Goes::AfterItsCopy => {
                agent.0.signal("STOP");
                let (space, name) = place(&copy);
                world.local.delete(&world.v1(), "shops", &space, &name).await;
            }
            Goes::BesideItsCopy => drop(world.touch(&copy, &of_operator(json!(["example.org/slow"]))).await),
        }
        at.1.delete(at.0, "shops", "shop", name).await;
        if let Goes::BesideItsCopy = goes {
            let is_so = |it: &Value| !it["metadata"]["deletionTimestamp"].is_null();
            world.copy(&consumer, name, "is being deleted", is_so).await;
        }
        world.edit(&consumer, name, &of_operator(Value::Null)).await;
        gone(at.1, at.0, "shops", "shop", name).await;
        agent.0.signal("CONT");
        gone(&world.local, "v1", "secrets", &space, name).await;
        crate::states::is_free(&consumer, name).await;
        has_states(&world, &consumer, 0).await;
        if let Goes::BesideItsCopy = goes {
            world.touch(&copy, &of_operator(Value::Null)).await;
        }
        world.has_no_copies(&consumer).await;
    }
}

// The copy stayed silently, and the consumer's Secret kept the finalizer for ever.
pub(crate) async fn a_copy_whose_object_went_unseen_is_said_and_its_end_frees_what_that_named(which: Which) {
    let keys = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}});
    let world = world(which, &json!([keys])).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let spec = json!({"secret": "mine"});
    let space = opened(&world, &consumer, "web", &spec).await;
    holds(&world.local, &space, "mine", "1").await;
    let copy = world.copied(&consumer, "web", &spec).await;
    drop(agent);
    let (version, objects) = (world.v1(), &consumer.objects);
    objects.delete(&version, "shops", "shop", "web").await;
    world
        .edit(&consumer, "web", &json!({"metadata": {"finalizers": null}}))
        .await;
    gone(objects, &version, "shops", "shop", "web").await;
    let mut agent = world.agent(&[]);
    let (space, name) = place(&copy);
    let words = [
        "CopyLeft",
        "web",
        &space,
        "its workspace has no object of this name",
        "delete the copy",
    ];
    agent.says(&words).await;
    remains(&world.local, &version, "shops", &space, &name).await;
    world.local.delete(&version, "shops", &space, &name).await;
    gone(&world.local, "v1", "secrets", &space, "mine").await;
    crate::states::is_free(&consumer, "mine").await;
    has_states(&world, &consumer, 0).await;
    assert_eq!(agent.0.log().matches("CopyLeft").count(), 1);
}

// Issue 45: what could not be read was taken for something that is still there.
#[tokio::test]
async fn an_object_ends_though_nothing_that_is_claimed_may_be_read() {
    let keys = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}});
    let world = world(Which::Simulated, &json!([keys])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    for (code, text) in [(403, "forbidden: access denied\n"), (404, "404 page not found\n")] {
        let refusal = Refusal {
            verb: "get",
            path: "/secrets/mine",
            code,
            text,
            times: usize::MAX,
        };
        world.stage.simulated().state().faults.refusals = vec![refusal];
        let name = format!("web-{code}");
        world.open(&consumer, &name, &json!({"secret": "mine"})).await;
        is_notified(&consumer, &name).await;
        // The Event says at which object, for those that ask by UID.
        let uid = world.origin(&consumer, &name).await["metadata"]["uid"].clone();
        let events = consumer.objects.list("v1", "events", "shop", "").await;
        let mut failures = events.iter().filter(|event| event["reason"] == "ReconcilingError");
        assert!(
            failures.any(|event| event["involvedObject"]["uid"] == uid),
            "{events:?}"
        );
        world.closes(&consumer, &name).await;
    }
    world.has_no_copies(&consumer).await;
}
