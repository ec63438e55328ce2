//! Configs that are gone: whether people have deleted them, or they went with their own type.

use super::*;
use crate::api::TYPE_WITHDRAWN;
use crate::sync::definition::{DefinedBy, Withdrawal};

const CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";
const VERIFY: &str = "ask whether a type is withdrawn";
const WIDGETS: &str = "widgets.example.org";

fn known_of_configs(bench: &Bench) -> Option<&DefinedBy> {
    let known = bench.model.definitions.known(CONFIGS);
    assert_eq!(
        known,
        bench.world.kept.hub_definitions.get(CONFIGS),
        "a restart knows the same"
    );
    known
}

/// The only config is gone.
fn drop_config(bench: &mut Bench) {
    let configs = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.says_gone(configs, &shop(&[WIDGETS]));
}

fn is_proved(bench: &Bench) -> bool {
    let is_proved = bench.model.deselections.proved().contains(WIDGETS);
    assert_eq!(
        is_proved,
        bench.world.kept.deselected.contains(WIDGETS),
        "a restart knows the same"
    );
    is_proved
}

fn is_unproved(bench: &Bench) -> bool {
    bench.model.deselections.unproved().contains(WIDGETS)
}

/// One that selects these, with the widgets `a` and `b` at the edge if they are among them.
fn selecting(selects: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    bench.world.left = 2;
    let mut bench = bench.selecting(selects);
    if let Some(origins) = bench.origins_of(Side::Hub, "widgets") {
        for name in ["a", "b"] {
            bench.says(origins, &object(&widgets(), "shop", name, 10));
            bench.succeed(Change::Created);
        }
    }
    bench.there_are_no_statuses();
    bench.pass(SECOND);
    bench
}

/// The only config is deleted, and the hub says this of its type.
fn without_configs(withdrawal: Option<Withdrawal>) -> Bench {
    let mut bench = selecting(&[WIDGETS]);
    bench.world.withdrawal = withdrawal;
    drop_config(&mut bench);
    bench.list_namespaces(2001);
    bench.list_widgets(&["a", "b"], 2001);
    bench.pass(SECOND);
    bench
}

/// The hub has the widgets no longer, as it says again and again.
fn lose_widgets(bench: &mut Bench) {
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.world.withdraw_at(Side::Hub, &widgets());
    bench.breaks(origins, not_served());
    bench.pass(3 * SECOND);
    bench.list_crds(Side::Hub, &[]);
    bench.pass(60 * SECOND);
}

fn gone() -> Withdrawal {
    Withdrawal::Going(None)
}

#[test]
fn what_defines_configs_is_known_while_there_are_some_that_select_what_a_crd_may_define() {
    assert_eq!(known_of_configs(&selecting(&["configmaps"])), None);
    let bench = selecting(&[WIDGETS]);
    assert_eq!(known_of_configs(&bench), Some(&uid(CRD)));
    let others = "edgesyncconfigs.edge.kubestellar.io";
    assert_eq!(bench.model.definitions.known(others), None, "there are none");
}

#[test]
fn a_type_is_deselected_if_the_type_of_the_configs_is_what_it_was() {
    for (row, withdrawal) in [
        ("it is", None),
        ("it is being deleted", Some(Withdrawal::Going(Some(CRD.into())))),
        ("it is gone", Some(gone())),
        ("it is defined again", Some(Withdrawal::Redefined(NEXT.into()))),
    ] {
        let is_proved = withdrawal.is_none();
        let mut bench = without_configs(withdrawal);
        assert_eq!(known_of_configs(&bench), None, "{row}");
        assert_eq!(self::is_proved(&bench), is_proved, "{row}");
        assert_eq!(is_unproved(&bench), !is_proved, "{row}");
        assert_eq!(bench.world.kept.unproved.contains(WIDGETS), !is_proved, "{row}");
        lose_widgets(&mut bench);
        assert_eq!(
            bench.held_for(Direction::Down, TYPE_WITHDRAWN),
            (!is_proved).then_some(2),
            "{row}"
        );
        if is_proved {
            bench.list_widgets(&["a", "b"], 2001);
            assert_eq!(bench.working(), ["a", "b"], "{row}");
        } else {
            bench.pass(2 * GRACE);
            assert!(bench.work.is_empty(), "{row}: {:?}", bench.working());
        }
    }
}

