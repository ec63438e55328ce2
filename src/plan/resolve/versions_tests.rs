use kube_lite::discovery::{Discovery, Served};

use super::super::tests::{GAUGES, resolve, same, selected, with};
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;
use crate::plan::{Absence, Direction, Missing, Plan, Wanted};
use crate::side::Side;

const GAUGES_2: (&str, &str, &str, &str, bool) = ("g.io", "v2", "gauges", "Gauge", false);

/// Configs by name, each with the version at which it selects the object of its name: gauges down, and by kind up.
fn wanted(down: &[(&str, &str)], up: &[(&str, &str)]) -> Wanted {
    let down = down.iter().map(|(name, version)| {
        let scope =
            serde_json::json!([{"group": "g.io", "resource": "gauges", "apiVersion": version, "objects": [name]}]);
        let object = serde_json::json!({"metadata": {"name": name}, "spec": {"clusterScope": scope}});
        SyncerConfig::parse(object.to_string().as_bytes()).unwrap()
    });
    let up = up.iter().map(|(name, version)| {
        let items = serde_json::json!([{"group": "g.io", "version": version, "kind": "Gauge", "name": name}]);
        let object = serde_json::json!({"metadata": {"name": name}, "spec": {"upSyncedResources": items}});
        EdgeSyncConfig::parse(object.to_string().as_bytes()).unwrap()
    });
    Wanted::from_configs(&down.collect::<Vec<_>>(), &up.collect::<Vec<_>>(), true)
}

/// The version of gauges at the hub and at the edge, and which of the configs have their objects.
fn of_gauges(plan: &Plan, direction: Direction, configs: &[&str]) -> String {
    let Some(gauges) = plan.types.get(&same(direction, "g.io", "gauges")) else {
        return "none".to_owned();
    };
    let have = configs.iter().filter(|name| selected(gauges, "", name));
    let versions = [&*gauges.at_hub.version, &*gauges.at_edge.version];
    versions.into_iter().chain(have.copied()).collect::<Vec<_>>().join(" ")
}

fn reported(plan: &Plan) -> Vec<(Side, &str, Option<&str>)> {
    let reported = plan.missing.iter().filter(|missing| missing.is_reported());
    reported
        .map(|missing| {
            let config = missing.place.as_ref().map(|place| &*place.config);
            (missing.side, &*missing.version, config)
        })
        .collect()
}

fn order(discovery: &mut Discovery, versions: &[&str]) {
    let versions = versions.iter().map(|&version| version.to_owned()).collect();
    discovery.groups.as_mut().unwrap().insert("g.io".into(), versions);
}

fn lacks(discovery: &mut Discovery, version: &str) {
    discovery
        .known
        .insert(("g.io".into(), version.into()), Served::NotServed);
}

#[test]
fn a_version_that_neither_side_serves_counts_for_nobody_else_wherever_it_stands() {
    let mut both = with(&[GAUGES]);
    lacks(&mut both, "v11");
    for (wrong, right) in [("a", "b"), ("b", "a")] {
        let wanted = wanted(&[(wrong, "v11"), (right, "v1")], &[]);
        let plan = resolve(&wanted, &both, &both);
        assert_eq!(of_gauges(&plan, Direction::Down, &["a", "b"]), format!("v1 v1 {right}"));
        assert_eq!(
            reported(&plan),
            [(Side::Hub, "v11", Some(&*format!("SyncerConfig//{wrong}")))]
        );
        assert!(plan.problems.is_empty(), "{:?}", plan.problems);
        assert!(
            plan.missing
                .iter()
                .all(|missing| missing.absence == Absence::Everywhere)
        );
    }
    let alone = resolve(&wanted(&[("a", "v11")], &[]), &both, &both);
    assert_eq!(of_gauges(&alone, Direction::Down, &["a"]), "none");
    assert_eq!(alone.missing[0].meant.as_deref(), Some("version v1"));
}

