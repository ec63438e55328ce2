//! Types that were synced once: their copies may still be there, whatever the configs say now.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::discovery::ServedResource;
use kube_lite::{ResourceType, may_be_a_crd, qualified};

use super::lookup::Lookup;
use super::of_configs::OfConfigs;
use super::{Draft, Resolver, key};
use crate::plan::missing::Absence;
use crate::plan::naming::Naming;
use crate::plan::planned::{CopiesOf, Pair, Selects};
use crate::plan::wanted::{Origins, SyncedType, Types, Wanted};
use crate::plan::words::is_never_synced_unnamed;
use crate::plan::{ConfigPlace, Direction, Selector, steps};
use crate::side::Side;

/// What the entries name, so that each type that was synced is found in it.
#[derive(Default)]
pub(super) struct Selected<'a> {
    /// The first place of each config that names a resource by its plural, or all of a group (without one).
    places: BTreeMap<(Direction, &'a str, Option<&'a str>), Vec<&'a ConfigPlace>>,
    kinds: BTreeSet<(Direction, &'a str, &'a str)>,
    /// Versions and kinds that are named for downsync, by group.
    down: BTreeMap<&'a str, BTreeSet<(&'a str, &'a str)>>,
    /// What they are served as, once that is needed.
    served: BTreeMap<&'a str, ServedKinds<'a>>,
    /// Types, by group and plural, of which there may be copies of the same kind.
    retained: BTreeSet<(&'a str, &'a str)>,
}

/// The kinds of a group that entries name.
#[derive(Default)]
struct ServedKinds<'a> {
    /// A side serves them under these plurals.
    resources: BTreeSet<&'a str>,
    /// No side serves some of them, so that their plurals are not known.
    are_unknown: bool,
}

impl<'a> Selected<'a> {
    pub(super) async fn of(wanted: &'a Wanted) -> Self {
        let mut selected = Self::default();
        if wanted.retained.is_empty() {
            return selected;
        }
        for entry in &wanted.entries {
            steps::one();
            steps::pause().await;
            let mut note = |group, resource| {
                let key = (entry.direction, group, resource);
                let places: &mut Vec<&ConfigPlace> = selected.places.entry(key).or_default();
                if places.last().is_none_or(|last| last.config != entry.place.config) {
                    places.push(&entry.place);
                }
            };
            match &entry.types {
                Types::Plural { group, resource, .. } => note(&**group, Some(&**resource)),
                Types::Group(group) => note(group, None),
                Types::Kind { group, version, kind } => {
                    selected.kinds.insert((entry.direction, group, kind));
                    if entry.direction == Direction::Down {
                        selected.down.entry(group).or_default().insert((version, kind));
                    }
                }
            }
        }
        let same = wanted
            .retained
            .iter()
            .filter(|known| known.direction == Direction::Down);
        let same = same.filter(|known| known.of.is_none());
        selected.retained = same.map(|known| (&*known.group, &*known.resource)).collect();
        selected
    }

