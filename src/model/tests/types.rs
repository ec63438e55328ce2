//! What the sides serve, and when they are asked for what.

use kube_lite::discovery::Served;

use super::*;
use crate::model::effect::{Answers, DiscoveryRequest};

const HUB: &str = "ask the hub what it serves";
const EDGE: &str = "ask the edge what it serves";

fn reads(bench: &Bench, resource: &str) -> bool {
    bench.copies_of(Side::Edge, resource).is_some()
}

/// The CRD of widgets.
pub(super) fn definition(version: u64) -> Value {
    object(&ResourceType::definitions(), "", "widgets.example.org", version)
}

fn selecting_widgets() -> Bench {
    Bench::new().selecting(&["configmaps", "widgets.example.org"])
}

/// Everything of its group goes up.
fn open() -> Value {
    json!({"upsync": [{"apiGroup": "example.org", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}]})
}

/// Widgets go up.
fn up() -> Value {
    json!({"upsync": [{"apiGroup": "example.org", "resources": ["widgets"], "namespaces": ["*"], "names": ["*"]}]})
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
        bench.says(definitions, &definition(7));
    }
    bench.pass(SECOND);
    assert!(reads(&bench, "widgets"), "{:?}", bench.log);
    assert!(
        bench
            .find(|feed| matches!(feed, Feed::Crds(_)), "customresourcedefinitions")
            .is_none()
    );
}

// Found from outside: an entry that was corrected acted after up to a minute.
#[test]
fn a_version_that_a_config_asks_for_newly_is_asked_for_at_once_whatever_else_is_missing() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let selected = shop(&["configmaps", "widgets.example.org"]);
    let mut older = selected.clone();
    older["spec"]["namespaceScope"]["resources"][1]["apiVersion"] = json!("v1beta1");
    let mut bench = bench.with_spec(&older["spec"]);
    bench.pass(600 * SECOND);
    assert!(reads(&bench, "configmaps") && !reads(&bench, "widgets"));
    bench.log.clear();
    bench.config_says(&selected);
    assert!(reads(&bench, "widgets"), "{:?}", bench.log);
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
    let mut bench = bench.with_spec(&open());
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

/// A widget has come down that nothing selects any more, and a side does not serve the type.
pub(super) fn deselected_and_missing_at(side: Side) -> Bench {
    let mut bench = Bench::with_a_copy(&widgets());
    bench.config_says(&config("all", &json!({})));
    let copies = bench.copies_of(Side::Edge, "widgets").expect("there is one");
    bench.list_namespaces(2001);
    bench.list(
        copies,
        &[copy(Direction::Down, &in_shop(&widgets(), "a"), "a", 2000)],
        2001,
    );
    bench.world.withdraw_at(side, &widgets());
    let source = match side {
        Side::Edge => copies,
        Side::Hub => bench.origins_of(side, "widgets").expect("a copy is left"),
    };
    bench.breaks(source, not_served());
    bench.pass(SECOND);
    bench
}

#[test]
fn a_type_that_the_edge_does_not_serve_may_have_copies_as_long_as_its_crd_is_there() {
    let is_recorded = |bench: &Bench| bench.world.kept.types.iter().any(|known| known.resource == "widgets");
    let mut bench = deselected_and_missing_at(Side::Edge);
    bench.pass(60 * SECOND);
    assert!(is_recorded(&bench), "its CRDs have not been listed");
    let definitions = bench.source(Feed::Crds(Side::Edge));
    bench.list(definitions, &[definition(7)], 8);
    bench.pass(600 * SECOND);
    assert!(is_recorded(&bench), "it may be served again");
    bench.says_gone(definitions, &definition(7));
    bench.pass(301 * SECOND);
    assert!(!is_recorded(&bench), "its objects went with it");

    // Where CRDs may not be read, what is served has to be enough.
    let mut bench = deselected_and_missing_at(Side::Edge);
    let definitions = bench.source(Feed::Crds(Side::Edge));
    bench.breaks(definitions, forbidden());
    bench.pass(301 * SECOND);
    assert!(!is_recorded(&bench));
}

/// The types that a side was last asked for at other versions, as `plural.group`; of some groups only the versions.
fn elsewhere(asked: &DiscoveryRequest) -> Vec<String> {
    let types = asked.elsewhere.iter().map(|(group, resources)| {
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        format!("{}.{group}", resources.join("+"))
    });
    types.collect()
}

