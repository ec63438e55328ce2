//! Entries that select nothing, and words of configs that nothing answers to.

use super::*;
use crate::api::status::OfEdge;
use crate::plan::Filter;

impl Bench {
    fn of_config(&self, is_complete: bool) -> OfEdge {
        let (mut all, _) = self.model.of_edge(self.model.hold_condition(), is_complete);
        all.pop().expect("there is a config").1
    }

    /// The fields of entries that cannot be followed, and of those that select nothing so far.
    fn fields(&self) -> [Vec<String>; 2] {
        let ours = self.of_config(true);
        assert_eq!(ours.problem_count, ours.problems.len());
        [ours.problems, ours.unmatched].map(|list| list.into_iter().map(|problem| problem.field).collect())
    }

    /// Has this spec in an `EdgeSyncConfig`.
    fn by_kind(spec: &Value) -> Self {
        let mut bench = Self::new();
        bench.run();
        bench.list_configs(ConfigKind::SyncerConfig, &[]);
        bench.list_configs(ConfigKind::EdgeSyncConfig, &[config("all", spec)]);
        bench.list_all(1);
        bench
    }
}

fn up(namespaces: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({"upsync": [{"apiGroup": "", "resources": resources, "namespaces": namespaces, "names": names}]})
}

#[test]
fn an_entry_that_names_what_is_not_there_is_named_until_something_matches() {
    let no_name = "spec.upsync[0].names";
    let nothing_within = "spec.upsync[0].namespaces";
    let listed = "spec.namespacedObjects[0].objectsByNamespace";
    // The spec, the side of the origins, a namespace and name that is found then, what is wrong before, and what is unmatched.
    for (spec, side, found, wrong, unmatched) in [
        (named(&["a", "b"]), Side::Hub, ("shop", "b"), listed, ""),
        (named(&["*"]), Side::Hub, ("shop", "b"), "", ""),
        (
            up(&["*"], &["configmaps"], &["a"]),
            Side::Edge,
            ("field", "a"),
            no_name,
            "",
        ),
        (
            up(&["field", "x"], &["configmaps"], &["a"]),
            Side::Edge,
            ("field", "a"),
            no_name,
            "",
        ),
        (
            up(&["field"], &["configmaps"], &["*"]),
            Side::Edge,
            ("field", "a"),
            "",
            nothing_within,
        ),
        (up(&["*"], &["configmaps"], &["*"]), Side::Edge, ("field", "a"), "", ""),
    ] {
        let mut bench = Bench::new().with_spec(&spec);
        let is =
            |fields: [&str; 2]| fields.map(|field| Vec::from_iter(Some(field.to_owned()).filter(|it| !it.is_empty())));
        assert_eq!(bench.fields(), is([wrong, unmatched]), "{spec}");
        let other = object(&ResourceType::config_maps(), "elsewhere", "other", 10);
        let origins = bench.origins_of(side, "configmaps").expect("they are read");
        bench.says(origins, &other);
        assert_eq!(bench.fields(), is([wrong, unmatched]), "{spec}");
        bench.says(origins, &object(&ResourceType::config_maps(), found.0, found.1, 11));
        assert_eq!(bench.fields(), is(["", ""]), "{spec}");
        bench.says_gone(origins, &object(&ResourceType::config_maps(), found.0, found.1, 12));
        assert_eq!(bench.fields(), is([wrong, unmatched]), "{spec}");
    }
    let entry = |namespace: &str, name: &str| json!([{"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name}]);
    for (list, namespace, name, wrong, unmatched) in [
        (
            "downSyncedResources",
            "shop",
            "a",
            "spec.downSyncedResources[0].name",
            "",
        ),
        ("downSyncedResources", "shop", "*", "", ""),
        ("upSyncedResources", "shop", "a", "spec.upSyncedResources[0].name", ""),
        ("upSyncedResources", "*", "a", "spec.upSyncedResources[0].name", ""),
        (
            "upSyncedResources",
            "shop",
            "*",
            "",
            "spec.upSyncedResources[0].namespace",
        ),
        ("upSyncedResources", "*", "*", "", ""),
    ] {
        let mut bench = Bench::by_kind(&json!({list: entry(namespace, name)}));
        let is =
            |fields: [&str; 2]| fields.map(|field| Vec::from_iter(Some(field.to_owned()).filter(|it| !it.is_empty())));
        assert_eq!(bench.fields(), is([wrong, unmatched]), "{list} {namespace} {name}");
        let side = if list.starts_with('d') { Side::Hub } else { Side::Edge };
        let origins = bench.origins_of(side, "configmaps").expect("they are read");
        bench.says(origins, &config_map("a", 11));
        assert_eq!(bench.fields(), is(["", ""]), "{list} {namespace} {name}");
    }
}

#[test]
fn what_another_line_is_about_is_not_said_to_select_nothing() {
    // The hub lacks the namespace.
    let mut bench = Bench::new();
    bench.world.lacks_namespaces.insert("shop".to_owned());
    let mut bench = bench.with_spec(&named(&["a"]));
    bench.pass(5 * SECOND);
    assert_eq!(bench.fields()[0], ["spec.namespacedObjects[0]"]);
    // The edge's owner does not allow it.
    let mut filter = Filter::default();
    filter.add_file("rules", "deny-namespace shop").expect("they are rules");
    let bench = Bench::with(|settings| settings.filter = Rc::new(filter)).with_spec(&named(&["a"]));
    assert!(
        bench.fields()[0]
            .iter()
            .all(|field| !field.contains("objectsByNamespace"))
    );
    // One of two resources is enough, and so is one that nobody serves yet.
    let spec = up(&["field"], &["configmaps", "namespaces"], &["a"]);
    let mut bench = Bench::new().with_spec(&spec);
    assert_eq!(
        bench.fields()[0].last().map(String::as_str),
        Some("spec.upsync[0].names")
    );
    let origins = bench.origins_of(Side::Edge, "configmaps").expect("they are read");
    bench.says(origins, &object(&ResourceType::config_maps(), "field", "a", 10));
    assert!(bench.fields()[0].iter().all(|field| !field.ends_with("names")));
    // A conversion may make another object of it.
    let object = |name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name});
    let spec = json!({"downSyncedResources": [object("a")], "conversions": [{"upstream": object("a"), "downstream": object("b")}]});
    assert_eq!(Bench::by_kind(&spec).fields()[0], Vec::<String>::new());
}

#[test]
fn nothing_is_said_to_select_nothing_before_all_lists_are_complete_but_what_the_hub_has_stays() {
    let mut bench = Bench::new().with_spec(&named(&["a"]));
    assert_eq!(bench.of_config(false).problems, []);
    bench.pass(10 * SECOND);
    let ours = bench.of_config(false);
    assert_eq!((ours.problem_count, ours.problems.len()), (1, 1));
    assert_eq!(
        ours.problems[0].message,
        "selects nothing: the hub has no \"a\" in \"shop\" that can be synced; it is synced once it is there"
    );
    let since = bench.model.is_said("SyncerConfig//all", &ours.problems[0]);
    assert_eq!(since, Some("2026-01-01T00:00:00Z"));
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    assert_eq!(bench.of_config(false).problems, []);
}

// A config of many names costs a look no more than a search for each name.
#[test]
fn of_many_entries_that_select_nothing_ten_are_named_and_all_are_counted() {
    let objects: Vec<Value> = (0..11_000)
        .map(|index| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": format!("a{index}")}))
        .collect();
    let mut bench = Bench::by_kind(&json!({"downSyncedResources": objects}));
    bench.pass(10 * SECOND);
    bench.list_rest(1);
    crate::plan::steps_taken();
    let ours = bench.of_config(true);
    assert_eq!((ours.problem_count, ours.problems.len()), (11_000, 10));
    assert!(crate::plan::steps_taken() < 100_000);
}

#[test]
fn all_that_the_edge_serves_is_asked_for_once_and_again_when_its_types_change() {
    let asked = |bench: &Bench| bench.world.catalogues;
    let knows = |bench: &Bench| bench.model.sides.discovery(Side::Edge).catalogue.is_some();
    let mut bench = Bench::new().selecting(&["configmaps"]);
    assert_eq!((asked(&bench), knows(&bench)), (0, false));
    bench.select(&["configmaps", "nonsense"]);
    bench.list_crds(Side::Edge, &[]);
    assert_eq!((asked(&bench), knows(&bench)), (1, true));
    bench.select(&["configmaps", "nonsense", "rubbish"]);
    bench.pass(3600 * SECOND);
    assert_eq!(asked(&bench), 1, "{:?}", bench.log);
    let crds = bench.source(Feed::Crds(Side::Edge));
    bench.says(crds, &object(&ResourceType::definitions(), "", "things.g.io", 20));
    bench.pass(10 * SECOND);
    assert_eq!((asked(&bench), knows(&bench)), (2, true));
    bench.select(&["configmaps"]);
    assert_eq!((asked(&bench), knows(&bench)), (2, false), "it is not kept");
}

// Issue 46: each config said what is unmatched of all that come before it.
#[test]
fn what_selects_nothing_is_said_by_its_own_config_alone() {
    let mut bench = Bench::new();
    bench.run();
    let specs = [
        ("a", up(&["nowhere"], &["configmaps"], &["*"])),
        ("b", json!({})),
        ("c", up(&["elsewhere"], &["configmaps"], &["*"])),
        ("d", json!({})),
    ];
    let configs = specs.map(|(name, spec)| config(name, &spec));
    bench.list_configs(ConfigKind::SyncerConfig, &configs);
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[]);
    bench.list_all(1);
    let (of_configs, total) = bench.model.of_edge(bench.model.hold_condition(), true);
    let fields = |of: &OfEdge| {
        of.unmatched
            .iter()
            .map(|problem| problem.field.clone())
            .collect::<Vec<_>>()
    };
    let own = "spec.upsync[0].namespaces";
    let found: Vec<_> = of_configs.iter().map(|((_, name), of)| (&**name, fields(of))).collect();
    let one = vec![own.to_owned()];
    assert_eq!(found, [("a", one.clone()), ("b", vec![]), ("c", one), ("d", vec![])]);
    let all = ["a", "c"].map(|name| format!("SyncerConfig//{name}: {own}"));
    assert_eq!(fields(&total), all);
}
