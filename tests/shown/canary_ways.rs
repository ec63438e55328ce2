//! The same of Secrets on other ways: upwards, as copies of another kind, and on their way out.

use std::path::Path;

use serde_json::json;

use crate::bench::{ANYWHERE, quoting_webhook};
use crate::canary::{CANARY, TRACE, all_that_is_said, all_that_is_seen, planted, secret, shows_none};
use crate::support::eventually;
use crate::support::objects::namespace;
use crate::support::process::Folder;
use crate::support::stage::{Stage, all_of, select, select_by_kind, stage};
use crate::support::story::{SOON, arrives, upsync_all};
use crate::support::{Objects, Syncer};

/// Each kind of line at every level.
const FLAGS: [&str; 3] = [ANYWHERE, "-v=10", "--log-format=json"];
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// A syncer that logs all it can.
fn start(Stage { pair, .. }: &Stage, more: &[&str]) -> Syncer {
    let flags = [&FLAGS[..], more].concat();
    Syncer::start_with_env(&pair.hub.kubeconfig(), &pair.edge.kubeconfig(), &flags, &TRACE)
}

/// The line of the log, which is in JSON, about a refusal of an object whose values are hidden in it.
async fn quotes(syncer: &Syncer, object: &str) {
    eventually(&format!("it logs why {object} is refused"), SOON, async || {
        let log = syncer.log();
        let is_it = |line: &&str| line.starts_with('{') && line.contains(object) && line.contains("it quotes: *** ");
        log.lines().find(is_it).map(|_| ()).ok_or("not yet")
    })
    .await;
}

/// Neither what a running syncer shows nor what the commands say shows any secret.
async fn is_silent_about(stage: &Stage, mut syncer: Syncer, objects: &[String]) {
    let seen = all_that_is_seen(stage, &mut syncer).await;
    shows_none("what is seen", &seen);
    let folder = Folder::create("canary");
    let sides = [stage.pair.hub.kubeconfig(), stage.pair.edge.kubeconfig()];
    let sides: [&Path; 2] = [&sides[0], &sides[1]];
    let said = all_that_is_said(sides, &folder, objects).await;
    for object in objects {
        assert!(said.contains(object), "{object}: {said}");
    }
    shows_none("what is said", &said.replace("admin-token", CANARY));
    syncer.terminate().await;
    shows_none("the log", &syncer.log().replace("admin-token", CANARY));
}

/// Somebody at a side writes another secret into what is there.
async fn change(at: &Objects, plural: &str, shop: &str, name: &str) {
    let field = if plural == "secrets" { "stringData" } else { "data" };
    let patch = json!({field: {"b": secret("changed")}});
    at.merge_patch("v1", plural, shop, name, &patch).await;
}

#[tokio::test]
async fn no_secret_that_goes_up_is_shown_whether_the_hub_takes_or_refuses_it() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    for at in [hub, edge] {
        at.create(&namespace(shop)).await;
    }
    quoting_webhook(hub, shop, "it quotes:").await;
    for name in ["good", "denied"] {
        edge.create(&planted(shop, name)).await;
    }
    select(hub, &json!({"upsync": [upsync_all("", &["secrets"], shop)]})).await;
    let mut syncer = start(&stage, &[]);
    arrives(hub, "v1", "secrets", shop, "good").await;
    quotes(&syncer, &format!("Secret/{shop}/denied")).await;
    change(hub, "secrets", shop, "good").await;
    syncer.wait_for_log("CopyDrifted", SOON).await;
    let objects = ["good", "denied"].map(|name| format!("Secret/{shop}/{name}"));
    is_silent_about(&stage, syncer, &objects).await;
}

