//! The promises of the syncer, held against many simulated histories. `scripts/simulate` runs more of them.

mod sim;

#[path = "simulation/between.rs"]
mod between;
#[path = "simulation/bounds.rs"]
mod bounds;
#[path = "simulation/changes.rs"]
mod changes;
#[path = "simulation/kills.rs"]
mod kills;
#[path = "simulation/leftovers.rs"]
mod leftovers;
#[path = "simulation/lines.rs"]
mod lines;
#[path = "simulation/names.rs"]
mod names;
#[path = "simulation/outages.rs"]
mod outages;
#[path = "simulation/outdated.rs"]
mod outdated;
#[path = "simulation/records.rs"]
mod records;
#[path = "simulation/refused.rs"]
mod refused;
#[path = "simulation/sources.rs"]
mod sources;
#[path = "simulation/statuses.rs"]
mod statuses;
#[path = "simulation/stories.rs"]
mod stories;
#[path = "simulation/takers.rs"]
mod takers;
#[path = "simulation/upward.rs"]
mod upward;
#[path = "simulation/vanished.rs"]
mod vanished;

use std::time::Duration;

use edge_syncer::side::Side;
use fastrand::Rng;
use tokio::time::sleep;

use sim::classes::{Class, away};
use sim::run::{Outcome, run, run_with};
use sim::seeds;
use sim::trace::SHORT;

/// Runs in `cargo test`, and how many at once.
const SEEDS: u64 = 1000;
const THREADS: usize = 2;

fn check(outcome: &Outcome) {
    assert!(outcome.broken.is_empty(), "{}", outcome.reported(SHORT));
}

#[test]
fn keeps_its_promises_whatever_happens() {
    let outcomes = seeds::run_all(0..SEEDS, THREADS, true, |seed| run(seed, None));
    outcomes.iter().for_each(check);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        assert_eq!(run(seed, None).fingerprint, run(seed, None).fingerprint, "seed {seed}");
    }
}

#[test]
fn outlives_a_thousand_reconnects() {
    let outcome = run_with(3, Rng::with_seed(3), vec![Class::Flapping], async |run, _| {
        for round in 0..1000 {
            let side = if round % 2 == 0 { Side::Hub } else { Side::Edge };
            run.down(side, round % 3 == 0, Duration::from_secs(2));
            sleep(Duration::from_secs(45)).await;
        }
    });
    check(&outcome);
}

/// Half a minute on, half a minute off.
#[test]
fn outlives_hours_of_a_link_that_comes_and_goes() {
    for (seed, side) in [(7, Side::Hub), (8, Side::Edge)] {
        let outcome = run_with(seed, Rng::with_seed(seed), vec![Class::Flapping], async |run, _| {
            for round in 0..240 {
                run.down(side, round % 3 == 0, Duration::from_secs(30));
                run.work_for(Duration::from_secs(60)).await;
            }
        });
        check(&outcome);
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// One process, which is never started again.
#[test]
fn outlives_a_week_without_a_side() {
    for (seed, side) in [(1, Side::Hub), (2, Side::Edge)] {
        let outcome = run_with(seed, Rng::with_seed(seed), vec![Class::Offline], async |run, _| {
            // Some twenty sources, a try each half minute.
            run.ledger.borrow_mut().most_requests = 600_000;
            run.work_for(Duration::from_secs(120)).await;
            away(run, side, seed % 2 == 0, 7 * DAY).await;
        });
        check(&outcome);
    }
}

#[test]
fn outlives_a_month_without_the_hub_and_thirty_restarts() {
    let classes = vec![Class::Offline, Class::Crash];
    // A seed whose servers do not ignore the request for a streaming list: each start would wait a minute for its end.
    let outcome = run_with(1, Rng::with_seed(1), classes, async |run, _| {
        // A try each half minute for each kind of config, and some for the record and discovery of each start.
        run.ledger.borrow_mut().most_requests = 400_000;
        run.work_for(Duration::from_secs(120)).await;
        for _ in 0..30 {
            away(run, Side::Hub, true, DAY).await;
            run.kill().await;
            run.start();
        }
    });
    check(&outcome);
    assert!(
        outcome.converged_in <= Duration::from_secs(60),
        "{:?}",
        outcome.converged_in
    );
}
