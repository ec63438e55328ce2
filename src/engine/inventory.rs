//! What is known of each object of one type: a name, a few hashes, no body.
//!
//! Plain data, changed by what sources and workers tell; each change says whether the object needs a worker.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::cluster::{ObjectName, Scope};
use crate::sync::downsync::Seen;
use crate::sync::ownership::CopyState;

/// The number of one complete list of one source; objects remember the list that named them last. 0 is never used.
pub(super) type Generation = u32;

/// What is known of one object. Hashes are 0 where nothing is known.
#[derive(Debug)]
pub(super) struct Record {
    /// The hub list that named it last; 0 if it is not at the hub.
    pub(super) hub: Generation,
    /// The edge list that named it last; 0 if it is not at the edge.
    edge: Generation,
    /// Hash of what the hub wants, as last seen.
    pub(super) wanted: u64,
    /// The `wanted` that was last brought to an end: applied, or refused by the edge.
    pub(super) settled: u64,
    /// The marks of the copy as our last write left it.
    written: u64,
    /// The copy as last seen.
    pub(super) seen: Seen,
    /// A write may have taken effect without an answer.
    pub(super) unsure: bool,
    /// A worker has it. What the edge tells meanwhile may be the worker's own write, so it is judged by the outcome.
    busy: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            hub: 0,
            edge: 0,
            wanted: 0,
            settled: 0,
            written: 0,
            seen: Seen::ABSENT,
            unsure: false,
            busy: false,
        }
    }
}

impl Record {
    fn has_copy(&self) -> bool {
        self.seen.copy.state != CopyState::Absent
    }

    /// True if there is nothing to do: the copy was brought to what the hub wants and nobody has changed it since.
    fn in_step(&self) -> bool {
        self.wanted != 0 && self.wanted == self.settled && self.has_copy() && self.written != 0 && !self.drifted()
    }

    /// True if somebody else changed the copy since our last write.
    fn drifted(&self) -> bool {
        self.written != 0 && self.seen.hash != 0 && self.seen.hash != self.written
    }
}

/// All objects of one type.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    objects: HashMap<ObjectName, Record>,
    namespaces: HashSet<Rc<str>>,
}

impl Inventory {
    /// Names of the copies that are ours.
    pub(super) fn ours(&self) -> impl Iterator<Item = &ObjectName> {
        self.objects
            .iter()
            .filter(|(_, record)| record.seen.copy.state == CopyState::Ours)
            .map(|(name, _)| name)
    }

    /// True if the hub has the object and wants it at the edge.
    pub(super) fn is_wanted(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(|record| record.wanted != 0)
    }

    /// The hub has a selected object that wants `hash` at the edge. True if it needs a worker.
    pub(super) fn at_hub(&mut self, name: &ObjectName, list: Generation, hash: u64) -> bool {
        let record = self.entry(name);
        record.hub = list;
        record.wanted = hash;
        record.settled != hash || record.drifted()
    }

    /// The hub has an object that nothing selects. It is remembered only if there is a copy of it.
    pub(super) fn unselected_at_hub(&mut self, name: &ObjectName, list: Generation) {
        if let Some(record) = self.objects.get_mut(name) {
            record.hub = list;
            record.wanted = 0;
        }
    }

    /// The hub says that the object is gone. True if there is a copy that needs a worker.
    pub(super) fn gone_from_hub(&mut self, name: &ObjectName) -> bool {
        let Some(record) = self.objects.get_mut(name) else {
            return false;
        };
        record.hub = 0;
        record.wanted = 0;
        record.settled = 0;
        if record.has_copy() || record.unsure {
            return true;
        }
        self.objects.remove(name);
        false
    }

    /// A hub list of `scope` is complete: gives every object with a copy of ours that it did not name.
    pub(super) fn hub_listed(&mut self, scope: &Scope, list: Generation) -> Vec<ObjectName> {
        let mut missing = Vec::new();
        for (name, record) in &mut self.objects {
            if record.hub != list && scope.contains(name) {
                record.hub = 0;
                record.wanted = 0;
                record.settled = 0;
                if record.seen.copy.state == CopyState::Ours || record.unsure {
                    missing.push(name.clone());
                }
            }
        }
        self.objects
            .retain(|_, record| record.hub != 0 || record.has_copy() || record.unsure);
        missing
    }

    /// The hub has proved that it has no object of the type: gives those with a copy of ours.
    pub(super) fn hub_has_none(&mut self) -> Vec<ObjectName> {
        let list = self.objects.values().map(|record| record.hub).max().unwrap_or_default();
        self.hub_listed(&Scope::default(), list.wrapping_add(1))
    }

