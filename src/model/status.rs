//! Status on its way to the hub: noticing that it differs, and limiting how often it is written.
//!
//! The first change of an object is written at once; further ones wait until [`super::Settings::status_interval`] after
//! the last write, and then the newest is written. What somebody else keeps writing to the hub's status is overwritten
//! with increasing back-off, as with copies.

use std::rc::Rc;

use bytes::Bytes;
use driver::queue::{self, Class};
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName, ResourceType};
use tokio::time::Duration;

use super::effect::Known;
use super::inventory::Link;
use super::{AtHand, Effect, Key, Model, Task, TypeId};
use crate::plan::{Direction, StatusPath};
use crate::report::{LeftOut, Subject, Topic};
use crate::side::Side;
use crate::sync::job::Failure;
use crate::sync::meta::Object;
use crate::sync::object::Status;
use crate::sync::ownership::CopyState;
use crate::sync::status_return::{Returned, StatusJob};
use crate::sync::status_writer::{other_status_manager, status_manager};

/// Between two tries of a status whose object is not there, or is another one. A report of either object causes a try
/// before that; with polls, it may come late.
const UNTOLD_WAIT: Duration = Duration::from_secs(300);

impl Model {
    /// Writes the status of an object to the hub, if the hub does not have it. `body` is the edge object, if it is at
    /// hand.
    pub(super) fn return_status(&mut self, type_id: TypeId, name: &ObjectName, body: Option<Bytes>) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if state.plan.status.is_none() || !state.returns_status_of(name) {
            return;
        }
        let is_last = body.is_some() && state.inventory.get(name).is_some_and(Link::is_finished);
        let status = state.inventory.status(name);
        if !status.is_some_and(|status| status.wants_worker(is_last)) {
            return;
        }
        let key = Key::new(type_id, Task::Status, name.clone());
        self.queue_up(key, Class::Normal, body.map(AtHand::Edge));
    }

    /// What the hub has reported may show that the syncer of another sync target has written over a status. Both know that,
    /// so one of them gives way without asking: the one whose UID is the greater.
    pub(super) fn meet_rival(&mut self, type_id: TypeId, name: &ObjectName, object: &[u8]) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let status = state.inventory.get(name).and_then(|link| link.status.as_ref());
        // What is at the hub in upsync is our own.
        if state.plan.direction == Direction::Up || !status.is_some_and(|status| status.is_overwritten()) {
            return;
        }
        let we = &self.settings.policy.sync_target;
        let Ok(Some(other)) = other_status_manager(object, we) else {
            return;
        };
        let gives_way = other < status_manager(&we.uid);
        if let Some(status) = state.inventory.status(name) {
            if gives_way {
                status.gives_way(self.now, self.chance.f64());
            } else {
                status.meets_rival(self.now);
            }
        }
        let resource = &state.plan.at_hub;
        let object = name.of_kind(&resource.kind).to_string();
        self.report.has_rival(&resource.qualified(), &object, &other, gives_way);
    }

    /// The edge has reported a whole object at this version. If it `is_same`, it is the one that it was before, and not
    /// another one of its name, which begins without a status.
    pub(super) fn edge_status_seen(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        version: u64,
        object: &Object,
        is_same: bool,
    ) {
        let Some(state) = self.types.get_mut(&type_id).filter(|state| state.plan.status.is_some()) else {
            return;
        };
        let hash = Status::hash_of(object);
        let had_one = is_same && state.inventory.status(name).is_some_and(|status| status.is_at_edge());
        state.status_seen(name, Side::Edge, version, || Some(hash));
        let what = if hash != 0 || !state.returns_status_of(name) {
            return;
        } else if Status::is_no_object(object) {
            LeftOut::StatusOfNoObject
        } else if had_one {
            LeftOut::StatusRemoved
        } else {
            return;
        };
        if let Some((_, at_edge)) = state.hub_and_edge(name) {
            let resource = at_edge.resource.qualified();
            self.report
                .leaves_out(Side::Edge, resource, &at_edge.for_people(), what);
        }
    }

    /// The hub has gone back to older versions: statuses that were written to it since are not there. Its objects do
    /// not show that if they are as they were when last reported.
    pub(super) fn statuses_may_be_lost(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.inventory.drop_written_statuses();
        let due: Vec<ObjectName> = state.status_due(None).cloned().collect();
        for name in due {
            self.return_status(type_id, &name, None);
        }
    }

    pub(super) fn status_job(&mut self, key: &Key, at_hand: Option<AtHand>) -> Option<StatusJob> {
        let body = match at_hand {
            Some(AtHand::Edge(object)) => Some(object),
            _ => None,
        };
        let we = &self.settings.policy.sync_target;
        let state = self.types.get_mut(&key.type_id)?;
        let path = state.plan.status.filter(|_| state.returns_status_of(&key.name))?;
        let (at_hub, at_edge) = state.hub_and_edge(&key.name)?;
        // What is left of a finished Job is its last status, if that is known: it cannot be read any more.
        let body = match body {
            None if state.inventory.get(&key.name)?.is_finished() => Some(self.finished.last(&at_edge, we)?),
            body => body,
        };
        let status = state.inventory.status(&key.name).filter(|status| status.is_due())?;
        status.write_begins(self.now, || self.chance.f64());
        let hub_status = status.hub;
        let record = state.inventory.get(&key.name)?;
        let edge_reported = match state.plan.direction {
            Direction::Down => record.seen.version,
            Direction::Up => record.origin_version,
        };
        Some(StatusJob {
            at_edge,
            at_hub,
            path,
            direction: state.plan.direction,
            body,
            edge_reported,
            hub_status,
            policy: Rc::clone(&self.settings.policy),
        })
    }

    pub(super) fn status_returned(&mut self, key: &Key, result: Result<Returned, Failure>) -> queue::Done<Side> {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        if let (Err(failure), Some(status)) = (&result, state.inventory.status(&key.name)) {
            status.write_failed(failure.side, self.now);
        }
        match result {
            Ok(returned) => self.status_has_gone_up(key, returned),
            Err(Failure { side, doing, error, .. }) if error.is_unreachable() => {
                self.side_is_silent(side, doing, &error);
                queue::Done::Unreachable(side)
            }
            Err(Failure { side, doing, error, .. }) => {
                let resource = state.plan.at_hub.clone();
                let object = state.hub_and_edge(&key.name).map(|(at_hub, _)| at_hub.for_people());
                if side == Side::Hub && error.is_type_not_served() {
                    // It may have lost its subresource.
                    self.void_discovery_of(side, &resource);
                }
                if matches!(error, Error::Outdated { .. }) {
                    // A list finds out more, and logs it.
                    log_line!(
                        Debug,
                        ObjectOutdated,
                        "a read has shown an older status than before",
                        side = side.word(),
                        object = key.name.of_kind(&resource.kind),
                        error = error
                    );
                    self.type_is_unverified(key.type_id, side);
                } else if !error.is_conflict() {
                    // One line is for all of the type: it names the one with which it begins.
                    let doing = format!("{doing} of {}", object.unwrap_or_default());
                    self.fails(status_of(side, &resource), &doing, &error);
                }
                queue::Done::Retry(error.retry_after())
            }
        }
    }

    /// A worker has written a status to the hub, or found that there is nothing to write.
    fn status_has_gone_up(&mut self, key: &Key, returned: Returned) -> queue::Done<Side> {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        let (path, resource) = (state.plan.status, state.plan.at_hub.clone());
        let mut was_ignored = false;
        if let Some(status) = state.inventory.status(&key.name) {
            was_ignored = path == Some(StatusPath::Main) && status.was_ignored(returned);
            status.write_ended(returned, self.now);
        }
        if was_ignored {
            self.void_discovery_of(Side::Hub, &resource);
        }
        if matches!(
            returned,
            Returned::Written { .. } | Returned::Equal(_) | Returned::Would { .. }
        ) {
            self.statuses_work(key.type_id, Side::Edge);
        }
        match returned {
            Returned::NotOurs => self.was_wrong_about(key.type_id, &key.name),
            Returned::NoSubresource => {
                self.void_discovery_of(Side::Hub, &resource);
                return queue::Done::Retry(None);
            }
            Returned::Gone | Returned::Another => return queue::Done::Later(UNTOLD_WAIT),
            Returned::Written { version, .. } => {
                self.status_is_written(key, version);
                let object = key.name.of_kind(&resource.kind).to_string();
                log_line!(Debug, StatusReturned, "status returned", side = "hub", object = object);
                self.statuses_work(key.type_id, Side::Hub);
                self.report.wrote(Side::Hub, "status");
            }
            Returned::Equal(_) | Returned::Would { .. } => {}
        }
        queue::Done::Finished
    }
}

