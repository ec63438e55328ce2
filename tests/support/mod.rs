//! What the integration tests share: real API servers, the real binary, and ways to wait.
//!
//! A test takes [`shared_pair`] (two servers, cleared before each test) or starts a [`Pair`] or [`Server`] of its own
//! when it needs other options. It starts a [`Syncer`], changes objects through [`Objects`], and waits with
//! [`eventually`] and [`holds_throughout`], never for a fixed time. Every process that is started here ends with the
//! test process, however that one ends.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part")]
#![allow(unreachable_pub, reason = "a test binary has no outside to reach it from")]
#![allow(clippy::panic, reason = "this is how a test fails")]

mod audit;
pub mod certs;
pub mod crashes;
pub mod desk;
pub mod dist;
pub mod edge_watch;
pub mod fault_proxy;
pub mod flow;
pub mod journey;
pub mod kcp;
pub mod kubeconfig;
mod launch;
pub mod lines;
pub mod manifests;
pub mod modes;
pub mod objects;
mod pair;
pub mod pod;
pub mod policy;
pub mod process;
pub mod rbac;
mod server;
pub mod serving;
mod shapes;
pub mod stage;
pub mod statuses;
pub mod story;
mod syncer;
pub mod tables;
pub mod tokens;

use std::fmt::{Debug, Display};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

pub use audit::{AuditEvent, AuditMark, micros_of, time_now};
pub use kubeconfig::{Ca, Credential, KubeconfigEntry, KubeconfigParts, User};
pub use launch::{PROMETHEUS, PROMTOOL, free_port, kubectl, monitoring};
pub use objects::Objects;
pub use pair::{
    Pair, PairLease, PairOptions, install_crds, shared_pair, shared_pair_with, shared_pair_with_controllers,
    wait_for_crd,
};
pub use server::{Server, ServerOptions, TEST_USER_AGENT};
pub use syncer::{Printed, SYNCER, Syncer};

/// How often a condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Tries `attempt` until it succeeds and returns its result. Panics at the deadline with `what` was expected and why
/// the last attempt failed; an attempt that hangs is given up at the deadline too.
pub async fn eventually<T, E: Display>(
    what: &str,
    deadline: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + deadline;
    let mut last = "the first attempt did not return".to_owned();
    loop {
        let Ok(result) = timeout_at(end, attempt()).await else {
            panic!("{what}: not within {deadline:?}: an attempt hung; the one before: {last}");
        };
        match result {
            Ok(value) => return value,
            Err(error) => last = error.to_string(),
        }
        assert!(Instant::now() < end, "{what}: not within {deadline:?}; at last: {last}");
        sleep(POLL_INTERVAL).await;
    }
}

/// Checks again and again for the time of `period` that `check` succeeds, for what must not happen. Panics with
/// `what` should hold and why it does not as soon as one check fails.
pub async fn holds_throughout<E: Display>(what: &str, period: Duration, mut check: impl AsyncFnMut() -> Result<(), E>) {
    let start = Instant::now();
    loop {
        if let Err(error) = check().await {
            panic!("{what}: no longer so after {:?}: {error}", start.elapsed());
        }
        if start.elapsed() >= period {
            return;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Looks again and again until what it sees has not changed for the time of `rest`, and returns that. A look that fails
/// begins the time again. Panics at the deadline with `what` should stay and what was seen last.
pub async fn comes_to_rest<T: PartialEq + Debug, E: Display>(
    what: &str,
    rest: Duration,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let mut last: Option<(T, Instant)> = None;
    eventually(&format!("{what} for {rest:?}"), deadline, async || {
        let seen = match look().await {
            Ok(seen) => seen,
            Err(error) => {
                last = None;
                return Err(error.to_string());
            }
        };
        match last.take() {
            Some((before, since)) if before == seen => {
                if since.elapsed() > rest {
                    return Ok(seen);
                }
                last = Some((before, since));
            }
            _ => last = Some((seen, Instant::now())),
        }
        Err(format!("just now it was {:?}", last.as_ref().map(|(seen, _)| seen)))
    })
    .await
}

/// Runs futures, so many at once.
pub async fn in_parallel<F: Future>(futures: impl Iterator<Item = F>, at_once: usize) {
    use futures_util::StreamExt;
    futures_util::stream::iter(futures)
        .buffer_unordered(at_once)
        .for_each(|_| async {})
        .await;
}

/// Five random letters and digits, fit for the end of an object's name and different at each call.
pub fn unique_suffix() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const DIGITS: &[u8; 32] = b"abcdefghijklmnpqrstuvwxyz2345678";
    // Three random characters keep runs apart, two counted ones the names of one run.
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let digit = |value: u32| char::from(DIGITS[(value % 32) as usize]);
    let random = [(); 3].map(|()| digit(fastrand::u32(..)));
    random.into_iter().chain([digit(count / 32), digit(count)]).collect()
}
