//! The kinds of the group `initialization.kcp.io`.

use std::collections::BTreeMap;

use kube_lite::ObjectName;
use serde::{Deserialize, Serialize};

/// The annotation by which an object says in which workspace it is.
pub(crate) const CLUSTER: &str = "kcp.io/cluster";

/// The version of both kinds.
pub const API_VERSION: &str = "initialization.kcp.io/v1alpha1";

/// Which workspace type is served, and from which sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitTarget {
    /// Its name, and the workspace that it is in.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: TargetSpec,
}

/// What an InitTarget says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TargetStatus {
    /// The generation of the target that this is about.
    pub(crate) observed_generation: u64,
    /// How many workspaces wait for its initializer.
    pub(crate) waiting_workspaces: usize,
    pub(crate) conditions: Vec<Condition>,
}

/// A condition, as the conventions of the API have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) observed_generation: u64,
    pub(crate) last_transition_time: String,
}

/// A template that targets name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitTemplate {
    /// Its name, and the workspace that it is in.
    pub metadata: Metadata,
    /// What it is.
    pub spec: TemplateSpec,
}

/// What is read of an object's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Tells it from another one of its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// With `kcp.io/cluster`, the id of the workspace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What an InitTarget asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// The type whose workspaces are initialized.
    pub workspace_type_ref: WorkspaceTypeRef,
    /// What is created in them, in this order.
    pub sources: Vec<Source>,
}

/// A WorkspaceType.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTypeRef {
    /// A workspace's path or cluster id; empty for the target's own workspace.
    pub path: String,
    /// Its name.
    pub name: String,
}

/// Where objects come from. The API takes one without any known source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// An InitTemplate in the target's workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRef>,
}

/// An InitTemplate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// Its name.
    pub name: String,
}

/// What an InitTemplate consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// The text of a template.
    pub template: String,
}

impl Metadata {
    /// The id of the workspace that the object is in, if the server says so.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.annotations.get(CLUSTER).map(String::as_str)
    }
}

impl InitTarget {
    /// Its workspace and name.
    pub(crate) fn object_name(&self) -> ObjectName {
        ObjectName::in_workspace(self.metadata.cluster().unwrap_or_default(), "", &self.metadata.name)
    }
}
