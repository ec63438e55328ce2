//! The role `publish`, in place of kcp's api-syncagent: types of a service cluster appear in an APIExport, and objects that
//! consumers create of them are kept in sync with copies on the service cluster.
//!
//! - `kinds`: PublishedResource; `labels`: selectors; `fields`: how both are read.
//! - `naming`: what copies are called; `keys`: by which labels, annotations and hashes an object and its copy find each
//!   other; `json`: the JSON of Go, of which hashes are made.
//! - `schema`: a type of the service cluster as an APIResourceSchema; `export`: what an APIExport has of it.
//! - `filter`: which objects are synced; `copy`: what is written to copies, and what status goes back.
//! - `path` and `mutation`: what is changed on the way; `templates`: what people write in either.
#![forbid(unsafe_code)]

pub mod copy;
pub mod export;
mod fields;
pub mod filter;
pub mod json;
pub mod keys;
pub mod kinds;
pub mod labels;
pub mod mutation;
pub mod naming;
pub mod path;
pub mod schema;
mod templates;
