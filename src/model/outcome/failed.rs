//! What failures of workers mean.

use driver::queue;
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use crate::model::inventory::LeftOpen;
use crate::model::timers::LASTING;
use crate::model::{Key, Model};
use crate::plan::{Direction, Selection};
use crate::report::Subject;
use crate::side::Side;
use crate::sync::job::Failure;

impl Model {
    pub(super) fn failed(&mut self, key: &Key, failure: &Failure) -> queue::Done<Side> {
        let Key { type_id, name, .. } = key;
        let Failure { side, error, .. } = failure;
        let retry = queue::Done::Retry(error.retry_after());
        let Some(state) = self.types.get_mut(type_id) else {
            return queue::Done::Finished;
        };
        let at_copy = *side == state.plan.direction.copy();
        state.inventory.failed(name, what_is_left_open(at_copy, error));
        if state.plan.direction == Direction::Up && state.inventory.get(name).is_none() {
            // It was deleted meanwhile, and may be the last one for whose sake a namespace was kept.
            self.upsync_left_a_namespace();
        }
        let Some(state) = self.types.get(type_id) else {
            return queue::Done::Finished;
        };
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
        // Work ends at its first failure, so an object fails on one side at a time.
        let other = Direction::from(*side).copy();
        let is_selected = state.selection(name) != Selection::None;
        if at_copy && is_selected && error.missing_namespace().is_some() {
            self.report.clear(&Subject::object(other, elsewhere.for_people()));
            self.waits_for_namespace(key, *side, &object);
            return retry;
        }
        if error.is_type_not_served() {
            self.void_discovery_of(*side, &here.resource);
        }
        // A type that is gone is reported once, and not for each of its objects.
        if error.is_passing() && self.queue.failures(key) < LASTING {
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
        if matches!(error, Error::Outdated { .. }) {
            self.type_is_unverified(*type_id, *side);
        }
        self.report.clear(&Subject::object(other, elsewhere.for_people()));
        self.fails(Subject::object(*side, object.clone()), failure.doing, error);
        self.event_of_failure(key, *side, object);
        retry
    }

    /// A copy cannot be created because its namespace is missing.
    fn waits_for_namespace(&mut self, key: &Key, side: Side, object: &str) {
        log_line!(
            Debug,
            NamespaceAwaited,
            "waits for its namespace",
            side = side.word(),
            object = object
        );
        let namespace = key.name.namespace();
        let state = self.types.get(&key.type_id);
        let subject = Subject::object(side, object.to_owned());
        if let Some(why) = state.and_then(|state| state.refuses_namespace(&key.name)) {
            self.report.namespace_is_refused(&subject, namespace, &why);
        } else if side == Side::Edge
            && let Some(place) = self.selecting.wanted.without_namespace(namespace)
        {
            self.report
                .without_namespace(&subject, namespace, &place.config, &place.field);
        } else {
            // It will be there soon, whatever has failed before.
            self.report.clear(&subject);
        }
        self.namespace_is_missing(side, namespace);
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
            .iter()
            .find(|(_, state)| state.plan.direction == Direction::Down && state.plan.at_edge.is("", "namespaces"));
        if let Some((&type_id, _)) = known {
            self.was_wrong_about(type_id, &namespace);
        }
    }
}

/// What a failed try leaves open: a request to the side of the copy may have had an effect, unless that side refused it.
fn what_is_left_open(at_copy: bool, error: &Error) -> LeftOpen {
    if !at_copy {
        LeftOpen::Nothing
    } else if error.is_refusal() {
        LeftOpen::Refused
    } else {
        LeftOpen::Unsure
    }
}
