//! Field managers beside the syncer: tools that had installed a copy, controllers, people who restart pods, versions of a type
//! that are gone, and lists of managers that somebody has emptied. All were found from outside.

use http::Method;
use serde_json::{Value, json};

use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{JSON, MERGE_PATCH, config_map, namespace, path};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{
    SOON, annotation, arrives, becomes, crd, custom_object, drop_crds, edit, install_crd, reselect,
};

in_both_modes!(
    a_type_that_drops_a_version_is_synced_on,
    what_the_hub_drops_goes_from_what_others_had_installed,
    an_item_that_the_hub_drops_goes_whatever_defaults_others_hold_of_it,
    a_restart_at_the_edge_is_no_drift,
);

pub(crate) const CRD_API: &str = "apiextensions.k8s.io/v1";
pub(crate) const CRDS: &str = "customresourcedefinitions";

/// Sends a patch as a field manager.
pub(crate) async fn patch_as(at: &Objects, manager: &str, target: &str, patch: &Value) -> Value {
    let target = format!("{target}?fieldManager={manager}");
    let patched = at.send(Method::PATCH, &target, MERGE_PATCH, Some(patch)).await;
    patched.unwrap_or_else(|error| panic!("{manager} cannot patch {target}: {error}"))
}

/// Creates an object as a field manager.
pub(crate) async fn create_as(at: &Objects, manager: &str, object: &Value) {
    let [api_version, kind, space] = [&object["apiVersion"], &object["kind"], &object["metadata"]["namespace"]]
        .map(|field| field.as_str().expect("it has one"));
    let target = format!("{}?fieldManager={manager}", path(api_version, kind, space, ""));
    let created = at.send(Method::POST, &target, JSON, Some(object)).await;
    created.unwrap_or_else(|error| panic!("{manager} cannot create {target}: {error}"));
}

/// The same type at version `v0` too, or at `v1` alone.
pub(crate) fn with_versions(group: &str, both: bool) -> Value {
    let mut definition = crd(group, "servings", true);
    if both {
        let mut older = definition["spec"]["versions"][0].clone();
        (older["name"], older["storage"]) = (json!("v0"), json!(false));
        definition["spec"]["versions"]
            .as_array_mut()
            .expect("it is a list")
            .push(older);
    }
    definition
}

/// The side has the type at version `v1` alone from now on.
pub(crate) async fn drops_v0(side: &Objects, group: &str) {
    let one = with_versions(group, false)["spec"]["versions"].clone();
    let name = format!("servings.{group}");
    side.merge_patch(CRD_API, CRDS, "", &name, &json!({"spec": {"versions": one}}))
        .await;
    becomes(side, [CRD_API, CRDS, "", &name], "has one version", |crd| {
        crd["status"]["storedVersions"] == json!(["v1"])
    })
    .await;
    crate::support::eventually("it is served at one version", SOON, async || {
        let found = side
            .read(&format!("/apis/{group}"))
            .await
            .map_err(|error| error.to_string())?;
        let versions = found["versions"].as_array().map_or(0, Vec::len);
        if versions == 1 {
            Ok(())
        } else {
            Err(format!("at {versions}"))
        }
    })
    .await;
}

