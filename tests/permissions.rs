//! Permissions: what `edge-syncer gen rbac` prints is enough and not too much, and what `edge-syncer check` says is so.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "permissions/bench.rs"]
mod bench;
#[path = "permissions/checks.rs"]
mod checks;
#[path = "permissions/first.rs"]
mod first;
#[allow(dead_code, reason = "a part is used here")]
#[path = "join/bench.rs"]
mod join_bench;
#[path = "permissions/joined.rs"]
mod joined;
#[path = "permissions/own.rs"]
mod own;
#[path = "permissions/printed.rs"]
mod printed;
#[path = "permissions/turns.rs"]
mod turns;
