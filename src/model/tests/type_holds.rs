//! Holds on types and on single objects: what they keep, what they do not keep, and when they end.

use super::*;
use crate::api::{NOT_EMPTY, OLDER_VERSIONS, TOO_MANY, TYPE_WITHDRAWN};
use crate::sync::definition::Withdrawal;

const VERIFY: &str = "ask whether a type is withdrawn";
const LEFT: &str = "search for what is left";
pub(super) const WIDGETS: &str = "widgets.example.org";

pub(super) fn going() -> Withdrawal {
    Withdrawal::Going(Some(CRD.into()))
}

pub(super) fn redefined() -> Withdrawal {
    Withdrawal::Redefined(NEXT.into())
}

pub(super) fn widget(name: &str, version: u64) -> Value {
    object(&widgets(), "shop", name, version)
}

pub(super) fn origins(bench: &Bench) -> SourceId {
    bench.origins_of(Side::Hub, "widgets").expect("they are read")
}

/// The widgets `a` and `b` and the `ConfigMap`s `m` and `n` have come down.
pub(super) fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    bench.world.left = 2;
    let mut bench = bench.selecting(&["configmaps", WIDGETS]);
    let widgets = origins(&bench);
    for name in ["a", "b"] {
        bench.says(widgets, &widget(name, 10));
        bench.succeed(Change::Created);
    }
    bench.bring_down(&["m", "n"]);
    bench.there_are_no_statuses();
    bench
}

/// The widget `a` is gone, and the hub says this of its type.
pub(super) fn withdrawn(withdrawal: Withdrawal) -> Bench {
    let mut bench = bench();
    let widgets = origins(&bench);
    bench.says_gone(widgets, &widget("a", 20));
    bench.world.withdrawal = Some(withdrawal.clone());
    bench.end_with("a", HeldFor::Withdrawn(withdrawal));
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(1));
    bench.pass(3 * SECOND);
    bench
}

/// The widget `a` is back.
fn bring_back(bench: &mut Bench) {
    let widgets = origins(bench);
    bench.says(widgets, &widget("a", 30));
    bench.succeed_with("a", Change::Updated);
    bench.pass(SECOND);
}

impl Bench {
    fn end_all_with(&mut self, why: &Why) {
        while let Some(name) = self.working().first().map(ToString::to_string) {
            self.end_with(&name, why.clone());
        }
    }
}

/// All holds for this reason, also those that keep nothing.
fn holds(bench: &mut Bench, reason: &str) -> usize {
    let held = bench.model.guard.held_by_reason(&bench.model.types);
    held.into_iter().filter(|((_, why), _)| *why == reason).count()
}

#[test]
fn a_hold_of_a_type_keeps_no_copies_of_another_one() {
    let mut bench = withdrawn(going());
    let config_maps = bench.origins();
    bench.says_gone(config_maps, &config_map("m", 40));
    assert!(bench.job("m").may_delete && !bench.job("m").deletes_are_held);
    let widgets = origins(&bench);
    bench.says(widgets, &widget("b", 41));
    assert!(bench.job("b").deletes_are_held);
    let mut bench = self::bench();
    bench.says(widgets, &widget("b", 41));
    assert!(!bench.job("b").deletes_are_held);
}

#[test]
fn the_token_stays_while_the_hub_says_the_same_of_a_type() {
    let gone = Withdrawal::Going(None);
    let next = Withdrawal::Redefined("the one after".into());
    for (before, now, is_same) in [
        (going(), going(), true),
        (going(), gone, true),
        (going(), redefined(), false),
        (redefined(), redefined(), true),
        (redefined(), next, false),
    ] {
        let mut bench = bench();
        let widgets = origins(&bench);
        for name in ["a", "b"] {
            bench.says_gone(widgets, &widget(name, 20));
        }
        bench.end_with("a", HeldFor::Withdrawn(before.clone()));
        bench.pass(3 * SECOND);
        let token = bench.token();
        bench.end_with("b", HeldFor::Withdrawn(now.clone()));
        bench.pass(3 * SECOND);
        assert_eq!(bench.token() == token, is_same, "{before:?} {now:?}");
    }
}

