use kube_lite::discovery::{Catalogue, Discovery, Served};
use serde_json::{Value, json};

use super::super::tests::{CORE, Types, resolve, serves, wanted, wanted_by_kind};
use super::SOUGHT;
use crate::plan::Plan;
use crate::side::Side;

/// Both sides serve these, and lack the group versions that entries name.
fn both() -> Discovery {
    let mut types: Vec<_> = CORE.to_vec();
    types.extend([
        ("apps", "v1", "deployments", "Deployment", true),
        ("g.io", "v2", "dials", "Dial", true),
    ]);
    let types: &Types = &types;
    let mut both = serves(types);
    let known = both.known.get_mut(&("apps".to_owned(), "v1".to_owned()));
    if let Some(Served::Resources(resources)) = known {
        resources.get_mut("deployments").unwrap().aliases = "deploy".into();
    }
    for (group, version) in [
        ("apps", "v11"),
        ("app", "v1"),
        ("h", "v1"),
        ("certs.i", "v1"),
        ("certs.i", "v2"),
    ] {
        let absent = (group.to_owned(), version.to_owned());
        both.known.insert(absent, Served::NotServed);
    }
    both
}

/// Both sides, and what else the edge has when it is asked for all.
fn with_catalogue() -> (Discovery, Discovery) {
    let (hub, mut edge) = (both(), both());
    let mut more = serves(&[
        ("certs.io", "v2", "certificates", "Certificate", true),
        ("batch", "v1", "cronjobs", "CronJob", true),
        ("old.io", "v1", "cronjobs", "CronJob", true),
    ]);
    let listed = more.known.iter().map(|((group, _), _)| (group.clone(), vec![]));
    edge.groups.as_mut().unwrap().extend(listed);
    // What can only be created cannot be meant.
    for group in ["batch", "old.io"] {
        if let Some(Served::Resources(resources)) = more.known.get_mut(&(group.to_owned(), "v1".to_owned())) {
            resources.get_mut("cronjobs").unwrap().watchable = group == "batch";
        }
    }
    edge.catalogue = Some(more.known);
    (hub, edge)
}

fn by_plural(group: &str, version: &str, word: &str) -> Value {
    let resource = json!([{"group": group, "resource": word, "apiVersion": version}]);
    json!({"namespaceScope": {"namespaces": ["shop"], "resources": resource}})
}

fn by_kind(group: &str, version: &str, word: &str) -> Value {
    let item = json!([{"group": group, "version": version, "kind": word, "namespace": "s", "name": "*"}]);
    json!({"downSyncedResources": item})
}

fn up(group: &str, word: &str) -> Value {
    json!({"upsync": [{"apiGroup": group, "resources": [word], "names": ["*"]}]})
}

fn meant(plan: &Plan) -> Option<&str> {
    plan.missing[0].meant.as_deref()
}

#[test]
fn what_is_meant_is_named_in_the_words_of_the_entry() {
    let (hub, edge) = with_catalogue();
    for (group, version, word, plural, kind) in [
        ("apps", "v1", "deployment", "deployments", "Deployment"),
        ("apps", "v1", "Deployments", "deployments", "Deployment"),
        ("apps", "v1", "deploy", "deployments", "Deployment"),
        ("apps", "v11", "deployments", "version v1", "Deployment at version v1"),
        (
            "apps",
            "v11",
            "deploy",
            "deployments at version v1",
            "Deployment at version v1",
        ),
        ("g.io", "v1", "dial", "dials at version v2", "Dial at version v2"),
        // Other letters.
        ("apps", "v1", "deploymnts", "deployments", "Deployment"),
        ("apps", "v1", "Deploymet", "deployments", "Deployment"),
        (
            "apps",
            "v11",
            "depolyments",
            "deployments at version v1",
            "Deployment at version v1",
        ),
        ("", "v1", "confgmaps", "configmaps", "ConfigMap"),
        ("g.io", "v1", "other", "others", "Other"),
        ("g.io", "v1", "othres", "others", "Other"),
        // Another group, which was asked for already, or is in the list of all.
        (
            "app",
            "v1",
            "deployments",
            "deployments in group apps",
            "Deployment in group apps",
        ),
        (
            "h",
            "v1",
            "Deployment",
            "deployments in group apps",
            "Deployment in group apps",
        ),
        (
            "",
            "v1",
            "deployments",
            "deployments in group apps",
            "Deployment in group apps",
        ),
        (
            "apps",
            "v1",
            "configmaps",
            "configmaps in group \"\"",
            "ConfigMap in group \"\"",
        ),
        (
            "apps",
            "v11",
            "configmap",
            "configmaps in group \"\" at version v1",
            "ConfigMap in group \"\" at version v1",
        ),
        ("", "v1", "CronJob", "cronjobs in group batch", "CronJob in group batch"),
        (
            "certs.i",
            "v2",
            "certificates",
            "certificates in group certs.io",
            "Certificate in group certs.io",
        ),
        // Both the group and the word.
        (
            "app",
            "v1",
            "deploymnts",
            "deployments in group apps",
            "Deployment in group apps",
        ),
        (
            "certs.i",
            "v1",
            "certificats",
            "certificates in group certs.io at version v2",
            "Certificate in group certs.io at version v2",
        ),
        // Nothing is like that.
        ("apps", "v1", "statefulsets", "", ""),
        ("h", "v1", "gauges", "", ""),
    ] {
        let is = |expected: &'static str| Some(expected).filter(|expected| !expected.is_empty());
        let plan = resolve(&wanted(&by_plural(group, version, word)), &hub, &edge);
        assert_eq!(meant(&plan), is(plural), "{group} {version} {word}");
        let plan = resolve(&wanted_by_kind(&by_kind(group, version, word)), &hub, &edge);
        assert_eq!(meant(&plan), is(kind), "{group} {version} {word}");
        let plan = resolve(&wanted(&up(group, word)), &hub, &edge);
        if plan.missing.iter().any(|missing| missing.side == Side::Edge) {
            let without_version = plural.split(" at ").next().unwrap();
            assert_eq!(meant(&plan), is(without_version), "{group} {word} up");
        }
    }
}

