//! The bounded retry queue: keys that wait for a worker, and when.
//!
//! Plain data: no clock, no I/O. Times and jitter come in from the caller, and the same calls give the same answers.
//!
//! # Promises
//!
//! **One key, one worker.**
//! - A key has one entry, however often it is added.
//! - A key is never taken twice at once. Adding it while a worker has it makes it ready again when that worker is
//!   done.
//!
//! **Order.** Keys of an earlier [`Class`] come before those of a later one; within each class those of a lower rank,
//! which the caller gives when it takes one, so that it can distribute its workers; otherwise first ready, first
//! served, whatever the group. A key that is added again keeps its turn; one that comes back is put behind all others.
//! So no key and no group keeps another one waiting for longer than one turn of the queue. Of keys whose back-off is
//! over, one is taken for [`NEWS_PER_RETRY`] others: many objects that fail neither keep good ones waiting nor wait for
//! ever.
//!
//! **Back-off.**
//! - A failed key waits an exponentially growing, jittered time (0.8 s to 5 min); success forgets its failures.
//! - A key that is handed out at a bad moment ([`Done::Later`]) waits for a better one without having failed. So does one
//!   of which the caller knows the time at which it may be tried ([`Done::NotYet`]).
//! - A key that is added again while it waits becomes ready at once, because something about it has changed, but its
//!   failures still count. Only a `Retry-After` of a server is waited for in any case.
//!
//! **Sides.** A key [needs](QueueKey::needs) a side, or both, or none.
//! - While a side is down, what needs it is not handed out, and what was tried without success has spent no attempt.
//! - One probe at a time finds out when it is back: an ordinary key, handed out after the side's own back-off (0.8 s
//!   to 30 s, jittered). A key that needs two sides which are both down is a probe of both.
//! - What waited for a side that is back is handed out over a short time, 10 ms for each key and at most 5 s, and not
//!   all at once.
//! - The result of an attempt that began before a side was back is old: it does not make the side go down again. A side
//!   that goes down within half a minute of its return is flapping: each time its back-off begins one step higher, and
//!   reports that it is back are ignored before the back-off is over. So a side that answers watches and nothing else
//!   costs little.
//!
//! **Bounds.** There are never more entries than the capacity, and what is kept of the keys that found no room is a
//! few words for each group.
//! - A key that has an entry never needs room: neither one that a worker has nor one that comes back.
//! - The capacity has four shares: half for news, which are new keys that can be taken ([`NEWS_SHARE`]); a quarter for
//!   keys that wait for their back-off ([`WAITING_SHARE`]); an eighth for dropped keys that come back
//!   ([`REFILL_SHARE`]), so that a flood of one group does not keep the others out for ever; an eighth for
//!   [`Class::First`] ([`FIRST_SHARE`]), so that a flood does not keep out what it depends on. Keys of [`Class::Last`]
//!   are no news to others: they may have to wait for just these.
//! - Keys that cannot be taken now may use whatever is free, except the share of class First. When there is no other
//!   room for a key that can be taken, one of them gives up its place: of those whose side is down the one that came
//!   last (but one of them stays, to be the next probe), else the waiting one that is due last. Waiting keys keep
//!   their own share, so that a few bad objects keep their failures in any flood; beyond it they make room, so that
//!   bad objects never fill the queue, however many they are. Class First gives up its place last.
//! - The [payload](Payload) (an object at hand, so that it need not be read again) is a hint: it is dropped whenever the
//!   key has to wait for its back-off or for a side, so that what waits costs a key and not a body.
//!
//! **Nothing is lost.** Whenever a key is dropped, or finds no room, its group is marked, and [`Queue::refill`] asks
//! for all keys of the group that are out of sync. It takes as many as its share has room for and continues later where
//! it stopped, so that every key gets its turn; the marked groups take turns, too. What needs a side that is down is
//! asked for when that is back.
//!
//! **Bad objects are not tried more often for having been dropped.** Failures are lost with the entry. So a group that
//! lost nothing but waiting keys is not asked for before the last of them was due, and its keys then come back with
//! the highest number of failures among them: if they fail again, they wait longer. A group that has lost ready keys
//! as well is asked for at once, since changes must not wait for failures, and then a bad object may be tried early:
//! once each time that happens.

