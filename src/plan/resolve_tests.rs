use kube_lite::ObjectName;
use kube_lite::discovery::{Catalogue, Served};

use super::*;
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;
use crate::plan::missing::{Absence, Missing};
use crate::plan::{Origins, Selection, Selects, SyncedType};

/// What a side serves: group, version, plural, kind, namespaced.
pub(super) type Types = [(&'static str, &'static str, &'static str, &'static str, bool)];

pub(super) const CORE: [(&str, &str, &str, &str, bool); 3] = [
    ("", "v1", "configmaps", "ConfigMap", true),
    ("", "v1", "namespaces", "Namespace", false),
    ("g.io", "v1", "others", "Other", true),
];
pub(super) const GAUGES: (&str, &str, &str, &str, bool) = ("g.io", "v1", "gauges", "Gauge", false);

pub(super) fn serves(types: &Types) -> Discovery {
    let mut discovery = Discovery::default();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for &(group, version, plural, kind, namespaced) in types {
        let served = ServedResource::ordinary(ResourceType {
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            kind: kind.into(),
            namespaced,
        });
        let key = (group.to_owned(), version.to_owned());
        let known = discovery
            .known
            .entry(key)
            .or_insert_with(|| Served::Resources(BTreeMap::new()));
        if let Served::Resources(resources) = known {
            resources.insert(plural.to_owned(), served);
        }
        let versions = groups.entry(group.to_owned()).or_default();
        if !versions.contains(&version.to_owned()) {
            versions.push(version.to_owned());
        }
    }
    discovery.groups = Some(groups);
    discovery.catalogue = Some(Catalogue::new());
    discovery
}

pub(super) fn with(more: &Types) -> Discovery {
    serves(&[&CORE[..], more].concat())
}

pub(super) fn wanted(spec: &serde_json::Value) -> Wanted {
    let object = serde_json::json!({"metadata": {"name": "c"}, "spec": spec}).to_string();
    let config = SyncerConfig::parse(object.as_bytes()).unwrap();
    Wanted::from_configs([&config], [], true)
}

pub(super) fn wanted_by_kind(spec: &serde_json::Value) -> Wanted {
    let object = serde_json::json!({"metadata": {"name": "e"}, "spec": spec}).to_string();
    let config = EdgeSyncConfig::parse(object.as_bytes()).unwrap();
    Wanted::from_configs([], [&config], true)
}

pub(super) fn pair(direction: Direction, hub: (&str, &str), edge: (&str, &str)) -> Pair {
    let key = |(group, plural): (&str, &str)| (group.to_owned(), plural.to_owned());
    Pair {
        direction,
        hub: key(hub),
        edge: key(edge),
    }
}

pub(super) fn same(direction: Direction, group: &str, plural: &str) -> Pair {
    pair(direction, (group, plural), (group, plural))
}

fn down_gauges() -> Pair {
    same(Direction::Down, "g.io", "gauges")
}

fn gauges_and_configmaps() -> Wanted {
    wanted(&serde_json::json!({
        "clusterScope": [{"group": "g.io", "resource": "gauges", "apiVersion": "v1"}],
        "namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}],
    }))
}

fn synced(direction: Direction) -> SyncedType {
    SyncedType {
        direction,
        group: "g.io".into(),
        version: "v1".into(),
        resource: "gauges".into(),
        of: None,
    }
}

/// Nothing is wanted, since people have deselected `gauges`.
fn deselected() -> Wanted {
    Wanted {
        deselected: ["gauges.g.io".to_owned()].into(),
        ..Wanted::default()
    }
}

pub(super) fn resolve(wanted: &Wanted, hub: &Discovery, edge: &Discovery) -> Plan {
    resolve_within(&Filter::default(), wanted, hub, edge)
}

fn resolve_within(filter: &Filter, wanted: &Wanted, hub: &Discovery, edge: &Discovery) -> Plan {
    Plan::resolve(wanted, filter, hub, edge, Some("syncer"))
}

pub(super) fn names(plan: &Plan) -> Vec<String> {
    plan.types
        .values()
        .map(|planned| format!("{} {}", planned.direction, planned.at_hub.qualified()))
        .collect()
}

pub(super) fn selected(plan: &TypePlan, namespace: &str, name: &str) -> bool {
    plan.selector.selects(&ObjectName::new(namespace, name)).is_whole()
}

#[test]
fn plans_what_both_sides_serve_and_names_what_is_missing_where() {
    let plan = resolve(&gauges_and_configmaps(), &with(&[GAUGES]), &with(&[]));
    assert_eq!(names(&plan), ["downsync configmaps", "downsync namespaces"]);
    assert_eq!(plan.missing.len(), 1);
    let missing = &plan.missing[0];
    assert_eq!((missing.side, missing.resource.as_str()), (Side::Edge, "gauges"));
    assert_eq!(missing.place.as_ref().unwrap().field, "clusterScope[0]");
}

