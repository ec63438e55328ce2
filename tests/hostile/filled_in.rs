//! What servers and controllers fill in in a copy, where the hub wants something else (issue 41): all rows of the table in
//! `sync/take_over.rs` that can be changed at all.

use serde_json::{Value, json};

use crate::managers::{CRD_API, CRDS, patch_as};
use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
use crate::support::objects::{namespace, path};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{arrives, becomes, crd, drop_crds};

/// Values that a controller has filled in, each with what the hub wants then and what excludes it.
#[tokio::test]
async fn what_a_controller_has_filled_in_gives_way_to_what_the_hub_wants() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let bundle = json!(base64(&Authority::new("injected").certificate));
    let (group, _) = own_group(&shop);
    let mut definition = crd(&group, "issuers", true);
    let name = format!("issuers.{group}");
    let client = json!({"service": {"namespace": shop, "name": "webhook"}});
    definition["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
    let service = format!("v1.{group}-api");
    let aggregated = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": service},
        "spec": {"group": format!("{group}-api"), "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "service": {"namespace": shop, "name": "api"}}});
    let port = json!({"port": 80, "name": "http"});
    let exposed = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": shop, "name": "web"},
        "spec": {"type": "NodePort", "ports": [port], "selector": {"app": "a"}}});
    let cases = [
        (
            [CRD_API, CRDS, "", &*name],
            definition,
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}),
            json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}),
            "/spec/conversion",
            json!({"strategy": "None"}),
        ),
        (
            ["apiregistration.k8s.io/v1", "apiservices", "", &service],
            aggregated,
            json!({"spec": {"caBundle": bundle}}),
            json!({"spec": {"insecureSkipTLSVerify": true}}),
            "/spec/insecureSkipTLSVerify",
            json!(true),
        ),
        (
            ["v1", "services", &*shop, "web"],
            exposed,
            json!({"spec": {"ports": [{"port": 80, "name": "http", "nodePort": 30_977}]}}),
            json!({"spec": {"type": "ExternalName", "externalName": "example.org", "ports": null, "clusterIP": null, "clusterIPs": null}}),
            "/spec/type",
            json!("ExternalName"),
        ),
    ];
    let spec = json!({
        "namespaceScope": all_of(&shop, &[("", "services")])["namespaceScope"],
        "clusterScope": [
            {"group": "apiextensions.k8s.io", "resource": CRDS, "apiVersion": "v1", "objects": [name]},
            {"group": "apiregistration.k8s.io", "resource": "apiservices", "apiVersion": "v1", "objects": [service]},
        ],
    });
    for (_, object, ..) in &cases {
        hub.create(object).await;
    }
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    for (at, _, filled_in, change, field, expected) in &cases {
        let [api, plural, space, name] = *at;
        arrives(&edge, api, plural, space, name).await;
        patch_as(&edge, "injector", &path(api, plural, space, name), filled_in).await;
        hub.merge_patch(api, plural, space, name, change).await;
        becomes(&edge, *at, "is as the hub wants it", |copy| {
            copy.pointer(field) == Some(expected)
        })
        .await;
        hub.delete(api, plural, space, name).await;
    }
    drop_crds(&[&edge], &[&name]).await;
}