#[test]
fn a_hub_that_cannot_say_what_defines_the_configs_is_asked_again() {
    let mut bench = selecting(&[WIDGETS]);
    bench.world.fails.insert(VERIFY.into(), broken());
    drop_config(&mut bench);
    bench.list_namespaces(2001);
    bench.list_widgets(&["a", "b"], 2001);
    lose_widgets(&mut bench);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert!((2..20).contains(&bench.count(VERIFY)), "{}", bench.count(VERIFY));
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    bench.world.fails.clear();
    bench.pass(660 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
}

#[test]
fn an_unproved_deselection_is_forgotten_when_a_config_selects_the_type_again() {
    for (selects, is_forgotten) in [(WIDGETS, true), ("configmaps", false)] {
        let mut bench = without_configs(Some(Withdrawal::Redefined(NEXT.into())));
        bench.world.definition = Some(defined_by(NEXT));
        bench.config_says(&shop(&[selects]));
        bench.pass(SECOND);
        assert_eq!(is_unproved(&bench), !is_forgotten, "{selects}");
        assert_eq!(bench.world.kept.unproved.contains(WIDGETS), !is_forgotten, "{selects}");
        assert_eq!(known_of_configs(&bench), Some(&uid(NEXT)), "{selects}");
    }
}

#[test]
fn people_may_confirm_a_deselection_that_is_not_proved() {
    let mut bench = without_configs(Some(gone()));
    lose_widgets(&mut bench);
    // There is a config again, which says what is held.
    bench.world.withdrawal = None;
    bench.config_says(&config("another", &json!({})));
    bench.pass(3 * SECOND);
    let condition = bench.condition();
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("may have been deleted with their own type"),
        "{message}"
    );
    bench.confirm(&bench.token());
    bench.pass(60 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
    assert!(!is_unproved(&bench) && bench.world.kept.unproved.is_empty());
}

#[test]
fn configs_that_went_while_nobody_looked_are_asked_about_after_the_start() {
    for (withdrawal, expected) in [(None, false), (Some(Withdrawal::Redefined(NEXT.into())), true)] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.world.withdrawal = withdrawal;
        bench.world.keep(&json!({
            "types": "example.org/v1/widgets\n",
            "hub-definitions": format!("{CONFIGS} {CRD}\n{WIDGETS} {CRD}\n"),
        }));
        bench.run();
        bench.configure(&[]);
        bench.pass(SECOND);
        assert_eq!(is_unproved(&bench), expected);
        assert_eq!(known_of_configs(&bench), None);
    }
}

#[test]
fn configs_that_go_with_their_type_once_more_deselect_nothing_while_the_hub_lacks_the_selected_type() {
    let mut bench = without_configs(Some(gone()));
    lose_widgets(&mut bench);
    bench.world.withdrawal = None;
    bench.world.definition = Some(defined_by(NEXT));
    bench.config_says(&shop(&[WIDGETS]));
    bench.pass(SECOND);
    assert!(!is_unproved(&bench));
    assert_eq!(known_of_configs(&bench), Some(&uid(NEXT)));
    bench.world.withdrawal = Some(Withdrawal::Redefined("third".into()));
    drop_config(&mut bench);
    bench.pass(2 * GRACE);
    assert!(is_unproved(&bench));
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

/// One that begins when the hub lacks the widgets, with the record of a run that knew the CRD of the configs.
fn after_a_run(record: &Value) -> Bench {
    let mut bench = Bench::new();
    bench.world.serve_at(Side::Edge, &widgets());
    bench.world.left = 2;
    bench.world.keep(record);
    bench.run();
    bench
}

fn recorded() -> Value {
    json!({"types": "example.org/v1/widgets\n", "hub-definitions": format!("{CONFIGS} {CRD}\n{WIDGETS} {CRD}\n")})
}

#[test]
fn a_kind_of_configs_that_is_defined_and_not_served_proves_nothing() {
    let mut bench = after_a_run(&recorded());
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[]);
    for _ in 0..10 {
        if let Some(configs) = bench.find(|feed| *feed == Feed::Configs(ConfigKind::SyncerConfig), "syncerconfigs") {
            bench.breaks(configs, not_served());
        }
        bench.pass(10 * SECOND);
    }
    assert!(bench.model.selecting.are_known() && bench.count(VERIFY) > 0);
    bench.pass(2 * GRACE);
    assert!(!is_proved(&bench) && !is_unproved(&bench));
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.pass(SECOND);
    assert!(is_proved(&bench), "people had deleted them");
}

