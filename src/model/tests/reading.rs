//! What sources report beside single events, and which sources there are.

use super::types::{definition, deselected_and_missing_at};
use super::upsync::namespace_of_ours;
use super::*;
use crate::api::DOWNSYNC_OVERWRITE;
use crate::sync::job::Why;

const EDGE: &str = "ask the edge what it serves";

impl Bench {
    /// A list of a source that names these without news, as one that polls does.
    fn list_unchanged(&mut self, id: SourceId, objects: &[Value], version: u64) {
        self.source_says(id, SourceEvent::Begin(Covers::Everything));
        for object in objects {
            self.source_says(id, SourceEvent::Unchanged(read(object)));
        }
        self.completes(id, version);
    }

    fn completes(&mut self, id: SourceId, version: u64) {
        let versions = Versions {
            list: version,
            before: 0,
            side: 0,
            has_lost: false,
        };
        self.source_says(id, SourceEvent::Complete(versions));
    }

    fn crds(&self, side: Side) -> SourceId {
        self.source(Feed::Crds(side))
    }

    fn is_read(&self, id: SourceId) -> bool {
        self.world.sources.contains_key(&id)
    }
}

fn gadgets() -> ResourceType {
    ResourceType {
        resource: "gadgets".into(),
        kind: "Gadget".into(),
        ..widgets()
    }
}

#[test]
fn an_origin_or_copy_that_a_list_names_without_news_is_there() {
    for is_named in [true, false] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        let named = |object: Value| if is_named { vec![object] } else { Vec::new() };
        let copies = bench.copies();
        bench.list_unchanged(copies, &named(copy_of("a", 1001)), 2000);
        assert_eq!(bench.work.is_empty(), is_named, "a copy");
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        let origins = bench.origins();
        bench.list_unchanged(origins, &named(config_map("a", 10)), 2000);
        assert_eq!(bench.work.is_empty(), is_named, "an origin");
    }
}

#[test]
fn a_config_that_a_list_names_without_news_is_there() {
    for is_named in [true, false] {
        let mut bench = Bench::listed();
        let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
        let named = if is_named {
            vec![shop(&["configmaps"])]
        } else {
            Vec::new()
        };
        bench.list_unchanged(source, &named, 2);
        bench.pass(SECOND);
        assert_eq!(bench.origins_of(Side::Hub, "configmaps").is_some(), is_named);
    }
}

/// A namespace of upsync at the hub is known, and nothing is in it any more.
fn with_unused_namespace() -> (Bench, SourceId) {
    let mut bench = Bench::new().with_spec(&upsync(&["field"]));
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.list(namespaces, &[namespace_of_ours()], 9);
    (bench, namespaces)
}

#[test]
fn a_namespace_of_ours_that_a_list_lacks_is_not_read_and_one_that_it_names_is() {
    for is_named in [true, false] {
        let (mut bench, namespaces) = with_unused_namespace();
        let named = if is_named {
            vec![namespace_of_ours()]
        } else {
            Vec::new()
        };
        bench.list_unchanged(namespaces, &named, 10);
        bench.pass(11 * SECOND);
        assert_eq!(bench.namespaces.len(), usize::from(is_named));
    }
}

/// A widget has come down that nothing selects any more, and the edge does not serve the type; its CRD is there.
fn hidden_at_the_edge() -> Bench {
    let mut bench = deselected_and_missing_at(Side::Edge);
    let crds = bench.crds(Side::Edge);
    bench.list(crds, &[definition(7)], 8);
    bench
}

#[test]
fn a_crd_is_there_if_the_last_list_names_it() {
    for is_named in [true, false] {
        let mut bench = hidden_at_the_edge();
        let crds = bench.crds(Side::Edge);
        let named = if is_named { vec![definition(7)] } else { Vec::new() };
        bench.list_unchanged(crds, &named, 9);
        bench.pass(301 * SECOND);
        assert_eq!(bench.keeps("widgets"), is_named);
    }
}

