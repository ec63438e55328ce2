//! One object at a time: what it should be, whose it is, and making it so.

mod bookkeeping;
mod canonical;
mod cascade;
mod conflicting;
pub(crate) mod copy_place;
pub mod definition;
pub mod downsync;
mod dropped_versions;
mod duplicates;
mod emptied;
mod field_set;
#[cfg(test)]
mod fuzz_tests;
pub(crate) mod given_up;
pub mod identity;
pub mod job;
pub mod kinds;
mod left_to_others;
pub mod managed_fields;
pub mod meta;
mod mistyped;
pub mod object;
pub mod own_objects;
mod ownerless;
pub mod ownership;
mod pull_secrets;
mod read;
pub mod reconcile;
mod references;
mod replace;
mod restarts;
pub mod retire;
mod scaled;
#[cfg(test)]
mod scripted;
pub mod status_return;
pub mod status_writer;
mod stored_versions;
mod take_over;
mod top_fields;
pub(crate) mod undeclared;
mod unowned;
pub mod upsync;
mod whole_lists;