#[test]
fn without_a_record_of_what_defined_the_configs_nobody_is_known_to_have_deselected_a_type() {
    for (definitions, expected) in [
        (format!("{CONFIGS} {CRD}\n"), true),
        (format!("{WIDGETS} {CRD}\n"), false),
    ] {
        let mut bench = after_a_run(&json!({"types": "example.org/v1/widgets\n", "hub-definitions": definitions}));
        bench.configure(&[]);
        bench.pass(SECOND);
        assert_eq!(
            (is_proved(&bench), is_unproved(&bench)),
            (expected, !expected),
            "{definitions}"
        );
    }
}

#[test]
fn configs_of_which_it_is_not_known_what_defines_them_prove_nothing() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.fails.insert("ask what defines types".into(), forbidden());
    let mut bench = bench.selecting(&[WIDGETS]);
    bench.pass(SECOND);
    drop_config(&mut bench);
    bench.pass(SECOND);
    assert!(!is_proved(&bench) && is_unproved(&bench));
}

#[test]
fn an_answer_from_before_the_type_was_selected_again_proves_nothing() {
    let mut bench = selecting(&[WIDGETS]);
    bench.world.unanswered.insert(VERIFY.into());
    drop_config(&mut bench);
    bench.config_says(&shop(&[WIDGETS]));
    drop_config(&mut bench);
    bench.world.unanswered.clear();
    bench.world.withdrawal = Some(gone());
    let in_place = vec![(ConfigKind::SyncerConfig, Ok(None))];
    bench.tell(Event::Answer(Answer::ConfigKinds(in_place)));
    bench.pass(SECOND);
    assert!(!is_proved(&bench) && is_unproved(&bench));
}

#[test]
fn a_type_that_people_have_deselected_is_known_as_that_after_a_restart() {
    let mut record = recorded();
    record["deselected"] = json!(WIDGETS);
    // Without the other configs, it might have been selected again with them.
    for withdrawal in [None, Some(Withdrawal::Redefined(NEXT.into()))] {
        let is_in_place = withdrawal.is_none();
        let mut bench = after_a_run(&record);
        bench.world.withdrawal = withdrawal;
        bench.configure(&[]);
        bench.pass(SECOND);
        assert_eq!((is_proved(&bench), is_unproved(&bench)), (is_in_place, !is_in_place));
    }
    let mut bench = after_a_run(&record);
    bench.configure(&[shop(&[WIDGETS])]);
    bench.pass(SECOND);
    assert!(!is_proved(&bench), "it is selected");
}

#[test]
fn a_record_that_is_read_late_does_not_take_back_what_this_run_has_found_out() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    bench.world.fails.insert("read the record".into(), forbidden());
    let mut bench = bench.selecting(&[WIDGETS]);
    bench.pass(SECOND);
    bench.world.withdrawal = Some(gone());
    drop_config(&mut bench);
    bench.list_namespaces(2001);
    bench.list_widgets(&["a"], 2001);
    bench.pass(SECOND);
    assert!(bench.model.deselections.unproved().contains(WIDGETS));
    bench.world.fails.clear();
    bench.pass(3 * GRACE);
    assert!(bench.count("write the record") > 0);
    assert!(is_unproved(&bench) && !is_proved(&bench));
}

fn people_deselect_under_the_next_definition(mut bench: Bench) {
    assert_eq!(known_of_configs(&bench), Some(&uid(NEXT)));
    bench.world.withdrawal = None;
    drop_config(&mut bench);
    bench.pass(SECOND);
    assert!(is_proved(&bench));
}

#[test]
fn a_config_that_is_another_object_has_the_hub_asked_what_defines_it() {
    let mut bench = selecting(&[WIDGETS]);
    bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
    let mut another = shop(&[WIDGETS]);
    another["metadata"]["uid"] = json!("another");
    bench.config_says(&another);
    bench.pass(SECOND);
    people_deselect_under_the_next_definition(bench);
}

/// People have deselected the widgets, and there is another config.
fn proved() -> Bench {
    let mut bench = without_configs(None);
    assert!(is_proved(&bench));
    bench.config_says(&shop(&["configmaps"]));
    bench.pass(SECOND);
    bench
}

#[test]
fn what_is_proved_stays_so_when_the_type_of_the_configs_goes_while_it_is_watched() {
    let mut bench = proved();
    bench.world.withdrawal = Some(gone());
    drop_config(&mut bench);
    bench.pass(60 * SECOND);
    assert!(is_proved(&bench) && !is_unproved(&bench));
}

