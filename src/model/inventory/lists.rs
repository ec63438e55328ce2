//! What complete lists say of the objects that they do not name.

use driver::source::Covers;
use kube_lite::ObjectName;

use super::states::News;
use super::{Inventory, Link, ListEpoch};

impl Inventory {
    /// Sources begin again, and nothing is queued: whether an origin is gone has to be decided again.
    pub(in crate::model) fn list_again(&mut self) {
        for link in self.objects.values_mut() {
            // No list of copies names one that may have lost its label.
            let is_hidden = link.is_lost();
            link.origin_is(if is_hidden { News::CopyChanged } else { News::LooksAgain });
        }
    }

    /// A list of the origins that `covers` is true for is complete: returns every object with a copy of ours that it
    /// did not name, once. All are pending deletes except the unverified ones, whose copies may be newer than the list.
    pub(in crate::model) fn origins_listed(
        &mut self,
        covers: impl Fn(&ObjectName) -> bool,
        list: ListEpoch,
    ) -> Vec<ObjectName> {
        let mut missing = Vec::new();
        for (name, link) in &mut self.objects {
            if link.is_passed_by(list) && covers(name) {
                link.origin_is(News::PassedBy);
            } else if link.awaits(list) && covers(name) {
                if !link.is_unverified() {
                    link.leaves_origin();
                }
                if link.may_have_ours() || link.is_busy() {
                    missing.push(name.clone());
                }
            }
        }
        self.objects
            .retain(|_, link| link.origin_list() != 0 || link.may_have_copy() || link.is_unread());
        missing.sort_unstable();
        missing
    }

    /// The origins' side has proved that it has no object of the type: returns those with a copy of ours.
    pub(in crate::model) fn origin_has_none(&mut self) -> Vec<ObjectName> {
        let list = self.objects.values().map(Link::origin_list).max().unwrap_or_default();
        self.origins_listed(|_| true, list.wrapping_add(1))
    }

    /// A list of copies is complete at `version`: returns the objects that it did not name and that need a worker.
    ///
    /// A copy that a worker has made since the list was read is not missing, and one that it has changed since is not
    /// as the list has it; both are read once more, since the list may as well be that of a server that was restored
    /// from a backup.
    pub(in crate::model) fn copies_listed(&mut self, list: ListEpoch, covers: Covers, version: u64) -> Vec<ObjectName> {
        let unnamed = |link: &Link| {
            let covered = covers == Covers::Everything || link.seen.labelled;
            link.copy_list != list && link.has_copy() && covered
        };
        let is_older = |link: &Link| {
            let named = link.copy_list == list && link.has_copy();
            named && link.seen.version > version && version != 0 && !link.is_busy()
        };
        let is_missing = |link: &Link| unnamed(link) || is_older(link) || link.is_hidden() && !link.is_busy();
        let mut names = self.names(is_missing);
        names.retain(|name| {
            let link = self.objects.get_mut(name).expect("named above");
            if !link.has_copy() {
                return true;
            }
            if link.seen.version > version {
                link.mark_unsure();
                link.settled = 0;
                return link.wanted != 0 && !link.is_busy();
            }
            self.copy_gone(name, 0)
        });
        names
    }
}
