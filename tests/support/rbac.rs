//! Permissions of the user `limited`, who has none by itself.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::objects::Objects;
use super::{KubeconfigParts, Server, User};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Lets user `limited` do what these rules say, by a role and a binding of this name.
pub async fn allow(side: &Objects, name: &str, rules: Value) {
    side.create(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}))
        .await;
    side.create(
        &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]}),
    )
    .await;
}

/// Withdraws what [`allow`] gave.
pub async fn disallow(side: &Objects, name: &str) {
    for plural in ["clusterrolebindings", "clusterroles"] {
        side.delete(RBAC, plural, "", name).await;
    }
}

/// A kubeconfig of user `limited`.
pub fn limited(server: &Server) -> PathBuf {
    let parts = KubeconfigParts {
        user: User::Limited,
        ..KubeconfigParts::default()
    };
    server.write_kubeconfig("limited", &parts)
}

/// What a syncer needs at the hub to write heartbeats and Events.
pub fn heartbeats() -> Value {
    let resources = [
        "syncerconfigs/status",
        "edgesyncconfigs/status",
        "edges",
        "edges/status",
        "events",
    ];
    json!({"apiGroups": ["edge.kubestellar.io", "events.k8s.io"], "resources": resources, "verbs": ["patch", "create"]})
}

/// What a syncer needs at the hub to read configs, with these verbs for the configs.
pub fn configs(verbs: &[&str]) -> Value {
    json!({"apiGroups": ["edge.kubestellar.io"], "resources": ["syncerconfigs", "edgesyncconfigs"], "verbs": verbs})
}
