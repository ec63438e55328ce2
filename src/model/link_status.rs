//! What is known of the status of one object.

use tokio::time::{Duration, Instant};

use super::contention::{self, Contention};
use crate::side::Side;
use crate::sync::status_return::Returned;

/// What is known of the status of one object. Hashes are 0 where there is no status.
#[derive(Debug, Default)]
pub(super) struct LinkStatus {
    /// At the edge; absent if not known.
    edge: Option<u64>,
    /// At the hub; absent if not known.
    pub(super) hub: Option<u64>,
    /// The resource version of the hub object in which `hub` was seen.
    hub_version: u64,
    written: Option<Written>,
    /// When that was, or when the hub refused one.
    last: Option<Instant>,
    /// A worker has it.
    under_way: bool,
    /// The edge has reported it since a worker took it, so the worker may know less.
    reported: bool,
    /// The side at which the last try failed.
    failed_at: Option<Side>,
    /// The contention with others that write it at the hub.
    contention: Option<Box<Contention>>,
}

/// Our last write.
#[derive(Debug)]
struct Written {
    /// What the edge had.
    status: u64,
    /// The version of the hub object then.
    version: u64,
    /// What the hub made of it: a schema may leave out parts.
    kept: Option<u64>,
}

impl LinkStatus {
    /// The edge has reported the object; `None` if it reported its metadata alone.
    pub(super) fn edge_reports(&mut self, status: Option<u64>) {
        if let Some(contention) = &mut self.contention
            && let (Some(before), Some(status)) = (self.edge, status)
            && before != status
        {
            contention.ends_wait();
        }
        self.edge = status;
        self.reported = true;
    }

    /// True if the edge has reported that there is one.
    pub(super) fn is_at_edge(&self) -> bool {
        self.edge.is_some_and(|status| status != 0)
    }

    /// A worker takes it. `jitter` is in 0..1.
    pub(super) fn write_begins(&mut self, now: Instant, jitter: impl FnOnce() -> f64) {
        self.reported = false;
        self.under_way = true;
        let corrects = self.is_contested();
        contention::write_begins(&mut self.contention, corrects, now, jitter);
    }

    /// The hub has reported the whole object.
    pub(super) fn hub_reports(&mut self, status: u64, version: u64) {
        if version < self.hub_version {
            // Restored from a backup: what was written to it is no longer there.
            self.written = None;
        }
        self.hub = Some(status);
        self.hub_version = version;
        if let Some(written) = &mut self.written
            && written.version == version
        {
            written.kept = Some(status);
        }
    }

    pub(super) fn write_failed(&mut self, at: Side, now: Instant) {
        self.under_way = false;
        self.failed_at = Some(at);
        self.last = Some(now);
    }

    pub(super) fn write_ended(&mut self, returned: Returned, now: Instant) {
        self.under_way = false;
        self.failed_at = None;
        if let Some(contention) = &mut self.contention {
            contention.correction_ends();
        }
        match returned {
            Returned::Written { status, version } => {
                self.edge = if self.reported { self.edge } else { Some(status) };
                self.last = Some(now);
                let kept = self.hub.filter(|_| self.hub_version == version);
                self.written = Some(Written { status, version, kept });
            }
            // As if the hub had made nothing of it: only another status, or a change at the hub, is news.
            Returned::Would { status } => {
                self.edge = if self.reported { self.edge } else { Some(status) };
                self.written = Some(Written {
                    status,
                    version: self.hub_version,
                    kept: self.hub,
                });
            }
            Returned::Equal(status) if !self.reported => self.edge = Some(status),
            Returned::Equal(_) | Returned::Gone | Returned::NotOurs | Returned::Another | Returned::NoSubresource => {}
        }
    }

    /// True if a write has changed nothing at the hub: a type that has got a subresource for its status since ignores what
    /// is written in the object itself.
    pub(super) fn was_ignored(&self, returned: Returned) -> bool {
        matches!(returned, Returned::Written { version, .. } if version != 0 && version == self.hub_version)
    }

    /// It is written elsewhere from now on.
    pub(super) fn drop_written(&mut self) {
        self.written = None;
    }

    /// True if there is something to write and nobody writes it: what comes meanwhile is considered when the write
    /// ends, so that the interval is kept. The `last` status of a copy that is gone cannot be read any more, so it is
    /// kept in memory.
    pub(super) fn wants_worker(&self, last: bool) -> bool {
        self.is_due() && (last || !self.under_way)
    }

