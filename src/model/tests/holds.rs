//! Which deletes are held, for how long, and what releases them.

use super::*;
use crate::api::{NOT_EMPTY, OLDER_VERSIONS, OTHER_CLUSTER, TOO_MANY};

/// Four copies, of which the hub has only `a` left, so that three deletes are held.
fn held() -> Bench {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.lose_all_but_a(30);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(3));
    bench
}

impl Bench {
    fn lose_all_but_a(&mut self, version: u64) {
        let origins = self.origins();
        self.list(origins, &[config_map("a", 10)], version);
    }

    fn delete_one(&mut self, name: &str) {
        let origins = self.origins();
        self.says_gone(origins, &config_map(name, 50));
        assert_eq!(self.working(), [name]);
        self.succeed(Change::Deleted);
    }

    pub(super) fn another_hub(&mut self) {
        self.uids.insert(Side::Hub, ANOTHER);
        self.contact(Side::Hub).moves += 1;
        self.tell(Event::Due);
    }
}

// Seed 85863 of the simulation, in which another object waited for its name.
#[test]
fn a_held_copy_that_the_edges_owner_deletes_is_held_no_longer() {
    let mut bench = held();
    let copies = bench.copies();
    for (name, is_there, left) in [("b", false, 2), ("c", true, 2)] {
        let copy = copy_of(name, 2000);
        bench.says_gone(copies, &copy);
        let job = bench.job(name);
        assert!(job.is_held && !job.may_delete, "{name}");
        if is_there {
            // It has only lost its label.
            let (key, job) = bench.take(name);
            let there = Outcome {
                copy: Some(seen(&job, &copy)),
                ..outcome(HeldFor::StillThere)
            };
            bench.ends(key, Ok(there));
        } else {
            bench.end_with(name, Why::Gone);
        }
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(left), "{name}");
        bench.pass(60 * SECOND);
        assert!(bench.work.is_empty(), "{:?}", bench.working());
    }
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["c", "d"]);
    assert!(bench.work.iter().all(|(_, job)| job.may_delete));
}

#[test]
fn many_deletes_are_not_held_if_they_are_no_more_than_half_of_all() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    let left = [("a", 10), ("b", 11), ("c", 12)].map(|(name, version)| config_map(name, version));
    bench.list(origins, &left, 30);
    assert_eq!(bench.working(), ["d", "e", "f"]);
}

#[test]
fn deletes_one_by_one_are_held_once_they_are_too_many_for_one_hour() {
    for (wait, is_held) in [(1, true), (61, true), (3601, false)] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a", "b", "c", "d", "e"]);
        bench.delete_one("a");
        bench.delete_one("b");
        bench.pass(wait * SECOND);
        let origins = bench.origins();
        bench.says_gone(origins, &config_map("c", 50));
        assert_eq!(bench.work.is_empty(), is_held, "after {wait} s");
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), is_held.then_some(1));
        bench.pass(3 * SECOND);
        let condition = bench.condition();
        let message = condition["message"].as_str().unwrap_or_default();
        assert_eq!(message.contains(" 3 of 5 "), is_held, "{message}");
    }
}

// People read how many are held before they confirm that.
#[test]
fn the_condition_has_the_number_that_is_held_within_seconds() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    bench.lose_all_but_a(30);
    bench.pass(3 * SECOND);
    let held = |bench: &Bench| bench.condition()["message"].as_str().unwrap_or_default().to_owned();
    assert!(held(&bench).contains("; 5 objects are held"), "{}", held(&bench));
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.pass(3 * SECOND);
    assert!(held(&bench).contains("; 6 objects are held"), "{}", held(&bench));
}

