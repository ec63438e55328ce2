//! What conversions to another kind take out of a selection.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Layer, Names, Selector, Shared};
use crate::plan::steps;
use crate::plan::wanted::{Conversion, Triple};

/// So many sets of namespaces are kept apart for each part; more are one.
const SETS: usize = 4;

/// Group and kind at the hub, and at the edge.
pub(in crate::plan) type Kinds<'a> = [(&'a str, &'a str); 2];

/// The objects that conversions give to one pair of kinds, by their names at the edge.
#[derive(Default)]
pub(in crate::plan) struct Part<'a> {
    /// The conversions, by the names at the edge.
    pub(in crate::plan) conversions: BTreeMap<&'a str, &'a Conversion>,
    /// The selection.
    pub(in crate::plan) selects: Layer,
}

impl Selector {
    /// The parts that these conversions take, which are known by the names that the selection has for their objects. With
    /// `all`, they also take what is selected by `*`.
    pub(in crate::plan) async fn parts<'a>(
        &self,
        by: &BTreeMap<&'a str, &'a Conversion>,
        all: bool,
    ) -> BTreeMap<Kinds<'a>, Part<'a>> {
        let mut parts = BTreeMap::<Kinds<'a>, Part<'a>>::new();
        // With `all`, they are taken with all others.
        let besides = self.layers().filter_map(|layer| layer.besides.as_deref());
        for layer in self.layers().chain(besides.filter(|_| !all)) {
            for (namespace, names) in &layer.by_namespace {
                steps::one();
                steps::pause().await;
                for conversion in named(names, by) {
                    let part = take(&mut parts, conversion);
                    part.add(namespace, one(&conversion.edge));
                }
            }
            for conversion in named(&layer.everywhere, by) {
                take(&mut parts, conversion).everywhere.extend(one(&conversion.edge));
            }
            for shared in &layer.shared {
                steps::one();
                steps::pause().await;
                let mut taken = BTreeMap::<Kinds<'a>, Names>::new();
                for conversion in named(&shared.names, by) {
                    take(&mut parts, conversion);
                    let names = taken.entry(conversion.kinds()).or_default();
                    names.extend(one(&conversion.edge));
                }
                for (kinds, names) in taken {
                    let shared = Shared::new(shared.namespaces.clone(), Rc::new(names));
                    parts.entry(kinds).or_default().selects.share(shared, 1);
                }
            }
        }
        let wholes = if all { self.wholes() } else { Vec::new() };
        if !wholes.is_empty() {
            for conversion in by.values() {
                take(&mut parts, conversion);
            }
            for part in parts.values_mut() {
                let names = part.conversions.keys().map(|&name| name.to_owned());
                let names = Rc::new(Names::These(names.collect()));
                for namespaces in &wholes {
                    let shared = Shared::new(namespaces.clone(), Rc::clone(&names));
                    part.selects.share(shared, 1);
                }
            }
        }
        for part in parts.values_mut() {
            part.selects.spared.clone_from(&self.own.spared);
        }
        parts
    }

    /// The sets of namespaces in which it selects everything; absent for every namespace.
    fn wholes(&self) -> Vec<Option<Rc<BTreeSet<String>>>> {
        let named = self.layers().flat_map(|layer| &layer.by_namespace);
        let named = named.filter(|(_, names)| **names == Names::All);
        let named: BTreeSet<String> = named.map(|(namespace, _)| namespace.clone()).collect();
        steps::many(named.len());
        let mut sets = vec![Rc::new(named)];
        let mut everywhere = self.layers().any(|layer| layer.everywhere == Names::All);
        let shared = self.layers().flat_map(|layer| &layer.shared);
        for shared in shared.filter(|shared| *shared.names == Names::All) {
            match &shared.namespaces {
                Some(namespaces) if sets.len() < SETS => sets.push(Rc::clone(namespaces)),
                Some(namespaces) => Rc::make_mut(&mut sets[0]).extend(namespaces.iter().cloned()),
                None => everywhere = true,
            }
        }
        let sets = sets.into_iter().filter(|set| !set.is_empty()).map(Some);
        sets.chain(everywhere.then_some(None)).collect()
    }
}

/// The part that a conversion belongs to, which it becomes one of.
fn take<'p, 'a>(parts: &'p mut BTreeMap<Kinds<'a>, Part<'a>>, conversion: &'a Conversion) -> &'p mut Layer {
    let part = parts.entry(conversion.kinds()).or_default();
    part.conversions.insert(&conversion.edge.name, conversion);
    &mut part.selects
}

/// The conversions of those of these names that have one.
fn named<'a>(names: &Names, by: &BTreeMap<&'a str, &'a Conversion>) -> Vec<&'a Conversion> {
    let Names::These(names) = names else { return Vec::new() };
    steps::many(names.len().min(by.len()));
    if names.len() < by.len() {
        let found = names.iter().filter_map(|name| by.get(name.as_str()));
        return found.copied().collect();
    }
    let found = by.iter().filter(|(name, _)| names.contains(**name));
    found.map(|(_, conversion)| *conversion).collect()
}

fn one(triple: &Triple) -> Names {
    Names::These(BTreeSet::from([triple.name.clone()]))
}
