use super::*;

fn edge(uid: &str, synced: usize, selected: usize) -> OfEdge {
    OfEdge {
        uid: uid.to_owned(),
        observed_generation: 2,
        selected,
        synced,
        ..OfEdge::default()
    }
}

fn said(status: &Status) -> Vec<(&str, &str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions
        .map(|it| (&*it.r#type, &*it.status, &*it.reason, &*it.message))
        .collect()
}

#[test]
fn the_summary_follows_from_the_entries() {
    let failing = |mut edge: OfEdge| {
        edge.failing = 1;
        edge.failures = vec![Failure {
            since: "2026-11-29T00:00:00Z".to_owned(),
            object: "ConfigMap/shop/a".to_owned(),
            side: "edge".to_owned(),
            reason: "ObjectRejected".to_owned(),
            message: "no".to_owned(),
        }];
        edge
    };
    let invalid = |mut edge: OfEdge| {
        edge.problems = vec![FieldProblem {
            field: "spec.upsync[0]".to_owned(),
            message: "wrong".to_owned(),
            since: String::new(),
        }];
        edge.problem_count = 3;
        edge
    };
    let held = |mut edge: OfEdge| {
        edge.hold = Some(Hold {
            reason: "TooMany".to_owned(),
            message: "9 of 10".to_owned(),
        });
        edge.held = 9;
        edge
    };
    let all = |edge| Status::default().with(edge, "now");
    for (edge, ready, reason, message, columns) in [
        (
            edge("a", 2, 2),
            "True",
            ALL_SYNCED,
            "2 of 2 objects are synced",
            ("2/2", 0, 0),
        ),
        (
            edge("a", 0, 0),
            "True",
            ALL_SYNCED,
            "no object is selected",
            ("0/0", 0, 0),
        ),
        (
            edge("a", 1, 2),
            "False",
            PENDING,
            "1 of 2 objects are synced",
            ("1/2", 0, 0),
        ),
        (
            failing(edge("a", 1, 2)),
            "False",
            FAILING,
            "1 of 2 objects are synced; ConfigMap/shop/a at the edge: no",
            ("1/2", 1, 0),
        ),
        (
            invalid(failing(edge("a", 1, 2))),
            "False",
            NOT_FOLLOWED,
            "spec.upsync[0]: wrong; and 2 more",
            ("1/2", 1, 0),
        ),
        (held(edge("a", 1, 1)), "False", "TooMany", "9 of 10", ("1/1", 0, 9)),
    ] {
        let status = all(edge);
        assert_eq!(said(&status)[0], (READY, ready, reason, message));
        assert_eq!((&*status.synced, status.failing, status.held), columns);
    }
    // Two edges: the one that fails is named, and what both say is said once.
    let both = all(invalid(edge("a", 2, 2))).with(invalid(failing(edge("b", 1, 2))), "now");
    assert_eq!(
        said(&both),
        [
            (READY, "False", NOT_FOLLOWED, "spec.upsync[0]: wrong; and 2 more"),
            (CONFIG_VALID, "False", NOT_FOLLOWED, "spec.upsync[0]: wrong; and 2 more"),
            (
                SYNCED,
                "False",
                FAILING,
                "3 of 4 objects are synced; edge b: ConfigMap/shop/a at the edge: no"
            ),
            (DELETES_HELD, "False", NOTHING_HELD, ""),
        ]
    );
}

#[test]
fn a_condition_that_stays_as_it_is_keeps_its_time() {
    let before = Status::default().with(edge("a", 1, 2), "first");
    let later = before.with(edge("a", 2, 2), "second");
    let times = |status: &Status| -> Vec<String> {
        let conditions = status.conditions.iter();
        conditions.map(|it| it.last_transition_time.clone()).collect()
    };
    assert_eq!(times(&before), ["first"; 4]);
    assert_eq!(times(&later), ["second", "first", "second", "first"]);
    assert_eq!(later.with(edge("a", 2, 2), "third"), later);
}

#[test]
fn what_cannot_be_read_is_nothing() {
    for object in [
        "",
        "[]",
        r#"{"status":null}"#,
        r#"{"status":{"edges":7}}"#,
        r#"{"status":"x"}"#,
    ] {
        assert_eq!(Status::of_config(object.as_bytes()), (0, Status::default()), "{object}");
    }
    let status = Status::default().with(edge("a", 1, 2), "now");
    let object = serde_json::json!({"metadata": {"name": "x", "generation": 7}, "status": status}).to_string();
    assert_eq!(Status::of_config(object.as_bytes()), (7, status));
}

#[test]
fn what_is_not_read_yet_is_pending() {
    let mut open = edge("a", 0, 0);
    open.pending = 1;
    let status = Status::default().with(open, "now");
    let message = "no object is selected; not everything has been read yet";
    assert_eq!(said(&status)[0], (READY, "False", PENDING, message));
}

#[test]
fn conditions_of_others_and_another_order_make_no_difference() {
    let status = Status::default().with(edge("a", 1, 2), "now");
    let mut conditions: Vec<Condition> = status.conditions.iter().rev().cloned().collect();
    conditions.push(Condition {
        r#type: "Audited".to_owned(),
        ..Condition::default()
    });
    let stored = Status {
        conditions,
        ..status.clone()
    };
    let object = serde_json::json!({"metadata": {"name": "x"}, "status": stored}).to_string();
    assert_eq!(Status::of_config(object.as_bytes()), (0, status));
}

#[test]
fn a_problem_keeps_its_time_as_long_as_it_is_the_same() {
    let problem = |field: &str, message: &str| FieldProblem {
        field: field.to_owned(),
        message: message.to_owned(),
        since: String::new(),
    };
    let says = |problems: &[FieldProblem], unmatched: &[FieldProblem]| OfEdge {
        problems: problems.to_vec(),
        unmatched: unmatched.to_vec(),
        ..edge("a", 1, 1)
    };
    let [a, b, other] = [("a", "x"), ("b", "x"), ("b", "y")].map(|(field, message)| problem(field, message));
    let first = Status::default().with(says(std::slice::from_ref(&a), std::slice::from_ref(&b)), "1");
    // What another edge says is not ours.
    let first = first.with(edge("b", 0, 0), "1");
    let second = first.with(says(&[a.clone(), other], std::slice::from_ref(&b)), "2");
    let times = |status: &Status, of: &str| -> Vec<String> {
        let entry = status.edges.iter().find(|edge| edge.uid == of).unwrap();
        let all = entry.problems.iter().chain(&entry.unmatched);
        all.map(|problem| problem.since.clone()).collect()
    };
    assert_eq!(times(&second, "a"), ["1", "2", "1"]);
    let object = serde_json::json!({"status": second}).to_string();
    let read = Status::of_config(object.as_bytes()).1;
    assert_eq!(
        read.with(says(&[b], &[]), "3").only_of("a"),
        first.with(says(&[problem("b", "x")], &[]), "3").only_of("a")
    );
    assert_eq!(times(&read.with(says(&[], &[a]), "3"), "a"), ["1"]);
}

#[test]
fn what_selects_nothing_where_it_may_is_said_and_changes_no_condition() {
    let unmatched = |uid: &str| OfEdge {
        unmatched: vec![FieldProblem {
            field: "spec.upsync[0].namespaces".to_owned(),
            message: "selects nothing so far".to_owned(),
            since: String::new(),
        }],
        ..edge(uid, 2, 2)
    };
    let one = Status::default().with(unmatched("a"), "now");
    let message = "2 of 2 objects are synced; spec.upsync[0].namespaces: selects nothing so far";
    assert_eq!(said(&one)[0], (READY, "True", ALL_SYNCED, message));
    assert_eq!(
        said(&one)[1],
        (CONFIG_VALID, "True", ALL_FOLLOWED, "each entry is followed")
    );
    let two = one.with(edge("b", 1, 1), "now");
    let message = "3 of 3 objects are synced; edge a: spec.upsync[0].namespaces: selects nothing so far";
    assert_eq!(said(&two)[0], (READY, "True", ALL_SYNCED, message));
}

#[test]
fn an_entry_has_a_bound_whatever_it_names() {
    // What takes six bytes in JSON, two, and four.
    for letter in ["\u{1b}", "\"", "\u{1f600}"] {
        let failure = |index: usize| Failure {
            object: letter.repeat(250),
            message: letter.repeat(256),
            since: index.to_string(),
            ..Failure::default()
        };
        let problem = FieldProblem {
            field: "f".repeat(100),
            message: letter.repeat(256),
            since: "s".repeat(20),
        };
        let entry = OfEdge {
            failures: (0..10).map(failure).collect(),
            problems: vec![problem.clone(); 10],
            unmatched: vec![problem; 10],
            problem_count: 10,
            hold: Some(Hold {
                reason: "TooMany".to_owned(),
                message: "confirm with a=token; ".repeat(400),
            }),
            ..edge("a", 1, 2)
        };
        let bounded = entry.bounded();
        assert!(serde_json::to_string(&bounded).unwrap().len() < 8 << 10);
        assert!(bounded.failures.len() + bounded.problems.len() > 0);
        assert_eq!(bounded.problem_count, 10);
        assert!(bounded.failures.first().is_none_or(|first| first.since == "0"));
        let hold = bounded.hold.unwrap().message;
        assert!(hold.ends_with("=token; the rest is in the log"), "{hold}");
    }
}

#[test]
fn each_syncer_applies_its_own_entry() {
    let status = Status::default()
        .with(edge("a", 1, 2), "now")
        .with(edge("b", 1, 2), "now");
    let uids = |status: &Status| -> Vec<String> { status.edges.iter().map(|edge| edge.uid.clone()).collect() };
    assert_eq!(uids(&status), ["a", "b"]);
    assert_eq!(uids(&status.only_of("b")), ["b"]);
}
