//! Configs with misspelt words: each is refused by the hub, or named in the log, in a metric and by `check`.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::configs::lift_limits;
use crate::figures::{ANYWHERE, address_of, shows};
use crate::support::objects::{edge_sync_config, namespace, syncer_config};
use crate::support::stage::{CONFIG_API, Stage, config_map_ref, config_maps, select, stage, stock};
use crate::support::story::{SOON, arrives, becomes, drop_crds, reselect};
use crate::support::{Syncer, install_crds};

/// All objects of a type in a namespace.
fn scope(namespace: &str, group: &str, resource: &str, version: &str) -> Value {
    let resource = json!({"group": group, "resource": resource, "apiVersion": version});
    json!({"namespaceScope": {"namespaces": [namespace], "resources": [resource]}})
}

fn cluster(group: &str, objects: &[&str]) -> Value {
    json!({"clusterScope": [{"group": group, "resource": "x", "apiVersion": "v1", "objects": objects}]})
}

fn up(group: &Value, namespace: &str, name: &str) -> Value {
    json!({"upsync": [{"apiGroup": group, "resources": ["*"], "namespaces": [namespace], "names": [name]}]})
}

/// Misspelt words, what the log and `check` say of them, and how the metric counts them: where the hub has CRDs from
/// before they refused such words, if they do.
fn typos(shop: &str, absent: &str) -> Vec<(Value, String, String, &'static str)> {
    let invalid = |spec: Value, field: &str, word: &str, why: &str| {
        let log = format!(
            "reason=ConfigInvalid msg=\"a part of a config cannot be followed\" config=SyncerConfig//the-one field=spec.{field} \
             error=\"\\\"{word}\\\" {why}"
        );
        let check = format!("configs: SyncerConfig//the-one spec.{field}: \"{word}\" {why}");
        (spec, log, check, "invalid")
    };
    let meant = |group: &str, word: &str, meant: &str| {
        let of_group = Some(group).filter(|group| !group.is_empty());
        let of_group = of_group.map_or_else(String::new, |group| format!(" group={group}"));
        let hint = format!("did you mean {meant}?");
        let advice = hint.replace('"', "\\\"");
        let log = format!(
            "reason=TypeNotServed msg=\"a selected type is not served; it is synced as soon as it appears\" side=hub,edge \
             resource={word}{of_group} version=v1 config=SyncerConfig//the-one field=spec.namespaceScope.resources[0] \
             advice=\"{advice}\""
        );
        let check = format!("resource={word} group={group:?} version=v1, which SyncerConfig//the-one selects; {hint}");
        (scope(shop, group, word, "v1"), log, check, "type_not_served")
    };
    vec![
        meant("apps", "Deployment", "deployments"),
        invalid(
            scope(shop, "apps", "deployments", "apps/v1"),
            "namespaceScope.resources[0].apiVersion",
            "apps/v1",
            "holds a group",
        ),
        invalid(
            config_maps(shop, &["pri*"]),
            "namespacedObjects[0].objectsByNamespace[0].names",
            "pri*",
            "is no name of an object",
        ),
        invalid(
            scope("pri*", "", "configmaps", "v1"),
            "namespaceScope.namespaces[0]",
            "pri*",
            "is no name of a namespace",
        ),
        invalid(
            scope("Shop", "", "configmaps", "v1"),
            "namespaceScope.namespaces[0]",
            "Shop",
            "is no name of a namespace",
        ),
        meant("apps", "deploymnts", "deployments"),
        meant("app", "deployments", "deployments in group apps"),
        meant("", "Deployment", "deployments in group apps"),
        // No config has named that group.
        meant("", "cronjobs", "cronjobs in group batch"),
        meant("batc", "cronjob", "cronjobs in group batch"),
        meant("apps", "configmap", "configmaps in group \"\""),
        (
            scope(absent, "", "configmaps", "v1"),
            format!(
                "reason=NamespaceMissing msg=\"a selected namespace is not at the hub; what is in it is synced as soon as it is \
                 there\" side=hub namespace={absent} config=SyncerConfig//the-one field=spec.namespaceScope.namespaces "
            ),
            format!("{absent} is not there, which SyncerConfig//the-one spec.namespaceScope.namespaces selects"),
            "namespace_missing",
        ),
    ]
}

