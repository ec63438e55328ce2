//! Who decides about a copy: `downsync-overwrite`, drift, what people and controllers change, immutable fields, filters.

use std::time::Duration;

use crate::support::modes::{Mode, in_both_modes, in_mode, time_to_react};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, config_maps, select, stage, stock};
use crate::support::story::{
    SOON, annotation, arrives, becomes, copy_equals, edit, gone, most_corrections, remains, stays_absent,
};
use crate::support::{Objects, SYNCER, Syncer, eventually, holds_throughout, shared_pair};
use serde_json::{Value, json};

in_both_modes!(
    a_copy_that_loses_its_label_is_still_ours,
    overwrite_false_creates_once_and_then_leaves_the_content_to_the_edge,
    a_foreign_object_with_overwrite_false_at_the_hub_gets_the_annotation_alone,
    what_controllers_add_stays_and_what_people_add_with_kubectl_is_reverted,
    an_immutable_field_is_reported_once_and_replaced_on_request,
    the_edge_bounds_what_the_hub_may_make_it_hold,
);
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    a_controller_that_keeps_changing_a_copy_back_is_backed_off_and_named,
);

const OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";

fn with_annotation(mut object: Value, key: &str, value: &Value) -> Value {
    if !value.is_null() {
        object["metadata"]["annotations"][key] = value.clone();
    }
    object
}

/// Waits until the copy of `a` says this about overwriting, and gives it.
async fn is_marked(edge: &Objects, shop: &str, overwrite: &Value) -> Value {
    let at = ["v1", "configmaps", shop, "a"];
    becomes(edge, at, &format!("says {overwrite} about overwriting"), |copy| {
        annotation(copy, "downsync-overwrite") == *overwrite
    })
    .await
}

/// A test that begins with the copy of one `ConfigMap`.
async fn one_copy(flags: Mode) -> (Stage, Syncer) {
    let stage = stage().await;
    stock(&stage.hub, &stage.shop, &["a"], &json!({"v": "1"})).await;
    select(&stage.hub, &config_maps(&stage.shop, &["*"])).await;
    let syncer = stage.pair.syncer(flags);
    arrives(&stage.edge, "v1", "configmaps", &stage.shop, "a").await;
    (stage, syncer)
}

// For a named and a wildcard entry.
async fn overwrite_false_creates_once_and_then_leaves_the_content_to_the_edge(flags: Mode) {
    for names in [["a"], ["*"]] {
        let Stage { pair, shop, hub, edge } = stage().await;
        let at_hub = |value: &str, overwrite: Value| {
            with_annotation(config_map(&shop, "a", json!({"v": value})), OVERWRITE, &overwrite)
        };
        hub.create(&namespace(&shop)).await;
        hub.create(&at_hub("1", json!("false"))).await;
        select(&hub, &config_maps(&shop, &names)).await;
        let _syncer = pair.syncer(flags);
        // Absent downstream: created in full, annotation included.
        let copy = copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
        assert_eq!(annotation(&copy, "downsync-overwrite"), json!("false"));
        // False on both sides: edits at either side change nothing at the edge.
        edit(&edge, &shop, "a", &json!({"data": {"v": "edge"}})).await;
        hub.replace(&at_hub("2", json!("false"))).await;
        holds_throughout(
            "the edge edit survives",
            time_to_react(Duration::from_secs(2)),
            async || {
                let copy = edge.get("v1", "configmaps", &shop, "a").await.ok_or("gone")?;
                if copy["data"]["v"] == json!("edge") {
                    Ok(())
                } else {
                    Err("overwritten")
                }
            },
        )
        .await;
        // Deleted at the edge: created again, in full.
        edge.delete("v1", "configmaps", &shop, "a").await;
        copy_equals(&edge, &shop, "a", &json!({"v": "2"})).await;
        edit(&edge, &shop, "a", &json!({"data": {"v": "edge"}})).await;
        // Back to true: overwritten again, the annotation follows.
        hub.replace(&at_hub("3", json!("true"))).await;
        let copy = copy_equals(&edge, &shop, "a", &json!({"v": "3"})).await;
        assert_eq!(annotation(&copy, "downsync-overwrite"), json!("true"));
        // False upstream, something else downstream: only the annotation is set.
        hub.replace(&at_hub("4", json!("false"))).await;
        is_marked(&edge, &shop, &json!("false")).await;
        copy_equals(&edge, &shop, "a", &json!({"v": "3"})).await;
        // What somebody else makes of the annotation does not count.
        for value in [Value::Null, json!("true")] {
            edit(
                &edge,
                &shop,
                "a",
                &json!({"metadata": {"annotations": {OVERWRITE: value}}}),
            )
            .await;
            is_marked(&edge, &shop, &json!("false")).await;
        }
        copy_equals(&edge, &shop, "a", &json!({"v": "3"})).await;
        // Absent upstream: overwritten again, the annotation goes.
        hub.replace(&at_hub("5", Value::Null)).await;
        copy_equals(&edge, &shop, "a", &json!({"v": "5"})).await;
        is_marked(&edge, &shop, &Value::Null).await;
        // Deleted upstream while the copy says false: kept.
        hub.replace(&at_hub("5", json!("false"))).await;
        is_marked(&edge, &shop, &json!("false")).await;
        hub.delete("v1", "configmaps", &shop, "a").await;
        remains(&edge, "v1", "configmaps", &shop, "a").await;
        // True arrives, then a delete removes both.
        hub.create(&at_hub("6", json!("true"))).await;
        copy_equals(&edge, &shop, "a", &json!({"v": "6"})).await;
        hub.delete("v1", "configmaps", &shop, "a").await;
        gone(&edge, "v1", "configmaps", &shop, "a").await;
    }
}