mod back_off;
mod entries;
mod lanes;
mod overflow;
mod room;
mod sides;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use self::back_off::LONGEST_ASKED;
pub use self::back_off::back_off;
pub use self::back_off::{LONGEST_WAIT, probe_wait, spread};
use self::entries::{Entry, State};
use self::lanes::{Lanes, Turn};
use self::overflow::{Lost, Overflow};
use self::sides::{Gate, Gates, Sides};

/// Entries of a queue unless set otherwise: each takes 80 bytes and its key twice, so a full queue is a few
/// hundred kB, and more of them would only wait for the same few workers.
pub const CAPACITY: usize = 1024;
/// With fewer entries, the shares below are too small to make a difference.
pub const LEAST_CAPACITY: usize = 32;
/// One in so many entries is for new keys that can be taken.
pub const NEWS_SHARE: usize = 2;
/// One in so many entries is for keys that wait, which they need not give up.
pub const WAITING_SHARE: usize = 4;
/// One in so many entries is for keys that come back after they found no room.
pub const REFILL_SHARE: usize = 8;
/// One in so many entries is kept free for [`Class::First`].
pub const FIRST_SHARE: usize = 8;

/// While keys are ready both because something about them is new and because their back-off is over, so many of the first
/// kind are taken for one of the other.
pub const NEWS_PER_RETRY: u32 = 4;

/// The rank of keys that are not to be taken now, as their lot has its share of the workers.
pub const NOT_NOW: usize = usize::MAX;

/// What a worker is given with a key, so that it need not read it.
pub trait Payload {
    /// How much memory it takes, roughly.
    fn bytes(&self) -> usize;
}

impl Payload for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// What the queue has to know of its keys.
pub trait QueueKey: Clone + Ord {
    /// What a worker is given with a key.
    type Payload: Payload;

    /// The id of a side.
    type Side: Copy + Ord;

    /// What is visited as a whole when keys of it found no room: the type.
    type Group: Copy + Ord;

    /// Part of a group: keys of one lot have one rank whenever one is taken.
    type Lot: Ord;

    /// The lot that the key belongs to. Always the same.
    fn lot(&self) -> Self::Lot;

    /// The group that the key belongs to. Always the same.
    fn group(&self) -> Self::Group;

    /// The sides without which no attempt can succeed. Always the same.
    fn needs(&self) -> &[Self::Side];
}

/// What became of a key that a worker had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<S> {
    /// It has succeeded: its failures are forgotten.
    Finished,
    /// Failed: again after its back-off or when it is added again, but in any case not before the given time, if the
    /// server has asked for one.
    Retry(Option<Duration>),
    /// Again at once, with fresh input (a precondition failed because something changed).
    Again,
    /// Not tried, because its turn is not a good moment: again after about the given time (jittered), or when it is added
    /// again. No attempt is spent.
    Later(Duration),
    /// Not tried, because its time has not come: again after exactly the given time, or when it is added again. No attempt
    /// is spent.
    NotYet(Duration),
    /// This side did not answer: no attempt is spent, and the key waits for the side.
    Unreachable(S),
}

/// Which keys come before which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// What others need before they can be created: namespaces and CRDs.
    First,
    /// All else.
    Normal,
    /// What deletes others too when it is deleted: namespaces and CRDs.
    Last,
}

impl Class {
    /// In the order in which they are taken.
    const ALL: [Self; 3] = [Self::First, Self::Normal, Self::Last];
}

