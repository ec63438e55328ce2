//! What is read of kcp's own objects, and where they are.

use kube_lite::{Error, ResourceType};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The annotation by which an object says in which workspace it is.
pub(crate) const CLUSTER: &str = "kcp.io/cluster";
/// The annotation by which a workspace says its path.
pub(crate) const PATH: &str = "kcp.io/path";

/// Where the virtual workspaces of an export are: one URL a shard.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct EndpointSlice {
    #[serde(default)]
    pub(crate) spec: SliceSpec,
    #[serde(default)]
    status: SliceStatus,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct SliceSpec {
    #[serde(default)]
    pub(crate) export: ExportReference,
}

/// An APIExport.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ExportReference {
    /// The workspace; empty for that of the slice.
    #[serde(default)]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
struct SliceStatus {
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Default, Deserialize)]
struct Endpoint {
    #[serde(default)]
    url: String,
}

/// What is read of an export to find its virtual workspaces, if no slice does that.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Export {
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(default)]
    status: ExportStatus,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportStatus {
    #[serde(default)]
    virtual_workspaces: Vec<Endpoint>,
}

impl EndpointSlice {
    /// The URLs, without a slash at the end.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        urls(&self.status.endpoints)
    }
}

impl Export {
    /// The same, of servers that have no slices.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        urls(&self.status.virtual_workspaces)
    }
}

fn urls(endpoints: &[Endpoint]) -> impl Iterator<Item = &str> {
    let urls = endpoints.iter().map(|endpoint| endpoint.url.trim_end_matches('/'));
    urls.filter(|url| !url.is_empty())
}

/// A consumer's decision to have the types of an export.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Binding {
    #[serde(default)]
    status: BindingStatus,
}

#[derive(Debug, Default, Deserialize)]
struct BindingStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
struct Condition {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
}

impl Binding {
    /// True once the types are there.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}

pub(crate) fn slices() -> ResourceType {
    let names = [
        "apis.kcp.io",
        "v1alpha1",
        "apiexportendpointslices",
        "APIExportEndpointSlice",
    ];
    ResourceType::new(names, false)
}

pub(crate) fn exports() -> ResourceType {
    ResourceType::new(["apis.kcp.io", "v1alpha1", "apiexports", "APIExport"], false)
}

pub(crate) fn schemas() -> ResourceType {
    let names = ["apis.kcp.io", "v1alpha1", "apiresourceschemas", "APIResourceSchema"];
    ResourceType::new(names, false)
}

pub(crate) fn bindings() -> ResourceType {
    ResourceType::new(["apis.kcp.io", "v1alpha1", "apibindings", "APIBinding"], false)
}

pub(crate) fn logical_clusters() -> ResourceType {
    ResourceType::new(["core.kcp.io", "v1alpha1", "logicalclusters", "LogicalCluster"], false)
}

pub(crate) fn published_resources() -> ResourceType {
    let names = [
        "syncagent.kcp.io",
        "v1alpha1",
        "publishedresources",
        "PublishedResource",
    ];
    ResourceType::new(names, false)
}

/// True if what was read has the form of an object, and is nested deeper than the agent reads.
pub(crate) fn is_too_deep(error: &Error) -> bool {
    matches!(error, Error::BadAnswer(words) if words.starts_with("recursion limit exceeded"))
}

/// An object, if it has the form that it should have.
pub(crate) fn parsed<T: DeserializeOwned>(object: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(error.to_string()))
}
