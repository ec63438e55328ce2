//! What the syncer does between two real API servers that nobody stops, kills or lies for: one binary, so that its tests
//! share a few pairs of servers.

#[path = "../hostile/figures.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod figures;
#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod bookkeeping;
mod by_kubectl;
mod columns;
mod compression;
mod conditions;
mod config_status;
mod downsync;
mod edge_sync_config;
mod edges;
mod events;
mod failures;
mod heartbeat;
mod kinds;
mod lifecycle;
mod metrics;
mod overwrite;
mod renaming;
mod restart;
mod status;
mod status_cost;
mod steady;
mod upsync;
mod upsync_limits;
mod upsync_namespaces;
mod version_later;
mod writes;
