use super::*;

const ME: &str = "me";

/// What a Lease says in these tests: holder, duration in seconds, and the count of its renewals in the place of times.
fn spec(holder: &str, seconds: i64, renewed: u32, transitions: i64) -> LeaseSpec {
    let term = Term {
        holder: holder.into(),
        seconds,
        acquired: Some("then".into()),
        transitions,
    };
    LeaseSpec::of(&term, &renewed.to_string())
}

fn found(version: &str, holder: &str, renewed: u32) -> Answer {
    Answer::Found(lease(version, holder, renewed))
}

/// A Lease that its holder has given up.
fn released(version: &str) -> Answer {
    Answer::Found(Lease {
        version: version.into(),
        spec: spec("", 1, 0, 3),
    })
}

fn written(version: &str, renewed: u32) -> Answer {
    Answer::Written(lease(version, ME, renewed))
}

fn lease(version: &str, holder: &str, renewed: u32) -> Lease {
    Lease {
        version: version.into(),
        spec: spec(holder, 15, renewed, 3),
    }
}

fn failed() -> Answer {
    Answer::Failed(Error::Unreachable("refused".into()))
}

/// What is expected next: `read`, `create`, `update VERSION`, or `wait SECOND`.
fn name(step: &Output, start: Instant) -> String {
    match step {
        Output::Send(Request::Read) => "read".into(),
        Output::Send(Request::Create(term)) => {
            assert_eq!((term.holder.as_str(), term.transitions, &term.acquired), (ME, 0, &None));
            "create".into()
        }
        Output::Send(Request::Update(version, term)) => {
            assert_eq!((term.holder.as_str(), term.seconds), (ME, 15));
            format!("update {version}")
        }
        Output::Wait(until) => format!("wait {}", (*until - start).as_secs_f64()),
    }
}

/// Runs a scenario: at each second an answer comes to a request that was sent just then, and then the next step is
/// expected; the last column is the second until which it leads.
fn check(story: &[(u64, Option<Answer>, &str, Option<u64>)]) {
    let start = Instant::now();
    let mut election = Election::new(ME.into(), Timing::new(Duration::from_secs(15)), start);
    for (line, (second, answer, expected, leads)) in story.iter().enumerate() {
        let now = start + Duration::from_secs(*second);
        if let Some(answer) = answer {
            election.answered(now, now, answer.clone(), 0.0);
        }
        let step = election.next(now);
        assert_eq!(name(&step, start), *expected, "line {line} at {second} s");
        let until = leads.map(|second| start + Duration::from_secs(second));
        assert_eq!(election.leads_until(now), until, "line {line} at {second} s");
    }
}

#[test]
fn creates_the_lease_and_renews_it_without_reading_it() {
    check(&[
        (0, None, "read", None),
        (0, Some(Answer::Absent), "create", None),
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (5, None, "update 1", Some(10)),
        (5, Some(written("2", 1)), "wait 10", Some(15)),
        (10, None, "update 2", Some(15)),
    ]);
}

#[test]
fn is_second_at_the_creation() {
    check(&[
        (0, Some(Answer::Absent), "create", None),
        (0, Some(Answer::Conflict), "wait 2", None),
        (2, None, "read", None),
        (2, Some(found("1", "other", 0)), "wait 4", None),
    ]);
}

#[test]
fn takes_a_free_lease_at_once() {
    for answer in [released("7"), found("7", ME, 0)] {
        check(&[
            (0, Some(answer), "update 7", None),
            (0, Some(written("8", 1)), "wait 5", Some(10)),
        ]);
    }
}

#[test]
fn takes_over_only_what_has_not_changed_for_as_long_as_it_lasts() {
    check(&[
        // However old the times in it may be, the time is counted from here.
        (0, Some(found("1", "other", 0)), "wait 2", None),
        (14, Some(found("2", "other", 1)), "wait 16", None),
        (28, Some(found("2", "other", 1)), "wait 30", None),
        // A new version that says the same is no renewal.
        (29, Some(found("3", "other", 1)), "update 3", None),
        (29, Some(Answer::Conflict), "wait 31", None),
        (31, Some(found("4", "third", 0)), "wait 33", None),
    ]);
}

