//! What is known of one object.

use std::time::Duration;

use tokio::time::Instant;

use super::ListEpoch;
use super::permits::Held;
use super::states::{LeftOpen, News, Origin, Permit, Reported, Retirement, Trace, Work};
use crate::model::contention::Contention;
use crate::model::link_status::LinkStatus;
use crate::sync::job::Seen;
use crate::sync::ownership::CopyState;

/// What ties a copy to its origin: what is known of both, of the work on them, and of their status. Hashes are 0 where nothing
/// is known.
#[derive(Debug)]
pub(in crate::model) struct Link {
    pub(super) origin: Origin,
    /// The version of the origin that its side reported last, or at which it reported its deletion; 0 if unknown.
    pub(in crate::model) origin_version: u64,
    /// [`origin_hash`](crate::sync::ownership::origin_hash) of the origin, as last seen; 0 if it has no UID.
    pub(in crate::model) origin_uid: u32,
    /// The list of copies that named it last; 0 if there is no copy.
    pub(super) copy_list: ListEpoch,
    /// Hash of what the copy is to be, as the origin was last seen.
    pub(in crate::model) wanted: u64,
    /// The `wanted` that was last settled: applied, or refused by the copies' side.
    pub(in crate::model) settled: u64,
    /// The marks of the copy as our last write left it.
    pub(super) written: u64,
    /// The copy as last seen.
    pub(in crate::model) seen: Seen,
    pub(super) trace: Trace,
    pub(super) work: Work,
    /// Whether the copy may be deleted, once its origin is gone.
    pub(super) permit: Permit,
    pub(super) reported: Reported,
    /// The copy had to keep what its origin has dropped when it was last written.
    pub(super) keeps_more: bool,
    /// Its status on both sides, where it has one.
    pub(in crate::model) status: Option<Box<LinkStatus>>,
    /// The contention with others that change or delete the copy.
    pub(super) contention: Option<Box<Contention>>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            origin: Origin::Unknown,
            origin_version: 0,
            origin_uid: 0,
            copy_list: 0,
            wanted: 0,
            settled: 0,
            written: 0,
            seen: Seen::ABSENT,
            trace: Trace::Seen,
            work: Work::Idle(LeftOpen::Nothing),
            permit: Permit::Needed,
            reported: Reported::Nothing,
            keeps_more: false,
            status: None,
            contention: None,
        }
    }
}

impl Link {
    /// The origin's side has reported what it wants; 0 for nothing.
    pub(super) fn origin_reports(&mut self, list: ListEpoch, wanted: u64) {
        self.is_to_want(wanted);
        self.origin_is(News::NamedBy(list));
    }

    /// The origin's side has reported that it is not there.
    pub(super) fn leaves_origin(&mut self) {
        self.is_to_want(0);
        self.settled = 0;
        self.origin_is(News::Gone);
    }

    /// What the origin wants has been reported: a worker that has the object may know less.
    pub(super) fn is_to_want(&mut self, wanted: u64) {
        self.wants(wanted);
        self.reported = self.reported.and_origin();
    }

    /// The origin wants this, as far as is known now. A Job that is another one has not finished, and what was shown in a dry
    /// run was about what it wanted then.
    pub(super) fn wants(&mut self, wanted: u64) {
        if (self.is_finished() || self.is_shown()) && self.wanted != wanted {
            self.trace = Trace::Seen;
        }
        if let Some(contention) = &mut self.contention
            && self.wanted != wanted
        {
            contention.ends_wait();
        }
        self.wanted = wanted;
    }

    /// Applies what is reported of the origin.
    pub(super) fn origin_is(&mut self, news: News) {
        self.origin = self.origin.after(news);
        if !self.is_retiring() {
            self.permit = Permit::Needed;
        }
    }

