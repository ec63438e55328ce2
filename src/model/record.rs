//! The record at the edge of the types that were ever synced: what a restart needs to find copies that no config
//! selects any more. Types, not objects; one small `ConfigMap`, written when a type is new.
//!
//! A type is synced only once the record names it, so that a copy whose type is forgotten cannot exist. Its form is that of
//! [`kept`].

pub(crate) mod kept;

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use kube_lite::{Error, ObjectName, may_be_a_crd};

use self::kept::{Kept, Names};
use super::timers::Timer;
use super::{Model, Request};
use crate::plan::{Direction, SyncedType, steps_are_taken};
use crate::report::{Subject, Topic};
use crate::side::Side;

/// How often the versions are written, if they have grown.
const VERSIONS_INTERVAL: Duration = Duration::from_secs(600);
/// How often it is written though nothing has changed: somebody may have deleted it.
const RENEWAL: Duration = Duration::from_secs(7200);

/// The record as this process knows it.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Record {
    /// The types in the record at the edge; absent until it was read. While the edge refuses to keep a record, those
    /// that should be in it.
    pub(super) saved: Option<BTreeSet<SyncedType>>,
    /// Types that were dropped from it, since no copy of them was left.
    dropped: BTreeSet<SyncedType>,
    /// It has been read, and the edge has not gone back since.
    is_read: bool,
    /// What it says of the hub is known.
    hub_is_known: bool,
    /// Types that are new in it since this process has read it, and of which no list of copies was complete yet: nothing
    /// was written, so that no copy of them can be left.
    unlisted: BTreeSet<SyncedType>,
    /// The types that it should have: those of which there may be copies, once it was read. The record at the edge is
    /// older while a write is under way, and after the edge has gone back.
    wanted: BTreeSet<SyncedType>,
    /// The edge refuses to keep a record, and that was logged. It is asked again from time to time.
    refused: bool,
    /// The versions in the record at the edge.
    saved_versions: BTreeMap<String, u64>,
    /// The first lists of this run were complete.
    has_first_versions: bool,
}

impl Record {
    /// These types were read from it: there may be copies of them, beside those that are known already if the record
    /// was refused until now or the edge has gone back.
    fn was_read(&mut self, types: BTreeSet<SyncedType>) {
        self.is_read = true;
        // What it names was synced before.
        self.unlisted
            .retain(|new| !types.iter().any(|known| known.is_same(new)));
        self.wanted.extend(types.iter().cloned());
        self.saved = Some(types);
    }

    /// These types were written to it. Those that should be in it may have changed meanwhile.
    fn was_written(&mut self, types: BTreeSet<SyncedType>) {
        self.saved = Some(types);
    }

    /// True once it has all types that it should have, or the edge refuses to keep one. What it lacks is not synced yet.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.saved
            .as_ref()
            .is_some_and(|saved| self.refused || *saved == self.wanted)
    }

    /// The types of which there may be copies; absent until it was read.
    pub(super) fn types(&self) -> Option<BTreeSet<SyncedType>> {
        self.saved.is_some().then(|| self.wanted.clone())
    }

    /// The same, one by one; none until it was read.
    pub(super) fn each_type(&self) -> impl Iterator<Item = &SyncedType> {
        self.saved.is_some().then_some(&self.wanted).into_iter().flatten()
    }

    /// Those of them whose origins are at the hub.
    fn down(&self) -> impl Iterator<Item = &SyncedType> {
        self.each_type().filter(|known| known.direction == Direction::Down)
    }

    /// Their names there, `resource.group`.
    pub(super) fn downsynced(&self) -> BTreeSet<String> {
        self.down().map(SyncedType::qualified_origin).collect()
    }

    /// True if a CRD at the hub may define one of them.
    pub(super) fn has_crds(&self) -> bool {
        self.down().any(|known| may_be_a_crd(known.origin().0))
    }

    /// True once the record names the type (or the edge refuses to keep one).
    pub(super) fn names(&self, synced: &SyncedType) -> bool {
        self.saved
            .as_ref()
            .is_some_and(|saved| self.refused || saved.contains(synced))
    }

    /// The copies of a type were listed: from now on some may be written.
    pub(super) fn has_listed(&mut self, synced: &SyncedType) {
        self.unlisted.retain(|known| !known.is_same(synced));
    }

    /// True if there can be no copy of a type, however little is known of its copies' side.
    pub(super) fn never_had_copies(&self, synced: &SyncedType) -> bool {
        self.unlisted.iter().any(|known| known.is_same(synced))
    }

    /// What the record should say from now on. True if it has to be written for that.
    fn set(&mut self, wanted: BTreeSet<SyncedType>) -> bool {
        if self.is_read && !self.refused {
            let is_new = |new: &&SyncedType| !self.wanted.iter().any(|known| known.is_same(new));
            self.unlisted
                .extend(wanted.difference(&self.wanted).filter(is_new).cloned());
        }
        let dropped = self.wanted.difference(&wanted).cloned();
        self.dropped.extend(dropped);
        self.dropped.retain(|known| !wanted.contains(known));
        self.wanted = wanted;
        if self.refused {
            self.saved = Some(self.wanted.clone());
        }
        self.saved.as_ref().is_some_and(|saved| *saved != self.wanted)
    }
}

