//! The largest configs in each shape, for tests of what they cost.

use std::collections::BTreeMap;

use kube_lite::ResourceType;
use kube_lite::discovery::{Catalogue, Discovery, Served, ServedResource};

/// What both sides serve: `count` types of the group `many.io`, and a few others.
pub(crate) fn serves(count: usize) -> Discovery {
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
    discovery.catalogue = Some(Catalogue::new());
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
pub(crate) fn shapes(count: usize) -> Vec<(&'static str, String)> {
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
