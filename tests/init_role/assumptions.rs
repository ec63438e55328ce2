//! What the scenarios and the simulated kcp take for granted of a real one; both have to pass.

use http::Method;
use serde_json::{Value, json};

use crate::objects::widgets;
use crate::stage::{Stage, Which};
use crate::support::objects::{JSON, JSON_PATCH, MERGE_PATCH};
use crate::support::process::complain;
use crate::support::story::SOON;
use crate::support::{Objects, eventually};
use crate::wire::{get, post, send};
use crate::world::{World, create};

const LOGICAL: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters";

pub(crate) async fn kcp_does_what_is_assumed_of_it(which: Which) {
    let world = World::of(which).await;
    let discovery = json!({"nonResourceURLs": ["/api", "/apis"], "verbs": ["get"]});
    let some = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]});
    world.new_type("dev", Value::Null).await;
    world
        .new_type("ruled", json!({"initializerPermissions": [discovery, some]}))
        .await;
    for name in ["dev", "ruled"] {
        world.workspace(name, name).await;
    }
    of_objects(&world).await;
    of_definitions(&world).await;
    of_the_wildcard(&world).await;
    of_a_waiting_cluster(&world).await;
    of_given_rights(&world).await;
    of_users(&world).await;
    of_a_cluster_that_is_let_go(&world).await;
}

/// The virtual workspace of a type's initializer: a cluster in it, or all.
async fn below(world: &World, of_type: &str, cluster: &str, user: Option<&str>) -> Objects {
    let initializer = world.initializer(of_type).await;
    let path = format!("/services/initializingworkspaces/{initializer}/clusters/{cluster}");
    world.stage.objects(&world.folder, &path, user).await
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

async fn of_objects(world: &World) {
    complain("of objects");
    let at = &below(world, "dev", &world.waits("dev").await, None).await;
    let (maps, spaces) = ("/api/v1/namespaces/base/configmaps", "/api/v1/namespaces");
    let missing = post(at, maps, &config_map("a")).await.fails(404, "NotFound");
    assert_eq!(missing["details"]["kind"], "namespaces", "{missing}");
    let base = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "base"}});
    post(at, spaces, &base).await.is(201);
    post(at, spaces, &base).await.fails(409, "AlreadyExists");
    let made = post(at, maps, &config_map("a")).await.is(201);
    assert!(made["metadata"]["uid"].is_string() && made["metadata"]["resourceVersion"].is_string());
    assert!(made["metadata"]["annotations"]["kcp.io/cluster"].is_string(), "{made}");
    post(at, "/api/v1/configmaps", &config_map("a")).await.is(405);
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let generated = post(at, maps, &generated).await.is(201);
    let name = generated["metadata"]["name"].as_str().expect("it has one");
    assert!(name.starts_with("a-") && name.len() > 2, "{name}");
    get(at, &format!("{maps}/none")).await.fails(404, "NotFound");
    let unknown = json!({"apiVersion": "nowhere.example.com/v1", "kind": "Unknown", "metadata": {"name": "u"}});
    post(at, "/apis/nowhere.example.com/v1/unknowns", &unknown)
        .await
        .says_not_served();
    get(at, "/apis/nowhere.example.com/v1/unknowns/u")
        .await
        .says_not_served();
    // A version that is not there has no types.
    let none = get(at, "/apis/nowhere.example.com/v1").await.is(200);
    assert_eq!(none["resources"], json!([]), "{none}");
}

