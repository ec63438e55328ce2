//! When what belongs to an object is synced, and when it goes: scenario A24, and what becomes of namespaces.

use serde_json::{Value, json};

use crate::hostile::is_notified;
use crate::of_role::Agent;
use crate::related::holds;
use crate::stage::{Stage, Which};
use crate::support::objects::{config_map, namespace, secret};
use crate::support::story::{SOON, arrives, becomes, gone, leaves, remains};
use crate::support::{Server, ServerOptions, comes_to_rest, rbac};
use crate::world::{A_WHILE, Consumer, FINALIZER, World, place};

const V1_RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A world whose agent may do everything with Secrets on the service cluster.
async fn world(which: Which, related: &Value) -> World {
    let world = World::of(which).await;
    may_have_keys(&world).await;
    world.publish(&json!({"related": related})).await;
    world
}

async fn may_have_keys(world: &World) {
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    world.allow("keys", rule).await;
}

/// Secrets that a field of a shop names, one from each side, and which are watched.
fn keys(watch: &Value) -> Value {
    let of = |origin: &str, path: &str| {
        json!({"identifier": path, "origin": origin, "version": "v1", "resource": "secrets",
            "object": {"reference": {"path": format!("spec.{path}")}}, "watch": watch})
    };
    json!([of("kcp", "down"), of("service", "up")])
}

/// Waits until the agent has no more to do: then nothing but a watch tells it of a change. Gives what it has asked for by
/// then.
async fn rests(world: &World) -> usize {
    comes_to_rest("nothing is asked for", 4 * A_WHILE, SOON, async || {
        let asked = world.requests().into_iter().filter(|event| event.verb != "watch");
        let asked: Vec<String> = asked
            .map(|event| format!("{} {} {} {}", event.received, event.verb, event.uri, event.code))
            .collect();
        // The last ones say what does not come to rest.
        Ok::<_, String>((asked.len(), asked[asked.len().saturating_sub(20)..].to_vec()))
    })
    .await
    .0
}

/// Gives both Secrets another value, twice: only a watch tells the agent of it.
async fn changes_arrive(world: &World, consumer: &Consumer, space: &str) {
    for value in ["second", "third"] {
        rests(world).await;
        let change = json!({"data": secret("", "", value)["data"]});
        consumer
            .objects
            .merge_patch("v1", "secrets", "shop", "mine", &change)
            .await;
        holds(&world.local, space, "mine", value).await;
        world.local.merge_patch("v1", "secrets", space, "made", &change).await;
        holds(&consumer.objects, "shop", "made", value).await;
    }
}

/// A Secret that an object owns.
fn owned(space: &str, name: &str, owner: &Value) -> Value {
    let mut made = secret(space, name, "first");
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    made
}

pub(crate) async fn a_change_of_what_an_object_owns_is_synced_at_once(which: Which) {
    let world = world(which, &keys(&json!({"byOwner": {}}))).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"down": "mine", "up": "made"});
    world.open(&consumer, "web", &spec).await;
    let copy = world.copied(&consumer, "web", &spec).await;
    let space = place(&copy).0;
    rests(&world).await;
    let origin = world.origin(&consumer, "web").await;
    consumer.objects.create(&owned("shop", "mine", &origin)).await;
    holds(&world.local, &space, "mine", "first").await;
    rests(&world).await;
    world.local.create(&owned(&space, "made", &copy)).await;
    holds(&consumer.objects, "shop", "made", "first").await;
    changes_arrive(&world, &consumer, &space).await;
}

/// A shop that has Secrets by its labels, once nothing is to be done, and the namespace of its copy.
async fn labelled(which: Which) -> (World, Agent, Consumer, String) {
    let selector = json!({"bySelector": {"matchLabels": {"watched": "yes"}}});
    let world = world(which, &keys(&selector)).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let spec = json!({"down": "mine", "up": "made"});
    let mut shop = world.shop("web", &spec);
    shop["metadata"]["labels"] = json!({"watched": "yes"});
    crate::world::create(&consumer.objects, &shop).await;
    let space = place(&world.copied(&consumer, "web", &spec).await).0;
    rests(&world).await;
    (world, agent, consumer, space)
}

