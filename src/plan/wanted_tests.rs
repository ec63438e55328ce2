use kube_lite::discovery::{Discovery, Served, ServedResource};
use kube_lite::{ObjectName, ResourceType};

use super::*;
use crate::plan::{Bounds, Filter, Plan, Selection};

fn config(name: &str, spec: &serde_json::Value) -> SyncerConfig {
    let object = serde_json::json!({"metadata": {"name": name}, "spec": spec});
    SyncerConfig::parse(object.to_string().as_bytes()).unwrap()
}

fn wanted(spec: &serde_json::Value) -> Wanted {
    Wanted::from_configs([&config("the-one", spec)], [], true)
}

/// How an object is selected where both sides serve all that the tests name.
fn selection(wanted: &Wanted, group: &str, resource: &str, namespace: &str, name: &str) -> Selection {
    let mut discovery = Discovery::default();
    for (group, plural, namespaced) in [
        ("", "configmaps", true),
        ("", "namespaces", false),
        ("apps", "deployments", true),
        ("m.example.org", "gauges", false),
        ("rbac.authorization.k8s.io", "clusterroles", false),
        ("rbac.authorization.k8s.io", "clusterrolebindings", false),
        ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ] {
        let served = ServedResource::ordinary(ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: plural.into(),
            kind: plural.to_uppercase(),
            namespaced,
        });
        let known = discovery.known.entry((group.into(), "v1".into()));
        if let Served::Resources(resources) = known.or_insert_with(|| Served::Resources([].into())) {
            resources.insert(plural.into(), served);
        }
    }
    let mut filter = Filter::default();
    filter.keep_out_of(Bounds::default());
    let plan = Plan::resolve(wanted, &filter, &discovery, &discovery, None);
    let of_type = |planned: &&crate::plan::TypePlan| planned.at_hub.is(group, resource);
    plan.types.values().find(of_type).map_or(Selection::None, |planned| {
        planned.selector.selects(&ObjectName::new(namespace, name))
    })
}

#[test]
fn selects_what_spec_section_1_says() {
    let wanted = wanted(&serde_json::json!({
        "namespaceScope": {
            "namespaces": ["shop"],
            "resources": [{"group": "apps", "resource": "deployments", "apiVersion": "v1"}],
        },
        "namespacedObjects": [{
            "group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [
                {"namespace": "shop", "names": ["settings"]},
                {"namespace": "billing", "names": ["*"]},
                {"namespace": "unused", "names": []},
                {"namespace": "absent"},
            ],
        }],
        "clusterScope": [
            {"group": "m.example.org", "resource": "gauges", "apiVersion": "v1"},
            {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": []},
            {"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "apiVersion": "v1", "objects": ["*"]},
            {"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1", "objects": ["a.b"]},
            {"group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["billing"]},
        ],
    }));
    assert_eq!(wanted.problems, BTreeSet::new());
    let rbac = "rbac.authorization.k8s.io";
    for (group, resource, namespace, name, expected) in [
        ("apps", "deployments", "shop", "any", Selection::Full),
        ("apps", "deployments", "billing", "any", Selection::None),
        ("", "configmaps", "shop", "settings", Selection::Full),
        ("", "configmaps", "shop", "other", Selection::None),
        ("", "configmaps", "billing", "any", Selection::Full),
        ("", "configmaps", "unused", "any", Selection::None),
        ("m.example.org", "gauges", "", "any", Selection::Full),
        (rbac, "clusterroles", "", "any", Selection::None),
        (rbac, "clusterrolebindings", "", "any", Selection::Full),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "",
            "a.b",
            Selection::Full,
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "",
            "c.d",
            Selection::None,
        ),
        ("", "namespaces", "", "shop", Selection::Implied),
        ("", "namespaces", "", "billing", Selection::Full),
        ("", "namespaces", "", "unused", Selection::None),
        ("", "namespaces", "", "absent", Selection::None),
    ] {
        let got = selection(&wanted, group, resource, namespace, name);
        assert_eq!(got, expected, "{resource}.{group} {namespace}/{name}");
    }
}

#[test]
fn several_configs_act_as_their_union_in_any_order() {
    let a = config(
        "a",
        &serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}]}),
    );
    let b = config(
        "b",
        &serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": ["x", "y"]}]}]}),
    );
    let both = Wanted::from_configs([&a, &b], [], true);
    assert_eq!(both, Wanted::from_configs([&b, &a], [], true));
    assert_eq!(selection(&both, "", "configmaps", "shop", "x"), Selection::Full);
    assert_eq!(selection(&both, "", "configmaps", "shop", "y"), Selection::Full);
    let only_a = Wanted::from_configs([&a], [], true);
    assert_eq!(selection(&only_a, "", "configmaps", "shop", "x"), Selection::Full);
    assert_eq!(selection(&only_a, "", "configmaps", "shop", "y"), Selection::None);
}

