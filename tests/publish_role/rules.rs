//! What the rules of a `PublishedResource` make of objects: scenarios A12, A19 and A20.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::story::{SOON, becomes, crd, gone};
use crate::support::{Syncer, comes_to_rest, eventually, holds_throughout, unique_suffix};
use crate::world::{A_WHILE, FINALIZER, World, create, place};

/// What `publish check` says, and its exit code.
pub(crate) async fn checked(world: &World) -> (String, Option<i32>) {
    checked_with(&world.flags()).await
}

async fn checked_with(flags: &[String]) -> (String, Option<i32>) {
    let mut program = tokio::process::Command::new(Syncer::program_with("publish"));
    program.args(["publish", "check"]).args(flags);
    let output = program.output().await.expect("it can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout) + &text(&output.stderr), output.status.code())
}

pub(crate) async fn a_check_names_the_rights_that_what_belongs_to_objects_needs(which: Which) {
    let world = World::of(which).await;
    // The agents of all tests are one user there, so it is a type that no other test has; kcp serves it too.
    let related = json!([{"identifier": "keys", "origin": "kcp", "version": "v1", "resource": "resourcequotas",
        "object": {"reference": {"path": "spec.template"}}}]);
    world.publish(&json!({"related": related})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    drop(agent);
    let (said, code) = checked(&world).await;
    let missing = "related \"keys\"";
    assert!(
        said.contains(missing) && said.contains("delete resourcequotas"),
        "{said}"
    );
    assert_eq!(code, Some(1), "{said}");
    let verbs = ["get", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["resourcequotas"], "verbs": verbs}]);
    world.allow("templates", rule).await;
    eventually("all is granted", SOON, async || match checked(&world).await {
        (_, Some(0)) => Ok(()),
        (said, code) => Err(format!("{code:?} {said}")),
    })
    .await;
}

// Issue 45: both were "all good", and no object could be synced, or ended.
pub(crate) async fn a_check_names_a_namespace_that_is_not_there_and_a_type_with_two_owners(which: Which) {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rule = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    world.allow("keys", rule).await;
    let v1 = world.v1();
    let (group, version) = v1.split_once('/').expect("it has a group");
    let related = json!([{"identifier": "peer", "origin": "kcp", "group": group, "version": version, "resource": "shops",
        "object": {"reference": {"path": "spec.peer"}}}]);
    world.publish(&json!({"related": related})).await;
    let (said, code) = checked(&world).await;
    assert!(
        said.contains("shops is published itself, and synced") && code == Some(1),
        "{said}"
    );
    let nowhere = format!("--namespace=nowhere-{}", world.suffix);
    let mut flags = world.flags();
    flags.retain(|flag| !flag.starts_with("--namespace="));
    flags.push(nowhere);
    let (said, code) = checked_with(&flags).await;
    assert!(
        said.contains("namespace: namespaces \"nowhere-") && code == Some(1),
        "{said}"
    );
}

