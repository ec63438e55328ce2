//! The second step: what is wanted, compared with what both sides serve.
//!
//! Entries, conversions and types may be thousands each, so none of them is searched for one by one: the cost of a plan
//! grows as they do, and not as their product.

mod denied;
mod groups;
mod kinds;
mod lookup;
mod meant;
mod notes;
mod of_configs;
mod retained;
mod versions;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::discovery::{Discovery, ServedResource};
use kube_lite::{ResourceType, may_be_a_crd, qualified};

use self::groups::OfGroup;
use self::lookup::Lookup;
use self::of_configs::{OfConfigs, are_several};
use self::retained::Selected;
use self::versions::{Asked, Chosen};
use super::kept::may_be_named;
use super::naming::Naming;
use super::planned::{Pair, Plan, TypePlan, is_stored_elsewhere, status_path};
use super::selector::{Layer, Shared};
use super::steps::Sliced;
use super::wanted::{Entry, Objects, Types, Wanted};
use super::{ConfigPlace, Direction, Filter, Names, Selector, steps};
use crate::side::Side;

impl Plan {
    /// Compares `wanted` with what is known of each side. What a side has not answered for yet is neither planned nor
    /// missing, nor is what `filter` refuses. Nothing is upsynced from the namespace `own` unless it is named.
    pub fn resolve(wanted: &Wanted, filter: &Filter, hub: &Discovery, edge: &Discovery, own: Option<&str>) -> Self {
        steps::whole(resolve(wanted, filter, [hub, edge], own))
    }

    /// The same in slices.
    pub(crate) fn resolving(
        wanted: Rc<Wanted>,
        filter: Rc<Filter>,
        hub: Rc<Discovery>,
        edge: Rc<Discovery>,
        own: Option<String>,
    ) -> Sliced<Self> {
        Sliced::new(async move { resolve(&wanted, &filter, [&hub, &edge], own.as_deref()).await })
    }
}

async fn resolve(wanted: &Wanted, filter: &Filter, [hub, edge]: [&Discovery; 2], own: Option<&str>) -> Plan {
    let mut resolver = Resolver {
        wanted,
        filter,
        hub: Lookup::new(hub).await,
        edge: Lookup::new(edge).await,
        own,
        converted: denied::converted(wanted).await,
        asked: Vec::new(),
        groups: BTreeMap::new(),
        versions: Chosen::new(),
        has_several_configs: are_several(wanted),
        selected: Selected::of(wanted).await,
        drafts: BTreeMap::new(),
        missing_at: BTreeMap::new(),
        sought: 0,
        plan: Plan::default(),
    };
    for problem in &wanted.problems {
        steps::one();
        steps::pause().await;
        resolver.plan.problems.insert(problem.clone());
    }
    let mut seen = BTreeSet::new();
    for entry in &wanted.entries {
        resolver.entry(entry);
        resolver.note_denied_namespaces(entry, &mut seen);
        steps::pause().await;
    }
    drop(seen);
    let asked = std::mem::take(&mut resolver.asked);
    resolver.choose_versions(&asked).await;
    for asked in &asked {
        resolver.plural(asked);
        steps::pause().await;
    }
    resolver.convert().await;
    resolver.note_selected().await;
    for known in &wanted.retained {
        resolver.retain(known);
        steps::pause().await;
    }
    let mut plan = resolver.finish().await;
    plan.namespaces = plan.namespaces_at_hub(wanted).await;
    plan
}

/// One type on its way into the plan.
struct Draft<'a> {
    /// The type at the origin's side, or as it was there.
    origin: Cow<'a, ServedResource>,
    /// That side does not serve it.
    gone_at_origin: bool,
    /// The type at the copy's side.
    copy: &'a ServedResource,
    selector: Selector,
    /// What each config selects of it.
    of_configs: OfConfigs<'a>,
    /// What entries select of all of its group is in the selection.
    has_all_of_group: bool,
    naming: Rc<Naming>,
    places: Vec<&'a ConfigPlace>,
}

