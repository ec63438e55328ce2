//! Origins that configs select and that get no copy, since the owner of the edge does not allow them, or since another
//! object has the name that their copies would have. The inventory has nothing of them: it is ordered by copies.
//!
//! Which they are follows from what lists and watches of their side name. Why each gets no copy is not kept: it follows from
//! the rules, or the report knows it.

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_lite::{ObjectName, Scope};

use super::{ListEpoch, Model, TypeId, TypeState};
use crate::api::status::Denied;
use crate::plan::{Direction, Selection};
use crate::report::Subject;
use crate::sync::meta::Meta;
use crate::sync::object::is_never_synced;
use crate::sync::ownership::Marked;

/// How many are known of a type: a hub may have any number that no edge wants.
const MOST: usize = 1000;

/// Those of one type, by their names at their side.
#[derive(Debug, Default)]
pub(super) struct WithoutCopy {
    /// Each with the list that has named it last.
    named: BTreeMap<ObjectName, ListEpoch>,
}

impl WithoutCopy {
    /// It is one of them, as this list or what follows on it says.
    pub(super) fn insert(&mut self, origin: &ObjectName, list: ListEpoch) {
        if self.named.len() < MOST || self.named.contains_key(origin) {
            self.named.insert(origin.clone(), list);
        }
    }

    /// A list has named an object of which there is no news.
    pub(super) fn is_named_again(&mut self, origin: &ObjectName, list: ListEpoch) {
        if let Some(known) = self.named.get_mut(origin) {
            *known = list;
        }
    }

    /// It is gone, or may have a copy now. True if it was one of them.
    pub(super) fn remove(&mut self, origin: &ObjectName) -> bool {
        self.named.remove(origin).is_some()
    }

    /// Drops those that a complete list of this scope has not named, and gives them.
    fn listed(&mut self, scope: &Scope, list: ListEpoch) -> Vec<ObjectName> {
        self.drop_unless(|origin, named| named == list || !scope.contains(origin))
    }

    fn drop_unless(&mut self, stays: impl Fn(&ObjectName, ListEpoch) -> bool) -> Vec<ObjectName> {
        let goes = |(origin, list): &(&ObjectName, &ListEpoch)| !stays(origin, **list);
        let gone: Vec<ObjectName> = self
            .named
            .iter()
            .filter(goes)
            .map(|(origin, _)| origin.clone())
            .collect();
        for origin in &gone {
            self.named.remove(origin);
        }
        gone
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &ObjectName> {
        self.named.keys()
    }
}

impl TypeState {
    /// The name at the edge by which an origin is selected that may have no copy; one that no object has, if it has lost its
    /// own to another.
    pub(super) fn selected_as(&self, origin: &ObjectName) -> ObjectName {
        match self.plan.direction {
            Direction::Down => self.plan.named_copy(origin).unwrap_or_else(|| origin.beside("")),
            Direction::Up => origin.clone(),
        }
    }

    /// Why the owner of the edge does not allow an origin that is selected.
    pub(super) fn refuses(&self, origin: &ObjectName) -> Option<String> {
        self.plan.named_copy(origin).and_then(|name| self.refusal(&name))
    }

    /// What failures of an origin are reported about.
    pub(super) fn of_origin_alone(&self, origin: &ObjectName) -> Subject {
        let object = origin.clone().of_kind(&self.origin_type().kind).to_string();
        Subject::object(self.plan.direction.origin(), object)
    }
}

impl Model {
    /// An origin is there: if it gets no copy because of what its name is or would be, that is reported.
    pub(super) fn may_be_without_copy(&mut self, type_id: TypeId, meta: &Meta, list: ListEpoch) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let origin = &meta.object_name();
        state.without_copy.remove(origin);
        // Asked last: hardly any origin is without a copy.
        let may_have_one = |selection| {
            let is_copy = meta.is_copy_of(state.plan.direction.other(), &state.origin_type().kind);
            !is_copy && !is_never_synced(state.origin_type(), meta, selection)
        };
        let side = state.plan.direction.origin();
        let of_kind = |name: ObjectName| name.of_kind(&state.origin_type().kind).to_string();
        let name = of_kind(origin.clone());
        if let Some((copy, others)) = state.displaced(origin)
            && may_have_one(Selection::Full)
        {
            let (copy, others) = (copy.for_people(), others.for_people());
            self.report.name_is_taken(side, &name, Some(&copy), &others);
        } else if let Some(others) = state.plan.loses_its_name_to(origin)
            && state.plan.selector.selects_all_beside(origin)
            && may_have_one(Selection::Full)
        {
            self.report.name_is_taken(side, &name, None, &of_kind(others));
        } else if let Some(why) = state.refuses(origin)
            && may_have_one(state.plan.selector.selects(&state.selected_as(origin)))
        {
            self.report.refused(&name, &why);
        } else {
            return;
        }
        if let Some(state) = self.types.get_mut(&type_id) {
            state.without_copy.insert(origin, list);
        }
    }

