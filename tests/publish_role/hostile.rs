//! What consumers, objects of the provider, and others on the service cluster could do to each other, and do not.

use std::fmt::Write as _;

use http::Method;
use serde_json::{Value, json};

use crate::related::holds;
use crate::stage::{Stage, Which};
use crate::support::objects::{namespace, path, secret};
use crate::support::story::{SOON, arrives, becomes, gone, remains};
use crate::support::{Server, ServerOptions, eventually, in_parallel};
use crate::world::{Consumer, FINALIZER, World, place};

/// A world whose agent may do everything with Secrets on the service cluster, and puts all copies into one namespace.
async fn world(which: Which, related: &Value) -> (World, String) {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    world.allow("keys", rule).await;
    let space = format!("shops-{}", world.suffix);
    let naming = json!({"namespace": space, "name": "{{ .ClusterName }}-{{ .Object.metadata.name }}"});
    world.publish(&json!({"related": related, "naming": naming})).await;
    (world, space)
}

/// The Secret that `spec.secret` of a shop names, which is the consumer's.
fn by_reference(path: &str) -> Value {
    json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"reference": {"path": path}}}])
}

/// Waits until a consumer is notified that something is wrong with a shop, and nothing more.
pub(crate) async fn is_notified(consumer: &Consumer, name: &str) {
    let event = eventually("there is an Event", SOON, async || {
        let all = consumer.objects.list("v1", "events", "shop", "").await;
        let is_it = |event: &&Value| event["reason"] == "ReconcilingError" && event["involvedObject"]["name"] == name;
        all.iter().find(is_it).cloned().ok_or(format!("{all:?}"))
    })
    .await;
    assert_eq!(event["message"], "An error occurred while processing the object.");
}

async fn has_finalizers(consumer: &Consumer, name: &str, expected: &Value) {
    becomes(
        &consumer.objects,
        ["v1", "secrets", "shop", name],
        "has its finalizers",
        |it| it["metadata"]["finalizers"] == *expected,
    )
    .await;
}

pub(crate) async fn what_has_come_from_one_workspace_is_not_overwritten_by_another(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secret")).await;
    let mut agent = world.agent(&[]);
    let [first, second] = [world.consumer("a").await, world.consumer("b").await];
    first.objects.create(&secret("shop", "creds", "first")).await;
    world.open(&first, "web", &json!({"secret": "creds"})).await;
    let copy = holds(&world.local, &space, "creds", "first").await;
    let annotations = &copy["metadata"]["annotations"];
    // The Go project's tests allow no annotation but this one.
    assert_eq!(
        *annotations,
        json!({"kcp.io/cluster": format!("{}/shop/creds", first.id)})
    );
    second.objects.create(&secret("shop", "creds", "second")).await;
    world.open(&second, "web", &json!({"secret": "creds"})).await;
    is_notified(&second, "web").await;
    agent
        .says(&["ObjectFailed", "creds is there", "another workspace"])
        .await;
    let log = agent.0.log();
    assert!(!log.contains(secret("", "", "first")["data"]["v"].as_str().expect("it is a text")));
    has_finalizers(&second, "creds", &json!(null)).await;
    // Not by a restart, and not by its end.
    drop(agent);
    let _agent = world.agent(&[]);
    first
        .objects
        .merge_patch(
            "v1",
            "secrets",
            "shop",
            "creds",
            &json!({"data": secret("", "", "new")["data"]}),
        )
        .await;
    holds(&world.local, &space, "creds", "new").await;
    second.objects.delete(&world.v1(), "shops", "shop", "web").await;
    gone(&second.objects, &world.v1(), "shops", "shop", "web").await;
    holds(&world.local, &space, "creds", "new").await;
    // Once it is gone, the name is free.
    world.open(&second, "later", &json!({"secret": "creds"})).await;
    is_notified(&second, "later").await;
    first.objects.delete(&world.v1(), "shops", "shop", "web").await;
    holds(&world.local, &space, "creds", "second").await;
    has_finalizers(&first, "creds", &json!(null)).await;
}

