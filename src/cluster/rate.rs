//! The request rate limit of one side (`--qps`, `--burst`): a token bucket, first come first served.
//!
//! One that nobody has asked for is there for servers that cannot defend themselves: it does not count while the server
//! shares itself out among its clients, who then wait for it as long as it wants. What is bounded in any case is how many
//! requests are under way.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Requests per second and how many may go at once, as the flags give them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Sustained requests per second, above zero.
    pub qps: f64,
    /// Bucket size in requests, at least one.
    pub burst: u32,
}

/// A bucket that holds `burst` tokens and gains `qps` of them a second.
///
/// Kept as the time at which the bucket would be full again, so that a waiting request reserves its turn in one step
/// and nothing is shared across an await.
pub struct RateLimit {
    interval: Duration,
    depth: Duration,
    full_at: Cell<Option<Instant>>,
    /// A server that shares itself out needs no limit.
    yields: bool,
    /// The server does.
    is_fair: Cell<bool>,
}

impl RateLimit {
    /// A limit; `None` lets everything pass.
    pub fn new(rate: Option<Rate>) -> Self {
        let interval = rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate.qps));
        Self {
            interval,
            depth: interval * rate.map_or(0, |rate| rate.burst),
            full_at: Cell::new(None),
            yields: false,
            is_fair: Cell::new(false),
        }
    }

    /// The same, as long as the server does not share itself out among its clients.
    #[must_use]
    pub fn that_yields(mut self) -> Self {
        self.yields = true;
        self
    }

    /// An answer says whether the server shares itself out among its clients.
    pub(super) fn server_is_fair(&self, is_fair: bool) {
        if is_fair && !self.is_fair.replace(is_fair) && self.yields && !self.interval.is_zero() {
            log::debug!("the server shares itself out among its clients: no limit of our own");
        }
        self.is_fair.set(is_fair);
    }

    /// Resolves when the next request may go. Cancelling while it waits gives up the turn but not the token.
    pub async fn turn(&self) {
        if self.interval.is_zero() || self.yields && self.is_fair.get() {
            return;
        }
        let now = Instant::now();
        let full_at = self.full_at.get().unwrap_or(now).max(now) + self.interval;
        self.full_at.set(Some(full_at));
        let allowed_at = full_at.checked_sub(self.depth).unwrap_or(now);
        if allowed_at > now {
            sleep_until(allowed_at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seconds_for(requests: u32, rate: Option<Rate>) -> f64 {
        let limit = RateLimit::new(rate);
        let start = Instant::now();
        for _ in 0..requests {
            limit.turn().await;
        }
        start.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn lets_a_burst_through_and_then_keeps_the_rate() {
        let rate = Some(Rate { qps: 10.0, burst: 5 });
        assert!(seconds_for(5, rate).await < 0.01);
        let twenty_five = seconds_for(25, rate).await;
        assert!((1.95..2.1).contains(&twenty_five), "{twenty_five}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_nobody_asked_for_counts_unless_the_server_shares_itself_out() {
        let rate = Some(Rate { qps: 10.0, burst: 5 });
        for (yields, is_fair, is_limited) in [
            (true, true, false),
            (true, false, true),
            (false, true, true),
            (false, false, true),
        ] {
            let mut limit = RateLimit::new(rate);
            if yields {
                limit = limit.that_yields();
            }
            limit.server_is_fair(is_fair);
            let start = Instant::now();
            for _ in 0..25 {
                limit.turn().await;
            }
            let waited = start.elapsed() > Duration::from_secs(1);
            assert_eq!(waited, is_limited, "{yields} {is_fair}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_means_no_limit() {
        assert!(seconds_for(10_000, None).await < 0.01);
    }
}
