//! What is known of each object of one type: a name, a few hashes, no body.
//!
//! Plain data, changed by what sources and workers report; each change says whether the object needs a worker.

mod asked;
mod kept_more;
mod link;
mod lists;
mod permits;
mod queries;
mod questions;
mod states;

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher as _};
use std::rc::Rc;

use kube_lite::{ObjectName, Within};
use tokio::time::Instant;

pub(super) use self::link::Link;
pub(super) use self::permits::Held;
pub(super) use self::states::{LeftOpen, Permit};
use self::states::{News, Reported, Trace, Work};
use super::contention;
use super::link_status::LinkStatus;
use crate::sync::job::Seen;
use crate::sync::ownership::CopyState;

/// How many namespaces are in memory before the empty ones are dropped for the first time; later, twice as many as were
/// left.
const MANY: usize = 256;

/// The number of one complete list of one source; objects remember the list that named them last. 0 is never used.
pub(super) type ListEpoch = u32;

/// Numbers lists.
#[derive(Default)]
pub(super) struct ListEpochs(ListEpoch);

impl ListEpochs {
    /// The number of a list that begins.
    pub(super) fn next(&mut self) -> ListEpoch {
        self.0 = self.0.wrapping_add(1).max(1);
        self.0
    }
}

/// How names are hashed. Anybody who may create objects chooses names; the key keeps them from choosing those that have
/// one hash. It comes from the seed of the model, so that a run can be repeated.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Hashing(u64);

impl Hashing {
    pub(super) fn of_seed(seed: u64) -> Self {
        // Another sequence of numbers than that of the model, of which servers see the waits.
        Self(fastrand::Rng::with_seed(!seed).u64(..))
    }
}

impl BuildHasher for Hashing {
    type Hasher = DefaultHasher;

    /// All that is hashed begins with the key.
    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// All objects of one type.
#[derive(Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Inventory {
    objects: HashMap<ObjectName, Link, Hashing>,
    namespaces: HashSet<Rc<Within>, Hashing>,
    /// How many namespaces were left when the empty ones were last dropped.
    namespaces_left: usize,
}

