use super::*;
use crate::kinds::{Metadata, Source, TargetSpec, TemplateRef, WorkspaceTypeRef};

const SIDE: Side = Side::Shard(0);
const SECOND: Duration = Duration::from_secs(1);

fn key(cluster: &str) -> Key {
    Key {
        shard: SIDE,
        cluster: cluster.into(),
    }
}

fn shown(version: u64) -> Shown {
    Shown {
        version,
        uid: "u".into(),
        place: 0,
    }
}

fn target(template: &str) -> Rc<InitTarget> {
    let template = TemplateRef {
        name: template.to_owned(),
    };
    Rc::new(InitTarget {
        metadata: Metadata::default(),
        spec: TargetSpec {
            workspace_type_ref: WorkspaceTypeRef {
                path: String::new(),
                name: "dev".to_owned(),
            },
            sources: vec![Source {
                template: Some(template),
            }],
        },
    })
}

/// One with a target and a shard, which shows these workspaces at version 1.
fn group(clusters: &[&str], now: Instant) -> Group {
    let mut group = Group::new();
    group.is_for(vec![target("a")]);
    group.open("https://a".into(), SIDE);
    group.begins(SIDE);
    for cluster in clusters {
        group.is_there(key(cluster), shown(1), now);
    }
    assert_eq!(group.is_complete(SIDE), []);
    group
}

/// A turn ends. Gives how long the workspace has been waiting.
fn lasted(group: &mut Group, cluster: &str, turn: Turn, now: Instant) -> Option<Duration> {
    group.ends(&key(cluster), turn, now, 0.5).map(|ended| ended.lasted)
}

fn all(group: &mut Group, now: Instant) -> Vec<Key> {
    std::iter::from_fn(|| group.next(now)).collect()
}

#[test]
fn no_more_than_four_are_worked_on_at_once() {
    let now = Instant::now();
    let mut group = group(&["a", "b", "c", "d", "e", "f"], now);
    assert_eq!(all(&mut group, now), ["a", "b", "c", "d"].map(key));
    assert_eq!((group.waiting(), group.next_due()), (6, None));
    assert_eq!(
        lasted(&mut group, "b", Turn::Released(Some(2)), now),
        Some(Duration::ZERO)
    );
    assert_eq!(all(&mut group, now), [key("e")]);
    assert_eq!(group.waiting(), 5);
}

#[test]
fn more_than_the_queue_holds_get_their_turn() {
    let now = Instant::now();
    let names: Vec<String> = (0..3000).map(|number| format!("w{number}")).collect();
    let mut group = group(&names.iter().map(String::as_str).collect::<Vec<_>>(), now);
    let mut done = 0;
    while let Some(key) = group.next(now) {
        group.ends(&key, Turn::Released(Some(2)), now, 0.5);
        done += 1;
    }
    assert_eq!((done, group.waiting()), (3000, 0));
}

#[test]
fn what_waits_and_what_fails_is_tried_later_each_time_and_at_once_when_something_changes() {
    for (turn, waits) in [
        (Turn::Waits, [500, 750, 1125, 1687, 2531, 3796]),
        (Turn::Fails, [5, 10, 20, 40, 80, 160]),
    ] {
        let mut now = Instant::now();
        let mut group = group(&["a"], now);
        for wait in waits {
            assert_eq!(group.next(now), Some(key("a")));
            group.ends(&key("a"), turn, now, 1.0);
            let wait = Duration::from_millis(wait + 1);
            let due = group.next_due().expect("it is tried later");
            assert!(
                due <= now + wait && now + wait < due + Duration::from_millis(2),
                "{:?}",
                due - now
            );
            assert_eq!(group.next(now + wait / 2), None);
            now += wait;
        }
        assert_eq!(group.next(now), Some(key("a")));
        group.ends(&key("a"), turn, now, 1.0);
        assert!(!group.is_for(vec![target("a")]), "it is the same");
        assert_eq!(group.next(now), None);
        assert!(group.is_for(vec![target("b")]));
        assert_eq!(group.next(now), Some(key("a")));
        group.renews();
        group.ends(&key("a"), turn, now, 1.0);
        assert_eq!(group.next(now), Some(key("a")), "it got what is old by now");
        group.ends(&key("a"), turn, now, 1.0);
        assert_eq!(group.next_due(), Some(now + Duration::from_millis(waits[0])));
    }
    let mut group = group(&["a"], Instant::now());
    let mut now = Instant::now();
    for _ in 0..40 {
        assert_eq!(group.next(now), Some(key("a")));
        group.ends(&key("a"), Turn::Fails, now, 1.0);
        now += RETRIES.longest;
    }
}

