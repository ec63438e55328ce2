//! Queueing what is to be done for an object.

use std::rc::Rc;
use std::time::Duration;

use driver::queue::{Class, LONGEST_WAIT};
use kube_lite::ObjectName;

use super::{AtHand, Key, Model, Task, TypeId};
use crate::side::Side;
use crate::sync::object::Desired;

impl Model {
    /// Queues an object; what its copy is to be, if that is known.
    pub(super) fn enqueue(&mut self, type_id: TypeId, name: ObjectName, desired: Option<Rc<Desired>>) {
        if let Some(state) = self.types.get(&type_id) {
            let class = state.class(&name);
            let at_hand = desired.map(AtHand::Desired);
            self.queue_up(Key::new(type_id, Task::Object, name), class, at_hand);
        }
    }

    /// Queues a key, for the time at which it may be tried.
    pub(super) fn queue_up(&mut self, key: Key, class: Class, at_hand: Option<AtHand>) {
        match self.put_off(&key) {
            None => self.queue.add(key, class, at_hand),
            Some(wait) => self.queue.add_after(key, class, wait, self.now),
        }
    }

    /// How long a key has to wait, whatever has queued it: what somebody else keeps changing is corrected ever less
    /// often, and a status goes up no more than once in an interval. Never longer than the queue lets anything wait, which
    /// then asks again.
    pub(super) fn put_off(&self, key: &Key) -> Option<Duration> {
        let link = self.types.get(&key.type_id)?.inventory.get(&key.name)?;
        match key.task {
            Task::Object => link.correction_wait(self.now),
            // The last status of a Job is in memory only as long as the key does not wait.
            Task::Status if link.is_finished() => None,
            Task::Status => {
                let wait = link.status.as_ref()?.wait(self.settings.status_interval, self.now);
                wait.map(|wait| wait.min(LONGEST_WAIT))
            }
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
}
