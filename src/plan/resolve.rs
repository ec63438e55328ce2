//! The second step: what is wanted, compared with what both sides serve.

mod denied;
mod kinds;
mod retained;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use self::versions::{Asked, Chosen};
use super::kept::may_be_named;
use super::naming::Naming;
use super::planned::{Absence, Missing, Pair, Plan, TypePlan, status_path};
use super::selector::Shared;
use super::wanted::{Entry, Objects, Types, Wanted};
use super::words::is_never_synced_unnamed;
use super::{Direction, Filter, Names, Place, Problem, Selector};
use crate::cluster::discovery::{Discovery, ServedResource};
use crate::cluster::{ResourceType, Side, qualified};

impl Plan {
    /// Compares `wanted` with what is known of each side. What a side has not answered for yet is neither planned nor
    /// missing, nor is what `filter` refuses. Nothing is upsynced from the namespace `own` unless it is named.
    pub fn resolve(wanted: &Wanted, filter: &Filter, hub: &Discovery, edge: &Discovery, own: Option<&str>) -> Self {
        let mut resolver = Resolver {
            wanted,
            filter,
            hub,
            edge,
            own,
            asked: Vec::new(),
            versions: Chosen::new(),
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
        let asked = std::mem::take(&mut resolver.asked);
        resolver.choose_versions(&asked);
        for asked in &asked {
            resolver.plural(asked);
        }
        for conversion in &wanted.conversions {
            resolver.convert(conversion);
        }
        resolver.select_by_names_at_edge();
        resolver.note_selected();
        for known in &wanted.retained {
            resolver.retain(known);
        }
        resolver.finish()
    }
}

/// One type on its way into the plan.
struct Draft {
    /// The type at the origin's side, or as it was there.
    origin: ServedResource,
    /// That side does not serve it.
    gone_at_origin: bool,
    /// The type at the copy's side.
    copy: ServedResource,
    selector: Selector,
    naming: Naming,
    places: Vec<Place>,
}

struct Resolver<'a> {
    wanted: &'a Wanted,
    filter: &'a Filter,
    hub: &'a Discovery,
    edge: &'a Discovery,
    own: Option<&'a str>,
    /// The resources that entries name.
    asked: Vec<Asked<'a>>,
    /// The version that counts for each of them.
    versions: Chosen<'a>,
    drafts: BTreeMap<Pair, Draft>,
    /// The index in the plan of what is missing: side, direction, the config that asks for it, group, version,
    /// resource.
    missing_at: BTreeMap<(Side, Direction, Option<String>, [String; 3]), usize>,
    plan: Plan,
}

