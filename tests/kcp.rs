//! A hub that is a workspace of a real kcp, which has to be there: `KCP_BIN`, or `kcp` in `PATH`. `scripts/test` runs these
//! tests where it finds one.

mod support;

#[path = "kcp/workspaces.rs"]
mod workspaces;
