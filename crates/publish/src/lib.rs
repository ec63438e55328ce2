//! The role `publish`, in place of kcp's api-syncagent: types of a service cluster appear in an APIExport, and objects that
//! consumers create of them are kept in sync with copies on the service cluster.
#![forbid(unsafe_code)]

pub mod mutation;
pub mod path;
