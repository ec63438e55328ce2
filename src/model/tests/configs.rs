//! What configs select, and what becomes of what they no longer select.

use super::*;
use crate::api::RENAMED_FROM;
use crate::plan::Filter;

const SYNCER: Feed = Feed::Configs(ConfigKind::SyncerConfig);

fn feeds(bench: &Bench) -> usize {
    bench.world.sources.len()
}

fn reads_origins(bench: &Bench) -> bool {
    bench.origins_of(Side::Hub, "configmaps").is_some()
}

#[test]
fn nothing_is_planned_before_both_kinds_of_configs_are_known() {
    let mut bench = Bench::new();
    bench.run();
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    bench.pass(60 * SECOND);
    assert_eq!(feeds(&bench), 2, "{:?}", bench.world.sources);
    assert_eq!(bench.count("heartbeat"), 0);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[]);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_some());
}

// Issue 46: only the first config that names it said so.
#[test]
fn a_namespace_that_the_hub_lacks_is_said_by_each_config_that_names_it() {
    let mut bench = Bench::new();
    bench.world.lacks_namespaces.insert("shop".to_owned());
    bench.run();
    let of_shop = shop(&["configmaps"])["spec"].clone();
    let listed = named(&["a"]);
    let by_kind =
        json!({"downSyncedResources": [{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a"}]});
    let configs = [("a", &of_shop), ("b", &of_shop), ("c", &listed), ("d", &json!({}))];
    let configs = configs.map(|(name, spec)| config(name, spec));
    bench.list_configs(ConfigKind::SyncerConfig, &configs);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("e", &by_kind)]);
    bench.list_all(1);
    bench.pass(3 * SECOND);
    let (of_configs, _) = bench.model.of_edge(bench.model.hold_condition(), true);
    let words = "the hub has no namespace \"shop\"";
    let saying = of_configs
        .iter()
        .filter(|(_, of)| of.problems.iter().any(|problem| problem.message.contains(words)));
    let names: std::collections::BTreeSet<&str> = saying.map(|((_, name), _)| &**name).collect();
    assert_eq!(names, ["a", "b", "c", "e"].into());
}

#[test]
fn a_selected_namespace_that_the_hub_lacks_is_looked_for_once_until_something_shows_it() {
    let mut bench = Bench::new();
    bench.world.lacks_namespaces.insert("shop".to_owned());
    let mut bench = bench.selecting(&["configmaps"]);
    let lacking = |bench: &Bench| bench.model.selected_namespaces.count_lacking();
    assert_eq!(bench.count("look for namespaces"), 0, "it may come at once");
    bench.pass(3 * SECOND);
    assert_eq!((bench.count("look for namespaces shop"), lacking(&bench)), (1, 1));
    bench.pass(3600 * SECOND);
    assert_eq!(bench.count("look for namespaces"), 1, "nothing has changed");
    // The watch of namespaces shows it.
    bench.world.lacks_namespaces.clear();
    let origins = bench.origins_of(Side::Hub, "namespaces").expect("they are implied");
    bench.says(origins, &object(&ResourceType::namespaces(), "", "shop", 5));
    assert_eq!(lacking(&bench), 0);
    bench.pass(3600 * SECOND);
    assert_eq!(bench.count("look for namespaces"), 1, "the watch has said so");
    // It is deleted, and then selected no longer.
    bench.world.lacks_namespaces.insert("shop".to_owned());
    bench.says_gone(origins, &object(&ResourceType::namespaces(), "", "shop", 6));
    bench.pass(3 * SECOND);
    assert_eq!(lacking(&bench), 1);
    bench.config_says(&config("all", &json!({})));
    assert_eq!(lacking(&bench), 0);
}

#[test]
fn a_selected_namespace_that_a_watch_has_shown_is_not_looked_for() {
    let mut bench = Bench::new();
    bench.run();
    bench.select(&["configmaps"]);
    let origins = bench.origins_of(Side::Hub, "namespaces");
    let copies = bench.copies_of(Side::Edge, "namespaces").expect("they are implied");
    bench.list(copies, &[], 1);
    let origins = origins
        .or_else(|| bench.origins_of(Side::Hub, "namespaces"))
        .expect("they are read");
    bench.list(origins, &[object(&ResourceType::namespaces(), "", "shop", 5)], 5);
    bench.pass(3600 * SECOND);
    assert_eq!(bench.count("look for namespaces"), 0);
    assert_eq!(bench.model.selected_namespaces.count_lacking(), 0);
}

#[test]
fn namespaces_that_the_syncer_may_not_look_for_are_not_known_to_be_lacking() {
    let mut bench = Bench::new();
    let forbidden = Error::from_answer(403, None, br#"{"kind":"Status","reason":"Forbidden","message":"no"}"#);
    bench
        .world
        .fails
        .insert("look for namespaces shop".to_owned(), forbidden);
    let mut bench = bench.selecting(&["configmaps"]);
    bench.pass(3600 * SECOND);
    assert_eq!(bench.count("look for namespaces"), 1, "it is not asked again and again");
    assert_eq!(bench.model.selected_namespaces.count_lacking(), 0);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_hub_that_serves_one_kind_of_configs_is_enough_and_one_that_serves_none_is_not() {
    let mut bench = Bench::new();
    bench.run();
    let [syncer, edge] = ConfigKind::ALL.map(|kind| bench.source(Feed::Configs(kind)));
    bench.breaks(edge, not_served());
    assert_eq!(bench.model.report.failing(), 0, "few hubs have both");
    bench.breaks(syncer, not_served());
    bench.pass(60 * SECOND);
    assert_eq!(bench.count("heartbeat"), 0, "it may not be the hub at all");
    assert_eq!(bench.model.report.failing(), 1);
    bench.source_says(syncer, SourceEvent::Up);
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    assert_eq!(bench.model.report.failing(), 0);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_some());
}

#[test]
fn a_404_for_a_kind_of_configs_counts_once_discovery_says_so_too_or_it_was_said_for_long() {
    let mut bench = Bench::new();
    bench.run();
    let kind = ConfigKind::EdgeSyncConfig;
    bench.world.serve_at(Side::Hub, &kind.resource_type());
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    let source = bench.source(Feed::Configs(kind));
    bench.breaks(source, not_served());
    bench.pass(60 * SECOND);
    assert!(
        bench.copies_of(Side::Edge, "configmaps").is_none(),
        "it may come from a proxy"
    );
    bench.world.withdraw_at(Side::Hub, &kind.resource_type());
    bench.breaks(source, not_served());
    bench.pass(SECOND);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_some());

    let mut bench = Bench::new();
    bench.run();
    bench.world.serve_at(Side::Hub, &kind.resource_type());
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    let source = bench.source(Feed::Configs(kind));
    for said in 1..=6 {
        assert!(bench.copies_of(Side::Edge, "configmaps").is_none(), "{said}");
        bench.breaks(source, not_served());
        bench.pass(SECOND);
    }
    assert!(
        bench.copies_of(Side::Edge, "configmaps").is_some(),
        "discovery may be denied"
    );
}

#[test]
fn a_kind_of_configs_that_was_denied_before_the_other_one_came_is_asked_for_at_once() {
    let mut bench = Bench::new();
    bench.run();
    let [syncer, edge] = ConfigKind::ALL.map(|kind| bench.source(Feed::Configs(kind)));
    let question = "ask the hub what it serves".to_owned();
    bench.world.fails.insert(question, unreachable());
    for source in [syncer, edge] {
        bench.breaks(source, not_served());
    }
    bench.pass(60 * SECOND);
    assert_eq!(bench.model.report.failing(), 1);
    bench.world.fails.clear();
    bench.source_says(syncer, SourceEvent::Up);
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    bench.pass(SECOND);
    assert!(bench.copies_of(Side::Edge, "configmaps").is_some());
}

#[test]
fn a_kind_of_configs_that_the_hub_does_not_serve_is_searched_for_rarely() {
    let mut bench = Bench::new();
    bench.run();
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    let feed = Feed::Configs(ConfigKind::EdgeSyncConfig);
    let source = bench.source(feed);
    for _ in 0..6 {
        assert!(bench.world.sources.contains_key(&source), "it may be starting");
        bench.breaks(source, not_served());
        bench.pass(SECOND);
    }
    assert!(!bench.world.sources.contains_key(&source));
    bench.pass(Duration::from_secs(299));
    assert!(bench.world.sources.values().all(|(known, _)| *known != feed));
    bench.pass(Duration::from_secs(302));
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[]);
}

#[test]
fn configs_that_were_read_stay_in_force_when_the_hub_serves_them_no_longer() {
    let mut bench = Bench::listed();
    for kind in ConfigKind::ALL {
        let source = bench.source(Feed::Configs(kind));
        bench.breaks(source, not_served());
    }
    bench.pass(60 * SECOND);
    bench.bring_down(&["a"]);
}

#[test]
fn configs_that_were_served_are_searched_for_rarely_once_the_hub_has_said_ten_times_that_they_are_not() {
    let mut bench = Bench::listed();
    let is_watched = |bench: &Bench| bench.world.sources.values().any(|(feed, _)| *feed == SYNCER);
    for said in 1..=10 {
        let source = bench.source(SYNCER);
        bench.breaks(source, not_served());
        assert!(is_watched(&bench), "{said}: they may come back soon");
    }
    let source = bench.source(SYNCER);
    bench.breaks(source, not_served());
    assert!(!is_watched(&bench));
    bench.pass(660 * SECOND);
    assert!(is_watched(&bench));
    assert!(reads_origins(&bench), "they stay in force");
}

#[test]
fn a_config_that_cannot_be_read_stays_in_force_in_its_last_readable_form() {
    let mut bench = Bench::listed();
    bench.config_says(&json!({"metadata": {"name": "all", "uid": "all"}, "spec": {"namespaceScope": 7}}));
    assert!(reads_origins(&bench));
    bench.bring_down(&["a"]);
    bench.config_says(&config("all", &json!({})));
    bench.listed.clear();
    let copies = bench.copies();
    bench.list(copies, &[], 2000);
    assert!(!reads_origins(&bench));
}

#[test]
fn a_config_that_a_list_lacks_counts_no_longer() {
    let mut bench = Bench::listed();
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    assert!(!reads_origins(&bench));
}

#[test]
fn a_list_of_configs_that_breaks_off_deletes_none_and_holds_up_no_other_kind() {
    let mut bench = Bench::listed();
    let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.source_says(source, SourceEvent::Begin(Covers::Everything));
    let other = bench.source(Feed::Configs(ConfigKind::EdgeSyncConfig));
    let spec =
        json!({"downSyncedResources": [{"version": "v1", "kind": "ConfigMap", "namespace": "mall", "name": "x"}]});
    bench.says(other, &config("x", &spec));
    let mall = |bench: &Bench| {
        let mut readings = bench.world.sources.values();
        readings.any(|(_, reading)| reading.scope.namespace.as_deref() == Some("mall"))
    };
    assert!(!mall(&bench), "what the list has yet to say may change it");
    bench.breaks(source, unreachable());
    bench.list_rest(1);
    assert!(reads_origins(&bench) && mall(&bench), "{:?}", bench.world.sources);
}

#[test]
fn two_configs_for_one_type_are_added_up_and_each_counts_until_it_goes() {
    let mut bench = Bench::new();
    bench.run();
    bench.configure(&[config("one", &named(&["a", "b"])), config("two", &named(&["b", "c"]))]);
    bench.list_all(1);
    let origins = bench.origins();
    for name in ["a", "b", "c", "d"] {
        bench.says(origins, &config_map(name, 10));
    }
    assert_eq!(bench.working(), ["a", "b", "c"]);
    for _ in 0..3 {
        bench.succeed(Change::Created);
    }
    let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.says_gone(source, &config("one", &json!({})));
    bench.list_rest(1);
    let origins = bench.origins();
    for name in ["a", "b", "c"] {
        bench.says(origins, &config_map(name, 20));
    }
    assert_eq!(bench.working(), ["b", "c"]);
}

#[test]
fn what_a_config_selects_in_addition_is_read_by_name_and_the_rest_is_not_read_again() {
    let mut bench = Bench::new().with_spec(&named(&["a", "b"]));
    bench.bring_down(&["a"]);
    let (origins, copies) = (bench.origins(), bench.copies());
    bench.config_says(&config("all", &named(&["a", "b", "c"])));
    assert_eq!(bench.origins(), origins, "the watch continues");
    assert_ne!(
        bench.copies(),
        copies,
        "what is at the edge has to be known before it is overwritten"
    );
    let copies = bench.copies();
    bench.list(copies, &[copy_of("a", bench.world.version)], 2001);
    bench.list_rest(2001);
    assert_eq!(bench.working(), ["c"]);
    assert!(bench.job("c").desired.is_none() && bench.job("c").unread.is_some());
}

#[test]
fn a_copy_that_is_selected_no_longer_stays_until_its_origin_is_gone() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c"]);
    bench.config_says(&config("all", &json!({})));
    let copies = bench.copies();
    let known = ["a", "b", "c"].map(|name| copy_of(name, 2000));
    bench.list_namespaces(2001);
    bench.list(copies, &known, 2001);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10), config_map("b", 10)], 40);
    assert_eq!(bench.working(), ["c"]);
    assert!(bench.job("c").may_delete);
    bench.succeed(Change::Deleted);
    bench.says(origins, &config_map("a", 41));
    assert!(bench.work.is_empty(), "it is left as it is");
    bench.says_gone(origins, &config_map("a", 42));
    assert!(bench.job("a").may_delete);
}

