//! Types that were synced once: their copies may still be there, whatever the configs say now.

use super::{Draft, Resolver, key};
use crate::cluster::discovery::ServedResource;
use crate::cluster::{ResourceType, Side, may_be_a_crd, qualified};
use crate::plan::naming::Naming;
use crate::plan::planned::{Absence, CopiesOf, Pair, Selects};
use crate::plan::wanted::{Entry, SyncedType, Types};
use crate::plan::words::is_never_synced_unnamed;
use crate::plan::{Direction, Place, Selector};

impl<'a> Resolver<'a> {
    /// Plans a type that was synced and that nothing asks for any more, with an empty selection: its copies are read
    /// and deleted when their origins are gone.
    pub(super) fn retain(&mut self, known: &'a SyncedType) {
        let (direction, version) = (known.direction, known.version.as_str());
        let (of_group, of_resource) = known.origin();
        let named = (direction, &*known.group, &*known.resource);
        let of_type = known.qualified_origin();
        let is_let_go = direction == Direction::Down && self.wanted.let_go.contains(&of_type);
        let is_selected = known.of.is_none() && self.versions.contains_key(&named) && !is_let_go;
        let (hub_group, edge_group) = match direction {
            Direction::Down => (of_group, known.group.as_str()),
            Direction::Up => (known.group.as_str(), of_group),
        };
        if self.denies_what_was_synced(known) {
            return;
        }
        let both_know = self.knows(Side::Hub, hub_group, version) & self.knows(Side::Edge, edge_group, version);
        if is_selected || !both_know {
            return;
        }
        let copy = self.find_at(direction.copy(), &known.group, version, &known.resource);
        let scope = copy.as_ref().map(|copy| copy.resource.namespaced);
        let is_it = |origin: &ServedResource| scope.is_none_or(|namespaced| origin.resource.namespaced == namespaced);
        let served = self.find_at(direction.origin(), of_group, version, of_resource);
        let is_served = served.is_some();
        let origin = served.filter(is_it);
        if origin.is_none() {
            let missing = self.missing(direction.origin(), direction, of_group, version, of_resource, None);
            if let (true, Some(namespaced)) = (is_served, scope) {
                missing.absence = Absence::Scope { namespaced };
            }
        }
        // No other type is deleted with the definitions of all types.
        let is_deselected = !may_be_a_crd(of_group) || self.wanted.deselected.contains(&of_type);
        let counts_as_selected = !is_deselected || self.selects_origins(known);
        if origin.is_none() && direction == Direction::Down && counts_as_selected && !is_let_go {
            // As for copies of the same kind: what is selected at the hub and not served there may come back.
            if let Some(ServedResource { resource, .. }) = copy {
                let kind = known.of.as_ref().map_or(&*resource.kind, |of| &*of.kind);
                self.has_vanished(of_type, qualified(of_group, kind), resource);
            }
            return;
        }
        let Some(copy) = copy else {
            let (group, resource) = (&known.group, &known.resource);
            self.missing(direction.copy(), direction, group, version, resource, None);
            return;
        };
        self.draft_retained(known, origin, copy);
    }

    /// Drafts a plan without a selection, for the copies that there still are.
    fn draft_retained(&mut self, known: &'a SyncedType, origin: Option<ServedResource>, copy: ServedResource) {
        let direction = known.direction;
        let gone_at_origin = origin.is_none();
        let Some(origin) = origin.or_else(|| as_it_was(known, &copy)) else {
            return;
        };
        let places = if gone_at_origin {
            self.places_of(known)
        } else {
            Vec::new()
        };
        let (of_group, of_resource) = known.origin();
        let of = (of_group.to_owned(), of_resource.to_owned());
        let (hub, edge) = match direction {
            Direction::Down => (of, key(&copy.resource)),
            Direction::Up => (key(&copy.resource), of),
        };
        let naming = match known.of {
            Some(_) => Naming::of_pair(),
            None => Naming::default(),
        };
        self.drafts
            .entry(Pair { direction, hub, edge })
            .or_insert_with(|| Draft {
                origin,
                gone_at_origin,
                copy,
                selector: Selector::default(),
                naming,
                places,
            });
    }

