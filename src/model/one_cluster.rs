//! Hub and edge have to be two: where both kubeconfigs lead to one cluster, its own objects would be marked as copies of
//! themselves. Each side is asked which cluster it is anyway. Nothing is written before both have answered, at the
//! start and after an address has changed.

use std::fmt;

use kube_lite::logging::log_line;

use super::Model;
use super::timers::Timer;
use crate::side::Side;

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

impl OneCluster {
    /// What to do about it.
    pub const ADVICE: &str = "correct --from-kubeconfig or --to-kubeconfig";

    /// What was found, without what to do.
    pub fn found(&self) -> String {
        let Self { uid, hub, edge } = self;
        format!(
            "hub {hub} and edge {edge} are the same cluster, which has the UID {uid}: its own objects would become copies \
             of themselves"
        )
    }
}

impl fmt::Display for OneCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.found(), Self::ADVICE)
    }
}

impl std::error::Error for OneCluster {}

/// Whether hub and edge are two clusters, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clusters {
    /// They have not both been asked.
    #[default]
    Unknown,
    /// They are two, or cannot say.
    Two,
    /// They were two, and both kubeconfigs lead to one cluster now.
    One,
}

impl Clusters {
    /// What follows from who answers at hub and edge, where that is known. `are_asked` says that both have answered, or
    /// will not. `None` ends the program: it was started with one cluster.
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
        self.clusters == Clusters::Two && self.are_asked() && !self.selecting.turns.are_following()
    }

    /// True if heartbeats and statuses may be written to the hub. If both are one cluster and that is the hub, people there
    /// are to know it.
    pub(super) fn may_tell_hub(&self) -> bool {
        let hub = self.sides.identity(Side::Hub);
        let is_hub = self.clusters == Clusters::One
            && self.are_asked()
            && hub.present().is_some_and(|it| Some(it) == hub.expected());
        self.may_write() || is_hub && !self.selecting.turns.are_following()
    }

    fn are_asked(&self) -> bool {
        self.sides.all(|side| side.question.is_settled())
    }

    /// Asks a side that has another address now which cluster it is.
    pub(super) fn notice_moves(&mut self) {
        for &side in &*self.sides.ids() {
            let state = self.sides.of_mut(side);
            if state.question.has_moved(state.contact.moves) {
                self.timers.succeeds(Timer::Identity(side));
                if !self.timers.is_running(Timer::Identity(side)) {
                    self.ask_identity(side);
                }
            }
        }
    }

    /// A side has said which cluster it is. True if they were one cluster and are two again.
    pub(super) fn compare_sides(&mut self) -> Result<bool, OneCluster> {
        let [hub, edge] = [Side::Hub, Side::Edge].map(|side| self.sides.identity(side).present().map(str::to_owned));
        let now = self.clusters.follow(hub.as_deref(), edge.as_deref(), self.are_asked());
        let one = OneCluster {
            uid: hub.unwrap_or_default(),
            hub: self.sides.of(Side::Hub).contact.place.address.clone(),
            edge: self.sides.of(Side::Edge).contact.place.address.clone(),
        };
        let Some(now) = now else { return Err(one) };
        let before = std::mem::replace(&mut self.clusters, now);
        match (before, now) {
            (Clusters::Two, Clusters::One) => {
                self.report.is_one_cluster(&one.found());
                log_line!(
                    Error,
                    SameCluster,
                    "hub and edge are one cluster, nothing is synced as long as this lasts",
                    error = one
                );
            }
            (Clusters::One, Clusters::Two) => {
                self.report.are_two_clusters();
                log_line!(
                    Info,
                    TwoClusters,
                    "hub and edge are two clusters again, syncing continues"
                );
            }
            _ => {}
        }
        Ok((before, now) == (Clusters::One, Clusters::Two))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cluster_is_the_end_at_the_start_and_holds_all_later() {
        let known = |uid: &'static str| (!uid.is_empty()).then_some(uid);
        for (before, hub, edge, are_asked, expected) in [
            (Clusters::Unknown, "", "", false, Some(Clusters::Unknown)),
            (Clusters::Unknown, "a", "", false, Some(Clusters::Unknown)),
            (Clusters::Unknown, "a", "b", true, Some(Clusters::Two)),
            (Clusters::Unknown, "a", "", true, Some(Clusters::Two)),
            (Clusters::Unknown, "", "", true, Some(Clusters::Two)),
            (Clusters::Unknown, "a", "a", true, None),
            (Clusters::Two, "a", "a", true, Some(Clusters::One)),
            (Clusters::One, "a", "a", true, Some(Clusters::One)),
            (Clusters::One, "a", "b", true, Some(Clusters::Two)),
        ] {
            let found = before.follow(known(hub), known(edge), are_asked);
            assert_eq!(found, expected, "{before:?} {hub:?} {edge:?}");
        }
    }
}
