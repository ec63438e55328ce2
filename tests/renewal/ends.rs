//! Credentials that have ended, or will.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{RENEWED, Site, count, everything};
use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
use crate::support::story::{SOON, copy_equals, edit};
use crate::support::{Objects, Syncer, eventually};

const DAY: i64 = 86_400;

#[tokio::test]
async fn after_a_month_offline_the_log_names_the_command_and_its_output_is_followed_without_a_restart() {
    let site = Site::register(everything()).await;
    let file = site.write("hub", &site.account.token(0, 7 * DAY));
    let mut syncer = site.syncer(&file, &[]);
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "0"})).await;
    assert!(syncer.terminate().await.0.success());
    let before = site.edge.get("v1", "configmaps", &site.shop, "a").await;
    assert!(before.is_some());

    site.write("hub", &site.account.token(-30 * DAY, -23 * DAY));
    let flag = format!("--credentials-file={}", file.display());
    let mut syncer = site.syncer(&file, &[&flag]);
    syncer.wait_for_log("reason=CredentialsRefused", SOON).await;
    syncer.wait_for_log("reason=CredentialsEnded", SOON).await;
    edit(&site.hub, &site.shop, "a", &json!({"data": {"v": "1"}})).await;
    let log = syncer.log();
    let ended: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("reason=CredentialsEnded"))
        .collect();
    assert_eq!(ended.len(), 1, "{log}");
    let command = format!("edge-syncer gen name-of-{} --rotate", site.shop);
    assert!(
        ended[0].contains(&command) && ended[0].contains("side=hub"),
        "{}",
        ended[0]
    );
    assert_eq!(count(&syncer, RENEWED), 0);
    let record = format!("edge-syncer-types-{}", site.shop);
    let expiring = event(&site.edge, |event| event["regarding"]["name"] == *record).await;
    assert!(
        expiring.contains("credentials of the syncer for the hub end"),
        "{expiring}"
    );
    assert_eq!(
        site.edge.get("v1", "configmaps", &site.shop, "a").await,
        before,
        "the edge is untouched"
    );

    site.write("hub", &site.account.token(0, 7 * DAY));
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "1"})).await;
    site.beats().await;
    assert!(syncer.is_running());
    assert_eq!(count(&syncer, "reason=Started"), 1, "it is the same process");
    let of_config = event(&site.hub, |event| {
        let note = event["note"].as_str().unwrap_or_default();
        event["regarding"]["kind"] == "SyncerConfig" && note.contains(&*site.shop)
    })
    .await;
    assert!(of_config.contains("for the hub end"), "{of_config}");
}

/// Waits for the Event that says that credentials end, and gives its note.
async fn event(at: &Objects, is_it: impl Fn(&Value) -> bool) -> String {
    eventually("credentials that end have an Event", SOON, async || {
        let found = at.read("/apis/events.k8s.io/v1/events").await.unwrap_or_default();
        let all = found["items"].as_array().into_iter().flatten();
        let mut expiring = all.filter(|event| event["reason"] == "CredentialExpiring");
        let found_it = expiring.find(|event| is_it(event));
        found_it
            .map(|event| event["note"].as_str().unwrap_or_default().to_owned())
            .ok_or("not yet")
    })
    .await
}

/// Starts a syncer whose hub is nowhere and wants a certificate that ends in so many days.
fn with_certificate(folder: &tempfile::TempDir, days: i64) -> Syncer {
    let identity = Authority::new("nobody").client_until("site", days);
    let text = |port: u16, user: serde_json::Value| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("https://127.0.0.1:{port}"),
                "insecure-skip-tls-verify": true}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": user}],
        })
        .to_string()
    };
    let user = json!({
        "client-certificate-data": base64(&identity.certificate), "client-key-data": base64(&identity.key),
    });
    let (hub, edge) = (folder.path().join("hub"), folder.path().join("edge"));
    fs::write(&hub, text(1, user)).expect("the folder is ours");
    fs::write(&edge, text(2, json!({"token": "x"}))).expect("the folder is ours");
    let kept = format!("--credentials-file={}", folder.path().join("kept").display());
    Syncer::start(&hub, &edge, &[&kept])
}

#[tokio::test]
async fn the_end_of_a_client_certificate_is_reported_ahead() {
    for (days, reason) in [(40, ""), (5, "CredentialsEnding"), (-2, "CredentialsEnded")] {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let mut syncer = with_certificate(&folder, days);
        // Reported in the same step, after it.
        syncer.wait_for_log("reason=NothingToRenew", SOON).await;
        let log = syncer.log();
        let reported: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("reason=CredentialsEnd"))
            .collect();
        if reason.is_empty() {
            assert!(reported.is_empty(), "{log}");
        } else {
            assert_eq!(reported.len(), 1, "{log}");
            assert!(
                reported[0].contains(&format!("reason={reason} ")) && reported[0].contains("side=hub"),
                "{}",
                reported[0]
            );
            assert!(
                reported[0].contains("renew client-certificate-data of "),
                "{}",
                reported[0]
            );
        }
        eventually("it continues", SOON, async || {
            if syncer.is_running() {
                Ok(())
            } else {
                Err("it has ended")
            }
        })
        .await;
    }
}
