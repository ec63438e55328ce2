//! What the tests share: syncers that stand for election.

use serde_json::{Value, json};

use crate::support::rbac::limited;
use crate::support::stage::{config_maps, select, stock};
use crate::support::story::SOON;
use crate::support::{AuditEvent, Objects, Pair, PairLease, Syncer, eventually, shared_pair};

pub(crate) const LEASES: &str = "coordination.k8s.io/v1";

/// The Lease of the sync target that the harness names.
pub(crate) const LEASE: &str = "edge-syncer-test";

/// What a log says when its syncer gets the lead.
pub(crate) const BEGINS: &str = "leading, the work begins";

/// What it says when it has lost the lead.
pub(crate) const ENDS: &str = "no longer leading";

/// What it says while another one leads.
pub(crate) const STANDBY: &str = "standing by";

/// A short one, where a test waits until it has expired; long enough that a busy machine does not lose it.
pub(crate) const SHORT: &str = "--lease-duration=12s";

/// A long one, where a test tells a Lease that was released from one that has expired: the standby looks every ten
/// seconds at most, and takes what was not released after 40 to 80.
pub(crate) const LONG: &str = "--lease-duration=60s";

/// The pair without the Lease of the test before, and one `ConfigMap` that is selected.
pub(crate) async fn pair_with_one_config_map() -> (PairLease, String) {
    let pair = shared_pair().await;
    pair.edge.objects().delete(LEASES, "leases", "default", LEASE).await;
    let shop = pair.namespace("shop");
    let hub = pair.hub.objects();
    stock(&hub, &shop, &["a"], &json!({"v": "0"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    (pair, shop)
}

/// A syncer that stands for election.
pub(crate) fn candidate(pair: &Pair, flags: &[&str]) -> Syncer {
    pair.syncer(&[&["--leader-elect"], flags].concat())
}

/// A leader and a standby.
pub(crate) async fn two_candidates(pair: &Pair, flags: &[&str]) -> (Syncer, Syncer) {
    let mut leader = candidate(pair, flags);
    leader.wait_for_log(BEGINS, SOON).await;
    let mut standby = candidate(pair, flags);
    standby.wait_for_log(STANDBY, SOON).await;
    (leader, standby)
}

/// True if the last that it has said is that it leads.
pub(crate) fn leads(syncer: &Syncer) -> bool {
    let log = syncer.log();
    log.rfind(BEGINS) > log.rfind(ENDS)
}

/// How many times a log says this.
pub(crate) fn count(syncer: &Syncer, text: &str) -> usize {
    syncer.log().matches(text).count()
}

/// The Lease as it is now; `null` when there is none or the edge does not answer.
pub(crate) async fn lease(edge: &Objects) -> Value {
    let lease = edge.try_get(LEASES, "leases", "default", LEASE).await;
    lease.ok().flatten().unwrap_or_default()
}

/// Waits until the Lease is renewed, and gives it as it was before.
pub(crate) async fn is_renewed(edge: &Objects) -> Value {
    let mut held = Value::Null;
    eventually("there is a lease", SOON, async || {
        held = lease(edge).await;
        held["spec"]["renewTime"].as_str().map(|_| ()).ok_or("not yet")
    })
    .await;
    let time = held["spec"]["renewTime"].as_str().expect("it was waited for");
    eventually("the lease is renewed", SOON, async || {
        let now = lease(edge).await;
        if now.is_null() {
            return Err(now);
        }
        assert_eq!(now["spec"]["acquireTime"], held["spec"]["acquireTime"]);
        if now["spec"]["renewTime"].as_str() > Some(time) {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
    held
}

/// A candidate that is called another name by the servers, where it may do everything too.
pub(crate) async fn other_candidate(pair: &Pair, flags: &[&str]) -> Syncer {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "limited-may-do-everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}],
    });
    for side in [&pair.hub, &pair.edge] {
        side.objects().update_as("harness", &binding).await;
    }
    let all = [&["--leader-elect"], flags].concat();
    Syncer::start(&limited(&pair.hub), &limited(&pair.edge), &all)
}

/// Withdraws what [`other_candidate`] was given.
pub(crate) async fn take_rights_back(pair: &Pair) {
    for side in [&pair.hub, &pair.edge] {
        let rbac = "rbac.authorization.k8s.io/v1";
        side.objects()
            .delete(rbac, "clusterrolebindings", "", "limited-may-do-everything")
            .await;
    }
}

pub(crate) fn is_about_the_lease(event: &AuditEvent) -> bool {
    event.uri.contains("/leases")
}