// Without status.
async fn a_foreign_object_with_overwrite_false_at_the_hub_gets_the_annotation_alone(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    edge.create(&config_map(&shop, "a", json!({"v": "theirs"}))).await;
    hub.create(&with_annotation(
        config_map(&shop, "a", json!({"v": "hub"})),
        OVERWRITE,
        &json!("false"),
    ))
    .await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(flags);
    let copy = is_marked(&edge, &shop, &json!("false")).await;
    assert_eq!(copy["data"], json!({"v": "theirs"}));
    assert_eq!(annotation(&copy, "downsynced"), Value::Null);
    hub.delete("v1", "configmaps", &shop, "a").await;
    remains(&edge, "v1", "configmaps", &shop, "a").await;
}

async fn what_controllers_add_stays_and_what_people_add_with_kubectl_is_reverted(flags: Mode) {
    let (stage, _syncer) = one_copy(flags).await;
    let (shop, hub, edge) = (&stage.shop, &stage.hub, &stage.edge);
    let adding = |key: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": shop, "name": "a",
        "labels": {key: "1"}}, "data": {key: "1"}})
    };
    edge.apply_as("some-controller", &adding("controller")).await;
    for manager in ["kubectl", "kubectl-edit"] {
        edge.apply_as(manager, &adding("person")).await;
        copy_equals(edge, shop, "a", &json!({"v": "1", "controller": "1"})).await;
    }
    hub.replace(&config_map(shop, "a", json!({"v": "2"}))).await;
    let copy = copy_equals(edge, shop, "a", &json!({"v": "2", "controller": "1"})).await;
    assert_eq!(copy["metadata"]["labels"]["controller"], json!("1"));
    assert_eq!(copy["metadata"]["labels"]["person"], Value::Null);
}

async fn a_copy_that_loses_its_label_is_still_ours(flags: Mode) {
    let (stage, _syncer) = one_copy(flags).await;
    let (shop, hub, edge) = (&stage.shop, &stage.hub, &stage.edge);
    let label = json!({"metadata": {"labels": {"edge.kubestellar.io/downsynced": null}}});
    edit(edge, shop, "a", &label).await;
    let at = ["v1", "configmaps", shop, "a"];
    let copy = becomes(edge, at, "has its label back", |copy| {
        !copy["metadata"]["labels"]["edge.kubestellar.io/downsynced"].is_null()
    })
    .await;
    assert_eq!(annotation(&copy, "adopted"), Value::Null);
    hub.delete("v1", "configmaps", shop, "a").await;
    gone(edge, "v1", "configmaps", shop, "a").await;
}

