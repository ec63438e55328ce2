//! The role `publish`, in place of kcp's api-syncagent: types of a service cluster appear in an APIExport, and objects that
//! consumers create of them are kept in sync with copies on the service cluster.
//!
//! - `kinds`: PublishedResource; `labels`: selectors; `fields`: how both are read.
//! - `naming`: what copies are called; `keys`: by which labels, annotations and hashes an object and its copy find each
//!   other; `json`: the JSON of Go, of which hashes are made.
//! - `schema`: a type of the service cluster as an APIResourceSchema; `export`: what an APIExport has of it.
//! - `filter`: which objects are synced; `copy`: what is written to copies, and what status goes back; `apply`: the same by
//!   server-side apply; `lifecycle`: which step is the next one, from the finalizer to the delete.
//! - `run`: what is started; `check`: whether it would work, with the `rights` that it needs; `start`: where slice and export are; `servers`, `sides`: where the workspaces are.
//! - `agent`: what is decided, as plain data on the driver. `publishing`: what is done for a type; `sync`: for an object.
//!   Nothing else talks to a server.
//! - `kcp`: what is read of kcp's own objects; `turn`: what is known of an object; `route`: by which rules a type is synced; `rivals`: which of two that want the same has it; `related`: what belongs to it; `trouble`: why that fails.
//! - `path`, `cel` and `mutation`: what is changed on the way; `templates`: what people write in either.
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
