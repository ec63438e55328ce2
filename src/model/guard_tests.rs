use super::counting::PASS;
use super::*;
use crate::cluster::ObjectName;
use crate::model::Task;

const LIMITS: Limits = Limits {
    most: 20,
    grace: Duration::from_secs(600),
};

fn a_copy() -> Key {
    Key::new(0, Task::Object, ObjectName::new("shop", "a"))
}

#[test]
fn many_and_most_are_too_many() {
    let now = Instant::now();
    for (doomed, done, copies, held) in [
        (20, 0, 20, false),
        (21, 0, 21, true),
        (21, 0, 41, true),
        (21, 0, 42, false),
        (1, 20, 10, true),
        (1, 20, 60, false),
        (500, 0, 1001, false),
    ] {
        let mut gate = Gate::default();
        for _ in 0..done {
            gate.done.push(a_copy(), false, now);
            gate.done.push(a_copy(), true, now);
        }
        assert_eq!(
            gate.are_too_many(doomed, copies, LIMITS),
            held,
            "{doomed} {done} {copies}"
        );
    }
    let never = Limits {
        grace: Duration::ZERO,
        ..LIMITS
    };
    assert!(!Gate::default().are_too_many(100, 100, never));
}

#[test]
fn deletes_one_by_one_are_one_pass_for_a_minute() {
    let now = Instant::now();
    let mut done = DeletesDone::default();
    done.push(a_copy(), false, now);
    done.push(a_copy(), false, now + PASS / 2);
    done.drop_old(now + PASS);
    assert_eq!(done.without_permit(), 1);
}

#[test]
fn a_token_is_for_one_hold() {
    let mut chance = fastrand::Rng::with_seed(1);
    let mut token = || {
        let reason = Reason::TooMany { doomed: 30, of: 50 };
        Hold::begin(Direction::Down, reason, None, &mut chance).token
    };
    assert_ne!(token(), token());
}

#[test]
fn a_hold_gives_way_to_a_graver_one() {
    let other = |found: &str| Reason::OtherCluster {
        expected: "a".into(),
        found: found.into(),
    };
    let went_back = |to| Reason::WentBack {
        resource: "secrets".into(),
        from: 9,
        to,
    };
    let too_many = Reason::TooMany { doomed: 30, of: 50 };
    for (new, known, expected) in [
        (went_back(1), &too_many, true),
        (other("b"), &too_many, true),
        (other("b"), &went_back(1), true),
        (other("c"), &other("b"), true),
        (other("b"), &other("b"), false),
        (went_back(1), &went_back(2), false),
        (went_back(1), &other("b"), false),
    ] {
        assert_eq!(new.is_graver_than(known), expected, "{new} {known}");
    }
}
