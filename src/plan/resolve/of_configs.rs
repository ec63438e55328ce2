//! What each config selects of a type, where there are several: its status counts what is its own.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::plan::naming::Naming;
use crate::plan::planned::OfConfig;
use crate::plan::selector::Layer;
use crate::plan::wanted::{Entry, Wanted};
use crate::plan::{ConfigPlace, Selector};

/// The selections of one type, by config; none where a single config asks for anything.
#[derive(Default)]
pub(super) struct OfConfigs<'a>(BTreeMap<&'a str, Selector>);

impl<'a> OfConfigs<'a> {
    /// Adds what an entry selects to what its config selects, of which the `layer` is what it selects of all of a group.
    pub(super) fn note(
        &mut self,
        entry: &'a Entry,
        namespaced: bool,
        layer: Option<Rc<Layer>>,
        empty: impl FnOnce() -> Selector,
    ) {
        let of_config = self.0.entry(&entry.place.config).or_insert_with(empty);
        match layer {
            Some(layer) => of_config.add_common(&layer),
            // What is wrong with it has been noted.
            None => drop(super::select(of_config.own(), entry, namespaced)),
        }
    }

    pub(super) fn rename(&mut self, naming: &Rc<Naming>) {
        for selector in self.0.values_mut() {
            selector.rename(naming);
        }
    }

    /// What the configs at these places ask for, in their order. One without a selection of its own, as of objects that a
    /// conversion gives another kind, counts as asking for all.
    pub(super) fn of(mut self, places: &[&ConfigPlace]) -> Vec<OfConfig> {
        let mut all: Vec<OfConfig> = Vec::new();
        for place in places {
            if all.last().is_none_or(|last| last.config != place.config) {
                all.push(OfConfig {
                    config: Rc::clone(&place.config),
                    selects: self.0.remove(&*place.config).map(Rc::new),
                });
            }
        }
        all
    }
}

/// True if more than one config asks for something. The entries are in the order of the configs.
pub(super) fn are_several(wanted: &Wanted) -> bool {
    let config = |entry: Option<&Entry>| entry.map(|entry| Rc::clone(&entry.place.config));
    config(wanted.entries.first()) != config(wanted.entries.last())
}
