//! Tokens that are kept in a Secret at the edge.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{RENEWED, Site, all_but_tokens, count, everything};
use crate::support::kubeconfig::base64;
use crate::support::objects::JSON;
use crate::support::story::{SOON, copy_equals, edit};
use crate::support::{AuditEvent, SYNCER, eventually};

/// What the log says of the Lease.
const LEADS: &str = "leading, the work begins";
const STANDS_BY: &str = "standing by";

/// Waits until the Secret has another token, and gives that.
async fn renewed(site: &Site, old: &str) -> String {
    eventually("the Secret has a new token", SOON, async || {
        let secret = site.edge.get("v1", "secrets", &site.shop, "site").await;
        let secret = secret.ok_or("the Secret is gone")?;
        let data = secret["data"]["kubeconfig"].as_str().unwrap_or_default();
        let text = String::from_utf8(decode(data)).map_err(|_| "no text")?;
        let token = text
            .rsplit_once("\"token\": \"")
            .or(text.rsplit_once("token: \""))
            .map(|(_, rest)| rest);
        let token = token
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default()
            .to_owned();
        if token == old || token.is_empty() {
            return Err("not yet");
        }
        assert_eq!(text, site.kubeconfig(&token), "nothing but the token has changed");
        assert_eq!(secret["data"]["other"], base64("stays"));
        Ok(token)
    })
    .await
}

fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte));
    let bits: Vec<bool> = digits
        .flat_map(|digit| (0..6).rev().map(move |bit| digit >> bit & 1 == 1))
        .collect();
    let byte = |bits: &[bool]| bits.iter().fold(0_u8, |sum, bit| sum << 1 | u8::from(*bit));
    bits.chunks_exact(8).map(byte).collect()
}

/// The requests of all syncers for tokens of the site's account.
fn token_requests(site: &Site) -> Vec<AuditEvent> {
    let path = format!("/namespaces/{}/serviceaccounts/site/token", site.shop);
    let all = site.pair.hub.requests(SYNCER).into_iter();
    all.filter(|event| event.uri.contains(&path)).collect()
}

fn writes_to_secret(site: &Site) -> Vec<AuditEvent> {
    let path = format!("/namespaces/{}/secrets/site", site.shop);
    let all = site.pair.edge.requests(SYNCER).into_iter();
    all.filter(|event| event.is_write() && event.uri.contains(&path))
        .collect()
}

#[tokio::test]
async fn the_syncer_outlives_a_token_of_thirty_seconds_and_keeps_the_next_one_in_the_secret() {
    let site = Site::register(everything()).await;
    let first = site.account.token(0, 30);
    let secret = site.put_into_secret(&first).await;
    // No kubelet replaces the file: what is in use is what the syncer itself has got.
    let file = site.write("hub", &first);
    let mut syncer = site.syncer(&file, &[&secret]);
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "0"})).await;
    let next = renewed(&site, &first).await;
    site.has_ended(&first).await;
    site.beats().await;
    edit(&site.hub, &site.shop, "a", &json!({"data": {"v": "1"}})).await;
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "1"})).await;
    assert_eq!(count(&syncer, "reason=CredentialsRefused"), 0, "{}", syncer.log());
    assert_eq!((token_requests(&site).len(), writes_to_secret(&site).len()), (1, 1));
    assert_eq!(count(&syncer, RENEWED), 1);

    // The mount follows, and a restart finds it.
    site.write("hub", &next);
    syncer.wait_for_log("reason=KubeconfigReplaced", SOON).await;
    site.beats().await;
    assert!(syncer.terminate().await.0.success());
    let syncer = site.syncer(&file, &[&secret]);
    site.beats().await;
    assert_eq!(token_requests(&site).len(), 1, "the next one lives for ten minutes");
    for token in [&first, &next] {
        assert!(!syncer.log().contains(token.as_str()), "no token is in the log");
    }
}

