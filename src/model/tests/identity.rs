//! Which cluster answers, and which one the copies are from.

use super::*;
use crate::api::{OLDER_VERSIONS, OTHER_CLUSTER, SOURCE, TOO_MANY};
use crate::sync::definition::Withdrawal;
use crate::sync::identity::Unverified;

const READ: &str = "read the record";
const WHO: &str = "ask the hub who it is";

/// There is a copy from another hub, and no record that says which is the right one.
fn contested() -> Bench {
    let mut bench = Bench::listed();
    bench.finds_one_of_another_hub();
    bench
}

impl Bench {
    fn finds_one_of_another_hub(&mut self) {
        let copies = self.copies();
        let mut other = copy_of("z", 3);
        other["metadata"]["annotations"][SOURCE] = format!("{OLDER}/1").into();
        self.list(copies, &[other], 5);
        self.end_with("z", Why::NotSelected);
    }
}

#[test]
fn a_copy_from_another_hub_than_all_others_is_preserved_and_holds_nothing_else() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c"]);
    assert_eq!(bench.world.kept.hub, THE_HUB);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.end_with("a", HeldFor::Unverified(Unverified::MadeFrom(ANOTHER.into())));
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), None);
    bench.says_gone(origins, &config_map("b", 51));
    assert_eq!(bench.working(), ["b"]);
    assert_eq!(bench.job("b").identity.expected(), Some(THE_HUB));
}

// The copies of a mailbox whose edge was replaced while the syncer was away, or those of a hub without the record.
#[test]
fn that_many_copies_are_from_another_cluster_is_found_before_their_number_holds_them() {
    for all_is_listed in [true, false] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.run();
        bench.select(&["configmaps", "widgets.example.org"]);
        let copies = ["a", "b", "c", "d"].map(|name| {
            let mut copy = copy_of(name, 3);
            copy["metadata"]["annotations"][SOURCE] = format!("{OLDER}/1").into();
            copy
        });
        let source = bench.copies();
        bench.list(source, &copies, 5);
        bench.list_namespaces(6);
        let widgets = bench.copies_of(Side::Edge, "widgets").expect("they are read");
        if all_is_listed {
            bench.list_rest(6);
        } else {
            let origins = bench.origins();
            bench.list(origins, &[], 6);
            bench.pass(60 * SECOND);
            assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(4));
            assert!(bench.work.is_empty(), "{:?}", bench.working());
            bench.list(widgets, &[], 6);
            bench.list_rest(6);
        }
        let made_from_another = HeldFor::Unverified(Unverified::MadeFrom(OLDER.into()));
        assert!(!bench.work.is_empty());
        while let Some(name) = bench.working().first().map(|&name| name.to_owned()) {
            bench.end_with(&name, made_from_another.clone());
            assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), Some(4));
        }
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None);
    }
}

#[test]
fn a_worker_that_finds_an_older_hub_holds_all_deletes() {
    let changes = [
        (HeldFor::WentBack(5), OLDER_VERSIONS),
        (
            HeldFor::Unverified(Unverified::Older { from: 9, to: 5 }),
            OLDER_VERSIONS,
        ),
        (HeldFor::Unverified(Unverified::MadeFrom(OLDER.into())), OTHER_CLUSTER),
    ];
    for (change, reason) in changes {
        let mut bench = contested();
        bench.bring_down(&["a", "b", "c", "d", "e"]);
        let origins = bench.origins();
        bench.says_gone(origins, &config_map("a", 50));
        bench.end_with("a", change);
        bench.says_gone(origins, &config_map("b", 51));
        bench.pass(2 * GRACE);
        let is_back = bench.turns > 0;
        assert!(bench.work.is_empty() && !is_back, "{reason} {:?}", bench.working());
        assert_eq!(bench.held_for(Direction::Down, reason), Some(2));
    }
}

#[test]
fn what_people_have_confirmed_holds_no_worker_that_had_begun_before() {
    let redefined = HeldFor::Withdrawn(Withdrawal::Redefined("d2".into()));
    let unverified = [
        HeldFor::Unverified(Unverified::Older { from: 9, to: 5 }),
        HeldFor::Unverified(Unverified::MadeFrom(OLDER.into())),
        redefined,
    ];
    for held in unverified {
        let mut bench = contested();
        bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
        let origins = bench.origins();
        bench.says_gone(origins, &config_map("a", 50));
        bench.says_gone(origins, &config_map("b", 51));
        assert_eq!(bench.working(), ["a", "b"]);
        bench.end_with("a", held.clone());
        bench.confirm(&bench.token());
        assert_eq!(bench.working(), ["b", "a"], "{held:?}");
        bench.end_with("b", held.clone());
        assert_eq!(
            bench.working(),
            ["a", "b"],
            "{held:?}: it is asked for again, with what is known now"
        );
    }
}

#[test]
fn what_a_worker_was_reported_by_another_cluster_is_judged_again_when_the_right_one_answers() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.log.clear();
    bench.end_with("a", HeldFor::OtherCluster(ANOTHER.into()));
    assert!(bench.log.contains(&WHO.to_owned()), "{:?}", bench.log);
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), None);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn what_another_cluster_lacks_is_deleted_once_people_have_confirmed_that_it_is_the_hub() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    bench.another_hub();
    let origins = bench.origins();
    bench.list(origins, &[], 3);
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), Some(2));
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["a", "b"]);
    assert_eq!(bench.job("a").identity.expected(), Some(ANOTHER));
}

