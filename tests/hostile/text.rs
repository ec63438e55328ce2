//! Odd text and odd objects that API servers take: they arrive as they are, or mean the same.

use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::objects::{JSON, MERGE_PATCH, Objects, config_map, namespace, path};
use crate::support::stage::{Stage, config_maps, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, gone, install_crd};

const GROUP: &str = "odd.example.org";
const ODD: &str = "odd.example.org/v1";

/// The JSON of an answer, unread: what reads it into values refuses depth and changes numbers.
async fn raw(side: &Objects, method: Method, path: &str, kind: &str, body: String) -> Result<String, String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body.into_bytes())
        .map_err(|error| error.to_string())?;
    side.client()
        .request_text(request)
        .await
        .map_err(|error| error.to_string())
}

/// What stands at a key at the end of an object.
fn field<'a>(object: &'a str, key: &str) -> &'a str {
    let begin = object
        .rfind(&format!("\"{key}\":"))
        .map_or(object.len(), |at| at + key.len() + 3);
    object[begin..].trim_end().strip_suffix('}').unwrap_or_default()
}

/// Every character, in data of `ConfigMap`s.
#[tokio::test]
async fn every_character_arrives_in_data() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(&[]);
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    for (index, part) in all.chunks(100_000).enumerate() {
        let text: String = part.iter().collect();
        let name = format!("part{index}");
        hub.create(&config_map(&shop, &name, json!({"text": text}))).await;
        let copy = arrives(&edge, "v1", "configmaps", &shop, &name).await;
        assert!(copy["data"]["text"] == *text, "{name} has changed");
    }
}

/// Those that YAML may take for something else.
fn special() -> impl Iterator<Item = char> {
    let ranges = [
        '\0'..='\u{ff}',
        '\u{2000}'..='\u{206f}',
        '\u{fe00}'..='\u{ffff}',
        '\u{1f600}'..='\u{1f604}',
    ];
    ranges.into_iter().flatten().chain(['\u{10ffff}'])
}

#[tokio::test]
async fn characters_that_yaml_reads_otherwise_arrive_with_blanks_around_them() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(&[]);
    let parts: Vec<_> = special().map(|c| format!("a {c} b\n {c}\t{c}{c}")).collect();
    let text = parts.concat();
    let mut object = config_map(&shop, "prices", json!({"text": text}));
    object["metadata"]["annotations"] = json!({"example.org/text": text});
    hub.create(&object).await;
    let copy = arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    assert_eq!(copy["data"], object["data"]);
    assert_eq!(copy["metadata"]["annotations"]["example.org/text"], *text);
}

#[tokio::test]
async fn keys_arrive_whatever_they_are() {
    let Stage { pair, shop, hub, edge } = stage().await;
    install_crd(&[&hub, &edge], &crd(GROUP, "keys", true)).await;
    hub.create(&namespace(&shop)).await;
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [{"group": GROUP, "resource": "keys", "apiVersion": "v1"}]}});
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    let keys = special().map(|c| format!("a {c} ")).chain(special().map(String::from));
    let long = ["k".repeat(1100), "\u{85}".repeat(1100), "é".repeat(5000)];
    let odd = [
        "<<", "=", "", "? a", "- b", "#c", "&x", "*y", "!t", "null", "1", "~", "a:", ": ",
    ]
    .map(str::to_owned);
    let fields = keys
        .chain(long)
        .chain(odd)
        .map(|key| (key.clone(), json!({key: [1, "x"]})));
    let spec = Value::Object(fields.collect());
    let object = json!({"apiVersion": ODD, "kind": "Key", "metadata": {"namespace": shop, "name": "a"}, "spec": spec});
    hub.create(&object).await;
    let copy = arrives(&edge, ODD, "keys", &shop, "a").await;
    assert!(copy["spec"] == spec, "a key has changed");
}

/// A Deployment of one container with these fields.
fn deployment(shop: &str, container: &Value, pod: &Value) -> Value {
    let mut template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    template["spec"]["containers"] = json!([{"name": "first", "image": "example.org/a:1"}, container]);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": shop, "name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template}})
}

