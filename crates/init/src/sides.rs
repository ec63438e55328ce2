//! Which servers there are, and who waits at them.

use std::rc::Rc;

use driver::queue::{Payload, QueueKey};

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
pub(crate) enum Location {
    /// A workspace of kcp, by its path or id.
    Workspace(Rc<str>),
    /// A URL that kcp has given.
    Url(Rc<str>),
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
