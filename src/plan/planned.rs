//! The plan: plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

#[cfg(feature = "admin")]
use kube_lite::Scope;
use kube_lite::discovery::ServedResource;
use kube_lite::{ObjectName, ResourceType, is_of_kubernetes, qualified};

use super::missing::{Absence, Missing, Unknown};
use super::{ConfigPlace, Direction, Naming, Problem, Selection, Selector, SyncedType};
use crate::side::Side;

/// What to sync now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The types, each with its direction.
    pub types: BTreeMap<Pair, TypePlan>,
    /// What is selected and cannot be synced because a side does not serve it.
    pub missing: Vec<Missing>,
    /// Types, `resource.group`, that are selected, or count as that, though the hub does not serve them, and of which
    /// there may be copies.
    pub vanished: BTreeMap<String, Vec<CopiesOf>>,
    /// Whether configs select the types that have come down once and that a CRD may define, by `resource.group` at the hub.
    pub selects: BTreeMap<String, Selects>,
    /// What in the configs cannot be followed.
    pub problems: BTreeSet<Problem>,
    /// What has to be asked before the plan is complete.
    pub unknown: Unknown,
    /// Neither side serves something: what may be meant is perhaps known only from the list of all that the edge serves.
    pub is_puzzled: bool,
    /// Groups of which everything is selected, also types that do not exist yet: what appears at that side has to be
    /// noticed.
    pub open: BTreeSet<(Side, String)>,
    /// Types that are selected and that the edge's owner does not allow, by their names in the log, and the rule.
    /// Nothing is planned for them, so that nothing is asked about them, nor for those that were synced before they
    /// were denied.
    pub denied: BTreeMap<String, String>,
    /// The entries that ask for them.
    pub denied_places: BTreeSet<Problem>,
    /// Namespaces that the hub must have for what the configs select of it, each with the first place that names it.
    pub namespaces: BTreeMap<String, ConfigPlace>,
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

impl Pair {
    /// What a type that was synced once is in the plan.
    pub fn of_synced(known: &SyncedType) -> Self {
        let copies = (known.group.clone(), known.resource.clone());
        let (group, resource) = known.origin();
        let origins = (group.to_owned(), resource.to_owned());
        let (hub, edge) = match known.direction {
            Direction::Down => (origins, copies),
            Direction::Up => (copies, origins),
        };
        Self {
            direction: known.direction,
            hub,
            edge,
        }
    }
}

/// Whether configs select a type that was synced once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selects {
    /// No config names it.
    No,
    /// A config names a kind that may be this one: no side serves it, so that its plural is not known.
    Perhaps,
    /// One does.
    Yes,
}

/// The copies of one type at the edge that are of one kind of origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesOf {
    /// Kind of the origins with its group, as copies name it that a conversion has made.
    pub origins: String,
    /// Their type at the edge.
    pub resource: ResourceType,
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
    pub selector: Rc<Selector>,
    /// What their names are at the hub.
    pub naming: Rc<Naming>,
    /// What the other direction selects of the same type: upsync wins.
    pub yields_to: Rc<Selector>,
    /// The configs that ask for it, in the order of their names.
    pub configs: Vec<OfConfig>,
    /// False if no config asks for it any more.
    pub selected: bool,
    /// The origin's side does not serve it: its origins are gone, if that side says so repeatedly.
    pub gone_at_origin: bool,
    /// The first place that asks for it, if the origin's side stores it at another version, which may have more fields.
    pub not_stored: Option<ConfigPlace>,
    /// Where the status of hub objects is written.
    pub status: Option<StatusPath>,
    /// It is a custom type that is scaled at the copies' side: a server may name nobody who has done so.
    pub scaled_by_nobody: bool,
}

/// What a single config asks for of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfConfig {
    /// The config as `Kind//name`.
    pub config: Rc<str>,
    /// What it selects; absent if that is all that is selected, or is not known by itself.
    pub selects: Option<Rc<Selector>>,
}

impl TypePlan {
    /// True if a config asks for the object of that name at the edge.
    pub fn is_of(&self, config: &str, edge: &ObjectName) -> bool {
        let of = self.configs.iter().find(|of| &*of.config == config);
        of.is_some_and(|of| {
            let selector = of.selects.as_ref();
            selector.is_none_or(|selector| selector.selects(edge).is_whole())
        })
    }

    /// The configs that select the object of that name at the edge, if the type's selection does.
    pub fn select(&self, edge: &ObjectName) -> impl Iterator<Item = &Rc<str>> {
        let selects = |of: &Option<Rc<Selector>>| of.as_ref().unwrap_or(&self.selector).selects(edge).is_whole();
        let of_all = self.configs.iter();
        of_all.filter(move |of| selects(&of.selects)).map(|of| &of.config)
    }

    /// True if the other one says the same, and selects by the very same selections: those of a thousand types may be long,
    /// and what has not changed of them is kept.
    pub fn is(&self, other: &Self) -> bool {
        let shares = Rc::ptr_eq(&self.selector, &other.selector) && Rc::ptr_eq(&self.yields_to, &other.yields_to);
        shares && self == other
    }

    /// The type at the side of its origins.
    pub fn at_origin(&self) -> &ResourceType {
        match self.direction {
            Direction::Down => &self.at_hub,
            Direction::Up => &self.at_edge,
        }
    }