impl Inventory {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            objects: HashMap::with_hasher(hashing),
            namespaces: HashSet::with_hasher(hashing),
            namespaces_left: 0,
        }
    }

    /// Nothing is known of any object.
    pub(super) fn clear(&mut self) {
        *self = Self::new(*self.objects.hasher());
    }

    /// How many objects are known.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// There is a selected origin that wants its copy to have `hash`. True if it needs a worker. So does one that a
    /// worker has, whatever it was settled at before: that worker changes it, and an earlier result does not count any
    /// more.
    pub(super) fn at_origin(&mut self, name: &ObjectName, list: ListEpoch, hash: u64) -> bool {
        let link = self.entry(name);
        link.origin_reports(list, hash);
        link.is_busy() || link.has_open_try() || link.settled != hash || link.drifted()
    }

    /// The origin has the UID with this hash.
    pub(super) fn origin_is(&mut self, name: &ObjectName, origin: u32) {
        if let Some(link) = self.objects.get_mut(name) {
            link.origin_uid = origin;
        }
    }

    /// The origin's side has reported the object, or its deletion, at this version.
    pub(super) fn origin_seen_at(&mut self, name: &ObjectName, version: u64) {
        if let Some(link) = self.objects.get_mut(name) {
            link.origin_version = version;
        }
    }

    /// There is an origin that nothing selects. It is remembered only if there is a copy of it.
    pub(super) fn unselected_at_origin(&mut self, name: &ObjectName, list: ListEpoch) {
        if let Some(link) = self.objects.get_mut(name) {
            link.origin_reports(list, 0);
        }
    }

    /// A list of origins has named an object of which there is no news, with a UID of this hash. If it is only the successor of
    /// the origin that is gone, it remains so.
    pub(super) fn still_at_origin(&mut self, name: &ObjectName, list: ListEpoch, origin: u32) {
        if let Some(link) = self.objects.get_mut(name)
            && !(link.is_retiring() && link.is_of_another(origin))
        {
            link.origin_is(News::NamedBy(list));
        }
    }

    /// A worker has found an origin that lists may not have named: it counts as named by `list`, where that was complete
    /// before, unless the origin's side has reported anything since.
    pub(super) fn found_at_origin(&mut self, name: &ObjectName, list: Option<ListEpoch>) {
        if let Some(link) = self.objects.get_mut(name)
            && !link.reported.of_origin()
            && link.has_copy()
        {
            link.origin_is(list.map_or(News::Found, News::NamedBy));
        }
    }

    /// The origin's side says that the object is gone. True if there is a copy that needs a worker.
    pub(super) fn gone_from_origin(&mut self, name: &ObjectName) -> bool {
        let Some(link) = self.objects.get_mut(name) else {
            return false;
        };
        link.leaves_origin();
        if link.may_have_copy() {
            return true;
        }
        self.objects.remove(name);
        false
    }

    /// A copy has turned up after the beginning of the list of origins that covers it: its origin has to be asked for.
    pub(super) fn cannot_verify(&mut self, name: &ObjectName) {
        if let Some(link) = self.objects.get_mut(name) {
            link.origin_is(News::CopyTurnedUp);
        }
    }

    /// A worker has found no origin. False if the origin's side has reported anything since, which is newer.
    pub(super) fn found_absent(&mut self, name: &ObjectName) -> bool {
        let Some(link) = self.objects.get_mut(name).filter(|link| !link.reported.of_origin()) else {
            return false;
        };
        link.leaves_origin();
        true
    }

    /// These are no longer selected. What has no copy is forgotten, since nothing will report it any more; a copy that
    /// may still be there is searched for.
    pub(super) fn deselect(&mut self, names: &[ObjectName]) {
        for name in names {
            let Some(link) = self.objects.get_mut(name) else {
                continue;
            };
            link.is_to_want(0);
            if !link.has_copy() && !link.is_busy() {
                let is_sought = link.may_have_copy() && !link.is_seen_to();
                link.trace = if is_sought { Trace::Lost } else { Trace::Seen };
                self.drop_if_nothing(name);
            }
        }
    }

    /// A copy of ours is seen as a whole for the first time: it is already as an origin with the hash `content` wants
    /// it.
    pub(super) fn copy_is(&mut self, name: &ObjectName, content: u64) {
        if let Some(link) = self.objects.get_mut(name)
            && link.has_ours()
            && link.settled == 0
            && !link.is_busy()
        {
            link.settled = content;
            link.written = link.seen.hash;
        }
    }

    /// There is an object in a copy's place. `keep` is false for an object of somebody else that nothing selects. True
    /// if it needs a worker.
    pub(super) fn copy_seen(&mut self, name: &ObjectName, list: ListEpoch, seen: Seen, keep: bool) -> bool {
        if !keep && !self.objects.contains_key(name) {
            return false;
        }
        let link = self.entry(name);
        link.copy_list = list;
        if seen.version < link.seen.version {
            // Reported late: a worker has seen something newer.
            return false;
        }
        let same_version = seen.version == link.seen.version && seen.version != 0;
        if same_version {
            return false;
        }
        link.seen = seen;
        link.reported = link.reported.and_copy();
        link.origin_is(News::CopyChanged);
        if link.is_lost() || link.is_shown() || link.ends() && !seen.copy.terminating {
            link.trace = Trace::Seen;
        }
        // A refused object, of which nothing was written, also gets another try when its copy changes.
        let changed = link.drifted() || link.written == 0;
        !link.is_busy() && link.settled != 0 && link.origin_list() != 0 && changed
    }

    /// A list of copies has named an object of which there is no news.
    pub(super) fn copy_unchanged(&mut self, name: &ObjectName, list: ListEpoch) {
        if let Some(link) = self.objects.get_mut(name) {
            link.copy_list = list;
        }
    }

    /// The copies' side says that the object is gone. True if its origin wants it back, or if a worker has to find out
    /// whether it really is gone.
    pub(super) fn copy_gone(&mut self, name: &ObjectName, version: u64) -> bool {
        let Some(link) = self.objects.get_mut(name) else {
            return false;
        };
        if version != 0 && version < link.seen.version {
            // Reported late: it has been created again since.
            return false;
        }
        link.copy_list = 0;
        link.reported = link.reported.and_copy();
        // Nothing has been reported of its origin yet.
        if link.is_orphan() {
            link.origin_is(News::CopyTurnedUp);
        }
        // Its origin is gone, not selected or unknown, and perhaps it has only lost its label.
        let hidden = link.has_open_origin() && !link.is_busy() && link.has_ours();
        // The version stays, so that a worker's older answer does not bring the copy back.
        link.seen = Seen {
            version,
            ..Seen::ABSENT
        };
        link.written = 0;
        if link.is_finished() {
            link.settled = link.wanted;
            return false;
        }
        link.settled = 0;
        if link.ends() && link.wanted != 0 {
            // Nobody else has done that. A worker still looks at what is there.
            link.trace = Trace::Seen;
            link.mark_unsure();
        } else {
            link.trace = Trace::Lost;
        }
        if link.wanted != 0 || hidden {
            return true;
        }
        if !link.is_busy() {
            self.objects.remove(name);
        }
        false
    }

    /// The origin is a Job that has finished, with this hash: as long as it is the same, it needs no copy.
    pub(super) fn has_finished(&mut self, name: &ObjectName, wanted: u64) {
        if let Some(link) = self.objects.get_mut(name)
            && wanted != 0
            && link.wanted == wanted
        {
            link.trace = Trace::NotNeeded;
        }
    }

    /// A dry run has shown what would be done for an object that is settled by that.
    pub(super) fn was_shown(&mut self, name: &ObjectName) {
        if let Some(link) = self.objects.get_mut(name)
            && !link.is_finished()
        {
            link.trace = Trace::Shown;
        }
    }

    /// All that is known, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&ObjectName, &Link)> {
        self.objects.iter()
    }

    /// What is known of an object.
    pub(super) fn get(&self, name: &ObjectName) -> Option<&Link> {
        self.objects.get(name)
    }

    /// What is known of the status of an object, to be changed; created on demand. `None` for an unknown object.
    pub(super) fn status(&mut self, name: &ObjectName) -> Option<&mut LinkStatus> {
        let link = self.objects.get_mut(name)?;
        Some(link.status.get_or_insert_default())
    }

    /// True once if others change or delete a copy so often that corrections are delayed, which is to be logged.
    pub(super) fn is_contention_news(&mut self, name: &ObjectName, seen: bool, now: Instant) -> bool {
        let contention = self.objects.get_mut(name).and_then(|link| link.contention.as_mut());
        contention.is_some_and(|contention| contention.is_news(seen, now))
    }

    /// A worker is about to take the object: if somebody else has changed or deleted its copy, that is corrected.
    pub(super) fn write_begins(&mut self, name: &ObjectName, now: Instant, jitter: impl FnOnce() -> f64) {
        if let Some(link) = self.objects.get_mut(name) {
            let corrects = link.is_disturbed();
            contention::write_begins(&mut link.contention, corrects, now, jitter);
        }
    }

    /// Statuses are written elsewhere from now on.
    pub(super) fn drop_written_statuses(&mut self) {
        let statuses = self.objects.values_mut().filter_map(|link| link.status.as_mut());
        statuses.for_each(|status| status.drop_written());
    }

    /// A worker takes the object. `None` if there is nothing to do for it.
    pub(super) fn take(&mut self, name: &ObjectName) -> Option<&Link> {
        let link = self.objects.get_mut(name)?;
        if link.is_synced() {
            return None;
        }
        link.work = Work::Running(link.work.left_open());
        link.reported = Reported::Nothing;
        Some(link)
    }

    /// A worker has ended without success, and left this open.
    pub(super) fn failed(&mut self, name: &ObjectName, left_open: LeftOpen) {
        if let Some(link) = self.objects.get_mut(name) {
            link.work = Work::Idle(link.work.left_open().max(left_open));
            if link.wanted == 0 {
                // Its copy was reported as gone meanwhile, and nothing else would search for it.
                if link.is_lost() && link.is_seen_to() {
                    link.trace = Trace::Seen;
                }
                self.drop_if_nothing(name);
            }
        }
    }

    /// A worker has found a copy that is held, after its side had said that it is gone.
    pub(super) fn is_still_there(&mut self, name: &ObjectName, seen: Option<Seen>) {
        if let (Some(link), Some(seen)) = (self.objects.get_mut(name), seen)
            && !link.reported.of_copy()
        {
            link.seen = seen;
            link.trace = Trace::Seen;
        }
        self.failed(name, LeftOpen::Nothing);
    }

    /// A worker has asked for the end of the copy, and it was still there after that.
    pub(super) fn ends(&mut self, name: &ObjectName) {
        if let Some(link) = self.objects.get_mut(name)
            && link.seen.copy.terminating
        {
            link.trace = Trace::Ends;
        }
    }

    /// The same, as the worker has seen it then; what is to take its place is tried again.
    pub(super) fn ends_for_another(&mut self, name: &ObjectName, seen: Option<Seen>) {
        if let (Some(link), Some(seen)) = (self.objects.get_mut(name), seen)
            && link.has_copy()
            && seen.version >= link.seen.version
        {
            (link.written, link.seen) = (seen.hash, seen);
        }
        self.ends(name);
    }

    /// A worker has synced the object with `wanted`. True if it is out of sync again.
    pub(super) fn settle(&mut self, name: &ObjectName, wanted: u64, seen: Option<Seen>) -> bool {
        let Some(link) = self.objects.get_mut(name) else {
            return false;
        };
        // A server answers a delete with the copy as it was, at the version of its end, which may have been reported before.
        let is_over = |seen: &Seen| {
            let is_reported = link.reported.of_copy() && !link.has_copy();
            seen.copy.terminating && is_reported && seen.version <= link.seen.version
        };
        let seen = seen.filter(|seen| !is_over(seen));
        link.work = Work::Idle(LeftOpen::Nothing);
        link.permit = Permit::Needed;
        link.settled = wanted;
        if let Some(contention) = &mut link.contention {
            contention.correction_ends();
        }
        let is_late = link.reported.of_origin();
        if !is_late {
            // The worker may have read the origin, and nothing newer is known. If it is gone and the copy stays, there
            // is nothing more to ask.
            link.wants(wanted);
        }
        link.origin_is(match wanted {
            _ if is_late => News::SeenToLate,
            0 => News::SeenToWithoutOrigin,
            _ => News::SeenTo,
        });
        let mut lost = false;
        match seen {
            Some(seen) => {
                link.written = seen.hash;
                // An answer that is older than what was known before the request comes from a restored backup.
                if seen.version >= link.seen.version || seen.version == 0 || !link.reported.of_copy() {
                    link.seen = seen;
                }
                lost = seen.copy.state != CopyState::Absent && !link.has_copy();
            }
            None => link.written = link.seen.hash,
        }
        // Its side has reported that it is gone, and the worker saw it before that: perhaps it has only lost its label.
        if !link.is_finished() {
            let is_lost = !link.has_copy() && (link.wanted != 0 || lost);
            link.trace = match link.trace {
                _ if is_lost => Trace::Lost,
                Trace::Ends if link.seen.copy.terminating => Trace::Ends,
                _ => Trace::Seen,
            };
        }
        // The same for a worker that has not read the copy at all.
        let is_unseen = seen.is_none() && link.reported.of_copy() && link.is_lost();
        let again = link.wanted != 0 && (link.wanted != link.settled || link.drifted() || lost || is_unseen);
        self.drop_if_nothing(name);
        again
    }

    /// Forgets an object that has no copy and whose origin, if there is one, wants none.
    fn drop_if_nothing(&mut self, name: &ObjectName) {
        if self
            .objects
            .get(name)
            .is_some_and(|link| (link.origin_list() == 0 || link.wanted == 0) && !link.may_have_copy())
        {
            self.objects.remove(name);
        }
    }

    fn entry(&mut self, name: &ObjectName) -> &mut Link {
        if !self.objects.contains_key(name) {
            if self.namespaces.len() >= MANY.max(2 * self.namespaces_left) {
                self.namespaces.retain(|namespace| Rc::strong_count(namespace) > 1);
                self.namespaces_left = self.namespaces.len();
            }
            self.namespaces.insert(Rc::clone(name.within()));
            let shared = self.namespaces.get(name.within()).expect("inserted above");
            self.objects.insert(name.sharing(shared), Link::default());
        }
        self.objects.get_mut(name).expect("inserted above")
    }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;

#[cfg(test)]
mod question_tests;

#[cfg(test)]
mod walk_tests;
