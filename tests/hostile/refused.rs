//! Objects that the edge refuses for a time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::objects::config_map;
use crate::support::stage::{Stage, all_of, select, stage, stock};
use crate::support::story::{SOON, arrives, gone};
use crate::support::{Objects, SYNCER, eventually};

const API: &str = "admissionregistration.k8s.io/v1";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// From now on `ConfigMap`s of that namespace are refused whose name is `denied`.
async fn deny(edge: &Objects, shop: &str) {
    edge.create(&json!({
        "apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": shop},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "object.metadata.name != 'denied'", "message": "not now"}],
        },
    }))
    .await;
    edge.create(&json!({
        "apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": shop},
        "spec": {"policyName": shop, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop}}}},
    }))
    .await;
    // A policy takes effect some time after it was made.
    eventually("the policy counts", SOON, async || {
        let probe: Value = config_map(shop, "denied", json!({}));
        match edge.try_create(&probe).await {
            Err(error) if error.to_string().contains("not now") => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => {
                edge.delete("v1", "configmaps", shop, "denied").await;
                Err("it does not".to_owned())
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_was_refused_for_a_short_time_comes_soon_after_it() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &[] as &[&str], &json!({})).await;
    deny(&edge, &shop).await;
    stock(&hub, &shop, &["denied", "allowed"], &json!({"a": "b"})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let mark = pair.edge.audit_mark();
    let syncer = pair.syncer(&[]);
    arrives(&edge, "v1", "configmaps", &shop, "allowed").await;
    let tries = || {
        let requests = pair.edge.requests_since(SYNCER, mark).into_iter();
        requests.filter(|request| request.code == 422).count()
    };
    eventually("it is refused some times", SOON, async || match tries() {
        0..4 => Err("not yet"),
        _ => Ok(()),
    })
    .await;
    edge.delete(API, BINDINGS, "", &shop).await;
    gone(&edge, API, BINDINGS, "", &shop).await;
    edge.delete(API, POLICIES, "", &shop).await;
    // What waits for minutes after a refusal does not come in this time.
    eventually("it comes", Duration::from_secs(100), async || {
        let found = edge.try_get("v1", "configmaps", &shop, "denied").await;
        found.map_err(|error| error.to_string())?.ok_or("not yet".to_owned())
    })
    .await;
    assert!(tries() < 15, "it is not asked for all the time");
    eventually("its refusal is over", SOON, async || {
        let log = syncer.log();
        let lines = log.lines().filter(|line| line.contains("/denied"));
        let said: Vec<_> = lines.collect();
        if said.iter().any(|line| line.contains("works again")) && said.len() <= 4 {
            Ok(())
        } else {
            Err(said.join("\n"))
        }
    })
    .await;
}
