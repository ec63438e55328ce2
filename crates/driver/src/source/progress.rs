//! How far a watch has come, and which of our own writes it has yet to report.

use std::collections::BTreeMap;

/// Bookmarks below the version of an own write after which the write counts as lost: API servers send one a minute.
const LATE: u32 = 2;

/// How far a watch has come, and which of our own writes it has yet to report.
///
/// A watch reports every change, in the order of versions. One that goes past an own write without reporting it is that of a
/// server that has lost the write: it was restored from a backup, or lost its last writes in a power cut, while the watch
/// lagged behind. The watch itself resumes as if nothing had happened, at a version that the server still has.
///
/// Versions are numbers here; 0 stands for one that is none, and proves nothing.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The highest version that the server has reported.
    reached: u64,
    /// Own writes above that, by version: how many bookmarks below it have come since.
    awaited: BTreeMap<u64, u32>,
}

impl Progress {
    /// The highest version that the server has reported.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// A server has answered a write of ours with this version, of an object that the watch covers.
    pub(super) fn is_written(&mut self, version: u64) {
        if version > self.reached {
            self.awaited.entry(version).or_default();
        }
    }

    /// The watch has reported a change at this version. True if it has passed over a write of ours.
    #[must_use]
    pub(super) fn reports(&mut self, version: u64) -> bool {
        self.awaited.remove(&version);
        self.passes(version)
    }

    /// The watch has reported that nothing is to come up to this version. True if it has passed over a write of ours, or has
    /// not come as far for too long.
    #[must_use]
    pub(super) fn is_bookmarked(&mut self, version: u64) -> bool {
        let has_passed = self.passes(version);
        let mut is_late = false;
        for bookmarks in self.awaited.values_mut().filter(|_| version != 0) {
            *bookmarks += 1;
            is_late |= *bookmarks >= LATE;
        }
        has_passed || is_late
    }

    /// A complete list at this version covers everything up to it. Of what was written on a history that the server has
    /// left, nothing is to come. Gives how far the watch had come before.
    pub(super) fn is_listed(&mut self, version: u64) -> u64 {
        let before = std::mem::replace(&mut self.reached, version);
        self.awaited
            .retain(|&written, _| before <= version && version < written);
        before
    }

    fn passes(&mut self, version: u64) -> bool {
        self.reached = self.reached.max(version);
        let passed_over = self.awaited.first_key_value().map(|(&first, _)| first);
        passed_over.is_some_and(|first| first <= version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_awaited_until_the_watch_reports_it() {
        let mut progress = Progress::default();
        progress.is_listed(10);
        progress.is_written(12);
        assert!(!progress.reports(11) && !progress.reports(12) && !progress.reports(15));
        progress.is_written(14);
        assert!(!progress.reports(16), "it was reported before its answer had arrived");
        assert_eq!(progress.reached(), 16);
    }

    #[test]
    fn a_watch_that_goes_past_a_write_without_reporting_it_is_of_a_server_that_has_lost_it() {
        for by_bookmark in [false, true] {
            let mut progress = Progress::default();
            progress.is_listed(10);
            progress.is_written(12);
            let is_lost = if by_bookmark {
                progress.is_bookmarked(12)
            } else {
                progress.reports(13)
            };
            assert!(is_lost, "{by_bookmark}");
        }
    }

    #[test]
    fn a_write_that_the_server_does_not_reach_in_minutes_is_lost() {
        let mut progress = Progress::default();
        progress.is_listed(10);
        progress.is_written(100);
        assert!(!progress.is_bookmarked(0), "versions that are no numbers prove nothing");
        assert!(!progress.is_bookmarked(11), "the watch may lag behind");
        assert!(!progress.reports(12));
        assert!(progress.is_bookmarked(12));
    }

    #[test]
    fn a_list_covers_what_was_written_before_it() {
        let mut progress = Progress::default();
        progress.is_written(12);
        progress.is_written(14);
        progress.is_listed(13);
        assert!(
            progress.is_bookmarked(14),
            "what was written after the list is still awaited"
        );
        progress.is_listed(11);
        assert!(!progress.is_bookmarked(20), "the list was of an older history");
        assert!(!progress.is_bookmarked(21));
    }
}
