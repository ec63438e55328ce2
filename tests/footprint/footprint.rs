//! What a syncer takes of machine, links and servers, measured between two real API servers; `scripts/footprint` runs it.
//!
//! It is a benchmark and not a test: it says what it found and fails only when there is nothing to be found, because a
//! server does not start or the copies never arrive. Figures go to stdout, progress to stderr.

#![expect(clippy::print_stdout, reason = "the tables go to stdout")]
#![expect(clippy::print_stderr, reason = "and progress to stderr")]

mod bench;
mod bystander;
mod changes;
mod life;
mod link;
mod load;
mod requests;
mod stress;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::num::NonZeroU32;
use std::time::Duration;

use argh::FromArgs;

use bench::{Bench, Figures};
use stress::Parts;
use support::Syncer;
use table::Table;

/// Measure the syncer that `EDGE_SYNCER_BIN` names.
#[derive(FromArgs)]
struct Args {
    /// how many `ConfigMap`s of 4 KiB to sync; may be given several times (default: 1000 and 5000)
    #[argh(option)]
    objects: Vec<NonZeroU32>,

    /// seconds to watch it idle (default: 60)
    #[argh(option, default = "NonZeroU32::new(60).expect(\"it is not 0\")")]
    idle: NonZeroU32,

    /// how many changes to time, of each of three kinds: downsync, status, upsync (default: 50)
    #[argh(option, default = "NonZeroU32::new(50).expect(\"it is not 0\")")]
    updates: NonZeroU32,

    /// put it under stress instead: all, or some of objects, large, burst, offline, reconnects, churn, bomb and failing, with commas
    #[argh(option)]
    stress: Option<Parts>,

    /// also how long another client of the edge waits for answers, during the first convergence and while nothing happens
    #[argh(switch)]
    bystander: bool,

    /// minutes for which the parts of stress last that go on for a time (default: 3)
    #[argh(option, default = "NonZeroU32::new(3).expect(\"it is not 0\")")]
    minutes: NonZeroU32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args: Args = argh::from_env();
    if let Some(parts) = &args.stress {
        print(&stress::run(parts, args.minutes.get()).await);
        return;
    }
    if args.objects.is_empty() {
        args.objects = [1000, 5000].into_iter().filter_map(NonZeroU32::new).collect();
    }
    let mut columns = Vec::new();
    for count in &args.objects {
        columns.push((format!("n = {count}"), measure(count.get(), &args).await));
    }
    let binary = std::fs::metadata(Syncer::program()).expect("the binary has been run");
    for (_, figures) in &mut columns {
        figures.add("size of the binary", table::bytes(binary.len()));
    }
    for (head, figures) in &columns {
        println!("Requests, {head}\n");
        for (phase, requests) in figures.requests() {
            println!("  {phase}\n{requests}");
        }
    }
    print(&Table::new(&columns));
}

fn print(table: &Table) {
    println!("{}\n{}", table.text(), table.markdown());
}

/// All figures for `count` objects.
async fn measure(count: u32, args: &Args) -> Figures {
    let mut bench = Bench::start(count).await;
    bench.converge(args.bystander).await;
    bench.time_downsync(args.updates.get()).await;
    bench.stay_idle(Duration::from_secs(args.idle.get().into())).await;
    bench.restart().await;
    bench.add_load_both_ways().await;
    bench.time_status(args.updates.get()).await;
    bench.flap_status().await;
    bench.time_upsync(args.updates.get()).await;
    bench.end()
}

/// Says on stderr what is going on.
fn progress(count: u32, what: &str) {
    say(&format!("n = {count}: {what}"));
}

fn say(what: &str) {
    eprintln!("footprint: {what}");
}
