//! The roles of `examples/rbac`: a syncer that has no other permissions does what docs/install.md says.

use std::path::PathBuf;

use http::Method;
use serde_json::json;

use crate::bench::{Bench, bench, create_all, service};
use crate::support::objects::{JSON, config_map, namespace};
use crate::support::stage::CONFIG_API;
use crate::support::statuses::{deployment, returns, set_status, web};
use crate::support::story::{arrives, becomes, copy_equals, edit, gone};
use crate::support::{AuditMark, Credential, KubeconfigParts, SYNCER, Server, Syncer};

/// The account in the examples, and the sync target.
const SITE: &str = "site-7";
/// The namespace of the account, and of the syncer itself at the edge.
const OWN: &str = "edge-syncer";

/// A kubeconfig of the service account in the examples.
async fn kubeconfig(server: &Server) -> PathBuf {
    let path = format!("/api/v1/namespaces/{OWN}/serviceaccounts/{SITE}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = server.objects().send(Method::POST, &path, JSON, Some(&request)).await;
    let answer = answer.expect("the account gets a token");
    let parts = KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile);
    let file = server.write_kubeconfig(SITE, &parts);
    let token = answer["status"]["token"].as_str().expect("a token is text");
    std::fs::write(file.with_extension("token"), token).expect("the folder can be written");
    file
}

/// Two clusters with the roles of the examples and the configs that these are for, and when that began.
struct Site {
    bench: Bench,
    marks: [AuditMark; 2],
}

impl Site {
    async fn prepare() -> Self {
        let bench = bench().await;
        let marks = [bench.pair.hub.audit_mark(), bench.pair.edge.audit_mark()];
        create_all(&bench.hub, "examples/rbac/hub.yaml").await;
        create_all(&bench.edge, "examples/rbac/edge.yaml").await;
        for file in ["examples/all-of-a-namespace.yaml", "examples/one-object-up.yaml"] {
            create_all(&bench.hub, file).await;
        }
        Self { bench, marks }
    }

    /// Starts a syncer that has these roles and no others.
    async fn syncer(&self, flags: &[&str]) -> Syncer {
        let pair = &self.bench.pair;
        let (hub, edge) = (kubeconfig(&pair.hub).await, kubeconfig(&pair.edge).await);
        let flags = [&["--sync-target-uid=site-7"], flags].concat();
        Syncer::start_with_env(&hub, &edge, &flags, &[("NAMESPACE", OWN)])
    }

    /// Fails if a server has refused the syncer anything.
    fn nothing_was_refused(&self) {
        for (server, mark) in [&self.bench.pair.hub, &self.bench.pair.edge]
            .into_iter()
            .zip(self.marks)
        {
            let requests = server.requests_since(SYNCER, mark);
            assert!(!requests.is_empty(), "the {} was asked nothing", server.name());
            let mut refused = requests.iter().filter(|request| matches!(request.code, 401 | 403));
            assert_eq!(refused.next(), None, "refused at the {}", server.name());
        }
    }
}

#[tokio::test]
async fn the_roles_of_the_examples_are_enough_for_downsync_status_and_heartbeat() {
    let site = Site::prepare().await;
    let (hub, edge) = (&site.bench.hub, &site.bench.edge);
    hub.create(&namespace("shop")).await;
    hub.create(&config_map("shop", "prices", json!({"apple": "1"}))).await;
    hub.create(&deployment("shop", "web:1")).await;
    hub.create(&service("web")).await;
    let mut syncer = site.syncer(&["--leader-elect", "--heartbeat-interval=1s"]).await;

    // The story of the quick start.
    copy_equals(edge, "shop", "prices", &json!({"apple": "1"})).await;
    edit(hub, "shop", "prices", &json!({"data": {"apple": "2"}})).await;
    copy_equals(edge, "shop", "prices", &json!({"apple": "2"})).await;
    hub.delete("v1", "configmaps", "shop", "prices").await;
    gone(edge, "v1", "configmaps", "shop", "prices").await;

    // The status of both types that have one.
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    for (at, status) in [
        (web("shop"), json!({"observedGeneration": 1, "replicas": 2})),
        (
            ["v1", "services", "shop", "web"],
            json!({"loadBalancer": {}, "conditions": [condition]}),
        ),
    ] {
        let [api_version, plural, namespace, name] = at;
        arrives(edge, api_version, plural, namespace, name).await;
        set_status(edge, at, true, &status).await;
        returns(hub, at, &status).await;
    }
    let config = [CONFIG_API, "syncerconfigs", "", "all-of-a-namespace"];
    becomes(hub, config, "has a heartbeat", |config| {
        config["status"]["lastSyncerHeartbeatTime"].is_string()
    })
    .await;

    // What it keeps for itself.
    arrives(edge, "coordination.k8s.io/v1", "leases", OWN, "edge-syncer-site-7").await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", syncer.log());
    arrives(edge, "v1", "configmaps", OWN, "edge-syncer-types-site-7").await;
    site.nothing_was_refused();
}

#[tokio::test]
async fn the_roles_of_the_examples_are_enough_for_upsync() {
    let site = Site::prepare().await;
    let (hub, edge) = (&site.bench.hub, &site.bench.edge);
    edge.create(&namespace("shop")).await;
    edge.create(&config_map("shop", "sales", json!({"today": "17"}))).await;
    let _syncer = site.syncer(&[]).await;
    copy_equals(hub, "shop", "sales", &json!({"today": "17"})).await;
    edit(edge, "shop", "sales", &json!({"data": {"today": "18"}})).await;
    copy_equals(hub, "shop", "sales", &json!({"today": "18"})).await;
    site.nothing_was_refused();
    // Whether the namespace at the hub is empty then, the roles do not let it ask: it is preserved.
    edge.delete("v1", "configmaps", "shop", "sales").await;
    gone(hub, "v1", "configmaps", "shop", "sales").await;
}