/// What else may be filled in, where the hub can still say something else: its word counts. (Of claims, Pods and Jobs nothing
/// of the table can be changed; annotations of controllers are never taken from the hub.)
#[tokio::test]
async fn what_the_hub_says_counts_where_a_controller_has_filled_in_something_else() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let bundle = json!(base64(&Authority::new("injected").certificate));
    let client = json!({"service": {"namespace": shop, "name": "webhook"}});
    let rule = json!({"apiGroups": ["nobody.example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]});
    let hook = |client: Value| {
        json!({"name": "a.example.org", "clientConfig": client, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"]})
    };
    let admission = "admissionregistration.k8s.io/v1";
    let webhooks = |kind: &str| json!({"apiVersion": admission, "kind": kind, "metadata": {"name": shop}, "webhooks": [hook(client.clone())]});
    let filled = hook(json!({"service": client["service"], "caBundle": bundle}));
    let wanted = hook(json!({"url": "https://example.org/hook"}));
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": shop}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "storageClassName": "none", "hostPath": {"path": "/nowhere"}}});
    let bound =
        |name: &str| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": shop, "name": name});
    let mut bound_there = bound("there");
    bound_there["uid"] = json!("cb3f3d6a-0000-4000-8000-000000000000");
    let local = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": shop, "name": "balanced"},
        "spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}], "selector": {"app": "a"}}});
    let mut cases = Vec::new();
    for (kind, plural) in [
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ] {
        let (fills, wants) = (json!({"webhooks": [filled]}), json!({"webhooks": [wanted]}));
        let url = ("/webhooks/0/clientConfig/url", json!("https://example.org/hook"));
        cases.push(([admission, plural, "", &*shop], webhooks(kind), fills, wants, url));
    }
    cases.push((
        ["v1", "persistentvolumes", "", &*shop],
        volume,
        json!({"spec": {"claimRef": bound_there}}),
        json!({"spec": {"claimRef": bound("here")}}),
        ("/spec/claimRef/name", json!("here")),
    ));
    cases.push((
        ["v1", "services", &*shop, "balanced"],
        local,
        json!({"spec": {"ipFamilyPolicy": "SingleStack"}}),
        json!({"spec": {"externalTrafficPolicy": "Cluster", "ipFamilyPolicy": "PreferDualStack"}}),
        ("/spec/ipFamilyPolicy", json!("PreferDualStack")),
    ));
    let cluster = [
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("", "persistentvolumes"),
    ];
    let cluster = cluster
        .map(|(group, resource)| json!({"group": group, "resource": resource, "apiVersion": "v1", "objects": [shop]}));
    let spec = json!({
        "namespaceScope": all_of(&shop, &[("", "services")])["namespaceScope"],
        "clusterScope": cluster,
    });
    select(&hub, &spec).await;
    let _syncer = pair.syncer(&[]);
    for (at, object, filled_in, change, (field, expected)) in &cases {
        let [api, plural, space, name] = *at;
        hub.create(object).await;
        arrives(&edge, api, plural, space, name).await;
        patch_as(&edge, "controller", &path(api, plural, space, name), filled_in).await;
        hub.merge_patch(api, plural, space, name, change).await;
        becomes(&edge, *at, "is as the hub wants it", |copy| {
            copy.pointer(field) == Some(expected)
        })
        .await;
        hub.delete(api, plural, space, name).await;
    }
}

/// The UID of a claim was left in a volume whose claim is another one, or none, by now: it was released then, or deleted.
#[tokio::test]
async fn the_uid_of_a_claim_goes_with_its_name() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let claim = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": shop, "name": name, "uid": uid});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": shop}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "storageClassName": "none", "hostPath": {"path": "/nowhere"}, "claimRef": claim("a", "of-the-hub")}});
    hub.create(&volume).await;
    let volumes = json!([{"group": "", "resource": "persistentvolumes", "apiVersion": "v1", "objects": [shop]}]);
    select(&hub, &json!({"clusterScope": volumes})).await;
    let syncer = pair.syncer(&[]);
    let at = ["v1", "persistentvolumes", "", &*shop];
    let claimed = |name: &'static str, uid: Option<&'static str>| {
        move |copy: &Value| {
            let claim = &copy["spec"]["claimRef"];
            claim["name"] == name && claim["uid"].as_str() == uid
        }
    };
    becomes(&edge, at, "has the claim without the hub's UID", claimed("a", None)).await;
    let target = path("v1", "persistentvolumes", "", &shop);
    let bind = async |name: &str| {
        let bound = json!({"spec": {"claimRef": {"name": name, "uid": "of-the-edge"}}});
        patch_as(&edge, "controller", &target, &bound).await;
    };
    bind("a").await;
    let change = json!({"metadata": {"annotations": {"note": "1"}}});
    hub.merge_patch("v1", "persistentvolumes", "", &shop, &change).await;
    becomes(&edge, at, "keeps the edge's UID", |copy| {
        copy["metadata"]["annotations"]["note"] == "1" && claimed("a", Some("of-the-edge"))(copy)
    })
    .await;
    let another = json!({"spec": {"claimRef": {"name": "b", "uid": "another-of-the-hub"}}});
    hub.merge_patch("v1", "persistentvolumes", "", &shop, &another).await;
    becomes(&edge, at, "has the other claim alone", claimed("b", None)).await;
    bind("b").await;
    let none = json!({"spec": {"claimRef": null}});
    hub.merge_patch("v1", "persistentvolumes", "", &shop, &none).await;
    becomes(&edge, at, "has no claim", |copy| copy["spec"]["claimRef"].is_null()).await;
    assert!(!syncer.log().contains("reason=CopyDrifted"), "{}", syncer.log());
    hub.delete("v1", "persistentvolumes", "", &shop).await;
}
