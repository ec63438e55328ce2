//! Which objects of one resource are selected, and which scopes a source needs to see them all.

mod layer;
mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::{ObjectName, Scope};

pub(super) use self::layer::{Layer, Shared};
pub(super) use self::parts::{Kinds, Part};
use super::names::Names;
use super::{Naming, steps};

/// Above this many namespaces of one resource, one list over all namespaces is requested instead of one for each
/// namespace: each open watch costs the hub memory and the link bookmarks.
const NAMESPACE_SCOPES: usize = 4;

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

/// The selected objects of one resource, by their names at the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    own: Layer,
    /// What is selected of many resources alike, without each having a copy of it.
    common: Vec<Rc<Layer>>,
    /// Entries may name objects by their names on either side. The names of a selection are theirs, and are translated
    /// when an object is looked for: a list that many resources share stays one.
    naming: Option<Rc<Naming>>,
}

impl Selector {
    /// A selection that "every namespace" does not extend to the namespace `spared`.
    pub(super) fn sparing(spared: Option<&str>) -> Self {
        Self {
            own: Layer::sparing(spared),
            ..Self::default()
        }
    }

    /// The same selection, which tells apart what is selected by its own name.
    #[must_use]
    pub(super) fn telling_named(mut self) -> Self {
        self.own.tell_named();
        self
    }

    /// What it selects by itself, to be added to.
    pub(super) fn own(&mut self) -> &mut Layer {
        &mut self.own
    }

    /// Adds what other resources select as well.
    pub(super) fn add_common(&mut self, layer: &Rc<Layer>) {
        self.common.push(Rc::clone(layer));
    }

    fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.own).chain(self.common.iter().map(|layer| &**layer))
    }

    /// What of it is selected by name and namespace, if that makes a difference.
    fn named(&self) -> impl Iterator<Item = &Layer> {
        let layers = self.own.named.is_some().then(|| self.layers());
        layers.into_iter().flatten().filter_map(|layer| layer.named.as_deref())
    }

    /// What is selected by its name at the hub becomes selected by its name at the edge. All conversions apply at once:
    /// what one has renamed, another one does not rename again.
    pub(super) fn rename(&mut self, naming: &Rc<Naming>) {
        self.naming = Some(Rc::clone(naming)).filter(|naming| naming.converts_any());
    }

    /// The objects that an entry may mean by a name, by their names at the edge.
    fn meant_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let naming = self.naming.as_ref();
        let renamed = naming.map(|naming| naming.meant_by(name));
        let same = renamed.is_none().then_some(name);
        renamed.into_iter().flatten().chain(same)
    }

    /// Adds all that another selection selects.
    pub(super) fn extend(&mut self, other: Layer) {
        self.own.extend(other);
    }

    /// What it selects and another one does not, or not in the same way.
    pub fn added_to(&self, other: &Self) -> Added {
        steps::whole(self.adding_to(other))
    }

    /// The same in slices.
    pub(crate) async fn adding_to(&self, other: &Self) -> Added {
        let mut added = Added::default();
        steps::pause().await;
        steps::many(self.layers().chain(other.layers()).map(Layer::parts).sum());
        if self.own.spared != other.own.spared {
            added.scopes.insert(Scope::default());
        }
        match (self.everywhere(), other.everywhere()) {
            (_, None) => {}
            (None, Some(_)) => {
                added.scopes.insert(Scope::default());
            }
            (Some(names), Some(known)) => {
                let everywhere = |name: &&str| Scope {
                    namespace: None,
                    name: Some((*name).into()),
                };
                added.scopes.extend(names.difference(&known).map(everywhere));
            }
        }
        self.add_named(other, &mut added).await;
        self.add_shared(other, &mut added);
        let named = |name: &ObjectName| self.selects(name).is_whole();
        let implied = self.layers().flat_map(|layer| &layer.implied);
        let implied = implied.flat_map(|names| names.iter());
        let implied = implied.map(|name| ObjectName::new("", name));
        for name in implied {
            steps::pause().await;
            if !named(&name) {
                added.names.push(name);
            }
        }
        for name in std::mem::take(&mut added.names) {
            steps::pause().await;
            if self.selects(&name) != other.selects(&name) {
                added.names.push(name);
            }
        }
        added
    }

    /// The names that are selected in every namespace, without those of long lists; `None` for all.
    fn everywhere(&self) -> Option<BTreeSet<&str>> {
        let mut everywhere = BTreeSet::new();
        for layer in self.layers() {
            let shared = layer.shared.iter().filter(|shared| shared.is_small());
            let shared = shared.filter(|shared| shared.namespaces.is_none());
            for names in shared.map(|shared| &*shared.names).chain([&layer.everywhere]) {
                let Names::These(names) = names else { return None };
                everywhere.extend(names.iter().flat_map(|name| self.meant_by(name)));
            }
        }
        Some(everywhere)
    }

    /// Adds what is selected in single namespaces by single names, and whole namespaces.
    async fn add_named(&self, other: &Self, added: &mut Added) {
        let layers = || self.layers().chain(self.named());
        let written_out = layers().flat_map(|layer| layer.by_namespace.iter());
        let shared = layers().flat_map(|layer| layer.shared.iter());
        let small = shared.filter(|shared| shared.is_small()).flat_map(|shared| {
            let namespaces = shared.namespaces.iter().flat_map(|namespaces| namespaces.iter());
            namespaces.map(|namespace| (namespace, &*shared.names))
        });
        for (namespace, names) in written_out.chain(small) {
            steps::many(names.size());
            steps::pause().await;
            match names {
                Names::All if other.has_all_of(namespace) => {}
                Names::All => {
                    added.scopes.insert(within(namespace));
                }
                Names::These(names) => {
                    let names = names.iter().flat_map(|name| self.meant_by(name));
                    added.names.extend(names.map(|name| ObjectName::new(namespace, name)));
                }
            }
        }
    }

    /// Adds the namespaces of long lists that the other one does not have.
    fn add_shared(&self, other: &Self, added: &mut Added) {
        let is_renamed = self.naming != other.naming;
        let known: BTreeSet<&Shared> = other.layers().flat_map(|layer| &layer.shared).collect();
        let is_known = |shared: &Shared| known.contains(shared) && (!is_renamed || *shared.names == Names::All);
        let tells = self.own.named.is_some();
        let shared = self.layers().flat_map(|layer| &layer.shared);
        for shared in shared.filter(|shared| !shared.is_small() && !is_known(shared)) {
            match &shared.namespaces {
                Some(namespaces) => {
                    steps::many(namespaces.len());
                    // That all of a namespace is selected does not say that what is named there is.
                    let is_named = tells && *shared.names != Names::All;
                    let is_new = |of: &&String| is_named || !other.has_all_of(of);
                    let new = namespaces.iter().filter(is_new).map(|of| within(of));
                    added.scopes.extend(new);
                }
                None => {
                    added.scopes.insert(Scope::default());
                }
            }
        }
    }

    /// True if it selects everything in a namespace.
    fn has_all_of(&self, namespace: &str) -> bool {
        self.layers().any(|layer| layer.has_all_of(namespace))
    }

    /// True if it selects nothing at all.
    pub fn is_empty(&self) -> bool {
        self.layers().all(Layer::is_empty)
    }

    /// Whether, and how, an object is selected.
    pub fn selects(&self, object: &ObjectName) -> Selection {
        let is_in = |layer: &Layer| match &self.naming {
            Some(naming) => {
                let mut words = naming.words_for(&object.name);
                words.any(|name| layer.selects(object.namespace(), name))
            }
            None => layer.selects(object.namespace(), &object.name),
        };
        if self.layers().any(is_in) {
            if self.named().any(is_in) {
                Selection::Named
            } else {
                Selection::Full
            }
        } else if object.namespace().is_empty() && self.layers().any(|layer| layer.implies(&object.name)) {
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
        let named = self.layers().flat_map(|layer| &layer.by_namespace);
        let named = named.map(|(namespace, names)| (namespace.as_str(), self.single(names)));
        let implied = self.layers().flat_map(|layer| &layer.implied);
        let implied = implied.flat_map(|names| names.iter());
        let implied = implied.map(|name| ("", Some(name.as_str())));
        let shared = self.layers().flat_map(|layer| &layer.shared).flat_map(|shared| {
            let namespaces = shared.namespaces.iter().flat_map(|namespaces| namespaces.iter());
            namespaces.map(|namespace| (namespace.as_str(), self.single(&shared.names)))
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
        let mut everywhere = self.layers().flat_map(|layer| {
            let shared = layer.shared.iter().filter(|shared| shared.namespaces.is_none());
            let all = shared.map(|shared| &*shared.names).chain([&layer.everywhere]);
            all.filter(|names| !names.is_empty())
        });
        if let Some(first) = everywhere.next() {
            let is_all = everywhere.next().is_none() && all.is_empty();
            let name = self.single(first).filter(|_| is_all).map(Into::into);
            return BTreeSet::from([Scope { namespace: None, name }]);
        }
        let scope = |(namespace, name): (String, Option<String>)| Scope {
            name: name.map(Into::into),
            ..within(&namespace)
        };
        all.into_iter().map(scope).collect()
    }

    /// The only name among these, at the edge.
    fn single<'a>(&'a self, names: &'a Names) -> Option<&'a str> {
        let mut meant = self.meant_by(names.single()?);
        meant.next().filter(|_| meant.next().is_none())
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
