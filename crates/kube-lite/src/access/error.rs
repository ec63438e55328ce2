//! What can be wrong with the access data of a side, in one form: `hub (SOURCE, cluster "c"): FIELD: WHY`.

use std::error::Error;
use std::fmt;

use super::fields::{CLUSTER_FIELDS, USER_FIELDS};

/// The entry of a kubeconfig that a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// None: the file itself, or the environment.
    None,
    Context,
    Cluster,
    User,
}

/// A field that cannot be used. It needs a person: the caller gives up, or continues with the last configuration, and
/// shows it with its [`AccessPlace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadField {
    entry: Entry,
    /// The name as in the file, or that of an environment variable; empty if it is about the whole entry.
    field: String,
    /// What is wrong with it, without secrets.
    why: String,
}

impl BadField {
    /// An error about a field of a cluster or user. Their names in kube differ from those in the file.
    pub fn new(field: &str, why: impl Into<String>) -> Self {
        let entry = if CLUSTER_FIELDS.iter().any(|(name, _)| *name == field) {
            Entry::Cluster
        } else if USER_FIELDS.iter().any(|(name, _)| *name == field) {
            Entry::User
        } else {
            Entry::None
        };
        Self::of(entry, field, why)
    }

    pub(super) fn of(entry: Entry, field: &str, why: impl Into<String>) -> Self {
        Self {
            entry,
            field: field.to_owned(),
            why: why.into(),
        }
    }
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.why)
    }
}

impl Error for BadField {}

/// Where access data are from: which side, file and entries.
#[derive(Clone, Debug)]
pub struct AccessPlace {
    side: String,
    /// What has named the file.
    source: String,
    pub(super) context: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
}

impl AccessPlace {
    pub(super) fn new(side: &str, source: String) -> Self {
        Self {
            side: side.to_owned(),
            source,
            context: None,
            cluster: None,
            user: None,
        }
    }

    /// The error for a field at this place.
    pub fn error(&self, fault: BadField) -> AccessError {
        AccessError(Box::new((self.clone(), fault)))
    }

    fn entry(&self, entry: Entry) -> Option<(&'static str, &String)> {
        let (kind, name) = match entry {
            Entry::None => return None,
            Entry::Context => ("context", &self.context),
            Entry::Cluster => ("cluster", &self.cluster),
            Entry::User => ("user", &self.user),
        };
        Some(kind).zip(name.as_ref())
    }
}

/// Why the access data of a side are not usable. It needs a person: give up and show the message.
#[derive(Debug)]
pub struct AccessError(Box<(AccessPlace, BadField)>);

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, fault) = &*self.0;
        write!(f, "{} ({}", place.side, place.source)?;
        if let Some((kind, name)) = place.entry(fault.entry) {
            write!(f, ", {kind} {name:?}")?;
        }
        write!(f, "): {fault}")
    }
}

impl Error for AccessError {}
