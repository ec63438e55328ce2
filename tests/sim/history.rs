//! What the configs of a run have asked for, from its start on, and what the sides have called objects meanwhile.
//!
//! The syncer hears of a config later than it changes, and of each kind of configs for itself: what it does has to be
//! right by some config and by some conversions that were in force, not by those that are.

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::converged::{self, is_named};
use super::converged_up;
use super::conversions::{Conversions, NAMERS};
use super::store::Key;

/// How long after a side has begun to hide a type the syncer may not have heard of it.
const MOMENT: Duration = Duration::from_secs(10);

/// See the module's doc.
#[derive(Default)]
pub struct History {
    /// What any config ever asked for.
    specs: Vec<Value>,
    /// The configs as they are now.
    configs: BTreeMap<Key, Value>,
    /// What each config has asked for since the syncer began, null while it was not there.
    versions: BTreeMap<Key, Vec<Value>>,
    /// The conversions that ever were in force, those of now last.
    names: Vec<Conversions>,
}

impl History {
    /// A config of the hub is this now. Gives the conversions, if it has any.
    pub fn config_is(&mut self, key: &Key, config: Option<&Value>) -> Option<&Conversions> {
        let spec = config.map(|config| &config["spec"]);
        if let Some(spec) = spec.filter(|spec| !self.specs.contains(spec)) {
            self.specs.push(spec.clone());
        }
        let versions = self.versions.entry(key.clone()).or_insert_with(|| vec![Value::Null]);
        let version = spec.cloned().unwrap_or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
        match spec {
            Some(spec) => self.configs.insert(key.clone(), spec.clone()),
            None => self.configs.remove(key),
        };
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
        let now = self.configs.iter();
        self.versions = now.map(|(key, spec)| (key.clone(), vec![spec.clone()])).collect();
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

    /// True if a hub object of this name was ever called so at the edge.
    pub fn had_place(&self, at_hub: &Key, at_edge: &Key) -> bool {
        self.ever(|names| names.at_edge(at_hub).as_ref() == Some(at_edge))
    }

    /// True if the edge's object was ever selected for upsync, to a type that the hub serves now, or did a moment ago.
    pub fn needs_at_hub(&self, at_edge: &Key, hidden: &BTreeMap<String, Instant>) -> bool {
        self.ever(|names| {
            let at_hub = names.at_hub(at_edge);
            let is_served = |at_hub: Key| hidden.get(&*at_hub.resource).is_none_or(|at| at.elapsed() < MOMENT);
            at_hub.is_some_and(is_served) && converged_up::is_selected(&self.specs, names, at_edge)
        })
    }

    /// True if one config has named the type all the time, so that whoever saw any version of it knows.
    pub fn always_named(&self, resource: &str) -> bool {
        let names = |versions: &Vec<Value>| versions.iter().all(|spec| is_named(&[spec], resource));
        self.versions.values().any(names)
    }

    /// True if one config has selected the edge's object for upsync all the time, whatever it was called.
    pub fn always_selected_upward(&self, at_edge: &Key) -> bool {
        self.names.iter().all(|names| {
            let selects = |spec| converged_up::is_selected([spec], names, at_edge);
            self.versions.values().any(|versions| versions.iter().all(selects))
        })
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
