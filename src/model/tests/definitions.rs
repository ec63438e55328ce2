//! What is known to define the types of the hub, and for how long.

use super::*;
use crate::model::effect::TypeDefinitionAnswers;
use crate::model::timers::Timer;
use crate::sync::definition::DefinedBy;

const WHAT: &str = "ask what defines types";

fn known(bench: &Bench) -> Option<&DefinedBy> {
    bench.model.definitions.known("widgets.example.org")
}

#[test]
fn what_defines_a_type_is_asked_once_and_again_only_while_the_hub_fails_to_say() {
    for (error, expected) in [(None, 1..2), (Some(forbidden()), 2..3), (Some(broken()), 8..16)] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.world.definition = Some(defined_by(CRD));
        bench
            .world
            .fails
            .extend(error.clone().map(|error| (WHAT.to_owned(), error)));
        let mut bench = bench.selecting(&["configmaps", "widgets.example.org"]);
        bench.pass(600 * SECOND);
        assert!(expected.contains(&bench.count(WHAT)), "{error:?} {}", bench.count(WHAT));
        // Once it may be read, it is.
        bench.world.fails.clear();
        bench.pass(660 * SECOND);
        assert_eq!(known(&bench), Some(&uid(CRD)), "{error:?}");
    }
}

// Seed 1300152 of the simulation: a read took a minute. What it found was no longer what the copies were from.
#[test]
fn no_copy_is_made_while_it_is_read_what_defines_its_type() {
    for answer in [Ok(Some(defined_by(NEXT))), Err(forbidden())] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.world.definition = Some(defined_by(CRD));
        let mut bench = bench.selecting(&["configmaps", "widgets.example.org"]);
        let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
        bench.model.definitions_mut().remove("widgets.example.org");
        bench.model.timers.starts(Timer::Definitions);
        bench.says(origins, &object(&widgets(), "shop", "a", 10));
        assert!(bench.working().is_empty(), "{answer:?}");
        let config_maps = bench.origins_of(Side::Hub, "configmaps").expect("they are read");
        bench.says(config_maps, &config_map("b", 11));
        assert_eq!(bench.working(), ["b"], "no CRD defines these");
        bench.tell(Event::Answer(Answer::Defined(TypeDefinitionAnswers {
            hub: None,
            types: vec![(widgets(), answer)],
        })));
        assert_eq!(bench.working(), ["b", "a"]);
    }
}

/// Configs that select widgets were gone for a while, and the edge said that there is no copy. The type was defined
/// again meanwhile, and is selected now; these copies are found.
fn selected_again(copies: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    let mut bench = bench.selecting(&["widgets.example.org"]);
    bench.list_rest(100);
    bench.config_says(&config("all", &json!({})));
    bench.list_widgets(&[], 2001);
    bench.pass(SECOND);
    assert!(!bench.world.kept.types.iter().any(|known| known.resource == "widgets"));
    bench.world.definition = Some(defined_by(NEXT));
    bench.select(&["widgets.example.org"]);
    bench.list_widgets(copies, 2001);
    bench.pass(SECOND);
    bench
}

// Seed 53656 of the simulation: an empty list of configs and an empty list of copies, both wrong.
#[test]
fn copies_that_are_found_when_a_type_is_selected_again_are_from_its_former_definition() {
    let bench = selected_again(&["a"]);
    assert_eq!(known(&bench), Some(&uid(CRD)));
    assert_eq!(bench.world.kept.hub_definitions["widgets.example.org"], uid(CRD));
    assert_eq!(bench.count(WHAT), 1);
}

#[test]
fn a_type_that_is_selected_again_and_has_no_copies_is_what_the_hub_defines_now() {
    let bench = selected_again(&[]);
    assert_eq!(known(&bench), Some(&uid(NEXT)));
    assert_eq!(bench.count(WHAT), 2);
}

#[test]
fn what_defines_the_types_of_another_hub_is_asked_for_once_people_have_confirmed_it() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.definition = Some(defined_by(CRD));
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &object(&widgets(), "shop", "a", 10));
    bench.succeed(Change::Created);
    bench.there_are_no_statuses();
    assert_eq!(known(&bench), Some(&uid(CRD)));
    bench.world.definition = Some(defined_by(ANOTHER));
    bench.another_hub();
    bench.pass(3 * SECOND);
    bench.confirm(&bench.token());
    bench.pass(3 * SECOND);
    assert_eq!(known(&bench), Some(&uid(ANOTHER)));
}