pub(crate) async fn a_change_of_what_labels_lead_to_is_synced_at_once(which: Which) {
    let (world, _agent, consumer, space) = labelled(which).await;
    consumer.objects.create(&secret("shop", "mine", "first")).await;
    holds(&world.local, &space, "mine", "first").await;
    rests(&world).await;
    world.local.create(&secret(&space, "made", "first")).await;
    holds(&consumer.objects, "shop", "made", "first").await;
    changes_arrive(&world, &consumer, &space).await;
}

pub(crate) async fn a_change_of_what_cannot_belong_to_an_object_costs_no_request(which: Which) {
    let (world, _agent, consumer, _) = labelled(which).await;
    consumer.objects.create(&namespace("elsewhere")).await;
    let before = rests(&world).await;
    consumer.objects.create(&secret("elsewhere", "mine", "first")).await;
    world.local.create(&secret(&world.space, "made", "first")).await;
    assert_eq!(rests(&world).await, before);
}

pub(crate) async fn what_two_objects_have_goes_with_the_last_of_them(which: Which) {
    let mut related = keys(&Value::Null);
    for one in related.as_array_mut().into_iter().flatten() {
        one.as_object_mut().expect("it is an object").remove("watch");
        one["cleanup"] = json!(true);
    }
    let world = world(which, &related).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let spec = json!({"down": "mine", "up": "made"});
    for name in ["one", "two"] {
        world.open(&consumer, name, &spec).await;
    }
    let space = place(&world.copied(&consumer, "one", &spec).await).0;
    world.copied(&consumer, "two", &spec).await;
    world.local.create(&secret(&space, "made", "2")).await;
    for name in ["one", "two"] {
        let more = json!({"spec": {"size": 1}});
        world.edit(&consumer, name, &more).await;
    }
    holds(&world.local, &space, "mine", "1").await;
    holds(&consumer.objects, "shop", "made", "2").await;
    rests(&world).await;
    // Another agent does not know of both at first.
    drop(agent);
    consumer.objects.delete(&world.v1(), "shops", "shop", "one").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "one").await;
    remains(&world.local, "v1", "secrets", &space, "mine").await;
    arrives(&consumer.objects, "v1", "secrets", "shop", "made").await;
    let mine = arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    assert_eq!(mine["metadata"]["finalizers"], json!([FINALIZER]));
    world.closes(&consumer, "two").await;
    gone(&world.local, "v1", "secrets", &space, "mine").await;
    gone(&consumer.objects, "v1", "secrets", "shop", "made").await;
    arrives(&world.local, "v1", "secrets", &space, "made").await;
    let mine = arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    assert_eq!(mine["metadata"]["finalizers"], Value::Null);
}