#[test]
fn waits_as_long_as_the_lease_of_the_other_says() {
    let of = |seconds: i64| {
        Answer::Found(Lease {
            version: "1".into(),
            spec: spec("other", seconds, 0, 0),
        })
    };
    for (seconds, early, late) in [(60, 59, 60), (3, 2, 3), (-1, 14, 15)] {
        check(&[
            (0, Some(of(seconds)), "wait 2", None),
            (early, Some(of(seconds)), &format!("wait {}", early + 2), None),
            (late, Some(of(seconds)), "update 1", None),
        ]);
    }
}

#[test]
fn stops_leading_when_renewals_fail_until_the_deadline_and_begins_again() {
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (5, Some(failed()), "wait 7", Some(10)),
        (7, Some(failed()), "wait 9", Some(10)),
        (9, Some(failed()), "wait 11", Some(10)),
        (10, None, "wait 11", None),
        (11, None, "read", None),
        (11, Some(failed()), "wait 13", None),
        // Nobody else has taken it.
        (13, Some(found("1", ME, 0)), "update 1", None),
        (13, Some(written("2", 1)), "wait 18", Some(23)),
    ]);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_found_again() {
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (5, Some(failed()), "wait 7", Some(10)),
        (7, None, "update 1", Some(10)),
        (7, Some(Answer::Conflict), "read", Some(10)),
        (7, Some(found("2", ME, 1)), "update 2", Some(10)),
        (7, Some(written("3", 2)), "wait 12", Some(17)),
    ]);
}

#[test]
fn stops_leading_at_once_when_the_lease_names_another() {
    for holder in ["other", ""] {
        let next = if holder.is_empty() { "update 2" } else { "wait 7" };
        check(&[
            (0, Some(written("1", 0)), "wait 5", Some(10)),
            (5, Some(Answer::Conflict), "read", Some(10)),
            (5, Some(found("2", holder, 1)), next, None),
        ]);
    }
}

#[test]
fn a_leader_whose_lease_was_deleted_creates_it_again_and_goes_on() {
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (5, Some(Answer::Absent), "create", Some(10)),
        (5, Some(written("9", 0)), "wait 10", Some(15)),
    ]);
    // Another one was first, and holds it now.
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (5, Some(Answer::Absent), "create", Some(10)),
        (5, Some(Answer::Conflict), "read", Some(10)),
        (5, Some(found("9", "other", 0)), "wait 7", None),
    ]);
    // It comes to that too late.
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (12, None, "read", None),
        (12, Some(Answer::Absent), "create", None),
        (12, Some(written("9", 0)), "wait 17", None),
        (17, Some(written("10", 1)), "wait 22", None),
        (22, Some(written("11", 2)), "wait 27", None),
        (27, Some(written("12", 3)), "wait 32", Some(37)),
    ]);
}

#[test]
fn who_takes_a_lease_that_nobody_has_given_up_leads_after_the_time_of_its_former_holder() {
    let stripped = || {
        Answer::Found(Lease {
            version: "2".into(),
            spec: LeaseSpec::default(),
        })
    };
    for (by_hand, take) in [
        (Answer::Absent, "create"),
        (found("2", "", 0), "update 2"),
        (stripped(), "update 2"),
    ] {
        check(&[
            (0, Some(found("1", "other", 0)), "wait 2", None),
            (14, Some(by_hand), take, None),
            (14, Some(written("9", 0)), "wait 19", None),
            (19, Some(written("10", 1)), "wait 24", None),
            (24, Some(written("11", 2)), "wait 29", None),
            // With the first renewal after that time.
            (29, Some(written("12", 3)), "wait 34", Some(39)),
            (34, Some(written("13", 4)), "wait 39", Some(44)),
        ]);
    }
    // The renewal is what proves that nobody else has had it meanwhile.
    check(&[
        (0, Some(found("1", "other", 0)), "wait 2", None),
        (1, Some(Answer::Absent), "create", None),
        (1, Some(written("9", 0)), "wait 6", None),
        (16, Some(Answer::Conflict), "wait 18", None),
        (18, Some(found("11", "other", 7)), "wait 20", None),
        (32, Some(found("11", "other", 7)), "wait 34", None),
        (33, Some(found("11", "other", 7)), "update 11", None),
    ]);
    // It exists at last, though the answer of that was lost.
    check(&[
        (0, Some(found("1", "other", 0)), "wait 2", None),
        (1, Some(Answer::Absent), "create", None),
        (1, Some(failed()), "wait 3", None),
        (10, Some(found("9", ME, 0)), "update 9", None),
        (10, Some(written("10", 1)), "wait 15", None),
        (25, Some(written("11", 2)), "wait 30", Some(35)),
    ]);
}

