//! What the outcomes of workers mean: for the inventory, for the queue, and for people.

mod failed;

use std::time::Duration;

use driver::queue;
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use super::effect::Known;
use super::guard::Reason;
use super::inventory::LeftOpen;
use super::timers::LASTING;
use super::{Done, Effect, Key, ListEpoch, Model, TypeId};
use crate::plan::Direction;
use crate::report::Subject;
use crate::side::Side;
use crate::sync::identity::Unverified;
use crate::sync::job::{Change, Ending, HeldFor, Outcome, Seen, Why};
use crate::sync::object::Address;

/// Until a name is read again that another origin's copy has. When that copy is deleted, its side reports it before.
const NAME_TAKEN_WAIT: Duration = Duration::from_secs(600);
/// How long a copy from another cluster waits for that one to be back.
const STRAY_WAIT: Duration = Duration::from_secs(600);

impl Model {
    pub(super) fn on_worked(&mut self, key: &Key, done: Done) {
        let success = matches!(done, Done::Object(Ok(_)) | Done::Status(Ok(_)));
        let list = self.workers.end(key, success, self.now);
        for released in self.workers.released() {
            self.queue.hurry(&released);
        }
        let verdict = match done {
            Done::Object(Ok(outcome)) => self.succeeded(key, &outcome, list),
            Done::Object(Err(failure)) => self.failed(key, &failure),
            Done::Status(result) => self.status_returned(key, result),
        };
        let wait = self.queue.done(key, verdict, self.now, self.chance.f64());
        if let Some(wait) = wait {
            log_line!(
                Debug,
                RetryScheduled,
                "tried again after a wait",
                wait = format_args!("{wait:?}"),
                task = format_args!("{:?}", key.task),
                name = format_args!("{}/{}", key.name.namespace(), key.name.name)
            );
        } else {
            self.return_status(key.type_id, &key.name, None);
        }
    }

    fn succeeded(&mut self, key: &Key, outcome: &Outcome, list: ListEpoch) -> queue::Done<Side> {
        let Key { type_id, name, .. } = key;
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let direction = state.plan.direction;
        let Some((origin_at, copy_at)) = state.both(name) else {
            // The names have changed meanwhile, and may change back.
            state.inventory.failed(name, LeftOpen::Unsure);
            return queue::Done::Finished;
        };
        if let Some(done) = self.leaves_open(key, outcome, (&origin_at, &copy_at)) {
            return done;
        }
        match outcome.ending {
            Ending::Changed(Change::Deleted | Change::Released) | Ending::Would(Change::Deleted | Change::Released) => {
                self.copy_was_deleted(key, direction);
            }
            Ending::Changed(Change::Created | Change::Adopted) | Ending::Would(Change::Created | Change::Adopted) => {
                self.copy_was_made(key, direction);
            }
            _ => {}
        }
        self.cascade_is_over(key);
        if self.may_soon_end(key, outcome) {
            return queue::Done::Retry(None);
        }
        let (origin, object) = (origin_at.for_people(), copy_at.for_people());
        if self.says_too_little(key, outcome) {
            if !outcome.waits_for.is_empty() {
                self.both_work(direction, origin, object.clone(), &outcome.waits_for);
                self.event_of_failure(key, direction.copy(), object);
            }
            return queue::Done::Retry(None);
        }
        let state = self.types.get(type_id);
        let corrects = state.is_some_and(|state| state.inventory.is_correction(name));
        let (again, forsaken) = self.settle(key, &copy_at.name, outcome, list);
        self.note_status(*type_id, name, outcome);
        self.report_success(key, outcome, (origin, object), corrects);
        if !forsaken {
            self.former_copy_may_be_deleted(*type_id, name);
        }
        self.others_follow(*type_id, &copy_at, &outcome.ending);
        let state = self.types.get(type_id);
        if outcome.ending == Why::NotSelected && state.is_some_and(|state| state.origin_source(name).is_none()) {
            // A copy has been found again that had lost its label, and nothing reports it when its origin is deleted.
            self.start_origin_sources();
        }
        // Again without a new entry: news that came meanwhile may have left a body at hand.
        if again {
            queue::Done::Again
        } else {
            queue::Done::Finished
        }
    }