#[test]
fn a_misspelt_group_of_which_all_is_selected_is_named_too() {
    let (hub, edge) = with_catalogue();
    for (group, expected) in [("app", Some("apps")), ("cert.io", Some("certs.io")), ("h", None)] {
        let plan = resolve(&wanted(&up(group, "*")), &hub, &edge);
        assert_eq!(meant(&plan), expected, "{group}");
    }
}

#[test]
fn all_that_the_edge_serves_is_asked_for_only_where_nothing_else_answers_to_a_word() {
    let (known, mut unasked) = (both(), both());
    unasked.catalogue = None;
    for (group, word, asks) in [
        ("apps", "deployment", false),
        ("apps", "deploymnts", false),
        ("", "deployments", false),
        ("app", "deployments", false),
        ("apps", "statefulsets", true),
        ("h", "gauges", true),
    ] {
        let spec = by_plural(group, "v1", word);
        let reported = |plan: &Plan| plan.missing.iter().any(crate::plan::planned::Missing::is_reported);
        let plan = resolve(&wanted(&spec), &known, &unasked);
        assert_eq!(plan.unknown.catalogue, asks, "{group} {word}");
        // Until then it is not said that it is missing, so that it is said once.
        assert_eq!(reported(&plan), !asks, "{group} {word}");
        let plan = resolve(&wanted(&spec), &known, &known);
        assert!(!plan.unknown.catalogue, "{group} {word}");
    }
    // What a side lacks alone puzzles nobody.
    let hub = serves(&CORE);
    let mut hub = Discovery { catalogue: None, ..hub };
    hub.known
        .insert(("apps".to_owned(), "v1".to_owned()), Served::NotServed);
    let plan = resolve(&wanted(&by_plural("apps", "v1", "deployments")), &hub, &unasked);
    assert!(!plan.unknown.catalogue && !plan.is_puzzled && meant(&plan).is_none());
}

#[test]
fn the_core_group_is_asked_for_too_if_nothing_else_has_done_so() {
    let (hub, mut edge) = with_catalogue();
    let core = edge.known.remove(&(String::new(), "v1".to_owned()));
    let spec = by_kind("h", "v1", "ConfigMap");
    let plan = resolve(&wanted_by_kind(&spec), &hub, &edge);
    assert_eq!(meant(&plan), Some("ConfigMap in group \"\""), "the hub was asked");
    let mut hub = hub;
    hub.known.remove(&(String::new(), "v1".to_owned()));
    let plan = resolve(&wanted_by_kind(&spec), &hub, &edge);
    let asked: Vec<_> = plan.unknown.group_versions.iter().collect();
    assert_eq!(asked, [&(Side::Edge, (String::new(), "v1".to_owned()))]);
    assert!(plan.missing.iter().all(|missing| !missing.is_reported()));
    edge.known
        .extend(core.map(|core| ((String::new(), "v1".to_owned()), core)));
    let plan = resolve(&wanted_by_kind(&spec), &hub, &edge);
    assert_eq!(meant(&plan), Some("ConfigMap in group \"\""));
}

// Otherwise a config of ten thousand misspelt words would cost a slow board minutes.
#[test]
fn what_is_spelt_alike_is_sought_for_the_first_words_only() {
    let (hub, edge) = with_catalogue();
    let resources: Vec<Value> = (0..2 * SOUGHT)
        .map(|index| json!({"group": "apps", "resource": format!("deployment{index}"), "apiVersion": "v1"}))
        .collect();
    let spec = json!({"namespaceScope": {"namespaces": ["shop"], "resources": resources}});
    let sought = |edge: &Discovery| {
        let plan = resolve(&wanted(&spec), &hub, edge);
        assert!(plan.missing.iter().any(|missing| missing.meant.is_some()));
        crate::plan::steps::taken()
    };
    let all = sought(&edge);
    let mut larger = edge;
    let mut more = Catalogue::new();
    for index in 0..100 {
        more.insert((format!("g{index}.io"), "v1".to_owned()), Served::NotServed);
    }
    larger.catalogue.as_mut().unwrap().extend(more);
    assert!(sought(&larger) < all + 200 * SOUGHT);
}