#[tokio::test]
async fn no_secret_that_becomes_another_kind_is_shown() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    for at in [hub, edge] {
        at.create(&namespace(shop)).await;
    }
    quoting_webhook(edge, shop, "it quotes:").await;
    let (mut refs, mut conversions) = (Vec::new(), Vec::new());
    for (name, copy) in [("good", "good-map"), ("bad", "denied-map"), ("old", "kept-map")] {
        hub.create(&planted(shop, name)).await;
        refs.push(json!({"version": "v1", "kind": "Secret", "namespace": shop, "name": name}));
        let [upstream, downstream] = [("Secret", name), ("ConfigMap", copy)]
            .map(|(kind, name)| json!({"version": "v1", "kind": kind, "name": name}));
        conversions.push(json!({"upstream": upstream, "downstream": downstream}));
    }
    select_by_kind(hub, &json!({"downSyncedResources": refs, "conversions": conversions})).await;
    let mut syncer = start(&stage, &[]);
    arrives(edge, "v1", "configmaps", shop, "good-map").await;
    quotes(&syncer, &format!("ConfigMap/{shop}/denied-map")).await;
    change(edge, "configmaps", shop, "good-map").await;
    syncer.wait_for_log("CopyDrifted", SOON).await;
    arrives(edge, "v1", "configmaps", shop, "kept-map").await;
    hub.delete("v1", "secrets", shop, "old").await;
    eventually("the refusal of the delete is logged", SOON, async || {
        let log = syncer.log();
        let is_it = |line: &&str| line.contains("denied the request: ***") && line.contains("/kept-map");
        log.lines().find(is_it).map(|_| ()).ok_or("not yet")
    })
    .await;
    let objects = ["good", "bad"].map(|name| format!("Secret/{shop}/{name}"));
    is_silent_about(&stage, syncer, &objects).await;
}

#[tokio::test]
async fn no_secret_whose_change_is_refused_is_shown_with_what_it_was_before() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    hub.create(&namespace(shop)).await;
    edge.create(&namespace(shop)).await;
    quoting_webhook(edge, shop, "it quotes:").await;
    hub.create(&planted(shop, "fixed")).await;
    select(hub, &all_of(shop, &[("", "secrets")])).await;
    let syncer = start(&stage, &[]);
    arrives(edge, "v1", "secrets", shop, "fixed").await;
    change(hub, "secrets", shop, "fixed").await;
    eventually("the refusal of the change is logged", SOON, async || {
        let log = syncer.log();
        let is_it =
            |line: &&str| line.contains("denied the request: ***") && line.contains(&format!("Secret/{shop}/fixed"));
        log.lines().find(is_it).map(|_| ()).ok_or("not yet")
    })
    .await;
    is_silent_about(&stage, syncer, &[format!("Secret/{shop}/fixed")]).await;
    edge.delete(ADMISSION, "validatingwebhookconfigurations", "", shop)
        .await;
}

#[tokio::test]
async fn no_secret_whose_delete_is_held_or_refused_is_shown() {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    hub.create(&namespace(shop)).await;
    edge.create(&namespace(shop)).await;
    quoting_webhook(edge, shop, "it quotes:").await;
    let held = ["a", "b", "c"];
    for name in held.iter().chain(&["d", "kept"]) {
        hub.create(&planted(shop, name)).await;
    }
    select(hub, &all_of(shop, &[("", "secrets")])).await;
    let mut syncer = start(&stage, &["--hold-deletes-above=2"]);
    for name in held.iter().chain(&["d", "kept"]) {
        arrives(edge, "v1", "secrets", shop, name).await;
    }
    hub.delete("v1", "secrets", shop, "kept").await;
    eventually("the refusal of the delete is logged", SOON, async || {
        let log = syncer.log();
        let is_it = |line: &&str| line.contains("quoting.example.org") && line.contains(&format!("Secret/{shop}/kept"));
        log.lines().find(is_it).map(|_| ()).ok_or("not yet")
    })
    .await;
    // As one event for the syncer.
    syncer.signal("STOP");
    for name in held {
        hub.delete("v1", "secrets", shop, name).await;
    }
    syncer.signal("CONT");
    syncer.wait_for_log("DeletesHeld", SOON).await;
    let objects = ["a", "d", "kept"].map(|name| format!("Secret/{shop}/{name}"));
    is_silent_about(&stage, syncer, &objects).await;
    edge.delete(ADMISSION, "validatingwebhookconfigurations", "", shop)
        .await;
}
