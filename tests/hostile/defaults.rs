//! Defaults that the hub's schema fills in, where somebody at the edge has set something else: nobody at the hub has asked for
//! them. Found from outside: 22 of 22 fields of built-in types, and the same of custom ones, were set back.

use serde_json::{Value, json};

use crate::managers::{create_as, deployment, patch_as};
use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{namespace, path};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, custom_object, drop_crds, install_crd};

in_both_modes!(
    a_default_that_nobody_has_set_at_the_hub_is_left_to_who_sets_it_at_the_edge,
    defaults_of_built_in_types_are_left_to_the_edge,
    a_number_that_people_scale_to_is_no_default,
    a_default_of_a_custom_type_other_than_1_is_left_to_an_autoscaler_of_the_edge,
    a_number_to_which_the_hub_scales_a_custom_type_counts_wherever_the_type_keeps_it,
    the_type_of_a_secret_is_no_default,
    a_new_default_that_the_other_side_lacks_holds_up_nothing,
);

const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A type with defaults at all kinds of places, of which that of `spec.mode` is given.
fn with_defaults(group: &str, mode: &str) -> Value {
    let mut definition = crd(group, "works", true);
    let with_default = |value: &str| json!({"type": "string", "default": value});
    let item = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "proto": with_default("tcp")}});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "mode": with_default(mode), "parallelism": {"type": "integer", "default": 1},
        "deep": {"type": "object", "default": {}, "properties": {"mode": with_default("hub")}},
        "items": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    }});
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.parallelism", "statusReplicasPath": ".status.replicas"});
    definition
}

/// Creates an object as `kubectl apply` does, which is named for defaults too.
async fn create_noted(hub: &Objects, object: &Value) {
    let mut noted = object.clone();
    noted["metadata"]["annotations"] = json!({NOTE: object.to_string()});
    create_as(hub, "kubectl-client-side-apply", &noted).await;
}

async fn a_default_that_nobody_has_set_at_the_hub_is_left_to_who_sets_it_at_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    for (side, mode) in [(&hub, "hub"), (&edge, "edge")] {
        install_crd(&[side], &with_defaults(&group, mode)).await;
    }
    hub.create(&namespace(&shop)).await;
    let object = |name: &str, size: u32| {
        let mut object = custom_object(&group, "works", &shop, name, size);
        object["spec"]["items"] = json!([{"name": "a"}]);
        object
    };
    for name in ["applied", "quiet"] {
        hub.apply_as("argocd", &object(name, 1)).await;
    }
    create_noted(&hub, &object("noted", 1)).await;
    select(&hub, &all_of(&shop, &[(&group, "works")])).await;
    let mut syncer = pair.syncer(flags);
    let own = json!({"size": 2, "mode": "own", "parallelism": 4, "deep": {"mode": "own"},
        "items": [{"name": "a", "proto": "udp"}]});
    let change = json!({"spec": {"mode": "own", "deep": {"mode": "own"}, "items": [{"name": "a", "proto": "udp"}]}});
    arrives(&edge, &v1, "works", &shop, "quiet").await;
    patch_as(&edge, "operator", &path(&v1, "works", &shop, "quiet"), &change).await;
    let drifted = |name: &str| {
        let message = "a copy was changed by somebody else; what its origin sets is corrected";
        format!("reason=CopyDrifted msg=\"{message}\" side=edge object=Work/{shop}/{name} ")
    };
    for name in ["applied", "noted"] {
        let at = [&*v1, "works", &*shop, name];
        arrives(&edge, &v1, "works", &shop, name).await;
        let target = path(&v1, "works", &shop, name);
        patch_as(&edge, "operator", &target, &change).await;
        let scale = json!({"spec": {"replicas": 4}});
        patch_as(&edge, "kubectl", &format!("{target}/scale"), &scale).await;
        for size in [2, 3] {
            patch_as(&hub, "people", &target, &json!({"spec": {"size": size}})).await;
            let copy = becomes(&edge, at, "has the size", |copy| copy["spec"]["size"] == size).await;
            let mut expected = own.clone();
            expected["size"] = json!(size);
            assert_eq!(copy["spec"], expected, "{name}");
        }
        // Now somebody has.
        patch_as(&hub, "people", &target, &json!({"spec": {"mode": "wanted"}})).await;
        let copy = becomes(&edge, at, "is as the hub wants it", |copy| {
            copy["spec"]["mode"] == "wanted"
        })
        .await;
        assert_eq!(copy["spec"]["deep"], own["deep"], "{name}");
        // Whoever has set what the hub sets is corrected as ever.
        patch_as(&edge, "operator", &target, &json!({"spec": {"mode": "own"}})).await;
        becomes(&edge, at, "is corrected", |copy| copy["spec"]["mode"] == "wanted").await;
        syncer.wait_for_log(&drifted(name), SOON).await;
        assert_eq!(copy["spec"]["parallelism"], 4, "{name}");
    }
    // Of this one nothing was corrected.
    assert!(!syncer.log().contains(&drifted("quiet")), "{}", syncer.log());
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}

