//! Events, as people see them with kubectl: on the objects at the edge, and on the configs at the hub.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::rbac::{allow, disallow, limited};
use crate::support::stage::{CONFIG_API, Stage, all_of, config_maps, numbered, own_group, select, stage, stock};
use crate::support::story::{
    SOON, arrives, becomes, copy_equals, crd, crd_up_to_five, custom_object, drop_crds, edit, gone, install_crd,
    reselect, upsync_all,
};
use crate::support::{Objects, Syncer, eventually};

in_both_modes!(
    what_is_synced_is_silent_and_what_others_change_and_what_is_replaced_has_an_event,
    what_cannot_be_synced_has_an_event_at_both_sides,
    deletes_that_are_held_and_copies_that_do_not_go_have_events,
    the_end_of_a_copy_that_the_syncer_has_asked_for_is_nobody_elses,
    a_side_that_forbids_events_has_one_line_and_all_else_goes_on,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    a_hundred_copies_that_others_change_have_few_events,
);

const ONE: [&str; 4] = [CONFIG_API, "syncerconfigs", "", "the-one"];
const EVENTS: &str = "events.k8s.io/v1";

/// All Events in a namespace that the syncer has written.
async fn all(at: &Objects, namespace: &str) -> Vec<Value> {
    let mut found = at.list(EVENTS, "events", namespace, "").await;
    found.retain(|event| event["reportingController"] == "edge-syncer");
    found
}

/// Waits for the Event with this reason about an object, and gives it.
async fn event(at: &Objects, namespace: &str, reason: &str, name: &str) -> Value {
    eventually(&format!("{name} has an Event {reason}"), SOON, async || {
        let found = all(at, namespace).await;
        let is_it = |event: &&Value| event["reason"] == reason && event["regarding"]["name"] == name;
        found.iter().find(is_it).cloned().ok_or_else(|| format!("{found:?}"))
    })
    .await
}

/// Waits for the Event with this reason about the config `the-one`, and gives it.
async fn event_of_config(hub: &Objects, reason: &str) -> Value {
    let config = becomes(hub, ONE, "is there", |_| true).await;
    let uid = &config["metadata"]["uid"];
    eventually(&format!("the config has an Event {reason}"), SOON, async || {
        let found = all(hub, "default").await;
        let is_it = |event: &&Value| event["reason"] == reason && event["regarding"]["uid"] == *uid;
        found.iter().find(is_it).cloned().ok_or_else(|| format!("{found:?}"))
    })
    .await
}

fn note(event: &Value) -> &str {
    event["note"].as_str().unwrap_or_default()
}

async fn what_is_synced_is_silent_and_what_others_change_and_what_is_replaced_has_an_event(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let before = all(&hub, "default").await.len();
    let _syncer = pair.syncer(flags);
    let copy = copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    copy_equals(&edge, &shop, "b", &json!({"v": "1"})).await;
    edit(&edge, &shop, "a", &json!({"data": {"v": "2"}})).await;
    let drift = event(&edge, &shop, "DriftCorrected", "a").await;
    assert_eq!(drift["regarding"]["uid"], copy["metadata"]["uid"], "{drift}");
    assert_eq!(drift["type"], "Normal");
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    for args in [
        &["events", "--for=configmap/a"][..],
        &["get", "events"],
        &["describe", "configmap", "a"],
    ] {
        let table = pair.edge.kubectl(&[args, &["--namespace", &shop]].concat());
        assert!(table.contains("DriftCorrected"), "{args:?} {table}");
    }
    assert!(note(&drift).contains("changed by"), "{drift}");

    edit(&edge, &shop, "b", &json!({"immutable": true})).await;
    let change = json!({"data": {"v": "2"}, "metadata": {"annotations": {"edge.kubestellar.io/replace": "true"}}});
    edit(&hub, &shop, "b", &change).await;
    let replaced = event(&edge, &shop, "Replaced", "b").await;
    let copy = copy_equals(&edge, &shop, "b", &json!({"v": "2"})).await;
    assert_eq!(replaced["regarding"]["uid"], copy["metadata"]["uid"], "the new one");

    hub.create(&config_map(&shop, "c", json!({}))).await;
    arrives(&edge, "v1", "configmaps", &shop, "c").await;
    let of_c = all(&edge, &shop)
        .await
        .into_iter()
        .filter(|it| it["regarding"]["name"] == "c");
    assert_eq!(of_c.count(), 0);
    assert_eq!(all(&hub, "default").await.len(), before, "the hub has none about that");
}