#[test]
fn a_copy_that_is_selected_no_longer_may_be_changed_or_deleted_by_anybody() {
    let mut bench = Bench::new().with_spec(&named(&["a", "b"]));
    bench.bring_down(&["a", "b"]);
    bench.config_says(&config("all", &named(&["b"])));
    bench.list_rest(2000);
    let copies = bench.copies();
    bench.says(copies, &changed(copy_of("a", 0), 3000));
    bench.says_gone(copies, &copy_of("a", 3001));
    while !bench.work.is_empty() {
        assert!(!bench.work[0].1.may_delete && bench.job("a").selection == crate::plan::Selection::None);
        bench.end_with("a", crate::sync::job::Why::Gone);
    }
    bench.says(copies, &changed(copy_of("b", 0), 3002));
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn a_heartbeat_on_a_config_changes_nothing_that_is_read() {
    let mut bench = Bench::listed();
    let before: Vec<SourceId> = bench.world.sources.keys().copied().collect();
    let mut echo = shop(&["configmaps"]);
    echo["metadata"]["resourceVersion"] = json!("2");
    echo["status"] = json!({"lastSyncerHeartbeatTime": "now"});
    bench.log.clear();
    bench.config_says(&echo);
    assert_eq!(bench.world.sources.keys().copied().collect::<Vec<_>>(), before);
    assert!(bench.log.is_empty(), "{:?}", bench.log);
}

/// Planning it once is fast; a hub on which something edits its configs all the time must not leave time for nothing else.
#[test]
fn hundreds_of_changes_of_large_configs_are_planned_together() {
    let mut bench = Bench::new();
    bench.run();
    let large = |edit: usize| {
        let namespaces: Vec<Value> = (0..600)
            .map(|index| json!({"namespace": format!("n{index}"), "names": [format!("a{edit}")]}))
            .collect();
        let resource =
            json!({"group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": namespaces});
        config("all", &json!({"namespacedObjects": [resource]}))
    };
    bench.configure(&[large(0)]);
    let is_planned = |bench: &Bench| !bench.model.selecting.changed;
    assert!(is_planned(&bench), "the first at once");
    let mut plans = 0;
    for edit in 1..=300 {
        bench.config_says(&large(edit));
        plans += usize::from(is_planned(&bench));
        bench.pass(Duration::from_millis(1));
        plans += usize::from(is_planned(&bench));
    }
    assert!((1..=10).contains(&plans), "{plans} plans");
    bench.pass(SECOND);
    assert!(is_planned(&bench), "and the last in the end");
}

#[test]
fn a_conversion_gives_the_copy_another_name() {
    let mut bench = Bench::new();
    bench.run();
    let spec = json!({
        "downSyncedResources": [{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a.hub"}],
        "conversions": [{"upstream": {"kind": "ConfigMap", "name": "a.hub"},
            "downstream": {"kind": "ConfigMap", "name": "a"}}]});
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("all", &spec)]);
    bench.list_all(1);
    let origins = bench.origins();
    bench.says(origins, &config_map("a.hub", 10));
    bench.says(origins, &config_map("b.hub", 10));
    let (_, job) = &bench.work[0];
    assert_eq!((&*job.origin.name.name, &*job.copy_at.name.name), ("a.hub", "a"));
    assert_eq!(bench.work.len(), 1);
}

#[test]
fn what_a_former_conversion_has_named_does_not_count_as_failing_any_more() {
    let mut bench = Bench::new();
    bench.run();
    let conversion = json!([{"upstream": {"kind": "ConfigMap", "name": "a.hub"},
        "downstream": {"kind": "ConfigMap", "name": "a"}}]);
    let spec = |conversions: &Value| {
        let object = json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a.hub"});
        config(
            "all",
            &json!({"downSyncedResources": [object], "conversions": conversions}),
        )
    };
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[spec(&conversion)]);
    bench.list_all(1);
    let origins = bench.origins();
    bench.says(origins, &config_map("a.hub", 10));
    bench.fail(Side::Hub, forbidden());
    assert_eq!(bench.model.report.failing(), 1);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[spec(&json!([]))]);
    assert_eq!(bench.model.report.failing(), 0);
}

