//! Queues that are too small. Keys of group 0 need both sides, of group 1 the edge, of groups from 3 on none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::back_off::{FIRST_WAIT, LONGEST_WAIT};
use super::model_tests::{Key, Side};
use super::{Class, Done, FIRST_SHARE, NEWS_SHARE, Queue, WAITING_SHARE};

const CAPACITY: usize = 32;

fn keys(group: u8, keys: u16) -> impl Iterator<Item = Key> {
    (0..keys).map(move |number| Key(group, number))
}

fn queue(group: u8, many: u16) -> Queue<Key> {
    let mut queue = Queue::new(CAPACITY);
    for key in keys(group, many) {
        queue.add(key, Class::Normal, None);
    }
    queue
}

fn take(queue: &mut Queue<Key>, now: Instant) -> Option<Key> {
    queue.take(now, Class::Last, |_| 0).map(|(key, _)| key)
}

/// All attempts at once fail.
fn fail_all(queue: &mut Queue<Key>, now: Instant) {
    while let Some(key) = take(queue, now) {
        queue.done(&key, Done::Retry(None), now, 1.0);
    }
}

/// Everything that is wanted, from a key on.
fn refill(queue: &mut Queue<Key>, wanted: &BTreeSet<Key>, now: Instant) -> bool {
    queue.refill(now, |group, from| {
        let keys = wanted.range(from.unwrap_or(Key(group, 0))..);
        keys.take_while(move |key| key.0 == group)
            .map(|key| (*key, Class::Normal))
    })
}

fn refill_all(queue: &mut Queue<Key>, wanted: &BTreeSet<Key>, now: Instant) {
    let rounds = (0..100).take_while(|_| refill(queue, wanted, now)).count();
    assert!(rounds < 100, "refilling never ends");
}

#[test]
fn keys_without_room_come_back_once_each_and_in_order() {
    let now = Instant::now();
    let mut wanted: BTreeSet<_> = keys(3, 500).collect();
    let mut queue = queue(3, 500);
    assert_eq!(queue.len(), CAPACITY / NEWS_SHARE);
    assert_eq!(queue.overflowed().collect::<Vec<_>>(), [3]);
    let mut taken = Vec::new();
    while !queue.is_empty() {
        refill_all(&mut queue, &wanted, now);
        let key = take(&mut queue, now).expect("there is always something to do");
        queue.done(&key, Done::Finished, now, 0.0);
        wanted.remove(&key);
        taken.push(key);
    }
    assert_eq!(taken, keys(3, 500).collect::<Vec<_>>());
}

#[test]
fn a_flood_of_what_goes_last_leaves_room_for_all_else() {
    let now = Instant::now();
    let mut queue = Queue::new(CAPACITY);
    for key in keys(3, 500) {
        queue.add(key, Class::Last, None);
    }
    assert_eq!(queue.len(), CAPACITY / NEWS_SHARE);
    assert!(queue.has_room(), "what it may have to wait for has to come through");
    queue.add(Key(4, 0), Class::Normal, None);
    let taken = queue.take(now, Class::Normal, |_| 0).map(|(key, _)| key);
    assert_eq!(taken, Some(Key(4, 0)));
}

#[test]
fn a_flood_leaves_room_for_what_it_depends_on() {
    let now = Instant::now();
    let mut queue = queue(3, 500);
    for number in 0..500 {
        queue.add_after(Key(5, number), Class::Normal, FIRST_WAIT, now);
    }
    assert_eq!(queue.len(), CAPACITY - CAPACITY / FIRST_SHARE);
    for key in keys(4, 10) {
        queue.add(key, Class::First, None);
    }
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(now, Class::First, |_| 0)).collect();
    assert_eq!(taken.len(), CAPACITY / FIRST_SHARE);
}

#[test]
fn many_waiting_keys_of_class_first_leave_room_for_others() {
    let now = Instant::now();
    let mut queue = Queue::new(CAPACITY);
    for key in keys(4, 100) {
        queue.add_after(key, Class::First, FIRST_WAIT, now);
    }
    for key in keys(3, 5) {
        queue.add(key, Class::Normal, None);
    }
    assert_eq!(take(&mut queue, now), Some(Key(3, 0)));
    assert_eq!(queue.len(), CAPACITY);
}

