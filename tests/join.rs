//! `edge-syncer gen` between real API servers: what it makes at the hub, what it writes for the edge, and that an edge syncs
//! with that alone.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "join/access.rs"]
mod access;
#[path = "join/bench.rs"]
mod bench;
#[path = "join/edge.rs"]
mod edge;
#[path = "join/hub.rs"]
mod hub;
#[path = "join/interrupted.rs"]
mod interrupted;
#[path = "join/kustomize.rs"]
mod kustomize;
#[path = "join/leave.rs"]
mod leave;
#[path = "join/prep.rs"]
mod prep;
#[path = "join/refused.rs"]
mod refused;
#[path = "join/rights.rs"]
mod rights;
#[path = "join/service.rs"]
mod service;
