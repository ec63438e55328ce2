use serde_json::json;

use super::*;
use crate::plan::Direction;
use crate::sync::job::Change;
use crate::sync::ownership::origin_hash;
use crate::sync::reconcile::reconcile;
use crate::sync::reconcile::tests::{GROUPS, OUR_COPY, OURS, job};
use crate::sync::scripted::scripted;

/// Another object than that with the UID `u9`, of which the copy was made.
const ANOTHER: &str =
    r#"{"metadata":{"namespace":"shop","name":"a","uid":"u10","resourceVersion":"40"},"data":{"k":"v"}}"#;
/// The same object, which says what may be done with its copy.
const REPLACED: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9","annotations":{"edge.kubestellar.io/replace":"true"}},"data":{"k":"v"}}"#;
const SAME: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9"},"data":{"k":"v"}}"#;
const NAMED: &str =
    r#"{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
const EXISTS: (u16, &str) = (
    409,
    r#"{"kind":"Status","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#,
);
const ALLOWED: (u16, &str) = (201, r#"{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}"#);
const LACKING: (u16, &str) = (201, r#"{"kind":"SelfSubjectAccessReview","status":{"allowed":false}}"#);
const DELETED: (u16, &str) = (200, r#"{"kind":"Status"}"#);

const SILENT: &str = r#"Zone "a" is invalid: spec.plain: Invalid value: "string": failed rule: self == oldSelf"#;
const DENIED: &str = r#"admission webhook "zones.example.org" denied the request: the zone is what it was"#;
const POLICY: &str = "zones \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
const MISFIT: &str =
    "failed to create typed patch object (shop/a; v1, Kind=Zone): .spec.x: field not declared in schema";
const FORBIDDEN: &str = r#"zones "a" is forbidden: User "u" cannot patch resource "zones" in API group """#;

fn refusal(code: u16, message: &str) -> (u16, &'static str) {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        422 => "Invalid",
        _ => "BadRequest",
    };
    let body = json!({"kind": "Status", "reason": reason, "message": message, "details": {"name": "a"}, "code": code});
    (code, body.to_string().leak())
}

/// Syncs an origin whose copy, of the one with the UID `u9`, was seen at version 7. What is asked of the copies' side.
async fn run(
    direction: Direction,
    origin: &'static str,
    adopted: bool,
    answers: &[(u16, &'static str)],
) -> (Result<Outcome, Failure>, Vec<&'static str>) {
    let (origins, _) = scripted(
        direction.origin(),
        &[(200, origin), (200, origin), (200, NAMED), (200, GROUPS)],
    );
    let (copies, asked) = scripted(direction.copy(), answers);
    let seen = Job {
        direction,
        copy: Copy {
            adopted,
            origin: origin_hash("u9"),
            ..OURS
        },
        copy_version: 7,
        ..job()
    };
    let outcome = match direction {
        Direction::Down => reconcile(&origins, &copies, seen).await,
        Direction::Up => reconcile(&copies, &origins, seen).await,
    };
    let words = |asked: &String| match asked.split_once(' ') {
        Some(("POST", rest)) if rest.contains("accessreviews") => "review",
        Some(("POST", rest)) if rest.contains("dryRun=All") => "dry run",
        Some(("PATCH", rest)) if rest.contains("force=true") => "apply",
        Some(("POST", _)) => "create",
        Some(("GET", _)) => "get",
        Some(("DELETE", _)) => "delete",
        _ => "other",
    };
    let asked = asked.borrow().iter().map(words).collect();
    (outcome, asked)
}

/// The copy as it is read, which has nothing of others.
fn copy(direction: Direction) -> (u16, &'static str) {
    let managed =
        r#""resourceVersion":"7","managedFields":[{"manager":"edge-syncer","operation":"Apply","fieldsV1":{}}],"#;
    let copy = OUR_COPY.replace(r#""resourceVersion":"7","#, managed);
    match direction {
        Direction::Down => (200, copy.leak()),
        Direction::Up => (200, copy.replace("downsynced", "upsynced").leak()),
    }
}

/// True if the copy is read after this refusal: what is invalid may be so only together with fields of others, and what is
/// an error of the server may be one of a version that is gone.
fn is_read((code, message): (u16, &str)) -> bool {
    code == 422 || code == 500 && message != MISFIT
}

/// What is asked before the dry run.
fn before(refused: (u16, &str)) -> &'static [&'static str] {
    if is_read(refused) {
        &["apply", "get"]
    } else {
        &["apply"]
    }
}

#[tokio::test]
async fn a_copy_that_cannot_be_updated_is_replaced_whatever_the_words_if_its_side_takes_the_new_one() {
    for direction in [Direction::Down, Direction::Up] {
        for origin in [ANOTHER, REPLACED] {
            for (code, message) in [
                (422, "field is immutable"),
                (422, SILENT),
                (422, "can only be set once"),
                (422, DENIED),
                (400, DENIED),
                (400, "no update of a zone"),
                (403, DENIED),
                (403, POLICY),
                (409, DENIED),
                (500, DENIED),
            ] {
                let is_forbidden = code == 403;
                let made = if direction == Direction::Down {
                    "apply"
                } else {
                    "create"
                };
                let mut answers = vec![refusal(code, message)];
                answers.extend(is_read((code, message)).then(|| copy(direction)));
                answers.push(EXISTS);
                answers.extend(is_forbidden.then_some(ALLOWED));
                answers.extend([copy(direction), DELETED, (201, copy(direction).1)]);
                let (outcome, asked) = run(direction, origin, false, &answers).await;
                let of = format!("{direction} {code} {message}");
                assert_eq!(outcome.expect(&of).ending, Change::Replaced, "{of}");
                let review: &[&str] = if is_forbidden { &["review"] } else { &[] };
                let expected = [before((code, message)), &["dry run"], review, &["get", "delete", made]].concat();
                assert_eq!(asked, expected, "{of}");
            }
        }
    }
}

#[tokio::test]
async fn what_refuses_both_the_update_and_the_new_object_leads_to_no_delete() {
    let no_dry_run = r#"admission webhook "zones.example.org" does not support dry run"#;
    let exists_by_name = r#"admission webhook "w" denied the request: already exists"#;
    for direction in [Direction::Down, Direction::Up] {
        for origin in [ANOTHER, REPLACED] {
            for (code, message, against) in [
                (422, SILENT, refusal(422, "spec.plain: Required value")),
                (422, DENIED, refusal(422, DENIED)),
                (400, DENIED, refusal(400, no_dry_run)),
                (403, POLICY, refusal(403, POLICY)),
                (403, "exceeded quota: q", refusal(403, "exceeded quota: q")),
                (403, FORBIDDEN, refusal(403, FORBIDDEN)),
                (409, DENIED, refusal(409, exists_by_name)),
                (422, SILENT, refusal(409, "the quota was modified")),
                (422, SILENT, (503, "")),
            ] {
                let mut answers = vec![refusal(code, message)];
                answers.extend(is_read((code, message)).then(|| copy(direction)));
                answers.push(against);
                let (outcome, asked) = run(direction, origin, false, &answers).await;
                let of = format!("{direction} {code} {message}");
                let error = outcome.expect_err(&of).error;
                assert_eq!(error.status().map(|status| status.code), Some(code), "{of}");
                let says_both = error.to_string().contains("nor is it taken as a new object");
                assert_eq!(says_both, against != refusal(code, message), "{of}: {error}");
                assert_eq!(asked, [before((code, message)), &["dry run"]].concat(), "{of}");
            }
        }
    }
}

#[tokio::test]
async fn a_permission_that_is_missing_leads_to_no_delete() {
    for direction in [Direction::Down, Direction::Up] {
        for answer in [LACKING, refusal(403, FORBIDDEN)] {
            let answers = [refusal(403, FORBIDDEN), EXISTS, answer];
            let (outcome, asked) = run(direction, ANOTHER, false, &answers).await;
            assert!(outcome.unwrap_err().error.is_forbidden());
            assert_eq!(asked, ["apply", "dry run", "review"]);
        }
    }
}

#[tokio::test]
async fn nothing_is_asked_about_a_copy_that_may_not_go_nor_after_a_refusal_that_says_nothing_of_the_update() {
    for (origin, adopted, (code, message)) in [
        (ANOTHER, true, (422, SILENT)),
        (REPLACED, true, (400, DENIED)),
        (SAME, false, (422, SILENT)),
        (SAME, false, (403, DENIED)),
        (ANOTHER, false, (413, "Request entity too large")),
        (ANOTHER, false, (500, MISFIT)),
        (REPLACED, false, (500, "etcdserver: request is too large")),
        (REPLACED, false, (429, "busy")),
    ] {
        let mut answers = vec![refusal(code, message)];
        answers.extend(is_read((code, message)).then(|| copy(Direction::Down)));
        let (outcome, asked) = run(Direction::Down, origin, adopted, &answers).await;
        outcome.expect_err(message);
        assert_eq!(asked, before((code, message)), "{message}");
    }
}