async fn of_definitions(world: &World) {
    complain("of definitions");
    let at = &below(world, "dev", &world.waits("dev").await, None).await;
    // Both are asked for in the aggregated form.
    for (path, kind, list) in [
        ("/api", "APIGroupDiscoveryList", "items"),
        ("/apis", "APIGroupList", "groups"),
    ] {
        let all = get(at, path).await.is(200);
        assert_eq!(all["kind"], kind, "{all}");
        assert!(!all[list].as_array().expect("it is a list").is_empty());
    }
    get(at, "/apis/nowhere.example.com").await.says_not_served();
    let group = format!("{}.example.com", world.suffix);
    let both = widgets(&group, "");
    let (_, definition) = both.split_once("---\n").expect("there are two");
    let definition: Value = serde_saphyr::from_str(definition).expect("it is YAML");
    let widget = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w"}});
    let path = format!("/apis/{group}/v1/widgets");
    create(at, &definition).await;
    eventually("the type is served", SOON, async || {
        let answer = post(at, &path, &widget).await;
        if answer.code == 201 {
            return Ok(());
        }
        let shown = answer.text.clone();
        // Until then it is as if there were none.
        answer.says_not_served();
        Err(shown)
    })
    .await;
    // Discovery may list it before that, or later.
    eventually("discovery lists the type", SOON, async || {
        let all = get(at, "/apis").await.is(200);
        let version = get(at, &format!("/apis/{group}/v1")).await.is(200);
        let is_listed = all.to_string().contains(&group) && version.to_string().contains("widgets");
        is_listed.then_some(()).ok_or(all)
    })
    .await;
}