async fn what_cannot_be_synced_has_an_event_at_both_sides(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, _) = own_group(&shop);
    install_crd(&[&hub], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &crd_up_to_five(&group, "works")).await;
    for at in [&hub, &edge] {
        at.create(&namespace(&shop)).await;
        at.create(&config_map(&shop, "of-both", json!({}))).await;
    }
    hub.create(&custom_object(&group, "works", &shop, "bad", 9)).await;
    let mut spec = all_of(&shop, &[(&group, "works")]);
    spec["upsync"] = json!([upsync_all("", &["configmaps"], &shop)]);
    spec["upsync"][0]["names"] = json!(["of-both"]);
    select(&hub, &spec).await;
    let flags = [flags, &["--sync-target-name=site"]].concat();
    let mut syncer = pair.syncer(&flags);
    let failed = event(&edge, &shop, "ApplyFailed", "bad").await;
    assert!(note(&failed).contains("less than or equal to 5"), "{failed}");
    assert_eq!(
        (&failed["type"], &failed["regarding"]["kind"]),
        (&json!("Warning"), &json!("Work"))
    );
    let conflict = event(&edge, &shop, "ConflictDetected", "of-both").await;
    assert!(note(&conflict).starts_with("Conflict at the hub: "), "{conflict}");
    for (reason, object) in [("ApplyFailed", "Work"), ("ConflictDetected", "ConfigMap")] {
        let of_config = event_of_config(&hub, reason).await;
        let begin = format!("edge site: not synced: {object}/{shop}/");
        assert!(note(&of_config).starts_with(&begin), "{of_config}");
        let described = pair.hub.kubectl(&["describe", "syncerconfig", "the-one"]);
        assert!(described.contains(reason), "{described}");
    }

    // Another run says the same with the Events that are there.
    let count = all(&edge, &shop).await.len();
    syncer.terminate().await;
    let _again = pair.syncer(&flags);
    eventually("it has happened twice", SOON, async || {
        let failed = event(&edge, &shop, "ApplyFailed", "bad").await;
        match failed["series"]["count"].as_u64() {
            Some(2..) => Ok(()),
            _ => Err(failed.to_string()),
        }
    })
    .await;
    assert_eq!(all(&edge, &shop).await.len(), count);
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}