#[test]
fn a_version_that_is_gone_is_neither_used_nor_named() {
    let gone = ("g.io", "v9", "gauges", "Gauge", false);
    let mut both = with(&[GAUGES, gone]);
    for version in ["v11", "v2"] {
        lacks(&mut both, version);
    }
    let meant = |word: &str, version: &str, both: &Discovery| {
        let item = serde_json::json!([{"group": "g.io", "version": version, "kind": word, "name": "a"}]);
        let spec = serde_json::json!({"downSyncedResources": item});
        let plan = resolve(&super::super::tests::wanted_by_kind(&spec), both, both);
        plan.missing[0].meant.clone()
    };
    order(&mut both, &["v1", "v9"]);
    assert_eq!(meant("Gauge", "v11", &both).as_deref(), Some("version v1"));
    // What is known of v1 is from before: the side has listed its versions since.
    order(&mut both, &["v9"]);
    assert_eq!(meant("Gauge", "v11", &both).as_deref(), Some("version v9"));
    order(&mut both, &["v2"]);
    assert_eq!(meant("Gauge", "v11", &both), None);
    assert_eq!(meant("gauges", "v2", &both), None);
    let plan = resolve(&wanted(&[("a", "v1")], &[]), &with(&[GAUGES]), &both);
    assert_eq!(
        of_gauges(&plan, Direction::Down, &["a"]),
        "v1 v1 a",
        "it is what the config names"
    );
    let mut edge = both;
    edge.known.remove(&("g.io".to_owned(), "v1".to_owned()));
    lacks(&mut edge, "v1");
    let plan = resolve(&wanted(&[("a", "v1")], &[]), &with(&[GAUGES]), &edge);
    assert_eq!(
        of_gauges(&plan, Direction::Down, &["a"]),
        "none",
        "the other one is gone"
    );
    order(&mut edge, &["v9"]);
    let plan = resolve(&wanted(&[("a", "v1")], &[]), &with(&[GAUGES]), &edge);
    assert_eq!(of_gauges(&plan, Direction::Down, &["a"]), "v1 v9 a");
}

#[test]
fn of_several_served_versions_the_one_that_the_origins_side_prefers_counts_for_all() {
    for (direction, origin) in [(Direction::Down, Side::Hub), (Direction::Up, Side::Edge)] {
        for (preferred, other) in [("v1", "v2"), ("v2", "v1")] {
            let mut sides = [with(&[GAUGES, GAUGES_2]), with(&[GAUGES, GAUGES_2])];
            order(&mut sides[usize::from(origin == Side::Edge)], &[preferred, other]);
            order(&mut sides[usize::from(origin == Side::Hub)], &[other, preferred]);
            let [hub, edge] = sides;
            for named in [[("a", "v1"), ("b", "v2")], [("a", "v2"), ("b", "v1")]] {
                let wanted = match direction {
                    Direction::Down => wanted(&named, &[]),
                    Direction::Up => wanted(&[], &named),
                };
                let plan = resolve(&wanted, &hub, &edge);
                assert_eq!(
                    of_gauges(&plan, direction, &["a", "b"]),
                    format!("{preferred} {preferred} a b")
                );
                assert_eq!((plan.types.len(), reported(&plan)), (1, vec![]));
                let problems: Vec<_> = plan.problems.iter().map(ToString::to_string).collect();
                assert_eq!(problems.len(), 1, "{problems:?}");
                let why = format!("at version {preferred:?}, which another entry names and the {origin} prefers");
                assert!(problems[0].contains(&why), "{problems:?}");
            }
        }
    }
}

#[test]
fn which_of_several_versions_is_preferred_is_asked_before_any_of_them_is_used() {
    let mut hub = with(&[GAUGES, GAUGES_2]);
    let edge = hub.clone();
    let wanted = wanted(&[("a", "v1"), ("b", "v2")], &[]);
    assert!(resolve(&wanted, &hub, &edge).unknown.groups.is_empty());
    hub.groups = None;
    let plan = resolve(&wanted, &hub, &edge);
    assert_eq!(of_gauges(&plan, Direction::Down, &["a", "b"]), "none");
    assert!(plan.unknown.groups.contains(&Side::Hub) && plan.missing.is_empty() && plan.problems.is_empty());
    // One that the list does not name yet is used after those that it names, and the list is read again.
    hub.groups = edge.groups.clone();
    order(&mut hub, &["v2"]);
    let plan = resolve(&wanted, &hub, &edge);
    assert_eq!(of_gauges(&plan, Direction::Down, &["a", "b"]), "v2 v2 a b");
    assert!(plan.unknown.groups.contains(&Side::Hub));
}

