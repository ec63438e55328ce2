//! Many runs, several at once: each has a thread, a clock and dice of its own.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::run::Outcome;

/// Runs each seed, on so many threads. Gives what came of them, in order.
pub fn run_all(
    seeds: Range<u64>,
    threads: usize,
    stop_at_first: bool,
    run: impl Fn(u64) -> Outcome + Sync,
) -> Vec<Outcome> {
    let next = AtomicU64::new(seeds.start);
    let stopped = AtomicBool::new(false);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = run(seed);
            if stop_at_first && !outcome.broken.is_empty() {
                stopped.store(true, Ordering::Relaxed);
            }
            outcomes.lock().expect("no holder panics").push(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no holder panics");
    outcomes.sort_by_key(|outcome| outcome.seed);
    outcomes
}
