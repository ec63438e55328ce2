//! Objects and their copies: scenarios A11 and A13 to A18.

use serde_json::{Value, json};

use crate::of_role::Agent;
use crate::simulated::Refusal;
use crate::stage::Which;
use crate::support::story::{SOON, gone};
use crate::support::{comes_to_rest, eventually, holds_throughout};
use crate::world::{A_WHILE, Consumer, FINALIZER, World, create, place};

/// An object of one consumer that has its copy.
async fn synced(which: Which) -> (World, Agent, Consumer, Value) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    (world, agent, consumer, copy)
}

pub(crate) async fn two_workspaces_may_have_objects_of_one_name(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let long = "n".repeat(253);
    let consumers = [world.consumer("a").await, world.consumer("b").await];
    for (size, consumer) in consumers.iter().enumerate() {
        for name in ["web", &long] {
            world.open(consumer, name, &json!({"size": size})).await;
        }
    }
    let mut names = Vec::new();
    for (size, consumer) in consumers.iter().enumerate() {
        for name in ["web", &long] {
            let copy = world.copied(consumer, name, &json!({"size": size})).await;
            let (space, name) = place(&copy);
            assert_eq!(space, consumer.id);
            names.push(name);
        }
    }
    // Hashes of namespace and name.
    assert_eq!(names[0], names[2]);
    assert_ne!(names[0], names[1]);
    assert!(names[0].len() == 41, "{}", names[0]);
}

pub(crate) async fn what_others_change_in_a_copy_stays_until_kcp_changes_it_too(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1, "color": "red"})).await;
    let copy = world
        .copied(&consumer, "web", &json!({"size": 1, "color": "red"}))
        .await;
    world.touch(&copy, &json!({"spec": {"size": 5, "note": "own"}})).await;
    world.edit(&consumer, "web", &json!({"spec": {"color": "blue"}})).await;
    world
        .copied(&consumer, "web", &json!({"size": 5, "color": "blue", "note": "own"}))
        .await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    world
        .copied(&consumer, "web", &json!({"size": 2, "color": "blue", "note": "own"}))
        .await;
    let origin = world.origin(&consumer, "web").await;
    assert_eq!(origin["spec"], json!({"size": 2, "color": "blue"}));
}

pub(crate) async fn a_status_goes_back(which: Which) {
    let (world, _agent, consumer, copy) = synced(which).await;
    for status in [json!({"ready": 1}), json!({"ready": 2, "note": "x"})] {
        world.operate(&copy, &status).await;
        world
            .shows(&consumer, "web", "has its status", |it| {
                it["status"]["ready"] == status["ready"]
            })
            .await;
    }
    let origin = world.origin(&consumer, "web").await;
    assert_eq!(origin["status"], json!({"ready": 2, "note": "x"}));
    assert_eq!(origin["metadata"]["finalizers"], json!([FINALIZER]));
}

// Issue 45: the object was read before its status was written, and once more because it had been written.
pub(crate) async fn a_status_that_changes_is_one_request_to_the_workspace(which: Which) {
    let (world, _agent, consumer, copy) = synced(which).await;
    let asked = async || {
        let requests = world
            .requests()
            .into_iter()
            .filter(|event| event.uri.contains("/shops/web"));
        Ok::<_, String>(requests.map(|event| (event.verb, event.uri)).collect::<Vec<_>>())
    };
    let before = comes_to_rest("nothing is asked", A_WHILE, SOON, asked).await;
    for ready in 1..=3 {
        world.operate(&copy, &json!({"ready": ready})).await;
        world
            .shows(&consumer, "web", "has its status", |it| it["status"]["ready"] == ready)
            .await;
    }
    let after = comes_to_rest("nothing is asked", A_WHILE, SOON, asked).await;
    let new = &after[before.len()..];
    let is_write = |(verb, uri): &(String, String)| verb == "patch" && uri.contains("/shops/web/status");
    assert!(new.len() == 3 && new.iter().all(is_write), "{new:?}");
    let origin = world.origin(&consumer, "web").await;
    assert_eq!(
        (&origin["status"]["ready"], &origin["spec"]["size"]),
        (&json!(3), &json!(1))
    );
}

