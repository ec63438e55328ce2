//! What is upsynced, and the namespaces that are created for it at the hub.

use kube_lite::Precondition;

use super::*;
use crate::api::{DOWNSYNCED, OWNER, RENAMED_FROM, UPSYNCED};
use crate::model::effect::NamespaceEnd;
use crate::sync::object::Address;

fn at_edge(name: &str, version: u64) -> Value {
    object(&ResourceType::config_maps(), "field", name, version)
}

fn upsyncing() -> Bench {
    Bench::new().with_spec(&upsync(&["field"]))
}

impl Bench {
    fn edge_origins(&self) -> SourceId {
        self.origins_of(Side::Edge, "configmaps").expect("they are read")
    }

    /// One object is upsynced, and the hub has reported the namespace that was created for it.
    fn bring_up(&mut self, name: &str) {
        let origins = self.edge_origins();
        self.says(origins, &at_edge(name, 10));
        self.succeed(Change::Created);
        let namespaces = self.source(Feed::HubNamespaces);
        self.says(namespaces, &namespace_of_ours());
    }

    /// It is deleted at both sides again.
    fn revert(&mut self, name: &str) {
        let origins = self.edge_origins();
        self.says_gone(origins, &at_edge(name, 50));
        assert!(self.job(name).may_delete);
        self.succeed(Change::Deleted);
    }

    fn steps(&self) -> Vec<&str> {
        let steps = self.namespaces.iter().map(|(_, step)| match step {
            NamespaceStep::Make => "make",
            NamespaceStep::Read => "read",
            NamespaceStep::Clear(_) => "clear",
        });
        steps.collect()
    }
}

pub(super) fn namespace_of_ours() -> Value {
    let mut namespace = object(&ResourceType::namespaces(), "", "field", 5);
    namespace["metadata"]["labels"] = json!({UPSYNCED: "true"});
    namespace["metadata"]["annotations"] = json!({UPSYNCED: "Namespace//field", OWNER: "/namespaces/st"});
    namespace
}

fn empty() -> NamespaceEnd {
    NamespaceEnd::Empty(Precondition {
        uid: "field".into(),
        resource_version: "5".into(),
        ..Precondition::default()
    })
}