async fn check(hub: &Path, edge: &Path) -> String {
    let mut command = Command::new(Syncer::program());
    command.arg("check").arg("--sync-target-uid=test");
    command.arg(format!("--from-kubeconfig={}", hub.display()));
    command.arg(format!("--to-kubeconfig={}", edge.display()));
    let output = command.env_clear().output().await.expect("the program can be run");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[tokio::test]
async fn each_misspelt_word_is_named_in_the_log_in_a_metric_and_by_check_until_it_is_corrected() {
    let Stage { pair, shop, hub, edge } = stage().await;
    // CRDs of this version refuse some of the words.
    lift_limits(&hub).await;
    stock(&hub, &shop, &["prices"], &json!({})).await;
    let right = config_maps(&shop, &["prices"]);
    select(&hub, &right).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    let absent = pair.namespace("absent");
    let counts = async |problem: &str, count: usize| {
        let line = format!("edge_syncer_config_problems{{problem=\"{problem}\"}} {count}");
        shows(address, &line).await;
    };
    for (mut spec, log, found, problem) in typos(&shop, &absent) {
        // A merge patch keeps what it does not name.
        for field in ["namespaceScope", "namespacedObjects"] {
            if spec[field].is_null() {
                spec[field] = Value::Null;
            }
        }
        reselect(&hub, &spec).await;
        syncer.wait_for_log(&log, SOON).await;
        counts(problem, 1).await;
        // It is on the config too.
        let of_type = found.split_once(" selects; ").map(|(_, hint)| hint);
        let of_field = found
            .strip_prefix("configs: SyncerConfig//the-one ")
            .and_then(|found| found.split_once(": "));
        if let Some(hint) = of_type.or(of_field.map(|(_, why)| why)) {
            let is_said = |config: &Value| {
                let said = config["status"]["conditions"].to_string().replace('\\', "");
                said.contains(hint) && of_field.is_none_or(|(field, _)| said.contains(field))
            };
            becomes(&hub, [CONFIG_API, "syncerconfigs", "", "the-one"], hint, is_said).await;
        }
        let said = check(&pair.hub.kubeconfig(), &pair.edge.kubeconfig()).await;
        let points: Vec<&str> = said.lines().filter(|line| line.starts_with('✗')).collect();
        assert!(points.iter().any(|point| point.contains(&found)), "{found}: {said}");
        let mut corrected = right.clone();
        corrected["namespaceScope"] = Value::Null;
        reselect(&hub, &corrected).await;
        counts(problem, 0).await;
    }
    let said = check(&pair.hub.kubeconfig(), &pair.edge.kubeconfig()).await;
    assert!(!said.contains("config: ") && !said.contains("namespaces: "), "{said}");

    // What was too early, and not misspelt.
    let early = scope(&absent, "", "configmaps", "v1");
    reselect(&hub, &early).await;
    counts("namespace_missing", 1).await;
    hub.create(&namespace(&absent)).await;
    let found =
        format!("reason=NamespaceFound msg=\"a selected namespace is at the hub now\" side=hub namespace={absent}");
    syncer.wait_for_log(&found, SOON).await;
    counts("namespace_missing", 0).await;
    // Not only a SyncerConfig, which implies its namespaces.
    let other = pair.namespace("other");
    let by_kind = json!({"downSyncedResources": [config_map_ref(&other, "a")]});
    hub.create(&edge_sync_config("by-kind", by_kind)).await;
    let missing = format!("namespace={other} config=EdgeSyncConfig//by-kind field=spec.downSyncedResources[0] ");
    syncer.wait_for_log(&missing, SOON).await;
    stock(&hub, &other, &["a"], &json!({})).await;
    syncer.wait_for_log(&found.replace(&absent, &other), SOON).await;
}

/// What a refusal says names the word that is wrong, if one of these is.
fn is_named(spec: &Value, refusal: &str) -> bool {
    let (spec, words) = (spec.to_string(), ["pri*", "Shop", "apps/v1"]);
    words
        .iter()
        .filter(|word| spec.contains(**word))
        .all(|word| refusal.contains(word))
}

#[tokio::test]
async fn the_definitions_refuse_what_nothing_is_called_and_take_all_else() {
    let Stage { pair, .. } = stage().await;
    let edge = pair.edge.objects();
    // Other tests lift the limits of the hub's.
    install_crds(&edge).await;
    let reference = |group: &str, version: &str, namespace: &str, name: &str| json!({"group": group, "version": version, "kind": "Kind", "namespace": namespace, "name": name});
    let (core, roles) = (json!(""), "rbac.authorization.k8s.io");
    for (spec, is_taken) in [
        (scope("shop", "apps", "deployments", "apps/v1"), false),
        (scope("Shop", "", "configmaps", "v1"), false),
        (scope("pri*", "", "configmaps", "v1"), false),
        (scope("", "", "configmaps", "v1"), false),
        (scope("shop", "", "", "v1"), false),
        (config_maps("Shop", &["*"]), false),
        (config_maps("shop", &["pri*"]), false),
        (config_maps("shop", &["prices", ""]), false),
        (cluster("", &["pri*"]), false),
        (cluster("", &[""]), false),
        (up(&core, "*", "pri*"), false),
        (up(&Value::Null, "*", "pri*"), false),
        (up(&core, "Shop", "*"), false),
        (scope("shop-1", "metrics.example.org", "gauges", "v1beta1"), true),
        // Reported by the syncer, as before.
        (scope("*", "", "*", "v1"), true),
        (scope("shop", "apps", "Deployment", "v1"), true),
        (config_maps("shop", &["*"]), true),
        (config_maps("shop", &["a.b-c", "Prices", "a:b"]), true),
        (config_maps("shop", &[]), true),
        (cluster("", &["gauges.metrics.example.org"]), true),
        (cluster("", &[]), true),
        (cluster(roles, &["system:node", "system:*", "a b"]), true),
        (up(&json!(roles), "*", "system:*"), true),
        (up(&Value::Null, "*", "*"), true),
        (
            json!({"namespaceScope": {"namespaces": [], "resources": null}, "upsync": []}),
            true,
        ),
        (json!({}), true),
    ] {
        let taken = edge.try_create(&syncer_config("typo", spec.clone())).await;
        assert_eq!(taken.is_ok(), is_taken, "{spec} {taken:?}");
        assert!(is_taken || is_named(&spec, &format!("{taken:?}")), "{spec} {taken:?}");
        edge.delete(CONFIG_API, "syncerconfigs", "", "typo").await;
    }
    for (item, is_taken) in [
        (reference("", "apps/v1", "shop", "a"), false),
        (reference("", "v1", "Shop", "a"), false),
        (reference("", "v1", "pri*", "a"), false),
        (reference("", "v1", "shop", "pri*"), false),
        (reference("", "v1", "shop", ""), false),
        (json!({"version": "v1", "kind": "Kind", "name": "pri*"}), false),
        (reference("", "v1", "", "a.b"), true),
        (reference("", "v1", "*", "*"), true),
        (reference("example.org", "", "shop", "Prices:1"), true),
        (reference(roles, "v1", "", "system:*"), true),
        (json!({"kind": "Namespace"}), true),
        (json!({}), true),
    ] {
        for list in ["downSyncedResources", "upSyncedResources"] {
            let taken = edge.try_create(&edge_sync_config("typo", json!({list: [item]}))).await;
            assert_eq!(taken.is_ok(), is_taken, "{list} {item} {taken:?}");
            assert!(is_taken || is_named(&item, &format!("{taken:?}")), "{item} {taken:?}");
            edge.delete(CONFIG_API, "edgesyncconfigs", "", "typo").await;
        }
    }
    // What a conversion says of versions and namespaces does not count, so it may be anything.
    let conversion =
        json!({"upstream": reference("", "apps/v1", "Shop", "a"), "downstream": reference("", "", "", "b")});
    let taken = edge
        .try_create(&edge_sync_config("typo", json!({"conversions": [conversion]})))
        .await;
    assert!(taken.is_ok(), "{taken:?}");
    edge.delete(CONFIG_API, "edgesyncconfigs", "", "typo").await;
    let names = [
        "syncerconfigs.edge.kubestellar.io",
        "edgesyncconfigs.edge.kubestellar.io",
    ];
    drop_crds(&[&edge], &names).await;
}
