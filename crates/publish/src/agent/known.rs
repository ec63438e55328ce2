//! What is known of one object: of the primary in its workspace, and of its copy.

use kube_lite::ObjectName;
use tokio::time::Instant;

use super::watched::Meant;
use crate::sides::{Primary, Side};
use crate::turn::{Copied, Last};

/// What is known of an object in a workspace.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Known {
    /// Where it is shown, if it is there.
    pub(super) primary: Option<Shown>,
    /// Its copy, if there is one.
    pub(super) copy: Option<Copied>,
    /// How many say that they are its copy.
    pub(super) copies: Copies,
    /// By which rules it is meant, by the labels of the copy, once that was heard of.
    pub(super) meant: Option<Meant>,
    /// It is its turn.
    pub(super) is_taken: bool,
    /// The list of copies that is being read has named that.
    pub(super) is_copy_listed: bool,
    /// Its copy was said to be gone since its turn began: the pass that is under way may end with one that lost its marks.
    pub(super) is_copy_lost: bool,
    /// It is not in sync, as far as is known.
    pub(super) is_due: bool,
    /// It is to have a turn though neither it nor its copy has changed.
    pub(super) is_forced: bool,
    /// Nothing of the agent's belongs to it, as its last pass has found or seen to.
    pub(super) is_free: bool,
    /// What it was when it was last in sync.
    pub(super) last: Option<Last>,
    /// The versions of both when they were in sync.
    pub(super) settled: Option<Versions>,
    /// What belongs to it may come until then, and nobody says so.
    pub(super) again: Option<Instant>,
    /// How many turns in a row it had for that alone.
    pub(super) looks: u32,
}

/// How many objects say that they are the copy of a primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Copies {
    /// One at most, as far as was heard.
    #[default]
    One,
    /// Another one was heard of too.
    Several,
    /// The same, and since then a pass has begun, which finds out which one it is.
    Looked,
}

/// How far a primary is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Far,
    /// Somebody has deleted it.
    Near,
    /// It is there no longer, though its copy is, or may be.
    Lost,
}

/// Where a primary is shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) shard: Side,
    pub(super) workspace: u32,
    /// Its version, as it was heard of.
    pub(super) version: u64,
    /// By which rules it is meant, by its own labels.
    pub(super) meant: Meant,
    pub(super) end: End,
    /// It had its turn.
    pub(super) is_tried: bool,
    /// The list that is being read has named it.
    pub(super) is_listed: bool,
}

impl Shown {
    /// The primary that is shown, with this name, by this route.
    pub(super) fn primary(&self, route: u32, name: &ObjectName) -> Primary {
        Primary {
            route,
            workspace: self.workspace,
            sides: [Side::Service, self.shard],
            name: name.clone(),
        }
    }

    /// True if this is where a primary is.
    pub(super) fn is(&self, primary: &Primary) -> bool {
        self.shard == primary.shard() && self.workspace == primary.workspace
    }
}

/// What is read of a primary when it is heard of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Its version.
    pub(super) version: u64,
    /// By which rules it is meant.
    pub(super) meant: Meant,
    /// Somebody has deleted it.
    pub(super) is_ending: bool,
}

/// The versions of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) primary: u64,
    pub(super) copy: u64,
}

impl Known {
    /// Both are as they were left.
    pub(super) fn is_in_sync(&self) -> bool {
        let (Some(shown), Some(copy), Some(settled)) = (&self.primary, &self.copy, self.settled) else {
            return false;
        };
        // A version that is no number says nothing.
        let is_known = settled.primary != 0 && settled.copy != 0;
        is_known && settled.primary == shown.version && settled.copy == copy.version
    }

    /// Its copy may just be created.
    pub(super) fn is_being_placed(&self) -> bool {
        self.is_taken && self.copy.is_none()
    }

    pub(super) fn turns_due(&mut self, route: u32, name: &ObjectName) -> Option<Primary> {
        let shown = self.primary.as_ref()?;
        self.is_due = true;
        Some(shown.primary(route, name))
    }
}
