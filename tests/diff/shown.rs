//! What `diff` shows.

use std::collections::BTreeSet;

use serde_json::json;

use crate::bench::{Versions, diff, mark, only_dry_runs_since, versions};
use crate::support::eventually;
use crate::support::objects::{config_map, edge_sync_config, namespace, syncer_config};
use crate::support::stage::{
    Stage, all_of, cluster_objects, config_maps, largest, numbered, own_group, select, stage, stock,
};
use crate::support::statuses::deployment;
use crate::support::story::{
    SOON, arrives, copy_equals, crd, custom_object, drop_crds, edit, gone, install_crd, upsync_all,
};

/// Lines of a set of heads.
fn heads(lines: &[String]) -> BTreeSet<String> {
    lines.iter().cloned().collect()
}

/// What differs, without what the syncer keeps about itself.
fn changed(before: &Versions, after: &Versions) -> BTreeSet<String> {
    let names = before.keys().chain(after.keys());
    let differs = names.filter(|name| before.get(*name) != after.get(*name));
    // What a syncer says of itself and of what it does is not shown.
    let own = ["edge-syncer-types", "Config//", "Edge//", "Event/"];
    let is_synced = |name: &&String| !own.iter().any(|own| name.contains(own));
    differs.filter(is_synced).cloned().collect()
}

/// In sync: a syncer has synced these `ConfigMap`s and a Secret, and was stopped.
async fn synced(names: &[&str]) -> Stage {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    stock(hub, shop, names, &json!({"apple": "1", "pear": "2"})).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "keys"},
        "stringData": {"a": "hunter-one", "b": "hunter-one", "c": "hunter-two"}});
    hub.create(&secret).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("", "secrets")])).await;
    let mut syncer = stage.pair.syncer(&[]);
    for name in names {
        arrives(edge, "v1", "configmaps", shop, name).await;
    }
    arrives(edge, "v1", "secrets", shop, "keys").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    syncer.terminate().await;
    stage
}

#[tokio::test]
async fn it_shows_exactly_what_run_then_does_and_changes_nothing() {
    let stage = synced(&["same", "changed", "deleted", "drifted"]).await;
    let Stage { pair, shop, hub, edge } = &stage;
    let found = diff(&stage, &[]).await;
    assert_eq!((found.code, &*found.out), (Some(0), ""), "{}{}", found.out, found.err);
    assert_eq!(found.err, "edge-syncer: run would change nothing\n");

    hub.replace(&config_map(shop, "changed", json!({"apple": "1", "plum": "3"})))
        .await;
    hub.delete("v1", "configmaps", shop, "deleted").await;
    hub.create(&config_map(shop, "created", json!({"new": "yes"}))).await;
    edge.update_as("kubectl-edit", &{
        let mut copy = edge
            .get("v1", "configmaps", shop, "drifted")
            .await
            .expect("it is there");
        copy["data"]["added"] = json!("by hand");
        copy["data"]["pear"] = json!("other");
        copy
    })
    .await;
    let secret = json!({"stringData": {"b": "hunter-two", "c": "hunter-three"}});
    hub.merge_patch("v1", "secrets", shop, "keys", &secret).await;

    let (before, since) = (versions(&stage).await, mark(&stage));
    let found = diff(&stage, &[]).await;
    assert_eq!(found.code, Some(1), "{}{}", found.out, found.err);
    let of = |object: &str, words: &str| format!("edge: {object} {words}").replace("SHOP", shop);
    let expected = heads(&[
        of("ConfigMap/SHOP/changed", "would be updated"),
        of("ConfigMap/SHOP/created", "would be created"),
        of("ConfigMap/SHOP/deleted", "would be deleted"),
        of("ConfigMap/SHOP/drifted", "would be updated"),
        of("Secret/SHOP/keys", "would be updated"),
    ]);
    assert_eq!(found.heads(), expected, "{}{}", found.out, found.err);
    assert_eq!(found.err, "edge-syncer: run would change 5\n");
    let changed_lines = found.diff_of("ConfigMap/SHOP/changed".replace("SHOP", shop).as_str());
    assert!(
        changed_lines.contains("-  pear: \"2\"\n") && changed_lines.contains("+  plum: \"3\"\n"),
        "{changed_lines}"
    );
    assert!(changed_lines.contains("   apple: \"1\"\n"), "{changed_lines}");
    let drifted = found.diff_of(&format!("ConfigMap/{shop}/drifted"));
    for line in ["-  added: by hand\n", "-  pear: other\n", "+  pear: \"2\"\n"] {
        assert!(drifted.contains(line), "{line}: {drifted}");
    }
    let deleted = found.diff_of(&format!("ConfigMap/{shop}/deleted"));
    assert!(
        deleted.contains("\n+++ /dev/null\n") && deleted.contains("-kind: ConfigMap\n"),
        "{deleted}"
    );
    let secret = found.diff_of(&format!("Secret/{shop}/keys"));
    for line in [
        "   a: \"***1\"\n",
        "-  b: \"***1\"\n",
        "-  c: \"***2\"\n",
        "+  b: \"***2\"\n",
        "+  c: \"***3\"\n",
    ] {
        assert!(secret.contains(line), "{line}: {secret}");
    }
    for value in ["hunter", "aHVudGVy"] {
        assert!(
            !found.out.contains(value) && !found.err.contains(value),
            "{}{}",
            found.out,
            found.err
        );
    }
    assert_eq!(versions(&stage).await, before, "nothing has changed at either side");
    assert!(only_dry_runs_since(&stage, since) >= 5);

    let one = diff(&stage, &[&format!("--object=configmap/{shop}/created")]).await;
    assert_eq!(
        one.heads(),
        heads(&[of("ConfigMap/SHOP/created", "would be created")]),
        "{}",
        one.err
    );
    let none = diff(&stage, &[&format!("--object=ConfigMap/{shop}/same")]).await;
    assert_eq!((none.code, &*none.out), (Some(0), ""), "{}", none.err);

    let mut syncer = pair.syncer(&[]);
    copy_equals(edge, shop, "changed", &json!({"apple": "1", "plum": "3"})).await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    let objects = expected
        .iter()
        .filter_map(|head| head.split_once(" would"))
        .map(|(object, _)| object.replace(':', ""));
    assert_eq!(
        changed(&before, &versions(&stage).await),
        objects.collect(),
        "run does exactly that"
    );
    syncer.terminate().await;
    let found = diff(&stage, &[]).await;
    assert_eq!((found.code, &*found.out), (Some(0), ""), "{}", found.err);
}

