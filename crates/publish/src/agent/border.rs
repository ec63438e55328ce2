//! What passes between the agent and the driver: what is read, and what is done.

use std::rc::Rc;

use driver::Priority;

use super::watched::Rule;
use crate::publishing::{ExportJob, Exported, PublishJob};
use crate::route::Served;
use crate::sides::{Primary, Side};
use crate::sync::{Cleared, Job, Synced};
use crate::trouble::Stop;
use driver::events::Record;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Feed {
    /// The PublishedResources.
    Published,
    /// The names and versions of the CRDs of the service cluster.
    Definitions,
    /// The endpoint slice.
    Slice,
    /// The export.
    Export,
    /// Who has bound the export, at one shard.
    Bindings(u32),
    /// The objects of consumers by one route, at one shard.
    Primaries(u32, u32),
    /// Their copies.
    Copies(u32),
    /// What is related to them on the service cluster, by a route and a rule of it.
    Related(u32, Rule),
    /// The same at one shard.
    RelatedAt(u32, Rule, u32),
}

impl Feed {
    /// By which route, if it is about one.
    pub(crate) fn route(self) -> Option<u32> {
        match self {
            Self::Primaries(route, _) | Self::Copies(route) | Self::Related(route, _) | Self::RelatedAt(route, ..) => {
                Some(route)
            }
            Self::Published | Self::Definitions | Self::Slice | Self::Export | Self::Bindings(_) => None,
        }
    }
}

impl driver::Feed<Side> for Feed {
    fn side(self) -> Side {
        match self {
            Self::Published | Self::Definitions | Self::Copies(_) | Self::Related(..) => Side::Service,
            Self::Slice => Side::Slices,
            Self::Export => Side::Export,
            Self::Bindings(shard) | Self::Primaries(_, shard) | Self::RelatedAt(_, _, shard) => Side::Shard(shard),
        }
    }

    fn priority(self) -> Priority {
        match self {
            Self::Published | Self::Slice | Self::Export => Priority::First,
            Self::Definitions | Self::Bindings(_) => Priority::Second,
            Self::Primaries(..) | Self::Copies(_) | Self::Related(..) | Self::RelatedAt(..) => Priority::IfRoom,
        }
    }
}

/// What is to be done.
pub(crate) enum Request {
    /// Make a schema of a PublishedResource.
    Publish(Rc<str>, PublishJob),
    /// Put schemas and claims into the export.
    Export(ExportJob),
    /// Bring an object and its copy in sync.
    Sync(Primary, Box<Job>),
    /// Delete a namespace of this agent, if it is empty.
    Clear(Rc<str>, Rc<str>),
    /// Write an Event.
    Record(Side, Record),
    /// Forget what is known of a workspace. There is no answer.
    Forget(Box<str>),
}

/// What came of it.
pub(crate) enum Answer {
    /// Whether there is a schema.
    Published(Rc<str>, Result<Served, Stop>),
    /// Whether the export has what it should have.
    Exported(Result<Exported, Stop>),
    /// How far an object has come.
    Synced(Primary, Synced),
    /// The same of one that has taken too long: what it has asked for last may still be done.
    Ended(Primary, Synced),
    /// What has become of a namespace.
    Cleared(Rc<str>, Result<Cleared, Stop>),
    /// Whether an Event is written.
    Recorded(Result<(), kube_lite::Error>),
}
