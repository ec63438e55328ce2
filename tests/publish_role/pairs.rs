//! What belongs to an object, one by one: what is said of each, and that each is on its own.

use serde_json::{Value, json};

use crate::hostile::is_notified;
use crate::related::{holds, opened, world};
use crate::stage::Which;
use crate::support::objects::{namespace, secret};
use crate::support::story::{SOON, arrives};
use crate::support::{Objects, eventually, holds_throughout};
use crate::world::{A_WHILE, APIS, World};

fn by_reference(identifier: &str, origin: &str, path: &str) -> Value {
    json!({"identifier": identifier, "origin": origin, "kind": "Secret", "object": {"reference": {"path": path}}})
}

// Issue 45: what was not there had an annotation too, and counted.
pub(crate) async fn only_what_is_there_is_named_at_the_object(which: Which) {
    let world = world(which, &json!([by_reference("keys", "service", "spec.keys")])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let space = opened(&world, &consumer, "web", &json!({"keys": ["a", "b", "c"]})).await;
    let names = async |size: u32, change: Value, expected: &[&str]| {
        world.edit(&consumer, "web", &json!({"spec": {"size": size}})).await;
        world.edit(&consumer, "web", &change).await;
        world
            .shows(&consumer, "web", &format!("names {expected:?}"), |it| {
                let all = it["metadata"]["annotations"].as_object().into_iter().flatten();
                let named = all.filter_map(|(key, named)| {
                    let index = key.strip_prefix("related-resources.syncagent.kcp.io/keys.")?;
                    let named: Value = serde_json::from_str(named.as_str()?).ok()?;
                    Some(format!("{index} {}", named["name"].as_str()?))
                });
                named.collect::<Vec<_>>() == expected
            })
            .await;
    };
    world.local.create(&secret(&space, "b", "1")).await;
    names(1, json!({}), &["0 b"]).await;
    world.local.create(&secret(&space, "a", "1")).await;
    names(2, json!({}), &["0 a", "1 b"]).await;
    names(3, json!({"spec": {"keys": ["b", "c"]}}), &["0 b"]).await;
    world.republish(&json!({"related": null})).await;
    names(4, json!({}), &[]).await;
}

/// The Events of a Secret of a consumer.
async fn reasons(at: &Objects, name: &str) -> Vec<String> {
    let mut all = at.list("v1", "events", "shop", "").await;
    all.retain(|event| event["involvedObject"]["kind"] == "Secret" && event["involvedObject"]["name"] == name);
    let mut reasons: Vec<String> = all
        .iter()
        .filter_map(|event| event["reason"].as_str().map(str::to_owned))
        .collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

pub(crate) async fn what_becomes_of_a_related_object_is_said_at_it(which: Which) {
    let related = [
        by_reference("in", "kcp", "spec.in"),
        by_reference("out", "service", "spec.out"),
    ];
    let world = world(which, &json!(related)).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "in", "1")).await;
    let space = opened(&world, &consumer, "web", &json!({"in": "in", "out": "out"})).await;
    holds(&world.local, &space, "in", "1").await;
    // Its own Events lead to another look, without an edit.
    world.local.create(&secret(&space, "out", "1")).await;
    holds(&consumer.objects, "shop", "out", "1").await;
    let change = json!({"data": secret("", "", "2")["data"]});
    consumer
        .objects
        .merge_patch("v1", "secrets", "shop", "in", &change)
        .await;
    world.local.merge_patch("v1", "secrets", &space, "out", &change).await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    holds(&world.local, &space, "in", "2").await;
    holds(&consumer.objects, "shop", "out", "2").await;
    for (name, expected) in [
        ("in", &["ObjectAccepted", "ObjectPlaced", "ObjectSynced"][..]),
        ("out", &["ObjectPlaced", "ObjectSynced"]),
    ] {
        eventually(&format!("{name} has its Events"), SOON, async || {
            let reasons = reasons(&consumer.objects, name).await;
            (reasons == expected).then_some(()).ok_or(reasons.join(" "))
        })
        .await;
    }
}

