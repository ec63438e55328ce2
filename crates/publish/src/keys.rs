//! Labels, annotations and hashes by which an object in kcp and its copy find each other, and where the state of both is
//! kept. An installation of the Go agent has the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::json;

/// The finalizer of objects in kcp that have copies.
pub const FINALIZER: &str = "syncagent.kcp.io/cleanup";

/// The label of copies and schemas, and the annotation of schemas and exports: whose they are.
pub const AGENT_NAME: &str = "syncagent.kcp.io/agent-name";

/// The label of a copy: the cluster of its object. The annotation of what belongs to one and comes from a workspace.
pub const CLUSTER: &str = "syncagent.kcp.io/remote-object-cluster";

/// The label of a copy: a hash of its object's name.
pub const NAME_HASH: &str = "syncagent.kcp.io/remote-object-name-hash";

/// The label of a copy: a hash of its object's namespace.
pub const NAMESPACE_HASH: &str = "syncagent.kcp.io/remote-object-namespace-hash";

/// The annotation of a copy: its object's name.
pub const NAME: &str = "syncagent.kcp.io/remote-object-name";

/// The annotation of a copy: its object's namespace.
pub const NAMESPACE: &str = "syncagent.kcp.io/remote-object-namespace";

/// The annotation of a copy: the path of its object's workspace.
pub const WORKSPACE_PATH: &str = "syncagent.kcp.io/remote-object-workspace-path";

/// The label of Secrets with the state of objects.
pub const OBJECT_STATE: &str = "syncagent.kcp.io/object-state";

/// The annotation of an object in kcp by which its copy is deleted.
pub const DELETION_PROPAGATION: &str = "syncagent.kcp.io/deletion-propagation-policy";

/// The key of the state Secret under which is written down what belongs to its object.
pub const BELONGINGS: &str = "related-objects";

/// With what annotations of an object in kcp begin that name its related objects.
pub const RELATED_PREFIX: &str = "related-resources.syncagent.kcp.io/";

/// With what labels begin of what has come to the service cluster with objects: one for each of these. Like kcp's own
/// labels and its annotation of the cluster, none is ever copied, by this agent or the Go agent, whose tests allow no
/// other marks there.
pub const RELATED_TO_PREFIX: &str = "claimed.internal.apis.kcp.io/related-to-";

/// With what all of the agent's own keys begin.
pub const OWN_PREFIX: &str = "syncagent.kcp.io/";

/// Where an object in kcp is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The cluster id of its workspace.
    pub cluster: String,
    /// The path of that, if it is asked for.
    pub workspace_path: Option<String>,
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The labels by which its copy is found.
    pub fn labels(&self) -> BTreeMap<&'static str, String> {
        let mut labels = BTreeMap::from([(CLUSTER, self.cluster.clone()), (NAME_HASH, json::hash(&self.name))]);
        if !self.namespace.is_empty() {
            labels.insert(NAMESPACE_HASH, json::hash(&self.namespace));
        }
        labels
    }

    /// The annotations by which its copy leads back to it.
    pub fn annotations(&self) -> BTreeMap<&'static str, String> {
        let mut annotations = BTreeMap::from([(NAME, self.name.clone())]);
        if !self.namespace.is_empty() {
            annotations.insert(NAMESPACE, self.namespace.clone());
        }
        if let Some(path) = self.workspace_path.as_ref().filter(|path| !path.is_empty()) {
            annotations.insert(WORKSPACE_PATH, path.clone());
        }
        annotations
    }

    /// The object that this copy leads to.
    pub fn of_copy(copy: &Value) -> Option<Self> {
        let metadata = copy.get("metadata")?;
        let text = |map: &str, key: &str| metadata.get(map)?.get(key)?.as_str().map(str::to_owned);
        Some(Self {
            cluster: text("labels", CLUSTER).filter(|cluster| !cluster.is_empty())?,
            workspace_path: text("annotations", WORKSPACE_PATH),
            namespace: text("annotations", NAMESPACE).unwrap_or_default(),
            name: text("annotations", NAME).filter(|name| !name.is_empty())?,
        })
    }

    /// True for the same object.
    pub fn is_of_same_object(&self, other: &Self) -> bool {
        (&self.cluster, &self.namespace, &self.name) == (&other.cluster, &other.namespace, &other.name)
    }

    /// The name of the Secret with the state of this object, which is of this type in kcp, and of what is related to it.
    pub fn state_secret(&self, api_version: &str, kind: &str) -> String {
        let object = json!({
            "apiVersion": api_version,
            "kind": kind,
            "namespace": self.namespace,
            "name": self.name,
        });
        let hash = json::hash_of_json(&json::text(&object));
        format!("obj-state-{}-{}", self.cluster, &hash[..20])
    }

    /// What the annotation `kcp.io/cluster` says of what has come to the service cluster from this workspace, with these
    /// namespace and name.
    pub fn related_mark(&self, namespace: &str, name: &str) -> String {
        format!("{}/{namespace}/{name}", self.cluster)
    }

    /// The label of what has come to the service cluster with this object, which is of this type in kcp.
    pub fn related_label(&self, group: &str, kind: &str) -> String {
        let object = json!([self.cluster, group, kind, self.namespace, self.name]);
        format!("{RELATED_TO_PREFIX}{}", &json::hash_of_json(&object.to_string())[..20])
    }

    /// The labels of that Secret.
    pub fn state_labels(&self) -> BTreeMap<&'static str, String> {
        let mut labels = self.labels();
        labels.insert(OBJECT_STATE, "true".to_owned());
        labels
    }
}