/// Helm charts name a variable twice, and give one port two names; apply takes neither.
#[tokio::test]
async fn what_apply_refuses_arrives_and_means_the_same() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let resource = |group: &str, resource: &str| json!({"group": group, "resource": resource, "apiVersion": "v1"});
    let resources = [
        resource("apps", "deployments"),
        resource("batch", "cronjobs"),
        resource("batch", "jobs"),
    ];
    select(
        &hub,
        &json!({"namespaceScope": {"namespaces": [shop], "resources": resources}}),
    )
    .await;
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "b"}, {"name": "A", "value": "2"}]);
    let referring = json!([{"name": "P", "value": "/a"}, {"name": "P", "value": "$(P):/b"}]);
    let ports = json!([{"name": "http", "containerPort": 80, "protocol": "TCP"},
        {"name": "metrics", "containerPort": 80, "protocol": "TCP"}, {"name": "z", "containerPort": 90, "protocol": "TCP"}]);
    let container = json!({"name": "c", "image": "example.org/c:1", "env": env, "ports": ports});
    let pod = json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}],
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}],
        "initContainers": [{"name": "i", "image": "example.org/i:1", "env": referring}]});
    hub.create(&deployment(&shop, &container, &pod)).await;
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.org/c:1", "env": env}]}}});
    hub.create(
        &json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"namespace": shop, "name": "web"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}}),
    )
    .await;
    hub.create(
        &json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": shop, "name": "web"}, "spec": job}),
    )
    .await;
    let _syncer = pair.syncer(&[]);

    let once = json!([{"name": "B", "value": "b"}, {"name": "A", "value": "2"}]);
    let web = ["apps/v1", "deployments", &shop, "web"];
    let of = |copy: &Value, pointer: &str| copy.pointer(&format!("/spec/template/spec{pointer}")).cloned();
    let is_so = |copy: &Value, image: &str| {
        of(copy, "/containers/1/ports").as_ref() == Some(&ports)
            && of(copy, "/containers/1/env").as_ref() == Some(&once)
            && of(copy, "/containers/1/image") == Some(json!(image))
            && of(copy, "/initContainers/0/env").as_ref() == Some(&referring)
            && of(copy, "/imagePullSecrets") == Some(json!([{"name": "a"}]))
            && of(copy, "/hostAliases") == Some(json!([{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]))
    };
    becomes(&edge, web, "is as the hub's", |copy| is_so(copy, "example.org/c:1")).await;
    for (plural, pointer) in [
        ("cronjobs", "/spec/jobTemplate/spec/template/spec/containers/0/env"),
        ("jobs", "/spec/template/spec/containers/0/env"),
    ] {
        let copy = arrives(&edge, "batch/v1", plural, &shop, "web").await;
        assert_eq!(copy.pointer(pointer), Some(&once), "{plural}");
    }

    let mut changed = container.clone();
    changed["image"] = json!("example.org/c:2");
    hub.replace(&deployment(&shop, &changed, &pod)).await;
    becomes(&edge, web, "has the new image", |copy| is_so(copy, "example.org/c:2")).await;
    changed["ports"] = json!([ports[1]]);
    hub.replace(&deployment(&shop, &changed, &json!({}))).await;
    becomes(&edge, web, "has one name for the port", |copy| {
        of(copy, "/containers/1/ports") == Some(json!([ports[1]])) && of(copy, "/initContainers").is_none()
    })
    .await;
}

