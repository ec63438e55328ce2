//! Runs the simulation for as many seeds as wanted; `scripts/simulate` starts it. Stories of runs that broke a promise
//! go to stdout, progress to stderr; the exit code is 1 if there were any.

#![expect(clippy::print_stdout, reason = "stories go to stdout")]
#![expect(clippy::print_stderr, reason = "and progress to stderr")]

#[path = "../sim/mod.rs"]
mod sim;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use argh::FromArgs;
use tokio::time::Instant;

use sim::classes::{ALL, Class};
use sim::run::{Outcome, run};
use sim::seeds;
use sim::trace::SHORT;

/// So many runs are reported as progress.
const PROGRESS: u64 = 1000;

/// Run the syncer between two simulated API servers.
#[derive(FromArgs)]
struct Args {
    /// how many runs (default: 1000)
    #[argh(option, default = "1000")]
    seeds: u64,

    /// the first seed (default: 0)
    #[argh(option, default = "0")]
    from: u64,

    /// only this class of faults; a wrong name lists them
    #[argh(option, from_str_fn(class))]
    class: Option<Class>,

    /// runs at once (default: 2)
    #[argh(option, default = "2")]
    threads: usize,

    /// tell all of every run, also of those that kept all promises
    #[argh(switch)]
    tell: bool,

    /// print also the syncer's own log lines from info on, each with its time in the run; for one seed
    #[argh(switch)]
    log: bool,

    /// go on after the first run that breaks a promise, and tell of each in a line
    #[argh(switch)]
    all: bool,
}

fn class(name: &str) -> Result<Class, String> {
    Class::named(name).ok_or_else(|| format!("no such class; there are {ALL:?}"))
}

fn main() -> ExitCode {
    let args: Args = argh::from_env();
    let start = Instant::now();
    if args.log {
        show_log(start);
    }
    let seeds = args.from..args.from.saturating_add(args.seeds);
    let done = AtomicU64::new(0);
    let outcomes = seeds::run_all(seeds, args.threads, !args.all, |seed| {
        let mut outcome = run(seed, args.class);
        print_of(&outcome, &args);
        outcome.forget_story();
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS) {
            eprintln!("simulate: {done} of {} runs", args.seeds);
        }
        outcome
    });
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.broken.is_empty()).collect();
    tell(&outcomes, failed.len(), start.elapsed());
    ExitCode::from(u8::from(!failed.is_empty()))
}

/// A run's clock begins where the real one stands, so that of the first run begins at `start`.
fn show_log(start: Instant) {
    let mut builder = env_logger::Builder::new();
    for module in ["edge_syncer", "kube_lite", "driver"] {
        builder.filter_module(module, log::LevelFilter::Info);
    }
    builder.format(move |out, record| {
        let at = start.elapsed().as_secs_f64();
        writeln!(out, "{at:12.3} {:5} {}", record.level(), record.args())
    });
    builder.target(env_logger::Target::Stdout).init();
}

/// Reports a run what is asked for.
fn print_of(outcome: &Outcome, args: &Args) {
    if args.tell {
        println!("{}", outcome.reported(usize::MAX));
    } else if !outcome.broken.is_empty() && args.all {
        println!("seed {} {:?}: {}", outcome.seed, outcome.classes, outcome.broken[0]);
    } else if !outcome.broken.is_empty() {
        println!("{}", outcome.reported(SHORT));
    }
}

fn tell(outcomes: &[Outcome], failed: usize, time: Duration) {
    let mut times: Vec<Duration> = outcomes.iter().map(|outcome| outcome.converged_in).collect();
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get(times.len().saturating_sub(1) * share / 100)
            .copied()
            .unwrap_or_default()
    };
    eprintln!(
        "simulate: {} runs in {time:.1?}, {failed} broke a promise; synced again after {:?} (half), {:?} (99 %), {:?} (all)",
        outcomes.len(),
        at(50),
        at(99),
        at(100)
    );
}
