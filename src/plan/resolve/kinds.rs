//! Conversions: objects that have another name or another kind at the edge.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::of_configs::OfConfigs;
use super::{Draft, Resolver, add, key, nothing_of};
use crate::plan::naming::Naming;
use crate::plan::planned::Pair;
use crate::plan::selector::{Kinds, Part};
use crate::plan::wanted::{Conversion, Entry, Objects, Triple};
use crate::plan::{ConfigPlace, Direction, Names, Selector, steps};
use crate::side::Side;

/// What conversions make of the objects of one kind.
#[derive(Default)]
struct OfKind<'a> {
    naming: Rc<Naming>,
    /// Those that give another kind to the objects of these names.
    origins: BTreeMap<&'a str, &'a Conversion>,
    /// Those whose copies get these names.
    copies: BTreeMap<&'a str, &'a Conversion>,
}

/// A direction, a group and a kind.
type Kind<'k> = (Direction, &'k str, &'k str);

/// A pair of kinds that conversions join.
struct Joined<'a> {
    direction: Direction,
    version: &'a str,
    kinds: Kinds<'a>,
    place: &'a ConfigPlace,
}

impl<'a> Resolver<'a> {
    /// The conversion that gives the object of an entry another kind.
    pub(super) fn between_kinds(&self, entry: &Entry, group: &str, kind: &str) -> Option<&'a Conversion> {
        let Objects::Ref { names, .. } = &entry.objects else {
            return None;
        };
        if self.wanted.conversions.is_empty() {
            return None;
        }
        let triple = Triple {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: names.single()?.to_owned(),
        };
        steps::one();
        let first = self.wanted.conversions.of(&triple)?;
        (!first.keeps_kind()).then_some(first)
    }

    pub(super) fn renamed_kind(&mut self, entry: &'a Entry, version: &'a str, conversion: &'a Conversion) {
        let Objects::Ref { namespace, .. } = &entry.objects else {
            return;
        };
        let names = Names::These(BTreeSet::from([conversion.edge.name.clone()]));
        let objects = Objects::Ref {
            namespace: namespace.clone(),
            names,
        };
        let joined = Joined {
            direction: entry.direction,
            version,
            kinds: conversion.kinds(),
            place: &entry.place,
        };
        let mut why = None;
        self.join(&joined, [conversion], |selector, namespaced| {
            why = add(selector.own(), &objects, namespaced);
        });
        if let Some(why) = why {
            self.problem(&entry.place, &format!("{} is {why}", conversion.edge));
        }
    }

    /// Plans a pair of kinds, where `select` selects objects of these conversions by their names at the edge.
    fn join(
        &mut self,
        joined: &Joined<'a>,
        conversions: impl IntoIterator<Item = &'a Conversion>,
        select: impl FnOnce(&mut Selector, bool),
    ) {
        let Joined {
            direction,
            version,
            kinds: [hub, edge],
            place,
        } = *joined;
        let mut conversions = conversions.into_iter().peekable();
        let Some(Conversion { place: asked, .. }) = conversions.peek().copied() else {
            return;
        };
        if [hub, edge].into_iter().any(|kind| self.keeps(asked, kind, true)) {
            return;
        }
        let known = self.knows(Side::Hub, hub.0, version) & self.knows(Side::Edge, edge.0, version);
        if !known {
            return;
        }
        let at_hub = self.hub.find_kind(hub.0, version, hub.1);
        let at_edge = self.edge.find_kind(edge.0, version, edge.1);
        for (side, (group, kind), found) in [(Side::Hub, hub, at_hub), (Side::Edge, edge, at_edge)] {
            if found.is_none() {
                self.missing(side, direction, [group, version, kind], Some(asked));
            }
        }
        let (Some(at_hub), Some(at_edge)) = (at_hub, at_edge) else {
            return;
        };
        let pair = Pair {
            direction,
            hub: key(&at_hub.resource),
            edge: key(&at_edge.resource),
        };
        let resources = [&at_hub.resource, &at_edge.resource];
        if resources
            .into_iter()
            .any(|of| self.keeps(asked, (&of.group, &of.resource), true))
        {
            return;
        }
        let (origin, copy) = match direction {
            Direction::Down => (at_hub, at_edge),
            Direction::Up => (at_edge, at_hub),
        };
        let (own, tells) = (self.own, self.filter.allows_system());
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin: Cow::Borrowed(origin),
            gone_at_origin: false,
            copy,
            selector: nothing_of([&origin.resource, &copy.resource], own, tells),
            of_configs: OfConfigs::default(),
            has_all_of_group: false,
            naming: Rc::new(Naming::of_pair()),
            places: Vec::new(),
        });
        let naming = Rc::make_mut(&mut draft.naming);
        for Conversion { hub, edge, .. } in conversions {
            steps::one();
            naming.add(&hub.name, &edge.name);
        }
        draft.is_at(place);
        select(&mut draft.selector, origin.resource.namespaced);
    }

    /// Applies the conversions to what is selected. All are applied at once: what one has renamed, another one does not
    /// rename again.
    pub(super) async fn convert(&mut self) {
        if self.wanted.conversions.is_empty() {
            return;
        }
        let same = self.drafts.iter().filter(|(pair, _)| pair.hub == pair.edge);
        let kinds: BTreeSet<Kind<'a>> = same.map(|(pair, draft)| kind(pair, draft)).collect();
        let of_kinds = of_kinds(&self.wanted.conversions, &kinds).await;
        let mut parts = Vec::new();
        for (pair, draft) in self.drafts.iter_mut().filter(|(pair, _)| pair.hub == pair.edge) {
            steps::one();
            steps::pause().await;
            let Some(of_kind) = of_kinds.get(&kind(pair, draft)) else {
                continue;
            };
            // For the kind at the origin's side, everything that selects the name counts; for the other kind, only the
            // name itself.
            for (by, all) in [(&of_kind.origins, true), (&of_kind.copies, false)] {
                let version = &*draft.copy.resource.version;
                let Some(place) = draft.places.first().filter(|_| !by.is_empty()) else {
                    continue;
                };
                for (kinds, part) in draft.selector.parts(by, all).await {
                    let joined = Joined {
                        direction: pair.direction,
                        version,
                        kinds,
                        place,
                    };
                    parts.push((joined, part));
                }
            }
            // Unless it is a pair of kinds that have one plural.
            if *draft.naming == Naming::default() {
                draft.naming = Rc::clone(&of_kind.naming);
            }
        }
        for (joined, Part { conversions, selects }) in parts {
            steps::pause().await;
            self.join(&joined, conversions.into_values(), |selector, _| {
                selector.extend(selects);
            });
        }
        for (_, draft) in self.drafts.iter_mut().filter(|(pair, _)| pair.hub == pair.edge) {
            draft.selector.rename(&draft.naming);
            draft.of_configs.rename(&draft.naming);
        }
    }
}