    /// True if the hub does not have the status of the edge, or one of the two is not known.
    pub(super) fn is_due(&self) -> bool {
        let Some(edge) = self.edge else { return true };
        if edge == 0 || self.hub == Some(edge) {
            return false;
        }
        !self.written.as_ref().is_some_and(|written| {
            let kept = self.hub_version <= written.version || written.kept.is_some() && written.kept == self.hub;
            written.status == edge && kept
        })
    }

    /// True if the hub has this one, as it has reported or answered.
    pub(super) fn is_at_hub(&self, status: u64) -> bool {
        let is_written = self.written.as_ref().is_some_and(|written| written.status == status);
        is_written || self.hub == Some(status)
    }

    /// True if the hub's status was ours and somebody else has changed it.
    pub(super) fn is_contested(&self) -> bool {
        let ours = |written: &Written| Some(written.status) == self.edge && self.hub_version > written.version;
        self.written.as_ref().is_some_and(ours) && self.is_due()
    }

    /// True if the hub has something else than what we wrote, and that is no older.
    pub(super) fn is_overwritten(&self) -> bool {
        let differs = |written: &Written| {
            let kept = written.kept.unwrap_or(written.status);
            self.hub_version > written.version && self.hub != Some(kept) && self.hub != Some(written.status)
        };
        self.written.as_ref().is_some_and(differs)
    }

    /// The syncer of another sync target has written over it.
    pub(super) fn meets_rival(&mut self, now: Instant) {
        self.contention.get_or_insert_default().meets_rival(now);
    }

    /// The same, and that syncer keeps to what it has written.
    pub(super) fn gives_way(&mut self, now: Instant, jitter: f64) {
        self.written = None;
        self.contention.get_or_insert_default().gives_way(now, jitter);
    }

    /// True if the syncer of another sync target has lately written over it.
    pub(super) fn has_rival(&self, now: Instant) -> bool {
        let contention = self.contention.as_ref();
        contention.is_some_and(|contention| contention.has_rival(now))
    }

    /// True if it could not be returned because of that side.
    pub(super) fn fails_at(&self, side: Side) -> bool {
        self.failed_at == Some(side) && self.is_due()
    }

