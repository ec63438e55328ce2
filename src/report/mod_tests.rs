use super::*;

fn fails(report: &mut Report, subject: &Subject, error: &Error) -> bool {
    let from = Peer {
        place: &Place::default(),
        stranger: None,
    };
    report.failed(subject.clone(), "reading", error, from)
}

#[test]
fn what_the_edge_does_not_allow_is_no_failure() {
    let mut report = Report::new(Instant::now(), String::new);
    report.refused("Secret/a/b", "--deny-namespace a");
    report.denied("secrets", "--deny secrets");
    assert_eq!(report.failing(), 0);
}

#[test]
fn a_streak_is_logged_once_when_it_begins_and_once_when_it_ends() {
    let mut report = Report::new(Instant::now(), String::new);
    let (hub, away) = (Subject::Side(Side::Hub), |words: &str| Error::Unreachable(words.into()));
    assert!(!report.works(&hub));
    assert!(fails(&mut report, &hub, &away("connection refused port 1")));
    for words in ["connection refused port 1", "connection refused port 2", "no route"] {
        assert!(!fails(&mut report, &hub, &away(words)), "{words}");
    }
    assert!(report.works(&hub));
    assert!(!report.works(&hub));

    let refused = Error::Unauthorized(Box::default());
    let thing = |name: &str| Subject::object(Side::Hub, name.to_owned());
    assert!(fails(&mut report, &thing("ConfigMap/a/b"), &refused));
    assert!(!fails(&mut report, &thing("ConfigMap/a/c"), &refused), "the same");
    assert!(report.works(&Subject::Credentials(Side::Hub)));

    let (html, json) = (Error::BadAnswer("html".into()), Error::Unanswered("json".into()));
    assert!(fails(&mut report, &thing("ConfigMap/a/b"), &html));
    assert!(
        fails(&mut report, &thing("ConfigMap/a/b"), &json),
        "another answer is news"
    );
    for _ in 0..10 {
        assert!(!fails(&mut report, &thing("ConfigMap/a/b"), &html));
        assert!(!fails(&mut report, &thing("ConfigMap/a/b"), &json), "they take turns");
    }
}

#[test]
fn a_conflict_counts_until_the_object_works_fails_otherwise_or_is_gone() {
    let mut report = Report::new(Instant::now(), String::new);
    let (names, subject) = (["a", "b", "c"], |name: &str| {
        Subject::object(Side::Edge, name.to_owned())
    });
    for name in names.into_iter().chain(names) {
        report.conflict(Side::Edge, name, None, false);
    }
    assert_eq!((report.conflicts(), report.failing()), (3, 3));
    report.works(&subject("a"));
    report.clear(&subject("b"));
    fails(&mut report, &subject("c"), &Error::Unanswered("late".into()));
    assert_eq!((report.conflicts(), report.failing()), (0, 1));
}

/// How many lines there are of 15 types of a side, and of an object, that fail like this for so many seconds.
fn lines(report: &mut Report, side: Side, error: &Error, seconds: u64) -> usize {
    let types = (0..15).map(|index| Subject::Thing(side, Topic::Watch, format!("type{index}")));
    let all: Vec<Subject> = types.chain([Subject::object(side, "ConfigMap/a/b".into())]).collect();
    let mut lines = 0;
    for _ in 0..=seconds {
        lines += all.iter().filter(|subject| fails(report, subject, error)).count();
        report.it_is(report.now + Duration::from_secs(1));
    }
    let recovered = all.iter().filter(|subject| report.works(subject)).count();
    assert_eq!((recovered, report.failing()), (all.len(), 0));
    lines
}

fn answer(code: u16, message: &str) -> Error {
    let body = serde_json::json!({"kind": "Status", "reason": "x", "message": message});
    Error::from_answer(code, None, body.to_string().as_bytes())
}

#[test]
fn what_a_server_refuses_while_it_starts_is_part_of_the_outage_unless_it_lasts() {
    let role = "x is forbidden: User \"u\" cannot list resource \"x\" in API group \"\" at the cluster scope";
    let paths = "the request has been made before all known HTTP paths have been installed";
    for (error, seconds, expected) in [
        (answer(403, role), 5, 0),
        (answer(503, paths), 5, 0),
        (answer(404, "the server could not find the requested resource"), 5, 0),
        (answer(500, "etcdserver: leader changed"), 5, 0),
        (answer(403, role), 25, 1),
        (answer(503, paths), 25, 16),
        (answer(422, "invalid"), 0, 16),
    ] {
        for is_back in [true, false] {
            let mut report = Report::new(Instant::now(), String::new);
            let side = Subject::Side(Side::Edge);
            if is_back {
                assert!(fails(&mut report, &side, &Error::Unreachable("refused".into())));
                assert!(report.works(&side));
            }
            let expected = match error.status().map(|status| status.code) {
                _ if is_back => expected,
                Some(403) => 1,
                _ => 16,
            };
            let found = lines(&mut report, Side::Edge, &error, seconds);
            assert_eq!(found, expected, "{error} {seconds} {is_back}");
        }
    }
}

#[test]
fn a_side_that_is_back_says_nothing_of_the_other_one() {
    let mut report = Report::new(Instant::now(), String::new);
    let side = Subject::Side(Side::Edge);
    fails(&mut report, &side, &Error::Unreachable("refused".into()));
    report.works(&side);
    assert_eq!(lines(&mut report, Side::Hub, &answer(500, "no"), 0), 16);
}

#[test]
fn a_server_that_is_busy_is_news_once_that_lasts() {
    for (seconds, expected) in [(0, 0), (20, 0), (40, 16)] {
        let mut report = Report::new(Instant::now(), String::new);
        let busy = answer(429, "too many requests, please try again later");
        assert_eq!(lines(&mut report, Side::Hub, &busy, seconds), expected, "{seconds}");
    }
}

#[test]
fn something_else_than_an_api_is_one_failure_of_its_side() {
    let mut report = Report::new(Instant::now(), String::new);
    let nowhere = Place::default();
    let from = Peer {
        place: &nowhere,
        stranger: Some("<html>"),
    };
    let page = Error::from_answer(404, None, b"404 page not found");
    let thing = |name: &str| Subject::object(Side::Hub, name.to_owned());
    assert!(report.failed(thing("a"), "reading", &page, from));
    assert!(!report.failed(thing("b"), "reading", &Error::BadAnswer("html".into()), from));
    let broken = Error::from_answer(500, None, br#"{"kind":"Status","reason":"InternalError"}"#);
    assert!(report.failed(thing("b"), "reading", &broken, from), "that is an API");
    assert!(report.works(&Subject::Stranger(Side::Hub)));
    assert_eq!(report.failing(), 1);
}
