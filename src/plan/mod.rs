//! What is to be synced: all configs merged with what both sides serve, as plain data.
//!
//! Two pure steps. [`Wanted::from_configs`] merges the configs into one selection per resource, without knowing any
//! server. [`Plan::resolve`] holds that against discovery and gives the types that can be synced now, and what is
//! missing where. Neither does I/O; the same input gives the same plan, whatever the order of the configs.
//! Above both stands [`Filter`]: what the owner of the edge does not let any config do.

mod filter;
mod resolve;
mod selector;
mod wanted;

use std::fmt;

pub use filter::{Filter, Rule, RuleError};
pub use resolve::{Missing, Plan, TypePlan};
pub use selector::{Names, Selection, Selector};
pub use wanted::{SyncedType, Wanted, WantedType};

/// Something in a config that cannot be followed. The rest of the config is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Name of the config.
    pub config: String,
    /// Where in its spec, `clusterScope[2].resource`.
    pub field: String,
    /// What is wrong and what follows.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SyncerConfig//{} spec.{}: {}", self.config, self.field, self.message)
    }
}