// Seed 952532 of the simulation: it counted as being worked on for ever, and its copy was left over.
#[test]
fn what_ends_while_its_name_is_no_copys_is_worked_on_again_when_it_is() {
    let mut bench = Bench::new();
    bench.run();
    let spec = |conversions: &Value| {
        let object = json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "*"});
        config(
            "all",
            &json!({"downSyncedResources": [object], "conversions": conversions}),
        )
    };
    let renamed = json!([{"upstream": {"kind": "ConfigMap", "name": "a"},
        "downstream": {"kind": "ConfigMap", "name": "x"}}]);
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[spec(&json!([]))]);
    bench.list_all(1);
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    assert_eq!(bench.working(), ["a"]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[spec(&renamed)]);
    bench.succeed_with("a", Change::Created);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[spec(&json!([]))]);
    bench.list_all(20);
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 21));
    assert_eq!(bench.working(), ["a"]);
}

fn filtered(rules: &str) -> Bench {
    let mut filter = Filter::default();
    filter.add_file("rules", rules).expect("they are rules");
    Bench::with(|settings| settings.filter = Rc::new(filter)).selecting(&["configmaps"])
}

#[test]
fn what_the_edge_denies_is_not_worked_on_and_a_denied_type_is_not_even_read() {
    let mut bench = filtered("deny-namespace shop");
    if let Some(origins) = bench.origins_of(Side::Hub, "configmaps") {
        bench.says(origins, &config_map("a", 10));
    }
    assert!(bench.work.is_empty() && bench.model.report.failing() == 0);
    let bench = filtered("deny configmaps");
    assert!(!reads_origins(&bench));
    let mut bench = filtered("deny-namespace mall");
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    assert_eq!(bench.working(), ["a"]);
}

