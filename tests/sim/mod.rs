//! A deterministic simulation: the real engine between two simulated API servers, on a clock that jumps.
//!
//! The same seed gives the same run. A run has three parts: people work on both sides while faults strike (`classes`);
//! everything calms down and the sides have to become the same (`converged`); and for an hour nothing may happen.
//! What must never happen is checked when it happens (`ledger`). In some runs objects go up to the hub too: `field` has
//! the people who make them, `converged_up` judges what became of them; `choices` has what the edge's owner has chosen.
//! In some runs objects are called otherwise at the edge than at the hub: `namers` has the people who want that,
//! `conversions` knows what is called how.
//!
//! The simulated server is faithful in what the syncer relies on, and no more (`tests/assumptions` holds it and a real one
//! against the same cases):
//! - `store` versions, the past, what is compacted; `types` discovery; `verbs` and `fields` the writing verbs and who
//!   owns which field, every list taken as one field; `reading` and `watch` the reading verbs;
//! - `lines` what the syncer says of it all;
//! - `weather` what goes wrong on the way to it and back; `others` who acts between two requests; `server` all of that
//!   behind the border.

#![allow(
    unreachable_pub,
    dead_code,
    reason = "each program that includes this uses a part, and has no outside"
)]

pub mod accidents;
pub mod choices;
pub mod classes;
mod converged;
mod converged_up;
pub mod conversions;
mod field;
mod fields;
mod fight;
pub mod flows;
mod history;
mod judge;
pub mod ledger;
pub mod lines;
mod namers;
pub mod others;
mod panics;
mod patch;
mod places;
mod reading;
mod refusal;
pub mod request;
pub mod run;
pub mod seeds;
pub mod seen;
pub mod server;
pub mod store;
mod taken;
mod takers;
pub mod trace;
pub mod types;
mod users;
mod verbs;
mod watch;
pub mod weather;
pub mod world;
