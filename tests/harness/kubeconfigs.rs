//! Kubeconfigs in all forms that users have.

use std::path::Path;

use serde_json::json;

use crate::support::{Ca, Credential, KubeconfigParts, Objects, Pair, User, shared_pair};

#[tokio::test]
async fn every_form_of_kubeconfig_leads_to_the_server() {
    let pair = shared_pair().await;
    for (name, parts) in kubeconfig_forms(&pair) {
        let expected = match (parts.user, parts.credential) {
            (_, Credential::Nothing) => "system:anonymous",
            (User::Admin, _) => "admin",
            (User::Limited, _) => "limited",
        };
        let file = pair.hub.write_kubeconfig(name, &parts);
        assert_eq!(user_seen_by_server(&file, None).await, expected, "{name}");
    }
    let both = pair.hub.folder().join("both-sides");
    assert_eq!(user_seen_by_server(&both, Some("edge")).await, "admin");
}

/// Kubeconfigs for the hub in the forms that users have, each with a name.
fn kubeconfig_forms(pair: &Pair) -> Vec<(&'static str, KubeconfigParts)> {
    vec![
        ("inline", KubeconfigParts::default()),
        (
            "token-file",
            KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile),
        ),
        (
            "cert-inline",
            KubeconfigParts::with(|parts| parts.credential = Credential::CertInline),
        ),
        (
            "cert-files",
            KubeconfigParts::with(|parts| {
                parts.credential = Credential::CertFiles;
                parts.ca = Ca::File;
            }),
        ),
        (
            "relative",
            KubeconfigParts::with(|parts| {
                parts.credential = Credential::CertFiles;
                parts.ca = Ca::File;
                parts.relative_paths = true;
            }),
        ),
        (
            "insecure",
            KubeconfigParts::with(|parts| {
                parts.ca = Ca::Absent;
                parts.insecure_skip_tls_verify = true;
            }),
        ),
        (
            "server-name",
            KubeconfigParts::with(|parts| parts.tls_server_name = Some("localhost".into())),
        ),
        (
            "server",
            KubeconfigParts::with(|parts| parts.server = Some(pair.hub.url().replace("127.0.0.1", "localhost"))),
        ),
        ("limited", KubeconfigParts::with(|parts| parts.user = User::Limited)),
        (
            "limited-cert",
            KubeconfigParts::with(|parts| {
                parts.user = User::Limited;
                parts.credential = Credential::CertInline;
            }),
        ),
        (
            "anonymous",
            KubeconfigParts::with(|parts| parts.credential = Credential::Nothing),
        ),
        (
            "both-sides",
            KubeconfigParts::with(|parts| {
                let edge = KubeconfigParts::with(|parts| parts.context = "edge".into());
                parts.namespace = Some("shop".into());
                parts.others = vec![pair.edge.kubeconfig_entry(&edge)];
            }),
        ),
    ]
}

/// Who the server says one is with the kubeconfig `file`.
async fn user_seen_by_server(file: &Path, context: Option<&str>) -> String {
    let objects = Objects::by_kubeconfig(file, context).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    match objects.try_create(&review).await {
        Ok(review) => review["status"]["userInfo"]["username"]
            .as_str()
            .expect("a review has a user")
            .to_owned(),
        // Anonymous users may not ask, and learn who they are from the refusal.
        Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("\"system:anonymous\"") => {
            "system:anonymous".to_owned()
        }
        Err(error) => format!("{error}"),
    }
}
