//! `edge-syncer check` where a side does not answer as it should at first: another URL than the API server's, credentials
//! that have ended. And where the edge lacks what the syncer needs for itself.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::bench::{OWN, between, edge_syncer, ensure_namespace, pair};
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
        let printed = edge_syncer(&between(&["gen", "rbac", "--side=hub"], &file, &hub, &[])).await;
        let advice = to_do.trim_start_matches("; to do: ");
        assert!(
            printed.code == Some(1) && printed.err.contains(advice),
            "{}",
            printed.err
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

#[tokio::test]
async fn what_the_syncer_needs_for_itself_is_a_point_of_its_own() {
    let pair = pair().await;
    let (hub, edge) = (pair.hub.kubeconfig(), pair.edge.kubeconfig());
    let secret = format!("--credentials-secret={OWN}/none");
    let found = check(&hub, &edge, &["--leader-elect"]).await;
    let missing = format!("✗ edge: own namespace: {OWN} is not there: there is no place for the Lease");
    let to_do = format!("; to do: create it at the edge: kubectl create namespace {OWN}");
    assert_eq!(found.code, Some(1), "{}", found.out);
    let wrong = lines(&found, &missing);
    assert!(matches!(wrong[..], [line] if line.contains(&to_do)), "{}", found.out);

    ensure_namespace(&pair.edge.objects(), OWN).await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = listener.local_addr().expect("it has one");
    let found = check(&hub, &edge, &[&format!("--listen-address={taken}")]).await;
    assert_eq!(found.code, Some(0), "{}", found.out);
    let there = format!("✔ edge: own namespace: {OWN} is there");
    let noted = format!("! listen address: cannot listen at {taken} (--listen-address): ");
    for line in [&there, &noted] {
        assert_eq!(lines(&found, line).len(), 1, "{line}\n{}", found.out);
    }
    let record = pair.edge.objects();
    let record = record.get("v1", "configmaps", OWN, "edge-syncer-types-site-7").await;
    assert_eq!(record, None, "nothing is stored");

    let found = check(&hub, &edge, &[&secret]).await;
    assert_eq!(found.code, Some(1), "{}", found.out);
    let missing = format!("✗ edge: own Secret: Secret/{OWN}/none is not there");
    assert_eq!(lines(&found, &missing).len(), 1, "{}", found.out);
}
