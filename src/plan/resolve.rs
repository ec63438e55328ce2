//! The second step: what is wanted, held against what both sides serve.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::naming::Naming;
use super::planned::{Missing, Pair, Plan, TypePlan, status_path};
use super::selector::Shared;
use super::wanted::{Entry, Objects, SyncedType, Types, Wanted};
use super::words::never_travels;
use super::{Direction, Names, Place, Problem, Selector};
use crate::cluster::discovery::{Discovery, ServedResource};
use crate::cluster::{ResourceType, Side, qualified};

impl Plan {
    /// Holds `wanted` against what is known of each side. What a side has not answered for yet is neither planned nor
    /// missing. Nothing travels up from the namespace `own` unless it is named.
    pub fn resolve(wanted: &Wanted, hub: &Discovery, edge: &Discovery, own: Option<&str>) -> Self {
        let mut resolver = Resolver {
            wanted,
            hub,
            edge,
            own,
            versions: BTreeMap::new(),
            drafts: BTreeMap::new(),
            missing_at: BTreeMap::new(),
            plan: Self {
                problems: wanted.problems.clone(),
                ..Self::default()
            },
        };
        for entry in &wanted.entries {
            resolver.entry(entry);
        }
        for conversion in &wanted.conversions {
            resolver.convert(conversion);
        }
        for known in &wanted.retained {
            resolver.retain(known);
        }
        resolver.finish()
    }
}

/// One type on its way into the plan.
struct Draft {
    /// At the origin's side, or as it was there.
    origin: ServedResource,
    /// That side does not serve it.
    gone_at_origin: bool,
    /// At the copy's side.
    copy: ServedResource,
    selector: Selector,
    naming: Naming,
    places: Vec<Place>,
}

struct Resolver<'a> {
    wanted: &'a Wanted,
    hub: &'a Discovery,
    edge: &'a Discovery,
    own: Option<&'a str>,
    /// The version of each selected resource, by direction, group and plural: that of the first place that names it.
    versions: BTreeMap<(Direction, String, String), String>,
    drafts: BTreeMap<Pair, Draft>,
    /// Where what is missing stands in the plan: side, direction, whether a place asks for it, group, version, resource.
    missing_at: BTreeMap<(Side, Direction, bool, String, String, String), usize>,
    plan: Plan,
}

