//! The retry queue: keys that wait for a worker, and when.
//!
//! Promises:
//! - A key has one entry, however often it is added.
//! - A key is never taken twice at once. Adding it while a worker has it makes it ready again when that worker is done.
//! - Keys of an earlier [`Class`] go before those of a later one; within each class, first come first served.
//! - A failed key waits an exponentially growing, jittered time; success forgets its failures. A key that is added
//!   again while it waits becomes ready at once, because something about it has changed, but its failures count on.
//! - The payload (an object's body at hand, so that it need not be read again) is a hint: it is dropped whenever the
//!   key has to wait, so that what waits costs a key and not a body.
//!
//! Plain data: no clock, no I/O. Times and jitter come in from the caller.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

/// The wait after the first failure. Doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(800);
/// The longest wait that a server's `Retry-After` is believed for.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What became of a key that a worker had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// In order: its failures are forgotten.
    Finished,
    /// Failed: again after its back-off, and not before the given time if the server asked for one.
    Retry(Option<Duration>),
    /// Again at once, with fresh input (a precondition failed because something changed).
    Again,
}

/// Which keys go before which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// What others need before they can be: namespaces and CRDs.
    First,
    /// All else.
    Normal,
    /// What takes others along when it goes: namespaces and CRDs to be deleted.
    Last,
}

struct Entry {
    state: State,
    class: Class,
    failures: u32,
    payload: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// In `ready`.
    Ready,
    /// In `waiting` under this number; an older number there is stale.
    Waiting(u64),
    /// With a worker.
    Running,
    /// With a worker, and added again since.
    RunningAgain,
}

/// See the module's promises.
pub struct Queue<K> {
    entries: HashMap<K, Entry>,
    /// By class. Every key here is in `entries` with state `Ready`.
    ready: [VecDeque<K>; 3],
    /// By due time. Stale if the entry's state is not `Waiting` with the same number.
    waiting: BinaryHeap<Reverse<(Instant, u64, K)>>,
    next_number: u64,
    payload_bytes: usize,
}