fn kind<'a>(pair: &Pair, draft: &Draft<'a>) -> Kind<'a> {
    let resource = &draft.copy.resource;
    (pair.direction, &resource.group, &resource.kind)
}

/// What conversions make of the objects of these kinds.
async fn of_kinds<'a>(conversions: &'a [Conversion], kinds: &BTreeSet<Kind<'a>>) -> BTreeMap<Kind<'a>, OfKind<'a>> {
    let mut of_kinds = BTreeMap::<Kind<'a>, OfKind<'a>>::new();
    for (conversion, direction) in conversions
        .iter()
        .flat_map(|conversion| [Direction::Down, Direction::Up].map(|direction| (conversion, direction)))
    {
        steps::one();
        steps::pause().await;
        let Conversion { hub, edge, .. } = conversion;
        let mut change = |triple: &'a Triple, change: &dyn Fn(&mut OfKind<'a>)| {
            let kind = (direction, &*triple.group, &*triple.kind);
            if kinds.contains(&kind) {
                change(of_kinds.entry(kind).or_default());
            }
        };
        if conversion.keeps_kind() {
            change(hub, &|of| Rc::make_mut(&mut of.naming).add(&hub.name, &edge.name));
            continue;
        }
        let (origin, copy) = match direction {
            Direction::Down => (hub, edge),
            Direction::Up => (edge, hub),
        };
        change(origin, &|of| {
            Rc::make_mut(&mut of.naming).leave_to_another(&origin.name);
            of.origins.insert(&origin.name, conversion);
        });
        change(copy, &|of| {
            Rc::make_mut(&mut of.naming).leave_to_another(&copy.name);
            of.copies.insert(&copy.name, conversion);
        });
    }
    of_kinds
}
