//! Types that the hub deletes as a whole, or no longer has.

use super::*;
use crate::api::TYPE_WITHDRAWN;
use crate::sync::definition::Withdrawal;

const VERIFY: &str = "ask whether a type is withdrawn";
const LEFT: &str = "search for what is left";

/// One with two widgets at the edge.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = origins(&bench);
    for name in ["a", "b"] {
        bench.says(origins, &object(&widgets(), "shop", name, 10));
        bench.succeed(Change::Created);
    }
    bench.there_are_no_statuses();
    bench
}

fn origins(bench: &Bench) -> SourceId {
    bench.origins_of(Side::Hub, "widgets").expect("they are read")
}

fn going() -> Withdrawal {
    Withdrawal::Going(Some(CRD.into()))
}

/// The hub has begun to delete the type, and with it the widget `a`.
fn withdrawing() -> Bench {
    let mut bench = bench();
    let origins = origins(&bench);
    bench.says_gone(origins, &object(&widgets(), "shop", "a", 20));
    assert!(bench.job("a").may_delete);
    bench.end_with("a", HeldFor::Withdrawn(going()));
    assert!(bench.work.is_empty());
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(1));
    bench
}

#[test]
fn copies_of_a_type_that_is_being_deleted_stay_and_the_hub_is_asked_each_minute() {
    let mut bench = withdrawing();
    bench.world.withdrawal = Some(going());
    let origins = origins(&bench);
    bench.says_gone(origins, &object(&widgets(), "shop", "b", 21));
    bench.pass(601 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert!((9..=10).contains(&bench.count(VERIFY)), "{:?}", bench.log);
    bench.world.withdrawal = None;
    bench.pass(61 * SECOND);
    assert_eq!(bench.working(), ["a", "b"], "it is not taken away after all");
}

#[test]
fn copies_of_a_type_that_is_defined_again_stay_for_the_time_of_a_hold() {
    let mut bench = withdrawing();
    bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
    bench.pass(61 * SECOND);
    bench.pass(GRACE.saturating_sub(2 * SECOND));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.pass(3 * SECOND);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn the_time_of_a_hold_of_a_type_begins_again_when_the_hub_has_been_away_and_not_when_the_edge_has() {
    for (away, expected) in [(Side::Edge, &["a"][..]), (Side::Hub, &[])] {
        let mut bench = withdrawing();
        bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
        bench.pass(61 * SECOND + GRACE / 2);
        let source = match away {
            Side::Edge => bench.copies_of(away, "widgets").expect("they are read"),
            Side::Hub => origins(&bench),
        };
        bench.breaks(source, unreachable());
        bench.tell(Event::Due);
        bench.pass(GRACE / 2 + SECOND);
        assert_eq!(bench.working(), expected, "{away}");
        bench.pass(GRACE / 2);
        assert_eq!(bench.working(), ["a"], "{away}");
    }
}

#[test]
fn a_type_that_is_defined_again_with_another_kind_is_noticed_though_no_source_fails() {
    let mut bench = withdrawing();
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.world.serve_at(
        Side::Hub,
        &ResourceType {
            kind: "Gadget".into(),
            ..widgets()
        },
    );
    bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
    bench.pass(62 * SECOND);
    assert!(bench.origins_of(Side::Hub, "widgets").is_none());
    assert_eq!(bench.model.selecting.problems.len(), 1);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

#[test]
fn people_may_let_go_the_copies_of_a_type_that_is_taken_away() {
    let mut bench = withdrawing();
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["a"]);
    assert!(bench.job("a").may_delete);
}

#[test]
fn a_hub_that_cannot_say_whether_it_takes_a_type_away_has_its_copies_kept() {
    let mut bench = withdrawing();
    bench.world.fails.insert(VERIFY.into(), broken());
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert!(bench.count(VERIFY) > 10);
}

/// The hub has the type no longer.
fn vanished(left: usize) -> Bench {
    let mut bench = bench();
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.world.left = left;
    let origins = origins(&bench);
    bench.breaks(origins, not_served());
    bench.pass(60 * SECOND);
    bench
}

#[test]
fn copies_of_a_type_that_the_hub_has_no_longer_stay_and_that_is_reported() {
    let mut bench = vanished(2);
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert_eq!(bench.condition()["reason"], TYPE_WITHDRAWN);
    bench.log.clear();
    bench.pass(24 * 3600 * SECOND);
    assert!((20..30).contains(&bench.count(LEFT)), "{} in a day", bench.count(LEFT));
}

#[test]
fn a_type_that_the_hub_has_again_is_held_no_longer_and_goes_on() {
    let mut bench = vanished(2);
    bench.world.serve_at(Side::Hub, &widgets());
    bench.pass(301 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), None);
    bench.listed.clear();
    bench.list_rest(3000);
    assert!(bench.origins_of(Side::Hub, "widgets").is_some());
}

/// The same type with the other scope.
fn cluster_scoped() -> ResourceType {
    ResourceType {
        namespaced: false,
        ..widgets()
    }
}

#[test]
fn a_type_that_has_another_scope_is_held_and_synced_again_when_it_has_its_own() {
    let mut bench = vanished(2);
    let token = bench.token();
    bench.world.serve_at(Side::Hub, &cluster_scoped());
    bench.pass(2 * GRACE);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert_eq!(bench.token(), token);
    assert!(bench.origins_of(Side::Hub, "widgets").is_none());
    bench.world.withdraw_at(Side::Hub, &cluster_scoped());
    bench.world.serve_at(Side::Hub, &widgets());
    bench.pass(301 * SECOND);
    bench.listed.clear();
    bench.list_rest(3000);
    assert!(bench.origins_of(Side::Hub, "widgets").is_some());
}

#[test]
fn what_is_wrong_with_a_type_is_not_corrected_while_its_side_is_asked_for_another_one() {
    let mut bench = Bench::new();
    let [gauges, meters] = ["gauges", "meters"].map(|resource| ResourceType {
        resource: resource.into(),
        kind: resource.into(),
        ..widgets()
    });
    bench.world.serve(&widgets());
    bench.world.serve_at(Side::Hub, &gauges);
    bench.world.serve_at(
        Side::Edge,
        &ResourceType {
            namespaced: false,
            ..gauges
        },
    );
    bench.world.serve_at(Side::Edge, &meters);
    let mut bench = bench.selecting(&["widgets.example.org", "gauges.example.org", "meters.example.org"]);
    let known = |bench: &Bench| {
        let selecting = &bench.model.selecting;
        let missing = selecting.missing.iter().chain(&selecting.unsure);
        let reported: BTreeSet<_> = missing.filter(|missing| missing.is_reported()).cloned().collect();
        (selecting.problems.clone(), reported)
    };
    let before = known(&bench);
    assert_eq!((before.0.len(), before.1.len()), (1, 1), "{before:?}");
    bench.world.fails.insert("ask the hub what it serves".into(), broken());
    bench.breaks(origins(&bench), not_served());
    bench.pass(SECOND);
    assert!(bench.model.selecting.unknown.has_group("example.org"));
    // As for news from the other side.
    bench.model.replan();
    assert_eq!(known(&bench), before);
    bench.world.fails.clear();
    bench.pass(60 * SECOND);
    assert_eq!(known(&bench), before);
}

#[test]
fn a_list_that_shows_another_scope_has_the_side_asked_what_it_serves() {
    let mut bench = bench();
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.world.serve_at(Side::Hub, &cluster_scoped());
    bench.world.left = 2;
    let origins = origins(&bench);
    bench.says(origins, &object(&cluster_scoped(), "", "a", 30));
    bench.pass(SECOND);
    assert!(bench.origins_of(Side::Hub, "widgets").is_none());
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

#[test]
fn a_type_that_the_hub_has_no_longer_and_that_has_no_copies_is_worth_no_word() {
    let mut bench = vanished(0);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), None);
    assert_eq!(bench.condition()["status"], "False");
}

