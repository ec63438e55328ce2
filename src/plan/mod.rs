//! What is to be synced: all configs merged with what both sides serve, as plain data.
//!
//! Two pure steps. [`Wanted::from_configs`] puts the configs together into one list of what they ask for, without
//! knowing any server. [`Plan::resolve`] compares that with discovery and gives the types that can be synced now, in
//! which direction and under which names, and what is missing where. Neither does I/O; the same input gives the same
//! plan, whatever the order of the configs. Above both stands [`Filter`]: what the owner of the edge does not let any
//! config do.

mod bounds;
#[cfg(test)]
mod cost_tests;
mod direction;
mod filter;
#[cfg(test)]
mod fuzz_tests;
pub(crate) mod kept;
mod missing;
mod names;
mod namespaces;
mod naming;
mod planned;
mod resolve;
mod selector;
#[cfg(test)]
pub(crate) mod shapes;
mod steps;
mod wanted;
mod without_namespace;
mod words;

use std::fmt;

pub use bounds::Bounds;
pub use direction::Direction;
pub(crate) use filter::is_label;
pub use filter::{Filter, Rule, RuleError};
pub use missing::{Absence, Missing, Unknown};
pub use names::Names;
pub use naming::Naming;
pub use planned::{CopiesOf, OfConfig, Pair, Plan, Selects, StatusPath, TypePlan};
pub use selector::{Added, Selection, Selector};
pub(crate) use steps::many as steps_are_taken;
#[cfg(test)]
pub(crate) use steps::taken as steps_taken;
pub(crate) use steps::{Sliced, pause};
pub use wanted::{ConfigPlace, Conversions, Entry, Objects, Origins, SyncedType, Types, Wanted};

/// Something in a config that cannot be followed. The rest of the config is followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub place: ConfigPlace,
    /// What is wrong and what follows.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigPlace { config, field } = &self.place;
        write!(f, "{config} spec.{field}: {}", self.message)
    }
}