    /// The edge holds an object. `keep` is false for somebody else's that nothing selects. True if it needs a worker.
    pub(super) fn at_edge(&mut self, name: &ObjectName, list: Generation, seen: Seen, keep: bool) -> bool {
        if !keep && !self.objects.contains_key(name) {
            return false;
        }
        let record = self.entry(name);
        record.edge = list;
        if seen.version < record.seen.version {
            // Told late: a worker has seen something newer.
            return false;
        }
        let same_version = seen.version == record.seen.version && seen.version != 0;
        if same_version {
            return false;
        }
        record.seen = seen;
        // Also a refused object, of which nothing was written, gets another try when its copy changes.
        let changed = record.drifted() || record.written == 0;
        !record.busy && record.settled != 0 && record.hub != 0 && changed
    }

    /// The edge says that the object is gone. True if the hub wants it back.
    pub(super) fn gone_from_edge(&mut self, name: &ObjectName, version: u64) -> bool {
        let Some(record) = self.objects.get_mut(name) else {
            return false;
        };
        if version != 0 && version < record.seen.version {
            // Told late: it has been created again since.
            return false;
        }
        record.edge = 0;
        // The version stays, so that a worker's older answer does not bring the copy back.
        record.seen = Seen {
            version,
            ..Seen::ABSENT
        };
        record.written = 0;
        record.settled = 0;
        if record.wanted != 0 {
            return true;
        }
        self.objects.remove(name);
        false
    }