#[test]
fn nothing_is_held_where_no_grace_is_wanted() {
    let mut bench = Bench::with(|settings| settings.delete_limits.grace = Duration::ZERO).selecting(&["configmaps"]);
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.lose_all_but_a(30);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn a_token_lets_go_what_it_was_made_for_and_another_word_does_not() {
    let mut bench = held();
    let token = bench.token();
    bench.confirm("0");
    bench.confirm(&token[1..]);
    bench.pass(SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.confirm(&format!("0 {token}"));
    assert_eq!(bench.working(), ["b", "c", "d"]);
    assert!(bench.work.iter().all(|(_, job)| job.may_delete));
}

#[test]
fn one_token_or_time_lets_all_go_that_is_to_be_deleted_however_few_had_come_to_ask() {
    for is_confirmed in [true, false] {
        let small = |settings: &mut Settings| (settings.workers, settings.queue_capacity) = (2, 4);
        let mut bench = Bench::with(small).selecting(&["configmaps"]);
        let names: Vec<String> = (0..30).map(|number| format!("n{number:02}")).collect();
        bench.bring_down(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let origins = bench.origins();
        bench.list(origins, &[], 60);
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(30), "{is_confirmed}");
        if is_confirmed {
            bench.confirm(&bench.token());
        } else {
            bench.pass(GRACE + SECOND);
        }
        for _ in 0..30 {
            bench.succeed(Change::Deleted);
        }
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None, "{is_confirmed}");
    }
}

#[test]
fn an_edge_sync_config_confirms_deletes_as_well() {
    let mut bench = held();
    let mut config = config("any", &json!({}));
    config["metadata"]["annotations"] = json!({crate::api::CONFIRM_DELETES: bench.token()});
    let source = bench.source(Feed::Configs(ConfigKind::EdgeSyncConfig));
    bench.says(source, &config);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn a_token_that_stays_on_a_config_does_not_let_the_next_deletes_go() {
    let mut bench = held();
    let first = bench.token();
    bench.confirm(&first);
    for _ in 0..3 {
        bench.succeed(Change::Deleted);
    }
    bench.pass(61 * SECOND);
    bench.bring_down(&["b", "c", "d"]);
    bench.lose_all_but_a(60);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_ne!(bench.token(), first);
    bench.confirm(&first);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

/// What was confirmed is no accident, however much it was: it makes the next deletes neither too many nor one more.
#[test]
fn what_was_released_does_not_count_again_with_the_next_deletes() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    let left = [("a", 10), ("b", 11)].map(|(name, version)| config_map(name, version));
    bench.list(origins, &left, 30);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(4));
    bench.confirm(&bench.token());
    for _ in 0..4 {
        bench.succeed(Change::Deleted);
    }
    bench.delete_one("b");
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None);
}

/// A list that was read before the deletes names what is gone by now, and a list of origins says that it has none.
#[test]
fn what_was_released_is_not_held_again_by_an_older_list_of_copies() {
    let mut bench = Bench::with(|settings| settings.workers = 1).selecting(&["configmaps"]);
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.lose_all_but_a(30);
    bench.confirm(&bench.token());
    let copies = bench.copies();
    bench.source_says(copies, SourceEvent::Begin(Covers::Everything));
    for _ in 0..3 {
        bench.succeed(Change::Deleted);
    }
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 65));
    for name in ["b", "c", "d"] {
        bench.says(copies, &copy_of(name, 20));
    }
    bench.list(origins, &[config_map("a", 65)], 90);
    bench.succeed(Change::Updated);
    let mut deleted = Vec::new();
    while !bench.work.is_empty() {
        deleted.extend(bench.working().into_iter().map(str::to_owned));
        bench.succeed(Change::Deleted);
    }
    assert_eq!(deleted, ["b", "c", "d"]);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None);
}

/// A copy that was made again within the minute is a copy like others.
#[test]
fn a_copy_that_was_made_again_counts_again() {
    let mut bench = held();
    bench.confirm(&bench.token());
    for _ in 0..3 {
        bench.succeed(Change::Deleted);
    }
    bench.bring_down(&["b", "c", "d"]);
    bench.lose_all_but_a(60);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(3));
}

/// Copies that a hold has let go wait for a worker, while other copies turn out to be too many.
#[test]
fn what_was_released_is_deleted_though_the_next_hold_has_begun() {
    let small = |settings: &mut Settings| (settings.workers, settings.queue_capacity) = (1, 2);
    let mut bench = Bench::with(small).selecting(&["configmaps"]);
    bench.bring_down(&["a", "b", "c", "w", "x", "y", "z"]);
    let origins = bench.origins();
    let left: Vec<_> = (10..)
        .zip(["a", "b", "c"])
        .map(|(version, name)| config_map(name, version))
        .collect();
    bench.list(origins, &left, 60);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(4));
    let first = bench.token();
    bench.confirm(&first);
    bench.list(origins, &[], 70);
    let mut deleted = Vec::new();
    while !bench.work.is_empty() {
        deleted.extend(bench.working().into_iter().map(str::to_owned));
        bench.succeed(Change::Deleted);
    }
    assert_eq!(deleted, ["w", "x", "y", "z"]);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(3));
    assert_ne!(bench.token(), first);
}

