//! edge-syncer syncs objects between an edge cluster and its mailbox workspace on a hub.
//!
//! The modules, in the order in which data passes them: configs at the hub become a plan, the plan starts sources,
//! sources fill the queue, workers sync one object after the other, and the outcome is reported. All that is known is
//! in the model, which is plain data; the driver runs it, and the engine does what it asks for (docs/architecture.md).
//! The driver, with sources and queue, and what talks to one server are crates of their own.
//!
//! ```text
//! configs at the hub ──► plan ──► sources ──► queue ──► reconcile ──► report
//!                         └──────────── model ────────────┘
//! ```

mod version;

pub mod cli;

pub mod api;
#[cfg(feature = "admin")]
pub mod join;
pub mod plan;
pub mod side;

pub mod sync;

pub mod model;

pub mod clocks;
pub mod engine;
#[cfg(feature = "init")]
pub mod init;
pub mod metrics;
pub mod on_site;
#[cfg(feature = "publish")]
pub mod publish;
pub mod renewal;
pub mod report;

pub mod permissions;

mod ask;
#[cfg(feature = "admin")]
mod bundle;
mod check;
#[cfg(feature = "admin")]
mod diff;
mod sides;
#[cfg(feature = "admin")]
mod status;
mod survey;
mod syncer;

// What each command of the command line does.
pub use ask::gen_rbac;
#[cfg(feature = "admin")]
pub use bundle::bundle;
pub use check::check;
#[cfg(feature = "admin")]
pub use diff::diff;
#[cfg(feature = "admin")]
pub use join::run as generate;
#[cfg(feature = "admin")]
pub use status::status;
pub use syncer::run;
