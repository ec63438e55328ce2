//! Whether each side answers, as the engine takes it: told once when it changes, and what follows from it.

use tokio::time::Instant;

use super::Engine;
use crate::cluster::{Error, Side};
use crate::plan::Direction;
use crate::report::Subject;

/// Sides that were last found to be silent.
#[derive(Debug, Default)]
pub(super) struct Silent([bool; 2]);

impl Silent {
    fn of(&mut self, side: Side) -> &mut bool {
        &mut self.0[side as usize]
    }
}

impl Engine {
    /// Nothing answered on this side.
    pub(super) fn side_is_silent(&mut self, side: Side, doing: &str, error: &Error) {
        *self.silent.of(side) = true;
        self.report.failed(Subject::Side(side), doing, error);
    }

    /// Sees whether sides that were silent answer again: then what waits for them goes on.
    pub(super) fn notice_answers(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            if *self.silent.of(side) && self.cluster(side).answers() {
                self.side_answers(side);
            }
            if self.cluster(side).accepts_credentials() {
                self.report.works(&Subject::Credentials(side));
            }
        }
    }

    fn side_answers(&mut self, side: Side) {
        // The queue may take longer to believe it.
        self.queue.side_is_back(side, Instant::now(), fastrand::f64());
        *self.silent.of(side) = self.queue.is_down(side);
        if !self.report.works(&Subject::Side(side)) {
            return;
        }
        self.asking(side).ask_again_soon();
        self.ask_identity(side);
        self.origins_are_unsteady(Direction::from(side));
        if side == Side::Hub {
            // The answer to a heartbeat tells whether it has gone back to older versions.
            self.beat_at_once();
        }
    }
}