// Seed 102944 of the simulation: the copy had been adopted, so that it stayed as somebody else's.
#[test]
fn the_name_of_a_former_copy_is_free_once_that_is_deleted_or_released() {
    for end in [Change::Deleted, Change::Released] {
        let mut bench = Bench::new();
        bench.run();
        bench.select(&["configmaps"]);
        bench.list_namespaces(1);
        let mut former = copy_of("d", 5);
        former["metadata"]["annotations"][RENAMED_FROM] = json!("ConfigMap/a");
        let copies = bench.copies();
        bench.list(copies, &[former, copy_of("e", 5)], 6);
        let origins = bench.origins();
        bench.list(origins, &[config_map("d", 10), config_map("e", 11)], 12);
        bench.succeed_with("e", Change::Updated);
        assert_eq!(bench.job("d").origin.name, ObjectName::new("shop", "a"), "{end:?}");
        let (key, job) = bench.take("d");
        let left = object(&job.copy_at.resource, "shop", "d", 2000);
        let released = (end == Change::Released).then(|| seen(&job, &left));
        let outcome = Outcome {
            copy: released,
            ..outcome(end)
        };
        bench.ends(key, Ok(outcome));
        let copies = bench.copies();
        bench.list(copies, &[copy_of("e", 1001)], 2001);
        let origins = bench.origins();
        bench.list(origins, &[config_map("d", 10), config_map("e", 11)], 12);
        assert_eq!(bench.job("d").origin.name, ObjectName::new("shop", "d"), "{end:?}");
    }
}