    /// The type at the side of its copies.
    pub fn at_copy(&self) -> &ResourceType {
        match self.direction {
            Direction::Down => &self.at_edge,
            Direction::Up => &self.at_hub,
        }
    }

    /// How the object is selected whose copy has this name, by the conversions as they are now.
    pub fn selection(&self, copy: &ObjectName) -> Selection {
        let origin = self.named_origin(copy);
        let Some(origin) = origin.filter(|origin| self.named_copy(origin).as_ref() == Some(copy)) else {
            return Selection::None;
        };
        let edge = match self.direction {
            Direction::Down => copy,
            Direction::Up => &origin,
        };
        // An implied namespace does not give way to upsync: what is in it needs it, and if it is not at the edge, it
        // cannot be upsynced.
        match self.selector.selects(edge) {
            selected if selected.is_whole() && self.yields_to.selects(edge).is_whole() => Selection::None,
            selected => selected,
        }
    }

    /// The fewest list scopes that contain the origins of every selected object.
    #[cfg(feature = "admin")]
    pub fn origin_scopes(&self) -> BTreeSet<Scope> {
        let scopes = self.selector.scopes(std::iter::empty());
        let at_origin = |scope: Scope| {
            let name = scope.name.as_ref().filter(|_| self.direction == Direction::Down);
            let name = name.map(|name| ObjectName::new(scope.namespace.as_deref().unwrap_or_default(), name));
            let origin = name.and_then(|name| self.named_origin(&name));
            Scope {
                name: origin.map(|origin| (&*origin.name).into()).or(scope.name),
                ..scope
            }
        };
        scopes.into_iter().map(at_origin).collect()
    }

    /// The origin of a copy of that name, by the conversions as they are now.
    pub fn named_origin(&self, copy: &ObjectName) -> Option<ObjectName> {
        match self.direction {
            Direction::Down => self.naming.at_hub(copy),
            Direction::Up => self.naming.at_edge(copy),
        }
    }

    /// The name of the copy of that origin, by the conversions as they are now; `None` if it is to have no copy.
    pub fn named_copy(&self, origin: &ObjectName) -> Option<ObjectName> {
        let copy = match self.direction {
            Direction::Down => self.naming.at_edge(origin),
            Direction::Up => self.naming.at_hub(origin),
        }?;
        // A conversion may have given its name to the copy of another.
        (self.named_origin(&copy).as_ref() == Some(origin)).then_some(copy)
    }

    /// The other origin whose copy has the name of this one by a conversion, so that this one has no copy.
    pub fn loses_its_name_to(&self, origin: &ObjectName) -> Option<ObjectName> {
        let other = self.named_origin(origin).filter(|other| other != origin);
        other.filter(|_| self.named_copy(origin).is_none())
    }
}

/// Where the status of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPath {
    /// Through the `/status` subresource.
    Subresource,
    /// In the object itself.
    Main,
}

impl Plan {
    /// True if the hub serves a type, `resource.group`, of which objects go down; `None` if nothing is planned of it, as
    /// when the edge does not serve it.
    pub fn has_at_hub(&self, resource: &str) -> Option<bool> {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let first = Pair {
            direction: Direction::Down,
            hub: (group.to_owned(), resource.to_owned()),
            edge: <(String, String)>::default(),
        };
        let from = self.types.range(&first..);
        let of_it = from.take_while(|(pair, _)| (pair.direction, &pair.hub) == (first.direction, &first.hub));
        of_it.map(|(_, planned)| !planned.gone_at_origin).max()
    }

    /// True if the kind of a type, `resource.group`, differs between the sides.
    pub fn has_another_kind(&self, resource: &str) -> bool {
        let mut differing = self.missing.iter().filter(|missing| missing.absence == Absence::Kind);
        differing.any(|missing| qualified(&missing.group, &missing.resource) == resource)
    }

    /// True if a side has not reported yet whether it serves a type, `resource.group`.
    pub fn is_unknown(&self, resource: &str) -> bool {
        self.unknown
            .has_group(resource.split_once('.').map_or("", |(_, group)| group))
    }
}

/// True if people have defined the type, and its objects are stored at another version than this one. Kubernetes
/// stores new versions of its own types at the former one for a while, and loses nothing by that.
pub(super) fn is_stored_elsewhere(served: &ServedResource) -> bool {
    served.stored_elsewhere && !is_of_kubernetes(&served.resource.group)
}

/// Where the status of hub objects of a type is written, if at all.
pub(super) fn status_path(hub: &ServedResource, edge: &ServedResource) -> Option<StatusPath> {
    let resource = &hub.resource;
    // Their status belongs to the API server on each side.
    let belongs_to_server = resource.stands_for("", "namespaces")
        || resource.is("apiextensions.k8s.io", "customresourcedefinitions")
        || resource.is("apiregistration.k8s.io", "apiservices");
    let built_in = is_of_kubernetes(&resource.group);
    if belongs_to_server {
        None
    } else if hub.status_subresource {
        Some(StatusPath::Subresource)
    } else if !built_in || edge.status_subresource {
        Some(StatusPath::Main)
    } else {
        None
    }
}