#[tokio::test]
async fn deletes_that_would_be_held_are_shown_with_the_reason() {
    let stage = synced(&["a", "b", "c", "d"]).await;
    let Stage { shop, hub, .. } = &stage;
    for name in ["a", "b", "c"] {
        hub.delete("v1", "configmaps", shop, name).await;
    }
    hub.delete("v1", "secrets", shop, "keys").await;
    let before = versions(&stage).await;
    let found = diff(&stage, &["--hold-deletes-above=1"]).await;
    assert_eq!(found.code, Some(1), "{}{}", found.out, found.err);
    assert_eq!(found.heads().len(), 4, "{}", found.out);
    for head in found.heads() {
        let reason = " would be deleted, and that is held: 4 of 6 copies are to be deleted at once";
        assert!(head.contains(reason), "{head}");
    }
    let secret = found.diff_of(&format!("Secret/{shop}/keys"));
    assert!(secret.contains("-  a: \"***1\"\n"), "{secret}");
    let last = "edge-syncer: run would change 0, and hold 4 deletes\n";
    assert!(found.err.ends_with(last), "{}", found.err);
    assert!(
        !found.err.contains("confirm-deletes="),
        "its token would confirm nothing: {}",
        found.err
    );
    let all = diff(&stage, &[]).await;
    assert!(
        all.heads().iter().all(|head| head.ends_with(" would be deleted")),
        "{}",
        all.out
    );
    assert_eq!(versions(&stage).await, before);
}

