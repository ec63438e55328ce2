//! Conversions: objects that have another name or another kind at the edge.

use std::collections::BTreeSet;

use super::{Draft, Resolver, add, key};
use crate::cluster::Side;
use crate::plan::naming::Naming;
use crate::plan::planned::Pair;
use crate::plan::wanted::{Conversion, Entry, Objects, Triple};
use crate::plan::{Direction, Names, Place, Selector};

impl Resolver<'_> {
    /// The conversion that gives the object of an entry another kind.
    pub(super) fn between_kinds(&self, entry: &Entry, group: &str, kind: &str) -> Option<Conversion> {
        let Objects::Ref { names, .. } = &entry.objects else {
            return None;
        };
        let triple = Triple {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: names.single()?.to_owned(),
        };
        let matches = |conversion: &&Conversion| conversion.hub == triple || conversion.edge == triple;
        let first = self.wanted.conversions.iter().find(matches)?;
        (!first.keeps_kind()).then(|| first.clone())
    }

    pub(super) fn renamed_kind(&mut self, entry: &Entry, version: &str, conversion: &Conversion) {
        let Objects::Ref { namespace, .. } = &entry.objects else {
            return;
        };
        let names = Names::These(BTreeSet::from([conversion.edge.name.clone()]));
        let objects = Objects::Ref {
            namespace: namespace.clone(),
            names,
        };
        self.pair_of_kinds(
            entry.direction,
            version,
            conversion,
            &entry.place,
            |selector, namespaced| add(selector, &objects, namespaced),
        );
    }

    /// Plans the pair of kinds of a conversion, where `select` selects its object by the name at the edge.
    fn pair_of_kinds(
        &mut self,
        direction: Direction,
        version: &str,
        conversion: &Conversion,
        place: &Place,
        select: impl FnOnce(&mut Selector, bool) -> Option<&'static str>,
    ) {
        let Conversion { hub, edge } = conversion;
        let mut kinds = [hub, edge].into_iter();
        if kinds.any(|triple| self.keeps(place, (&triple.group, &triple.kind), true)) {
            return;
        }
        let known = self.knows(Side::Hub, &hub.group, version) & self.knows(Side::Edge, &edge.group, version);
        if !known {
            return;
        }
        let at_hub = self.hub.find_kind(&hub.group, version, &hub.kind).cloned();
        let at_edge = self.edge.find_kind(&edge.group, version, &edge.kind).cloned();
        for (side, triple, found) in [(Side::Hub, hub, &at_hub), (Side::Edge, edge, &at_edge)] {
            if found.is_none() {
                self.missing(side, direction, &triple.group, version, &triple.kind, Some(place));
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
            .any(|of| self.keeps(place, (&of.group, &of.resource), true))
        {
            return;
        }
        let (origin, copy) = match direction {
            Direction::Down => (at_hub, at_edge),
            Direction::Up => (at_edge, at_hub),
        };
        let namespaced = origin.resource.namespaced;
        let selector = self.selector_of(&origin.resource, &copy.resource);
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin,
            gone_at_origin: false,
            copy,
            selector,
            naming: Naming::of_pair(),
            places: Vec::new(),
        });
        draft.naming.add(&hub.name, &edge.name);
        draft.places.push(place.clone());
        if let Some(why) = select(&mut draft.selector, namespaced) {
            self.problem(place, &format!("{} is {why}", conversion.edge));
        }
    }

    /// Applies one conversion to what is selected.
    pub(super) fn convert(&mut self, conversion: &Conversion) {
        let Conversion { hub, edge } = conversion;
        let mut pairs = Vec::new();
        for (pair, draft) in &mut self.drafts {
            if pair.hub != pair.edge {
                continue;
            }
            let resource = &draft.copy.resource;
            let is = |triple: &Triple| (&resource.group, &resource.kind) == (&triple.group, &triple.kind);
            if conversion.keeps_kind() {
                if is(hub) {
                    draft.naming.add(&hub.name, &edge.name);
                }
                continue;
            }
            // For the kind at the origin's side, everything that selects the name counts; for the other kind, only the
            // name itself.
            let (origin, copy) = match pair.direction {
                Direction::Down => (hub, edge),
                Direction::Up => (edge, hub),
            };
            for (triple, all) in [(origin, true), (copy, false)] {
                if is(triple) {
                    let part = draft.selector.part_of(&triple.name, &edge.name, all);
                    draft.naming.leave_to_another(&triple.name);
                    if let (false, Some(place)) = (part.is_empty(), draft.places.first()) {
                        pairs.push((pair.direction, resource.version.clone(), place.clone(), part));
                    }
                }
            }
        }
        for (direction, version, place, part) in pairs {
            self.pair_of_kinds(direction, &version, conversion, &place, |selector, _| {
                selector.extend(part);
                None
            });
        }
    }

    /// Entries may name objects by their names on either side; the selection has their names at the edge. All
    /// conversions are applied at once, once they are known: what one has renamed, another one does not rename again.
    pub(super) fn select_by_names_at_edge(&mut self) {
        let same = self.drafts.iter_mut().filter(|(pair, _)| pair.hub == pair.edge);
        for (_, draft) in same {
            draft.selector.rename(&draft.naming);
        }
    }
}