#[test]
fn what_is_released_has_no_turn_until_it_waits_once_more() {
    let now = Instant::now();
    let mut group = group(&["a"], now);
    assert_eq!(group.next(now), Some(key("a")));
    group.is_there(key("a"), shown(3), now);
    assert!(group.is_complete_now(&key("a")));
    group.ends(&key("a"), Turn::Released(Some(5)), now, 0.5);
    // What was on its way when it was taken off.
    group.is_there(key("a"), shown(4), now);
    assert_eq!((group.next(now), group.waiting()), (None, 0));
    // Somebody has put it back.
    group.is_there(key("a"), shown(6), now + SECOND);
    assert_eq!(group.next(now + SECOND), Some(key("a")));
    // It was off already, as seen later than the last event.
    assert_eq!(
        lasted(&mut group, "a", Turn::Released(None), now + 3 * SECOND),
        Some(2 * SECOND)
    );
    group.is_there(key("a"), shown(6), now);
    assert_eq!(group.next(now), None);
    group.is_gone(&key("a"));
    group.is_there(key("a"), shown(6), now);
    assert_eq!(group.next(now), Some(key("a")));
}

#[test]
fn what_a_list_does_not_name_is_gone() {
    let now = Instant::now();
    let mut group = group(&["a", "b"], now);
    group.begins(SIDE);
    group.is_there(key("b"), shown(1), now);
    assert_eq!(group.is_complete(SIDE), [key("a")]);
    assert_eq!(all(&mut group, now), [key("b")]);
    group.is_gone(&key("b"));
    assert_eq!(group.waiting(), 0, "though it is worked on");
    let ended = group.ends(&key("b"), Turn::Fails, now, 0.5);
    assert_eq!(ended.map(|ended| ended.is_there), Some(false));
    assert_eq!((group.next(now + SECOND), group.waiting()), (None, 0));
}

#[test]
fn a_shard_that_closes_leaves_nothing_behind() {
    let now = Instant::now();
    let mut group = group(&["a", "b", "c", "d", "e"], now);
    assert_eq!(all(&mut group, now).len(), 4);
    let (side, gone) = group.close("https://a", now).unwrap();
    assert_eq!((side, gone.len(), group.waiting()), (SIDE, 5, 0));
    assert_eq!(group.ends(&key("a"), Turn::Fails, now, 0.5), None, "a late answer");
    group.open("https://b".into(), Side::Shard(1));
    let key = Key {
        shard: Side::Shard(1),
        cluster: "a".into(),
    };
    group.is_there(key.clone(), shown(1), now);
    assert_eq!(all(&mut group, now), [key], "all four places are free");
}

#[test]
fn while_a_side_is_away_one_at_a_time_asks_whether_it_is_back() {
    let now = Instant::now();
    let mut group = group(&["a", "b"], now);
    assert_eq!(all(&mut group, now).len(), 2);
    group.ends(&key("a"), Turn::Unreachable(SIDE), now, 0.5);
    group.ends(&key("b"), Turn::Unreachable(SIDE), now, 0.5);
    assert_eq!(group.next(now), None);
    let due = group.next_due().unwrap();
    assert_eq!(all(&mut group, due).len(), 1);
    group.ends(&key("a"), Turn::Unreachable(SIDE), due, 0.5);
    group.answer([SIDE].into_iter(), due, 0.5);
    let mut now = due;
    while group.taken.len() < 2 {
        group.next(now);
        now += SECOND / 10;
        assert!(now < due + 5 * SECOND);
    }
}

#[test]
fn what_is_gone_before_its_turn_is_over_is_still_known_then() {
    let now = Instant::now();
    let mut group = group(&["a"], now);
    assert_eq!(group.next(now), Some(key("a")));
    group.gets(&key("a"), "root:a".to_owned(), 2);
    // The watch is often quicker than the answer.
    group.is_gone(&key("a"));
    let ended = group.ends(&key("a"), Turn::Released(Some(5)), now + SECOND, 0.5);
    let expected = Ended {
        lasted: SECOND,
        path: "root:a".into(),
        created: 2,
        is_there: false,
        is_again: false,
    };
    assert_eq!(ended, Some(expected));
    assert_eq!(
        group.ends(&key("a"), Turn::Fails, now, 0.5),
        None,
        "then nothing is left"
    );
    assert_eq!((group.next(now + SECOND), group.waiting()), (None, 0));
}

#[test]
fn what_is_put_back_before_the_answer_is_there_waits_once_more() {
    for goes in [false, true] {
        let now = Instant::now();
        let mut group = group(&["a"], now);
        assert_eq!(group.next(now), Some(key("a")));
        if goes {
            group.is_gone(&key("a"));
        }
        group.is_there(key("a"), shown(6), now);
        group.ends(&key("a"), Turn::Released(Some(5)), now, 0.5);
        assert_eq!((group.next(now), group.waiting()), (Some(key("a")), 1));
    }
}