#[tokio::test]
async fn what_needs_a_namespace_that_is_not_there_yet_is_shown_as_it_would_be_sent() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    let up = pair.namespace("up");
    stock(hub, shop, &["a"], &json!({"apple": "1"})).await;
    let mut spec = all_of(shop, &[("", "configmaps")]);
    spec["upsync"] = json!([upsync_all("", &["configmaps"], &up)]);
    select(hub, &spec).await;
    stock(edge, &up, &["b"], &json!({"pear": "2"})).await;
    let before = versions(&stage).await;
    let found = diff(&stage, &[]).await;
    let as_sent = "(as it would be sent: the server cannot be asked before what it needs is there)";
    let expected = heads(&[
        format!("edge: Namespace//{shop} would be created"),
        format!("edge: ConfigMap/{shop}/a would be created {as_sent}"),
        format!("hub: Namespace//{up} would be created"),
        format!("hub: ConfigMap/{up}/b would be created {as_sent}"),
    ]);
    assert_eq!(found.heads(), expected, "{}{}", found.out, found.err);
    assert_eq!(
        (found.code, &*found.err),
        (Some(1), "edge-syncer: run would change 4\n")
    );
    let lines = found.diff_of(&format!("ConfigMap/{shop}/a"));
    assert!(
        lines.starts_with("--- /dev/null\n") && lines.contains("+  apple: \"1\"\n"),
        "{lines}"
    );
    assert_eq!(versions(&stage).await, before);

    let mut syncer = pair.syncer(&[]);
    arrives(edge, "v1", "configmaps", shop, "a").await;
    arrives(hub, "v1", "configmaps", &up, "b").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    syncer.terminate().await;
    let objects = expected
        .iter()
        .filter_map(|head| head.split_once(" would"))
        .map(|(object, _)| object.replace(':', ""));
    let objects: BTreeSet<String> = objects.collect();
    let made = changed(&before, &versions(&stage).await);
    assert!(objects.is_subset(&made), "{objects:?} {made:?}");
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it_unless_that_is_somebody_elses() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &["a", "b"], &json!({"apple": "1"})).await;
    let mut spec = all_of(shop, &[("", "configmaps")]);
    spec["clusterScope"] = json!([cluster_objects("", "namespaces", &[shop])]);
    select(hub, &spec).await;
    let mut syncer = pair.syncer(&[]);
    arrives(edge, "v1", "configmaps", shop, "b").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    syncer.terminate().await;
    hub.remove_namespaces(std::slice::from_ref(shop)).await;
    let found = diff(&stage, &[]).await;
    let of = |object: &str| format!("edge: {object} would be deleted");
    let copies = [of(&format!("ConfigMap/{shop}/a")), of(&format!("ConfigMap/{shop}/b"))];
    let expected = &heads(&copies) | &heads(&[of(&format!("Namespace//{shop}"))]);
    assert_eq!(found.heads(), expected, "{}{}", found.out, found.err);
    edge.create(&config_map(shop, "theirs", json!({}))).await;
    let found = diff(&stage, &[]).await;
    let held = format!(
        "edge: Namespace//{shop} would be deleted, and that is held: deleting Namespace//{shop} would delete ConfigMap/{shop}/theirs too, which is to be preserved"
    );
    let expected = &heads(&copies) | &heads(&[held]);
    found.shows(&expected);
}

#[tokio::test]
async fn statuses_objects_of_others_and_replacements_are_named_as_such() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &["ours"], &json!({"apple": "1"})).await;
    hub.create(&deployment(shop, "example.org/web:1")).await;
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "stringData": {"a": value},
        "metadata": {"namespace": shop, "name": "fixed", "annotations": {"edge.kubestellar.io/replace": "true"}}})
    };
    hub.create(&secret("one")).await;
    select(
        hub,
        &all_of(shop, &[("", "configmaps"), ("", "secrets"), ("apps", "deployments")]),
    )
    .await;
    let mut syncer = pair.syncer(&[]);
    arrives(edge, "v1", "configmaps", shop, "ours").await;
    arrives(edge, "v1", "secrets", shop, "fixed").await;
    arrives(edge, "apps/v1", "deployments", shop, "web").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    syncer.terminate().await;

    edge.patch_status(
        "apps/v1",
        "deployments",
        shop,
        "web",
        &json!({"replicas": 3, "observedGeneration": 1}),
    )
    .await;
    edge.create(&config_map(shop, "theirs", json!({"a": "theirs"}))).await;
    hub.create(&config_map(shop, "theirs", json!({"a": "ours"}))).await;
    hub.delete("v1", "secrets", shop, "fixed").await;
    gone(hub, "v1", "secrets", shop, "fixed").await;
    hub.create(&secret("two")).await;
    let before = versions(&stage).await;
    let found = diff(&stage, &[]).await;
    let expected = heads(&[
        format!("hub: Deployment/{shop}/web its status would be returned"),
        format!("edge: ConfigMap/{shop}/theirs would be adopted"),
        format!(
            "edge: Secret/{shop}/fixed would be deleted and created again (as it would be sent: the server cannot be asked before what it needs is there)"
        ),
    ]);
    assert_eq!(found.heads(), expected, "{}{}", found.out, found.err);
    let status = found.diff_of(&format!("Deployment/{shop}/web"));
    assert!(status.contains("+  replicas: 3\n"), "{status}");
    let adopted = found.diff_of(&format!("ConfigMap/{shop}/theirs"));
    assert!(adopted.contains("-  a: theirs\n+  a: ours\n"), "{adopted}");
    assert_eq!(versions(&stage).await, before);
}

