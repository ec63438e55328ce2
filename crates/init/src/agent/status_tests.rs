use serde_json::{Value, json};

use super::*;
use crate::fill::Why;

fn name(name: &str) -> ObjectName {
    ObjectName::new("", name)
}

fn stored(status: &Value) -> Stored {
    serde_json::from_value(json!({"metadata": {"uid": "u", "generation": 2}, "status": status})).unwrap()
}

fn finding(is_true: bool, reason: &'static str) -> Finding {
    let words = format!("about {reason}");
    Finding { is_true, reason, words }
}

fn facts(ready: bool, waiting: usize) -> Facts {
    Facts {
        ready: finding(ready, if ready { "Serving" } else { "TypeNotFound" }),
        stalled: finding(false, "NothingFails"),
        waiting,
    }
}

/// Conditions as they were written at some time.
fn written(ready: bool, waiting: usize) -> Value {
    let (status, facts) = (if ready { "True" } else { "False" }, facts(ready, waiting));
    let condition = |name: &str, status: &str, of: &Finding| {
        json!({"type": name, "status": status, "reason": of.reason, "message": of.words, "observedGeneration": 2,
            "lastTransitionTime": "then"})
    };
    let conditions = [
        condition("Ready", status, &facts.ready),
        condition("Stalled", "False", &facts.stalled),
    ];
    json!({"observedGeneration": 2, "waitingWorkspaces": waiting, "conditions": conditions})
}

#[test]
fn only_what_differs_is_written_and_a_time_changes_with_its_condition() {
    let mut older = written(true, 0);
    older["observedGeneration"] = json!(1);
    let mut other = written(true, 0);
    other["conditions"][0]["reason"] = json!("Else");
    let foreign = json!({"conditions": [{"type": "Mine", "status": "True", "reason": "X", "message": "",
        "observedGeneration": 1, "lastTransitionTime": "long ago"}]});
    // What is there, what is known; whether it is urgent, and since when it is ready.
    for (what, before, now, expected) in [
        ("nothing is there", Value::Null, facts(true, 0), Some((true, ""))),
        ("it is there", written(true, 3), facts(true, 3), None),
        ("it is there and bad", written(false, 0), facts(false, 0), None),
        ("another count", written(true, 3), facts(true, 4), Some((false, "then"))),
        ("it became bad", written(true, 3), facts(false, 3), Some((true, ""))),
        ("it became good", written(false, 3), facts(true, 3), Some((true, ""))),
        ("an older generation", older, facts(true, 0), Some((false, "then"))),
        ("another reason", other, facts(true, 0), Some((true, "then"))),
        ("of others", foreign, facts(true, 0), Some((true, ""))),
    ] {
        let next = stored(&before).next(&now);
        let found = next.as_ref().map(|(status, is_urgent)| {
            let ready = status
                .conditions
                .iter()
                .find(|condition| condition.name == "Ready")
                .unwrap();
            (*is_urgent, ready.last_transition_time.as_str())
        });
        assert_eq!(found, expected, "{what}");
        if what == "of others" {
            let kept = next.unwrap().0.conditions.remove(0);
            assert_eq!(
                (kept.name.as_str(), kept.last_transition_time.as_str()),
                ("Mine", "long ago")
            );
        }
    }
}

#[test]
fn a_message_is_cut() {
    let long = Finding {
        words: "é".repeat(300),
        ..finding(false, "TemplateInvalid")
    };
    assert_eq!(condition("Ready", &long, 1, None).message.chars().count(), 256);
}

/// Goes on until nothing is due, and gives the names of what is examined and written, each with the seconds since `begin`.
fn goes_on(all: &mut Statuses, begin: Instant, now: &mut Instant, facts: &Facts) -> Vec<(u64, String)> {
    let mut steps = Vec::new();
    while let Some(due) = all.due() {
        *now = due.max(*now);
        let seconds = (*now - begin).as_secs();
        match all.next(|_, _| Some(facts.clone()), *now) {
            Some(TargetWork::Examine(name, changes)) => {
                all.is_examined(&name, changes, None);
                steps.push((seconds, format!("examine {}", name.name)));
            }
            Some(TargetWork::Write { name, status, .. }) => {
                all.is_written(&name, Ok(&status), *now);
                steps.push((seconds, format!("write {}", name.name)));
            }
            None => {}
        }
    }
    steps
}

fn steps(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(at, step)| (*at, (*step).to_owned())).collect()
}

