//! Statuses on their way to the hub.

use super::*;
use crate::model::link_status::LinkStatus;
use crate::plan::StatusPath;
use crate::report::Subject;

/// The hub object; nothing but its version and its status ever changes.
fn widget(version: u64) -> Value {
    let mut widget = object(&widgets(), "shop", "a", version);
    widget["data"] = json!({});
    widget
}

/// The copy with a status at the edge.
fn with_state(version: u64, state: u32) -> Value {
    let copy = copy(Direction::Down, &in_shop(&widgets(), "a"), "a", version);
    with_status(copy, &json!({"state": state}))
}

/// A bench with a widget `a` at the edge, without a status.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &widget(10));
    bench.succeed(Change::Created);
    let version = bench.world.version;
    bench.edge_says(&copy(Direction::Down, &in_shop(&widgets(), "a"), "a", version + 1));
    bench.there_are_no_statuses();
    bench
}

impl Bench {
    fn edge_says(&mut self, object: &Value) {
        let copies = self.copies_of(Side::Edge, "widgets").expect("they are read");
        self.says(copies, object);
    }

    fn hub_says(&mut self, object: &Value) {
        let origins = self.origins_of(Side::Hub, "widgets").expect("they are read");
        self.says(origins, object);
    }
}

#[test]
fn a_status_goes_up_when_it_differs_and_only_then() {
    let mut bench = bench();
    bench.pass(60 * SECOND);
    assert!(bench.statuses.is_empty(), "there is none");
    let first = with_state(2000, 1);
    bench.edge_says(&first);
    assert_eq!(bench.statuses.len(), 1);
    let job = &bench.statuses[0].1;
    assert_eq!((job.path, job.body.is_some()), (StatusPath::Subresource, true));
    bench.write_status(&first, 11);
    bench.hub_says(&with_status(widget(11), &first["status"]));
    bench.edge_says(&with_state(2001, 1));
    bench.pass(60 * SECOND);
    assert!(bench.statuses.is_empty(), "the hub has it");
}

#[test]
fn a_status_that_the_hub_has_already_is_not_written() {
    let mut bench = bench();
    bench.hub_says(&with_status(widget(11), &json!({"state": 1})));
    bench.edge_says(&with_state(2000, 1));
    assert!(bench.statuses.is_empty() && bench.work.is_empty());
    bench.edge_says(&with_state(2001, 2));
    assert_eq!(bench.statuses.len(), 1);
}

#[test]
fn statuses_of_one_object_keep_to_the_pace_and_the_newest_goes() {
    let mut bench = bench();
    let first = with_state(2000, 1);
    bench.edge_says(&first);
    bench.write_status(&first, 11);
    for state in 2..5 {
        bench.edge_says(&with_state(2000 + u64::from(state), state));
    }
    assert!(bench.statuses.is_empty(), "it has just been written");
    bench.pass(SECOND + Duration::from_millis(10));
    assert_eq!(bench.statuses.len(), 1);
    let (_, job) = &bench.statuses[0];
    assert!(
        job.body.is_none() && job.edge_reported == 2004,
        "it is read, and not older than what was reported"
    );
}

#[test]
fn what_the_edge_tells_while_a_status_is_under_way_goes_up_after_it() {
    let mut bench = bench();
    let first = with_state(2000, 1);
    bench.edge_says(&first);
    bench.edge_says(&with_state(2001, 2));
    assert_eq!(bench.statuses.len(), 1, "one worker at a time");
    bench.write_status(&first, 11);
    bench.pass(2 * SECOND);
    assert_eq!(bench.statuses.len(), 1);
}

#[test]
fn a_status_that_somebody_else_keeps_writing_at_the_hub_is_written_over_with_increasing_back_off() {
    let mut bench = bench();
    let ours = with_state(2000, 1);
    bench.edge_says(&ours);
    let (mut version, mut writes) = (10, 0);
    for _ in 0..600 {
        if !bench.statuses.is_empty() {
            writes += 1;
            bench.write_status(&ours, version + 1);
            bench.hub_says(&with_status(widget(version + 2), &json!({"state": version})));
            version += 2;
        }
        bench.pass(SECOND);
    }
    assert!((8..=16).contains(&writes), "{writes} in ten minutes");
}

/// What the hub has after the syncer with this field manager has written this status.
fn written_by(manager: &str, version: u64, state: u64) -> Value {
    let mut widget = with_status(widget(version), &json!({"state": state}));
    widget["metadata"]["managedFields"] = json!([
        {"manager": "edge-syncer-status-st", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:status": {}}},
        {"manager": manager, "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:status": {"f:state": {}}}}]);
    widget
}