    /// An edge list of everything is complete: gives the objects that it did not name and the hub wants back.
    pub(super) fn edge_listed(&mut self, list: Generation) -> Vec<ObjectName> {
        let unnamed = |record: &Record| record.edge != list && record.has_copy();
        let gone: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, record)| unnamed(record))
            .map(|(name, _)| name.clone())
            .collect();
        gone.into_iter().filter(|name| self.gone_from_edge(name, 0)).collect()
    }

    /// A worker takes the object. `None` if there is nothing to do for it.
    pub(super) fn take(&mut self, name: &ObjectName) -> Option<&Record> {
        let record = self.objects.get_mut(name)?;
        if record.in_step() {
            return None;
        }
        record.busy = true;
        Some(record)
    }

    /// A worker has failed; `unsure` says that its write may have taken effect all the same.
    pub(super) fn failed(&mut self, name: &ObjectName, unsure: bool) {
        if let Some(record) = self.objects.get_mut(name) {
            record.busy = false;
            record.unsure |= unsure;
        }
    }

    /// A worker has brought the object in step with `wanted`. True if it is out of step again.
    pub(super) fn settle(&mut self, name: &ObjectName, wanted: u64, seen: Option<Seen>) -> bool {
        let Some(record) = self.objects.get_mut(name) else {
            return false;
        };
        record.busy = false;
        record.settled = wanted;
        record.unsure = false;
        let mut lost = false;
        match seen {
            Some(seen) => {
                record.written = seen.hash;
                if seen.version >= record.seen.version || seen.version == 0 {
                    record.seen = seen;
                }
                lost = seen.copy.state != CopyState::Absent && !record.has_copy();
            }
            None => record.written = record.seen.hash,
        }
        let again = record.wanted != 0 && (record.wanted != record.settled || record.drifted() || lost);
        self.drop_if_nothing(name);
        again
    }

    /// Forgets an object that exists on neither side.
    fn drop_if_nothing(&mut self, name: &ObjectName) {
        if self
            .objects
            .get(name)
            .is_some_and(|record| record.hub == 0 && !record.has_copy() && !record.unsure)
        {
            self.objects.remove(name);
        }
    }

    fn entry(&mut self, name: &ObjectName) -> &mut Record {
        if !self.objects.contains_key(name) {
            self.namespaces.insert(Rc::clone(&name.namespace));
            let shared = self.namespaces.get(&name.namespace).expect("inserted above");
            let key = ObjectName {
                namespace: Rc::clone(shared),
                name: name.name.clone(),
            };
            self.objects.insert(key, Record::default());
        }
        self.objects.get_mut(name).expect("inserted above")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::ownership::Copy;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("shop", name)
    }

    fn seen(state: CopyState, hash: u64, version: u64) -> Seen {
        Seen {
            copy: Copy {
                state,
                ..Copy::default()
            },
            hash,
            version,
        }
    }

    /// An object that was applied: the hub wants 7, the copy is ours with hash 70 at version 3.
    fn in_step() -> Inventory {
        let mut inventory = Inventory::default();
        assert!(inventory.at_hub(&name("a"), 1, 7));
        assert!(!inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));
        inventory
    }

    #[test]
    fn the_same_hub_object_again_needs_no_worker() {
        let mut inventory = in_step();
        assert!(!inventory.at_hub(&name("a"), 2, 7));
        assert!(inventory.at_hub(&name("a"), 2, 8));
    }

    #[test]
    fn our_own_write_coming_back_is_no_drift_and_somebody_elses_is() {
        let mut inventory = in_step();
        assert!(!inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 70, 3), true));
        assert!(
            !inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 70, 4), true),
            "status change"
        );
        assert!(inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 71, 5), true));
        assert!(
            !inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 60, 2), true),
            "told late"
        );
    }

    #[test]
    fn an_edge_event_that_overtakes_the_workers_answer_is_judged_by_it() {
        let mut inventory = Inventory::default();
        inventory.at_hub(&name("a"), 1, 7);
        assert!(!inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 70, 3), true));
        assert!(!inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));

        inventory.at_hub(&name("b"), 1, 7);
        inventory.take(&name("b"));
        assert!(!inventory.at_edge(&name("b"), 1, seen(CopyState::Ours, 71, 4), true));
        assert!(
            inventory.settle(&name("b"), 7, Some(seen(CopyState::Ours, 70, 3))),
            "edited since"
        );
    }

    #[test]
    fn our_own_update_told_before_the_workers_answer_is_no_drift() {
        let mut inventory = in_step();
        assert!(inventory.take(&name("a")).is_none(), "nothing to do");
        inventory.at_hub(&name("a"), 1, 8);
        assert!(inventory.take(&name("a")).is_some());
        assert!(!inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 80, 4), true));
        assert!(!inventory.settle(&name("a"), 8, Some(seen(CopyState::Ours, 80, 4))));
        assert!(inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 81, 5), true));
    }

    #[test]
    fn a_copy_that_is_deleted_before_the_workers_answer_is_wanted_back() {
        let mut inventory = in_step();
        inventory.at_hub(&name("a"), 1, 8);
        inventory.take(&name("a"));
        inventory.gone_from_edge(&name("a"), 5);
        assert!(inventory.settle(&name("a"), 8, Some(seen(CopyState::Ours, 80, 4))));
    }

    #[test]
    fn a_hub_change_while_a_worker_runs_is_not_lost() {
        let mut inventory = Inventory::default();
        inventory.at_hub(&name("a"), 1, 7);
        inventory.at_hub(&name("a"), 1, 8);
        assert!(inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));
    }

    #[test]
    fn a_copy_that_vanishes_is_wanted_back_and_a_retired_one_is_forgotten() {
        let mut inventory = in_step();
        assert!(!inventory.gone_from_edge(&name("a"), 2), "told late");
        assert!(inventory.gone_from_edge(&name("a"), 9));
        let mut inventory = in_step();
        assert!(inventory.gone_from_hub(&name("a")));
        assert!(!inventory.gone_from_edge(&name("a"), 9));
        assert!(!inventory.objects.contains_key(&name("a")));
    }

    #[test]
    fn only_a_complete_list_of_its_scope_makes_an_object_missing() {
        let mut inventory = in_step();
        let other = Scope {
            namespace: Some("billing".into()),
            name: None,
        };
        assert!(inventory.hub_listed(&other, 5).is_empty());
        assert!(inventory.hub_listed(&Scope::default(), 1).is_empty(), "named by it");
        assert_eq!(inventory.hub_listed(&Scope::default(), 5), [name("a")]);
    }

    #[test]
    fn a_foreign_object_is_kept_in_mind_but_never_missing() {
        let mut inventory = Inventory::default();
        inventory.at_edge(&name("theirs"), 1, seen(CopyState::Foreign, 0, 5), true);
        inventory.at_edge(&name("unselected"), 1, seen(CopyState::Foreign, 0, 5), false);
        let known = |object: &str| inventory.objects.contains_key(&name(object));
        assert!(known("theirs") && !known("unselected"));
        assert!(inventory.hub_listed(&Scope::default(), 9).is_empty());
    }

    #[test]
    fn an_edge_list_finds_what_vanished_while_nobody_watched() {
        let mut inventory = in_step();
        inventory.at_edge(&name("a"), 1, seen(CopyState::Ours, 0, 3), true);
        assert!(inventory.edge_listed(1).is_empty());
        assert_eq!(inventory.edge_listed(2), [name("a")]);
    }

    #[test]
    fn an_edge_list_tells_what_changed_while_nobody_watched() {
        let mut inventory = in_step();
        assert!(
            !inventory.at_edge(&name("a"), 2, seen(CopyState::Ours, 70, 8), true),
            "status"
        );
        assert!(inventory.at_edge(&name("a"), 3, seen(CopyState::Ours, 71, 9), true));
    }
}