#[test]
fn a_crd_that_is_known_does_not_count_while_crds_may_not_be_read() {
    for is_allowed_again in [true, false] {
        let mut bench = hidden_at_the_edge();
        let crds = bench.crds(Side::Edge);
        bench.breaks(crds, forbidden());
        if is_allowed_again {
            bench.source_says(crds, SourceEvent::Up);
        }
        bench.pass(301 * SECOND);
        assert_eq!(
            bench.keeps("widgets"),
            is_allowed_again,
            "what is served has to be enough"
        );
    }
}

#[test]
fn a_side_that_hides_its_crds_is_asked_for_more_of_a_group_of_which_everything_is_selected() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let spec =
        json!({"upsync": [{"apiGroup": "example.org", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}]});
    let mut bench = bench.with_spec(&spec);
    let crds = bench.crds(Side::Edge);
    bench.list(crds, &[definition(7)], 8);
    bench.pass(600 * SECOND);
    bench.log.clear();
    bench.pass(600 * SECOND);
    assert_eq!(bench.count(EDGE), 0, "its CRDs would show more");
    bench.breaks(crds, forbidden());
    bench.world.serve(&gadgets());
    bench.pass(301 * SECOND);
    assert!(bench.copies_of(Side::Hub, "gadgets").is_some());
    bench.source_says(crds, SourceEvent::Up);
    bench.pass(600 * SECOND);
    bench.log.clear();
    bench.pass(600 * SECOND);
    assert_eq!(bench.count(EDGE), 0, "they do again");
}

/// A widget that is left to the edge and has no label, the source that reads it, and what it is at the edge.
pub(super) fn left_to_the_edge() -> (Bench, SourceId, Value) {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.run();
    bench.select(&["widgets.example.org"]);
    let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    let mut theirs = object(&widgets(), "shop", "a", 7);
    theirs["metadata"]["annotations"] = json!({DOWNSYNC_OVERWRITE: "false"});
    bench.list(copies, std::slice::from_ref(&theirs), 8);
    bench.list_rest(1);
    let origins = bench.origins_of(Side::Hub, "widgets").expect("they are read");
    bench.says(origins, &object(&widgets(), "shop", "a", 10));
    let desired = bench.job("a").desired.clone().expect("it is at hand");
    let left = Outcome {
        desired_hash: desired.hash,
        ..outcome(Why::CreateOnly)
    };
    let (key, _) = bench.take("a");
    bench.ends(key, Ok(left));
    bench.there_are_no_statuses();
    let unlabelled = bench.find(|feed| matches!(feed, Feed::Unlabelled(_)), "widgets");
    (bench, unlabelled.expect("no label finds it"), theirs)
}

#[test]
fn what_is_left_to_the_edge_is_created_again_when_it_is_gone() {
    let (mut bench, unlabelled, theirs) = left_to_the_edge();
    bench.list_unchanged(unlabelled, std::slice::from_ref(&theirs), 9);
    assert!(bench.work.is_empty(), "it is there");
    bench.list_unchanged(unlabelled, &[], 10);
    assert_eq!(bench.working(), ["a"], "a list lacks it");
    let (mut bench, unlabelled, theirs) = left_to_the_edge();
    bench.says_gone(unlabelled, &theirs);
    bench.pass(SECOND);
    assert_eq!(bench.working(), ["a"], "a watch says so");
}

