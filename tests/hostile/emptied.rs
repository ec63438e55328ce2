//! Objects and lists that are emptied: an apply alone makes null or nothing of them, or is refused for it.

use http::Method;
use serde_json::{Value, json};

use crate::support::objects::{JSON_PATCH, Objects, namespace, path};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{arrives, becomes, crd, install_crd, remains, upsync_all};

/// A CRD whose objects have fields of every kind that can be emptied, and `n`.
fn typed(group: &str) -> Value {
    let word = json!({"type": "string"});
    let words = json!({"type": "object", "additionalProperties": word});
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": word, "sel": words}});
    let spec = json!({"type": "object", "properties": {
        "n": {"type": "integer"},
        "sel": words,
        "deep": {"type": "object", "additionalProperties": words},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "atoms": {"type": "array", "items": {"type": "object", "properties": {"sel": words}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": word},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
    }});
    let mut definition = crd(group, "typeds", true);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    definition
}

fn object(version: &str, plural: &str, shop: &str, name: &str, spec: &Value) -> Value {
    let kind = if plural == "typeds" { "Typed" } else { "Free" };
    json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": shop, "name": name}, "spec": spec})
}

/// What is emptied, before and after.
fn cases() -> Vec<(&'static str, Value, Value)> {
    let items = |sel: Value| json!([{"name": "x", "sel": {"k": "v"}}, {"name": "y", "sel": sel}]);
    vec![
        ("map", json!({"n": 1, "sel": {"a": "b"}}), json!({"n": 2, "sel": {}})),
        (
            "nested",
            json!({"n": 1, "deep": {"x": {"y": "z"}}}),
            json!({"n": 2, "deep": {"x": {}}}),
        ),
        (
            "unknown",
            json!({"n": 1, "any": {"x": {"y": 1}, "z": 1}}),
            json!({"n": 2, "any": {}}),
        ),
        (
            "deep",
            json!({"n": 1, "any": {"x": {"y": 1}}}),
            json!({"n": 2, "any": {"x": {}}}),
        ),
        ("set", json!({"n": 1, "set": ["x", "y"]}), json!({"n": 2, "set": []})),
        (
            "items",
            json!({"n": 1, "map": items(json!({}))}),
            json!({"n": 2, "map": []}),
        ),
        (
            "item",
            json!({"n": 1, "map": items(json!({"a": "b"}))}),
            json!({"n": 2, "map": items(json!({}))}),
        ),
        (
            "atom",
            json!({"n": 1, "atoms": [{"sel": {"a": "b"}}]}),
            json!({"n": 2, "atoms": [{"sel": {}}]}),
        ),
        ("all", json!({"n": 1, "sel": {"a": "b"}}), json!({})),
        (
            "several",
            json!({"n": 1, "sel": {"a": "b"}, "set": ["x"], "deep": {"x": {"y": "z"}}}),
            json!({"n": 2, "sel": {}, "set": [], "deep": {}}),
        ),
    ]
}

async fn what_is_emptied_is_empty_at_the_other_side(up: bool) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let plurals = ["typeds", "frees"];
    install_crd(&[&hub, &edge], &typed(&group)).await;
    install_crd(&[&hub, &edge], &crd(&group, "frees", true)).await;
    let (from, to) = if up { (&edge, &hub) } else { (&hub, &edge) };
    from.create(&namespace(&shop)).await;
    if up {
        select(&hub, &json!({"upsync": [upsync_all(&group, &plurals, &shop)]})).await;
    } else {
        select(&hub, &all_of(&shop, &plurals.map(|plural| (&*group, plural)))).await;
    }
    let syncer = pair.syncer(&[]);
    for plural in plurals {
        for (name, before, _) in cases() {
            from.create(&object(&version, plural, &shop, name, &before)).await;
        }
        for (name, before, after) in cases() {
            let at = [&*version, plural, &shop, name];
            becomes(to, at, "has come", |copy| copy["spec"] == before).await;
            let labels = json!({"edited": "so"});
            let mut changed = from
                .reread(&object(&version, plural, &shop, name, &after))
                .await
                .expect("it is there");
            (changed["spec"], changed["metadata"]["labels"]) = (after.clone(), labels);
            from.replace(&changed).await;
            let is_so = |copy: &Value| copy["spec"] == after && copy["metadata"]["labels"]["edited"] == "so";
            becomes(to, at, &format!("is emptied to {after}"), is_so).await;
        }
    }
    // What is so may still be made ours.
    remains(to, &version, plurals[1], &shop, "several").await;
    let mut versions = Vec::new();
    for (plural, (name, ..)) in plurals
        .iter()
        .flat_map(|plural| cases().into_iter().map(move |case| (*plural, case)))
    {
        let copy = arrives(to, &version, plural, &shop, name).await;
        versions.push((plural, name, copy["metadata"]["resourceVersion"].clone()));
    }
    // A syncer that begins again finds them so.
    drop(syncer);
    let _syncer = pair.syncer(&[]);
    for plural in plurals {
        from.create(&object(&version, plural, &shop, "later", &json!({"n": 1})))
            .await;
        arrives(to, &version, plural, &shop, "later").await;
    }
    for (plural, name, version_before) in versions {
        let copy = arrives(to, &version, plural, &shop, name).await;
        assert_eq!(copy["metadata"]["resourceVersion"], version_before, "{plural} {name}");
    }
}

#[tokio::test]
async fn what_is_emptied_at_the_hub_is_empty_at_the_edge() {
    what_is_emptied_is_empty_at_the_other_side(false).await;
}

#[tokio::test]
async fn what_is_emptied_at_the_edge_is_empty_at_the_hub() {
    what_is_emptied_is_empty_at_the_other_side(true).await;
}

#[tokio::test]
async fn what_others_have_put_into_a_copy_stays_when_its_origin_is_emptied() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &typed(&group)).await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &[(&group, "typeds")])).await;
    let _syncer = pair.syncer(&[]);
    let of = |spec: Value| object(&version, "typeds", &shop, "a", &spec);
    let at = [&*version, "typeds", &shop, "a"];
    let edited = |spec: Value| {
        let hub = &hub;
        let object = of(spec);
        async move {
            let mut now = hub.reread(&object).await.expect("it is there");
            now["spec"] = object["spec"].clone();
            hub.replace(&now).await;
        }
    };
    hub.create(&of(json!({"sel": {"a": "b"}, "any": {"x": {"a": 1}}})))
        .await;
    arrives(&edge, &version, "typeds", &shop, "a").await;
    let theirs = json!({"sel": {"c": "d"}, "any": {"x": {"c": 1}, "y": 1}});
    edge.apply_as("a-controller", &of(theirs.clone())).await;
    // Only this one is refused later, since nothing of others is in it.
    edited(json!({"sel": {}, "any": {"x": {"a": 1}}, "deep": {"x": {"y": "z"}}})).await;
    becomes(&edge, at, "has the deep one", |copy| {
        copy["spec"]["deep"]["x"]["y"] == "z"
    })
    .await;
    edited(json!({"sel": {}, "any": {}, "deep": {"x": {}}})).await;
    let mut expected = theirs;
    expected["deep"] = json!({"x": {}});
    becomes(&edge, at, "keeps what others own", |copy| copy["spec"] == expected).await;
    // What was emptied goes when the origin drops it.
    edited(json!({"n": 3})).await;
    becomes(&edge, at, "has what others own and nothing more", |copy| {
        copy["spec"] == json!({"n": 3, "sel": {"c": "d"}, "any": {"x": {"c": 1}, "y": 1}})
    })
    .await;
}