impl<K: Clone + Eq + Hash + Ord> Default for Queue<K> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            ready: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            waiting: BinaryHeap::new(),
            next_number: 0,
            payload_bytes: 0,
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Makes a key ready. A payload replaces an older one; without one, the worker reads the object itself.
    pub fn add(&mut self, key: K, class: Class, payload: Option<Bytes>) {
        self.payload_bytes += payload.as_ref().map_or(0, Bytes::len);
        let Some(entry) = self.entries.get_mut(&key) else {
            let entry = Entry {
                state: State::Ready,
                class,
                failures: 0,
                payload,
            };
            self.entries.insert(key.clone(), entry);
            self.ready[class as usize].push_back(key);
            return;
        };
        self.payload_bytes -= entry.payload.as_ref().map_or(0, Bytes::len);
        entry.payload = payload;
        match entry.state {
            State::Ready if entry.class == class => return,
            State::Ready => {
                let old = entry.class as usize;
                self.ready[old].retain(|ready| *ready != key);
                self.ready[class as usize].push_back(key);
            }
            State::Running => entry.state = State::RunningAgain,
            State::RunningAgain => {}
            State::Waiting(_) => {
                entry.state = State::Ready;
                self.ready[class as usize].push_back(key);
            }
        }
        entry.class = class;
    }

    /// Makes a key ready after `wait`. One that is in the queue already keeps its time.
    pub fn add_after(&mut self, key: K, class: Class, wait: Duration, now: Instant) {
        if self.entries.contains_key(&key) {
            return;
        }
        let entry = Entry {
            state: State::Waiting(self.next_number),
            class,
            failures: 0,
            payload: None,
        };
        self.entries.insert(key.clone(), entry);
        self.waiting.push(Reverse((now + wait, self.next_number, key)));
        self.next_number += 1;
    }

    /// Takes the next key that is ready, up to class `last`, with its payload. The caller gives it back with [`Queue::done`].
    ///
    /// # Panics
    /// Never, as long as every key in `ready` has an entry.
    pub fn take(&mut self, now: Instant, last: Class) -> Option<(K, Option<Bytes>)> {
        self.wake(now);
        let classes = self.ready.iter_mut().take(last as usize + 1);
        let key = classes.into_iter().find_map(VecDeque::pop_front)?;
        let entry = self.entries.get_mut(&key).expect("ready keys have an entry");
        entry.state = State::Running;
        let payload = entry.payload.take();
        self.payload_bytes -= payload.as_ref().map_or(0, Bytes::len);
        Some((key, payload))
    }

    /// Gives back a taken key. `jitter` is in 0..1. Returns the wait, if there is one.
    ///
    /// # Panics
    /// If the key was not taken.
    pub fn done(&mut self, key: &K, done: Done, now: Instant, jitter: f64) -> Option<Duration> {
        let entry = self.entries.get_mut(key).expect("taken keys have an entry");
        let again = entry.state == State::RunningAgain;
        match done {
            Done::Finished if !again => {
                self.entries.remove(key);
                return None;
            }
            Done::Finished => entry.failures = 0,
            Done::Retry(asked) if !again => {
                entry.failures += 1;
                let wait = back_off(entry.failures, jitter).max(asked.unwrap_or_default().min(LONGEST_ASKED));
                let number = self.next_number;
                entry.state = State::Waiting(number);
                self.next_number += 1;
                self.waiting.push(Reverse((now + wait, number, key.clone())));
                return Some(wait);
            }
            Done::Retry(_) => entry.failures += 1,
            Done::Again => {}
        }
        entry.state = State::Ready;
        let class = entry.class;
        self.ready[class as usize].push_back(key.clone());
        None
    }

    /// When the next waiting key is due, if none is ready before.
    pub fn next_due(&mut self) -> Option<Instant> {
        while let Some(Reverse((due, number, key))) = self.waiting.peek() {
            if self
                .entries
                .get(key)
                .is_some_and(|entry| entry.state == State::Waiting(*number))
            {
                return Some(*due);
            }
            self.waiting.pop();
        }
        None
    }

    /// Makes every waiting key that `which` picks ready now: what it waited for has happened.
    pub fn wake_where(&mut self, which: impl Fn(&K) -> bool) {
        for (key, entry) in &mut self.entries {
            if matches!(entry.state, State::Waiting(_)) && which(key) {
                entry.state = State::Ready;
                self.ready[entry.class as usize].push_back(key.clone());
            }
        }
    }

    /// Drops every key that `which` picks, unless a worker has it.
    pub fn forget(&mut self, which: impl Fn(&K) -> bool) {
        let payload_bytes = &mut self.payload_bytes;
        self.entries.retain(|key, entry| {
            let keep = matches!(entry.state, State::Running | State::RunningAgain) || !which(key);
            if !keep {
                *payload_bytes -= entry.payload.as_ref().map_or(0, Bytes::len);
            }
            keep
        });
        for ready in &mut self.ready {
            ready.retain(|key| self.entries.contains_key(key));
        }
    }

    /// Bytes of all payloads in the queue.
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Number of keys: ready, waiting or with a worker.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is nothing to do, now or later.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Moves the keys whose wait is over to `ready`.
    fn wake(&mut self, now: Instant) {
        while self.next_due().is_some_and(|due| due <= now) {
            let Reverse((_, _, key)) = self.waiting.pop().expect("next_due has seen it");
            let entry = self.entries.get_mut(&key).expect("next_due has checked it");
            entry.state = State::Ready;
            let class = entry.class;
            self.ready[class as usize].push_back(key);
        }
    }
}

