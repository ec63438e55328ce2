//! The Secrets with the states of objects, and what is written down there of what belongs to them.

use serde_json::{Value, json};

use crate::related::{holds, opened, world};
use crate::stage::Which;
use crate::support::objects::{config_map, secret};
use crate::support::story::{SOON, arrives, becomes, crd, gone};
use crate::support::{Objects, comes_to_rest, eventually};
use crate::world::{A_WHILE, Consumer, FINALIZER, World, create, place};

fn by_template(identifier: &str, template: &str) -> Value {
    json!({"identifier": identifier, "origin": "kcp", "kind": "Secret", "object": {"template": {"template": template}}})
}

fn by_reference(path: &str) -> Value {
    json!({"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": path}}})
}

/// Waits until a Secret of a consumer is let go.
pub(crate) async fn is_free(consumer: &Consumer, name: &str) {
    becomes(&consumer.objects, ["v1", "secrets", "shop", name], "is free", |it| {
        it["metadata"]["finalizers"].is_null()
    })
    .await;
}

async fn is_marked(consumer: &Consumer, name: &str) {
    becomes(&consumer.objects, ["v1", "secrets", "shop", name], "is marked", |it| {
        it["metadata"]["finalizers"] == json!([FINALIZER])
    })
    .await;
}

async fn the_only_state(world: &World, consumer: &Consumer) -> Value {
    eventually("there is one state", SOON, async || {
        let mut states = world.states(consumer).await;
        match states.len() {
            1 => Ok(states.remove(0)),
            _ => Err(format!("{states:?}")),
        }
    })
    .await
}

async fn fills(at: &Objects, name: &str, value: &str) {
    let change = json!({"data": secret("", "", value)["data"]});
    at.merge_patch("v1", "secrets", "shop", name, &change).await;
}

// Issue 45: both had one state, so that the second one was taken for what had come already.
pub(crate) async fn an_object_with_two_places_at_the_other_end_follows_to_both(which: Which) {
    let other = "{{ .Object.spec.secret }}{{ if eq .Side \"service\" }}-too{{ end }}";
    let related = json!([by_reference("spec.secret"), by_template("too", other)]);
    let world = world(which, &related).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "mine"})).await;
    for value in ["1", "2", "3"] {
        fills(&consumer.objects, "mine", value).await;
        world.edit(&consumer, "web", &json!({"spec": {"size": value}})).await;
        for name in ["mine", "mine-too"] {
            holds(&world.local, &space, name, value).await;
        }
    }
    world.closes(&consumer, "web").await;
    for name in ["mine", "mine-too"] {
        gone(&world.local, "v1", "secrets", &space, name).await;
    }
    is_free(&consumer, "mine").await;
}

// Issue 45: what was written down went with the Secret, and the finalizer of what it named stayed.
pub(crate) async fn what_belongs_to_an_object_is_found_again_though_its_state_is_deleted(which: Which) {
    let world = world(which, &json!([by_reference("spec.secret")])).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["one", "two", "three"] {
        consumer.objects.create(&secret("shop", name, name)).await;
    }
    let space = opened(&world, &consumer, "web", &json!({"secret": "one"})).await;
    holds(&world.local, &space, "one", "one").await;
    for (before, after) in [("one", Some("two")), ("two", Some("three")), ("three", None)] {
        is_marked(&consumer, before).await;
        let state = the_only_state(&world, &consumer).await;
        drop(agent);
        let (of_agent, name) = place(&state);
        world.local.delete("v1", "secrets", &of_agent, &name).await;
        world.edit(&consumer, "web", &json!({"spec": {"secret": after}})).await;
        if after.is_none() {
            consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
        }
        agent = world.agent(&[]);
        gone(&world.local, "v1", "secrets", &space, before).await;
        is_free(&consumer, before).await;
        if let Some(after) = after {
            holds(&world.local, &space, after, after).await;
        }
    }
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    drop(agent);
}