#[test]
fn an_edge_that_serves_another_version_is_addressed_at_it() {
    let mut edge = with(&[("g.io", "v2", "gauges", "Gauge", false)]);
    edge.known.insert(("g.io".into(), "v1".into()), Served::NotServed);
    let plan = resolve(&gauges_and_configmaps(), &with(&[GAUGES]), &edge);
    let absences: Vec<_> = plan.missing.iter().map(|missing| missing.absence).collect();
    assert_eq!(absences, [Absence::Version], "its own version may still come");
    let gauges = &plan.types[&down_gauges()];
    let versions = (gauges.at_hub.version.as_str(), gauges.at_edge.version.as_str());
    assert_eq!(versions, ("v1", "v2"));
}

#[test]
fn a_type_that_nothing_asks_for_any_more_is_retained_also_when_the_hub_no_longer_serves_it() {
    let both = with(&[GAUGES]);
    let mut wanted = deselected();
    wanted.retained.insert(synced(Direction::Down));
    for (hub, gone) in [(&both, false), (&with(&[]), true)] {
        let gauges = &resolve(&wanted, hub, &both).types[&down_gauges()];
        assert!(!gauges.selected && gauges.selector.is_empty());
        assert_eq!(gauges.gone_at_origin, gone);
    }
    let mut asked_for = gauges_and_configmaps();
    asked_for.retained.insert(synced(Direction::Down));
    assert!(resolve(&asked_for, &both, &both).types[&down_gauges()].selected);
    let plan = resolve(&asked_for, &with(&[]), &both);
    assert!(!plan.types.contains_key(&down_gauges()), "selected, so never gone");
}

#[test]
fn a_kind_that_vanishes_from_the_hub_while_it_is_selected_is_not_gone() {
    let mut wanted = wanted_by_kind(
        &serde_json::json!({"downSyncedResources": [{"group": "g.io", "version": "v1", "kind": "Gauge", "name": "*"}]}),
    );
    wanted.retained.insert(synced(Direction::Down));
    let both = with(&[GAUGES]);
    assert!(resolve(&wanted, &both, &both).types[&down_gauges()].selected);
    let plan = resolve(&wanted, &with(&[]), &both);
    assert_eq!(names(&plan), [""; 0]);
    assert_eq!(plan.missing.len(), 1);
}

#[test]
fn a_side_that_has_not_answered_is_neither_planned_nor_missing() {
    let plan = resolve(&gauges_and_configmaps(), &Discovery::default(), &with(&[]));
    assert!(plan.types.is_empty() && plan.missing.is_empty());
    let unknown: Vec<_> = plan.unknown.group_versions.iter().map(|(side, _)| *side).collect();
    assert_eq!(unknown, [Side::Hub, Side::Hub]);
}

#[test]
fn a_resource_in_the_wrong_place_is_reported_with_its_field() {
    let both = with(&[("g.io", "v1", "gauges", "Gauge", true)]);
    let plan = resolve(&gauges_and_configmaps(), &both, &both);
    assert_eq!(
        plan.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "SyncerConfig//c spec.clusterScope[0]: gauges.g.io is namespaced; name it in namespacedObjects or namespaceScope"
        ]
    );
    assert!(plan.types.contains_key(&same(Direction::Down, "", "configmaps")));
    assert!(plan.types[&down_gauges()].selector.is_empty());
}

#[test]
fn upsync_takes_the_version_that_the_edge_prefers_and_any_scope() {
    let wanted = wanted(&serde_json::json!({"upsync": [
        {"apiGroup": "g.io", "resources": ["gauges", "others"], "namespaces": ["shop"], "names": ["*"]}]}));
    let v2 = ("g.io", "v2", "gauges", "Gauge", false);
    let mut edge = serves(&[v2, GAUGES, CORE[0], CORE[2]]);
    let hub = with(&[v2, GAUGES]);
    let plan = resolve(&wanted, &hub, &edge);
    assert_eq!(names(&plan), ["upsync gauges.g.io", "upsync others.g.io"]);
    let gauges = &plan.types[&same(Direction::Up, "g.io", "gauges")];
    assert_eq!(gauges.at_hub.version, "v2");
    assert!(selected(gauges, "", "any"));
    let others = &plan.types[&same(Direction::Up, "g.io", "others")];
    assert_eq!(others.at_edge.version, "v1", "the preferred version does not have it");
    assert!(selected(others, "shop", "any") && !selected(others, "billing", "any"));
    edge.groups = None;
    let plan = resolve(&wanted, &hub, &edge);
    assert!(plan.unknown.groups.contains(&Side::Edge) && plan.types.is_empty());
}

#[test]
fn upsync_of_a_whole_group_follows_what_the_edge_has() {
    let wanted = wanted(&serde_json::json!({"upsync": [
        {"apiGroup": "g.io", "resources": ["*"], "namespaces": ["*"], "names": ["a"]},
        {"resources": ["*"], "namespaces": ["*"], "names": ["a"]}]}));
    let event = ("", "v1", "events", "Event", true);
    let both = with(&[GAUGES, event]);
    let plan = resolve(&wanted, &both, &both);
    assert_eq!(
        names(&plan),
        [
            "upsync configmaps",
            "upsync namespaces",
            "upsync gauges.g.io",
            "upsync others.g.io"
        ]
    );
    assert!(!plan.open.is_empty());
    let others = &plan.types[&same(Direction::Up, "g.io", "others")];
    assert!(selected(others, "shop", "a") && !selected(others, "syncer", "a"));
    let plan = resolve(&wanted, &with(&[]), &both);
    assert_eq!(plan.missing[0].resource, "gauges");
    assert_eq!(plan.missing[0].side, Side::Hub);
}

