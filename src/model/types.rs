//! One type that is synced one way: what the plan says of it, what is known of its objects, and what reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use driver::queue::Class;
use driver::source::SourceId;
use kube_lite::{ObjectName, ResourceType, Scope, qualified};

use super::ends::Ends;
use super::inventory::{Hashing, Inventory};
use super::sources::Sources;
use super::without_copy::WithoutCopy;
use crate::plan::{Direction, Filter, Selection, TypePlan};
use crate::report::Subject;
use crate::side::Side;
use crate::sync::meta::Meta;
use crate::sync::object::Address;
use crate::sync::own_objects::is_record;
use crate::sync::ownership::{Marked, Owner, SyncTarget};

/// One type that is synced, or has copies left that were. Its objects are known by the names of their copies.
pub(super) struct TypeState {
    pub(super) plan: TypePlan,
    /// What may not be synced, whatever the configs say.
    filter: Rc<Filter>,
    pub(super) inventory: Inventory,
    /// Copies that are gone, as far as workers know.
    pub(super) ends: Ends,
    pub(super) copy_source: Option<SourceId>,
    /// The copies have been listed completely, so that what was there before is known.
    pub(super) copies_listed: bool,
    /// The version from which the copies' side has gone back, until it is there again; 0 otherwise. A server may have answered
    /// that is behind the others, and will show later what it lacks.
    gone_back_from: u64,
    pub(super) origin_sources: BTreeMap<Scope, SourceId>,
    /// Sources that read what the configs have added, and then end.
    pub(super) read_once: BTreeMap<Scope, SourceId>,
    pub(super) unlabelled_sources: BTreeMap<Scope, SourceId>,
    /// The origins of copies that a conversion made which is no longer in force, by the names of the copies.
    former_copies: BTreeMap<ObjectName, ObjectName>,
    pub(super) without_copy: WithoutCopy,
}

impl TypeState {
    pub(super) fn new(plan: TypePlan, filter: Rc<Filter>, hashing: Hashing) -> Self {
        Self {
            plan,
            filter,
            inventory: Inventory::new(hashing),
            ends: Ends::default(),
            copy_source: None,
            copies_listed: false,
            gone_back_from: 0,
            origin_sources: BTreeMap::new(),
            read_once: BTreeMap::new(),
            unlabelled_sources: BTreeMap::new(),
            former_copies: BTreeMap::new(),
            without_copy: WithoutCopy::default(),
        }
    }

    /// The type as the side of its origins serves it.
    pub(super) fn origin_type(&self) -> &ResourceType {
        self.type_at(self.plan.direction.origin())
    }

    /// The type as the side of its copies serves it.
    pub(super) fn copy_type(&self) -> &ResourceType {
        self.type_at(self.plan.direction.copy())
    }

    /// True if the copies are of the same kind as their origins.
    fn keeps_kind(&self) -> bool {
        let (hub, edge) = (&self.plan.at_hub, &self.plan.at_edge);
        (&hub.group, &hub.kind) == (&edge.group, &edge.kind)
    }

    pub(super) fn type_at(&self, side: Side) -> &ResourceType {
        match side {
            Side::Hub => &self.plan.at_hub,
            Side::Edge => &self.plan.at_edge,
        }
    }

    /// Origin and copy of an object; `None` if the name belongs to nothing of this type.
    pub(super) fn both(&self, name: &ObjectName) -> Option<(Address, Address)> {
        let address = |resource: &ResourceType, name| Address {
            resource: resource.clone(),
            name,
        };
        let origin = address(self.origin_type(), self.origin_name(name)?);
        Some((origin, address(self.copy_type(), name.clone())))
    }

    /// What failures of an object are reported about: its origin and its copy.
    pub(super) fn subjects(&self, name: &ObjectName) -> Option<[Subject; 2]> {
        let (origin, copy) = self.both(name)?;
        let direction = self.plan.direction;
        Some([
            Subject::object(direction.origin(), origin.for_people()),
            Subject::object(direction.copy(), copy.for_people()),
        ])
    }

    /// The same, hub first.
    pub(super) fn hub_and_edge(&self, name: &ObjectName) -> Option<(Address, Address)> {
        let (origin, copy) = self.both(name)?;
        Some(match self.plan.direction {
            Direction::Down => (origin, copy),
            Direction::Up => (copy, origin),
        })
    }

