//! What people at the hub see of a config: its conditions, what each edge says, and the columns that kubectl prints.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, edge_sync_config, namespace, syncer_config};
use crate::support::stage::{CONFIG_API, Stage, all_of, config_maps, own_group, select, stage, stock};
use crate::support::story::{becomes, crd, crd_up_to_five, custom_object, drop_crds, install_crd, redefine, reselect};
use crate::support::{Objects, Pair, PairOptions};

in_both_modes!(
    what_is_synced_is_ready_and_says_how_many_objects_that_are,
    an_object_that_the_edge_refuses_is_named_with_the_servers_words_until_it_is_right,
    an_entry_that_cannot_be_followed_says_what_may_be_meant,
    an_entry_that_selects_nothing_says_so_and_since_when_until_something_matches,
    each_config_counts_what_it_selects_itself,
    two_syncers_of_one_config_keep_their_own_entries,
    a_hub_with_an_older_crd_gets_the_heartbeat_and_what_is_held,
);

const ONE: [&str; 4] = [CONFIG_API, "syncerconfigs", "", "the-one"];

fn condition(config: &Value, of: &str) -> Value {
    let conditions = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == of);
    found.unwrap_or_default()
}

fn is(config: &Value, of: &str, status: &str, reason: &str) -> bool {
    let condition = condition(config, of);
    condition["status"] == status && condition["reason"] == reason
}

fn counts(entry: &Value) -> [u64; 6] {
    ["selected", "synced", "pending", "failing", "conflicts", "held"].map(|of| entry[of].as_u64().unwrap_or(99))
}

async fn ready(hub: &Objects) -> Value {
    becomes(hub, ONE, "is ready", |config| is(config, "Ready", "True", "AllSynced")).await
}

async fn what_is_synced_is_ready_and_says_how_many_objects_that_are(flags: Mode) {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({"k": "v"})).await;
    select(&hub, &config_maps(&shop, &["a", "b"])).await;
    let mut syncer = pair.syncer(&[flags, &["--sync-target-name=site"]].concat());
    let config = ready(&hub).await;
    assert_eq!(condition(&config, "Ready")["message"], "2 of 2 objects are synced");
    assert!(is(&config, "ConfigValid", "True", "AllEntriesFollowed"));
    assert!(is(&config, "Synced", "True", "AllSynced"));
    assert!(is(&config, "DeletesHeld", "False", "NothingHeld"));
    let entry = &config["status"]["edges"][0];
    assert_eq!(
        (&entry["syncTargetUID"], &entry["syncTargetName"]),
        (&json!("test"), &json!("site"))
    );
    assert_eq!(counts(entry), [2, 2, 0, 0, 0, 0]);
    assert_eq!(entry["observedGeneration"], config["metadata"]["generation"]);

    // One more is counted, and a restart changes nothing but the heartbeat.
    hub.create(&config_map(&shop, "c", json!({}))).await;
    reselect(&hub, &config_maps(&shop, &["a", "b", "c"])).await;
    let config = becomes(&hub, ONE, "counts three", |config| config["status"]["synced"] == "3/3").await;
    let before = config["status"]["conditions"].clone();
    syncer.terminate().await;
    let _again = pair.syncer(&[flags, &["--sync-target-name=site"]].concat());
    hub.create(&config_map(&shop, "d", json!({}))).await;
    reselect(&hub, &config_maps(&shop, &["a", "b", "c", "d"])).await;
    let config = becomes(&hub, ONE, "counts four", |config| config["status"]["synced"] == "4/4").await;
    for (before, now) in before
        .as_array()
        .into_iter()
        .flatten()
        .zip(config["status"]["conditions"].as_array().into_iter().flatten())
    {
        assert_eq!(before["lastTransitionTime"], now["lastTransitionTime"]);
    }
}

async fn an_object_that_the_edge_refuses_is_named_with_the_servers_words_until_it_is_right(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    install_crd(&[&hub], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &crd_up_to_five(&group, "works")).await;
    hub.create(&namespace(&shop)).await;
    for (name, size) in [("good", 1), ("bad", 9)] {
        hub.create(&custom_object(&group, "works", &shop, name, size)).await;
    }
    select(&hub, &all_of(&shop, &[(&group, "works")])).await;
    let _syncer = pair.syncer(flags);
    let config = becomes(&hub, ONE, "names what fails", |config| {
        is(config, "Synced", "False", "Failing")
    })
    .await;
    let entry = &config["status"]["edges"][0];
    assert_eq!(counts(entry), [2, 1, 0, 1, 0, 0]);
    let failure = &entry["failures"][0];
    assert_eq!(failure["object"], format!("Work/{shop}/bad"), "{failure}");
    assert_eq!(
        (&failure["side"], &failure["reason"]),
        (&json!("edge"), &json!("ObjectRejected"))
    );
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(message.contains("should be less than or equal to 5"), "{message}");
    let whole = condition(&config, "Ready");
    assert_eq!(
        (&whole["status"], &whole["reason"]),
        (&json!("False"), &json!("Failing"))
    );
    assert!(
        whole["message"]
            .as_str()
            .unwrap_or_default()
            .contains("less than or equal to 5"),
        "{whole}"
    );
    hub.merge_patch(&v1, "works", &shop, "bad", &json!({"spec": {"size": 2}}))
        .await;
    let config = ready(&hub).await;
    assert_eq!(counts(&config["status"]["edges"][0]), [2, 2, 0, 0, 0, 0]);
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}

