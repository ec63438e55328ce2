//! What edge-syncer assumes of status subresources, of namespaces that are going, and of types that come and go, one case
//! each.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{APPLY, Answer, Bench, JSON, MERGE, eventually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A type of the case's own, namespaced, at version `v1`: its group.
fn own_group(bench: &Bench<'_>) -> String {
    format!("{}.example.org", bench.namespace)
}

/// The CRD of `things` in that group.
fn definition(group: &str, subresources: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Where the objects of that type are.
fn things(bench: &Bench<'_>) -> String {
    format!("/apis/{}/v1/namespaces/{}/things", own_group(bench), bench.namespace)
}

fn thing(bench: &Bench<'_>) -> Value {
    let metadata = json!({"namespace": bench.namespace, "name": "it"});
    json!({"apiVersion": format!("{}/v1", own_group(bench)), "kind": "Thing", "metadata": metadata,
        "spec": {"size": 1}, "status": {"at": "create"}})
}

/// Makes the type, and waits until it is served and reported.
async fn install(bench: &Bench<'_>, subresources: &Value) {
    let group = own_group(bench);
    let created = bench
        .send(Method::POST, DEFINITIONS, JSON, &definition(&group, subresources))
        .await;
    created.is(201);
    eventually(async || bench.get(&things(bench)).await.code == 200).await;
    eventually(async || names(&types_of(bench).await).contains(&"things".to_owned())).await;
    eventually(async || names(&bench.get("/apis").await).contains(&group)).await;
}

/// What discovery reports of the group version.
async fn types_of(bench: &Bench<'_>) -> Answer {
    bench.get(&format!("/apis/{}/v1", own_group(bench))).await
}

/// The names that discovery tells; none if it tells that there is nothing.
fn names(answer: &Answer) -> Vec<String> {
    let lists = ["groups", "resources"].map(|field| answer.body[field].as_array().cloned().unwrap_or_default());
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    lists.iter().flatten().map(name).collect()
}

/// Creates the object of a path, which names its collection.
async fn create(bench: &Bench<'_>, collection: &str, object: &Value) -> Value {
    bench.send(Method::POST, collection, JSON, object).await.is(201)
}

pub(crate) async fn where_status_is_a_subresource_each_patch_leaves_the_other_part_alone(bench: &Bench<'_>) {
    let namespace = &bench.namespace;
    let labels = json!({"app": "it"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "it"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "it"}]}}},
        "status": {"replicas": 1},
    });
    let collection = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    is_kept_apart(bench, &collection, &deployment, "replicas").await;
    // The same where a CRD says so.
    install(bench, &json!({"status": {}})).await;
    let mut thing = thing(bench);
    thing["spec"] = json!({"replicas": 1});
    thing["status"] = json!({"replicas": 1});
    is_kept_apart(bench, &things(bench), &thing, "replicas").await;
    assert!(names(&types_of(bench).await).contains(&"things/status".to_owned()));
}

