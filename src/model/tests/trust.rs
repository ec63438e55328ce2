//! What is read again of a side that may have gone back to an older state, or has lost something.

use super::reading::{beside, watching_a_namespace};
use super::*;
use crate::api::{OLDER_VERSIONS, SOURCE};

const READ_RECORD: &str = "read the record";

impl Bench {
    /// What has begun to be read since the last call, also if it was read before, such as `hub configmaps`.
    fn begun(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.world.begun).into_iter().collect()
    }

    /// The worker that has `a` finds that its origin is not there, though the hub has reported it.
    fn finds_no_origin(&mut self) {
        self.pass(30 * SECOND);
        self.end_with("a", HeldFor::AnotherLook);
    }
}

#[test]
fn a_type_of_which_a_read_shows_something_older_is_listed_again_at_most_once_a_minute() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 20));
    bench.begun();
    bench.finds_no_origin();
    assert_eq!(bench.begun(), ["hub configmaps".to_owned()].into(), "and nothing else");
    bench.list(origins, &[config_map("a", 20)], 30);
    bench.finds_no_origin();
    assert_eq!(bench.begun(), BTreeSet::new(), "half a minute later");
    bench.finds_no_origin();
    assert_eq!(bench.begun().len(), 1, "a minute later");
    bench.source_says(origins, SourceEvent::Begin(Covers::Everything));
    bench.pass(60 * SECOND);
    bench.finds_no_origin();
    assert_eq!(bench.begun(), BTreeSet::new(), "it is being listed");
}

#[test]
fn all_of_a_side_is_read_again_when_it_has_gone_back_and_nothing_of_the_other() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    bench.begun();
    let origins = bench.origins();
    bench.list_after(origins, &[config_map("a", 10)], 5, 90);
    let begun = bench.begun();
    for of in ["configmaps", "namespaces", "syncerconfigs", "edgesyncconfigs"] {
        assert!(begun.contains(&format!("hub {of}")), "{of}: {begun:?}");
    }
    assert!(begun.iter().all(|it| it.starts_with("hub ")), "{begun:?}");
}

#[test]
fn what_has_reported_later_versions_than_another_list_of_its_side_is_read_again() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let namespaces = bench.copies_of(Side::Edge, "namespaces").expect("they are implied");
    for (list, expected, name) in [
        (100_000, &[][..], "it is the latest"),
        (50, &["edge configmaps"], "the copy of `a` was later"),
        (50, &[], "within a minute"),
    ] {
        bench.begun();
        bench.source_says(namespaces, SourceEvent::Begin(Covers::Everything));
        bench.source_says(
            namespaces,
            SourceEvent::Complete(Versions {
                list,
                before: 0,
                side: 99_999,
                has_lost: false,
            }),
        );
        let begun = bench.begun();
        assert!(begun.iter().eq(expected.iter().copied()), "{name}: {begun:?}");
    }
}

#[test]
fn configs_that_were_listed_before_the_record_was_read_are_listed_again_if_they_may_be_older() {
    for (recorded, listed, expected) in [(900, true, true), (1, true, false), (900, false, false)] {
        let mut bench = Bench::new();
        let versions = format!("syncerconfigs.edge.kubestellar.io {recorded}\n");
        bench
            .world
            .keep(&json!({"types": "", "hub": THE_HUB, "hub-versions": versions}));
        bench.world.fails.insert(READ_RECORD.into(), unreachable());
        bench.run();
        if listed {
            bench.select(&["configmaps"]);
        }
        bench.begun();
        bench.world.fails.clear();
        bench.pass(60 * SECOND);
        let begun = bench.begun();
        assert!(!begun.contains("hub edgesyncconfigs"), "{begun:?}");
        assert_eq!(
            begun.contains("hub syncerconfigs"),
            expected,
            "{recorded} {listed}: {begun:?}"
        );
    }
}

