//! Sides that do not answer, are another cluster than before, or refuse.

use super::*;

fn ask(side: Side) -> String {
    format!("ask the {side} who it is")
}

#[test]
fn a_hub_that_is_back_is_asked_who_it_is_and_what_was_missing_and_gets_a_heartbeat() {
    let mut bench = Bench::new().selecting(&["configmaps", "widgets.example.org"]);
    let origins = bench.origins();
    bench.contact(Side::Hub).answers = false;
    bench.breaks(origins, unreachable());
    bench.pass(SECOND);
    bench.log.clear();
    bench.contact(Side::Hub).answers = true;
    bench.tell(Event::Due);
    bench.pass(SECOND);
    for line in [&*ask(Side::Hub), "ask the hub what it serves", "heartbeat on 1"] {
        assert!(bench.log.iter().any(|known| known == line), "{line} {:?}", bench.log);
    }
}

#[test]
fn an_edge_that_is_back_is_asked_who_it_is_and_the_configs_are_not_marked_for_it() {
    let mut bench = Bench::listed();
    let copies = bench.copies();
    bench.contact(Side::Edge).answers = false;
    bench.breaks(copies, unreachable());
    bench.log.clear();
    bench.contact(Side::Edge).answers = true;
    bench.pass(SECOND);
    assert_eq!(bench.log, [ask(Side::Edge)]);
}

#[test]
fn a_service_manager_is_shown_how_long_a_side_has_been_silent_and_which_one_refuses() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.contact(Side::Hub).answers = false;
    bench.contact(Side::Edge).accepts_credentials = false;
    bench.world.fails.insert(ask(Side::Hub), unreachable());
    for _ in 0..3 {
        bench.breaks(origins, unreachable());
        bench.pass(10 * SECOND);
    }
    let shown = bench.model.snapshot(Duration::ZERO);
    let [(side, silent)] = shown.silent[..] else {
        panic!("{:?}", shown.silent);
    };
    assert_eq!((side, silent.as_secs()), (Side::Hub, 30));
    assert_eq!(shown.refusing, [Side::Edge]);
}

#[test]
fn a_side_that_keeps_coming_back_is_asked_with_increasing_back_off_who_it_is() {
    let mut bench = Bench::listed();
    let copies = bench.copies();
    bench.log.clear();
    for _ in 0..600 {
        bench.contact(Side::Edge).answers = false;
        bench.breaks(copies, unreachable());
        bench.contact(Side::Edge).answers = true;
        bench.pass(SECOND);
    }
    assert!(
        (2..40).contains(&bench.count(&ask(Side::Edge))),
        "{:?}",
        bench.log.len()
    );
}

#[test]
fn nothing_is_written_as_long_as_one_side_has_not_said_who_it_is() {
    for side in [Side::Hub, Side::Edge] {
        let mut bench = Bench::new();
        bench.world.fails.insert(ask(side), unreachable());
        bench.run();
        bench.select(&["configmaps"]);
        bench.pass(60 * SECOND);
        let writes = bench.count("heartbeat") + bench.count("write the record");
        assert_eq!((writes, bench.work.len()), (0, 0), "{:?}", bench.log);
        assert!((4..12).contains(&bench.count(&ask(side))), "{:?}", bench.log);
        bench.world.fails.clear();
        bench.pass(60 * SECOND);
        assert!(
            bench.count("heartbeat") > 0 && bench.count("write the record") == 1,
            "{:?}",
            bench.log
        );
    }
}

#[test]
fn a_side_that_may_not_be_asked_who_it_is_holds_up_nothing_and_is_asked_again_in_minutes() {
    let mut bench = Bench::new();
    bench.world.fails.insert(ask(Side::Edge), forbidden());
    bench.run();
    bench.select(&["configmaps"]);
    assert!(bench.count("write the record") > 0);
    bench.pass(Duration::from_secs(1800));
    assert!((5..15).contains(&bench.count(&ask(Side::Edge))), "{:?}", bench.log);
}

