//! What belongs to an object: scenarios A21 to A23.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::objects::{namespace, secret};
use crate::support::story::{SOON, arrives, becomes, gone};
use crate::support::{Objects, comes_to_rest, eventually, holds_throughout};
use crate::world::{A_WHILE, Consumer, FINALIZER, World, place};

/// A world whose agent may do everything with Secrets and `ConfigMap`s on the service cluster.
pub(crate) async fn world(which: Which, related: &Value) -> World {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    world
        .allow(
            "keys",
            json!([{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": verbs}]),
        )
        .await;
    world.publish(&json!({"related": related})).await;
    world
}

fn keys(origin: &str, object: &Value) -> Value {
    json!({"identifier": "keys", "origin": origin, "kind": "Secret", "object": object})
}

fn by_reference() -> Value {
    json!({"reference": {"path": "spec.secret"}})
}

/// Waits until a Secret holds a value.
pub(crate) async fn holds(at: &Objects, space: &str, name: &str, value: &str) -> Value {
    let wanted = secret(space, name, value)["data"].clone();
    becomes(at, ["v1", "secrets", space, name], "holds its value", |it| {
        it["data"] == wanted
    })
    .await
}

/// Opens a shop, and gives the namespace of its copy.
pub(crate) async fn opened(world: &World, consumer: &Consumer, name: &str, spec: &Value) -> String {
    world.open(consumer, name, spec).await;
    place(&world.copied(consumer, name, spec).await).0
}

pub(crate) async fn a_secret_of_the_consumer_goes_to_the_copy_and_is_let_go_with_it(which: Which) {
    let world = world(which, &json!([keys("kcp", &by_reference())])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    // It comes before its object, and after it.
    consumer.objects.create(&secret("shop", "first", "1")).await;
    let space = opened(&world, &consumer, "one", &json!({"secret": "first"})).await;
    holds(&world.local, &space, "first", "1").await;
    opened(&world, &consumer, "two", &json!({"secret": "second"})).await;
    consumer.objects.create(&secret("shop", "second", "2")).await;
    world.edit(&consumer, "two", &json!({"spec": {"size": 2}})).await;
    holds(&world.local, &space, "second", "2").await;
    let change = json!({"data": secret("", "", "3")["data"]});
    consumer
        .objects
        .merge_patch("v1", "secrets", "shop", "second", &change)
        .await;
    world.edit(&consumer, "two", &json!({"spec": {"size": 3}})).await;
    let copy = holds(&world.local, &space, "second", "3").await;
    // It is marked at its origin. The copy has a label for the object that it belongs to, and none of the agent's own.
    let labels = copy["metadata"]["labels"].as_object().expect("it has some");
    assert!(
        labels.len() == 1
            && labels
                .keys()
                .all(|label| label.starts_with("claimed.internal.apis.kcp.io/related-to-")),
        "{labels:?}"
    );
    let origin = arrives(&consumer.objects, "v1", "secrets", "shop", "second").await;
    assert_eq!(origin["metadata"]["finalizers"], json!([FINALIZER]));
    world.closes(&consumer, "two").await;
    gone(&world.local, "v1", "secrets", &space, "second").await;
    let origin = arrives(&consumer.objects, "v1", "secrets", "shop", "second").await;
    assert!(origin["metadata"]["finalizers"].is_null() && origin["metadata"]["deletionTimestamp"].is_null());
    // One that its user deletes goes from the copy too.
    consumer.objects.delete("v1", "secrets", "shop", "first").await;
    world.edit(&consumer, "one", &json!({"spec": {"size": 2}})).await;
    gone(&consumer.objects, "v1", "secrets", "shop", "first").await;
    gone(&world.local, "v1", "secrets", &space, "first").await;
}

async fn a_secret_of_the_provider(which: Which, cleanup: bool) {
    let mut related = keys("service", &by_reference());
    related["cleanup"] = json!(cleanup);
    let world = world(which, &json!([related])).await;
    let agent = world.agent(&["--log-debug=true"]);
    let consumer = world.consumer("a").await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "out"})).await;
    let value = "nobody logs this";
    let made = world.local.create(&secret(&space, "out", value)).await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    holds(&consumer.objects, "shop", "out", value).await;
    let (log, text) = (agent.0.log(), made["data"]["v"].as_str().unwrap_or_default());
    assert!(!log.contains(value) && !log.contains(text), "{log}");
    let key = "related-resources.syncagent.kcp.io/keys.0";
    let origin = world
        .shows(&consumer, "web", "names its Secret", |it| {
            it["metadata"]["annotations"][key].is_string()
        })
        .await;
    let named = origin["metadata"]["annotations"][key].as_str().unwrap_or_default();
    let named: Value = serde_json::from_str(named).expect("it is JSON");
    assert_eq!(
        named,
        json!({"namespace": "shop", "name": "out", "apiVersion": "v1", "kind": "Secret"})
    );
    world.closes(&consumer, "web").await;
    arrives(&world.local, "v1", "secrets", &space, "out").await;
    let left = consumer.objects.get("v1", "secrets", "shop", "out").await;
    assert_eq!(left.is_none(), cleanup, "{left:?}");
}

pub(crate) async fn a_secret_of_the_provider_stays_with_the_consumer(which: Which) {
    a_secret_of_the_provider(which, false).await;
}

pub(crate) async fn a_secret_of_the_provider_is_cleaned_up_where_that_is_asked_for(which: Which) {
    a_secret_of_the_provider(which, true).await;
}

pub(crate) async fn related_objects_are_found_by_templates_lists_and_labels(which: Which) {
    let template = json!({"template": {"template": "{{ .Object.metadata.name }}-key"}});
    let list = json!({"reference": {"path": "spec.files.#.name"}});
    let labels = json!({"selector": {"matchLabels": {"of": "{{ .RemoteObject.metadata.name }}"},
        "rewrite": {"template": {"template": "{{ .RemoteObject.metadata.name }}-{{ .Value }}"}}}});
    let of = |identifier: &str, origin: &str, kind: &str, object: &Value| json!({"identifier": identifier, "origin": origin, "kind": kind, "object": object});
    let naming = json!({"name": "{{ .Object.metadata.name }}"});
    let world = world(
        which,
        &json!([
            of("one", "kcp", "Secret", &template),
            of("many", "kcp", "ConfigMap", &list),
            of("labels", "service", "Secret", &labels)
        ]),
    )
    .await;
    world.republish(&json!({"naming": naming})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["x", "y"] {
        consumer
            .objects
            .create(&secret("shop", &format!("{name}-key"), name))
            .await;
    }
    for name in ["f1", "f2"] {
        let map = crate::support::objects::config_map("shop", name, json!({"f": name}));
        consumer.objects.create(&map).await;
    }
    let files = json!({"files": [{"name": "f1"}, {"name": ""}, {"name": "f2"}]});
    let space = opened(&world, &consumer, "x", &files).await;
    opened(&world, &consumer, "y", &json!({"files": []})).await;
    for (name, value) in [("x-key", "x"), ("y-key", "y")] {
        holds(&world.local, &space, name, value).await;
    }
    for name in ["f1", "f2"] {
        arrives(&world.local, "v1", "configmaps", &space, name).await;
    }
    for name in ["x", "y"] {
        let mut made = secret(&space, &format!("made-{name}"), name);
        made["metadata"]["labels"] = json!({"of": name});
        world.local.create(&made).await;
        world.edit(&consumer, name, &json!({"spec": {"size": 2}})).await;
    }
    // Those of two primaries do not mix.
    for name in ["x", "y"] {
        holds(&consumer.objects, "shop", &format!("{name}-made-{name}"), name).await;
    }
    let other = consumer.objects.get("v1", "secrets", "shop", "x-made-y").await;
    assert!(other.is_none(), "{other:?}");
}

pub(crate) async fn a_related_object_may_be_in_other_namespaces_at_both_ends(which: Which) {
    let mut related = keys("service", &by_reference());
    related["object"]["namespace"] =
        json!({"template": {"template": "{{ if eq .Side \"kcp\" }}vault{{ else }}vault-{{ .ClusterName }}{{ end }}"}});
    let world = world(which, &json!([related])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let space = format!("vault-{}", consumer.id);
    world.local.create(&namespace(&space)).await;
    world.local.create(&secret(&space, "out", "1")).await;
    opened(&world, &consumer, "web", &json!({"secret": "out"})).await;
    // The namespace there is made.
    holds(&consumer.objects, "vault", "out", "1").await;
}

pub(crate) async fn a_related_object_may_be_of_another_type_at_the_other_end(which: Which) {
    let steps = json!([{"template": {"path": "data.v", "template": "{{ .Value.String | b64enc }}"}}]);
    let related = json!({"identifier": "keys", "origin": "kcp", "version": "v1", "resource": "configmaps",
        "projection": {"resource": "secrets"}, "mutation": {"spec": steps}, "object": by_reference()});
    let world = world(which, &json!([related])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for (size, value) in ["1", "2"].into_iter().enumerate() {
        let map = crate::support::objects::config_map("shop", "mine", json!({"v": value}));
        if size == 0 {
            consumer.objects.create(&map).await;
        } else {
            let change = json!({"data": map["data"]});
            consumer
                .objects
                .merge_patch("v1", "configmaps", "shop", "mine", &change)
                .await;
            world.edit(&consumer, "web", &json!({"spec": {"size": size}})).await;
        }
        let spec = json!({"secret": "mine", "size": size});
        let space = if size == 0 {
            opened(&world, &consumer, "web", &spec).await
        } else {
            place(&world.copied(&consumer, "web", &spec).await).0
        };
        holds(&world.local, &space, "mine", value).await;
    }
    world.closes(&consumer, "web").await;
    gone(&world.local, "v1", "secrets", &consumer.id, "mine").await;
    arrives(&consumer.objects, "v1", "configmaps", "shop", "mine").await;
}

pub(crate) async fn a_related_object_with_the_name_of_its_primary_comes_to_rest(which: Which) {
    let template = json!({"template": {"template": "{{ .Object.metadata.name }}"}});
    let world = world(which, &json!([keys("kcp", &template)])).await;
    world
        .republish(&json!({"naming": {"name": "{{ .Object.metadata.name }}"}}))
        .await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "web", "1")).await;
    let space = opened(&world, &consumer, "web", &json!({"size": 1})).await;
    holds(&world.local, &space, "web", "1").await;
    let rest = comes_to_rest("nothing is written", 4 * A_WHILE, SOON, async || {
        let writes = world.requests().iter().filter(|event| event.is_write()).count();
        let state = world.states(&consumer).await;
        Ok::<_, String>((writes, state))
    })
    .await;
    let state = &rest.1[0]["data"];
    assert_eq!(
        state.as_object().map(serde_json::Map::len),
        Some(3),
        "each has its own state, and what belongs to it is written down"
    );
}

pub(crate) async fn a_claim_that_is_not_accepted_holds_up_no_other_object(which: Which) {
    let world = world(which, &json!([keys("kcp", &by_reference())])).await;
    let mut agent = world.agent(&[]);
    let consumer = world.visitor("shy").await;
    world.bind(&consumer, &[["", "events"]]).await;
    consumer.objects.create(&namespace("shop")).await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    world.open(&consumer, "with", &json!({"secret": "mine"})).await;
    world.open(&consumer, "without", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "without", &json!({"size": 1})).await;
    world.operate(&copy, &json!({"ready": 1})).await;
    world
        .shows(&consumer, "without", "has its status", |it| it["status"]["ready"] == 1)
        .await;
    let space = place(&world.copied(&consumer, "with", &json!({"secret": "mine"})).await).0;
    holds_throughout("what is not granted is not read", A_WHILE, async || {
        let found = world.local.get("v1", "secrets", &space, "mine").await;
        found.is_none().then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
    assert!(agent.0.is_running());
    let at = ["apis.kcp.io/v1alpha1", "apibindings", "", &world.export];
    let claims = json!([{"resource": "events", "all": true, "state": "Accepted"},
        {"resource": "secrets", "all": true, "state": "Accepted"}, {"resource": "namespaces", "all": true, "state": "Accepted"}]);
    let patch = json!({"spec": {"permissionClaims": claims}});
    consumer.objects.merge_patch(at[0], at[1], at[2], at[3], &patch).await;
    eventually("it is copied once it is granted", SOON, async || {
        let found = world.local.try_get("v1", "secrets", &space, "mine").await;
        match found {
            Ok(Some(_)) => Ok(()),
            other => {
                // Nobody tells the agent of a grant.
                world
                    .edit(&consumer, "with", &json!({"spec": {"size": fastrand::u32(..)}}))
                    .await;
                Err(format!("{other:?}"))
            }
        }
    })
    .await;
}

pub(crate) async fn what_belongs_to_an_object_is_let_go_though_its_copy_went_first(which: Which) {
    let world = world(which, &json!([keys("kcp", &by_reference())])).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    let space = opened(&world, &consumer, "web", &json!({"secret": "mine"})).await;
    holds(&world.local, &space, "mine", "1").await;
    drop(agent);
    for copy in world.copies(&consumer).await {
        let (space, name) = place(&copy);
        world.local.delete(&world.v1(), "shops", &space, &name).await;
    }
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    let _agent = world.agent(&[]);
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    gone(&world.local, "v1", "secrets", &space, "mine").await;
    let origin = arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
    assert!(origin["metadata"]["finalizers"].is_null(), "{origin}");
}

pub(crate) async fn a_name_that_one_side_gives_deletes_nothing_of_the_other(which: Which) {
    let mut out = keys("service", &json!({"reference": {"path": "spec.out"}}));
    out["identifier"] = json!("out");
    out["cleanup"] = json!(true);
    let world = world(which, &json!([keys("kcp", &by_reference()), out])).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let space = opened(&world, &consumer, "first", &json!({"size": 1})).await;
    world.local.create(&secret(&space, "theirs", "1")).await;
    consumer.objects.create(&secret("shop", "mine", "1")).await;
    // Neither has an origin.
    opened(&world, &consumer, "web", &json!({"secret": "theirs", "out": "mine"})).await;
    world.closes(&consumer, "web").await;
    arrives(&world.local, "v1", "secrets", &space, "theirs").await;
    arrives(&consumer.objects, "v1", "secrets", "shop", "mine").await;
}
