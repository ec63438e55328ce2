//! What installers hold of a copy that is adopted: what the hub drops goes with all that they were named for in it. Found
//! from outside: defaults stayed, and kept what they were a part of.

use serde_json::{Value, json};

use crate::managers::{create_as, deployment};
use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::namespace;
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{annotation, arrives, becomes, crd, custom_object, drop_crds, install_crd};

in_both_modes!(
    what_the_hub_drops_goes_with_the_defaults_that_an_installer_was_named_for,
    an_item_goes_though_others_have_applied_it_without_its_defaults_while_the_syncer_was_away,
);

/// A type with defaults in objects, in a map and in a list of items.
fn parts(group: &str) -> Value {
    let mut definition = crd(group, "parts", true);
    let part = |key: &str| {
        json!({"type": "object", "properties": {key: {"type": "string"}, "value": {"type": "string"},
            "mode": {"type": "string", "default": "auto"}}})
    };
    let items = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": part("name")});
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}, "items": items,
        "one": part("x"), "map": {"type": "object", "additionalProperties": part("x")}}});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": spec}});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["items"]["items"]
        ["required"] = json!(["name"]);
    definition
}

/// Each object as it is installed, and what is left of it at the hub later.
fn objects(group: &str, shop: &str, name: &str) -> [(&'static str, Value, Value); 3] {
    let part = |items: Value, more: Value| {
        let mut object = custom_object(group, "parts", shop, name, 1);
        object["spec"]["items"] = items;
        for (key, value) in more.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        object
    };
    let scaler = |more: Value| {
        let mut spec =
            json!({"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"}});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"namespace": shop, "name": name}, "spec": spec})
    };
    let app = |volumes: Value, container: Value| {
        let mut app = deployment(shop, name, &json!({"replicas": 0}));
        let pod = &mut app["spec"]["template"]["spec"];
        pod["volumes"] = volumes;
        for (key, value) in container.as_object().into_iter().flatten() {
            pod["containers"][0][key] = value.clone();
        }
        app
    };
    let probe = json!({"httpGet": {"path": "/", "port": 80}});
    let volumes = json!([{"name": "a", "configMap": {"name": "a"}},
        {"name": "b", "secret": {"secretName": "b", "items": [{"key": "a", "path": "a"}]}}, {"name": "c", "hostPath": {"path": "/x"}},
        {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "e", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]);
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 100,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}});
    [
        (
            "parts",
            part(
                json!([{"name": "keep"}, {"name": "drop", "value": "1"}]),
                json!({"one": {"value": "1"}, "map": {"keep": {"value": "1"}, "drop": {"value": "1"}}}),
            ),
            part(json!([{"name": "keep"}]), json!({"map": {"keep": {"value": "1"}}})),
        ),
        (
            "horizontalpodautoscalers",
            scaler(json!({"behavior": behavior})),
            scaler(json!({})),
        ),
        (
            "deployments",
            app(
                volumes.clone(),
                json!({"livenessProbe": probe, "readinessProbe": probe, "lifecycle": {"preStop": probe}}),
            ),
            app(
                json!([volumes[0]]),
                json!({"livenessProbe": {"tcpSocket": {"port": 80}}}),
            ),
        ),
    ]
}

/// Installs an object, in one of the ways in which tools do: with all that the server adds, or with what it was given alone.
async fn install(edge: &Objects, way: &str, object: &Value) {
    if way.contains("created") {
        create_as(edge, "helm", object).await;
    }
    if way.contains("applied") {
        edge.apply_as("argocd-controller", object).await;
    }
}

async fn what_the_hub_drops_goes_with_the_defaults_that_an_installer_was_named_for(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, _) = own_group(&shop);
    install_crd(&[&hub, &edge], &parts(&group)).await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let ways = ["created", "applied", "created-applied"];
    for way in ways {
        for (_, object, _) in &objects(&group, &shop, way) {
            install(&edge, way, object).await;
            hub.apply_as("people", object).await;
        }
    }
    let types = [
        (&*group, "parts"),
        ("autoscaling", "horizontalpodautoscalers"),
        ("apps", "deployments"),
    ];
    select(&hub, &all_of(&shop, &types)).await;
    let syncer = pair.syncer(flags);
    for way in ways {
        for (plural, object, fewer) in &objects(&group, &shop, way) {
            let api = object["apiVersion"].as_str().expect("it has one");
            let at = [api, plural, &*shop, way];
            becomes(&edge, at, "is adopted", |copy| annotation(copy, "adopted") == "true").await;
            let origin = hub.apply_as("people", fewer).await;
            becomes(&edge, at, "is as at the hub", |copy| copy["spec"] == origin["spec"]).await;
        }
    }
    let log = syncer.log();
    assert!(!log.contains("WARN"), "{log}");
    drop_crds(&[&hub, &edge], &[&format!("parts.{group}")]).await;
}

/// An API server takes a field that is replaced as a whole from us when others apply it without a default that we have.
async fn an_item_goes_though_others_have_applied_it_without_its_defaults_while_the_syncer_was_away(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let app = |name: &str, more: &Value| {
        let mut app = deployment(&shop, name, &json!({"replicas": 0}));
        let pod = &mut app["spec"]["template"]["spec"];
        pod["volumes"] = more["volumes"].clone();
        pod["containers"][0]["env"] = more["env"].clone();
        app
    };
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let item = json!([{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        json!({"volumes": [volume]})
    };
    let all = [
        ("env", json!({"env": [{"name": "POD", "valueFrom": field}]})),
        ("downward", volume(json!({"downwardAPI": {"items": item}}))),
        (
            "token",
            volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})),
        ),
        (
            "projected",
            volume(json!({"projected": {"sources": [{"downwardAPI": {"items": item}}]}})),
        ),
    ];
    for (name, more) in &all {
        hub.apply_as("people", &app(name, more)).await;
    }
    select(&hub, &all_of(&shop, &[("apps", "deployments")])).await;
    let syncer = pair.syncer(flags);
    for (name, _) in &all {
        arrives(&edge, "apps/v1", "deployments", &shop, name).await;
    }
    drop(syncer);
    for (name, more) in &all {
        edge.apply_as("kustomize-controller", &app(name, more)).await;
        hub.apply_as("people", &app(name, &json!({}))).await;
    }
    let _syncer = pair.syncer(flags);
    for (name, _) in &all {
        becomes(&edge, ["apps/v1", "deployments", &shop, name], "has no item", |copy| {
            let pod = &copy["spec"]["template"]["spec"];
            pod["volumes"].is_null() && pod["containers"][0]["env"].is_null()
        })
        .await;
    }
}