// Seed 812725 of the simulation: nothing reports the end of a copy without its label.
#[test]
fn a_former_copy_that_is_being_deleted_without_its_label_is_read_until_it_is_gone_if_its_name_is_wanted() {
    for is_wanted in [true, false] {
        let mut bench = Bench::new();
        bench.run();
        let names: &[&str] = if is_wanted { &["d", "e"] } else { &["e"] };
        bench.configure(&[config("all", &named(names))]);
        bench.list_namespaces(1);
        let former = |version: u64| {
            let mut former = ending(copy_of("d", version));
            former["metadata"]["annotations"][RENAMED_FROM] = json!("ConfigMap/a");
            former
        };
        let copies = bench.copies();
        bench.list(copies, &[former(5), copy_of("e", 5)], 6);
        let read = bench.world.sources.clone();
        let of_hub = |feed: &Feed| matches!(feed, Feed::Origins(_, Side::Hub));
        for (id, (_, reading)) in read.into_iter().filter(|(_, (feed, _))| of_hub(feed)) {
            let there = ["a", "d", "e"].map(|name| (config_map(name, 10), ObjectName::new("shop", name)));
            let there = there.into_iter().filter(|(_, name)| reading.scope.contains(name));
            bench.list(id, &there.map(|(object, _)| object).collect::<Vec<_>>(), 12);
        }
        bench.says_gone(copies, &former(7));
        let (key, job) = bench.take("d");
        let mut unlabelled = former(7);
        unlabelled["metadata"]["labels"] = json!({});
        let still_there = Outcome {
            copy: Some(seen(&job, &unlabelled)),
            ..outcome(Why::NotSelected)
        };
        bench.ends(key, Ok(still_there));
        bench.pass(60 * SECOND);
        assert_eq!(bench.working() == ["e", "a"], is_wanted, "{:?}", bench.working());
    }
}