#[test]
fn reports_what_cannot_be_followed_and_follows_the_rest() {
    let cases = [
        (
            "clusterScope",
            serde_json::json!([{"group": "", "resource": "*", "apiVersion": "v1"}]),
            "clusterScope[0].resource",
        ),
        (
            "clusterScope",
            serde_json::json!([{"group": "", "resource": "", "apiVersion": "v1"}]),
            "clusterScope[0].resource",
        ),
        (
            "clusterScope",
            serde_json::json!([{"group": "apps", "resource": "deployments/scale", "apiVersion": "v1"}]),
            "clusterScope[0].resource",
        ),
        (
            "clusterScope",
            serde_json::json!([{"group": "apps", "resource": "x", "apiVersion": "apps/v1"}]),
            "clusterScope[0].apiVersion",
        ),
        (
            "clusterScope",
            serde_json::json!([{"group": "apis.kcp.io", "resource": "apibindings", "apiVersion": "v1alpha1"}]),
            "clusterScope[0].resource",
        ),
        (
            "namespaceScope",
            serde_json::json!({"namespaces": ["*"], "resources": []}),
            "namespaceScope.namespaces[0]",
        ),
    ];
    for (key, value, field) in cases {
        let mut spec = serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}]});
        spec[key] = value;
        let wanted = wanted(&spec);
        assert_eq!(
            wanted
                .problems
                .iter()
                .map(|problem| problem.place.field.as_str())
                .collect::<Vec<_>>(),
            [field]
        );
        assert_eq!(selection(&wanted, "", "configmaps", "shop", "x"), Selection::Full);
    }
}

/// Each of these was taken silently.
#[test]
fn an_entry_that_can_never_match_is_reported_with_its_field() {
    let core = |namespace: &str, name: &str| {
        serde_json::json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": namespace, "names": [name]}]}])
    };
    let scope = |namespace: &str| serde_json::json!({"namespaces": [namespace], "resources": []});
    let upsync = |more: serde_json::Value| {
        let mut entry = serde_json::json!({"apiGroup": "g", "resources": ["*"], "namespaces": ["*"], "names": ["*"]});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::json!([entry])
    };
    let names = "namespacedObjects[0].objectsByNamespace[0].names";
    for (key, value, expected) in [
        ("namespaceScope", scope("sho*"), Some("namespaceScope.namespaces[0]")),
        ("namespaceScope", scope("Shop!"), Some("namespaceScope.namespaces[0]")),
        ("namespacedObjects", core("shop", "pri*"), Some(names)),
        ("namespacedObjects", core("shop", "Prices"), Some(names)),
        ("namespacedObjects", core("shop", "prices"), None),
        ("upsync", upsync(serde_json::json!({})), None),
        (
            "upsync",
            upsync(serde_json::json!({"names": []})),
            Some("upsync[0].names"),
        ),
        (
            "upsync",
            upsync(serde_json::json!({"names": ["pri*"]})),
            Some("upsync[0].names"),
        ),
        (
            "upsync",
            upsync(serde_json::json!({"resources": []})),
            Some("upsync[0].resources"),
        ),
        (
            "upsync",
            upsync(serde_json::json!({"namespaces": ["sho*"]})),
            Some("upsync[0].namespaces"),
        ),
        (
            "upsync",
            upsync(serde_json::json!({"apiGroup": "apis.kcp.io"})),
            Some("upsync[0].resources[0]"),
        ),
    ] {
        let wanted = wanted(&serde_json::json!({key: value}));
        let fields: Vec<_> = wanted.problems.iter().map(|problem| &*problem.place.field).collect();
        assert_eq!(fields, expected.into_iter().collect::<Vec<_>>(), "{key} {value}");
    }
}

#[test]
fn of_two_conversions_that_contradict_each_other_the_first_counts_and_the_other_is_reported() {
    let esc = |name: &str, from: &str, to: &str| {
        let side = |name: &str| serde_json::json!({"kind": "K", "name": name});
        let object = serde_json::json!({"metadata": {"name": name}, "spec": {
            "conversions": [{"upstream": side(from), "downstream": side(to)}]}});
        EdgeSyncConfig::parse(object.to_string().as_bytes()).unwrap()
    };
    let (a, b, c) = (esc("a", "x", "y"), esc("b", "x", "z"), esc("c", "x", "y"));
    let wanted = Wanted::from_configs([], [&c, &b, &a], true);
    assert_eq!(wanted.conversions.len(), 1);
    assert_eq!(wanted.conversions[0].edge.name, "y");
    let problem = wanted.problems.first().unwrap().to_string();
    assert!(
        problem.starts_with("EdgeSyncConfig//b spec.conversions[0]: contradicts"),
        "{problem}"
    );
    assert_eq!(wanted.problems.len(), 1);
    assert!(Wanted::from_configs([], [&a], false).conversions.is_empty());
}