impl Model {
    /// What the record should say from now on.
    pub(super) fn set_record(&mut self, wanted: BTreeSet<SyncedType>) {
        steps_are_taken(wanted.len());
        if self.record.set(wanted) {
            self.hasten_record();
        }
        self.retire_definitions();
        self.retire_let_go();
    }

    /// It is written now, even if that was planned for later. A failed write keeps its back-off.
    fn hasten_record(&mut self) {
        if self.timers.failures(Timer::Record) == 0 {
            self.timers.set(Timer::Record, self.now);
        } else {
            self.timers.set_if_idle(Timer::Record, self.now);
        }
    }

    /// True if it may be read or written. It is read whichever clusters the sides are, since it says which hub is
    /// expected.
    pub(super) fn may_keep_record(&self) -> bool {
        !self.record.is_read || self.may_write()
    }

    /// Reads or writes the record where that is due.
    pub(super) fn keep_record(&mut self) {
        if !self.may_keep_record() || !self.timers.fires(Timer::Record, self.now) {
            return;
        }
        self.timers.starts(Timer::Record);
        let names = self.record_names();
        let request = if self.record.is_read {
            self.finished.are_kept(true, self.now);
            Request::WriteRecord(names.own, self.to_be_kept())
        } else {
            Request::ReadRecord(names)
        };
        self.effects.request(request);
    }

    /// What has grown since the last write, to be written before the process ends.
    pub(super) fn last_record(&self) -> Option<(ObjectName, Kept)> {
        let (name, kept) = (self.record_names().own, self.to_be_kept());
        let is_due = self.timers.is_at_hand(Timer::Record, self.now);
        let has_news = is_due || self.finished.has_news() || self.record.saved_versions != kept.hub_versions;
        let is_to_be_written = self.may_write() && self.record.is_read && !self.record.refused && has_news;
        is_to_be_written.then_some((name, kept))
    }

    /// It is in the syncer's own namespace, or in `default` if there is none.
    fn record_names(&self) -> Names {
        let namespace = self.settings.own_namespace.as_deref().unwrap_or("default");
        Names::of(&self.settings.policy.sync_target, namespace)
    }

    fn the_record(&self) -> Subject {
        let record = self.record_names().own.of_kind("ConfigMap").to_string();
        Subject::Thing(Side::Edge, Topic::Record, record)
    }

    fn to_be_kept(&self) -> Kept {
        Kept {
            types: self.record.wanted.clone(),
            hub: self.sides.identity(Side::Hub).known().unwrap_or_default().to_owned(),
            edge: self.sides.identity(Side::Edge).known().unwrap_or_default().to_owned(),
            former_hubs: self.sides.identity(Side::Hub).former().clone(),
            former_edges: self.sides.identity(Side::Edge).former().clone(),
            hub_versions: self.hub_versions(),
            hub_definitions: self.definitions.all().clone(),
            let_go: self.guard.vanished.let_go().clone(),
            deselected: self.deselections.proved().clone(),
            unproved: self.deselections.unproved().clone(),
            holds: self.lines_of_holds(),
            finished: self.finished.lines(),
        }
    }

    fn hub_versions(&self) -> BTreeMap<String, u64> {
        self.guard.versions.of_hub(self.guard.distrusts(Direction::Down))
    }

    /// What identifies a restored or another hub has changed since the record was written.
    pub(super) fn keep_guard_in_record(&mut self) {
        if self.record.saved.is_some() && !self.record.refused {
            self.hasten_record();
        }
    }

    /// The versions of the hub have grown: they are written to the record after a while.
    pub(super) fn keep_versions_in_record(&mut self) {
        let is_kept = self.record.saved.is_some() && !self.record.refused;
        if is_kept && !self.timers.is_running(Timer::Record) {
            self.timers.set_earlier(Timer::Record, self.now + VERSIONS_INTERVAL);
        }
    }

    /// The first lists are complete: their versions are written to the record at once, since a run may be short.
    pub(super) fn keep_first_versions_in_record(&mut self) {
        let is_first = !std::mem::replace(&mut self.record.has_first_versions, true);
        if is_first && self.record.saved_versions != self.hub_versions() {
            self.keep_guard_in_record();
        }
    }

    /// Reads the record as soon as possible.
    pub(super) fn read_record(&mut self) {
        self.timers.set(Timer::Record, self.now);
    }

