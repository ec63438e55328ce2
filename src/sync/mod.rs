//! Bringing one object in step: what to do is decided by pure functions, what was decided is done by one.
//!
//! One file per direction of travel; [`object`] cleans and hashes, `kinds` knows what differs from kind to kind,
//! [`ownership`] says whose an object is.

pub mod downsync;
mod kinds;
pub mod managed_fields;
pub mod object;
pub mod ownership;