#[test]
fn a_hold_ends_when_all_origins_are_back_and_the_next_accident_has_a_hold_of_its_own() {
    let mut bench = held();
    let token = bench.token();
    bench.pass(GRACE / 2);
    let origins = bench.origins();
    bench.list(origins, &["a", "b", "c", "d"].map(|name| config_map(name, 70)), 70);
    while !bench.work.is_empty() {
        bench.succeed(Change::Updated);
    }
    bench.pass(3 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None);
    assert_eq!(bench.condition()["status"], "False");
    bench.list(origins, &[config_map("a", 70)], 80);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(3));
    assert_ne!(bench.token(), token);
    bench.pass(GRACE.saturating_sub(SECOND));
    assert!(bench.work.is_empty(), "it is held for the whole time");
    bench.confirm(&token);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.pass(2 * SECOND);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn a_copy_whose_origin_comes_back_is_held_no_longer_and_is_not_deleted() {
    let mut bench = held();
    let origins = bench.origins();
    bench.says(origins, &config_map("b", 70));
    assert_eq!(bench.working(), ["b"]);
    assert!(!bench.job("b").may_delete && bench.job("b").deletes_are_held);
    bench.succeed(Change::Updated);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(2));
    bench.pass(GRACE + SECOND);
    assert_eq!(bench.working(), ["c", "d"]);
}

#[test]
fn a_hub_that_has_been_away_has_to_answer_for_the_whole_time_of_a_hold_again() {
    let mut bench = held();
    bench.pass(GRACE / 2);
    let origins = bench.origins();
    bench.breaks(origins, unreachable());
    bench.tell(Event::Due);
    bench.pass(GRACE / 2 + SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.pass(GRACE / 2);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn no_hold_ends_while_the_hub_does_not_answer() {
    let mut bench = held();
    bench.contact(Side::Hub).answers = false;
    let origins = bench.origins();
    bench.breaks(origins, unreachable());
    bench.world.fails.insert("ask the hub who it is".into(), unreachable());
    bench.pass(3 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.world.fails.clear();
    bench.contact(Side::Hub).answers = true;
    bench.tell(Event::Due);
    bench.pass(GRACE / 2);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.pass(GRACE / 2 + SECOND);
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn what_a_hub_lacks_that_has_gone_back_to_older_versions_stays_until_people_confirm() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    let origins = bench.origins();
    bench.list_after(origins, &[config_map("a", 10)], 5, 90);
    bench.pass(3 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, OLDER_VERSIONS), Some(1));
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn what_the_hub_is_is_asked_for_once_when_copies_are_to_be_deleted() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    let ask = "ask what defines types";
    assert_eq!(bench.count(ask), 0, "{:?}", bench.log);
    bench.delete_one("a");
    bench.delete_one("b");
    assert_eq!(bench.count(ask), 1, "{:?}", bench.log);
}

#[test]
fn a_graver_reason_needs_a_token_of_its_own() {
    let mut bench = held();
    let first = bench.token();
    bench.another_hub();
    assert_eq!(bench.condition()["reason"], OTHER_CLUSTER);
    assert_ne!(bench.token(), first);
    bench.confirm(&first);
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

#[test]
fn a_copy_that_turns_up_without_an_origin_is_deleted_only_once_a_worker_has_asked_for_that() {
    let mut bench = Bench::listed();
    let copies = bench.copies();
    bench.says(copies, &copy_of("x", 2000));
    assert_eq!(bench.working(), ["x"]);
    assert!(bench.job("x").unverified && !bench.job("x").may_delete);
    bench.end_with("x", HeldFor::AnotherLook);
    assert_eq!(bench.working(), ["x"]);
    assert!(bench.job("x").may_delete);
}

#[test]
fn copies_that_turn_up_without_origins_are_held_if_they_turn_out_to_be_too_many() {
    let mut bench = Bench::listed();
    let copies = bench.copies();
    let names = ["a", "b", "c", "d"];
    for name in names {
        bench.says(copies, &copy_of(name, 2000));
    }
    assert_eq!(bench.working(), names);
    for name in names {
        bench.end_with(name, HeldFor::AnotherLook);
    }
    bench.pass(60 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(4));
}

/// The namespace `shop` has come down, and its origin is gone; also gives the source of that, and what it was.
pub(super) fn with_namespace_to_delete() -> (Bench, SourceId, Value) {
    let spec = json!({"clusterScope": [{"resource": "namespaces", "apiVersion": "v1", "objects": ["shop"]}]});
    let mut bench = Bench::new().with_spec(&spec);
    let origins = bench.origins_of(Side::Hub, "namespaces").expect("they are read");
    let namespace = object(&ResourceType::namespaces(), "", "shop", 10);
    bench.says(origins, &namespace);
    bench.succeed(Change::Created);
    bench.says_gone(origins, &namespace);
    (bench, origins, namespace)
}

#[test]
fn a_namespace_is_not_deleted_with_what_is_in_it_unless_people_say_so() {
    let (mut bench, origins, namespace) = with_namespace_to_delete();
    assert!(bench.job("shop").may_delete && !bench.job("shop").may_cascade);
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    assert!(bench.work.is_empty());
    assert_eq!(bench.held_for(Direction::Down, NOT_EMPTY), Some(1));
    bench.pass(2 * SECOND);
    assert!(!bench.job("shop").may_cascade, "it is inspected again");
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    bench.says(origins, &namespace);
    bench.pass(SECOND);
    assert_eq!(bench.held_for(Direction::Down, NOT_EMPTY), None, "its origin is back");
    bench.succeed_with("shop", Change::Unchanged);
    bench.says_gone(origins, &namespace);
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    bench.confirm(&bench.token());
    assert!(bench.job("shop").may_cascade);
    bench.succeed(Change::Deleted);
    assert_eq!(bench.held_for(Direction::Down, NOT_EMPTY), None);
}

// Issue 46: a config that selects nothing said so too.
#[test]
fn a_copy_that_is_held_for_what_is_in_it_is_said_by_the_configs_that_select_it_alone() {
    let (mut bench, ..) = with_namespace_to_delete();
    bench.config_says(&config("another", &json!({})));
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    let (of_configs, total) = bench.model.of_edge(bench.model.hold_condition(), true);
    let held: Vec<_> = of_configs
        .iter()
        .map(|((_, name), of)| (&**name, of.held, of.hold.is_some()))
        .collect();
    assert_eq!(held, [("all", 1, true), ("another", 0, false)]);
    assert_eq!(total.held, 1);
}

#[test]
fn what_is_adopted_in_the_place_of_a_deleted_copy_counts_as_a_copy() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f", "g"]);
    bench.delete_one("a");
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 51));
    bench.succeed(Change::Adopted);
    let left = [("a", 51), ("e", 14), ("f", 15), ("g", 16)].map(|(name, version)| config_map(name, version));
    bench.list(origins, &left, 60);
    // With `a`, four of eight within a minute.
    assert_eq!(bench.working(), ["b", "c", "d"]);
}