    /// True if the copy is to be deleted, and what is held of its type includes it.
    pub(super) fn is_held(&self, held: Held) -> bool {
        match held {
            Held::Nothing => false,
            Held::WithoutPermit => self.is_retiring() && self.permit == Permit::Needed,
            Held::All => self.is_retiring(),
        }
    }

    /// The list of origins that named it last; 0 if there is no origin.
    pub(in crate::model) fn origin_list(&self) -> ListEpoch {
        self.origin.list()
    }

    /// True if its origin has to be asked for: nothing has reported it, though a list should have named it.
    pub(in crate::model) fn is_unverified(&self) -> bool {
        self.origin == Origin::Unverified
    }

    /// True if its origin is gone and the copy still has to be handled.
    pub(super) fn is_retiring(&self) -> bool {
        self.origin.is_retiring() && !self.is_to_be_released()
    }

    /// True if our marks are on what its side keeps for itself.
    pub(super) fn is_to_be_released(&self) -> bool {
        self.seen.copy.is_to_be_released()
    }

    /// True if there is a copy of ours that is to be deleted or released.
    pub(in crate::model) fn is_pending_delete(&self) -> bool {
        self.is_retiring() && self.has_ours()
    }

    /// True if there is an origin, or it is not known what follows from there being none.
    pub(super) fn has_open_origin(&self) -> bool {
        !matches!(self.origin, Origin::Unknown | Origin::Absent(Retirement::Done))
    }

    /// True if it is proved that there is no origin, and a worker has handled the copy: later lists of origins change
    /// nothing.
    pub(super) fn is_seen_to(&self) -> bool {
        self.origin == Origin::Absent(Retirement::Done)
    }

    /// True if it is news that this list of origins did not name it. The list may have passed the place of an object
    /// that was selected since; whatever reads that object will report it.
    pub(super) fn awaits(&self, list: ListEpoch) -> bool {
        use Retirement::{Done, Due};
        self.origin != Origin::Named(list) && !matches!(self.origin, Origin::Absent(Due | Done)) && !self.is_unread()
    }

    /// True if it proves nothing that this list did not name it, since the list may have passed its place before it was
    /// selected. What an earlier list said does not count any more then, so that a worker which finds no origin is
    /// believed.
    pub(super) fn is_passed_by(&self, list: ListEpoch) -> bool {
        self.is_unread() && self.origin != Origin::Named(list)
    }

    /// True if a worker has it.
    pub(super) fn is_busy(&self) -> bool {
        self.work.is_running()
    }

    /// True if its origin is a Job that has finished: it needs no copy any more.
    pub(in crate::model) fn is_finished(&self) -> bool {
        self.trace == Trace::NotNeeded
    }

    /// True if the copies' side said that the copy is gone: perhaps it has only lost its label.
    pub(in crate::model) fn is_lost(&self) -> bool {
        self.trace == Trace::Lost
    }

    /// True if we have asked for the end of the copy, and it is still there.
    pub(super) fn ends(&self) -> bool {
        self.trace == Trace::Ends
    }

    /// True if a dry run has shown what would be done.
    pub(super) fn is_shown(&self) -> bool {
        self.trace == Trace::Shown
    }

    /// The list of copies that named it last.
    pub(in crate::model) fn copy_list(&self) -> ListEpoch {
        self.copy_list
    }

    /// True if a copy of ours is there, as far as the copies' side has reported.
    pub(super) fn has_ours(&self) -> bool {
        self.seen.copy.state == CopyState::Ours
    }

    /// True if its copy says that it is from another cluster than this one.
    pub(super) fn is_from_another(&self, cluster: u32) -> bool {
        self.seen.copy.cluster != 0 && self.seen.copy.cluster != cluster
    }

    pub(super) fn has_copy(&self) -> bool {
        self.seen.copy.state != CopyState::Absent
    }

    /// True if the copy was made, or perhaps is being made, from another origin than the one with this hash.
    pub(super) fn is_of_another(&self, origin: u32) -> bool {
        let of = match self.seen.copy.state {
            CopyState::Ours => self.seen.copy.origin,
            CopyState::Absent if self.is_busy() || self.needs_read() => self.origin_uid,
            _ => 0,
        };
        origin != 0 && of != 0 && of != origin
    }