/// A value of so many levels.
fn deep(levels: usize, leaf: u32) -> String {
    format!("{}{leaf}{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2))
}

#[tokio::test]
async fn what_is_nested_deeply_goes_both_ways() {
    let Stage { pair, shop, hub, edge } = stage().await;
    install_crd(&[&hub, &edge], &crd(GROUP, "deeps", true)).await;
    hub.create(&namespace(&shop)).await;
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [{"group": GROUP, "resource": "deeps", "apiVersion": "v1"}]}});
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    let at = path(ODD, "deeps", &shop, "");
    let object = |leaf| {
        format!(
            r#"{{"apiVersion":"{ODD}","kind":"Deep","metadata":{{"namespace":"{shop}","name":"a"}},"spec":{}}}"#,
            deep(500, leaf)
        )
    };
    let one = format!("{at}/a");
    let has = async |side: &Objects, key: &str, expected: &str| {
        eventually(
            &format!("{key} at {}", side.client().default_namespace()),
            SOON,
            async || {
                let object = raw(side, Method::GET, &one, JSON, String::new()).await?;
                if object.contains(&format!("\"{key}\":{expected}")) {
                    Ok(())
                } else {
                    Err(object)
                }
            },
        )
        .await;
    };
    raw(&hub, Method::POST, &at, JSON, object(1))
        .await
        .expect("the hub takes it");
    has(&edge, "spec", &deep(500, 1)).await;
    let status = |leaf| format!(r#"{{"status":{}}}"#, deep(500, leaf));
    let of_edge = format!("{one}/status");
    raw(&edge, Method::PATCH, &of_edge, MERGE_PATCH, status(7))
        .await
        .expect("the edge takes it");
    has(&hub, "status", &deep(500, 7)).await;
    // An object that has such a status is still synced.
    let patch = format!(r#"{{"spec":{}}}"#, deep(500, 2));
    raw(&hub, Method::PATCH, &one, MERGE_PATCH, patch)
        .await
        .expect("the hub takes it");
    has(&edge, "spec", &deep(500, 2)).await;
    raw(&edge, Method::PATCH, &of_edge, MERGE_PATCH, status(8))
        .await
        .expect("the edge takes it");
    has(&hub, "status", &deep(500, 8)).await;
}

#[tokio::test]
async fn the_numbers_of_a_status_return_digit_by_digit() {
    let Stage { pair, shop, hub, edge } = stage().await;
    install_crd(&[&hub, &edge], &crd(GROUP, "numbers", true)).await;
    hub.create(&namespace(&shop)).await;
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [{"group": GROUP, "resource": "numbers", "apiVersion": "v1"}]}});
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    hub.create(&json!({"apiVersion": ODD, "kind": "Number", "metadata": {"namespace": shop, "name": "a"}, "spec": {}}))
        .await;
    arrives(&edge, ODD, "numbers", &shop, "a").await;
    // With the last digits that a reader into binary numbers may get wrong.
    let mut random = fastrand::Rng::with_seed(13);
    let some = (0..500).map(|_| format!("{:e}", random.f64() * 10_f64.powi(random.i32(-300..300))));
    let odd = [
        "0.1",
        "1e21",
        "123456789012345678901234567890",
        "1.0",
        "-0.0",
        "9007199254740993",
        "5e-324",
    ];
    let numbers: Vec<String> = odd.map(str::to_owned).into_iter().chain(some).collect();
    let one = path(ODD, "numbers", &shop, "a");
    let status = format!(r#"{{"status":{{"numbers":[{}]}}}}"#, numbers.join(","));
    let answer = raw(&edge, Method::PATCH, &format!("{one}/status"), MERGE_PATCH, status).await;
    let written = answer.expect("the edge takes it");
    let shown = field(&written, "status");
    assert!(shown.contains("0.1,1e+21"), "{shown}");
    eventually("the status at the hub", SOON, async || {
        let object = raw(&hub, Method::GET, &one, JSON, String::new()).await?;
        if field(&object, "status") == shown {
            Ok(())
        } else {
            Err(object)
        }
    })
    .await;
}

/// RBAC objects may be called almost anything, selectors of fields included.
#[tokio::test]
async fn copies_whose_names_mean_something_in_a_selector_are_deleted() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let roles = "rbac.authorization.k8s.io/v1";
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [
        {"group": "rbac.authorization.k8s.io", "resource": "roles", "apiVersion": "v1"}]}});
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    let names = [
        "a=b",
        "a==b",
        "a!=b",
        "a,b",
        r"a\b",
        r"a\,b",
        "system:a",
        "z,metadata.name!=z",
    ];
    for name in names {
        let object =
            json!({"apiVersion": roles, "kind": "Role", "metadata": {"namespace": shop, "name": name}, "rules": []});
        hub.create(&object).await;
    }
    for name in names {
        let in_path = name.replace('\\', "%5C");
        arrives(&edge, roles, "roles", &shop, &in_path).await;
        assert!(hub.delete(roles, "roles", &shop, &in_path).await);
        gone(&edge, roles, "roles", &shop, &in_path).await;
    }
}
