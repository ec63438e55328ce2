//! Which sides answer, and what may be tried on one that does not.
//!
//! A side is up until it is reported as down. While it is down it is tried by one probe at a time, with increasing
//! back-off. When it is back, what waited for it goes through a gate that opens at a pace.

use std::time::Duration;

use tokio::time::Instant;

use super::back_off::{probe_wait, spread};
use crate::few::Few;

/// Added to the time over which the return of a side is spread, by each key that waits for it.
const RETURN_GAP: Duration = Duration::from_millis(10);
/// The longest time over which it is spread.
const LONGEST_RETURN: Duration = Duration::from_secs(5);
/// A side that goes down so soon after its return is flapping: its back-off begins one step higher each time.
const STEADY: Duration = Duration::from_secs(30);

/// The sides that a key needs, in their order: the one where it is read and the one where it is written, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sides<S>([Option<S>; 2]);

impl<S> Default for Sides<S> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<S: Copy + Ord> Sides<S> {
    pub(super) fn of(sides: &[S]) -> Self {
        sides.iter().fold(Self::default(), |set, &side| set.with(side))
    }

    pub(super) fn with(self, side: S) -> Self {
        match self.0 {
            _ if self.has(side) => self,
            [None, _] => Self([Some(side), None]),
            [Some(first), None] if first < side => Self([Some(first), Some(side)]),
            [Some(first), None] => Self([Some(side), Some(first)]),
            // No key sends requests to a third side.
            [Some(_), Some(_)] => self,
        }
    }

    pub(super) fn has(self, side: S) -> bool {
        self.0.contains(&Some(side))
    }

    pub(super) fn all(self, which: impl Fn(S) -> bool) -> bool {
        self.iter().all(which)
    }

    fn iter(self) -> impl Iterator<Item = S> {
        self.0.into_iter().flatten()
    }
}

/// Whether a key that needs some sides may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Yes.
    Open,
    /// As a probe of so many sides.
    Probe(u8),
    /// Not now.
    Shut,
}

/// What is known of the sides; nothing of one that was never down.
#[derive(Debug)]
pub(super) struct Gates<S>(Few<S, SideGate>);

#[derive(Debug, Default)]
struct SideGate {
    state: State,
    /// Probes that failed since the side went down, and what flapping adds.
    failures: u32,
    /// How often in a row it went down again before it was steady.
    flaps: u32,
    /// The number that the queue had reached when the side was last back. The result of an attempt that began before is
    /// old.
    back: u64,
}

#[derive(Debug)]
enum State {
    /// It answers, as far as is known.
    Up {
        /// When it was back; `None` if it was never down.
        since: Option<Instant>,
        pace: Option<Pace>,
    },
    /// It does not answer.
    Down {
        /// The next probe is not before this.
        probe_at: Instant,
        /// The number of the attempt that is the probe in flight.
        probe: Option<u64>,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Up {
            since: None,
            pace: None,
        }
    }
}

/// A gate that lets one key through at `next`, and the next one `gap` later; at `until` it is open.
#[derive(Clone, Copy, Debug)]
struct Pace {
    next: Instant,
    gap: Duration,
    until: Instant,
}

impl<S> Default for Gates<S> {
    fn default() -> Self {
        Self(Few::default())
    }
}

impl<S: Copy + Ord> Gates<S> {
    /// True if none of these sides is down.
    pub(super) fn all_up(&self, sides: Sides<S>) -> bool {
        sides.iter().all(|side| !self.is_down(side))
    }

    pub(super) fn is_down(&self, side: S) -> bool {
        self.of(side).is_some_and(SideGate::is_down)
    }

    /// True if any side is.
    pub(super) fn is_any_down(&self) -> bool {
        self.0.values().any(SideGate::is_down)
    }

    /// Whether a key that needs `sides` may be taken.
    ///
    /// A key that needs two sides which are both down is a probe of both, so that neither ever has two in flight.
    pub(super) fn gate(&self, sides: Sides<S>, now: Instant) -> Gate {
        if self.each(sides).any(|gate| !gate.lets_through(now)) {
            return Gate::Shut;
        }
        match self.each(sides).map(|gate| u8::from(gate.is_down())).sum() {
            0 => Gate::Open,
            probes => Gate::Probe(probes),
        }
    }

    /// From when on a key that needs `sides` may be taken; `None` if that is no question of time.
    pub(super) fn opens_at(&self, sides: Sides<S>) -> Option<Instant> {
        if self.each(sides).any(SideGate::is_probed) {
            return None;
        }
        self.each(sides).filter_map(SideGate::waits_until).max()
    }