pub(crate) async fn an_object_of_the_provider_is_no_copy_of_what_a_consumer_names(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secret")).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.local.create(&namespace(&space)).await;
    world.local.create(&secret(&space, "theirs", "provider")).await;
    consumer.objects.create(&secret("shop", "theirs", "consumer")).await;
    world.open(&consumer, "web", &json!({"secret": "theirs"})).await;
    is_notified(&consumer, "web").await;
    agent
        .says(&[
            "ObjectFailed",
            "theirs is there",
            "no agent has made it",
            "hand it over",
        ])
        .await;
    world.closes(&consumer, "web").await;
    let kept = remains(&world.local, "v1", "secrets", &space, "theirs").await;
    assert_eq!(kept["data"], secret("", "", "provider")["data"]);
    // Its owner may hand it over.
    let label = json!({"metadata": {"labels": {"syncagent.kcp.io/agent-name": world.agent_name()}}});
    world.local.merge_patch("v1", "secrets", &space, "theirs", &label).await;
    world.open(&consumer, "web", &json!({"secret": "theirs"})).await;
    holds(&world.local, &space, "theirs", "consumer").await;
}

pub(crate) async fn the_copy_of_one_workspace_is_not_taken_over_by_another_of_its_name(which: Which) {
    let world = World::of(which).await;
    world.define("zones", false).await;
    world.local.create(&world.published("zones", "Zone", &json!({}))).await;
    let mut agent = world.agent(&[]);
    let [first, second] = [world.consumer("a").await, world.consumer("b").await];
    let zone = |size: u32| json!({"apiVersion": world.v1(), "kind": "Zone", "metadata": {"name": "z"}, "spec": {"size": size}});
    crate::world::create(&first.objects, &zone(1)).await;
    let of = |consumer: &Consumer| format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    eventually("the first one has a copy", SOON, async || {
        let all = world.local.list(&world.v1(), "zones", "", &of(&first)).await;
        (all.len() == 1).then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    crate::world::create(&second.objects, &zone(2)).await;
    agent
        .says(&["ObjectFailed", "it is the copy of another object", "spec.naming"])
        .await;
    let all = world.local.list(&world.v1(), "zones", "", &of(&first)).await;
    assert_eq!(all[0]["spec"], json!({"size": 1}));
    assert!(
        world
            .local
            .list(&world.v1(), "zones", "", &of(&second))
            .await
            .is_empty()
    );
}

pub(crate) async fn what_an_object_does_not_name_any_more_is_let_go(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secrets")).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["one", "two", "three"] {
        consumer.objects.create(&secret("shop", name, name)).await;
    }
    world.open(&consumer, "web", &json!({"secrets": ["one", "two"]})).await;
    world.open(&consumer, "api", &json!({"secrets": ["two"]})).await;
    for name in ["one", "two"] {
        holds(&world.local, &space, name, name).await;
    }
    has_finalizers(&consumer, "one", &json!([FINALIZER])).await;
    world
        .edit(&consumer, "web", &json!({"spec": {"secrets": ["three"]}}))
        .await;
    holds(&world.local, &space, "three", "three").await;
    gone(&world.local, "v1", "secrets", &space, "one").await;
    has_finalizers(&consumer, "one", &json!(null)).await;
    // Another one has it.
    holds(&world.local, &space, "two", "two").await;
    has_finalizers(&consumer, "two", &json!([FINALIZER])).await;
    // While nobody looked.
    drop(agent);
    world
        .edit(&consumer, "web", &json!({"spec": {"secrets": ["one"]}}))
        .await;
    world.edit(&consumer, "api", &json!({"spec": {"secrets": []}})).await;
    let _agent = world.agent(&[]);
    for name in ["two", "three"] {
        gone(&world.local, "v1", "secrets", &space, name).await;
        has_finalizers(&consumer, name, &json!(null)).await;
    }
    holds(&world.local, &space, "one", "one").await;
    for name in ["web", "api"] {
        world.closes(&consumer, name).await;
    }
    gone(&world.local, "v1", "secrets", &space, "one").await;
    has_finalizers(&consumer, "one", &json!(null)).await;
}

pub(crate) async fn an_object_ends_though_what_belongs_to_it_cannot_be_named_any_more(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secrets")).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "one", "1")).await;
    world.open(&consumer, "web", &json!({"secrets": ["one"]})).await;
    holds(&world.local, &space, "one", "1").await;
    drop(agent);
    // One side names two, the other one.
    world
        .edit(&consumer, "web", &json!({"spec": {"secrets": ["one", "two"]}}))
        .await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    gone(&world.local, "v1", "secrets", &space, "one").await;
    has_finalizers(&consumer, "one", &json!(null)).await;
    world.has_no_copies(&consumer).await;
}

pub(crate) async fn what_belonged_to_an_object_by_former_rules_is_let_go_with_it(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secret")).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "one", "1")).await;
    world.open(&consumer, "web", &json!({"secret": "one"})).await;
    holds(&world.local, &space, "one", "1").await;
    drop(agent);
    world.republish(&json!({"related": null})).await;
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    gone(&world.local, "v1", "secrets", &space, "one").await;
    has_finalizers(&consumer, "one", &json!(null)).await;
}

// What the last of the rules had named kept its finalizer, and its copy, until the object went.
pub(crate) async fn what_no_rule_names_any_more_is_let_go_at_once(which: Which) {
    let (world, space) = world(which, &by_reference("spec.secret")).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["one", "shared"] {
        consumer.objects.create(&secret("shop", name, "1")).await;
    }
    for (name, secret) in [("web", "one"), ("api", "shared"), ("old", "shared")] {
        world.open(&consumer, name, &json!({"secret": secret})).await;
        world.copied(&consumer, name, &json!({"secret": secret})).await;
        holds(&world.local, &space, secret, "1").await;
    }
    for related in [json!([]), json!(null)] {
        world.republish(&json!({"related": related})).await;
        for name in ["one", "shared"] {
            gone(&world.local, "v1", "secrets", &space, name).await;
            has_finalizers(&consumer, name, &json!(null)).await;
        }
        world.republish(&json!({"related": by_reference("spec.secret")})).await;
        for name in ["one", "shared"] {
            holds(&world.local, &space, name, "1").await;
            has_finalizers(&consumer, name, &json!([FINALIZER])).await;
        }
    }
    for name in ["web", "api", "old"] {
        world.closes(&consumer, name).await;
    }
    gone(&world.local, "v1", "secrets", &space, "shared").await;
    has_finalizers(&consumer, "shared", &json!(null)).await;
}

pub(crate) async fn names_that_consumers_write_lead_to_no_other_request(which: Which) {
    let selector = json!({"matchLabels": {"of": "web"}, "rewrite": {"template": {"template": "{{ .Value }}"}}});
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret",
        "object": {"namespace": {"reference": {"path": "spec.space"}}, "selector": selector}}]);
    let (world, _) = world(which, &related).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let bad = ["..", "../secrets", "shop/secrets/x?y=", "a/../../b", "a%2Fb", "x\r\ny"];
    for (index, space) in bad.iter().enumerate() {
        let name = format!("bad-{index}");
        world.open(&consumer, &name, &json!({"space": space})).await;
        is_notified(&consumer, &name).await;
    }
    // What is no namespace is one that is not there.
    world.open(&consumer, "odd", &json!({"space": "shop?x=y#z"})).await;
    world.copied(&consumer, "odd", &json!({"space": "shop?x=y#z"})).await;
    let asked = eventually("it has been asked for", SOON, async || {
        let asked: Vec<String> = world.requests().into_iter().map(|event| event.uri).collect();
        let of_secrets: Vec<String> = asked.into_iter().filter(|uri| uri.contains("secrets")).collect();
        if of_secrets.is_empty() {
            Err("it has not")
        } else {
            Ok(of_secrets)
        }
    })
    .await;
    // Each server logs it in its own spelling.
    let decoded = |uri: &String| uri.replace("%3F", "?").replace("%3D", "=").replace("%23", "#");
    let is_odd = |uri: &String| decoded(uri).contains("/api/v1/namespaces/shop?x=y#z/secrets");
    assert!(asked.iter().all(is_odd), "{asked:?}");
    for index in 0..bad.len() {
        let name = format!("bad-{index}");
        world.closes(&consumer, &name).await;
    }
}

