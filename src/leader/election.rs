//! Who leads: the decisions of one candidate, without I/O and without a clock of its own.
//!
//! They are those of client-go's `tools/leaderelection`, so that what people know about controllers applies here too:
//!
//! - A candidate takes the Lease when it has no holder, when it holds it itself, or when the Lease has not changed for
//!   as long as it lasts. That time is counted from when this candidate first saw it in this state; the times in the
//!   Lease are for people, since the clocks of two machines need not agree.
//! - A leader renews its Lease, and leads no longer than the renew deadline after it sent the last renewal that
//!   succeeded. The deadline is shorter than the Lease lasts, so it has stopped before another may begin.
//! - Every write is bound to the version that was read, so of two that write at once one gets a conflict.
//!
//! It differs in one point: a leader whose Lease names another holder, or nobody, has lost it, even if it could take it
//! back at once.

use std::time::Duration;

use tokio::time::Instant;

use super::lease::{Lease, LeaseSpec, Term};
use crate::cluster::Error;

/// How long a Lease lasts, and what follows from that. At 15 s: stop 10 s after the last renewal, renew every 5 s, give
/// a request 3 s, and read or try again every 2 s (client-go: 15, 10, 2, 5 and 2). Fewer renewals than client-go's, since
/// each is a write to the storage of a small board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    lease: Duration,
}

impl Timing {
    /// For Leases of that duration, above zero.
    pub(super) fn new(lease: Duration) -> Self {
        Self { lease }
    }

    /// How long it leads after it sent the last renewal that succeeded.
    pub(super) fn renew_deadline(self) -> Duration {
        self.lease * 2 / 3
    }

    fn renew_interval(self) -> Duration {
        self.lease / 3
    }

    /// How long one request may take: a renewal that hangs can be sent once more before the deadline.
    pub(super) fn request_limit(self) -> Duration {
        self.lease / 5
    }

    fn retry_interval(self) -> Duration {
        self.lease * 2 / 15
    }

    /// The duration in the Lease, in whole seconds, rounded up.
    fn seconds(self) -> i64 {
        let whole = self.lease + Duration::from_nanos(999_999_999);
        whole.as_secs().try_into().unwrap_or(i64::MAX)
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this, and report the result.
    Send(Request),
    /// Nothing before this moment.
    Wait(Instant),
}

/// A request for the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Read it.
    Read,
    /// Create it.
    Create(Term),
    /// Write this, if it is still at this version.
    Update(String, Term),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The Lease as it is.
    Found(Lease),
    /// There is no such Lease.
    Absent,
    /// The Lease as it has been written.
    Written(Lease),
    /// It was not written, since it is no longer at that version, or exists already.
    Conflict,
    /// Anything else. A write may have taken effect.
    Failed(Error),
}

/// The Lease as it was last read or written.
#[derive(Clone, Debug)]
struct Seen {
    lease: Lease,
    /// Since when it has been like this, as far as this candidate knows.
    since: Instant,
}

/// What is known of the Lease that the next request could build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knowledge {
    /// It has to be read first.
    Stale,
    /// It does not exist.
    Absent,
    /// It may be written at the version that was seen last.
    Ours,
}

/// The state of one candidate.
#[derive(Debug)]
pub(super) struct Election {
    identity: String,
    timing: Timing,
    seen: Option<Seen>,
    knowledge: Knowledge,
    /// When it stops leading unless it renews; absent while it does not lead.
    until: Option<Instant>,
    /// The next step is not due before.
    due: Instant,
}

