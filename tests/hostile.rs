//! What hostile, odd or merely busy peers do, between real API servers: other hubs and other edges, controllers that copy,
//! delete and change, people who delete what others need.

mod support;

#[path = "hostile/bounds.rs"]
mod bounds;
#[path = "hostile/lines.rs"]
mod lines;