#[test]
fn a_ready_key_gets_the_place_of_the_waiting_one_that_is_due_last() {
    let now = Instant::now();
    let mut queue = Queue::new(CAPACITY);
    for key in keys(3, 28) {
        let wait = Duration::from_secs(1 + u64::from(key.1) * 7 % 28);
        let class = if key.1 % 2 == 0 { Class::Last } else { Class::Normal };
        queue.add_after(key, class, wait, now);
    }
    queue.add_after(Key(5, 0), Class::First, LONGEST_WAIT, now);
    queue.add_after(Key(4, 1), Class::Normal, FIRST_WAIT, now);
    assert!(
        !queue.entries.contains_key(&Key(4, 1)),
        "what has to wait takes no place"
    );
    queue.add(Key(4, 0), Class::Normal, None);
    assert_eq!(take(&mut queue, now), Some(Key(4, 0)));
    assert!(!queue.entries.contains_key(&Key(3, 27)), "it is due last");
    assert!(queue.entries.contains_key(&Key(5, 0)), "others go first");
}

#[test]
fn a_few_bad_objects_keep_their_failures_in_any_flood() {
    let now = Instant::now();
    let few = u16::try_from(CAPACITY / WAITING_SHARE).unwrap();
    let mut queue = queue(3, few);
    fail_all(&mut queue, now);
    for key in keys(4, 500) {
        queue.add(key, Class::Normal, None);
    }
    for key in keys(5, 500) {
        queue.add(key, Class::First, None);
    }
    let wanted = keys(4, 500).chain(keys(5, 500)).collect();
    refill_all(&mut queue, &wanted, now);
    assert_eq!(queue.len(), CAPACITY - CAPACITY / FIRST_SHARE);
    assert!(keys(3, few).all(|key| queue.entries[&key].failures == 1));
    assert_eq!(queue.overflowed().collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn what_gave_up_its_place_comes_back_when_it_was_due_and_with_its_failures() {
    let start = Instant::now();
    let mut queue = Queue::new(CAPACITY);
    for key in keys(3, 28) {
        queue.add(key, Class::Normal, None);
        fail_all(&mut queue, start);
    }
    fail_all(&mut queue, start + FIRST_WAIT);
    let now = start + FIRST_WAIT;
    let due = now + FIRST_WAIT * 2;
    queue.add(Key(4, 0), Class::Normal, None);
    assert_eq!(take(&mut queue, now), Some(Key(4, 0)));
    queue.done(&Key(4, 0), Done::Finished, now, 1.0);
    queue.remove_where(|key| key.1 < 20);
    let wanted: BTreeSet<_> = keys(3, 28).filter(|key| key.1 >= 20).collect();
    assert!(!refill(&mut queue, &wanted, due - Duration::from_millis(1)));
    assert_eq!(queue.next_due(), Some(due));
    queue.wake_where(|_| true);
    while let Some(key) = take(&mut queue, now) {
        queue.done(&key, Done::Finished, now, 1.0);
    }
    assert_eq!(queue.next_due(), Some(due));
    assert!(refill(&mut queue, &[Key(3, 27)].into(), due));
    assert_eq!(take(&mut queue, due), Some(Key(3, 27)));
    assert_eq!(
        queue.done(&Key(3, 27), Done::Retry(None), due, 1.0),
        Some(FIRST_WAIT * 4)
    );
    assert!(queue.overflowed().next().is_none());
}

#[test]
fn keys_that_wait_for_a_side_make_room_for_those_that_do_not() {
    let now = Instant::now();
    let mut queue = queue(0, 100);
    queue.side_is_down(Side::Hub, now, 1.0);
    let wanted = keys(0, 100).collect();
    assert!(!refill(&mut queue, &wanted, now), "none of them could be taken");
    assert_eq!(queue.next_due(), Some(now + FIRST_WAIT), "nothing but the probe is due");
    for key in keys(1, 100) {
        queue.add(key, Class::Normal, None);
    }
    let taken: Vec<_> = std::iter::from_fn(|| take(&mut queue, now)).collect();
    assert_eq!(taken, keys(1, 100).take(CAPACITY / NEWS_SHARE).collect::<Vec<_>>());
    let probe = take(&mut queue, now + FIRST_WAIT);
    assert_eq!(probe, Some(Key(0, 0)), "one has stayed to be the probe");
}

#[test]
fn the_last_key_that_can_be_a_probe_stays() {
    let now = Instant::now();
    let mut queue = Queue::new(CAPACITY);
    queue.side_is_down(Side::Edge, now, 1.0);
    queue.add(Key(1, 0), Class::Normal, None);
    for key in keys(3, 100) {
        queue.add_after(key, Class::Normal, LONGEST_WAIT, now);
    }
    queue.add(Key(4, 0), Class::Normal, None);
    assert_eq!(take(&mut queue, now), Some(Key(4, 0)));
    assert_eq!(take(&mut queue, now + FIRST_WAIT), Some(Key(1, 0)));
}

#[test]
fn a_side_has_a_probe_even_if_its_keys_found_no_room() {
    let now = Instant::now();
    let mut queue = queue(3, 100);
    for key in keys(4, 100) {
        queue.add_after(key, Class::Normal, LONGEST_WAIT, now);
    }
    queue.side_is_down(Side::Edge, now, 1.0);
    queue.add(Key(1, 0), Class::Normal, None);
    while let Some(key) = take(&mut queue, now) {
        queue.done(&key, Done::Finished, now, 1.0);
    }
    let wanted = keys(1, 1).collect();
    refill_all(&mut queue, &wanted, now);
    assert_eq!(queue.next_due(), Some(now + FIRST_WAIT));
    refill_all(&mut queue, &wanted, now + FIRST_WAIT);
    assert_eq!(take(&mut queue, now + FIRST_WAIT), Some(Key(1, 0)));
}

#[test]
fn a_flood_of_one_type_keeps_others_waiting_for_two_turns_of_the_queue_at_most() {
    let now = Instant::now();
    let mut wanted: BTreeSet<_> = keys(3, 5000).collect();
    let mut queue = queue(3, 5000);
    wanted.insert(Key(4, 0));
    queue.add(Key(4, 0), Class::Normal, None);
    for turn in 0.. {
        refill_all(&mut queue, &wanted, now);
        let key = take(&mut queue, now).unwrap();
        queue.done(&key, Done::Finished, now, 0.0);
        wanted.remove(&key);
        // The flood continues.
        wanted.insert(Key(3, 5000 + turn));
        queue.add(Key(3, 5000 + turn), Class::Normal, None);
        if key == Key(4, 0) {
            break;
        }
        assert!(usize::from(turn) < 2 * CAPACITY);
    }
}

/// Workers that sync every key of group 4 at the first attempt, and never one of group 3.
struct Edge {
    queue: Queue<Key>,
    wanted: BTreeSet<Key>,
    attempts: BTreeMap<Key, u32>,
}

impl Edge {
    fn add(&mut self, key: Key) {
        self.wanted.insert(key);
        self.queue.add(key, Class::Normal, None);
    }

    fn run(&mut self, mut now: Instant, until: Instant) {
        while now < until {
            refill_all(&mut self.queue, &self.wanted, now);
            while let Some(key) = take(&mut self.queue, now) {
                let attempts = self.attempts.entry(key).or_default();
                *attempts += 1;
                assert!(*attempts < 100, "{key:?} runs hot");
                let is_good = key.0 == 4;
                let done = if is_good { Done::Finished } else { Done::Retry(None) };
                self.queue.done(&key, done, now, 1.0);
                if is_good {
                    self.wanted.remove(&key);
                }
                now += Duration::from_millis(10);
                refill_all(&mut self.queue, &self.wanted, now);
            }
            let due = self.queue.next_due().unwrap_or(until);
            now = due.clamp(
                now + Duration::from_millis(1),
                until.max(now + Duration::from_millis(1)),
            );
        }
    }
}

#[test]
fn more_bad_objects_than_entries_neither_run_hot_nor_keep_good_ones_waiting() {
    let start = Instant::now();
    let mut edge = Edge {
        queue: Queue::new(64),
        wanted: BTreeSet::new(),
        attempts: BTreeMap::new(),
    };
    let bad = 1000;
    for key in keys(3, bad).chain(keys(4, bad)) {
        edge.add(key);
    }
    let minute = Duration::from_secs(60);
    edge.run(start, start + minute);
    assert!(
        keys(4, bad).all(|key| edge.attempts.contains_key(&key)),
        "all good ones are done"
    );
    assert!(
        keys(3, bad).all(|key| edge.attempts.contains_key(&key)),
        "all bad ones were tried"
    );
    edge.attempts.clear();
    let hour = start + minute * 60;
    edge.run(start + minute, hour);
    let most = *edge.attempts.values().max().unwrap();
    edge.add(Key(4, 0));
    edge.run(hour, hour + Duration::from_millis(100));
    assert!(edge.attempts.contains_key(&Key(4, 0)), "news find room at once");
    // By itself, each would have been tried once every five minutes in the end, after nine tries.
    let ideal = 9 + u32::try_from(3600 / LONGEST_WAIT.as_secs()).unwrap();
    assert!(most <= 2 * ideal);
}
