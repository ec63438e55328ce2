//! What is found out before the agent begins: the slice and the export that the flags name, and where they are.

use std::fmt;
use std::rc::Rc;

use http::Uri;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::Value;

use crate::agent::is_absent;
use crate::kcp::{self, EndpointSlice, parsed};
use crate::servers::Kcp;

/// What the flags name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An APIExportEndpointSlice, which leads to the export.
    Slice(String),
    /// An APIExport.
    Export(String),
}

impl Reference {
    /// The name of the slice, which an export shares with the one that kcp makes of it.
    pub(crate) fn slice(&self) -> &str {
        let (Self::Slice(name) | Self::Export(name)) = self;
        name
    }

    fn flag(&self) -> &'static str {
        match self {
            Self::Slice(_) => "--apiexportendpointslice-ref",
            Self::Export(_) => "--apiexport-ref",
        }
    }
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The workspace of the slice.
    pub(crate) slices: String,
    /// The slice; none on servers that have none, or do not show it.
    pub(crate) slice: Option<Rc<str>>,
    /// The workspace of the export.
    pub(crate) workspace: String,
    /// The export.
    pub(crate) export: Rc<str>,
}

/// Why the agent does not begin.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The kubeconfig is about no workspace.
    NoWorkspace(String),
    /// Something could not be read.
    Unread {
        /// What.
        what: String,
        /// The flag that names it.
        flag: &'static str,
        /// The server's words.
        error: Error,
    },
    /// A slice without an export.
    NoExport(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorkspace(url) => write!(
                f,
                "the server {url:?} of --kcp-kubeconfig is no workspace: its URL must end with /clusters/ and the path or id of one"
            ),
            Self::Unread { what, flag, error } => {
                let advice = match error.status().map_or(0, |status| status.code) {
                    403 => "allow the agent's user to get it, and access to the workspace",
                    404 => "create it, or correct the flag; and check the workspace of --kcp-kubeconfig",
                    _ => "check the server and the credentials of --kcp-kubeconfig",
                };
                write!(f, "{what} of {flag} cannot be read: {error}; {advice}")
            }
            Self::NoExport(slice) => write!(f, "APIExportEndpointSlice {slice} names no export"),
        }
    }
}

impl std::error::Error for StartError {}

/// The workspace that a URL is about: what follows `/clusters/`, once.
pub(crate) fn workspace_of(url: &Uri) -> Result<String, StartError> {
    let mut parts = url.path().split('/').filter(|part| !part.is_empty());
    let found = parts.find(|part| *part == "clusters").and_then(|_| parts.next());
    match found {
        Some(workspace) if parts.next().is_none() => Ok(workspace.to_owned()),
        _ => Err(StartError::NoWorkspace(url.to_string())),
    }
}

/// Finds the slice and the export.
pub(crate) async fn find(kcp: &Kcp, workspace: String, reference: &Reference) -> Result<Found, StartError> {
    let at = kcp.workspace("kcp", &workspace);
    let (slice, workspace_of_export, export) = match reference {
        Reference::Slice(name) => {
            let found: EndpointSlice = read(&at, &kcp::slices(), name, reference).await?;
            let export = found.spec.export;
            if export.name.is_empty() {
                return Err(StartError::NoExport(name.clone()));
            }
            let path = if export.path.is_empty() {
                workspace.clone()
            } else {
                export.path
            };
            (Some(name.as_str().into()), path, export.name)
        }
        Reference::Export(name) => {
            let slice: Result<Value, StartError> = read(&at, &kcp::slices(), name, reference).await;
            let slice = match slice {
                Ok(_) => Some(name.as_str().into()),
                Err(StartError::Unread { error, .. }) if is_absent(&error) => None,
                Err(other) => return Err(other),
            };
            (slice, workspace.clone(), name.clone())
        }
    };
    let of_export = kcp.workspace("kcp", &workspace_of_export);
    let _: Value = read(&of_export, &kcp::exports(), &export, reference).await?;
    Ok(Found {
        slices: workspace,
        slice,
        workspace: workspace_of_export,
        export: export.into(),
    })
}

async fn read<T: serde::de::DeserializeOwned>(
    at: &Cluster,
    resource: &ResourceType,
    name: &str,
    reference: &Reference,
) -> Result<T, StartError> {
    let found = at.get(resource, &ObjectName::new("", name), Content::Full).await;
    found
        .and_then(|found| parsed(&found))
        .map_err(|error| StartError::Unread {
            what: format!("{} {name}", resource.kind),
            flag: reference.flag(),
            error,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_what_the_url_ends_with() {
        for (url, expected) in [
            ("https://kcp:6443/clusters/root:org", Some("root:org")),
            ("https://kcp/clusters/2abc/", Some("2abc")),
            ("https://kcp/proxy/clusters/root", Some("root")),
            ("https://kcp:6443", None),
            ("https://kcp/clusters/", None),
            ("https://kcp/clusters/a/clusters/b", None),
            ("https://kcp/services/apiexport/a/b", None),
        ] {
            let found = workspace_of(&url.parse().unwrap()).ok();
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }
}