#[test]
fn of_two_sync_targets_that_write_a_status_in_turns_one_gives_way_even_if_both_change() {
    for (other, changes, expected) in [
        ("edge-syncer-status-a", false, 2..=7),
        ("edge-syncer-status-a", true, 2..=7),
        // One from before the field manager had the UID.
        ("edge-syncer-status", true, 2..=7),
        // It gives way itself, but for now and then.
        ("edge-syncer-status-z", false, 12..=25),
        ("kubectl", false, 12..=25),
    ] {
        let mut bench = bench();
        let (mut version, mut writes, mut state) = (10, 0, 1);
        bench.edge_says(&with_state(2000, state));
        for second in 0..1800_u64 {
            if !bench.statuses.is_empty() {
                writes += 1;
                bench.write_status(&with_state(0, state), version + 1);
                version += 2;
                bench.hub_says(&written_by(other, version, second + 10_000));
            }
            if changes {
                state += 1;
                bench.edge_says(&with_state(2000 + u64::from(state), state));
            }
            bench.pass(SECOND);
        }
        assert!(
            expected.contains(&writes),
            "{writes} in half an hour, {other} {changes}"
        );
        let contested = bench.model.types.values().map(|state| {
            let has_rival = |status: &LinkStatus| status.has_rival(bench.now);
            state.inventory.count_statuses(has_rival)
        });
        assert_eq!(contested.sum::<usize>(), usize::from(other != "kubectl"), "{other}");
    }
}

#[test]
fn what_was_left_to_another_sync_target_goes_up_when_that_has_gone() {
    let mut bench = bench();
    let ours = with_state(2000, 1);
    bench.edge_says(&ours);
    bench.write_status(&ours, 11);
    bench.hub_says(&written_by("edge-syncer-status-a", 12, 7));
    bench.pass(20 * SECOND);
    bench.hub_says(&written_by("edge-syncer-status-a", 13, 8));
    assert!(bench.statuses.is_empty(), "it is left to that one");
    bench.pass(45 * SECOND);
    assert_eq!(bench.statuses.len(), 1);
    bench.write_status(&ours, 14);
    bench.hub_says(&with_status(widget(14), &ours["status"]));
    bench.pass(3600 * SECOND);
    let newer = with_state(2001, 2);
    bench.edge_says(&newer);
    assert_eq!(bench.statuses.len(), 1, "at once again");
}

#[test]
fn a_hub_that_has_lost_the_subresource_is_asked_what_it_serves_and_the_status_goes_on() {
    let mut bench = bench();
    bench.edge_says(&with_state(2000, 1));
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.world.serve_at(Side::Hub, &widgets());
    bench
        .world
        .served
        .get_mut(&Side::Hub)
        .expect("it is there")
        .last_mut()
        .expect("it is served")
        .status_subresource = false;
    bench.log.clear();
    bench.return_status(Ok(Returned::NoSubresource));
    bench.pass(10 * SECOND);
    assert!(bench.count("ask the hub what it serves") >= 1, "{:?}", bench.log);
    let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    bench.list(copies, &[with_state(2000, 1)], 2001);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.list(origins, &[widget(10)], 40);
    bench.pass(2 * SECOND);
    assert_eq!(bench.statuses[0].1.path, StatusPath::Main);
}

#[test]
fn a_status_whose_hub_object_is_not_there_waits_for_news_or_minutes() {
    for returned in [Returned::Gone, Returned::Another] {
        let mut bench = bench();
        bench.edge_says(&with_state(2000, 1));
        bench.return_status(Ok(returned));
        bench.pass(100 * SECOND);
        assert!(bench.statuses.is_empty());
        bench.pass(300 * SECOND);
        assert_eq!(bench.statuses.len(), 1);
    }
}

