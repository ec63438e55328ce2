//! Which objects of one resource are selected, and which scopes a source needs to see them all.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Naming;
use crate::cluster::{ObjectName, Scope};

/// The config's word for "all".
pub(super) const ALL: &str = "*";

/// Above this many namespaces of one resource, one list over all namespaces is requested instead of one for each
/// namespace: each open watch costs the hub memory and the link bookmarks.
const NAMESPACE_SCOPES: usize = 4;
/// Up to so many names, the selection of a resource is stored with it; a larger one is shared with others.
const WRITTEN_OUT: usize = 64;

/// A set of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Every name.
    All,
    /// These names.
    These(BTreeSet<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Names {
    /// The names as a config lists them: `*` anywhere among them means all.
    pub(super) fn from_list(names: &[String]) -> Self {
        if names.iter().any(|name| name == ALL) {
            Self::All
        } else {
            Self::These(names.iter().cloned().collect())
        }
    }

    /// True if `name` is one of them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(name),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::These(names) if names.is_empty())
    }

    /// How many names it contains.
    fn size(&self) -> usize {
        match self {
            Self::All => 1,
            Self::These(names) => names.len(),
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (Self::These(names), Self::These(more)) => names.extend(more),
            (Self::These(_), Self::All) => *self = Self::All,
        }
    }

    pub(super) fn single(&self) -> Option<&str> {
        match self {
            Self::These(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }
}

/// What a selector says of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selection {
    /// Not selected.
    None,
    /// A namespace that must exist for its contents, without its details.
    Implied,
    /// Selected whole.
    Full,
    /// The same by its own name, so that what its cluster keeps for itself is not left out ([`super::kept`]).
    Named,
}

impl Selection {
    /// True if the object is selected with all that it contains.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Full | Self::Named)
    }
}

/// The selected objects of one resource. Cluster-scoped objects stand under the empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    by_namespace: BTreeMap<String, Names>,
    /// Names that are selected in every namespace but `spared`.
    everywhere: Names,
    /// What is too large to be stored for each resource.
    shared: Vec<Shared>,
    /// A namespace that "every namespace" leaves out: the syncer's own, with its credentials.
    spared: Option<String>,
    implied: Vec<Rc<BTreeSet<String>>>,
    /// What of it is selected by name and namespace, where that makes a difference.
    named: Option<Box<Self>>,
}

/// Each of these names in each of these namespaces. Every resource of an entry shares them: a config that names a
/// thousand of each is small, but all combinations of them are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// Absent: in every namespace but the spared one.
    pub(super) namespaces: Option<Rc<BTreeSet<String>>>,
    pub(super) names: Rc<Names>,
}

impl Shared {
    pub(super) fn new(namespaces: Option<Rc<BTreeSet<String>>>, names: Rc<Names>) -> Self {
        Self { namespaces, names }
    }

    /// How many names it would contain if it were not shared.
    fn size(&self) -> usize {
        let namespaces = self.namespaces.as_ref().map_or(1, |namespaces| namespaces.len());
        namespaces.saturating_mul(self.names.size())
    }

    fn contains(&self, object: &ObjectName, spared: Option<&str>) -> bool {
        let namespace = object.namespace();
        let within = match &self.namespaces {
            Some(namespaces) => namespaces.contains(namespace),
            None => !namespace.is_empty() && spared != Some(namespace),
        };
        within && self.names.contains(&object.name)
    }
}

impl Selector {
    /// A selection that "every namespace" does not extend to the namespace `spared`.
    pub(super) fn sparing(spared: Option<&str>) -> Self {
        Self {
            spared: spared.map(str::to_owned),
            ..Self::default()
        }
    }

    /// The same selection, which tells apart what is selected by its own name.
    #[must_use]
    pub(super) fn telling_named(self) -> Self {
        Self {
            named: Some(Box::default()),
            ..self
        }
    }

    /// Adds names in namespaces.
    pub(super) fn share(&mut self, more: Shared) {
        if let (Some(named), Some(_), Names::These(_)) = (&mut self.named, &more.namespaces, &*more.names) {
            named.share(more.clone());
        }
        if more.size() == 0 || self.shared.contains(&more) {
            return;
        }
        if more.size() > WRITTEN_OUT {
            self.shared.push(more);
            return;
        }
        match &more.namespaces {
            Some(namespaces) => namespaces.iter().for_each(|of| self.add(of, (*more.names).clone())),
            None => self.everywhere.extend((*more.names).clone()),
        }
    }

