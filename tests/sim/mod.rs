//! A deterministic simulation: the real engine between two simulated API servers, on a clock that jumps.
//!
//! The same seed gives the same run. A run has three parts: people work on both sides while faults strike (`classes`);
//! everything calms down and the sides have to become the same (`converged`); and for an hour nothing may happen.
//! What must never happen is checked when it happens (`ledger`).
//!
//! The simulated server is faithful in what the syncer relies on, and no more:
//! - `store` versions, the past, what is compacted; `types` discovery; `verbs` and `fields` the writing verbs and who
//!   owns which field, every list taken as one field; `reading` and `watch` the reading verbs;
//! - `weather` what goes wrong on the way to it and back; `server` all of that behind the border.

#![allow(
    unreachable_pub,
    dead_code,
    reason = "each program that includes this uses a part, and has no outside"
)]

pub mod classes;
mod converged;
mod disasters;
mod fields;
mod judge;
mod ledger;
mod panics;
mod patch;
mod reading;
mod refusal;
mod request;
pub mod run;
pub mod seeds;
mod server;
mod store;
pub mod trace;
mod types;
mod users;
mod verbs;
mod watch;
mod weather;
mod world;
