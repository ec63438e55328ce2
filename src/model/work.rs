//! Workers: taking keys from the queue, and what they are given to do.

use std::rc::Rc;
use std::time::Duration;

use driver::queue::{self, Class, Payload};
use kube_lite::ObjectName;

use super::dry_run::Remaining;
use super::inventory::{Held, Inventory, Link};
use super::sources::SourceState;
use super::timers::Timer;
use super::workers::HELD_BACK;
use super::{AtHand, Effect, Key, ListEpoch, Model, Request, Task, TypeId, TypeState};
use crate::plan::Direction;
use crate::sync::job::Job;
use crate::sync::ownership::is_protected_namespace;

/// How long what deletes others too waits for a moment in which there is nothing else to do.
const LAST_PATIENCE: Duration = Duration::from_secs(60);

/// Keys that are taken from the queue in one turn of the loop. With a queue of ordinary size there are never more that are
/// ready; of more, most may have to be put off.
const KEYS_AT_ONCE: usize = 1000;

impl Model {
    /// Queues what found no room before.
    pub(super) fn refill(&mut self) {
        let (types, guard, now) = (&self.types, &self.guard, self.now);
        let out_of_sync = |type_id: TypeId, from: Option<Key>| {
            let state = types.get(&type_id);
            let keys = state.map(|state| {
                let held = guard.held_of(&state.plan);
                out_of_sync(type_id, state, held, from.as_ref())
            });
            keys.into_iter().flatten()
        };
        while self.queue.refill(now, out_of_sync) {}
    }