pub(crate) async fn a_status_goes_along_where_that_is_asked_for(which: Which) {
    let world = World::of(which).await;
    world.define("gadgets", true).await;
    let rule = json!([{"apiGroups": [world.group], "resources": ["gadgets/status"], "verbs": ["update"]}]);
    world.allow("statuses", rule).await;
    let unsynced = json!({"synchronization": {"enabled": false}});
    world
        .local
        .create(&world.published("gadgets", "Gadget", &unsynced))
        .await;
    let related = |identifier: &str, origin: &str, status: bool| {
        json!({"identifier": identifier, "origin": origin, "group": world.group, "version": "v1", "resource": "gadgets",
            "object": {"reference": {"path": format!("spec.{identifier}")}}, "syncStatus": status,
            "watch": {"bySelector": {"matchLabels": {"watched": "yes"}}}})
    };
    let all = json!([
        related("down", "kcp", true),
        related("up", "service", true),
        related("bare", "kcp", false)
    ]);
    world.publish(&json!({"related": all})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let gadget = |space: &str, name: &str| {
        json!({"apiVersion": world.v1(), "kind": "Gadget", "metadata": {"name": name, "namespace": space},
            "spec": {"size": 1}})
    };
    let spec = json!({"down": "mine", "up": "made", "bare": "bare"});
    let mut shop = world.shop("web", &spec);
    shop["metadata"]["labels"] = json!({"watched": "yes"});
    crate::world::create(&consumer.objects, &shop).await;
    let space = place(&world.copied(&consumer, "web", &spec).await).0;
    let v1 = world.v1();
    let sides = [
        ("mine", (&consumer.objects, "shop"), (&world.local, &*space)),
        ("made", (&world.local, &*space), (&consumer.objects, "shop")),
        ("bare", (&consumer.objects, "shop"), (&world.local, &*space)),
    ];
    for (name, (from, at), (to, there)) in sides {
        crate::world::create(from, &gadget(at, name)).await;
        arrives(to, &v1, "gadgets", there, name).await;
        rests(&world).await;
        from.patch_status(&v1, "gadgets", at, name, &json!({"ready": 1})).await;
        if name == "bare" {
            rests(&world).await;
            let copy = arrives(to, &v1, "gadgets", there, name).await;
            assert_eq!(copy["status"], Value::Null);
        } else {
            becomes(to, [&v1, "gadgets", there, name], "has the status", |it| {
                it["status"]["ready"] == 1
            })
            .await;
        }
    }
}

#[tokio::test]
async fn namespaces_that_the_agent_has_made_go_when_nothing_is_in_them() {
    let service: &'static Server = Box::leak(Box::new(Server::start("spaces", ServerOptions::default()).await));
    crate::world::prepare(service).await;
    let world = World::between(Stage::of(Which::Simulated).await, service).await;
    may_have_keys(&world).await;
    let role = crate::support::manifests::documents_in(
        &std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("manifests/publish/namespaces/permissions.yaml"),
    );
    let rules = role
        .iter()
        .find(|role| role["kind"] == "ClusterRole")
        .expect("it is there")["rules"]
        .clone();
    assert_eq!(role[0]["apiVersion"], V1_RBAC);
    rbac::allow(&world.local, "spaces", rules).await;
    let template = |start: &str| json!({"template": {"template": format!("{{{{ if eq .Side \"kcp\" }}}}shop{{{{ else }}}}{start}{{{{ .Object.metadata.namespace }}}}{{{{ end }}}}")}});
    let related = json!([{"identifier": "keys", "origin": "kcp", "version": "v1", "resource": "secrets",
        "object": {"reference": {"path": "spec.secret"}, "namespace": template("keys-")}}]);
    let labels = json!({"path": "metadata.labels", "expression": "has(self.spec.bad) ? {'bad': 'no label'} : {}"});
    let mutation = json!({"spec": [{"cel": labels}]});
    world
        .publish(
            &json!({"related": related, "naming": {"namespace": "{{ .Object.spec.space }}"}, "mutation": mutation}),
        )
        .await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    // One that was there before, one with something of somebody else in it, and one of the agent's alone.
    world.local.create(&namespace("theirs")).await;
    for name in ["theirs", "shared", "own"] {
        consumer.objects.create(&secret("shop", name, "1")).await;
        let spec = json!({"space": name, "secret": name});
        world.open(&consumer, name, &spec).await;
        world.copied(&consumer, name, &spec).await;
        holds(&world.local, &format!("keys-{name}"), name, "1").await;
    }
    let made = arrives(&world.local, "v1", "namespaces", "", "own").await;
    assert_eq!(
        made["metadata"]["labels"]["syncagent.kcp.io/agent-name"],
        json!(world.agent_name())
    );
    for space in ["shared", "keys-shared"] {
        world
            .local
            .create(&config_map(space, "theirs", json!({"a": "b"})))
            .await;
    }
    // One that was made for a copy that the service cluster does not take.
    let spec = json!({"space": "refused", "bad": true});
    world.open(&consumer, "refused", &spec).await;
    arrives(&world.local, "v1", "namespaces", "", "refused").await;
    is_notified(&consumer, "refused").await;
    for name in ["theirs", "shared", "own", "refused"] {
        world.closes(&consumer, name).await;
    }
    for space in ["own", "keys-own", "keys-theirs", "refused"] {
        leaves(&world.local, space).await;
    }
    for space in ["theirs", "shared", "keys-shared"] {
        let kept = remains(&world.local, "v1", "namespaces", "", space).await;
        assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null, "{space}");
    }
}
