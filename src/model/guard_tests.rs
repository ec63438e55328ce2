use kube_lite::ObjectName;

use super::counting::{Loss, PASS};
use super::*;
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
    for (pending, done, copies, held) in [
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
            gate.done.push(a_copy(), Loss::Lasting, now);
            gate.done.push(a_copy(), Loss::Permitted, now);
        }
        assert_eq!(
            gate.are_too_many(pending, copies, LIMITS),
            held,
            "{pending} {done} {copies}"
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
    done.push(a_copy(), Loss::OfOneRun, now);
    done.push(a_copy(), Loss::OfOneRun, now + PASS / 2);
    done.drop_old(now + PASS);
    assert_eq!(done.without_permit(), 1);
}

/// What becomes of copies: so many are created, deleted or ended by a run, each so many seconds after the one before.
#[derive(Clone, Copy)]
enum Does {
    Create(u32, f64),
    Delete(u32, f64),
    /// One is created and another one deleted, each time.
    Replace(u32, f64),
    /// One that runs once is created, and deleted at the end.
    Run(u32, f64),
    Nothing(f64),
    /// People confirm what is held.
    Confirm,
}

/// Whether deletes are held, and then how many copies are left.
fn left(story: &[Does]) -> Option<i64> {
    let (mut gate, mut now, mut copies) = (Gate::default(), Instant::now(), 0_i64);
    for &does in story {
        let (count, pace) = match does {
            Does::Create(count, pace) | Does::Delete(count, pace) | Does::Replace(count, pace) => (count, pace),
            Does::Run(count, pace) => (2 * count, pace),
            Does::Nothing(time) => (1, time),
            Does::Confirm => {
                gate.done.forgive();
                continue;
            }
        };
        for index in 0..count {
            now += Duration::from_secs_f64(pace);
            gate.done.drop_old(now);
            let (made, gone, loss) = match does {
                Does::Create(..) => (1, 0, Loss::Lasting),
                Does::Delete(..) => (0, 1, Loss::Lasting),
                Does::Replace(..) => (1, 1, Loss::Lasting),
                Does::Run(count, _) => (i64::from(index < count), i64::from(index >= count), Loss::OfOneRun),
                Does::Nothing(_) | Does::Confirm => (0, 0, Loss::Lasting),
            };
            copies += made;
            for _ in 0..made {
                gate.done.is_made(&a_copy(), loss, now);
            }
            if gone > 0 {
                if gate.are_too_many(1, usize::try_from(copies).unwrap(), LIMITS) {
                    return Some(copies);
                }
                copies -= gone;
                gate.done.push(a_copy(), loss, now);
            }
        }
    }
    None
}

#[test]
fn many_and_most_are_too_many_also_if_they_come_slowly_and_nothing_takes_their_place() {
    use Does::{Confirm, Create, Delete, Nothing, Replace, Run};
    const HOUR: f64 = 3600.0;
    for (what, story, expected) in [
        (
            "all at two a second",
            &[Create(1000, 0.0), Delete(1000, 0.5)][..],
            Some(500),
        ),
        (
            "all at ten a minute",
            &[Create(1000, 0.0), Nothing(7.0 * HOUR), Delete(1000, 6.0)],
            Some(500),
        ),
        ("a few, one each minute", &[Create(50, 1.0), Delete(50, 60.0)], Some(25)),
        (
            "one app of three",
            &[Create(99, 1.0), Nothing(HOUR), Delete(33, 0.1)],
            None,
        ),
        (
            "one app of three, slowly",
            &[Create(99, 1.0), Nothing(HOUR), Delete(33, 60.0)],
            None,
        ),
        (
            "60% over a day",
            &[Create(1000, 0.0), Nothing(HOUR), Delete(600, 144.0)],
            None,
        ),
        (
            "60% over an hour",
            &[Create(1000, 0.0), Nothing(HOUR), Delete(600, 6.0)],
            Some(500),
        ),
        ("no more than the least", &[Create(20, 0.0), Delete(20, 60.0)], None),
        (
            "as many come as go, all day",
            &[Create(100, 0.0), Replace(2400, 36.0)],
            None,
        ),
        (
            "a rollout in place",
            &[Create(500, 0.0), Nothing(HOUR), Replace(500, 4.0)],
            None,
        ),
        (
            "a rollout beside",
            &[Create(500, 0.0), Nothing(HOUR), Create(500, 2.0), Delete(500, 2.0)],
            None,
        ),
        (
            "jobs in the evening",
            &[Create(50, 0.0), Run(400, 3.0), Nothing(HOUR), Run(400, 3.0)],
            None,
        ),
        (
            "the rest, after a confirmation",
            &[Create(1000, 0.0), Delete(400, 6.0), Confirm, Delete(250, 6.0)],
            None,
        ),
        (
            "one more, a moment after a confirmation",
            &[Create(44, 0.0), Delete(21, 0.1), Confirm, Delete(3, 1.0)],
            None,
        ),
        (
            "the rest, and half of that, after a confirmation",
            &[Create(1000, 0.0), Delete(400, 6.0), Confirm, Delete(400, 6.0)],
            Some(300),
        ),
        (
            "what was lost before is forgotten",
            &[Create(100, 0.0), Delete(45, 30.0), Nothing(HOUR), Delete(25, 30.0)],
            None,
        ),
    ] {
        assert_eq!(left(story), expected, "{what}");
    }
}

#[test]
fn a_token_is_for_one_hold() {
    let mut tokens = NewTokens::new(1, false);
    let mut token = || {
        let reason = Reason::TooMany { pending: 30, of: 50 };
        Hold::begin(Direction::Down, reason, None, &mut tokens).token
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
    let too_many = Reason::TooMany { pending: 30, of: 50 };
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
