//! Hub and edge have to be two: where both kubeconfigs lead to one cluster, its own objects would be marked as copies of
//! themselves. Each side is asked who it is anyway; nothing is written before both have answered, at the start and after
//! another address has taken the place of one.

use std::fmt;

use super::Model;
use super::timers::Timer;
use crate::cluster::Side;

/// Hub and edge are the same cluster, or the same workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneCluster {
    /// The UID that both have.
    pub uid: String,
    /// The address of the hub.
    pub hub: String,
    /// The address of the edge.
    pub edge: String,
}

impl fmt::Display for OneCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hub {} and edge {} are the same cluster, which has the UID {}: its own objects would become copies of \
             themselves; correct --from-kubeconfig or --to-kubeconfig",
            self.hub, self.edge, self.uid
        )
    }
}

impl std::error::Error for OneCluster {}

/// What is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sides {
    /// They have not both been asked.
    #[default]
    Unknown,
    /// They are two, or cannot tell.
    Two,
    /// They were two, and lead to one cluster now.
    One,
}

impl Sides {
    /// What follows from who answers at hub and edge, where that is known. `are_asked` says that both have answered, or
    /// will not. `None` is the end: the syncer was started with one cluster.
    fn follow(self, hub: Option<&str>, edge: Option<&str>, are_asked: bool) -> Option<Self> {
        let is_one = hub.is_some() && hub == edge;
        match self {
            Self::Unknown if is_one => None,
            Self::Two | Self::One if is_one => Some(Self::One),
            _ if are_asked => Some(Self::Two),
            _ => Some(self),
        }
    }
}

impl Model {
    /// True if something may be written at either side.
    pub(super) fn may_write(&self) -> bool {
        self.sides == Sides::Two && self.are_asked()
    }

    fn are_asked(&self) -> bool {
        [Side::Hub, Side::Edge]
            .into_iter()
            .all(|side| self.guard.questions.are_settled(side))
    }

    /// Asks a side who it is that has another address now.
    pub(super) fn notice_moves(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            let moves = self.contact(side).moves;
            if self.guard.questions.has_moved(side, moves) {
                self.timers.succeeds(Timer::Identity(side));
                if !self.timers.is_running(Timer::Identity(side)) {
                    self.ask_identity(side);
                }
            }
        }
    }

    /// A side has told who it is. True if they were one cluster and are two again.
    pub(super) fn compare_sides(&mut self) -> Result<bool, OneCluster> {
        let [hub, edge] = [Side::Hub, Side::Edge].map(|side| self.identity(side).present().map(str::to_owned));
        let now = self.sides.follow(hub.as_deref(), edge.as_deref(), self.are_asked());
        let one = OneCluster {
            uid: hub.unwrap_or_default(),
            hub: self.contact(Side::Hub).place.address.clone(),
            edge: self.contact(Side::Edge).place.address.clone(),
        };
        let Some(now) = now else { return Err(one) };
        let before = std::mem::replace(&mut self.sides, now);
        match (before, now) {
            (Sides::Two, Sides::One) => log::error!("nothing is synced as long as this lasts error=\"{one}\""),
            (Sides::One, Sides::Two) => log::info!("hub and edge are two clusters again, syncing goes on"),
            _ => {}
        }
        Ok((before, now) == (Sides::One, Sides::Two))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_is_the_end_at_the_start_and_holds_all_later() {
        let known = |uid: &'static str| (!uid.is_empty()).then_some(uid);
        for (before, hub, edge, are_asked, expected) in [
            (Sides::Unknown, "", "", false, Some(Sides::Unknown)),
            (Sides::Unknown, "a", "", false, Some(Sides::Unknown)),
            (Sides::Unknown, "a", "b", true, Some(Sides::Two)),
            (Sides::Unknown, "a", "", true, Some(Sides::Two)),
            (Sides::Unknown, "", "", true, Some(Sides::Two)),
            (Sides::Unknown, "a", "a", true, None),
            (Sides::Two, "a", "a", true, Some(Sides::One)),
            (Sides::One, "a", "a", true, Some(Sides::One)),
            (Sides::One, "a", "b", true, Some(Sides::Two)),
        ] {
            let found = before.follow(known(hub), known(edge), are_asked);
            assert_eq!(found, expected, "{before:?} {hub:?} {edge:?}");
        }
    }
}