async fn an_entry_that_cannot_be_followed_says_what_may_be_meant(flags: Mode) {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let mut spec = all_of(&shop, &[("", "configmaps"), ("apps", "deployment")]);
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    let config = becomes(&hub, ONE, "is not valid", |config| {
        is(config, "ConfigValid", "False", "EntriesNotFollowed")
    })
    .await;
    let problem = &config["status"]["edges"][0]["problems"][0];
    assert_eq!(problem["field"], "spec.namespaceScope.resources[1]", "{problem}");
    let message = problem["message"].as_str().unwrap_or_default();
    assert!(message.contains("did you mean deployments"), "{message}");
    assert!(is(&config, "Ready", "False", "EntriesNotFollowed"));
    spec["namespaceScope"]["resources"][1]["resource"] = json!("deployments");
    reselect(&hub, &spec).await;
    ready(&hub).await;
}

/// What this edge says of entries that cannot be followed, or of those that select nothing so far: fields, and since when.
fn said(config: &Value, list: &str) -> Vec<(String, String)> {
    let said = config["status"]["edges"][0][list]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    said.iter()
        .map(|problem| (text(&problem["field"]), text(&problem["since"])))
        .collect()
}

async fn an_entry_that_selects_nothing_says_so_and_since_when_until_something_matches(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let field = pair.namespace("field");
    let mut spec = config_maps(&shop, &["prces", "stck"]);
    spec["upsync"] = json!([
        {"apiGroup": "", "resources": ["configmaps"], "namespaces": [shop], "names": ["reprt"]},
        {"apiGroup": "", "resources": ["configmaps"], "namespaces": [field], "names": ["*"]},
    ]);
    select(&hub, &spec).await;
    let flags = [flags, &["--heartbeat-interval=1s"]].concat();
    let mut syncer = pair.syncer(&flags);
    let config = becomes(&hub, ONE, "names what selects nothing", |config| {
        said(config, "problems").len() == 2
    })
    .await;
    assert!(
        is(&config, "ConfigValid", "False", "EntriesNotFollowed")
            && is(&config, "Ready", "False", "EntriesNotFollowed")
    );
    let message = condition(&config, "ConfigValid")["message"].to_string();
    assert!(
        message.contains("selects nothing: the hub has no") && message.contains("prces"),
        "{message}"
    );
    let fields = |config: &Value, list: &str| {
        said(config, list)
            .into_iter()
            .map(|(field, _)| field)
            .collect::<Vec<_>>()
    };
    let names = ["spec.namespacedObjects[0].objectsByNamespace", "spec.upsync[0].names"];
    assert_eq!(fields(&config, "problems"), names);
    assert_eq!(fields(&config, "unmatched"), ["spec.upsync[1].namespaces"]);
    assert!(
        said(&config, "problems").iter().all(|(_, since)| since.ends_with('Z')),
        "{config}"
    );

    // Not with heartbeats, and not after a restart.
    let heartbeats = |config: &Value| config["status"]["lastSyncerHeartbeatTime"].clone();
    let later = becomes(&hub, ONE, "has another heartbeat", |now| {
        heartbeats(now) != heartbeats(&config)
    })
    .await;
    assert_eq!(said(&later, "problems"), said(&config, "problems"));
    syncer.terminate().await;
    let _again = pair.syncer(&flags);
    becomes(&hub, ONE, "has a heartbeat of the next run", |now| {
        heartbeats(now) != heartbeats(&later)
    })
    .await;
    hub.create(&config_map(&shop, "prces", json!({}))).await;
    let config = becomes(&hub, ONE, "has a match", |config| config["status"]["synced"] == "1/1").await;
    assert_eq!(said(&config, "problems")[..], said(&later, "problems")[1..]);
    assert_eq!(said(&config, "unmatched"), said(&later, "unmatched"));

    edge.create(&config_map(&shop, "reprt", json!({}))).await;
    let config = ready(&hub).await;
    let message = condition(&config, "Ready")["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let unmatched = format!(
        "2 of 2 objects are synced; spec.upsync[1].namespaces: selects nothing so far: the edge has no such object in \"{field}\""
    );
    assert_eq!(message, unmatched);
    stock(&edge, &field, &["b"], &json!({})).await;
    becomes(&hub, ONE, "has nothing to say", |config| {
        condition(config, "Ready")["message"] == "3 of 3 objects are synced" && said(config, "unmatched").is_empty()
    })
    .await;
    let by_kind = json!({"version": "v1", "kind": "ConfigMap", "namespace": shop, "name": "stok"});
    hub.create(&edge_sync_config("by-kind", json!({"downSyncedResources": [by_kind]})))
        .await;
    let by_kind = [CONFIG_API, "edgesyncconfigs", "", "by-kind"];
    let config = becomes(&hub, by_kind, "is not valid", |config| {
        is(config, "ConfigValid", "False", "EntriesNotFollowed")
    })
    .await;
    assert_eq!(fields(&config, "problems"), ["spec.downSyncedResources[0].name"]);
}