#[tokio::test]
async fn of_several_configs_one_can_be_named() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    stock(hub, shop, &["a", "b"], &json!({"apple": "1"})).await;
    edge.create(&namespace(shop)).await;
    select(hub, &config_maps(shop, &["a"])).await;
    hub.create(&syncer_config("second", config_maps(shop, &["b"]))).await;
    for (more, names) in [
        (&[][..], &["a", "b"][..]),
        (&["--config=the-one"], &["a"]),
        (&["--config", "second"], &["b"]),
    ] {
        let found = diff(&stage, more).await;
        let expected: BTreeSet<String> = names
            .iter()
            .map(|name| format!("edge: ConfigMap/{shop}/{name} would be created"))
            .collect();
        assert_eq!(
            (found.code, found.heads()),
            (Some(1), expected),
            "{more:?} {}",
            found.err
        );
    }
    // What fails is no matter of those who ask about something else, and is not even tried.
    let fixed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": shop},
        "immutable": true, "data": {"apple": "2"}});
    edge.create(&fixed).await;
    hub.create(&config_map(shop, "c", json!({"apple": "1"}))).await;
    hub.create(&syncer_config("fails", config_maps(shop, &["c"]))).await;
    let object = format!("--object=ConfigMap/{shop}/a");
    for (more, code, fails) in [
        (&[][..], Some(2), true),
        (&["--config=fails"], Some(2), true),
        (&["--config=the-one"], Some(1), false),
        (&[&object], Some(1), false),
    ] {
        let found = diff(&stage, more).await;
        let is_said = found.err.contains(&format!("ConfigMap/{shop}/c"));
        assert_eq!((found.code, is_said), (code, fails), "{more:?} {}", found.err);
    }
    let unknown = diff(&stage, &[&format!("--object=ConfigMap/{shop}/nowhere")]).await;
    let expected =
        format!("edge-syncer: --object ConfigMap/{shop}/nowhere: the configs select nothing that is called so\n");
    assert_eq!((unknown.code, &*unknown.out, unknown.err), (Some(2), "", expected));
    let unknown = diff(&stage, &["--config=third"]).await;
    assert_eq!((unknown.code, &*unknown.out), (Some(2), ""));
    assert_eq!(
        unknown.err,
        "edge-syncer: --config \"third\": the hub has no such config that can be read\n"
    );
}

#[tokio::test]
async fn a_few_hundred_objects_are_all_shown() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    let names = numbered(300);
    stock(hub, shop, &names, &json!({"apple": "1"})).await;
    edge.create(&namespace(shop)).await;
    select(hub, &all_of(shop, &[("", "configmaps")])).await;
    let found = diff(&stage, &["--qps=-1"]).await;
    // With its mark on the namespace.
    assert_eq!(
        found.heads().iter().filter(|head| head.contains(" ConfigMap/")).count(),
        300,
        "{}",
        found.err
    );
    eventually("the copies stay absent", SOON, async || {
        let copies = edge
            .list("v1", "configmaps", shop, "edge.kubestellar.io/downsynced")
            .await;
        copies.is_empty().then_some(()).ok_or("there are some")
    })
    .await;
    edit(hub, shop, "c0", &json!({"data": {"apple": "2"}})).await;
}

#[tokio::test]
async fn what_waits_for_a_definition_that_would_only_arrive_is_not_shown_but_said() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    let (group, _) = own_group(shop);
    let definition = crd(&group, "gauges", true);
    let name = format!("gauges.{group}");
    install_crd(&[hub], &definition).await;
    hub.create(&namespace(shop)).await;
    edge.create(&namespace(shop)).await;
    hub.create(&custom_object(&group, "gauges", shop, "a", 1)).await;
    let mut spec = all_of(shop, &[(&group, "gauges")]);
    spec["clusterScope"] = json!([cluster_objects(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &[&name]
    )]);
    select(hub, &spec).await;
    let found = diff(&stage, &[]).await;
    drop_crds(&[hub], &[&name]).await;
    let expected = heads(&[format!("edge: CustomResourceDefinition//{name} would be created")]);
    found.shows(&expected);
    assert!(
        found.err.contains("reason=TypeNotServed") && found.err.contains(&group),
        "{}",
        found.err
    );
}

#[tokio::test]
async fn what_the_largest_config_selects_is_shown_in_whole_and_by_object() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    edge.create(&namespace(shop)).await;
    stock(hub, shop, &["h2", "e5000"], &json!({"k": "v"})).await;
    hub.create(&edge_sync_config("large", largest(shop))).await;
    // By the names at the edge, of which one is another than at the hub.
    let created = ["c2", "e5000"].map(|name| format!("edge: ConfigMap/{shop}/{name} would be created"));
    diff(&stage, &[]).await.shows(&heads(&created));
    for name in ["h2", "c2"] {
        let one = format!("--object=ConfigMap/{shop}/{name}");
        diff(&stage, &[&one]).await.shows(&heads(&created[..1]));
    }
}