#[test]
fn what_people_write_to_a_lease_ends_no_lead_early() {
    let by_hand = |holder: &str, seconds: i64| {
        Some(Answer::Found(Lease {
            version: "2".into(),
            spec: spec(holder, seconds, 0, 3),
        }))
    };
    // Another duration, another holder: the former one has its time since the last moment at which it may have renewed.
    for (holder, seconds, until) in [("other", 2, 28), ("nobody", 2, 28), ("nobody", 60, 73)] {
        check(&[
            (0, Some(found("1", "other", 0)), "wait 2", None),
            (13, by_hand(holder, seconds), "wait 15", None),
            (
                until - 1,
                by_hand(holder, seconds),
                &format!("wait {}", until + 1),
                None,
            ),
            (until, by_hand(holder, seconds), "update 2", None),
            (
                until,
                Some(written("3", 1)),
                &format!("wait {}", until + 5),
                Some(until + 10),
            ),
        ]);
    }
    // Who has just started does not know who was the holder that is missing.
    check(&[
        (0, by_hand("", 15), "update 2", None),
        (0, Some(written("3", 1)), "wait 5", None),
        (15, Some(written("4", 2)), "wait 20", Some(25)),
    ]);
}

#[test]
fn a_release_ends_every_wait() {
    check(&[
        (0, Some(found("1", "other", 0)), "wait 2", None),
        (1, Some(Answer::Absent), "create", None),
        (1, Some(Answer::Conflict), "wait 3", None),
        (3, Some(released("3")), "update 3", None),
        (3, Some(written("4", 1)), "wait 8", Some(13)),
    ]);
}

#[test]
fn a_shorter_lease_of_another_holder_counts_from_then_on() {
    let of = |renewed: u32| {
        Some(Answer::Found(Lease {
            version: "2".into(),
            spec: spec("third", 3, renewed, 3),
        }))
    };
    check(&[
        (0, Some(found("1", "other", 0)), "wait 2", None),
        (14, of(1), "wait 16", None),
        (30, of(2), "wait 32", None),
        (32, of(2), "wait 34", None),
        (33, of(2), "update 2", None),
    ]);
}

#[test]
fn a_process_that_was_paused_does_not_lead() {
    check(&[
        (0, Some(written("1", 0)), "wait 5", Some(10)),
        (60, None, "read", None),
        (60, Some(found("2", "other", 0)), "wait 62", None),
    ]);
    // The pause fell between the sending of the renewal and its answer.
    let start = Instant::now();
    let mut election = Election::new(ME.into(), Timing::new(Duration::from_secs(15)), start);
    let now = start + Duration::from_secs(60);
    election.answered(start, now, written("1", 0), 0.0);
    assert_eq!(election.leads_until(now), None);
    assert_eq!(election.next(now), Output::Send(Request::Read));
}

#[test]
fn waits_as_long_as_the_server_asks() {
    let busy = r#"{"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429}"#;
    let busy = Answer::Failed(Error::from_answer(429, None, busy.as_bytes()));
    check(&[(0, Some(busy), "wait 7", None), (7, Some(failed()), "wait 9", None)]);
}