pub(crate) async fn an_object_ends_though_its_copy_is_nested_too_deep_to_be_read(which: Which) {
    const DEPTH: usize = 300;
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let (space, name) = place(&world.copied(&consumer, "web", &json!({"size": 1})).await);
    let mut patch = String::from("{\"deep\":");
    for _ in 0..DEPTH {
        patch.push_str("{\"a\":");
    }
    let _ = write!(patch, "1{}", "}".repeat(DEPTH + 1));
    let at = path(&world.v1(), "shops", &space, &name);
    // The answer cannot be read here either.
    let answer = world
        .local
        .send_bytes(Method::PATCH, &at, "application/merge-patch+json", patch.into())
        .await;
    assert!(answer.is_err_and(|error| error.to_string().contains("recursion")));
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    agent.says(&["ObjectFailed", "web", "nested deeper"]).await;
    // Others do not notice.
    world.open(&consumer, "api", &json!({"size": 1})).await;
    eventually("the other one has its copy", SOON, async || {
        let log = consumer.objects.list("v1", "events", "shop", "").await;
        let is_it = |event: &Value| event["reason"] == "ObjectPlaced" && event["involvedObject"]["name"] == "api";
        log.iter().any(is_it).then_some(()).ok_or(format!("{log:?}"))
    })
    .await;
    world.closes(&consumer, "web").await;
    assert!(world.local.get(&world.v1(), "shops", &space, &name).await.is_none());
}

