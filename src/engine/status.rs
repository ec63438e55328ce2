//! Status on its way to the hub: noticing that it differs, and keeping to a pace.
//!
//! The first change of an object goes at once; further ones wait until [`super::Setup::status_interval`] after the last
//! write, and then the newest goes. What somebody else keeps writing to the hub's status is written over ever more
//! rarely, as with copies.

use std::rc::Rc;

use bytes::Bytes;
use tokio::time::{Duration, Instant};

use super::{Engine, Key, Task, TypeId, drift};
use crate::cluster::{Error, ObjectName, ResourceType, Side};
use crate::plan::{Direction, Selection, StatusPath};
use crate::queue::{self, Class};
use crate::report::Subject;
use crate::sync::job::Failure;
use crate::sync::ownership::CopyState;
use crate::sync::status_return::{Returned, StatusJob};

/// Between two tries of a status whose object is not there, or is another one. Whoever tells of either object brings it back
/// before that; who polls may tell late.
const UNTOLD_WAIT: Duration = Duration::from_secs(300);

/// What is known of the status of one object. Hashes are 0 where there is no status.
#[derive(Debug, Default)]
pub(super) struct StatusRecord {
    /// At the edge; absent if not known.
    edge: Option<u64>,
    /// At the hub; absent if not known.
    hub: Option<u64>,
    /// The resource version of the hub object that `hub` was seen in.
    hub_version: u64,
    written: Option<Written>,
    /// When that was, or when the hub refused one.
    last: Option<Instant>,
    /// A worker has it.
    under_way: bool,
    /// The edge has told of it since a worker took it, so that the worker may know less.
    told: bool,
    /// The side at which the last try failed.
    failed_at: Option<Side>,
}

/// Our last write.
#[derive(Debug)]
struct Written {
    /// What the edge had.
    status: u64,
    /// The version of the hub object then.
    version: u64,
    /// What the hub made of it: a schema may leave out parts.
    kept: Option<u64>,
}

impl StatusRecord {
    /// The edge has told of the object; `None` if it told of its metadata alone.
    pub(super) fn edge_tells(&mut self, status: Option<u64>) {
        self.edge = status;
        self.told = true;
    }

    /// A worker takes it.
    fn write_begins(&mut self) {
        self.told = false;
        self.under_way = true;
    }

    /// The hub has told of the whole object.
    pub(super) fn hub_tells(&mut self, status: u64, version: u64) {
        if version < self.hub_version {
            // Restored from a backup: what was written to it is no longer there.
            self.written = None;
        }
        self.hub = Some(status);
        self.hub_version = version;
        if let Some(written) = &mut self.written
            && written.version == version
        {
            written.kept = Some(status);
        }
    }

    fn write_failed(&mut self, at: Side, now: Instant) {
        self.under_way = false;
        self.failed_at = Some(at);
        self.last = Some(now);
    }

    fn write_ended(&mut self, returned: Returned, now: Instant) {
        self.under_way = false;
        self.failed_at = None;
        match returned {
            Returned::Written { status, version } => {
                self.edge = if self.told { self.edge } else { Some(status) };
                self.last = Some(now);
                let kept = self.hub.filter(|_| self.hub_version == version);
                self.written = Some(Written { status, version, kept });
            }
            Returned::Equal(status) if !self.told => self.edge = Some(status),
            Returned::Equal(_) | Returned::Gone | Returned::NotOurs | Returned::Another | Returned::NoSubresource => {}
        }
    }

    /// True if a write has changed nothing at the hub: a type that has got a subresource for its status since ignores what
    /// is written in the object itself.
    fn was_ignored(&self, returned: Returned) -> bool {
        matches!(returned, Returned::Written { version, .. } if version != 0 && version == self.hub_version)
    }

    /// It is written elsewhere from now on.
    pub(super) fn forget_written(&mut self) {
        self.written = None;
    }

    /// True if there is something to write and nobody writes it: what comes meanwhile is looked at when the write ends, so
    /// that it keeps to the pace. The `last` one, of a copy that is gone, cannot be looked at any more, and is kept at hand.
    fn wants_worker(&self, last: bool) -> bool {
        self.is_due() && (last || !self.under_way)
    }

