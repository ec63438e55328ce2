//! What planning costs, by the size of the configs.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::*;
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;
use crate::cluster::discovery::{Discovery, Served, ServedResource};
use crate::cluster::{ObjectName, ResourceType};

/// What both sides serve: `count` types of the group `many.io`, and a few others.
fn serves(count: usize) -> Discovery {
    let served = |group: &str, plural: &str, kind: &str, namespaced| {
        let resource = ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: plural.into(),
            kind: kind.into(),
            namespaced,
        };
        let served = ServedResource::ordinary(resource);
        (plural.to_owned(), served)
    };
    let many = (0..count).map(|index| served("many.io", &format!("t{index}s"), &format!("T{index}"), true));
    let core = [
        served("", "configmaps", "ConfigMap", true),
        served("", "secrets", "Secret", true),
        served("", "namespaces", "Namespace", false),
    ];
    let mut discovery = Discovery::default();
    for (group, types) in [("", BTreeMap::from(core)), ("many.io", many.collect())] {
        let key = (group.to_owned(), "v1".to_owned());
        discovery.known.insert(key, Served::Resources(types));
    }
    discovery.groups = Some([("many.io".to_owned(), vec!["v1".to_owned()])].into());
    discovery
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn by_kind(down: &str, up: &str, conversions: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"e"}},"spec":{{"downSyncedResources":[{down}],"upSyncedResources":[{up}],"conversions":[{conversions}]}}}}"#
    )
}