#[tokio::test]
async fn an_object_ends_without_the_right_to_delete_its_state() {
    // Where no other world has given more rights.
    let service: &'static Server = Box::leak(Box::new(Server::start("states", ServerOptions::default()).await));
    crate::world::prepare(service).await;
    let world = World::between(Stage::of(Which::Simulated).await, service).await;
    // What the chart of the Go agent gives.
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update"]}]);
    let role = "rbac.authorization.k8s.io/v1";
    world
        .local
        .merge_patch(role, "roles", &world.space, "api-syncagent", &json!({"rules": rules}))
        .await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for size in [1, 2] {
        world.open(&consumer, "web", &json!({"size": size})).await;
        world.copied(&consumer, "web", &json!({"size": size})).await;
        world.edit(&consumer, "web", &json!({"spec": {"size": 7}})).await;
        world.copied(&consumer, "web", &json!({"size": 7})).await;
        world.closes(&consumer, "web").await;
        let states = world.states(&consumer).await;
        assert!(states.len() == 1 && states[0]["data"].is_null(), "{states:?}");
    }
}

#[tokio::test]
async fn a_flood_of_one_workspace_keeps_no_other_waiting() {
    // More than the queue has room for.
    const MANY: usize = 3_000;
    let world = World::of(Which::Simulated).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let [many, few] = [world.consumer("a").await, world.consumer("b").await];
    world.open(&many, "first", &json!({})).await;
    drop(agent);
    let shops: Vec<Value> = (0..MANY).map(|at| world.shop(&format!("s{at}"), &json!({}))).collect();
    in_parallel(shops.iter().map(|shop| many.objects.create(shop)), 8).await;
    let _agent = world.agent(&[]);
    eventually("it has begun with the flood", SOON, async || {
        let copies = world.copies(&many).await.len();
        (copies > 1).then_some(()).ok_or(copies)
    })
    .await;
    world.open(&few, "web", &json!({"size": 1})).await;
    world.copied(&few, "web", &json!({"size": 1})).await;
    let copies = world.copies(&many).await.len();
    assert!(copies < MANY / 3, "{copies} had their turn before");
}