#[test]
fn a_version_that_is_not_known_yet_stops_nobody_else_and_is_neither_planned_nor_missing() {
    let (known, mut hub) = (with(&[GAUGES]), with(&[GAUGES]));
    for version in ["v0", "v2"] {
        let plan = resolve(&wanted(&[("a", version), ("b", "v1")], &[]), &hub, &known);
        assert_eq!(of_gauges(&plan, Direction::Down, &["a", "b"]), "v1 v1 b");
        assert!(plan.missing.is_empty() && plan.problems.is_empty());
        assert_eq!(plan.unknown.group_versions.len(), 2);
    }
    // What is known of one version alone says nothing of the other.
    lacks(&mut hub, "v1");
    let mut edge = known.clone();
    lacks(&mut edge, "v2");
    let plan = resolve(&wanted(&[], &[("a", "v1"), ("b", "v2")]), &known, &edge);
    assert_eq!(of_gauges(&plan, Direction::Up, &["a", "b"]), "v1 v1 a");
    assert_eq!(reported(&plan), []);
}

#[test]
fn a_version_that_only_the_copies_side_serves_is_used_at_the_one_of_the_origins_side() {
    let mut hub = with(&[GAUGES]);
    lacks(&mut hub, "v2");
    let edge = with(&[GAUGES, GAUGES_2]);
    let plan = resolve(&wanted(&[("a", "v2"), ("b", "v1")], &[]), &hub, &edge);
    assert_eq!(of_gauges(&plan, Direction::Down, &["a", "b"]), "v1 v1 a b");
    let problem = plan.problems.first().unwrap().to_string();
    assert!(
        problem.contains("SyncerConfig//a") && problem.contains("the hub serves"),
        "{problem}"
    );
    let waits = |missing: &Missing| (missing.side, missing.absence) == (Side::Hub, Absence::Version);
    assert!(plan.missing.iter().all(waits), "{:?}", plan.missing);
    let alone = resolve(&wanted(&[("a", "v2")], &[]), &hub, &edge);
    assert_eq!(of_gauges(&alone, Direction::Down, &["a"]), "none");
    assert_eq!(reported(&alone), [(Side::Hub, "v2", Some("SyncerConfig//a"))]);
}

const SCALERS: [(&str, &str, &str, &str, bool); 2] = [
    (
        "autoscaling",
        "v1",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        true,
    ),
    (
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        true,
    ),
];

