//! Whatever a config or a filter file says, see [`kube_lite::fuzz`].

use kube_lite::discovery::{Discovery, Served, ServedResource};
use kube_lite::fuzz::fuzz;
use kube_lite::{ObjectName, ResourceType};

use super::{Filter, Plan, Wanted};
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;

const SYNCER_CONFIG: &str = r#"{"metadata":{"name":"a"},"spec":{"namespaceScope":{"namespaces":["shop"],"resources":[{"group":"","resource":"configmaps","apiVersion":"v1"}]},"namespacedObjects":[{"group":"","resource":"configmaps","apiVersion":"v1","objectsByNamespace":[{"namespace":"shop","names":["*","b"]}]}],"clusterScope":[{"group":"","resource":"namespaces","apiVersion":"v1","objects":["c"]}],"upsync":[{"apiGroup":"","resources":["*"],"namespaces":["*"],"names":["*"]}]}}"#;
const EDGE_SYNC_CONFIG: &str = r#"{"metadata":{"name":"b"},"spec":{"downSyncedResources":[{"group":"","version":"v1","kind":"ConfigMap","namespace":"shop","name":"*"}],"upSyncedResources":[{"version":"v1","kind":"ConfigMap","namespace":"*","name":"d"}],"conversions":[{"upstream":{"kind":"ConfigMap","name":"x"},"downstream":{"kind":"ConfigMap","name":"y"}}]}}"#;

fn served() -> Discovery {
    let resource = |plural: &str, kind: &str, namespaced| {
        let resource = ResourceType {
            group: String::new(),
            version: "v1".into(),
            resource: plural.into(),
            kind: kind.into(),
            namespaced,
        };
        let served = ServedResource::ordinary(resource);
        (plural.to_owned(), served)
    };
    let core = [
        resource("configmaps", "ConfigMap", true),
        resource("namespaces", "Namespace", false),
    ];
    let mut discovery = Discovery::default();
    discovery
        .known
        .insert((String::new(), "v1".into()), Served::Resources(core.into()));
    discovery
}

#[test]
fn fuzz_configs() {
    let served = served();
    fuzz(
        "configs",
        &[SYNCER_CONFIG.as_bytes(), EDGE_SYNC_CONFIG.as_bytes()],
        |text, _| {
            let (syncer, edge) = (SyncerConfig::parse(text).ok(), EdgeSyncConfig::parse(text).ok());
            let wanted = Wanted::from_configs(&syncer, &edge, true);
            let plan = Plan::resolve(&wanted, &Filter::default(), &served, &served, Some("own"));
            for planned in plan.types.values() {
                let _ = planned.selector.selects(&ObjectName::new("shop", "b"));
            }
            assert!(
                plan.problems.iter().all(|problem| problem.message.len() < 2000),
                "{:?}",
                plan.problems
            );
        },
    );
}

#[test]
fn fuzz_filter_file() {
    let file = b"# comment\ndeny secrets\ndeny *.example.org\nallow-namespace shop-*\ndeny-namespace kube-*\n";
    fuzz("filter file", &[file], |text, _| {
        let mut filter = Filter::default();
        let _ = filter.add_file("rules", &String::from_utf8_lossy(text));
        let _ = filter.refuses(
            crate::plan::Direction::Down,
            &ResourceType::config_maps(),
            &ObjectName::new("shop", "a"),
        );
    });
}