async fn of_the_wildcard(world: &World) {
    complain("of the wildcard");
    let id = world.waits("dev").await;
    let at = &below(world, "dev", "*", None).await;
    let list = get(at, LOGICAL).await.is(200);
    let items = list["items"].as_array().expect("it is a list");
    assert_eq!(items.len(), 1, "{list}");
    let meta = &items[0]["metadata"];
    assert_eq!(
        (&meta["name"], &meta["annotations"]["kcp.io/cluster"]),
        (&json!("cluster"), &json!(id))
    );
    assert_eq!(meta["annotations"]["kcp.io/path"], world.path_of("dev"));
    assert!(list["metadata"]["resourceVersion"].is_string());
    let types = get(at, "/apis/core.kcp.io/v1alpha1").await.is(200);
    let names = types["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["name"]);
    assert!(names.into_iter().any(|name| name == "logicalclusters"), "{types}");
    let code = get(at, "/api/v1/configmaps").await.code;
    assert!(matches!(code, 403 | 404), "{code}");
    let by_path = &below(world, "dev", &world.path_of("dev"), None).await;
    let code = get(by_path, &format!("{LOGICAL}/cluster")).await.code;
    assert!(matches!(code, 403 | 404), "{code}");
}

async fn of_a_waiting_cluster(world: &World) {
    complain("of a waiting cluster");
    let at = &below(world, "dev", &world.waits("dev").await, None).await;
    let (one, status) = (format!("{LOGICAL}/cluster"), format!("{LOGICAL}/cluster/status"));
    let logical = get(at, &one).await.is(200);
    let own = world.initializer("dev").await;
    assert_eq!(logical["status"]["initializers"], json!([own]));
    assert_eq!(logical["status"]["phase"], "Initializing");
    get(at, LOGICAL).await.is(405);
    let nothing = json!([]);
    send(at, Method::PATCH, &one, JSON_PATCH, &nothing).await.is(405);
    get(at, &status).await.is(200);
    // The list stays as long as it was, or becomes shorter by the own one.
    let first = "/status/initializers/0";
    let wrong = json!([{"op": "test", "path": first, "value": "root:other"}, {"op": "remove", "path": first}]);
    let code = send(at, Method::PATCH, &status, JSON_PATCH, &wrong).await.code;
    assert!(matches!(code, 409 | 422), "{code}");
    let longer = json!({"status": {"initializers": ["root:other", own]}});
    send(at, Method::PATCH, &status, MERGE_PATCH, &longer)
        .await
        .fails(422, "Invalid");
    let same = json!({"status": {"initializers": [own]}});
    send(at, Method::PATCH, &status, MERGE_PATCH, &same).await.is(200);
    let mut old = logical.clone();
    old["metadata"]["resourceVersion"] = json!("1");
    send(at, Method::PUT, &status, JSON, &old).await.fails(409, "Conflict");
}

async fn of_given_rights(world: &World) {
    complain("of given rights");
    let of_types = world.user.as_str();
    let at = &below(world, "ruled", &world.waits("ruled").await, Some(of_types)).await;
    eventually("the user may initialize", SOON, async || {
        let answer = get(at, "/api").await;
        if answer.code == 200 { Ok(()) } else { Err(answer.text) }
    })
    .await;
    get(at, "/apis").await.is(200);
    get(at, "/apis/apps/v1")
        .await
        .says(403, "no rule allows get on /apis/apps/v1");
    let maps = "/api/v1/namespaces/base/configmaps";
    let missing = post(at, maps, &config_map("a")).await.fails(404, "NotFound");
    assert_eq!(missing["details"]["kind"], "namespaces", "{missing}");
    let words = "denied by initializerPermissions: no rule allows create on core/secrets in namespace base";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    post(at, "/api/v1/namespaces/base/secrets", &secret)
        .await
        .says(403, words);
    get(at, &format!("{maps}/a"))
        .await
        .says(403, "no rule allows get on core/configmaps (a) in namespace base");
    get(at, &format!("{LOGICAL}/cluster")).await.is(200);
}

async fn of_users(world: &World) {
    complain("of users");
    let nobody = Stage::new_user();
    let id = world.waits("dev").await;
    let at = &below(world, "dev", &id, Some(&nobody)).await;
    get(at, &format!("{LOGICAL}/cluster")).await.fails(403, "Forbidden");
    get(at, "/api").await.fails(403, "Forbidden");
    let all = &below(world, "dev", "*", Some(&nobody)).await;
    get(all, LOGICAL).await.fails(403, "Forbidden");
    let path = "/apis/initialization.kcp.io/v1alpha1/inittargets";
    let conf = &world
        .stage
        .objects(&world.folder, &world.conf_path, Some(&nobody))
        .await;
    get(conf, path).await.fails(403, "Forbidden");
    let own = &world
        .stage
        .objects(&world.folder, &world.conf_path, Some(&world.user))
        .await;
    get(own, path).await.is(200);
    get(own, "/api/v1/secrets").await.fails(403, "Forbidden");
    // What is not there is not shown either.
    let nowhere = &world
        .stage
        .objects(&world.folder, "root:no-such-workspace", Some(&world.user))
        .await;
    let code = get(nowhere, path).await.code;
    assert!(matches!(code, 403 | 404), "{code}");
}

async fn of_a_cluster_that_is_let_go(world: &World) {
    complain("of a cluster that is let go");
    let at = &below(world, "dev", &world.waits("dev").await, None).await;
    let all = &below(world, "dev", "*", None).await;
    let list = get(all, LOGICAL).await.is(200);
    let since = list["metadata"]["resourceVersion"].as_str().expect("it has one");
    let watch = format!("{LOGICAL}?watch=true&resourceVersion={since}&timeoutSeconds=5&allowWatchBookmarks=true");
    let removal = async {
        let first = "/status/initializers/0";
        let own = world.initializer("dev").await;
        let patch = json!([{"op": "test", "path": first, "value": own}, {"op": "remove", "path": first}]);
        let status = format!("{LOGICAL}/cluster/status");
        send(at, Method::PATCH, &status, JSON_PATCH, &patch).await.is(200);
    };
    let (seen, ()) = tokio::join!(get(all, &watch), removal);
    let seen = seen.text;
    let lines = seen.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let deleted = lines.filter(|line| line["type"] == "DELETED").count();
    assert_eq!(deleted, 1, "{seen}");
    world.ready("dev").await;
    eventually("it is out of reach", SOON, async || {
        let answer = get(at, "/api").await;
        if answer.code == 403 {
            Ok(answer)
        } else {
            Err(answer.text)
        }
    })
    .await
    .says(403, "cannot access this workspace");
    get(at, &format!("{LOGICAL}/cluster")).await.fails(404, "NotFound");
    let list = get(all, LOGICAL).await.is(200);
    assert_eq!(list["items"], json!([]));
}
