//! The second step: what is wanted, held against what both sides serve.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::naming::Naming;
use super::wanted::{Conversion, Entry, Objects, SyncedType, Triple, Types, Wanted, never_travels};
use super::{Direction, Names, Place, Problem, Selector};
use crate::cluster::discovery::{Discovery, GroupVersion, ServedResource};
use crate::cluster::{ResourceType, Side, qualified};

/// What to sync now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The types, each with its direction.
    pub types: BTreeMap<Pair, TypePlan>,
    /// What is selected and cannot be synced because a side does not serve it.
    pub missing: Vec<Missing>,
    /// What in the configs cannot be followed.
    pub problems: Vec<Problem>,
    /// What has to be asked before the plan is complete.
    pub unknown: Unknown,
    /// Types may be selected that do not exist yet, by `*`: what appears at the edge has to be noticed.
    pub open_ended: bool,
}

/// A direction, and a resource by group and plural on each side: what identifies a type in the plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Which way.
    pub direction: Direction,
    /// Group and plural at the hub.
    pub hub: (String, String),
    /// Group and plural at the edge; the same, unless a conversion says otherwise.
    pub edge: (String, String),
}

/// One resource to sync, one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePlan {
    /// Which way.
    pub direction: Direction,
    /// The type at the hub; as at the edge if the hub no longer serves it.
    pub at_hub: ResourceType,
    /// The type at the edge: the same version, or another one if the copies' side does not serve it; as at the hub if the
    /// edge no longer serves it.
    pub at_edge: ResourceType,
    /// Its selected objects, by their names at the edge.
    pub selector: Selector,
    /// What their names are at the hub.
    pub naming: Naming,
    /// What the other direction selects of the same type: upsync wins (spec 3.8).
    pub yields_to: Selector,
    /// False if no config asks for it any more.
    pub selected: bool,
    /// The origin's side does not serve it: its origins are gone, if that side says so repeatedly.
    pub gone_at_origin: bool,
    /// Where the status of hub objects is written.
    pub status: Option<StatusPath>,
}

/// Where the status of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPath {
    /// Through the `/status` subresource.
    Subresource,
    /// In the object itself.
    Main,
}

/// A selected resource that a side does not serve. It is picked up when it appears.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The side.
    pub side: Side,
    /// Which way it is to travel.
    pub direction: Direction,
    /// Group of the resource.
    pub group: String,
    /// Version of the resource; empty if none is given.
    pub version: String,
    /// Plural of the resource, or its kind if the plural is not known.
    pub resource: String,
    /// The place that asks for it, the first by name; absent for a type that is only retained.
    pub place: Option<Place>,
    /// It is served at another version, which is used until this one appears: the versions of a new CRD come one after
    /// the other.
    pub is_elsewhere: bool,
}

/// What is not known of the sides yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Group versions, by side.
    pub group_versions: BTreeSet<(Side, GroupVersion)>,
    /// The groups of the edge and their preferred versions.
    pub edge_groups: bool,
}