/// See the module's promises.
///
/// Before it sleeps, the caller calls [`Queue::refill`] until it returns false and [`Queue::take`] until it returns
/// `None` or there is no worker; then it sleeps until [`Queue::next_due`] or any event. It calls
/// [`Queue::side_is_back`] when something answers on a side that is down, since the queue cannot know whether a key
/// that is [`Done`] has made a request.
pub struct Queue<K: QueueKey> {
    capacity: usize,
    entries: BTreeMap<K, Entry<K::Side, K::Payload>>,
    /// Every key with state `Ready`, in the lane of its entry's class, turn and needs.
    ready: Lanes<K>,
    /// Keys with news that were taken since the last one whose back-off was over.
    news_in_a_row: u32,
    /// Every key with state `Waiting`, by class and by its time.
    waiting: [BTreeMap<(Instant, u64), K>; Class::ALL.len()],
    gates: Gates<K::Side>,
    overflow: Overflow<K::Group, K::Side, K>,
    next_number: u64,
    /// Entries that are `refilled`.
    refilled: usize,
    /// Entries with state `Running`.
    running: usize,
    payload_bytes: usize,
    /// See [`Queue::it_is`].
    now: Option<Instant>,
    /// The time of the last take. A gate that was open then needs no timer: its keys wait for something else.
    taken_at: Option<Instant>,
}

impl<K: QueueKey> Default for Queue<K> {
    fn default() -> Self {
        Self::new(CAPACITY)
    }
}