async fn each_config_counts_what_it_selects_itself(flags: Mode) {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["a", "b", "c"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["a", "b"])).await;
    hub.create(&syncer_config("other", config_maps(&shop, &["b", "c", "none"])))
        .await;
    hub.create(&syncer_config("empty", json!({}))).await;
    let _syncer = pair.syncer(flags);
    for (name, synced) in [("the-one", "2/2"), ("other", "2/2"), ("empty", "0/0")] {
        let config = becomes(
            &hub,
            [CONFIG_API, "syncerconfigs", "", name],
            "counts its own",
            |config| config["status"]["synced"] == synced,
        )
        .await;
        assert!(is(&config, "Ready", "True", "AllSynced"), "{config}");
    }
}

async fn two_syncers_of_one_config_keep_their_own_entries(flags: Mode) {
    let Stage { pair, hub, .. } = stage().await;
    select(&hub, &json!({})).await;
    let spec = json!({"namespaceScope": {"namespaces": ["default"], "resources": [{"group": "", "resource": "nonsense", "apiVersion": "v1"}]}});
    let start = |uid: &str| {
        pair.syncer(
            &[
                flags,
                &[&*format!("--sync-target-uid={uid}"), "--heartbeat-interval=1s"],
            ]
            .concat(),
        )
    };
    let (_one, mut two) = (start("first"), start("second"));
    let uids = |config: &Value| -> Vec<String> {
        let edges = config["status"]["edges"].as_array().cloned().unwrap_or_default();
        let uids = edges.iter().filter(|edge| edge["lastHeartbeatTime"].is_string());
        let uids = uids.filter_map(|edge| edge["syncTargetUID"].as_str());
        // In any order.
        let uids: BTreeSet<String> = uids.map(str::to_owned).collect();
        uids.into_iter().collect()
    };
    becomes(&hub, ONE, "has both entries", |config| {
        uids(config) == ["first", "second"]
    })
    .await;
    reselect(&hub, &spec).await;
    let both_say = |config: &Value| {
        let edges = config["status"]["edges"].as_array().cloned().unwrap_or_default();
        edges.iter().filter(|edge| edge["problemCount"] == 1).count() == 2
    };
    let config = becomes(&hub, ONE, "is not valid, as both say", both_say).await;
    assert!(is(&config, "ConfigValid", "False", "EntriesNotFollowed"));
    // One that is gone is not kept fresh by the other.
    two.terminate().await;
    let of = |config: &Value, uid: &str| {
        let edges = config["status"]["edges"].as_array().cloned().unwrap_or_default();
        let edge = edges.into_iter().find(|edge| edge["syncTargetUID"] == uid);
        edge.unwrap_or_default()
    };
    let time = |config: &Value, uid: &str| of(config, uid)["lastHeartbeatTime"].clone();
    let before = hub
        .get(CONFIG_API, "syncerconfigs", "", "the-one")
        .await
        .expect("it is there");
    becomes(&hub, ONE, "has another heartbeat of the first", |config| {
        time(config, "first") != time(&before, "first")
    })
    .await;
    reselect(&hub, &json!({"namespaceScope": null})).await;
    let config = becomes(&hub, ONE, "is right for the first", |config| {
        let edge = of(config, "first");
        edge["syncTargetUID"] == "first" && edge["problemCount"].is_null()
    })
    .await;
    assert_eq!(time(&config, "second"), time(&before, "second"));
}

async fn a_hub_with_an_older_crd_gets_the_heartbeat_and_what_is_held(flags: Mode) {
    let pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let removals: Vec<Value> = ["edges", "synced", "failing", "held"]
        .iter()
        .map(|field| json!({"op": "remove", "path": format!("{status}/{field}")}))
        .collect();
    redefine(&hub, "syncerconfigs.edge.kubestellar.io", &json!(removals)).await;
    select(&hub, &json!({})).await;
    let mut syncer = pair.syncer(flags);
    let config = becomes(&hub, ONE, "says what is held", |config| {
        is(config, "DeletesHeld", "False", "NothingHeld")
    })
    .await;
    assert!(config["status"]["lastSyncerHeartbeatTime"].is_string());
    assert_eq!(condition(&config, "Ready"), Value::Null);
    syncer
        .wait_for_log("ConfigStatusNotKept", crate::support::story::SOON)
        .await;
}