    /// How long the next write has to wait: for the interval, and for what somebody else keeps changing.
    pub(super) fn wait(&self, interval: Duration, now: Instant) -> Option<Duration> {
        let next = self.last.map(|last| last + interval).filter(|&next| next > now);
        let contention = self.contention.as_ref().and_then(|contention| contention.wait(now));
        next.map(|next| next - now).max(contention)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(status: u64, version: u64) -> Returned {
        Returned::Written { status, version }
    }

    #[test]
    fn a_status_that_a_dry_run_has_shown_is_done_until_it_or_the_hub_changes() {
        let now = Instant::now();
        let mut record = LinkStatus::default();
        record.edge_reports(Some(5));
        record.hub_reports(4, 10);
        assert!(record.is_due());
        record.write_begins(now, || 0.0);
        record.write_ended(Returned::Would { status: 5 }, now);
        assert!(!record.is_due() && !record.is_contested() && !record.is_overwritten());
        record.hub_reports(4, 11);
        assert!(!record.is_due(), "the hub has the same status at another version");
        record.hub_reports(3, 12);
        assert!(record.is_due());
        record.write_ended(Returned::Would { status: 5 }, now);
        record.edge_reports(Some(6));
        assert!(record.is_due());
    }

    #[test]
    fn a_status_goes_up_when_it_differs_and_only_then() {
        let now = Instant::now();
        let mut record = LinkStatus::default();
        assert!(record.is_due(), "nothing is known");
        record.edge_reports(Some(0));
        assert!(!record.is_due(), "the edge has none");
        record.hub_reports(5, 1);
        record.edge_reports(Some(5));
        assert!(!record.is_due(), "equal");
        record.edge_reports(Some(6));
        assert!(record.is_due() && !record.is_contested());
        record.write_ended(written(6, 2), now);
        assert!(!record.is_due(), "written, though the hub has not reported it yet");
        record.hub_reports(6, 2);
        assert!(!record.is_due());
        record.hub_reports(7, 3);
        assert!(record.is_due() && record.is_contested(), "somebody else wrote it");
        record.edge_reports(Some(8));
        assert!(
            record.is_due() && !record.is_contested(),
            "the edge has another one now"
        );
        record.edge_reports(None);
        assert!(record.is_due(), "it has to be read");
    }

    #[test]
    fn that_the_hub_had_a_status_says_nothing_of_what_the_edge_has_reported_meanwhile() {
        let mut record = LinkStatus::default();
        record.hub_reports(6, 1);
        record.edge_reports(Some(6));
        record.write_begins(Instant::now(), || 0.0);
        record.edge_reports(Some(7));
        record.write_ended(Returned::Equal(6), Instant::now());
        assert!(record.is_due());
    }

    #[test]
    fn what_a_schema_leaves_out_is_not_written_again() {
        let now = Instant::now();
        for reported_first in [true, false] {
            let mut record = LinkStatus::default();
            record.edge_reports(Some(6));
            record.hub_reports(0, 1);
            if reported_first {
                record.hub_reports(60, 2);
            }
            record.write_ended(written(6, 2), now);
            if !reported_first {
                record.hub_reports(60, 2);
            }
            assert!(!record.is_due());
            record.hub_reports(60, 3);
            assert!(!record.is_due(), "an edit of something else");
            record.hub_reports(60, 3);
            assert!(!record.is_due(), "another list of the same");
            record.hub_reports(61, 4);
            assert!(record.is_due());
        }
    }

    #[test]
    fn a_write_was_ignored_if_it_has_given_the_object_no_new_version() {
        let mut record = LinkStatus::default();
        record.hub_reports(5, 7);
        assert!(record.was_ignored(written(6, 7)));
        assert!(!record.was_ignored(written(6, 8)));
        assert!(!record.was_ignored(Returned::Equal(5)));
        assert!(!LinkStatus::default().was_ignored(written(6, 0)), "no version is known");
    }

    #[test]
    fn what_the_edge_tells_while_a_write_is_under_way_is_not_forgotten() {
        let mut record = LinkStatus::default();
        record.edge_reports(Some(6));
        record.write_begins(Instant::now(), || 0.0);
        record.edge_reports(Some(7));
        assert!(!record.wants_worker(false), "the mode begins when the write ends");
        let now = Instant::now();
        record.write_ended(written(6, 2), now);
        assert!(record.wants_worker(false));
        assert!(record.wait(Duration::from_secs(1), now).is_some());
    }

    #[test]
    fn a_refused_status_keeps_to_the_pace_as_well() {
        let now = Instant::now();
        let mut record = LinkStatus::default();
        record.edge_reports(Some(6));
        record.write_begins(Instant::now(), || 0.0);
        record.write_failed(Side::Hub, now);
        assert!(record.wants_worker(false));
        assert!(record.wait(Duration::from_secs(1), now).is_some());
    }

    #[test]
    fn a_status_fails_until_it_gets_through_or_is_not_due_any_more() {
        let now = Instant::now();
        let mut record = LinkStatus::default();
        record.edge_reports(Some(6));
        record.write_failed(Side::Hub, now);
        assert!(record.fails_at(Side::Hub) && !record.fails_at(Side::Edge));
        record.edge_reports(Some(0));
        assert!(!record.fails_at(Side::Hub), "there is nothing to bring");
        record.edge_reports(Some(7));
        record.write_ended(written(7, 2), now);
        assert!(!record.fails_at(Side::Hub));
    }

    #[test]
    fn a_restored_hub_gets_its_status_again() {
        let mut record = LinkStatus::default();
        record.edge_reports(Some(6));
        record.hub_reports(0, 100);
        record.write_ended(written(6, 101), Instant::now());
        record.hub_reports(6, 101);
        record.hub_reports(0, 50);
        assert!(record.is_due());
    }

    #[test]
    fn a_second_change_waits_for_the_rest_of_the_interval() {
        let now = Instant::now();
        let interval = Duration::from_secs(1);
        let mut record = LinkStatus::default();
        assert_eq!(record.wait(interval, now), None);
        record.write_ended(written(6, 2), now);
        assert_eq!(record.wait(interval, now + interval / 4), Some(interval * 3 / 4));
        assert_eq!(record.wait(interval, now + interval), None);
    }
}
