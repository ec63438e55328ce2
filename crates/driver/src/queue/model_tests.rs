//! Random histories of the queue against a model that knows only which keys are wanted and who has them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Instant;

use super::back_off::{FIRST_WAIT, spread};
use super::entries::State;
use super::sides::Sides;
use super::{Class, Done, Queue, QueueKey, REFILL_SHARE, back_off};

/// A group and a number in it. The group says what is needed, the number says the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u8, pub(super) u16);

impl QueueKey for Key {
    type Payload = Bytes;
    type Side = Side;
    type Group = u8;
    type Lot = Self;

    fn lot(&self) -> Self {
        *self
    }

    fn group(&self) -> u8 {
        self.0
    }

    fn needs(&self) -> &[Side] {
        match self.0 {
            0 => &[Side::Hub, Side::Edge],
            1 => &[Side::Edge],
            2 => &[Side::Hub],
            5 => &[Side::Shard, Side::Edge],
            _ => &[],
        }
    }
}

/// Sides, of which a key needs two at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Hub,
    Edge,
    Shard,
}

/// Groups of keys.
const GROUPS: u8 = 6;
/// Keys of each group.
const KEYS: u16 = 24;

impl Key {
    fn class(self) -> Class {
        match self.1 {
            0..4 => Class::First,
            4 => Class::Last,
            _ => Class::Normal,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Add(Key, Option<u8>),
    /// Every key of a group is added.
    Flood(u8),
    AddAfter(Key, u64),
    Take(Class),
    /// What becomes of one of the keys that workers have.
    Done(prop::sample::Index, Done<Side>),
    Pass(u64),
    Down(Side),
    Back(Side),
    Wake(u8),
    Forget(u8),
    Refill,
}

struct Attempt {
    key: Key,
    began: u64,
    /// Added since.
    again: bool,
    probe_of: Vec<Side>,
}

/// What the model knows of a side.
#[derive(Default)]
struct SideModel {
    down: bool,
    /// The op that brought it back last.
    back: u64,
    /// No probe before this.
    quiet_until: Option<Instant>,
}

struct Model {
    queue: Queue<Key>,
    now: Instant,
    jitter: f64,
    op: u64,
    /// What is out of sync: nobody but a worker that finishes takes a key from here.
    wanted: BTreeSet<Key>,
    attempts: Vec<Attempt>,
    sides: BTreeMap<Side, SideModel>,
    /// Until when a key that failed is not to be taken.
    waits: BTreeMap<Key, Instant>,
    /// The same for what a server has asked for.
    asked: BTreeMap<Key, Instant>,
}

impl Model {
    fn new(capacity: usize, jitter: f64) -> Self {
        Self {
            queue: Queue::new(capacity),
            now: Instant::now(),
            jitter,
            op: 0,
            wanted: BTreeSet::new(),
            attempts: Vec::new(),
            sides: [Side::Hub, Side::Edge, Side::Shard]
                .map(|side| (side, SideModel::default()))
                .into(),
            waits: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    fn run(&mut self, op: Op) {
        self.op += 1;
        match op {
            Op::Add(key, payload) => self.add(key, payload),
            Op::Flood(group) => {
                for number in 0..KEYS {
                    self.add(Key(group, number), None);
                }
            }
            Op::AddAfter(key, wait) => {
                self.wanted.insert(key);
                let wait = Duration::from_millis(wait);
                self.queue.add_after(key, key.class(), wait, self.now);
            }
            Op::Take(last) => {
                self.take(last);
            }
            Op::Done(index, done) if !self.attempts.is_empty() => {
                let index = index.index(self.attempts.len());
                self.done(index, done);
            }
            Op::Done(..) => {}
            Op::Pass(time) => self.now += Duration::from_millis(time),
            Op::Down(side) => {
                self.queue.side_is_down(side, self.now, self.jitter);
                self.goes_down(side);
            }
            Op::Back(side) => self.back(side),
            Op::Wake(group) => {
                self.queue.wake_where(|key| key.0 == group);
                self.waits.retain(|key, _| key.0 != group);
            }
            Op::Forget(group) => {
                self.queue.remove_where(|key| key.0 == group);
                let held: Vec<Key> = self.attempts.iter().map(|attempt| attempt.key).collect();
                self.wanted.retain(|key| key.0 != group || held.contains(key));
            }
            Op::Refill => {
                self.refill();
            }
        }
        self.check();
    }

    fn add(&mut self, key: Key, payload: Option<u8>) {
        self.wanted.insert(key);
        self.waits.remove(&key);
        if let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.key == key) {
            attempt.again = true;
        }
        let payload = payload.map(|length| Bytes::from(vec![0; length.into()]));
        self.queue.add(key, key.class(), payload);
    }

    fn take(&mut self, last: Class) -> bool {
        let Some((key, _)) = self.queue.take(self.now, last, |key| (key.1 % 3).into()) else {
            return false;
        };
        assert!(self.wanted.contains(&key), "{key:?} is not wanted");
        assert!(key.class() <= last);
        assert!(!self.has_worker(key), "{key:?} is taken twice at once");
        let waits = [self.waits.remove(&key), self.asked.remove(&key)];
        assert!(waits.into_iter().flatten().all(|until| until <= self.now), "too early");
        let probe_of: Vec<_> = key.needs().iter().copied().filter(|&side| self.is_down(side)).collect();
        for side in &probe_of {
            let other = self.attempts.iter().find(|attempt| attempt.probe_of.contains(side));
            assert!(other.is_none(), "two probes of {side:?}");
            let quiet_until = self.sides[side].quiet_until;
            assert!(quiet_until.is_some_and(|until| until <= self.now), "probed too early");
        }
        self.attempts.push(Attempt {
            key,
            began: self.op,
            again: false,
            probe_of,
        });
        true
    }

    fn done(&mut self, index: usize, done: Done<Side>) {
        let attempt = self.attempts.remove(index);
        let key = attempt.key;
        let failures = self.queue.entries[&key].failures;
        let wait = self.queue.done(&key, done, self.now, self.jitter);
        let left = self.queue.entries.get(&key).map(|entry| entry.failures);
        match done {
            Done::Finished if attempt.again => assert_eq!(left, Some(0)),
            Done::Finished => {
                assert_eq!(left, None);
                self.wanted.remove(&key);
            }
            Done::Again => assert_eq!(left, Some(failures)),
            Done::Later(wait) | Done::NotYet(wait) => {
                assert_eq!(left, Some(failures), "an attempt is spent");
                if !attempt.again {
                    let is_exact = matches!(done, Done::NotYet(_));
                    let wait = if is_exact { wait } else { spread(wait, self.jitter) };
                    self.waits.insert(key, self.now + wait);
                }
            }
            Done::Unreachable(side) => {
                assert_eq!((wait, left), (None, Some(failures)), "an attempt is spent");
                if attempt.probe_of.contains(&side) {
                    self.sides.entry(side).or_default().quiet_until = Some(self.now + FIRST_WAIT / 2);
                } else if attempt.began > self.sides[&side].back {
                    self.goes_down(side);
                }
            }
            Done::Retry(_) => {
                assert_eq!(left, Some(failures + 1));
                let due = self.now + back_off(failures + 1, self.jitter);
                if !attempt.again {
                    self.waits.insert(key, due);
                }
                if let Done::Retry(Some(asked)) = done {
                    self.asked.insert(key, self.now + asked);
                }
            }
        }
    }

    fn goes_down(&mut self, side: Side) {
        let model = self.sides.entry(side).or_default();
        if !model.down {
            model.down = true;
            model.quiet_until = Some(self.now + FIRST_WAIT / 2);
        }
    }

    fn back(&mut self, side: Side) {
        let was_down = self.is_down(side);
        if self.queue.side_is_back(side, self.now, self.jitter) {
            assert!(was_down);
            *self.sides.entry(side).or_default() = SideModel {
                back: self.op,
                ..SideModel::default()
            };
            for attempt in &mut self.attempts {
                attempt.probe_of.retain(|probed| *probed != side);
            }
        }
    }

    fn refill(&mut self) -> bool {
        let wanted = &self.wanted;
        self.queue.refill(self.now, |group, from| {
            let keys = wanted.range(from.unwrap_or(Key(group, 0))..);
            keys.take_while(move |key| key.0 == group)
                .map(|key| (*key, key.class()))
        })
    }

    fn is_down(&self, side: Side) -> bool {
        self.sides[&side].down
    }

    fn has_worker(&self, key: Key) -> bool {
        self.attempts.iter().any(|attempt| attempt.key == key)
    }

    fn check(&mut self) {
        let queue = &self.queue;
        assert!(queue.len() <= queue.capacity, "more entries than the capacity");
        let overflowed: BTreeSet<u8> = queue.overflowed().collect();
        for key in &self.wanted {
            let known = queue.entries.contains_key(key) || overflowed.contains(&key.0);
            assert!(known, "{key:?} is lost");
        }
        for (key, entry) in &queue.entries {
            assert!(self.wanted.contains(key), "{key:?} is in the queue for nothing");
            let running = matches!(entry.state, State::Running { .. });
            assert_eq!(running, self.has_worker(*key));
            let waits = match entry.state {
                State::Ready(..) => key.needs().iter().any(|&side| self.is_down(side)),
                State::Waiting { .. } => true,
                State::Running { .. } => false,
            };
            assert!(
                !(waits && entry.payload.is_some()),
                "{key:?} holds a payload while it waits"
            );
        }
        let payloads = queue.entries.values().filter_map(|entry| entry.payload.as_ref());
        assert_eq!(payloads.map(Bytes::len).sum::<usize>(), queue.payload_bytes());
        let waiting: usize = queue.waiting.iter().map(BTreeMap::len).sum();
        let ready = queue.ready.count(|_| true);
        assert_eq!(ready + waiting + self.attempts.len(), queue.len());
        let refilled = queue.entries.values().filter(|entry| entry.refilled);
        assert_eq!(refilled.count(), queue.refilled);
        assert!(queue.refilled <= queue.share(REFILL_SHARE));
        // A key that was dropped comes back without its wait; what that may cost is tested with bad objects below.
        self.waits.retain(|key, _| queue.entries.contains_key(key));
        self.asked.retain(|key, _| queue.entries.contains_key(key));
    }

    /// Both sides answer, every attempt succeeds, and nobody does anything but what the queue's doc says.
    fn converge(&mut self) {
        for _ in 0..2000 {
            self.op += 1;
            for side in [Side::Hub, Side::Edge, Side::Shard] {
                self.back(side);
            }
            while !self.attempts.is_empty() {
                self.done(0, Done::Finished);
            }
            for round in 0.. {
                assert!(round < 100, "refilling never ends");
                if !self.refill() {
                    break;
                }
            }
            while self.attempts.len() < 3 && self.take(Class::Last) {}
            self.check();
            if self.wanted.is_empty() && self.queue.is_empty() {
                return;
            }
            if self.attempts.is_empty() {
                let due = self
                    .queue
                    .next_due()
                    .expect("something is left, and nothing wakes the caller");
                self.now = self.now.max(due);
            }
        }
        panic!("{:?} are never done", self.wanted);
    }
}

fn key() -> impl Strategy<Value = Key> {
    (0..GROUPS, 0..KEYS).prop_map(|(group, number)| Key(group, number))
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Hub), Just(Side::Edge), Just(Side::Shard)]
}

fn outcome() -> impl Strategy<Value = Done<Side>> {
    prop_oneof![
        3 => Just(Done::Finished),
        3 => Just(Done::Retry(None)),
        1 => (0..20_u64).prop_map(|asked| Done::Retry(Some(Duration::from_secs(asked)))),
        1 => Just(Done::Again),
        1 => Just(Done::Later(Duration::from_secs(10))),
        1 => Just(Done::NotYet(Duration::from_secs(10))),
        2 => side().prop_map(Done::Unreachable),
    ]
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![1 => Just(Class::First), 1 => Just(Class::Normal), 6 => Just(Class::Last)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (key(), any::<Option<u8>>()).prop_map(|(key, payload)| Op::Add(key, payload)),
        1 => (0..GROUPS).prop_map(Op::Flood),
        2 => (key(), 0..10_000_u64).prop_map(|(key, wait)| Op::AddAfter(key, wait)),
        10 => class().prop_map(Op::Take),
        8 => (any::<prop::sample::Index>(), outcome()).prop_map(|(index, done)| Op::Done(index, done)),
        4 => prop_oneof![0..2000_u64, 0..400_000_u64].prop_map(Op::Pass),
        1 => side().prop_map(Op::Down),
        2 => side().prop_map(Op::Back),
        1 => (0..GROUPS).prop_map(Op::Wake),
        1 => (0..GROUPS).prop_map(Op::Forget),
        3 => Just(Op::Refill),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_nothing_is_lost_or_taken_twice_and_all_bounds_hold(
        capacity in 32..64_usize,
        jitter in 0.0..1.0,
        ops in prop::collection::vec(op(), 0..250),
    ) {
        let mut model = Model::new(capacity, jitter);
        for op in ops {
            model.run(op);
        }
        model.converge();
    }

    #[test]
    fn ready_keys_of_a_class_are_taken_in_the_order_in_which_they_became_ready(
        ops in prop::collection::vec(prop_oneof![2 => key().prop_map(Some), 1 => Just(None)], 0..200),
    ) {
        let now = Instant::now();
        let mut queue = Queue::new(256);
        let mut lines: [VecDeque<Key>; 3] = Default::default();
        for op in ops {
            if let Some(key) = op {
                queue.add(key, key.class(), None);
                let line = &mut lines[key.class() as usize];
                if !line.contains(&key) {
                    line.push_back(key);
                }
            } else {
                let next = lines.iter_mut().find_map(VecDeque::pop_front);
                let taken = queue.take(now, Class::Last, |_| 0).map(|(key, _)| key);
                prop_assert_eq!(taken, next);
                // Returned once more every other time: it is put behind all others.
                if let Some(key) = taken {
                    let again = key.1 % 2 == 0 && !lines.iter().all(VecDeque::is_empty);
                    queue.done(&key, if again { Done::Again } else { Done::Finished }, now, 0.0);
                    if again {
                        lines[key.class() as usize].push_back(key);
                    }
                }
            }
        }
    }

    #[test]
    fn a_set_of_sides_holds_what_was_put_in(first in side(), second in side()) {
        let set = Sides::of(&[first, second]);
        prop_assert_eq!(set, Sides::of(&[second, first, second]));
        for side in [Side::Hub, Side::Edge, Side::Shard] {
            prop_assert_eq!(set.has(side), side == first || side == second);
        }
    }
}