async fn a_type_that_drops_a_version_is_synced_on(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let v0 = format!("{group}/v0");
    let sides = [&hub, &edge];
    install_crd(&sides, &with_versions(&group, true)).await;
    for side in sides {
        side.create(&namespace(&shop)).await;
    }
    let object = |name: &str, spec: Value| {
        let mut object = custom_object(&group, "servings", &shop, name, 1);
        object["spec"] = spec;
        object["metadata"]["labels"] = json!({"stays": "1", "goes": "1"});
        object
    };
    let full = json!({"size": 1, "debug": {"port": 5005}});
    hub.create(&object("down", full.clone())).await;
    let mut up = object("up", full);
    up["apiVersion"] = json!(v0);
    edge.create(&up).await;
    let config = |version: &str| {
        let resources = json!([{"group": group, "resource": "servings", "apiVersion": version}]);
        json!({"namespaceScope": {"namespaces": [shop], "resources": resources}})
    };
    let mut spec = config("v0");
    spec["upsync"] = json!([{"apiGroup": group, "resources": ["servings"], "namespaces": [shop], "names": ["up"]}]);
    select(&hub, &spec).await;
    {
        let _syncer = pair.syncer(flags);
        for (from, to, name) in [(&hub, &edge, "down"), (&edge, &hub, "up")] {
            arrives(to, &v1, "servings", &shop, name).await;
            // What is applied, and not only created.
            patch_as(
                from,
                "people",
                &path(&v1, "servings", &shop, name),
                &json!({"spec": {"more": 1}}),
            )
            .await;
            becomes(to, [&v1, "servings", &shop, name], "has more", |copy| {
                copy["spec"]["more"] == 1
            })
            .await;
            // A controller of the copy's side, at the version that will be gone.
            patch_as(
                to,
                "operator",
                &path(&v0, "servings", &shop, name),
                &json!({"spec": {"own": 1}}),
            )
            .await;
        }
    }
    for side in sides {
        drops_v0(side, &group).await;
    }
    spec["namespaceScope"] = config("v1")["namespaceScope"].clone();
    reselect(&hub, &spec).await;
    let drop = json!({"spec": {"size": 2, "debug": null, "more": null}, "metadata": {"labels": {"goes": null}}});
    let is_so = |copy: &Value| {
        copy["spec"] == json!({"size": 2, "own": 1})
            && copy["metadata"]["labels"]["goes"].is_null()
            && copy["metadata"]["labels"]["stays"] == "1"
    };
    let first = [(&hub, &edge, "down"), (&edge, &hub, "up")];
    for (from, _, name) in first {
        from.merge_patch(&v1, "servings", &shop, name, &drop).await;
    }
    let _syncer = pair.syncer(flags);
    for (_, to, name) in first {
        becomes(to, [&v1, "servings", &shop, name], "is as its origin", is_so).await;
    }
    for (from, to, name) in first {
        from.merge_patch(&v1, "servings", &shop, name, &json!({"spec": {"later": 1}}))
            .await;
        becomes(to, [&v1, "servings", &shop, name], "follows", |copy| {
            copy["spec"]["later"] == 1
        })
        .await;
    }
    drop_crds(&sides, &[&format!("servings.{group}")]).await;
}

pub(crate) fn deployment(shop: &str, name: &str, spec: &Value) -> Value {
    let container = json!({"name": "c", "image": "example.org/c:1",
        "env": [{"name": "KEEP", "value": "1"}, {"name": "DEBUG", "value": "1"}]});
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": shop, "name": name},
        "spec": {"selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}}});
    for (field, value) in spec.as_object().expect("it is one") {
        object["spec"][field] = value.clone();
    }
    object
}

async fn what_the_hub_drops_goes_from_what_others_had_installed(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let mut settings = config_map(&shop, "settings", json!({"keep": "1", "drop": "2"}));
    settings["metadata"]["labels"] = json!({"app": "a", "old": "x"});
    settings["metadata"]["annotations"] = json!({"note": "x"});
    let volume = |name: &str| json!({"name": name, "emptyDir": {}});
    let mut app = deployment(&shop, "app", &json!({"replicas": 3}));
    app["spec"]["template"]["spec"]["volumes"] = json!([volume("keep"), volume("drop")]);
    let scaled = deployment(&shop, "scaled", &json!({"replicas": 3}));
    for object in [&settings, &app, &scaled] {
        hub.create(object).await;
    }
    create_as(&edge, "helm", &app).await;
    edge.apply_as("argocd", &settings).await;
    // Whoever applies the same later shares it as well.
    create_as(&edge, "terraform", &scaled).await;
    let scale = format!("{}/scale", path("apps/v1", "deployments", &shop, "scaled"));
    patch_as(&edge, "autoscaler", &scale, &json!({"spec": {"replicas": 2}})).await;
    patch_as(&edge, "autoscaler", &scale, &json!({"spec": {"replicas": 3}})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), ("apps", "deployments")])).await;
    let syncer = pair.syncer(flags);
    for (api, plural, name) in [
        ("v1", "configmaps", "settings"),
        ("apps/v1", "deployments", "app"),
        ("apps/v1", "deployments", "scaled"),
    ] {
        becomes(&edge, [api, plural, &shop, name], "is adopted", |copy| {
            annotation(copy, "adopted") == "true"
        })
        .await;
    }
    edge.apply_as("kustomize", &settings).await;
    edit(
        &hub,
        &shop,
        "settings",
        &json!({"data": {"drop": null, "keep": "3"},
            "metadata": {"labels": {"old": null}, "annotations": {"note": null}}}),
    )
    .await;
    let copy = becomes(
        &edge,
        ["v1", "configmaps", &shop, "settings"],
        "has the new value",
        |copy| copy["data"]["keep"] == "3",
    )
    .await;
    assert_eq!(copy["data"], json!({"keep": "3"}));
    assert_eq!(copy["metadata"]["labels"]["old"], Value::Null);
    assert_eq!(copy["metadata"]["annotations"]["note"], Value::Null);
    // The same while the syncer is away.
    drop(syncer);
    let env = json!([{"name": "KEEP", "value": "3"}]);
    for name in ["app", "scaled"] {
        let mut fewer = deployment(&shop, name, &json!({}));
        fewer["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
        if name == "app" {
            fewer["spec"]["template"]["spec"]["volumes"] = json!([volume("keep")]);
        }
        hub.delete("apps/v1", "deployments", &shop, name).await;
        hub.apply_as("people", &fewer).await;
    }
    let _syncer = pair.syncer(flags);
    for (name, replicas) in [("app", 1), ("scaled", 3)] {
        let at = ["apps/v1", "deployments", &*shop, name];
        let copy = becomes(&edge, at, "has one variable", |copy| {
            copy["spec"]["template"]["spec"]["containers"][0]["env"] == env
        })
        .await;
        assert_eq!(copy["spec"]["replicas"], replicas, "{name}");
        let volumes = copy["spec"]["template"]["spec"]["volumes"]
            .as_array()
            .map_or(0, Vec::len);
        assert_eq!(volumes, usize::from(name == "app"), "{name}");
    }
}