#[test]
fn a_version_of_a_whole_group_that_the_edge_lists_and_does_not_serve_is_asked_for_again() {
    let wanted = wanted(&serde_json::json!({"upsync": [
        {"apiGroup": "g.io", "resources": ["*"], "namespaces": ["*"], "names": ["a"]}]}));
    let both = with(&[]);
    assert!(resolve(&wanted, &both, &both).missing.is_empty());
    let mut edge = with(&[]);
    edge.known.insert(("g.io".into(), "v1".into()), Served::NotServed);
    let plan = resolve(&wanted, &both, &edge);
    let missing = (plan.missing[0].side, &*plan.missing[0].group, &*plan.missing[0].version);
    assert_eq!(missing, (Side::Edge, "g.io", "v1"));
}

#[test]
fn an_upsync_entry_that_can_never_match_is_reported() {
    let both = with(&[("coordination.k8s.io", "v1", "leases", "Lease", true)]);
    for (entry, missing, problem) in [
        (
            serde_json::json!({"apiGroup": "h", "resources": ["*"], "names": ["*"]}),
            Some("*"),
            None,
        ),
        (
            serde_json::json!({"apiGroup": "h", "resources": ["gauges"], "names": ["*"]}),
            Some("gauges"),
            None,
        ),
        (
            serde_json::json!({"apiGroup": "coordination.k8s.io", "resources": ["*"], "names": ["*"]}),
            None,
            Some("no resource of coordination.k8s.io can be synced"),
        ),
        (
            serde_json::json!({"apiGroup": "g.io", "resources": ["others"], "names": ["*"]}),
            None,
            Some("others.g.io is namespaced, and the entry names no namespace; it selects nothing"),
        ),
        (
            serde_json::json!({"apiGroup": "g.io", "resources": ["*"], "names": ["*"]}),
            None,
            None,
        ),
    ] {
        let plan = resolve(&wanted(&serde_json::json!({"upsync": [entry]})), &both, &both);
        let reported: Vec<_> = plan.missing.iter().map(|missing| &*missing.resource).collect();
        assert_eq!(reported, missing.into_iter().collect::<Vec<_>>(), "{entry}");
        let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
        assert_eq!(problems, problem.into_iter().collect::<Vec<_>>(), "{entry}");
    }
}

#[test]
fn what_both_directions_select_goes_up_only() {
    let mut spec = serde_json::json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": ["x", "y"]}]}]});
    spec["upsync"] = serde_json::json!([{"resources": ["configmaps"], "namespaces": ["*"], "names": ["x"]}]);
    let both = with(&[]);
    let plan = resolve(&wanted(&spec), &both, &both);
    let down = &plan.types[&same(Direction::Down, "", "configmaps")];
    let yields = |name| down.yields_to.selects(&ObjectName::new("shop", name)) == Selection::Full;
    assert!(yields("x") && !yields("y"));
}

#[test]
fn a_type_that_the_edge_has_lost_is_gone_for_upsync_and_selected_as_before() {
    for (group, resource, selected) in [
        ("g.io", "gauges", true),
        ("g.io", "*", true),
        ("h", "*", false),
        ("g.io", "others", false),
    ] {
        let mut wanted =
            wanted(&serde_json::json!({"upsync": [{"apiGroup": group, "resources": [resource], "names": ["*"]}]}));
        wanted.retained.insert(synced(Direction::Up));
        let plan = resolve(&wanted, &with(&[GAUGES]), &with(&[]));
        let gauges = &plan.types[&same(Direction::Up, "g.io", "gauges")];
        assert!(gauges.gone_at_origin);
        assert_eq!(gauges.selected, selected, "{group} {resource}");
    }
}

#[test]
fn a_type_that_has_vanished_from_the_hub_is_named_until_it_is_back_deselected_or_let_go() {
    let (both, none) = (with(&[GAUGES]), with(&[]));
    for (row, hub, edge, selects, is_proved, was_synced, let_go, vanished, retained) in [
        ("it has vanished", &none, &both, true, false, true, false, true, false),
        ("it is back", &both, &both, true, false, true, false, false, true),
        (
            "it was never synced",
            &none,
            &both,
            true,
            false,
            false,
            false,
            false,
            false,
        ),
        (
            "there can be no copies",
            &none,
            &none,
            true,
            false,
            true,
            false,
            false,
            false,
        ),
        (
            "people have deselected it",
            &none,
            &both,
            false,
            true,
            true,
            false,
            false,
            true,
        ),
        (
            "nothing selects it",
            &none,
            &both,
            false,
            false,
            true,
            false,
            true,
            false,
        ),
        (
            "people have let it go",
            &none,
            &both,
            true,
            false,
            true,
            true,
            false,
            true,
        ),
        ("and it is back", &both, &both, true, false, true, true, false, true),
    ] {
        let mut wanted = if selects {
            gauges_and_configmaps()
        } else {
            Wanted {
                deselected: is_proved.then(|| "gauges.g.io".to_owned()).into_iter().collect(),
                ..Wanted::default()
            }
        };
        wanted.retained.extend(was_synced.then(|| synced(Direction::Down)));
        wanted.let_go.extend(let_go.then(|| "gauges.g.io".to_owned()));
        let plan = resolve(&wanted, hub, edge);
        assert_eq!(plan.vanished.contains_key("gauges.g.io"), vanished, "{row}");
        assert_eq!(plan.types.contains_key(&down_gauges()), retained, "{row}");
        let is_back = std::ptr::eq(hub, &raw const both);
        let is_planned = plan.types.contains_key(&down_gauges());
        assert_eq!(plan.has_at_hub("gauges.g.io"), is_planned.then_some(is_back), "{row}");
        let goes = plan
            .types
            .get(&down_gauges())
            .is_some_and(|planned| planned.gone_at_origin);
        assert_eq!(goes, retained && !is_back, "{row}");
    }
    let wanted = gauges_and_configmaps();
    assert!(resolve(&wanted, &Discovery::default(), &both).is_unknown("gauges.g.io"));
    assert!(!resolve(&wanted, &none, &both).is_unknown("gauges.g.io"));
}

