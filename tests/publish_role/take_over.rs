//! What the Go agent has left is continued, without anything being made again: scenario A29.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::of_role::Agent;
use crate::stage::Which;
use crate::support::kubeconfig::base64;
use crate::support::objects::namespace;
use crate::support::story::SOON;
use crate::support::{Objects, Syncer, comes_to_rest, eventually};
use crate::world::{A_WHILE, APIS, Consumer, FINALIZER, World, create};

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
    world.closes(&consumer, "web").await;
    assert!(world.local.reread(&copy).await.is_none());
    assert!(world.local.reread(&state).await.is_none());
}

/// The Go agent that `SYNCAGENT_BIN` names.
fn go_agent(which: Which) -> Option<PathBuf> {
    let program = std::env::var_os("SYNCAGENT_BIN").filter(|_| which == Which::Real);
    program.map(PathBuf::from)
}

/// What the Go agent needs at both sides, beside what this one does.
async fn grant_more(world: &World) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "go-agent"});
    let rules = json!([
        {"apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"], "verbs": ["get"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports", "apiexportendpointslices"],
            "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiresourceschemas"], "verbs": ["get", "list", "watch", "create"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "create", "update", "patch"]},
    ]);
    create(
        &world.provider,
        &json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
    )
    .await;
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "go-agent"});
    let users = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": world.user}]);
    create(
        &world.provider,
        &json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": of,
            "subjects": users}),
    )
    .await;
    let all = json!(["get", "list", "watch", "create", "update", "patch"]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets", "namespaces", "events"], "verbs": all},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": all},
        {"apiGroups": ["syncagent.kcp.io"], "resources": ["publishedresources", "publishedresources/status"], "verbs": all},
    ]);
    world.allow("go-agent", rules).await;
    let file = world.stage.kubeconfig(
        &world.folder,
        &format!("/clusters/{}", world.provider_path),
        Some(&world.user),
        |_| {},
    );
    let own = Objects::by_kubeconfig(&file, None).await;
    eventually("its rights are known", SOON, async || {
        let read = own.read("/apis/core.kcp.io/v1alpha1/logicalclusters/cluster").await;
        read.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

/// Another process of the agent: with a real kcp, the Go agent if one is named.
fn other_agent(world: &World, which: Which) -> Agent {
    let Some(program) = go_agent(which) else {
        return world.agent(&[]);
    };
    let flags = world.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Agent(Syncer::start_program(&program, &flags, &[]))
}

pub(crate) async fn agents_that_take_turns_make_nothing_again(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let consumer = world.visitor("a").await;
    if go_agent(which).is_some() {
        grant_more(&world).await;
    }
    let mut other = other_agent(&world, which);
    let schema = world.schema_of("shops").await;
    world.exports(1, 1).await;
    world.bind(&consumer, &[["", "events"], ["", "namespaces"]]).await;
    consumer.objects.create(&namespace("shop")).await;
    for name in ["web", "goes"] {
        world.open(&consumer, name, &json!({"size": 1})).await;
        world.copied(&consumer, name, &json!({"size": 1})).await;
    }
    let first = world.copied(&consumer, "web", &json!({"size": 1})).await;
    world.touch(&first, &json!({"spec": {"own": true}})).await;
    eventually("there are states", SOON, async || {
        let states = world.states(&consumer).await.len();
        (states == 2).then_some(()).ok_or(states)
    })
    .await;
    let states = world.states(&consumer).await;
    other.0.kill();
    // Each finds what the one before has left, and what has changed meanwhile.
    for (turn, is_own) in [(2, true), (3, false), (4, true)] {
        let change = json!({"spec": {"size": turn}});
        world.edit(&consumer, "web", &change).await;
        let mut agent = if is_own {
            world.agent(&[])
        } else {
            other_agent(&world, which)
        };
        let copy = world
            .copied(&consumer, "web", &json!({"size": turn, "own": true}))
            .await;
        assert_eq!(copy["metadata"]["uid"], first["metadata"]["uid"]);
        world.operate(&copy, &json!({"turn": turn})).await;
        world
            .shows(&consumer, "web", "has its status", |it| it["status"]["turn"] == turn)
            .await;
        if turn == 3 {
            world.closes(&consumer, "goes").await;
        }
        agent.0.kill();
    }
    assert_eq!(world.schema_of("shops").await, schema);
    let schemas = world.provider.list(APIS, "apiresourceschemas", "", "").await;
    assert_eq!(schemas.len(), 1, "{schemas:?}");
    for now in world.states(&consumer).await {
        let uid = &now["metadata"]["uid"];
        assert!(
            states.iter().any(|state| state["metadata"]["uid"] == *uid),
            "{now} is another"
        );
    }
    let _agent = world.agent(&[]);
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
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
