//! What is known of one object.

use super::Generation;
use crate::model::status_record::StatusRecord;
use crate::sync::job::Seen;
use crate::sync::ownership::CopyState;

/// What is known of one object. Hashes are 0 where nothing is known.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, a byte each")]
pub(in crate::model) struct Record {
    /// The list of origins that named it last; 0 if there is no origin.
    pub(in crate::model) origin_list: Generation,
    /// The version of the origin that its side told of last, or at which it said that it went; 0 if unknown.
    pub(in crate::model) origin_version: u64,
    /// The list of copies that named it last; 0 if there is no copy.
    pub(super) copy_list: Generation,
    /// [`origin_hash`](crate::sync::ownership::origin_hash) of the origin, as last seen; 0 if it has no UID.
    pub(super) origin: u32,
    /// Hash of what the origin wants, as last seen.
    pub(in crate::model) wanted: u64,
    /// The `wanted` that was last brought to an end: applied, or refused by the copies' side.
    pub(in crate::model) settled: u64,
    /// The marks of the copy as our last write left it.
    pub(super) written: u64,
    /// The copy as last seen.
    pub(in crate::model) seen: Seen,
    /// What the last try has left open at the copies' side.
    pub(in crate::model) left_open: LeftOpen,
    /// A worker has it. What the copies' side tells meanwhile may be the worker's own write, so it is judged by the outcome.
    pub(super) busy: bool,
    /// The origin's side has told of it since a worker took it, so that the worker may know less.
    pub(super) told: bool,
    /// The copies' side has told of it since a worker took it, so that the worker's answer may be older.
    pub(super) copy_told: bool,
    /// The copies' side said that the copy is gone. It may have lost no more than the label by which it is watched.
    pub(in crate::model) vanished: bool,
    /// Its origin is gone, and its copy has not been seen to.
    pub(in crate::model) retiring: bool,
    /// Its copy has turned up, and nothing has told of its origin since, though a list of origins had begun before: somebody
    /// else has made the copy, perhaps of what is newer than that list. Its origin has to be asked for.
    pub(in crate::model) suspect: bool,
    /// Its status on both sides, where it has one.
    pub(in crate::model) status: Option<Box<StatusRecord>>,
    /// It was found to have no origin, and neither side has told anything new of it since.
    pub(super) missed: bool,
    /// Its origin is a Job that has run to its end: it needs no copy any more.
    pub(in crate::model) finished: bool,
}

/// What a try has left open at the copies' side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::model) enum LeftOpen {
    /// It came to an end.
    Nothing,
    /// It was refused: nothing has changed, and a worker has to see to the object again.
    Refused,
    /// A write may have taken effect without an answer, or there may be what was not told of: a worker looks first.
    Unsure,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            origin_list: 0,
            origin_version: 0,
            origin: 0,
            copy_list: 0,
            wanted: 0,
            settled: 0,
            written: 0,
            seen: Seen::ABSENT,
            left_open: LeftOpen::Nothing,
            busy: false,
            told: false,
            copy_told: false,
            retiring: false,
            suspect: false,
            status: None,
            missed: false,
            vanished: false,
            finished: false,
        }
    }
}

impl Record {
    /// The origin's side has told what it wants; 0 for nothing.
    pub(super) fn origin_tells(&mut self, list: Generation, wanted: u64) {
        self.finished &= self.wanted == wanted;
        self.origin_list = list;
        self.wanted = wanted;
        self.told = true;
        self.is_at_origin();
    }

    /// Its origin is there.
    pub(super) fn is_at_origin(&mut self) {
        self.missed = false;
        self.retiring = false;
        self.suspect = false;
    }

    /// The origin's side has told that it is not there.
    pub(super) fn leaves_origin(&mut self) {
        self.origin_tells(0, 0);
        self.settled = 0;
        self.missed = true;
        self.retiring = true;
    }

    /// The list of copies that named it last.
    pub(in crate::model) fn copy_list(&self) -> Generation {
        self.copy_list
    }

    /// True if a copy of ours is there, as far as the copies' side has told.
    pub(super) fn has_ours(&self) -> bool {
        self.seen.copy.state == CopyState::Ours
    }

    pub(super) fn has_copy(&self) -> bool {
        self.seen.copy.state != CopyState::Absent
    }

    /// True if the last try has not come to an end.
    pub(super) fn has_open_try(&self) -> bool {
        self.left_open != LeftOpen::Nothing
    }

    /// A copy may be there that was not told of, or a write may have taken effect.
    pub(super) fn mark_unsure(&mut self) {
        self.left_open = LeftOpen::Unsure;
    }

    /// True if a worker has to look at the copies' side before anything else.
    pub(in crate::model) fn needs_look(&self) -> bool {
        self.vanished || self.left_open == LeftOpen::Unsure
    }

    /// True if there is a copy, or may be: a worker may be making one, or it has lost no more than its label.
    pub(super) fn may_have_copy(&self) -> bool {
        self.has_copy() || self.has_open_try() || self.busy || self.vanished
    }

    /// True if a copy of ours is there, or may be.
    pub(super) fn may_have_ours(&self) -> bool {
        self.has_ours() || self.has_open_try() || self.vanished
    }

    pub(super) fn is_orphan(&self) -> bool {
        // One that is being deleted goes anyway.
        let judged = self.missed || self.retiring || self.suspect || self.busy || self.seen.copy.terminating;
        self.origin_list == 0 && self.has_ours() && !judged
    }

    /// True if its origin is gone, unknown or selected by nothing, and it has a copy of which it is not known whether it is gone or has
    /// lost no more than its label.
    pub(super) fn is_hidden(&self) -> bool {
        self.vanished && self.wanted == 0 && (self.origin_list != 0 || self.retiring || self.suspect)
    }

    /// True if a worker has something to do for it.
    pub(super) fn needs_worker(&self) -> bool {
        let to_be_asked_for = (self.retiring || self.suspect) && self.may_have_ours();
        self.wanted != 0 && !self.in_step() || to_be_asked_for || self.is_hidden()
    }

    /// True if there is nothing to do: the copy was brought to what its origin wants, nobody has changed it since, and no
    /// write without an answer may have.
    pub(super) fn in_step(&self) -> bool {
        let is_settled = self.wanted != 0 && self.wanted == self.settled && !self.has_open_try();
        is_settled && (self.finished || self.has_copy() && self.written != 0 && !self.drifted())
    }

    /// True if the copy is being deleted, and another one has to take its place. There is nothing to do before that.
    pub(super) fn has_to_end(&self) -> bool {
        self.wanted != 0 && self.seen.copy.terminating
    }

    /// True if somebody else changed the copy since our last write.
    pub(super) fn drifted(&self) -> bool {
        self.written != 0 && self.seen.hash != 0 && self.seen.hash != self.written
    }
}