#[test]
fn a_side_without_a_name_is_waited_for_a_moment_and_then_synced_all_the_same() {
    let mut bench = Bench::new();
    bench.uids.insert(Side::Edge, "");
    bench.run();
    bench.select(&["configmaps"]);
    assert_eq!(bench.count("write the record"), 0, "it may be starting");
    bench.pass(30 * SECOND);
    assert_eq!(bench.count("write the record"), 1);
    bench.pass(3600 * SECOND);
    assert!(
        (10..=12).contains(&bench.count(&ask(Side::Edge))),
        "nothing will name it: {:?}",
        bench.log
    );
}

#[test]
fn an_address_that_has_changed_stops_all_writes_until_it_has_said_who_it_is() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    bench.world.fails.insert(ask(Side::Edge), unreachable());
    bench.contact(Side::Edge).moves += 1;
    bench.tell(Event::Due);
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 20));
    bench.pass(60 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.world.fails.clear();
    bench.pass(60 * SECOND);
    assert_eq!(bench.working(), ["a"]);
    assert_eq!(bench.turns, 0, "it is the same cluster");
}

#[test]
fn credentials_that_are_accepted_again_count_as_a_return() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.contact(Side::Hub).accepts_credentials = false;
    bench.breaks(origins, Error::Unauthorized(Box::default()));
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 1);
    bench.log.clear();
    // Nothing else asks the hub anything, and its watches go on.
    bench.log.clear();
    bench.tell(Event::Due);
    bench.pass(1200 * SECOND);
    assert!(
        (3..=9).contains(&bench.count("ask the hub who it is")),
        "{:?}",
        bench.log
    );
    bench.contact(Side::Hub).accepts_credentials = true;
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 0);
    assert!(bench.log.contains(&ask(Side::Hub)), "{:?}", bench.log);
}

#[test]
fn something_else_than_an_api_fails_until_an_api_answers_again() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.contact(Side::Hub).stranger = Some("<html>".into());
    bench.breaks(origins, Error::BadAnswer("html".into()));
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 1);
    bench.contact(Side::Hub).stranger = None;
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_server_that_asks_for_time_gets_it_whatever_happens() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    let body = br#"{"kind":"Status","code":429,"reason":"TooManyRequests"}"#;
    let error = Error::from_answer(429, Some(Duration::from_secs(100)), body);
    bench.fail(Side::Edge, error);
    bench.says(origins, &config_map("a", 11));
    bench.pass(99 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.pass(2 * SECOND);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn an_object_that_has_changed_does_not_wait_for_the_end_of_its_back_off() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    for _ in 0..6 {
        bench.fail(Side::Edge, invalid());
        bench.pass(600 * SECOND);
    }
    bench.fail(Side::Edge, invalid());
    bench.pass(SECOND);
    assert!(bench.work.is_empty());
    bench.says(origins, &config_map("a", 11));
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_copy_is_read_first_only_if_a_write_may_have_taken_effect() {
    for (side, error, reads) in [
        (Side::Edge, Error::Unanswered("a webhook hangs".into()), true),
        (Side::Edge, Error::BadAnswer("html".into()), true),
        (Side::Edge, broken(), true),
        (Side::Edge, invalid(), false),
        (Side::Edge, forbidden(), false),
        (Side::Hub, broken(), false),
    ] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        assert!(!bench.job("a").read_first);
        bench.fail(side, error.clone());
        bench.pass(2 * SECOND);
        assert_eq!(bench.job("a").read_first, reads, "{error:?}");
    }
}

#[test]
fn a_list_that_is_older_than_what_the_side_has_shown_for_other_types_has_those_listed_again() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    let copies = bench.copies();
    let sources = bench.world.sources.iter();
    let mut others = sources.filter(|(id, (feed, _))| **id != copies && matches!(feed, Feed::Copies(_, Side::Edge)));
    let (&namespaces, _) = others.next().expect("namespaces are synced too");
    for (side, is_read_again) in [(40, false), (70, true)] {
        bench.world.sources.remove(&copies);
        bench.source_says(namespaces, SourceEvent::Begin(Covers::Everything));
        let versions = Versions {
            list: 50,
            before: 0,
            side,
            has_lost: false,
        };
        bench.source_says(namespaces, SourceEvent::Complete(versions));
        assert_eq!(bench.world.sources.contains_key(&copies), is_read_again, "{side}");
    }
}