fn by_plural(spec: &str) -> String {
    format!(r#"{{"metadata":{{"name":"s"}},"spec":{{{spec}}}}}"#)
}

fn object(kind: &str, namespace: &str, name: &str) -> String {
    format!(r#"{{"version":"v1","kind":"{kind}","namespace":"{namespace}","name":"{name}"}}"#)
}

fn conversions(count: usize, from: &str, to: &str) -> String {
    list(count.min(4000), |index| {
        format!(
            r#"{{"upstream":{{"kind":"{from}","name":"a{index}"}},"downstream":{{"kind":"{to}","name":"b{index}"}}}}"#
        )
    })
}

/// The largest configs of each shape, with about `count` entries.
fn shapes(count: usize) -> Vec<(&'static str, String)> {
    [shapes_by_kind(count), shapes_by_plural(count)].concat()
}

fn shapes_by_kind(count: usize) -> Vec<(&'static str, String)> {
    let maps = |namespaces: usize| {
        list(count, |index| {
            object("ConfigMap", &format!("n{}", index % namespaces), &format!("a{index}"))
        })
    };
    vec![
        (
            "renamed",
            by_kind(&maps(10), "", &conversions(count, "ConfigMap", "ConfigMap")),
        ),
        (
            "of another kind",
            by_kind(&maps(10), "", &conversions(count, "ConfigMap", "Secret")),
        ),
        (
            "all of many namespaces, of another kind",
            by_kind(
                &list(count, |index| object("ConfigMap", &format!("n{index}"), "*")),
                "",
                &conversions(count, "ConfigMap", "Secret"),
            ),
        ),
        (
            "both directions",
            by_kind(
                &maps(count),
                &maps(count),
                &conversions(count, "ConfigMap", "ConfigMap"),
            ),
        ),
        (
            "kinds that nobody serves",
            by_kind(&list(count, |index| object(&format!("X{index}"), "n", "a")), "", ""),
        ),
        (
            "kinds that nobody serves in a large group",
            by_kind(
                &list(count, |index| {
                    format!(r#"{{"group":"many.io","version":"v1","kind":"X{index}","namespace":"n","name":"a"}}"#)
                }),
                "",
                "",
            ),
        ),
        (
            "groups that are not known",
            by_kind(
                &list(count, |index| {
                    format!(r#"{{"group":"g{index}.io","version":"v1","kind":"X","namespace":"n","name":"a"}}"#)
                }),
                "",
                "",
            ),
        ),
        ("mistakes", by_kind(&list(count, |_| object("", "n", "a")), "", "")),
    ]
}

fn shapes_by_plural(count: usize) -> Vec<(&'static str, String)> {
    let words = |count: usize, word: &str| list(count, |index| format!("\"{word}{index}\""));
    vec![
        (
            "plurals",
            by_plural(&format!(
                r#""clusterScope":[{}]"#,
                list(count, |index| format!(
                    r#"{{"group":"many.io","resource":"t{index}s","apiVersion":"v1"}}"#
                ))
            )),
        ),
        (
            "names of one type",
            by_plural(&format!(
                r#""namespacedObjects":[{{"group":"","resource":"configmaps","apiVersion":"v1","objectsByNamespace":[{}]}}]"#,
                list(count, |index| format!(
                    r#"{{"namespace":"n{index}","names":["a","b"]}}"#
                ))
            )),
        ),
        (
            "namespaces of all types",
            by_plural(&format!(
                r#""namespaceScope":{{"namespaces":[{}],"resources":[{}]}}"#,
                words(count, "n"),
                list(count, |index| format!(
                    r#"{{"group":"many.io","resource":"t{index}s","apiVersion":"v1"}}"#
                ))
            )),
        ),
        (
            "all types of a group by many entries",
            by_plural(&format!(
                r#""upsync":[{}]"#,
                list(count, |index| format!(
                    r#"{{"apiGroup":"many.io","resources":["*"],"namespaces":["*"],"names":["a{index}"]}}"#
                ))
            )),
        ),
        (
            "types times names",
            by_plural(&format!(
                r#""upsync":[{}]"#,
                list(count / 100, |_| format!(
                    r#"{{"apiGroup":"many.io","resources":[{}],"namespaces":["*"],"names":[{}]}}"#,
                    list(count / 100, |index| format!("\"t{index}s\"")),
                    words(60, "a")
                ))
            )),
        ),
        (
            "large lists of names of one type",
            by_plural(&format!(
                r#""upsync":[{}]"#,
                list(count / 10, |index| format!(
                    r#"{{"apiGroup":"","resources":["configmaps"],"namespaces":["n{index}"],"names":[{}]}}"#,
                    words(70, "a")
                ))
            )),
        ),
    ]
}

/// What of a text was read.
fn wanted(config: &str) -> Wanted {
    if config.contains("downSyncedResources") {
        let config = EdgeSyncConfig::parse(config.as_bytes()).unwrap();
        Wanted::from_configs([], [&config], true)
    } else {
        let config = SyncerConfig::parse(config.as_bytes()).unwrap();
        Wanted::from_configs([&config], [], true)
    }
}

/// Types that were synced once, some of which are selected and some not served any more.
fn synced_once(count: usize) -> BTreeSet<SyncedType> {
    let types = (0..count).flat_map(|index| {
        [Direction::Down, Direction::Up].map(|direction| SyncedType {
            direction,
            group: "many.io".into(),
            version: "v1".into(),
            resource: format!("t{index}s"),
            of: None,
        })
    });
    types.collect()
}

/// How many steps a plan takes, and the questions about a hundred objects.
fn steps_of(config: &str, known: usize, served: &Discovery) -> usize {
    let mut wanted = wanted(config);
    wanted.retained = synced_once(known);
    steps::taken();
    let plan = Plan::resolve(&wanted, &Filter::default(), served, served, Some("own"));
    for planned in plan.types.values().take(1) {
        for index in 0..100 {
            let _ = planned.selector.selects(&ObjectName::new("n1", &format!("a{index}")));
        }
    }
    steps::taken()
}

#[test]
fn the_steps_of_a_plan_grow_as_the_configs_do() {
    const FEW: usize = 1000;
    const MANY: usize = 10_000;
    let (few_served, many_served) = (serves(FEW / 10), serves(MANY / 10));
    for ((shape, few), (_, many)) in shapes(FEW).into_iter().zip(shapes(MANY)) {
        let (few_steps, many_steps) = (
            steps_of(&few, FEW / 10, &few_served),
            steps_of(&many, MANY / 10, &many_served),
        );
        // The parts of a shape do not grow alike, and conversions have a limit: a product of two of them is found by the bytes.
        let growth = many.len().div_ceil(few.len()).max(MANY / FEW);
        assert!(
            many_steps <= 3 * growth * few_steps,
            "{shape}: {few_steps} steps for {} bytes, {many_steps} for {}",
            few.len(),
            many.len()
        );
        assert!(
            many_steps <= 4 * many.len(),
            "{shape}: {many_steps} steps for {} bytes",
            many.len()
        );
    }
}

/// How long a config of 10,000 entries takes in each shape, for a look with `cargo test --release`.
#[test]
#[ignore = "prints times"]
#[expect(clippy::print_stdout, reason = "people read it")]
fn times() {
    let served = serves(1000);
    for (shape, config) in shapes(10_000) {
        let mut since = Instant::now();
        let mut lap = || {
            let took = since.elapsed();
            since = Instant::now();
            took
        };
        let wanted = wanted(&config);
        let read = lap();
        let plan = Plan::resolve(&wanted, &Filter::default(), &served, &served, Some("own"));
        let resolved = lap();
        let selectors: Vec<_> = plan.types.values().map(|planned| &planned.selector).take(2).collect();
        if let [first, second] = selectors[..] {
            let _ = first.added_to(second);
        }
        let compared = lap();
        for selector in &selectors {
            for index in 0..10_000 {
                let _ = selector.selects(&ObjectName::new("n1", &format!("a{index}")));
            }
        }
        let asked = lap();
        let (bytes, types) = (config.len(), plan.types.len());
        println!(
            "{shape}: {bytes} bytes read and merged {read:?}, {types} types planned {resolved:?}, compared {compared:?}, asked {asked:?}"
        );
    }
}
