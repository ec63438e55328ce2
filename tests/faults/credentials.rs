//! Credentials, CAs and addresses that change in mounted files while the syncer runs.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::story::{Links, RECOVERED, Story, common_pair};
use crate::support::kubeconfig::ADMIN_TOKEN;
use crate::support::modes::{Mode, POLL_THE_HUB, WATCH};
use crate::support::objects::{JSON, code};
use crate::support::{Ca, Credential, KubeconfigParts, Objects, Pair, PairOptions, eventually, lines};

/// What the log says of a 401.
const NOT_ACCEPTED: &str = "the credentials are not accepted";

/// A Secret as it is mounted: files are links through `..data`, which is replaced in one step.
struct Mount {
    folder: TempDir,
    generation: u32,
}

impl Mount {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut mount = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be created"),
            generation: 0,
        };
        mount.replace(files);
        for (name, _) in files {
            symlink(Path::new("..data").join(name), mount.path(name)).expect("the folder is ours");
        }
        mount
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn replace(&mut self, files: &[(&str, &str)]) {
        self.generation += 1;
        let name = format!("..{}", self.generation);
        std::fs::create_dir(self.path(&name)).expect("the folder is ours");
        for (file, text) in files {
            std::fs::write(self.path(&name).join(file), text).expect("the folder is ours");
        }
        symlink(&name, self.path("..next")).expect("the folder is ours");
        std::fs::rename(self.path("..next"), self.path("..data")).expect("the folder is ours");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it was written just now")
}

/// A service account that may do everything; gives a token for it.
async fn service_account(at: &Objects, shop: &str) -> String {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": shop, "name": "syncer"}});
    at.create(&account).await;
    let path = format!("/api/v1/namespaces/{shop}/serviceaccounts/syncer/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = at.send(Method::POST, &path, JSON, Some(&request)).await;
    let answer = answer.expect("the server makes tokens");
    answer["status"]["token"].as_str().expect("it is a token").to_owned()
}

async fn grant(at: &Objects, shop: &str) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": shop},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": shop, "name": "syncer"}],
    });
    at.create(&binding).await;
}

/// Withdraws all tokens of the account, and gives a token for its successor.
async fn next_token(at: &Objects, shop: &str) -> String {
    at.delete("v1", "serviceaccounts", shop, "syncer").await;
    service_account(at, shop).await
}

