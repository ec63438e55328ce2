//! What belongs to an object and changes by itself: scenario A24.

use http::Method;
use serde_json::{Value, json};

use crate::related::{holds, world};
use crate::stage::Which;
use crate::support::objects::{MERGE_PATCH, path, secret};
use crate::support::story::{SOON, becomes, crd};
use crate::support::{Objects, eventually, holds_throughout};
use crate::world::{A_WHILE, Consumer, World, create, place};

/// A Secret of each side, the one of an owner and the other of all that have a label.
fn watched(owner: &str, labelled: &str) -> Value {
    let of = |origin: &str, field: &str, watch: Value| {
        json!({"identifier": field, "origin": origin, "kind": "Secret",
            "object": {"reference": {"path": format!("spec.{field}")}}, "watch": watch})
    };
    json!([
        of(owner, "owned", json!({"byOwner": {}})),
        of(
            labelled,
            "labelled",
            json!({"bySelector": {"matchLabels": {"keys": "yes"}}})
        ),
    ])
}

/// Secrets that change are synced, and nobody touches their primary.
async fn syncs_what_changes_alone(which: Which, owner: &str, labelled: &str) {
    let world = world(which, &watched(owner, labelled)).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let mut shop = world.shop("web", &json!({"owned": "owned", "labelled": "labelled"}));
    shop["metadata"]["labels"] = json!({"keys": "yes"});
    create(&consumer.objects, &shop).await;
    let copy = world.copied(&consumer, "web", &shop["spec"]).await;
    let origin = world.origin(&consumer, "web").await;
    let space = place(&copy).0;
    let ends = |of: &str| {
        let ends = [(&consumer.objects, "shop"), (&world.local, &*space)];
        if of == "kcp" { ends } else { [ends[1], ends[0]] }
    };
    for (name, of) in [("owned", owner), ("labelled", labelled)] {
        let [(from, space), _] = ends(of);
        let primary = if of == "kcp" { &origin } else { &copy };
        let mut made = secret(space, name, "0");
        let owner = json!({"apiVersion": primary["apiVersion"], "kind": primary["kind"],
            "name": primary["metadata"]["name"], "uid": primary["metadata"]["uid"]});
        made["metadata"]["ownerReferences"] = json!([owner]);
        if name == "labelled" {
            made["metadata"]["ownerReferences"] = json!([]);
        }
        from.create(&made).await;
    }
    // More often than a pass repeats itself.
    for value in ["0", "1", "2", "3"] {
        for (name, of) in [("owned", owner), ("labelled", labelled)] {
            let [(from, space), (there, other)] = ends(of);
            let change = json!({"data": secret("", "", value)["data"]});
            from.merge_patch("v1", "secrets", space, name, &change).await;
            holds(there, other, name, value).await;
        }
    }
    let now = world.origin(&consumer, "web").await;
    assert_eq!(now["spec"], shop["spec"]);
}

pub(crate) async fn a_related_object_that_changes_is_synced_by_itself(which: Which) {
    syncs_what_changes_alone(which, "kcp", "service").await;
}

pub(crate) async fn whichever_side_it_comes_from(which: Which) {
    syncs_what_changes_alone(which, "service", "kcp").await;
}

