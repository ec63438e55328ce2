//! What can be wrong with the access data of a side, in words that say what to correct.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use kube::config::{InClusterError, KubeconfigError};

/// Why the access data of a side are not usable. All of these need a person: give up and show the message.
#[derive(Debug)]
pub enum AccessError {
    /// The kubeconfig file is missing or cannot be read.
    KubeconfigUnreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a kubeconfig.
    NotAKubeconfig {
        /// The file.
        path: PathBuf,
        /// The parser's words, without values from the file.
        words: String,
    },
    /// The context that was asked for is not in the file.
    UnknownContext {
        /// The file.
        path: PathBuf,
        /// The context that was asked for.
        context: String,
        /// The contexts in the file.
        known: Vec<String>,
    },
    /// No context was asked for and the file names none as current.
    NoCurrentContext {
        /// The file.
        path: PathBuf,
        /// The contexts in the file.
        known: Vec<String>,
    },
    /// The context names a cluster or user that the file does not have.
    MissingEntry {
        /// The file.
        path: PathBuf,
        /// The context.
        context: String,
        /// `cluster` or `user`.
        kind: &'static str,
        /// The entry's name.
        name: String,
    },
    /// A field of the kubeconfig has a value that cannot be used.
    BadField {
        /// The name of the field, as in the file.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A file that the configuration names cannot be read.
    FileUnreadable {
        /// The field that names it.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// In-cluster access was asked for, but this process does not run in a pod.
    NotInPod {
        /// The environment variable that is missing.
        variable: &'static str,
    },
    /// The pod's service account cannot be used.
    InCluster(InClusterError),
    /// kube refuses the configuration for a reason that is not foreseen here.
    Refused(KubeconfigError),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KubeconfigUnreadable { path, .. } => {
                write!(f, "cannot read kubeconfig {}", path.display())
            }
            Self::NotAKubeconfig { path, words } => {
                write!(f, "{} is not a kubeconfig: {words}", path.display())
            }
            Self::UnknownContext { path, context, known } => {
                write!(
                    f,
                    "no context {context:?} in {}, which has {}",
                    path.display(),
                    List(known)
                )
            }
            Self::NoCurrentContext { path, known } => {
                let known = List(known);
                write!(
                    f,
                    "no context is chosen and {} has no current-context, only {known}",
                    path.display()
                )
            }
            Self::MissingEntry {
                path,
                context,
                kind,
                name,
            } => {
                write!(
                    f,
                    "context {context:?} names {kind} {name:?}, which {} does not have",
                    path.display()
                )
            }
            Self::BadField { field, why } => write!(f, "bad {field}: {why}"),
            Self::FileUnreadable { field, path, .. } => {
                write!(f, "cannot read {field} file {}", path.display())
            }
            Self::NotInPod { variable } => {
                write!(
                    f,
                    "--to-kubeconfig is not given and this is not a pod: {variable} is not set"
                )
            }
            Self::InCluster(_) => f.write_str("cannot use the service account of this pod"),
            Self::Refused(_) => f.write_str("cannot use the kubeconfig"),
        }
    }
}

impl Error for AccessError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::KubeconfigUnreadable { source, .. } | Self::FileUnreadable { source, .. } => Some(source),
            Self::InCluster(source) => Some(source),
            Self::Refused(source) => Some(source),
            _ => None,
        }
    }
}

/// Names for a message: `contexts "a", "b"` or `no contexts`.
struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no contexts"),
            [one] => write!(f, "context {one:?}"),
            [first, rest @ ..] => {
                write!(f, "contexts {first:?}")?;
                rest.iter().try_for_each(|name| write!(f, ", {name:?}"))
            }
        }
    }
}
