//! One table of what a role does at certain times: each thing runs once at a time, and with increasing back-off while
//! it fails.
//!
//! What follows from other facts (the end of a hold, a key's back-off, what is slow) has no row: those facts themselves
//! are queried.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::queue::back_off;

/// One row. One that is not in the table is neither due nor running, and has not failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    due: Option<Instant>,
    is_running: bool,
    /// How often in a row it has failed.
    failures: u32,
}

/// See the module's doc.
#[derive(Debug)]
pub struct Timers<T>(BTreeMap<T, Row>);

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + Ord> Timers<T> {
    /// It is due then, whatever was planned.
    pub fn set(&mut self, timer: T, at: Instant) {
        self.row(timer).due = Some(at);
    }

    /// It is due then, unless it is planned for earlier.
    pub fn set_earlier(&mut self, timer: T, at: Instant) {
        let due = &mut self.row(timer).due;
        *due = Some(due.map_or(at, |due| due.min(at)));
    }

    /// It is due then, unless it is planned already.
    pub fn set_if_idle(&mut self, timer: T, at: Instant) {
        self.row(timer).due.get_or_insert(at);
    }

    /// It is not planned any more.
    pub fn clear(&mut self, timer: T) {
        self.row(timer).due = None;
    }

    /// It is gone, with all that is known of it: what it was about is there no longer.
    pub fn forget(&mut self, timer: T) {
        self.0.remove(&timer);
    }

    /// It has failed once more: again after its back-off. `jitter` is in 0..1.
    pub fn retry(&mut self, timer: T, now: Instant, jitter: f64) {
        let failures = self.fails(timer);
        self.set(timer, now + back_off(failures, jitter));
    }

    /// It has failed once more, which does not plan it; gives how often that is.
    pub fn fails(&mut self, timer: T) -> u32 {
        let row = self.row(timer);
        row.failures = row.failures.saturating_add(1);
        row.failures
    }

    /// It is as if it had not failed.
    pub fn succeeds(&mut self, timer: T) {
        self.row(timer).failures = 0;
    }

    /// It is as if it had failed so often, at least.
    pub fn has_failed(&mut self, timer: T, least: u32) {
        let failures = &mut self.row(timer).failures;
        *failures = least.max(*failures);
    }

    /// True if its time has come. It is then not planned any more.
    pub fn fires(&mut self, timer: T, now: Instant) -> bool {
        let row = self.row(timer);
        !row.is_running && row.due.take_if(|due| *due <= now).is_some()
    }

    /// It runs. False if it did already.
    pub fn starts(&mut self, timer: T) -> bool {
        !std::mem::replace(&mut self.row(timer).is_running, true)
    }

    /// It runs no longer.
    pub fn ends(&mut self, timer: T) {
        self.row(timer).is_running = false;
    }

    /// True if it is planned.
    pub fn is_set(&self, timer: T) -> bool {
        self.get(timer).due.is_some()
    }

    /// True if it runs.
    pub fn is_running(&self, timer: T) -> bool {
        self.get(timer).is_running
    }

    /// True if it is due, or running.
    pub fn is_at_hand(&self, timer: T, now: Instant) -> bool {
        let row = self.get(timer);
        row.is_running || row.due.is_some_and(|due| due <= now)
    }

    /// How often in a row it has failed.
    pub fn failures(&self, timer: T) -> u32 {
        self.get(timer).failures
    }

    /// When the first of those that `may` be done is due.
    pub fn next(&self, may: impl Fn(T) -> bool) -> Option<Instant> {
        let rows = self.0.iter().filter(|(timer, row)| !row.is_running && may(**timer));
        rows.filter_map(|(_, row)| row.due).min()
    }

    fn get(&self, timer: T) -> Row {
        self.0.get(&timer).copied().unwrap_or_default()
    }

    fn row(&mut self, timer: T) -> &mut Row {
        self.0.entry(timer).or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What is done at a certain time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Timer {
        Record,
        Heartbeat,
        Discovery,
    }

    type Timers = super::Timers<Timer>;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_due_fires_once_and_not_while_it_runs() {
        let (now, mut timers) = (Instant::now(), Timers::default());
        assert!(!timers.fires(Timer::Record, now), "nothing is planned");
        timers.set(Timer::Record, now + SECOND);
        assert!(!timers.fires(Timer::Record, now));
        assert!(timers.fires(Timer::Record, now + SECOND));
        assert!(!timers.fires(Timer::Record, now + SECOND), "once");
        assert!(timers.starts(Timer::Record) && !timers.starts(Timer::Record));
        timers.set(Timer::Record, now);
        assert!(!timers.fires(Timer::Record, now) && timers.is_at_hand(Timer::Record, now));
        assert_eq!(timers.next(|_| true), None, "nothing wakes anybody for it");
        timers.ends(Timer::Record);
        assert_eq!(timers.next(|_| true), Some(now));
        assert!(timers.fires(Timer::Record, now));
    }

    #[test]
    fn what_runs_or_is_due_is_at_hand() {
        let (now, timer) = (Instant::now(), Timer::Record);
        let mut timers = Timers::default();
        let is = |timers: &Timers| {
            let at_hand = [now, now + SECOND].map(|at| timers.is_at_hand(timer, at));
            (timers.is_running(timer), at_hand)
        };
        assert_eq!(is(&timers), (false, [false, false]));
        timers.set(timer, now + SECOND);
        assert_eq!(is(&timers), (false, [false, true]));
        assert!(timers.fires(timer, now + SECOND) && timers.starts(timer));
        assert_eq!(is(&timers), (true, [true, true]));
        timers.ends(timer);
        assert_eq!(is(&timers), (false, [false, false]));
    }

    #[test]
    fn plans_are_kept_brought_forward_or_replaced() {
        let (now, timer) = (Instant::now(), Timer::Heartbeat);
        let (early, late) = (now + SECOND, now + 2 * SECOND);
        for (first, set, expected) in [
            (None, Timers::set as fn(&mut Timers, Timer, Instant), early),
            (None, Timers::set_earlier, early),
            (None, Timers::set_if_idle, early),
            (Some(late), Timers::set, early),
            (Some(late), Timers::set_earlier, early),
            (Some(late), Timers::set_if_idle, late),
            (Some(now), Timers::set, early),
            (Some(now), Timers::set_earlier, now),
        ] {
            let mut timers = Timers::default();
            if let Some(first) = first {
                timers.set(timer, first);
            }
            set(&mut timers, timer, early);
            assert_eq!(timers.next(|_| true), Some(expected));
            assert_eq!(timers.next(|other| other != timer), None);
            timers.clear(timer);
            assert!(!timers.is_set(timer));
        }
    }

    #[test]
    fn what_is_forgotten_is_as_if_it_had_never_been_there() {
        let (now, timer, mut timers) = (Instant::now(), Timer::Record, Timers::default());
        timers.set(timer, now);
        timers.fails(timer);
        timers.starts(timer);
        timers.forget(timer);
        assert!(!timers.is_running(timer) && !timers.is_set(timer));
        assert_eq!(timers.failures(timer), 0);
    }

    #[test]
    fn failures_make_it_wait_longer_and_success_forgets_them() {
        let (now, timer, mut timers) = (Instant::now(), Timer::Discovery, Timers::default());
        let mut wait = || {
            timers.retry(timer, now, 1.0);
            timers.next(|_| true).expect("it is planned") - now
        };
        let (first, second) = (wait(), wait());
        assert!(first < second);
        timers.succeeds(timer);
        assert_eq!(timers.failures(timer), 0);
        timers.has_failed(timer, 1);
        timers.has_failed(timer, 0);
        timers.retry(timer, now, 1.0);
        assert_eq!(timers.next(|_| true), Some(now + second));
    }
}