// Seed 802179 of the simulation: after an origin was deleted, a read from a cache showed it once more, and its copy was made
// again.
#[test]
fn what_a_read_shows_of_an_origin_that_its_watch_would_have_named_has_to_be_confirmed() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.list(origins, &[config_map("b", 10)], 12);
    bench.succeed(Change::Created);
    let (copies, mut version) = (bench.copies(), 2000);
    let mut unnamed = |bench: &mut Bench| {
        version += 1;
        bench.says(copies, &copy_of("a", version));
        let (key, job) = bench.take("a");
        bench.ends(key, Ok(outcome(Why::NotOurs)));
        job.origin_unnamed
    };
    assert_eq!(unnamed(&mut bench), 12, "it was not in the list");
    bench.says(origins, &config_map("b", 20));
    bench.succeed(Change::Updated);
    assert_eq!(unnamed(&mut bench), 20);
    bench.says_gone(origins, &config_map("b", 30));
    assert_eq!(unnamed(&mut bench), 30);
    bench.list(origins, &[config_map("c", 40)], 35);
    bench.succeed_with("c", Change::Created);
    assert_eq!(unnamed(&mut bench), 35, "the order of a list is another");
}

#[test]
fn a_read_before_the_first_list_that_shows_an_origin_from_before_it_has_to_be_confirmed() {
    let mut bench = Bench::listed();
    bench.bring_down(&["b"]);
    let copies = bench.copies();
    // The edge has gone back: everything of the type is read again.
    bench.list_after(copies, &[copy_of("a", 6)], 7, 2000);
    let copies = bench.copies();
    bench.list(copies, &[copy_of("a", 6)], 7);
    bench.says_gone(copies, &copy_of("a", 8));
    assert_eq!(bench.job("a").origin_unnamed, 10, "the version of `b`");
}

/// Copies of these names, each made at this version of the hub.
fn made_at(copies: &[(&str, u64)]) -> Vec<Value> {
    let made = |&(name, version): &(&str, u64)| {
        let mut copy = copy_of(name, 5);
        copy["metadata"]["annotations"][SOURCE] = format!("{THE_HUB}/{version}").into();
        copy
    };
    copies.iter().map(made).collect()
}

// Found from outside: a side that was restored from a backup while the syncer was down, and has been written to since.
#[test]
fn a_list_that_is_older_than_a_copy_whose_origin_it_lacks_is_read_again_before_anything_is_deleted() {
    for (listed_at, is_held) in [(51, true), (100, false)] {
        let mut bench = Bench::new();
        bench.run();
        bench.select(&["configmaps"]);
        bench.list_namespaces(50);
        let copies = bench.copies();
        bench.list(copies, &made_at(&[("a", 10), ("b", 20), ("c", 30), ("z", 90)]), 6);
        let (origins, there) = (bench.origins(), [config_map("a", 10), config_map("c", 30)]);
        bench.begun();
        bench.list(origins, &there, 50);
        bench.succeed_with("a", Change::Unchanged);
        bench.succeed_with("c", Change::Unchanged);
        bench.pass(60 * SECOND);
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        assert_eq!(bench.begun(), ["hub configmaps".to_owned()].into());
        bench.list(origins, &there, listed_at);
        let held = bench.held_for(Direction::Down, OLDER_VERSIONS);
        assert_eq!(held, is_held.then_some(2), "{listed_at}");
        assert_eq!(bench.working(), if is_held { &[][..] } else { &["b", "z"] });
        bench.list_rest(listed_at);
        let begun = bench.begun();
        assert!(is_held || begun.is_empty(), "{begun:?}");
    }
}

#[test]
fn nothing_is_deleted_before_all_is_listed_unless_that_takes_too_long() {
    for is_listed in [true, false] {
        let mut bench = Bench::new();
        bench.world.serve(&widgets());
        bench.run();
        bench.select(&["configmaps", "widgets.example.org"]);
        bench.list_namespaces(50);
        let widgets = bench.copies_of(Side::Edge, "widgets").expect("they are read");
        bench.list(widgets, &[], 6);
        let copies = bench.copies();
        bench.list(copies, &made_at(&[("a", 10), ("b", 20), ("c", 30)]), 6);
        let origins = bench.origins();
        bench.list(origins, &[config_map("a", 10), config_map("b", 20)], 50);
        bench.succeed_with("a", Change::Unchanged);
        bench.succeed_with("b", Change::Unchanged);
        bench.pass(60 * SECOND);
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        if is_listed {
            bench.list_rest(50);
        } else {
            bench.pass(2 * GRACE);
        }
        assert_eq!(bench.working(), ["c"], "{is_listed}");
    }
}

