//! Lines about changes: one for each of the first, and for all others a sum now and then. Copies that are deleted have
//! lines of their own, which those that are made cannot use up, and so have those that somebody else has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_lite::logging::LogReason;
use tokio::time::Instant;

use crate::side::Side;

/// Lines that a burst may have before it is summed up: so many about deletes, about drift, and about all else.
const LINES: u32 = 20;
/// How long changes count as one burst. Later changes have lines of their own again.
const BURST: Duration = Duration::from_secs(60);

/// What has happened, as it is logged: words and reason.
pub(super) type Word = (&'static str, LogReason);

/// The burst that is under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Changes {
    begin: Option<Instant>,
    lines: Lines,
    /// What has happened without a line of its own.
    unlogged: BTreeMap<(Side, Word), u32>,
    /// A sum was logged already; the next one is logged at the end.
    summed: bool,
}

/// Lines that the burst has had.
#[derive(Debug, Default)]
struct Lines {
    deletes: u32,
    drifts: u32,
    others: u32,
}

impl Lines {
    fn about(&mut self, reason: LogReason) -> &mut u32 {
        match reason {
            LogReason::ObjectDeleted | LogReason::ObjectReleased | LogReason::ObjectReplaced => &mut self.deletes,
            LogReason::CopyDrifted => &mut self.drifts,
            _ => &mut self.others,
        }
    }
}

impl Changes {
    /// Counts a change. True if it has a line of its own.
    pub(super) fn count(&mut self, side: Side, word: Word, now: Instant) -> bool {
        if self.end().is_some_and(|end| end <= now) && self.unlogged.is_empty() {
            *self = Self::default();
        }
        self.begin.get_or_insert(now);
        let lines = self.lines.about(word.1);
        if *lines < LINES {
            *lines += 1;
            return true;
        }
        *self.unlogged.entry((side, word)).or_default() += 1;
        false
    }

    /// When there is a sum to be logged at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.end().filter(|_| !self.unlogged.is_empty())
    }

    /// The sum, if it is time for one: when the syncer is idle for the first time, and at the end of the burst.
    pub(super) fn sum(&mut self, idle: bool, now: Instant) -> BTreeMap<(Side, Word), u32> {
        if self.unlogged.is_empty() {
            return BTreeMap::new();
        }
        if self.due().is_some_and(|due| due <= now) {
            return std::mem::take(self).unlogged;
        }
        if !idle || self.summed {
            return BTreeMap::new();
        }
        self.summed = true;
        std::mem::take(&mut self.unlogged)
    }

    /// The sum, whenever it is: the syncer ends.
    pub(super) fn rest(&mut self) -> BTreeMap<(Side, Word), u32> {
        std::mem::take(self).unlogged
    }

    fn end(&self) -> Option<Instant> {
        self.begin.map(|begin| begin + BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: Word = ("created", LogReason::ObjectCreated);
    const DELETED: Word = ("deleted", LogReason::ObjectDeleted);

    fn logged(changes: &mut Changes, count: u32, now: Instant) -> usize {
        (0..count).filter(|_| changes.count(Side::Edge, CREATED, now)).count()
    }

    #[test]
    fn a_burst_has_few_lines_and_a_sum_as_soon_as_there_is_rest() {
        let (mut changes, now) = (Changes::default(), Instant::now());
        assert_eq!(logged(&mut changes, 100, now), LINES as usize);
        assert!(changes.sum(false, now).is_empty());
        assert_eq!(changes.sum(true, now), BTreeMap::from([((Side::Edge, CREATED), 80)]));
        assert!(changes.sum(true, now).is_empty());
    }

    #[test]
    fn deletes_have_lines_though_much_was_made_before_and_the_rest_is_summed_up_at_the_end() {
        let (mut changes, now) = (Changes::default(), Instant::now());
        logged(&mut changes, 100, now);
        let is_logged = (0..30).map(|_| changes.count(Side::Hub, DELETED, now));
        assert_eq!(is_logged.filter(|is| *is).count(), LINES as usize);
        let rest = [((Side::Hub, DELETED), 10), ((Side::Edge, CREATED), 80)];
        assert_eq!(changes.rest(), rest.into());
        assert!(changes.rest().is_empty());
    }

    #[test]
    fn changes_that_never_end_have_few_lines_too() {
        let (mut changes, start) = (Changes::default(), Instant::now());
        let (mut lines, mut sums, mut total) = (0, 0, 0);
        for second in 0..600 {
            let now = start + Duration::from_secs(second);
            lines += logged(&mut changes, 10, now);
            let sum = changes.sum(true, now);
            sums += usize::from(!sum.is_empty());
            total += sum.values().sum::<u32>();
        }
        assert!(lines <= 10 * LINES as usize && sums <= 20, "{lines} lines, {sums} sums");
        let unlogged = changes.unlogged.values().sum::<u32>();
        assert_eq!(lines + (total + unlogged) as usize, 6000);
    }

    #[test]
    fn a_sum_is_due_at_the_end_of_the_burst_also_without_rest() {
        let (mut changes, now) = (Changes::default(), Instant::now());
        logged(&mut changes, LINES, now);
        assert_eq!(changes.due(), None);
        logged(&mut changes, 1, now);
        assert_eq!(changes.due(), Some(now + BURST));
        assert_eq!(changes.sum(false, now + BURST).len(), 1);
        assert_eq!(logged(&mut changes, 1, now + BURST), 1);
    }
}
