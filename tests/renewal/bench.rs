//! What these tests share: an edge that is registered at the hub by a service account.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support::kubeconfig::{ADMIN_TOKEN, base64};
use crate::support::objects::code;
use crate::support::objects::syncer_config;
use crate::support::stage::{config_maps, stock};
use crate::support::story::SOON;
use crate::support::tokens::Account;
use crate::support::{KubeconfigParts, Objects, Pair, PairOptions, SYNCER, Syncer, eventually, unique_suffix};

/// What the log says once a token was renewed.
pub(crate) const RENEWED: &str = "reason=TokenRenewed";

/// All permissions.
pub(crate) fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
}

/// What a syncer needs at the hub, but for its token.
pub(crate) fn all_but_tokens() -> Value {
    json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["edge.kubestellar.io"], "resources": ["*"], "verbs": ["patch"]},
    ])
}

/// An edge, its account at the hub, and a folder for its files.
pub(crate) struct Site {
    pub(crate) pair: &'static Pair,
    pub(crate) shop: String,
    pub(crate) account: Account,
    pub(crate) folder: TempDir,
    pub(crate) hub: Objects,
    pub(crate) edge: Objects,
}

impl Site {
    /// With a `ConfigMap` that is selected, and these permissions at the hub.
    pub(crate) async fn register(rules: Value) -> Self {
        static PAIR: OnceCell<Pair> = OnceCell::const_new();
        // Nobody touches the servers, so that all tests, which mostly wait, can run at the same time.
        let pair = PAIR.get_or_init(|| Pair::start(PairOptions::default())).await;
        let shop = format!("shop-{}", unique_suffix());
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        stock(&hub, &shop, &["a"], &json!({"v": "0"})).await;
        hub.create(&syncer_config(&shop, config_maps(&shop, &["*"]))).await;
        let account = Account::create(&pair.hub, &shop, "site", rules).await;
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        Self {
            pair,
            shop,
            account,
            folder,
            hub,
            edge,
        }
    }

    /// A kubeconfig of the hub with this token, as text.
    pub(crate) fn kubeconfig(&self, token: &str) -> String {
        let written = self.pair.hub.write_kubeconfig(&self.shop, &KubeconfigParts::default());
        let text = fs::read_to_string(written).expect("it was written just now");
        format!("# of {}\n{}", self.shop, text.replace(ADMIN_TOKEN, token))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes such a kubeconfig to a file.
    pub(crate) fn write(&self, name: &str, token: &str) -> PathBuf {
        fs::write(self.path(name), self.kubeconfig(token)).expect("the folder is ours");
        self.path(name)
    }

    /// Puts such a kubeconfig into a Secret at the edge, and gives its name as the flag takes it.
    pub(crate) async fn put_into_secret(&self, token: &str) -> String {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.shop}});
        // The syncer may have made it.
        let _ = self.edge.try_create(&namespace).await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": self.shop, "name": "site"},
            "data": {"kubeconfig": base64(self.kubeconfig(token)), "other": base64("stays")},
        });
        self.edge.create(&secret).await;
        format!("--credentials-secret={}/site", self.shop)
    }

    /// Starts a syncer of a sync target of its own. A heartbeat a second shows that the hub lets it in.
    pub(crate) fn syncer(&self, hub: &std::path::Path, flags: &[&str]) -> Syncer {
        self.syncer_to(hub, &self.pair.edge.kubeconfig(), flags)
    }

    /// The same, with another kubeconfig of the edge.
    pub(crate) fn syncer_to(&self, hub: &std::path::Path, edge: &std::path::Path, flags: &[&str]) -> Syncer {
        let uid = format!("--sync-target-uid={}", self.shop);
        let name = format!("--sync-target-name=name-of-{}", self.shop);
        // It cares for nobody else's objects.
        let only = format!("--allow-namespace={}", self.shop);
        let mut all = vec![uid.as_str(), name.as_str(), &only, "--heartbeat-interval=1s"];
        all.extend(flags);
        Syncer::start(hub, edge, &all)
    }

    /// Waits until the hub does not accept a token any more. It remembers for seconds that it has.
    pub(crate) async fn has_ended(&self, token: &str) {
        is_refused(&self.write("ended", token)).await;
    }

    /// Waits until the hub has let the account in once more, to write the next heartbeat.
    pub(crate) async fn beats(&self) {
        let user = format!("system:serviceaccount:{}:{}", self.account.namespace, self.account.name);
        let mark = self.pair.hub.audit_mark();
        eventually("there is another heartbeat", SOON, async || {
            let since = self.pair.hub.requests_since(SYNCER, mark);
            let is_in = since
                .iter()
                .any(|event| event.user == user && event.is_write() && event.code == 200);
            is_in.then_some(()).ok_or_else(|| format!("{since:?}"))
        })
        .await;
    }
}

/// Waits until a server does not accept what is in this kubeconfig.
pub(crate) async fn is_refused(kubeconfig: &std::path::Path) {
    let objects = Objects::by_kubeconfig(kubeconfig, None).await;
    eventually("the token ends", SOON, async || match objects.read("/api").await {
        Err(error) if code(&error) == 401 => Ok(()),
        other => Err(format!("{:?}", other.map(drop))),
    })
    .await;
}

/// How many times a log says this.
pub(crate) fn count(syncer: &Syncer, text: &str) -> usize {
    syncer.log().matches(text).count()
}