pub(crate) async fn an_object_goes_after_its_copy(which: Which) {
    let (world, _agent, consumer, copy) = synced(which).await;
    // One that is deleted comes back.
    let (space, name) = place(&copy);
    world.local.delete(&world.v1(), "shops", &space, &name).await;
    let uid = &copy["metadata"]["uid"];
    let copy = world
        .copy(&consumer, "web", "is a new one", |copy| copy["metadata"]["uid"] != *uid)
        .await;
    world
        .touch(&copy, &json!({"metadata": {"finalizers": ["example.org/held"]}}))
        .await;
    assert_eq!(world.states(&consumer).await.len(), 1);
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    world
        .copy(&consumer, "web", "is being deleted", |copy| {
            !copy["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    holds_throughout("the object waits for its copy", A_WHILE, async || {
        let origin = world.origin(&consumer, "web").await;
        (origin["metadata"]["finalizers"] == json!([FINALIZER]))
            .then_some(())
            .ok_or(origin)
    })
    .await;
    world.touch(&copy, &json!({"metadata": {"finalizers": null}})).await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    world.has_no_copies(&consumer).await;
    eventually("its state goes", SOON, async || {
        let left = world.states(&consumer).await.len();
        (left == 0).then_some(()).ok_or(left)
    })
    .await;
}

pub(crate) async fn a_state_that_is_lost_is_made_again(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1, "color": "red"})).await;
    let copy = world
        .copied(&consumer, "web", &json!({"size": 1, "color": "red"}))
        .await;
    let states = eventually("there is a state", SOON, async || {
        let states = world.states(&consumer).await;
        (states.len() == 1).then_some(states).ok_or("there is none")
    })
    .await;
    let (space, name) = place(&states[0]);
    world.local.delete("v1", "secrets", &space, &name).await;
    world.touch(&copy, &json!({"spec": {"size": 9}})).await;
    world.edit(&consumer, "web", &json!({"spec": {"color": "blue"}})).await;
    // Nobody knows what has changed: all of it is written.
    world
        .copied(&consumer, "web", &json!({"size": 1, "color": "blue"}))
        .await;
    eventually("the state is there again", SOON, async || {
        let states = world.states(&consumer).await;
        (states.len() == 1 && states[0]["data"].as_object().is_some_and(|data| data.len() == 1))
            .then_some(())
            .ok_or(format!("{states:?}"))
    })
    .await;
}

pub(crate) async fn a_copy_that_loses_its_marks_is_found_or_adopted(which: Which) {
    let (world, _agent, consumer, copy) = synced(which).await;
    let marks = [
        "remote-object-cluster",
        "remote-object-name-hash",
        "remote-object-namespace-hash",
        "agent-name",
    ];
    let texts = ["remote-object-name", "remote-object-namespace"];
    let nothing = |names: &[&str]| -> Value {
        let all = names
            .iter()
            .map(|name| (format!("syncagent.kcp.io/{name}"), Value::Null));
        Value::Object(all.collect())
    };
    for lost in [
        json!({"annotations": nothing(&texts)}),
        json!({"labels": nothing(&marks[..1])}),
        json!({"labels": nothing(&marks)}),
        json!({"labels": nothing(&marks), "annotations": nothing(&texts)}),
    ] {
        world.touch(&copy, &json!({"metadata": lost})).await;
        let now = world
            .copy(&consumer, "web", "has its marks", |copy| {
                let labels = &copy["metadata"]["labels"];
                marks
                    .iter()
                    .all(|mark| labels[format!("syncagent.kcp.io/{mark}")].is_string())
            })
            .await;
        assert_eq!(now["metadata"]["uid"], copy["metadata"]["uid"], "{lost}");
        let all = world.local.list(&world.v1(), "shops", "", "").await;
        assert_eq!(all.len(), 1, "there is no second one");
    }
}

pub(crate) async fn an_object_that_is_there_already_becomes_the_copy(which: Which) {
    let world = World::of(which).await;
    world
        .publish(&json!({"naming": {"name": "{{ .Object.metadata.name }}", "namespace": world.space}}))
        .await;
    let mut before = world.shop("web", &json!({"size": 9, "color": "old", "own": true}));
    before["metadata"]["namespace"] = json!(world.space);
    let before = world.local.create(&before).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1, "color": "red"})).await;
    let copy = world
        .copy(&consumer, "web", "has what is wanted", |copy| {
            copy["spec"]["size"] == 1 && copy["spec"]["color"] == "red"
        })
        .await;
    assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"]);
    // That of another object is not taken.
    let other = world.consumer("b").await;
    world.open(&other, "web", &json!({"size": 2})).await;
    holds_throughout("the first one keeps its copy", A_WHILE, async || {
        let taken = world.copies(&other).await.len();
        let kept = world.copies(&consumer).await;
        let is_kept = taken == 0 && kept.len() == 1 && kept[0]["spec"]["size"] == 1;
        is_kept.then_some(()).ok_or(format!("{kept:?}"))
    })
    .await;
}

