//! What the scenarios and the simulated kcp take for granted of a real one, about exports and what their virtual workspaces
//! show; both have to pass.
//!
//! | of | it is assumed that |
//! |---|---|
//! | slices | a moment after each export there is one with its name; it has no URL until somebody has bound that |
//! | discovery | the virtual workspace lists the types of the export and those that it claims, and no others |
//! | the wildcard | until a type is served, a list is 404, or empty and without a version; then it has the objects of all bound workspaces, with `kcp.io/cluster` |
//! | one workspace | a status is written by its subresource alone; where the schema has none, the object is said to be not found |
//! | preconditions | another UID or version of an object is a 409, in patches, updates and deletes |
//! | deletion | an object with finalizers stays, with a time; it goes with the last of them |
//! | claims | objects are shown where the claim is accepted; elsewhere they are not found, or forbidden |
//! | strangers | a workspace that has not bound the export, and a user without `apiexports/content`, get 403 or 404 |
//! | the end of a binding | its objects are deleted, and it stays until they are gone |

use http::Method;
use serde_json::{Value, json};

use crate::stage::{Stage, Which};
use crate::support::objects::{JSON, JSON_PATCH, MERGE_PATCH, namespace, secret};
use crate::support::process::complain;
use crate::support::story::{SOON, becomes, gone};
use crate::support::{Objects, eventually};
use crate::wire::{get, post, send};
use crate::world::{APIS, Consumer, World, create};

/// A world with an export that was made without an agent, and what its virtual workspaces are.
struct Scene {
    world: World,
    consumer: Consumer,
    /// The virtual workspace without what names a workspace.
    base: String,
    shops: String,
}

impl Scene {
    async fn at(&self, what: &str, user: Option<&str>) -> Objects {
        let path = format!("{}/clusters/{what}", self.base);
        self.world.stage.objects(&self.world.folder, &path, user).await
    }
}

pub(crate) async fn kcp_does_what_is_assumed_of_it(which: Which) {
    let scene = of_slices(which).await;
    of_discovery(&scene).await;
    of_the_wildcard(&scene).await;
    of_one_workspace(&scene).await;
    of_deletion(&scene).await;
    of_claims(&scene).await;
    of_strangers(&scene).await;
    of_the_end_of_a_binding(&scene).await;
}