#[test]
fn who_got_everything_is_only_let_go_when_the_initializer_is_put_back() {
    // Whether the watch has seen it go, as which workspace at which version it is shown then, whether what is wanted has
    // changed since; and whether it is only let go.
    for (goes, uid, version, changes, expected) in [
        (true, "u", 6, false, true),
        (false, "u", 6, false, true),
        (true, "u", 6, true, false),
        (true, "other", 6, false, false),
        // An older state: nobody knows what is there.
        (true, "u", 4, false, false),
    ] {
        let now = Instant::now();
        let mut group = group(&["a"], now);
        assert_eq!(group.next(now), Some(key("a")));
        assert_eq!(group.place_to_release(&key("a")), None);
        group.gets(&key("a"), "root:a".to_owned(), 2);
        assert!(group.is_complete_now(&key("a")));
        group.ends(&key("a"), Turn::Released(Some(5)), now, 0.5);
        if goes {
            group.is_gone(&key("a"));
        }
        if changes {
            group.renews();
        }
        let again = Shown {
            version,
            uid: uid.into(),
            place: 3,
        };
        group.is_there(key("a"), again, now);
        assert_eq!(group.next(now), Some(key("a")));
        let place = group.place_to_release(&key("a"));
        assert_eq!(place, expected.then_some(3), "{goes} {uid} {version} {changes}");
        let ended = group.ends(&key("a"), Turn::Released(Some(9)), now, 0.5).unwrap();
        assert_eq!(
            ended.is_again,
            uid == "u" && version == 6,
            "{goes} {uid} {version} {changes}"
        );
    }
}

#[test]
fn who_got_everything_is_only_let_go_after_a_refusal_of_that() {
    let now = Instant::now();
    let mut group = group(&["a"], now);
    group.next(now);
    assert!(group.is_complete_now(&key("a")));
    group.ends(&key("a"), Turn::Fails, now, 1.0);
    let later = group.next_due().unwrap();
    assert_eq!(group.next(later), Some(key("a")));
    assert_eq!(group.place_to_release(&key("a")), Some(0));
    group.renews();
    assert_eq!(group.place_to_release(&key("a")), None, "more is wanted now");
    assert!(!group.is_complete_now(&key("a")));
}

#[test]
fn who_is_shown_again_while_found_to_be_let_go_is_read_again() {
    for goes in [false, true] {
        let now = Instant::now();
        let mut group = group(&["a"], now);
        assert_eq!(group.next(now), Some(key("a")));
        if goes {
            group.is_gone(&key("a"));
        }
        group.is_there(key("a"), shown(6), now);
        group.ends(&key("a"), Turn::Released(None), now, 0.5);
        assert_eq!((group.next(now), group.waiting()), (Some(key("a")), 1));
        group.ends(&key("a"), Turn::Released(None), now, 0.5);
        assert_eq!((group.next(now), group.waiting()), (None, 0));
    }
}

#[test]
fn what_is_put_back_again_and_again_is_taken_off_less_and_less_often() {
    for goes in [false, true] {
        let mut now = Instant::now();
        let mut group = group(&["a"], now);
        let mut waits = Vec::new();
        for round in 1..6 {
            let due = group.next_due().map_or(now, |due| due.max(now));
            waits.push((due - now).as_millis());
            now = due;
            assert_eq!(group.next(now), Some(key("a")), "round {round}");
            group.is_complete_now(&key("a"));
            if goes {
                group.ends(&key("a"), Turn::Released(Some(10 * round)), now, 0.5);
                group.is_gone(&key("a"));
                group.is_there(key("a"), shown(10 * round + 5), now);
            } else {
                // It is back before the answer is there.
                group.is_there(key("a"), shown(10 * round + 5), now);
                group.ends(&key("a"), Turn::Released(Some(10 * round)), now, 0.5);
            }
        }
        assert_eq!(waits, [0, 0, 10, 20, 40]);
    }
}

#[test]
fn what_a_workspace_that_waits_has_is_known_until_something_fails_or_changes() {
    let now = Instant::now();
    let some = || {
        Rc::new(SoFar {
            path: "root:a".to_owned(),
            ..SoFar::default()
        })
    };
    for (turn, changes, expected) in [
        (Turn::Waits, false, some()),
        (Turn::Fails, false, Rc::default()),
        (Turn::Waits, true, Rc::default()),
    ] {
        let mut group = group(&["a"], now);
        group.next(now);
        group.has_come(&key("a"), some());
        group.ends(&key("a"), turn, now, 1.0);
        if changes {
            group.renews();
        }
        let later = now + 2 * SECOND;
        assert_eq!(group.next(later), Some(key("a")));
        assert_eq!(group.so_far(&key("a")), (expected, false));
    }
}

#[test]
fn who_waits_for_long_is_done_as_a_whole_now_and_then() {
    let mut now = Instant::now();
    let mut group = group(&["a"], now);
    let mut wholes = Vec::new();
    for look in 0..30 {
        assert_eq!(group.next(now), Some(key("a")));
        if group.so_far(&key("a")).1 {
            wholes.push(look);
        }
        group.has_come(&key("a"), Rc::default());
        group.ends(&key("a"), Turn::Waits, now, 1.0);
        now = group.next_due().unwrap();
    }
    assert_eq!(wholes, [12, 24]);
}