impl<'a> Resolver<'a> {
    fn discovery(&self, side: Side) -> &'a Discovery {
        match side {
            Side::Hub | Side::Shard(_) => self.hub,
            Side::Edge => self.edge,
        }
    }

    /// Finds the resources that an entry names.
    fn entry(&mut self, entry: &'a Entry) {
        let direction = entry.direction;
        if self.denies_entry(entry) || self.keeps_entry(entry) {
            return;
        }
        match &entry.types {
            Types::Plural {
                group,
                version: Some(version),
                resource,
            } => self.ask(entry, group, version, resource),
            Types::Plural { group, resource, .. } => match self.preferred(group, resource) {
                Answer::Found(version) => self.ask(entry, group, version, resource),
                Answer::Missing => {
                    let meant = self.meant(entry, group, "", resource);
                    let place = Some(&entry.place);
                    self.missing(direction.origin(), direction, group, "", resource, place)
                        .meant = meant;
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

    fn ask(&mut self, entry: &'a Entry, group: &'a str, version: &'a str, resource: &'a str) {
        if self.denies(entry, group, resource) || self.keeps(&entry.place, (group, resource), entry.objects.are_named())
        {
            return;
        }
        let version = self.meant_version(entry, group, version, resource);
        self.asked.push(Asked {
            entry,
            group,
            version,
            resource,
        });
    }

    /// The version that the edge prefers for a resource.
    fn preferred(&mut self, group: &str, resource: &str) -> Answer<&'a str> {
        let edge = self.edge;
        let Some(versions) = edge.versions(group) else {
            self.plan.unknown.groups.insert(Side::Edge);
            return Answer::Unknown;
        };
        for version in versions {
            if !self.knows(Side::Edge, group, version) {
                return Answer::Unknown;
            }
            if edge.find(group, version, resource).is_some() {
                return Answer::Found(version);
            }
        }
        Answer::Missing
    }

    /// Every resource of a group at the edge that can be synced.
    fn group(&mut self, entry: &'a Entry, group: &'a str) {
        self.plan.open.insert((entry.direction.origin(), group.to_owned()));
        let edge = self.edge;
        let Some(versions) = edge.versions(group) else {
            self.plan.unknown.groups.insert(Side::Edge);
            return;
        };
        if versions.is_empty() {
            self.missing(Side::Edge, entry.direction, group, "", "*", Some(&entry.place));
        }
        let mut found: BTreeMap<&str, &str> = BTreeMap::new();
        let mut is_served = false;
        for version in versions {
            if !self.knows(Side::Edge, group, version) {
                return;
            }
            if edge.resources(group, version).next().is_none() {
                // The edge lists the version and does not serve it: it is asked again.
                self.missing(Side::Edge, entry.direction, group, version, "*", Some(&entry.place));
            }
            for served in edge.resources(group, version) {
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

    fn kind(&mut self, entry: &'a Entry, group: &'a str, version: &'a str, kind: &str) {
        let direction = entry.direction;
        if !self.both_know(group, version) {
            return;
        }
        let find = |side| self.discovery(side).find_kind(group, version, kind);
        let found = find(direction.origin()).or_else(|| find(direction.copy()));
        match found {
            Some(served) => self.ask(entry, group, version, &served.resource.resource),
            None => self.missing_everywhere(direction.origin(), entry, group, version, kind),
        }
    }

    fn plural(&mut self, asked: &Asked<'a>) {
        let Asked {
            entry, group, resource, ..
        } = *asked;
        let direction = entry.direction;
        let Some(version) = self.counts(asked) else { return };
        let same = (group.to_owned(), resource.to_owned());
        let pair = Pair {
            direction,
            hub: same.clone(),
            edge: same,
        };
        let served = self
            .discovery(direction.origin())
            .find(group, version, resource)
            .cloned();
        let copy = self.find_at(direction.copy(), group, version, resource);
        if version == asked.version {
            self.note_missing(asked, served.as_ref(), copy.as_ref());
        }
        // What is selected at the hub and not served there may come back; what the edge does not serve is gone.
        let Some(copy) = copy else { return };
        let origin = match served {
            // A type of another scope is another type: the objects that the copies are of are gone.
            Some(origin) if origin.resource.namespaced != copy.resource.namespaced => {
                self.differ(
                    direction,
                    &origin.resource,
                    &copy.resource,
                    std::slice::from_ref(&entry.place),
                );
                None
            }
            served => served,
        };
        if origin.is_none() && direction == Direction::Down {
            self.vanished(&copy.resource);
            return;
        }
        let gone_at_origin = origin.is_none();
        let origin = origin.unwrap_or_else(|| copy.clone());
        let namespaced = origin.resource.namespaced;
        let selector = self.selector_of(&origin.resource, &copy.resource);
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin,
            gone_at_origin,
            copy,
            selector,
            naming: Naming::default(),
            places: Vec::new(),
        });
        if draft.places.last() != Some(&entry.place) {
            draft.places.push(entry.place.clone());
        }
        if let Some(why) = select(&mut draft.selector, entry, namespaced) {
            let name = qualified(group, resource);
            self.problem(&entry.place, &format!("{name} is {why}"));
        }
    }

    /// A selection of nothing of a type.
    fn selector_of(&self, origin: &ResourceType, copy: &ResourceType) -> Selector {
        let selector = Selector::sparing(self.own);
        if self.filter.allows_system() && (may_be_named(origin) || may_be_named(copy)) {
            selector.telling_named()
        } else {
            selector
        }
    }

    /// Notes which side lacks what an entry names, at the version that counts.
    fn note_missing(&mut self, asked: &Asked, origin: Option<&ServedResource>, copy: Option<&ServedResource>) {
        let Asked {
            entry,
            group,
            version,
            resource,
        } = *asked;
        let direction = entry.direction;
        for (side, found) in [(direction.origin(), origin), (direction.copy(), copy)] {
            let absence = match found {
                Some(found) if found.resource.version == version => continue,
                Some(_) => Absence::Version,
                None => Absence::Side,
            };
            let place = Some(&entry.place);
            self.missing(side, direction, group, version, resource, place).absence = absence;
        }
    }

    /// A resource as a side serves it, at this version or at another one.
    fn find_at(&self, side: Side, group: &str, version: &str, resource: &str) -> Option<ServedResource> {
        let served = self.discovery(side);
        let found = served.find(group, version, resource);
        found.or_else(|| served.find_other(group, resource)).cloned()
    }

    fn finish(mut self) -> Plan {
        let up: BTreeMap<_, _> = self
            .drafts
            .iter()
            .filter(|(pair, _)| pair.direction == Direction::Up)
            .map(|(pair, draft)| (pair.edge.clone(), draft.selector.clone()))
            .collect();
        for (pair, draft) in std::mem::take(&mut self.drafts) {
            if self.denies_draft(pair.direction, &draft) {
                continue;
            }
            let origin = &draft.origin;
            let (at_origin, at_copy) = (&origin.resource, &draft.copy.resource);
            let same_kind = pair.hub != pair.edge || at_origin.kind == at_copy.kind;
            if at_origin.namespaced != at_copy.namespaced || !same_kind {
                self.differ(pair.direction, at_origin, at_copy, &draft.places);
                continue;
            }
            if !origin.watchable || !draft.copy.watchable {
                let name = at_origin.qualified();
                for place in &draft.places {
                    self.problem(
                        place,
                        &format!("{name} cannot be listed and watched; the entry is not synced"),
                    );
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
                not_stored: draft.places.first().filter(|_| origin.is_stored_elsewhere()).cloned(),
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

    /// Notes that a side lacks a type, once for each config that asks for it.
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
        let config = place.map(|place| place.config.clone());
        let key = (
            side,
            direction,
            config,
            [group.clone(), version.clone(), resource.clone()],
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
                absence: Absence::Side,
                meant: None,
            });
            missing.len() - 1
        });
        &mut missing[at]
    }

    /// Notes that neither side serves what an entry names. `side` is the one that is asked for it again.
    fn missing_everywhere(&mut self, side: Side, entry: &Entry, group: &str, version: &str, word: &str) {
        let is_reported = side == entry.direction.origin();
        let meant = if is_reported {
            self.meant(entry, group, version, word)
        } else {
            None
        };
        let missing = self.missing(side, entry.direction, group, version, word, Some(&entry.place));
        (missing.absence, missing.meant) = (Absence::Everywhere, meant);
    }

    /// Notes that a type cannot be synced since scope or kind differ between the sides. Either side may change that, so
    /// both are asked for it again.
    fn differ(&mut self, direction: Direction, origin: &ResourceType, copy: &ResourceType, places: &[Place]) {
        let scope = |namespaced| if namespaced { "namespaced" } else { "cluster-scoped" };
        let why = format!(
            "{} is a {} {} at the origin's side and a {} {} at the copy's side; the entry is not synced",
            origin.qualified(),
            scope(origin.namespaced),
            origin.kind,
            scope(copy.namespaced),
            copy.kind
        );
        for place in places {
            self.problem(place, &why);
        }
        let only_retained = places.is_empty().then_some(None);
        for place in places.iter().map(Some).chain(only_retained) {
            for (side, here, there) in [(direction.origin(), origin, copy), (direction.copy(), copy, origin)] {
                let absence = match there.namespaced {
                    same if same == here.namespaced => Absence::Kind,
                    namespaced => Absence::Scope { namespaced },
                };
                self.missing(side, direction, &here.group, &here.version, &here.resource, place)
                    .absence = absence;
            }
        }
    }

    fn problem(&mut self, place: &Place, message: &str) {
        let problem = Problem {
            place: place.clone(),
            message: message.to_owned(),
        };
        self.plan.problems.insert(problem);
    }
}

/// What discovery answers.
enum Answer<T> {
    Found(T),
    Missing,
    Unknown,
}

fn key(resource: &ResourceType) -> (String, String) {
    (resource.group.clone(), resource.resource.clone())
}

/// Adds what an entry names to the selection of a type. Says what is wrong if such a type cannot be named so.
fn select(into: &mut Selector, entry: &Entry, namespaced: bool) -> Option<&'static str> {
    if let (
        Objects::Anywhere {
            namespaces: Some(none), ..
        },
        Types::Plural { .. },
    ) = (&entry.objects, &entry.types)
        && namespaced
        && none.is_empty()
    {
        return Some("namespaced, and the entry names no namespace; it selects nothing");
    }
    add(into, &entry.objects, namespaced)
}

fn add(into: &mut Selector, objects: &Objects, namespaced: bool) -> Option<&'static str> {
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

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
