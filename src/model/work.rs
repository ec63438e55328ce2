//! Workers: taking keys from the queue, and what their outcomes mean.

use std::rc::Rc;
use std::time::Duration;

use super::effect::Known;
use super::guard::Reason;
use super::inventory::{Held, LeftOpen};
use super::workers::HELD_BACK;
use super::{AtHand, Done, Effect, Generation, Key, Model, Request, Task, TypeId, TypeState};
use crate::cluster::{Error, ObjectName, Side};
use crate::logging::log_line;
use crate::plan::{Direction, Selection};
use crate::queue::{self, Class, Payload};
use crate::report::Subject;
use crate::source::SourceId;
use crate::sync::identity::Doubt;
use crate::sync::job::{Change, Ending, Failure, HeldFor, Job, Outcome, Seen, Why};
use crate::sync::object::Address;
use crate::sync::ownership::is_protected_namespace;

/// Conflicts in a row before one counts as a failure that is logged: somebody changes the object all the time.
const LASTING_CONFLICT: u32 = 4;
/// Until a name is read again that another origin's copy has. When that copy is deleted, its side reports it before.
const NAME_TAKEN_WAIT: Duration = Duration::from_secs(600);

/// How long what deletes others too waits for a moment in which there is nothing else to do.
const LAST_PATIENCE: Duration = Duration::from_secs(60);

impl Model {
    /// Queues what found no room before.
    pub(super) fn refill(&mut self) {
        let (types, guard, now) = (&self.types, &self.guard, self.now);
        let out_of_sync = |type_id: TypeId, from: Option<Key>| {
            let state = types.get(&type_id);
            let keys = state.map(|state| {
                let held = guard.held_of(type_id, state.plan.direction);
                out_of_sync(type_id, state, held, from.as_ref())
            });
            keys.into_iter().flatten()
        };
        while self.queue.refill(now, out_of_sync) {}
    }

    /// Starts workers while there are keys and room.
    pub(super) fn start_work(&mut self) {
        self.workers.mark_slow(self.now);
        while self.workers.have_room() {
            // Others wait while a namespace or CRD is being written: they would only be refused. A delete that deletes
            // others too waits until there is nothing else to do, and nothing more to be expected from first lists.
            let last = match () {
                () if self.workers.have_first() => Class::First,
                () if !self.all_listed() => Class::Normal,
                () if self.workers.are_busy() && !self.last_is_overdue() => Class::Normal,
                () => Class::Last,
            };
            let Some((key, body)) = self.queue.take(self.now, last, self.workers.rank()) else {
                break;
            };
            if self.has_to_wait(&key) {
                let again = queue::Done::Retry(None);
                self.queue.done(&key, again, self.now, self.chance.f64());
            } else if !self.workers.may_begin(&key) {
                let later = queue::Done::Later(HELD_BACK);
                self.queue.done(&key, later, self.now, self.chance.f64());
            } else if !self.start_worker(&key, body) {
                self.nothing_fails_of(&key);
                self.queue.done(&key, queue::Done::Finished, self.now, 0.0);
            }
        }
        if self.queue.is_empty() {
            self.report.idle();
        }
    }

    /// An object for which there is nothing to do does not count as failing: it may have failed after it was
    /// deselected, or have been deleted or changed back before it was tried again.
    fn nothing_fails_of(&mut self, key: &Key) {
        let state = self.types.get(&key.type_id).filter(|_| key.task == Task::Object);
        let done = state.filter(|state| state.inventory.is_done(&key.name));
        if let Some(state) = done
            && self.report.failing() > 0
            && let Some((origin, copy)) = state.both(&key.name)
        {
            let direction = state.plan.direction;
            self.report
                .clear(&Subject::object(direction.origin(), origin.for_people()));
            self.report.clear(&Subject::object(direction.copy(), copy.for_people()));
        }
    }

    /// True if a delete that deletes others too has waited long enough for a moment in which there is nothing else to
    /// do. There may never be one.
    fn last_is_overdue(&mut self) -> bool {
        if !self.queue.has_ready(Class::Last) {
            self.last_waits_since = None;
            return false;
        }
        let now = self.now;
        now.duration_since(*self.last_waits_since.get_or_insert(now)) >= LAST_PATIENCE
    }