#[test]
fn an_object_of_the_edge_goes_up_and_again_when_it_has_changed() {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("a", 10));
    let job = bench.job("a");
    assert_eq!((job.direction, job.may_delete), (Direction::Up, false));
    bench.succeed(Change::Created);
    bench.says(origins, &at_edge("a", 10));
    assert!(bench.work.is_empty());
    bench.says(origins, &at_edge("a", 11));
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn what_came_down_does_not_go_up_again() {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    let mut object = at_edge("a", 10);
    object["metadata"]["annotations"] = json!({DOWNSYNCED: "ConfigMap/field/a"});
    bench.says(origins, &object);
    bench.says(origins, &at_edge("kube-root-ca.crt", 10));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.says(origins, &at_edge("b", 11));
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn the_namespace_of_the_syncer_goes_up_only_if_it_is_named() {
    for (namespaces, goes_up) in [("*", false), ("field", true)] {
        let mut bench = Bench::with(|settings| settings.own_namespace = Some("field".into()));
        bench = bench.with_spec(&upsync(&[namespaces]));
        let origins = bench.edge_origins();
        bench.says(origins, &at_edge("a", 10));
        assert_eq!(!bench.work.is_empty(), goes_up, "{namespaces}");
    }
}

#[test]
fn a_namespace_that_is_missing_at_the_hub_is_made_and_what_waits_for_it_goes_on_at_once() {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("a", 10));
    bench.fail(Side::Hub, not_found("namespaces", "field"));
    assert_eq!(bench.steps(), ["make"]);
    assert!(bench.work.is_empty());
    assert_eq!(bench.model.report.failing(), 0, "that is no failure");
    bench.namespace_done(Ok(NamespaceEnd::Made));
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_namespace_that_cannot_be_made_is_tried_again_and_fails_until_nothing_needs_it() {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("a", 10));
    let mut tries = 0;
    for _ in 0..600 {
        while !bench.work.is_empty() {
            bench.fail(Side::Hub, not_found("namespaces", "field"));
        }
        while !bench.namespaces.is_empty() {
            tries += 1;
            bench.namespace_done(Err(forbidden()));
        }
        bench.pass(SECOND);
    }
    assert!((6..20).contains(&tries), "{tries} in ten minutes");
    assert_eq!(bench.model.report.failing(), 1);
    bench.says_gone(origins, &at_edge("a", 11));
    while !bench.work.is_empty() {
        bench.end_with("a", crate::sync::job::Why::Gone);
    }
    bench.pass(600 * SECOND);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_namespace_that_upsync_has_left_is_cleared_after_a_while() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.pass(60 * SECOND);
    assert!(bench.namespaces.is_empty(), "it is in use");
    bench.revert("a");
    bench.pass(9 * SECOND);
    assert!(bench.namespaces.is_empty(), "it may be needed again");
    bench.pass(2 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
    bench.namespace_done(Ok(empty()));
    assert_eq!(bench.steps(), ["clear"]);
    bench.namespace_done(Ok(NamespaceEnd::Cleared));
    bench.pass(3600 * SECOND);
    assert!(bench.namespaces.is_empty());
}

// Found by the simulation: the watch reported late that the one before it was gone, and then this one.
#[test]
fn a_namespace_that_is_reported_after_upsync_has_left_it_is_cleared_too() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.says_gone(namespaces, &namespace_of_ours());
    bench.pass(60 * SECOND);
    assert!(bench.namespaces.is_empty(), "it is gone");
    bench.says(namespaces, &namespace_of_ours());
    bench.pass(11 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
}

#[test]
fn no_namespace_is_cleared_before_all_that_goes_up_is_listed() {
    let mut bench = Bench::new();
    bench.run();
    bench.configure(&[config("all", &upsync(&["field"]))]);
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.list(namespaces, &[namespace_of_ours()], 5);
    bench.pass(60 * SECOND);
    assert!(
        bench.namespaces.is_empty(),
        "its copies are not listed: {:?}",
        bench.steps()
    );
    let copies = bench.copies_of(Side::Hub, "configmaps").expect("they are read first");
    bench.list(copies, &[], 5);
    bench.pass(60 * SECOND);
    assert!(
        bench.namespaces.is_empty(),
        "what it is for is not listed: {:?}",
        bench.steps()
    );
    let origins = bench.edge_origins();
    bench.list(origins, &[], 5);
    bench.pass(9 * SECOND);
    assert!(bench.namespaces.is_empty(), "it may be needed");
    bench.pass(2 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
}

#[test]
fn nothing_goes_into_a_namespace_that_is_being_cleared_before_that_has_ended() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.pass(11 * SECOND);
    bench.namespace_done(Ok(empty()));
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("b", 60));
    bench.pass(SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.namespace_done(Ok(NamespaceEnd::Cleared));
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn a_namespace_that_is_needed_again_while_it_is_read_is_not_cleared() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.pass(11 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("b", 60));
    bench.namespace_done(Ok(empty()));
    assert!(bench.namespaces.is_empty());
}

// Seed 714072 of the simulation: the namespace was kept for ever.
#[test]
fn a_namespace_is_left_too_by_what_is_deleted_while_it_fails_and_never_had_a_copy() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    let origins = bench.edge_origins();
    bench.revert("a");
    bench.says(origins, &at_edge("b", 60));
    let (key, _) = bench.take("b");
    bench.says_gone(origins, &at_edge("b", 61));
    bench.pass(11 * SECOND);
    assert!(bench.namespaces.is_empty(), "a worker has it");
    bench.ends(key, Err(failure(Side::Edge, answer(504, "Timeout", "no answer"))));
    bench.pass(11 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
}

#[test]
fn a_namespace_with_something_in_it_is_read_again_after_ten_minutes() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.pass(11 * SECOND);
    bench.namespace_done(Ok(NamespaceEnd::NotEmpty("secrets/x".into())));
    bench.pass(Duration::from_secs(580));
    assert!(bench.namespaces.is_empty());
    bench.pass(Duration::from_secs(30));
    assert_eq!(bench.steps(), ["read"]);
}

#[test]
fn a_namespace_that_may_not_be_looked_into_is_kept_and_is_no_failure() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.pass(11 * SECOND);
    for _ in 0..3 {
        bench.namespace_done(Ok(NamespaceEnd::Forbidden(forbidden())));
        assert_eq!(bench.model.report.failing(), 0);
        bench.pass(500 * SECOND);
        assert!(bench.namespaces.is_empty());
        bench.pass(100 * SECOND);
        assert_eq!(bench.steps(), ["read"]);
    }
}

#[test]
fn a_namespace_that_a_cache_does_not_show_is_read_again_until_the_watch_says_that_it_is_gone() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.pass(11 * SECOND);
    bench.namespace_done(Ok(NamespaceEnd::NotOurs));
    bench.pass(610 * SECOND);
    assert_eq!(bench.steps(), ["read"]);
    bench.namespace_done(Ok(NamespaceEnd::NotOurs));
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.says_gone(namespaces, &namespace_of_ours());
    bench.pass(3600 * SECOND);
    assert!(bench.namespaces.is_empty());
}

