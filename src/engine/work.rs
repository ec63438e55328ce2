//! Workers: taking keys from the queue, and what their outcomes mean.

use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Engine, Key, TaskEnd};
use crate::cluster::{ObjectName, Side};
use crate::plan::Selection;
use crate::queue::{self, Class};
use crate::report::Subject;
use crate::source::SourceId;
use crate::sync::downsync::{self, Change, Failure, Job, Outcome};
use crate::sync::ownership::is_protected_namespace;

/// Between two tries of an object that a webhook refuses.
const REFUSED_WAIT: Duration = Duration::from_secs(300);

/// What a worker ended with, and whether others wait for its kind.
pub(super) struct Done {
    first: bool,
    result: Result<Outcome, Failure>,
}

impl Engine {
    /// Starts workers while there are keys and room.
    pub(super) fn start_work(&mut self) {
        while self.in_flight < self.setup.workers {
            // Others wait while a namespace or CRD is on its way: they would only be refused. What takes others along
            // when it goes waits until there is nothing else to do, and nothing more to be expected from first lists.
            let last = match () {
                () if self.first_in_flight > 0 => Class::First,
                () if self.in_flight > 0 || !self.all_listed() => Class::Normal,
                () => Class::Last,
            };
            let Some((key, body)) = self.queue.take(Instant::now(), last) else {
                break;
            };
            let Some(mut job) = self.job(&key) else {
                self.queue.done(&key, queue::Done::Finished, Instant::now(), 0.0);
                continue;
            };
            job.body = body;
            let first = self.types.get(&key.0).is_some_and(super::TypeState::is_first);
            self.in_flight += 1;
            self.first_in_flight += usize::from(first);
            let (hub, edge) = (Rc::clone(&self.setup.hub), Rc::clone(&self.setup.edge));
            let work = async move {
                let result = downsync::reconcile(&hub, &edge, job).await;
                TaskEnd::Worked(key, Done { first, result })
            };
            self.tasks.push(work.boxed_local());
        }
        if self.queue.is_empty() {
            self.report.idle();
        }
    }

    /// True once every type has been listed on both sides, or cannot be.
    fn all_listed(&self) -> bool {
        let listed = |id: &SourceId| self.sources.get(id).is_some_and(|source| source.settled);
        self.types.values().all(|state| {
            let started = state.gone_at_hub || !state.hub_sources.is_empty() || state.hub_scopes().is_empty();
            let hub = !state.looked || started && state.hub_sources.values().all(listed);
            state.edge_source.as_ref().is_some_and(listed) && hub
        })
    }

    /// What is to be done for a key; `None` if nothing is any more.
    fn job(&mut self, key: &Key) -> Option<Job> {
        let (type_id, name) = key;
        let state = self.types.get_mut(type_id)?;
        let record = state.inventory.take(name)?;
        let own = self.setup.own_namespace.as_deref();
        Some(Job {
            selection: match self.setup.filter.refuses(&state.resource, name) {
                None => state.selector.selects(name),
                Some(_) => Selection::None,
            },
            resource: state.resource.clone(),
            at_edge: state.at_edge.clone(),
            type_gone: state.gone_at_hub,
            policy: Rc::clone(&self.setup.policy),
            name: name.clone(),
            body: None,
            copy: record.seen.copy,
            copy_version: record.seen.version,
            look_first: record.vanished || record.unsure,
            protected: state.resource.is("", "namespaces") && is_protected_namespace(&name.name, own),
        })
    }

    pub(super) fn worked(&mut self, key: &Key, done: Done) {
        self.in_flight -= 1;
        self.first_in_flight -= usize::from(done.first);
        let verdict = match done.result {
            Ok(outcome) => self.succeeded(key, &outcome),
            Err(failure) => self.failed(key, &failure),
        };
        let wait = self.queue.done(key, verdict, Instant::now(), fastrand::f64());
        if let Some(wait) = wait {
            log::debug!("next try in={wait:?} name={:?}", key.1);
        }
    }

    fn succeeded(&mut self, key: &Key, outcome: &Outcome) -> queue::Done {
        self.side_answers(Side::Edge);
        let (type_id, name) = key;
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let object = name.of_kind(&state.resource.kind).to_string();
        let edge_source = state.edge_source.and_then(|id| self.sources.get(&id));
        let again = state.inventory.settle(name, outcome.desired_hash, outcome.copy);
        if let (Some(source), Some(seen)) = (edge_source, outcome.copy) {
            source.handle.is_known(name, seen.version);
        }
        let is_namespace = state.resource.is("", "namespaces");
        for side in [Side::Hub, Side::Edge] {
            self.report.works(&Subject::Thing(side, object.clone()));
        }
        self.report.change(&object, outcome.change);
        if is_namespace && matches!(outcome.change, Change::Created | Change::Adopted | Change::Updated) {
            self.queue
                .wake_where(|(_, waiting)| waiting.namespace == name.name.as_ref().into());
        }
        if matches!(outcome.change, Change::Left(downsync::Why::Gone)) {
            self.drop_type_without_copies(*type_id);
        }
        // Again without a new entry: news that came meanwhile may have left a body at hand.
        if again {
            queue::Done::Again
        } else {
            queue::Done::Finished
        }
    }

    /// An object could not be created for want of its namespace. One that was there before carries no label, so that
    /// the edge does not tell when it goes.
    fn namespace_is_missing(&mut self, namespace: ObjectName) {
        let known = self
            .types
            .iter_mut()
            .find(|(_, state)| state.resource.is("", "namespaces"));
        if let Some((&type_id, state)) = known
            && state.inventory.was_wrong_about(&namespace)
        {
            self.enqueue(type_id, namespace, None);
        }
    }

    fn failed(&mut self, key: &Key, failure: &Failure) -> queue::Done {
        let (type_id, name) = key;
        let error = &failure.error;
        let retry = queue::Done::Retry(error.retry_after());
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let object = name.of_kind(&state.resource.kind).to_string();
        state.inventory.failed(name, failure.side == Side::Edge);
        if error.is_unreachable() {
            self.report.failed(Subject::Side(failure.side), failure.doing, error);
            return retry;
        }
        self.side_answers(failure.side);
        let state = self.types.get_mut(type_id).expect("looked up above");
        if failure.side == Side::Edge
            && error.missing_namespace().is_some()
            && state.selector.selects(name) != Selection::None
        {
            log::debug!("waits for its namespace object={object}");
            let namespace = ObjectName::new("", &name.namespace);
            self.namespace_is_missing(namespace);
            return retry;
        }
        if error.is_conflict() {
            log::debug!("changed meanwhile, looking again object={object} error={error}");
            return retry;
        }
        if error.is_type_not_served() {
            let resource = state.resource.clone();
            self.asking(failure.side).forget(&resource);
        }
        self.report
            .failed(Subject::Thing(failure.side, object), failure.doing, error);
        if failure.side == Side::Edge && error.is_immutable() && failure.desired_hash != 0 {
            // The same request cannot succeed: wait for a change at either side instead of the clock.
            let state = self.types.get_mut(type_id).expect("looked up above");
            let again = state.inventory.settle(name, failure.desired_hash, None);
            return if again {
                queue::Done::Again
            } else {
                queue::Done::Finished
            };
        }
        if error.is_rejection() {
            // A webhook, a limit or a schema refuses it. These change without a sign, so it is tried again, rarely.
            return queue::Done::Retry(Some(REFUSED_WAIT));
        }
        retry
    }
}