impl<'a> Draft<'a> {
    fn is_at(&mut self, place: &'a ConfigPlace) {
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
    }
}

/// What is missing: side, direction, the config that asks for it, group, version, resource.
type MissingKey<'a> = (Side, Direction, Option<&'a str>, [Cow<'a, str>; 3]);

struct Resolver<'a> {
    wanted: &'a Wanted,
    filter: &'a Filter,
    hub: Lookup<'a>,
    edge: Lookup<'a>,
    own: Option<&'a str>,
    /// Groups of which a conversion gives objects another kind.
    converted: BTreeSet<&'a str>,
    /// The resources that entries name.
    asked: Vec<Asked<'a>>,
    /// The groups of which entries name everything.
    groups: BTreeMap<(Direction, &'a str), OfGroup<'a>>,
    /// The version that counts for each of the resources.
    versions: Chosen<'a>,
    /// What the entries name, whether or not it is served.
    selected: Selected<'a>,
    /// More than one config asks for something.
    has_several_configs: bool,
    drafts: BTreeMap<Pair, Draft<'a>>,
    /// The index in the plan of what is missing.
    missing_at: BTreeMap<MissingKey<'a>, usize>,
    /// For how many words it was sought what may be meant.
    sought: usize,
    plan: Plan,
}

impl<'a> Resolver<'a> {
    fn at(&self, side: Side) -> &Lookup<'a> {
        match side {
            Side::Hub => &self.hub,
            Side::Edge => &self.edge,
        }
    }

    /// Finds the resources that an entry names.
    fn entry(&mut self, entry: &'a Entry) {
        steps::one();
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
                    let meant = match self.meant(entry, group, "", resource) {
                        Answer::Found(meant) => Some(meant),
                        Answer::Missing => None,
                        Answer::Unknown => return,
                    };
                    let place = Some(&entry.place);
                    let missing = self.missing(direction.origin(), direction, [group, "", resource], place);
                    missing.meant = meant.or(missing.meant.take());
                }
                Answer::Unknown => {}
            },
            Types::Group(group) => self.group(entry, group),
            Types::Kind { group, version, kind } => {
                if let Some(conversion) = self.between_kinds(entry, group, kind) {
                    self.renamed_kind(entry, version, conversion);
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
        let edge = self.edge.discovery;
        let Some(versions) = edge.versions(group) else {
            self.plan.unknown.groups.insert(Side::Edge);
            return Answer::Unknown;
        };
        for version in versions {
            if !self.knows(Side::Edge, group, version) {
                return Answer::Unknown;
            }
            if self.edge.find(group, version, resource).is_some() {
                return Answer::Found(version);
            }
        }
        Answer::Missing
    }

    fn kind(&mut self, entry: &'a Entry, group: &'a str, version: &'a str, kind: &'a str) {
        let direction = entry.direction;
        if !self.both_know(group, version) {
            return;
        }
        let find = |side| self.at(side).find_kind(group, version, kind);
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
        steps::one();
        let direction = entry.direction;
        let Some(version) = self.counts(asked) else { return };
        let served = self.at(direction.origin()).find(group, version, resource);
        let copy = self.at(direction.copy()).find_at(group, version, resource);
        if version == asked.version {
            self.note_missing(asked, served, copy);
        }
        // What is selected at the hub and not served there may come back; what the edge does not serve is gone.
        let Some(copy) = copy else { return };
        let origin = match served {
            // A type of another scope is another type: the objects that the copies are of are gone.
            Some(origin) if origin.resource.namespaced != copy.resource.namespaced => {
                self.differ(direction, &origin.resource, &copy.resource, &[&entry.place]);
                None
            }
            served => served,
        };
        if origin.is_none() && direction == Direction::Down {
            self.vanished(&copy.resource);
            return;
        }
        self.select(entry, (group, resource), origin, copy);
    }

    /// Adds what an entry selects of a type to its draft.
    fn select(
        &mut self,
        entry: &'a Entry,
        (group, resource): (&'a str, &str),
        origin: Option<&'a ServedResource>,
        copy: &'a ServedResource,
    ) {
        let direction = entry.direction;
        let of = origin.unwrap_or(copy);
        let namespaced = of.resource.namespaced;
        let same = (group.to_owned(), resource.to_owned());
        let pair = Pair {
            direction,
            hub: same.clone(),
            edge: same,
        };
        let (own, tells) = (self.own, self.filter.allows_system());
        let draft = self.drafts.entry(pair).or_insert_with(|| Draft {
            origin: Cow::Borrowed(of),
            gone_at_origin: origin.is_none(),
            copy,
            selector: nothing_of([&of.resource, &copy.resource], own, tells),
            of_configs: OfConfigs::default(),
            has_all_of_group: false,
            naming: Rc::default(),
            places: Vec::new(),
        });
        draft.is_at(&entry.place);
        let is_of_group = matches!(entry.types, Types::Group(_));
        let mut of_group = is_of_group.then(|| self.groups.get_mut(&(direction, group))).flatten();
        if self.has_several_configs {
            let of_config = of_group.as_mut();
            let layer = of_config.map(|of_group| of_group.layer_of(&entry.place.config, namespaced, own));
            let empty = || nothing_of([&of.resource, &copy.resource], own, tells);
            draft.of_configs.note(entry, namespaced, layer, empty);
        }
        if is_of_group {
            if std::mem::replace(&mut draft.has_all_of_group, true) {
                return;
            }
            if let Some(layer) = of_group.map(|of_group| of_group.layer(namespaced, own, tells)) {
                draft.selector.add_common(&layer);
            }
        } else if let Some(why) = select(draft.selector.own(), entry, namespaced) {
            let name = qualified(group, resource);
            self.problem(&entry.place, &format!("{name} is {why}"));
        }
    }

    async fn finish(mut self) -> Plan {
        let drafts = std::mem::take(&mut self.drafts);
        let mut selectors = BTreeMap::new();
        let mut ready = Vec::new();
        for (pair, mut draft) in drafts {
            steps::one();
            steps::pause().await;
            let selector = Rc::new(std::mem::take(&mut draft.selector));
            if pair.direction == Direction::Up {
                selectors.insert(pair.edge.clone(), Rc::clone(&selector));
            }
            ready.push((pair, draft, selector));
        }
        let nothing = Rc::default();
        for (pair, draft, selector) in ready {
            steps::one();
            steps::pause().await;
            if !self.can_be_planned(&pair, &draft) {
                continue;
            }
            let (hub, edge) = match pair.direction {
                Direction::Down => (&*draft.origin, draft.copy),
                Direction::Up => (draft.copy, &*draft.origin),
            };
            let yields_to = match pair.direction {
                Direction::Down => selectors.get(&pair.edge).unwrap_or(&nothing),
                Direction::Up => &nothing,
            };
            let place = draft.places.first().copied();
            let not_stored = place.filter(|_| self.is_stored_elsewhere(pair.direction, &draft));
            let planned = TypePlan {
                direction: pair.direction,
                at_hub: hub.resource.clone(),
                at_edge: edge.resource.clone(),
                selector,
                naming: draft.naming,
                yields_to: Rc::clone(yields_to),
                configs: draft.of_configs.of(&draft.places),
                selected: !draft.places.is_empty(),
                gone_at_origin: draft.gone_at_origin,
                not_stored: not_stored.cloned(),
                status: status_path(hub, edge),
                scaled_by_nobody: draft.copy.scalable && may_be_a_crd(&draft.copy.resource.group),
            };
            self.plan.types.insert(pair, planned);
        }
        self.plan
    }

    /// True if the origins of a type are stored at another version than the one that is read. Where their side serves no
    /// other one, what it says of that means something else, as in kcp: its groups are asked for to know that.
    fn is_stored_elsewhere(&mut self, direction: Direction, draft: &Draft<'a>) -> bool {
        if !is_stored_elsewhere(&draft.origin) {
            return false;
        }
        let side = direction.origin();
        let versions = self.at(side).discovery.versions(&draft.origin.resource.group);
        if versions.is_none() {
            self.plan.unknown.groups.insert(side);
        }
        versions.is_some_and(|versions| versions.len() > 1)
    }

    /// True if a type can be synced. Notes why not.
    fn can_be_planned(&mut self, pair: &Pair, draft: &Draft<'a>) -> bool {
        if self.denies_draft(pair.direction, draft) {
            return false;
        }
        let (at_origin, at_copy) = (&draft.origin.resource, &draft.copy.resource);
        let same_kind = pair.hub != pair.edge || at_origin.kind == at_copy.kind;
        if at_origin.namespaced != at_copy.namespaced || !same_kind {
            self.differ(pair.direction, at_origin, at_copy, &draft.places);
            return false;
        }
        if !draft.origin.watchable || !draft.copy.watchable {
            let why = format!(
                "{} cannot be listed and watched; the entry is not synced",
                at_origin.qualified()
            );
            for place in &draft.places {
                self.problem(place, &why);
            }
            return false;
        }
        true
    }

    /// True if a side has answered for a group version; notes it as unknown otherwise.
    fn knows(&mut self, side: Side, group: &str, version: &str) -> bool {
        let known = self.at(side).knows(group, version);
        if !known {
            let unknown = (side, (group.to_owned(), version.to_owned()));
            self.plan.unknown.group_versions.insert(unknown);
        }
        known
    }

    fn both_know(&mut self, group: &str, version: &str) -> bool {
        self.knows(Side::Hub, group, version) & self.knows(Side::Edge, group, version)
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

/// A selection of nothing of a type, as either side serves it. It tells apart what is named, if that `matters`.
fn nothing_of(types: [&ResourceType; 2], own: Option<&str>, matters: bool) -> Selector {
    let selector = Selector::sparing(own);
    if matters && types.into_iter().any(may_be_named) {
        selector.telling_named()
    } else {
        selector
    }
}

/// Adds what an entry names to the selection of a type. Says what is wrong if such a type cannot be named so.
fn select(into: &mut Layer, entry: &Entry, namespaced: bool) -> Option<&'static str> {
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

fn add(into: &mut Layer, objects: &Objects, namespaced: bool) -> Option<&'static str> {
    match objects {
        Objects::In(Some(namespace), names) if namespaced => into.add(namespace, names.clone()),
        Objects::Within { namespaces, entries } if namespaced => {
            let names = Rc::new(Names::All);
            into.share(Shared::new(Some(Rc::clone(namespaces)), names), *entries);
        }
        Objects::In(None, names) if !namespaced => into.add("", names.clone()),
        Objects::In(None, _) => return Some("namespaced; name it in namespacedObjects or namespaceScope"),
        Objects::In(Some(_), _) | Objects::Within { .. } => return Some("cluster-scoped; name it in clusterScope"),
        Objects::Implied(all) => into.imply(Rc::clone(all)),
        Objects::Anywhere {
            namespaces,
            names,
            entries,
        } => {
            let cluster = || Some(Rc::new(BTreeSet::from([String::new()])));
            let within = if namespaced { namespaces.clone() } else { cluster() };
            into.share(Shared::new(within, Rc::clone(names)), *entries);
        }
        Objects::Ref { names, .. } if !namespaced => into.add("", names.clone()),
        Objects::Ref { namespace, names } => match namespace.as_str() {
            "" => return Some("namespaced; the entry needs a namespace"),
            super::names::ALL => into.share(Shared::new(None, Rc::new(names.clone())), 1),
            namespace => into.add(namespace, names.clone()),
        },
    }
    None
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