#[test]
fn a_namespace_that_upsync_has_not_made_is_never_cleared() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    let namespaces = bench.source(Feed::HubNamespaces);
    let mut anothers = namespace_of_ours();
    anothers["metadata"]["annotations"][OWNER] = json!("/namespaces/another");
    bench.says(namespaces, &anothers);
    bench.revert("a");
    bench.pass(3600 * SECOND);
    assert!(bench.namespaces.is_empty());
}

#[test]
fn deletes_at_the_hub_are_held_by_another_edge_and_those_at_the_edge_go_on() {
    let spec = json!({"namespaceScope": {"namespaces": ["shop"],
        "resources": [{"resource": "configmaps", "apiVersion": "v1"}]}, "upsync": upsync(&["field"])["upsync"]});
    let mut bench = Bench::new().with_spec(&spec);
    bench.bring_down(&["down"]);
    bench.bring_up("up");
    bench.uids.insert(Side::Edge, ANOTHER);
    bench.contact(Side::Edge).moves += 1;
    bench.tell(Event::Due);
    let (down, up) = (bench.origins(), bench.edge_origins());
    bench.says_gone(down, &config_map("down", 50));
    bench.says_gone(up, &at_edge("up", 50));
    assert_eq!(bench.working(), ["down"]);
    assert_eq!(bench.held_for(Direction::Up, crate::api::OTHER_CLUSTER), Some(1));
}

#[test]
fn a_copy_at_the_hub_that_somebody_changes_is_corrected() {
    let mut bench = upsyncing();
    bench.bring_up("a");
    let copies = bench.copies_of(Side::Hub, "configmaps").expect("they are read");
    let at = crate::sync::object::Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("field", "a"),
    };
    let known = copy(Direction::Up, &at, "a", bench.world.version);
    bench.says(copies, &known);
    assert!(bench.work.is_empty());
    bench.says(copies, &changed(known, bench.world.version + 1));
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_copy_at_the_hub_from_an_earlier_run_that_is_as_it_should_be_is_not_written_again() {
    let mut bench = Bench::new();
    bench.run();
    bench.configure(&[config("all", &upsync(&["field"]))]);
    let copies = bench.copies_of(Side::Hub, "configmaps").expect("they are read");
    let at = crate::sync::object::Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("field", "a"),
    };
    let mut known = copy(Direction::Up, &at, "a", 10);
    let mut other = at.clone();
    other.name = ObjectName::new("field", "b");
    let changed = copy(Direction::Up, &other, "b", 11);
    known["data"] = at_edge("a", 10)["data"].clone();
    bench.list(copies, &[known, changed], 20);
    let origins = bench.edge_origins();
    bench.list(origins, &[at_edge("a", 10), at_edge("b", 10)], 30);
    assert_eq!(bench.working(), ["b"]);
}

/// Nothing is upsynced any more, and the namespace at the hub is still there.
fn left_with_a_namespace() -> Bench {
    let mut bench = upsyncing();
    bench.bring_up("a");
    bench.revert("a");
    bench.config_says(&config("all", &json!({})));
    if let Some(copies) = bench.copies_of(Side::Hub, "configmaps") {
        bench.list(copies, &[], 3000);
    }
    bench
}

#[test]
fn a_type_without_copies_that_the_record_keeps_for_a_namespace_is_not_read_at_each_write_of_it() {
    let mut bench = left_with_a_namespace();
    assert_eq!(bench.copies_of(Side::Hub, "configmaps"), None);
    bench.pass(60 * SECOND);
    bench.log.clear();
    bench.pass(Duration::from_secs(7200));
    assert!(bench.count("write the record") > 0, "{:?}", bench.log);
    assert!(bench.keeps("configmaps"));
    assert_eq!(bench.copies_of(Side::Hub, "configmaps"), None);
}

fn map_of_field(name: &str) -> Address {
    Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("field", name),
    }
}

/// The object with the second name at the edge has the first name at the hub, and both sides have been read again.
fn rename(bench: &mut Bench, (at_hub, at_edge): (&str, &str), copies: &[Value], origins: &[Value]) {
    let map = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "name": name});
    let conversions = json!({"conversions": [{"upstream": map(at_hub), "downstream": map(at_edge)}]});
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("names", &conversions)]);
    let source = bench.copies_of(Side::Hub, "configmaps").expect("they are read");
    bench.list(source, copies, bench.world.version);
    let source = bench.edge_origins();
    bench.list(source, origins, 50);
}

/// The copy at the hub of the edge's object `a`, as it was last made.
fn copy_of_a(bench: &Bench) -> Value {
    copy(Direction::Up, &map_of_field("a"), "a", bench.world.version)
}

/// The edge's object `a` was upsynced under that name, and has the name `x` at the hub from now on.
fn renamed_at_the_hub() -> Bench {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("a", 10));
    bench.succeed(Change::Created);
    let known = copy_of_a(&bench);
    rename(&mut bench, ("x", "a"), &[known], &[at_edge("a", 10)]);
    bench
}