#[test]
fn writes_are_gathered_and_a_number_waits_for_longer_than_a_condition() {
    let begin = Instant::now();
    let (mut all, mut now) = (Statuses::default(), begin);
    all.is_there(name("a"), stored(&Value::Null));
    all.touch(now);
    all.touch(now + GATHER / 2);
    let first = goes_on(&mut all, begin, &mut now, &facts(true, 0));
    assert_eq!(first, steps(&[(1, "examine a"), (1, "write a")]));
    all.touch(now);
    assert_eq!(
        goes_on(&mut all, begin, &mut now, &facts(true, 0)),
        steps(&[]),
        "it is there"
    );
    all.touch(now);
    let urgent = goes_on(&mut all, begin, &mut now, &facts(false, 0));
    assert_eq!(urgent, steps(&[(6, "write a")]));
    all.touch(now);
    let counted = goes_on(&mut all, begin, &mut now, &facts(false, 7));
    assert_eq!(counted, steps(&[(36, "write a")]));
    all.touch(now);
    // All that had waited is ready before its number was written.
    assert!(all.next(|_, _| Some(facts(false, 0)), now + GATHER).is_none());
    assert_eq!(goes_on(&mut all, begin, &mut now, &facts(false, 7)), steps(&[]));
    all.changes(|_| true);
    all.touch(now);
    assert_eq!(
        goes_on(&mut all, begin, &mut now, &facts(false, 7)),
        steps(&[(67, "examine a")])
    );
}

#[test]
fn where_no_status_can_be_written_one_request_finds_that_out() {
    for (code, body, is_off) in [
        (404, "404 page not found", true),
        (403, "", true),
        (500, "", false),
        (409, "", false),
    ] {
        let mut now = Instant::now();
        let mut all = Statuses::default();
        for target in ["a", "b"] {
            all.is_there(name(target), stored(&Value::Null));
            all.is_examined(&name(target), 0, None);
        }
        all.touch(now);
        now += GATHER;
        let step = all.next(|_, _| Some(facts(true, 0)), now);
        assert!(matches!(step, Some(TargetWork::Write { .. })));
        assert!(all.next(|_, _| Some(facts(true, 0)), now).is_none(), "one at a time");
        let error = Error::from_answer(code, None, body.as_bytes());
        assert_eq!(all.is_written(&name("a"), Err(&error), now), is_off, "{code}");
        all.touch(now);
        assert_eq!(all.due().is_none(), is_off, "{code}");
        now += WITHOUT;
        all.touch(now);
        assert!(all.due().is_some(), "{code}: it is tried again");
    }
}

#[test]
fn targets_that_are_there_and_said_to_be_missing_have_no_status() {
    let missing = |target: &str| {
        let details = json!({"name": target, "group": "initialization.kcp.io", "kind": "inittargets"});
        let status = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": details});
        Error::from_answer(404, None, status.to_string().as_bytes())
    };
    let now = Instant::now();
    let mut all = Statuses::default();
    for target in ["a", "b"] {
        all.is_there(name(target), stored(&Value::Null));
    }
    for (target, expected) in [("gone", false), ("gone", false), ("a", false)] {
        assert_eq!(
            all.is_written(&name(target), Err(&missing(target)), now),
            expected,
            "{target}"
        );
    }
    assert!(!all.is_written(&name("a"), Ok(&TargetStatus::default()), now));
    for (target, expected) in [("a", false), ("b", true)] {
        assert_eq!(
            all.is_written(&name(target), Err(&missing(target)), now),
            expected,
            "{target}"
        );
    }
}

#[test]
fn what_was_examined_before_a_change_does_not_count() {
    let now = Instant::now();
    let mut all = Statuses::default();
    all.is_there(name("a"), stored(&Value::Null));
    all.touch(now);
    let later = now + GATHER;
    let Some(TargetWork::Examine(of, changes)) = all.next(|_, _| None, later) else {
        panic!("it is examined")
    };
    all.changes(|_| true);
    all.is_examined(&of, changes, Some(Trouble::of_workspace(Why::NoPath)));
    assert!(matches!(all.next(|_, _| None, later), Some(TargetWork::Examine(..))));
    all.is_examined(&of, changes + 1, None);
    let write = all.next(|_, trouble| trouble.is_none().then(|| facts(true, 0)), later);
    assert!(matches!(write, Some(TargetWork::Write { .. })));
    all.keep(|_| false);
    all.is_written(&of, Ok(&TargetStatus::default()), later);
    assert!(all.next(|_, _| Some(facts(true, 0)), later).is_none());
}
