//! The entries of the queue, and the moves between their states.

use tokio::time::Instant;

use super::lanes::{Position, Turn};
use super::sides::Sides;
use super::{Class, Payload, Queue, QueueKey};

#[derive(Debug)]
pub(super) struct Entry<S, P> {
    pub(super) state: State,
    pub(super) class: Class,
    /// What the key needs, and what it was found to need.
    pub(super) needs: Sides<S>,
    pub(super) failures: u32,
    /// It came back by a refill, and could be taken since then.
    pub(super) refilled: bool,
    pub(super) payload: Option<P>,
    /// Since when there is something to do, if that is known.
    pub(super) since: Option<Instant>,
}

/// Numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In `ready` under this number, for this reason.
    Ready(u64, Turn),
    /// In `waiting` under this time and number.
    Waiting {
        due: Instant,
        number: u64,
        /// A server has asked for no request before this.
        not_before: Option<Instant>,
    },
    /// With a worker that began at this number; `again` if it was added since.
    Running { number: u64, again: bool },
}

impl<K: QueueKey> Queue<K> {
    pub(super) fn entry(&mut self, key: &K) -> &mut Entry<K::Side, K::Payload> {
        self.entries.get_mut(key).expect("the caller knows that it is there")
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// A worker gives a key back: when it began, and whether the key was added since. `None` if no worker had it.
    pub(super) fn end(&mut self, key: &K) -> Option<(u64, bool)> {
        let entry = self.entries.get_mut(key)?;
        let State::Running { number, again } = entry.state else {
            return None;
        };
        self.running -= 1;
        self.refilled -= usize::from(std::mem::take(&mut entry.refilled));
        Some((number, again))
    }

    /// Makes an entry that is nowhere yet: the caller makes it ready or lets it wait.
    pub(super) fn insert(&mut self, key: &K, class: Class, needs: Sides<K::Side>, failures: u32) {
        let entry = Entry {
            state: State::Ready(self.number(), Turn::News),
            class,
            needs,
            failures,
            refilled: false,
            payload: None,
            since: self.now,
        };
        self.entries.insert(key.clone(), entry);
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<Entry<K::Side, K::Payload>> {
        self.leave(key);
        self.set_payload(key, None);
        let entry = self.entries.remove(key)?;
        self.refilled -= usize::from(entry.refilled);
        Some(entry)
    }

    /// Takes a key out of `ready` or `waiting`.
    pub(super) fn leave(&mut self, key: &K) {
        let Entry {
            state, class, needs, ..
        } = *self.entry(key);
        match state {
            State::Ready(number, turn) => {
                self.ready.remove(Position {
                    class,
                    turn,
                    needs,
                    number,
                });
            }
            State::Waiting { due, number, .. } => {
                self.waiting[class as usize].remove(&(due, number));
            }
            State::Running { .. } => {}
        }
    }

    pub(super) fn make_ready(&mut self, key: K, turn: Turn) {
        let number = self.number();
        let entry = self.entry(&key);
        entry.state = State::Ready(number, turn);
        let (class, needs) = (entry.class, entry.needs);
        self.drop_payload_that_waits(&key);
        let place = Position {
            class,
            turn,
            needs,
            number,
        };
        self.ready.put(place, key);
    }

    pub(super) fn make_wait(&mut self, key: K, due: Instant, not_before: Option<Instant>) {
        let number = self.number();
        self.set_payload(&key, None);
        let entry = self.entry(&key);
        entry.state = State::Waiting {
            due,
            number,
            not_before,
        };
        let class = entry.class;
        self.waiting[class as usize].insert((due, number), key);
    }

    /// Ends the wait of a key, as far as its server allows.
    pub(super) fn hasten(&mut self, key: K) {
        self.leave(&key);
        match self.entry(&key).state {
            State::Waiting {
                not_before: Some(at), ..
            } => self.make_wait(key, at, Some(at)),
            _ => self.make_ready(key, Turn::News),
        }
    }

    /// Moves a key to another class, behind the keys there.
    pub(super) fn set_class(&mut self, key: &K, class: Class) {
        if self.entry(key).class == class {
            return;
        }
        self.leave(key);
        let entry = self.entry(key);
        entry.class = class;
        match entry.state {
            State::Ready(_, turn) => self.make_ready(key.clone(), turn),
            State::Waiting { due, not_before, .. } => self.make_wait(key.clone(), due, not_before),
            State::Running { .. } => {}
        }
    }

    /// Moves the keys whose wait is over to `ready`.
    pub(super) fn wake(&mut self, now: Instant) {
        for class in Class::ALL {
            while let Some(first) = self.waiting[class as usize].first_entry()
                && first.key().0 <= now
            {
                let key = first.remove();
                let turn = Turn::after(self.entry(&key).failures);
                self.make_ready(key, turn);
            }
        }
    }

    /// Sets the payload; returns the old one.
    pub(super) fn set_payload(&mut self, key: &K, payload: Option<K::Payload>) -> Option<K::Payload> {
        self.payload_bytes += payload.as_ref().map_or(0, Payload::bytes);
        let old = std::mem::replace(&mut self.entry(key).payload, payload);
        self.payload_bytes -= old.as_ref().map_or(0, Payload::bytes);
        old
    }

    pub(super) fn drop_payload_that_waits(&mut self, key: &K) {
        let needs = self.entry(key).needs;
        if !self.gates.all_up(needs) {
            self.set_payload(key, None);
        }
    }

    /// A side has gone down: what is ready now waits for it.
    pub(super) fn park(&mut self) {
        for key in self.ready.keys(|needs| !self.gates.all_up(needs)) {
            let entry = self.entries.get_mut(key).expect("ready keys have an entry");
            let payload = entry.payload.take();
            self.payload_bytes -= payload.as_ref().map_or(0, Payload::bytes);
            self.refilled -= usize::from(std::mem::take(&mut entry.refilled));
        }
    }
}
