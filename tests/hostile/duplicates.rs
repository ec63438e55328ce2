//! Lists of a pod that name a key twice in such a way that no other list means the same. All were found from outside.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::uid;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{MERGE_PATCH, Objects, namespace, path};
use crate::support::stage::{Stage, all_of, select, stage};
use crate::support::story::{SOON, arrives, becomes, upsync_all};
use crate::support::{AuditEvent, SYNCER, comes_to_rest};

in_both_modes!(
    a_variable_that_is_there_twice_with_a_use_of_it_between_means_the_same_at_the_edge,
    what_names_a_key_twice_goes_up_once_and_is_written_no_more,
);

/// A variable that another one uses before it changes, as `A` of `B`, and a port with two names.
fn pod(image: &str, last: &str) -> Value {
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": last}]);
    let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
    json!({"restartPolicy": "Always", "containers": [{"name": "c", "image": image, "env": env,
        "ports": [port("x", 80), port("y", 80), port("z", 90)]}]})
}

fn object((api_version, kind): (&str, &str), shop: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": shop, "name": "a"}, "spec": spec})
}

fn deployment(shop: &str, pod: &Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    object(("apps/v1", "Deployment"), shop, &spec)
}

fn job(shop: &str, pod: &Value) -> Value {
    let mut pod = pod.clone();
    pod["restartPolicy"] = json!("Never");
    object(("batch/v1", "Job"), shop, &json!({"template": {"spec": pod}}))
}

const OF_ALL: [([&str; 2], &str); 3] = [
    (["apps/v1", "deployments"], "/spec/template/spec"),
    (["batch/v1", "jobs"], "/spec/template/spec"),
    (["v1", "pods"], "/spec"),
];

/// What a container is given.
fn given(object: &Value, of_pod: &str) -> [Value; 3] {
    let container = object.pointer(&format!("{of_pod}/containers/0"));
    let container = container.unwrap_or_else(|| panic!("no container in {object}"));
    ["image", "env", "ports"].map(|field| container[field].clone())
}

async fn create_all(at: &Objects, shop: &str) {
    let pod = pod("example.org/c:1", "3");
    for object in [
        deployment(shop, &pod),
        job(shop, &pod),
        object(("v1", "Pod"), shop, &pod),
    ] {
        at.create(&object).await;
    }
}

/// Waits until all copies tell their containers what the origins do.
async fn all_are_given_the_same(from: &Objects, to: &Objects, shop: &str) {
    for ([api_version, plural], of_pod) in OF_ALL {
        let wanted = given(&arrives(from, api_version, plural, shop, "a").await, of_pod);
        becomes(to, [api_version, plural, shop, "a"], "is given the same", |copy| {
            given(copy, of_pod) == wanted
        })
        .await;
    }
}

async fn a_variable_that_is_there_twice_with_a_use_of_it_between_means_the_same_at_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    create_all(&hub, &shop).await;
    select(
        &hub,
        &all_of(&shop, &[("apps", "deployments"), ("batch", "jobs"), ("", "pods")]),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    all_are_given_the_same(&hub, &edge, &shop).await;
    let web = ["apps/v1", "deployments", &*shop, "a"];
    let generation = |copy: &Value| copy["metadata"]["generation"].as_u64().expect("it has one");
    let copy = arrives(&edge, web[0], web[1], web[2], web[3]).await;
    assert_eq!(generation(&copy), 1, "its pods are rolled out once");
    // The list and something else are changed at once; then something else alone.
    for (at, pod) in [(2, pod("example.org/c:2", "4")), (3, pod("example.org/c:3", "4"))] {
        hub.replace(&deployment(&shop, &pod)).await;
        all_are_given_the_same(&hub, &edge, &shop).await;
        // The label is written after all that.
        let number = at.to_string();
        let label = json!({"metadata": {"labels": {"at": number}}});
        hub.merge_patch(web[0], web[1], &shop, "a", &label).await;
        let copy = becomes(&edge, web, "has the label", |copy| {
            copy["metadata"]["labels"]["at"] == *number
        })
        .await;
        assert_eq!(generation(&copy), at, "its pods are rolled out once for each change");
    }
    // What the hub drops goes.
    let mut plain = pod("example.org/c:3", "4");
    plain["containers"][0]["ports"] = json!([{"name": "z", "containerPort": 90, "protocol": "TCP"}]);
    plain["containers"][0].as_object_mut().expect("it is one").remove("env");
    hub.replace(&deployment(&shop, &plain)).await;
    all_are_given_the_same(&hub, &edge, &shop).await;
    assert!(!syncer.log().contains("WARN"), "{}", syncer.log());
    let before = uid(&arrives(&edge, "batch/v1", "jobs", &shop, "a").await);
    syncer.terminate().await;
    let _syncer = pair.syncer(flags);
    all_are_given_the_same(&hub, &edge, &shop).await;
    assert_eq!(uid(&arrives(&edge, "batch/v1", "jobs", &shop, "a").await), before);
}

async fn what_names_a_key_twice_goes_up_once_and_is_written_no_more(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    create_all(&edge, &shop).await;
    // One entry means the same here.
    let mut same = deployment(&shop, &pod("example.org/c:1", "3"));
    same["metadata"]["name"] = json!("same");
    same["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]);
    edge.create(&same).await;
    let up = |group: &str, plural: &str| upsync_all(group, &[plural], &shop);
    let spec = json!({"upsync": [up("apps", "deployments"), up("batch", "jobs"), up("", "pods")]});
    select(&hub, &spec).await;
    {
        let _syncer = pair.syncer(flags);
        all_are_given_the_same(&edge, &hub, &shop).await;
        // Once by an apply.
        let label = json!({"metadata": {"labels": {"more": "1"}}});
        edge.merge_patch("apps/v1", "deployments", &shop, "a", &label).await;
        becomes(&hub, ["apps/v1", "deployments", &shop, "a"], "has the label", |copy| {
            copy["metadata"]["labels"]["more"] == "1"
        })
        .await;
    }
    let mark = pair.hub.audit_mark();
    // Two, without an election.
    let _both = [(); 2].map(|()| pair.syncer(flags));
    let proof = json!({"spec": {"replicas": 2}});
    edge.merge_patch("apps/v1", "deployments", &shop, "same", &proof).await;
    becomes(&hub, ["apps/v1", "deployments", &shop, "same"], "is scaled", |copy| {
        copy["spec"]["replicas"] == 2
    })
    .await;
    let named_a = |event: &AuditEvent| {
        let object = event.uri.split('?').next().unwrap_or_default();
        event.is_write() && object.contains(&*shop) && object.ends_with("/a")
    };
    let writes = comes_to_rest("nobody writes", Duration::from_secs(5), SOON, async || {
        let requests = pair.hub.requests_since(SYNCER, mark);
        Ok::<_, Infallible>(requests.into_iter().filter(named_a).collect::<Vec<_>>())
    })
    .await;
    assert!(writes.is_empty(), "{writes:#?}");
    all_are_given_the_same(&edge, &hub, &shop).await;
    let target = format!("{}?fieldManager=people", path("apps/v1", "deployments", &shop, "a"));
    let next = json!({"spec": {"template": {"spec": pod("example.org/c:2", "5")}}});
    let sent = edge.send(http::Method::PATCH, &target, MERGE_PATCH, Some(&next)).await;
    sent.expect("it is valid");
    all_are_given_the_same(&edge, &hub, &shop).await;
}
