//! The record of synced types: when it is read and written, and what an earlier run has left in it.

use super::*;
use crate::api::{OLDER_VERSIONS, OTHER_CLUSTER, SOURCE, TOO_MANY};

const READ: &str = "read the record";
const WRITE: &str = "write the record";
const TYPES: &str = "/v1/configmaps\n/v1/namespaces\n";

/// A run after another one that has left this record and these copies; the hub has `a` alone.
fn after(record: &Value, copies: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.world.keep(record);
    bench.run();
    bench.select(&["configmaps"]);
    read_all(&mut bench, copies);
    bench
}

/// Everything is listed: these copies, and of the origins only `a`.
fn read_all(bench: &mut Bench, copies: &[&str]) {
    let known: Vec<Value> = copies.iter().map(|name| copy_of(name, 2000)).collect();
    read_all_of(bench, &known);
}

fn read_all_of(bench: &mut Bench, known: &[Value]) {
    let source = bench.copies();
    bench.list(source, known, 2001);
    let namespaces = bench.copies_of(Side::Edge, "namespaces").expect("they are implied");
    bench.list(namespaces, &[], 2001);
    let namespaces = bench.origins_of(Side::Hub, "namespaces").expect("they are read");
    bench.list(namespaces, &[], 40);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 40);
    while bench.working().contains(&"a") {
        bench.succeed_with("a", Change::Unchanged);
    }
}

#[test]
fn copies_of_an_earlier_run_whose_origins_are_gone_are_deleted() {
    let bench = after(&json!({"types": TYPES, "hub": THE_HUB}), &["a", "b"]);
    assert_eq!(bench.working(), ["b"]);
    assert!(bench.job("b").may_delete);
}

// One that another hub had left, or whose mark somebody had changed, had all deletes held for good.
#[test]
fn without_a_record_most_of_the_copies_say_which_hub_is_the_right_one() {
    for (others, expected) in [(1, THE_HUB), (2, THE_HUB), (3, ""), (4, "")] {
        let mut bench = Bench::new();
        bench.world.keep(&json!({"types": TYPES}));
        bench.run();
        bench.select(&["configmaps"]);
        let mut copies: Vec<Value> = ["a", "b", "c"].map(|name| copy_of(name, 2000)).into();
        for number in 0..others {
            let mut copy = copy_of(&format!("z{number}"), 2000);
            copy["metadata"]["annotations"][SOURCE] = format!("{OLDER}/1").into();
            copies.push(copy);
        }
        read_all_of(&mut bench, &copies);
        bench.pass(SECOND);
        assert_eq!(bench.world.kept.hub, expected, "{others}");
    }
}

#[test]
fn copies_of_an_earlier_run_are_held_if_another_hub_answers() {
    let mut bench = after(&json!({"types": TYPES, "hub": OLDER}), &["a", "b"]);
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), Some(1));
}

#[test]
fn copies_of_an_earlier_run_are_held_if_the_hub_is_older_than_it_was_then() {
    let mut bench = after(
        &json!({"types": TYPES, "hub": THE_HUB, "hub-versions": "configmaps 900\n"}),
        &["a", "b"],
    );
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, OLDER_VERSIONS), Some(1));
}

#[test]
fn a_hold_of_an_earlier_run_goes_on_with_its_token() {
    let record = json!({"types": TYPES, "hub": THE_HUB, "holds": "downsync TooMany cafe0001 3 4\n"});
    let mut bench = after(&record, &["a", "b"]);
    bench.pass(GRACE / 2);
    assert!(bench.work.is_empty(), "one is not too many by itself");
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(1));
    assert_eq!(bench.token(), "cafe0001");
    bench.confirm("cafe0001");
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn a_hold_is_in_the_record_until_all_that_was_confirmed_is_carried_out() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 30);
    let token = bench.token();
    let written = format!("{:?}", bench.world.kept);
    assert!(written.contains(&format!("downsync TooMany {token} ")), "{written}");
    bench.confirm(&token);
    for name in ["b", "c", "d"] {
        bench.pass(SECOND);
        let written = format!("{:?}", bench.world.kept);
        assert!(
            written.contains(&token),
            "{name} would be held by another token: {written}"
        );
        bench.succeed_with(name, Change::Deleted);
        bench.says_gone(bench.copies(), &copy_of(name, 3000));
    }
    bench.pass(SECOND);
    let written = format!("{:?}", bench.world.kept);
    assert!(!written.contains(&token), "{written}");
}

#[test]
fn that_a_side_is_older_stays_confirmed_over_a_restart_until_that_is_carried_out() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.end_with("a", HeldFor::WentBack(5));
    bench.pass(60 * SECOND);
    let token = bench.token();
    bench.confirm(&token);
    bench.pass(SECOND);
    assert_eq!(bench.working(), ["a"]);
    let line = format!("downsync OlderVersions {token} ");
    let written = format!("{:?}", bench.world.kept);
    assert!(written.contains(&line), "{written}");
    bench.succeed_with("a", Change::Deleted);
    bench.says_gone(bench.copies(), &copy_of("a", 3000));
    bench.pass(SECOND);
    let written = format!("{:?}", bench.world.kept);
    assert!(!written.contains(&token), "{written}");
}

