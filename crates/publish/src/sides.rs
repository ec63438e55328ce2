//! Which servers there are, and whose turn it can be.

use std::rc::Rc;

use driver::queue::QueueKey;
use kube_lite::ObjectName;

use crate::turn::AtHand;

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    /// The cluster that has the types and the copies.
    Service,
    /// The workspace of the endpoint slice.
    Slices,
    /// The workspace of the export.
    Export,
    /// A virtual workspace of the export, by its number.
    Shard(u32),
}

/// Where a virtual workspace is: a URL that kcp has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location(pub(crate) Rc<str>);

/// What is worked on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A PublishedResource becomes a schema.
    Published(Rc<str>),
    /// The export gets the schemas and claims.
    Export,
    /// A primary and its copy.
    Object(Primary),
    /// A namespace on the service cluster that may be empty.
    Namespace(Rc<str>),
}

/// An object in a workspace of kcp.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Primary {
    /// By which rules it is synced.
    pub(crate) route: u32,
    /// The number of its workspace.
    pub(crate) workspace: u32,
    /// The cluster of the copy, and the shard that shows it.
    pub(crate) sides: [Side; 2],
    /// Workspace, namespace and name.
    pub(crate) name: ObjectName,
}

impl Primary {
    /// The shard that shows it.
    pub(crate) fn shard(&self) -> Side {
        self.sides[1]
    }
}

/// What is visited as a whole when keys of it found no room: what is published, or the objects of one workspace by one
/// route, so that no workspace keeps another one waiting.
pub(crate) type Group = Option<(u32, u32)>;

impl QueueKey for Key {
    type Payload = AtHand;
    type Side = Side;
    type Group = Group;
    type Lot = Option<u32>;

    /// The workspace: each gets its share of what is done at once.
    fn lot(&self) -> Option<u32> {
        match self {
            Self::Object(primary) => Some(primary.workspace),
            Self::Published(_) | Self::Export | Self::Namespace(_) => None,
        }
    }

    fn group(&self) -> Group {
        match self {
            Self::Object(primary) => Some((primary.route, primary.workspace)),
            Self::Published(_) | Self::Export | Self::Namespace(_) => None,
        }
    }

    fn needs(&self) -> &[Side] {
        match self {
            Self::Published(_) => &[Side::Service, Side::Export],
            Self::Export => &[Side::Export],
            Self::Object(primary) => &primary.sides,
            Self::Namespace(_) => &[Side::Service],
        }
    }
}
