//! The names of the objects of one type on each side.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::ObjectName;

/// The names that differ between the sides, for the objects of one type. All others are called the same on both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    to_edge: BTreeMap<String, String>,
    to_hub: BTreeMap<String, String>,
    /// Names of objects that belong to another type, since a conversion gives them another kind.
    elsewhere: BTreeSet<String>,
    /// There are no other objects than the renamed ones.
    only_renamed: bool,
}

impl Naming {
    /// A naming in which nothing but what is added exists: for a pair of kinds that a conversion joins.
    pub(super) fn of_pair() -> Self {
        Self {
            only_renamed: true,
            ..Self::default()
        }
    }

    /// Objects called `hub` at the hub are called `edge` at the edge.
    pub(super) fn add(&mut self, hub: &str, edge: &str) {
        self.to_edge.insert(hub.to_owned(), edge.to_owned());
        self.to_hub.insert(edge.to_owned(), hub.to_owned());
    }

    /// Objects of that name do not belong here on either side.
    pub(super) fn leave_to_another(&mut self, name: &str) {
        self.elsewhere.insert(name.to_owned());
    }

    /// The name of a hub object at the edge; `None` if it does not belong there under this type.
    pub fn at_edge(&self, hub: &ObjectName) -> Option<ObjectName> {
        if let Some(edge) = self.to_edge.get(&*hub.name) {
            return Some(renamed(hub, edge));
        }
        // Its own name may be taken at the edge by a renamed one.
        (!self.is_left_out(&hub.name) && !self.to_hub.contains_key(&*hub.name)).then(|| hub.clone())
    }

    /// The name of an edge object at the hub; `None` if it does not belong there under this type.
    pub fn at_hub(&self, edge: &ObjectName) -> Option<ObjectName> {
        if let Some(hub) = self.to_hub.get(&*edge.name) {
            return Some(renamed(edge, hub));
        }
        (!self.is_left_out(&edge.name)).then(|| edge.clone())
    }

    /// The objects that an entry may mean by a name, by their names at the edge: the one that has it at the hub, if it
    /// has another name at the edge, and the one that has it at the edge.
    pub(super) fn meant_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let renamed = self.to_edge.get(name).map(String::as_str);
        renamed.into_iter().chain(self.means_itself(name).then_some(name))
    }

    /// The names by which an entry may mean the object of this name at the edge.
    pub(super) fn words_for<'a>(&'a self, edge: &'a str) -> impl Iterator<Item = &'a str> {
        let at_hub = self.to_hub.get(edge).map(String::as_str);
        at_hub.into_iter().chain(self.means_itself(edge).then_some(edge))
    }

    /// True if an entry with this name may mean the object that has it at the edge.
    fn means_itself(&self, name: &str) -> bool {
        !self.to_edge.contains_key(name) || self.to_hub.contains_key(name)
    }

    /// True if there are names that differ between the sides.
    pub(super) fn converts_any(&self) -> bool {
        !self.to_edge.is_empty()
    }

    /// True if all objects are called the same on both sides, and none has another kind there.
    pub fn converts_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// True if a conversion gives objects of that name another kind.
    pub fn is_elsewhere(&self, name: &ObjectName) -> bool {
        self.elsewhere.contains(&*name.name)
    }

    /// True if the object has its name by a conversion.
    pub fn renames(&self, edge: &ObjectName) -> bool {
        self.to_hub.contains_key(&*edge.name)
    }

    fn is_left_out(&self, name: &str) -> bool {
        self.only_renamed || self.elsewhere.contains(name)
    }
}

fn renamed(name: &ObjectName, to: &str) -> ObjectName {
    name.beside(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("", name)
    }

    #[test]
    fn a_renamed_object_has_one_name_on_each_side_and_others_keep_theirs() {
        let mut naming = Naming::default();
        naming.add("a.denatured", "a");
        assert_eq!(naming.at_edge(&name("a.denatured")), Some(name("a")));
        assert_eq!(naming.at_hub(&name("a")), Some(name("a.denatured")));
        assert_eq!(naming.at_edge(&name("a")), None, "its name is taken at the edge");
        assert_eq!(naming.at_edge(&name("b")), Some(name("b")));
        assert_eq!(naming.at_hub(&name("b")), Some(name("b")));
        assert!(naming.renames(&name("a")) && !naming.renames(&name("b")));
    }

    #[test]
    fn a_pair_of_kinds_has_no_other_objects() {
        let mut naming = Naming::of_pair();
        naming.add("x", "y");
        assert_eq!(naming.at_edge(&name("x")), Some(name("y")));
        assert_eq!(naming.at_edge(&name("z")), None);
        assert_eq!(naming.at_hub(&name("z")), None);
    }
}