async fn defaults_of_built_in_types_are_left_to_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let meta = |name: &str| json!({"namespace": shop, "name": name});
    let labels = json!({"app": "a"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example.org/a"}]}});
    let job = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example.org/a"}]}}}});
    let (workload, deployments) = (
        json!({"selector": {"matchLabels": labels}, "template": template}),
        "deployments",
    );
    let cases = [
        (
            "apps/v1",
            deployments,
            json!({"kind": "Deployment", "metadata": meta("a"), "spec": workload}),
            json!({"revisionHistoryLimit": 3, "progressDeadlineSeconds": 300, "strategy": {"rollingUpdate": {"maxSurge": 2}},
                "template": {"spec": {"terminationGracePeriodSeconds": 5, "dnsPolicy": "Default"}}}),
        ),
        (
            "apps/v1",
            "statefulsets",
            json!({"kind": "StatefulSet", "metadata": meta("a"), "spec": workload}),
            json!({"revisionHistoryLimit": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}),
        ),
        (
            "batch/v1",
            "cronjobs",
            json!({"kind": "CronJob", "metadata": meta("a"), "spec": {"schedule": "0 3 * * *", "jobTemplate": job}}),
            json!({"suspend": true, "failedJobsHistoryLimit": 5, "concurrencyPolicy": "Forbid"}),
        ),
        (
            "v1",
            "services",
            json!({"kind": "Service", "metadata": meta("a"), "spec": {"selector": labels, "ports": [{"port": 80}]}}),
            json!({"sessionAffinity": "ClientIP", "internalTrafficPolicy": "Local"}),
        ),
    ];
    for (api_version, plural, object, own) in &cases {
        let mut object = object.clone();
        object["apiVersion"] = json!(api_version);
        hub.apply_as("argocd", &object).await;
        // One more that somebody has installed so before it is adopted.
        object["metadata"]["name"] = json!("b");
        create_noted(&hub, &object).await;
        merge(&mut object["spec"], own);
        assert!(plural != &deployments || object["spec"]["template"]["spec"]["containers"][0]["name"] == "a");
        create_as(&edge, "helm", &object).await;
    }
    let types = [
        ("apps", deployments),
        ("apps", "statefulsets"),
        ("batch", "cronjobs"),
        ("", "services"),
    ];
    select(&hub, &all_of(&shop, &types)).await;
    let _syncer = pair.syncer(flags);
    for (api_version, plural, _, own) in &cases {
        arrives(&edge, api_version, plural, &shop, "a").await;
        let target = path(api_version, plural, &shop, "a");
        patch_as(&edge, "operator", &target, &json!({"spec": own})).await;
        for (name, note) in [("a", "1"), ("a", "2"), ("b", "1")] {
            let change = json!({"metadata": {"annotations": {"note": note}}});
            hub.merge_patch(api_version, plural, &shop, name, &change).await;
            let copy = becomes(&edge, [api_version, plural, &shop, name], "has the note", |copy| {
                copy["metadata"]["annotations"]["note"] == note
            })
            .await;
            let mut expected = copy["spec"].clone();
            merge(&mut expected, own);
            assert_eq!(copy["spec"], expected, "{plural} {name}");
        }
    }
}

/// A server names no manager for the field then, since nobody had it before.
async fn a_number_that_people_scale_to_is_no_default(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let mut rolls = crd(&group, "rolls", true);
    rolls["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    install_crd(&[&hub, &edge], &rolls).await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let mut spec = all_of(&shop, &[("apps", "deployments"), (&group, "rolls")]);
    let upsync = |group: &str, resource: &str| json!({"apiGroup": group, "resources": [resource], "namespaces": [shop], "names": ["up"]});
    spec["upsync"] = json!([upsync("apps", "deployments"), upsync(&group, "rolls")]);
    for (side, name) in [(&hub, "down"), (&edge, "up")] {
        let mut web = deployment(&shop, name, &json!({}));
        web["spec"].as_object_mut().expect("it has one").remove("replicas");
        side.apply_as("argocd", &web).await;
        side.apply_as("argocd", &custom_object(&group, "rolls", &shop, name, 1))
            .await;
    }
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    for (api_version, plural) in [("apps/v1", "deployments"), (&*v1, "rolls")] {
        for (from, to, name) in [(&hub, &edge, "down"), (&edge, &hub, "up")] {
            arrives(to, api_version, plural, &shop, name).await;
            let scale = format!("{}/scale", path(api_version, plural, &shop, name));
            for number in [7, 0] {
                patch_as(from, "kubectl", &scale, &json!({"spec": {"replicas": number}})).await;
                becomes(to, [api_version, plural, &shop, name], "is scaled", |copy| {
                    copy["spec"]["replicas"] == number
                })
                .await;
            }
        }
    }
    drop_crds(&[&hub, &edge], &[&format!("rolls.{group}")]).await;
}

/// Such a number may be the default of the schema, and is nobody's wish then.
async fn a_default_of_a_custom_type_other_than_1_is_left_to_an_autoscaler_of_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let mut rolls = crd(&group, "rolls", true);
    let version = &mut rolls["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}, "replicas": {"type": "integer", "default": 3}}}}});
    version["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    install_crd(&[&hub, &edge], &rolls).await;
    hub.create(&namespace(&shop)).await;
    hub.apply_as("argocd", &custom_object(&group, "rolls", &shop, "it", 1))
        .await;
    select(&hub, &all_of(&shop, &[(&group, "rolls")])).await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, &v1, "rolls", &shop, "it").await;
    let target = path(&v1, "rolls", &shop, "it");
    // Of an object that is scaled to 0, a server names nobody.
    for (number, sizes) in [(6, [2, 3]), (0, [4, 5]), (7, [6, 7])] {
        let scale = json!({"spec": {"replicas": number}});
        patch_as(&edge, "kube-controller-manager", &format!("{target}/scale"), &scale).await;
        for size in sizes {
            patch_as(&hub, "people", &target, &json!({"spec": {"size": size}})).await;
            let at = [&*v1, "rolls", &*shop, "it"];
            let copy = becomes(&edge, at, "has the size", |copy| copy["spec"]["size"] == size).await;
            assert_eq!(copy["spec"]["replicas"], number, "{size}");
        }
    }
    drop_crds(&[&hub, &edge], &[&format!("rolls.{group}")]).await;
}

/// A type that is scaled at `spec.pool.pods` or another field, with or without a default there.
fn scaled_at(group: &str, plural: &str, path: &str, default: Option<u32>) -> Value {
    let mut definition = crd(group, plural, true);
    let mut schema = json!({"type": "integer"});
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    let mut keys: Vec<&str> = path.split('/').skip(2).collect();
    while let Some(key) = keys.pop() {
        schema = json!({"type": "object", "properties": {key: schema}});
    }
    schema["properties"]["size"] = json!({"type": "integer"});
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": schema,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    version["subresources"]["scale"] =
        json!({"specReplicasPath": path.replace('/', "."), "statusReplicasPath": ".status.replicas"});
    definition
}

/// Nobody is named for it there: only the definition says what a default is. Found from outside: where it is not
/// `spec.replicas`, what the edge had was left for good, whatever the hub was scaled to.
async fn a_number_to_which_the_hub_scales_a_custom_type_counts_wherever_the_type_keeps_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let types = [
        ("threes", "/spec/replicas", Some(3)),
        ("nones", "/spec/replicas", None),
        ("pools", "/spec/pool/pods", None),
        ("pods", "/spec/pods", Some(2)),
    ];
    hub.create(&namespace(&shop)).await;
    for (plural, path, default) in types {
        install_crd(&[&hub, &edge], &scaled_at(&group, plural, path, default)).await;
        hub.apply_as("argocd", &custom_object(&group, plural, &shop, "it", 1))
            .await;
    }
    select(&hub, &all_of(&shop, &types.map(|(plural, ..)| (&*group, plural)))).await;
    let _syncer = pair.syncer(flags);
    for (plural, field, default) in types {
        arrives(&edge, &v1, plural, &shop, "it").await;
        let (at, target) = ([&*v1, plural, &*shop, "it"], path(&v1, plural, &shop, "it"));
        let scale = async |side: &Objects, number: u32| {
            let scale = json!({"spec": {"replicas": number}});
            patch_as(side, "kubectl", &format!("{target}/scale"), &scale).await;
        };
        let has = async |number: u32| {
            let is_so = |copy: &Value| copy.pointer(field) == Some(&json!(number));
            becomes(&edge, at, &format!("has {number}"), is_so).await;
        };
        // As long as nobody has said so at the hub, the edge has the say.
        scale(&edge, 4).await;
        patch_as(&hub, "people", &target, &json!({"spec": {"size": 2}})).await;
        let copy = becomes(&edge, at, "has the size", |copy| copy["spec"]["size"] == 2).await;
        assert_eq!(copy.pointer(field), Some(&json!(4)), "{plural} {default:?}");
        for number in [6, 1] {
            scale(&hub, number).await;
            has(number).await;
            scale(&edge, 4).await;
            has(number).await;
        }
    }
    let names = types.map(|(plural, ..)| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &names.each_ref().map(String::as_str)).await;
}

/// An apply without it would fill a Secret of any type.
async fn the_type_of_a_secret_is_no_default(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let secret = |more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "it"}});
        merge(&mut object, &more);
        object
    };
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    hub.apply_as("argocd", &secret(json!({"data": {"token": "eA=="}})))
        .await;
    create_as(
        &edge,
        "operator",
        &secret(json!({"type": "example.org/own", "data": {"own": "eA=="}})),
    )
    .await;
    select(&hub, &all_of(&shop, &[("", "secrets")])).await;
    let mut syncer = pair.syncer(flags);
    syncer
        .wait_for_log(
            &format!("reason=ObjectRejected msg=\"an object is rejected\" side=edge object=Secret/{shop}/it"),
            SOON,
        )
        .await;
    let found = edge.get("v1", "secrets", &shop, "it").await.expect("it is there");
    assert_eq!(found["data"], json!({"own": "eA=="}));
}