    pub(super) fn on_record(&mut self, result: Result<Box<Kept>, Error>, is_read: bool) {
        self.timers.ends(Timer::Record);
        let before = (self.record.saved.clone(), self.record.refused);
        match result {
            Ok(kept) => self.record_is(*kept, is_read),
            Err(error) => {
                self.finished.are_kept(false, self.now);
                self.timers.retry(Timer::Record, self.now, self.chance.f64());
                self.record_failed(&error);
                if !is_refusal(&error) || std::mem::replace(&mut self.record.refused, true) {
                    return;
                }
                self.record.saved.get_or_insert_default();
                self.ask_identity(Side::Hub);
                self.ask_identity(Side::Edge);
            }
        }
        // Most writes say no more than which versions the hub is at.
        if is_read || before != (self.record.saved.clone(), self.record.refused) {
            self.replan();
        }
    }

    /// The record has been read, or written.
    fn record_is(&mut self, kept: Kept, is_read: bool) {
        let the_record = self.the_record();
        self.report.works(&the_record);
        let record = &mut self.record;
        self.timers.succeeds(Timer::Record);
        self.timers.set_earlier(Timer::Record, self.now + RENEWAL);
        record.refused = false;
        if is_read {
            record.was_read(kept.types);
        } else {
            record.was_written(kept.types);
        }
        record.saved_versions.clone_from(&kept.hub_versions);
        if !std::mem::replace(&mut record.hub_is_known, true) {
            self.restore_holds(&kept.holds);
            self.restore_finished(&kept.finished);
            self.restore_definitions(kept.hub_definitions);
            self.restore_let_go(kept.let_go);
            self.restore_deselections(kept.deselected, kept.unproved);
            self.restore_side(Side::Hub, kept.hub, kept.former_hubs);
            self.restore_side(Side::Edge, kept.edge, kept.former_edges);
            self.restore_versions(kept.hub_versions);
            self.ask_identity(Side::Hub);
            self.ask_identity(Side::Edge);
        }
    }

    /// The edge has gone back to older versions, and the record with it: it may lack types, or name some whose copies
    /// are there again. Types that were dropped from it may have been dropped after the edge had gone back, before that
    /// was noticed.
    pub(super) fn read_record_again(&mut self) {
        let dropped = std::mem::take(&mut self.record.dropped);
        self.record.wanted.extend(dropped);
        if std::mem::take(&mut self.record.is_read) {
            self.hasten_record();
        }
    }

    fn record_failed(&mut self, error: &Error) {
        let doing = "keeping the record";
        if error.is_unreachable() {
            self.side_is_silent(Side::Edge, doing, error);
        } else {
            self.fails(self.the_record(), doing, error);
        }
    }

    /// The record of an earlier run says which cluster the copies are from, and which others they may be from. What
    /// copies or people have said since is newer.
    fn restore_side(&mut self, side: Side, cluster: String, former: BTreeSet<String>) {
        let identity = self.identity_mut(side);
        for uid in former {
            identity.give_up(uid);
        }
        if identity.known().is_none() && !cluster.is_empty() {
            identity.expect(cluster);
        }
    }
}

/// True if the edge refuses to keep a record: it may not be read or written, or its namespace is not there. A 404 that
/// names neither comes from something else, such as a proxy before the edge.
fn is_refusal(error: &Error) -> bool {
    let code = error.status().map(|status| status.code);
    matches!(code, Some(403 | 404 | 422)) && !error.is_type_not_served()
}

#[cfg(test)]
mod tests {
    use super::kept::tests::synced;
    use super::*;

    #[test]
    fn types_that_the_record_of_a_restored_edge_lacks_are_not_forgotten() {
        let (old, new) = (synced("", "v1", "configmaps"), synced("apps", "v1", "deployments"));
        let both = BTreeSet::from([old.clone(), new.clone()]);
        let mut record = Record::default();
        assert_eq!(record.types(), None, "it was not read");
        record.was_read(BTreeSet::new());
        assert!(record.set(both.clone()));
        record.was_written(both.clone());
        assert!(record.names(&new));
        record.was_read(BTreeSet::from([old]));
        assert_eq!(record.types(), Some(both.clone()));
        assert!(!record.names(&new), "it has to be written first");
        record.was_written(both.clone());
        assert!(record.names(&new));
        assert_eq!(record.types(), Some(both));
    }

    #[test]
    fn a_type_that_left_while_the_record_was_written_does_not_come_back_when_that_ends() {
        let (old, left) = (synced("", "v1", "configmaps"), synced("", "v1", "secrets"));
        let (both, rest) = (BTreeSet::from([old.clone(), left]), BTreeSet::from([old]));
        let mut record = Record::default();
        record.was_read(both.clone());
        assert!(record.set(rest.clone()), "it has to be written");
        record.was_written(both);
        assert_eq!(record.types(), Some(rest.clone()));
        assert!(
            record.set(rest.clone()),
            "once more, since what it lacks now is written in it"
        );
        record.was_written(rest.clone());
        assert!(!record.set(rest), "the edge has it");
    }
}
