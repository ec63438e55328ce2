//! Bringing one object in step: what to do is decided by pure functions, what was decided is done by one.
//!
//! One file per direction of travel; [`object`] cleans and hashes, [`ownership`] says whose an object is.

pub mod downsync;
pub mod managed_fields;
pub mod object;
pub mod ownership;