/// A word of 66,000 characters made a request that could not even be written.
#[test]
fn what_nothing_can_be_called_is_a_problem_and_no_request() {
    let long = "x".repeat(66_000);
    let resource = |group: &str, resource: &str, version: &str| serde_json::json!({"group": group, "resource": resource, "apiVersion": version});
    let mut spec = serde_json::json!({
        "namespaceScope": {
            "namespaces": ["shop", long, "a/../b", "Shop"],
            "resources": [resource("", "configmaps", "v1"), resource(&long, "a", "v1"), resource("", &long, "v1"),
                resource("", "a", &long), resource("", "..", "v1")],
        },
        "namespacedObjects": [resource("", "configmaps", "v1"), resource("", "configmaps", "v1")],
        "clusterScope": [resource("", "namespaces", "v1")],
        "upsync": [{"apiGroup": long, "resources": ["*"], "names": ["*"]},
            {"resources": ["configmaps", long], "namespaces": ["*"], "names": ["a", "b/c", long]},
            {"resources": ["configmaps"], "namespaces": [long, "shop"], "names": ["*"]}],
    });
    spec["namespacedObjects"][0]["objectsByNamespace"] = serde_json::json!([{"namespace": long, "names": ["*"]}]);
    spec["namespacedObjects"][1]["objectsByNamespace"] = serde_json::json!([{"namespace": "till", "names": [long]}]);
    spec["clusterScope"][0]["objects"] = serde_json::json!(["a/b", "green", ".."]);
    let wanted = wanted(&spec);
    let places: Vec<_> = wanted.problems.iter().map(|problem| &*problem.place.field).collect();
    assert_eq!(
        places,
        [
            "clusterScope[0].objects",
            "namespaceScope.namespaces[1]",
            "namespaceScope.namespaces[2]",
            "namespaceScope.namespaces[3]",
            "namespaceScope.resources[1].group",
            "namespaceScope.resources[2].resource",
            "namespaceScope.resources[3].apiVersion",
            "namespaceScope.resources[4].resource",
            "namespacedObjects[0].objectsByNamespace[0].namespace",
            "namespacedObjects[1].objectsByNamespace[0].names",
            "upsync[0].apiGroup",
            "upsync[1].names",
            "upsync[1].resources[1]",
            "upsync[2].namespaces",
        ]
    );
    assert!(wanted.problems.iter().all(|problem| problem.message.len() < 200));
    assert!(!format!("{:?}", wanted.entries).contains("xxxx"));
    assert_eq!(selection(&wanted, "", "configmaps", "shop", "a"), Selection::Full);
    assert_eq!(selection(&wanted, "", "namespaces", "", "green"), Selection::Full);
    assert_eq!(selection(&wanted, "", "namespaces", "", "till"), Selection::None);
}

#[test]
fn a_reference_or_conversion_to_what_nothing_can_be_called_is_a_problem() {
    let long = "x".repeat(66_000);
    let reference = |group: &str, version: &str, kind: &str, namespace: &str, name: &str| serde_json::json!({"group": group, "version": version, "kind": kind, "namespace": namespace, "name": name});
    let fine = reference("", "v1", "ConfigMap", "shop", "a");
    let object = serde_json::json!({"metadata": {"name": "b"}, "spec": {
        "downSyncedResources": [fine, reference(&long, "v1", "A", "", "a"), reference("", &long, "A", "", "a"),
            reference("", "v1", &long, "", "a"), reference("", "v1", "A", "a/b", "a"), reference("", "v1", "A", "", "..")],
        "conversions": [{"upstream": fine, "downstream": reference("", "v1", "ConfigMap", "", "../b")}],
    }});
    let config = EdgeSyncConfig::parse(object.to_string().as_bytes()).unwrap();
    let wanted = Wanted::from_configs([], [&config], true);
    let places: Vec<_> = wanted.problems.iter().map(|problem| &*problem.place.field).collect();
    let parts = ["group", "version", "kind", "namespace", "name"];
    let mut expected: Vec<_> = (1..)
        .zip(parts)
        .map(|(index, part)| format!("downSyncedResources[{index}].{part}"))
        .collect();
    expected.insert(0, "conversions[0].downstream".into());
    assert_eq!(places, expected);
    assert_eq!((wanted.entries.len(), wanted.conversions.len()), (1, 0));
}