impl Model {
    /// The hub has answered a status with this version of its object, which the source that reads it will report.
    fn status_is_written(&mut self, key: &Key, version: u64) {
        let Some(state) = self.types.get(&key.type_id) else {
            return;
        };
        let Some((origin, copy)) = state.both(&key.name) else {
            return;
        };
        let (source, at_hub) = match state.plan.direction {
            Direction::Down => (state.origin_source(&key.name), origin),
            Direction::Up => (state.copy_source, copy),
        };
        if let Some(id) = source {
            let effect = Effect::Known(id, at_hub.name, Known::Written(version));
            self.effects.push(effect);
        }
    }

    /// A status of the type was written. There is one line for all, so it ends when none of them fails any more: the
    /// failure of one must not be logged again each time that another one is written.
    fn statuses_work(&mut self, type_id: TypeId, side: Side) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let subject = status_of(side, &state.plan.at_hub);
        if self.report.is_failing(&subject) && !state.inventory.any_status(|status| status.fails_at(side)) {
            self.report.works(&subject);
        }
    }

    /// What is gone has no status that could still fail.
    pub(super) fn clear_status_failures(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id).filter(|_| self.report.failing() > 0) else {
            return;
        };
        if state.status_due(None).next().is_none() {
            self.returns_no_status(type_id);
        }
    }

    /// The status of a type is not returned any more, so that none fails.
    pub(super) fn returns_no_status(&mut self, type_id: TypeId) {
        if let Some(state) = self.types.get(&type_id) {
            for side in [Side::Hub, Side::Edge] {
                self.report.clear(&status_of(side, &state.plan.at_hub));
            }
        }
    }
}