#[test]
fn a_type_is_deselected_only_if_no_config_may_select_it_whatever_the_sides_serve() {
    let (both, none, unknown) = (with(&[GAUGES]), with(&[]), Discovery::default());
    let kind = |kind: &str| {
        let object = serde_json::json!({"group": "g.io", "version": "v1", "kind": kind, "name": "a"});
        wanted_by_kind(&serde_json::json!({"downSyncedResources": [object]}))
    };
    for (row, wanted, [by_both, by_edge, by_neither]) in [
        ("by plural", gauges_and_configmaps(), [Selects::Yes; 3]),
        ("by kind", kind("Gauge"), [Selects::Yes, Selects::Yes, Selects::Perhaps]),
        ("another kind", kind("Meter"), [Selects::Perhaps; 3]),
        ("not at all", Wanted::default(), [Selects::No; 3]),
    ] {
        for (hub, edge, expected) in [
            (&both, &both, by_both),
            (&none, &both, by_edge),
            (&none, &none, by_neither),
            (&unknown, &unknown, by_neither),
        ] {
            let mut wanted = wanted.clone();
            wanted.retained.insert(synced(Direction::Down));
            let plan = resolve(&wanted, hub, edge);
            assert_eq!(plan.selects.get("gauges.g.io"), Some(&expected), "{row}");
        }
    }
}

#[test]
fn a_type_of_another_scope_is_another_type_and_both_sides_are_asked_for_it_again() {
    let (group, version, plural, kind, namespaced) = GAUGES;
    let edge = with(&[GAUGES]);
    for (row, at_hub, differs, [selected, retained]) in [
        ("the same", GAUGES, false, [Some(false), Some(false)]),
        (
            "another scope",
            (group, version, plural, kind, !namespaced),
            true,
            [None, Some(true)],
        ),
        (
            "another kind",
            (group, version, plural, "Meter", namespaced),
            true,
            [None, None],
        ),
    ] {
        let hub = with(&[at_hub]);
        for (selects, expected) in [(true, selected), (false, retained)] {
            let mut wanted = if selects { gauges_and_configmaps() } else { deselected() };
            wanted.retained.insert(synced(Direction::Down));
            let plan = resolve(&wanted, &hub, &edge);
            let row = format!("{row}, {selects}");
            let gone = plan.types.get(&down_gauges()).map(|planned| planned.gone_at_origin);
            assert_eq!(gone, expected, "{row}");
            assert_eq!(
                plan.problems.len(),
                usize::from(differs && selects),
                "{row}: {:?}",
                plan.problems
            );
            assert!(
                !plan.missing.iter().any(Missing::is_reported),
                "{row}: {:?}",
                plan.missing
            );
            let of_scope = selects && at_hub.4 != namespaced;
            assert_eq!(plan.vanished.contains_key("gauges.g.io"), of_scope, "{row}");
            let asked = |side| plan.missing.iter().any(|missing| missing.side == side);
            assert_eq!(asked(Side::Hub), differs, "{row}");
            assert_eq!(
                asked(Side::Edge),
                differs && (selects || at_hub.4 == namespaced),
                "{row}"
            );
        }
    }
}

/// What is planned, and what is said to be denied, within these bounds.
fn check_denied(rules: &str, wanted: &Wanted, planned: &[&str], denied: &[(&str, &str)]) {
    let mut filter = Filter::default();
    filter.add_file("bounds", rules).unwrap();
    let both = with(&[GAUGES, ("h", "v1", "meters", "Meter", true)]);
    let plan = resolve_within(&filter, wanted, &both, &both);
    assert_eq!(names(&plan), planned, "{rules}");
    let denied = denied.iter().map(|&(name, rule)| (name.to_owned(), rule.to_owned()));
    assert_eq!(plan.denied, denied.collect(), "{rules}");
    // Nothing is known, and nothing of it is to be asked.
    let nothing = Discovery::default();
    let plan = resolve_within(&filter, wanted, &nothing, &nothing);
    let asks_about = |group: &str| plan.is_unknown(&format!("x.{group}")) || !plan.unknown.groups.is_empty();
    let denies_all = rules.contains("deny *.g.io");
    assert!(!denies_all || !asks_about("g.io"), "{rules}: {:?}", plan.unknown);
}

