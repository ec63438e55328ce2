//! Types that the edge's owner does not allow, and those that are never synced: nothing is planned of them, so that no
//! server is asked about them.

use std::collections::BTreeSet;
use std::rc::Rc;

use kube_lite::qualified;

use super::{Draft, Resolver};
use crate::plan::Problem;
use crate::plan::bounds::FLAG;
use crate::plan::names::ALL;
use crate::plan::wanted::{Entry, Objects, Types, Wanted};
use crate::plan::words::{is_never_synced, is_never_synced_unnamed};
use crate::plan::{ConfigPlace, Direction, steps};

/// Groups at the hub of which a conversion gives objects another kind.
pub(super) async fn converted(wanted: &Wanted) -> BTreeSet<&str> {
    let mut converted = BTreeSet::new();
    for conversion in wanted.conversions.iter() {
        steps::one();
        steps::pause().await;
        if !conversion.keeps_kind() {
            converted.insert(&*conversion.hub.group);
        }
    }
    converted
}

impl Resolver<'_> {
    /// True if all that an entry names is denied, as far as the entry itself says.
    pub(super) fn denies_entry(&mut self, entry: &Entry) -> bool {
        match &entry.types {
            Types::Plural { group, resource, .. } => self.denies(entry, group, resource),
            Types::Kind { group, kind, .. } => self.denies(entry, group, kind),
            Types::Group(group) => self.denies(entry, group, ALL),
        }
    }

    /// True if all that an entry names is never synced, as far as the entry itself says.
    pub(super) fn keeps_entry(&mut self, entry: &Entry) -> bool {
        let named = match &entry.types {
            Types::Plural { group, resource, .. } => (&**group, &**resource),
            Types::Kind { group, kind, .. } => (&**group, &**kind),
            Types::Group(_) => return false,
        };
        self.keeps(&entry.place, named, entry.objects.are_named())
    }

    /// True if all objects of a type, by this plural or kind, are never synced, though something at this place selects some;
    /// `named` says that it names each of them. That is reported.
    pub(super) fn keeps(&mut self, place: &ConfigPlace, (group, word): (&str, &str), named: bool) -> bool {
        let open = named && self.filter.allows_system();
        if !is_never_synced_unnamed(group, word) || open && !is_never_synced(group, word) {
            return false;
        }
        let name = qualified(group, word);
        let why = if is_never_synced(group, word) {
            format!("{name} is never synced")
        } else {
            format!("{name} is never synced, unless {FLAG} is given and the entry names each object")
        };
        self.problem(place, &why);
        true
    }

    /// True if what an entry names by this plural or kind is denied. What a conversion may give another kind is judged by what
    /// it is at the edge, once that is known.
    pub(super) fn denies(&mut self, entry: &Entry, group: &str, name: &str) -> bool {
        if self.converted.contains(group) {
            return false;
        }
        let Some(why) = self.filter.refuses_named(group, name) else {
            return false;
        };
        // Namespaces that are only implied are not missed before something has to go into one.
        if !matches!(entry.objects, Objects::Implied(_)) {
            self.denied_at(&entry.place, &why);
            self.plan.denied.insert(qualified(group, name), why);
        }
        true
    }

    /// Notes of namespaces that an entry names which rules refuse them, each with the first of them. `seen` are the lists of
    /// namespaces that many entries have.
    pub(super) fn note_denied_namespaces(&mut self, entry: &Entry, seen: &mut BTreeSet<*const BTreeSet<String>>) {
        if self.filter.is_empty() {
            return;
        }
        let mut is_new = |all: &Rc<BTreeSet<String>>| seen.insert(Rc::as_ptr(all));
        let one = |namespace: &String| BTreeSet::from([namespace.clone()]);
        let all: Rc<BTreeSet<String>> = match &entry.objects {
            Objects::In(Some(namespace), _) => Rc::new(one(namespace)),
            Objects::Ref { namespace, .. } if !namespace.is_empty() && namespace != ALL => Rc::new(one(namespace)),
            Objects::Within { namespaces, .. }
            | Objects::Anywhere {
                namespaces: Some(namespaces),
                ..
            } if is_new(namespaces) => Rc::clone(namespaces),
            _ => return,
        };
        let mut rules = BTreeSet::new();
        for namespace in &*all {
            steps::one();
            if let Some(why) = self.filter.refuses_all_in(entry.direction, namespace)
                && rules.insert(why.clone())
            {
                self.plan.denied_places.insert(Problem {
                    place: entry.place.clone(),
                    message: format!("the owner of the edge does not allow it in the namespace {namespace:?}: {why}"),
                });
            }
        }
    }

    fn denied_at(&mut self, place: &ConfigPlace, why: &str) {
        self.plan.denied_places.insert(Problem {
            place: place.clone(),
            message: format!("the owner of the edge does not allow it: {why}"),
        });
    }

    /// The same of a type that is about to be planned, by its type at the edge.
    pub(super) fn denies_draft(&mut self, direction: Direction, draft: &Draft<'_>) -> bool {
        let at_edge = match direction {
            Direction::Down => &draft.copy.resource,
            Direction::Up => &draft.origin.resource,
        };
        let Some(why) = self.filter.refuses_type(at_edge) else {
            return false;
        };
        if !draft.places.is_empty() {
            for place in &draft.places {
                self.denied_at(place, &why);
            }
            self.plan.denied.insert(at_edge.qualified(), why);
        }
        true
    }
}