/// A controller that answers every change of the copy of `a` at once, for four seconds and until the log names it. Gives
/// how long that was.
async fn fight(edge: &Objects, shop: &str, syncer: &Syncer) -> Duration {
    let begin = tokio::time::Instant::now();
    eventually("the contention is reported", SOON, async || {
        let copy = edge.get("v1", "configmaps", shop, "a").await;
        let copy = copy.expect("it is never deleted");
        if copy["data"]["v"] == json!("hub") {
            let mut theirs = config_map(shop, "a", json!({"v": "theirs"}));
            theirs["metadata"]["annotations"] = copy["metadata"]["annotations"].clone();
            theirs["metadata"]["labels"] = copy["metadata"]["labels"].clone();
            edge.update_as("stubborn-controller", &theirs).await;
        }
        if begin.elapsed() > Duration::from_secs(4) && syncer.log().contains("keeps changing a copy") {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await;
    begin.elapsed()
}

async fn a_controller_that_keeps_changing_a_copy_back_is_backed_off_and_named(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({"v": "hub"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let syncer = pair.syncer(flags);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let start = pair.edge.audit_mark();
    let fought = fight(&edge, &shop, &syncer).await;
    let writes = pair.edge.requests_since(SYNCER, start);
    let of_a = writes
        .iter()
        .filter(|event| event.is_write() && event.uri.contains(&format!("/{shop}/configmaps/a?")));
    let (writes, most) = (of_a.count(), most_corrections(fought));
    assert!(
        (3..=most).contains(&writes),
        "{writes} writes in a contention of {fought:?}"
    );
    let log = syncer.log();
    let line = log
        .lines()
        .find(|line| line.contains("keeps changing a copy"))
        .expect("it is named");
    assert!(
        line.contains("manager=stubborn-controller") && line.contains("data.v"),
        "{line}"
    );
    assert_eq!(log.matches("keeps changing a copy").count(), 1);
    // The others are not held up, and a change at the hub ends the wait.
    hub.replace(&config_map(&shop, "b", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "b", &json!({"v": "2"})).await;
    hub.replace(&config_map(&shop, "a", json!({"v": "3"}))).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "3"})).await;
}

async fn an_immutable_field_is_reported_once_and_replaced_on_request(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let mut frozen = config_map(&shop, "frozen", json!({"v": "1"}));
    frozen["immutable"] = json!(true);
    hub.create(&frozen).await;
    for name in ["beside", "stuck"] {
        hub.create(&config_map(&shop, name, json!({"v": "1"}))).await;
    }
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(flags);
    let first = copy_equals(&edge, &shop, "frozen", &json!({"v": "1"})).await;
    // At the hub it is recreated, which the edge cannot follow by an update.
    hub.delete("v1", "configmaps", &shop, "frozen").await;
    gone(&edge, "v1", "configmaps", &shop, "frozen").await;
    hub.create(&frozen).await;
    let second = copy_equals(&edge, &shop, "frozen", &json!({"v": "1"})).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    // Somebody at the edge makes the copy of another one immutable, which is still the same at the hub.
    let stuck = copy_equals(&edge, &shop, "stuck", &json!({"v": "1"})).await;
    edit(&edge, &shop, "stuck", &json!({"immutable": true})).await;
    edit(&hub, &shop, "stuck", &json!({"data": {"v": "2"}})).await;
    syncer
        .wait_for_log("field is immutable when `immutable` is set", SOON)
        .await;
    let attempts = || {
        let requests = pair.edge.requests(SYNCER);
        requests
            .iter()
            .filter(|event| event.code == 422 && event.uri.contains(&format!("/{shop}/configmaps/stuck")))
            .count()
    };
    hub.replace(&config_map(&shop, "beside", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "beside", &json!({"v": "2"})).await;
    eventually("it is tried again", SOON, async || match attempts() {
        0..3 => Err("not yet"),
        _ => Ok(()),
    })
    .await;
    assert_eq!(
        syncer
            .log()
            .matches("field is immutable when `immutable` is set")
            .count(),
        1
    );
    let replace = json!({"metadata": {"annotations": {"edge.kubestellar.io/replace": "true"}}});
    edit(&hub, &shop, "stuck", &replace).await;
    let replaced = copy_equals(&edge, &shop, "stuck", &json!({"v": "2"})).await;
    assert_ne!(stuck["metadata"]["uid"], replaced["metadata"]["uid"]);
    assert!(syncer.is_running());
}

async fn the_edge_bounds_what_the_hub_may_make_it_hold(flags: Mode) {
    let pair = shared_pair().await;
    let [shop, system] = ["shop", "system"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&shop, &system] {
        stock(&hub, space, &["a"], &json!({})).await;
    }
    hub.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "s"}}))
        .await;
    select(
        &hub,
        &json!({"namespaceScope": {"namespaces": [shop, system], "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": "", "resource": "secrets", "apiVersion": "v1"},
        ]}}),
    )
    .await;
    let mut syncer = pair.syncer(&[&["--deny=secrets", "--deny-namespace=system-*"], flags].concat());
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    for rule in ["--deny secrets", "--deny-namespace system-*"] {
        syncer.wait_for_log(rule, SOON).await;
    }
    stays_absent(&edge, "v1", "secrets", &shop, "s").await;
    assert_eq!(edge.get("v1", "namespaces", "", &system).await, None);
}
