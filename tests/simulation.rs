//! The promises of the syncer, held against many simulated histories. `scripts/simulate` runs more of them.

mod sim;

use std::time::Duration;

use edge_syncer::cluster::Side;
use fastrand::Rng;

use sim::classes::{Class, away};
use sim::run::{Outcome, run, run_with};
use sim::seeds;
use sim::trace::SHORT;

/// Runs in `cargo test`, and how many at once.
const SEEDS: u64 = 1000;
const THREADS: usize = 2;

/// Runs that broke a promise once, and what has kept it since.
const REGRESSIONS: [(u64, &str); 12] = [
    (69, "a proxy's page with status 200 is no answer to a delete"),
    (
        112,
        "a type that is defined between the question for it and the watch of CRDs is found",
    ),
    (
        191,
        "a copy that loses its label while its deletion waits is deleted all the same",
    ),
    (
        92,
        "a copy that loses its label as its origin goes is deleted all the same",
    ),
    (170, "so is one whose label went while the hub was away"),
    (
        192,
        "an origin that an empty list did not name and a worker found is missed when it goes",
    ),
    (
        327,
        "held deletes that found no room in the queue are not asked for over and over",
    ),
    (430, "nor in a run of other faults"),
    (
        442,
        "a copy without its label that waits for a finalizer is made again when it is gone",
    ),
    (523, "so is one in a run of other faults"),
    (720, "so is one that an empty list did not name"),
    (
        759,
        "a copy that turns up after the origins were listed is held against them",
    ),
];

fn check(outcome: &Outcome) {
    assert!(outcome.broken.is_empty(), "{}", outcome.told(SHORT));
}

#[test]
fn keeps_its_promises_whatever_happens() {
    let outcomes = seeds::run_all(0..SEEDS, THREADS, true, |seed| run(seed, None));
    outcomes.iter().for_each(check);
}

#[test]
fn what_was_put_right_stays_right() {
    for (seed, what) in REGRESSIONS {
        let outcome = run(seed, None);
        assert!(outcome.broken.is_empty(), "{what}\n{}", outcome.told(SHORT));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        assert_eq!(run(seed, None).fingerprint, run(seed, None).fingerprint, "seed {seed}");
    }
}

#[test]
fn outlives_days_without_the_hub() {
    let classes = vec![Class::Offline];
    let outcome = run_with(1, Rng::with_seed(1), classes, async |run, _| {
        run.work_for(Duration::from_secs(120)).await;
        away(run, Side::Hub, true, Duration::from_secs(3 * 86_400)).await;
    });
    check(&outcome);
    assert!(
        outcome.converged_in <= Duration::from_secs(60),
        "{:?}",
        outcome.converged_in
    );
}