#[test]
fn the_right_hub_is_searched_for_with_each_heartbeat_and_begins_again_when_it_is_back() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    bench.another_hub();
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.log.clear();
    bench.pass(Duration::from_secs(200));
    assert!(bench.count(WHO) >= 2, "{:?}", bench.log);
    bench.uids.insert(Side::Hub, THE_HUB);
    bench.log.clear();
    bench.pass(Duration::from_secs(70));
    assert_eq!(bench.turns, 1);
    assert!(bench.log.contains(&READ.to_owned()), "{:?}", bench.log);
    assert!(
        bench.work.is_empty(),
        "what another cluster has reported counts for nothing"
    );
}

#[test]
fn a_cluster_that_people_have_confirmed_is_not_taken_for_the_right_one_that_is_back() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    bench.another_hub();
    bench.confirm(&bench.token());
    bench.contact(Side::Hub).moves += 1;
    bench.log.clear();
    bench.tell(Event::Due);
    assert_eq!(bench.count(WHO), 1, "{:?}", bench.log);
    assert_eq!(bench.turns, 0);
}

#[test]
fn a_record_from_before_does_not_take_back_what_people_have_confirmed() {
    let mut bench = Bench::new();
    bench.world.keep(&json!({"types": "/v1/configmaps\n", "hub": OLDER}));
    bench.world.fails.insert(READ.into(), forbidden());
    let mut bench = bench.selecting(&["configmaps"]);
    bench.list_rest(100);
    bench.finds_one_of_another_hub();
    bench.bring_down(&["a", "b", "c"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.end_with("a", HeldFor::Unverified(Unverified::MadeFrom(OLDER.into())));
    bench.confirm(&bench.token());
    assert_eq!(bench.job("a").identity.expected(), Some(THE_HUB));
    bench.world.fails.clear();
    bench.pass(3 * GRACE);
    assert!(bench.count(READ) >= 2, "{:?}", bench.log);
    assert_eq!(bench.model.sides.identity(Side::Hub).expected(), Some(THE_HUB));
}

#[test]
fn workers_that_find_at_once_that_copies_are_from_another_cluster_hold_them_all() {
    let mut bench = contested();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.says_gone(origins, &config_map("b", 51));
    for name in ["a", "b"] {
        bench.end_with(name, HeldFor::Unverified(Unverified::MadeFrom(OLDER.into())));
    }
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), Some(2));
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["a", "b"]);
}

#[test]
fn copies_of_the_cluster_that_answers_again_are_judged_again() {
    let mut bench = contested();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.uids.insert(Side::Hub, OLDER);
    bench.contact(Side::Hub).moves += 1;
    bench.tell(Event::Due);
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), Some(1));
    bench.end_with("a", HeldFor::Unverified(Unverified::MadeFrom(OLDER.into())));
    bench.pass(70 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, OTHER_CLUSTER), None);
    assert_eq!(bench.working(), ["a"]);
    assert_eq!(bench.job("a").identity.expected(), Some(OLDER));
}

#[test]
fn what_people_have_confirmed_of_another_cluster_is_carried_out_after_a_restart() {
    let names = ["a", "b", "c", "d"];
    let mut bench = Bench::listed();
    bench.bring_down(&names);
    bench.another_hub();
    let origins = bench.origins();
    bench.list(origins, &[], 3);
    let token = bench.token();
    bench.confirm(&token);
    assert_eq!(bench.working(), names);
    bench.pass(SECOND);
    assert_eq!(bench.world.kept.hub, ANOTHER);
    // It stops before they are deleted.
    let mut next = Bench::new();
    next.world.kept = bench.world.kept;
    next.uids.insert(Side::Hub, ANOTHER);
    next.run();
    let mut confirming = shop(&["configmaps"]);
    confirming["metadata"]["annotations"] = json!({crate::api::CONFIRM_DELETES: token});
    next.configure(&[confirming]);
    let copies = next.copies();
    next.list(copies, &names.map(|name| copy_of(name, 2000)), 2001);
    next.list_rest(100);
    assert_eq!(next.working(), names);
    for name in names {
        assert!(next.job(name).may_delete);
        next.end_with(name, HeldFor::Unverified(Unverified::MadeFrom(THE_HUB.into())));
        assert!(
            next.working().contains(&name),
            "{name} is no stray: {:?}",
            next.working()
        );
    }
}

// Seed 505694 of the simulation: a proxy had answered for two minutes.
#[test]
fn a_side_that_could_not_say_which_cluster_it_is_is_asked_until_it_can() {
    let mut bench = Bench::new();
    bench.world.fails.insert(WHO.into(), broken());
    bench.run();
    bench.pass(3600 * SECOND);
    assert_eq!(bench.model.report.failing(), 1);
    bench.world.fails.clear();
    bench.pass(600 * SECOND);
    assert_eq!(bench.model.report.failing(), 0);
}