/// The types that a side was last asked to confirm that it lacks them, as `plural.group` and its scope.
fn to_confirm(asked: &DiscoveryRequest) -> Vec<(String, Option<bool>)> {
    let types = asked.to_confirm.iter();
    let types = types.map(|((group, resource), absence)| (format!("{resource}.{group}"), absence.scope()));
    types.collect()
}

#[test]
fn several_signs_that_a_type_may_be_there_have_its_side_asked_once_when_they_are_over() {
    let mut bench = selecting_widgets();
    let definitions = bench.source(Feed::Crds(Side::Hub));
    bench.list(definitions, &[], 1);
    bench.pass(SECOND);
    bench.log.clear();
    bench.says(definitions, &definition(7));
    bench.says(definitions, &definition(8));
    assert_eq!(bench.count(HUB), 0, "more may follow");
    bench.pass(SECOND / 3);
    assert_eq!(bench.count(HUB), 1);
    bench.pass(6 * SECOND);
    assert!(bench.count(HUB) > 2, "a server reports a type a while after its CRD");
    bench.pass(600 * SECOND);
    bench.log.clear();
    bench.says(
        definitions,
        &object(&ResourceType::definitions(), "", "bolts.example.com", 9),
    );
    bench.pass(SECOND);
    assert_eq!(bench.count(HUB), 0, "a type of another group");

    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.with_spec(&open());
    let definitions = bench.source(Feed::Crds(Side::Edge));
    bench.pass(SECOND);
    bench.log.clear();
    let more = object(&ResourceType::definitions(), "", "gadgets.example.org", 9);
    bench.list(definitions, &[more], 9);
    assert_eq!(bench.count(EDGE), 0, "a list that shows more");
    bench.pass(SECOND / 3);
    assert_eq!(bench.count(EDGE), 1, "a list that shows more");
}

#[test]
fn a_side_is_asked_for_its_groups_only_if_something_may_be_in_one_of_them() {
    for (name, is_served, spec, expected) in [
        (
            "all is there",
            true,
            shop(&["widgets.example.org"])["spec"].clone(),
            [false, false],
        ),
        (
            "a version is missing",
            false,
            shop(&["widgets.example.org"])["spec"].clone(),
            [false, false],
        ),
        ("any version of the edge would do", false, up(), [false, true]),
        ("a whole group of the edge", true, open(), [false, true]),
    ] {
        let mut bench = Bench::new();
        if is_served {
            bench.world.serve(&widgets());
        }
        let mut bench = bench.with_spec(&spec);
        bench.pass(600 * SECOND);
        let of_groups = [Side::Hub, Side::Edge].map(|side| {
            let asked = bench.world.asked.get(&side);
            asked.is_some_and(|asked| asked.of_groups)
        });
        assert_eq!(of_groups, expected, "{name}");
    }
}

/// What is asked about widgets, of each side: at which other versions they may be, and whether they are lacking.
type Asked = [(&'static [&'static str], &'static [(&'static str, Option<bool>)]); 2];

#[track_caller]
fn assert_asked(bench: &Bench, name: &str, expected: Asked) {
    for (side, (versions, confirmed)) in [Side::Hub, Side::Edge].into_iter().zip(expected) {
        let asked = bench.world.asked.get(&side);
        assert_eq!(asked.map_or_else(Vec::new, elsewhere), versions, "{name}: {side}");
        let confirmed: Vec<_> = confirmed.iter().map(|&(of, scope)| (of.to_owned(), scope)).collect();
        assert_eq!(asked.map_or_else(Vec::new, to_confirm), confirmed, "{name}: {side}");
    }
}

#[test]
fn what_is_selected_and_missing_is_looked_for_at_other_versions_of_the_side_of_its_copies() {
    const THERE: (&[&str], &[(&str, Option<bool>)]) = (&[], &[]);
    let (up, down) = (up(), shop(&["widgets.example.org"])["spec"].clone());
    for (name, spec, served, failing, expected) in [
        (
            "down, the edge lacks it",
            &down,
            &[Side::Hub][..],
            None,
            [THERE, (&["widgets.example.org"], &[])],
        ),
        // That group may have it at a version that the hub has too, once that serves it.
        (
            "down, the hub lacks it",
            &down,
            &[Side::Edge],
            None,
            [THERE, (&[".example.org"], &[])],
        ),
        (
            "down, the edge cannot say",
            &down,
            &[Side::Hub, Side::Edge],
            Some(EDGE),
            [THERE, (&[".example.org"], &[])],
        ),
        (
            "up, the hub lacks it",
            &up,
            &[Side::Edge],
            None,
            [(&["widgets.example.org"], &[]), (&[".example.org"], &[])],
        ),
    ] {
        let mut bench = Bench::new();
        for &side in served {
            bench.world.serve_at(side, &widgets());
        }
        bench
            .world
            .fails
            .extend(failing.map(|what| (what.to_owned(), broken())));
        let mut bench = bench.with_spec(spec);
        bench.pass(60 * SECOND);
        assert_asked(&bench, name, expected);
    }
}

