//! Configs that select what nothing can be called, or what nobody serves.

use serde_json::{Value, json};

use crate::support::lines;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{MERGE_PATCH, Objects, config_map, edge_sync_config, namespace, path, syncer_config};
use crate::support::stage::{
    CONFIG_API, Stage, all_of, config_maps, largest, later_configs_are_followed, select, stage, stock,
};
use crate::support::story::{SOON, arrives, becomes, drop_crds, reselect, stays_absent};

in_both_modes!(
    a_version_that_nobody_serves_stops_no_other_config,
    what_nobody_serves_is_reported_with_what_may_be_meant_and_once_more_when_it_is_corrected,
);

/// Takes the limits out of a schema: hubs have CRDs from before there were any.
fn without_limits(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for limit in ["maxLength", "minLength", "pattern", "anyOf"] {
                fields.remove(limit);
            }
            fields.values_mut().for_each(without_limits);
        }
        Value::Array(items) => items.iter_mut().for_each(without_limits),
        _ => {}
    }
}

pub(crate) async fn lift_limits(hub: &Objects) {
    for name in [
        "syncerconfigs.edge.kubestellar.io",
        "edgesyncconfigs.edge.kubestellar.io",
    ] {
        let at = ("apiextensions.k8s.io/v1", "customresourcedefinitions");
        let mut definition = hub.get(at.0, at.1, "", name).await.expect("it is installed");
        let mut versions = definition["spec"]["versions"].take();
        without_limits(&mut versions);
        let patch = json!({"spec": {"versions": versions}});
        let target = path(at.0, at.1, "", name);
        let patched = hub.send(http::Method::PATCH, &target, MERGE_PATCH, Some(&patch)).await;
        patched.expect("the limits are no promise to anybody");
    }
}

/// A request for a namespace of 66,000 characters cannot even be written: that ended the syncer, and the next one too.
#[tokio::test]
async fn words_that_are_endless_or_no_names_neither_end_the_syncer_nor_stop_the_others() {
    let Stage { pair, shop, hub, edge } = stage().await;
    lift_limits(&hub).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&config_map(&shop, "prices", json!({"a": "b"}))).await;
    let long = "x".repeat(66_000);
    for (index, bad) in [&long, "victim:7473/proxy/admin", "..", "a%2Fb"]
        .into_iter()
        .enumerate()
    {
        let resource = |group: &str, resource: &str, version: &str| json!({"group": group, "resource": resource, "apiVersion": version});
        let mut one = resource("", "configmaps", "v1");
        one["objectsByNamespace"] = json!([{"namespace": bad, "names": ["*"]}, {"namespace": shop, "names": [bad]}]);
        let spec = json!({
            "namespaceScope": {"namespaces": [bad, shop], "resources": [resource(bad, "a", "v1"), resource("", bad, "v1"), resource("", "a", bad)]},
            "namespacedObjects": [one],
            "clusterScope": [{"group": "", "resource": "namespaces", "apiVersion": "v1", "objects": [bad]}],
            "upsync": [{"apiGroup": bad, "resources": ["*"], "namespaces": ["*"], "names": ["*"]},
                {"resources": ["configmaps"], "namespaces": [bad], "names": [bad]}],
        });
        hub.create(&syncer_config(&format!("bad-{index}"), spec)).await;
        let reference = |namespace: &str, kind: &str, name: &str| json!({"version": "v1", "kind": kind, "namespace": namespace, "name": name});
        let spec = json!({
            "downSyncedResources": [reference(bad, "ConfigMap", "a"), reference(&shop, bad, "a"), reference(&shop, "ConfigMap", bad)],
            "upSyncedResources": [reference(bad, "ConfigMap", "*")],
            "conversions": [{"upstream": reference("", "ConfigMap", "a"), "downstream": reference("", "ConfigMap", bad)}],
        });
        hub.create(&edge_sync_config(&format!("bad-{index}"), spec)).await;
    }
    hub.create(&syncer_config("good", config_maps(&shop, &["prices"])))
        .await;
    let mut syncer = pair.syncer(&[]);
    arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    later_configs_are_followed(&hub, &edge, &shop).await;
    assert!(syncer.is_running());
    let reported = syncer.log();
    assert!(reported.contains("is no name of a namespace"), "it is reported");
    let longest = reported.lines().map(str::len).max().unwrap_or_default();
    assert!(longest < 4000, "a line of {longest} bytes");
    let requests = pair.hub.requests(crate::support::SYNCER);
    assert!(
        requests
            .iter()
            .all(|request| request.uri.len() < 1000 && !request.uri.contains("proxy"))
    );
}

/// Each entry was compared with each conversion: the loop stood still for half a minute, and again with each change.
#[tokio::test]
async fn the_largest_config_holds_up_no_other() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&["--heartbeat-interval=1s"]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    hub.create(&edge_sync_config("large", largest(&shop))).await;
    // It is followed: this object is in no other config's words.
    hub.create(&config_map(&shop, "h2", json!({}))).await;
    arrives(&edge, "v1", "configmaps", &shop, "c2").await;
    for name in ["b", "c"] {
        hub.create(&config_map(&shop, name, json!({}))).await;
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    later_configs_are_followed(&hub, &edge, &shop).await;
    assert!(syncer.is_running());
}

