//! How data flows: what is read when, what is worked on, and what waits.

use super::*;

#[test]
fn a_type_is_read_only_when_the_record_names_it_and_its_copies_before_its_origins() {
    let mut bench = Bench::new();
    bench.run();
    assert_eq!(bench.log[0], "read the record");
    bench.log.clear();
    bench.select(&["configmaps"]);
    assert!(bench.log.contains(&"write the record".to_owned()), "{:?}", bench.log);
    let is_read = |bench: &Bench, origins| {
        let mut feeds = bench.world.sources.values();
        feeds.any(|(feed, _)| matches!((feed, origins), (Feed::Origins(..), true) | (Feed::Copies(..), false)))
    };
    assert!(is_read(&bench, false) && !is_read(&bench, true));
    bench.list_all(1);
    assert!(is_read(&bench, true));
}

#[test]
fn an_origin_that_is_reported_is_worked_on_once_and_then_only_when_it_has_changed() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 10))));
    assert_eq!(bench.working(), ["a"]);
    assert!(bench.work[0].1.desired.is_some(), "it need not be read again");
    bench.succeed(Change::Created);
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 10))));
    assert!(bench.work.is_empty(), "nothing is new");
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 11))));
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 12))));
    assert_eq!(bench.working(), ["a"], "one worker at a time");
    bench.succeed(Change::Updated);
    assert_eq!(bench.working(), ["a"], "it has changed meanwhile");
}

#[test]
fn a_copy_whose_origin_is_gone_may_be_deleted_and_only_then() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e"]);
    let origins = bench.origins();
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 20))));
    assert!(!bench.work[0].1.may_delete);
    bench.succeed(Change::Updated);
    bench.source_says(origins, SourceEvent::Gone(read(&config_map("a", 21))));
    assert_eq!(bench.working(), ["a"]);
    assert!(bench.work[0].1.may_delete && bench.work[0].1.desired.is_none());
    bench.succeed(Change::Deleted);
    assert!(bench.work.is_empty());
}

#[test]
fn many_deletes_at_once_are_held_until_their_time_is_over() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 30);
    assert!(bench.work.is_empty(), "three of four: {:?}", bench.working());
    let held = bench.model.guard.held_by_reason(&bench.model.types);
    assert_eq!(held.values().sum::<usize>(), 3);
    bench.pass(GRACE / 2);
    assert!(bench.work.is_empty());
    bench.pass(GRACE / 2 + Duration::from_secs(1));
    assert_eq!(bench.working(), ["b", "c", "d"]);
    assert!(bench.work.iter().all(|(_, job)| job.may_delete));
}

#[test]
fn another_cluster_in_the_place_of_the_hub_deletes_nothing() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.uids.insert(Side::Hub, ANOTHER);
    bench.contact(Side::Hub).moves += 1;
    bench.tell(Event::Due);
    assert!(bench.log.contains(&"ask the hub who it is".to_owned()));
    let origins = bench.origins();
    bench.source_says(origins, SourceEvent::Gone(read(&config_map("a", 40))));
    assert!(
        bench.work.iter().all(|(_, job)| !job.may_delete),
        "{:?}",
        bench.working()
    );
    bench.pass(2 * GRACE);
    assert!(bench.work.iter().all(|(_, job)| !job.may_delete), "no time ends it");
}

#[test]
fn a_side_that_does_not_answer_gets_one_question_at_a_time_until_it_does() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    for name in ["a", "b", "c"] {
        bench.source_says(origins, SourceEvent::Object(read(&config_map(name, 10))));
    }
    assert_eq!(bench.working(), ["a", "b", "c"]);
    bench.contact(Side::Edge).answers = false;
    for _ in 0..3 {
        bench.fail(Side::Edge, Error::Unreachable("no route".into()));
    }
    assert!(bench.work.is_empty());
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.work.len(), 1, "a probe: {:?}", bench.working());
    bench.log.clear();
    bench.contact(Side::Edge).answers = true;
    bench.succeed(Change::Created);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.working(), ["b", "c"]);
    assert!(
        bench.log.contains(&"ask the edge who it is".to_owned()),
        "{:?}",
        bench.log
    );
}

#[test]
fn a_refused_object_is_tried_again_with_increasing_back_off() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.source_says(origins, SourceEvent::Object(read(&config_map("a", 10))));
    let mut tries = 0;
    let refusal = || {
        Error::from_answer(
            422,
            None,
            br#"{"kind":"Status","code":422,"reason":"Invalid","message":"no"}"#,
        )
    };
    let end = bench.now + Duration::from_secs(600);
    while bench.now < end {
        if bench.work.is_empty() {
            bench.pass(Duration::from_secs(1));
        } else {
            tries += 1;
            bench.fail(Side::Edge, refusal());
        }
    }
    assert!((8..=15).contains(&tries), "{tries} in ten minutes");
}

#[test]
fn origins_wait_while_the_bodies_of_others_do() {
    let mut bench = Bench::listed();
    assert!(bench.model.has_room());
    let origins = bench.origins();
    let mut large = config_map("large", 10);
    large["data"]["x"] = json!("x".repeat(crate::model::PAYLOAD_BYTES));
    for name in ["a", "b", "c", "d", "e"] {
        large["metadata"]["name"] = json!(name);
        bench.source_says(origins, SourceEvent::Object(read(&large)));
    }
    assert_eq!(bench.work.len(), 4, "as many as there are workers");
    assert!(!bench.model.has_room());
    bench.succeed(Change::Created);
    assert!(bench.model.has_room());
}

