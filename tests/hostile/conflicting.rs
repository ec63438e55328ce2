//! Fields that are invalid together with those that the syncer applies: of people, of controllers, of what was there
//! before, and of its own create. All were found from outside.

use http::Method;
use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{MERGE_PATCH, Objects, namespace, path};
use crate::support::stage::{Stage, all_of, select, stage};
use crate::support::story::{annotation, arrives, becomes, upsync_all};
use crate::support::{AuditEvent, SYNCER};

in_both_modes!(
    the_first_change_of_an_upsynced_object_arrives_whatever_it_replaces,
    what_others_have_replaced_in_a_copy_is_as_the_hub_wants_it_again,
    what_is_at_the_edge_already_is_overwritten_though_both_together_are_invalid,
    what_is_at_the_edge_already_and_has_no_owners_is_overwritten_too,
);

/// An object, and the patch of its spec that replaces something by what must not be beside it.
struct Case {
    at: [&'static str; 3],
    spec: Value,
    patch: Value,
}

fn cases() -> Vec<Case> {
    let deployment = |pod: Value| {
        json!({"selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod}})
    };
    let container = |more: Value| {
        let mut container = json!({"name": "c", "image": "example.org/c:1"});
        for (name, value) in more.as_object().expect("it is one") {
            container[name] = value.clone();
        }
        json!({"containers": [container]})
    };
    let variable = |value: Value| container(json!({"env": [value]}));
    let reference = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}});
    let secret = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}});
    let probe = |handler: Value| container(json!({"livenessProbe": handler}));
    let plain = || container(json!({}));
    let of = |at, spec, patch| Case { at, spec, patch };
    let deployments = |name| ["apps/v1", "deployments", name];
    vec![
        of(
            ["v1", "services", "port"],
            json!({"ports": [{"name": "http", "port": 80}]}),
            json!({"ports": [{"name": "http", "port": 8080}]}),
        ),
        of(
            ["policy/v1", "poddisruptionbudgets", "budget"],
            json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}),
            json!({"maxUnavailable": null, "minAvailable": 1}),
        ),
        of(
            deployments("env"),
            deployment(variable(json!({"name": "A", "value": "1"}))),
            json!({"template": {"spec": variable(reference.clone())}}),
        ),
        of(
            deployments("source"),
            deployment(variable(reference)),
            json!({"template": {"spec": variable(secret)}}),
        ),
        of(
            deployments("probe"),
            deployment(probe(json!({"httpGet": {"path": "/", "port": 80}}))),
            json!({"template": {"spec": probe(json!({"exec": {"command": ["x"]}}))}}),
        ),
        of(
            deployments("strategy"),
            deployment(plain()),
            json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
        ),
        of(
            deployments("volume"),
            deployment(json!({"containers": [{"name": "c", "image": "example.org/c:1"}],
                "volumes": [{"name": "v", "emptyDir": {}}]})),
            json!({"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}),
        ),
        of(
            deployments("container"),
            deployment(container(json!({"ports": [{"name": "http", "containerPort": 80}]}))),
            json!({"template": {"spec": container(json!({"ports": [{"name": "http", "containerPort": 8080}]}))}}),
        ),
    ]
}

impl Case {
    async fn create(&self, at: &Objects, shop: &str) {
        let [api_version, plural, name] = self.at;
        let kind = match plural {
            "services" => "Service",
            "deployments" => "Deployment",
            _ => "PodDisruptionBudget",
        };
        at.create(
            &json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": shop, "name": name},
            "spec": self.spec}),
        )
        .await;
    }

    /// Replaces what its patch says.
    async fn change(&self, at: &Objects, shop: &str, manager: &str) {
        let [api_version, plural, name] = self.at;
        let target = format!("{}?fieldManager={manager}", path(api_version, plural, shop, name));
        let patch = json!({"spec": self.patch});
        let sent = at.send(Method::PATCH, &target, MERGE_PATCH, Some(&patch));
        sent.await.expect("it is valid by itself");
    }

    /// Replaces the object by itself with nobody in the list of field managers, as a copy of the Go syncer or as it is.
    async fn lose_owners(&self, at: &Objects, shop: &str, by_go: bool) {
        let [api_version, plural, name] = self.at;
        let mut object = arrives(at, api_version, plural, shop, name).await;
        object["metadata"]["managedFields"] = json!([{}]);
        if by_go {
            let kind = object["kind"].as_str().expect("it has one");
            let mark = json!({"edge.kubestellar.io/downsynced": format!("{kind}/{shop}/{name}")});
            object["metadata"]["annotations"] = mark;
        }
        let replaced = at.replace(&object).await;
        assert_eq!(replaced["metadata"]["managedFields"], Value::Null);
    }

    /// Waits until the copy is as its origin is in all that the case is about.
    async fn is_synced(&self, from: &Objects, to: &Objects, shop: &str) -> Value {
        let [api_version, plural, name] = self.at;
        let about = |object: &Value| {
            let pod = &object["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let mut ports = object["spec"]["ports"].clone();
            for port in ports.as_array_mut().into_iter().flatten() {
                port.as_object_mut().map(|port| port.remove("nodePort"));
            }
            let budget = (
                object["spec"]["maxUnavailable"].clone(),
                object["spec"]["minAvailable"].clone(),
            );
            let container = ["env", "ports", "livenessProbe"].map(|field| container[field].clone());
            (
                ports,
                budget,
                container,
                pod["volumes"].clone(),
                object["spec"]["strategy"].clone(),
            )
        };
        let wanted = about(&arrives(from, api_version, plural, shop, name).await);
        becomes(to, [api_version, plural, shop, name], "is as its origin", |copy| {
            about(copy) == wanted
        })
        .await
    }
}

