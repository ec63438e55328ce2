use super::*;
use crate::plan::Direction;
use crate::sync::job::{Change, Failure, Outcome, Policy};
use crate::sync::reconcile::reconcile;
use crate::sync::reconcile::tests::{OUR_COPY, job};
use crate::sync::scripted::scripted;

const ORIGIN: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9"},"spec":{"port":81}}"#;
const BOTH: &str = r#"{"kind":"Status","reason":"Invalid","message":"spec.ports[1].name: Duplicate value: \"http\"","details":{"name":"a"},"code":422}"#;
const DENIED: &str = r#"{"kind":"Status","reason":"Invalid","message":"admission webhook \"x\" denied the request: no","details":{"name":"a"},"code":422}"#;
const OURS: (&str, &str) = ("edge-syncer", "Apply");
const MADE: (&str, &str) = ("edge-syncer", "Update");
const PEOPLES: (&str, &str) = ("kubectl-edit", "Update");
const HELMS: (&str, &str) = ("helm", "Update");

/// Our copy at a version, with fields of these managers.
fn copy(version: u64, direction: Direction, owners: &[(&str, &str)]) -> &'static str {
    let entry = |(manager, operation): &(&str, &str)| {
        format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{{"f:spec":{{"f:port":{{}}}}}}}}"#)
    };
    let entries: Vec<String> = owners.iter().map(entry).collect();
    let fields = format!(
        r#""resourceVersion":"{version}","managedFields":[{}],"#,
        entries.join(",")
    );
    let copy = OUR_COPY.replace(r#""resourceVersion":"7","#, &fields);
    match direction {
        Direction::Down => copy.leak(),
        Direction::Up => copy.replace("downsynced", "upsynced").leak(),
    }
}