/// Writes spec and status of an object called `it` by each path, with numbers in one field of both.
async fn is_kept_apart(bench: &Bench<'_>, collection: &str, object: &Value, field: &str) {
    let parts = |object: &Value| [object["spec"][field].clone(), object["status"][field].clone()];
    let created = create(bench, collection, object).await;
    assert_eq!(parts(&created), [json!(1), Value::Null], "a create sets no status");
    let path = format!("{collection}/it");
    let both = |number: u32| json!({"spec": {field: number}, "status": {field: number}});
    let changed = bench.send(Method::PATCH, &path, MERGE, &both(2)).await.is(200);
    assert_eq!(parts(&changed), [json!(2), Value::Null]);
    let status = format!("{path}/status");
    let reported = bench.send(Method::PATCH, &status, MERGE, &both(3)).await.is(200);
    assert_eq!(parts(&reported), [json!(2), json!(3)]);
    assert_eq!(reported["metadata"]["generation"], changed["metadata"]["generation"]);
    let changed = bench.send(Method::PATCH, &path, MERGE, &both(4)).await.is(200);
    assert_eq!(parts(&changed), [json!(4), json!(3)]);
    let mut applied = object.clone();
    applied["spec"][field] = json!(5);
    applied["status"] = json!({field: 5});
    let apply = format!("{path}?fieldManager=test&force=true");
    let applied = bench.send(Method::PATCH, &apply, APPLY, &applied).await.is(200);
    assert_eq!(parts(&applied), [json!(5), json!(3)]);
    // A version that has passed is a conflict here too.
    let old = json!({"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "status": {field: 6}});
    let late = bench.send(Method::PATCH, &status, MERGE, &old).await;
    late.fails(409, "Conflict");
    // What changes nothing makes no version.
    let same = bench
        .send(Method::PATCH, &status, MERGE, &json!({"status": {field: 3}}))
        .await
        .is(200);
    assert_eq!(
        same["metadata"]["resourceVersion"],
        applied["metadata"]["resourceVersion"]
    );
}

pub(crate) async fn where_status_is_no_subresource_it_is_a_field_and_its_path_a_404(bench: &Bench<'_>) {
    install(bench, &json!({})).await;
    assert!(!names(&types_of(bench).await).contains(&"things/status".to_owned()));
    let created = create(bench, &things(bench), &thing(bench)).await;
    assert_eq!(created["status"], json!({"at": "create"}));
    let path = format!("{}/it", things(bench));
    let change = json!({"spec": {"size": 2}, "status": {"at": "patch"}});
    let changed = bench.send(Method::PATCH, &path, MERGE, &change).await.is(200);
    assert_eq!(changed["status"], change["status"]);
    assert_eq!(changed["spec"], change["spec"]);
    // Of a type that a CRD defines, it names the object as if that were missing.
    let status = format!("{path}/status");
    let lacking = bench
        .send(Method::PATCH, &status, MERGE, &json!({"status": {"at": "status"}}))
        .await
        .is(404);
    assert_eq!(lacking["details"]["name"], "it", "{lacking}");
    assert_eq!(bench.get(&path).await.is(200), changed);
    // Neither has a built-in type without one.
    bench.create("it").await;
    let status = format!("{}/status", bench.path("it"));
    bench
        .send(Method::PATCH, &status, MERGE, &json!({"status": {"at": "status"}}))
        .await
        .is(404);
}

pub(crate) async fn a_namespace_that_is_going_refuses_what_is_new_and_takes_changes(bench: &Bench<'_>) {
    // Held by what is in it.
    let mut object = bench.object("it", "1");
    object["metadata"]["finalizers"] = json!(["example.org/wait"]);
    bench.create_object(&object).await;
    let path = format!("/api/v1/namespaces/{}", bench.namespace);
    let going = bench.send(Method::DELETE, &path, JSON, &Value::Null).await.is(200);
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");
    let new = bench.object("new", "1");
    let collection = bench.path("");
    for answer in [
        bench.send(Method::POST, &collection, JSON, &new).await,
        bench.apply("test", true, &new).await,
    ] {
        let details = answer.fails(403, "Forbidden")["details"].clone();
        assert_eq!(details["name"], "new", "{details}");
        let causes = details["causes"].as_array().expect("it says why");
        assert_eq!(causes.len(), 1, "{details}");
        assert_eq!(causes[0]["reason"], "NamespaceTerminating");
        assert_eq!(causes[0]["field"], "metadata.namespace");
    }
    // What is there can be changed and freed; to delete the namespace once more is no error.
    bench.change("it", "2").await;
    bench.apply("test", true, &bench.object("it", "3")).await.is(200);
    let again = bench.send(Method::DELETE, &path, JSON, &Value::Null).await;
    assert!(matches!(again.code, 200 | 409), "{}", again.body);
    // It exists already, for as long as it is going.
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bench.namespace}});
    let created = bench.send(Method::POST, "/api/v1/namespaces", JSON, &space).await;
    created.fails(409, "AlreadyExists");
}

pub(crate) async fn a_type_comes_with_its_crd_and_goes_with_it_and_with_all_of_its_objects(bench: &Bench<'_>) {
    let group = own_group(bench);
    let gone = async |answer: Answer, what: &str| {
        let body = answer.is(404);
        let name = body["details"]["name"].as_str().unwrap_or_default();
        assert_eq!(name, "", "{what}: {body}");
    };
    gone(bench.get(&things(bench)).await, "before").await;
    install(bench, &json!({})).await;
    let first = create(bench, &things(bench), &thing(bench)).await;
    let crd = format!("{DEFINITIONS}/things.{group}");
    bench.send(Method::DELETE, &crd, JSON, &Value::Null).await.is(200);
    eventually(async || bench.get(&crd).await.code == 404).await;
    eventually(async || bench.get(&things(bench)).await.code == 404).await;
    eventually(async || types_of(bench).await.code == 404).await;
    eventually(async || !names(&bench.get("/apis").await).contains(&group)).await;
    gone(bench.get(&things(bench)).await, "the collection").await;
    gone(bench.get(&format!("{}/it", things(bench))).await, "the object").await;
    gone(types_of(bench).await, "discovery").await;
    // It comes again, and empty.
    install(bench, &json!({})).await;
    let list = bench.get(&things(bench)).await.is(200);
    assert_eq!(list["items"], json!([]));
    let second = create(bench, &things(bench), &thing(bench)).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
}