#[test]
fn nothing_is_planned_of_a_denied_type_nor_is_it_missed_or_asked_for() {
    let down = gauges_and_configmaps();
    let implied: &[&str] = &["downsync configmaps", "downsync namespaces"];
    check_denied(
        "deny gauges.g.io",
        &down,
        implied,
        &[("gauges.g.io", "--deny gauges.g.io")],
    );
    check_denied("deny *.g.io", &down, implied, &[("gauges.g.io", "--deny *.g.io")]);
    check_denied(
        "deny *.other",
        &down,
        &["downsync configmaps", "downsync namespaces", "downsync gauges.g.io"],
        &[],
    );
    // Namespaces that objects only need are missed when something has to go into one.
    check_denied(
        "deny namespaces",
        &down,
        &["downsync configmaps", "downsync gauges.g.io"],
        &[],
    );
    // One that neither side serves is not waited for.
    let mut filter = Filter::default();
    filter.add(Filter::parse_rule("deny gauges.g.io").unwrap());
    assert_eq!(resolve_within(&filter, &down, &with(&[]), &with(&[])).missing, []);
    let up = wanted(&serde_json::json!({"upsync": [
        {"apiGroup": "g.io", "resources": ["*", "gauges"], "namespaces": ["*"], "names": ["*"]}]}));
    check_denied(
        "deny gauges.g.io",
        &up,
        &["upsync others.g.io"],
        &[("gauges.g.io", "--deny gauges.g.io")],
    );
    let all = [("*.g.io", "--deny *.g.io"), ("gauges.g.io", "--deny *.g.io")];
    check_denied("deny *.g.io", &up, &[], &all);
    // By kind, also where a rule names the plural, or the singular.
    let by_kind = crds_and(&serde_json::json!([]));
    check_denied(
        "deny *.g.io",
        &by_kind,
        &[],
        &[("Gauge.g.io", "--deny *.g.io"), ("Other.g.io", "--deny *.g.io")],
    );
    for rule in ["gauges.g.io", "gauge.g.io"] {
        let name = if rule == "gauge.g.io" { "Gauge.g.io" } else { rule };
        let why = format!("--deny {rule}");
        check_denied(
            &format!("deny {rule}"),
            &by_kind,
            &["downsync others.g.io"],
            &[(name, &why)],
        );
    }
    // What was synced before is not touched.
    let mut retained = Wanted::default();
    retained
        .retained
        .extend([synced(Direction::Down), synced(Direction::Up)]);
    check_denied("deny gauges.g.io", &retained, &[], &[]);
    check_denied("deny gauge.g.io", &retained, &[], &[]);
}

#[test]
fn an_entry_that_names_a_namespace_which_the_edge_denies_says_so() {
    let spec = serde_json::json!({"namespaceScope": {"namespaces": ["shop", "mall", "kube-x"], "resources": [
        {"group": "g.io", "resource": "gauges", "apiVersion": "v1"}, {"group": "g.io", "resource": "others", "apiVersion": "v1"}]},
        "upsync": [{"apiGroup": "g.io", "resources": ["gauges"], "namespaces": ["shop"], "names": ["*"]},
            {"apiGroup": "g.io", "resources": ["others"], "namespaces": ["*"], "names": ["*"]}]});
    let down = "namespaceScope.resources[0]: the owner of the edge does not allow it in the namespace ";
    let up = "upsync[0].resources[0]: the owner of the edge does not allow it in the namespace ";
    for (rules, expected) in [
        ("deny-namespace stock", vec![]),
        (
            "deny-namespace mall",
            vec![format!("{down}\"mall\": --deny-namespace mall")],
        ),
        (
            "deny-namespace shop\ndeny-namespace kube-*",
            vec![
                format!("{down}\"kube-x\": --deny-namespace kube-*"),
                format!("{down}\"shop\": --deny-namespace shop"),
                format!("{up}\"shop\": --deny-namespace shop"),
            ],
        ),
        (
            "allow-namespace shop",
            vec![format!("{down}\"kube-x\": not in --allow-namespace")],
        ),
    ] {
        let mut filter = Filter::default();
        filter.add_file("rules", rules).expect("they are rules");
        let both = with(&[GAUGES]);
        let plan = resolve_within(&filter, &wanted(&spec), &both, &both);
        let said = plan.denied_places.iter();
        let said: Vec<String> = said.map(|it| format!("{}: {}", it.place.field, it.message)).collect();
        assert_eq!(said, expected, "{rules}");
    }
}

#[test]
fn what_becomes_another_kind_is_denied_by_what_it_is_at_the_edge() {
    let becomes = |hub: serde_json::Value, edge: serde_json::Value| {
        crds_and(&serde_json::json!([{"upstream": hub, "downstream": edge}]))
    };
    let wanted = becomes(triple("g.io", "Other", "x"), triple("h", "Meter", "y"));
    let others = "downsync others.g.io";
    check_denied(
        "deny meters.h",
        &wanted,
        &["downsync gauges.g.io", others],
        &[("meters.h", "--deny meters.h")],
    );
    // The one object of the denied type that is another one at the edge.
    check_denied(
        "deny others.g.io",
        &wanted,
        &["downsync gauges.g.io", others],
        &[("others.g.io", "--deny others.g.io")],
    );
}