fn schema(world: &World, plural: &str, kind: &str, has_status: bool) -> Value {
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    json!({"apiVersion": APIS, "kind": "APIResourceSchema",
        "metadata": {"name": format!("v1.{plural}.{}", world.group)}, "spec": {"group": world.group,
        "scope": "Namespaced", "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
        "singular": kind.to_lowercase()}, "versions": [{"name": "v1", "served": true, "storage": true,
        "subresources": subresources, "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}})
}

async fn of_slices(which: Which) -> Scene {
    complain("of slices");
    let world = World::of(which).await;
    for (plural, kind, has_status) in [("shops", "Shop", true), ("plains", "Plain", false)] {
        create(&world.provider, &schema(&world, plural, kind, has_status)).await;
    }
    let names = ["shops", "plains"].map(|plural| format!("v1.{plural}.{}", world.group));
    let claims = ["namespaces", "secrets"].map(|resource| json!({"resource": resource, "all": true}));
    let spec = json!({"spec": {"latestResourceSchemas": names, "permissionClaims": claims}});
    world
        .provider
        .merge_patch(APIS, "apiexports", "", &world.export, &spec)
        .await;
    let at = [APIS, "apiexportendpointslices", "", &world.export];
    let slice = becomes(&world.provider, at, "is there", |_| true).await;
    assert_eq!(slice["spec"]["export"]["name"], world.export);
    let none = &slice["status"]["endpoints"];
    assert!(none.as_array().is_none_or(Vec::is_empty), "{slice}");
    let consumer = world.visitor("a").await;
    world.bind(&consumer, &[["", "secrets"]]).await;
    consumer.objects.create(&namespace("shop")).await;
    let slice = becomes(&world.provider, at, "has a URL", |it| {
        it["status"]["endpoints"].as_array().is_some_and(|all| !all.is_empty())
    })
    .await;
    let url = slice["status"]["endpoints"][0]["url"].as_str().expect("it has one");
    let (_, path) = url.split_once("/services/apiexport/").expect("it is one of exports");
    assert!(path.ends_with(&format!("/{}", world.export)), "{url}");
    let shops = format!("/apis/{}/namespaces/shop/shops", world.v1());
    Scene {
        base: format!("/services/apiexport/{path}"),
        shops,
        world,
        consumer,
    }
}

async fn of_discovery(scene: &Scene) {
    complain("of discovery");
    let all = scene.at("*", None).await;
    let found = eventually("discovery lists the types", SOON, async || {
        let list = get(&all, &format!("/apis/{}", scene.world.v1())).await.body();
        let names = list["resources"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = names
            .iter()
            .filter_map(|it| it["name"].as_str().map(str::to_owned))
            .collect();
        let has_both = ["shops", "plains"].iter().all(|name| names.iter().any(|it| it == name));
        has_both.then_some(names).ok_or(list)
    })
    .await;
    assert!(found.contains(&"shops/status".to_owned()), "{found:?}");
    assert!(!found.contains(&"plains/status".to_owned()), "{found:?}");
    get(&all, "/api/v1/configmaps").await.says_not_served();
}

async fn of_the_wildcard(scene: &Scene) {
    complain("of the wildcard");
    let world = &scene.world;
    world.open(&scene.consumer, "web", &json!({"size": 1})).await;
    let all = scene.at("*", None).await;
    let path = format!("/apis/{}/shops", world.v1());
    let list = eventually("the objects are listed", SOON, async || {
        let answer = get(&all, &path).await;
        let list = answer.body();
        if answer.code == 404 {
            return Err(answer.text);
        }
        assert_eq!(answer.code, 200, "{}", answer.text);
        let count = list["items"].as_array().map_or(0, Vec::len);
        // Without a version it says nothing.
        let has_version = list["metadata"]["resourceVersion"].is_string();
        assert!(has_version || count == 0, "{list}");
        (count == 1).then_some(list).ok_or(answer.text)
    })
    .await;
    let metadata = &list["items"][0]["metadata"];
    assert_eq!(metadata["annotations"]["kcp.io/cluster"], scene.consumer.id);
    let since = list["metadata"]["resourceVersion"].as_str().expect("it has one");
    let watch = format!("{path}?watch=true&resourceVersion={since}&timeoutSeconds=3");
    let size = json!({"spec": {"size": 2}});
    let edit = world.edit(&scene.consumer, "web", &size);
    let (seen, ()) = tokio::join!(get(&all, &watch), edit);
    assert!(seen.text.contains("\"MODIFIED\""), "{}", seen.text);
    let bindings = get(&all, "/apis/apis.kcp.io/v1alpha1/apibindings").await.is(200);
    assert_eq!(bindings["items"].as_array().map(Vec::len), Some(1), "{bindings}");
}

async fn of_one_workspace(scene: &Scene) {
    complain("of one workspace");
    let at = &scene.at(&scene.consumer.id, None).await;
    let web = format!("{}/web", scene.shops);
    let status = format!("{web}/status");
    let body = json!({"status": {"ready": 1}});
    // By the object itself it is left out.
    let now = send(at, Method::PATCH, &web, MERGE_PATCH, &body).await.is(200);
    assert!(now["status"].is_null(), "{now}");
    let now = send(at, Method::PATCH, &status, MERGE_PATCH, &body).await.is(200);
    assert_eq!(now["status"], json!({"ready": 1}), "{now}");
    let uid = now["metadata"]["uid"].as_str().expect("it has one");
    let replace = |uid: &str| {
        json!([{"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": {"ready": 2}}])
    };
    send(at, Method::PATCH, &status, JSON_PATCH, &replace(uid))
        .await
        .is(200);
    send(at, Method::PATCH, &status, JSON_PATCH, &replace("other"))
        .await
        .fails(422, "Invalid");
    for metadata in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let mut metadata = metadata;
        metadata["labels"] = json!({"a": "b"});
        let patch = json!({"metadata": metadata});
        send(at, Method::PATCH, &web, MERGE_PATCH, &patch)
            .await
            .fails(409, "Conflict");
    }
    let plains = format!("/apis/{}/namespaces/shop/plains", scene.world.v1());
    let plain = json!({"apiVersion": scene.world.v1(), "kind": "Plain", "metadata": {"name": "p"}});
    post(at, &plains, &plain).await.is(201);
    let status = format!("{plains}/p/status");
    for at in [at, &scene.consumer.objects] {
        let missing = send(at, Method::PATCH, &status, MERGE_PATCH, &body)
            .await
            .fails(404, "NotFound");
        // As if there were no such object.
        assert_eq!(missing["details"]["name"], "p", "{missing}");
    }
    get(at, &format!("{plains}/p")).await.is(200);
}

async fn of_deletion(scene: &Scene) {
    complain("of deletion");
    let at = &scene.at(&scene.consumer.id, None).await;
    let web = format!("{}/web", scene.shops);
    let held = json!({"metadata": {"finalizers": ["example.org/held"]}});
    send(at, Method::PATCH, &web, MERGE_PATCH, &held).await.is(200);
    let other = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "other"}});
    send(at, Method::DELETE, &web, JSON, &other)
        .await
        .fails(409, "Conflict");
    send(at, Method::DELETE, &web, JSON, &Value::Null).await.is(200);
    let now = get(at, &web).await.is(200);
    assert!(now["metadata"]["deletionTimestamp"].is_string(), "{now}");
    let let_go = json!({"metadata": {"finalizers": null}});
    send(at, Method::PATCH, &web, MERGE_PATCH, &let_go).await.is(200);
    let gone = get(at, &web).await.fails(404, "NotFound");
    assert_eq!(gone["details"]["name"], "web", "{gone}");
}

async fn of_claims(scene: &Scene) {
    complain("of claims");
    scene.consumer.objects.create(&secret("shop", "mine", "1")).await;
    let at = &scene.at(&scene.consumer.id, None).await;
    eventually("what is accepted is shown", SOON, async || {
        let answer = get(at, "/api/v1/namespaces/shop/secrets/mine").await;
        if answer.code == 200 { Ok(()) } else { Err(answer.text) }
    })
    .await;
    let space = get(at, "/api/v1/namespaces/shop").await.code;
    assert!(matches!(space, 403 | 404), "{space}");
    let made = post(at, "/api/v1/namespaces", &namespace("other")).await.code;
    assert!(matches!(made, 403 | 404), "{made}");
}

async fn of_strangers(scene: &Scene) {
    complain("of strangers");
    let stranger = scene.world.visitor("stranger").await;
    let at = &scene.at(&stranger.id, None).await;
    let code = get(at, &format!("{}/web", scene.shops)).await.code;
    assert!(matches!(code, 403 | 404), "{code}");
    let nobody = Stage::new_user();
    let all = &scene.at("*", Some(&nobody)).await;
    let path = format!("/apis/{}/shops", scene.world.v1());
    get(all, &path).await.fails(403, "Forbidden");
    let own = &scene.at("*", Some(&scene.world.user)).await;
    get(own, &path).await.is(200);
}

async fn of_the_end_of_a_binding(scene: &Scene) {
    complain("of the end of a binding");
    let (world, consumer) = (&scene.world, &scene.consumer);
    world.open(consumer, "last", &json!({"size": 1})).await;
    let held = json!({"metadata": {"finalizers": ["example.org/held"]}});
    world.edit(consumer, "last", &held).await;
    consumer.objects.delete(APIS, "apibindings", "", &world.export).await;
    world
        .shows(consumer, "last", "is being deleted", |it| {
            !it["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    assert!(
        consumer
            .objects
            .get(APIS, "apibindings", "", &world.export)
            .await
            .is_some()
    );
    world
        .edit(consumer, "last", &json!({"metadata": {"finalizers": null}}))
        .await;
    gone(&consumer.objects, APIS, "apibindings", "", &world.export).await;
}
