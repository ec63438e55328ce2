//! What the configs of a run have asked for, from its start on, and what the sides have called objects meanwhile.
//!
//! The syncer hears of a config later than it changes, and of each kind of configs for itself: what it does has to be
//! right by some config and by some conversions that were in force, not by those that are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::converged::{self, is_named};
use super::converged_up;
use super::conversions::{Conversions, NAMERS};
use super::store::Key;

/// See the module's doc.
#[derive(Default)]
pub struct History {
    /// What any config ever asked for.
    specs: Vec<Value>,
    /// The configs as they are now.
    configs: BTreeMap<Key, Value>,
    /// The conversions that ever were in force, those of now last.
    names: Vec<Conversions>,
}

impl History {
    /// A config of the hub is this now. Gives the conversions, if it has any.
    pub fn config_is(&mut self, key: &Key, config: Option<&Value>) -> Option<&Conversions> {
        let spec = config.map(|config| &config["spec"]);
        // One that selects nothing at all says nothing of what is always selected.
        let selects = |spec: &&Value| !is_only_names(spec) && !self.specs.contains(spec);
        if let Some(spec) = spec.filter(selects) {
            self.specs.push(spec.clone());
        }
        match spec {
            Some(spec) => self.configs.insert(key.clone(), spec.clone()),
            None => self.configs.remove(key),
        };
        if self.configs.is_empty() {
            // Nothing is selected for a while.
            self.specs.push(Value::Null);
        }
        if &*key.resource != NAMERS {
            return None;
        }
        let now = self.names_now();
        self.names.retain(|names| *names != now);
        self.names.push(now);
        self.names.last()
    }

    /// The syncer begins: whatever names there were before, it has not seen them.
    pub fn begins(&mut self) {
        self.names = vec![self.names_now()];
    }

    fn names_now(&self) -> Conversions {
        let namers = self.configs.iter().filter(|(key, _)| &*key.resource == NAMERS);
        Conversions::of_specs(namers.map(|(_, spec)| spec))
    }

    /// The syncer may have been answered that there are no conversions.
    pub fn may_lack_names(&mut self) {
        self.names.insert(0, Conversions::default());
    }

    /// True if the hub's object was ever selected.
    pub fn selected(&self, at_hub: &Key) -> bool {
        self.ever(|names| converged::is_selected(&self.specs, names, at_hub))
    }

    /// True if an object was ever selected that has this place at the edge.
    pub fn selected_for(&self, at_edge: &Key) -> bool {
        self.ever(|names| {
            let origin = names.at_hub(at_edge);
            origin.is_some_and(|at_hub| converged::is_selected(&self.specs, names, &at_hub))
        })
    }

    /// True if the edge's object was ever selected for upsync.
    pub fn selected_upward(&self, at_edge: &Key) -> bool {
        self.ever(|names| converged_up::is_selected(&self.specs, names, at_edge))
    }

    /// True if an object was ever selected for upsync that has this place at the hub.
    pub fn selected_upward_for(&self, at_hub: &Key) -> bool {
        self.ever(|names| {
            let origin = names.at_edge(at_hub);
            origin.is_some_and(|at_edge| converged_up::is_selected(&self.specs, names, &at_edge))
        })
    }

    /// True if every config has named the type.
    pub fn always_named(&self, resource: &str) -> bool {
        self.specs.iter().all(|spec| is_named(&[spec], resource))
    }

    /// True if every config has selected the edge's object for upsync, whatever it was called.
    pub fn always_selected_upward(&self, at_edge: &Key) -> bool {
        let selects = |names: &Conversions, spec| converged_up::is_selected([spec], names, at_edge);
        let mut all = self.names.iter();
        all.all(|names| self.specs.iter().all(|spec| selects(names, spec)))
    }

    /// How many pairs of types there ever were of which one side has the one where the other has the other.
    pub fn count_pairs_of_types(&self) -> u64 {
        let pairs: BTreeSet<_> = self.names.iter().flat_map(Conversions::pairs_of_types).collect();
        pairs.len() as u64
    }

    fn ever(&self, is_so: impl Fn(&Conversions) -> bool) -> bool {
        if self.names.is_empty() {
            return is_so(&Conversions::default());
        }
        self.names.iter().any(is_so)
    }
}

/// True for a config that does no more than to give names.
fn is_only_names(spec: &Value) -> bool {
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let mut fields = spec.as_object().into_iter().flatten();
    spec["conversions"].is_array() && fields.all(|(field, value)| field == "conversions" || is_empty(value))
}
