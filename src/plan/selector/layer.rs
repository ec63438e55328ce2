//! What entries select of one resource, as they name it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Names;
use crate::plan::steps;

/// Up to so many names, what an entry selects is stored with each resource; a larger selection is shared with others.
pub(super) const WRITTEN_OUT: usize = 64;

/// The selected objects of one resource. Cluster-scoped objects stand under the empty namespace.
#[derive(Clone, Debug, Default, Eq)]
pub(in crate::plan) struct Layer {
    pub(super) by_namespace: BTreeMap<String, Names>,
    /// Names that are selected in every namespace but `spared`.
    pub(super) everywhere: Names,
    /// What is too large to be stored for each resource.
    pub(super) shared: Vec<Shared>,
    /// A namespace that "every namespace" leaves out: the syncer's own, with its credentials.
    pub(super) spared: Option<String>,
    pub(super) implied: Vec<Rc<BTreeSet<String>>>,
    /// What of it is selected by name and namespace, where that makes a difference.
    pub(super) named: Option<Box<Self>>,
    /// What is named where everything is selected. It adds nothing, but a conversion to another kind may ask for the
    /// name itself.
    pub(super) besides: Option<Box<Self>>,
}

/// Each of these names in each of these namespaces. Every resource of an entry shares them: a config that names a
/// thousand of each is small, but all combinations of them are not.
#[derive(Clone, Debug, Eq, PartialOrd, Ord)]
pub(in crate::plan) struct Shared {
    /// Absent: in every namespace but the spared one.
    pub(in crate::plan) namespaces: Option<Rc<BTreeSet<String>>>,
    pub(in crate::plan) names: Rc<Names>,
}

/// What is compared is read.
impl PartialEq for Layer {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            by_namespace,
            everywhere,
            shared,
            spared,
            implied,
            named,
            // What conversions make of it is compared as theirs.
            besides: _,
        } = self;
        let is_as_long = by_namespace.len() == other.by_namespace.len() && everywhere.size() == other.everywhere.size();
        if is_as_long {
            steps::many(by_namespace.len() + everywhere.size());
        }
        is_as_long
            && *by_namespace == other.by_namespace
            && *everywhere == other.everywhere
            && *shared == other.shared
            && *spared == other.spared
            && *implied == other.implied
            && *named == other.named
    }
}

/// The same; that two are one is seen by their pointers.
impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        let has_namespaces = || {
            steps::many(self.namespaces.as_ref().map_or(1, |namespaces| namespaces.len()));
            self.namespaces == other.namespaces
        };
        let has_names = || {
            steps::many(self.names.size());
            self.names == other.names
        };
        (self.has_its_namespaces(other) || has_namespaces()) && (Rc::ptr_eq(&self.names, &other.names) || has_names())
    }
}

impl Shared {
    pub(in crate::plan) fn new(namespaces: Option<Rc<BTreeSet<String>>>, names: Rc<Names>) -> Self {
        Self { namespaces, names }
    }

    /// How many names it would contain if it were not shared.
    fn size(&self) -> usize {
        let namespaces = self.namespaces.as_ref().map_or(1, |namespaces| namespaces.len());
        namespaces.saturating_mul(self.names.size())
    }

    /// True if the namespaces are the very same.
    fn has_its_namespaces(&self, other: &Self) -> bool {
        match (&self.namespaces, &other.namespaces) {
            (Some(known), Some(other)) => Rc::ptr_eq(known, other),
            (known, other) => known.is_none() && other.is_none(),
        }
    }

    /// True if the other one is of the same entry.
    fn is_of_same_entry(&self, other: &Self) -> bool {
        let all = &Names::All;
        let has_its_names = Rc::ptr_eq(&self.names, &other.names) || *self.names == *all && *other.names == *all;
        has_its_names && self.has_its_namespaces(other)
    }

    /// True if it has so few names that each can be read.
    pub(super) fn is_small(&self) -> bool {
        self.size() <= WRITTEN_OUT
    }

    fn contains(&self, namespace: &str, name: &str, spared: Option<&str>) -> bool {
        let within = match &self.namespaces {
            Some(namespaces) => namespaces.contains(namespace),
            None => !namespace.is_empty() && spared != Some(namespace),
        };
        within && self.names.contains(name)
    }
}

impl Layer {
    /// Of how many parts it consists, each list that is shared being one.
    pub(super) fn parts(&self) -> usize {
        self.everywhere.size() + self.by_namespace.len() + self.shared.len() + self.implied.len()
    }

