//! Configs that are gone: whether people have deleted them, or they went with their own type.

use super::*;
use crate::api::TYPE_WITHDRAWN;
use crate::sync::definition::{DefinedBy, Withdrawal};

const CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";
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

fn is_unproved(bench: &Bench) -> bool {
    bench.model.deselections.unproved().contains(WIDGETS)
}

/// One that selects these, with the widgets `a` and `b` at the edge if they are among them.
fn selecting(selects: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by("crd"));
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
    let configs = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.says_gone(configs, &shop(&[WIDGETS]));
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
    assert_eq!(known_of_configs(&bench), Some(&uid("crd")));
    let others = "edgesyncconfigs.edge.kubestellar.io";
    assert_eq!(bench.model.definitions.known(others), None, "there are none");
}

#[test]
fn a_type_is_deselected_if_the_type_of_the_configs_is_what_it_was() {
    for (row, withdrawal) in [
        ("it is", None),
        ("it is being deleted", Some(Withdrawal::Going(Some("crd".into())))),
        ("it is gone", Some(gone())),
        ("it is defined again", Some(Withdrawal::Redefined("next".into()))),
    ] {
        let is_proved = withdrawal.is_none();
        let mut bench = without_configs(withdrawal);
        assert_eq!(known_of_configs(&bench), None, "{row}");
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
    let verify = "ask whether a type is withdrawn";
    bench.world.fails.insert(verify.into(), broken());
    let configs = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.says_gone(configs, &shop(&[WIDGETS]));
    bench.list_namespaces(2001);
    bench.list_widgets(&["a", "b"], 2001);
    lose_widgets(&mut bench);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    assert!((2..20).contains(&bench.count(verify)), "{}", bench.count(verify));
    bench.world.fails.clear();
    bench.pass(660 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
}

#[test]
fn an_unproved_deselection_is_forgotten_when_a_config_selects_the_type_again() {
    for (selects, is_forgotten) in [(WIDGETS, true), ("configmaps", false)] {
        let mut bench = without_configs(Some(Withdrawal::Redefined("next".into())));
        bench.world.definition = Some(defined_by("next"));
        bench.config_says(&shop(&[selects]));
        bench.pass(SECOND);
        assert_eq!(is_unproved(&bench), !is_forgotten, "{selects}");
        assert_eq!(bench.world.kept.unproved.contains(WIDGETS), !is_forgotten, "{selects}");
        assert_eq!(known_of_configs(&bench), Some(&uid("next")), "{selects}");
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
    let message = bench.condition()["message"].as_str().unwrap_or_default();
    assert!(message.contains("were deleted with their own type"), "{message}");
    bench.confirm(&bench.token());
    bench.pass(60 * SECOND);
    bench.list_widgets(&["a", "b"], 2001);
    assert_eq!(bench.working(), ["a", "b"]);
    assert!(!is_unproved(&bench) && bench.world.kept.unproved.is_empty());
}

#[test]
fn configs_that_went_while_nobody_looked_are_asked_about_after_the_start() {
    for (withdrawal, expected) in [(None, false), (Some(Withdrawal::Redefined("next".into())), true)] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.world.withdrawal = withdrawal;
        bench.world.keep(&json!({
            "types": "example.org/v1/widgets\n",
            "hub-definitions": format!("{CONFIGS} crd\n{WIDGETS} crd\n"),
        }));
        bench.run();
        bench.configure(&[]);
        bench.pass(SECOND);
        assert_eq!(is_unproved(&bench), expected);
        assert_eq!(known_of_configs(&bench), None);
    }
}