    /// The attempt `number` at a key that needs `sides` begins.
    pub(super) fn begin(&mut self, sides: Sides<S>, number: u64, now: Instant) {
        for side in sides.iter() {
            match self.0.get_mut(side).map(|gate| &mut gate.state) {
                Some(State::Down { probe, .. }) => *probe = Some(number),
                Some(State::Up { pace, .. }) => *pace = pace.and_then(|pace| pace.after_one(now)),
                None => {}
            }
        }
    }

    /// The attempt `number` has ended. Gives the sides of which it was the probe.
    pub(super) fn end(&mut self, number: u64) -> Sides<S> {
        let mut probed = Sides::default();
        for (side, gate) in self.0.iter_mut() {
            if let State::Down { probe, .. } = &mut gate.state
                && *probe == Some(number)
            {
                *probe = None;
                probed = probed.with(side);
            }
        }
        probed
    }

    /// The attempt `number`, the probe of `probed`, did not reach `side`. True if this is news.
    pub(super) fn unreachable(&mut self, side: S, number: u64, probed: Sides<S>, now: Instant, jitter: f64) -> bool {
        if probed.has(side) {
            let gate = self.0.or_default(side);
            gate.failures = gate.failures.saturating_add(1);
            gate.probe_later(now, jitter);
            return false;
        }
        let back = self.of(side).map_or(0, |gate| gate.back);
        number > back && self.down(side, now, jitter)
    }

    /// A probe of `sides` said nothing of them: the next one waits as long as the last one did.
    pub(super) fn learnt_nothing(&mut self, sides: Sides<S>, now: Instant, jitter: f64) {
        for side in sides.iter() {
            self.0.or_default(side).probe_later(now, jitter);
        }
    }

    /// The side is down. True if this is news.
    pub(super) fn down(&mut self, side: S, now: Instant, jitter: f64) -> bool {
        let gate = self.0.or_default(side);
        let State::Up { since, .. } = gate.state else {
            return false;
        };
        let steady = since.is_none_or(|since| now.duration_since(since) >= STEADY);
        gate.flaps = if steady { 0 } else { gate.flaps.saturating_add(1) };
        gate.failures = gate.flaps.saturating_add(1);
        gate.state = State::Down {
            probe_at: now,
            probe: None,
        };
        gate.probe_later(now, jitter);
        true
    }

    /// Something answered on this side; `parked` keys wait for it, and `number` attempts have begun. True if the side
    /// was down and is believed to be back.
    pub(super) fn back(&mut self, side: S, parked: usize, number: u64, now: Instant, jitter: f64) -> bool {
        let Some(gate) = self.0.get_mut(side) else {
            return false;
        };
        let State::Down { probe_at, .. } = gate.state else {
            return false;
        };
        if gate.flaps > 0 && now < probe_at {
            return false;
        }
        gate.back = number;
        gate.state = State::Up {
            since: Some(now),
            pace: Pace::new(parked, now, jitter),
        };
        true
    }

    fn of(&self, side: S) -> Option<&SideGate> {
        self.0.get(side)
    }

    fn each(&self, sides: Sides<S>) -> impl Iterator<Item = &SideGate> {
        sides.iter().filter_map(|side| self.of(side))
    }
}

impl SideGate {
    fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    fn is_probed(&self) -> bool {
        matches!(self.state, State::Down { probe: Some(_), .. })
    }

    fn lets_through(&self, now: Instant) -> bool {
        !self.is_probed() && self.waits_until().is_none_or(|until| now >= until)
    }

    fn waits_until(&self) -> Option<Instant> {
        match self.state {
            State::Up { pace, .. } => pace.map(|pace| pace.next),
            State::Down { probe_at, .. } => Some(probe_at),
        }
    }

    fn probe_later(&mut self, now: Instant, jitter: f64) {
        if let State::Down { probe_at, .. } = &mut self.state {
            *probe_at = now + probe_wait(self.failures, jitter);
        }
    }
}

impl Pace {
    fn new(parked: usize, now: Instant, jitter: f64) -> Option<Self> {
        let parked = u32::try_from(parked).unwrap_or(u32::MAX);
        let window = spread(RETURN_GAP.saturating_mul(parked).min(LONGEST_RETURN), jitter);
        (parked > 1).then(|| Self {
            next: now,
            gap: window / parked,
            until: now + window,
        })
    }

    fn after_one(self, now: Instant) -> Option<Self> {
        let next = (self.next + self.gap).min(self.until);
        (now < self.until).then_some(Self { next, ..self })
    }
}