impl Resolver<'_> {
    fn discovery(&self, side: Side) -> &Discovery {
        match side {
            Side::Hub => self.hub,
            Side::Edge => self.edge,
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let direction = entry.direction;
        match &entry.types {
            Types::Plural {
                group,
                version: Some(version),
                resource,
            } => self.plural(entry, group, version, resource),
            Types::Plural { group, resource, .. } => match self.preferred(group, resource) {
                Answer::Found(version) => self.plural(entry, group, &version, resource),
                Answer::Missing => {
                    let side = direction.origin();
                    self.missing(side, direction, group, "", resource, Some(&entry.place));
                }
                Answer::Unknown => {}
            },
            Types::Group(group) => self.group(entry, group),
            Types::Kind { group, version, kind } => {
                if let Some(conversion) = self.between_kinds(entry, group, kind) {
                    self.renamed_kind(entry, version, &conversion);
                } else {
                    self.kind(entry, group, version, kind);
                }
            }
        }
    }

    /// The version that the edge prefers for a resource.
    fn preferred(&mut self, group: &str, resource: &str) -> Answer<String> {
        let Some(versions) = self.edge.versions(group) else {
            self.plan.unknown.edge_groups = true;
            return Answer::Unknown;
        };
        for version in versions {
            if !self.knows(Side::Edge, group, &version) {
                return Answer::Unknown;
            }
            if self.edge.find(group, &version, resource).is_some() {
                return Answer::Found(version);
            }
        }
        Answer::Missing
    }

    /// Every resource of a group at the edge that can travel.
    fn group(&mut self, entry: &Entry, group: &str) {
        self.plan.open_ended = true;
        let Some(versions) = self.edge.versions(group) else {
            self.plan.unknown.edge_groups = true;
            return;
        };
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for version in versions {
            if !self.knows(Side::Edge, group, &version) {
                return;
            }
            if self.edge.resources(group, &version).next().is_none() {
                // The edge lists the version and lacks it: whatever said so is asked again.
                self.missing(Side::Edge, entry.direction, group, &version, "*", Some(&entry.place));
            }
            for served in self.edge.resources(group, &version) {
                let resource = &served.resource.resource;
                if served.watchable && !never_travels(group, resource) {
                    found.entry(resource.clone()).or_insert_with(|| version.clone());
                }
            }
        }
        for (resource, version) in found {
            self.plural(entry, group, &version, &resource);
        }
    }

    fn kind(&mut self, entry: &Entry, group: &str, version: &str, kind: &str) {
        let direction = entry.direction;
        if !self.both_know(group, version) {
            return;
        }
        let find = |side| self.discovery(side).find_kind(group, version, kind);
        let found = find(direction.origin()).or_else(|| find(direction.copy()));
        match found.map(|served| served.resource.resource.clone()) {
            Some(resource) => self.plural(entry, group, version, &resource),
            None => {
                self.missing(direction.origin(), direction, group, version, kind, Some(&entry.place));
            }
        }
    }

    fn plural(&mut self, entry: &Entry, group: &str, version: &str, resource: &str) {
        let direction = entry.direction;
        let version = self.version(entry, group, version, resource);
        if !self.both_know(group, &version) {
            return;
        }
        let same = (group.to_owned(), resource.to_owned());
        let pair = Pair {
            direction,
            hub: same.clone(),
            edge: same,
        };
        let origin = self
            .discovery(direction.origin())
            .find(group, &version, resource)
            .cloned();
        let copy = self.find_at(direction.copy(), group, &version, resource);
        for (side, found) in [(direction.origin(), &origin), (direction.copy(), &copy)] {
            if found.is_none() {
                self.missing(side, direction, group, &version, resource, Some(&entry.place));
            }
        }
        if let Some(found) = copy.as_ref().filter(|found| found.resource.version != version) {
            log::debug!("using {} until {version} appears", found.resource.version);
            self.missing(
                direction.copy(),
                direction,
                group,
                &version,
                resource,
                Some(&entry.place),
            )
            .is_elsewhere = true;
        }
        // What is selected at the hub and not served there may come back; what the edge does not have is gone.
        if origin.is_none() && direction == Direction::Down {
            return;
        }
        let Some(copy) = copy else { return };
        let gone_at_origin = origin.is_none();
        let origin = origin.unwrap_or_else(|| copy.clone());
        let namespaced = origin.resource.namespaced;
        let own = self.own;
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin,
            gone_at_origin,
            copy,
            selector: Selector::sparing(own),
            naming: Naming::default(),
            places: Vec::new(),
        });
        if draft.places.last() != Some(&entry.place) {
            draft.places.push(entry.place.clone());
        }
        if let Some(why) = select(&mut draft.selector, &entry.objects, namespaced) {
            let name = qualified(group, resource);
            self.problem(&entry.place, &format!("{name} is {why}"));
        }
    }

    /// The version that counts for a resource: that of the first place that names it. Reports a place with another one.
    fn version(&mut self, entry: &Entry, group: &str, version: &str, resource: &str) -> String {
        let key = (entry.direction, group.to_owned(), resource.to_owned());
        let known = self.versions.entry(key).or_insert_with(|| version.to_owned()).clone();
        if known != version {
            let name = qualified(group, resource);
            let why = format!(
                "version {version:?} differs from {known:?}, which another entry gives for {name}; {known:?} is used"
            );
            self.problem(&entry.place, &why);
        }
        known
    }

    /// Plans a type that was synced and that nothing asks for any more, with an empty selection: its copies are looked
    /// at, and go when their origins are gone.
    fn retain(&mut self, known: &SyncedType) {
        let (direction, version) = (known.direction, known.version.as_str());
        let (of_group, of_resource) = known.origin();
        let versioned = (direction, known.group.clone(), known.resource.clone());
        let is_selected = known.of.is_none() && self.versions.contains_key(&versioned);
        let (hub_group, edge_group) = match direction {
            Direction::Down => (of_group, known.group.as_str()),
            Direction::Up => (known.group.as_str(), of_group),
        };
        let both_know = self.knows(Side::Hub, hub_group, version) & self.knows(Side::Edge, edge_group, version);
        if is_selected || !both_know {
            return;
        }
        let origin = self.find_at(direction.origin(), of_group, version, of_resource);
        let copy = self.find_at(direction.copy(), &known.group, version, &known.resource);
        if origin.is_none() {
            self.missing(direction.origin(), direction, of_group, version, of_resource, None);
        }
        let Some(copy) = copy else {
            let (group, resource) = (&known.group, &known.resource);
            self.missing(direction.copy(), direction, group, version, resource, None);
            return;
        };
        let gone_at_origin = origin.is_none();
        let Some(origin) = origin.or_else(|| as_it_was(known, &copy)) else {
            return;
        };
        let places = if gone_at_origin {
            self.places_of(known)
        } else {
            Vec::new()
        };
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

    /// A resource as a side serves it, at this version or at another one.
    fn find_at(&self, side: Side, group: &str, version: &str, resource: &str) -> Option<ServedResource> {
        let served = self.discovery(side);
        let found = served.find(group, version, resource);
        found.or_else(|| served.find_other(group, resource)).cloned()
    }

    /// Where a type is selected that the edge does not serve, so that the version to select it at is not known.
    fn places_of(&self, known: &SyncedType) -> Vec<Place> {
        let (group, resource) = known.origin();
        let selects = |entry: &&Entry| {
            let names = match &entry.types {
                Types::Plural {
                    group: of,
                    resource: plural,
                    ..
                } => of == group && plural == resource,
                Types::Group(of) => of == group && !never_travels(group, resource),
                Types::Kind { .. } => false,
            };
            names && entry.direction == Direction::Up && known.direction == Direction::Up
        };
        let entries = self.wanted.entries.iter().filter(selects);
        entries.map(|entry| entry.place.clone()).collect()
    }

    fn finish(mut self) -> Plan {
        let up: BTreeMap<_, _> = self
            .drafts
            .iter()
            .filter(|(pair, _)| pair.direction == Direction::Up)
            .map(|(pair, draft)| (pair.edge.clone(), draft.selector.clone()))
            .collect();
        for (pair, draft) in std::mem::take(&mut self.drafts) {
            let origin = &draft.origin;
            if let Some(why) = mismatch(pair.hub == pair.edge, origin, &draft.copy) {
                for place in &draft.places {
                    self.problem(place, &why);
                }
                continue;
            }
            let (hub, edge) = match pair.direction {
                Direction::Down => (origin, &draft.copy),
                Direction::Up => (&draft.copy, origin),
            };
            let yields_to = match pair.direction {
                Direction::Down => up.get(&pair.edge).cloned().unwrap_or_default(),
                Direction::Up => Selector::default(),
            };
            let planned = TypePlan {
                direction: pair.direction,
                at_hub: hub.resource.clone(),
                at_edge: edge.resource.clone(),
                selector: draft.selector,
                naming: draft.naming,
                yields_to,
                selected: !draft.places.is_empty(),
                gone_at_origin: draft.gone_at_origin,
                status: status_path(hub, edge),
            };
            self.plan.types.insert(pair, planned);
        }
        self.plan
    }

    /// True if a side has answered for a group version; notes it as unknown otherwise.
    fn knows(&mut self, side: Side, group: &str, version: &str) -> bool {
        let known = self.discovery(side).knows(group, version);
        if !known {
            let unknown = (side, (group.to_owned(), version.to_owned()));
            self.plan.unknown.group_versions.insert(unknown);
        }
        known
    }

    fn both_know(&mut self, group: &str, version: &str) -> bool {
        self.knows(Side::Hub, group, version) & self.knows(Side::Edge, group, version)
    }

    /// Notes that a side lacks a type, once for all places that ask for it.
    fn missing(
        &mut self,
        side: Side,
        direction: Direction,
        group: &str,
        version: &str,
        resource: &str,
        place: Option<&Place>,
    ) -> &mut Missing {
        let (group, version, resource) = (group.to_owned(), version.to_owned(), resource.to_owned());
        let key = (
            side,
            direction,
            place.is_some(),
            group.clone(),
            version.clone(),
            resource.clone(),
        );
        let missing = &mut self.plan.missing;
        let at = *self.missing_at.entry(key).or_insert_with(|| {
            missing.push(Missing {
                side,
                direction,
                group,
                version,
                resource,
                place: place.cloned(),
                is_elsewhere: false,
            });
            missing.len() - 1
        });
        &mut missing[at]
    }

    fn problem(&mut self, place: &Place, message: &str) {
        let problem = Problem {
            place: place.clone(),
            message: message.to_owned(),
        };
        self.plan.problems.insert(problem);
    }
}

