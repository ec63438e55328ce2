//! What fails for a moment only, or for nobody: a server that starts or is busy, and a type that nothing selects any more.

use serde_json::json;

use crate::figures::{ANYWHERE, address_of, shows};
use crate::front::Front;
use crate::outages::RECOVERED;
use crate::support::objects::config_map;
use crate::support::rbac::{allow, disallow, limited};
use crate::support::stage::{Stage, all_of, select, stage, stock};
use crate::support::story::{SOON, arrives, reselect};
use crate::support::{Syncer, eventually, lines};

/// Types of many groups.
const TYPES: [(&str, &str); 15] = [
    ("", "configmaps"),
    ("", "secrets"),
    ("", "services"),
    ("", "serviceaccounts"),
    ("", "persistentvolumeclaims"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

/// The lines at level warn.
fn warnings(syncer: &Syncer) -> Vec<String> {
    let log = syncer.log();
    log.lines()
        .filter(|line| line.contains(" WARN "))
        .map(str::to_owned)
        .collect()
}

async fn fails(syncer: &mut Syncer, count: usize) {
    let address = address_of(syncer).await;
    shows(address, &format!("edge_syncer_failing {count}")).await;
}

#[tokio::test]
async fn a_type_that_may_not_be_listed_fails_only_as_long_as_it_is_selected() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let most = json!({"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["*"]});
    allow(&edge, &shop, json!([most])).await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let with_secrets = all_of(&shop, &[("", "configmaps"), ("", "secrets")]);
    let without = all_of(&shop, &[("", "configmaps")]);
    select(&hub, &with_secrets).await;
    for is_restarted in [false, true] {
        let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &limited(&pair.edge), &[ANYWHERE]);
        syncer.wait_for_log("reason=Forbidden", SOON).await;
        fails(&mut syncer, 1).await;
        if is_restarted {
            // The record names the type from before, so that copies of it may be left.
            syncer.terminate().await;
            reselect(&hub, &without).await;
            syncer = Syncer::start(&pair.hub.kubeconfig(), &limited(&pair.edge), &[ANYWHERE]);
            syncer
                .wait_for_log("what is left of a type that no config selects", SOON)
                .await;
            arrives(&edge, "v1", "configmaps", &shop, "a").await;
            fails(&mut syncer, 0).await;
        } else {
            reselect(&hub, &without).await;
            fails(&mut syncer, 0).await;
            reselect(&hub, &with_secrets).await;
            fails(&mut syncer, 1).await;
        }
    }
    disallow(&edge, &shop).await;
}

#[tokio::test]
async fn the_restart_of_an_api_server_is_one_warning() {
    let Stage {
        mut pair,
        shop,
        hub,
        edge,
    } = stage().await;
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    allow(&edge, &shop, json!([all])).await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &all_of(&shop, &TYPES)).await;
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &limited(&pair.edge), &[]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    let before = warnings(&syncer);
    pair.edge.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("edge"), SOON).await;
    pair.edge.start_apiserver().await;
    hub.create(&config_map(&shop, "b", json!({}))).await;
    eventually("the next object arrives", RECOVERED, async || {
        let found = edge.try_get("v1", "configmaps", &shop, "b").await;
        found
            .map_err(|error| error.to_string())?
            .ok_or("it is not there".to_owned())
    })
    .await;
    let after = warnings(&syncer);
    assert_eq!(after.len(), before.len() + 1, "{after:#?}");
    disallow(&edge, &shop).await;
}

#[tokio::test]
async fn what_a_server_refuses_while_it_starts_belongs_to_the_outage() {
    const PAGE: &str = "<html>no server is available</html>";
    const ROLES: &str = r#"{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,
        "message":"x is forbidden: User \"limited\" cannot list resource \"x\" in API group \"\" at the cluster scope"}"#;
    let Stage { pair, shop, hub, edge } = stage().await;
    let front = Front::of(&pair.edge).await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &all_of(&shop, &TYPES)).await;
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &front.kubeconfig(&pair.edge), &[]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    front.answers(|_, _| Some((503, PAGE)));
    hub.create(&config_map(&shop, "b", json!({}))).await;
    syncer.wait_for_log(&lines::unreachable("edge"), RECOVERED).await;
    // It answers, and does not know its roles yet.
    front.answers(|path, _| path.starts_with("/apis/").then_some((403, ROLES)));
    syncer.wait_for_log("reason=SideReachable", RECOVERED).await;
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
    front.passes();
    let deployment = crate::support::statuses::deployment(&shop, "web:1");
    hub.create(&deployment).await;
    eventually("all types are read again", RECOVERED, async || {
        let found = edge.try_get("apps/v1", "deployments", &shop, "web").await;
        found
            .map_err(|error| error.to_string())?
            .ok_or("it is not there".to_owned())
    })
    .await;
    let found = warnings(&syncer);
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[tokio::test]
async fn a_server_that_is_busy_has_a_warning_only_once_that_lasts() {
    const BUSY: &str = r#"{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,
        "message":"too many requests, please try again later","details":{"retryAfterSeconds":1}}"#;
    let Stage { pair, shop, hub, edge } = stage().await;
    let front = Front::of(&pair.edge).await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), ("", "secrets")])).await;
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &front.kubeconfig(&pair.edge), &[]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log("reason=InSync", SOON).await;
    // Writes of one object, which are refused some times and then taken.
    front.answers(|path, _| path.contains("/configmaps/b").then_some((429, BUSY)));
    hub.create(&config_map(&shop, "b", json!({}))).await;
    let requests = front.requests();
    eventually("it is tried some times", SOON, async || {
        match front.requests() - requests {
            0..4 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    front.passes();
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
    assert_eq!(warnings(&syncer), [""; 0]);
    // That lasts.
    front.answers(|path, _| path.contains("/configmaps/c").then_some((429, BUSY)));
    hub.create(&config_map(&shop, "c", json!({}))).await;
    syncer.wait_for_log("(HTTP 429)", RECOVERED).await;
    front.passes();
    let recovered = format!("reason=Recovered msg=\"works again\" side=edge object=ConfigMap/{shop}/c");
    syncer.wait_for_log(&recovered, RECOVERED).await;
    assert_eq!(warnings(&syncer).len(), 1, "{}", syncer.log());
}
