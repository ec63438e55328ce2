//! Whether each side answers, as far as the model knows: logged once when it changes, and what follows from it.

use std::time::Duration;

use driver::queue::{back_off, probe_wait};
use kube_lite::Error;
use tokio::time::Instant;

use super::Model;
use super::timers::Timer;
use crate::plan::Direction;
use crate::report::{Peer, Subject};
use crate::side::Side;

/// A side that comes back twice within this time is unsteady.
const STEADY: Duration = Duration::from_secs(60);

/// How one side has answered.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    is: Is,
    /// Since when nothing has answered, if it is silent.
    since: Option<Instant>,
    /// It has refused the credentials, and has not accepted them since.
    refuses: bool,
    /// When it last came back.
    back: Option<Instant>,
    /// How often it has come back in a row without being steady.
    returns: u32,
}

/// Whether a side answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Is {
    /// As far as is known.
    #[default]
    Answering,
    /// It was last found to be silent.
    Silent,
    /// It answers again, but its gate in the queue is not open yet.
    Returning,
}

impl Reachability {
    /// True if the side was last found to be silent.
    pub(super) fn is_silent(&self) -> bool {
        self.is == Is::Silent
    }

    /// How long it has been silent, if it is.
    pub(super) fn silent_for(&self, now: Instant) -> Option<Duration> {
        let since = self.since.filter(|_| self.is_silent())?;
        Some(now.saturating_duration_since(since))
    }

    /// True if it refuses the credentials.
    pub(super) fn is_refusing(&self) -> bool {
        self.refuses
    }

    /// It was found to be silent.
    fn falls_silent(&mut self, now: Instant) {
        if !self.is_silent() {
            self.since = Some(now);
        }
        self.is = Is::Silent;
    }

    /// It is back. A link that passes only some answers makes it come back again and again, so the requests that follow
    /// from this wait longer each time. Returns that wait.
    fn comes_back(&mut self, now: Instant, jitter: f64) -> Duration {
        let is_steady = self.back.is_none_or(|back| now.duration_since(back) >= STEADY);
        self.back = Some(now);
        self.returns = if is_steady { 0 } else { self.returns.saturating_add(1) };
        match self.returns {
            0 => Duration::ZERO,
            returns => probe_wait(returns, jitter),
        }
    }
}

impl Model {
    /// Nothing answered on this side.
    pub(super) fn side_is_silent(&mut self, side: Side, doing: &str, error: &Error) {
        let now = self.now;
        self.sides.of_mut(side).answering.falls_silent(now);
        self.fails(Subject::Side(side), doing, error);
        if side == Side::Hub {
            self.plan_events(Side::Edge);
        }
    }

    /// Logs that something failed, if that is new.
    pub(super) fn fails(&mut self, subject: Subject, doing: &str, error: &Error) {
        let contact = &self.sides.of(subject.side()).contact;
        let peer = Peer {
            place: &contact.place,
            stranger: contact.stranger.as_deref(),
        };
        self.report.failed(subject, doing, error, peer);
    }

    /// Checks whether sides that were silent answer again: then what waits for them continues.
    pub(super) fn notice_answers(&mut self) {
        for &side in &*self.sides.ids() {
            let state = self.sides.of_mut(side);
            let refuses = !state.contact.accepts_credentials;
            let has_refused = std::mem::replace(&mut state.answering.refuses, refuses);
            let is_stranger = state.contact.stranger.is_some();
            if state.answering.is != Is::Answering && state.contact.answers {
                self.side_answers(side);
            }
            if has_refused && !refuses {
                self.report.works(&Subject::Credentials(side));
                self.comes_back(side);
            }
            // What was refused may not be needed any more, while watches continue: then no other request would be sent.
            if refuses && !self.timers.is_running(Timer::Identity(side)) {
                let due = self.now + back_off(u32::MAX, self.chance.f64());
                self.timers.set_if_idle(Timer::Identity(side), due);
            }
            if !is_stranger {
                self.report.works(&Subject::Stranger(side));
            }
        }
    }

    fn side_answers(&mut self, side: Side) {
        self.queue.side_is_back(side, self.now, self.chance.f64());
        let waits = self.queue.is_down(side);
        let is = if waits { Is::Returning } else { Is::Answering };
        if std::mem::replace(&mut self.sides.of_mut(side).answering.is, is) != Is::Silent {
            return;
        }
        self.report.works(&Subject::Side(side));
        self.event_of_return(side);
        self.origins_are_unsteady(Direction::from(side));
        self.comes_back(side);
    }

    fn comes_back(&mut self, side: Side) {
        let wait = self
            .sides
            .of_mut(side)
            .answering
            .comes_back(self.now, self.chance.f64());
        self.timers.set_if_idle(Timer::Return(side), self.now + wait);
    }

    /// Asks the sides that have come back what may have changed while they were away, where that is due.
    pub(super) fn ask_who_came_back(&mut self) {
        for &side in &*self.sides.ids() {
            if !self.timers.fires(Timer::Return(side), self.now) {
                continue;
            }
            self.ask_again_soon(side);
            self.ask_identity(side);
            self.edge_object.versions_may_differ();
            if side == Side::Hub {
                self.edge_object.may_be_another();
                // The answer to a heartbeat shows whether it has gone back to older versions.
                self.heartbeat_at_once();
            } else {
                self.side_may_be_restored(side);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_keeps_coming_back_is_asked_with_increasing_back_off() {
        let start = Instant::now();
        let mut side = Reachability::default();
        let (mut asked, mut ask) = (0, None);
        // Ten times a second for ten minutes.
        for tick in 0..6000 {
            let now = start + Duration::from_millis(100) * tick;
            let wait = side.comes_back(now, 1.0);
            ask.get_or_insert(now + wait);
            if ask.take_if(|due| *due <= now).is_some() {
                asked += 1;
            }
        }
        assert!((1..40).contains(&asked), "{asked}");
        let later = start + Duration::from_secs(600) + STEADY;
        assert_eq!(
            side.comes_back(later, 1.0),
            Duration::ZERO,
            "it was steady, and is asked at once"
        );
    }
}
