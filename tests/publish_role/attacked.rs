//! What an attack by consumers and a careless provider has found: tokens, too many and too long related objects, schemas and
//! PublishedResources that go while objects are there.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::eventually;
use crate::support::objects::{config_map, namespace};
use crate::support::story::{SOON, arrives, gone};
use crate::world::{APIS, SYNCAGENT, World, place};

/// A world whose agent may do everything with these types of the core group on the service cluster.
async fn world(which: Which, related: &Value) -> World {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": verbs}]);
    world.allow("belongings", rule).await;
    world.publish(&json!({"related": related})).await;
    world
}

// The service cluster made it a token of a ServiceAccount of its own.
pub(crate) async fn a_secret_that_would_let_somebody_in_goes_nowhere(which: Which) {
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.secret"}}}]);
    let world = world(which, &related).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let key = |name: &str, of: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": of,
        "metadata": {"name": name, "namespace": "shop"}, "stringData": {"key": "1"}})
    };
    consumer
        .objects
        .create(&key("pass", "bootstrap.kubernetes.io/token"))
        .await;
    world.open(&consumer, "web", &json!({"secret": "pass"})).await;
    let copy = world.copied(&consumer, "web", &json!({"secret": "pass"})).await;
    agent
        .says(&["ObjectFailed", "web", "Secret", "has the type of a token", "Opaque"])
        .await;
    let (space, _) = place(&copy);
    assert_eq!(world.local.get("v1", "secrets", &space, "pass").await, None);
    consumer.objects.create(&key("fine", "Opaque")).await;
    world.edit(&consumer, "web", &json!({"spec": {"secret": "fine"}})).await;
    arrives(&world.local, "v1", "secrets", &space, "fine").await;
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
    for name in ["pass", "fine"] {
        crate::states::is_free(&consumer, name).await;
    }
}

