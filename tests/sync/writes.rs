//! The verbs with which several may work on one object, on a real server.

use std::rc::Rc;

use bytes::Bytes;
use edge_syncer::side::Side;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::reload::Reloading;
use kube_lite::{Cluster, Content, Error, ListRequest, ObjectName, Operation, RateLimit, ResourceType, Scope};
use serde_json::{Value, json};

use crate::support::objects::{config_map, namespace};
use crate::support::{PairLease, Server, shared_pair};

/// As whom the tests write.
const WRITER: &str = "role-of-tests";

fn cluster(server: &Server) -> Rc<Cluster> {
    let access = AccessSource::Kubeconfig {
        path: server.kubeconfig(),
        context: None,
        flags: Flags::default(),
    };
    let server = Reloading::open(Side::Hub.word(), access, WRITER.into());
    let server = Box::new(server.expect("the kubeconfig was made for this"));
    Rc::new(Cluster::new(Side::Hub.word(), server, RateLimit::new(None), WRITER))
}

/// A hub with a namespace.
async fn with_namespace() -> (PairLease, String, Rc<Cluster>) {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    pair.hub.objects().create(&namespace(&shop)).await;
    let cluster = cluster(&pair.hub);
    (pair, shop, cluster)
}

fn json_of(answer: Result<Bytes, Error>) -> Value {
    let answer = answer.expect("the server takes it");
    serde_json::from_slice(&answer).expect("it is JSON")
}

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

#[tokio::test]
async fn a_write_with_a_condition_is_done_only_while_that_holds() {
    let (pair, shop, cluster) = with_namespace().await;
    let hub = pair.hub.objects();
    hub.create(&config_map(&shop, "a", json!({"k": "1"}))).await;
    let (maps, name) = (ResourceType::config_maps(), ObjectName::new(&shop, "a"));

    let (one, two) = (json!("1"), json!("2"));
    let from_one = [
        Operation::Test(&["data", "k"], &one),
        Operation::Replace(&["data", "k"], &two),
    ];
    let mut patched = json_of(cluster.json_patch(&maps, &name, &from_one, Content::Full).await);
    assert_eq!(patched["data"]["k"], "2");
    let manager = &patched["metadata"]["managedFields"];
    let managers = manager.as_array().expect("it has managers");
    assert!(managers.iter().any(|entry| entry["manager"] == WRITER), "{manager}");
    let again = cluster.json_patch(&maps, &name, &from_one, Content::Full).await;
    assert_eq!(again.unwrap_err().status().map(|status| status.code), Some(422));

    patched["data"]["k"] = json!("3");
    let replaced = json_of(cluster.replace(&maps, &name, bytes(&patched), Content::Metadata).await);
    assert_eq!(replaced["kind"], "PartialObjectMetadata");
    patched["data"]["k"] = json!("4");
    let late = cluster.replace(&maps, &name, bytes(&patched), Content::Metadata).await;
    assert!(late.as_ref().is_err_and(Error::is_conflict), "{late:?}");
    let found = hub.get("v1", "ConfigMap", &shop, "a").await.expect("it is there");
    assert_eq!(found["data"]["k"], "3");
}

#[tokio::test]
async fn what_gets_its_name_from_the_server_is_found_by_its_selectors() {
    let (_pair, shop, cluster) = with_namespace().await;
    let (maps, like) = (ResourceType::config_maps(), ObjectName::new(&shop, "made-"));
    let mut names = Vec::new();
    for round in 0..3 {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"generateName": "made-", "namespace": shop, "labels": {"round": round.to_string()}}});
        let made = json_of(cluster.create_generated(&maps, &like, bytes(&object)).await);
        names.push(made["metadata"]["name"].as_str().expect("it has a name").to_owned());
    }
    let mut listing = cluster.list(ListRequest {
        resource: maps,
        scope: Scope {
            namespace: Some((&*shop).into()),
            name: None,
        },
        label_selector: Some("round in (0, 1)".into()),
        field_selector: Some(format!("metadata.name!={}", names[0]).into()),
        content: Content::Metadata,
    });
    let mut found = Vec::new();
    while let Some(object) = listing.next().await.expect("the list is whole") {
        let object: Value = serde_json::from_slice(&object).expect("it is JSON");
        found.push(object["metadata"]["name"].as_str().expect("it has a name").to_owned());
    }
    assert_eq!(found, [names[1].clone()]);
}

#[tokio::test]
async fn what_belongs_to_an_object_is_created_and_replaced_by_itself() {
    let (pair, shop, cluster) = with_namespace().await;
    let hub = pair.hub.objects();
    let at = json!({"namespace": shop, "name": "a"});
    hub.create(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": at}))
        .await;
    let name = ObjectName::new(&shop, "a");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let accounts = ResourceType::service_accounts();
    let token = cluster.create_subresource(&accounts, &name, "token", bytes(&request));
    let token = json_of(token.await);
    assert!(token["status"]["token"].is_string(), "there is a token");

    let pods = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = hub
        .create(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": at,
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": pods}}))
        .await;
    let deployments = ResourceType {
        group: "apps".into(),
        version: "v1".into(),
        resource: "deployments".into(),
        kind: "Deployment".into(),
        namespaced: true,
    };
    let version = &made["metadata"]["resourceVersion"];
    let scale = |replicas: u32| {
        bytes(
            &json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas},
            "metadata": {"namespace": shop, "name": "a", "resourceVersion": version}}),
        )
    };
    let scaled = cluster
        .replace_subresource(&deployments, &name, "scale", scale(3))
        .await;
    assert_eq!(json_of(scaled)["kind"], "Scale");
    let late = cluster
        .replace_subresource(&deployments, &name, "scale", scale(5))
        .await;
    assert!(late.as_ref().is_err_and(Error::is_conflict), "{late:?}");
    let found = hub.get("apps/v1", "Deployment", &shop, "a").await.expect("it is there");
    assert_eq!(found["spec"]["replicas"], 3);
}