/// The CRDs refuse such words, where they are new enough.
#[tokio::test]
async fn the_definitions_refuse_endless_words() {
    let Stage { pair, .. } = stage().await;
    crate::support::install_crds(&pair.edge.objects()).await;
    let edge = pair.edge.objects();
    let long = "x".repeat(254);
    let refused = |answer: Result<Value, kube::Error>| assert!(answer.is_err());
    refused(
        edge.try_create(&syncer_config("a", json!({"namespaceScope": {"namespaces": [long]}})))
            .await,
    );
    refused(
        edge.try_create(&syncer_config("a", config_maps("shop", &[&long])))
            .await,
    );
    refused(
        edge.try_create(&edge_sync_config(
            "a",
            json!({"downSyncedResources": [{"version": "v1", "kind": "A", "name": long}]}),
        ))
        .await,
    );
    let names = [
        "syncerconfigs.edge.kubestellar.io",
        "edgesyncconfigs.edge.kubestellar.io",
    ];
    drop_crds(&[&edge], &names).await;
}

/// The first config by name gave the version for all of them: nothing new arrived, and nothing was said to fail.
async fn a_version_that_nobody_serves_stops_no_other_config(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let till = pair.namespace("till");
    stock(&hub, &shop, &["a"], &json!({})).await;
    stock(&hub, &till, &["a"], &json!({})).await;
    let mut wrong = config_maps(&till, &["*"]);
    wrong["namespacedObjects"][0]["apiVersion"] = json!("v11");
    hub.create(&syncer_config("a-typo", wrong)).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    hub.create(&config_map(&shop, "new", json!({}))).await;
    arrives(&edge, "v1", "configmaps", &shop, "new").await;
    let reported = lines::not_served("hub,edge", "configmaps")
        + " version=v11 config=SyncerConfig//a-typo field=spec.namespacedObjects[0] advice=\"did you mean version v1?\"";
    syncer.wait_for_log(&reported, SOON).await;
    stays_absent(&edge, "v1", "configmaps", &till, "a").await;
    let right = json!({"spec": config_maps(&till, &["*"])});
    hub.merge_patch(CONFIG_API, "syncerconfigs", "", "a-typo", &right).await;
    arrives(&edge, "v1", "configmaps", &till, "a").await;
    let corrected = "a config no longer selects what is not served\" config=SyncerConfig//a-typo resources=1";
    syncer.wait_for_log(corrected, SOON).await;
    let log = syncer.log();
    let said = |words: &str| log.matches(words).count();
    assert_eq!(["a-typo", "served now"].map(said), [2, 0], "{log}");
}

async fn what_nobody_serves_is_reported_with_what_may_be_meant_and_once_more_when_it_is_corrected(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let words = [("apps", "deployment"), ("", "cm"), ("apps", "Deployments")];
    let mut wrong = all_of(&shop, &words);
    let nobody = format!("{shop}.example.org");
    wrong["upsync"] = json!([{"apiGroup": nobody, "resources": ["*"], "namespaces": ["*"], "names": ["*"]}]);
    select(&hub, &wrong).await;
    let mut syncer = pair.syncer(flags);
    let line = |side: &str, what: &str, field: &str, advice: &str| {
        let begin = lines::not_served(side, what);
        format!("{begin} config=SyncerConfig//the-one field=spec.{field}{advice}\n")
    };
    for (index, meant) in ["deployments", "configmaps", "deployments"].into_iter().enumerate() {
        let (group, word) = words[index];
        let group = if group.is_empty() {
            String::new()
        } else {
            format!(" group={group}")
        };
        let what = format!("{word}{group} version=v1");
        let field = format!("namespaceScope.resources[{index}]");
        let advice = format!(" advice=\"did you mean {meant}?\"");
        let reported = line("hub,edge", &what, &field, &advice);
        syncer.wait_for_log(&reported, SOON).await;
    }
    let what = format!("* group={nobody}");
    let reported = line("edge", &what, "upsync[0].resources[0]", "");
    syncer.wait_for_log(&reported, SOON).await;
    // Whoever reads the hub alone finds all four there.
    becomes(
        &hub,
        [CONFIG_API, "syncerconfigs", "", "the-one"],
        "names them",
        |config| {
            let problems = config["status"]["edges"][0]["problems"].as_array();
            let of_upsync = problems.into_iter().flatten().find(|problem| {
                problem["field"] == "spec.upsync[0].resources[0]"
                    && problem["message"] == format!("the edge does not serve the group \"{nobody}\"")
            });
            of_upsync.is_some() && problems.is_some_and(|problems| problems.len() == 4)
        },
    )
    .await;
    let mut right = all_of(&shop, &[("apps", "deployments"), ("", "configmaps")]);
    right["upsync"] = json!(null);
    reselect(&hub, &right).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let corrected = "a config no longer selects what is not served\" config=SyncerConfig//the-one resources=4";
    syncer.wait_for_log(corrected, SOON).await;
    let log = syncer.log();
    let said = |words: &str| log.matches(words).count();
    assert_eq!(["a selected type", "served now"].map(said), [4, 0], "{log}");
}
