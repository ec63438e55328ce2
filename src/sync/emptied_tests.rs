use super::*;

const OTHER: &str = "kubectl-edit";

/// A copy at version 7 with this spec, of which we own this and somebody else that.
fn copy(spec: &Value, ours: &Value, others: &Value) -> String {
    let entry = |manager: &str, operation: &str, fields: &Value| json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}});
    let entries = [entry("edge-syncer", "Apply", ours), entry(OTHER, "Update", others)];
    json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries}, "spec": spec}).to_string()
}

fn fields(spec: &Value) -> String {
    format!(r#","data":{{}},"spec":{spec}"#)
}

/// A field set with the item of this key.
fn item(key: &str, below: &Value) -> Value {
    json!({format!("k:{{\"name\":\"{key}\"}}"): below})
}

#[test]
fn what_only_we_own_is_taken_out_of_what_is_to_be_empty() {
    let set = |path: &str, value: Value| json!({"op": "replace", "path": path, "value": value});
    let remove = |path: &str| json!({"op": "remove", "path": path});
    let named = |name: &str, sel: Value| json!({"name": name, "sel": sel});
    let owned_item = json!({".": {}, "f:name": {}, "f:sel": {"f:a": {}}});
    for (row, wanted, found, ours, others, steps) in [
        (
            "a map",
            json!({"sel": {}, "n": 2}),
            json!({"sel": {"a": "b"}, "n": 1}),
            json!({"f:sel": {"f:a": {}}, "f:n": {}}),
            json!({}),
            vec![set("/spec/sel", json!({}))],
        ),
        (
            "all of it",
            json!({}),
            json!({"n": 1}),
            json!({"f:n": {}}),
            json!({}),
            vec![set("/spec", json!({}))],
        ),
        (
            "what others have put there stays, and what nobody owns",
            json!({"sel": {}}),
            json!({"sel": {"a/~": 1, "theirs": 2, "both": 3, "default": 4, "deep": {"ours": 1, "theirs": 1}}}),
            json!({"f:sel": {".": {}, "f:a/~": {}, "f:both": {}, "f:deep": {".": {}, "f:ours": {}}}}),
            json!({"f:sel": {"f:theirs": {}, "f:both": {}, "f:deep": {"f:theirs": {}}}}),
            vec![remove("/spec/sel/a~1~0"), remove("/spec/sel/deep/ours")],
        ),
        (
            "a map in a list, wherever the item is",
            json!({"list": [named("x", json!({})), named("y", json!({"a": 1}))]}),
            json!({"list": [named("injected", json!({})), named("y", json!({"a": 1})), named("x", json!({"a": 1}))]}),
            json!({"f:list": {"k:{\"name\":\"x\"}": owned_item, "k:{\"name\":\"y\"}": owned_item}}),
            json!({}),
            vec![set("/spec/list/2/sel", json!({}))],
        ),
        (
            "a list, from its end",
            json!({"set": [], "list": []}),
            json!({"set": ["x", "theirs", "y"], "list": [named("x", json!({}))]}),
            json!({"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}, "f:list": item("x", &owned_item)}),
            json!({"f:set": {"v:\"theirs\"": {}}}),
            vec![
                set("/spec/list", json!([])),
                remove("/spec/set/2"),
                remove("/spec/set/0"),
            ],
        ),
    ] {
        let copy = copy(&found, &ours, &others);
        let patch = clearing(&fields(&wanted), copy.as_bytes(), "6").expect(row);
        let mut patch: Vec<Value> = serde_json::from_slice(&patch).unwrap();
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "6"});
        assert_eq!(patch.remove(0), version, "it holds for that version alone");
        assert_eq!(patch, steps, "{row}");
    }
}

#[test]
fn what_is_not_ours_or_not_to_be_empty_is_not_taken_out() {
    let (a, none) = (json!({"f:sel": {"f:a": {}}}), json!({}));
    for (row, wanted, found, ours, others) in [
        ("not ours", json!({"sel": {}}), json!({"sel": {"a": 1}}), &none, &a),
        ("not ours alone", json!({"sel": {}}), json!({"sel": {"a": 1}}), &a, &a),
        ("empty by now", json!({"sel": {}}), json!({"sel": {}}), &a, &none),
        ("null by now", json!({"sel": {}}), json!({"sel": null}), &a, &none),
        (
            "not empty",
            json!({"sel": {"b": {}}}),
            json!({"sel": {"a": 1}}),
            &a,
            &none,
        ),
        (
            "not wanted at all",
            json!({"n": {}}),
            json!({"sel": {"a": 1}}),
            &a,
            &none,
        ),
        (
            "of another kind",
            json!({"sel": []}),
            json!({"sel": {"a": 1}}),
            &a,
            &none,
        ),
    ] {
        let copy = copy(&found, ours, others);
        assert_eq!(clearing(&fields(&wanted), copy.as_bytes(), "6"), None, "{row}");
    }
    assert_eq!(clearing(&fields(&json!({"sel": {}})), b"<html>", "6"), None);
    // Metadata is no field that is synced, whatever is empty.
    assert_eq!(clearing("", copy(&json!({}), &a, &none).as_bytes(), "6"), None);
}

#[test]
fn what_was_applied_empty_and_is_null_or_not_there_is_lost() {
    let named = |name: &str, sel: Value| json!({"name": name, "sel": sel});
    let in_list = json!({"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:sel": {}}}});
    let none = json!({});
    for (row, wanted, found, ours, lost) in [
        ("null", json!({"sel": {}}), json!({"sel": null}), &none, true),
        ("gone", json!({"sel": {}, "n": 1}), json!({"n": 1}), &none, true),
        ("a list", json!({"set": []}), json!({}), &none, true),
        (
            "with its parent",
            json!({"deep": {"set": []}}),
            Value::Null,
            &none,
            true,
        ),
        (
            "deep",
            json!({"deep": {"x": {}}}),
            json!({"deep": {"x": null}}),
            &none,
            true,
        ),
        (
            "in a list",
            json!({"list": [named("x", json!({}))]}),
            json!({"list": [named("injected", json!({})), {"name": "x"}]}),
            &in_list,
            true,
        ),
        (
            "in a list that is applied as one",
            json!({"list": [{"sel": {}}]}),
            json!({"list": [{}]}),
            &none,
            true,
        ),
        (
            "all there",
            json!({"sel": {}, "set": []}),
            json!({"sel": {}, "set": []}),
            &none,
            false,
        ),
        (
            "with keys of others",
            json!({"sel": {}}),
            json!({"sel": {"theirs": 1}}),
            &none,
            false,
        ),
        (
            "all there, in a list",
            json!({"list": [named("x", json!({}))]}),
            json!({"list": [{"name": "injected"}, named("x", json!({}))]}),
            &in_list,
            false,
        ),
        (
            "more than nothing",
            json!({"odd": {"n": 1, "sel": {}}}),
            json!({}),
            &none,
            false,
        ),
    ] {
        let copy = copy(&found, ours, &none);
        let fields = format!(r#","spec":{wanted}"#);
        assert_eq!(has_lost(&fields, copy.as_bytes()), lost, "{row}");
    }
    assert!(!has_lost(&fields(&json!({})), b"<html>"));
}