#[test]
fn that_a_type_is_lacking_of_which_there_are_copies_is_confirmed() {
    const NOT_ASKED: (&[&str], &[(&str, Option<bool>)]) = (&[".example.org"], &[]);
    let lacking = (&["widgets.example.org"][..], &[("widgets.example.org", None)][..]);
    let mut bench = deselected_and_missing_at(Side::Hub);
    bench.pass(10 * SECOND);
    assert_asked(&bench, "the hub lacks it", [lacking, NOT_ASKED]);
    let mut bench = deselected_and_missing_at(Side::Edge);
    bench.pass(10 * SECOND);
    assert_asked(&bench, "the edge lacks it", [(&[], &[]), lacking]);
}

/// The hub has answered this for two groups.
fn hub_answers(bench: &mut Bench, answers: [Result<Served, Error>; 2]) {
    let groups = ["example.net", "example.org"].into_iter();
    let served = groups.zip(answers);
    let answers = Answers {
        served: served.map(|(group, of)| ((group.into(), "v1".into()), of)).collect(),
        groups: None,
        catalogue: None,
        lacking: BTreeSet::new(),
    };
    bench.tell(Event::Answer(Answer::Discovered(Side::Hub, answers)));
}

#[test]
fn an_api_that_does_not_answer_is_a_failure_and_a_side_that_does_not_is_an_outage() {
    for (other, is_silent) in [(Ok(Served::NotServed), false), (Err(unreachable()), true)] {
        let mut bench = selecting_widgets();
        hub_answers(&mut bench, [other, Err(unreachable())]);
        let hub = &bench.model.sides.of(Side::Hub).answering;
        assert_eq!(hub.is_silent(), is_silent);
        assert_eq!(bench.model.report.failing(), 1, "the API, or the hub");
    }
}

#[test]
fn groups_that_cannot_be_listed_fail_as_long_as_they_are_needed() {
    for (error, expected) in [(broken(), 1), (unreachable(), 0)] {
        let mut bench = Bench::new();
        bench.world.fails.insert(EDGE.into(), error.clone());
        let mut bench = bench.with_spec(&open());
        assert_eq!(bench.model.report.failing(), expected, "{error}");
        let mut more = open();
        more["upsync"][0]["names"] = json!(["a", "b"]);
        bench.config_says(&config("all", &more));
        assert_eq!(bench.model.report.failing(), expected, "{error}: still needed");
        bench.config_says(&config("all", &json!({})));
        assert_eq!(bench.model.report.failing(), 0, "{error}");
    }
}

/// A copy is there whose type its side of origins does not serve any more, while it has these CRDs; the seconds until it is
/// deleted, if it is.
fn seconds_until_deleted(mut bench: Bench, origins: Side, copies: Side, crds: &[Value]) -> Option<u64> {
    let at_copy = bench.copies_of(copies, "widgets").expect("they are read");
    let direction = if copies == Side::Hub {
        Direction::Up
    } else {
        Direction::Down
    };
    let made = [copy(direction, &in_shop(&widgets(), "a"), "a", 2000)];
    bench.list_namespaces(2001);
    bench.list(at_copy, &made, 2001);
    bench.world.withdraw_at(origins, &widgets());
    let source = bench.origins_of(origins, "widgets").expect("they are read");
    bench.breaks(source, not_served());
    for second in 1..200 {
        bench.pass(SECOND);
        bench.list_crds(origins, crds);
        let at_copy = bench.copies_of(copies, "widgets");
        if let Some(at_copy) = at_copy.filter(|at_copy| !bench.listed.contains(at_copy)) {
            bench.list(at_copy, &made, 2001 + second);
        }
        if bench.work.iter().any(|(_, job)| job.gone_at_origin && job.may_delete) {
            return Some(second);
        }
    }
    None
}