#[test]
fn what_is_known_of_a_copy_at_the_hub_is_not_known_of_another_that_a_conversion_wants() {
    // The worker had begun before there was one.
    let mut begun = upsyncing();
    let origins = begun.edge_origins();
    begun.says(origins, &at_edge("a", 10));
    let (key, job) = begun.take("a");
    rename(&mut begun, ("x", "a"), &[], &[]);
    begun.done(key, &job, Change::Created);
    let known = copy_of_a(&begun);
    rename(&mut begun, ("x", "a"), &[known], &[at_edge("a", 10)]);
    for bench in [renamed_at_the_hub(), begun] {
        assert_eq!(bench.working(), ["a"]);
        let job = &bench.work[0].1;
        assert_eq!((&job.copy_at, job.copy_version), (&map_of_field("x"), 0));
        assert!(!job.may_delete);
    }
}

#[test]
fn all_copies_at_the_hub_that_conversions_have_made_of_an_object_go_with_it() {
    let mut bench = renamed_at_the_hub();
    bench.succeed(Change::Created);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    let origins = bench.edge_origins();
    bench.says_gone(origins, &at_edge("a", 60));
    let to_go = bench.work.iter().map(|(_, job)| (&job.copy_at, job.may_delete));
    assert!(to_go.eq([(&map_of_field("x"), true), (&map_of_field("a"), true)]));
}

#[test]
fn a_copy_at_the_hub_is_brought_to_what_has_its_name_now() {
    let mut bench = renamed_at_the_hub();
    let old = copy_of_a(&bench);
    bench.succeed(Change::Created);
    let mut renamed = copy(Direction::Up, &map_of_field("x"), "a", bench.world.version);
    renamed["metadata"]["annotations"][RENAMED_FROM] = json!("ConfigMap/a");
    let origins = [at_edge("a", 10), at_edge("b", 40)];
    rename(&mut bench, ("a", "b"), &[old.clone(), renamed], &origins);
    assert_eq!(bench.working(), ["b"]);
    assert_eq!(bench.work[0].1.copy_at, map_of_field("a"));
    // It is reported once more before it is written.
    let copies = bench.copies_of(Side::Hub, "configmaps").expect("they are read");
    bench.says(copies, &changed(old, bench.world.version + 1));
    bench.succeed(Change::Updated);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("b", 60));
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn what_upsync_has_left_behind_is_no_longer_recorded_when_the_last_namespace_is_gone() {
    let mut bench = left_with_a_namespace();
    bench.pass(60 * SECOND);
    assert!(bench.keeps("configmaps"));
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.says_gone(namespaces, &namespace_of_ours());
    if let Some(copies) = bench.copies_of(Side::Hub, "configmaps") {
        bench.list(copies, &[], 3001);
    }
    bench.pass(60 * SECOND);
    assert!(!bench.keeps("configmaps"));
}

#[test]
fn what_came_down_is_no_longer_recorded_though_a_namespace_of_upsync_is_left() {
    let mut spec = upsync(&["field"]);
    spec["namespaceScope"] = shop(&["widgets.example.org"])["spec"]["namespaceScope"].clone();
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.with_spec(&spec);
    bench.bring_up("a");
    assert!(bench.keeps("widgets"));
    bench.config_says(&config("all", &upsync(&["field"])));
    bench.list_widgets(&[], 3000);
    bench.pass(60 * SECOND);
    assert!(!bench.keeps("widgets") && bench.keeps("configmaps"));
}

#[test]
fn a_namespace_that_could_not_be_made_fails_as_long_as_it_is_needed() {
    let mut bench = upsyncing();
    let origins = bench.edge_origins();
    bench.says(origins, &at_edge("a", 10));
    bench.fail(Side::Hub, not_found("namespaces", "field"));
    bench.namespace_done(Err(forbidden()));
    assert_eq!(bench.model.report.failing(), 1);
    // A list has all of them looked through.
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.list(namespaces, &[], 20);
    bench.run();
    assert_eq!(bench.model.report.failing(), 1);
}

#[test]
fn namespaces_that_may_not_be_listed_fail_only_as_long_as_something_is_upsynced() {
    let mut bench = Bench::new();
    bench.run();
    bench.configure(&[config("all", &upsync(&["field"]))]);
    let namespaces = bench.source(Feed::HubNamespaces);
    bench.breaks(namespaces, forbidden());
    assert_eq!(bench.model.report.failing(), 1);
    bench.config_says(&config("all", &json!({})));
    bench.list_all(1);
    bench.pass(SECOND);
    assert_eq!(bench.model.report.failing(), 0);
    assert!(!bench.world.sources.contains_key(&namespaces));
}