#[test]
fn a_token_that_stands_on_a_config_at_the_start_lets_go_what_an_earlier_run_has_held_once_that_is_known() {
    for is_record_late in [false, true] {
        let mut bench = Bench::new();
        bench
            .world
            .keep(&json!({"types": TYPES, "hub": THE_HUB, "holds": "downsync TooMany cafe0001 3 4\n"}));
        if is_record_late {
            bench.world.fails.insert(READ.into(), unreachable());
        }
        bench.run();
        let mut confirming = shop(&["configmaps"]);
        confirming["metadata"]["annotations"] = json!({crate::api::CONFIRM_DELETES: "cafe0001"});
        bench.configure(&[confirming]);
        bench.world.fails.clear();
        bench.pass(10 * SECOND);
        assert_eq!(bench.condition()["status"], "True", "nobody knows yet what is held");
        read_all(&mut bench, &["a", "b", "c", "d"]);
        assert_eq!(bench.working(), ["b", "c", "d"]);
        assert!(bench.work.iter().all(|(_, job)| job.may_delete));
        bench.pass(3 * SECOND);
        assert_eq!(bench.condition()["status"], "False");
    }
}

#[test]
fn a_token_confirms_no_more_after_a_restart_than_its_hold_has_named() {
    let mut bench = Bench::new();
    bench
        .world
        .keep(&json!({"types": TYPES, "hub": THE_HUB, "holds": "downsync TooMany cafe0001 2 4\n"}));
    bench.run();
    let mut confirming = shop(&["configmaps"]);
    confirming["metadata"]["annotations"] = json!({crate::api::CONFIRM_DELETES: "cafe0001"});
    bench.configure(&[confirming]);
    read_all(&mut bench, &["a", "b", "c", "d"]);
    bench.pass(3 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(3));
    let token = bench.token();
    assert_ne!(token, "cafe0001");
    bench.pass(GRACE / 2);
    assert!(bench.work.is_empty(), "it has the whole time");
    bench.confirm(&token);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn the_record_names_as_many_deletes_as_are_held() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    for name in ["a", "b", "c", "d", "e"] {
        bench.says_gone(origins, &config_map(name, 30));
    }
    bench.pass(5 * SECOND);
    let held = bench.held_for(Direction::Down, TOO_MANY).expect("they are many");
    bench.says_gone(origins, &config_map("f", 31));
    bench.pass(5 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(held + 1));
    let (token, written) = (bench.token(), format!("{:?}", bench.world.kept));
    assert!(
        written.contains(&format!("downsync TooMany {token} {}", held + 1)),
        "{written}"
    );
}

/// Nothing is read while this fails, which is tried with increasing back-off; gives how many things fail before and after.
fn reads_nothing_while_it_fails(what: &str) -> [usize; 2] {
    let mut bench = Bench::new();
    bench.world.fails.insert(what.into(), broken());
    bench.run();
    bench.select(&["configmaps"]);
    bench.pass(600 * SECOND);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_none());
    let tries = bench.count(what);
    assert!((8..16).contains(&tries), "{tries} in ten minutes");
    let failing = bench.model.report.failing();
    bench.world.fails.clear();
    bench.pass(301 * SECOND);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_some());
    [failing, bench.model.report.failing()]
}

#[test]
fn nothing_is_read_before_the_record_is_and_it_is_asked_for_with_increasing_back_off() {
    assert_eq!(reads_nothing_while_it_fails(READ), [1, 0]);
}

#[test]
fn a_type_is_not_read_before_the_record_names_it() {
    assert_eq!(reads_nothing_while_it_fails(WRITE), [1, 0]);
}

#[test]
fn an_edge_that_refuses_to_keep_a_record_is_synced_all_the_same_and_asked_again() {
    let mut bench = Bench::new();
    bench.world.fails.insert(READ.into(), forbidden());
    let mut bench = bench.selecting(&["configmaps"]);
    bench.bring_down(&["a"]);
    bench.world.fails.clear();
    bench.pass(60 * SECOND);
    assert!(bench.count(READ) >= 2 && bench.count(WRITE) == 1, "{:?}", bench.log);
}

#[test]
fn the_record_is_written_for_news_and_now_and_then_and_not_for_every_object() {
    let mut bench = Bench::listed();
    bench.pass(60 * SECOND);
    bench.log.clear();
    let origins = bench.origins();
    for version in 10..60 {
        bench.says(origins, &config_map("a", version));
        bench.succeed(Change::Updated);
        bench.pass(20 * SECOND);
    }
    assert!(
        (1..=2).contains(&bench.count(WRITE)),
        "the versions grow: {}",
        bench.count(WRITE)
    );
    bench.pass(601 * SECOND);
    bench.log.clear();
    bench.pass(Duration::from_secs(7200));
    assert_eq!(bench.count(WRITE), 1, "somebody may have deleted it");
}