    /// True if the hub does not have what the edge has, or either is not known.
    fn is_due(&self) -> bool {
        let Some(edge) = self.edge else { return true };
        if edge == 0 || self.hub == Some(edge) {
            return false;
        }
        !self.written.as_ref().is_some_and(|written| {
            let kept = self.hub_version <= written.version || written.kept.is_some() && written.kept == self.hub;
            written.status == edge && kept
        })
    }

    /// True if the hub's status was ours and somebody else has changed it.
    fn is_contested(&self) -> bool {
        let ours = |written: &Written| Some(written.status) == self.edge && self.hub_version > written.version;
        self.written.as_ref().is_some_and(ours) && self.is_due()
    }

    /// True if it does not get to the hub because of that side.
    fn fails_at(&self, side: Side) -> bool {
        self.failed_at == Some(side) && self.is_due()
    }

    /// How long the next write has to wait.
    fn wait(&self, interval: Duration, now: Instant) -> Option<Duration> {
        let next = self.last? + interval;
        (next > now).then(|| next - now)
    }
}

impl Engine {
    /// Brings the status of an object to the hub, if the hub does not have it. `body` is the edge object, if it is at
    /// hand.
    pub(super) fn return_status(&mut self, type_id: TypeId, name: &ObjectName, body: Option<Bytes>) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if state.plan.status.is_none() || !state.returns_status_of(name) {
            return;
        }
        let is_last = body.is_some() && state.inventory.get(name).is_some_and(|record| record.finished);
        let Some(status) = state
            .inventory
            .status(name)
            .filter(|status| status.wants_worker(is_last))
        else {
            return;
        };
        let now = Instant::now();
        let (wait, contested) = (status.wait(self.setup.status_interval, now), status.is_contested());
        let key = Key::new(type_id, Task::Status, name.clone());
        let wait = if is_last {
            None
        } else if contested {
            let changes = self.fights.count(&key, now);
            wait.max(drift::wait(changes, fastrand::f64()))
        } else {
            wait
        };
        match wait {
            None => self.queue.add(key, Class::Normal, body),
            Some(wait) => self.queue.add_after(key, Class::Normal, wait, now),
        }
    }

    /// The hub has gone back to older versions: statuses that were written to it since are not there. Its objects tell
    /// nothing of that where they are what they were when they were last told of.
    pub(super) fn statuses_may_be_lost(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.inventory.forget_written_statuses();
        for name in state.status_due(None) {
            self.return_status(type_id, &name, None);
        }
    }

    pub(super) fn status_job(&mut self, key: &Key, body: Option<Bytes>) -> Option<StatusJob> {
        let state = self.types.get_mut(&key.type_id)?;
        let path = state.plan.status.filter(|_| state.returns_status_of(&key.name))?;
        let at_hub = state.at_hub(&key.name)?;
        // What is left of a finished Job is its last status, if that is at hand: it cannot be read any more.
        if body.is_none() && state.inventory.get(&key.name)?.finished {
            return None;
        }
        let status = state.inventory.status(&key.name).filter(|status| status.is_due())?;
        status.write_begins();
        let hub_status = status.hub;
        let record = state.inventory.get(&key.name)?;
        let edge_told = match state.plan.direction {
            Direction::Down => record.seen.version,
            Direction::Up => record.origin_version,
        };
        Some(StatusJob {
            at_edge: state.at_edge(&key.name),
            at_hub,
            path,
            direction: state.plan.direction,
            body,
            edge_told,
            hub_status,
            policy: Rc::clone(&self.setup.policy),
        })
    }

    pub(super) fn status_returned(&mut self, key: &Key, result: Result<Returned, Failure>) -> queue::Done {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        if let (Err(failure), Some(status)) = (&result, state.inventory.status(&key.name)) {
            status.write_failed(failure.side, Instant::now());
        }
        match result {
            Ok(returned) => self.status_has_gone_up(key, returned),
            Err(Failure { side, doing, error, .. }) if error.is_unreachable() => {
                self.side_is_silent(side, doing, &error);
                queue::Done::Unreachable(side)
            }
            Err(Failure { side, doing, error, .. }) => {
                let resource = state.plan.at_hub.clone();
                if side == Side::Hub && error.is_type_not_served() {
                    // It may have lost its subresource.
                    self.forget(side, &resource);
                }
                if matches!(error, Error::Outdated { .. }) {
                    // A list tells more, to people too.
                    log::debug!(
                        "{doing} of {} gave something old name={:?} error={error}",
                        resource.qualified(),
                        key.name
                    );
                    self.doubt(key.type_id, side);
                } else if !error.is_conflict() {
                    self.fails(status_of(side, &resource), doing, &error);
                }
                queue::Done::Retry(error.retry_after())
            }
        }
    }

    /// A worker has brought a status to the hub, or found that there is nothing to bring.
    fn status_has_gone_up(&mut self, key: &Key, returned: Returned) -> queue::Done {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        let (path, resource) = (state.plan.status, state.plan.at_hub.clone());
        let mut was_ignored = false;
        if let Some(status) = state.inventory.status(&key.name) {
            was_ignored = path == Some(StatusPath::Main) && status.was_ignored(returned);
            status.write_ended(returned, Instant::now());
        }
        let is_taken = returned == Returned::NotOurs && state.inventory.was_wrong_about(&key.name);
        if was_ignored {
            self.forget(Side::Hub, &resource);
        }
        if matches!(returned, Returned::Written { .. } | Returned::Equal(_)) {
            self.statuses_work(key.type_id, Side::Edge);
        }
        match returned {
            Returned::NotOurs if is_taken => self.enqueue(key.type_id, key.name.clone(), None),
            Returned::NoSubresource => {
                self.forget(Side::Hub, &resource);
                return queue::Done::Retry(None);
            }
            Returned::Gone | Returned::Another => return queue::Done::Later(UNTOLD_WAIT),
            Returned::Written { .. } => {
                let object = key.name.of_kind(&resource.kind).to_string();
                log::debug!("status returned object={object}");
                self.statuses_work(key.type_id, Side::Hub);
                self.report.wrote(Side::Hub, "status");
            }
            Returned::Equal(_) | Returned::NotOurs => {}
        }
        queue::Done::Finished
    }
}

