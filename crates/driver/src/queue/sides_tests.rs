//! Sides that do not answer. Keys of group 0 need both, of group 1 the edge, of group 2 the hub.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::back_off::FIRST_WAIT;
use super::model_tests::{Key, Side};
use super::{Class, Done, Queue};

const HUB_KEYS: u8 = 2;

fn queue(group: u8, keys: u16) -> Queue<Key> {
    let mut queue = Queue::default();
    for number in 0..keys {
        queue.add(Key(group, number), Class::Normal, None);
    }
    queue
}

fn take(queue: &mut Queue<Key>, now: Instant) -> Option<Key> {
    queue.take(now, Class::Last, |_| 0).map(|(key, _)| key)
}

fn take_all(queue: &mut Queue<Key>, now: Instant) -> Vec<Key> {
    std::iter::from_fn(|| take(queue, now)).collect()
}

/// Takes a key, which finds `side` unreachable.
fn fail(queue: &mut Queue<Key>, side: Side, now: Instant) {
    let key = take(queue, now).unwrap();
    assert_eq!(queue.done(&key, Done::Unreachable(side), now, 1.0), None);
}

#[test]
fn a_silent_side_costs_no_attempts_and_gets_one_probe_at_a_time() {
    let mut now = Instant::now();
    let mut queue = queue(HUB_KEYS, 20);
    let taken: Vec<_> = (0..16).map(|_| take(&mut queue, now).unwrap()).collect();
    for key in taken {
        queue.done(&key, Done::Unreachable(Side::Hub), now, 1.0);
    }
    let mut waits = Vec::new();
    for _ in 0..7 {
        assert_eq!(take(&mut queue, now), None);
        let due = queue.next_due().unwrap();
        waits.push((due - now).as_millis());
        now = due;
        let probe = take(&mut queue, now).unwrap();
        assert_eq!(take(&mut queue, now), None, "a probe is in flight");
        assert_eq!(queue.next_due(), None);
        queue.done(&probe, Done::Unreachable(Side::Hub), now, 1.0);
    }
    assert_eq!(waits, [800, 1600, 3200, 6400, 12800, 25600, 30000]);
    assert!(queue.entries.values().all(|entry| entry.failures == 0));
}

#[test]
fn what_waited_for_a_side_goes_on_over_a_while_and_the_first_at_once() {
    let now = Instant::now();
    for (keys, window) in [(2_u16, 20), (100, 1000), (800, 5000)] {
        let mut queue = Queue::new(4096);
        queue.side_is_down(Side::Hub, now, 1.0);
        for number in 0..keys {
            queue.add(Key(HUB_KEYS, number), Class::Normal, None);
        }
        assert!(queue.side_is_back(Side::Hub, now, 1.0));
        assert_eq!(take_all(&mut queue, now), [Key(HUB_KEYS, 0)]);
        let gap = queue.next_due().unwrap() - now;
        assert!(gap <= Duration::from_millis(10));
        let half = take_all(&mut queue, now + Duration::from_millis(window / 2));
        assert!((1 + half.len()).abs_diff(usize::from(keys / 2)) <= 1);
        take_all(&mut queue, now + Duration::from_millis(window));
        assert_eq!(queue.next_due(), None, "all are taken");
        queue.add(Key(HUB_KEYS, keys), Class::Normal, None);
        assert!(take(&mut queue, now + Duration::from_millis(window)).is_some(), "open");
    }
}

#[test]
fn what_does_not_need_the_silent_side_goes_on() {
    let now = Instant::now();
    let mut queue = queue(HUB_KEYS, 3);
    queue.side_is_down(Side::Hub, now, 1.0);
    queue.add(Key(1, 0), Class::Last, None);
    queue.add(Key(0, 0), Class::First, None);
    queue.add(Key(3, 0), Class::Normal, None);
    assert_eq!(take_all(&mut queue, now), [Key(3, 0), Key(1, 0)]);
}

#[test]
fn a_key_that_needs_two_silent_sides_is_a_probe_of_both() {
    let now = Instant::now();
    let mut queue = queue(0, 2);
    queue.add(Key(1, 0), Class::First, None);
    queue.side_is_down(Side::Hub, now, 1.0);
    queue.side_is_down(Side::Edge, now + FIRST_WAIT, 1.0);
    assert_eq!(
        take(&mut queue, now + FIRST_WAIT),
        None,
        "the edge is not to be tried yet"
    );
    let now = now + FIRST_WAIT * 2;
    assert_eq!(take(&mut queue, now), Some(Key(0, 0)));
    assert_eq!(take(&mut queue, now), None);
    queue.done(&Key(0, 0), Done::Unreachable(Side::Hub), now, 1.0);
    assert_eq!(take(&mut queue, now), Some(Key(1, 0)), "nothing was learnt of the edge");
    queue.side_is_back(Side::Edge, now, 1.0);
    assert_eq!(take(&mut queue, now), None);
    assert_eq!(
        take(&mut queue, now + FIRST_WAIT * 2),
        Some(Key(0, 1)),
        "a probe of the hub"
    );
}