fn crds_and(conversions: &serde_json::Value) -> Wanted {
    wanted_by_kind(&serde_json::json!({
        "downSyncedResources": [
            {"group": "g.io", "version": "v1", "kind": "Gauge", "name": "a.denatured"},
            {"group": "g.io", "version": "v1", "kind": "Other", "namespace": "shop", "name": "*"}],
        "conversions": conversions,
    }))
}

fn triple(group: &str, kind: &str, name: &str) -> serde_json::Value {
    serde_json::json!({"group": group, "kind": kind, "name": name})
}

#[test]
fn an_entry_may_use_either_name_of_a_conversion() {
    let both = with(&[GAUGES]);
    let conversion = serde_json::json!([{"upstream": triple("g.io", "Gauge", "a.denatured"), "downstream": triple("g.io", "Gauge", "a")}]);
    let by_hub_name = crds_and(&conversion);
    let mut by_edge_name = by_hub_name.clone();
    by_edge_name.entries[0].objects = Objects::Ref {
        namespace: String::new(),
        names: Names::from_list(&["a".to_owned()]),
    };
    for wanted in [by_hub_name, by_edge_name] {
        let plan = resolve(&wanted, &both, &both);
        let gauges = &plan.types[&down_gauges()];
        assert!(selected(gauges, "", "a") && !selected(gauges, "", "a.denatured"));
        let at_hub = gauges.naming.at_hub(&ObjectName::new("", "a"));
        assert_eq!(at_hub, Some(ObjectName::new("", "a.denatured")));
    }
}

#[test]
fn a_conversion_between_kinds_makes_a_pair_of_its_own() {
    let both = with(&[GAUGES, ("h", "v1", "meters", "Meter", true)]);
    let wanted = crds_and(&serde_json::json!([
        {"upstream": triple("g.io", "Other", "x"), "downstream": triple("h", "Meter", "y")}]));
    let plan = resolve(&wanted, &both, &both);
    let meters = &plan.types[&pair(Direction::Down, ("g.io", "others"), ("h", "meters"))];
    assert!(selected(meters, "shop", "y"));
    assert_eq!(
        meters.naming.at_edge(&ObjectName::new("shop", "x")),
        Some(ObjectName::new("shop", "y"))
    );
    let others = &plan.types[&same(Direction::Down, "g.io", "others")];
    assert_eq!(
        others.naming.at_edge(&ObjectName::new("shop", "x")),
        None,
        "it goes elsewhere"
    );
    assert!(selected(others, "shop", "z"));
}