pub(crate) async fn a_type_without_a_status_subresource_is_no_trouble(which: Which) {
    let world = World::of(which).await;
    let plain = crate::support::story::crd_without_status(&world.group, "plains", true);
    world.define_as(&plain).await;
    world
        .local
        .create(&world.published("plains", "Plain", &json!({})))
        .await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let plain = json!({"apiVersion": world.v1(), "kind": "Plain", "metadata": {"name": "p", "namespace": "shop"},
        "spec": {"size": 1}, "status": {"by": "consumer"}});
    world.schema_of("plains").await;
    create(&consumer.objects, &plain).await;
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    eventually("its copy is there", SOON, async || {
        let all = world.local.list(&world.v1(), "plains", "", &of).await;
        // It is a field like any other.
        let is_it = all.len() == 1 && all[0]["status"]["by"] == "consumer";
        is_it.then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    let requests = world.requests();
    assert!(
        !requests.iter().any(|event| event.uri.contains("/p/status")),
        "{requests:?}"
    );
    assert!(
        !agent.0.log().contains("not in sync") && agent.0.is_running(),
        "{}",
        agent.0.log()
    );
}

pub(crate) async fn objects_in_no_namespace_have_copies_too(which: Which) {
    let world = World::of(which).await;
    world.define("sites", false).await;
    // All tenants have one namespace there, which is none: their names have to differ.
    let naming = json!({"naming": {"name": "{{ .ClusterName }}-{{ .Object.metadata.name }}"}});
    world.local.create(&world.published("sites", "Site", &naming)).await;
    // In kcp it is in no namespace, and its copies are in that of the workspace.
    world.publish(&json!({"projection": {"scope": "Cluster"}})).await;
    let _agent = world.agent(&[]);
    world.exports(2, 1).await;
    let consumers = [world.consumer("a").await, world.consumer("b").await];
    for (size, consumer) in consumers.iter().enumerate() {
        for kind in ["Site", "Shop"] {
            let object = json!({"apiVersion": world.v1(), "kind": kind, "metadata": {"name": "web"},
                "spec": {"size": size}});
            create(&consumer.objects, &object).await;
        }
        world.copied(consumer, "web", &json!({"size": size})).await;
        let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
        eventually("its site is there", SOON, async || {
            let all = world.local.list(&world.v1(), "sites", "", &of).await;
            let is_it = all.len() == 1 && all[0]["spec"]["size"] == size;
            is_it.then_some(()).ok_or(format!("{all:?}"))
        })
        .await;
    }
}

pub(crate) async fn a_consumer_sees_what_has_become_of_an_object_and_nothing_of_the_provider(which: Which) {
    let world = World::of(which).await;
    world
        .publish(&json!({"naming": {"name": "{{ .Object.spec.called | lower }}-hidden" }}))
        .await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "wrong", &json!({"size": 1})).await;
    world.open(&consumer, "right", &json!({"called": "web"})).await;
    for (name, reason) in [
        ("wrong", "ReconcilingError"),
        ("right", "ObjectAccepted"),
        ("right", "ObjectPlaced"),
    ] {
        eventually(&format!("there is an Event {reason}"), SOON, async || {
            let all = consumer.objects.list("v1", "events", "shop", "").await;
            let is_it = |event: &&Value| event["reason"] == reason && event["involvedObject"]["name"] == name;
            all.iter().find(is_it).map(|_| ()).ok_or(format!("{all:?}"))
        })
        .await;
    }
    let all = consumer.objects.list("v1", "events", "shop", "").await;
    for event in &all {
        let text = event["message"].to_string();
        assert!(!text.contains("hidden") && !text.contains("lower"), "{event}");
    }
    // Whoever runs it sees all of it.
    agent.says(&["ObjectFailed", "wrong", "lower"]).await;
}

#[tokio::test]
async fn a_type_that_a_workspace_serves_late_is_waited_for() {
    let world = World::of(Which::Simulated).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    // The wildcard shows it already; its own workspace does not for a while.
    for (verb, times) in [("patch", 2), ("get", 3)] {
        let refusal = Refusal {
            verb,
            path: "/shops/web",
            code: 404,
            text: "404 page not found\n",
            times,
        };
        world.stage.simulated().state().faults.refusals.push(refusal);
    }
    // As its consumer sees it, nothing is refused.
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

// Issue 45: a delete that had begun before the finalizer was added takes the object away; its copy and state were left.
pub(crate) async fn what_goes_without_waiting_takes_the_copy_that_was_just_made_along(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["web", "stays"] {
        world.open(&consumer, name, &json!({"size": 1})).await;
        world.copied(&consumer, name, &json!({"size": 1})).await;
    }
    agent.0.signal("STOP");
    world
        .edit(&consumer, "web", &json!({"metadata": {"finalizers": null}}))
        .await;
    world.closes(&consumer, "web").await;
    agent.0.signal("CONT");
    eventually("copy and state are gone", SOON, async || {
        let (copies, states) = (world.copies(&consumer).await, world.states(&consumer).await.len());
        let names: Vec<_> = copies.iter().map(|copy| copy["metadata"]["name"].clone()).collect();
        (copies.len() == 1 && states == 1)
            .then_some(())
            .ok_or(format!("{names:?}, {states} states"))
    })
    .await;
    // The name is free.
    world.open(&consumer, "web", &json!({"size": 2})).await;
    world.copied(&consumer, "web", &json!({"size": 2})).await;
    world.copied(&consumer, "stays", &json!({"size": 1})).await;
}