async fn deletes_that_are_held_and_copies_that_do_not_go_have_events(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let names = numbered(6);
    stock(&hub, &shop, &names, &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&[flags, &["--hold-deletes-above=2"]].concat());
    for name in &names {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    let finalizer = json!({"metadata": {"finalizers": ["example.org/stays"]}});
    edit(&edge, &shop, &names[0], &finalizer).await;
    hub.delete("v1", "configmaps", &shop, &names[0]).await;
    let waits = event(&edge, &shop, "WaitingForDeletion", &names[0]).await;
    assert!(note(&waits).contains("example.org/stays"), "{waits}");
    edit(&edge, &shop, &names[0], &json!({"metadata": {"finalizers": null}})).await;
    gone(&edge, "v1", "configmaps", &shop, &names[0]).await;

    // As one event for the syncer.
    syncer.signal("STOP");
    for name in &names[1..] {
        hub.delete("v1", "configmaps", &shop, name).await;
    }
    syncer.signal("CONT");
    let held = event_of_config(&hub, "DeleteHeld").await;
    assert!(note(&held).contains("confirm with the annotation"), "{held}");
    reselect(&hub, &json!({})).await;
}

// Issue 41: what is deleted and made again at the hub while its copy takes time to go; the copy of a Pod has a grace
// period as soon as a node has it.
async fn the_end_of_a_copy_that_the_syncer_has_asked_for_is_nobody_elses(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let syncer = pair.syncer(flags);
    for round in 1..3 {
        let copy = arrives(&edge, "v1", "configmaps", &shop, "a").await;
        edit(
            &edge,
            &shop,
            "a",
            &json!({"metadata": {"finalizers": ["example.org/stays"]}}),
        )
        .await;
        hub.delete("v1", "configmaps", &shop, "a").await;
        becomes(&edge, ["v1", "configmaps", &shop, "a"], "is to go", |copy| {
            copy["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
        hub.create(&config_map(&shop, "a", json!({}))).await;
        eventually("the new one waits", SOON, async || {
            let waits = syncer.log().matches("reason=DeleteBlocked").count();
            (waits == round).then_some(()).ok_or(waits)
        })
        .await;
        edit(&edge, &shop, "a", &json!({"metadata": {"finalizers": null}})).await;
        becomes(&edge, ["v1", "configmaps", &shop, "a"], "is a new one", |new| {
            new["metadata"]["uid"] != copy["metadata"]["uid"]
        })
        .await;
        assert!(
            !syncer.log().contains("somebody else"),
            "round {round}: {}",
            syncer.log()
        );
    }
    assert!(
        all(&edge, &shop)
            .await
            .iter()
            .all(|event| event["reason"] != "DriftCorrected")
    );
}

async fn a_side_that_forbids_events_has_one_line_and_all_else_goes_on(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, _) = own_group(&shop);
    install_crd(&[&hub], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &crd_up_to_five(&group, "works")).await;
    stock(&hub, &shop, &["a", "b"], &json!({"v": "1"})).await;
    for name in ["bad", "worse"] {
        hub.create(&custom_object(&group, "works", &shop, name, 9)).await;
    }
    let spec = all_of(&shop, &[("", "configmaps"), (&group, "works")]);
    select(&hub, &spec).await;
    hub.create(&syncer_config("another", spec)).await;
    let all_but_events = json!([{"apiGroups": ["", group, "edge.kubestellar.io"], "resources": ["*"], "verbs": ["*"]}]);
    for (refuses, at, from, to) in [
        ("edge", &edge, pair.hub.kubeconfig(), limited(&pair.edge)),
        ("hub", &hub, limited(&pair.hub), pair.edge.kubeconfig()),
    ] {
        allow(at, &shop, all_but_events.clone()).await;
        let mut syncer = Syncer::start(&from, &to, flags);
        let line = format!(
            "WARN reason=EventsRefused msg=\"a side takes no Events from the syncer; all else continues\" side={refuses}"
        );
        syncer.wait_for_log(&line, SOON).await;
        // The other side has its own.
        if refuses == "edge" {
            event_of_config(&hub, "ApplyFailed").await;
        } else {
            event(&edge, &shop, "ApplyFailed", "bad").await;
        }
        // Corrections go on, syncing goes on, and what fails is said in all other ways.
        edit(&edge, &shop, "a", &json!({"data": {"v": "other"}})).await;
        copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
        edit(&hub, &shop, "b", &json!({"data": {"v": refuses}})).await;
        copy_equals(&edge, &shop, "b", &json!({"v": refuses})).await;
        becomes(&hub, ONE, "says what fails", |config| {
            config["status"]["failing"] == 2 && config["status"]["synced"] == "2/4"
        })
        .await;
        syncer.terminate().await;
        let log = syncer.log();
        assert_eq!(log.matches("reason=EventsRefused").count(), 1, "{log}");
        disallow(at, &shop).await;
    }
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}

async fn a_hundred_copies_that_others_change_have_few_events(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let names = numbered(100);
    stock(&hub, &shop, &names, &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    for name in &names {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    for name in &names {
        edit(&edge, &shop, name, &json!({"data": {"v": "2"}})).await;
    }
    for name in &names {
        copy_equals(&edge, &shop, name, &json!({"v": "1"})).await;
    }
    let few = eventually("there are Events", SOON, async || match all(&edge, &shop).await.len() {
        few @ 5.. => Ok(few),
        few => Err(format!("{few}")),
    })
    .await;
    assert!(few <= 30, "{few}");
    assert!(syncer.is_running());
}
