//! Several syncers for one edge: one is active, another takes over; and without an election they do each other no harm.

mod support;

#[path = "leader/by_hand.rs"]
mod by_hand;
#[path = "leader/candidates.rs"]
mod candidates;
#[path = "leader/manifest.rs"]
mod manifest;
#[path = "leader/outages.rs"]
mod outages;
#[path = "leader/takeover.rs"]
mod takeover;
#[path = "leader/without.rs"]
mod without;
