//! The manifest for two replicas, and the permissions that it gives.

use http::Method;
use serde_json::{Value, json};

use crate::candidates::{BEGINS, LEASE, LEASES, count, is_about_the_lease, pair_with_one_config_map};
use crate::support::manifests::overlay;
use crate::support::objects::{JSON, namespace, path};
use crate::support::rbac::limited;
use crate::support::story::{SOON, arrives, stays_absent};
use crate::support::{SYNCER, Syncer, eventually, shared_pair};

#[tokio::test]
async fn the_manifest_is_what_an_api_server_takes() {
    let pair = shared_pair().await;
    let space = pair.namespace("syncer");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let objects = manifest("ha", &space);
    assert_eq!(objects.len(), 8);
    for object in &objects {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", collection_of(object));
        match edge.send(Method::POST, &path, JSON, Some(object)).await {
            Ok(_) => {}
            Err(error) if object["kind"] == "Namespace" => assert!(error.to_string().contains("already exists")),
            Err(error) => panic!("{}: {error}", object["kind"]),
        }
    }
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let deployment = deployment.expect("there is one");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(deployment["spec"]["replicas"], json!(2));
    let args = container["args"].as_array().expect("it has arguments");
    assert!(args.contains(&json!("--leader-elect")));
    // The arguments are ones that the program takes.
    let words = args.iter().filter_map(Value::as_str);
    let words = words.map(|word| word.replace("$(NAMESPACE)", &space).into());
    let parsed = edge_syncer::cli::parse(["syncer".into()].into_iter().chain(words));
    assert!(matches!(parsed, Ok(edge_syncer::cli::Invocation::Run(_))), "{parsed:?}");
}

#[tokio::test]
async fn a_refused_lease_is_reported_and_the_role_of_the_manifest_is_enough() {
    let (pair, shop) = pair_with_one_config_map().await;
    let space = pair.namespace("syncer");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let flags = ["--leader-elect"];
    let env = [("NAMESPACE", space.as_str())];
    let mut syncer = Syncer::start_with_env(&pair.hub.kubeconfig(), &limited(&pair.edge), &flags, &env);
    syncer
        .wait_for_log("the lease is refused, so nothing is done", SOON)
        .await;
    let advice =
        format!("advice=\"allow it to get, create and patch leases.coordination.k8s.io in namespace {space}\"");
    assert!(syncer.log().contains(&advice));
    stays_absent(&edge, "v1", "configmaps", &shop, "a").await;
    assert!(syncer.is_running());
    assert_eq!(count(&syncer, "the lease is refused"), 1, "it is logged once");

    for mut object in manifest("scoped", &space) {
        if object["kind"] == "RoleBinding" {
            object["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]);
        } else if object["kind"] != "Role" {
            continue;
        }
        edge.create(&object).await;
    }
    syncer.wait_for_log(BEGINS, SOON).await;
    // The record of synced types is within the role too.
    arrives(&edge, LEASES, "leases", &space, LEASE).await;
    eventually("the lease is renewed", SOON, async || {
        let requests = pair.edge.requests(SYNCER);
        let renewals = requests.iter().filter(|event| {
            is_about_the_lease(event) && event.uri.contains(&space) && event.verb == "patch" && event.code == 200
        });
        if renewals.count() > 0 { Ok(()) } else { Err("not yet") }
    })
    .await;
    assert!(!syncer.log().contains("cannot keep the record"), "{}", syncer.log());
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0));
    // It has three seconds for that, in which a busy edge may not answer.
    if !syncer.log().contains("could not release the lease") {
        let released = edge.get(LEASES, "leases", &space, LEASE).await.expect("it stays");
        assert_eq!(released["spec"]["holderIdentity"].as_str().unwrap_or_default(), "");
    }
}

/// Each try reads it first, which works.
#[tokio::test]
async fn a_lease_that_can_be_read_and_not_written_is_reported_once() {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let (pair, _) = pair_with_one_config_map().await;
    let space = pair.namespace("syncer");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let meta = json!({"namespace": space, "name": "reads-leases"});
    for object in [
        json!({"kind": "Role", "metadata": meta,
            "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}]}),
        json!({"kind": "RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reads-leases"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "limited"}]}),
    ] {
        let mut object = object;
        object["apiVersion"] = json!(format!("{RBAC}/v1"));
        edge.create(&object).await;
    }
    let env = [("NAMESPACE", space.as_str())];
    let flags = ["--leader-elect", "--lease-duration=5s"];
    let mut syncer = Syncer::start_with_env(&pair.hub.kubeconfig(), &limited(&pair.edge), &flags, &env);
    syncer.wait_for_log("reason=LeaseForbidden", SOON).await;
    let mark = pair.edge.audit_mark();
    eventually("it has tried often", SOON, async || {
        let requests = pair.edge.requests_since(SYNCER, mark);
        let tries = requests
            .iter()
            .filter(|event| is_about_the_lease(event) && event.uri.contains(&space) && event.code == 403);
        if tries.count() > 5 { Ok(()) } else { Err("not yet") }
    })
    .await;
    assert_eq!(count(&syncer, "the lease is refused"), 1, "{}", syncer.log());
    assert_eq!(count(&syncer, "can be used again"), 0, "{}", syncer.log());
}

/// The objects of an overlay for the sync target `test`.
fn manifest(name: &str, space: &str) -> Vec<Value> {
    let values = [
        ("syncer_id", "test"),
        ("sync_target_name", "test"),
        ("sync_target_uid", "test"),
        ("downstream_namespace", space),
        ("upstream_namespace", "default"),
        ("server_url", "https://hub.example.org:6443/clusters/abc"),
        ("cacrt", "eA=="),
        ("token", "t"),
        ("image", "registry.example.org/edge-syncer:latest"),
    ];
    overlay(name, &values)
}

fn collection_of(object: &Value) -> String {
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    path(
        &field(&object["apiVersion"]),
        &field(&object["kind"]),
        &field(&object["metadata"]["namespace"]),
        "",
    )
}
