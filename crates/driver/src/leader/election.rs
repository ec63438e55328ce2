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
//! It differs in two points:
//!
//! - A leader whose Lease names another holder, or nobody, has lost it, even if it could take it back at once.
//! - A Lease that somebody has deleted, emptied or written by hand says nothing of the leader, who notices that at its
//!   next renewal only. Who takes it then holds it, and leads with the first renewal after the time of the former holder:
//!   each is bound to the version before it, so nobody else can have renewed meanwhile. Only a release, which has a form
//!   of its own, is an end. Whoever has seen no Lease, since it has just started, leads at once.

use std::time::Duration;

use kube_lite::Error;
use tokio::time::Instant;

use super::lease::{Lease, LeaseSpec, RELEASED, Term};

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
        whole_seconds(self.lease)
    }
}

/// Rounded up.
fn whole_seconds(duration: Duration) -> i64 {
    let whole = duration.saturating_add(Duration::from_nanos(999_999_999));
    whole.as_secs().try_into().unwrap_or(i64::MAX)
}

/// Longer than anybody waits for a Lease, and short enough for every clock.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
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

/// Another candidate that may lead, whatever the Lease says now.
#[derive(Clone, Copy, Debug)]
struct Other {
    /// Not after this moment, unless it has renewed the Lease since.
    until: Instant,
    /// How long a renewal of its Lease lasts.
    lasts: Duration,
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
    /// The Lease as it was last read or written; absent if there is none.
    seen: Option<Lease>,
    /// Who else may lead. Nobody does when this candidate leads.
    other: Option<Other>,
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
            other: None,
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
        self.seen.as_ref().map(|lease| &lease.spec)
    }

    /// How long another one may still lead, while this candidate holds the Lease.
    pub(super) fn holds_back(&self, now: Instant) -> Option<Duration> {
        let other = self.other.filter(|other| now < other.until)?;
        self.has_the_lease().then(|| other.until - now)
    }

    fn has_the_lease(&self) -> bool {
        self.last_seen().is_some_and(|spec| spec.holder() == self.identity)
    }

    /// What to do `now`. One request at a time: to be called again only after its answer.
    pub(super) fn next(&mut self, now: Instant) -> Output {
        if self.until.is_some() && self.leads_until(now).is_none() {
            self.until = None;
            self.knowledge = Knowledge::Stale;
            // Another one may lead from now on, of whom this candidate has seen nothing.
            self.other = Some(Other {
                until: now,
                lasts: self.timing.lease,
            });
        }
        if now < self.due {
            return Output::Wait(self.due);
        }
        Output::Send(match (self.knowledge, &self.seen) {
            (Knowledge::Absent, _) => Request::Create(self.term()),
            (Knowledge::Ours, Some(lease)) => Request::Update(lease.version.clone(), self.term()),
            (Knowledge::Stale, _) | (Knowledge::Ours, None) => Request::Read,
        })
    }

    /// Handles the answer that came `now` to the request that was sent at `sent`. `jitter`, of 0 to 1, keeps candidates
    /// apart.
    pub(super) fn answered(&mut self, sent: Instant, now: Instant, answer: Answer, jitter: f64) {
        let retry = self.timing.retry_interval().mul_f64(1.0 + jitter / 5.0);
        match answer {
            Answer::Found(lease) => {
                self.finds(lease, now);
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
                self.is_not_renewed(now);
                self.knowledge = Knowledge::Absent;
                self.due = now;
            }
            Answer::Written(lease) => {
                let next = sent + self.timing.renew_interval();
                self.due = if let Some(other) = self.other.filter(|other| sent < other.until) {
                    // As soon as that one's time is over, it is known whether the Lease has remained ours.
                    next.min(other.until)
                } else {
                    self.other = None;
                    // Counted from when it was sent: the server may have written it at once.
                    self.until = Some(sent + self.timing.renew_deadline());
                    next
                };
                self.seen = Some(lease);
                self.knowledge = Knowledge::Ours;
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

    /// The request that gives up the Lease `now`, if it is held as far as is known, so that the next candidate need not
    /// wait, unless for the one for whom this one has waited.
    pub(super) fn release(&self, now: Instant) -> Option<Request> {
        let lease = self.seen.as_ref().filter(|_| self.has_the_lease())?;
        let term = Term {
            holder: String::new(),
            seconds: match self.holds_back(now) {
                Some(rest) => whole_seconds(rest).max(RELEASED + 1),
                None => RELEASED,
            },
            acquired: None,
            transitions: lease.spec.transitions(),
        };
        Some(Request::Update(lease.version.clone(), term))
    }

    /// The Lease was found like this.
    fn finds(&mut self, lease: Lease, now: Instant) {
        let spec = &lease.spec;
        let is_mine = spec.holder() == self.identity;
        // The version also changes with labels and the like, which say nothing about the holder.
        let is_as_before = self.last_seen() == Some(spec) || is_mine && self.goes_on(spec);
        if spec.is_released() {
            self.other = None;
        } else if !is_as_before {
            self.is_not_renewed(now);
            if !is_mine {
                self.may_be_led_by_another(spec, now);
            }
        }
        if !is_mine {
            self.until = None;
        }
        self.seen = Some(lease);
    }

    /// True if it is the Lease that this candidate has written last, or a renewal of it whose answer was lost.
    fn goes_on(&self, spec: &LeaseSpec) -> bool {
        let last = self.last_seen().filter(|_| self.has_the_lease());
        last.is_some_and(|last| last.acquired() == spec.acquired())
    }

    /// The Lease is another one than before, or there is none: who has led may have renewed the former one until now.
    fn is_not_renewed(&mut self, now: Instant) {
        if let Some(other) = &mut self.other {
            other.until = other.until.max(after(now, other.lasts));
        }
    }

    /// A Lease that is not this candidate's is seen for the first time.
    fn may_be_led_by_another(&mut self, spec: &LeaseSpec, now: Instant) {
        let last = self.last_seen().map(LeaseSpec::holder);
        let (is_renewed, is_held) = (last == Some(spec.holder()), !spec.holder().is_empty());
        let lasts = match spec.duration() {
            // Who has held it before is known, if this candidate has seen it.
            given if is_held || last.is_none() => given.or(is_held.then_some(self.timing.lease)),
            _ => None,
        };
        let Some(lasts) = lasts else { return };
        let former = self.other.filter(|_| is_renewed || !is_held);
        self.other = Some(Other {
            until: self.other.map_or(now, |other| other.until).max(after(now, lasts)),
            // What people write to a Lease does not shorten what its holder believes.
            lasts: former.map_or(lasts, |former| former.lasts.max(lasts)),
        });
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
        let is_held = self.last_seen().is_some_and(|spec| !spec.holder().is_empty());
        !is_held || self.has_the_lease() || self.other.is_none_or(|other| other.until <= now)
    }

    /// What is written to the Lease: a new term, or the one that continues.
    fn term(&self) -> Term {
        let (spec, goes_on) = (self.last_seen(), self.has_the_lease());
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

/// What a Lease says may be more than a clock can count.
fn after(now: Instant, duration: Duration) -> Instant {
    now + duration.min(FAR)
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
