//! What is known of each object of one type: a name, a few hashes, no body.
//!
//! Plain data, changed by what sources and workers tell; each change says whether the object needs a worker.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::cluster::{ObjectName, Scope};
use crate::source::Covers;
use crate::sync::downsync::Seen;
use crate::sync::ownership::CopyState;

/// The number of one complete list of one source; objects remember the list that named them last. 0 is never used.
pub(super) type Generation = u32;

/// What is known of one object. Hashes are 0 where nothing is known.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, a byte each")]
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
    /// The hub has told of it since a worker took it, so that the worker may know less.
    told: bool,
    /// The edge said that the copy is gone. It may have lost no more than the label by which it is watched.
    pub(super) vanished: bool,
    /// It was found missing from the hub, and neither side has told anything new of it since.
    missed: bool,
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
            told: false,
            missed: false,
            vanished: false,
        }
    }
}

impl Record {
    /// The hub has told what it wants; 0 for nothing.
    fn hub_tells(&mut self, list: Generation, wanted: u64) {
        self.hub = list;
        self.wanted = wanted;
        self.told = true;
        self.missed = false;
    }

    /// The hub has told that it is not there.
    fn leaves_hub(&mut self) {
        self.hub_tells(0, 0);
        self.settled = 0;
        self.missed = true;
    }

    fn has_copy(&self) -> bool {
        self.seen.copy.state != CopyState::Absent
    }

    /// True if there is a copy, or a worker may be making one.
    fn may_have_copy(&self) -> bool {
        self.has_copy() || self.unsure || self.busy
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
    /// The resource version of the last complete edge list; 0 if that is no number.
    edge_version: u64,
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
        record.hub_tells(list, hash);
        record.settled != hash || record.drifted()
    }

    /// The hub has an object that nothing selects. It is remembered only if there is a copy of it.
    pub(super) fn unselected_at_hub(&mut self, name: &ObjectName, list: Generation) {
        if let Some(record) = self.objects.get_mut(name) {
            record.hub_tells(list, 0);
        }
    }

    /// A hub list has named an object of which there is no news.
    pub(super) fn still_at_hub(&mut self, name: &ObjectName, list: Generation) {
        if let Some(record) = self.objects.get_mut(name) {
            record.hub = list;
            record.missed = false;
        }
    }

    /// The hub says that the object is gone. True if there is a copy that needs a worker.
    pub(super) fn gone_from_hub(&mut self, name: &ObjectName) -> bool {
        let Some(record) = self.objects.get_mut(name) else {
            return false;
        };
        record.leaves_hub();
        if record.may_have_copy() {
            return true;
        }
        self.objects.remove(name);
        false
    }

    /// Sources begin anew, and nothing is queued: what was judged to be missing is to be judged again.
    pub(super) fn look_again(&mut self) {
        for record in self.objects.values_mut() {
            record.missed = false;
        }
    }

    /// A hub list of `scope` is complete: gives every object with a copy of ours that it did not name, once.
    pub(super) fn hub_listed(&mut self, scope: &Scope, list: Generation) -> Vec<ObjectName> {
        let mut missing = Vec::new();
        for (name, record) in &mut self.objects {
            if record.hub != list && !record.missed && scope.contains(name) {
                record.leaves_hub();
                if record.seen.copy.state == CopyState::Ours || record.unsure || record.busy {
                    missing.push(name.clone());
                }
            }
        }
        self.objects
            .retain(|_, record| record.hub != 0 || record.may_have_copy());
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
        record.missed = false;
        // Also a refused object, of which nothing was written, gets another try when its copy changes.
        let changed = record.drifted() || record.written == 0;
        !record.busy && record.settled != 0 && record.hub != 0 && changed
    }

    /// An edge list has named an object of which there is no news.
    pub(super) fn still_at_edge(&mut self, name: &ObjectName, list: Generation) {
        if let Some(record) = self.objects.get_mut(name) {
            record.edge = list;
        }
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
        record.vanished = true;
        if record.wanted != 0 {
            return true;
        }
        if !record.busy {
            self.objects.remove(name);
        }
        false
    }

    /// An edge list is complete at `version`: gives the objects that it did not name and the hub wants back.
    ///
    /// A copy that a worker has made since the list was read is not missing.
    pub(super) fn edge_listed(&mut self, list: Generation, covers: Covers, version: u64) -> Vec<ObjectName> {
        self.edge_version = version;
        let unnamed = |record: &Record| {
            let covered = covers == Covers::Everything || record.seen.labelled;
            let later = record.seen.version > version;
            record.edge != list && record.has_copy() && covered && !later
        };
        let gone: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, record)| unnamed(record))
            .map(|(name, _)| name.clone())
            .collect();
        gone.into_iter().filter(|name| self.gone_from_edge(name, 0)).collect()
    }

    /// The edge says of an object that we take to be there that it is not. True if a worker has to see to it.
    pub(super) fn was_wrong_about(&mut self, name: &ObjectName) -> bool {
        let wrong = self
            .objects
            .get(name)
            .is_some_and(|record| record.has_copy() && !record.busy);
        wrong && self.gone_from_edge(name, 0)
    }

    /// True if the edge has gone back to older versions: it was restored from a backup, and nothing known of it holds.
    pub(super) fn edge_went_back(&self, version: u64) -> bool {
        version < self.edge_version
    }

    /// A worker takes the object. `None` if there is nothing to do for it.
    pub(super) fn take(&mut self, name: &ObjectName) -> Option<&Record> {
        let record = self.objects.get_mut(name)?;
        if record.in_step() {
            return None;
        }
        record.busy = true;
        record.told = false;
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
        if !record.told {
            // The worker may have read the hub, and nobody knows anything newer.
            record.wanted = wanted;
        }
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
        record.vanished = !record.has_copy() && record.wanted != 0;
        let again = record.wanted != 0 && (record.wanted != record.settled || record.drifted() || lost);
        self.drop_if_nothing(name);
        again
    }

    /// Forgets an object that exists on neither side.
    fn drop_if_nothing(&mut self, name: &ObjectName) {
        if self
            .objects
            .get(name)
            .is_some_and(|record| record.hub == 0 && !record.may_have_copy())
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
#[path = "inventory_tests.rs"]
mod tests;