    /// What a worker that has not failed leaves as it is, and when it is tried again; `None` if it has ended otherwise.
    fn leaves_open(
        &mut self,
        key: &Key,
        outcome: &Outcome,
        (origin_at, copy_at): (&Address, &Address),
    ) -> Option<queue::Done<Side>> {
        let state = self.types.get_mut(&key.type_id)?;
        let direction = state.plan.direction;
        let side = direction.copy();
        let (origin, object) = (|| origin_at.for_people(), copy_at.for_people());
        let name = &key.name;
        match &outcome.ending {
            // Both sides have answered what was asked of them.
            Ending::Held(held) => {
                self.both_work(direction, origin(), object.clone(), &[]);
                Some(match held {
                    HeldFor::WouldCascade(first) => self.hold_cascade(key, &object, first),
                    held => self.delete_held(key, outcome, held),
                })
            }
            Ending::Skipped(Why::Conflict(owner)) => {
                state.inventory.failed(name, LeftOpen::Unsure);
                self.report.conflict(side, &object, owner.as_deref(), false);
                self.event_of_failure(key, side, object);
                Some(queue::Done::Retry(None))
            }
            Ending::Skipped(Why::Kept) => {
                state.inventory.failed(name, LeftOpen::Unsure);
                self.report.conflict(side, &object, None, true);
                self.event_of_failure(key, side, object);
                Some(queue::Done::Retry(None))
            }
            Ending::Skipped(Why::NameTaken(others)) => {
                state.inventory.failed(name, LeftOpen::Unsure);
                self.report
                    .name_is_taken(direction.origin(), &origin(), Some(&object), others);
                Some(queue::Done::Later(NAME_TAKEN_WAIT))
            }
            // It was no copy, but what its side keeps for itself. That its origin gets none is still to be logged.
            Ending::Changed(Change::Released) if state.inventory.is_wanted(name) => {
                state.inventory.is_still_there(name, outcome.copy);
                self.report_synced(side, &object, &outcome.ending, false);
                Some(queue::Done::Again)
            }
            _ => None,
        }
    }

    /// Says that an origin and its copy are as they are to be. `corrects`: somebody had changed the copy.
    fn report_success(&mut self, key: &Key, outcome: &Outcome, (origin, copy): (String, String), corrects: bool) {
        let Some(state) = self.types.get(&key.type_id) else {
            return;
        };
        let direction = state.plan.direction;
        let side = direction.copy();
        let waits_for = match state.inventory.get(&key.name) {
            // It is needed no longer, whatever its copy waited for.
            Some(link) if link.is_finished() => &[],
            _ => &*outcome.waits_for,
        };
        let is_left = outcome.ending == Why::NotOurs || outcome.ending == Why::NotSelected;
        if is_left && outcome.desired_hash == 0 {
            // Nothing is wanted in its place any more. What was in the way may still be there.
            let sides = [(direction.origin(), origin), (side, copy.clone())];
            self.report
                .clear_all(&sides.map(|(side, object)| Subject::object(side, object)));
        } else {
            self.both_work(direction, origin, copy.clone(), waits_for);
        }
        self.event_of_failure(key, side, copy.clone());
        self.event_of_success(key, &outcome.ending);
        self.drift_is_over(key, (side, &copy), &outcome.ending, corrects);
        self.report_synced(side, &copy, &outcome.ending, corrects);
        if let (Ending::Changed(_), Some(since)) = (&outcome.ending, self.queue.since(key)) {
            self.report.synced(side, self.now.duration_since(since));
        }
        self.report.keeps_versions(side, &copy, &outcome.kept_versions);
    }

