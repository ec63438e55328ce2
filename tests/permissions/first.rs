//! `edge-syncer check` where a side does not answer as it should at first: another URL than the API server's, credentials
//! that have ended.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::bench::{ensure_namespace, pair};
use crate::checks::{check, lines};
use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
use crate::support::tokens::Account;
use crate::support::{KubeconfigParts, Server, User};

#[tokio::test]
async fn a_url_of_something_else_is_named_with_what_is_wrong_with_it() {
    let pair = pair().await;
    let (hub, url) = (pair.hub.kubeconfig(), pair.edge.url().to_owned());
    let plain = url.replace("https://", "http://");
    let elsewhere = format!("{url}/nonsense");
    let path = "; to do: the path /nonsense in the kubeconfig's server is probably wrong";
    for (name, server, user, to_do) in [
        (
            "plain",
            &plain,
            User::Admin,
            "; to do: the server speaks TLS at that port: write https:// instead",
        ),
        // Whoever may ask for any path gets a 404, all others a 403.
        ("path", &elsewhere, User::Admin, path),
        ("path-of-limited", &elsewhere, User::Limited, path),
    ] {
        let parts = KubeconfigParts::with(|parts| {
            parts.server = Some(server.clone());
            parts.user = user;
        });
        let file = pair.edge.write_kubeconfig(name, &parts);
        let found = check(&hub, &file, &[]).await;
        assert_eq!(found.code, Some(1), "{}", found.out);
        let wrong = lines(&found, "✗ edge: ");
        let begin = format!("✗ edge: reached: {server}: ");
        assert!(
            matches!(wrong[..], [line] if line.starts_with(&begin) && line.contains(to_do)),
            "{wrong:?}"
        );
    }
}

/// A kubeconfig of a server with this user entry.
fn with_user(server: &Server, name: &str, user: &serde_json::Value) -> PathBuf {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": server.url(),
            "certificate-authority-data": base64(server.ca_pem())}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": user}],
    });
    let path = server.folder().join(name);
    std::fs::write(&path, text.to_string()).expect("the folder is ours");
    path
}

/// The only line about the credentials of a side that they are wrong.
async fn wrong_credentials(hub: &Path, edge: &Path, side: &str, flags: &[&str]) -> String {
    let found = check(hub, edge, flags).await;
    assert_eq!(found.code, Some(1), "{}", found.out);
    let [line] = lines(&found, &format!("✗ {side}: credentials: "))[..] else {
        panic!("{}", found.out);
    };
    assert_eq!(lines(&found, &format!("✔ {side}: clock: ")).len(), 1, "{}", found.out);
    line.to_owned()
}

#[tokio::test]
async fn credentials_that_have_ended_do_not_read_like_forged_ones() {
    let pair = pair().await;
    let (hub, edge) = (pair.hub.kubeconfig(), pair.edge.kubeconfig());
    let space = pair.namespace("accounts");
    ensure_namespace(&pair.hub.objects(), &space).await;
    let account = Account::create(&pair.hub, &space, "kubestellar-syncer-site-7-abc", json!([])).await;
    let token = account.token(-7200, -3600);
    let file = with_user(&pair.hub, "ended", &json!({"token": token}));
    let line = wrong_credentials(&file, &edge, "hub", &["--sync-target-name=site-7"]).await;
    assert!(line.contains("credentials: the token has ended at 20"), "{line}");
    assert!(
        line.contains("; to do: edge-syncer gen site-7 --rotate, with"),
        "{line}"
    );
    assert!(!line.contains(&token), "{line}");

    // One that is not over and that the server does not know.
    let forged = account.token(-7200, 3600).replace('.', ".A");
    let file = with_user(&pair.hub, "forged", &json!({"token": forged}));
    let line = wrong_credentials(&file, &edge, "hub", &[]).await;
    assert!(line.contains("credentials: Unauthorized (HTTP 401)"), "{line}");

    let identity = Authority::new("nobody").client_until("site", -2);
    let user = json!({
        "client-certificate-data": base64(&identity.certificate), "client-key-data": base64(&identity.key),
    });
    let file = with_user(&pair.edge, "ended", &user);
    let line = wrong_credentials(&hub, &file, "edge", &[]).await;
    let begin = "credentials: the client certificate has ended at 20";
    assert!(line.contains(begin) && line.contains("; to do: renew it"), "{line}");
}