fn deselected_widget() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["widgets.example.org"]);
    has_a_widget(&mut bench, Side::Hub);
    bench.config_says(&config("all", &json!({})));
    bench
}

fn widget_of_the_edge() -> Bench {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.with_spec(&up());
    has_a_widget(&mut bench, Side::Edge);
    bench
}

fn has_a_widget(bench: &mut Bench, origins: Side) {
    let source = bench.origins_of(origins, "widgets").expect("they are read");
    bench.says(source, &object(&widgets(), "shop", "a", 10));
    bench.succeed(Change::Created);
    bench.there_are_no_statuses();
}

#[test]
fn a_type_that_is_lacking_is_asked_for_until_that_is_certain_which_takes_longer_if_it_is_selected() {
    let deselected = seconds_until_deleted(deselected_widget(), Side::Hub, Side::Edge, &[]);
    assert!(
        deselected.is_some_and(|after| (6..20).contains(&after)),
        "{deselected:?} s"
    );
    let selected = seconds_until_deleted(widget_of_the_edge(), Side::Edge, Side::Hub, &[]);
    assert!(
        selected.is_some_and(|after| (30..120).contains(&after)),
        "{selected:?} s"
    );
}

// `served: false` in the CRD hides the type and keeps its objects.
#[test]
fn a_type_that_is_not_served_while_its_crd_is_there_is_not_gone() {
    let crds = [definition(7)];
    assert_eq!(
        seconds_until_deleted(deselected_widget(), Side::Hub, Side::Edge, &crds),
        None
    );
    assert_eq!(
        seconds_until_deleted(widget_of_the_edge(), Side::Edge, Side::Hub, &crds),
        None
    );
}

#[test]
fn a_type_that_is_gone_is_reported_once_and_not_for_each_of_its_objects() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    for _ in 0..4 {
        assert_eq!(bench.model.report.failing(), 0);
        bench.fail(Side::Edge, not_served());
        bench.pass(60 * SECOND);
    }
    bench.fail(Side::Edge, not_served());
    assert_eq!(bench.model.report.failing(), 1, "it cannot be that the type is there");
}

/// What an API server says of a permission that is missing.
fn may_not_list(resource: &str) -> Error {
    let message = format!("{resource} is forbidden: User \"x\" cannot list resource \"{resource}\" in API group \"\"");
    answer(403, "Forbidden", &message)
}

#[test]
fn a_type_that_may_not_be_listed_and_that_nothing_selects_any_more_fails_no_longer() {
    for had_copies_before in [true, false] {
        for side in [Side::Hub, Side::Edge] {
            let mut bench = Bench::new();
            if had_copies_before {
                bench.world.keep(&json!({"types": "/v1/configmaps\n"}));
            }
            bench.run();
            bench.select(&["configmaps"]);
            bench.pass(SECOND);
            let copies = bench.copies();
            let source = match side {
                Side::Hub => {
                    bench.list_all(1);
                    bench.origins()
                }
                Side::Edge => copies,
            };
            bench.breaks(source, may_not_list("configmaps"));
            assert_eq!(bench.model.report.failing(), 1, "{side} {had_copies_before}");
            bench.config_says(&config("all", &json!({})));
            if let Some(copies) = bench.copies_of(Side::Edge, "configmaps") {
                bench.breaks(copies, may_not_list("configmaps"));
            }
            assert_eq!(bench.model.report.failing(), 0, "{side} {had_copies_before}");
            let is_read = bench.copies_of(Side::Edge, "configmaps").is_some();
            let may_be_left = had_copies_before || side == Side::Hub;
            assert_eq!(is_read, may_be_left, "{side} {had_copies_before}");
            bench.pass(SECOND);
            let is_named = bench
                .world
                .kept
                .types
                .iter()
                .any(|known| known.resource == "configmaps");
            assert_eq!(is_named, may_be_left, "{side} {had_copies_before}");
        }
    }
}

#[test]
fn what_is_left_of_a_type_is_still_searched_for_where_its_side_fails_in_another_way() {
    let mut bench = Bench::new();
    bench.world.keep(&json!({"types": "/v1/configmaps\n"}));
    bench.run();
    bench.configure(&[config("all", &json!({}))]);
    let copies = bench.copies();
    bench.breaks(copies, broken());
    assert_eq!(bench.model.report.failing(), 1);
    bench.list(copies, &[], 1);
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 0);
    assert!(
        bench
            .world
            .kept
            .types
            .iter()
            .all(|known| known.resource != "configmaps")
    );
}
