//! The servers that there are, each by the id of its side.

use std::rc::Rc;

use kube_lite::Cluster;
use tokio::time::Instant;

use super::Moment;
use crate::few::Few;
use crate::source::Mode;

/// A side that is open.
#[derive(Clone)]
pub struct Opened {
    /// Its server.
    pub server: Rc<Cluster>,
    /// How its sources find changes.
    pub mode: Mode,
}

/// The sides that are open. Cheap to clone: the servers are shared.
#[derive(Clone)]
pub struct Sides<S>(Few<S, Opened>);

impl<S: Copy + Ord> Sides<S> {
    /// These sides.
    pub fn new(sides: impl IntoIterator<Item = (S, Opened)>) -> Self {
        Self(sides.into_iter().collect())
    }

    /// What a role sees of them now.
    pub fn moment(&self) -> Moment<S> {
        let contact = |(side, opened): (S, &Opened)| (side, opened.server.standing());
        Moment {
            now: Instant::now(),
            contacts: self.0.iter().map(contact).collect(),
        }
    }

    pub(super) fn get(&self, side: S) -> Option<&Opened> {
        self.0.get(side)
    }

    pub(super) fn open(&mut self, side: S, opened: Opened) {
        self.0.insert(side, opened);
    }

    /// False if it was not open.
    pub(super) fn close(&mut self, side: S) -> bool {
        self.0.remove(side).is_some()
    }
}