/// What is asked of the copies' side, by the verb and the version that it holds for, where the copy was seen at version 7.
async fn run(direction: Direction, answers: &[(u16, &'static str)]) -> (Result<Outcome, Failure>, Vec<String>) {
    run_with(job(), direction, answers).await
}

async fn run_with(
    job: Job,
    direction: Direction,
    answers: &[(u16, &'static str)],
) -> (Result<Outcome, Failure>, Vec<String>) {
    let (origins, _) = scripted(direction.origin(), &[(200, ORIGIN)]);
    let (copies, asked) = scripted(direction.copy(), answers);
    let policy = Policy {
        revert_changes_from: vec!["kubectl-*".into()],
        ..Policy::default()
    };
    let seen = Job {
        direction,
        copy_version: 7,
        policy: policy.into(),
        ..job
    };
    let outcome = match direction {
        Direction::Down => reconcile(&origins, &copies, seen).await,
        Direction::Up => reconcile(&copies, &origins, seen).await,
    };
    let asked = asked.borrow();
    let verb = |asked: &String| {
        let version = asked
            .split("\"resourceVersion\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let version = version.unwrap_or_default();
        match asked.split_once(' ') {
            Some(("PATCH", rest)) if rest.contains("dryRun=All") => "dry run".to_owned(),
            Some(("PATCH", rest)) if rest.contains("force=true") => format!("apply {version}"),
            Some(("PATCH", rest)) if rest.contains("managedFields") => format!("take {version}"),
            Some((verb, _)) => verb.to_owned(),
            None => String::new(),
        }
    };
    (outcome, asked.iter().map(verb).collect())
}

// The updates of the Go syncer clear the list of owners, as people can.
#[tokio::test]
async fn what_is_in_a_copy_without_owners_is_named_first_and_then_made_ours() {
    const NAMED: (&str, &str) = ("before-first-apply", "Update");
    for direction in [Direction::Down, Direction::Up] {
        let seven = copy(7, direction, &[]);
        let eight = copy(8, direction, &[NAMED]);
        let [nine, ten] = [9, 10].map(|version| copy(version, direction, &[OURS]));
        let answers = [(422, BOTH), (200, seven), (200, eight), (200, nine), (200, ten)];
        let (outcome, asked) = run(direction, &answers).await;
        assert_eq!(outcome.unwrap().ending, Change::Updated, "{direction}");
        assert_eq!(asked, ["apply 7", "GET", "apply 7", "take 8", "apply 9"], "{direction}");
    }
    let answers = [(422, BOTH), (200, copy(7, Direction::Down, &[])), (422, BOTH)];
    let (outcome, asked) = run(Direction::Down, &answers).await;
    assert!(outcome.unwrap_err().error.is_invalid());
    assert_eq!(asked, ["apply 7", "GET", "apply 7"], "nothing helps");
}

#[tokio::test]
async fn fields_of_people_that_conflict_with_ours_are_made_ours_and_replaced() {
    for direction in [Direction::Down, Direction::Up] {
        let seven = copy(7, direction, &[OURS, PEOPLES]);
        let [eight, nine] = [8, 9].map(|version| copy(version, direction, &[OURS]));
        let answers = [(422, BOTH), (200, seven), (200, eight), (200, nine)];
        let (outcome, asked) = run(direction, &answers).await;
        assert_eq!(outcome.unwrap().ending, Change::Updated, "{direction}");
        assert_eq!(asked, ["apply 7", "GET", "take 7", "apply 8"], "{direction}");
    }
}

#[tokio::test]
async fn fields_of_others_give_way_if_the_object_is_valid_by_itself() {
    let seven = copy(7, Direction::Down, &[OURS, PEOPLES, HELMS]);
    let eight = copy(8, Direction::Down, &[OURS, HELMS]);
    let [nine, ten] = [9, 10].map(|version| copy(version, Direction::Down, &[OURS]));
    let first = [(422, BOTH), (200, seven), (200, eight), (422, BOTH)];
    let rest = [(200, eight), (200, nine), (200, ten)];
    let (outcome, asked) = run(Direction::Down, &[&first[..], &rest[..]].concat()).await;
    assert_eq!(outcome.unwrap().ending, Change::Updated);
    let steps = ["apply 7", "GET", "take 7", "apply 8", "dry run", "take 8", "apply 9"];
    assert_eq!(asked, steps);
    // The edge would not have it without them either: what others have added is not to blame.
    let (outcome, asked) = run(Direction::Down, &[&first[..], &[(422, BOTH)]].concat()).await;
    assert!(outcome.unwrap_err().error.is_invalid());
    assert_eq!(asked, steps[..5]);
}

#[tokio::test]
async fn what_others_have_too_and_what_a_create_has_written_is_ours_alone_before_the_next_apply() {
    for direction in [Direction::Down, Direction::Up] {
        for (owners, shared, made) in [([OURS, HELMS], true, false), ([OURS, MADE], false, true)] {
            let seven = copy(7, direction, &owners);
            let [eight, nine] = [8, 9].map(|version| copy(version, direction, &[OURS]));
            let known = Copy {
                shared,
                made,
                ..job().copy
            };
            let job = Job { copy: known, ..job() };
            let (outcome, asked) = run_with(job, direction, &[(200, seven), (200, eight), (200, nine)]).await;
            assert_eq!(outcome.unwrap().ending, Change::Updated, "{direction}");
            assert_eq!(asked, ["GET", "take 7", "apply 8"], "{direction}");
        }
    }
}

// Found by seed 203273: a read that failed was passed over, and what a create had written stayed when the origin dropped it.
#[tokio::test]
async fn nothing_is_applied_before_what_has_to_be_ours_alone_can_be_read() {
    const BUSY: &str = r#"{"kind":"Status","status":"Failure","message":"busy","code":503}"#;
    const FORBIDDEN: &str =
        r#"{"kind":"Status","reason":"Forbidden","message":"no","details":{"name":"a"},"code":403}"#;
    for direction in [Direction::Down, Direction::Up] {
        for (owners, shared, made) in [([OURS, HELMS], true, false), ([OURS, MADE], false, true)] {
            let known = Copy {
                shared,
                made,
                ..job().copy
            };
            let this = || Job { copy: known, ..job() };
            let (outcome, asked) = run_with(this(), direction, &[(503, BUSY)]).await;
            assert_eq!(outcome.unwrap_err().error.status().unwrap().code, 503, "{direction}");
            assert_eq!(asked, ["GET"], "{direction}");
            // Nor can it be known from what was there before.
            let six = copy(6, direction, &owners);
            let (outcome, asked) = run_with(this(), direction, &[(200, six)]).await;
            let error = outcome.unwrap_err().error;
            assert!(
                matches!(error, Error::Outdated { version: 6, shown: 7 }),
                "{direction}: {error}"
            );
            assert_eq!(asked, ["GET"], "{direction}");
            // What may never be read keeps nothing up.
            let eight = copy(8, direction, &owners);
            let nine = copy(9, direction, &[OURS]);
            let answers = [(403, FORBIDDEN), (200, eight), (200, nine), (200, nine)];
            // What we have made ourselves is taken after that: the answer to the apply shows it.
            let (answers, expected) = if made {
                (&answers[..], &["GET", "apply 7", "take 8", "apply 9"][..])
            } else {
                (&answers[..2], &["GET", "apply 7"][..])
            };
            let (outcome, asked) = run_with(this(), direction, answers).await;
            assert_eq!(outcome.unwrap().ending, Change::Updated, "{direction}");
            assert_eq!(asked, expected, "{direction}");
        }
    }
}

#[tokio::test]
async fn entries_at_a_version_that_is_gone_are_moved_and_the_apply_is_sent_again() {
    const FAILED: &str = r#"{"kind":"Status","status":"Failure","message":"anything","code":500}"#;
    const NONE: &str = r#"{"kind":"APIResourceList","resources":[]}"#;
    const SERVED: &str = r#"{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","watch"]}]}"#;
    for direction in [Direction::Down, Direction::Up] {
        let at = |version: u64, api: &str| -> &'static str {
            let copy = copy(version, direction, &[OURS, HELMS]);
            copy.replace(r#""operation""#, &format!(r#""apiVersion":"{api}","operation""#))
                .leak()
        };
        let (seven, eight, nine) = (at(7, "v0"), at(8, "v1"), at(9, "v1"));
        let answers = [(500, FAILED), (200, seven), (200, NONE), (200, eight), (200, nine)];
        let (outcome, asked) = run(direction, &answers).await;
        assert_eq!(outcome.unwrap().ending, Change::Updated, "{direction}");
        assert_eq!(asked, ["apply 7", "GET", "GET", "take 7", "apply 8"], "{direction}");
        // Another reason: nothing is moved.
        let answers = [(500, FAILED), (200, seven), (200, SERVED)];
        let (outcome, asked) = run(direction, &answers).await;
        assert_eq!(outcome.unwrap_err().error.status().unwrap().code, 500);
        assert_eq!(asked, ["apply 7", "GET", "GET"], "{direction}");
    }
}

// A controller wrote the copy's status just then: the refusal had a line, and the copy was right a moment later.
#[tokio::test]
async fn a_copy_that_changes_while_an_apply_is_refused_is_tried_as_it_is_now() {
    const CONFLICT: &str = r#"{"kind":"Status","reason":"Conflict","message":"it has been modified","code":409}"#;
    let eight = copy(8, Direction::Down, &[OURS, PEOPLES]);
    let [nine, ten] = [9, 10].map(|version| copy(version, Direction::Down, &[OURS]));
    let first = [(422, BOTH), (200, eight), (409, CONFLICT), (200, eight)];
    let rest = [(200, eight), (200, nine), (200, ten)];
    let (outcome, asked) = run(Direction::Down, &[&first[..], &rest[..]].concat()).await;
    assert_eq!(outcome.unwrap().ending, Change::Updated);
    let again = ["GET", "GET", "take 8", "apply 9"];
    assert_eq!(asked, [&["apply 7", "GET", "apply 7"][..], &again[..]].concat());
}

#[tokio::test]
async fn what_is_refused_for_another_reason_costs_at_most_one_read() {
    let ours = copy(7, Direction::Down, &[OURS]);
    let not_found = r#"{"kind":"Status","reason":"NotFound","details":{"name":"a"},"code":404}"#;
    for (answers, expected) in [
        (vec![(422, BOTH), (200, ours)], vec!["apply 7", "GET"]),
        (vec![(422, BOTH), (404, not_found)], vec!["apply 7", "GET"]),
        (vec![(422, DENIED), (200, ours)], vec!["apply 7", "GET"]),
    ] {
        let (outcome, asked) = run(Direction::Down, &answers).await;
        assert!(outcome.unwrap_err().error.is_invalid());
        assert_eq!(asked, expected);
    }
}