// Issue 41: autoscalers at v1 kept metrics in annotations, and what the hub dropped of them stayed in the copies.
#[test]
fn a_version_that_lacks_fields_counts_as_the_one_that_has_all_of_them() {
    let down = |version: &str| {
        let resource = serde_json::json!([{"group": "autoscaling", "resource": "horizontalpodautoscalers", "apiVersion": version}]);
        super::super::tests::wanted(
            &serde_json::json!({"namespaceScope": {"namespaces": ["shop"], "resources": resource}}),
        )
    };
    let up = |version: &str| {
        let item = serde_json::json!([{"group": "autoscaling", "version": version, "kind": "HorizontalPodAutoscaler",
            "namespace": "shop", "name": "*"}]);
        super::super::tests::wanted_by_kind(&serde_json::json!({"upSyncedResources": item}))
    };
    let (both, mut old) = (with(&SCALERS), with(&SCALERS[..1]));
    old.known.insert(("autoscaling".into(), "v2".into()), Served::NotServed);
    for (version, hub, edge, expected, lacking) in [
        ("v1", &both, &both, "v2", None),
        ("v2", &both, &both, "v2", None),
        ("v1", &both, &old, "v1", Some("the edge does not serve \"v2\"")),
        ("v1", &old, &both, "v1", Some("the hub does not serve \"v2\"")),
    ] {
        for (direction, wanted) in [(Direction::Down, down(version)), (Direction::Up, up(version))] {
            let plan = resolve(&wanted, hub, edge);
            let planned = &plan.types[&same(direction, "autoscaling", "horizontalpodautoscalers")];
            assert_eq!([&*planned.at_hub.version, &*planned.at_edge.version], [expected; 2]);
            let problems: Vec<_> = plan.problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems.len(), usize::from(lacking.is_some()), "{problems:?}");
            assert!(
                problems
                    .iter()
                    .zip(lacking)
                    .all(|(problem, words)| problem.contains(words)),
                "{problems:?}"
            );
        }
    }
    // It is asked about first, so that nothing is read twice.
    let mut unknown = both.clone();
    unknown.known.remove(&("autoscaling".to_owned(), "v2".to_owned()));
    let plan = resolve(&down("v1"), &both, &unknown);
    assert!(plan.types.keys().all(|pair| pair.hub.0 != "autoscaling") && plan.problems.is_empty());
    let asked = plan.unknown.group_versions.into_iter().collect::<Vec<_>>();
    assert_eq!(asked, [(Side::Edge, ("autoscaling".to_owned(), "v2".to_owned()))]);
}

#[test]
fn a_version_that_is_not_the_stored_one_is_noted_with_the_place_that_names_it() {
    let stored_elsewhere = |group: &str, discovery: &mut Discovery| {
        let known = discovery.known.get_mut(&(group.to_owned(), "v1".to_owned()));
        let Some(Served::Resources(resources)) = known else {
            return;
        };
        for served in resources.values_mut() {
            served.stored_elsewhere = true;
        }
    };
    let both = [GAUGES, ("g.io", "v2", "gauges", "Gauge", true)];
    let (plain, mut other) = (with(&both), with(&both));
    stored_elsewhere("g.io", &mut other);
    for (hub, edge, is_down, is_noted) in [
        (&plain, &plain, true, false),
        (&other, &plain, true, true),
        // What the side of the copies stores makes no difference.
        (&plain, &other, true, false),
        (&other, &plain, false, false),
        (&plain, &other, false, true),
    ] {
        let named: &[(&str, &str)] = &[("a", "v1")];
        let (wanted, direction) = if is_down {
            (wanted(named, &[]), Direction::Down)
        } else {
            (wanted(&[], named), Direction::Up)
        };
        let found = resolve(&wanted, hub, edge);
        let noted = &found.types[&same(direction, "g.io", "gauges")].not_stored;
        assert_eq!(noted.is_some(), is_noted, "{direction}");
        assert!(found.problems.is_empty() && noted.iter().all(|place| place.config.ends_with("//a")));
    }
    // Kubernetes stores a new version of its own types at the former one for a while.
    let mut hub = with(&SCALERS);
    stored_elsewhere("autoscaling", &mut hub);
    let resource =
        serde_json::json!([{"group": "autoscaling", "resource": "horizontalpodautoscalers", "apiVersion": "v2"}]);
    let spec = serde_json::json!({"namespaceScope": {"namespaces": ["shop"], "resources": resource}});
    let found = resolve(&super::super::tests::wanted(&spec), &hub, &hub);
    assert!(found.types.values().all(|planned| planned.not_stored.is_none()));
    // While the versions of the group are not known, it is not said, and they are asked for.
    let mut unasked = other;
    unasked.groups = None;
    let found = resolve(&wanted(&[("a", "v1")], &[]), &unasked, &plain);
    assert!(found.types.values().all(|planned| planned.not_stored.is_none()));
    assert!(found.unknown.groups.contains(&Side::Hub));
    // Where there is no other version, what kcp says means something else.
    let mut hub = with(&[GAUGES]);
    stored_elsewhere("g.io", &mut hub);
    let found = resolve(&wanted(&[("a", "v1")], &[]), &hub, &hub);
    assert!(found.types.values().all(|planned| planned.not_stored.is_none()));
}
