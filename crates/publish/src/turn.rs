//! What is known of an object when it is its turn.

use std::collections::BTreeSet;
use std::rc::Rc;

use bytes::Bytes;
use driver::queue::Payload;
use kube_lite::ObjectName;

/// What is known of an object when it is its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Its copy, if there is one.
    pub(crate) copy: Option<Copied>,
    /// No object of which it is the copy was seen.
    pub(crate) is_unseen: bool,
    /// Several objects say that they are its copy.
    pub(crate) has_several: bool,
    /// What it was when it was last in sync.
    pub(crate) last: Option<Last>,
    /// The version of the copy that it was in sync with; 0 if it was not.
    pub(crate) settled: u64,
    /// What belongs to it.
    pub(crate) uses: OwnUses,
}

/// What an object was when it was in sync, in a few bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    /// Its UID.
    pub(crate) uid: Rc<str>,
    /// What was wanted of its copy.
    pub(crate) state: u64,
    /// The status of its copy.
    pub(crate) status: u64,
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
    /// It had a turn that has found out.
    pub(crate) is_known: bool,
    /// All other primaries of the workspace had a turn. Only where something is to be let go.
    pub(crate) are_all_known: bool,
}

/// What belongs to a primary, as a turn has found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundUses {
    /// All of it.
    pub(crate) all: BTreeSet<Use>,
    /// What of it belongs to it no longer, and is to be let go.
    pub(crate) left: BTreeSet<Use>,
}

/// A copy, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Its namespace and name.
    pub(crate) name: ObjectName,
    /// Its version.
    pub(crate) version: u64,
}