/// A port of which nothing is given but its number, in a pod and in a Service: the server adds the rest.
async fn an_item_that_the_hub_drops_goes_whatever_defaults_others_hold_of_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let app = |ports: &Value| {
        let mut app = deployment(&shop, "app", &json!({"replicas": 1}));
        app["spec"]["template"]["spec"]["containers"][0]["ports"] = ports.clone();
        app
    };
    let web = |ports: &Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": shop, "name": "web"},
            "spec": {"ports": ports, "selector": {"app": "a"}}})
    };
    let both = |field: &str| json!([{field: 80, "name": "a"}, {field: 81, "name": "b"}]);
    let one = |field: &str| json!([{field: 80, "name": "a"}]);
    let unnamed = json!([{"containerPort": 80}, {"containerPort": 81}]);
    // What another one applies too is taken from the first within `valueFrom`, for a default, and what holds it is not.
    let with_env = |env: &Value| {
        let mut app = deployment(&shop, "env", &json!({"replicas": 1}));
        app["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
        app
    };
    let env = json!([{"name": "KEEP", "value": "1"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}}]);
    let objects = [
        (
            with_env(&env),
            with_env(&json!([env[0]])),
            "/spec/template/spec/containers/0/env",
        ),
        (
            app(&unnamed),
            app(&one("containerPort")),
            "/spec/template/spec/containers/0/ports",
        ),
        (web(&both("port")), web(&one("port")), "/spec/ports"),
    ];
    for (object, ..) in &objects {
        hub.apply_as("people", object).await;
        create_as(&edge, "helm", object).await;
        edge.apply_as("argocd", object).await;
    }
    select(&hub, &all_of(&shop, &[("", "services"), ("apps", "deployments")])).await;
    let _syncer = pair.syncer(flags);
    let places = [
        ["apps/v1", "deployments", &*shop, "env"],
        ["apps/v1", "deployments", &*shop, "app"],
        ["v1", "services", &*shop, "web"],
    ];
    for (at, (_, fewer, ports)) in places.into_iter().zip(&objects) {
        becomes(&edge, at, "is adopted", |copy| annotation(copy, "adopted") == "true").await;
        hub.apply_as("people", fewer).await;
        becomes(&edge, at, "has one item", |copy| {
            copy.pointer(ports).and_then(Value::as_array).map(Vec::len) == Some(1)
        })
        .await;
    }
}

const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// Asks for a restart at this time. Argo Rollouts, and our type like it, has a field for that.
fn restart(plural: &str, at: &str) -> Value {
    let mut patch = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: at}}}}});
    if plural == "rollers" {
        patch["spec"]["restartAt"] = json!(at);
    }
    patch
}

fn is_restarted(copy: &Value, plural: &str, at: &str) -> bool {
    let annotated = copy["spec"]["template"]["metadata"]["annotations"][RESTARTED] == at;
    annotated && (plural != "rollers" || copy["spec"]["restartAt"] == at)
}

