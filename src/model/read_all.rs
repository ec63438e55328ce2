//! Whether all has been read that is to be known before something is done.

use super::Model;
use super::timers::Timer;

impl Model {
    /// True once every type has been listed on both sides, or cannot be.
    pub(super) fn all_listed(&self) -> bool {
        let mut states = self.types.values();
        states.all(|state| {
            state.has_listed_copies(&self.sources) && (!state.copies_listed || state.has_listed_origins(&self.sources))
        })
    }

    /// True once all that configs select and all copies of earlier runs have been listed, or cannot be.
    pub(super) fn has_read_all(&self) -> bool {
        let is_planned = self.selecting.are_known() && !self.selecting.is_in_turns() && self.record.saved.is_some();
        is_planned && self.selecting.unknown.group_versions.is_empty() && self.all_listed()
    }

    /// True once all that configs select has been read, and nothing is planned. A type that waits until the record names it
    /// is not among those that are read.
    pub(super) fn knows_all(&self) -> bool {
        !self.timers.is_set(Timer::Plan) && self.record.is_up_to_date() && self.has_read_all()
    }
}
