//! Which objects of one resource are selected, and which scopes a source needs to see them all.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{ObjectName, Scope};

/// The config's word for "all".
pub(super) const ALL: &str = "*";

/// Above this many namespaces of one resource, one list over all namespaces is asked for instead of one a namespace:
/// each open watch costs the hub memory and the link bookmarks.
const NAMESPACE_SCOPES: usize = 4;

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

    fn is_empty(&self) -> bool {
        matches!(self, Self::These(names) if names.is_empty())
    }

    fn extend(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (Self::These(names), Self::These(more)) => names.extend(more),
            (Self::These(_), Self::All) => *self = Self::All,
        }
    }

    fn single(&self) -> Option<&str> {
        match self {
            Self::These(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }
}

/// What a selector says of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Not selected.
    None,
    /// A namespace that must exist for its contents, without its details (spec 3.2).
    Implied,
    /// Selected whole.
    Full,
}

/// The selected objects of one resource. Cluster-scoped objects stand under the empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    by_namespace: BTreeMap<String, Names>,
    implied: BTreeSet<String>,
}

impl Selector {
    /// Adds names in a namespace (empty: cluster-scoped).
    pub(super) fn add(&mut self, namespace: &str, names: Names) {
        if !names.is_empty() {
            self.by_namespace.entry(namespace.to_owned()).or_default().extend(names);
        }
    }

    /// Adds a namespace that has to exist; meaningful for the resource `namespaces` only.
    pub(super) fn imply(&mut self, namespace: &str) {
        self.implied.insert(namespace.to_owned());
    }

    /// The part of the selection that can exist: what is named in namespaces for a namespaced resource, what is named
    /// without one for a cluster-scoped resource.
    pub(super) fn of_scope(&self, namespaced: bool) -> Self {
        let mut part = self.clone();
        part.by_namespace
            .retain(|namespace, _| namespace.is_empty() != namespaced);
        part
    }

    /// Whether, and how, an object is selected.
    pub fn selects(&self, object: &ObjectName) -> Selection {
        let names = self.by_namespace.get(&*object.namespace);
        if names.is_some_and(|names| names.contains(&object.name)) {
            Selection::Full
        } else if self.implied.contains(&*object.name) && object.namespace.is_empty() {
            Selection::Implied
        } else {
            Selection::None
        }
    }

    /// The fewest list scopes that contain every selected object and every one of `others` (copies at the edge that are
    /// no longer selected, whose origin must still be watched). Scopes never overlap; they may contain more.
    pub fn scopes<'a>(&self, others: impl Iterator<Item = &'a ObjectName>) -> BTreeSet<Scope> {
        let mut all = self.by_namespace.clone();
        let implied = self.implied.iter().map(|name| ("", name.as_str()));
        let others = others.map(|object| (&*object.namespace, &*object.name));
        for (namespace, name) in implied.chain(others) {
            let one = Names::These(BTreeSet::from([name.to_owned()]));
            all.entry(namespace.to_owned()).or_default().extend(one);
        }
        if all.len() > NAMESPACE_SCOPES {
            return BTreeSet::from([Scope::default()]);
        }
        all.iter()
            .map(|(namespace, names)| Scope {
                namespace: (!namespace.is_empty()).then(|| namespace.as_str().into()),
                name: names.single().map(Into::into),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn these(names: &[&str]) -> Names {
        Names::from_list(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    fn scopes(selector: &Selector, others: &[ObjectName]) -> Vec<(String, String)> {
        let text = |part: Option<std::rc::Rc<str>>| part.map_or("-".to_owned(), |part| part.to_string());
        selector
            .scopes(others.iter())
            .into_iter()
            .map(|scope| (text(scope.namespace), text(scope.name)))
            .collect()
    }

    #[test]
    fn asks_for_no_more_than_is_selected() {
        let mut selector = Selector::default();
        assert!(scopes(&selector, &[]).is_empty());
        selector.add("shop", these(&["prices"]));
        assert_eq!(scopes(&selector, &[]), [("shop".into(), "prices".into())]);
        selector.add("shop", these(&["settings"]));
        assert_eq!(scopes(&selector, &[]), [("shop".into(), "-".into())]);
        selector.add("billing", these(&["*"]));
        assert_eq!(
            scopes(&selector, &[]),
            [("billing".into(), "-".into()), ("shop".into(), "-".into())]
        );
        for namespace in ["a", "b", "c"] {
            selector.add(namespace, these(&["x"]));
        }
        assert_eq!(scopes(&selector, &[]), [("-".into(), "-".into())]);
    }

    #[test]
    fn a_copy_that_is_no_longer_selected_stays_in_view() {
        let selector = Selector::default();
        let left = [ObjectName::new("shop", "prices")];
        assert_eq!(scopes(&selector, &left), [("shop".into(), "prices".into())]);
        assert_eq!(selector.selects(&left[0]), Selection::None);
    }

    #[test]
    fn a_namespace_can_be_implied_or_selected_whole() {
        let mut selector = Selector::default();
        selector.imply("shop");
        selector.imply("billing");
        selector.add("", these(&["billing"]));
        assert_eq!(selector.selects(&ObjectName::new("", "shop")), Selection::Implied);
        assert_eq!(selector.selects(&ObjectName::new("", "billing")), Selection::Full);
        assert_eq!(selector.selects(&ObjectName::new("", "other")), Selection::None);
    }

    #[test]
    fn a_star_among_names_means_all() {
        let mut selector = Selector::default();
        selector.add("shop", these(&["a", "*"]));
        assert_eq!(selector.selects(&ObjectName::new("shop", "b")), Selection::Full);
        assert_eq!(selector.selects(&ObjectName::new("else", "b")), Selection::None);
    }
}