/// An operator is upgraded at one side first.
async fn a_new_default_that_the_other_side_lacks_holds_up_nothing(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let upsynced = format!("{group}-up");
    let up = format!("{upsynced}/v1");
    let newer = |group: &str| with_defaults(group, "new");
    let older = |group: &str| {
        let mut definition = newer(group);
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = definition
            .pointer_mut(spec)
            .and_then(Value::as_object_mut)
            .expect("it is there");
        fields.retain(|field, _| matches!(field.as_str(), "size" | "parallelism" | "items"));
        let item = fields["items"]
            .pointer_mut("/items/properties")
            .and_then(Value::as_object_mut);
        item.expect("it is there").remove("proto");
        definition
    };
    for (side, down, up) in [
        (&hub, newer(&group), older(&upsynced)),
        (&edge, older(&group), newer(&upsynced)),
    ] {
        install_crd(&[side], &down).await;
        install_crd(&[side], &up).await;
        side.create(&namespace(&shop)).await;
    }
    let mut spec = all_of(&shop, &[(&group, "works")]);
    spec["upsync"] = json!([{"apiGroup": upsynced, "resources": ["works"], "namespaces": [shop], "names": ["*"]}]);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    for (from, to, group, api_version) in [(&hub, &edge, &group, &v1), (&edge, &hub, &upsynced, &up)] {
        let mut object = custom_object(group, "works", &shop, "it", 1);
        object["spec"]["items"] = json!([{"name": "a"}]);
        from.apply_as("argocd", &object).await;
        let at = [&**api_version, "works", &*shop, "it"];
        becomes(to, at, "is there", |copy| {
            copy["spec"]["items"] == json!([{"name": "a"}])
        })
        .await;
        let target = path(api_version, "works", &shop, "it");
        patch_as(from, "people", &target, &json!({"spec": {"size": 2}})).await;
        becomes(to, at, "follows", |copy| copy["spec"]["size"] == 2).await;
        // What somebody wants is not left out silently.
        patch_as(from, "people", &target, &json!({"spec": {"mode": "wanted"}})).await;
        syncer
            .wait_for_log(".spec.mode: field not declared in schema", SOON)
            .await;
    }
    drop_crds(
        &[&hub, &edge],
        &[&format!("works.{group}"), &format!("works.{upsynced}")],
    )
    .await;
}

/// Lays one value over another.
fn merge(to: &mut Value, over: &Value) {
    match (to, over) {
        (Value::Object(to), Value::Object(over)) => {
            for (key, value) in over {
                merge(to.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (to, over) => *to = over.clone(),
    }
}
