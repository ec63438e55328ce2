use std::collections::BTreeSet;

use kube_lite::discovery::{Catalogue, Discovery, Served, ServedResource};

use super::*;
use crate::api::syncer_config::SyncerConfig;
use crate::plan::{Filter, Wanted};

/// What both sides serve: group, plural, kind, namespaced, with a `/status`.
const TYPES: [(&str, &str, &str, bool, bool); 6] = [
    ("", "configmaps", "ConfigMap", true, false),
    ("", "namespaces", "Namespace", false, true),
    ("apps", "deployments", "Deployment", true, true),
    ("example.org", "gauges", "Gauge", true, false),
    ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", false, false),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
        true,
    ),
];

fn discovery() -> Discovery {
    let mut discovery = Discovery::default();
    for (group, plural, kind, namespaced, status_subresource) in TYPES {
        let known = discovery.known.entry((group.into(), "v1".into()));
        let Served::Resources(resources) = known.or_insert_with(|| Served::Resources([].into())) else {
            continue;
        };
        let resource = ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: plural.into(),
            kind: kind.into(),
            namespaced,
        };
        let served = ServedResource {
            status_subresource,
            ..ServedResource::ordinary(resource)
        };
        resources.insert(plural.into(), served);
    }
    let groups: BTreeSet<&str> = TYPES.iter().map(|(group, ..)| *group).collect();
    let groups = groups
        .into_iter()
        .map(|group| (group.to_owned(), vec!["v1".to_owned()]));
    discovery.catalogue = Some(Catalogue::new());
    discovery.groups = Some(groups.collect());
    discovery
}

fn plan(spec: &serde_json::Value) -> Plan {
    let config = serde_json::json!({"metadata": {"name": "c"}, "spec": spec}).to_string();
    let config = SyncerConfig::parse(config.as_bytes()).unwrap();
    let wanted = Wanted::from_configs([&config], [], true);
    let (hub, edge) = (discovery(), discovery());
    let plan = Plan::resolve(&wanted, &Filter::default(), &hub, &edge, None);
    assert_eq!(plan.unknown, crate::plan::Unknown::default());
    plan
}

/// Downsync of all of some types in the namespace shop, each `plural.group`; cluster-scoped ones by themselves.
fn down(types: &[&str]) -> serde_json::Value {
    let resource = |name: &&str| {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        serde_json::json!({"group": group, "resource": resource, "apiVersion": "v1"})
    };
    let is_namespaced = |name: &&&str| TYPES.iter().any(|kind| name.starts_with(kind.1) && kind.3);
    let (namespaced, cluster): (Vec<&&str>, Vec<&&str>) = types.iter().partition(is_namespaced);
    let namespaced: Vec<_> = namespaced.into_iter().map(resource).collect();
    let within = if namespaced.is_empty() { vec![] } else { vec!["shop"] };
    let cluster: Vec<_> = cluster.into_iter().map(resource).collect();
    serde_json::json!({"namespaceScope": {"namespaces": within, "resources": namespaced}, "clusterScope": cluster})
}

fn up(types: &[&str]) -> serde_json::Value {
    let item = |name: &&str| {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        serde_json::json!({"apiGroup": group, "resources": [resource], "namespaces": ["*"], "names": ["*"]})
    };
    serde_json::json!({"upsync": types.iter().map(item).collect::<Vec<_>>()})
}

fn we() -> SyncTarget {
    SyncTarget {
        uid: "site-7".into(),
        former: vec!["site-6".into()],
    }
}