#[test]
fn a_type_that_nothing_selects_leaves_the_record_with_its_last_copy() {
    let mut bench = after(&json!({"types": TYPES, "hub": THE_HUB}), &["a"]);
    bench.config_says(&config("all", &json!({})));
    let copies = bench.copies();
    bench.list(copies, &[copy_of("a", 2000)], 3000);
    assert!(bench.keeps("configmaps"));
    bench.says_gone(copies, &copy_of("a", 3001));
    while !bench.work.is_empty() {
        bench.end_with("a", crate::sync::job::Why::Gone);
    }
    assert!(bench.copies_of(Side::Edge, "configmaps").is_none());
    assert!(!bench.keeps("configmaps"), "{:?}", bench.world.kept);
}

// Found by the simulation (seed 271725): a copy was left over, since a server that was behind had not got it yet.
#[test]
fn a_type_that_nothing_selects_is_read_until_its_side_is_where_it_was() {
    for is_restored in [false, true] {
        let mut bench = after(&json!({"types": TYPES, "hub": THE_HUB}), &["a"]);
        bench.config_says(&config("all", &json!({})));
        let copies = bench.copies();
        bench.list_after(copies, &[], 1500, 2001);
        let copies = bench.copies();
        bench.list(copies, &[], 1600);
        assert!(
            bench.keeps("configmaps"),
            "a server that is behind the others shows it later"
        );
        if is_restored {
            bench.list(copies, &[], 2001);
        } else {
            bench.says(copies, &copy_of("a", 2000));
            bench.says_gone(copies, &copy_of("a", 3001));
            while !bench.work.is_empty() {
                bench.end_with("a", crate::sync::job::Why::Gone);
            }
            let copies = bench.copies();
            bench.list(copies, &[], 3002);
        }
        assert!(!bench.keeps("configmaps"), "{:?}", bench.world.kept);
    }
}

#[test]
fn copies_of_a_type_that_was_deselected_between_two_runs_are_found_by_the_record() {
    let mut bench = Bench::new();
    bench.world.keep(&json!({"types": "/v1/configmaps\n", "hub": THE_HUB}));
    bench.run();
    bench.configure(&[]);
    let copies = bench.copies();
    bench.list(copies, &[copy_of("a", 2000), copy_of("b", 2000)], 2001);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 40);
    assert_eq!(bench.working(), ["b"]);
    assert!(bench.job("b").may_delete);
}

#[test]
fn the_record_learns_which_hub_the_copies_are_from() {
    let mut bench = Bench::listed();
    assert_eq!(bench.world.kept.hub, "", "nothing but its answer says so");
    bench.bring_down(&["a"]);
    bench.pass(SECOND);
    assert_eq!(bench.world.kept.hub, THE_HUB);
    let mut bench = after(&json!({"types": TYPES, "hub": OLDER}), &["a"]);
    bench.pass(3 * 7200 * SECOND);
    assert_eq!(
        bench.world.kept.hub, OLDER,
        "another one that answers is not remembered"
    );
}

#[test]
fn versions_that_have_grown_are_recorded_after_a_while() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("b", 10));
    bench.succeed(Change::Created);
    bench.pass(3600 * SECOND);
    bench.log.clear();
    bench.says(origins, &config_map("a", 500));
    bench.succeed(Change::Created);
    bench.pass(300 * SECOND);
    assert_eq!(bench.count(WRITE), 0, "{:?}", bench.log);
    bench.pass(301 * SECOND);
    assert_eq!(bench.count(WRITE), 1);
    // Those of configs grow with each heartbeat, and those of the edge are not in it.
    let configs = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    let mut config = shop(&["configmaps"]);
    config["metadata"]["resourceVersion"] = json!("900");
    bench.says(configs, &config);
    let copies = bench.copies();
    bench.says(copies, &copy_of("a", 3000));
    bench.pass(Duration::from_secs(3600));
    assert_eq!(bench.count(WRITE), 1);
}

#[test]
fn a_record_that_may_not_be_written_is_not_written_at_the_end_either() {
    for (fails, is_written) in [(None, true), (Some(forbidden()), false)] {
        let mut bench = Bench::new();
        if let Some(error) = fails {
            bench.world.fails.insert(READ.into(), error.clone());
            bench.world.fails.insert(WRITE.into(), error);
        }
        let mut bench = bench.selecting(&["configmaps"]);
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 500));
        bench.log.clear();
        bench.pass(Duration::from_secs(700));
        assert_eq!(bench.model.end().is_some() || bench.count(WRITE) > 0, is_written);
    }
}
