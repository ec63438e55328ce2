//! Entries that name everything of an API group.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Resolver, add};
use crate::plan::selector::Layer;
use crate::plan::steps;
use crate::plan::wanted::Entry;
use crate::plan::words::is_never_synced_unnamed;
use crate::side::Side;

/// What entries select of a whole group. It is the same for each of its types, which may be a thousand, so that they
/// share it.
#[derive(Default)]
pub(super) struct OfGroup<'a> {
    entries: Vec<&'a Entry>,
    /// The configs of the entries.
    configs: BTreeSet<&'a str>,
    /// The selection of cluster-scoped types, and of namespaced ones, once it is needed.
    layers: [Option<Rc<Layer>>; 2],
    /// The same of the entries of one config.
    of_config: BTreeMap<(&'a str, bool), Rc<Layer>>,
}

impl<'a> OfGroup<'a> {
    /// What the entries of one config select.
    pub(super) fn layer_of(&mut self, config: &'a str, namespaced: bool, own: Option<&str>) -> Rc<Layer> {
        let entries = self.entries.iter();
        let layer = self.of_config.entry((config, namespaced)).or_insert_with(|| {
            let mut layer = Layer::sparing(own);
            for entry in entries.filter(|entry| &*entry.place.config == config) {
                steps::one();
                let _ = add(&mut layer, &entry.objects, namespaced);
            }
            Rc::new(layer)
        });
        Rc::clone(layer)
    }

    pub(super) fn layer(&mut self, namespaced: bool, own: Option<&str>, tells_named: bool) -> Rc<Layer> {
        let entries = &self.entries;
        let layer = self.layers[usize::from(namespaced)].get_or_insert_with(|| {
            let mut layer = Layer::sparing(own);
            if tells_named {
                layer.tell_named();
            }
            for entry in entries {
                steps::one();
                // Nothing is wrong with an entry that means either scope.
                let _ = add(&mut layer, &entry.objects, namespaced);
            }
            Rc::new(layer)
        });
        Rc::clone(layer)
    }
}

impl<'a> Resolver<'a> {
    /// Every resource of a group at the edge that can be synced. The entries of one config share what follows.
    pub(super) fn group(&mut self, entry: &'a Entry, group: &'a str) {
        let of_group = self.groups.entry((entry.direction, group)).or_default();
        of_group.entries.push(entry);
        if !of_group.configs.insert(&entry.place.config) {
            return;
        }
        self.plan.open.insert((entry.direction.origin(), group.to_owned()));
        let edge = self.edge.discovery;
        let Some(versions) = edge.versions(group) else {
            self.plan.unknown.groups.insert(Side::Edge);
            return;
        };
        if versions.is_empty() {
            let meant = self.meant_group(group);
            self.missing(Side::Edge, entry.direction, [group, "", "*"], Some(&entry.place))
                .meant = meant;
        }
        let mut found: BTreeMap<&str, &str> = BTreeMap::new();
        let mut is_served = false;
        for version in versions {
            if !self.knows(Side::Edge, group, version) {
                return;
            }
            if self.edge.resources(group, version).next().is_none() {
                // The edge lists the version and does not serve it: it is asked again.
                self.missing(Side::Edge, entry.direction, [group, version, "*"], Some(&entry.place));
            }
            for served in self.edge.resources(group, version) {
                steps::one();
                is_served = true;
                let resource = &served.resource.resource;
                if served.watchable && !is_never_synced_unnamed(group, resource) {
                    found.entry(resource).or_insert(version);
                }
            }
        }
        if found.is_empty() && is_served {
            self.problem(&entry.place, &format!("no resource of {group} can be synced"));
        }
        for (resource, version) in found {
            self.ask(entry, group, version, resource);
        }
    }
}
