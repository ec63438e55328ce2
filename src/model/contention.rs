//! How often something is corrected that somebody else keeps changing: at once at first, then ever less often.
//!
//! The wait belongs to what is known of the object, not to what has queued it. So no way into the queue gets around it:
//! a worker is given the object only once the wait is over (`Model::put_off`). Another wish of the origin ends the wait,
//! but what was counted still counts when that is changed back, too.

use std::time::Duration;

use driver::queue::{back_off, spread};
use tokio::time::Instant;

/// So many corrections are made at once.
const PATIENCE: u32 = 3;
/// What needed no correction for so long starts at zero again.
const FORGIVEN: Duration = Duration::from_secs(600);

/// How long whoever gives way waits at first. Doubles each time.
const FIRST_LEAVE: Duration = Duration::from_secs(60);
/// The longest such wait.
const LONGEST_LEAVE: Duration = Duration::from_secs(24 * 3600);

/// How often one copy, or one status, was corrected lately, and when it may be again.
#[derive(Debug, Default)]
pub(super) struct Contention {
    corrections: u32,
    /// How often it was left to somebody else.
    leaves: u32,
    /// It is the syncer of another sync target that changes it.
    has_rival: bool,
    /// There is no further correction before this.
    until: Option<Instant>,
    /// From then on nothing of this counts any more.
    over_at: Option<Instant>,
    /// The last correction has not succeeded yet: further tries of it are not counted.
    under_way: bool,
    /// It was logged.
    logged: bool,
}

/// A worker begins to write what may be contested: it `corrects` what somebody else has changed, or something else is wanted.
/// `jitter` is in 0..1.
pub(super) fn write_begins(
    contention: &mut Option<Box<Contention>>,
    corrects: bool,
    now: Instant,
    jitter: impl FnOnce() -> f64,
) {
    if corrects {
        contention.get_or_insert_default().correction_begins(now, jitter());
    } else if let Some(contention) = contention {
        contention.wish_begins(now, jitter());
    }
}

impl Contention {
    /// A worker begins to correct what somebody else has changed. `jitter` is in 0..1.
    fn correction_begins(&mut self, now: Instant, jitter: f64) {
        if self.under_way {
            return;
        }
        if self.is_over(now) {
            *self = Self::default();
        }
        self.under_way = true;
        self.corrections += 1;
        self.until = wait_after(self.corrections, jitter).map(|wait| now + wait);
        self.over_at = self.over_at.max(Some(now + FORGIVEN));
    }

    /// A worker begins to write something else than before, which nobody has changed yet: when that is changed back, its
    /// correction waits as long as if the wait had not been ended. `jitter` is in 0..1.
    fn wish_begins(&mut self, now: Instant, jitter: f64) {
        if self.until.is_none() && !self.is_over(now) {
            self.until = wait_after(self.corrections, jitter).map(|wait| now + wait);
        }
    }

    /// What was to be corrected is as it is to be.
    pub(super) fn correction_ends(&mut self) {
        self.under_way = false;
    }

    /// The syncer of another sync target has changed it.
    pub(super) fn meets_rival(&mut self, now: Instant) {
        self.has_rival = true;
        self.over_at = self.over_at.max(Some(now + FORGIVEN));
    }

    /// It is left to that syncer, which keeps to what it has written: there is another try after a long wait, since
    /// nothing says when that syncer is gone. `jitter` is in 0..1.
    pub(super) fn gives_way(&mut self, now: Instant, jitter: f64) {
        if self.is_over(now) {
            *self = Self::default();
        }
        let longest = FIRST_LEAVE.saturating_mul(1 << self.leaves.min(16)).min(LONGEST_LEAVE);
        let until = now + spread(longest, jitter);
        self.leaves += 1;
        self.until = Some(until);
        self.meets_rival(until);
    }

    /// True if the syncer of another sync target has changed it lately.
    pub(super) fn has_rival(&self, now: Instant) -> bool {
        self.has_rival && !self.is_over(now)
    }

    /// Something else is wanted now, which nobody has changed yet. What is left to somebody else stays so.
    pub(super) fn ends_wait(&mut self) {
        if self.leaves == 0 {
            self.until = None;
        }
    }

