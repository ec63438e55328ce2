//! A hub that is a workspace of a real kcp, which has to be there: `KCP_BIN`, or `kcp` in `PATH`. `scripts/test` runs these
//! tests where it finds one.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[allow(dead_code, reason = "a part is used here")]
#[path = "join/bench.rs"]
mod bench;
// What needs a kcp has `workspaces` in the name of its module: by that scripts/test tells it apart.
#[path = "kcp/joined_workspaces.rs"]
mod joined_workspaces;
#[path = "kcp/mailbox_workspaces.rs"]
mod mailbox_workspaces;
#[path = "kcp/provider.rs"]
mod provider;
#[path = "kcp/workspaces.rs"]
mod workspaces;