    /// True if the last try has left something open.
    pub(super) fn has_open_try(&self) -> bool {
        self.work.left_open() != LeftOpen::Nothing
    }

    /// A copy may be there that was not reported, or a write may have taken effect.
    pub(super) fn mark_unsure(&mut self) {
        self.work = self.work.with(LeftOpen::Unsure);
    }

    /// True if a worker has to read the copies' side before anything else.
    pub(in crate::model) fn needs_read(&self) -> bool {
        self.is_lost() || self.work.left_open() == LeftOpen::Unsure
    }

    /// True if there is a copy, or may be: a worker may be making one, or it has only lost its label.
    pub(super) fn may_have_copy(&self) -> bool {
        self.has_copy() || self.has_open_try() || self.is_busy() || self.is_lost()
    }

    /// True if a copy of ours is there, or may be.
    pub(super) fn may_have_ours(&self) -> bool {
        self.has_ours() || self.has_open_try() || self.is_lost()
    }

    /// True if a copy of ours is there, or a worker has to find out whether there is.
    pub(super) fn is_ours_or_open(&self) -> bool {
        self.has_ours() || self.is_busy() || self.needs_worker()
    }

    pub(super) fn is_orphan(&self) -> bool {
        // One that is being deleted will be gone anyway.
        self.origin == Origin::Unknown
            && self.wanted == 0
            && self.has_ours()
            && !self.is_busy()
            && !self.seen.copy.terminating
            && !self.is_to_be_released()
    }

    /// True if its origin is gone, unknown or selected by nothing, and it has a copy of which it is not known whether
    /// it is gone or has only lost its label.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_lost() && self.wanted == 0 && self.has_open_origin()
    }

    /// True if a worker has something to do for it.
    pub(super) fn needs_worker(&self) -> bool {
        let to_be_asked_for = (self.is_retiring() || self.is_unverified()) && self.may_have_ours();
        self.wanted != 0 && !self.is_synced() || to_be_asked_for || self.is_hidden() || self.is_to_be_released()
    }

    /// True if there is nothing to do: the copy was brought to what its origin wants, nobody has changed it since, and
    /// no write without an answer may have changed it.
    pub(super) fn is_synced(&self) -> bool {
        let is_settled =
            self.wanted != 0 && self.wanted == self.settled && !self.has_open_try() && !self.seen.copy.kept;
        is_settled && (self.is_finished() || self.is_shown() || self.has_copy() && self.written != 0 && !self.drifted())
    }

    /// The same, and its copy stays.
    pub(in crate::model) fn is_in_sync(&self) -> bool {
        self.is_synced() && !self.has_to_end()
    }

    /// True if the delete of its copy waits.
    pub(in crate::model) fn waits_for_hold(&self, held: Held) -> bool {
        self.is_held(held) && self.may_have_ours()
    }

    /// True if the copy is being deleted, and another one has to take its place. There is nothing to do until it is
    /// gone.
    pub(super) fn has_to_end(&self) -> bool {
        self.wanted != 0 && self.seen.copy.terminating
    }

    /// True if somebody else has changed or deleted a copy that its origin wants.
    pub(super) fn is_disturbed(&self) -> bool {
        self.wanted != 0 && !self.is_synced() && (self.drifted() || self.is_lost())
    }

    /// How long a worker has to wait with what somebody else keeps changing or deleting.
    pub(in crate::model) fn correction_wait(&self, now: Instant) -> Option<Duration> {
        self.contention.as_ref()?.wait(now).filter(|_| !self.is_synced())
    }

    /// True if somebody else changed the copy since our last write.
    pub(super) fn drifted(&self) -> bool {
        self.written != 0 && self.seen.hash != 0 && self.seen.hash != self.written
    }
}
