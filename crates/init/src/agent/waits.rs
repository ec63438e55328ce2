//! How long a workspace waits for its next turn.

use std::time::Duration;

/// The waits before what is missing is searched for once more. Mostly it is a kind that was defined just now, which takes kcp
/// some seconds, and somebody waits for the workspace: they grow by a half, so that the last one adds a third to the time.
pub(super) const WAITS: Waits = Waits {
    first: Duration::from_millis(500),
    growth: 1.5,
    longest: Duration::from_secs(5),
};
/// The waits after failures.
pub(super) const RETRIES: Waits = Waits {
    first: Duration::from_millis(5),
    growth: 2.0,
    longest: Duration::from_secs(60),
};

/// Waits that grow.
pub(super) struct Waits {
    pub(super) first: Duration,
    pub(super) growth: f64,
    pub(super) longest: Duration,
}

impl Waits {
    /// The wait after so many in a row.
    pub(super) fn after(&self, times: u32) -> Duration {
        // No more than that is needed to reach the longest.
        let growth = self.growth.powf(f64::from(times.saturating_sub(1).min(20)));
        self.first.mul_f64(growth).min(self.longest)
    }
}