#[test]
fn a_status_that_is_refused_is_tried_again_with_increasing_back_off_and_fails_until_it_gets_through() {
    let mut bench = bench();
    let state = with_state(2000, 1);
    bench.edge_says(&state);
    let mut tries = 0;
    for _ in 0..600 {
        if !bench.statuses.is_empty() {
            tries += 1;
            bench.return_status(Err(failure(Side::Hub, forbidden())));
        }
        bench.pass(SECOND);
    }
    assert!((6..=15).contains(&tries), "{tries} in ten minutes");
    assert_eq!(bench.model.report.failing(), 1);
    bench.pass(600 * SECOND);
    bench.write_status(&state, 11);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_hub_that_has_gone_back_gets_its_statuses_again() {
    let mut bench = bench();
    let state = with_state(2000, 1);
    bench.edge_says(&state);
    bench.write_status(&state, 500);
    bench.hub_says(&with_status(widget(500), &state["status"]));
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.list_after(origins, &[widget(10)], 20, 500);
    bench.pass(2 * SECOND);
    assert_eq!(bench.statuses.len(), 1);
}

#[test]
fn the_status_of_what_is_selected_no_longer_does_not_go_up() {
    let mut bench = bench();
    bench.config_says(&config("all", &json!({})));
    let at = in_shop(&widgets(), "a");
    let copies = bench.copies_of(Side::Edge, "widgets").expect("there is a copy");
    bench.list(copies, &[copy(Direction::Down, &at, "a", 3000)], 3001);
    bench.says(copies, &with_state(3002, 1));
    bench.pass(60 * SECOND);
    assert!(bench.statuses.is_empty());
}

#[test]
fn the_status_of_an_upsynced_object_goes_up_from_its_origin() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let spec = json!({"upsync": [{"apiGroup": "example.org", "resources": ["widgets"], "namespaces": ["shop"],
        "names": ["*"]}]});
    let mut bench = bench.with_spec(&spec);
    let origins = bench.origins_of(Side::Edge, "widgets").expect("they are read");
    bench.says(origins, &with_status(widget(10), &json!({"state": 1})));
    assert!(bench.statuses.is_empty(), "there is no copy yet");
    bench.succeed(Change::Created);
    assert_eq!(bench.statuses.len(), 1);
    assert_eq!(bench.statuses[0].1.direction, Direction::Up);
}

#[test]
fn the_status_of_an_object_that_is_left_to_the_edge_goes_up_though_it_has_no_label() {
    let (mut bench, unlabelled, mut theirs) = super::reading::left_to_the_edge();
    theirs["metadata"]["resourceVersion"] = json!("9");
    bench.says(unlabelled, &with_status(theirs, &json!({"state": 1})));
    bench.pass(2 * SECOND);
    assert_eq!(bench.statuses.len(), 1);
    assert!(bench.work.is_empty());
}

/// A Job is at the edge, and is deleted there with this status.
fn job_that_goes_with(status: &Value) -> Bench {
    let mut bench = Bench::with_a_copy(&jobs());
    let last = copy(Direction::Down, &in_shop(&jobs(), "a"), "a", 3000);
    let copies = bench.copies_of(Side::Edge, "jobs").expect("they are read");
    bench.says_gone(copies, &with_status(last, status));
    bench
}

#[test]
fn a_job_that_has_run_to_its_end_is_not_run_again_and_its_last_status_goes_up() {
    let mut bench = job_that_goes_with(&json!({"conditions": [{"type": "Complete", "status": "True"}]}));
    bench.pass(600 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert!(bench.statuses[0].1.body.is_some(), "it cannot be read any more");
    let bench = job_that_goes_with(&json!({"active": 1}));
    assert_eq!(bench.working(), ["a"], "it has not run to its end");
}

#[test]
fn a_status_that_cannot_be_returned_is_an_outage_or_a_type_that_has_gone_or_a_failure() {
    const HUB: &str = "ask the hub what it serves";
    let outage = Subject::Side(Side::Hub);
    let of_hub = crate::model::status::status_of(Side::Hub, &widgets());
    let of_edge = crate::model::status::status_of(Side::Edge, &widgets());
    for (side, error, failing, is_asked) in [
        (Side::Hub, unreachable(), Some(&outage), false),
        (Side::Hub, not_served(), Some(&of_hub), true),
        (Side::Edge, not_served(), Some(&of_edge), false),
        (Side::Hub, conflict(), None, false),
    ] {
        let mut bench = bench();
        bench.edge_says(&with_state(2000, 1));
        bench.log.clear();
        bench.return_status(Err(failure(side, error.clone())));
        for subject in [&outage, &of_hub, &of_edge] {
            let is_failing = bench.model.report.is_failing(subject);
            assert_eq!(is_failing, failing == Some(subject), "{side} {error}: {subject:?}");
        }
        bench.pass(10 * SECOND);
        assert_eq!(bench.count(HUB) > 0, is_asked, "{side} {error}");
    }
}

#[test]
fn a_hub_that_ignores_a_status_in_the_object_itself_is_asked_what_it_serves() {
    const HUB: &str = "ask the hub what it serves";
    for (has_subresource, version, is_asked) in [(false, 10, true), (false, 11, false), (true, 10, false)] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        let served = bench.world.served.get_mut(&Side::Hub).expect("it is there");
        served.last_mut().expect("it is served").status_subresource = has_subresource;
        let mut bench = bench.selecting(&["widgets.example.org"]);
        bench.hub_says(&widget(10));
        bench.succeed(Change::Created);
        bench.there_are_no_statuses();
        let state = with_state(2000, 1);
        bench.edge_says(&state);
        bench.log.clear();
        bench.write_status(&state, version);
        bench.pass(10 * SECOND);
        assert_eq!(bench.count(HUB) > 0, is_asked, "{has_subresource} {version}");
    }
}