/// One line for each type: what is wrong with one status, mostly a permission, is wrong with all.
pub(super) fn status_of(side: Side, resource: &ResourceType) -> Subject {
    Subject::Thing(side, Topic::Status, resource.qualified())
}

impl super::TypeState {
    /// Names of the objects whose status is to be written to the hub, in order, from the given one on.
    pub(super) fn status_due(&self, from: Option<&ObjectName>) -> impl Iterator<Item = &ObjectName> + use<'_> {
        let is_due = |link: &Link| link.status.as_ref().is_some_and(|status| status.is_due());
        let due = self.inventory.in_order(is_due, from);
        due.filter(|name| self.plan.status.is_some() && self.returns_status_of(name))
    }

    /// True if the hub object is to have the edge object's status.
    fn returns_status_of(&self, name: &ObjectName) -> bool {
        let Some(record) = self.inventory.get(name) else {
            return false;
        };
        let copy = record.seen.copy;
        let ours = match self.plan.direction {
            Direction::Down if record.is_finished() => true,
            Direction::Down => copy.state == CopyState::Ours || copy.state == CopyState::Foreign && copy.create_only,
            Direction::Up => copy.state == CopyState::Ours,
        };
        ours && record.wanted != 0 && self.selection(name).is_whole()
    }
}