    /// A selection that "every namespace" does not extend to the namespace `spared`.
    pub(in crate::plan) fn sparing(spared: Option<&str>) -> Self {
        Self {
            spared: spared.map(str::to_owned),
            ..Self::default()
        }
    }

    /// From now on it tells apart what is selected by its own name.
    pub(in crate::plan) fn tell_named(&mut self) {
        self.named = Some(Box::default());
    }

    /// Adds names in a namespace (empty: cluster-scoped).
    pub(in crate::plan) fn add(&mut self, namespace: &str, names: Names) {
        if names.is_empty() {
            return;
        }
        if let (Some(named), Names::These(_)) = (&mut self.named, &names) {
            named.add(namespace, names.clone());
        }
        if let Some(known) = self.by_namespace.get_mut(namespace) {
            let besides = known.extend(names);
            if !besides.is_empty() {
                let layer = self.besides.get_or_insert_default();
                layer.add(namespace, Names::These(besides));
            }
        } else {
            self.by_namespace.insert(namespace.to_owned(), names);
        }
    }

    /// Adds names in every namespace but the spared one.
    fn add_everywhere(&mut self, names: Names) {
        let besides = self.everywhere.extend(names);
        if !besides.is_empty() {
            let layer = self.besides.get_or_insert_default();
            layer.add_everywhere(Names::These(besides));
        }
    }

    /// Adds names in namespaces, which so many resources select alike.
    pub(in crate::plan) fn share(&mut self, more: Shared, resources: usize) {
        let size = more.size();
        // An entry that names a resource twice says the same twice in a row.
        if size == 0 || self.shared.last().is_some_and(|last| last.is_of_same_entry(&more)) {
            return;
        }
        if size.saturating_mul(resources) > WRITTEN_OUT {
            self.push(more);
            return;
        }
        match &more.namespaces {
            Some(namespaces) => namespaces.iter().for_each(|of| self.add(of, (*more.names).clone())),
            None => self.add_everywhere((*more.names).clone()),
        }
    }

    fn push(&mut self, shared: Shared) {
        if let (Some(named), Some(_), Names::These(_)) = (&mut self.named, &shared.namespaces, &*shared.names) {
            named.shared.push(shared.clone());
        }
        self.shared.push(shared);
    }

    /// Adds namespaces that have to exist; meaningful for the resource `namespaces` only.
    pub(in crate::plan) fn imply(&mut self, namespaces: Rc<BTreeSet<String>>) {
        if self.implied.contains(&namespaces) {
            return;
        }
        match self.implied.first_mut() {
            // Small sets are merged, so that there are not many of them.
            Some(first) if namespaces.len() <= WRITTEN_OUT => Rc::make_mut(first).extend(namespaces.iter().cloned()),
            _ => self.implied.push(namespaces),
        }
    }

    /// Adds all that another selection selects.
    pub(super) fn extend(&mut self, other: Self) {
        for (namespace, names) in other.by_namespace {
            self.add(&namespace, names);
        }
        self.add_everywhere(other.everywhere);
        other.shared.into_iter().for_each(|shared| self.push(shared));
        self.spared = other.spared.or(self.spared.take());
        other.implied.into_iter().for_each(|names| self.imply(names));
        if let Some(besides) = other.besides {
            self.besides.get_or_insert_default().extend(*besides);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let named = self.by_namespace.is_empty() && self.everywhere.is_empty() && self.shared.is_empty();
        named && self.implied.is_empty()
    }

    /// True if it selects an object of that name, as entries name it.
    pub(super) fn selects(&self, namespace: &str, name: &str) -> bool {
        steps::many(1 + self.shared.len());
        let spared = self.spared.as_deref();
        let everywhere = !namespace.is_empty() && spared != Some(namespace);
        let names = self.by_namespace.get(namespace);
        names.is_some_and(|names| names.contains(name))
            || everywhere && self.everywhere.contains(name)
            || self
                .shared
                .iter()
                .any(|shared| shared.contains(namespace, name, spared))
    }

    pub(super) fn implies(&self, namespace: &str) -> bool {
        self.implied.iter().any(|names| names.contains(namespace))
    }

    /// True if it selects everything in a namespace.
    pub(super) fn has_all_of(&self, namespace: &str) -> bool {
        let is_whole = |shared: &Shared| {
            let within = shared.namespaces.as_ref().is_some_and(|all| all.contains(namespace));
            within && *shared.names == Names::All
        };
        self.by_namespace.get(namespace) == Some(&Names::All) || self.shared.iter().any(is_whole)
    }
}
