//! Downsync between two real API servers, in each mode.

use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{MERGE_PATCH, config_map, namespace, path};
use crate::support::stage::{Stage, all_of, cluster_objects, config_maps, own_group, select, stage, stock};
use crate::support::story::{
    ABSENT_MEANS_ALL, SOON, annotation, arrives, becomes, config_map_entry, copy_equals, crd, custom_object, drop_crds,
    gone, install_crd, reselect, stays_absent,
};
use crate::support::{eventually, holds_throughout, shared_pair};
use http::Method;
use serde_json::{Value, json};

in_both_modes!(
    follows_create_update_and_delete_of_namespaced_and_cluster_scoped_objects,
    selects_stars_explicit_and_empty_names_of_namespaced_objects,
    selects_absent_empty_star_and_explicit_objects_of_cluster_scoped_resources,
    puts_drift_right_and_overwrites_and_marks_a_foreign_object,
    never_deletes_an_object_whose_annotation_is_absent_or_names_another,
    makes_namespaces_first_and_deletes_only_those_that_it_made,
    brings_a_crd_and_its_objects_and_waits_for_a_crd_that_comes_later,
    a_config_edit_takes_effect_without_restart_and_deselecting_deletes_nothing,
    that_ephemeral_containers_are_not_synced_is_said_once,
);
in_mode!(
    poll_the_hub_and_watch_the_edge,
    crate::support::modes::POLL_THE_HUB,
    puts_drift_right_and_overwrites_and_marks_a_foreign_object,
    brings_a_crd_and_its_objects_and_waits_for_a_crd_that_comes_later,
);

async fn follows_create_update_and_delete_of_namespaced_and_cluster_scoped_objects(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let _syncer = pair.syncer(flags);
    let role = format!("reader-{shop}");
    stock(&hub, &shop, &["prices"], &json!({"apple": "1"})).await;
    hub.create(&cluster_role(&role, "get")).await;
    let mut spec = config_maps(&shop, &["prices", "later"]);
    spec["clusterScope"] = json!([cluster_objects("rbac.authorization.k8s.io", "clusterroles", &[&role])]);
    select(&hub, &spec).await;

    let copy = arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    assert_eq!(copy["data"], json!({"apple": "1"}));
    assert_eq!(
        annotation(&copy, "downsynced"),
        json!(format!("ConfigMap/{shop}/prices"))
    );
    let copy = arrives(&edge, "rbac.authorization.k8s.io/v1", "clusterroles", "", &role).await;
    assert_eq!(annotation(&copy, "downsynced"), json!(format!("ClusterRole//{role}")));

    hub.create(&config_map(&shop, "later", json!({"a": "1"}))).await;
    arrives(&edge, "v1", "configmaps", &shop, "later").await;
    hub.replace(&config_map(&shop, "prices", json!({"pear": "2"}))).await;
    copy_equals(&edge, &shop, "prices", &json!({"pear": "2"})).await;

    hub.delete("v1", "configmaps", &shop, "prices").await;
    hub.delete("rbac.authorization.k8s.io/v1", "clusterroles", "", &role)
        .await;
    gone(&edge, "v1", "configmaps", &shop, "prices").await;
    gone(&edge, "rbac.authorization.k8s.io/v1", "clusterroles", "", &role).await;
    arrives(&edge, "v1", "configmaps", &shop, "later").await;
}

async fn selects_stars_explicit_and_empty_names_of_namespaced_objects(flags: Mode) {
    let pair = shared_pair().await;
    let [scoped, named, starred, unused] =
        ["scoped", "named", "starred", "unused"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&scoped, &named, &starred, &unused] {
        stock(&hub, space, &["a", "b"], &json!({})).await;
    }
    let mut spec = all_of(&scoped, &[("", "configmaps")]);
    spec["namespacedObjects"] = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": [
        {"namespace": named, "names": ["a"]},
        {"namespace": starred, "names": ["*"]},
        {"namespace": unused, "names": []},
    ]}]);
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    for (space, name) in [
        (&scoped, "a"),
        (&scoped, "b"),
        (&named, "a"),
        (&starred, "a"),
        (&starred, "b"),
    ] {
        arrives(&edge, "v1", "configmaps", space, name).await;
    }
    stays_absent(&edge, "v1", "configmaps", &named, "b").await;
    assert_eq!(edge.get("v1", "namespaces", "", &unused).await, None);
}

