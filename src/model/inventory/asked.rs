//! Objects that are selected again, whose origins have been there all the time without being wanted: what they want is
//! not known, and nothing will report it, so a worker reads them by their names.

use kube_lite::ObjectName;

use super::{Inventory, Link};

/// In place of the hash of what an origin wants: it has to be read. A real hash with this value would be as rare as any
/// other, and would cost one read.
const UNREAD: u64 = 1;

impl Inventory {
    /// A worker has to read the origin, if there is one.
    pub(in crate::model) fn ask_for(&mut self, name: &ObjectName) {
        let link = self.entry(name);
        link.is_to_want(UNREAD);
        // Only what is selected is known of objects that are not ours.
        if !link.has_ours() {
            link.mark_unsure();
        }
    }

    /// Whether a copy is there has not been reported yet: a worker reads first.
    pub(in crate::model) fn read_first(&mut self, name: &ObjectName) {
        if let Some(link) = self.objects.get_mut(name).filter(|link| !link.has_copy()) {
            link.mark_unsure();
        }
    }
}

impl Link {
    /// True if a worker has to read the origin.
    pub(super) fn is_unread(&self) -> bool {
        self.wanted == UNREAD
    }

    /// The hash that its copy was synced with, if the origin has to be read to know whether it still is; 0 if the copy
    /// is not known to be synced with anything.
    pub(in crate::model) fn unread(&self) -> Option<u64> {
        let undisturbed =
            self.has_ours() && self.written != 0 && !self.drifted() && !self.has_open_try() && !self.is_lost();
        self.is_unread().then_some(if undisturbed { self.settled } else { 0 })
    }
}
