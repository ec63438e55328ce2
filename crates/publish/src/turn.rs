//! What is known of an object when it is its turn.

use std::collections::BTreeSet;

use bytes::Bytes;
use driver::queue::Payload;
use kube_lite::ObjectName;

/// What is known of an object when it is its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Its copy, if there is one.
    pub(crate) copy: Option<Copied>,
    /// What was wanted when it was last in sync, in a few bits.
    pub(crate) state: Option<u64>,
    /// The version of the copy that it was in sync with; 0 if it was not.
    pub(crate) settled: u64,
    /// What belongs to it.
    pub(crate) uses: OwnUses,
}

/// What was heard of last, so that it need not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    /// The primary.
    Primary(Bytes),
    /// Its copy.
    Copy(Bytes),
}

impl Payload for AtHand {
    fn bytes(&self) -> usize {
        let (Self::Primary(object) | Self::Copy(object)) = self;
        object.len()
    }
}

/// An object that belongs to a primary, at one side, in a few bits.
pub(crate) type Use = u64;

/// What belongs to a primary, as it was at the end of its last turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnUses {
    /// All of it.
    pub(crate) known: BTreeSet<Use>,
    /// What belongs to other primaries too.
    pub(crate) shared: BTreeSet<Use>,
    /// All other primaries of the workspace had a turn.
    pub(crate) are_all_known: bool,
}

/// A copy, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Its namespace and name.
    pub(crate) name: ObjectName,
    /// Its version.
    pub(crate) version: u64,
}