    /// True for what is to be upsynced into a namespace that is being deleted, which is woken when that has ended, and
    /// for what may be one of too many deletes.
    fn has_to_wait(&mut self, key: &Key) -> bool {
        let Some(state) = self.types.get(&key.type_id) else {
            return false;
        };
        let direction = state.plan.direction;
        let doomed = key.task == Task::Object && state.inventory.is_doomed(&key.name);
        direction == Direction::Up && self.is_being_cleared(key.name.namespace())
            || doomed && self.may_be_one_of_too_many(key, direction)
    }

    /// Starts a worker for a key. False if there is nothing to do for it any more.
    fn start_worker(&mut self, key: &Key, at_hand: Option<AtHand>) -> bool {
        let payload = at_hand.as_ref().map_or(0, Payload::bytes);
        let is_first = self.types.get(&key.type_id).is_some_and(TypeState::is_first);
        let first = key.task == Task::Object && is_first;
        let request = match key.task {
            Task::Object => {
                let job = self.job(key, at_hand);
                job.map(|job| Request::Object(key.clone(), Box::new(job)))
            }
            Task::Status => {
                let job = self.status_job(key, at_hand);
                job.map(|job| Request::Status(key.clone(), Box::new(job)))
            }
        };
        let Some(request) = request else { return false };
        self.request(request);
        let list = self.complete_list(key);
        self.workers.begin(key, first, payload, list, self.now);
        true
    }

    /// The list of the source that reports the origin, if it is complete; otherwise 0.
    fn complete_list(&self, key: &Key) -> Generation {
        let state = self.types.get(&key.type_id);
        let source = state.and_then(|state| self.sources.get(&state.origin_source(&key.name)?));
        source.filter(|source| !source.listing).map_or(0, |source| source.list)
    }

    /// True once every type has been listed on both sides, or cannot be.
    pub(super) fn all_listed(&self) -> bool {
        let mut states = self.types.values();
        states.all(|state| self.has_listed_copies(state) && (!state.copies_listed || self.has_listed_origins(state)))
    }

    /// True if the copies of a type have been listed, or cannot be.
    pub(super) fn has_listed_copies(&self, state: &TypeState) -> bool {
        state.copy_source.is_some_and(|id| self.has_settled_source(id))
    }

    /// The same of its origins.
    pub(super) fn has_listed_origins(&self, state: &TypeState) -> bool {
        let started = state.plan.gone_at_origin || !state.origin_sources.is_empty() || state.origin_scopes().is_empty();
        started && state.origin_readers().all(|id| self.has_settled_source(id))
    }

    fn has_settled_source(&self, id: SourceId) -> bool {
        self.sources.get(&id).is_some_and(|source| source.settled)
    }

    /// What is to be done for a key; `None` if nothing is any more.
    fn job(&mut self, key: &Key, at_hand: Option<AtHand>) -> Option<Job> {
        let state = self.types.get(&key.type_id)?;
        let direction = state.plan.direction;
        let doomed = state.inventory.is_doomed(&key.name);
        if doomed && !self.may_delete(key, direction) {
            return None;
        }
        let state = self.types.get(&key.type_id)?;
        let identity = Rc::clone(self.identity(direction.origin()));
        let origin_type = state.origin_type().qualified();
        let origin_version = self.reached_by(direction, &origin_type);
        let deletes_are_held = self.guard.held_of(key.type_id, direction) != Held::Nothing;
        let may_cascade = self.guard.may_cascade(key);
        let state = self.types.get_mut(&key.type_id)?;
        let (origin, copy_at) = state.both(&key.name)?;
        let selection = state.allowed(&key.name);
        let desired = match at_hand {
            Some(AtHand::Desired(desired)) if desired.is_for(&origin, &copy_at, selection) => Some(desired),
            _ => None,
        };
        let origins = state.origin_source(&key.name).and_then(|id| self.sources.get(&id));
        let listed_at = origins.map_or(0, |source| source.listed_at);
        let record = state.inventory.take(&key.name)?;
        let own = self.settings.own_namespace.as_deref();
        let is_namespace = copy_at.resource.is("", "namespaces");
        Some(Job {
            direction,
            may_delete: doomed,
            may_cascade,
            deletes_are_held,
            identity,
            definitions: Rc::clone(&self.definitions),
            origin_version,
            type_gone: state.plan.gone_at_origin,
            policy: Rc::clone(&self.settings.policy),
            selection,
            desired,
            copy: record.seen.copy,
            copy_version: record.seen.version,
            origin_seen_at: record.origin_version,
            origin_unnamed: if record.origin_list() == 0 { listed_at } else { 0 },
            read_first: record.needs_read(),
            suspect: record.is_doubtful(),
            unread: record.unread(),
            protected: is_namespace && is_protected_namespace(&copy_at.name.name, own),
            namespace_refused: state.refuses_namespace(&copy_at.name).is_some(),
            origin,
            copy_at,
        })
    }

