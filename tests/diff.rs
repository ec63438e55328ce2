//! `edge-syncer diff` and `run --dry-run` between real API servers: what they show is what `run` then does, and nothing is
//! changed.

mod support;

#[path = "diff/bench.rs"]
mod bench;
#[path = "diff/dry_run.rs"]
mod dry_run;
#[path = "diff/errors.rs"]
mod errors;
#[path = "diff/shown.rs"]
mod shown;