async fn selects_absent_empty_star_and_explicit_objects_of_cluster_scoped_resources(flags: Mode) {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let group = format!("{}.example.org", pair.namespace("m"));
    let cases = [
        ("alls", ABSENT_MEANS_ALL, vec!["a", "b"]),
        ("nones", json!([]), vec![]),
        ("stars", json!(["*"]), vec!["a", "b"]),
        ("somes", json!(["a"]), vec!["a"]),
    ];
    let mut cluster_scope = Vec::new();
    for (plural, objects, _) in &cases {
        install_crd(&[&hub, &edge], &crd(&group, plural, false)).await;
        for name in ["a", "b"] {
            hub.create(&custom_object(&group, plural, "", name, 1)).await;
        }
        let mut item = json!({"group": group, "resource": plural, "apiVersion": "v1"});
        if !objects.is_null() {
            item["objects"] = objects.clone();
        }
        cluster_scope.push(item);
    }
    select(&hub, &json!({"clusterScope": cluster_scope})).await;
    let _syncer = pair.syncer(flags);
    let version = format!("{group}/v1");
    for (plural, _, expected) in &cases {
        for name in expected {
            arrives(&edge, &version, plural, "", name).await;
        }
    }
    holds_throughout(
        "what is not selected does not appear",
        crate::support::story::a_while(),
        async || {
            for (plural, _, expected) in &cases {
                let found = edge
                    .try_list(&version, plural, "", "")
                    .await
                    .map_err(|error| error.to_string())?;
                if found.len() != expected.len() {
                    return Err(format!("{plural}: {} instead of {}", found.len(), expected.len()));
                }
            }
            Ok(())
        },
    )
    .await;
    for (plural, ..) in &cases {
        drop_crds(&[&hub, &edge], &[&format!("{plural}.{group}")]).await;
    }
}

async fn puts_drift_right_and_overwrites_and_marks_a_foreign_object(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    edge.create(&config_map(&shop, "theirs", json!({"apple": "9"}))).await;
    hub.create(&config_map(&shop, "theirs", json!({"apple": "1"}))).await;
    hub.create(&config_map(&shop, "ours", json!({"apple": "1"}))).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(flags);

    copy_equals(&edge, &shop, "ours", &json!({"apple": "1"})).await;
    edge.merge_patch(
        "v1",
        "configmaps",
        &shop,
        "ours",
        &json!({"data": {"apple": "tampered"}}),
    )
    .await;
    copy_equals(&edge, &shop, "ours", &json!({"apple": "1"})).await;
    edge.delete("v1", "configmaps", &shop, "ours").await;
    copy_equals(&edge, &shop, "ours", &json!({"apple": "1"})).await;

    let copy = copy_equals(&edge, &shop, "theirs", &json!({"apple": "1"})).await;
    assert_eq!(
        annotation(&copy, "downsynced"),
        json!(format!("ConfigMap/{shop}/theirs"))
    );
    assert_eq!(annotation(&copy, "adopted"), json!("true"));
    hub.delete("v1", "configmaps", &shop, "theirs").await;
    eventually("the adopted object is released and kept", SOON, async || {
        let copy = edge
            .get("v1", "configmaps", &shop, "theirs")
            .await
            .ok_or("it was deleted")?;
        let marks = [annotation(&copy, "downsynced"), annotation(&copy, "adopted")];
        if marks == [Value::Null, Value::Null] {
            Ok(())
        } else {
            Err("it is still marked")
        }
    })
    .await;
}

