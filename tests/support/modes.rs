//! The same test in watch mode and in poll mode.

#![allow(unused_macros, reason = "each test binary uses a part")]

/// More flags for the syncer.
pub type Mode = &'static [&'static str];

/// Watch both sides.
pub const WATCH: Mode = &[];
/// Poll both sides.
pub const POLL: Mode = &["--mode=poll", "--poll-interval=1s", "--edge-mode=poll"];
/// Poll the hub and watch the edge.
pub const POLL_THE_HUB: Mode = &["--mode=poll", "--poll-interval=1s"];

/// Makes tests, in a module of their own, of functions that take a [`Mode`].
macro_rules! in_mode {
    ($module:ident, $mode:expr, $($name:ident),+ $(,)?) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                super::$name($mode).await;
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