async fn a_restart_at_the_edge_is_no_drift(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let (group, v1) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "rollers", true)).await;
    let web = deployment(&shop, "it", &json!({}));
    let mut roller = custom_object(&group, "rollers", &shop, "it", 1);
    roller["spec"]["template"] = web["spec"]["template"].clone();
    let mut set = web.clone();
    (set["kind"], set["spec"]["serviceName"]) = (json!("StatefulSet"), json!("it"));
    let mut daemon = web.clone();
    daemon["kind"] = json!("DaemonSet");
    let kinds = [
        ("apps/v1", "deployments", web),
        ("apps/v1", "statefulsets", set),
        ("apps/v1", "daemonsets", daemon),
        (&*v1, "rollers", roller),
    ];
    let target = |api: &str, plural: &str| path(api, plural, &shop, "it");
    for (_, _, object) in &kinds {
        hub.create(object).await;
    }
    let mut spec = all_of(
        &shop,
        &[
            ("apps", "deployments"),
            ("apps", "statefulsets"),
            ("apps", "daemonsets"),
        ],
    );
    let custom = json!({"group": group, "resource": "rollers", "apiVersion": "v1"});
    spec["namespaceScope"]["resources"]
        .as_array_mut()
        .expect("it is a list")
        .push(custom);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    for (api, plural, _) in &kinds {
        arrives(&edge, api, plural, &shop, "it").await;
    }
    for (asked_at_hub, asked_at_edge, expected) in [
        (None, "2026-11-01T10:00:00Z", "2026-11-01T10:00:00Z"),
        // The hub asks for one later, and people at the edge once more.
        (
            Some("2026-11-02T10:00:00Z"),
            "2026-11-03T12:00:00+02:00",
            "2026-11-03T12:00:00+02:00",
        ),
    ] {
        for (api, plural, _) in &kinds {
            if let Some(at) = asked_at_hub {
                patch_as(&hub, "kubectl-rollout", &target(api, plural), &restart(plural, at)).await;
                let at_edge = [*api, *plural, &*shop, "it"];
                becomes(&edge, at_edge, "is restarted", |copy| is_restarted(copy, plural, at)).await;
            }
            patch_as(
                &edge,
                "kubectl-rollout",
                &target(api, plural),
                &restart(plural, asked_at_edge),
            )
            .await;
        }
        // Whatever else the hub changes, and also after a restart of the syncer.
        for round in ["first", "second"] {
            let note = format!("{round}-{asked_at_edge}");
            for (api, plural, _) in &kinds {
                let patch = json!({"metadata": {"annotations": {"note": note}}});
                hub.merge_patch(api, plural, &shop, "it", &patch).await;
            }
            for (api, plural, _) in &kinds {
                let copy = becomes(&edge, [api, plural, &shop, "it"], "has the note", |copy| {
                    copy["metadata"]["annotations"]["note"] == *note
                })
                .await;
                assert!(is_restarted(&copy, plural, expected), "{plural} {round}: {copy}");
            }
            drop(syncer);
            syncer = pair.syncer(flags);
        }
    }
    // What the hub itself has asked for it may set back, with an earlier time than people at the edge had asked for.
    for at in ["2026-11-05T10:00:00Z", "2026-11-01T08:00:00Z"] {
        for (api, plural, _) in &kinds {
            patch_as(&hub, "helm", &target(api, plural), &restart(plural, at)).await;
            let at_edge = [*api, *plural, &*shop, "it"];
            becomes(&edge, at_edge, "has the hub's time", |copy| {
                is_restarted(copy, plural, at)
            })
            .await;
        }
    }
    drop(syncer);
    drop_crds(&[&hub, &edge], &[&format!("rollers.{group}")]).await;
}

/// As the docs of Kubernetes give it.
#[tokio::test]
async fn a_copy_whose_managers_were_emptied_keeps_what_controllers_have_added() {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    hub.create(&config_map(&shop, "down", json!({"keep": "1", "drop": "1"})))
        .await;
    edge.create(&config_map(&shop, "up", json!({"keep": "1", "drop": "1"})))
        .await;
    let mut spec = all_of(&shop, &[("", "configmaps")]);
    spec["upsync"] = json!([{"apiGroup": "", "resources": ["configmaps"], "namespaces": [shop], "names": ["up"]}]);
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    for (from, to, name) in [(&hub, &edge, "down"), (&edge, &hub, "up")] {
        let target = path("v1", "configmaps", &shop, name);
        arrives(to, "v1", "configmaps", &shop, name).await;
        patch_as(to, "operator", &target, &json!({"data": {"own": "1"}})).await;
        let emptied = json!({"metadata": {"managedFields": [{}]}});
        to.merge_patch("v1", "configmaps", &shop, name, &emptied).await;
        edit(from, &shop, name, &json!({"data": {"keep": "2"}})).await;
        let at = ["v1", "configmaps", &*shop, name];
        becomes(to, at, "has the new value", |copy| copy["data"]["keep"] == "2").await;
        edit(from, &shop, name, &json!({"data": {"keep": "3", "drop": null}})).await;
        let copy = becomes(to, at, "has the next value", |copy| copy["data"]["keep"] == "3").await;
        assert_eq!(copy["data"], json!({"keep": "3", "own": "1"}), "{name}");
    }
}