    /// What is selected by its name at the hub becomes selected by its name at the edge.
    pub(super) fn rename(&mut self, naming: &Naming) {
        let has_renamed = |names: &Names| match names {
            Names::All => false,
            Names::These(names) => names.iter().any(|name| naming.converts(name)),
        };
        let rename = |names: &mut Names| {
            if let Names::These(names) = names {
                *names = names.iter().flat_map(|name| naming.meant_by(name)).collect();
            }
        };
        if let Some(named) = &mut self.named {
            named.rename(naming);
        }
        let own = self.by_namespace.values_mut().chain([&mut self.everywhere]);
        own.filter(|names| has_renamed(names)).for_each(rename);
        for shared in &mut self.shared {
            if has_renamed(&shared.names) {
                rename(Rc::make_mut(&mut shared.names));
            }
        }
    }

    /// The part of the selection that is about `name`, under the name `to`. With `all`, the part that selects it by `*`
    /// too.
    pub(super) fn part_of(&self, name: &str, to: &str, all: bool) -> Self {
        let selects = |names: &Names| match names {
            Names::All => all,
            Names::These(names) => names.contains(name),
        };
        let one = || Names::These(BTreeSet::from([to.to_owned()]));
        let by_namespace = self.by_namespace.iter().filter(|(_, names)| selects(names));
        let mut part = Self {
            by_namespace: by_namespace.map(|(namespace, _)| (namespace.clone(), one())).collect(),
            everywhere: if selects(&self.everywhere) {
                one()
            } else {
                Names::default()
            },
            spared: self.spared.clone(),
            named: self
                .named
                .as_ref()
                .map(|named| Box::new(named.part_of(name, to, false))),
            ..Self::default()
        };
        for shared in self.shared.iter().filter(|shared| selects(&shared.names)) {
            part.share(Shared {
                names: Rc::new(one()),
                ..shared.clone()
            });
        }
        part
    }

    /// Adds all that another selection selects.
    pub(super) fn extend(&mut self, other: Self) {
        for (namespace, names) in other.by_namespace {
            self.add(&namespace, names);
        }
        self.everywhere.extend(other.everywhere);
        other.shared.into_iter().for_each(|shared| self.share(shared));
        self.spared = other.spared.or(self.spared.take());
        if let (Some(named), Some(others)) = (&mut self.named, other.named) {
            named.extend(*others);
        }
        other.implied.into_iter().for_each(|names| self.imply(names));
    }

    /// What it selects and another one does not, or not in the same way.
    pub fn added_to(&self, other: &Self) -> Added {
        let mut added = Added::default();
        if self.spared != other.spared {
            added.scopes.insert(Scope::default());
        }
        match (&self.everywhere, &other.everywhere) {
            (_, Names::All) => {}
            (Names::All, Names::These(_)) => {
                added.scopes.insert(Scope::default());
            }
            (Names::These(names), Names::These(known)) => {
                let everywhere = |name: &String| Scope {
                    namespace: None,
                    name: Some(name.as_str().into()),
                };
                added.scopes.extend(names.difference(known).map(everywhere));
            }
        }
        for (namespace, names) in &self.by_namespace {
            match names {
                Names::All if other.has_all_of(namespace) => {}
                Names::All => {
                    added.scopes.insert(within(namespace));
                }
                Names::These(names) => {
                    let within = names.iter().map(|name| ObjectName::new(namespace, name));
                    added.names.extend(within);
                }
            }
        }
        for shared in self.shared.iter().filter(|shared| !other.shared.contains(shared)) {
            match &shared.namespaces {
                Some(namespaces) => {
                    let is_new = |of: &&String| !other.has_all_of(of);
                    added
                        .scopes
                        .extend(namespaces.iter().filter(is_new).map(|of| within(of)));
                }
                None => {
                    added.scopes.insert(Scope::default());
                }
            }
        }
        if let Some(named) = &self.named {
            let of_named = named.added_to(other.named.as_deref().unwrap_or(&Self::default()));
            added.names.extend(of_named.names);
            added.scopes.extend(of_named.scopes);
        }
        let named = |name: &ObjectName| self.selects(name).is_whole();
        let implied = self.implied.iter().flat_map(|names| names.iter());
        let implied = implied.map(|name| ObjectName::new("", name));
        added.names.extend(implied.filter(|name| !named(name)));
        added.names.retain(|name| self.selects(name) != other.selects(name));
        added
    }

    /// True if it selects everything in a namespace.
    fn has_all_of(&self, namespace: &str) -> bool {
        let is_whole = |shared: &Shared| {
            let within = shared.namespaces.as_ref().is_some_and(|all| all.contains(namespace));
            within && *shared.names == Names::All
        };
        self.by_namespace.get(namespace) == Some(&Names::All) || self.shared.iter().any(is_whole)
    }

    /// True if it selects nothing at all.
    pub fn is_empty(&self) -> bool {
        let named = self.by_namespace.is_empty() && self.everywhere.is_empty() && self.shared.is_empty();
        named && self.implied.is_empty()
    }