#[test]
fn people_may_let_go_the_copies_of_a_type_that_the_hub_has_no_longer() {
    let mut bench = vanished(2);
    bench.list_crds(Side::Hub, &[]);
    bench.confirm(&bench.token());
    bench.pass(SECOND);
    assert!(
        bench.copies_of(Side::Edge, "widgets").is_none(),
        "the hub has to say it again and again"
    );
    bench.pass(60 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
    assert!(bench.work.iter().all(|(_, job)| job.gone_at_origin && job.may_delete));
}

#[test]
fn what_people_have_confirmed_of_a_type_that_is_gone_is_not_held_once_more_as_too_many() {
    let mut bench = vanished(60);
    bench.list_crds(Side::Hub, &[]);
    bench.confirm(&bench.token());
    assert!(
        bench.world.kept.let_go.contains("widgets.example.org"),
        "a restart knows it"
    );
    bench.pass(60 * SECOND);
    let names: Vec<String> = (0..60).map(|index| format!("w-{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    bench.list_widgets(&names, 2001);
    bench.pass(SECOND);
    assert_eq!(bench.held_for(Direction::Down, crate::api::TOO_MANY), None);
    assert!(bench.work.iter().all(|(_, job)| job.may_delete) && !bench.work.is_empty());
    bench.world.serve_at(Side::Hub, &widgets());
    bench.pass(2 * GRACE);
    assert!(
        bench.world.kept.let_go.is_empty(),
        "it does not confirm what comes after"
    );
}

/// Nothing selects the widgets any more, and the hub has said that it has them no longer, once.
fn deselected_and_gone() -> Bench {
    let mut bench = bench();
    bench.config_says(&config("all", &json!({})));
    bench.list_namespaces(2001);
    bench.list_widgets(&["a", "b"], 2001);
    let origins = origins(&bench);
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.breaks(origins, not_served());
    bench.pass(3 * SECOND);
    bench.list_widgets(&["a", "b"], 2002);
    bench.list_crds(Side::Hub, &[]);
    bench
}

#[test]
fn a_deselected_type_that_the_hub_has_no_longer_loses_its_copies_only_when_that_is_certain() {
    let mut bench = deselected_and_gone();
    assert!(bench.work.is_empty(), "it has said so once: {:?}", bench.working());
    bench.pass(60 * SECOND);
    bench.list_widgets(&["a", "b"], 2003);
    assert!(bench.work.iter().all(|(_, job)| job.gone_at_origin && job.may_delete));
    assert_eq!(bench.working(), ["a", "b"]);
}

// Whoever has read how many a redefined type holds has not confirmed all of one that is gone.
#[test]
fn a_type_that_is_gone_after_it_was_defined_again_is_held_with_a_token_of_its_own() {
    for (withdrawal, same) in [(going(), true), (Withdrawal::Redefined(NEXT.into()), false)] {
        let mut bench = bench();
        let origins = origins(&bench);
        bench.says_gone(origins, &object(&widgets(), "shop", "a", 20));
        bench.world.withdrawal = Some(withdrawal.clone());
        bench.end_with("a", HeldFor::Withdrawn(withdrawal.clone()));
        bench.pass(60 * SECOND);
        let before = bench.token();
        bench.world.withdraw_at(Side::Hub, &widgets());
        bench.world.left = 2;
        bench.breaks(origins, not_served());
        bench.pass(60 * SECOND);
        assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
        assert_eq!(bench.token() == before, same, "{withdrawal:?}");
    }
}

/// Widgets `a`, and `b` that a conversion makes a gadget, have come down; the hub has defined the type again, and both are
/// gone with the former definition.
fn redefined_with_a_conversion() -> (Bench, [SourceId; 2]) {
    let mut bench = Bench::new();
    let gadgets = ResourceType {
        resource: "gadgets".into(),
        kind: "Gadget".into(),
        ..widgets()
    };
    bench.world.serve(&widgets());
    bench.world.serve(&gadgets);
    bench.world.definition = Some(defined_by(CRD));
    bench.run();
    let address = |kind: &str, name: &str| json!({"group": "example.org", "version": "v1", "kind": kind, "name": name});
    let selected = |name: &str| json!({"group": "example.org", "version": "v1", "kind": "Widget", "namespace": "shop", "name": name});
    let spec = json!({
        "downSyncedResources": [selected("a"), selected("b")],
        "conversions": [{"upstream": address("Widget", "b"), "downstream": address("Gadget", "b")}]});
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("all", &spec)]);
    bench.list_all(1);
    let all = bench.world.sources.iter();
    let of_widgets =
        all.filter(|(_, (feed, reading))| matches!(feed, Feed::Origins(..)) && reading.resource.resource == "widgets");
    let sources: Vec<SourceId> = of_widgets.map(|(&id, _)| id).collect();
    let sources: [SourceId; 2] = sources.try_into().expect("each type is read by itself");
    for source in sources {
        for name in ["a", "b"] {
            bench.says(source, &object(&widgets(), "shop", name, 10));
        }
    }
    bench.succeed(Change::Created);
    bench.succeed(Change::Created);
    bench.there_are_no_statuses();
    for source in sources {
        for name in ["a", "b"] {
            bench.says_gone(source, &object(&widgets(), "shop", name, 20));
        }
    }
    let redefined = HeldFor::Withdrawn(Withdrawal::Redefined(NEXT.into()));
    while let Some(name) = bench.working().first().map(|&name| name.to_owned()) {
        bench.end_with(&name, redefined.clone());
    }
    (bench, sources)
}

// Seed 56800 of the simulation: all objects of one of the two were back, which counted as confirmed for the other too.
#[test]
fn what_a_conversion_makes_another_type_is_held_with_the_type_that_it_is_from() {
    let (mut bench, sources) = redefined_with_a_conversion();
    assert_eq!(
        bench.held_for(Direction::Down, TYPE_WITHDRAWN),
        Some(2),
        "one hold keeps both"
    );
    for source in sources {
        bench.says(source, &object(&widgets(), "shop", "a", 30));
    }
    bench.succeed_with("a", Change::Created);
    bench.pass(GRACE / 2);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(1));
    assert_eq!(bench.model.definitions.known("widgets.example.org"), Some(&uid(CRD)));
    bench.confirm(&bench.token());
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn what_people_have_confirmed_of_a_type_that_is_gone_is_deleted_after_a_restart_too() {
    let (mut bench, gone) = (Bench::new(), "widgets.example.org");
    bench.world.serve_at(Side::Edge, &widgets());
    bench.world.keep(&json!({
        "types": "example.org/v1/widgets\n",
        "hub-definitions": format!("syncerconfigs.edge.kubestellar.io {CRD}\n{gone} {CRD}\n"),
        "confirmed": gone,
        "deselected": gone,
    }));
    bench.run();
    bench.configure(&[]);
    bench.pass(SECOND);
    bench.list_crds(Side::Hub, &[]);
    bench.pass(60 * SECOND);
    let names = ["a", "b", "c", "d", "e", "f"];
    bench.list_widgets(&names, 2001);
    assert_eq!(bench.held_for(Direction::Down, crate::api::TOO_MANY), None);
    let mut deletes = 0;
    while !bench.work.is_empty() {
        bench.succeed(Change::Deleted);
        deletes += 1;
    }
    assert_eq!(deletes, names.len());
    let copies = bench.copies_of(Side::Edge, "widgets").expect("their ends are to come");
    for name in names {
        bench.says_gone(copies, &copy(Direction::Down, &in_shop(&widgets(), name), name, 3000));
    }
    bench.pass(3 * GRACE);
    assert!(bench.world.kept.let_go.is_empty(), "there is nothing left to confirm");
}