pub(crate) async fn a_secret_that_is_not_the_objects_own_stays_where_it_is(which: Which) {
    let related = json!([{"identifier": "out", "origin": "service", "kind": "Secret", "cleanup": true,
        "object": {"reference": {"path": "spec.out"}}}]);
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    world.allow("keys", rule).await;
    world.publish(&json!({"related": related})).await;
    let _agent = world.agent(&[]);
    let [first, second] = [world.consumer("a").await, world.consumer("b").await];
    world.open(&first, "web", &json!({"out": "key"})).await;
    let space = place(&world.copied(&first, "web", &json!({"out": "key"})).await).0;
    world.local.create(&secret(&space, "key", "of the first")).await;
    world.edit(&first, "web", &json!({"spec": {"size": 2}})).await;
    holds(&first.objects, "shop", "key", "of the first").await;
    // Each has a namespace of its own on the service cluster, from which no name leads out.
    for (index, name) in ["key", &format!("../{space}/key"), &format!("../../{space}/secrets/key")]
        .into_iter()
        .enumerate()
    {
        world
            .open(&second, &format!("web-{index}"), &json!({"out": name}))
            .await;
    }
    is_notified(&second, "web-1").await;
    is_notified(&second, "web-2").await;
    let all = second.objects.list("v1", "secrets", "shop", "").await;
    assert!(all.is_empty(), "{all:?}");
    arrives(&world.local, "v1", "secrets", &space, "key").await;
}

// Issue 45: one object of 500 kB took 200 MB, and the agent was killed for it again and again.
pub(crate) async fn an_object_that_would_take_all_memory_is_refused_and_holds_up_no_other(which: Which) {
    const MB: u64 = 1 << 10;
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let maps = json!({"maps": vec![json!({"a": 0}); 150_000]});
    for name in ["one", "two"] {
        world.open(&consumer, name, &maps).await;
    }
    agent
        .says(&["ObjectFailed", "so many fields and items", "give the agent more memory"])
        .await;
    is_notified(&consumer, "one").await;
    is_notified(&consumer, "two").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    let peak = agent.0.peak_kb();
    assert!(peak < 100 * MB, "{peak} kB");
    for name in ["one", "two", "web"] {
        world.closes(&consumer, name).await;
    }
}

// Issue 45: the last one by its name had taken the place of all, and nothing said so.
pub(crate) async fn two_objects_that_would_have_one_name_are_refused(which: Which) {
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret", "object": {"selector": {
        "matchLabels": {"key": "yes"}, "rewrite": {"template": {"template": "same"}}}}}]);
    let (world, space) = world(which, &related).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["first", "second"] {
        let mut key = secret("shop", name, name);
        key["metadata"]["labels"] = json!({"key": "yes"});
        consumer.objects.create(&key).await;
    }
    world.open(&consumer, "web", &json!({"size": 1})).await;
    is_notified(&consumer, "web").await;
    agent
        .says(&["ObjectFailed", "shop/first", "shop/second", "same at the other end"])
        .await;
    let all = world.local.list("v1", "secrets", &space, "").await;
    assert!(all.iter().all(|found| found["metadata"]["name"] != "same"), "{all:?}");
    consumer.objects.delete("v1", "secrets", "shop", "second").await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    holds(&world.local, &space, "same", "first").await;
    world.closes(&consumer, "web").await;
}
