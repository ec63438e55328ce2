//! How long to wait after failures.

use std::time::Duration;

/// The wait after the first failure. Doubles with each further one.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(800);
/// The longest wait of a key.
pub const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The longest `Retry-After` of a server that is respected.
pub(super) const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// The longest wait between two probes of a side: a link that returns is noticed within it.
const LONGEST_PROBE_WAIT: Duration = Duration::from_secs(30);

/// The wait after `failures` failures in a row: doubling, spread over the upper half by `jitter` in 0..1.
pub fn back_off(failures: u32, jitter: f64) -> Duration {
    spread(doubled(failures).min(LONGEST_WAIT), jitter)
}

/// The same between two probes of a side.
pub fn probe_wait(failures: u32, jitter: f64) -> Duration {
    spread(doubled(failures).min(LONGEST_PROBE_WAIT), jitter)
}

/// A time in the upper half of `longest`.
pub fn spread(longest: Duration, jitter: f64) -> Duration {
    longest.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

fn doubled(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_spread_over_their_upper_half() {
        let waits: Vec<_> = (1..=4).map(|failures| back_off(failures, 1.0).as_millis()).collect();
        assert_eq!(waits, [800, 1600, 3200, 6400]);
        assert_eq!(back_off(u32::MAX, 1.0), LONGEST_WAIT);
        assert_eq!(back_off(1, 0.0), FIRST_WAIT / 2);
        assert_eq!(probe_wait(u32::MAX, 1.0), LONGEST_PROBE_WAIT);
        assert_eq!(probe_wait(1, 0.0), FIRST_WAIT / 2);
    }
}
