//! What the sides serve, and when they are asked.

use super::*;

const HUB: &str = "ask the hub what it serves";
const EDGE: &str = "ask the edge what it serves";

fn reads(bench: &Bench, resource: &str) -> bool {
    bench.copies_of(Side::Edge, resource).is_some()
}

/// The CRD of widgets.
fn definition() -> Value {
    object(&ResourceType::definitions(), "", "widgets.example.org", 7)
}

fn selecting_widgets() -> Bench {
    Bench::new().selecting(&["configmaps", "widgets.example.org"])
}

#[test]
fn a_type_that_is_not_served_holds_up_no_other_and_is_synced_as_soon_as_it_is_served() {
    let mut bench = selecting_widgets();
    assert!(reads(&bench, "configmaps") && !reads(&bench, "widgets"));
    bench.bring_down(&["a"]);
    bench.world.serve(&widgets());
    for side in [Side::Hub, Side::Edge] {
        let definitions = bench.source(Feed::Crds(side));
        bench.list(definitions, &[], 1);
        bench.says(definitions, &definition());
    }
    bench.pass(SECOND);
    assert!(reads(&bench, "widgets"), "{:?}", bench.log);
    assert!(
        bench
            .find(|feed| matches!(feed, Feed::Crds(_)), "customresourcedefinitions")
            .is_none()
    );
}

#[test]
fn a_type_that_appears_silently_is_found_within_minutes() {
    let mut bench = selecting_widgets();
    bench.log.clear();
    bench.pass(3600 * SECOND);
    assert!((10..40).contains(&bench.count(HUB)), "{} in an hour", bench.count(HUB));
    bench.world.serve(&widgets());
    bench.pass(301 * SECOND);
    assert!(reads(&bench, "widgets"));
}

#[test]
fn an_api_that_is_down_is_asked_again_with_increasing_back_off() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.fails.insert(HUB.into(), broken());
    bench.run();
    bench.select(&["widgets.example.org"]);
    bench.pass(600 * SECOND);
    assert!(!reads(&bench, "widgets"), "that is not to say that there is none");
    assert!(
        (8..20).contains(&bench.count(HUB)),
        "{} in ten minutes",
        bench.count(HUB)
    );
    assert!(bench.model.report.failing() > 0);
    bench.world.fails.clear();
    bench.pass(301 * SECOND);
    assert!(reads(&bench, "widgets"));
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn an_api_that_is_down_and_that_nothing_selects_any_more_fails_no_longer() {
    let mut bench = Bench::new();
    bench.world.fails.insert(HUB.into(), broken());
    bench.run();
    bench.select(&["widgets.example.org"]);
    assert!(bench.model.report.failing() > 0);
    bench.config_says(&config("all", &json!({})));
    assert_eq!(bench.model.report.failing(), 0);
    bench.log.clear();
    bench.pass(600 * SECOND);
    assert!(bench.count(HUB) <= 1, "{:?}", bench.log);
}

#[test]
fn a_type_that_the_edge_serves_at_another_version_is_written_at_that_version() {
    let mut bench = Bench::new();
    let mut older = widgets();
    older.version = "v1beta1".into();
    bench.world.serve_at(Side::Hub, &widgets());
    bench.world.serve_at(Side::Edge, &older);
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &object(&widgets(), "shop", "a", 10));
    let job = bench.job("a");
    assert_eq!(
        (&*job.origin.resource.version, &*job.copy_at.resource.version),
        ("v1", "v1beta1")
    );
}

#[test]
fn a_worker_that_is_answered_that_the_edge_lacks_the_type_has_the_edge_asked() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &object(&widgets(), "shop", "a", 10));
    bench.world.withdraw_at(Side::Edge, &widgets());
    bench.log.clear();
    bench.fail(Side::Edge, not_served());
    bench.pass(SECOND);
    assert!(bench.count(EDGE) >= 1, "{:?}", bench.log);
    assert!(!reads(&bench, "widgets"));
    bench.pass(600 * SECOND);
    assert!(bench.work.is_empty());
    bench.world.serve_at(Side::Edge, &widgets());
    bench.pass(301 * SECOND);
    assert!(reads(&bench, "widgets"));
}

/// The copies of the selected type are listed; also gives the source of namespaces, which are not.
fn with_listed_copies() -> (Bench, SourceId) {
    let mut bench = Bench::new();
    bench.run();
    bench.select(&["configmaps"]);
    bench.list(bench.copies(), &[], 1);
    let namespaces = bench.copies_of(Side::Edge, "namespaces").expect("they are implied");
    (bench, namespaces)
}

