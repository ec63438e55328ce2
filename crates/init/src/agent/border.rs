//! What passes between the agent and the driver: what is read, and what is done.

use std::rc::Rc;

use driver::Priority;
use driver::events::Record;
use kube_lite::{Error, ObjectName};

use crate::fill::{Filled, Job, Released, Trouble};
use crate::kinds::{InitTarget, TargetStatus};
use crate::sides::{Key, Side};

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

/// What is to be done.
pub(crate) enum Request {
    /// Create in a workspace what its targets want.
    Fill(Key, Job),
    /// Take the initializer off a workspace in which all is there. It stands at this place of the list.
    Release(Key, Rc<str>, usize),
    /// Write down for people, at a target, why it is not served.
    Record(Record),
    /// Read the templates of a target, as they are after so many changes.
    Examine(Rc<InitTarget>, u64),
    /// Write the status of this target, which has this UID.
    WriteStatus(ObjectName, String, TargetStatus),
}

/// What came of it.
pub(crate) enum Answer {
    /// How far a workspace has come.
    Filled(Key, Filled),
    /// Whether the initializer is off.
    Released(Key, Result<Released, Error>),
    /// Whether it is written down.
    Recorded(Result<(), Error>),
    /// What is wrong with the templates of a target, if something is.
    Examined(ObjectName, u64, Option<Trouble>),
    /// Whether the status of a target is written, and what it is then.
    StatusWritten(ObjectName, Result<TargetStatus, Error>),
}