#[test]
fn a_copy_that_turns_out_to_be_somebody_elses_is_handled_again() {
    for is_known_already in [false, true] {
        let mut bench = bench();
        bench.edge_says(&with_state(2000, 1));
        if is_known_already {
            // It has been taken by a worker, which will find out by itself.
            bench.hub_says(&object(&widgets(), "shop", "a", 11));
            assert_eq!(bench.work.len(), 1);
        }
        bench.return_status(Ok(Returned::NotOurs));
        assert_eq!(bench.working(), ["a"]);
        assert_eq!(bench.job("a").read_first, !is_known_already);
    }
}

#[test]
fn the_source_of_the_hub_objects_is_given_what_a_status_has_made_of_them() {
    let mut bench = bench();
    let state = with_state(2000, 1);
    bench.edge_says(&state);
    bench.world.known.clear();
    bench.write_status(&state, 11);
    assert_eq!(bench.world.known, [("a".to_owned(), Known::Written(11))]);
}

#[test]
fn statuses_fail_until_none_of_the_type_does() {
    let mut bench = bench();
    let other = in_shop(&widgets(), "b");
    bench.hub_says(&object(&widgets(), "shop", "b", 20));
    bench.succeed(Change::Created);
    bench.there_are_no_statuses();
    let state = with_state(2000, 1);
    bench.edge_says(&state);
    bench.edge_says(&with_status(
        copy(Direction::Down, &other, "b", 2001),
        &json!({"state": 1}),
    ));
    bench.return_status(Err(failure(Side::Hub, forbidden())));
    bench.return_status(Err(failure(Side::Hub, forbidden())));
    assert_eq!(bench.model.report.failing(), 1);
    bench.pass(10 * SECOND);
    assert_eq!(bench.statuses.len(), 2);
    bench.write_status(&state, 21);
    assert_eq!(bench.model.report.failing(), 1, "the other one still does");
    bench.write_status(&state, 22);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn the_status_of_what_is_gone_fails_no_longer() {
    for is_deselected in [false, true] {
        let mut bench = bench();
        bench.edge_says(&with_state(2000, 1));
        bench.return_status(Err(failure(Side::Hub, forbidden())));
        assert_eq!(bench.model.report.failing(), 1);
        if is_deselected {
            bench.config_says(&config("all", &json!({})));
            bench.list_namespaces(2001);
            bench.list_widgets(&[], 2001);
            bench.end_with("a", crate::sync::job::Why::Gone);
        } else {
            let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
            bench.says_gone(origins, &widget(12));
            bench.succeed(Change::Deleted);
            let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
            bench.says_gone(copies, &with_state(2002, 1));
        }
        assert_eq!(bench.model.report.failing(), 0, "{is_deselected}");
    }
}

#[test]
fn the_last_status_of_a_job_does_not_wait_for_its_turn() {
    let mut bench = Bench::with_a_copy(&jobs());
    let job = copy(Direction::Down, &in_shop(&jobs(), "a"), "a", 2000);
    let copies = bench.copies_of(Side::Edge, "jobs").expect("they are read");
    let first = with_status(job.clone(), &json!({"active": 1}));
    bench.says(copies, &first);
    bench.write_status(&first, 11);
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    bench.says_gone(copies, &with_status(job, &complete));
    bench.run();
    assert_eq!(bench.statuses.len(), 1, "a status was written a moment ago");
}

#[test]
fn what_a_worker_has_read_of_both_statuses_is_not_read_again() {
    let of = |state: u32| hash_of_status(&json!({"state": state}));
    // What the worker saw at the hub, at which version, and whether the status has to be written.
    for (hub, version, is_due) in [
        (of(1), 10, false),
        (of(2), 10, true),
        (of(1), 12, false),
        (of(1), 9, true),
    ] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        let mut bench = bench.selecting(&["widgets.example.org"]);
        bench.hub_says(&widget(10));
        let (key, job) = bench.take("a");
        let made = copy(job.direction, &job.copy_at, "a", 1001);
        let outcome = Outcome {
            desired_hash: job.desired.clone().expect("it is at hand").hash,
            copy: Some(seen(&job, &made)),
            status: Some(of(1)),
            origin: Some((version, hub)),
            ..outcome(Change::Unchanged)
        };
        bench.ends(key, Ok(outcome));
        bench.pass(2 * SECOND);
        assert_eq!(bench.statuses.len(), usize::from(is_due), "{version}");
    }
}

#[test]
fn the_status_of_somebody_elses_object_does_not_go_up() {
    let mut bench = bench();
    let mut theirs = with_state(2000, 1);
    theirs["metadata"]["labels"] = json!({});
    theirs["metadata"]["annotations"] = json!({});
    bench.edge_says(&theirs);
    bench.pass(2 * SECOND);
    assert!(bench.statuses.is_empty());
}