/// Sets the status of an object, whose type may be served a moment late.
async fn reports(at: &Objects, [version, plural, space, name]: [&str; 4], status: &Value) {
    let target = path(version, plural, space, name) + "/status";
    let body = json!({"status": status});
    eventually("its status is written", SOON, async || {
        let sent = at.send(Method::PATCH, &target, MERGE_PATCH, Some(&body)).await;
        sent.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

/// A world with the types `gauges`, which has a status, and `bares`, which has none; consumers have both.
async fn of_gauges(which: Which, related: Value) -> (World, Consumer) {
    let world = World::of(which).await;
    world.define("gauges", true).await;
    let mut bare = crd(&world.group, "bares", true);
    bare["spec"]["versions"][0]["subresources"] = json!({});
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    bare["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": any}});
    world.define_as(&bare).await;
    world
        .allow(
            "statuses",
            json!([{"apiGroups": [world.group], "resources": ["gauges/status"], "verbs": ["get", "update", "patch"]}]),
        )
        .await;
    for (name, kind) in [("gauges", "Gauge"), ("bares", "Bare")] {
        let off = json!({"synchronization": {"enabled": false}});
        world.local.create(&world.published(name, kind, &off)).await;
    }
    let mut related = related;
    for one in related.as_array_mut().into_iter().flatten() {
        one["group"] = json!(world.group);
    }
    world.publish(&json!({"related": related})).await;
    let consumer = world.consumer("a").await;
    (world, consumer)
}

/// An entry of `related`, named like the field that has the name.
fn gauge(identifier: &str, origin: &str) -> Value {
    json!({"identifier": identifier, "origin": origin, "version": "v1", "resource": "gauges", "syncStatus": true,
        "object": {"reference": {"path": format!("spec.{identifier}")}}, "watch": {"bySelector": {}}})
}

pub(crate) async fn the_status_of_a_related_object_goes_with_it(which: Which) {
    let (world, consumer) = of_gauges(which, json!([gauge("down", "kcp"), gauge("up", "service")])).await;
    let _agent = world.agent(&[]);
    world.exports(3, 2).await;
    let spec = json!({"down": "down", "up": "up"});
    world.open(&consumer, "web", &spec).await;
    let space = place(&world.copied(&consumer, "web", &spec).await).0;
    let version = world.v1();
    let ends = [
        ("down", [(&consumer.objects, "shop"), (&world.local, &*space)]),
        ("up", [(&world.local, &*space), (&consumer.objects, "shop")]),
    ];
    for (name, [(from, space), (there, other)]) in ends {
        let made = json!({"apiVersion": version, "kind": "Gauge", "metadata": {"name": name, "namespace": space},
            "spec": {"size": 1}});
        create(from, &made).await;
        for ready in [1, 2] {
            reports(from, [&version, "gauges", space, name], &json!({"ready": ready})).await;
            let copy = becomes(there, [&version, "gauges", other, name], "has its status", |it| {
                it["status"] == json!({"ready": ready})
            })
            .await;
            assert_eq!(copy["spec"], json!({"size": 1}));
        }
    }
}

pub(crate) async fn a_status_that_has_no_place_is_said_once(which: Which) {
    let mut lost = gauge("down", "kcp");
    lost["projection"] = json!({"resource": "bares"});
    let (world, consumer) = of_gauges(which, json!([lost])).await;
    let _agent = world.agent(&[]);
    world.exports(3, 2).await;
    let spec = json!({"down": "down"});
    world.open(&consumer, "web", &spec).await;
    let space = place(&world.copied(&consumer, "web", &spec).await).0;
    let version = world.v1();
    let made = json!({"apiVersion": version, "kind": "Gauge", "metadata": {"name": "down", "namespace": "shop"},
        "spec": {"size": 0}});
    create(&consumer.objects, &made).await;
    let of = [&*version, "gauges", "shop", "down"];
    for size in [1, 2] {
        reports(&consumer.objects, of, &json!({"ready": size})).await;
        let change = json!({"spec": {"size": size}});
        consumer.objects.merge_patch(of[0], of[1], of[2], of[3], &change).await;
        let copy = becomes(&world.local, [&version, "bares", &space, "down"], "follows", |it| {
            it["spec"]["size"] == size
        })
        .await;
        assert!(copy["status"].is_null(), "{copy}");
    }
    let said = async || {
        let mut all = consumer.objects.list("v1", "events", "shop", "").await;
        all.retain(|event| event["reason"] == "StatusSubresourceMissing");
        all
    };
    let event = eventually("there is an Event about it", SOON, async || {
        said().await.pop().ok_or("there is none")
    })
    .await;
    assert_eq!(
        (&event["type"], &event["involvedObject"]["name"]),
        (&json!("Warning"), &json!("down"))
    );
    holds_throughout("there is one", A_WHILE, async || {
        let all = said().await;
        let is_same = all.len() == 1 && all[0]["metadata"]["resourceVersion"] == event["metadata"]["resourceVersion"];
        is_same.then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
}

pub(crate) async fn rules_for_statuses_of_related_objects_are_followed(which: Which) {
    let mut down = gauge("down", "kcp");
    let note = json!([{"template": {"path": "status.note", "template": "{{ .LocalObject.status.ready }} of them"}}]);
    down["mutation"] = json!({"status": note});
    let (world, consumer) = of_gauges(which, json!([down])).await;
    let _agent = world.agent(&[]);
    world.exports(3, 2).await;
    let spec = json!({"down": "down"});
    world.open(&consumer, "web", &spec).await;
    let space = place(&world.copied(&consumer, "web", &spec).await).0;
    let version = world.v1();
    let made = json!({"apiVersion": version, "kind": "Gauge", "metadata": {"name": "down", "namespace": "shop"},
        "spec": {"size": 1}});
    create(&consumer.objects, &made).await;
    for ready in [1, 2] {
        reports(
            &consumer.objects,
            [&version, "gauges", "shop", "down"],
            &json!({"ready": ready}),
        )
        .await;
        let expected = json!({"ready": ready, "note": format!("{ready} of them")});
        becomes(
            &world.local,
            [&version, "gauges", &space, "down"],
            "has its status",
            |it| it["status"] == expected,
        )
        .await;
    }
}
