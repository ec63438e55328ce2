//! When a status at the hub is written that differs from what the hub has: soon, together with what comes with it, and rarely
//! while nothing but counts changes; and whether the hub stores it at all.

use std::time::Duration;

use driver::queue::back_off;
use tokio::time::Instant;

/// Between something that happens and the look at what follows from it: more comes with it.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// Between two writes of one status while nothing but its counts changes.
pub(super) const RARELY: Duration = Duration::from_secs(3);

/// How long a hub counts as one that does not store a status, before it is tried again: its CRD may be another one then.
/// Each time six times as long.
const LACKING: Duration = Duration::from_secs(600);
pub(super) const LONGEST_LACKING: Duration = Duration::from_secs(6 * 3600);

/// Whether the hub stores the status of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stores {
    /// It has not been tried.
    #[default]
    Untried,
    It,
    /// Not, or nothing of it but a heartbeat; until when that counts, and for how long that is.
    Less(Instant, Duration),
}

impl Stores {
    /// It does not. Returns whether that was not known, and whether it was never so.
    pub(super) fn is_not_stored(&mut self, now: Instant) -> (bool, bool) {
        let known = match *self {
            Self::Less(until, wait) => Some((until, wait)),
            Self::Untried | Self::It => None,
        };
        let wait = known.map_or(LACKING, |(_, wait)| LONGEST_LACKING.min(wait * 6));
        *self = Self::Less(now + wait, wait);
        (known.is_none_or(|(until, _)| until <= now), known.is_none())
    }

    /// True if it does not, and is not to be tried again yet.
    pub(super) fn is_lacking(self, now: Instant) -> bool {
        matches!(self, Self::Less(until, _) if until > now)
    }
}

/// How one status was written.
#[derive(Default)]
pub(super) struct Pace {
    /// There was something to do for it at the last look.
    was_pending: bool,
    /// When it was written last.
    pub(super) written: Option<Instant>,
    /// The hub has refused it, how often in a row, and until when it is not tried.
    refused: Option<(u32, Instant)>,
    /// Somebody else has written something else in its place, how often, and until when it is not written.
    overwritten: Option<(u32, Instant)>,
}

/// What nobody else has written for so long is ours alone.
const ALONE: Duration = Duration::from_secs(3600);
/// How often somebody else has written it when that is to be said.
const SAID: u32 = 3;

/// How a status differs from what the hub has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Differs {
    Not,
    /// By counts alone, which are written so rarely.
    ByCounts(Duration),
    ByMore,
}

impl Pace {
    /// Until when it is not written, if it has to wait. What is synced within a moment is no news, so what is pending is
    /// checked once more.
    pub(super) fn waits(&mut self, is_pending: bool, differs: Differs, now: Instant) -> Option<Instant> {
        let was_pending = std::mem::replace(&mut self.was_pending, is_pending);
        let may_soon_pass = is_pending && !was_pending;
        let rare = match differs {
            Differs::ByCounts(rarely) => self.written.map(|at| at + rarely),
            Differs::Not | Differs::ByMore => None,
        };
        let refused = self.refused.map(|(_, until)| until).filter(|_| differs != Differs::Not);
        let overwritten = self.overwritten.map(|(_, until)| until);
        let soon = may_soon_pass.then(|| now + SOON);
        let waits = [refused, overwritten, soon, rare].into_iter().flatten();
        waits.filter(|until| *until > now).max()
    }

    /// True if the hub has refused it, until this moment at least.
    pub(super) fn is_put_off(&self, now: Instant) -> bool {
        self.refused.is_some_and(|(_, until)| until > now)
    }

    /// True if the hub has refused it and not stored it since.
    pub(super) fn has_failed(&self) -> bool {
        self.refused.is_some()
    }

    /// The hub has stored it.
    pub(super) fn is_written(&mut self, now: Instant) {
        (self.written, self.refused) = (Some(now), None);
    }

    /// Somebody else has written something else since: it waits with increasing back-off, so that two that write for ever
    /// do so rarely. True once, when that is to be said.
    pub(super) fn is_overwritten(&mut self, now: Instant, chance: f64) -> bool {
        let known = self.overwritten.filter(|(_, until)| *until + ALONE > now);
        let times = known.map_or(0, |(times, _)| times) + 1;
        self.overwritten = Some((times, now + back_off(times, chance)));
        times == SAID
    }

    /// The hub has refused it: it waits with increasing back-off.
    pub(super) fn is_refused(&mut self, now: Instant, chance: f64) {
        let times = self.refused.map_or(0, |(times, _)| times) + 1;
        self.refused = Some((times, now + back_off(times, chance)));
    }
}