    /// Where entries name the type of the origins by its plural or its group.
    fn places_of(&self, known: &SyncedType) -> Vec<&'a ConfigPlace> {
        let (group, resource) = known.origin();
        let by_plural = self.places.get(&(known.direction, group, Some(resource)));
        let by_group = self.places.get(&(known.direction, group, None));
        let by_group = by_group.filter(|_| !is_never_synced_unnamed(group, resource));
        by_plural.into_iter().chain(by_group).flatten().copied().collect()
    }

    /// True if one of the kinds that are named in a group may be this resource, as far as both sides are known.
    async fn may_be(&mut self, sides: [&Lookup<'a>; 2], group: &str, resource: &str) -> bool {
        let Some((&group, kinds)) = self.down.get_key_value(group) else {
            return false;
        };
        if !self.served.contains_key(group) {
            let mut served = ServedKinds::default();
            for (version, kind) in kinds {
                steps::pause().await;
                match sides.iter().find_map(|side| side.find_kind(group, version, kind)) {
                    Some(found) => _ = served.resources.insert(&found.resource.resource),
                    None => served.are_unknown = true,
                }
            }
            self.served.insert(group, served);
        }
        let served = self.served.get(group);
        served.is_some_and(|served| served.are_unknown || served.resources.contains(resource))
    }
}

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
        if self.filter.refuses_synced(known) {
            return;
        }
        let both_know = self.knows(Side::Hub, hub_group, version) & self.knows(Side::Edge, edge_group, version);
        if is_selected || !both_know {
            return;
        }
        let at_copies = self.at(direction.copy());
        let copy = at_copies.find_at(&known.group, version, &known.resource);
        let scope = copy.map(|copy| copy.resource.namespaced);
        let is_it = |origin: &&ServedResource| scope.is_none_or(|namespaced| origin.resource.namespaced == namespaced);
        let served = self.at(direction.origin()).find_at(of_group, version, of_resource);
        let is_served = served.is_some();
        let origin = served.filter(is_it);
        if origin.is_none() {
            let what = [of_group, version, of_resource];
            let missing = self.missing(direction.origin(), direction, what, None);
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
                self.has_vanished(of_type, qualified(of_group, kind), resource.clone());
            }
            return;
        }
        let Some(copy) = copy else {
            let what = [&*known.group, version, &*known.resource];
            self.missing(direction.copy(), direction, what, None);
            return;
        };
        self.draft_retained(known, origin, copy);
    }

    /// Drafts a plan without a selection, for the copies that there still are.
    fn draft_retained(&mut self, known: &'a SyncedType, origin: Option<&'a ServedResource>, copy: &'a ServedResource) {
        let direction = known.direction;
        let gone_at_origin = origin.is_none();
        let Some(origin) = origin.map_or_else(|| as_it_was(known, copy), |origin| Some(Cow::Borrowed(origin))) else {
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
            Some(_) => Rc::new(Naming::of_pair()),
            None => Rc::default(),
        };
        self.drafts
            .entry(Pair { direction, hub, edge })
            .or_insert_with(|| Draft {
                origin,
                gone_at_origin,
                copy,
                selector: Selector::default(),
                of_configs: OfConfigs::default(),
                has_all_of_group: false,
                naming,
                places,
            });
    }

    /// Notes whether configs select the types that have come down once, whatever the sides serve.
    pub(super) async fn note_selected(&mut self) {
        let down = self.wanted.retained.iter();
        for known in down.filter(|known| known.direction == Direction::Down && may_be_a_crd(known.origin().0)) {
            steps::pause().await;
            let selects = if self.selects_origins(known) {
                Selects::Yes
            } else if self.may_select(known).await {
                Selects::Perhaps
            } else {
                Selects::No
            };
            let noted = self.plan.selects.entry(known.qualified_origin()).or_insert(selects);
            *noted = selects.max(*noted);
        }
    }

    /// True if a config names a kind of the same group that no side serves, so that it may be this one.
    async fn may_select(&mut self, known: &SyncedType) -> bool {
        let (of_group, of_resource) = known.origin();
        let sides = [&self.hub, &self.edge];
        known.of.is_none() && self.selected.may_be(sides, of_group, of_resource).await
    }

    /// True if a config asks for the type that these copies are made from, also if the edge does not allow copies of the
    /// same kind.
    fn selects_origins(&self, known: &SyncedType) -> bool {
        steps::one();
        let (group, resource) = known.origin();
        let by_kind = |of: &Origins| {
            let kind = (known.direction, &*of.group, &*of.kind);
            self.selected.kinds.contains(&kind)
        };
        self.versions.contains_key(&(known.direction, group, resource))
            || !self.selected.places_of(known).is_empty()
            || known.of.as_ref().is_some_and(by_kind)
    }

    /// Notes a selected type that the hub does not serve, if there may be copies of it, as these are at the edge.
    pub(super) fn vanished(&mut self, copies: &ResourceType) {
        if !self.selected.retained.contains(&(&copies.group, &copies.resource)) {
            return;
        }
        let resource = copies.qualified();
        if !self.wanted.let_go.contains(&resource) {
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
    fn places_of(&self, known: &SyncedType) -> Vec<&'a ConfigPlace> {
        match known.direction {
            Direction::Down => Vec::new(),
            Direction::Up => self.selected.places_of(known),
        }
    }
}

/// The type of the origins of what was synced once, which their side no longer serves; `None` if its kind was not kept,
/// which the marks of copies of another kind contain.
fn as_it_was<'a>(known: &SyncedType, copy: &'a ServedResource) -> Option<Cow<'a, ServedResource>> {
    let Some(of) = &known.of else {
        return Some(Cow::Borrowed(copy));
    };
    if of.kind.is_empty() {
        return None;
    }
    let mut origin = copy.clone();
    origin.resource = ResourceType {
        group: of.group.clone(),
        version: known.version.clone(),
        resource: of.resource.clone(),
        kind: of.kind.clone(),
        namespaced: copy.resource.namespaced,
    };
    Some(Cow::Owned(origin))
}