/// The permissions at a side, a line each.
fn lines(side: Side, spec: &serde_json::Value, change: impl FnOnce(&mut Situation<'_>)) -> (Vec<String>, Vec<String>) {
    let (plan, we) = (plan(spec), we());
    let mut situation = Situation {
        plan: &plan,
        own_namespace: "own",
        sync_target: &we,
        is_kcp: false,
        has_config_status: true,
        has_heartbeat: true,
        edge: None,
        elects_leader: false,
        polled: &[],
        allows_escalation: false,
        account: None,
        secret: None,
    };
    change(&mut situation);
    let found = needed(side, &situation);
    let line = |permission: &Permission| {
        let Permission {
            group,
            resource,
            names,
            namespace,
            verbs,
            row,
        } = permission;
        let mut line = format!("{} {}", kube_lite::qualified(group, resource), verbs.join(","));
        if let Some(namespace) = namespace {
            line = format!("{namespace}/{line}");
        }
        if !names.is_empty() {
            line = format!("{line} of {}", names.join(","));
        }
        if row.is_optional {
            line = format!("({line})");
        }
        line
    };
    (found.permissions.iter().map(line).collect(), found.escalating)
}

const CONFIGS: [&str; 5] = [
    "syncerconfigs.edge.kubestellar.io get,list,watch",
    "edgesyncconfigs.edge.kubestellar.io get,list,watch",
    "syncerconfigs/status.edge.kubestellar.io patch",
    "edgesyncconfigs/status.edge.kubestellar.io patch",
    "default/events.events.k8s.io create,patch",
];
const EVENTS: &str = "events.events.k8s.io create,patch";
const IDENTITY: &str = "namespaces get of kube-system,default";
const RECORDS: [&str; 2] = [
    "own/configmaps get,create,patch of edge-syncer-types-site-7",
    "own/configmaps get of edge-syncer-types-site-6,edge-syncer-types",
];
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

fn check(side: Side, spec: &serde_json::Value, expected: &[&str], change: impl FnOnce(&mut Situation<'_>)) {
    let (found, _) = lines(side, spec, change);
    assert_eq!(found, expected, "{side} {spec}");
}

#[test]
fn the_hub_lets_configs_be_read_and_marked_whatever_they_select() {
    check(Side::Hub, &down(&[]), &[&CONFIGS[..], &[IDENTITY]].concat(), |_| ());
    let main = [
        CONFIGS[0],
        CONFIGS[1],
        "syncerconfigs.edge.kubestellar.io patch",
        "edgesyncconfigs.edge.kubestellar.io patch",
        CONFIGS[4],
        IDENTITY,
    ];
    check(Side::Hub, &down(&[]), &main, |it| it.has_config_status = false);
    check(Side::Hub, &down(&[]), &[CONFIGS[0], CONFIGS[1], IDENTITY], |it| {
        it.has_heartbeat = false;
    });
    let edges = [
        "edges/status.edge.kubestellar.io patch of site-7",
        "edges.edge.kubestellar.io create,patch of site-7",
        IDENTITY,
    ];
    check(Side::Hub, &down(&[]), &[&CONFIGS[..], &edges].concat(), |it| {
        it.edge = Some("site-7".to_owned());
    });
    let kcp = [&CONFIGS[..], &[IDENTITY, "logicalclusters.core.kcp.io get of cluster"]].concat();
    check(Side::Hub, &down(&[]), &kcp, |it| it.is_kcp = true);
}

#[test]
fn the_hub_lets_what_goes_down_be_read_and_its_status_written() {
    let spec = down(&["configmaps", "deployments.apps", "gauges.example.org"]);
    let read = [
        IDENTITY,
        "configmaps get,list,watch",
        "namespaces get,list,watch",
        "deployments.apps get,list,watch",
        "gauges.example.org get,list,watch",
        "deployments/status.apps patch",
        "gauges.example.org patch",
        &format!("{CRDS} get"),
    ];
    check(Side::Hub, &spec, &[&CONFIGS[..], &read].concat(), |_| ());
    let polled = read.map(|line| line.replace(",watch", ""));
    let polled: Vec<&str> = polled.iter().map(String::as_str).collect();
    let configs = CONFIGS.map(|line| line.replace(",watch", ""));
    let configs: Vec<&str> = configs.iter().map(String::as_str).collect();
    check(Side::Hub, &spec, &[configs, polled].concat(), |it| {
        it.polled = &[Side::Hub];
    });
}

#[test]
fn the_hub_lets_what_goes_up_be_written() {
    let expected = [
        IDENTITY,
        "configmaps get,list,watch,create,patch,delete",
        "namespaces get,list,watch,create",
        "(*.* list)",
        "(namespaces delete)",
    ];
    check(
        Side::Hub,
        &up(&["configmaps"]),
        &[&CONFIGS[..], &expected].concat(),
        |_| (),
    );
}

#[test]
fn the_edge_lets_what_goes_down_be_written_and_what_goes_up_be_read() {
    let write = "get,list,watch,create,patch,delete";
    let expected = [
        &format!("configmaps {write}"),
        "namespaces get,list,watch,create,patch",
        IDENTITY,
        "(*.* list)",
        &format!("({CRDS} get,list)"),
        "(namespaces delete)",
        EVENTS,
        // The records are ConfigMaps, and have a rule of their own even where all ConfigMaps may be written.
        RECORDS[0],
        RECORDS[1],
    ];
    check(Side::Edge, &down(&["configmaps"]), &expected, |_| ());
    let expected = [&["deployments.apps get,list,watch", IDENTITY, EVENTS][..], &RECORDS].concat();
    check(Side::Edge, &up(&["deployments.apps"]), &expected, |_| ());
    let expected = [
        &[IDENTITY, EVENTS][..],
        &RECORDS,
        &[
            "own/leases.coordination.k8s.io create",
            "own/leases.coordination.k8s.io get,patch of edge-syncer-site-7",
        ],
    ]
    .concat();
    check(Side::Edge, &down(&[]), &expected, |it| it.elects_leader = true);
}

#[test]
fn renewed_tokens_are_asked_for_at_the_hub_and_kept_at_the_edge() {
    let account = ObjectName::new("edge-syncer", "site-7");
    let expected = [
        &CONFIGS[..],
        &[IDENTITY, "edge-syncer/serviceaccounts/token create of site-7"],
    ]
    .concat();
    check(Side::Hub, &down(&[]), &expected, |it| it.account = Some(account));
    let secret = Box::leak(Box::new(ObjectName::new("own", "hub")));
    let expected = [&[IDENTITY, EVENTS][..], &RECORDS, &["own/secrets get,patch of hub"]].concat();
    check(Side::Edge, &down(&[]), &expected, |it| it.secret = Some(secret));
}

#[test]
fn what_gives_permissions_is_left_out_unless_it_is_asked_for() {
    let spec = down(&["clusterroles.rbac.authorization.k8s.io"]);
    let (found, left_out) = lines(Side::Edge, &spec, |_| ());
    assert_eq!(found, [&[IDENTITY, EVENTS][..], &RECORDS].concat());
    assert_eq!(left_out, ["clusterroles.rbac.authorization.k8s.io"]);
    let (found, left_out) = lines(Side::Edge, &spec, |it| it.allows_escalation = true);
    let expected = [
        "clusterroles.rbac.authorization.k8s.io get,list,watch,create,patch,delete",
        "roles.rbac.authorization.k8s.io escalate,bind",
        "clusterroles.rbac.authorization.k8s.io escalate,bind",
    ];
    assert_eq!(found[..3], expected);
    assert!(left_out.is_empty());
    // Reading them gives nothing.
    let (found, left_out) = lines(Side::Hub, &spec, |_| ());
    assert!(found.contains(&"clusterroles.rbac.authorization.k8s.io get,list,watch".to_owned()));
    assert!(left_out.is_empty());
}

#[test]
fn a_type_that_is_not_there_yet_is_noticed_sooner_with_its_crd() {
    let (found, _) = lines(Side::Edge, &up(&["valves.example.org"]), |_| ());
    assert!(found.contains(&format!("({CRDS} list,watch)")), "{found:?}");
    let (found, _) = lines(Side::Edge, &up(&["configmaps"]), |_| ());
    assert!(!found.iter().any(|line| line.contains(CRDS)), "{found:?}");
}

#[test]
fn each_row_says_what_it_is_for_and_is_one() {
    for (at, row) in TABLE.iter().enumerate() {
        assert!(
            row.why.ends_with('.') && !row.feature.is_empty() && !row.verbs.is_empty(),
            "{row:?}"
        );
        // Read alone, behind a mark or in a role: what it is for, and what happens without it.
        assert!(
            !row.why.starts_with("And ") && !row.why.starts_with("The same"),
            "{row:?}"
        );
        assert!(
            row.without.is_empty() != row.is_optional
                || matches!(row.on, On::Roles | On::Events | On::EdgeStatus | On::EdgeObject),
            "{row:?}"
        );
        let is_same = |other: &Row| (other.side, other.on, other.verbs) == (row.side, row.on, row.verbs);
        let same = TABLE.iter().position(|other| is_same(other) && other.when == row.when);
        assert_eq!(same, Some(at), "{row:?}");
    }
}