#[test]
fn the_origins_of_other_types_are_read_once_namespaces_have_been() {
    let (mut bench, namespaces) = with_listed_copies();
    assert!(bench.origins_of(Side::Hub, "configmaps").is_none());
    bench.list(namespaces, &[], 1);
    assert!(bench.origins_of(Side::Hub, "configmaps").is_none());
    let first = bench.origins_of(Side::Hub, "namespaces").expect("they are read first");
    bench.list(first, &[], 1);
    assert!(bench.origins_of(Side::Hub, "configmaps").is_some());
}

#[test]
fn namespaces_that_may_not_be_read_hold_up_nothing() {
    let (mut bench, namespaces) = with_listed_copies();
    bench.breaks(namespaces, forbidden());
    assert!(bench.origins_of(Side::Hub, "configmaps").is_some());
    assert_eq!(bench.model.report.failing(), 1);
}

#[test]
fn everything_of_a_group_is_what_the_edge_has_of_it_also_later() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let spec =
        json!({"upsync": [{"apiGroup": "example.org", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}]});
    let mut bench = bench.with_spec(&spec);
    assert!(bench.origins_of(Side::Edge, "widgets").is_some());
    let mut gadgets = widgets();
    (gadgets.resource, gadgets.kind) = ("gadgets".into(), "Gadget".into());
    bench.world.serve(&gadgets);
    for side in [Side::Hub, Side::Edge] {
        if let Some(definitions) = bench.find(|feed| *feed == Feed::Crds(side), "customresourcedefinitions") {
            bench.list(
                definitions,
                &[object(&ResourceType::definitions(), "", "gadgets.example.org", 9)],
                9,
            );
        }
    }
    bench.pass(301 * SECOND);
    assert!(bench.copies_of(Side::Hub, "gadgets").is_some(), "{:?}", bench.log);
}

#[test]
fn crds_that_may_not_be_read_are_made_up_for_by_questions() {
    let mut bench = selecting_widgets();
    for side in [Side::Hub, Side::Edge] {
        let definitions = bench.source(Feed::Crds(side));
        bench.breaks(definitions, forbidden());
    }
    assert_eq!(bench.model.report.failing(), 0, "that is no failure");
    bench.world.serve(&widgets());
    bench.pass(301 * SECOND);
    assert!(reads(&bench, "widgets"));
}

#[test]
fn what_defines_a_type_is_asked_once_and_again_only_while_the_hub_fails_to_say() {
    const WHAT: &str = "ask what defines types";
    for (error, expected) in [(None, 1..2), (Some(forbidden()), 2..3), (Some(broken()), 8..16)] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.world.definition = Some(crate::sync::definition::TypeDefinition {
            uid: "crd".into(),
            being_deleted: false,
        });
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
        assert!(
            bench.model.definitions.known("widgets.example.org").is_some(),
            "{error:?}"
        );
    }
}

/// A widget has come down that nothing selects any more, and of which the edge says that it does not serve the type.
fn deselected_and_not_served() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["widgets.example.org"]);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &object(&widgets(), "shop", "a", 10));
    bench.succeed(Change::Created);
    bench.there_are_no_statuses();
    bench.config_says(&config("all", &json!({})));
    let copies = bench.copies_of(Side::Edge, "widgets").expect("one is left");
    bench.world.withdraw_at(Side::Edge, &widgets());
    bench.breaks(copies, not_served());
    bench.pass(SECOND);
    bench
}

#[test]
fn a_type_that_the_edge_does_not_serve_may_have_copies_as_long_as_its_crd_is_there() {
    let is_recorded = |bench: &Bench| bench.world.kept.types.iter().any(|known| known.resource == "widgets");
    let mut bench = deselected_and_not_served();
    bench.pass(60 * SECOND);
    assert!(is_recorded(&bench), "its CRDs have not been listed");
    let definitions = bench.source(Feed::Crds(Side::Edge));
    bench.list(definitions, &[definition()], 8);
    bench.pass(600 * SECOND);
    assert!(is_recorded(&bench), "it may be served again");
    bench.says_gone(definitions, &definition());
    bench.pass(301 * SECOND);
    assert!(!is_recorded(&bench), "its objects went with it");

    // Where CRDs may not be read, what is served has to be enough.
    let mut bench = deselected_and_not_served();
    let definitions = bench.source(Feed::Crds(Side::Edge));
    bench.breaks(definitions, forbidden());
    bench.pass(301 * SECOND);
    assert!(!is_recorded(&bench));
}