    /// How long the next correction has to wait.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.until.filter(|&until| until > now).map(|until| until - now)
    }

    /// True once if a further change means that corrections are delayed, which is to be logged: at once if it was `seen` who
    /// has made that change, otherwise not before one might have been.
    pub(super) fn is_news(&mut self, seen: bool, now: Instant) -> bool {
        let enough = if seen { PATIENCE } else { 2 * PATIENCE };
        let is_news = self.corrections >= enough && !self.is_over(now) && !self.logged;
        self.logged |= is_news;
        is_news
    }

    /// True if the line about it was written, which stands for all that follow.
    pub(super) fn is_known(&self, now: Instant) -> bool {
        self.logged && !self.is_over(now)
    }

    /// True while a correction has not succeeded yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    fn is_over(&self, now: Instant) -> bool {
        self.over_at.is_some_and(|at| at <= now)
    }
}

/// The wait after so many corrections.
fn wait_after(corrections: u32, jitter: f64) -> Option<Duration> {
    (corrections >= PATIENCE).then(|| back_off(corrections - PATIENCE + 1, jitter))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Corrects once, and gives the wait after that.
    fn correct(contention: &mut Contention, now: Instant) -> Duration {
        contention.correction_begins(now, 1.0);
        contention.correction_ends();
        contention.wait(now).unwrap_or_default()
    }

    #[test]
    fn what_keeps_being_changed_waits_ever_longer_and_is_forgiven_in_the_end() {
        let (now, mut contention) = (Instant::now(), Contention::default());
        let waits: Vec<_> = (0..6).map(|_| correct(&mut contention, now)).collect();
        assert_eq!(waits[..2], [Duration::ZERO; 2]);
        assert!(Duration::ZERO < waits[2] && waits[2] < waits[3] && waits[4] < waits[5]);
        assert_eq!(contention.wait(now + waits[5]), None);
        assert_eq!(correct(&mut contention, now + FORGIVEN), Duration::ZERO);
    }

    #[test]
    fn what_fails_and_is_tried_again_is_one_correction() {
        let (now, mut contention) = (Instant::now(), Contention::default());
        for _ in 0..20 {
            contention.correction_begins(now, 1.0);
        }
        assert_eq!(contention.wait(now), None);
    }

    #[test]
    fn another_wish_is_not_delayed_and_what_was_counted_still_counts() {
        let (now, mut contention) = (Instant::now(), Contention::default());
        let waits: Vec<_> = (0..5).map(|_| correct(&mut contention, now)).collect();
        contention.ends_wait();
        assert_eq!(contention.wait(now), None);
        contention.wish_begins(now, 1.0);
        assert_eq!(contention.wait(now), Some(waits[4]), "before it is corrected");
        assert!(correct(&mut contention, now) > waits[4]);
    }

    #[test]
    fn what_is_left_to_somebody_else_waits_long_whatever_is_wanted() {
        let (mut now, mut contention) = (Instant::now(), Contention::default());
        let mut waits = Vec::new();
        for _ in 0..20 {
            contention.gives_way(now, 1.0);
            contention.ends_wait();
            waits.push(contention.wait(now).unwrap_or_default());
            now += waits.last().copied().unwrap_or_default();
        }
        assert_eq!(waits[..3], [1, 2, 4].map(|minutes| Duration::from_secs(60 * minutes)));
        assert_eq!(waits[19], LONGEST_LEAVE);
        assert!(contention.has_rival(now) && !contention.has_rival(now + FORGIVEN));
        contention.gives_way(now + FORGIVEN, 1.0);
        assert_eq!(contention.wait(now + FORGIVEN), Some(FIRST_LEAVE), "it was forgiven");
    }

    #[test]
    fn it_is_news_once() {
        let (now, mut contention) = (Instant::now(), Contention::default());
        let mut news = Vec::new();
        for _ in 0..6 {
            news.push(contention.is_news(true, now));
            correct(&mut contention, now);
        }
        assert_eq!(news, [false, false, false, true, false, false]);
        assert!(!contention.is_news(true, now + FORGIVEN), "it is over");
    }
}