    /// A complete list of origins has not named those of them that are gone.
    pub(super) fn without_copy_listed(&mut self, type_id: TypeId, scope: &Scope, list: ListEpoch) {
        let gone = |state: &mut TypeState| state.without_copy.listed(scope, list);
        self.forget_without_copy(type_id, gone);
    }

    /// Something else is selected: those that are selected no longer are forgotten.
    pub(super) fn without_copy_selected(&mut self, type_id: TypeId) {
        self.forget_without_copy(type_id, |state| {
            let known = std::mem::take(&mut state.without_copy.named).into_iter();
            let (selected, gone): (Vec<_>, Vec<_>) =
                known.partition(|(origin, _)| state.plan.selector.selects(&state.selected_as(origin)).is_whole());
            state.without_copy.named = selected.into_iter().collect();
            gone.into_iter().map(|(origin, _)| origin).collect()
        });
    }

    /// All is read again, or the type is dropped.
    pub(super) fn forget_all_without_copy(&mut self, type_id: TypeId) {
        self.forget_without_copy(type_id, |state| state.without_copy.drop_unless(|_, _| false));
    }

    fn forget_without_copy(&mut self, type_id: TypeId, gone: impl FnOnce(&mut TypeState) -> Vec<ObjectName>) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        for origin in gone(state) {
            let subject = state.of_origin_alone(&origin);
            self.report.clear(&subject);
        }
    }

    /// What the owner of the edge does not allow of what each config selects: by configs, and for all together.
    pub(super) fn denied_objects(&self) -> (BTreeMap<Rc<str>, Vec<Denied>>, Vec<Denied>) {
        let mut of_configs: BTreeMap<Rc<str>, BTreeMap<String, usize>> = BTreeMap::new();
        let mut total: BTreeMap<String, usize> = BTreeMap::new();
        for state in self.types.values() {
            for origin in state.without_copy.all() {
                let Some(rule) = state.refuses(origin) else { continue };
                let mut is_selected = false;
                for config in state.plan.select(&state.selected_as(origin)) {
                    let of_config = of_configs.entry(Rc::clone(config)).or_default();
                    *of_config.entry(rule.clone()).or_default() += 1;
                    is_selected = true;
                }
                // A namespace that is only implied is not missed by itself.
                if is_selected {
                    *total.entry(rule).or_default() += 1;
                }
            }
        }
        let of_configs = of_configs.into_iter();
        let of_configs = of_configs.map(|(config, rules)| (config, Denied::most(rules)));
        (of_configs.collect(), Denied::most(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(known: &WithoutCopy) -> Vec<String> {
        known
            .all()
            .map(|name| format!("{}/{}", name.namespace(), name.name))
            .collect()
    }

    fn name(text: &str) -> ObjectName {
        let (namespace, name) = text.split_once('/').expect("it has a namespace");
        ObjectName::new(namespace, name)
    }

    #[test]
    fn those_that_a_list_of_their_scope_does_not_name_are_gone() {
        let scope = |namespace: &str| Scope {
            namespace: Some(namespace.into()),
            ..Scope::default()
        };
        let mut known = WithoutCopy::default();
        for origin in ["a/x", "a/y", "a/z", "b/x"] {
            known.insert(&name(origin), 1);
        }
        known.insert(&name("a/x"), 2);
        known.is_named_again(&name("a/y"), 2);
        known.is_named_again(&name("a/w"), 2);
        assert_eq!(known.listed(&scope("a"), 2), [name("a/z")]);
        assert_eq!(all(&known), ["a/x", "a/y", "b/x"]);
        assert!(known.remove(&name("a/x")) && !known.remove(&name("a/x")));
        assert_eq!(known.listed(&Scope::default(), 3).len(), 2);
    }

    #[test]
    fn no_more_are_known_than_people_need_to_know() {
        let mut known = WithoutCopy::default();
        for index in 0..10 * MOST {
            known.insert(&name(&format!("a/{index:05}")), 1);
        }
        known.insert(&name("a/00000"), 2);
        assert_eq!(known.all().count(), MOST);
        assert_eq!(known.listed(&Scope::default(), 2).len(), MOST - 1);
    }
}