    /// An origin and its copy no longer fail, except for an object in the copy's place that has to be deleted first.
    fn both_work(&mut self, direction: Direction, origin: String, copy: String, waits_for: &[String]) {
        self.report.works(&Subject::object(direction.origin(), origin));
        let copy = Subject::object(direction.copy(), copy);
        if waits_for.is_empty() {
            self.report.works(&copy);
        } else {
            self.fails(copy, "creating", &Error::Ending(waits_for.to_vec()));
        }
    }

    /// True if what is being deleted in the place of a copy waits for its finalizers, and has not done so for long: most
    /// are removed within a moment.
    fn may_soon_end(&mut self, key: &Key, outcome: &Outcome) -> bool {
        let may = !outcome.waits_for.is_empty() && self.queue.failures(key) < LASTING;
        if let Some(state) = self.types.get_mut(&key.type_id).filter(|_| may) {
            if outcome.ends {
                state.inventory.ends_for_another(&key.name, outcome.copy);
            }
            state.inventory.failed(&key.name, LeftOpen::Refused);
        }
        may
    }

    /// True for an outcome that cannot be final, though nothing would report a change of it: the object is tried again.
    fn says_too_little(&mut self, key: &Key, outcome: &Outcome) -> bool {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return false;
        };
        let Ending::Skipped(why) = &outcome.ending else {
            return false;
        };
        let is_awaited = state.is_awaited(&key.name);
        let inventory = &mut state.inventory;
        let wants_nothing = outcome.desired_hash == 0;
        // Without its label, the end of the copy is not reported. What the worker has read may not be reported yet.
        let is_watched = || inventory.is_watched(&key.name);
        let is_watched = outcome.copy.map_or_else(is_watched, |seen| seen.labelled);
        let is_ending = match why {
            Why::NotSelected => outcome.copy.is_some_and(|seen| seen.copy.terminating),
            why => *why == Why::Terminating,
        };
        let goes_unseen = is_ending && !is_watched && (!wants_nothing || is_awaited);
        // Its origin's side has reported that it is there, and will report that it is gone. Whatever says now that it
        // is gone may be another cluster.
        let is_denied = *why != Why::NotSelected && wants_nothing && inventory.is_reported(&key.name);
        // The copies' side has reported it since the worker asked: what answered may be older, such as a cache.
        let is_back = *why == Why::Gone && wants_nothing && inventory.has_copy_turned_up(&key.name);
        if goes_unseen || is_denied || is_back {
            let left_open = if goes_unseen {
                LeftOpen::Unsure
            } else {
                LeftOpen::Nothing
            };
            inventory.failed(&key.name, left_open);
        }
        if is_denied {
            let side = state.plan.direction.origin();
            self.type_is_unverified(key.type_id, side);
        }
        goes_unseen || is_denied || is_back
    }

    /// Takes in what a worker has brought to an end. Returns whether it is to be done again, and whether it was a copy
    /// that nothing waits for and whose end nothing reports: one without its label that is being deleted. `list` is
    /// what it began with.
    fn settle(&mut self, key: &Key, copy_at: &ObjectName, outcome: &Outcome, list: ListEpoch) -> (bool, bool) {
        let Key { type_id, name, .. } = key;
        let Some(state) = self.types.get_mut(type_id) else {
            return (false, false);
        };
        let forsaken =
            outcome.ending == Why::Terminating && outcome.desired_hash == 0 && state.inventory.is_unlabelled(name);
        if outcome.ending == Why::Finished {
            state.inventory.has_finished(name, outcome.desired_hash);
        }
        // What is left of it is watched.
        if is_end(&outcome.ending) && !outcome.ends && state.inventory.is_watched(name) {
            self.end_is_to_come(*type_id, name);
        }
        let Some(state) = self.types.get_mut(type_id) else {
            return (false, false);
        };
        // Whatever is reported of a deleted copy from now on is new, also at the version that it had: a restore may
        // bring it back.
        let deleted = outcome.ending == Change::Deleted;
        let gone = (deleted || forsaken).then_some(Seen::ABSENT);
        let copy = outcome.copy.or(gone);
        let again = state.inventory.settle(name, outcome.desired_hash, copy);
        if outcome.ends {
            state.inventory.ends(name);
            self.copy_ends(*type_id, name);
        }
        let Some(state) = self.types.get_mut(type_id) else {
            return (again, forsaken);
        };
        if !again && matches!(outcome.ending, Ending::Would(_)) {
            state.inventory.was_shown(name);
        }
        let may_keep_less = state.inventory.keeps_more(name, !outcome.kept_versions.is_empty());
        if outcome.desired_hash != 0 || outcome.ending == Why::NotSelected {
            // A list that has begun since may know that it is gone.
            let source = state.origin_source(name).and_then(|id| self.sources.get(&id));
            let list = source.map(|source| source.list).filter(|&now| now == list);
            state.inventory.found_at_origin(name, list);
        }
        // A status that somebody has written between two of our requests has not been seen yet.
        let status_is_open = state.plan.status.is_some() && outcome.copy.is_some() && outcome.status.is_none();
        if let Some(id) = state.copy_source {
            let known = known_by(outcome).filter(|_| !status_is_open);
            let written = outcome
                .copy
                .filter(|seen| seen.labelled)
                .map(|seen| Known::Written(seen.version));
            let all = known.into_iter().chain(written);
            self.effects
                .extend(all.map(|known| Effect::Known(id, copy_at.clone(), known)));
        }
        (again || may_keep_less, forsaken)
    }

    fn report_synced(&mut self, side: Side, object: &str, ending: &Ending, corrects: bool) {
        if let Ending::Changed(change) = *ending
            && let Some(word) = change.word()
        {
            self.report.change(side, object, word, corrects);
        }
        log_line!(
            Debug,
            ObjectSynced,
            "synced",
            side = side.word(),
            object = object,
            result = format_args!("{ending:?}")
        );
    }

    /// The delete of a copy whose origin is gone was held.
    fn delete_held(&mut self, key: &Key, outcome: &Outcome, held: &HeldFor) -> queue::Done<Side> {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        let (direction, resource) = (state.plan.direction, state.origin_type().qualified());
        if *held == HeldFor::StillThere {
            state.inventory.is_still_there(&key.name, outcome.copy);
            return queue::Done::Finished;
        }
        state.inventory.failed(&key.name, LeftOpen::Nothing);
        // The worker had begun before people did so.
        if self.confirmed_meanwhile(direction.origin(), &resource, held) {
            return queue::Done::Again;
        }
        // One that was to be replaced is still wanted, and its turn comes without a confirmation.
        let is_wanted = outcome.desired_hash != 0;
        let reason = match held {
            HeldFor::OtherCluster(found) => {
                let expected = self.sides.identity(direction.origin()).expected();
                Reason::OtherCluster {
                    expected: expected.unwrap_or_default().to_owned(),
                    found: found.clone(),
                }
            }
            HeldFor::WentBack(to) => Reason::WentBack {
                from: self.reached_by(direction, &resource),
                resource,
                to: *to,
            },
            HeldFor::Unverified(Unverified::MadeFrom(cluster)) if self.is_stray(direction, cluster) => {
                self.report_stray(key, cluster);
                return queue::Done::Later(STRAY_WAIT);
            }
            HeldFor::Unverified(Unverified::MadeFrom(cluster)) => {
                match self.copies_are_from(direction.origin(), cluster) {
                    Some(reason) => reason,
                    None => return queue::Done::Again,
                }
            }
            &HeldFor::Unverified(Unverified::Older { from, to }) => Reason::WentBack { resource, from, to },
            HeldFor::Withdrawn(_) | HeldFor::AnotherLook if is_wanted => return queue::Done::Retry(None),
            HeldFor::Withdrawn(withdrawal) => return self.hold_type(resource, withdrawal),
            _ => return self.found_gone(key, direction),
        };
        self.hold_deletes(direction, reason);
        if is_wanted {
            queue::Done::Retry(None)
        } else {
            queue::Done::Finished
        }
    }

    /// A worker has found that the origin of a copy is gone, which was not known when it began.
    fn found_gone(&mut self, key: &Key, direction: Direction) -> queue::Done<Side> {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        // What has been reported is unverified; what has been reported meanwhile is newer.
        if state.inventory.is_reported(&key.name) {
            self.type_is_unverified(key.type_id, direction.origin());
            return queue::Done::Retry(None);
        }
        if state.inventory.found_absent(&key.name) {
            self.more_pending_deletes(direction, 1);
        }
        queue::Done::Again
    }

    /// A copy is from another cluster than all others, as one that was made while another hub answered for a while. It
    /// stays, and holds nothing else.
    fn report_stray(&mut self, key: &Key, cluster: &str) {
        if let Some(state) = self.types.get(&key.type_id)
            && let Some((_, copy)) = state.both(&key.name)
        {
            let side = state.plan.direction.copy();
            self.report.is_stray(side, &copy.for_people(), cluster);
        }
    }

    /// What the end of one object's work means for others.
    fn others_follow(&mut self, type_id: TypeId, copy_at: &Address, ending: &Ending) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        match ending {
            Ending::Changed(Change::Created | Change::Adopted | Change::Updated)
            | Ending::Would(Change::Created | Change::Adopted | Change::Updated)
                if copy_at.resource.stands_for("", "namespaces") =>
            {
                self.namespace_is_there(state.plan.direction.copy(), &copy_at.name.name);
            }
            Ending::Changed(Change::Deleted | Change::Released)
            | Ending::Skipped(Why::Gone | Why::NotOurs | Why::NotSelected) => {
                self.upsync_left_a_namespace();
                self.clear_status_failures(type_id);
                self.drop_type_without_copies(type_id);
            }
            Ending::Changed(Change::MarkedCreateOnly) | Ending::Skipped(Why::CreateOnly) => {
                self.watch_unlabelled(type_id);
            }
            _ => {}
        }
    }

    /// What a worker's last answer says of the status of the copy, unless the copies' side has reported a newer one since.
    fn note_status(&mut self, type_id: TypeId, name: &ObjectName, outcome: &Outcome) {
        if let (Some((version, hash)), Some(state)) = (outcome.origin, self.types.get_mut(&type_id))
            && state
                .inventory
                .get(name)
                .is_some_and(|record| record.origin_version <= version)
        {
            let side = state.plan.direction.origin();
            state.inventory.origin_seen_at(name, version);
            state.status_seen(name, side, version, || Some(hash));
        }
        if let (Some(hash), Some(seen)) = (outcome.status, outcome.copy)
            && let Some(state) = self.types.get_mut(&type_id)
            && state
                .inventory
                .get(name)
                .is_some_and(|record| record.seen.version == seen.version)
        {
            let side = state.plan.direction.copy();
            state.status_seen(name, side, seen.version, || Some(hash));
        }
    }
}

/// True if the watch of copies reports the object as gone: it is, or has lost the label by which it is watched.
fn is_end(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::Changed(Change::Deleted | Change::Released | Change::MarkedCreateOnly)
    )
}

/// What a source would report next, as far as a worker has seen it.
fn known_by(outcome: &Outcome) -> Option<Known> {
    match outcome.copy {
        Some(seen) if seen.version != 0 => Some(Known::At(seen.version)),
        _ if outcome.ending == Change::Deleted || outcome.ending == Why::Gone => Some(Known::Gone),
        _ => None,
    }
}