#[tokio::test]
async fn a_refused_renewal_is_reported_once_and_works_once_it_is_allowed() {
    let site = Site::register(all_but_tokens()).await;
    // It is past the half of its life.
    let first = site.account.token(-300, 200);
    let secret = site.put_into_secret(&first).await;
    let file = site.write("hub", &first);
    let mut syncer = site.syncer(&file, &[&secret]);
    syncer.wait_for_log("reason=TokenNotRenewed", SOON).await;
    eventually("it is tried again", SOON, async || match token_requests(&site).len() {
        0 | 1 => Err("once"),
        _ => Ok(()),
    })
    .await;
    site.beats().await;
    let log = syncer.log();
    let reported: Vec<&str> = log.lines().filter(|line| line.contains("TokenNotRenewed")).collect();
    assert_eq!(reported.len(), 1, "{log}");
    for part in [
        "cannot create resource \\\"serviceaccounts/token\\\"",
        &format!("ServiceAccount/{}/site", site.shop),
        "advice=\"allow this service account",
    ] {
        assert!(reported[0].contains(part), "{part} is not in {}", reported[0]);
    }
    assert!(writes_to_secret(&site).is_empty());
    let tokens = json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}]);
    site.account
        .may(&site.hub, &format!("{}-tokens", site.shop), tokens)
        .await;
    syncer.wait_for_log(RENEWED, SOON).await;
    renewed(&site, &first).await;
}

#[tokio::test]
async fn a_secret_that_holds_something_else_is_left_as_it_is() {
    let site = Site::register(everything()).await;
    let first = site.account.token(-300, 200);
    // Registered as another account meanwhile.
    let secret = site.put_into_secret("another-token").await;
    let before = site.edge.get("v1", "secrets", &site.shop, "site").await;
    let file = site.write("hub", &first);
    let mut syncer = site.syncer(&file, &[&secret]);
    syncer.wait_for_log("reason=TokenNotKept", SOON).await;
    let log = syncer.log();
    let line = log
        .lines()
        .find(|line| line.contains("TokenNotKept"))
        .unwrap_or_default();
    assert!(line.contains("its token is not one of the service account"), "{line}");
    assert!(line.contains(&format!("kept=Secret/{}/site", site.shop)), "{line}");
    // It is in use all the same, and none is asked for while it is.
    site.beats().await;
    assert_eq!(token_requests(&site).len(), 1);
    assert_eq!(site.edge.get("v1", "secrets", &site.shop, "site").await, before);
    assert!(writes_to_secret(&site).is_empty());
}

#[tokio::test]
async fn of_two_replicas_the_leader_renews_and_the_standby_follows() {
    let site = Site::register(everything()).await;
    let first = site.account.token(0, 40);
    let secret = site.put_into_secret(&first).await;
    let file = site.write("hub", &first);
    let flags = [secret.as_str(), "--leader-elect"];
    let mut leader = site.syncer(&file, &flags);
    leader.wait_for_log(LEADS, SOON).await;
    let mut standby = site.syncer(&file, &flags);
    standby.wait_for_log(STANDS_BY, SOON).await;
    let next = renewed(&site, &first).await;
    assert_eq!(token_requests(&site).len(), 1);
    // As the kubelet does, for both.
    site.write("hub", &next);
    standby.wait_for_log("reason=KubeconfigReplaced", SOON).await;
    site.has_ended(&first).await;
    leader.kill();
    standby.wait_for_log(LEADS, SOON).await;
    site.beats().await;
    assert_eq!(count(&standby, "reason=CredentialsRefused"), 0, "{}", standby.log());
    assert_eq!((count(&leader, RENEWED), count(&standby, RENEWED)), (1, 0));
    assert_eq!(token_requests(&site).len(), 1);
}

#[tokio::test]
async fn a_rotated_token_is_used_and_not_overwritten() {
    let site = Site::register(everything()).await;
    let secret = site.put_into_secret(&site.account.token(100, 700)).await;
    let rotated = site.edge.get("v1", "secrets", &site.shop, "site").await;
    // The mount lags behind, and the token there is due.
    let file = site.write("hub", &site.account.token(-300, 200));
    let mut syncer = site.syncer(&file, &[&secret, "--v=4"]);
    syncer.wait_for_log("reason=TokenKept", SOON).await;
    assert_eq!(site.edge.get("v1", "secrets", &site.shop, "site").await, rotated);
    assert!(fs::read_to_string(&file).is_ok_and(|text| text.starts_with("# of")));
    let request: Value = json!({"spec": {}});
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/site/token", site.shop);
    let answer = site.hub.send(http::Method::POST, &path, JSON, Some(&request)).await;
    assert!(answer.is_ok(), "the account is there");
}