// Found from outside: an edge that was restored from a backup, and has been written to since.
#[test]
fn a_list_that_names_a_copy_as_it_was_before_shows_that_its_side_has_gone_back() {
    // The copy was last seen at 1001.
    for (named_at, version, is_older) in [(900, 1001, true), (900, 1000, false), (1001, 3000, false)] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        let copies = bench.copies();
        bench.list(copies, &[copy_of("a", named_at)], version);
        assert_eq!(bench.copies() != copies, is_older, "{named_at} {version}");
    }
}

// Seed 1018535 of the simulation.
#[test]
fn what_is_newly_selected_is_read_until_the_deletes_that_were_passed_over_are() {
    for (listed_at, is_read_on) in [(25, true), (30, false)] {
        let mut bench = watching_a_namespace(|_| {});
        bench.list_rest(20);
        let origins = bench.origins();
        bench.says_gone(origins, &config_map("b", 30));
        bench.select(&["configmaps"]);
        bench.pass(SECOND);
        let new = |bench: &Bench| beside(bench, origins).first().copied();
        let once = new(&bench).expect("it is read");
        bench.list(once, &[config_map("b", 10)], listed_at);
        assert_eq!(new(&bench).is_some(), is_read_on, "{listed_at}");
    }
}

// Issue 41: an edge that was restored before its watch had reported a delete has the copy again, and says nothing of it.
#[test]
fn copies_are_listed_again_when_the_watch_does_not_report_the_end_of_one_that_was_deleted() {
    for (report, is_listed) in [(None, true), (Some(false), false), (Some(true), false)] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a", "b"]);
        let (copies, origins) = (bench.copies(), bench.origins());
        let [a, b] = [copy_of("a", 1001), copy_of("b", 1002)];
        bench.says_gone(origins, &config_map("a", 30));
        bench.begun();
        if report == Some(false) {
            bench.says_gone(copies, &copy_of("a", 1010));
        }
        bench.succeed_with("a", Change::Deleted);
        if report == Some(true) {
            bench.says_gone(copies, &copy_of("a", 1010));
        }
        bench.pass(170 * SECOND);
        assert_eq!(bench.begun(), BTreeSet::new(), "{report:?}");
        bench.pass(20 * SECOND);
        let expected = is_listed.then(|| "edge configmaps".to_owned());
        assert_eq!(bench.begun(), expected.into_iter().collect(), "{report:?}");
        if is_listed {
            bench.list(copies, &[a, b], 1003);
            assert_eq!(bench.working(), ["a"], "it is there again");
            bench.pass(600 * SECOND);
            assert_eq!(bench.begun(), BTreeSet::new(), "once");
        }
    }
}

#[test]
fn an_end_is_awaited_as_long_as_its_side_does_not_answer_or_lists() {
    for is_away in [true, false] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a", "b"]);
        let (copies, origins) = (bench.copies(), bench.origins());
        bench.says_gone(origins, &config_map("a", 30));
        bench.succeed_with("a", Change::Deleted);
        bench.begun();
        if is_away {
            bench.contact(Side::Edge).answers = false;
            bench.breaks(copies, unreachable());
        } else {
            bench.source_says(copies, SourceEvent::Begin(Covers::Everything));
        }
        bench.pass(900 * SECOND);
        assert_eq!(bench.begun(), BTreeSet::new(), "{is_away}");
    }
}

#[test]
fn the_copies_of_all_types_are_listed_again_when_those_of_one_show_that_their_side_has_gone_back() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["configmaps", "widgets.example.org"]);
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    bench.begun();
    bench.list(copies, &[copy_of("a", 900)], 1001);
    let begun = bench.begun();
    assert!(begun.contains("edge widgets"), "{begun:?}");
    assert!(!begun.iter().any(|of| of.starts_with("hub widgets")), "{begun:?}");
    // Those of another type may show the same.
    let widgets = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    bench.list_after(widgets, &[], 5, 2000);
    let begun = bench.begun();
    assert!(!begun.contains("edge configmaps"), "once for all: {begun:?}");
}