pub(crate) async fn names_come_from_templates_or_the_old_form_and_stay(which: Which) {
    let world = World::of(which).await;
    let naming = json!({"name": "{{ .Object.metadata.name }}-{{ .ClusterName | trunc 4 }}",
        "namespace": "$remoteClusterName-$remoteNamespaceHash"});
    world.publish(&json!({"naming": naming})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    let short = &consumer.id[..4];
    // The first 20 digits of the SHA-1 of `shop`.
    let space = format!("{}-5042d146667518a1a501", consumer.id);
    assert_eq!(place(&copy), (space, format!("web-{short}")));
    world
        .republish(&json!({"naming": {"name": "x-{{ .Object.metadata.name }}", "namespace": "other"}}))
        .await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    let now = world.copied(&consumer, "web", &json!({"size": 2})).await;
    assert_eq!(now["metadata"]["uid"], copy["metadata"]["uid"]);
    let other = format!("other-{}", world.suffix);
    world
        .republish(&json!({"naming": {"namespace": other, "name": "x-{{ .Object.metadata.name }}"}}))
        .await;
    eventually("a new one has the new name", SOON, async || {
        let name = format!("new-{}", unique_suffix());
        world.open(&consumer, &name, &json!({"size": 1})).await;
        let copy = world.copied(&consumer, &name, &json!({"size": 1})).await;
        let at = place(&copy);
        (at == (other.clone(), format!("x-{name}")))
            .then_some(())
            .ok_or(format!("{at:?}"))
    })
    .await;
}

pub(crate) async fn filters_say_what_has_copies_and_nothing_about_its_end(which: Which) {
    let world = World::of(which).await;
    let selector = |key: &str| json!({"matchLabels": {key: "yes"}});
    world
        .publish(&json!({"filter": {"resource": selector("sync"), "namespace": selector("open")}}))
        .await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let label = |value: Value| json!({"metadata": {"labels": {"sync": value}}});
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.open(&consumer, "other", &json!({"size": 1})).await;
    world.edit(&consumer, "web", &label(json!("yes"))).await;
    holds_throughout("there are no copies", A_WHILE, async || {
        let all = world.copies(&consumer).await;
        all.is_empty().then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    let open = json!({"metadata": {"labels": {"open": "yes"}}});
    consumer
        .objects
        .merge_patch("v1", "namespaces", "", "shop", &open)
        .await;
    // The object has not changed.
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    // What changes while the namespace is not let through is followed once it is.
    let closed = |value: Value| json!({"metadata": {"labels": {"open": value}}});
    for (open, size, found) in [(Value::Null, 2, 1), (json!("yes"), 2, 2)] {
        let open = closed(open);
        consumer
            .objects
            .merge_patch("v1", "namespaces", "", "shop", &open)
            .await;
        world.edit(&consumer, "web", &json!({"spec": {"size": size}})).await;
        world.copied(&consumer, "web", &json!({"size": found})).await;
    }
    world.edit(&consumer, "web", &label(Value::Null)).await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 3}})).await;
    holds_throughout("what no longer matches is left as it is", A_WHILE, async || {
        let all = world.copies(&consumer).await;
        let is_left = all.len() == 1 && all[0]["spec"]["size"] == 2;
        is_left.then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    world.closes(&consumer, "web").await;
    world.has_no_copies(&consumer).await;
    let other = world.origin(&consumer, "other").await;
    assert!(other["metadata"]["finalizers"].is_null(), "{other}");
}

pub(crate) async fn rules_change_what_is_copied_and_what_status_goes_back(which: Which) {
    let world = World::of(which).await;
    let big = 9_007_199_254_740_993_u64;
    let spec = json!([
        {"delete": {"path": "spec.secret"}},
        {"regex": {"path": "spec.zone", "pattern": "^eu-(.*)$", "replacement": "$1-eu"}},
        {"template": {"path": "spec.text", "template": "{{ .Value.String }} & <b> {{ .LocalObject.metadata.name }}"}},
        {"cel": {"path": "spec.map", "expression": "{'a': [1, 2], 'n': null}"}},
        {"cel": {"path": "spec.list", "expression": "[1, {'n': self.spec.zone}]"}},
        {"cel": {"path": "spec.none", "expression": "null"}},
        {"cel": {"path": "spec.sum", "expression": "value + 42"}},
    ]);
    let status = json!([
        {"template": {"path": "status.phase", "template": "{{ upper .Value.String }}"}},
        {"delete": {"path": "status.internal"}},
        {"regex": {"path": "status.zone", "pattern": "^(.*)-eu$", "replacement": "eu-$1"}},
        {"cel": {"path": "status.sizes", "expression": "[size(self.status.phase), other.spec.sum]"}},
    ]);
    world
        .publish(&json!({"mutation": {"spec": spec, "status": status}}))
        .await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let wanted = json!({"secret": "x", "zone": "eu-west", "text": "a", "sum": 1, "big": big});
    world.open(&consumer, "web", &wanted).await;
    let copy = world
        .copy(&consumer, "web", "is mutated", |copy| copy["spec"]["zone"] == "west-eu")
        .await;
    let spec = &copy["spec"];
    let name = &copy["metadata"]["name"];
    assert!(spec["secret"].is_null());
    assert!(
        spec["text"].as_str().is_some_and(|text| text.starts_with("a & <b> ")),
        "{spec} {name}"
    );
    assert_eq!(spec["map"], json!({"a": [1, 2], "n": null}));
    assert_eq!(spec["list"], json!([1, {"n": "west-eu"}]));
    assert_eq!(spec.get("none"), Some(&Value::Null));
    assert_eq!(spec["sum"].as_f64(), Some(43.0));
    assert_eq!(spec["big"], json!(big));
    world
        .operate(
            &copy,
            &json!({"phase": "ready", "zone": "west-eu", "internal": "x", "big": big}),
        )
        .await;
    let origin = world
        .shows(&consumer, "web", "has its status", |it| {
            it["status"]["phase"] == "READY"
        })
        .await;
    assert_eq!(
        origin["status"],
        json!({"phase": "READY", "zone": "eu-west", "sizes": [5, 1], "big": big})
    );
    // A rule that is wrong is said, and right again is followed at once.
    world
        .republish(&json!({"mutation": {"spec": [{"cel": {"path": "spec.sum", "expression": "1 +"}}]}}))
        .await;
    world.republish(&json!({"mutation": null})).await;
    world
        .copy(&consumer, "web", "has all of it", |copy| {
            copy["spec"]["zone"] == "eu-west"
        })
        .await;
}

// It was written, and said in an Event, every five seconds.
pub(crate) async fn a_status_that_kcp_does_not_keep_is_said_once(which: Which) {
    let world = World::of(which).await;
    let mut meters = crd(&world.group, "meters", true);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"type": "object", "properties": {"ready": {"type": "integer"}}});
    meters["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": any, "status": status}});
    world.define_as(&meters).await;
    let note = json!([{"regex": {"path": "status.note", "replacement": "unknown there"}}]);
    let more = json!({"mutation": {"status": note}});
    world.local.create(&world.published("meters", "Meter", &more)).await;
    let _agent = world.agent(&[]);
    world.exports(1, 1).await;
    let consumer = world.consumer("a").await;
    let meter = json!({"apiVersion": world.v1(), "kind": "Meter", "metadata": {"name": "m", "namespace": "shop"},
        "spec": {"size": 1}});
    create(&consumer.objects, &meter).await;
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    let copy = eventually("its copy is there", SOON, async || {
        world
            .local
            .list(&world.v1(), "meters", "", &of)
            .await
            .pop()
            .ok_or("there is none")
    })
    .await;
    let at = place(&copy);
    world
        .local
        .patch_status(&world.v1(), "meters", &at.0, &at.1, &json!({"ready": 1}))
        .await;
    let at = [&world.v1(), "meters", "shop", "m"];
    let shown = becomes(&consumer.objects, at, "has its status", |it| it["status"]["ready"] == 1).await;
    assert_eq!(shown["status"], json!({"ready": 1}));
    let writes = || {
        let events = world.requests();
        events.iter().filter(|event| event.uri.contains("/m/status")).count()
    };
    let said = async || {
        let mut all = consumer.objects.list("v1", "events", "shop", "").await;
        all.retain(|event| event["reason"] == "ObjectStatusSynced");
        let versions = all.iter().map(|event| event["metadata"]["resourceVersion"].clone());
        versions.collect::<Vec<_>>()
    };
    // Events come after what they say, and its first status is said too: so all of these have to be there.
    let last = comes_to_rest("it is said", A_WHILE, SOON, async || {
        let all = said().await;
        (!all.is_empty()).then_some(all).ok_or("it is not")
    })
    .await;
    let before = writes();
    let larger = json!({"spec": {"size": 2}});
    consumer
        .objects
        .merge_patch(&world.v1(), "meters", "shop", "m", &larger)
        .await;
    eventually("its status is written again", SOON, async || {
        (writes() > before).then_some(()).ok_or("it is not")
    })
    .await;
    holds_throughout("that is not said", A_WHILE, async || {
        let now = said().await;
        (now == last).then_some(()).ok_or(format!("{last:?} {now:?}"))
    })
    .await;
}