mod stories {
    use crate::side::Side;
    use crate::sync::job::{Change, Failure, Job, Outcome};
    use crate::sync::reconcile::reconcile;
    use crate::sync::reconcile::tests::{OUR_COPY, job};
    use crate::sync::scripted::scripted;

    const EMPTY: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9"},"spec":{"sel":{},"n":2}}"#;
    const FULL: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9"},"spec":{"sel":{"a":"b"}}}"#;
    const NULL: &str = r#"{"kind":"Status","reason":"Invalid","message":"spec.sel: Invalid value: \"null\"","details":{"name":"a"},"code":422}"#;
    const CONFLICT: &str = r#"{"kind":"Status","reason":"Conflict","details":{"name":"a"},"code":409}"#;

    /// Our copy at a version with this spec.
    fn copy(version: u64, spec: &str) -> &'static str {
        let fields = r#"{"manager":"edge-syncer","operation":"Apply","fieldsV1":{"f:spec":{"f:sel":{"f:a":{}}}}}"#;
        let whole = format!(r#""resourceVersion":"{version}","managedFields":[{fields}],"#);
        let copy = OUR_COPY.replace(r#""resourceVersion":"7","#, &whole);
        format!("{},\"spec\":{spec}}}", &copy[..copy.len() - 1]).leak()
    }

    /// What is asked of the edge, by the verb and the version that it holds for, where the copy was seen at version 7.
    async fn run(origin: &'static str, answers: &[(u16, &'static str)]) -> (Result<Outcome, Failure>, Vec<String>) {
        let (hub, _) = scripted(Side::Hub, &[(200, origin)]);
        let (edge, asked) = scripted(Side::Edge, answers);
        let seen = Job {
            copy_version: 7,
            ..job()
        };
        let outcome = reconcile(&hub, &edge, seen).await;
        let asked = asked.borrow();
        let verb = |asked: &String| match asked.split_once(' ') {
            Some(("PATCH", rest)) if rest.contains("force=true") => {
                let version = rest
                    .split("\"resourceVersion\":\"")
                    .nth(1)
                    .and_then(|rest| rest.split('"').next());
                format!("apply {}", version.unwrap_or_default())
            }
            Some(("PATCH", rest)) if rest.contains(r#""path":"/metadata/resourceVersion","value":"7""#) => {
                "clear 7".to_owned()
            }
            other => format!("{other:?}").split('"').nth(1).unwrap_or_default().to_owned(),
        };
        (outcome, asked.iter().map(verb).collect())
    }

    #[tokio::test]
    async fn what_is_refused_for_what_it_empties_is_emptied_first() {
        let full = copy(7, r#"{"sel":{"a":"b"},"n":1}"#);
        let cleared = copy(8, r#"{"sel":{},"n":1}"#);
        let done = copy(9, r#"{"sel":{},"n":2}"#);
        let steps = ["apply 7", "GET", "clear 7", "apply 8"];
        let (outcome, asked) = run(EMPTY, &[(422, NULL), (200, full), (200, cleared), (200, done)]).await;
        assert_eq!(outcome.unwrap().ending, Change::Updated);
        assert_eq!(asked, steps);
        // Refused for something else as well: once, and it is logged.
        let first = [(422, NULL), (200, full), (200, cleared), (422, NULL), (200, cleared)];
        let as_it_is_now = [
            (409, CONFLICT),
            (200, cleared),
            (422, NULL),
            (200, cleared),
            (200, cleared),
        ];
        let (outcome, asked) = run(EMPTY, &[&first[..], &as_it_is_now[..]].concat()).await;
        assert!(outcome.unwrap_err().error.is_invalid());
        let now = ["GET", "apply 7", "GET", "apply 8", "GET", "GET"];
        assert_eq!(asked, [&steps[..], &now].concat());
        // The edge would not have that either.
        let (outcome, asked) = run(EMPTY, &[(422, NULL), (200, full), (422, NULL), (200, full)]).await;
        assert!(outcome.unwrap_err().error.is_invalid());
        assert_eq!(asked, [&steps[..3], &["GET"]].concat());
        // Nothing of ours is there: what is refused stays so.
        let nothing = copy(7, r#"{"sel":{},"n":1}"#);
        let (outcome, asked) = run(EMPTY, &[(422, NULL), (200, nothing), (200, nothing)]).await;
        assert!(outcome.unwrap_err().error.is_invalid());
        assert_eq!(asked, [&steps[..2], &["GET"]].concat());
    }

    #[tokio::test]
    async fn a_copy_that_changes_meanwhile_is_read_before_anything_is_taken_out() {
        let (seven, eight) = (copy(7, r#"{"sel":{"a":"b"}}"#), copy(8, r#"{"sel":{"a":"b"}}"#));
        let done = copy(9, r#"{"sel":{},"n":2}"#);
        let (outcome, asked) = run(
            EMPTY,
            &[(422, NULL), (200, seven), (409, CONFLICT), (200, eight), (200, done)],
        )
        .await;
        assert_eq!(outcome.unwrap().ending, Change::Updated);
        assert_eq!(asked, ["apply 7", "GET", "clear 7", "GET", "apply 8"]);
    }

    #[tokio::test]
    async fn what_an_apply_has_lost_is_applied_once_more_and_only_once() {
        let lost = copy(8, r#"{"sel":null,"n":2}"#);
        let (outcome, asked) = run(EMPTY, &[(200, lost), (200, copy(9, r#"{"sel":{},"n":2}"#))]).await;
        assert_eq!(outcome.unwrap().copy.unwrap().version, 9);
        assert_eq!(asked, ["apply 7", "apply 8"]);
        // An edge that cannot store it.
        let (outcome, asked) = run(EMPTY, &[(200, lost), (200, lost)]).await;
        assert_eq!(outcome.unwrap().ending, Change::Updated);
        assert_eq!(asked, ["apply 7", "apply 8"]);
        // It is as it was: another one would change nothing.
        let (outcome, asked) = run(EMPTY, &[(200, copy(7, r#"{"n":2}"#))]).await;
        assert_eq!(outcome.unwrap().ending, Change::Unchanged);
        assert_eq!(asked, ["apply 7"]);
    }

    #[tokio::test]
    async fn nothing_more_is_asked_where_nothing_is_emptied() {
        for (origin, answer) in [
            (EMPTY, (200, copy(8, r#"{"sel":{},"n":2}"#))),
            (EMPTY, (201, copy(8, r#"{"n":2}"#))),
            (FULL, (200, copy(8, r#"{"sel":null}"#))),
        ] {
            let (_, asked) = run(origin, &[answer]).await;
            assert_eq!(asked, ["apply 7"], "{answer:?}");
        }
    }
}