impl<K: QueueKey> Queue<K> {
    /// A queue of at most `capacity` entries, but not fewer than [`LEAST_CAPACITY`].
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(LEAST_CAPACITY),
            entries: BTreeMap::new(),
            ready: Lanes::new(),
            news_in_a_row: 0,
            waiting: Default::default(),
            gates: Gates::default(),
            overflow: Overflow::new(),
            next_number: 0,
            refilled: 0,
            running: 0,
            payload_bytes: 0,
            now: None,
            taken_at: None,
        }
    }

    /// Sets the time at which keys are added from now on, for [`Queue::since`].
    pub fn it_is(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// Makes a key ready. A payload replaces an older one; without one, the worker reads the object itself.
    ///
    /// Without room for it the key is dropped and its group is marked.
    pub fn add(&mut self, key: K, class: Class, payload: Option<K::Payload>) {
        if !self.entries.contains_key(&key) {
            let needs = Sides::of(key.needs());
            let runs = self.gates.all_up(needs);
            if (!runs || self.may_have_news(class)) && self.make_room(class, runs) {
                self.insert(&key, class, needs, 0);
                self.set_payload(&key, payload);
                self.make_ready(key, Turn::News);
            } else {
                self.overflow.lost(key.group(), needs, Lost::Ready);
            }
            return;
        }
        self.set_class(&key, class);
        self.set_payload(&key, payload);
        match &mut self.entry(&key).state {
            State::Running { again, .. } => *again = true,
            State::Waiting { .. } | State::Ready(_, Turn::Retry) => self.hasten(key),
            State::Ready(_, Turn::News) => self.drop_payload_that_waits(&key),
        }
    }

    /// A key that waits need not wait any longer, but for what a server has asked for.
    pub fn hurry(&mut self, key: &K) {
        let is_waiting = |entry: &Entry<_, _>| matches!(entry.state, State::Waiting { .. });
        if self.entries.get(key).is_some_and(is_waiting) {
            self.hasten(key.clone());
        }
    }

    /// How many keys of a lot are ready.
    pub fn of_lot(&self, lot: &K::Lot) -> usize {
        self.ready.of_lot(lot)
    }

    /// Drops the news of a key as if there were no room for it: its group is marked. One that has an entry needs no room.
    pub fn put_off(&mut self, key: K, class: Class) {
        if self.entries.contains_key(&key) {
            self.add(key, class, None);
        } else {
            self.overflow.lost(key.group(), Sides::of(key.needs()), Lost::Ready);
        }
    }

    /// Makes a key ready after `wait`. One that is in the queue already keeps its time, and loses its payload, which may be
    /// older than what has happened since.
    pub fn add_after(&mut self, key: K, class: Class, wait: Duration, now: Instant) {
        if self.entries.contains_key(&key) {
            self.set_payload(&key, None);
            return;
        }
        let needs = Sides::of(key.needs());
        if self.make_room(class, false) {
            self.insert(&key, class, needs, 0);
            self.make_wait(key, now + wait, None);
        } else {
            self.overflow.lost(key.group(), needs, Lost::Waiting(now + wait, 0));
        }
    }

    /// Takes the next key that is ready, up to class `last`, with its payload: of those of the first class one of the lowest
    /// `rank`, none of [`NOT_NOW`]. The caller gives it back with [`Queue::done`].
    pub fn take(&mut self, now: Instant, last: Class, rank: impl Fn(&K) -> usize) -> Option<(K, Option<K::Payload>)> {
        self.take_at(now, last, rank, |_| true)
    }

    /// The same of the keys that need no side that is busy: those for which `may` is false.
    pub fn take_at(
        &mut self,
        now: Instant,
        last: Class,
        rank: impl Fn(&K) -> usize,
        may: impl Fn(K::Side) -> bool,
    ) -> Option<(K, Option<K::Payload>)> {
        self.taken_at = Some(now);
        self.wake(now);
        let whose = if self.news_in_a_row < NEWS_PER_RETRY {
            Turn::News
        } else {
            Turn::Retry
        };
        let place = [Gate::Probe(2), Gate::Probe(1), Gate::Open]
            .into_iter()
            .find_map(|gate| {
                self.ready.first(
                    last,
                    whose,
                    |needs| self.gates.gate(needs, now) == gate && needs.all(&may),
                    &rank,
                )
            })?;
        self.news_in_a_row = match place.turn {
            Turn::News => self.news_in_a_row.saturating_add(1),
            Turn::Retry => 0,
        };
        let key = self.ready.remove(place)?;
        let number = self.number();
        self.gates.begin(place.needs, number, now);
        self.running += 1;
        self.entry(&key).state = State::Running { number, again: false };
        let payload = self.set_payload(&key, None);
        Some((key, payload))
    }

    /// Gives back a taken key. `jitter` is in 0..1. Returns the wait, if there is one.
    ///
    /// # Panics
    /// If the key was not taken.
    pub fn done(&mut self, key: &K, done: Done<K::Side>, now: Instant, jitter: f64) -> Option<Duration> {
        let (number, again) = self.end(key).expect("only taken keys are given back");
        let probed = self.gates.end(number);
        let entry = self.entry(key);
        match done {
            Done::Finished if !again => {
                self.remove(key);
                return None;
            }
            Done::Finished => (entry.failures, entry.since) = (0, Some(now)),
            Done::Later(_) | Done::NotYet(_) | Done::Again => {}
            Done::Retry(_) => entry.failures = entry.failures.saturating_add(1),
            Done::Unreachable(side) => {
                entry.needs = entry.needs.with(side);
                if self.gates.unreachable(side, number, probed, now, jitter) {
                    self.park();
                }
            }
        }
        if !matches!(done, Done::Finished | Done::Unreachable(_)) {
            // If the side were back, the queue would know by now. Another key would be put off like this one.
            self.gates.learnt_nothing(probed, now, jitter);
        }
        let failures = self.entry(key).failures;
        let asked = match done {
            Done::Retry(asked) => asked.map(|asked| asked.min(LONGEST_ASKED)),
            _ => None,
        };
        let wait = match done {
            // It has changed since: only a `Retry-After` keeps it waiting.
            _ if again => asked,
            Done::Retry(_) => Some(back_off(failures, jitter).max(asked.unwrap_or_default())),
            Done::Later(wait) => Some(spread(wait, jitter)),
            Done::NotYet(wait) => Some(wait),
            Done::Finished | Done::Again | Done::Unreachable(_) => None,
        };
        match wait {
            Some(wait) => self.make_wait(key.clone(), now + wait, asked.map(|asked| now + asked)),
            None => self.make_ready(key.clone(), Turn::News),
        }
        wait
    }

    /// This side does not answer, as something else than a key has found out. `jitter` is in 0..1.
    pub fn side_is_down(&mut self, side: K::Side, now: Instant, jitter: f64) {
        if self.gates.down(side, now, jitter) {
            self.park();
        }
    }

    /// True if keys that need this side wait for it to be back.
    pub fn is_down(&self, side: K::Side) -> bool {
        self.gates.is_down(side)
    }

    /// Something answered on this side. `jitter` is in 0..1.
    ///
    /// True if it was down, and what waits for it now continues.
    pub fn side_is_back(&mut self, side: K::Side, now: Instant, jitter: f64) -> bool {
        let parked = self.ready.count(|needs| needs.has(side));
        self.gates.back(side, parked, self.next_number, now, jitter)
    }

    /// The groups that have lost keys and were not yet visited as a whole.
    pub fn overflowed(&self) -> impl Iterator<Item = K::Group> {
        self.overflow.groups()
    }

    /// When there is something to take or to refill, if time alone can bring it about.
    pub fn next_due(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().filter_map(BTreeMap::first_key_value);
        let waiting = waiting.map(|(&(due, _), _)| due).min();
        let gates = self.ready.needs().filter_map(|needs| self.gates.opens_at(needs));
        let gates = gates.filter(|&at| self.taken_at.is_none_or(|taken| at > taken)).min();
        [waiting, gates, self.refill_due()].into_iter().flatten().min()
    }

    /// Ends the wait of every key that `which` picks, in the order in which they are due: what they waited for has
    /// happened.
    pub fn wake_where(&mut self, which: impl Fn(&K) -> bool) {
        let waiting = self.waiting.iter().flat_map(BTreeMap::values);
        let woken: Vec<K> = waiting.filter(|key| which(key)).cloned().collect();
        for key in woken {
            self.hasten(key);
        }
    }

    /// Drops every key that `which` picks, unless a worker has it.
    pub fn remove_where(&mut self, which: impl Fn(&K) -> bool) {
        self.ready.remove_where(&which);
        for waiting in &mut self.waiting {
            waiting.retain(|_, key| !which(key));
        }
        self.entries.retain(|key, entry| {
            let keep = matches!(entry.state, State::Running { .. }) || !which(key);
            if !keep {
                self.payload_bytes -= entry.payload.as_ref().map_or(0, Payload::bytes);
                self.refilled -= usize::from(entry.refilled);
            }
            keep
        });
    }

    /// True if a new key would find a place, or could not be taken now anyway. While it is false, callers should hold
    /// back news that can wait.
    pub fn has_room(&self) -> bool {
        self.gates.is_any_down() || self.may_have_news(Class::Normal)
    }

    /// True if a key of this class could be taken.
    pub fn has_ready(&self, class: Class) -> bool {
        self.ready.newest(class, |needs| self.gates.all_up(needs)).is_some()
    }

    /// True if there is a key that has not failed so far.
    pub fn has_untried(&self) -> bool {
        !self.overflow.is_empty() || self.entries.values().any(|entry| entry.failures == 0)
    }

    /// True if all keys wait for their time: none is ready, none is with a worker, and none is left out.
    pub fn is_idle(&self) -> bool {
        let mut entries = self.entries.values();
        self.overflow.is_empty() && entries.all(|entry| matches!(entry.state, State::Waiting { .. }))
    }

    /// True if the key is here: it waits, or a worker has it.
    pub fn has(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// Since when there is something to do for a key that is here, if that is known.
    pub fn since(&self, key: &K) -> Option<Instant> {
        self.entries.get(key)?.since
    }

    /// The same of that one for which it is longest.
    pub fn oldest(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.since).min()
    }

    /// How often in a row the key has failed so far.
    pub fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
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
        self.entries.is_empty() && self.overflow.is_empty()
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod sides_tests;
#[cfg(test)]
mod tests;
