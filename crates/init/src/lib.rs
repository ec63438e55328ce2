//! The role `init`, in place of kcp's init-agent: each workspace that waits gets the objects that the InitTargets of
//! its type want, and is then let go. `agent` decides, as plain data on the driver; `fill` does what is done in one
//! workspace.
//!
//! Promises: a workspace is let go only when all targets of its type were served to their end, as they are then;
//! nothing is created after a failure; a source that has to wait keeps no other one waiting.
//!
//! It never changes or deletes an object that is there, touches a workspace after it was let go, or uses what is known
//! of one workspace for another. It needs nothing of the syncer.
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