impl Missing {
    /// True if the side that lacks the type is where its objects come from: then these are gone too.
    pub fn is_origin(&self) -> bool {
        self.side == self.direction.origin()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            version,
            resource,
            ..
        } = self;
        write!(f, "resource={resource} group={group:?} version={version}")
    }
}

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
    /// At the origin's side; absent if that side does not serve it.
    origin: Option<ServedResource>,
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
        let copies = self.discovery(direction.copy());
        let copy = copies
            .find(group, &version, resource)
            .or_else(|| copies.find_other(group, resource))
            .cloned();
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
        let namespaced = origin.as_ref().unwrap_or(&copy).resource.namespaced;
        let own = self.own;
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin,
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

    /// The conversion that gives the object of an entry another kind.
    fn between_kinds(&self, entry: &Entry, group: &str, kind: &str) -> Option<Conversion> {
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

    fn renamed_kind(&mut self, entry: &Entry, version: &str, conversion: &Conversion) {
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
            |selector, namespaced| select(selector, &objects, namespaced),
        );
    }

    /// Plans the pair of kinds of a conversion, where `add` selects its object by the name at the edge.
    fn pair_of_kinds(
        &mut self,
        direction: Direction,
        version: &str,
        conversion: &Conversion,
        place: &Place,
        add: impl FnOnce(&mut Selector, bool) -> Option<&'static str>,
    ) {
        let Conversion { hub, edge } = conversion;
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
        let (origin, copy) = match direction {
            Direction::Down => (at_hub, at_edge),
            Direction::Up => (at_edge, at_hub),
        };
        let namespaced = origin.resource.namespaced;
        let own = self.own;
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin: Some(origin),
            copy,
            selector: Selector::sparing(own),
            naming: Naming::of_pair(),
            places: Vec::new(),
        });
        draft.naming.add(&hub.name, &edge.name);
        draft.places.push(place.clone());
        if let Some(why) = add(&mut draft.selector, namespaced) {
            self.problem(place, &format!("{} is {why}", conversion.edge));
        }
    }

    /// Applies one conversion to what is selected so far.
    fn convert(&mut self, conversion: &Conversion) {
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
                    draft.selector.rename(&hub.name, &edge.name);
                }
                continue;
            }
            // Of the kind at the origin's side whatever selects the name is meant, of the other only the name itself.
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

    /// Plans a type that was synced and that nothing asks for any more, with an empty selection: its copies are looked
    /// at, and go when their origins are gone.
    fn retain(&mut self, known: &SyncedType) {
        let SyncedType {
            direction,
            group,
            version,
            resource,
        } = known;
        let is_selected = self
            .versions
            .contains_key(&(*direction, group.clone(), resource.clone()));
        if is_selected || !self.both_know(group, version) {
            return;
        }
        let find = |discovery: &Discovery| {
            let served = discovery.find(group, version, resource);
            served.or_else(|| discovery.find_other(group, resource)).cloned()
        };
        let origin = self
            .discovery(direction.origin())
            .find(group, version, resource)
            .cloned();
        let copy = find(self.discovery(direction.copy()));
        for (side, found) in [(direction.origin(), &origin), (direction.copy(), &copy)] {
            if found.is_none() {
                self.missing(side, *direction, group, version, resource, None);
            }
        }
        let Some(copy) = copy else { return };
        let pair = Pair {
            direction: *direction,
            hub: key(&copy.resource),
            edge: key(&copy.resource),
        };
        self.drafts.entry(pair).or_insert_with(|| Draft {
            origin,
            copy,
            selector: Selector::default(),
            naming: Naming::default(),
            places: Vec::new(),
        });
    }

    fn finish(mut self) -> Plan {
        let up: BTreeMap<_, _> = self
            .drafts
            .iter()
            .filter(|(pair, _)| pair.direction == Direction::Up)
            .map(|(pair, draft)| (pair.edge.clone(), draft.selector.clone()))
            .collect();
        for (pair, draft) in std::mem::take(&mut self.drafts) {
            let origin = draft.origin.as_ref().unwrap_or(&draft.copy);
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
                gone_at_origin: draft.origin.is_none(),
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
        let same = |known: &Missing| {
            (known.side, known.direction, known.place.is_some()) == (side, direction, place.is_some())
                && (&*known.group, &*known.version, &*known.resource) == (group, version, resource)
        };
        let missing = &mut self.plan.missing;
        let at = missing.iter().position(same).unwrap_or_else(|| {
            missing.push(Missing {
                side,
                direction,
                group: group.to_owned(),
                version: version.to_owned(),
                resource: resource.to_owned(),
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
        if !self.plan.problems.contains(&problem) {
            self.plan.problems.push(problem);
        }
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
fn select(selector: &mut Selector, objects: &Objects, namespaced: bool) -> Option<&'static str> {
    match objects {
        Objects::In(Some(namespace), names) if namespaced => selector.add(namespace, names.clone()),
        Objects::In(None, names) if !namespaced => selector.add("", names.clone()),
        Objects::In(None, _) => return Some("namespaced; name it in namespacedObjects or namespaceScope"),
        Objects::In(Some(_), _) => return Some("cluster-scoped; name it in clusterScope"),
        Objects::Implied(namespace) => selector.imply(namespace),
        Objects::Anywhere { names, .. } | Objects::Ref { names, .. } if !namespaced => selector.add("", names.clone()),
        Objects::Anywhere { namespaces, names } => match namespaces {
            Names::All => selector.add_everywhere(names.clone()),
            Names::These(these) => these
                .iter()
                .for_each(|namespace| selector.add(namespace, names.clone())),
        },
        Objects::Ref { namespace, names } => match namespace.as_str() {
            "" => return Some("namespaced; the entry needs a namespace"),
            super::selector::ALL => selector.add_everywhere(names.clone()),
            namespace => selector.add(namespace, names.clone()),
        },
    }
    None
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

/// API groups that every API server has built in. Their objects have a status only where discovery names `/status`.
const BUILT_IN: [&str; 19] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "storage.k8s.io",
];

/// Where the status of hub objects of a type is written, if at all (spec section 5).
fn status_path(hub: &ServedResource, edge: &ServedResource) -> Option<StatusPath> {
    let resource = &hub.resource;
    // Their status belongs to the API server on each side.
    let belongs_to_server = resource.is("", "namespaces")
        || resource.is("apiextensions.k8s.io", "customresourcedefinitions")
        || resource.is("apiregistration.k8s.io", "apiservices");
    let built_in = BUILT_IN.contains(&resource.group.as_str());
    match () {
        () if belongs_to_server => None,
        () if hub.status_subresource => Some(StatusPath::Subresource),
        () if !built_in || edge.status_subresource => Some(StatusPath::Main),
        () => None,
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
