//! Waiting for conditions.

use std::time::Duration;

use crate::SOON;
use crate::support::modes::{POLL, POLL_THE_HUB, WATCH, reported_in};
use crate::support::story::a_while;
use crate::support::{eventually, holds_throughout};

#[tokio::test]
#[should_panic(expected = "the sun rises: not within 100ms; at last: it is night")]
async fn eventually_says_why_it_gave_up() {
    eventually("the sun rises", Duration::from_millis(100), async || {
        Err::<(), _>("it is night")
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "an attempt hung")]
async fn eventually_gives_up_an_attempt_that_hangs() {
    eventually("it returns", Duration::from_millis(100), async || {
        std::future::pending::<Result<(), String>>().await
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "below three: no longer so after")]
async fn holds_throughout_fails_with_the_first_failed_check() {
    let mut count = 0;
    holds_throughout("below three", SOON, async || {
        count += 1;
        if count < 3 { Ok(()) } else { Err(count) }
    })
    .await;
}

#[tokio::test]
async fn what_must_not_happen_is_watched_for_three_polls_where_a_test_polls() {
    let look = Duration::from_secs(1);
    for mode in [POLL, POLL_THE_HUB] {
        assert!(reported_in(mode, async { a_while() }).await > 3 * look);
    }
    assert!(reported_in(WATCH, async { a_while() }).await < look);
    assert!(a_while() < look, "no mode is known");
}