impl Engine {
    /// A status of the type has got through. There is one line for all, so it ends when none of them fails any more: what
    /// one of them meets must not be told anew each time that another one gets through.
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
    pub(super) fn forget_status_failures(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id).filter(|_| self.report.failing() > 0) else {
            return;
        };
        if state.status_due(None).is_empty() {
            for side in [Side::Hub, Side::Edge] {
                self.report.forget(&status_of(side, &state.plan.at_hub));
            }
        }
    }
}

/// One line a type: what is wrong with one status, a permission mostly, is wrong with all.
pub(super) fn status_of(side: Side, resource: &ResourceType) -> Subject {
    Subject::Thing(side, format!("the status of {}", resource.qualified()))
}

impl super::TypeState {
    /// Names of the objects whose status is to go to the hub, in order, from the given one on.
    pub(super) fn status_due(&self, from: Option<&ObjectName>) -> Vec<ObjectName> {
        let is_due = |record: &super::inventory::Record| record.status.as_ref().is_some_and(|status| status.is_due());
        let mut names = self.inventory.names(is_due, from);
        names.retain(|name| self.plan.status.is_some() && self.returns_status_of(name));
        names
    }

    /// True if the hub object is to have the edge object's status (spec sections 4 and 5).
    fn returns_status_of(&self, name: &ObjectName) -> bool {
        let Some(record) = self.inventory.get(name) else {
            return false;
        };
        let copy = record.seen.copy;
        let ours = match self.plan.direction {
            Direction::Down if record.finished => true,
            Direction::Down => copy.state == CopyState::Ours || copy.state == CopyState::Foreign && copy.hands_off,
            Direction::Up => copy.state == CopyState::Ours,
        };
        ours && record.wanted != 0 && self.selection(name) == Selection::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(status: u64, version: u64) -> Returned {
        Returned::Written { status, version }
    }

    #[test]
    fn a_status_goes_up_when_it_differs_and_only_then() {
        let now = Instant::now();
        let mut record = StatusRecord::default();
        assert!(record.is_due(), "nothing is known");
        record.edge_tells(Some(0));
        assert!(!record.is_due(), "the edge has none");
        record.hub_tells(5, 1);
        record.edge_tells(Some(5));
        assert!(!record.is_due(), "equal");
        record.edge_tells(Some(6));
        assert!(record.is_due() && !record.is_contested());
        record.write_ended(written(6, 2), now);
        assert!(!record.is_due(), "written, though the hub has not told of it yet");
        record.hub_tells(6, 2);
        assert!(!record.is_due());
        record.hub_tells(7, 3);
        assert!(record.is_due() && record.is_contested(), "somebody else wrote it");
        record.edge_tells(None);
        assert!(record.is_due(), "it has to be read");
    }

    #[test]
    fn what_a_schema_leaves_out_is_not_written_again() {
        let now = Instant::now();
        for told_first in [true, false] {
            let mut record = StatusRecord::default();
            record.edge_tells(Some(6));
            record.hub_tells(0, 1);
            if told_first {
                record.hub_tells(60, 2);
            }
            record.write_ended(written(6, 2), now);
            if !told_first {
                record.hub_tells(60, 2);
            }
            assert!(!record.is_due());
            record.hub_tells(60, 3);
            assert!(!record.is_due(), "an edit of something else");
            record.hub_tells(61, 4);
            assert!(record.is_due());
        }
    }

    #[test]
    fn what_the_edge_tells_while_a_write_is_under_way_is_not_forgotten() {
        let mut record = StatusRecord::default();
        record.edge_tells(Some(6));
        record.write_begins();
        record.edge_tells(Some(7));
        assert!(!record.wants_worker(false), "the pace begins when the write ends");
        let now = Instant::now();
        record.write_ended(written(6, 2), now);
        assert!(record.wants_worker(false));
        assert!(record.wait(Duration::from_secs(1), now).is_some());
    }

    #[test]
    fn a_refused_status_keeps_to_the_pace_as_well() {
        let now = Instant::now();
        let mut record = StatusRecord::default();
        record.edge_tells(Some(6));
        record.write_begins();
        record.write_failed(Side::Hub, now);
        assert!(record.wants_worker(false));
        assert!(record.wait(Duration::from_secs(1), now).is_some());
    }

    #[test]
    fn a_status_fails_until_it_gets_through_or_is_not_due_any_more() {
        let now = Instant::now();
        let mut record = StatusRecord::default();
        record.edge_tells(Some(6));
        record.write_failed(Side::Hub, now);
        assert!(record.fails_at(Side::Hub) && !record.fails_at(Side::Edge));
        record.edge_tells(Some(0));
        assert!(!record.fails_at(Side::Hub), "there is nothing to bring");
        record.edge_tells(Some(7));
        record.write_ended(written(7, 2), now);
        assert!(!record.fails_at(Side::Hub));
    }

    #[test]
    fn a_restored_hub_gets_its_status_again() {
        let mut record = StatusRecord::default();
        record.edge_tells(Some(6));
        record.hub_tells(0, 100);
        record.write_ended(written(6, 101), Instant::now());
        record.hub_tells(6, 101);
        record.hub_tells(0, 50);
        assert!(record.is_due());
    }

    #[test]
    fn a_second_change_waits_for_the_rest_of_the_interval() {
        let now = Instant::now();
        let interval = Duration::from_secs(1);
        let mut record = StatusRecord::default();
        assert_eq!(record.wait(interval, now), None);
        record.write_ended(written(6, 2), now);
        assert_eq!(record.wait(interval, now + interval / 4), Some(interval * 3 / 4));
        assert_eq!(record.wait(interval, now + interval), None);
    }
}