/// Waits until a server refuses the credentials of a kubeconfig. It remembers for some seconds that it has accepted them.
async fn is_refused(kubeconfig: &Path) {
    let objects = Objects::by_kubeconfig(kubeconfig, None).await;
    eventually("the credentials are refused", RECOVERED, async || {
        match objects.read("/api").await {
            Err(error) if code(&error) == 401 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_token_that_expired_is_renewed_in_its_file() {
    tokio::join!(
        renewed_token(WATCH, Credential::TokenFile),
        renewed_token(POLL_THE_HUB, Credential::TokenFile)
    );
}

#[tokio::test]
async fn a_token_that_expired_is_renewed_in_the_kubeconfig_secret() {
    tokio::join!(
        renewed_token(WATCH, Credential::Token),
        renewed_token(POLL_THE_HUB, Credential::Token)
    );
}

async fn renewed_token(mode: Mode, credential: Credential) {
    let pair = common_pair().await;
    let links = Links::to(pair).await;
    let shop = Story::prepare(&pair.hub).await;
    let hub = pair.hub.objects();
    let token = service_account(&hub, &shop).await;
    grant(&hub, &shop).await;
    let parts = KubeconfigParts {
        credential,
        relative_paths: true,
        ..KubeconfigParts::default()
    };
    let written = links.hub.kubeconfig_with(&pair.hub, parts);
    let token_file = written.with_extension("kubeconfig.token");
    let token_name = token_file
        .file_name()
        .and_then(|name| name.to_str())
        .expect("it is ASCII");
    let kubeconfig = |token: &str| read(&written).replace(ADMIN_TOKEN, token);
    let mut secret = Mount::new(&[("kubeconfig", &kubeconfig(&token)), (token_name, &token)]);
    let edge = links.edge.kubeconfig(&pair.edge);
    let syncer = Story::syncer(&shop, &secret.path("kubeconfig"), &edge, mode);
    let mut story = Story::begin(&pair.hub, &pair.edge, shop.clone(), syncer).await;

    let next = next_token(&hub, &shop).await;
    is_refused(&secret.path("kubeconfig")).await;
    // The watches that are open would go on for an hour.
    links.hub.cut().await;
    links.hub.heal().await;
    story.says(NOT_ACCEPTED, RECOVERED).await;
    story.change_hub().await;
    story.change_edge().await;
    secret.replace(&[("kubeconfig", &kubeconfig(&next)), (token_name, &next)]);
    story.is_synced().await;
    story.ends_well().await;
    hub.delete("rbac.authorization.k8s.io/v1", "clusterrolebindings", "", &shop)
        .await;
}

#[tokio::test]
async fn a_kubeconfig_secret_with_another_address_is_followed() {
    let pair = common_pair().await;
    let (old, new) = tokio::join!(Links::to(pair), Links::to(pair));
    let shop = Story::prepare(&pair.hub).await;
    let text = |links: &Links| read(&links.hub.kubeconfig(&pair.hub));
    let mut secret = Mount::new(&[("kubeconfig", &text(&old))]);
    let edge = old.edge.kubeconfig(&pair.edge);
    let syncer = Story::syncer(&shop, &secret.path("kubeconfig"), &edge, WATCH);
    let mut story = Story::begin(&pair.hub, &pair.edge, shop, syncer).await;
    old.hub.cut().await;
    story.says(&lines::unreachable("hub"), RECOVERED).await;
    // First something that is no kubeconfig: nothing comes of it but a line.
    secret.replace(&[("kubeconfig", "no kubeconfig")]);
    story
        .says("cannot be used, the last one remains in force", RECOVERED)
        .await;
    story.change_hub().await;
    story.change_edge().await;
    secret.replace(&[("kubeconfig", &text(&new))]);
    story.says("using another server", RECOVERED).await;
    story.is_synced().await;
    story.reports_one_outage("hub").await;
    story.ends_well().await;
    let log = story.syncer.log();
    assert_eq!(log.matches("remains in force").count(), 1);
}

#[tokio::test]
async fn a_rotated_ca_is_followed_on_both_sides() {
    let mut pair = Pair::start(PairOptions::default()).await;
    let shop = Story::prepare(&pair.hub).await;
    let in_file = KubeconfigParts {
        ca: Ca::File,
        ..KubeconfigParts::default()
    };
    let hub = pair
        .hub
        .write_kubeconfig("inline.kubeconfig", &KubeconfigParts::default());
    let edge = pair.edge.write_kubeconfig("file.kubeconfig", &in_file);
    let syncer = Story::syncer(&shop, &hub, &edge, WATCH);
    let mut story = Story::begin(&pair.hub, &pair.edge, shop, syncer).await;

    pair.hub.renew_ca();
    pair.hub.start_apiserver().await;
    story.meet_again(&pair);
    story.says(&lines::unreachable("hub"), RECOVERED).await;
    story.change_hub().await;
    story.change_edge().await;
    pair.hub
        .write_kubeconfig("inline.kubeconfig", &KubeconfigParts::default());
    story.is_synced().await;
    story.reports_one_outage("hub").await;

    pair.edge.renew_ca();
    pair.edge.start_apiserver().await;
    story.meet_again(&pair);
    story.says(&lines::unreachable("edge"), RECOVERED).await;
    story.change_hub().await;
    story.change_edge().await;
    std::fs::write(edge.with_extension("kubeconfig.ca"), pair.edge.ca_pem()).expect("the folder is ours");
    story.reports_one_outage("edge").await;
    story.ends_well().await;
}
