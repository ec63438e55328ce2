//! One key, its turns and its waits.

use std::cell::Cell;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::back_off::{FIRST_WAIT, LONGEST_WAIT};
use super::{Class, Done, NOT_NOW, Queue, QueueKey};

impl QueueKey for &'static str {
    type Payload = Bytes;
    type Side = ();
    type Group = ();
    type Lot = &'static str;

    fn lot(&self) -> &'static str {
        self
    }

    fn group(&self) {}

    fn needs(&self) -> &[()] {
        &[]
    }
}

fn queue(keys: &[&'static str]) -> Queue<&'static str> {
    let mut queue = Queue::default();
    for &key in keys {
        queue.add(key, Class::Normal, None);
    }
    queue
}

fn take_all(queue: &mut Queue<&'static str>, now: Instant) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take(now, Class::Last, |_| 0))
        .map(|(key, _)| key)
        .collect()
}

#[test]
fn a_key_has_one_entry_and_keeps_its_turn() {
    let mut queue = queue(&["a", "b", "a", "c", "a"]);
    assert_eq!(take_all(&mut queue, Instant::now()), ["a", "b", "c"]);
}

#[test]
fn a_key_is_there_until_a_worker_is_done_with_it() {
    let now = Instant::now();
    let mut queue = queue(&["ready"]);
    queue.add_after("later", Class::Normal, Duration::from_secs(5), now);
    assert_eq!(queue.take(now, Class::Last, |_| 0), Some(("ready", None)));
    assert_eq!(
        ["ready", "later", "absent"].map(|key| queue.has(&key)),
        [true, true, false]
    );
    queue.done(&"ready", Done::Finished, now, 0.0);
    assert!(!queue.has(&"ready"));
}

#[test]
fn a_key_whose_time_has_not_come_waits_for_just_that_and_has_not_failed() {
    let now = Instant::now();
    let mut queue = queue(&["a"]);
    queue.take(now, Class::Last, |_| 0);
    let wait = Duration::from_secs(7);
    assert_eq!(queue.done(&"a", Done::NotYet(wait), now, 0.3), Some(wait));
    assert_eq!((queue.next_due(), queue.failures(&"a")), (Some(now + wait), 0));
    queue.add("a", Class::Normal, None);
    assert_eq!(queue.take(now, Class::Last, |_| 0), Some(("a", None)));
}

#[test]
fn a_key_is_as_old_as_what_is_to_be_done_for_it() {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let mut queue = queue(&["of unknown age"]);
    assert_eq!(queue.oldest(), None);
    queue.it_is(at(1));
    queue.add("a", Class::Normal, None);
    queue.it_is(at(2));
    queue.add_after("b", Class::Normal, Duration::from_secs(60), at(2));
    queue.add("a", Class::Normal, None);
    assert_eq!((queue.since(&"a"), queue.since(&"b")), (Some(at(1)), Some(at(2))));
    assert_eq!(queue.oldest(), Some(at(1)));
    // It fails, and changes while a worker has it: then something else is to be done.
    take_all(&mut queue, at(3));
    queue.done(&"a", Done::Retry(None), at(4), 0.0);
    assert_eq!(queue.since(&"a"), Some(at(1)));
    take_all(&mut queue, at(10));
    queue.add("a", Class::Normal, None);
    queue.done(&"a", Done::Finished, at(11), 0.0);
    assert_eq!(queue.since(&"a"), Some(at(11)));
    assert_eq!(queue.oldest(), Some(at(2)));
}

#[test]
fn keys_go_by_class() {
    let now = Instant::now();
    let mut queue = Queue::default();
    queue.add("deleted namespace", Class::Last, None);
    queue.add("a", Class::Normal, None);
    queue.add("namespace", Class::First, None);
    assert_eq!(queue.take(now, Class::First, |_| 0), Some(("namespace", None)));
    assert_eq!(queue.take(now, Class::First, |_| 0), None);
    assert_eq!(queue.take(now, Class::Normal, |_| 0), Some(("a", None)));
    assert_eq!(queue.take(now, Class::Normal, |_| 0), None);
    queue.add("deleted namespace", Class::First, None);
    assert_eq!(
        queue.take(now, Class::First, |_| 0),
        Some(("deleted namespace", None)),
        "wanted after all"
    );
}

#[test]
fn of_one_class_those_of_the_lowest_rank_go_first_whatever_their_turn() {
    let now = Instant::now();
    let rank = |key: &&str| usize::from(key.starts_with("crowded"));
    let mut queue = queue(&["crowded 1", "crowded 2", "b", "a"]);
    queue.add("crowded namespace", Class::First, None);
    assert_eq!(queue.take(now, Class::Last, rank), Some(("crowded namespace", None)));
    assert_eq!(queue.take(now, Class::Last, rank), Some(("b", None)));
    let wait = queue.done(&"b", Done::Retry(None), now, 0.5).unwrap();
    assert_eq!(queue.take(now, Class::Last, rank), Some(("a", None)));
    assert_eq!(queue.take(now, Class::Last, rank), Some(("crowded 1", None)));
    assert_eq!(
        queue.take(now + wait, Class::Last, rank),
        Some(("b", None)),
        "its back-off is over, and nobody has news but the crowd"
    );
    assert_eq!(queue.take(now, Class::Last, rank), Some(("crowded 2", None)));
}

#[test]
fn a_delayed_key_keeps_its_time_unless_something_changes() {
    let now = Instant::now();
    let mut queue = Queue::default();
    let wait = Duration::from_secs(5);
    queue.add_after("a", Class::Normal, wait, now);
    queue.add_after("a", Class::Normal, wait * 2, now);
    assert_eq!(queue.next_due(), Some(now + wait));
    assert_eq!(queue.take(now, Class::Last, |_| 0), None);
    assert_eq!(queue.take(now + wait, Class::Last, |_| 0), Some(("a", None)));
    queue.add_after("b", Class::Normal, wait, now);
    queue.add("b", Class::Normal, None);
    assert_eq!(queue.take(now, Class::Last, |_| 0), Some(("b", None)));
}

#[test]
fn a_key_is_never_taken_twice_at_once() {
    let now = Instant::now();
    let mut queue = queue(&["a"]);
    queue.take(now, Class::Last, |_| 0).unwrap();
    queue.add("a", Class::Normal, None);
    assert!(queue.take(now, Class::Last, |_| 0).is_none());
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
        queue.take(now, Class::Last, |_| 0).unwrap();
        let wait = queue.done(&"a", Done::Retry(None), now, 1.0).unwrap();
        assert_eq!(wait, Duration::from_millis(expected));
        assert!(queue.take(now, Class::Last, |_| 0).is_none());
        assert_eq!(queue.next_due(), Some(now + wait));
        now += wait;
    }
    queue.take(now, Class::Last, |_| 0).unwrap();
    queue.done(&"a", Done::Finished, now, 1.0);
    queue.add("a", Class::Normal, None);
    queue.take(now, Class::Last, |_| 0).unwrap();
    assert_eq!(queue.done(&"a", Done::Retry(None), now, 1.0), Some(FIRST_WAIT));
}

#[test]
fn the_server_may_ask_for_a_longer_wait() {
    let now = Instant::now();
    let mut queue = queue(&["a"]);
    queue.take(now, Class::Last, |_| 0).unwrap();
    let asked = Duration::from_secs(7);
    assert_eq!(queue.done(&"a", Done::Retry(Some(asked)), now, 1.0), Some(asked));
}

#[test]
fn a_change_ends_the_wait_but_not_the_count() {
    let now = Instant::now();
    let mut queue = queue(&["a"]);
    queue.take(now, Class::Last, |_| 0).unwrap();
    queue.done(&"a", Done::Retry(None), now, 1.0);
    queue.add("a", Class::Normal, Some(Bytes::from_static(b"new")));
    assert_eq!(
        queue.take(now, Class::Last, |_| 0),
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
    queue.take(now, Class::Last, |_| 0);
    assert_eq!(queue.payload_bytes(), 0);
    queue.add("b", Class::Normal, body(5));
    queue.remove_where(|key| *key == "b");
    assert_eq!(queue.payload_bytes(), 0);
    assert_eq!(queue.len(), 1);
}

#[test]
fn waking_some_keys_leaves_the_others_waiting() {
    let now = Instant::now();
    let mut queue = queue(&["a", "b"]);
    for _ in 0..2 {
        let (key, _) = queue.take(now, Class::Last, |_| 0).unwrap();
        queue.done(&key, Done::Retry(None), now, 1.0);
    }
    queue.wake_where(|key| *key == "b");
    assert_eq!(take_all(&mut queue, now), ["b"]);
    assert_eq!(take_all(&mut queue, now + FIRST_WAIT), ["a"]);
}

#[test]
fn only_the_word_of_a_server_outlasts_a_change() {
    let now = Instant::now();
    let asked = Duration::from_secs(7);
    for done in [Done::Retry(None), Done::Later(asked), Done::Retry(Some(asked))] {
        let stays = done == Done::Retry(Some(asked));
        let mut queue = queue(&["changed while it waits", "changed while it runs"]);
        for key in take_all(&mut queue, now) {
            if key == "changed while it runs" {
                queue.add(key, Class::Normal, None);
            }
            queue.done(&key, done, now, 1.0);
        }
        queue.add("changed while it waits", Class::First, Some(Bytes::from_static(b"new")));
        assert_eq!(take_all(&mut queue, now).is_empty(), stays, "{done:?}");
        assert_eq!(queue.next_due(), stays.then_some(now + asked));
        assert_eq!(queue.payload_bytes(), 0);
        assert_eq!(take_all(&mut queue, now + asked).len(), if stays { 2 } else { 0 });
    }
}

#[test]
fn a_change_ends_the_back_off_beyond_what_the_server_asked_for() {
    let mut now = Instant::now();
    let mut queue = queue(&["a"]);
    for _ in 0..8 {
        queue.take(now, Class::Last, |_| 0).unwrap();
        now += queue.done(&"a", Done::Retry(None), now, 1.0).unwrap();
    }
    queue.take(now, Class::Last, |_| 0).unwrap();
    let asked = Duration::from_secs(1);
    assert!(queue.done(&"a", Done::Retry(Some(asked)), now, 1.0) > Some(asked));
    queue.add("a", Class::Normal, None);
    assert_eq!(queue.next_due(), Some(now + asked));
}

#[test]
fn keys_that_have_failed_neither_keep_news_waiting_nor_wait_for_ever() {
    let now = Instant::now();
    let mut queue = queue(&["failed 1", "failed 2"]);
    for key in take_all(&mut queue, now) {
        queue.done(&key, Done::Retry(None), now, 1.0);
    }
    let later = now + FIRST_WAIT;
    // Their back-off is over before any of these comes.
    assert!(queue.take(now, Class::Last, |_| 0).is_none());
    queue.wake(later);
    for key in ["a", "b", "c", "d", "e", "f"] {
        queue.add(key, Class::Normal, None);
    }
    let order = ["a", "b", "failed 1", "c", "d", "e", "f", "failed 2"];
    // Two of four were taken before.
    assert_eq!(take_all(&mut queue, later), order);
}

#[test]
fn a_key_that_has_failed_and_changes_is_news() {
    let now = Instant::now();
    let mut queue = queue(&["failed", "changed"]);
    for key in take_all(&mut queue, now) {
        queue.done(&key, Done::Retry(None), now, 1.0);
    }
    queue.wake(now + FIRST_WAIT);
    queue.add("changed", Class::Normal, None);
    assert_eq!(take_all(&mut queue, now + FIRST_WAIT), ["changed", "failed"]);
}

#[test]
fn keys_wake_in_the_order_in_which_they_are_due() {
    let now = Instant::now();
    let mut queue = Queue::default();
    for (key, wait) in [("b", 2), ("c", 3), ("a", 1)] {
        queue.add_after(key, Class::Normal, Duration::from_secs(wait), now);
    }
    queue.wake_where(|_| true);
    assert_eq!(take_all(&mut queue, now), ["a", "b", "c"]);
}

#[test]
fn what_is_put_off_comes_back_with_its_group() {
    let (mut queue, now) = (queue(&["there"]), Instant::now());
    assert_eq!((queue.of_lot(&"there"), queue.of_lot(&"new")), (1, 0));
    queue.put_off("there", Class::Normal);
    assert_eq!(queue.overflowed().count(), 0, "it has an entry");
    queue.put_off("new", Class::Normal);
    assert_eq!(take_all(&mut queue, now), ["there"]);
    let mut all = vec!["new"];
    while queue.refill(now, |(), _| {
        std::mem::take(&mut all).into_iter().map(|key| (key, Class::Normal))
    }) {}
    assert_eq!(take_all(&mut queue, now), ["new"]);
}

/// A key of a lot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OfLot(usize, usize);

impl QueueKey for OfLot {
    type Payload = Bytes;
    type Side = ();
    type Group = ();
    type Lot = usize;

    fn lot(&self) -> usize {
        self.0
    }

    fn group(&self) {}

    fn needs(&self) -> &[()] {
        &[]
    }
}

// Issue 41: with room for 100,000 objects and as many as 10,000 of one type, a turn of the loop took many seconds.
#[test]
fn a_lot_that_has_its_share_is_passed_over_whatever_its_class() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    for (key, class) in [
        ("crowded", Class::First),
        ("crowded too", Class::Normal),
        ("a", Class::Last),
    ] {
        queue.add(key, class, None);
    }
    let rank = |key: &&str| if key.starts_with("crowded") { NOT_NOW } else { 3 };
    assert_eq!(queue.take(now, Class::Last, rank), Some(("a", None)));
    assert_eq!(queue.take(now, Class::Last, rank), None);
    assert_eq!(queue.take(now, Class::Last, |_| 7), Some(("crowded", None)));
}

#[test]
fn the_key_of_the_lowest_rank_is_found_by_a_visit_of_each_lot_however_many_keys_are_ready() {
    const LOTS: usize = 10;
    for count in [1000, 10_000] {
        let (mut queue, now, visits) = (Queue::new(100_000), Instant::now(), Cell::new(0));
        for index in 0..count {
            queue.add(OfLot(index % LOTS, index), Class::Normal, None);
        }
        // All are crowded, the last lot least.
        let rank = |key: &OfLot| {
            visits.set(visits.get() + 1);
            LOTS - key.0
        };
        for index in 0..count {
            let (key, _) = queue.take(now, Class::Last, rank).expect("all are ready");
            assert_eq!(key.0, LOTS - 1 - index / (count / LOTS), "the lowest rank first");
            queue.done(&key, Done::Later(Duration::from_secs(1)), now, 0.5);
        }
        assert!(visits.get() <= count * (LOTS + 1), "{} visits", visits.get());
        assert_eq!(queue.take(now, Class::Last, rank), None);
    }
}