#[test]
fn what_began_before_the_return_of_a_side_is_old_news() {
    let now = Instant::now();
    let mut queue = queue(HUB_KEYS, 3);
    let slow = take(&mut queue, now).unwrap();
    fail(&mut queue, Side::Hub, now);
    let now = now + FIRST_WAIT;
    let slow_probe = take(&mut queue, now).unwrap();
    assert!(queue.side_is_back(Side::Hub, now, 1.0));
    for key in [slow, slow_probe] {
        queue.done(&key, Done::Unreachable(Side::Hub), now, 1.0);
    }
    let now = now + Duration::from_secs(1);
    assert_eq!(take_all(&mut queue, now).len(), 3, "all go on, without failures");
    queue.done(&slow, Done::Unreachable(Side::Hub), now, 1.0);
    assert_eq!(take(&mut queue, now), None, "this is news");
}

#[test]
fn a_side_that_flaps_is_believed_ever_later_until_it_is_steady() {
    let mut now = Instant::now();
    let mut queue = queue(HUB_KEYS, 1);
    for wait in [0, 1600, 3200, 6400] {
        fail(&mut queue, Side::Hub, now);
        let wait = Duration::from_millis(wait);
        assert!(wait.is_zero() || !queue.side_is_back(Side::Hub, now + wait / 2, 1.0));
        now += wait;
        assert!(queue.side_is_back(Side::Hub, now, 1.0));
    }
    now += Duration::from_secs(30);
    fail(&mut queue, Side::Hub, now);
    assert!(queue.side_is_back(Side::Hub, now, 1.0), "it was steady");
}

#[test]
fn a_probe_that_asked_nothing_is_followed_by_another_one() {
    let now = Instant::now();
    let mut queue = queue(HUB_KEYS, 3);
    queue.side_is_down(Side::Hub, now, 1.0);
    let now = now + FIRST_WAIT;
    assert_eq!(take(&mut queue, now), Some(Key(HUB_KEYS, 0)));
    queue.done(&Key(HUB_KEYS, 0), Done::Finished, now, 1.0);
    assert_eq!(take(&mut queue, now), Some(Key(HUB_KEYS, 1)));
}

#[test]
fn a_probe_that_is_put_off_is_followed_by_another_one_in_time() {
    for done in [Done::Again, Done::Later(FIRST_WAIT * 9), Done::Retry(None)] {
        let now = Instant::now();
        let mut queue = queue(HUB_KEYS, 3);
        queue.side_is_down(Side::Hub, now, 1.0);
        let now = now + FIRST_WAIT;
        assert_eq!(take(&mut queue, now), Some(Key(HUB_KEYS, 0)));
        queue.done(&Key(HUB_KEYS, 0), done, now, 1.0);
        assert_eq!(take(&mut queue, now), None, "{done:?}: this could go on for ever");
        assert_eq!(queue.next_due(), Some(now + FIRST_WAIT), "{done:?}");
    }
}

#[test]
fn a_late_end_of_an_old_probe_does_not_end_the_present_one() {
    let now = Instant::now();
    let mut queue = queue(HUB_KEYS, 3);
    queue.side_is_down(Side::Hub, now, 0.0);
    let now = now + FIRST_WAIT;
    let old = take(&mut queue, now).unwrap();
    queue.side_is_back(Side::Hub, now, 0.0);
    queue.side_is_down(Side::Hub, now, 0.0);
    let now = now + FIRST_WAIT * 2;
    take(&mut queue, now).unwrap();
    queue.done(&old, Done::Unreachable(Side::Hub), now, 0.0);
    assert_eq!(take(&mut queue, now), None);
}

#[test]
fn a_side_that_goes_down_takes_the_payloads_of_what_waits_for_it() {
    let now = Instant::now();
    let mut queue = Queue::default();
    for group in [1, HUB_KEYS] {
        queue.add(Key(group, 0), Class::Normal, Some(Bytes::from_static(b"body")));
    }
    queue.side_is_down(Side::Hub, now, 1.0);
    assert_eq!(queue.payload_bytes(), 4);
    queue.add(Key(0, 0), Class::Normal, Some(Bytes::from_static(b"news")));
    assert_eq!(queue.payload_bytes(), 4);
}
