//! Whether each side answers, as the engine takes it: told once when it changes, and what follows from it.

use std::time::Duration;

use tokio::time::Instant;

use super::Engine;
use crate::cluster::{Error, Side};
use crate::plan::Direction;
use crate::queue::probe_wait;
use crate::report::{Peer, Subject};

/// A side that comes back within this time after it last did is unsteady.
const STEADY: Duration = Duration::from_secs(60);

/// How the sides have answered.
#[derive(Debug, Default)]
pub(super) struct Reach([Answering; 2]);

/// How one side has answered.
#[derive(Debug, Default)]
struct Answering {
    /// It was last found to be silent.
    silent: bool,
    /// When it last came back.
    back: Option<Instant>,
    /// How often it has come back in a row without being steady.
    returns: u32,
    /// When it is to be asked what may be another than before.
    ask: Option<Instant>,
}

impl Answering {
    /// It is back. A link that lets some answers through and not others makes it so with every question; so the questions
    /// that this gives rise to wait longer each time.
    fn comes_back(&mut self, now: Instant, jitter: f64) {
        let is_steady = self.back.is_none_or(|back| now.duration_since(back) >= STEADY);
        self.back = Some(now);
        self.returns = if is_steady { 0 } else { self.returns.saturating_add(1) };
        let wait = match self.returns {
            0 => Duration::ZERO,
            returns => probe_wait(returns, jitter),
        };
        self.ask.get_or_insert(now + wait);
    }
}

impl Reach {
    fn of(&mut self, side: Side) -> &mut Answering {
        &mut self.0[side as usize]
    }

    /// When a side is to be asked.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().filter_map(|side| side.ask).min()
    }
}

impl Engine {
    /// Nothing answered on this side.
    pub(super) fn side_is_silent(&mut self, side: Side, doing: &str, error: &Error) {
        self.reach.of(side).silent = true;
        self.fails(Subject::Side(side), doing, error);
    }

    /// Tells that something failed, if that is new.
    pub(super) fn fails(&mut self, subject: Subject, doing: &str, error: &Error) {
        let cluster = self.cluster(subject.side());
        let (place, stranger) = (cluster.place(), cluster.stranger());
        let peer = Peer {
            place: &place,
            stranger: stranger.as_deref(),
        };
        self.report.failed(subject, doing, error, peer);
    }

    /// Sees whether sides that were silent answer again: then what waits for them goes on.
    pub(super) fn notice_answers(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            if self.reach.of(side).silent && self.cluster(side).answers() {
                self.side_answers(side);
            }
            if self.cluster(side).accepts_credentials() && self.report.works(&Subject::Credentials(side)) {
                self.reach.of(side).comes_back(Instant::now(), fastrand::f64());
            }
            let stranger = Subject::Stranger(side);
            if self.report.is_failing(&stranger) && self.cluster(side).stranger().is_none() {
                self.report.works(&stranger);
            }
        }
    }

    fn side_answers(&mut self, side: Side) {
        let now = Instant::now();
        // The queue may take longer to believe it.
        self.queue.side_is_back(side, now, fastrand::f64());
        self.reach.of(side).silent = self.queue.is_down(side);
        if !self.report.works(&Subject::Side(side)) {
            return;
        }
        self.origins_are_unsteady(Direction::from(side));
        self.reach.of(side).comes_back(now, fastrand::f64());
    }

    /// Asks the sides that have come back what may have changed while they were away, where that is due.
    pub(super) fn ask_who_came_back(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            let ask = &mut self.reach.of(side).ask;
            if ask.is_none_or(|due| due > Instant::now()) {
                continue;
            }
            *ask = None;
            self.asking(side).ask_again_soon();
            self.ask_identity(side);
            if side == Side::Hub {
                // The answer to a heartbeat tells whether it has gone back to older versions.
                self.beat_at_once();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_keeps_coming_back_is_asked_ever_more_rarely() {
        let start = Instant::now();
        let mut side = Answering::default();
        let mut asked = 0;
        // Ten times a second for ten minutes.
        for tick in 0..6000 {
            let now = start + Duration::from_millis(100) * tick;
            side.comes_back(now, 1.0);
            if side.ask.take_if(|due| *due <= now).is_some() {
                asked += 1;
            }
        }
        assert!((1..40).contains(&asked), "{asked}");
        let later = start + Duration::from_secs(600) + STEADY;
        side.ask = None;
        side.comes_back(later, 1.0);
        assert_eq!(side.ask, Some(later), "it was steady, and is asked at once");
    }
}