#[test]
fn no_server_keeps_the_lease_without_a_holder_by_asking_for_time() {
    for asked in [3600, u64::MAX] {
        let busy = Error::from_answer(429, Some(Duration::from_secs(asked)), b"");
        // As a test of the cap here: whatever the border lets through.
        let Error::Status(mut status) = busy else {
            panic!("{busy:?}");
        };
        status.retry_after = Some(Duration::from_secs(asked));
        let busy = || Some(Answer::Failed(Error::Status(status.clone())));
        // A candidate waits for as long as a Lease lasts; a leader keeps trying, and keeps the Lease.
        check(&[
            (0, busy(), "wait 15", None),
            (15, Some(Answer::Absent), "create", None),
            (15, Some(written("1", 0)), "wait 20", Some(25)),
            (20, busy(), "wait 22", Some(25)),
            (22, busy(), "wait 24", Some(25)),
            (24, Some(written("2", 1)), "wait 29", Some(34)),
        ]);
    }
}

#[test]
fn counts_terms_and_says_since_when_it_holds_the_lease() {
    let start = Instant::now();
    let term_after = |answer: Answer| {
        let mut election = Election::new(ME.into(), Timing::new(Duration::from_millis(14_001)), start);
        election.answered(start, start, answer, 0.0);
        match election.next(start + Duration::from_secs(5)) {
            Output::Send(Request::Update(_, term) | Request::Create(term)) => term,
            step => panic!("{step:?}"),
        }
    };
    for (answer, acquired, transitions) in [
        (Answer::Absent, None, 0),
        (found("1", "", 0), None, 4),
        (found("1", ME, 0), Some("then"), 3),
        (written("1", 0), Some("then"), 3),
        // The API takes no more.
        (
            Answer::Found(Lease {
                version: "1".into(),
                spec: spec("", 15, 0, i32::MAX.into()),
            }),
            None,
            i32::MAX.into(),
        ),
    ] {
        let term = term_after(answer.clone());
        assert_eq!(
            (term.acquired.as_deref(), term.transitions, term.seconds),
            (acquired, transitions, 15),
            "{answer:?}"
        );
    }
}

#[test]
fn releases_only_what_it_holds() {
    let start = Instant::now();
    let release_after = |answer: Answer| {
        let mut election = Election::new(ME.into(), Timing::new(Duration::from_secs(15)), start);
        election.answered(start, start, answer, 0.0);
        election.release(start)
    };
    for answer in [Answer::Absent, failed(), found("1", "other", 0), found("1", "", 0)] {
        assert_eq!(release_after(answer.clone()), None, "{answer:?}");
    }
    for answer in [written("1", 0), found("1", ME, 0)] {
        let term = Term {
            holder: String::new(),
            seconds: 1,
            acquired: None,
            transitions: 3,
        };
        assert_eq!(release_after(answer), Some(Request::Update("1".into(), term)));
    }
}

#[test]
fn what_it_gives_up_while_another_may_lead_is_no_release() {
    let start = Instant::now();
    let second = |second: u64| start + Duration::from_secs(second);
    let mut election = Election::new(ME.into(), Timing::new(Duration::from_secs(15)), start);
    for answer in [found("1", "other", 0), Answer::Absent, written("2", 0)] {
        election.answered(start, start, answer, 0.0);
    }
    for (at, seconds, is_release) in [(0, 15, false), (12, 3, false), (14, 2, false), (15, 1, true)] {
        let Some(Request::Update(version, term)) = election.release(second(at)) else {
            panic!("it has the Lease at {at} s");
        };
        assert_eq!((version.as_str(), term.seconds), ("2", seconds), "{at}");
        assert_eq!(LeaseSpec::of(&term, "now").is_released(), is_release, "{at}");
    }
}

#[test]
fn leaves_time_between_the_end_of_one_lead_and_the_next() {
    for seconds in [3, 15, 3600] {
        let timing = Timing::new(Duration::from_secs(seconds));
        assert!(timing.renew_interval() + timing.request_limit() < timing.renew_deadline());
        assert!(timing.renew_deadline() + timing.retry_interval() < timing.lease);
        assert_eq!(timing.seconds(), i64::try_from(seconds).unwrap());
    }
}