/// Adds a container before the others, as what injects does.
async fn inject(edge: &Objects, shop: &str) {
    let container = json!({"name": "injected", "image": "example.org/i:1", "securityContext": {"runAsUser": 7}});
    let patch = json!([{"op": "add", "path": "/spec/template/spec/containers/0", "value": container}]);
    let target = format!("{}?fieldManager=injector", path("apps/v1", "deployments", shop, "web"));
    let injected = edge.send(Method::PATCH, &target, JSON_PATCH, Some(&patch)).await;
    injected.expect("the edge takes it");
}

#[tokio::test]
async fn what_is_emptied_in_a_container_is_empty_in_the_copy_of_it_alone() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &[("apps", "deployments")])).await;
    let _syncer = pair.syncer(&[]);
    let deployment = |security: Value, volume: Value, image: &str| {
        let pod = json!({"containers": [{"name": "c", "image": image, "securityContext": security}],
            "volumes": [{"name": "v", "emptyDir": volume}], "securityContext": security});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": shop, "name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod}}})
    };
    let limit = json!({"sizeLimit": "1Gi"});
    hub.create(&deployment(json!({"runAsUser": 6}), limit, "example.org/c:1"))
        .await;
    arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    inject(&edge, &shop).await;
    hub.replace(&deployment(json!({}), json!({}), "example.org/c:2")).await;
    let web = ["apps/v1", "deployments", &shop, "web"];
    becomes(&edge, web, "has no user", |copy| {
        let pod = &copy["spec"]["template"]["spec"];
        let [other, own] = [0, 1].map(|at| &pod["containers"][at]);
        other["securityContext"] == json!({"runAsUser": 7})
            && own["image"] == "example.org/c:2"
            && own["securityContext"] == json!({})
            && pod["securityContext"] == json!({})
            && pod["volumes"] == json!([{"name": "v", "emptyDir": {}}])
    })
    .await;
}
