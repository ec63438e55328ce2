//! What people are shown of a syncer beside its log: the page for people on site and `edge-syncer bundle`, between real
//! API servers; and what is secret, which is shown nowhere.

mod support;

#[path = "shown/bench.rs"]
mod bench;
#[path = "shown/bundle.rs"]
mod bundle;
#[path = "shown/canary.rs"]
mod canary;
#[path = "shown/canary_ways.rs"]
mod canary_ways;
#[path = "shown/page.rs"]
mod page;
#[path = "shown/picture.rs"]
mod picture;