#[test]
fn a_delete_that_waits_for_what_may_have_to_be_deleted_too_continues_as_soon_as_that_is_known() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let (origins, copies, others) = (bench.origins(), bench.copies(), ["x", "y", "z"]);
    for name in others {
        bench.says(copies, &copy_of(name, 2000));
    }
    bench.says_gone(origins, &config_map("a", 50));
    assert_eq!(bench.working(), others, "four of four may be too many");
    for name in others {
        bench.end_with(name, Why::NotOurs);
    }
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn deletes_that_come_slowly_are_held_once_half_is_lost_and_those_in_whose_place_others_come_are_not() {
    for (is_replaced, expected) in [(false, Some(20)), (true, None)] {
        let mut bench = Bench::listed();
        let names: Vec<String> = (0..40).map(|index| format!("c{index}")).collect();
        bench.bring_down(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let (origins, copies) = (bench.origins(), bench.copies());
        let gone = names.iter().enumerate().position(|(index, name)| {
            let version = 100 + 2 * index as u64;
            bench.pass(70 * SECOND);
            if is_replaced {
                bench.says(origins, &config_map(&format!("d{index}"), version));
                bench.succeed(Change::Created);
            }
            bench.says_gone(origins, &config_map(name, version + 1));
            if bench.working().is_empty() {
                return true;
            }
            bench.succeed_with(name, Change::Deleted);
            bench.says_gone(copies, &copy_of(name, 5000 + version));
            false
        });
        assert_eq!(gone, expected, "{is_replaced}");
        let held = bench.held_for(Direction::Down, TOO_MANY);
        assert_eq!(held.unwrap_or_default(), usize::from(!is_replaced));
    }
}