/// The key of an object's state in the Secret of its primary, as the Go agent has it: objects of two kinds with one name
/// share one. The cluster is empty for objects whose origin is the service cluster.
pub fn state_key(cluster: &str, namespace: &str, name: &str) -> String {
    json::hash_of_json(&state_json(cluster, namespace, name, None))
}

/// The key of a related object's state, with its kind: its primary may have the same name.
pub fn state_key_of_kind(cluster: &str, namespace: &str, name: &str, kind: &str) -> String {
    json::hash_of_json(&state_json(cluster, namespace, name, Some(kind)))
}

/// The same for a pair: one object may come to several others at the other end. Of each the key has its type, namespace and
/// name.
pub fn state_key_of_pair(cluster: &str, pair: [[&str; 4]; 2]) -> String {
    json::hash_of_json(&json!({"cluster": cluster, "pair": pair}).to_string())
}

/// In the order of Go's fields. The path is always empty there.
fn state_json(cluster: &str, namespace: &str, name: &str, kind: Option<&str>) -> String {
    let mut out = String::from("{\"ClusterName\":");
    json::push_text(&mut out, cluster);
    out.push_str(",\"WorkspacePath\":\"\",\"Namespace\":");
    json::push_text(&mut out, namespace);
    out.push_str(",\"Name\":");
    json::push_text(&mut out, name);
    if let Some(kind) = kind {
        out.push_str(",\"Kind\":");
        json::push_text(&mut out, kind);
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, workspace_path: Option<&str>) -> ObjectKey {
        ObjectKey {
            cluster: "c1".to_owned(),
            workspace_path: workspace_path.map(str::to_owned),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
        }
    }

    #[test]
    fn hashes_are_those_of_the_contract() {
        let labels = key("shop", None).labels();
        assert_eq!(labels[NAME_HASH], "ca84d1343b96baa8137c943ed1860e522cacb238");
        assert_eq!(
            key("shop", None).state_secret("demo.example.org/v1", "Shop"),
            "obj-state-c1-a289215689dfccd88099"
        );
        assert_eq!(
            state_key("c1", "shop", "web"),
            "1de03ff62146c31b983c725ba52f1706cff00986"
        );
        assert_ne!(
            state_key_of_kind("c1", "shop", "web", "Secret"),
            state_key_of_kind("c1", "shop", "web", "ConfigMap")
        );
        let key = |to: &str| state_key_of_pair("c1", [["", "secrets", "shop", "web"], ["", "secrets", "c1", to]]);
        assert_ne!(key("x"), key("y"));
    }

    #[test]
    fn a_copy_leads_back_to_its_object() {
        for (namespace, path) in [("shop", None), ("", None), ("shop", Some("root:org"))] {
            let key = key(namespace, path);
            let copy = json!({"metadata": {"labels": key.labels(), "annotations": key.annotations()}});
            assert_eq!(ObjectKey::of_copy(&copy), Some(key));
        }
        for metadata in [
            json!({}),
            json!({"labels": {CLUSTER: "c1"}}),
            json!({"annotations": {NAME: "web"}}),
            json!({"labels": {CLUSTER: ""}, "annotations": {NAME: "web"}}),
        ] {
            assert_eq!(ObjectKey::of_copy(&json!({"metadata": metadata})), None);
        }
    }
}