async fn the_first_change_of_an_upsynced_object_arrives_whatever_it_replaces(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    let spec = json!({"upsync": [
        upsync_all("", &["services"], &shop),
        upsync_all("apps", &["deployments"], &shop),
        upsync_all("policy", &["poddisruptionbudgets"], &shop),
    ]});
    select(&hub, &spec).await;
    let mark = pair.hub.audit_mark();
    let syncer = pair.syncer(flags);
    let cases = cases();
    for case in &cases {
        case.create(&edge, &shop).await;
    }
    for case in &cases {
        arrives(&hub, case.at[0], case.at[1], &shop, case.at[2]).await;
        case.change(&edge, &shop, "people").await;
    }
    for case in &cases {
        case.is_synced(&edge, &hub, &shop).await;
    }
    // And at once.
    let refused = |event: &AuditEvent| event.code == 422 && event.uri.contains(&*shop);
    let refused: Vec<_> = pair
        .hub
        .requests_since(SYNCER, mark)
        .into_iter()
        .filter(refused)
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(!syncer.log().contains("WARN"), "{}", syncer.log());
}

const TYPES: [(&str, &str); 3] = [
    ("", "services"),
    ("apps", "deployments"),
    ("policy", "poddisruptionbudgets"),
];

async fn what_others_have_replaced_in_a_copy_is_as_the_hub_wants_it_again(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &TYPES)).await;
    let _syncer = pair.syncer(flags);
    let cases = cases();
    for case in &cases {
        case.create(&hub, &shop).await;
    }
    for case in &cases {
        arrives(&edge, case.at[0], case.at[1], &shop, case.at[2]).await;
    }
    for manager in ["kubectl-edit", "operator"] {
        for case in &cases {
            case.change(&edge, &shop, manager).await;
        }
        for case in &cases {
            case.is_synced(&hub, &edge, &shop).await;
        }
    }
    // And what the hub wants next arrives.
    for case in &cases {
        case.change(&hub, &shop, "next").await;
    }
    for case in &cases {
        case.is_synced(&hub, &edge, &shop).await;
    }
}

async fn what_is_at_the_edge_already_is_overwritten_though_both_together_are_invalid(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let cases = cases();
    for case in &cases {
        case.create(&hub, &shop).await;
        case.create(&edge, &shop).await;
        case.change(&edge, &shop, "helm").await;
    }
    select(&hub, &all_of(&shop, &TYPES)).await;
    let _syncer = pair.syncer(flags);
    for case in &cases {
        case.is_synced(&hub, &edge, &shop).await;
        case.change(&hub, &shop, "next").await;
    }
    for case in &cases {
        let copy = case.is_synced(&hub, &edge, &shop).await;
        assert_eq!(annotation(&copy, "adopted"), "true");
        hub.delete(case.at[0], case.at[1], &shop, case.at[2]).await;
    }
    for case in &cases {
        let at = [case.at[0], case.at[1], &shop, case.at[2]];
        becomes(&edge, at, "is released", |copy| annotation(copy, "adopted").is_null()).await;
    }
}

/// The updates of the Go syncer clear the list of field managers, and so can people.
async fn what_is_at_the_edge_already_and_has_no_owners_is_overwritten_too(flags: Mode) {
    for by_go in [true, false] {
        let Stage { pair, shop, hub, edge } = stage().await;
        for side in [&hub, &edge] {
            side.create(&namespace(&shop)).await;
        }
        let cases = cases();
        for case in &cases {
            case.create(&hub, &shop).await;
            case.create(&edge, &shop).await;
            case.change(&edge, &shop, "syncer").await;
            case.lose_owners(&edge, &shop, by_go).await;
        }
        select(&hub, &all_of(&shop, &TYPES)).await;
        let _syncer = pair.syncer(flags);
        for case in &cases {
            case.is_synced(&hub, &edge, &shop).await;
            case.change(&hub, &shop, "next").await;
        }
        for case in &cases {
            let copy = case.is_synced(&hub, &edge, &shop).await;
            let adopted = if by_go { Value::Null } else { json!("true") };
            assert_eq!(annotation(&copy, "adopted"), adopted);
        }
    }
}