/// So many are selected of one namespace that all of it is watched.
pub(super) fn watching_a_namespace(change: impl FnOnce(&mut Settings)) -> Bench {
    let mut bench = Bench::with(change);
    bench.run();
    let many: Vec<String> = (0..50).map(|number| format!("a{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    bench.configure(&[config("all", &named(&many))]);
    bench.list_namespaces(1);
    bench.list(bench.copies(), &[], 1);
    bench.list_namespaces(1);
    bench
}

/// The sources of origins beside this one.
pub(super) fn beside(bench: &Bench, id: SourceId) -> Vec<SourceId> {
    let sources = bench.world.sources.iter();
    let others = sources.filter(|(other, (feed, reading))| {
        matches!(feed, Feed::Origins(_, Side::Hub)) && reading.resource.resource == "configmaps" && **other != id
    });
    others.map(|(id, _)| *id).collect()
}

#[test]
fn what_is_newly_selected_is_read_beside_a_watch_and_by_a_list_that_begins_again() {
    for (lists, mode, again, once) in [
        ("nothing", Mode::Watch, false, false),
        ("half", Mode::Watch, true, false),
        ("all", Mode::Watch, false, true),
        ("half", Mode::Poll(60 * SECOND), false, true),
    ] {
        let mut bench = watching_a_namespace(|settings| settings.hub_mode = mode);
        let origins = bench.origins();
        match lists {
            "half" => bench.source_says(origins, SourceEvent::Begin(Covers::Everything)),
            "all" => bench.list(origins, &[], 20),
            _ => {}
        }
        bench.select(&["configmaps"]);
        bench.list_namespaces(21);
        bench.list(bench.copies(), &[], 21);
        bench.pass(SECOND);
        let is_again = !bench.is_read(origins);
        assert_eq!(is_again, again, "{lists} {mode:?}");
        assert_eq!(
            beside(&bench, bench.origins()).len(),
            usize::from(once),
            "{lists} {mode:?}"
        );
    }
}

/// The namespace is watched, and read once more beside that.
fn reading_once(mode: Mode) -> (Bench, SourceId, SourceId) {
    let mut bench = watching_a_namespace(|settings| settings.hub_mode = mode);
    let origins = bench.origins();
    bench.list(origins, &[], 20);
    bench.select(&["configmaps"]);
    bench.list_namespaces(21);
    bench.list(bench.copies(), &[], 21);
    bench.pass(SECOND);
    let once = beside(&bench, origins)[0];
    (bench, origins, once)
}

#[test]
fn a_watch_that_lists_again_makes_reading_beside_it_needless_and_a_poll_does_not() {
    for (mode, is_needless) in [(Mode::Watch, true), (Mode::Poll(60 * SECOND), false)] {
        let (mut bench, origins, once) = reading_once(mode);
        bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
        assert_eq!(bench.is_read(once), !is_needless, "{mode:?}");
    }
}

#[test]
fn what_is_read_once_is_older_than_what_the_watch_has_reported_meanwhile() {
    // The version at which the list names it, and whether that is news.
    for (named_at, is_news) in [(29, false), (30, false), (31, true)] {
        let (mut bench, origins, once) = reading_once(Mode::Watch);
        bench.says(origins, &config_map("b", 30));
        bench.succeed(Change::Created);
        bench.source_says(once, SourceEvent::Begin(Covers::Everything));
        bench.says(once, &config_map("b", named_at));
        assert_eq!(!bench.work.is_empty(), is_news, "{named_at}");
    }
}

#[test]
fn what_is_read_once_counts_as_named_by_the_polls_beside_it_until_one_begins_later() {
    for is_listing in [false, true] {
        let (mut bench, origins, once) = reading_once(Mode::Poll(60 * SECOND));
        if is_listing {
            bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
            // The poll names it while nothing is known of it yet.
            bench.source_says(origins, SourceEvent::Unchanged(read(&config_map("b", 10))));
        }
        bench.source_says(once, SourceEvent::Begin(Covers::Everything));
        bench.says(once, &config_map("b", 10));
        bench.completes(once, 50);
        if is_listing {
            bench.completes(origins, 51);
            assert_eq!(bench.working(), ["b"], "it is made");
        }
        bench.succeed(Change::Created);
        bench.list_unchanged(origins, &[config_map("b", 10)], 52);
        assert!(bench.work.is_empty(), "it is there");
        bench.list_unchanged(origins, &[], 60);
        assert_eq!(bench.working(), ["b"], "a list that began later lacks it: {is_listing}");
    }
}

#[test]
fn what_a_poll_passed_before_it_was_selected_is_synced_though_no_worker_is_free_in_time() {
    let (mut bench, origins, once) = reading_once(Mode::Poll(60 * SECOND));
    let objects: Vec<_> = (0..20).map(|index| config_map(&format!("b{index}"), 10)).collect();
    bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
    for object in &objects {
        bench.source_says(origins, SourceEvent::Unchanged(read(object)));
    }
    bench.list(once, &objects, 50);
    bench.completes(origins, 51);
    for _ in &objects {
        bench.succeed(Change::Created);
    }
    bench.list_unchanged(origins, &objects, 52);
    assert!(bench.work.is_empty(), "all are synced");
}

#[test]
fn a_source_fails_until_all_of_that_name_are_read() {
    for ends in [false, true] {
        let (mut bench, origins, once) = reading_once(Mode::Watch);
        bench.breaks(origins, forbidden());
        bench.breaks(once, forbidden());
        assert_eq!(bench.model.report.failing(), 1, "it is one thing to people");
        bench.source_says(once, SourceEvent::Up);
        assert_eq!(bench.model.report.failing(), 1, "the other one is not read");
        if ends {
            bench.breaks(once, forbidden());
            bench.config_says(&config("all", &json!({})));
            bench.pass(SECOND);
        } else {
            bench.source_says(origins, SourceEvent::Up);
        }
        assert_eq!(bench.model.report.failing(), 0, "{ends}");
    }
}

#[test]
fn a_source_that_ends_leaves_another_of_its_name_failing() {
    let (mut bench, origins, once) = reading_once(Mode::Watch);
    bench.breaks(origins, forbidden());
    bench.list(once, &[], 21);
    assert!(!bench.is_read(once));
    assert_eq!(bench.model.report.failing(), 1);
}

#[test]
fn a_list_of_names_alone_says_nothing_of_statuses_and_one_of_labelled_copies_does() {
    for (covers, has_body) in [(Covers::Everything, false), (Covers::Labelled, true)] {
        let mut bench = Bench::with_a_copy(&widgets());
        let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
        let copy = copy(Direction::Down, &in_shop(&widgets(), "a"), "a", 2000);
        bench.says(copies, &copy);
        assert!(bench.statuses.is_empty(), "there is none");
        let mut next = copy;
        next["metadata"]["resourceVersion"] = json!("2001");
        if has_body {
            next["status"] = json!({"state": 1});
        }
        bench.source_says(copies, SourceEvent::Begin(covers));
        bench.says(copies, &next);
        bench.completes(copies, 2002);
        bench.pass(2 * SECOND);
        assert_eq!(bench.statuses.len(), 1, "{covers:?}");
        assert_eq!(bench.statuses[0].1.body.is_some(), has_body, "{covers:?}");
    }
}

#[test]
fn an_unreadable_object_is_reported() {
    let mut bench = Bench::listed();
    let copies = bench.copies();
    bench.source_says(copies, SourceEvent::Unreadable(Error::BadAnswer("no object".into())));
    assert_eq!(bench.model.report.failing(), 1);
}

#[test]
fn an_object_without_metadata_fails_until_its_source_has_listed_all_or_ends() {
    for is_listed in [true, false] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        let unreadable = || SourceEvent::Unreadable(Error::BadAnswer("no object".into()));
        bench.tell(Event::Source(origins, unreadable()));
        assert_eq!(bench.model.report.failing(), 1);
        let copies = bench.copies();
        bench.list(copies, &[], 2);
        assert_eq!(bench.model.report.failing(), 1, "another source, of another side");
        if is_listed {
            bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
            bench.tell(Event::Source(origins, unreadable()));
            bench.completes(origins, 3);
            assert_eq!(bench.model.report.failing(), 1, "it is still there");
            bench.list(origins, &[], 4);
        } else {
            bench.config_says(&config("all", &json!({})));
        }
        assert_eq!(bench.model.report.failing(), 0, "{is_listed}");
    }
}
