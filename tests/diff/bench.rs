//! The command, and proofs that nothing was changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::support::stage::Stage;
use crate::support::{AuditMark, Objects, Printed, SYNCER, Syncer};

impl Printed {
    /// What would be done: `edge: ConfigMap/shop/a would be created`.
    pub(crate) fn heads(&self) -> BTreeSet<String> {
        let heads = self.out.lines().filter_map(|line| line.strip_prefix("# "));
        heads.map(str::to_owned).collect()
    }

    /// Checks that just this would be done, and that the exit code says so.
    pub(crate) fn shows(&self, heads: &BTreeSet<String>) {
        assert_eq!((self.code, &self.heads()), (Some(1), heads), "{}{}", self.out, self.err);
    }

    /// The diff of one object, without its head.
    pub(crate) fn diff_of(&self, object: &str) -> String {
        let mut parts = self.out.split("# ").filter(|part| part.contains(&format!("{object} ")));
        let part = parts.next().unwrap_or_default();
        part.split_once('\n').map_or(String::new(), |(_, diff)| diff.to_owned())
    }
}

pub(crate) async fn diff_between(hub: &Path, edge: &Path, more: &[&str]) -> Printed {
    let output = Command::new(Syncer::program())
        .arg("diff")
        .arg(format!("--from-kubeconfig={}", hub.display()))
        .arg(format!("--to-kubeconfig={}", edge.display()))
        .arg("--sync-target-uid=test")
        .args(more)
        .output()
        .await
        .expect("the binary can be started");
    Printed::of(&output)
}

pub(crate) async fn diff(stage: &Stage, more: &[&str]) -> Printed {
    diff_between(&stage.pair.hub.kubeconfig(), &stage.pair.edge.kubeconfig(), more).await
}

/// Everything that a server has, as `hub Kind/namespace/name`, with the version of each.
pub(crate) type Versions = BTreeMap<String, String>;

/// Both sides.
pub(crate) async fn versions(stage: &Stage) -> Versions {
    let mut all = of_side("hub", &stage.hub).await;
    all.extend(of_side("edge", &stage.edge).await);
    all
}

async fn of_side(side: &str, at: &Objects) -> Versions {
    let groups = at.read("/apis").await.expect("the server lists its groups");
    let names = groups["groups"].as_array().into_iter().flatten();
    let mut paths = vec!["/api/v1".to_owned()];
    paths.extend(
        names.filter_map(|group| Some(format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str()?))),
    );
    let mut all = Versions::new();
    for path in paths {
        // That of a CRD that has just been deleted may be named and not be served.
        let Ok(types) = at.read(&path).await else { continue };
        for resource in types["resources"].as_array().into_iter().flatten() {
            let can_be_listed = resource["verbs"]
                .as_array()
                .is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
            let Some(plural) = resource["name"].as_str().filter(|_| can_be_listed) else {
                continue;
            };
            let Ok(list) = at.read(&format!("{path}/{plural}")).await else {
                continue;
            };
            for object in list["items"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let [namespace, name, version] =
                    ["namespace", "name", "resourceVersion"].map(|of| text(&object["metadata"][of]));
                // The servers' own.
                if namespace == "kube-system" && matches!(plural, "leases" | "configmaps") {
                    continue;
                }
                all.insert(
                    format!("{side} {}/{namespace}/{name}", text(&resource["kind"])),
                    version,
                );
            }
        }
    }
    all
}

/// A moment at both servers.
pub(crate) fn mark(stage: &Stage) -> [AuditMark; 2] {
    [stage.pair.hub.audit_mark(), stage.pair.edge.audit_mark()]
}

/// What has been sent since then that is no read: all of it was a dry run. Returns how many there were.
pub(crate) fn only_dry_runs_since(stage: &Stage, [hub, edge]: [AuditMark; 2]) -> usize {
    let mut count = 0;
    for (server, mark) in [(&stage.pair.hub, hub), (&stage.pair.edge, edge)] {
        for request in server.requests_since(SYNCER, mark) {
            assert!(!request.uri.contains("/leases"), "{request:?}");
            if request.is_write() {
                assert!(request.uri.contains("dryRun=All"), "{request:?}");
                assert!(
                    !request.uri.contains("/edge.kubestellar.io/"),
                    "no heartbeat: {request:?}"
                );
                assert!(!request.uri.contains("edge-syncer-types"), "no record: {request:?}");
                count += 1;
            }
        }
    }
    count
}