pub(crate) async fn one_that_fails_holds_up_no_other(which: Which) {
    let related = [
        by_reference("keys", "kcp", "spec.keys"),
        by_reference("more", "kcp", "spec.more"),
    ];
    let world = world(which, &json!(related)).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.local.create(&namespace(&consumer.id)).await;
    world.local.create(&secret(&consumer.id, "a", "theirs")).await;
    for name in ["a", "b", "c"] {
        consumer.objects.create(&secret("shop", name, name)).await;
    }
    world
        .open(&consumer, "web", &json!({"keys": ["a", "b"], "more": "c"}))
        .await;
    for name in ["b", "c"] {
        holds(&world.local, &consumer.id, name, name).await;
    }
    is_notified(&consumer, "web").await;
    holds(&world.local, &consumer.id, "a", "theirs").await;
}

// Issue 45: each status was a 404, with a back-off, for ever.
pub(crate) async fn a_schema_of_somebody_else_may_have_no_status(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let schema = world.schema_of("shops").await;
    world.exports(1, 1).await;
    drop(agent);
    let found = arrives(&world.provider, APIS, "apiresourceschemas", "", &schema).await;
    let mut by_hand = json!({"apiVersion": APIS, "kind": "APIResourceSchema",
        "metadata": {"name": format!("byhand.shops.{}", world.group)}, "spec": found["spec"]});
    by_hand["spec"]["versions"][0]["subresources"] = json!({});
    world.provider.create(&by_hand).await;
    let schemas = json!({"spec": {"latestResourceSchemas": [by_hand["metadata"]["name"]]}});
    world
        .provider
        .merge_patch(APIS, "apiexports", "", &world.export, &schemas)
        .await;
    let agent = world.agent(&["--disabled-controllers=apiresourceschema,apiexport"]);
    let consumer = world.consumer("a").await;
    for name in ["one", "two"] {
        world.open(&consumer, name, &json!({"size": 1})).await;
        let copy = world.copied(&consumer, name, &json!({"size": 1})).await;
        world.operate(&copy, &json!({"ready": 1})).await;
        world.edit(&consumer, name, &json!({"spec": {"size": 2}})).await;
        world.copied(&consumer, name, &json!({"size": 2})).await;
    }
    let said = async || {
        let mut all = consumer.objects.list("v1", "events", "shop", "").await;
        all.retain(|event| event["reason"] == "StatusSubresourceMissing");
        all
    };
    eventually("it is said", SOON, async || {
        let said = said().await;
        (said.len() == 1).then_some(()).ok_or(format!("{said:?}"))
    })
    .await;
    holds_throughout("it is said once", A_WHILE, async || {
        let said = said().await;
        (said.len() == 1).then_some(()).ok_or(format!("{said:?}"))
    })
    .await;
    let log = agent.0.log();
    assert!(!log.contains("ObjectFailed"), "{log}");
}

// A function of a template may quote what it is given.
pub(crate) async fn nothing_that_a_secret_holds_is_in_the_log(which: Which) {
    let [value, other] = ["nobody logs this", "and nobody this"];
    let rewrite = json!({"template": {"template": "{{ fail .RelatedObject.data.v }}"}});
    let related = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret",
        "object": {"selector": {"matchLabels": {"of": "web"}, "rewrite": rewrite}}});
    let world = world(which, &json!([related])).await;
    let steps = json!([{"template": {"path": "data.v", "template": "{{ fail .LocalObject.data.v }}"}}]);
    let published = json!({"resource": {"apiGroup": "", "kind": "Secret", "versions": ["v1"]},
        "projection": {"group": world.group}, "mutation": {"spec": steps}});
    world.local.create(&world.published("keys", "Secret", &published)).await;
    let mut agent = world.agent(&["--log-debug=true"]);
    world.exports(2, 3).await;
    let consumer = world.consumer("a").await;
    let mut mine = secret("shop", "mine", value);
    mine["metadata"]["labels"] = json!({"of": "web"});
    consumer.objects.create(&mine).await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let mut published = secret("shop", "published", other);
    published["apiVersion"] = json!(world.v1());
    crate::world::create(&consumer.objects, &published).await;
    agent
        .says(&["ObjectFailed", "Shop/shop/web", "finding related objects"])
        .await;
    agent
        .says(&["ObjectFailed", "Secret/shop/published", "applying spec.mutation"])
        .await;
    let log = agent.0.log();
    for object in [mine, published] {
        let text = object["data"]["v"].as_str().expect("it is a text");
        assert!(!log.contains(text), "{log}");
    }
    assert!(!log.contains(value) && !log.contains(other), "{log}");
}
