//! The two sides of the syncer: the ids by which all that is known of a server is kept, and their names in flags, logs
//! and errors.

use std::fmt;

use kube_lite::Cluster;

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The mailbox workspace (or any API server) that holds the configs and the desired objects.
    Hub,
    /// The workload cluster.
    Edge,
}

impl Side {
    /// The side whose server this is: it has the side's name.
    pub fn of(cluster: &Cluster) -> Self {
        if cluster.name() == Self::Edge.word() {
            Self::Edge
        } else {
            Self::Hub
        }
    }

    /// The name of it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Edge => "edge",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