/// `kubectl apply` is named for defaults too, but notes what it was given.
#[tokio::test]
async fn replicas_that_nobody_wants_at_the_hub_are_left_to_the_edge() {
    const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let mut web = deployment(&shop, "it", &json!({}));
    web["metadata"]["annotations"] = json!({NOTE: web.to_string()});
    let mut set = web.clone();
    set["kind"] = json!("ReplicaSet");
    for object in [&web, &set] {
        create_as(&hub, "kubectl-client-side-apply", object).await;
    }
    select(
        &hub,
        &all_of(&shop, &[("apps", "deployments"), ("apps", "replicasets")]),
    )
    .await;
    // Installed by people before it is adopted.
    edge.create(&namespace(&shop)).await;
    create_as(
        &edge,
        "kubectl-create",
        &deployment(&shop, "there", &json!({"replicas": 5})),
    )
    .await;
    let mut there = web.clone();
    there["metadata"]["name"] = json!("there");
    create_as(&hub, "kubectl-client-side-apply", &there).await;
    let _syncer = pair.syncer(&[]);
    let at = ["apps/v1", "deployments", &*shop, "there"];
    for replicas in [5, 6] {
        let number = replicas.to_string();
        let note = json!({"metadata": {"annotations": {"note": number}}});
        hub.merge_patch("apps/v1", "deployments", &shop, "there", &note).await;
        let copy = becomes(&edge, at, "is adopted and has the note", |copy| {
            copy["metadata"]["annotations"]["note"] == number.as_str()
                && copy["metadata"]["annotations"]["edge.kubestellar.io/adopted"] == "true"
        })
        .await;
        assert_eq!(copy["spec"]["replicas"], replicas);
        let target = path("apps/v1", "deployments", &shop, "there");
        patch_as(&edge, "kubectl-edit", &target, &json!({"spec": {"replicas": 6}})).await;
    }
    for plural in ["deployments", "replicasets"] {
        arrives(&edge, "apps/v1", plural, &shop, "it").await;
        let scale = format!("{}/scale", path("apps/v1", plural, &shop, "it"));
        patch_as(&edge, "autoscaler", &scale, &json!({"spec": {"replicas": 4}})).await;
        let note = json!({"metadata": {"annotations": {"note": "1"}}});
        hub.merge_patch("apps/v1", plural, &shop, "it", &note).await;
        let at = ["apps/v1", plural, &*shop, "it"];
        let copy = becomes(&edge, at, "has the note", |copy| {
            copy["metadata"]["annotations"]["note"] == "1"
        })
        .await;
        assert_eq!(copy["spec"]["replicas"], 4, "{plural}");
    }
}

/// After the first sync one line says so; what others change at the edge has a line that names them, whichever way they take.
#[tokio::test]
async fn what_others_change_at_the_edge_has_a_line_that_names_them() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    hub.create(&deployment(&shop, "it", &json!({"replicas": 2}))).await;
    select(&hub, &all_of(&shop, &[("apps", "deployments")])).await;
    let mut syncer = pair.syncer(&[]);
    syncer
        .wait_for_log("msg=\"in sync\" downsync=2 upsync=0 out_of_sync=0", SOON)
        .await;
    let whole = path("apps/v1", "deployments", &shop, "it");
    for (target, manager) in [
        (whole.clone(), "kubectl-edit"),
        (format!("{whole}/scale"), "kubectl-scale"),
    ] {
        patch_as(&edge, manager, &target, &json!({"spec": {"replicas": 5}})).await;
        let line = format!(
            "reason=CopyDrifted msg=\"a copy was changed by somebody else; what its origin sets is corrected\" side=edge \
             object=Deployment/{shop}/it manager={manager} fields=spec.replicas"
        );
        syncer.wait_for_log(&line, SOON).await;
        let at = ["apps/v1", "deployments", &*shop, "it"];
        becomes(&edge, at, "has two again", |copy| copy["spec"]["replicas"] == 2).await;
    }
    edge.delete("apps/v1", "deployments", &shop, "it").await;
    syncer
        .wait_for_log("a copy was deleted, or has lost its label", SOON)
        .await;
    arrives(&edge, "apps/v1", "deployments", &shop, "it").await;
    let change = json!({"spec": {"replicas": 3}});
    hub.merge_patch("apps/v1", "deployments", &shop, "it", &change).await;
    syncer.wait_for_log("reason=ObjectUpdated", SOON).await;
    assert_eq!(
        syncer.log().matches("reason=ObjectUpdated").count(),
        1,
        "by the hub alone"
    );
}
