//! The two directions in which objects are synced.

use std::fmt;

use crate::side::Side;

/// In which direction an object is synced. Its origin is what people change; its copy is what the syncer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Downsync: from hub to edge.
    Down,
    /// Upsync: from edge to hub.
    Up,
}

impl Direction {
    /// The direction whose origins are on this side.
    pub fn from(side: Side) -> Self {
        match side {
            Side::Hub => Self::Down,
            Side::Edge => Self::Up,
        }
    }

    /// The opposite one.
    #[must_use]
    pub fn other(self) -> Self {
        Self::from(self.copy())
    }

    /// The side of the origin.
    pub fn origin(self) -> Side {
        match self {
            Self::Down => Side::Hub,
            Self::Up => Side::Edge,
        }
    }

    /// The side of the copy.
    pub fn copy(self) -> Side {
        match self {
            Self::Down => Side::Edge,
            Self::Up => Side::Hub,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "downsync",
            Self::Up => "upsync",
        })
    }
}