// Seed 505694 of the simulation.
#[test]
fn a_kind_of_configs_that_is_not_served_does_not_count_as_failing_whatever_was_answered_before() {
    let mut bench = Bench::new();
    bench.run();
    bench.list_configs(ConfigKind::SyncerConfig, &[shop(&["configmaps"])]);
    let source = bench.source(Feed::Configs(ConfigKind::EdgeSyncConfig));
    bench.breaks(source, broken());
    assert_eq!(bench.model.report.failing(), 1);
    bench.breaks(source, not_served());
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_config_that_is_readable_again_as_it_was_is_no_problem_any_more() {
    let mut bench = Bench::listed();
    bench.config_says(&config("all", &json!({"namespaceScope": 7})));
    assert_eq!(bench.model.selecting.problems.len(), 1);
    bench.config_says(&shop(&["configmaps"]));
    assert!(
        bench.model.selecting.problems.is_empty(),
        "{:?}",
        bench.model.selecting.problems
    );
}

#[test]
fn the_record_is_not_synced_though_a_config_names_it() {
    let record = crate::model::effect::Names::of(&settings().policy.sync_target, "default").own;
    let name = &*record.name;
    let select = |names: &[&str]| {
        let objects = json!([{"namespace": record.namespace(), "names": names}]);
        json!({"namespacedObjects": [{"resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": objects}]})
    };
    let mut bench = Bench::new().with_spec(&select(&["a", name]));
    for name in [name, "a"] {
        let sources = bench.world.sources.clone();
        for (id, (feed, reading)) in sources {
            let object = object(&ResourceType::config_maps(), record.namespace(), name, 10);
            let of = ObjectName::new(record.namespace(), name);
            let is_read = reading.resource.resource == "configmaps" && reading.scope.contains(&of);
            if is_read && matches!(feed, Feed::Origins(_, Side::Hub)) {
                bench.says(id, &object);
            }
        }
    }
    assert_eq!(bench.working(), ["a"]);
    bench.succeed(Change::Created);
    // The same when it is selected later, so that it is read by name.
    let mut bench = Bench::new().with_spec(&select(&["a"]));
    bench.config_says(&config("all", &select(&["a", "b", name])));
    bench.list_rest(2001);
    assert_eq!(bench.working(), ["b"]);
}

#[test]
fn a_namespace_that_the_edge_denies_is_denied_to_what_needs_it() {
    for (rules, is_refused) in [("deny namespaces", true), ("deny secrets", false)] {
        let mut bench = filtered(rules);
        bench.list_namespaces(1);
        bench.list(bench.copies(), &[], 1);
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        assert_eq!(bench.job("a").namespace_refused, is_refused, "{rules}");
    }
}