pub(crate) async fn paths_of_workspaces_are_known_where_that_is_asked_for(which: Which) {
    let world = World::of(which).await;
    let naming = json!({"name": "{{ .ClusterPath | replace \":\" \"-\" }}"});
    world
        .publish(&json!({"enableWorkspacePaths": true, "naming": naming}))
        .await;
    let _agent = world.agent(&[]);
    world.exports(1, 2).await;
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    let metadata = &copy["metadata"];
    assert_eq!(
        metadata["annotations"]["syncagent.kcp.io/remote-object-workspace-path"],
        consumer.path
    );
    assert_eq!(metadata["name"], consumer.path.replace(':', "-"));
}

pub(crate) async fn metadata_that_is_not_the_consumers_is_not_copied(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    let mut shop = world.shop("web", &json!({"size": 1}));
    shop["metadata"]["labels"] = json!({"own": "1", "syncagent.kcp.io/agent-name": "mine"});
    shop["metadata"]["annotations"] = json!({"own": "1", "syncagent.kcp.io/remote-object-name": "other",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "related-resources.syncagent.kcp.io/x.0": "{}", "syncagent.kcp.io/deletion-propagation-policy": "background"});
    shop["metadata"]["finalizers"] = json!(["example.org/consumer"]);
    create(&consumer.objects, &shop).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    let metadata = &copy["metadata"];
    assert_eq!(metadata["labels"]["own"], "1");
    assert_eq!(metadata["labels"]["syncagent.kcp.io/agent-name"], world.agent_name());
    assert!(metadata["finalizers"].is_null(), "{metadata}");
    let annotations = metadata["annotations"].as_object().expect("there are some");
    let names: Vec<&str> = annotations.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "own",
            "syncagent.kcp.io/remote-object-name",
            "syncagent.kcp.io/remote-object-namespace"
        ]
    );
    assert_eq!(annotations["syncagent.kcp.io/remote-object-name"], "web");
    // As long as others have not finished with it, its copy stays.
    consumer.objects.delete(&world.v1(), "shops", "shop", "web").await;
    holds_throughout("the copy stays", A_WHILE, async || {
        let all = world.copies(&consumer).await;
        let is_there = all.len() == 1 && all[0]["metadata"]["deletionTimestamp"].is_null();
        is_there.then_some(()).ok_or(format!("{all:?}"))
    })
    .await;
    world
        .edit(&consumer, "web", &json!({"metadata": {"finalizers": [FINALIZER]}}))
        .await;
    gone(&consumer.objects, &world.v1(), "shops", "shop", "web").await;
    world.has_no_copies(&consumer).await;
}