/// What a look into discovery gives.
enum Answer<T> {
    Found(T),
    Missing,
    Unknown,
}

fn key(resource: &ResourceType) -> (String, String) {
    (resource.group.clone(), resource.resource.clone())
}

/// Adds what an entry names to the selection of a type. Says what is wrong if such a type cannot be named so.
fn select(into: &mut Selector, objects: &Objects, namespaced: bool) -> Option<&'static str> {
    match objects {
        Objects::In(Some(namespace), names) if namespaced => into.add(namespace, names.clone()),
        Objects::Within(all) if namespaced => {
            into.share(Shared::new(Some(Rc::clone(all)), Rc::new(Names::All)));
        }
        Objects::In(None, names) if !namespaced => into.add("", names.clone()),
        Objects::In(None, _) => return Some("namespaced; name it in namespacedObjects or namespaceScope"),
        Objects::In(Some(_), _) | Objects::Within(_) => return Some("cluster-scoped; name it in clusterScope"),
        Objects::Implied(all) => into.imply(Rc::clone(all)),
        Objects::Anywhere { names, .. } if !namespaced => {
            let cluster = BTreeSet::from([String::new()]);
            into.share(Shared::new(Some(Rc::new(cluster)), Rc::clone(names)));
        }
        Objects::Anywhere {
            namespaces: within,
            names,
        } => into.share(Shared::new(within.clone(), Rc::clone(names))),
        Objects::Ref { names, .. } if !namespaced => into.add("", names.clone()),
        Objects::Ref { namespace, names } => match namespace.as_str() {
            "" => return Some("namespaced; the entry needs a namespace"),
            super::selector::ALL => into.share(Shared::new(None, Rc::new(names.clone()))),
            namespace => into.add(namespace, names.clone()),
        },
    }
    None
}

/// The type of the origins of what was synced once, which their side no longer serves; `None` if its kind, which copies of
/// another kind say they are of, was not kept.
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

/// Why a resource that both sides serve cannot be synced all the same. With `same`, it has to be the same on both.
fn mismatch(same: bool, origin: &ServedResource, copy: &ServedResource) -> Option<String> {
    let (watchable, origin, copy) = (origin.watchable && copy.watchable, &origin.resource, &copy.resource);
    let name = origin.qualified();
    if same && origin.kind != copy.kind || origin.namespaced != copy.namespaced {
        let scope = |resource: &ResourceType| {
            if resource.namespaced {
                "namespaced"
            } else {
                "cluster-scoped"
            }
        };
        Some(format!(
            "{name} is a {} {} where it comes from and a {} {} where it goes; the entry is not synced",
            scope(origin),
            origin.kind,
            scope(copy),
            copy.kind
        ))
    } else if watchable {
        None
    } else {
        Some(format!("{name} cannot be listed and watched; the entry is not synced"))
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
