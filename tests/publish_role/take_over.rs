//! What the Go agent has left is continued, without anything being made again: scenario A29.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::kubeconfig::base64;
use crate::support::story::SOON;
use crate::support::story::gone;
use crate::support::{comes_to_rest, eventually};
use crate::world::{A_WHILE, Consumer, FINALIZER, World, create};

/// The SHA-1 of the name `web` and of the namespace `shop`, as the Go agent writes them.
const WEB: &str = "ca84d1343b96baa8137c943ed1860e522cacb238";

/// The copy of `web`, as the Go agent has left it.
async fn left_copy(world: &World, consumer: &Consumer, shop: &str) -> Value {
    let labels = json!({
        "syncagent.kcp.io/agent-name": world.agent_name(),
        "syncagent.kcp.io/remote-object-cluster": consumer.id,
        "syncagent.kcp.io/remote-object-name-hash": WEB,
        "syncagent.kcp.io/remote-object-namespace-hash": shop,
    });
    let annotations =
        json!({"syncagent.kcp.io/remote-object-name": "web", "syncagent.kcp.io/remote-object-namespace": "shop"});
    let copy = json!({"apiVersion": world.v1(), "kind": "Shop",
        "metadata": {"name": "f39597dce3aed80bee3d-6a31816d04deed5f5bcd", "namespace": consumer.id,
            "labels": labels, "annotations": annotations},
        // Somebody here has made it larger.
        "spec": {"size": 9, "color": "red"}});
    world.local.create(&copy).await
}

/// The state that the Go agent has kept of it, by names that vectors of the contract give for any cluster.
async fn left_state(world: &World, consumer: &Consumer, shop: &str) -> Value {
    // An encoder of Go ends with a line break.
    let digest = |text: &str| edge_syncer_publish::json::hash(&format!("{text}\n"));
    let v1 = world.v1();
    let of_object = format!(r#"{{"apiVersion":"{v1}","kind":"Shop","name":"web","namespace":"shop"}}"#);
    let of_key = format!(
        r#"{{"ClusterName":"{}","WorkspacePath":"","Namespace":"shop","Name":"web"}}"#,
        consumer.id
    );
    let state = json!({"apiVersion": v1, "kind": "Shop", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"size": 1, "color": "red"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": format!("obj-state-{}-{}", consumer.id, &digest(&of_object)[..20]), "namespace": world.space,
            "labels": {"syncagent.kcp.io/object-state": "true", "syncagent.kcp.io/remote-object-cluster": consumer.id,
                "syncagent.kcp.io/remote-object-name-hash": WEB, "syncagent.kcp.io/remote-object-namespace-hash": shop}},
        "data": {digest(&of_key): base64(state.to_string())}});
    world.local.create(&secret).await
}

pub(crate) async fn what_the_go_agent_has_left_is_continued(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    // The schema and the export are the same for both.
    let agent = world.agent(&[]);
    let schema = world.schema_of("shops").await;
    world.exports(1, 1).await;
    let consumer = world.consumer("a").await;
    world.open(&consumer, "probe", &json!({"size": 0})).await;
    let probe = world.copied(&consumer, "probe", &json!({"size": 0})).await;
    let shop = probe["metadata"]["labels"]["syncagent.kcp.io/remote-object-namespace-hash"].clone();
    let shop = shop.as_str().expect("it has one");
    drop(agent);
    let mut origin = world.shop("web", &json!({"size": 1, "color": "red"}));
    origin["metadata"]["finalizers"] = json!([FINALIZER]);
    create(&consumer.objects, &origin).await;
    let copy = left_copy(&world, &consumer, shop).await;
    let state = left_state(&world, &consumer, shop).await;
    world.operate(&copy, &json!({"ready": 1})).await;
    let copy = world
        .copied(&consumer, "web", &json!({"size": 9, "color": "red"}))
        .await;
    let _agent = world.agent(&[]);
    world
        .shows(&consumer, "web", "has its status", |it| it["status"]["ready"] == 1)
        .await;
    let now = comes_to_rest("the copy is left as it is", A_WHILE, SOON, async || {
        Ok::<_, String>(
            world
                .copied(&consumer, "web", &json!({"size": 9, "color": "red"}))
                .await,
        )
    })
    .await;
    assert_eq!(
        now["metadata"]["resourceVersion"], copy["metadata"]["resourceVersion"],
        "nothing is written"
    );
    assert_eq!(world.schema_of("shops").await, schema);
    // What the object changes next is known by the state.
    world.edit(&consumer, "web", &json!({"spec": {"color": "blue"}})).await;
    let now = world
        .copied(&consumer, "web", &json!({"size": 9, "color": "blue"}))
        .await;
    assert_eq!(now["metadata"]["uid"], copy["metadata"]["uid"]);
    eventually("the same Secret has the new state", SOON, async || {
        let now = world.local.reread(&state).await.ok_or("it is gone")?;
        let is_changed = now["data"] != state["data"] && now["metadata"]["uid"] == state["metadata"]["uid"];
        is_changed.then_some(()).ok_or("it has the old one")
    })
    .await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    assert!(world.local.reread(&copy).await.is_none());
    assert!(world.local.reread(&state).await.is_none());
}

pub(crate) async fn an_agent_of_another_name_finds_the_copies_of_the_former_one(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&["--agent-name=former"]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let before = world.copied(&consumer, "web", &json!({"size": 1})).await;
    assert_eq!(before["metadata"]["labels"]["syncagent.kcp.io/agent-name"], "former");
    drop(agent);
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    let _agent = world.agent(&["--agent-name=next"]);
    let copy = world
        .copy(&consumer, "web", "is the next agent's", |copy| {
            copy["spec"]["size"] == 2 && copy["metadata"]["labels"]["syncagent.kcp.io/agent-name"] == "next"
        })
        .await;
    assert_eq!(copy["metadata"]["uid"], before["metadata"]["uid"]);
    world.operate(&copy, &json!({"ready": 1})).await;
    world
        .shows(&consumer, "web", "has its status", |it| it["status"]["ready"] == 1)
        .await;
}
