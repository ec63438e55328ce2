//! Tests of what the other integration tests stand on, against real servers.

mod support;

#[path = "harness/configs.rs"]
mod configs;
#[path = "harness/kubeconfigs.rs"]
mod kubeconfigs;
#[path = "harness/objects.rs"]
mod objects;
#[path = "harness/processes.rs"]
mod processes;
#[path = "harness/servers.rs"]
mod servers;
#[path = "harness/tables.rs"]
mod tables;
#[path = "harness/waiting.rs"]
mod waiting;

use std::time::Duration;

/// How long anything may take here, where no syncer has to catch up with anything.
const SOON: Duration = Duration::from_secs(120);