    /// Starts workers while there are keys and room.
    pub(super) fn start_work(&mut self) {
        self.workers.mark_slow(self.now);
        // No list ends meanwhile; there may be thousands of types.
        let mut all_listed = None;
        let mut left = KEYS_AT_ONCE;
        self.timers.clear(Timer::Work);
        while self.workers.have_room() {
            if left == 0 {
                self.timers.set(Timer::Work, self.now);
                break;
            }
            left -= 1;
            // Others wait while a namespace or CRD is being written: they would only be refused. A delete that deletes
            // others too waits until there is nothing else to do, and nothing more to be expected from first lists.
            let last = if self.workers.have_first() {
                Class::First
            } else if !*all_listed.get_or_insert_with(|| self.all_listed())
                || self.workers.are_busy() && !self.last_is_overdue()
            {
                Class::Normal
            } else {
                Class::Last
            };
            let Some((key, body)) = self.queue.take(self.now, last, self.workers.rank()) else {
                break;
            };
            if let Some(wait) = self.put_off(&key) {
                self.was_put_off(&key);
                self.queue.done(&key, queue::Done::NotYet(wait), self.now, 0.0);
            } else if self.has_to_wait(&key, &mut all_listed) || self.is_held(&key) {
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
        if self.settings.dry_run {
            if self.queue.is_idle() && self.knows_all() {
                self.say_what_remains();
            }
        } else if !self.report.was_in_sync() && self.has_tried_all() {
            let objects = self.count_objects();
            let synced = |direction| objects.get(direction).map_or(0, |(synced, _)| *synced);
            let open = objects.values().map(|(_, open)| open).sum();
            self.report.in_sync([Direction::Down, Direction::Up].map(synced), open);
        }
    }

    /// True if too many like it are under way and have been slow.
    fn is_held(&mut self, key: &Key) -> bool {
        let is_held = !self.workers.may_begin(key);
        if is_held {
            self.workers.hold(key);
        }
        is_held
    }

    /// True once all that configs select has been read, and nothing is left to do but what fails or waits.
    fn has_tried_all(&self) -> bool {
        !self.workers.are_busy() && !self.queue.has_untried() && self.knows_all()
    }

    /// Tells whoever asked for a dry run what remains, if that is news.
    fn say_what_remains(&mut self) {
        let remaining = Remaining::of(&self.types, &self.guard, self.report.failing());
        let news = self.said.news(remaining);
        self.effects
            .extend(news.map(|news| Effect::Request(Request::Tried(news))));
    }

    /// An object for which a worker has nothing to do does not count as failing: it may have failed after it was
    /// deselected, or have been deleted or changed back before it was tried again.
    fn nothing_fails_of(&mut self, key: &Key) {
        if key.task == Task::Object {
            self.does_not_fail_if(key.type_id, &key.name, Inventory::is_done);
        }
    }

    /// Nor does one that is reported to be gone, or no longer ours, while it waits: it may not be tried again.
    pub(super) fn does_not_fail_if_over(&mut self, type_id: TypeId, name: &ObjectName) {
        self.does_not_fail_if(type_id, name, Inventory::is_over);
    }

    fn does_not_fail_if(&mut self, type_id: TypeId, name: &ObjectName, is: fn(&Inventory, &ObjectName) -> bool) {
        if self.report.failing() == 0 {
            return;
        }
        let state = self.types.get(&type_id);
        let state = state.filter(|state| is(&state.inventory, name));
        if let Some(subjects) = state.and_then(|state| state.subjects(name)) {
            self.report.clear_all(&subjects);
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

    /// True for what is to be upsynced into a namespace that is being deleted, which is woken when that has ended, for
    /// a delete that may have to be held, and while it is being read what defines a type.
    fn has_to_wait(&mut self, key: &Key, all_listed: &mut Option<bool>) -> bool {
        let Some(state) = self.types.get(&key.type_id) else {
            return false;
        };
        let direction = state.plan.direction;
        let pending = key.task == Task::Object && state.inventory.is_retiring(&key.name);
        direction == Direction::Up && self.is_being_cleared(key.name.namespace())
            || self.is_being_defined(state)
            || pending && {
                let all_listed = *all_listed.get_or_insert_with(|| self.all_listed());
                self.may_have_to_be_held(key, direction, all_listed)
            }
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
        self.effects.request(request);
        let list = self.complete_list(key);
        self.workers.begin(key, first, payload, list, self.now);
        true
    }

    /// The list of the source that reports the origin, if it is complete; otherwise 0.
    fn complete_list(&self, key: &Key) -> ListEpoch {
        let state = self.types.get(&key.type_id);
        let source = state.and_then(|state| self.sources.get(&state.origin_source(&key.name)?));
        source.filter(|source| !source.listing).map_or(0, |source| source.list)
    }

    /// What is to be done for a key; `None` if nothing is any more.
    fn job(&mut self, key: &Key, at_hand: Option<AtHand>) -> Option<Job> {
        let state = self.types.get(&key.type_id)?;
        let direction = state.plan.direction;
        let pending = state.inventory.is_retiring(&key.name);
        let is_held = pending && !self.may_delete(key, direction);
        let state = self.types.get(&key.type_id)?;
        if is_held && !state.inventory.get(&key.name).is_some_and(Link::is_lost) {
            return None;
        }
        let identity = Rc::clone(self.sides.identity(direction.origin()));
        let origin_type = state.origin_type().qualified();
        let origin_version = self.reached_by(direction, &origin_type);
        let deletes_are_held = self.guard.held_of(&state.plan) != Held::Nothing;
        let may_cascade = self.guard.may_cascade(key);
        let state = self.types.get_mut(&key.type_id)?;
        let (origin, copy_at) = state.both(&key.name)?;
        let selection = state.allowed(&key.name);
        let desired = match at_hand {
            Some(AtHand::Desired(desired)) if desired.is_for(&origin, &copy_at, selection) => Some(desired),
            _ => None,
        };
        let origins = state.origin_source(&key.name).and_then(|id| self.sources.get(&id));
        let must_name = origins.map_or(0, SourceState::must_have_named);
        let finished_origin = self.finished.origin(&copy_at.resource, &key.name);
        state.inventory.write_begins(&key.name, self.now, || self.chance.f64());
        let record = state.inventory.take(&key.name)?;
        let own = self.settings.own_namespace.as_deref();
        let is_namespace = copy_at.resource.stands_for("", "namespaces");
        Some(Job {
            direction,
            may_delete: pending && !is_held,
            is_held,
            may_cascade,
            deletes_are_held,
            identity,
            definitions: Rc::clone(&self.definitions),
            origin_version,
            gone_at_origin: state.plan.gone_at_origin,
            policy: Rc::clone(&self.settings.policy),
            selection,
            desired,
            origin_read: None,
            copy: record.seen.copy,
            copy_version: record.seen.version,
            origin_seen_at: record.origin_version,
            origin_unnamed: if record.origin_list() == 0 { must_name } else { 0 },
            read_first: record.needs_read(),
            unverified: record.is_unverified(),
            unread: record.unread(),
            scaled_by_nobody: state.plan.scaled_by_nobody,
            finished_origin,
            protected: is_namespace && is_protected_namespace(&copy_at.name.name, own),
            namespace_refused: state.refuses_namespace(&copy_at.name).is_some(),
            origin,
            copy_at,
        })
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
