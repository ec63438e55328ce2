//! `edge-syncer status` between real API servers: what it says of each config at each edge is so, it reads only, and what cannot
//! be read is said.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "status/bench.rs"]
mod bench;
#[path = "status/compared.rs"]
mod compared;
#[path = "status/hub.rs"]
mod hub;
#[path = "status/largest.rs"]
mod largest;
#[path = "status/memory.rs"]
mod memory;
#[path = "status/screen.rs"]
mod screen;
#[path = "status/unknown.rs"]
mod unknown;