#[test]
fn a_copy_of_another_kind_is_selected_by_its_name_and_not_by_all_of_its_kind() {
    let both = with(&[("h", "v1", "meters", "Meter", true)]);
    let conversions = serde_json::json!({"conversions": [
        {"upstream": triple("g.io", "Other", "x"), "downstream": triple("h", "Meter", "y")}]});
    let names_them = |name: &str, names: &[&str]| {
        let spec = serde_json::json!({"namespacedObjects": [{"group": "h", "resource": "meters", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": names}]}]});
        let object = serde_json::json!({"metadata": {"name": name}, "spec": spec}).to_string();
        SyncerConfig::parse(object.as_bytes()).unwrap()
    };
    let object = serde_json::json!({"metadata": {"name": "e"}, "spec": conversions}).to_string();
    let converts = EdgeSyncConfig::parse(object.as_bytes()).unwrap();
    let of_another_kind = pair(Direction::Down, ("g.io", "others"), ("h", "meters"));
    for (first, second, expected) in [
        (&["y"][..], &["z"][..], true),
        (&["*"], &["*"], false),
        (&["y"], &["*"], true),
        (&["*"], &["y", "z"], true),
    ] {
        let configs = [names_them("a", first), names_them("b", second)];
        let plan = resolve(&Wanted::from_configs(&configs, [&converts], true), &both, &both);
        let meters = plan.types.get(&of_another_kind);
        let is_selected = meters.is_some_and(|meters| selected(meters, "shop", "y"));
        assert_eq!(is_selected, expected, "{first:?} {second:?}");
        let alone = &plan.types[&same(Direction::Down, "h", "meters")];
        assert_eq!(
            alone.naming.at_edge(&ObjectName::new("shop", "y")),
            None,
            "it is from elsewhere"
        );
    }
}

#[test]
fn what_a_conversion_between_kinds_has_made_is_retained_as_that() {
    let both = with(&[GAUGES, ("h", "v1", "meters", "Meter", true)]);
    let mut wanted = deselected();
    for direction in [Direction::Down, Direction::Up] {
        let (copies, origins) = match direction {
            Direction::Down => (("h", "meters"), ("g.io", "others", "Other")),
            Direction::Up => (("g.io", "others"), ("h", "meters", "Meter")),
        };
        wanted.retained.insert(SyncedType {
            group: copies.0.into(),
            resource: copies.1.into(),
            of: Some(Origins {
                group: origins.0.into(),
                resource: origins.1.into(),
                kind: origins.2.into(),
            }),
            ..synced(direction)
        });
    }
    let plan = resolve(&wanted, &both, &both);
    assert_eq!(plan.types.len(), 2);
    for direction in [Direction::Down, Direction::Up] {
        let meters = &plan.types[&pair(direction, ("g.io", "others"), ("h", "meters"))];
        assert!(!meters.selected && !meters.gone_at_origin);
        assert_eq!(meters.naming.at_hub(&ObjectName::new("shop", "y")), None);
    }
    let without = with(&[("h", "v1", "dials", "Dial", true)]);
    let gone = resolve(&wanted, &both, &without);
    let meters = &gone.types[&pair(Direction::Up, ("g.io", "others"), ("h", "meters"))];
    assert!(meters.gone_at_origin);
    assert_eq!((&*meters.at_edge.kind, &*meters.at_edge.group), ("Meter", "h"));
    // Which kind their origins were is not known: nothing is done about them.
    let nameless = |mut known: SyncedType| {
        known.of.as_mut().expect("it is of another kind").kind.clear();
        known
    };
    wanted.retained = std::mem::take(&mut wanted.retained).into_iter().map(nameless).collect();
    assert!(resolve(&wanted, &both, &without).types.is_empty());
}

#[test]
fn copies_of_another_kind_are_retained_for_no_delete_while_the_hub_lacks_what_a_config_selects() {
    let meters = ("h", "v1", "meters", "Meter", GAUGES.4);
    let (both, without) = (with(&[GAUGES, meters]), with(&[meters]));
    let by_kind = || {
        wanted_by_kind(&serde_json::json!({"downSyncedResources": [
            {"group": "g.io", "version": "v1", "kind": "Gauge", "namespace": "shop", "name": "a"}]}))
    };
    for (row, hub, mut wanted, let_go, denied, retained) in [
        ("it is hidden", &without, gauges_and_configmaps(), false, "", false),
        (
            "denied, and hidden",
            &without,
            gauges_and_configmaps(),
            false,
            "deny gauges.g.io",
            false,
        ),
        ("selected by kind, and hidden", &without, by_kind(), false, "", false),
        (
            "people have let it go",
            &without,
            gauges_and_configmaps(),
            true,
            "",
            true,
        ),
        ("people have deselected it", &without, deselected(), false, "", true),
        ("nothing selects it", &without, Wanted::default(), false, "", false),
        ("it is served", &both, gauges_and_configmaps(), false, "", true),
    ] {
        let mut filter = Filter::default();
        filter.add_file("bounds", denied).unwrap();
        wanted.retained.insert(SyncedType {
            group: "h".into(),
            resource: "meters".into(),
            of: Some(Origins {
                group: "g.io".into(),
                resource: "gauges".into(),
                kind: "Gauge".into(),
            }),
            ..synced(Direction::Down)
        });
        wanted.let_go.extend(let_go.then(|| "gauges.g.io".to_owned()));
        let plan = resolve_within(&filter, &wanted, hub, &both);
        let meters = plan
            .types
            .get(&pair(Direction::Down, ("g.io", "gauges"), ("h", "meters")));
        assert_eq!(meters.is_some(), retained, "{row}");
        let goes = meters.is_some_and(|planned| planned.gone_at_origin);
        assert_eq!(goes, retained && std::ptr::eq(hub, &raw const without), "{row}");
        // Whoever confirms that they are deleted has read how many they are.
        let vanished = plan.vanished.get("gauges.g.io").into_iter().flatten();
        let are_named = vanished
            .filter(|copies| copies.origins == "Gauge.g.io" && copies.resource.resource == "meters")
            .count();
        assert_eq!(are_named, usize::from(!retained), "{row}");
    }
}

#[test]
fn a_namespaced_kind_needs_a_namespace() {
    let wanted = wanted_by_kind(&serde_json::json!({"downSyncedResources": [
        {"version": "v1", "kind": "ConfigMap", "name": "a"}, {"version": "v1", "kind": "Namespace", "name": "shop"}]}));
    let both = with(&[]);
    let plan = resolve(&wanted, &both, &both);
    let problem = plan.problems.first().unwrap().to_string();
    assert!(
        problem.contains("downSyncedResources[0]") && problem.contains("needs a namespace"),
        "{problem}"
    );
    assert!(selected(
        &plan.types[&same(Direction::Down, "", "namespaces")],
        "",
        "shop"
    ));
}

/// Those of the core group and more, at both sides.
fn with_nodes_and_leases() -> Discovery {
    with(&[
        GAUGES,
        ("", "v1", "nodes", "Node", false),
        ("coordination.k8s.io", "v1", "leases", "Lease", true),
        ("g.io", "v1", "things", "Thing", true),
    ])
}

fn problems(plan: &Plan) -> Vec<String> {
    plan.problems.iter().map(ToString::to_string).collect()
}

// Issue 41.
#[test]
fn a_type_that_each_cluster_keeps_for_itself_is_synced_only_where_each_object_is_named_and_a_flag_allows_it() {
    const UNLESS: &str = " is never synced, unless --allow-system is given and the entry names each object";
    let served = with_nodes_and_leases();
    let bounded = || {
        let mut filter = Filter::default();
        filter.keep_out_of(crate::plan::Bounds::default());
        filter
    };
    let down = |objects: serde_json::Value| {
        wanted(
            &serde_json::json!({"clusterScope": [{"group": "", "resource": "nodes", "apiVersion": "v1", "objects": objects}]}),
        )
    };
    let up = |names: &[&str]| {
        wanted(&serde_json::json!({"upsync": [{"apiGroup": "", "resources": ["nodes"], "names": names}]}))
    };
    let kind = |name: &str| {
        wanted_by_kind(&serde_json::json!({"downSyncedResources": [{"version": "v1", "kind": "Node", "name": name}]}))
    };
    for (wanted, allows, is_synced) in [
        (down(serde_json::json!(["n1"])), true, true),
        (down(serde_json::json!(["n1"])), false, false),
        (down(serde_json::json!(["*"])), true, false),
        (down(serde_json::Value::Null), true, false),
        (up(&["n1"]), true, true),
        (up(&["n1"]), false, false),
        (up(&["*"]), true, false),
        (kind("n1"), true, true),
        (kind("n1"), false, false),
        (kind("*"), true, false),
    ] {
        let filter = if allows { Filter::default() } else { bounded() };
        let plan = resolve_within(&filter, &wanted, &served, &served);
        assert_eq!(names(&plan).len(), usize::from(is_synced), "{wanted:?} {allows}");
        let problems = problems(&plan);
        assert_eq!(problems.len(), usize::from(!is_synced), "{problems:?}");
        assert!(problems.iter().all(|problem| problem.ends_with(UNLESS)), "{problems:?}");
        for planned in plan.types.values() {
            let selects = planned.selector.selects(&ObjectName::new("", "n1"));
            assert_eq!(selects, Selection::Named);
        }
    }
    // A whole group has others too.
    let all = wanted(
        &serde_json::json!({"upsync": [{"apiGroup": "", "resources": ["*"], "namespaces": ["*"], "names": ["*"]}]}),
    );
    let plan = resolve_within(&Filter::default(), &all, &served, &served);
    let names = names(&plan);
    assert!(
        !names.is_empty() && !names.iter().any(|name| name.ends_with(" nodes")),
        "{names:?}"
    );
    assert_eq!(problems(&plan), [""; 0]);
}

// Issue 41: a kind that a conversion mapped to Lease overwrote the Leases of operators.
#[test]
fn no_conversion_leads_to_a_type_that_is_never_synced() {
    let served = with_nodes_and_leases();
    for (hub, edge, is_synced) in [
        (("g.io", "Thing"), ("coordination.k8s.io", "Lease"), false),
        (("coordination.k8s.io", "Lease"), ("g.io", "Thing"), false),
        (("g.io", "Thing"), ("g.io", "Other"), true),
        (("g.io", "Thing"), ("edge.kubestellar.io", "SyncerConfig"), false),
    ] {
        let reference = |(group, kind): (&str, &str), name: &str| serde_json::json!({"group": group, "version": "v1", "kind": kind, "name": name, "namespace": "shop"});
        for direction in ["downSyncedResources", "upSyncedResources"] {
            for named in [reference(hub, "a"), reference(edge, "b")] {
                let wanted = wanted_by_kind(&serde_json::json!({
                    direction: [named],
                    "conversions": [{"upstream": reference(hub, "a"), "downstream": reference(edge, "b")}],
                }));
                let plan = resolve(&wanted, &served, &served);
                assert_eq!(!plan.types.is_empty(), is_synced, "{direction} {named} {plan:?}");
                let reported = problems(&plan).iter().any(|problem| problem.contains("never synced"));
                assert_eq!(reported, !is_synced, "{direction} {named}");
            }
        }
    }
}

// Issue 41: the config whose entry selects such an object was said to be wrong, and the conversion was not named.
#[test]
fn what_is_wrong_with_a_conversion_is_said_where_it_is_asked_for() {
    let served = with_nodes_and_leases();
    for (group, kind) in [("coordination.k8s.io", "Lease"), ("", "Node"), ("g.io", "Nowhere")] {
        let selects = wanted(
            &serde_json::json!({"namespaceScope": {"namespaces": ["shop"], "resources": [
                {"group": "g.io", "resource": "things", "apiVersion": "v1"},
            ]}}),
        );
        let converts = wanted_by_kind(&serde_json::json!({"conversions": [{
            "upstream": {"group": "g.io", "version": "v1", "kind": "Thing", "name": "a"},
            "downstream": {"group": group, "version": "v1", "kind": kind, "name": "b"},
        }]}));
        let both = Wanted {
            conversions: converts.conversions.clone(),
            ..selects
        };
        let mut filter = Filter::default();
        filter.keep_out_of(crate::plan::Bounds::default());
        let plan = resolve_within(&filter, &both, &served, &served);
        let missing = plan.missing.iter().filter_map(|missing| missing.place.as_ref());
        let places: BTreeSet<_> = plan
            .problems
            .iter()
            .map(|problem| &problem.place)
            .chain(missing)
            .collect();
        let fields: Vec<_> = places.iter().map(|place| (&*place.config, &*place.field)).collect();
        assert_eq!(
            fields,
            [(&*converts.conversions[0].place.config, "conversions[0]")],
            "{kind}"
        );
    }
}
