//! Objects that configs select and that are not synced, though no request for them fails: whoever sits at the hub sees why.

use super::*;
use crate::api::status::{Denied, OfEdge};
use crate::plan::Filter;

/// What this edge says of all configs together.
fn says(bench: &Bench) -> OfEdge {
    let (of_configs, total) = bench.model.of_edge(bench.model.hold_condition(), true);
    let [(_, ours)] = &of_configs[..] else {
        panic!("{of_configs:?}");
    };
    let counts = |of: &OfEdge| (of.selected, of.synced, of.failing, of.conflicts, of.denied.clone());
    assert_eq!(counts(ours), counts(&total), "the only config says the same");
    total
}

fn by_kind(objects: &[&str], conversions: &Value) -> Value {
    let object = |name: &&str| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name});
    let objects: Vec<Value> = objects.iter().map(object).collect();
    config(
        "all",
        &json!({"downSyncedResources": objects, "conversions": conversions}),
    )
}

/// One that follows an `EdgeSyncConfig`, and has listed all there is: nothing.
fn following(objects: &[&str], conversions: &Value) -> Bench {
    let mut bench = Bench::new();
    bench.run();
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[by_kind(objects, conversions)]);
    bench.list_all(1);
    bench
}

fn renames(from: &str, to: &str) -> Value {
    json!([{"upstream": {"kind": "ConfigMap", "name": from}, "downstream": {"kind": "ConfigMap", "name": to}}])
}

type Ends = fn(&mut Bench);

#[test]
fn an_object_without_a_namespace_or_a_name_fails_for_that_reason_until_it_has_one_or_is_gone() {
    let nothing: Ends = |_| {};
    let no_namespace: Ends = |bench| bench.fail(Side::Edge, not_found("namespaces", "shop"));
    let taken: Ends = |bench| bench.end_with("a", Why::NameTaken("ConfigMap/shop/other".to_owned()));
    for (conversions, origin, end, reason, side, words) in [
        (
            json!([]),
            "a",
            no_namespace,
            "NamespaceNotSelected",
            "edge",
            "add an entry of kind Namespace",
        ),
        (
            json!([]),
            "a",
            taken,
            "NameTaken",
            "hub",
            "the copy of ConfigMap/shop/other has its name",
        ),
        (
            renames("a", "kube-root-ca.crt"),
            "a",
            nothing,
            "Conflict",
            "hub",
            "never synced: ConfigMap/shop/kube-root-ca.crt",
        ),
        (
            renames("b", "a"),
            "a",
            nothing,
            "NameTaken",
            "hub",
            "the copy of ConfigMap/shop/b has its name",
        ),
    ] {
        let mut bench = following(&["*"], &conversions);
        let origins = bench.origins();
        bench.says(origins, &config_map(origin, 10));
        end(&mut bench);
        for again in 0..3 {
            let ours = says(&bench);
            let [failure] = &ours.failures[..] else {
                panic!("{reason} {again}: {ours:?}");
            };
            let found = (&*failure.reason, &*failure.side, &*failure.object);
            assert_eq!(found, (reason, side, "ConfigMap/shop/a"), "{again}");
            assert!(failure.message.contains(words), "{}", failure.message);
            assert_eq!(
                (ours.selected, ours.synced, ours.failing + ours.conflicts),
                (1, 0, 1),
                "{reason}"
            );
            // That it is reported again changes nothing.
            bench.says(origins, &config_map(origin, 40 + again));
            if !bench.work.is_empty() {
                end(&mut bench);
            }
        }
        bench.says_gone(origins, &config_map(origin, 50));
        while !bench.work.is_empty() {
            bench.end_with("a", Why::Gone);
        }
        assert_eq!(
            (says(&bench).failures.len(), bench.model.report.failing()),
            (0, 0),
            "{reason}"
        );
    }
}

#[test]
fn an_origin_without_a_name_that_no_list_names_any_more_fails_no_longer() {
    let mut bench = following(&["*"], &renames("b", "a"));
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 11);
    assert_eq!(says(&bench).failing, 1);
    bench.list(origins, &[], 12);
    assert_eq!((says(&bench).failing, bench.model.report.failing()), (0, 0));
    // Nor once the conversion is another one, or is gone.
    for conversions in [renames("b", "c"), json!([])] {
        bench.list_configs(ConfigKind::EdgeSyncConfig, &[by_kind(&["*"], &renames("b", "a"))]);
        bench.list_all(13);
        let origins = bench.origins();
        bench.list(origins, &[config_map("a", 10)], 14);
        assert_eq!(says(&bench).failing, 1, "{conversions}");
        bench.list_configs(ConfigKind::EdgeSyncConfig, &[by_kind(&["*"], &conversions)]);
        assert_eq!(
            (says(&bench).failing, bench.model.report.failing()),
            (0, 0),
            "{conversions}"
        );
    }
}

#[test]
fn objects_that_the_edge_denies_are_counted_by_rule_and_do_not_fail() {
    let mut filter = Filter::default();
    filter.add_file("rules", "deny-namespace shop").expect("it is a rule");
    let bench = Bench::with(|settings| settings.filter = Rc::new(filter));
    let mut bench = bench.selecting(&["configmaps"]);
    let origins = bench.origins();
    let denied = |bench: &Bench| {
        let ours = says(bench);
        assert_eq!((ours.selected, ours.failing, ours.failures.len()), (0, 0, 0));
        ours.denied
    };
    let of = |objects| {
        let rule = "--deny-namespace shop".to_owned();
        vec![Denied { rule, objects }]
    };
    // The Namespace too is denied, and only implied.
    for name in ["a", "b", "kube-root-ca.crt"] {
        bench.says(origins, &config_map(name, 10));
    }
    assert_eq!(denied(&bench), of(2), "one that is never synced is not missed");
    bench.says(origins, &config_map("a", 11));
    assert_eq!(denied(&bench), of(2));
    bench.says_gone(origins, &config_map("a", 12));
    assert_eq!(denied(&bench), of(1));
    bench.list(origins, &[config_map("c", 13), config_map("d", 13)], 14);
    assert_eq!(denied(&bench), of(2));
    bench.config_says(&config("all", &json!({})));
    assert_eq!(denied(&bench), []);
}
