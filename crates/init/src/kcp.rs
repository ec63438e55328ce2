//! What is read of kcp's own objects, and where they are.

use kube_lite::{Error, ObjectName, ResourceType};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(crate) use crate::kinds::CLUSTER;
use crate::kinds::Metadata;

/// The annotation by which a workspace says its path.
pub(crate) const PATH: &str = "kcp.io/path";

/// What every virtual workspace for initializers has in its URL.
const INITIALIZING: &str = "/initializingworkspaces/";

/// A type of workspaces.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkspaceType {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: WorkspaceTypeSpec,
    #[serde(default)]
    status: WorkspaceTypeStatus,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct WorkspaceTypeSpec {
    /// Workspaces of the type wait for its initializer.
    #[serde(default)]
    pub(crate) initializer: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkspaceTypeStatus {
    #[serde(default)]
    virtual_workspaces: Vec<VirtualWorkspace>,
}

#[derive(Debug, Deserialize)]
struct VirtualWorkspace {
    #[serde(default)]
    url: String,
    /// Absent on servers before 0.30.
    #[serde(default, rename = "type")]
    purpose: String,
}

impl WorkspaceType {
    /// The name of its initializer, if the server says in which workspace the type is.
    pub(crate) fn initializer(&self) -> Option<String> {
        let cluster = self.metadata.cluster()?;
        Some(format!("{cluster}:{}", self.metadata.name))
    }

    /// Where the workspaces that wait for it are found: one URL a shard.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        let all = self.status.virtual_workspaces.iter();
        let initializing =
            all.filter(|at| matches!(&*at.purpose, "" | "initializing") && at.url.contains(INITIALIZING));
        initializing.map(|at| at.url.trim_end_matches('/'))
    }
}

/// A workspace as the server that keeps it sees it.
#[derive(Debug, Deserialize)]
pub(crate) struct LogicalCluster {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    status: LogicalClusterStatus,
}

#[derive(Debug, Default, Deserialize)]
struct LogicalClusterStatus {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    initializers: Vec<String>,
}

impl LogicalCluster {
    /// At which place of its list the initializer stands, if the workspace waits for it.
    pub(crate) fn waits_for(&self, initializer: &str) -> Option<usize> {
        let all = self.status.initializers.iter();
        let place = all.clone().position(|name| name == initializer);
        place.filter(|_| self.status.phase == "Initializing")
    }

    /// Its full path.
    pub(crate) fn path(&self) -> Option<&str> {
        self.metadata.annotations.get(PATH).map(String::as_str)
    }
}

/// The one object of its type in a workspace.
pub(crate) fn logical_cluster(cluster: &str) -> ObjectName {
    ObjectName::in_workspace(cluster, "", "cluster")
}

pub(crate) fn logical_clusters() -> ResourceType {
    ResourceType::new(["core.kcp.io", "v1alpha1", "logicalclusters", "LogicalCluster"], false)
}

pub(crate) fn workspace_types() -> ResourceType {
    ResourceType::new(["tenancy.kcp.io", "v1alpha1", "workspacetypes", "WorkspaceType"], false)
}

pub(crate) fn init_targets() -> ResourceType {
    ResourceType::new(
        ["initialization.kcp.io", "v1alpha1", "inittargets", "InitTarget"],
        false,
    )
}

pub(crate) fn init_templates() -> ResourceType {
    ResourceType::new(
        ["initialization.kcp.io", "v1alpha1", "inittemplates", "InitTemplate"],
        false,
    )
}

/// An object, if it has the form that it should have.
pub(crate) fn parsed<T: DeserializeOwned>(object: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(error.to_string()))
}
