//! The role `init`, in place of kcp's init-agent: each workspace that waits gets the objects that the InitTargets of its type
//! want, and is then let go.
//!
//! ```text
//! InitTargets ──► WorkspaceTypes ──► shards ──► workspaces that wait ──► templates ──► objects ──► initializer off
//! ```
//!
//! - `run`: what is started; `servers`: where the workspaces are; `sides`: the ids of both.
//! - `agent`: what is decided, as plain data on the driver.
//! - `check`: whether that would work; `stored`: what there is of one target, to be printed.
//! - `fill`: what is done in one workspace. Nothing else talks to a server.
//! - `objects`: the objects of a target for a workspace, in the order in which they are created.
//! - `kinds`: InitTarget and InitTemplate; `kcp`: what is read of kcp's own objects.
#![forbid(unsafe_code)]

mod agent;
mod check;
mod fill;
mod kcp;
pub mod kinds;
pub mod objects;
mod run;
mod servers;
mod sides;
mod stored;
mod workspace;

pub use check::{Where, check};
pub use run::{Settings, run};
pub use stored::{At, Stored, StoredError, stored};
pub use workspace::ConfigWorkspace;