impl Election {
    /// A candidate, whose first step is due `now`. No other candidate has the same `identity`.
    pub(super) fn new(identity: String, timing: Timing, now: Instant) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            knowledge: Knowledge::Stale,
            until: None,
            due: now,
        }
    }

    /// Until when it leads, if it does `now`.
    pub(super) fn leads_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    /// What the Lease said when it was last read.
    pub(super) fn last_seen(&self) -> Option<&LeaseSpec> {
        self.seen.as_ref().map(|seen| &seen.lease.spec)
    }

    /// What to do `now`. One request at a time: to be called again only after its answer.
    pub(super) fn next(&mut self, now: Instant) -> Step {
        if self.until.is_some() && self.leads_until(now).is_none() {
            self.until = None;
            self.knowledge = Knowledge::Stale;
        }
        if now < self.due {
            return Step::Wait(self.due);
        }
        Step::Send(match (self.knowledge, &self.seen) {
            (Knowledge::Absent, _) => Request::Create(self.term()),
            (Knowledge::Ours, Some(seen)) => Request::Update(seen.lease.version.clone(), self.term()),
            (Knowledge::Stale, _) | (Knowledge::Ours, None) => Request::Read,
        })
    }

    /// Handles the answer that came `now` to the request that was sent at `sent`. `jitter`, of 0 to 1, keeps candidates
    /// apart.
    pub(super) fn answered(&mut self, sent: Instant, now: Instant, answer: Answer, jitter: f64) {
        let retry = self.timing.retry_interval().mul_f64(1.0 + jitter / 5.0);
        match answer {
            Answer::Found(lease) => {
                self.observe(lease, now);
                if self.is_free(now) {
                    self.knowledge = Knowledge::Ours;
                    self.due = now;
                } else {
                    self.knowledge = Knowledge::Stale;
                    self.due = now + retry;
                }
            }
            Answer::Absent => {
                self.seen = None;
                self.knowledge = Knowledge::Absent;
                self.due = now;
            }
            Answer::Written(lease) => {
                // Counted from when it was sent: the server may have written it at once.
                self.until = (lease.spec.holder() == self.identity).then(|| sent + self.timing.renew_deadline());
                self.observe(lease, now);
                self.knowledge = Knowledge::Ours;
                self.due = sent + self.timing.renew_interval();
            }
            Answer::Conflict => {
                self.knowledge = Knowledge::Stale;
                // A leader must know at once whether it still leads; a candidate has just lost to another one, and can
                // wait.
                self.due = if self.until.is_some() { now } else { now + retry };
            }
            Answer::Failed(error) => {
                if self.until.is_none() {
                    self.knowledge = Knowledge::Stale;
                }
                let asked = error.retry_after().unwrap_or_default();
                self.due = (sent + retry).max(now + asked.min(self.longest_asked(now)));
            }
        }
    }

    /// The request that gives up the Lease, if it is held as far as is known, so that the next candidate need not wait.
    pub(super) fn release(&self) -> Option<Request> {
        let lease = &self.seen.as_ref()?.lease;
        if lease.spec.holder() != self.identity {
            return None;
        }
        let term = Term {
            holder: String::new(),
            // Not zero, which the API refuses.
            seconds: 1,
            acquired: None,
            transitions: lease.spec.transitions(),
        };
        Some(Request::Update(lease.version.clone(), term))
    }

    fn observe(&mut self, lease: Lease, now: Instant) {
        if lease.spec.holder() != self.identity {
            self.until = None;
        }
        // The version also changes with labels and the like, which say nothing about the holder.
        let since = match &self.seen {
            Some(seen) if seen.lease.spec == lease.spec => seen.since,
            _ => now,
        };
        self.seen = Some(Seen { lease, since });
    }

    /// The longest `Retry-After` that is respected. A leader tries again as usual, or it would lose the lead by
    /// waiting; a candidate asks at least once in the time that a Lease lasts, or there would be no leader for as long
    /// as the server asks.
    fn longest_asked(&self, now: Instant) -> Duration {
        match self.leads_until(now) {
            Some(_) => self.timing.retry_interval(),
            None => self.timing.lease,
        }
    }

    fn is_free(&self, now: Instant) -> bool {
        let Some(Seen { lease, since }) = &self.seen else {
            return true;
        };
        let holder = lease.spec.holder();
        // A Lease that does not say how long it lasts counts as lasting as long as ours.
        let lasts = lease.spec.duration().unwrap_or(self.timing.lease);
        holder.is_empty() || holder == self.identity || since.checked_add(lasts).is_some_and(|end| end <= now)
    }

    /// What is written to the Lease: a new term, or the one that continues.
    fn term(&self) -> Term {
        let spec = self.last_seen();
        let goes_on = spec.is_some_and(|spec| spec.holder() == self.identity);
        Term {
            holder: self.identity.clone(),
            seconds: self.timing.seconds(),
            acquired: spec.filter(|_| goes_on).and_then(LeaseSpec::acquired),
            // More than the API allows would be refused.
            transitions: spec.map_or(0, |spec| {
                let transitions = spec.transitions().saturating_add(i64::from(!goes_on));
                transitions.min(i32::MAX.into())
            }),
        }
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