    /// Notes whether configs select the types that have come down once, whatever the sides serve.
    pub(super) fn note_selected(&mut self) {
        let down = self.wanted.retained.iter();
        for known in down.filter(|known| known.direction == Direction::Down && may_be_a_crd(known.origin().0)) {
            let selects = match () {
                () if self.selects_origins(known) => Selects::Yes,
                () if self.may_select(known) => Selects::Perhaps,
                () => Selects::No,
            };
            let noted = self.plan.selects.entry(known.qualified_origin()).or_insert(selects);
            *noted = selects.max(*noted);
        }
    }

    /// True if a config names a kind of the same group that no side serves, so that it may be this one.
    fn may_select(&self, known: &SyncedType) -> bool {
        let (of_group, of_resource) = known.origin();
        let may = |entry: &Entry| match &entry.types {
            Types::Kind { group, version, kind } if group == of_group && known.of.is_none() => {
                let find = |side| self.discovery(side).find_kind(group, version, kind);
                let found = find(Side::Hub).or_else(|| find(Side::Edge));
                found.is_none_or(|served| served.resource.resource == of_resource)
            }
            _ => false,
        };
        let mut entries = self.wanted.entries.iter();
        entries.any(|entry| entry.direction == Direction::Down && may(entry))
    }

    /// True if a config asks for the type that these copies are made from, also if the edge does not allow copies of the
    /// same kind.
    fn selects_origins(&self, known: &SyncedType) -> bool {
        let (group, resource) = known.origin();
        let by_kind = |entry: &Entry| match (&entry.types, &known.of) {
            (Types::Kind { group: of, kind, .. }, Some(origins)) => (of, kind) == (&origins.group, &origins.kind),
            _ => false,
        };
        let mut entries = self.wanted.entries.iter();
        self.versions.contains_key(&(known.direction, group, resource))
            || entries
                .any(|entry| entry.direction == known.direction && (names_origins(entry, known) || by_kind(entry)))
    }

    /// Notes a selected type that the hub does not serve, if there may be copies of it, as these are at the edge.
    pub(super) fn vanished(&mut self, copies: &ResourceType) {
        let (resource, wanted) = (copies.qualified(), self.wanted);
        let is_it = |known: &SyncedType| {
            known.direction == Direction::Down && known.of.is_none() && known.qualified() == resource
        };
        if wanted.retained.iter().any(is_it) && !wanted.let_go.contains(&resource) {
            self.has_vanished(resource, qualified(&copies.group, &copies.kind), copies.clone());
        }
    }

    fn has_vanished(&mut self, type_at_hub: String, origins: String, resource: ResourceType) {
        let copies = CopiesOf { origins, resource };
        let known = self.plan.vanished.entry(type_at_hub).or_default();
        if !known.contains(&copies) {
            known.push(copies);
        }
    }

    /// Where a type is selected that the edge does not serve, so that the version to select it at is not known.
    fn places_of(&self, known: &SyncedType) -> Vec<Place> {
        let selects = |entry: &&Entry| {
            let is_up = entry.direction == Direction::Up && known.direction == Direction::Up;
            is_up && names_origins(entry, known)
        };
        let entries = self.wanted.entries.iter().filter(selects);
        entries.map(|entry| entry.place.clone()).collect()
    }
}

/// True if an entry names the type of the origins by its plural or its group.
fn names_origins(entry: &Entry, known: &SyncedType) -> bool {
    let (group, resource) = known.origin();
    match &entry.types {
        Types::Plural {
            group: of,
            resource: plural,
            ..
        } => of == group && plural == resource,
        Types::Group(of) => of == group && !is_never_synced_unnamed(group, resource),
        Types::Kind { .. } => false,
    }
}

/// The type of the origins of what was synced once, which their side no longer serves; `None` if its kind was not kept,
/// which the marks of copies of another kind contain.
fn as_it_was(known: &SyncedType, copy: &ServedResource) -> Option<ServedResource> {
    let mut origin = copy.clone();
    if let Some(of) = &known.of {
        if of.kind.is_empty() {
            return None;
        }
        origin.resource = ResourceType {
            group: of.group.clone(),
            version: known.version.clone(),
            resource: of.resource.clone(),
            kind: of.kind.clone(),
            namespaced: copy.resource.namespaced,
        };
    }
    Some(origin)
}