    /// Adds names in a namespace (empty: cluster-scoped).
    pub(super) fn add(&mut self, namespace: &str, names: Names) {
        if let (Some(named), Names::These(_)) = (&mut self.named, &names) {
            named.add(namespace, names.clone());
        }
        if !names.is_empty() {
            self.by_namespace.entry(namespace.to_owned()).or_default().extend(names);
        }
    }

    /// Adds namespaces that have to exist; meaningful for the resource `namespaces` only.
    pub(super) fn imply(&mut self, namespaces: Rc<BTreeSet<String>>) {
        if self.implied.contains(&namespaces) {
            return;
        }
        match self.implied.first_mut() {
            // Small sets are merged, so that there are not many of them.
            Some(first) if namespaces.len() <= WRITTEN_OUT => Rc::make_mut(first).extend(namespaces.iter().cloned()),
            _ => self.implied.push(namespaces),
        }
    }

    /// Whether, and how, an object is selected.
    pub fn selects(&self, object: &ObjectName) -> Selection {
        let names = self.by_namespace.get(object.namespace());
        let everywhere = !object.namespace().is_empty() && self.spared.as_deref() != Some(object.namespace());
        let spared = self.spared.as_deref();
        if names.is_some_and(|names| names.contains(&object.name))
            || everywhere && self.everywhere.contains(&object.name)
            || self.shared.iter().any(|shared| shared.contains(object, spared))
        {
            match &self.named {
                Some(one_by_one) if one_by_one.selects(object).is_whole() => Selection::Named,
                _ => Selection::Full,
            }
        } else if object.namespace().is_empty() && self.implied.iter().any(|names| names.contains(&*object.name)) {
            Selection::Implied
        } else {
            Selection::None
        }
    }

    /// True if every object is selected that is where this one is, whatever its name.
    pub fn selects_all_beside(&self, object: &ObjectName) -> bool {
        // No object has this name.
        self.selects(&object.beside("")).is_whole()
    }

    /// The fewest list scopes that contain every selected object and every one of `others` (copies at the edge that are
    /// no longer selected, but whose origins must still be watched). Scopes never overlap; they may contain more.
    pub fn scopes<'a>(&self, others: impl Iterator<Item = &'a ObjectName>) -> BTreeSet<Scope> {
        let named = self.by_namespace.iter();
        let named = named.map(|(namespace, names)| (namespace.as_str(), names.single()));
        let implied = self.implied.iter().flat_map(|names| names.iter());
        let implied = implied.map(|name| ("", Some(name.as_str())));
        let shared = self.shared.iter().flat_map(|shared| {
            let namespaces = shared.namespaces.iter().flat_map(|namespaces| namespaces.iter());
            namespaces.map(|namespace| (namespace.as_str(), shared.names.single()))
        });
        let others = others.map(|object| (object.namespace(), Some(&*object.name)));
        // For each namespace its only name, or `None` if there are more.
        let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (namespace, name) in named.chain(implied).chain(shared).chain(others) {
            match all.get_mut(namespace) {
                None => _ = all.insert(namespace.to_owned(), name.map(str::to_owned)),
                Some(known) if known.as_deref() == name => {}
                Some(known) => *known = None,
            }
            if all.len() > NAMESPACE_SCOPES {
                return BTreeSet::from([Scope::default()]);
            }
        }
        let much_everywhere = self.shared.iter().any(|shared| shared.namespaces.is_none());
        if much_everywhere || !self.everywhere.is_empty() {
            let one = self.everywhere.single().filter(|_| all.is_empty() && !much_everywhere);
            let name = one.map(Into::into);
            return BTreeSet::from([Scope { namespace: None, name }]);
        }
        let scope = |(namespace, name): (String, Option<String>)| Scope {
            name: name.map(Into::into),
            ..within(&namespace)
        };
        all.into_iter().map(scope).collect()
    }
}

/// What one selection has in addition to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Objects that are selected by their names.
    pub names: Vec<ObjectName>,
    /// Scopes in which objects may be selected that were not selected before.
    pub scopes: BTreeSet<Scope>,
}

impl Added {
    /// The same, with whole namespaces where there are more names than `most`, and with everything where these are many:
    /// above that, one list is cheaper.
    #[must_use]
    pub fn with_names_up_to(mut self, most: usize) -> Self {
        if self.names.len() > most {
            let names = std::mem::take(&mut self.names);
            self.scopes.extend(names.iter().map(|name| within(name.namespace())));
        }
        if self.scopes.len() > NAMESPACE_SCOPES {
            self.scopes = BTreeSet::from([Scope::default()]);
        }
        self
    }

    /// True if there is nothing more.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.scopes.is_empty()
    }
}

/// All of a namespace (empty: all that is cluster-scoped).
fn within(namespace: &str) -> Scope {
    Scope {
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: None,
    }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;