    pub(super) fn worked(&mut self, key: &Key, done: Done) {
        let success = matches!(done, Done::Object(Ok(_)) | Done::Status(Ok(_)));
        let list = self.workers.end(key, success, self.now);
        let verdict = match done {
            Done::Object(Ok(outcome)) => self.succeeded(key, &outcome, list),
            Done::Object(Err(failure)) => self.failed(key, &failure),
            Done::Status(result) => self.status_returned(key, result),
        };
        let wait = self.queue.done(key, verdict, self.now, self.chance.f64());
        if let Some(state) = self.types.get(&key.type_id) {
            self.suspect_is_judged(state.plan.direction);
        }
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

    fn succeeded(&mut self, key: &Key, outcome: &Outcome, list: Generation) -> queue::Done {
        let Key { type_id, name, .. } = key;
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let direction = state.plan.direction;
        let side = direction.copy();
        let Some((origin_at, copy_at)) = state.both(name) else {
            return queue::Done::Finished;
        };
        let (origin, object) = (origin_at.for_people(), copy_at.for_people());
        match &outcome.ending {
            // Both sides have answered what was asked of them.
            Ending::Held(HeldFor::WouldCascade(first)) => {
                self.both_work(direction, origin, object.clone(), &[]);
                return self.hold_cascade(key, &object, first);
            }
            Ending::Held(held) => {
                self.both_work(direction, origin, object, &[]);
                return self.delete_held(key, outcome, held);
            }
            Ending::Skipped(Why::Conflict(owner)) => {
                state.inventory.failed(name, LeftOpen::Unsure);
                self.report.conflict(side, &object, owner.as_deref());
                return queue::Done::Retry(None);
            }
            Ending::Skipped(Why::NameTaken(others)) => {
                state.inventory.failed(name, LeftOpen::Unsure);
                self.report.name_is_taken(side, &object, others);
                return queue::Done::Later(NAME_TAKEN_WAIT);
            }
            Ending::Changed(Change::Deleted | Change::Released) => self.guard.deleted(key, direction, self.now),
            _ => {}
        }
        self.cascade_is_over(key);
        if self.says_too_little(key, outcome) {
            if !outcome.waits_for.is_empty() {
                self.both_work(direction, origin, object, &outcome.waits_for);
            }
            return queue::Done::Retry(None);
        }
        let (again, forsaken) = self.settle(key, &copy_at.name, outcome, list);
        self.note_status(*type_id, name, outcome);
        self.both_work(direction, origin, object.clone(), &outcome.waits_for);
        if let Ending::Changed(change) = outcome.ending {
            self.report.change(side, &object, change);
        }
        log_line!(
            Debug,
            ObjectSynced,
            "synced",
            side = side.word(),
            object = object,
            result = format_args!("{:?}", outcome.ending)
        );
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

    /// True for an outcome that cannot be final, though nothing would report a change of it: the object is tried again.
    fn says_too_little(&mut self, key: &Key, outcome: &Outcome) -> bool {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return false;
        };
        let Ending::Skipped(why) = &outcome.ending else {
            return false;
        };
        let inventory = &mut state.inventory;
        let wants_nothing = outcome.desired_hash == 0;
        // Without its label, the end of the copy is not reported.
        let goes_unseen = *why == Why::Terminating && !wants_nothing && !inventory.is_watched(&key.name);
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
            self.doubt(key.type_id, side);
        }
        goes_unseen || is_denied || is_back
    }

    /// Takes in what a worker has brought to an end. Returns whether it is to be done again, and whether it was a copy
    /// that nothing waits for and whose end nothing reports: one without its label that is being deleted. `list` is
    /// what it began with.
    fn settle(&mut self, key: &Key, copy_at: &ObjectName, outcome: &Outcome, list: Generation) -> (bool, bool) {
        let Key { type_id, name, .. } = key;
        let Some(state) = self.types.get_mut(type_id) else {
            return (false, false);
        };
        let forsaken =
            outcome.ending == Why::Terminating && outcome.desired_hash == 0 && state.inventory.is_unlabelled(name);
        if outcome.ending == Why::Finished {
            state.inventory.has_finished(name, outcome.desired_hash);
        }
        // Whatever is reported of a deleted copy from now on is new, also at the version that it had: a restore may
        // bring it back.
        let deleted = outcome.ending == Change::Deleted;
        let gone = (deleted || forsaken).then_some(Seen::ABSENT);
        let copy = outcome.copy.or(gone);
        let again = state.inventory.settle(name, outcome.desired_hash, copy);
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
        (again, forsaken)
    }