// The copy stayed when its object went, and nothing said so.
pub(crate) async fn a_copy_of_which_somebody_edits_a_label_is_its_objects_still(which: Which) {
    let world = world(which, &json!([])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    for label in ["name-hash", "namespace-hash"] {
        let label = format!("syncagent.kcp.io/remote-object-{label}");
        let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
        let before = copy["metadata"]["labels"][&label].clone();
        world
            .touch(&copy, &json!({"metadata": {"labels": {&label: "zzz"}}}))
            .await;
        world
            .copy(&consumer, "web", "has its label again", |copy| {
                copy["metadata"]["labels"][&label] == before
            })
            .await;
    }
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
}

// A consumer got the Secret with the agent's credentials, and wrote where another one's state is.
pub(crate) async fn no_object_leads_to_the_namespace_of_the_agent(which: Which) {
    let related = |identifier: &str, origin: &str, path: &str| {
        json!({"identifier": identifier, "origin": origin, "kind": "Secret", "object": {"reference": {"path": path},
            "namespace": {"reference": {"path": "spec.space"}}}})
    };
    let related = [
        related("in", "kcp", "spec.secret"),
        related("out", "service", "spec.from"),
    ];
    let world = world(which, &json!(related)).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let key = |space: &str, name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": space}, "stringData": {"key": "1"}});
    consumer.objects.create(&namespace(&world.space)).await;
    consumer.objects.create(&key(&world.space, "planted")).await;
    world.local.create(&key(&world.space, "host")).await;
    for (name, spec) in [
        ("in", json!({"secret": "planted", "space": world.space})),
        ("out", json!({"from": "host", "space": world.space})),
    ] {
        world.open(&consumer, name, &spec).await;
        world.copied(&consumer, name, &spec).await;
        agent
            .says(&["ObjectFailed", name, "leads to the namespace of the agent"])
            .await;
    }
    assert_eq!(world.local.get("v1", "secrets", &world.space, "planted").await, None);
    assert_eq!(consumer.objects.get("v1", "secrets", &world.space, "host").await, None);
    for name in ["in", "out"] {
        world.closes(&consumer, name).await;
    }
    world.has_no_copies(&consumer).await;
}

// Each pass asked for each of them, for half an hour, and large objects of others waited for its end.
pub(crate) async fn an_object_that_names_too_many_others_is_said_to_and_ends(which: Which) {
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": "spec.names"}}}]);
    let world = world(which, &related).await;
    let mut agent = world.agent(&[]);
    let [consumer, other] = [world.consumer("a").await, world.consumer("b").await];
    let names: Vec<String> = (0..100_000).map(|at| format!("none-{at}")).collect();
    world.open(&consumer, "many", &json!({"names": names})).await;
    agent
        .says(&["ObjectFailed", "many", "more than 1000 objects belong to it"])
        .await;
    let spec = json!({"text": "x".repeat(300_000)});
    world.open(&other, "large", &spec).await;
    world.copied(&other, "large", &spec).await;
    world.closes(&consumer, "many").await;
    world.closes(&other, "large").await;
}

// It was said to be no answer of a Kubernetes API, and the object could not be deleted.
pub(crate) async fn related_objects_that_are_too_long_for_one_answer_are_read_in_parts(which: Which) {
    let selector =
        json!({"matchLabels": {"of": "web"}, "rewrite": {"regex": {"pattern": "^", "replacement": "their-"}}});
    let related =
        json!([{"identifier": "notes", "origin": "service", "kind": "ConfigMap", "object": {"selector": selector}}]);
    let world = world(which, &related).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let (space, _) = place(&world.copied(&consumer, "web", &json!({"size": 1})).await);
    for at in 0..10 {
        let mut note = config_map(&space, &format!("note-{at}"), json!({}));
        note["metadata"]["labels"] = json!({"of": "web"});
        note["data"]["text"] = json!("x".repeat(900_000));
        world.local.create(&note).await;
    }
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    for at in 0..10 {
        arrives(
            &consumer.objects,
            "v1",
            "configmaps",
            "shop",
            &format!("their-note-{at}"),
        )
        .await;
    }
    world.closes(&consumer, "web").await;
}

// Nothing of the type was synced any more, and only a restart has made it again.
async fn a_schema_that_somebody_deletes_is_made_again() {
    let world = World::of(Which::Real).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    let schema = world.schema_of("shops").await;
    world.provider.delete(APIS, "apiresourceschemas", "", &schema).await;
    arrives(&world.provider, APIS, "apiresourceschemas", "", &schema).await;
    eventually("the type is served again", SOON, async || {
        let made = json!({"apiVersion": world.v1(), "kind": "Shop", "metadata": {"name": "later", "namespace": "shop"},
            "spec": {"size": 2}});
        consumer
            .objects
            .try_create(&made)
            .await
            .map_err(|error| error.to_string())
    })
    .await;
    world.copied(&consumer, "later", &json!({"size": 2})).await;
}

// Whoever deleted one waited silently.
pub(crate) async fn objects_that_a_published_resource_leaves_are_said(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    world.republish(&json!({"synchronization": {"enabled": false}})).await;
    agent
        .says(&["ObjectsLeft", &world.name_of("shops"), "objects\":\"1\"", "finalizer"])
        .await;
    world.republish(&json!({"synchronization": {"enabled": true}})).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    // An edit that goes on with them says nothing.
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    world
        .republish(&json!({"mutation": {"spec": [{"template": {"path": "spec.by", "template": "x"}}]}}))
        .await;
    world
        .copy(&consumer, "web", "follows the rule", |copy| copy["spec"]["by"] == "x")
        .await;
    assert_eq!(agent.0.log().matches("ObjectsLeft").count(), 1);
    world
        .local
        .delete(SYNCAGENT, "publishedresources", "", &world.name_of("shops"))
        .await;
    eventually("it is said again", SOON, async || {
        let count = agent.0.log().matches("ObjectsLeft").count();
        (count == 2).then_some(()).ok_or(count)
    })
    .await;
}

/// The simulated kcp ends no watch of a type that it serves no longer.
mod real_workspaces {
    #[tokio::test]
    #[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
    async fn a_schema_that_somebody_deletes_is_made_again() {
        super::a_schema_that_somebody_deletes_is_made_again().await;
    }
}