#[test]
fn a_type_that_is_read_again_is_asked_for_at_once() {
    let mut bench = withdrawn(going());
    let before = bench.count(VERIFY);
    bench.config_says(&shop(&["configmaps"]));
    bench.run();
    assert_eq!(bench.count(VERIFY), before + 2, "the configs and the type");
}

#[test]
fn a_hold_of_a_type_ends_with_the_type() {
    let mut bench = withdrawn(going());
    bench.config_says(&shop(&["configmaps"]));
    bench.list_namespaces(2001);
    bench.list_widgets(&[], 2001);
    bench.end_all_with(&Why::Gone);
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 0);
}

#[test]
fn a_hold_of_a_type_stays_when_another_type_ends() {
    let mut bench = withdrawn(going());
    bench.config_says(&shop(&[WIDGETS]));
    bench.list_namespaces(2001);
    bench.list(bench.copies(), &[], 2001);
    bench.end_all_with(&Why::Gone);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_none());
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 1);
}

#[test]
fn a_type_that_is_defined_again_is_held_until_all_its_objects_are_back() {
    let mut bench = withdrawn(redefined());
    let known = |bench: &Bench| bench.model.definitions.known(WIDGETS).cloned();
    bring_back(&mut bench);
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 0);
    assert_eq!(known(&bench), Some(uid(NEXT)));
    // Before a list is complete, not all that is gone is known.
    let mut bench = withdrawn(redefined());
    let widgets = origins(&bench);
    bench.source_says(widgets, SourceEvent::Begin(Covers::Everything));
    bring_back(&mut bench);
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 1);
    assert_eq!(known(&bench), Some(uid(CRD)));
    // Nor before the origin of a copy that has turned up has been asked for.
    let mut bench = withdrawn(redefined());
    let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    bench.says(
        copies,
        &copy(Direction::Down, &in_shop(&self::widgets(), "c"), "c", 3000),
    );
    bring_back(&mut bench);
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 1);
}

#[test]
fn of_a_type_that_is_not_served_nothing_is_held_before_the_hub_has_said_that_it_is_gone() {
    let mut bench = bench();
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.world.unanswered.insert(LEFT.into());
    let widgets = origins(&bench);
    bench.breaks(widgets, not_served());
    bench.pass(60 * SECOND);
    assert!(bench.count(LEFT) > 0);
    assert_eq!(holds(&mut bench, TYPE_WITHDRAWN), 0);
}

