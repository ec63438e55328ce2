//! What is known of an object when it is its turn.

use kube_lite::ObjectName;

/// What is known of an object when it is its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Its copy, if there is one.
    pub(crate) copy: Option<Copied>,
    /// What was wanted when it was last in sync, in a few bits.
    pub(crate) state: Option<u64>,
    /// The version of the copy that it was in sync with.
    pub(crate) settled: Option<u64>,
}

/// A copy, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Its namespace and name.
    pub(crate) name: ObjectName,
    /// Its version.
    pub(crate) version: u64,
}
