//! What passes between the agent and the driver: which servers there are, what is read of them, and what is done there.

use std::rc::Rc;

use driver::Priority;
use driver::queue::{Payload, QueueKey};
use kube_lite::{Error, ObjectName};

use crate::fill::{Filled, Job};

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    /// The workspace that has the targets and templates.
    Config,
    /// A workspace that has a type, by the number of who asks for it.
    Type(u32),
    /// A virtual workspace that shows who waits for an initializer, by its number.
    Shard(u32),
}

/// Where a side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A workspace of kcp, by its path or id.
    Workspace(Rc<str>),
    /// A URL that kcp has given.
    Url(Rc<str>),
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// The targets.
    Targets,
    /// The names and versions of the templates.
    Templates,
    /// One type of workspaces.
    Type(u32),
    /// The workspaces that wait for an initializer, at one shard.
    Clusters(u32),
}

impl driver::Feed<Side> for Feed {
    fn side(self) -> Side {
        match self {
            Self::Targets | Self::Templates => Side::Config,
            Self::Type(number) => Side::Type(number),
            Self::Clusters(number) => Side::Shard(number),
        }
    }

    fn priority(self) -> Priority {
        match self {
            Self::Targets | Self::Type(_) => Priority::First,
            Self::Templates | Self::Clusters(_) => Priority::Second,
        }
    }
}

/// A workspace that waits for an initializer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// The shard that shows it.
    pub(crate) shard: Side,
    /// Its id.
    pub(crate) cluster: Rc<str>,
}

/// Nothing is handed to a worker beside the key.
pub(crate) struct Nothing;

impl Payload for Nothing {
    fn bytes(&self) -> usize {
        0
    }
}

impl QueueKey for Key {
    type Payload = Nothing;
    type Side = Side;
    type Group = Side;
    type Lot = ();

    fn lot(&self) {}

    fn group(&self) -> Side {
        self.shard
    }

    fn needs(&self) -> &[Side] {
        std::slice::from_ref(&self.shard)
    }
}

/// What is to be done.
pub(crate) enum Request {
    /// Create in a workspace what its targets want.
    Fill(Key, Job),
    /// Take the initializer off a workspace in which all is there. It stands at this place of the list.
    Release(Key, Rc<str>, usize),
    /// Write down for people, at a target, why it is not served.
    Record(Record),
}

/// Something for people to see at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The target.
    pub(crate) target: ObjectName,
    /// Its UID.
    pub(crate) uid: Rc<str>,
    /// One word.
    pub(crate) reason: &'static str,
    /// What is wrong.
    pub(crate) message: String,
}

/// What came of it.
pub(crate) enum Answer {
    /// How far a workspace has come.
    Filled(Key, Filled),
    /// Whether the initializer is off.
    Released(Key, Result<Released, Error>),
    /// Whether it is written down.
    Recorded(Result<(), Error>),
}

/// What has become of an initializer that was to be taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// It is off, at this version of the workspace.
    At(u64),
    /// It was off already.
    Before,
}