#[test]
fn the_configs_are_marked_at_once_and_then_at_their_interval() {
    let mut bench = Bench::listed();
    let beats = |bench: &Bench| bench.log.iter().filter(|line| line.starts_with("heartbeat")).count();
    let at_first = beats(&bench);
    assert!(at_first >= 1);
    bench.pass(Duration::from_secs(600));
    assert!((9..=12).contains(&(beats(&bench) - at_first)), "{:?}", bench.log);
}

#[test]
fn what_a_restart_needs_is_written_at_the_end_only_if_it_is_news() {
    let mut bench = Bench::listed();
    bench.pass(Duration::from_secs(1));
    assert!(bench.model.last_record().is_none());
    let origins = bench.origins();
    bench.list(origins, &[], 99);
    let (name, kept) = bench.model.last_record().expect("the hub has reached a later version");
    assert_eq!((name.namespace(), kept.types.len()), ("default", 2), "{kept:?}");
}

#[test]
fn what_is_selected_no_longer_is_read_no_longer() {
    let mut bench = Bench::listed();
    let before = bench.world.sources.len();
    let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    let config = json!({"metadata": {"name": "all", "uid": "c", "resourceVersion": "2"}});
    bench.source_says(source, SourceEvent::Gone(read(&config)));
    assert!(
        bench
            .world
            .sources
            .values()
            .all(|(feed, _)| !matches!(feed, Feed::Origins(..)))
    );
    // There may be copies that were made before.
    bench.list_all(2);
    assert!(bench.world.sources.len() < before, "{:?}", bench.world.sources);
    assert!(
        bench
            .world
            .sources
            .values()
            .all(|(feed, _)| matches!(feed, Feed::Configs(_)))
    );
}

#[test]
fn what_a_worker_has_found_is_no_proof_against_a_list_that_has_begun_since() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e"]);
    let origins = bench.origins();
    let others: Vec<_> = ["b", "c", "d", "e"].map(|name| config_map(name, 20)).into();
    for reported in ["while it is listed", "by a watch"] {
        bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
        for object in &others {
            bench.source_says(origins, SourceEvent::Object(read(object)));
        }
        let version = if reported == "by a watch" { 41 } else { 31 };
        let (complete, a) = (
            SourceEvent::Complete(Versions {
                list: version,
                before: 0,
                side: 0,
                has_lost: false,
            }),
            SourceEvent::Object(read(&config_map("a", version))),
        );
        let (first, second) = if reported == "by a watch" {
            (complete, a)
        } else {
            (a, complete)
        };
        bench.source_says(origins, first);
        bench.source_says(origins, second);
        while bench.working().first().is_some_and(|&name| name != "a") {
            bench.succeed(Change::Updated);
        }
        // Another list begins, which does not name it, and the worker is done before that is complete.
        bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
        while !bench.work.is_empty() {
            bench.succeed(Change::Updated);
        }
        for object in &others {
            bench.source_says(origins, SourceEvent::Object(read(object)));
        }
        let versions = Versions {
            list: version + 5,
            before: 0,
            side: 0,
            has_lost: false,
        };
        bench.source_says(origins, SourceEvent::Complete(versions));
        assert_eq!(bench.working(), ["a"], "{reported}");
        assert!(
            bench.work[0].1.desired.is_none() && bench.work[0].1.may_delete,
            "{reported}"
        );
        bench.end_with("a", Change::Deleted);
    }
}

#[test]
fn objects_of_one_name_in_two_workspaces_of_a_side_are_two() {
    let mut bench = Bench::listed();
    bench.contact(Side::Hub).workspaces = Workspaces::Many;
    let origins = bench.origins();
    let in_workspace = |workspace: &str, version| {
        let mut object = config_map("a", version);
        object["metadata"]["annotations"] = json!({"kcp.io/cluster": workspace});
        object
    };
    bench.says(origins, &in_workspace("first", 10));
    bench.says(origins, &in_workspace("second", 11));
    let jobs = bench.work.iter().map(|(_, job)| job.origin.name.workspace().to_owned());
    assert_eq!(jobs.collect::<Vec<_>>(), ["first", "second"]);
    bench.says_gone(origins, &in_workspace("first", 12));
    bench.says(origins, &in_workspace("second", 13));
    let known = |workspace| ObjectName::in_workspace(workspace, "shop", "a");
    let inventory = &bench.model.types.values().next().unwrap().inventory;
    let wanted = ["first", "second"].map(|workspace| inventory.get(&known(workspace)).map(|link| link.wanted != 0));
    assert_eq!(wanted, [Some(false), Some(true)]);
}

/// Also where a type is planned only later, and in the next turn of the same process.
#[test]
fn how_names_are_hashed_follows_from_the_seed() {
    let names: Vec<String> = (0..40).map(|index| format!("c{index}")).collect();
    let order = |seed: u64, turns_again: bool| {
        let mut bench = Bench::of_seed(seed, |_| {});
        if turns_again {
            let moment = bench.moment();
            bench.model = bench.model.again(moment);
        }
        let mut bench = bench.selecting(&["configmaps"]);
        let origins = bench.origins();
        for (name, version) in names.iter().zip(10..) {
            bench.says(origins, &config_map(name, version));
        }
        let inventory = &bench.model.types.values().next().unwrap().inventory;
        let order: Vec<String> = inventory.all().map(|(name, _)| name.name.to_string()).collect();
        assert_eq!(order.len(), names.len());
        order
    };
    for turns_again in [false, true] {
        assert_eq!(order(1, turns_again), order(1, turns_again));
        assert_ne!(order(1, turns_again), order(2, turns_again));
    }
    assert_ne!(order(1, false), order(1, true));
}