    /// The delete of a copy whose origin is gone was held.
    fn delete_held(&mut self, key: &Key, outcome: &Outcome, held: &HeldFor) -> queue::Done {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        let (direction, resource) = (state.plan.direction, state.origin_type().qualified());
        state.inventory.failed(&key.name, LeftOpen::Nothing);
        let reported_of = state.inventory.is_reported(&key.name);
        // The worker had begun before people did so.
        if self.confirmed_meanwhile(direction.origin(), &resource, held) {
            return queue::Done::Again;
        }
        // One that was to be replaced is still wanted, and its turn comes without a confirmation.
        let is_wanted = outcome.desired_hash != 0;
        let reason = match held {
            HeldFor::OtherCluster(found) => Reason::OtherCluster {
                expected: self
                    .identity(direction.origin())
                    .expected()
                    .unwrap_or_default()
                    .to_owned(),
                found: found.clone(),
            },
            HeldFor::WentBack(to) => Reason::WentBack {
                from: self.reached_by(direction, &resource),
                resource,
                to: *to,
            },
            HeldFor::Doubted(Doubt::MadeFrom(cluster)) => self.copies_are_from(direction.origin(), cluster),
            &HeldFor::Doubted(Doubt::Older { from, to }) => Reason::WentBack { resource, from, to },
            HeldFor::Withdrawn(_) | HeldFor::AnotherLook if is_wanted => return queue::Done::Retry(None),
            HeldFor::Withdrawn(withdrawal) => return self.hold_type(key, resource, withdrawal),
            // It was not known to be gone when the worker began.
            _ if reported_of => {
                self.doubt(key.type_id, direction.origin());
                return queue::Done::Retry(None);
            }
            _ => {
                // What has been reported meanwhile is newer.
                let state = self.types.get_mut(&key.type_id);
                if state.is_some_and(|state| state.inventory.found_absent(&key.name)) {
                    self.more_are_doomed(direction, 1);
                }
                return queue::Done::Again;
            }
        };
        if is_wanted {
            self.hold_deletes(direction, reason);
            return queue::Done::Retry(None);
        }
        self.hold_deletes(direction, reason);
        queue::Done::Finished
    }

