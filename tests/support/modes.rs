//! The same test in watch mode and in poll mode.

#![allow(unused_macros, reason = "each test binary uses a part")]

use std::time::Duration;

/// More flags for the syncer.
pub type Mode = &'static [&'static str];

/// Watch both sides.
pub const WATCH: Mode = &[];
/// Poll both sides.
pub const POLL: Mode = &["--mode=poll", "--poll-interval=1s", "--edge-mode=poll"];
/// Poll the hub and watch the edge.
pub const POLL_THE_HUB: Mode = &["--mode=poll", "--poll-interval=1s"];

/// How long three looks take where both sides or one are polled.
const THREE_LOOKS: Duration = Duration::from_millis(3_300);

tokio::task_local! {
    /// The mode of the test that runs.
    static NOW: Mode;
}

/// Runs a test that takes `mode`, so that what it calls knows that too.
pub async fn reported_in<T>(mode: Mode, test: impl Future<Output = T>) -> T {
    NOW.scope(mode, test).await
}

/// The time in which the syncer of the test that runs would do what it must not: `at_once` where it is reported
/// everything, and three looks where it polls.
pub fn time_to_react(at_once: Duration) -> Duration {
    let polls = |mode: &Mode| mode.iter().any(|flag| flag.ends_with("mode=poll"));
    if NOW.try_with(polls).unwrap_or(false) {
        at_once.max(THREE_LOOKS)
    } else {
        at_once
    }
}

/// Makes tests, in a module of their own, of functions that take a [`Mode`].
macro_rules! in_mode {
    ($module:ident, $mode:expr, $($name:ident),+ $(,)?) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                crate::support::modes::reported_in($mode, Box::pin(super::$name($mode))).await;
            })+
        }
    };
}

/// Makes each test run when watching both sides and when polling both.
macro_rules! in_both_modes {
    ($($name:ident),+ $(,)?) => {
        crate::support::modes::in_mode!(watch, crate::support::modes::WATCH, $($name),+);
        crate::support::modes::in_mode!(poll, crate::support::modes::POLL, $($name),+);
    };
}

pub(crate) use {in_both_modes, in_mode};