async fn never_deletes_an_object_whose_annotation_is_absent_or_names_another(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["unmarked", "renamed", "copied", "proof"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    for name in ["unmarked", "renamed", "copied", "proof"] {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    // While the syncer is away, the marks are changed and the originals deleted.
    syncer.terminate().await;
    let key = "edge.kubestellar.io/downsynced";
    for (name, value) in [
        ("unmarked", Value::Null),
        ("renamed", json!("true")),
        ("copied", json!(format!("ConfigMap/{shop}/proof"))),
    ] {
        edge.merge_patch(
            "v1",
            "configmaps",
            &shop,
            name,
            &json!({"metadata": {"annotations": {key: value}}}),
        )
        .await;
    }
    for name in ["unmarked", "renamed", "copied", "proof"] {
        hub.delete("v1", "configmaps", &shop, name).await;
    }
    let _syncer = pair.syncer(flags);
    gone(&edge, "v1", "configmaps", &shop, "proof").await;
    for name in ["unmarked", "renamed", "copied"] {
        assert!(edge.get("v1", "configmaps", &shop, name).await.is_some(), "{name}");
    }
}

async fn makes_namespaces_first_and_deletes_only_those_that_it_made(flags: Mode) {
    let pair = shared_pair().await;
    let [made, there] = ["made", "there"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    edge.create(&namespace(&there)).await;
    for space in [&made, &there] {
        hub.create(&namespace(space)).await;
    }
    hub.create(&config_map(&made, "a", json!({}))).await;
    hub.create(&config_map("default", &format!("in-default-{made}"), json!({})))
        .await;
    let in_default = format!("in-default-{made}");
    select(
        &hub,
        &json!({
            "namespaceScope": {"namespaces": [made, there], "resources": []},
            "namespacedObjects": [config_map_entry(&made, &["a"]), config_map_entry("default", &[&in_default])],
        }),
    )
    .await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &made, "a").await;
    arrives(&edge, "v1", "configmaps", "default", &in_default).await;
    let space = edge
        .get("v1", "namespaces", "", &made)
        .await
        .expect("it holds a ConfigMap");
    assert_eq!(annotation(&space, "downsynced"), json!(format!("Namespace//{made}")));
    for untouched in [there.as_str(), "default"] {
        let space = edge
            .get("v1", "namespaces", "", untouched)
            .await
            .expect("it was there before");
        assert_eq!(annotation(&space, "downsynced"), Value::Null, "{untouched}");
    }
    hub.delete("v1", "configmaps", &made, "a").await;
    hub.delete("v1", "configmaps", "default", &in_default).await;
    gone(&edge, "v1", "configmaps", &made, "a").await;
    for space in [&made, &there] {
        hub.remove_namespaces(std::slice::from_ref(space)).await;
    }
    eventually("the namespace that the syncer made is deleted", SOON, async || {
        // Without a controller manager nobody finishes the deletion of a namespace.
        match edge.get("v1", "namespaces", "", &made).await {
            Some(space) if space["metadata"]["deletionTimestamp"].is_null() => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    for kept in [there.as_str(), "default"] {
        let space = edge
            .get("v1", "namespaces", "", kept)
            .await
            .expect("it is never deleted");
        assert_eq!(space["metadata"]["deletionTimestamp"], Value::Null, "{kept}");
    }
}

async fn brings_a_crd_and_its_objects_and_waits_for_a_crd_that_comes_later(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let with = format!("withs.{group}");
    for plural in ["withs", "laters"] {
        install_crd(&[&hub], &crd(&group, plural, true)).await;
    }
    hub.create(&namespace(&shop)).await;
    for plural in ["withs", "laters"] {
        hub.create(&custom_object(&group, plural, &shop, "a", 1)).await;
    }
    hub.create(&config_map(&shop, "beside", json!({}))).await;
    let mut spec = all_of(&shop, &[(&group, "withs"), (&group, "laters"), ("", "configmaps")]);
    let crds = cluster_objects("apiextensions.k8s.io", "customresourcedefinitions", &[&with]);
    spec["clusterScope"] = json!([crds]);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, &version, "withs", &shop, "a").await;
    arrives(&edge, "v1", "configmaps", &shop, "beside").await;
    syncer.wait_for_log("resource=laters", SOON).await;
    assert!(syncer.is_running());
    edge.create(&crd(&group, "laters", true)).await;
    arrives(&edge, &version, "laters", &shop, "a").await;
    for plural in ["withs", "laters"] {
        drop_crds(&[&hub, &edge], &[&format!("{plural}.{group}")]).await;
    }
}

async fn a_config_edit_takes_effect_without_restart_and_deselecting_deletes_nothing(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["a"])).await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    reselect(&hub, &config_maps(&shop, &["b"])).await;
    arrives(&edge, "v1", "configmaps", &shop, "b").await;

    // "a" is no longer selected: it stays as it is while the hub has it, and goes when the hub deletes it.
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    hub.replace(&config_map(&shop, "b", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "b", &json!({"v": "2"})).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
}

fn cluster_role(name: &str, verb: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]})
}

async fn that_ephemeral_containers_are_not_synced_is_said_once(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &[("", "pods")])).await;
    let mut syncer = pair.syncer(flags);
    for name in ["a", "b"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": name},
            "spec": {"containers": [{"name": "web", "image": "web"}]}});
        hub.create(&pod).await;
        arrives(&edge, "v1", "pods", &shop, name).await;
        // As `kubectl debug` does it.
        let target = format!("{}/ephemeralcontainers", path("v1", "pods", &shop, name));
        let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "shell"}]}});
        let added = hub.send(Method::PATCH, &target, MERGE_PATCH, Some(&debug)).await;
        added.expect("a pod that exists may have one");
        let label = json!({"metadata": {"labels": {"seen": "1"}}});
        hub.merge_patch("v1", "pods", &shop, name, &label).await;
        let at = ["v1", "pods", &*shop, name];
        let copy = becomes(&edge, at, "has the label", |copy| {
            copy["metadata"]["labels"]["seen"] == json!("1")
        })
        .await;
        assert_eq!(copy["spec"]["ephemeralContainers"], Value::Null);
    }
    syncer
        .wait_for_log("ephemeral containers belong to the Pod", SOON)
        .await;
    let log = syncer.log();
    assert_eq!(log.matches("reason=PartNotSynced").count(), 1, "{log}");
}