    /// What the end of one object's work means for others.
    fn others_follow(&mut self, type_id: TypeId, copy_at: &Address, ending: &Ending) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        match ending {
            Ending::Changed(Change::Created | Change::Adopted | Change::Updated)
                if copy_at.resource.is("", "namespaces") =>
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
            let recorded = state.status_seen(name, side, version, || Ok(Some(hash)));
            recorded.expect("the hash is at hand");
        }
        if let (Some(hash), Some(seen)) = (outcome.status, outcome.copy)
            && let Some(state) = self.types.get_mut(&type_id)
            && state
                .inventory
                .get(name)
                .is_some_and(|record| record.seen.version == seen.version)
        {
            let side = state.plan.direction.copy();
            let recorded = state.status_seen(name, side, seen.version, || Ok(Some(hash)));
            recorded.expect("the hash is at hand");
        }
    }

    /// A namespace is there: what could not be created without it continues.
    pub(super) fn namespace_is_there(&mut self, side: Side, namespace: &str) {
        let types = &self.types;
        self.queue.wake_where(|waiting| {
            let copies = types.get(&waiting.type_id).map(|state| state.plan.direction.copy());
            copies == Some(side) && waiting.name.namespace() == &*namespace
        });
    }

    /// An object could not be created because its namespace is missing. At the edge, one that was there before carries no
    /// label, so that the edge does not report when it is deleted; at the hub it is created when it is needed.
    fn namespace_is_missing(&mut self, side: Side, namespace: &str) {
        if side == Side::Hub {
            self.need_hub_namespace(namespace);
            return;
        }
        let namespace = ObjectName::new("", namespace);
        let known = self
            .types
            .iter_mut()
            .find(|(_, state)| state.plan.direction == Direction::Down && state.plan.at_edge.is("", "namespaces"));
        if let Some((&type_id, state)) = known
            && state.inventory.was_wrong_about(&namespace)
        {
            self.enqueue(type_id, namespace, None);
        }
    }

    fn failed(&mut self, key: &Key, failure: &Failure) -> queue::Done {
        let Key { type_id, name, .. } = key;
        let Failure { side, error, .. } = failure;
        let retry = queue::Done::Retry(error.retry_after());
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let at_copy = *side == state.plan.direction.copy();
        let left_open = match () {
            () if !at_copy => LeftOpen::Nothing,
            () if error.is_refusal() => LeftOpen::Refused,
            () => LeftOpen::Unsure,
        };
        state.inventory.failed(name, left_open);
        if error.is_unreachable() {
            self.side_is_silent(*side, failure.doing, error);
            return queue::Done::Unreachable(*side);
        }
        let Some((origin_at, copy_at)) = state.both(name) else {
            return queue::Done::Finished;
        };
        let (here, elsewhere) = if at_copy {
            (copy_at, origin_at)
        } else {
            (origin_at, copy_at)
        };
        let object = here.for_people();
        let is_selected = state.selection(name) != Selection::None;
        if at_copy && is_selected && error.missing_namespace().is_some() {
            log_line!(
                Debug,
                NamespaceAwaited,
                "waits for its namespace",
                side = side.word(),
                object = object
            );
            if let Some(why) = state.refuses_namespace(name) {
                self.report.refused(&format!("Namespace//{}", name.namespace()), &why);
            } else if *side == Side::Edge
                && let Some(place) = self.selecting.wanted.without_namespace(name.namespace())
            {
                self.report
                    .without_namespace(name.namespace(), &place.config, &place.field);
            }
            self.namespace_is_missing(*side, name.namespace());
            return retry;
        }
        if error.is_conflict() && self.queue.failures(key) < LASTING_CONFLICT {
            log_line!(
                Debug,
                ChangedMeanwhile,
                "changed meanwhile, read again",
                side = side.word(),
                object = object,
                error = error
            );
            return retry;
        }
        if error.is_type_not_served() {
            let state = self.types.get(type_id).expect("found above");
            let resource = if at_copy {
                state.copy_type()
            } else {
                state.origin_type()
            }
            .clone();
            self.void_discovery_of(*side, &resource);
        }
        if matches!(error, Error::Outdated { .. }) {
            self.doubt(*type_id, *side);
        }
        // Work ends at its first failure, so an object fails on one side at a time.
        let other = Direction::from(*side).copy();
        self.report.clear(&Subject::object(other, elsewhere.for_people()));
        self.fails(Subject::object(*side, object), failure.doing, error);
        if at_copy && error.is_immutable() && failure.desired_hash != 0 {
            // The same request cannot succeed: wait for a change at either side instead of the clock.
            let state = self.types.get_mut(type_id).expect("found above");
            let again = state.inventory.settle(name, failure.desired_hash, None);
            return if again {
                queue::Done::Again
            } else {
                queue::Done::Finished
            };
        }
        retry
    }
}

/// What a source would report next, as far as a worker has seen it.
fn known_by(outcome: &Outcome) -> Option<Known> {
    match outcome.copy {
        Some(seen) if seen.version != 0 => Some(Known::At(seen.version)),
        _ if outcome.ending == Change::Deleted || outcome.ending == Why::Gone => Some(Known::Gone),
        _ => None,
    }
}

/// The tasks of a type that have to be done, in the order of their keys, from the given one on. Those that are held are
/// queued when the hold ends; before that, they would only be queued again and again.
fn out_of_sync<'a>(
    type_id: TypeId,
    state: &'a TypeState,
    held: Held,
    from: Option<&Key>,
) -> impl Iterator<Item = (Key, Class)> + use<'a> {
    // The first name of a task to begin with; `None` if the task is behind us.
    let begin = |task| match from {
        Some(from) if from.task > task => None,
        Some(from) if from.task == task => Some(Some(&from.name)),
        _ => Some(None),
    };
    let objects = begin(Task::Object).map(|from| state.inventory.out_of_sync(held, from));
    let statuses = begin(Task::Status).map(|from| state.status_due(from));
    let objects = objects.into_iter().flatten().map(move |name| {
        let key = Key::new(type_id, Task::Object, name.clone());
        (key, state.class(name))
    });
    let statuses = statuses.into_iter().flatten().map(move |name| {
        let key = Key::new(type_id, Task::Status, name.clone());
        (key, Class::Normal)
    });
    objects.chain(statuses)
}
