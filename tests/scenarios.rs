//! Acceptance scenarios that no other file has, in each mode.

mod support;

#[path = "scenarios/convergence.rs"]
mod convergence;
#[path = "scenarios/infrastructure.rs"]
mod infrastructure;
#[path = "scenarios/load.rs"]
mod load;
#[path = "scenarios/metadata.rs"]
mod metadata;
#[path = "scenarios/order.rs"]
mod order;
#[path = "scenarios/rights.rs"]
mod rights;
#[path = "scenarios/room.rs"]
mod room;
#[path = "scenarios/versions.rs"]
mod versions;