#[test]
fn what_is_proved_is_not_any_more_after_a_gap_with_another_definition_of_the_configs() {
    let mut bench = proved();
    bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
    bench.configure(&[]);
    bench.pass(60 * SECOND);
    assert!(!is_proved(&bench) && is_unproved(&bench));
}

#[test]
fn a_definition_of_the_configs_that_is_new_after_a_restart_is_known_before_people_deselect() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.keep(&recorded());
    bench.world.withdrawal = Some(Withdrawal::Redefined(NEXT.into()));
    bench.run();
    bench.configure(&[shop(&[WIDGETS])]);
    bench.list_all(1);
    bench.pass(SECOND);
    people_deselect_under_the_next_definition(bench);
}

#[test]
fn a_config_that_cannot_be_read_from_the_start_may_select_anything() {
    let mut bench = after_a_run(&recorded());
    let mut unreadable = shop(&[WIDGETS]);
    unreadable["spec"]["namespaceScope"] = json!("x");
    bench.configure(&[unreadable]);
    bench.pass(3 * GRACE);
    assert!(!is_proved(&bench) && !is_unproved(&bench));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.configure(&[shop(&["configmaps"])]);
    bench.pass(SECOND);
    assert!(is_proved(&bench));
}

#[test]
fn a_kind_that_has_selected_no_such_type_need_not_have_been_known() {
    let mut bench = selecting(&["configmaps"]);
    drop_config(&mut bench);
    let selected = json!({"group": "example.org", "version": "v1", "kind": "Widget", "namespace": "shop", "name": "a"});
    let spec = json!({"downSyncedResources": [selected]});
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("other", &spec)]);
    bench.pass(SECOND);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("other", &json!({}))]);
    bench.pass(SECOND);
    assert!(is_proved(&bench) && !is_unproved(&bench));
}

#[test]
fn the_hub_is_not_asked_again_and_again_about_configs_whose_deletion_does_not_end() {
    let mut bench = selecting(&[WIDGETS]);
    let spec = json!({"downSyncedResources": []});
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("other", &spec)]);
    bench.pass(SECOND);
    bench.world.withdrawal = Some(Withdrawal::Going(Some(CRD.into())));
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[]);
    let before = bench.count(VERIFY);
    bench.pass(600 * SECOND);
    assert!(bench.count(VERIFY) - before < 10, "{}", bench.count(VERIFY) - before);
}

#[test]
fn what_people_have_confirmed_is_not_deselected_once_the_type_is_back() {
    let mut bench = without_configs(Some(gone()));
    lose_widgets(&mut bench);
    bench.world.withdrawal = None;
    bench.config_says(&config("another", &json!({})));
    bench.pass(3 * SECOND);
    bench.confirm(&bench.token());
    assert!(is_proved(&bench));
    bench.world.serve_at(Side::Hub, &widgets());
    bench.list_crds(Side::Hub, &[json!({"metadata": {"name": WIDGETS, "uid": "new"}})]);
    bench.pass(2 * GRACE);
    assert!(!is_proved(&bench) && is_unproved(&bench));
}

// Seed 1012029 of the simulation: a proxy had answered in place of the hub, and the hub was asked without end.
#[test]
fn a_kind_of_configs_whose_watch_continues_after_a_404_is_reported_again() {
    let mut bench = selecting(&[WIDGETS]);
    let configs = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.breaks(configs, not_served());
    drop_config(&mut bench);
    bench.pass(60 * SECOND);
    assert!(!is_proved(&bench));
    bench.source_says(configs, SourceEvent::Up);
    bench.pass(60 * SECOND);
    assert!(is_proved(&bench));
    let asked = bench.count(VERIFY);
    bench.pass(3600 * SECOND);
    assert_eq!(bench.count(VERIFY), asked);
}

#[test]
fn what_is_not_proved_stays_so_after_a_restart_whatever_the_configs_are_by_then() {
    let mut record = recorded();
    record["deselected-with-configs"] = json!(WIDGETS);
    let mut bench = after_a_run(&record);
    bench.configure(&[]);
    bench.pass(60 * SECOND);
    assert!(!is_proved(&bench) && is_unproved(&bench));
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    bench.list_crds(Side::Hub, &[]);
    bench.confirm(&bench.token());
    bench.pass(60 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
}
