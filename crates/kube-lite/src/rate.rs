//! The request rate limit of one side (`--qps`, `--burst`): a token bucket, first come first served.
//!
//! The default limit protects servers without API priority and fairness. It does not apply while the server divides its
//! capacity among its clients itself. Then a few requests at once are enough to keep it busy, and more would only make
//! its other clients wait.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};

use crate::logging::log_line;

/// Requests at once to a server with API priority and fairness. With four, 1,000 objects take a third longer than with
/// sixteen, and its other clients wait half as long.
const AT_ONCE: usize = 4;
/// A request that takes longer waits for something else than the server itself, such as a webhook, and no longer counts
/// as one of them.
const OWN_TIME: Duration = Duration::from_millis(100);

/// Requests per second and how many may be sent at once, as the flags give them.
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
    /// The limit does not apply to a server with API priority and fairness.
    yields: bool,
    /// The server has API priority and fairness.
    is_fair: Cell<bool>,
    /// Counts the requests to such a server.
    at_once: Semaphore,
}

/// Permission to send one request.
pub(super) struct Permit<'a>(Option<SemaphorePermit<'a>>);

impl Permit<'_> {
    /// Sends the request that it is for, and waits for the answer.
    pub(super) async fn spend<F: Future>(self, request: F) -> F::Output {
        let Some(permit) = self.0 else {
            return request.await;
        };
        let mut request = pin!(request);
        if let Ok(answer) = timeout(OWN_TIME, &mut request).await {
            return answer;
        }
        drop(permit);
        request.await
    }
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
            at_once: Semaphore::new(AT_ONCE),
        }
    }

    /// The same, but only as long as the server has no API priority and fairness.
    #[must_use]
    pub fn that_yields(mut self) -> Self {
        self.yields = true;
        self
    }

    /// An answer has shown whether the server has API priority and fairness.
    pub(super) fn server_is_fair(&self, is_fair: bool) {
        if is_fair && !self.is_fair.replace(is_fair) && self.yields && !self.interval.is_zero() {
            log_line!(
                Debug,
                RateLimitLifted,
                "the server shares itself out among its clients: only requests at once are limited"
            );
        }
        self.is_fair.set(is_fair);
    }

    /// Resolves when the next request may be sent. Cancelling while it waits gives up the turn but not the token.
    pub(super) async fn turn(&self) -> Permit<'_> {
        if self.interval.is_zero() {
            return Permit(None);
        }
        if self.yields && self.is_fair.get() {
            // An error would mean that the semaphore is closed, which never happens here.
            return Permit(self.at_once.acquire().await.ok());
        }
        let now = Instant::now();
        let full_at = self.full_at.get().unwrap_or(now).max(now) + self.interval;
        self.full_at.set(Some(full_at));
        let allowed_at = full_at.checked_sub(self.depth).unwrap_or(now);
        if allowed_at > now {
            sleep_until(allowed_at).await;
        }
        Permit(None)
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

    /// How long `requests` take that all begin at once, and that the server answers after `each`.
    async fn milliseconds_for(requests: usize, each: Duration, is_fair: bool) -> u128 {
        let limit = RateLimit::new(Some(Rate { qps: 1.0, burst: 100 })).that_yields();
        limit.server_is_fair(is_fair);
        let start = Instant::now();
        let all = (0..requests).map(|_| async { limit.turn().await.spend(tokio::time::sleep(each)).await });
        futures_util::future::join_all(all).await;
        start.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_shares_itself_out_has_a_few_requests_at_once_but_for_slow_ones() {
        let quick = Duration::from_millis(10);
        assert_eq!(milliseconds_for(4, quick, true).await, 10);
        assert_eq!(milliseconds_for(16, quick, true).await, 40);
        assert_eq!(milliseconds_for(16, quick, false).await, 10, "it has its limit");
        let slow = Duration::from_secs(10);
        assert_eq!(milliseconds_for(16, slow, true).await, 10_300, "each four give way");
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_means_no_limit() {
        assert!(seconds_for(10_000, None).await < 0.01);
    }
}
