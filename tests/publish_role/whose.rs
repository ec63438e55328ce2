//! Whose an object is: what nobody but its owner may overwrite, delete or get, whatever names and labels say.

use serde_json::{Value, json};

use crate::hostile::is_notified;
use crate::related::{holds, opened, world};
use crate::stage::Which;
use crate::support::eventually;
use crate::support::objects::{namespace, secret};
use crate::support::story::{SOON, arrives, becomes, gone, remains};
use crate::world::{World, create, place};

/// A Secret that a field of a shop names: the one of the provider, which goes with the shop.
fn of_provider(path: &str) -> Value {
    json!({"identifier": path, "origin": "service", "kind": "Secret", "cleanup": true,
        "object": {"reference": {"path": format!("spec.{path}")}}})
}

fn of_consumer(path: &str) -> Value {
    json!({"identifier": path, "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": format!("spec.{path}")}}})
}

pub(crate) async fn what_a_consumer_has_made_is_not_overwritten_nor_deleted(which: Which) {
    let world = world(which, &json!([of_provider("out")])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let space = opened(&world, &consumer, "first", &json!({"size": 1})).await;
    consumer.objects.create(&secret("shop", "mine", "precious")).await;
    world.local.create(&secret(&space, "mine", "theirs")).await;
    opened(&world, &consumer, "web", &json!({"out": "mine"})).await;
    is_notified(&consumer, "web").await;
    world.closes(&consumer, "web").await;
    holds(&consumer.objects, "shop", "mine", "precious").await;
    // Once there is room for it, it comes, and goes with its object.
    opened(&world, &consumer, "web", &json!({"out": "mine"})).await;
    consumer.objects.delete("v1", "secrets", "shop", "mine").await;
    holds(&consumer.objects, "shop", "mine", "theirs").await;
    world.closes(&consumer, "web").await;
    gone(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    arrives(&world.local, "v1", "secrets", &space, "mine").await;
}

pub(crate) async fn what_has_come_from_a_workspace_does_not_go_back_there(which: Which) {
    let world = world(which, &json!([of_consumer("secret"), of_provider("out")])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "both", "precious")).await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "both", "out": "both"})).await;
    holds(&world.local, &space, "both", "precious").await;
    is_notified(&consumer, "web").await;
    world.closes(&consumer, "web").await;
    let left = holds(&consumer.objects, "shop", "both", "precious").await;
    assert!(left["metadata"]["finalizers"].is_null(), "{left}");
    gone(&world.local, "v1", "secrets", &space, "both").await;
}

pub(crate) async fn objects_of_two_namespaces_do_not_share_what_belongs_to_one(which: Which) {
    let world = world(which, &json!([of_consumer("secret")])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "same", "first")).await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "same"})).await;
    holds(&world.local, &space, "same", "first").await;
    consumer.objects.create(&namespace("other")).await;
    consumer.objects.create(&secret("other", "same", "second")).await;
    let mut shop = world.shop("theirs", &json!({"secret": "same"}));
    shop["metadata"]["namespace"] = json!("other");
    create(&consumer.objects, &shop).await;
    eventually("that is said", SOON, async || {
        let all = consumer.objects.list("v1", "events", "other", "").await;
        let is_it = |event: &Value| event["reason"] == "ReconcilingError";
        all.iter().any(is_it).then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    holds(&world.local, &space, "same", "first").await;
    consumer.objects.delete(&world.v1(), "shops", "other", "theirs").await;
    gone(&consumer.objects, &world.v1(), "shops", "other", "theirs").await;
    holds(&world.local, &space, "same", "first").await;
    // An object may name another one than before, of which the copy has the same name.
    world.closes(&consumer, "web").await;
    gone(&world.local, "v1", "secrets", &space, "same").await;
}

pub(crate) async fn of_several_that_are_labelled_as_a_copy_none_is_written_or_deleted(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"size": 1});
    world.open(&consumer, "web", &spec).await;
    let copy = world.copied(&consumer, "web", &spec).await;
    let space = world.name_of("clones");
    world.local.create(&namespace(&space)).await;
    let mut clone = copy.clone();
    clone["metadata"] = json!({"name": "clone", "namespace": space,
        "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"]});
    clone["spec"] = json!({"size": 7});
    world.local.create(&clone).await;
    is_notified(&consumer, "web").await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let (at, name) = place(&copy);
    remains(&world.local, &world.v1(), "shops", &at, &name).await;
    for (space, name, size) in [(&*at, &*name, 1), (&*space, "clone", 7)] {
        let found = arrives(&world.local, &world.v1(), "shops", space, name).await;
        assert_eq!(found["spec"]["size"], size, "{found}");
        assert!(found["metadata"]["deletionTimestamp"].is_null(), "{found}");
    }
    let label = json!({"metadata": {"labels": {"syncagent.kcp.io/remote-object-cluster": null}}});
    world
        .local
        .merge_patch(&world.v1(), "shops", &space, "clone", &label)
        .await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    gone(&world.local, &world.v1(), "shops", &at, &name).await;
    arrives(&world.local, &world.v1(), "shops", &space, "clone").await;
}

pub(crate) async fn a_secret_that_is_called_as_a_state_is_not_touched(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"size": 1});
    opened(&world, &consumer, "web", &spec).await;
    let state = eventually("there is a state", SOON, async || {
        world.states(&consumer).await.pop().ok_or("there is none")
    })
    .await;
    let (space, name) = place(&state);
    world.closes(&consumer, "web").await;
    gone(&world.local, "v1", "secrets", &space, &name).await;
    world.local.create(&secret(&space, &name, "theirs")).await;
    world.open(&consumer, "web", &spec).await;
    is_notified(&consumer, "web").await;
    holds(&world.local, &space, &name, "theirs").await;
    world.local.delete("v1", "secrets", &space, &name).await;
    becomes(&world.local, ["v1", "secrets", &space, &name], "is the state", |it| {
        it["metadata"]["labels"]["syncagent.kcp.io/object-state"] == "true"
    })
    .await;
    world.closes(&consumer, "web").await;
}

pub(crate) async fn an_object_of_many_elements_has_a_copy_like_any_other(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"many": vec![0; 200_000]});
    world.open(&consumer, "web", &spec).await;
    world
        .copy(&consumer, "web", "has all of it", |copy| {
            copy["spec"]["many"]
                .as_array()
                .is_some_and(|many| many.len() == 200_000)
        })
        .await;
    world.closes(&consumer, "web").await;
}
