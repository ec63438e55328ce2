//! Copies that are written by server-side apply (`--enable-server-side-apply`), as operators such as Crossplane need it.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::objects::secret;
use crate::support::story::becomes;
use crate::world::{Consumer, World, place};

const APPLIES: &str = "--enable-server-side-apply";

/// Who has written what, by manager: the operation and whether it has the field.
fn has(copy: &Value, [manager, operation]: [&str; 2], field: &str) -> bool {
    let all = copy["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut own = all.filter(|entry| entry["manager"] == manager && entry["operation"] == operation);
    own.any(|entry| !entry["fieldsV1"]["f:spec"][format!("f:{field}")].is_null())
}

async fn shows(world: &World, consumer: &Consumer, spec: &Value) -> Value {
    world.copied(consumer, "web", spec).await
}

pub(crate) async fn what_others_add_stays_and_what_the_object_drops_goes(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[APPLIES]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1, "color": "red"})).await;
    let copy = shows(&world, &consumer, &json!({"size": 1, "color": "red"})).await;
    // As Crossplane does with a claim.
    world
        .touch(&copy, &json!({"spec": {"resourceRef": {"name": "composite"}}}))
        .await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    let copy = shows(
        &world,
        &consumer,
        &json!({"size": 2, "color": "red", "resourceRef": {"name": "composite"}}),
    )
    .await;
    let manager = format!("api-syncagent/{}", world.agent_name());
    assert!(has(&copy, [&manager, "Apply"], "size"), "{copy}");
    assert!(!has(&copy, [&manager, "Apply"], "resourceRef"), "{copy}");
    world.edit(&consumer, "web", &json!({"spec": {"color": null}})).await;
    let rest = json!({"size": 2, "resourceRef": {"name": "composite"}});
    let copy = shows(&world, &consumer, &rest).await;
    // Drift stays until kcp changes the field too, and then kcp wins.
    world.touch(&copy, &json!({"spec": {"size": 9}})).await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 3}})).await;
    let copy = shows(
        &world,
        &consumer,
        &json!({"size": 3, "resourceRef": {"name": "composite"}}),
    )
    .await;
    world.operate(&copy, &json!({"ready": 1})).await;
    world
        .shows(&consumer, "web", "has its status", |it| it["status"]["ready"] == 1)
        .await;
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
}

// Found from outside: the server made null of it, and refused that where the type does not allow it.
pub(crate) async fn an_object_that_is_emptied_stays_an_object(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[APPLIES]);
    let consumer = world.consumer("a").await;
    for (name, before, after, change) in [
        (
            "deep",
            json!({"size": 1, "m": {"k": 1}}),
            json!({"size": 1, "m": {}}),
            json!({"m": {"k": null}}),
        ),
        ("whole", json!({"size": 1}), json!({}), json!({"size": null})),
    ] {
        world.open(&consumer, name, &before).await;
        world.copied(&consumer, name, &before).await;
        world.edit(&consumer, name, &json!({"spec": change})).await;
        world.copied(&consumer, name, &after).await;
    }
}

pub(crate) async fn writes_of_before_and_after_the_flag_belong_together(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world
        .open(&consumer, "web", &json!({"size": 1, "color": "red", "tags": ["x"]}))
        .await;
    shows(&world, &consumer, &json!({"size": 1, "color": "red", "tags": ["x"]})).await;
    drop(agent);
    let agent = world.agent(&[APPLIES]);
    // What was written without the flag goes when the object drops it.
    world
        .edit(&consumer, "web", &json!({"spec": {"color": null, "size": 2}}))
        .await;
    shows(&world, &consumer, &json!({"size": 2, "tags": ["x"]})).await;
    drop(agent);
    // And the other way round.
    let _agent = world.agent(&[]);
    world.edit(&consumer, "web", &json!({"spec": {"tags": null}})).await;
    shows(&world, &consumer, &json!({"size": 2})).await;
}

pub(crate) async fn a_related_object_is_applied_too(which: Which) {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    world.allow("keys", rule).await;
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret",
        "object": {"reference": {"path": "spec.secret"}}, "watch": {"bySelector": {"matchLabels": {"a": "b"}}}}]);
    world.publish(&json!({"related": related})).await;
    let _agent = world.agent(&[APPLIES]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let mut shop = world.shop("web", &json!({"secret": "mine"}));
    shop["metadata"]["labels"] = json!({"a": "b"});
    crate::world::create(&consumer.objects, &shop).await;
    let space = place(&world.copied(&consumer, "web", &json!({"secret": "mine"})).await).0;
    let at = ["v1", "secrets", &space, "mine"];
    becomes(&world.local, at, "is there", |it| {
        it["data"]["v"] == secret("", "", "1")["data"]["v"]
    })
    .await;
    let more = json!({"data": {"added": "eA=="}});
    world.local.merge_patch("v1", "secrets", &space, "mine", &more).await;
    let change = json!({"data": {"v": secret("", "", "2")["data"]["v"], "w": "eQ=="}});
    consumer
        .objects
        .merge_patch("v1", "secrets", "shop", "mine", &change)
        .await;
    let new = becomes(&world.local, at, "has the change", |it| it["data"]["w"] == "eQ==").await;
    assert_eq!(
        new["data"],
        json!({"v": change["data"]["v"], "w": "eQ==", "added": "eA=="})
    );
    consumer
        .objects
        .merge_patch("v1", "secrets", "shop", "mine", &json!({"data": {"w": null}}))
        .await;
    becomes(&world.local, at, "has what is left", |it| {
        it["data"] == json!({"v": change["data"]["v"], "added": "eA=="})
    })
    .await;
}
