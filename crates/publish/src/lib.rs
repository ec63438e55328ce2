//! The role `publish`, in place of kcp's api-syncagent: types of a service cluster appear in an APIExport, and objects
//! that consumers create of them are kept in sync with copies on the service cluster. `agent` decides, as plain data on
//! the driver; `publishing` does what is done for a type, `sync` for an object.
//!
//! Promises: a copy is deleted only when its primary is being deleted, and only the one with its UID; what others
//! change in a copy stays unless the primary changes it too; workspaces take turns; an object is worked on once at a
//! time.
//!
//! It never changes or deletes a schema that is there, but for its agent's marks, touches the copy of another primary,
//! or deletes anything for having left a list. It needs nothing of the syncer.
#![forbid(unsafe_code)]

mod agent;
mod apply;
pub mod cel;
mod check;
pub mod copy;
pub mod export;
mod fields;
pub mod filter;
pub mod json;
mod kcp;
pub mod keys;
pub mod kinds;
pub mod labels;
pub mod lifecycle;
pub mod mutation;
pub mod naming;
pub mod path;
mod publishing;
mod related;
mod rights;
mod rivals;
mod route;
mod run;
pub mod schema;
mod servers;
mod sides;
mod start;
mod sync;
mod templates;
mod trouble;
mod turn;

pub use agent::Parts;
pub use check::check;
pub use route::check_rules;
pub use run::{Settings, run};
pub use servers::HostOverride;
pub use start::Reference;