// Issue 45: the version is a part of the Secret's name. The former one stayed for ever, and nobody knew what was in it.
pub(crate) async fn a_state_goes_along_when_its_type_is_stored_in_another_version(which: Which) {
    let world = world(which, &json!([])).await;
    let mut carts = crd(&world.group, "carts", true);
    let mut second = carts["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v2"), json!(false));
    carts["spec"]["versions"]
        .as_array_mut()
        .expect("it is a list")
        .push(second);
    world.define_as(&carts).await;
    let more = json!({"resource": {"apiGroup": world.group, "kind": "Cart"}, "related": [by_reference("spec.secret")]});
    world.local.create(&world.published("carts", "Cart", &more)).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["one", "two"] {
        consumer.objects.create(&secret("shop", name, name)).await;
    }
    let cart = json!({"apiVersion": world.v1(), "kind": "Cart", "metadata": {"name": "c", "namespace": "shop"},
        "spec": {"secret": "one"}});
    create(&consumer.objects, &cart).await;
    holds(&world.local, &consumer.id, "one", "one").await;
    is_marked(&consumer, "one").await;
    let before = the_only_state(&world, &consumer).await;
    drop(agent);
    for version in carts["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["storage"] = json!(version["name"] == "v2");
    }
    let versions = json!({"spec": {"versions": carts["spec"]["versions"]}});
    let name = format!("carts.{}", world.group);
    let crds = ["apiextensions.k8s.io/v1", "customresourcedefinitions"];
    world.local.merge_patch(crds[0], crds[1], "", &name, &versions).await;
    let at = [&*world.v1(), "carts", "shop", "c"];
    let change = json!({"spec": {"secret": "two"}});
    consumer.objects.merge_patch(at[0], at[1], at[2], at[3], &change).await;
    let _agent = world.agent(&[]);
    holds(&world.local, &consumer.id, "two", "two").await;
    gone(&world.local, "v1", "secrets", &consumer.id, "one").await;
    is_free(&consumer, "one").await;
    let after = the_only_state(&world, &consumer).await;
    assert_ne!(before["metadata"]["name"], after["metadata"]["name"]);
    consumer.objects.delete(at[0], at[1], at[2], at[3]).await;
    gone(&consumer.objects, at[0], at[1], at[2], at[3]).await;
    is_free(&consumer, "two").await;
    assert!(world.states(&consumer).await.is_empty());
}

pub(crate) async fn a_state_is_read_and_written_once_for_all_that_has_changed(which: Which) {
    let world = world(which, &json!([by_reference("spec.secrets")])).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let names = ["a", "b", "c"];
    for name in names {
        consumer.objects.create(&secret("shop", name, "1")).await;
    }
    let space = opened(&world, &consumer, "web", &json!({"secrets": names})).await;
    for name in names {
        holds(&world.local, &space, name, "1").await;
    }
    let state = the_only_state(&world, &consumer).await;
    drop(agent);
    for name in names {
        fills(&consumer.objects, name, "2").await;
    }
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    let mark = world.service.audit_mark();
    let _agent = world.agent(&[]);
    for name in names {
        holds(&world.local, &space, name, "2").await;
    }
    let (_, name) = place(&state);
    let asked = async || {
        let all = world.service.requests_since("edge-syncer", mark);
        let of_state = all.into_iter().filter(|event| event.uri.contains(&*name));
        of_state.map(|event| event.verb).collect::<Vec<_>>()
    };
    eventually("the state is written", SOON, async || {
        let asked = asked().await;
        let is_written = asked.iter().any(|verb| verb == "update");
        is_written.then_some(()).ok_or(asked.join(" "))
    })
    .await;
    // It is read once more after some time, and not written.
    let all = comes_to_rest("that is all", A_WHILE, SOON, async || Ok::<_, String>(asked().await)).await;
    let (before, after) = all.split_at(2);
    assert_eq!(before, ["get", "update"], "{all:?}");
    assert!(after.iter().all(|verb| verb == "get"), "{all:?}");
}

// Issue 45: it was refused for ever, and the status never went back.
pub(crate) async fn more_state_than_a_secret_holds_is_said_and_the_status_goes_back(which: Which) {
    const MUCH: usize = 600 << 10;
    let related = json!({"identifier": "map", "origin": "kcp", "kind": "ConfigMap",
        "object": {"reference": {"path": "spec.map"}}});
    let world = world(which, &json!([related])).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let map = config_map("shop", "mine", json!({"much": "x".repeat(MUCH)}));
    consumer.objects.create(&map).await;
    let spec = json!({"map": "mine", "much": "y".repeat(MUCH)});
    world.open(&consumer, "web", &spec).await;
    let copy = world.copied(&consumer, "web", &spec).await;
    arrives(&world.local, "v1", "configmaps", &place(&copy).0, "mine").await;
    agent
        .says(&["ObjectFailed", "writing the state Secret", "a Secret holds 1 MiB"])
        .await;
    world.operate(&copy, &json!({"ready": 1})).await;
    world
        .shows(&consumer, "web", "has its status", |it| it["status"]["ready"] == 1)
        .await;
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
}