    fn origin_name(&self, name: &ObjectName) -> Option<ObjectName> {
        let former = self.former_copies.get(name).cloned();
        former.or_else(|| self.plan.named_origin(name))
    }

    /// The name of an object at the edge. Configs and the rules of the edge's owner mean that name.
    pub(super) fn edge_name(&self, name: &ObjectName) -> Option<ObjectName> {
        match self.plan.direction {
            Direction::Down => Some(name.clone()),
            Direction::Up => self.origin_name(name),
        }
    }

    /// The object that is to have this name at the edge, by the conversions as they are now.
    pub(super) fn called_at_edge(&self, edge: &ObjectName) -> Option<ObjectName> {
        match self.plan.direction {
            Direction::Down => Some(edge.clone()),
            Direction::Up => self.plan.named_copy(edge),
        }
    }

    /// True if the object is the record at the edge.
    pub(super) fn is_record(&self, name: &ObjectName) -> bool {
        let name = self.edge_name(name);
        name.is_some_and(|name| is_record(&self.plan.at_edge, &name.name))
    }

    /// The objects that an origin affects: first the one that it is copied to, then copies that earlier conversions
    /// made of it.
    pub(super) fn of_origin(&self, origin: &ObjectName) -> Vec<ObjectName> {
        // If an earlier conversion has given its place to another object, it has to wait for that.
        let now = self.plan.named_copy(origin);
        let mut names: Vec<_> = now
            .into_iter()
            .filter(|name| !self.former_copies.contains_key(name))
            .collect();
        // From before there was a conversion.
        let unconverted = self.inventory.get(origin).is_some() && self.origin_name(origin).as_ref() == Some(origin);
        if unconverted && !names.contains(origin) {
            names.push(origin.clone());
        }
        let former_copies = self.former_copies.iter().filter(|(_, of)| *of == origin);
        for (name, _) in former_copies {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The copy that an origin cannot have, since one that a former conversion has made of another origin has its name; and
    /// that other origin.
    pub(super) fn displaced(&self, origin: &ObjectName) -> Option<(Address, Address)> {
        if self.former_copies.is_empty() {
            return None;
        }
        let name = self.plan.named_copy(origin)?;
        let former = self.former_copies.get(&name)?;
        let edge = match self.plan.direction {
            Direction::Down => &name,
            Direction::Up => origin,
        };
        let is_selected = self.plan.selector.selects(edge).is_whole();
        let (others, copy) = self.both(&name)?;
        (former != origin && is_selected).then_some((copy, others))
    }

    /// True if another object is to have the name of a copy that a former conversion has made.
    pub(super) fn is_awaited(&self, name: &ObjectName) -> bool {
        let now = self.plan.named_origin(name);
        now.is_some_and(|origin| self.displaced(&origin).is_some())
    }

    /// What is upsynced under a name gets it; the name is not kept for what an earlier conversion has put there.
    pub(super) fn takes_its_name(&mut self, origin: &ObjectName) {
        let name = self
            .plan
            .named_copy(origin)
            .filter(|_| self.plan.direction == Direction::Up);
        if let Some(name) = name
            && self.former_copies.contains_key(&name)
            && self.plan.selector.selects(origin).is_whole()
        {
            self.former_copies.remove(&name);
        }
    }

    /// The object that a copy belongs to; `None` if it is no copy of this type. Remembers what an earlier conversion
    /// made.
    pub(super) fn of_copy(&mut self, meta: &Meta, we: &SyncTarget) -> Option<ObjectName> {
        let copy = meta.object_name();
        let origin_type = self.origin_type();
        let kind = qualified(&origin_type.group, &origin_type.kind);
        let ours = meta.is_ours(self.plan.direction, self.copy_type(), we);
        let origin = match meta.renamed_from() {
            Some((of_kind, _)) if of_kind != kind => return None,
            Some((_, origin)) => Some(copy.beside(origin)),
            // From before there was a conversion that gives it another kind, or its name to another object.
            None if ours && self.keeps_kind() => Some(copy.clone()),
            // Made of an object of its own kind. The Go syncer's copies do not say of what they were made.
            None if ours && self.plan.direction == Direction::Down && Owner::of(&meta.annotations).is_some() => {
                return None;
            }
            None => None,
        };
        let now = self.plan.named_origin(&copy);
        match origin {
            Some(origin) if ours && now.as_ref() != Some(&origin) => {
                if !self.is_taken(&copy) {
                    self.former_copies.insert(copy.clone(), origin);
                }
            }
            // It is somebody else's by now: the name is free, which is for whoever handles that.
            _ if !ours && self.former_copies.contains_key(&copy) => {}
            _ => {
                now?;
                self.former_copies.remove(&copy);
            }
        }
        Some(copy)
    }

    /// True if an origin is about to take the name of a copy, see [`TypeState::takes_its_name`].
    fn is_taken(&self, copy: &ObjectName) -> bool {
        self.plan.direction == Direction::Up && !self.former_copies.contains_key(copy) && self.inventory.is_wanted(copy)
    }

    /// Another plan applies from now on. A copy still belongs to its origin, whatever name the new conversions give it.
    pub(super) fn follow(&mut self, planned: TypePlan) {
        let names = if planned.naming == self.plan.naming {
            Vec::new()
        } else {
            self.inventory.names(|_| true)
        };
        let origins: Vec<_> = names.iter().map(|name| self.origin_name(name)).collect();
        self.plan = planned;
        let mut others = Vec::new();
        for (name, origin) in names.into_iter().zip(origins) {
            if origin == self.plan.named_origin(&name) {
                self.former_copies.remove(&name);
                continue;
            }
            if let Some(origin) = origin.filter(|_| self.inventory.has_ours(&name)) {
                self.former_copies.insert(name.clone(), origin);
            }
            others.push(name);
        }
        self.inventory.deselect(&others);
    }

    /// Nothing is known of any object, nor of what earlier conversions made: lists show both again.
    pub(super) fn drop_all_known(&mut self) {
        self.inventory.clear();
        self.former_copies.clear();
    }

    /// The copies' side has gone back from this version.
    pub(super) fn copies_went_back(&mut self, from: u64) {
        self.gone_back_from = self.gone_back_from.max(from);
    }

    /// The copies' side has shown this version.
    pub(super) fn copies_are_at(&mut self, version: u64) {
        if version >= self.gone_back_from {
            self.gone_back_from = 0;
        }
    }

    /// True if the copies that are known may be all.
    pub(super) fn shows_all_copies(&self) -> bool {
        self.copies_listed && self.gone_back_from == 0
    }

    /// Names of the copies that a conversion made which is no longer in force.
    pub(super) fn former_copies(&self) -> Vec<ObjectName> {
        let known = |name: &&ObjectName| self.inventory.get(name).is_some();
        self.former_copies.keys().filter(known).cloned().collect()
    }

    /// True if such a copy has just disappeared, or is ours no longer.
    pub(super) fn is_rid_of_former_copy(&mut self, name: &ObjectName) -> bool {
        let is_rid = self.former_copies.contains_key(name) && !self.inventory.may_be_ours(name);
        is_rid && self.former_copies.remove(name).is_some()
    }

    /// How an object is selected.
    pub(super) fn selection(&self, name: &ObjectName) -> Selection {
        if self.former_copies.contains_key(name) {
            return Selection::None;
        }
        self.plan.selection(name)
    }

    /// What is selected has changed: an object that is not selected any more is not wanted any more.
    pub(super) fn deselect(&mut self) {
        let mut wanted = self.inventory.names(|record| record.wanted != 0);
        wanted.retain(|name| self.selection(name) == Selection::None);
        self.inventory.deselect(&wanted);
    }

    /// A side has reported the status of an object: at which version, and its hash, `None` where the status was not seen.
    pub(super) fn status_seen(
        &mut self,
        name: &ObjectName,
        side: Side,
        version: u64,
        hash: impl FnOnce() -> Option<u64>,
    ) {
        if self.plan.status.is_none() {
            return;
        }
        let Some(status) = self.inventory.status(name) else {
            return;
        };
        match (side, hash()) {
            (Side::Edge, hash) => status.edge_reports(hash),
            (_, Some(hash)) => status.hub_reports(hash, version),
            (_, None) => {}
        }
    }

    /// Why the edge's owner does not allow an object that is selected; `None` if it is allowed, or not selected.
    pub(super) fn refusal(&self, name: &ObjectName) -> Option<String> {
        if self.selection(name) == Selection::None {
            return None;
        }
        let edge = self.edge_name(name)?;
        self.filter.refuses(self.plan.direction, &self.plan.at_edge, &edge)
    }

    /// Why the edge's owner does not allow the syncer to make the namespace that a copy at the edge needs.
    pub(super) fn refuses_namespace(&self, name: &ObjectName) -> Option<String> {
        if self.plan.direction == Direction::Up || name.namespace().is_empty() {
            return None;
        }
        let namespace = ObjectName::new("", name.namespace());
        self.filter
            .refuses(Direction::Down, &ResourceType::namespaces(), &namespace)
    }

    /// How an object is selected, as far as the edge's owner allows it.
    pub(super) fn allowed(&self, name: &ObjectName) -> Selection {
        match self.refusal(name) {
            Some(_) => Selection::None,
            None => self.selection(name),
        }
    }

    /// Namespaces and CRDs at the edge: what other objects need before they can be created.
    pub(super) fn is_first(&self) -> bool {
        let resource = &self.plan.at_edge;
        self.plan.direction == Direction::Down
            && (resource.stands_for("", "namespaces")
                || resource.is("apiextensions.k8s.io", "customresourcedefinitions"))
    }

    /// True if its copies have been listed, or cannot be.
    pub(super) fn has_listed_copies(&self, sources: &Sources) -> bool {
        self.copy_source.is_some_and(|id| has_settled(sources, id))
    }

    /// The same of its origins.
    pub(super) fn has_listed_origins(&self, sources: &Sources) -> bool {
        let started = self.plan.gone_at_origin || !self.origin_sources.is_empty() || self.origin_scopes().is_empty();
        started && self.origin_readers().all(|id| has_settled(sources, id))
    }

    /// What has to be read of the origins: what is selected, and what there are copies of.
    pub(super) fn origin_scopes(&self) -> BTreeSet<Scope> {
        if self.plan.gone_at_origin {
            return BTreeSet::new();
        }
        let deselected = self
            .inventory
            .ours()
            .filter(|name| self.selection(name) == Selection::None);
        let deselected: Vec<ObjectName> = deselected.filter_map(|name| self.edge_name(name)).collect();
        let scopes = self.plan.selector.scopes(deselected.iter());
        scopes.into_iter().map(|scope| self.at_origin(scope)).collect()
    }

    /// A scope with names at the edge, translated to the names of the origins.
    pub(super) fn at_origin(&self, scope: Scope) -> Scope {
        let name = scope.name.as_ref().filter(|_| self.plan.direction == Direction::Down);
        let Some(name) = name else { return scope };
        let name = ObjectName::new(scope.namespace.as_deref().unwrap_or_default(), name);
        Scope {
            name: Some(self.origin_name(&name).unwrap_or(name).name.into()),
            ..scope
        }
    }

    /// All that is reading origins.
    pub(super) fn origin_readers(&self) -> impl Iterator<Item = SourceId> {
        self.origin_sources.values().chain(self.read_once.values()).copied()
    }

    /// The source that reports the origin of an object, if one does.
    pub(super) fn origin_source(&self, name: &ObjectName) -> Option<SourceId> {
        self.source_of_origin(&self.origin_name(name)?)
    }

    /// The source that reports the origin of this name, if one does.
    pub(super) fn source_of_origin(&self, origin: &ObjectName) -> Option<SourceId> {
        let mut sources = self.origin_sources.iter();
        sources.find(|(scope, _)| scope.contains(origin)).map(|(_, &id)| id)
    }

    /// The objects with a copy of ours that a complete list of origins in `scope` did not name.
    pub(super) fn origins_listed(&mut self, scope: &Scope, list: super::ListEpoch) -> Vec<ObjectName> {
        let (former_copies, plan) = (&self.former_copies, &self.plan);
        let covers = |name: &ObjectName| {
            let origin = former_copies.get(name).cloned();
            let origin = origin.or_else(|| plan.named_origin(name));
            origin.is_some_and(|origin| scope.contains(&origin))
        };
        self.inventory.origins_listed(covers, list)
    }

    /// Namespaces and CRDs first; last if they are to be deleted, because that deletes others too.
    pub(super) fn class(&self, name: &ObjectName) -> Class {
        match (self.is_first(), self.inventory.is_wanted(name)) {
            (false, _) => Class::Normal,
            (true, true) => Class::First,
            (true, false) => Class::Last,
        }
    }
}

fn has_settled(sources: &Sources, id: SourceId) -> bool {
    sources.get(&id).is_some_and(|source| source.settled)
}