/// The hub has the widgets no longer, and two copies are left.
fn vanished() -> Bench {
    let mut bench = bench();
    bench.world.withdraw_at(Side::Hub, &widgets());
    let widgets = origins(&bench);
    bench.breaks(widgets, not_served());
    bench.pass(60 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    bench
}

fn message(bench: &Bench) -> String {
    bench.condition()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_condition_says_so_as_soon_as_nothing_is_held_any_more() {
    let mut bench = vanished();
    bench.world.left = 0;
    while bench.held_for(Direction::Down, TYPE_WITHDRAWN).is_some() {
        bench.pass(SECOND);
    }
    bench.pass(3 * SECOND);
    assert_eq!(bench.condition()["status"], "False");
}

#[test]
fn what_is_said_of_a_type_that_is_gone_follows_the_configs_and_its_token_stays() {
    let mut bench = vanished();
    let token = bench.token();
    assert!(
        message(&bench).contains("until it is back or no config selects it"),
        "{}",
        message(&bench)
    );
    bench.world.fails.insert(VERIFY.into(), broken());
    bench.config_says(&shop(&["configmaps"]));
    bench.pass(60 * SECOND);
    assert!(
        message(&bench).contains("nothing selects it; its copies"),
        "{}",
        message(&bench)
    );
    bench.world.fails.clear();
    bench.world.withdrawal = Some(going());
    bench.pass(301 * SECOND);
    assert!(
        message(&bench).contains("deleted with their own type"),
        "{}",
        message(&bench)
    );
    assert_eq!(bench.token(), token);
}

#[test]
fn a_hub_that_is_asked_whether_people_have_deselected_a_type_is_given_the_time_to_answer() {
    let mut bench = vanished();
    bench.world.unanswered.insert(VERIFY.into());
    bench.config_says(&shop(&["configmaps"]));
    bench.pass(60 * SECOND);
    assert!(message(&bench).contains("no config selects it"), "{}", message(&bench));
}

#[test]
fn a_side_that_does_not_say_what_is_left_fails_and_one_that_does_not_answer_is_an_outage() {
    for (error, failing) in [(forbidden(), 1), (unreachable(), 0)] {
        let mut bench = vanished();
        let before = bench.model.report.failing();
        bench.world.fails.insert(LEFT.into(), error);
        bench.pass(600 * SECOND);
        assert_eq!(bench.model.report.failing() - before, failing);
        bench.world.fails.clear();
        bench.world.serve_at(Side::Hub, &widgets());
        bench.pass(301 * SECOND);
        assert_eq!(bench.model.report.failing(), 0, "that is over with the type");
    }
}

#[test]
fn a_hub_that_does_not_say_what_defines_configs_fails_and_one_that_does_not_answer_is_an_outage() {
    for (error, failing) in [(forbidden(), 1), (unreachable(), 0)] {
        let mut bench = vanished();
        let before = bench.model.report.failing();
        bench.world.fails.insert(VERIFY.into(), error);
        bench.config_says(&shop(&["configmaps"]));
        bench.pass(10 * SECOND);
        assert_eq!(bench.model.report.failing() - before, failing);
    }
}

/// There is something in a namespace whose origin is gone.
fn not_empty() -> Bench {
    let (mut bench, ..) = super::holds::with_namespace_to_delete();
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    assert_eq!(bench.held_for(Direction::Down, NOT_EMPTY), Some(1));
    bench.pass(SECOND);
    bench
}

#[test]
fn a_namespace_that_is_not_empty_is_held_until_its_own_token_confirms_it() {
    let mut bench = not_empty();
    bench.confirm("0");
    bench.pass(2 * SECOND);
    assert!(!bench.job("shop").may_cascade);
    bench.confirm(&bench.token());
    bench.end_with("shop", HeldFor::WouldCascade("ConfigMap/shop/x".into()));
    bench.pass(60 * SECOND);
    assert!(bench.job("shop").may_cascade);
}

#[test]
fn a_hold_of_a_namespace_ends_with_the_type_and_with_no_other() {
    let mut bench = not_empty();
    bench.select(&["configmaps"]);
    bench.list_rest(2001);
    bench.config_says(&config("all", &json!({})));
    bench.list_rest(2002);
    bench.pass(SECOND);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_none(), "it has ended");
    bench.end_all_with(&Why::Gone);
    assert_eq!(holds(&mut bench, NOT_EMPTY), 0);
}

#[test]
fn what_has_been_let_go_is_held_again_for_a_graver_reason() {
    let mut bench = Bench::listed();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    bench.bring_down(&names);
    let origins = bench.origins();
    bench.list(origins, &[], 30);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(8));
    bench.pass(3 * SECOND);
    bench.confirm(&bench.token());
    assert_eq!(bench.work.len(), 4, "as many as there are workers");
    bench.end_with("a", HeldFor::WentBack(5));
    assert!(
        bench
            .held_for(Direction::Down, OLDER_VERSIONS)
            .is_some_and(|held| held >= 4)
    );
    while !bench.work.is_empty() {
        let name = bench.working()[0].to_owned();
        assert!("abcd".contains(&name), "{name}");
        bench.end_with(&name, HeldFor::WentBack(5));
    }
}

#[test]
fn copies_are_counted_as_they_are_now() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    bench.succeed_with("a", Change::Deleted);
    bench.pass(120 * SECOND);
    bench.bring_down(&["c", "d", "e", "f", "g", "h", "i"]);
    let left = ["b", "f", "g", "h", "i"].map(|name| config_map(name, 60));
    bench.list(origins, &left, 70);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), None, "three of eight");
}
