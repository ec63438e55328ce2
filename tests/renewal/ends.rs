//! Credentials that have ended, or will.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{RENEWED, Site, count, everything, is_refused};
use crate::support::certs::Authority;
use crate::support::kubeconfig::{ADMIN_TOKEN, base64};
use crate::support::objects::namespace;
use crate::support::stage::CONFIG_API;
use crate::support::story::{SOON, copy_equals, edit};
use crate::support::tokens::Account;
use crate::support::{KubeconfigParts, Objects, Syncer, eventually};

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

/// Waits until the object that stands for an edge says this of its credentials; while they are not valid, it is not ready for
/// that reason.
async fn says_of_credentials(site: &Site, [status, reason]: [&str; 2], words: &str) {
    eventually(&format!("the edge says {status} {reason}"), SOON, async || {
        let of_it = format!("edge.kubestellar.io/sync-target-name=name-of-{}", site.shop);
        let all = site.hub.list(CONFIG_API, "edges", "", &of_it).await;
        let conditions = all.first().map(|edge| edge["status"]["conditions"].clone());
        let conditions = conditions.ok_or("there is no object")?;
        let named = |of: &str| {
            let mut found = conditions.as_array().into_iter().flatten();
            found
                .find(|condition| condition["type"] == of)
                .cloned()
                .unwrap_or_default()
        };
        let (credentials, ready) = (named("CredentialsValid"), named("Ready"));
        let begins = |message: &str| message.starts_with(words);
        let is_so = credentials["status"] == status
            && credentials["reason"] == reason
            && credentials["message"].as_str().is_some_and(begins)
            && (ready["status"] == "False" && ready["reason"] == reason) == (status == "False");
        if is_so {
            Ok(())
        } else {
            Err(format!("{credentials} {ready}"))
        }
    })
    .await;
}

/// The edge refuses a token whose account is gone, and the hub hears of it; as soon as there is another one, all is well.
#[tokio::test]
async fn credentials_that_the_edge_refuses_are_on_the_object_of_the_edge_until_it_accepts_others() {
    let site = Site::register(everything()).await;
    let mut tokens = Vec::new();
    for name in ["first", "second"] {
        // Not in the namespace of the site, which the syncer makes.
        let space = format!("{name}-{}", site.shop);
        site.edge.create(&namespace(&space)).await;
        let account = Account::create(&site.pair.edge, &space, "syncer", everything()).await;
        tokens.push((account.token(0, 7 * DAY), account));
    }
    let of_edge = |token: &str| {
        let written = site.pair.edge.write_kubeconfig(&site.shop, &KubeconfigParts::default());
        let text = fs::read_to_string(written).expect("it was written just now");
        fs::write(site.path("edge"), text.replace(ADMIN_TOKEN, token)).expect("the folder is ours");
    };
    of_edge(&tokens[0].0);
    let hub = site.write("hub", &site.account.token(0, 30 * DAY));
    let mut syncer = site.syncer_to(&hub, &site.path("edge"), &[]);
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "0"})).await;
    // Nobody renews that of the edge, which ends in seven days.
    says_of_credentials(&site, ["True", "EndSoon"], "the credentials for the edge end at ").await;
    let account = &tokens[0].1;
    site.edge
        .delete("v1", "serviceaccounts", &account.namespace, &account.name)
        .await;
    is_refused(&site.path("edge")).await;
    // The next request shows it.
    edit(&site.hub, &site.shop, "a", &json!({"data": {"v": "1"}})).await;
    says_of_credentials(&site, ["False", "Refused"], "the edge refuses the credentials").await;
    assert!(syncer.is_running());
    of_edge(&tokens[1].0);
    says_of_credentials(&site, ["True", "EndSoon"], "the credentials for the edge end at ").await;
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "1"})).await;
}

/// A hub takes a token for a minute longer than the token says: so long it hears that the token has ended.
#[tokio::test]
async fn credentials_of_the_hub_that_end_are_on_the_object_of_the_edge_until_there_are_others() {
    let site = Site::register(everything()).await;
    let file = site.write("hub", &site.account.token(-600, 10));
    let mut syncer = site.syncer(&file, &[]);
    says_of_credentials(&site, ["True", "EndSoon"], "the credentials for the hub end at ").await;
    says_of_credentials(&site, ["False", "Ended"], "the credentials for the hub have ended at ").await;
    // Then it is silent, and what was said stays.
    syncer.wait_for_log("reason=CredentialsRefused", SOON).await;
    says_of_credentials(&site, ["False", "Ended"], "the credentials for the hub have ended at ").await;
    site.write("hub", &site.account.token(0, 30 * DAY));
    says_of_credentials(&site, ["True", "Valid"], "").await;
    assert!(syncer.is_running());
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