/// The wait after `failures` failures in a row: doubling, spread over the upper half by `jitter` in 0..1.
pub fn back_off(failures: u32, jitter: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(keys: &[&'static str]) -> Queue<&'static str> {
        let mut queue = Queue::default();
        for &key in keys {
            queue.add(key, Class::Normal, None);
        }
        queue
    }

    fn take_all(queue: &mut Queue<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.take(now, Class::Last))
            .map(|(key, _)| key)
            .collect()
    }

    #[test]
    fn a_key_has_one_entry_and_keeps_its_turn() {
        let mut queue = queue(&["a", "b", "a", "c", "a"]);
        assert_eq!(take_all(&mut queue, Instant::now()), ["a", "b", "c"]);
    }

    #[test]
    fn keys_go_by_class() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add("deleted namespace", Class::Last, None);
        queue.add("a", Class::Normal, None);
        queue.add("namespace", Class::First, None);
        assert_eq!(queue.take(now, Class::First), Some(("namespace", None)));
        assert_eq!(queue.take(now, Class::First), None);
        assert_eq!(queue.take(now, Class::Normal), Some(("a", None)));
        assert_eq!(queue.take(now, Class::Normal), None);
        queue.add("deleted namespace", Class::First, None);
        assert_eq!(
            queue.take(now, Class::First),
            Some(("deleted namespace", None)),
            "wanted after all"
        );
    }

    #[test]
    fn a_delayed_key_keeps_its_time_unless_something_changes() {
        let now = Instant::now();
        let mut queue = Queue::default();
        let wait = Duration::from_secs(5);
        queue.add_after("a", Class::Normal, wait, now);
        queue.add_after("a", Class::Normal, wait * 2, now);
        assert_eq!(queue.next_due(), Some(now + wait));
        assert_eq!(queue.take(now, Class::Last), None);
        assert_eq!(queue.take(now + wait, Class::Last), Some(("a", None)));
        queue.add_after("b", Class::Normal, wait, now);
        queue.add("b", Class::Normal, None);
        assert_eq!(queue.take(now, Class::Last), Some(("b", None)));
    }

    #[test]
    fn a_key_is_never_taken_twice_at_once() {
        let now = Instant::now();
        let mut queue = queue(&["a"]);
        queue.take(now, Class::Last).unwrap();
        queue.add("a", Class::Normal, None);
        assert!(queue.take(now, Class::Last).is_none());
        queue.done(&"a", Done::Finished, now, 0.0);
        assert_eq!(take_all(&mut queue, now), ["a"]);
        queue.done(&"a", Done::Finished, now, 0.0);
        assert!(queue.is_empty());
    }

    #[test]
    fn failures_wait_longer_each_time_and_success_forgets_them() {
        let mut now = Instant::now();
        let mut queue = queue(&["a"]);
        for expected in [800, 1600, 3200] {
            queue.take(now, Class::Last).unwrap();
            let wait = queue.done(&"a", Done::Retry(None), now, 1.0).unwrap();
            assert_eq!(wait, Duration::from_millis(expected));
            assert!(queue.take(now, Class::Last).is_none());
            assert_eq!(queue.next_due(), Some(now + wait));
            now += wait;
        }
        queue.take(now, Class::Last).unwrap();
        queue.done(&"a", Done::Finished, now, 1.0);
        queue.add("a", Class::Normal, None);
        queue.take(now, Class::Last).unwrap();
        assert_eq!(queue.done(&"a", Done::Retry(None), now, 1.0), Some(FIRST_WAIT));
        assert_eq!(back_off(40, 1.0), LONGEST_WAIT);
        assert_eq!(back_off(1, 0.0), FIRST_WAIT / 2);
    }

    #[test]
    fn the_server_may_ask_for_a_longer_wait() {
        let now = Instant::now();
        let mut queue = queue(&["a"]);
        queue.take(now, Class::Last).unwrap();
        let asked = Duration::from_secs(7);
        assert_eq!(queue.done(&"a", Done::Retry(Some(asked)), now, 1.0), Some(asked));
    }

    #[test]
    fn a_change_ends_the_wait_but_not_the_count() {
        let now = Instant::now();
        let mut queue = queue(&["a"]);
        queue.take(now, Class::Last).unwrap();
        queue.done(&"a", Done::Retry(None), now, 1.0);
        queue.add("a", Class::Normal, Some(Bytes::from_static(b"new")));
        assert_eq!(
            queue.take(now, Class::Last),
            Some(("a", Some(Bytes::from_static(b"new"))))
        );
        assert_eq!(queue.done(&"a", Done::Retry(None), now, 1.0), Some(FIRST_WAIT * 2));
        assert_eq!(take_all(&mut queue, now + LONGEST_WAIT), ["a"]);
    }

    #[test]
    fn counts_payload_bytes_through_every_way_out() {
        let now = Instant::now();
        let mut queue = Queue::default();
        let body = |length| Some(Bytes::from(vec![0; length]));
        queue.add("a", Class::Normal, body(10));
        queue.add("a", Class::Normal, body(7));
        queue.add("b", Class::Normal, body(5));
        assert_eq!(queue.payload_bytes(), 12);
        queue.add("b", Class::Normal, None);
        assert_eq!(queue.payload_bytes(), 7);
        queue.take(now, Class::Last);
        assert_eq!(queue.payload_bytes(), 0);
        queue.add("b", Class::Normal, body(5));
        queue.forget(|key| *key == "b");
        assert_eq!(queue.payload_bytes(), 0);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn waking_some_keys_leaves_the_others_waiting() {
        let now = Instant::now();
        let mut queue = queue(&["a", "b"]);
        for _ in 0..2 {
            let (key, _) = queue.take(now, Class::Last).unwrap();
            queue.done(&key, Done::Retry(None), now, 1.0);
        }
        queue.wake_where(|key| *key == "b");
        assert_eq!(take_all(&mut queue, now), ["b"]);
        assert_eq!(take_all(&mut queue, now + FIRST_WAIT), ["a"]);
    }
}
