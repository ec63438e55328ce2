//! What servers and controllers fill in in a copy, where the hub wants something else (issue 41): all rows of the table in
//! `sync/kinds/filled_in.rs` that can be changed at all.

use http::Method;
use serde_json::{Value, json};

use crate::managers::{CRD_API, CRDS, patch_as};
use crate::support::Objects;
use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
use crate::support::objects::{JSON_PATCH, namespace, path};
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{arrives, becomes, crd, drop_crds, gone};

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

/// Each cluster has a controller that fills in the certificates of its own webhooks, without an annotation that asks for it:
/// what that of the hub has filled in counts only as long as none at the edge has.
#[tokio::test]
async fn controllers_that_fill_in_ca_bundles_at_both_sides_do_not_fight_through_the_syncer() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let [of_hub, of_edge, of_people] = ["hub", "edge", "people"].map(|name| base64(&Authority::new(name).certificate));
    let (group, _) = own_group(&shop);
    let client = json!({"service": {"namespace": shop, "name": "webhook"}});
    let rule = json!({"apiGroups": ["nobody.example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]});
    let hook = json!({"name": "a.example.org", "clientConfig": client, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"]});
    let admission = "admissionregistration.k8s.io/v1";
    let webhooks =
        |kind: &str| json!({"apiVersion": admission, "kind": kind, "metadata": {"name": shop}, "webhooks": [hook]});
    let mut definition = crd(&group, "issuers", true);
    definition["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
    let (definition_name, service) = (format!("issuers.{group}"), format!("v1.{group}-api"));
    let aggregated = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": service},
        "spec": {"group": format!("{group}-api"), "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "service": {"namespace": shop, "name": "api"}}});
    let of_hooks = "/webhooks/0/clientConfig/caBundle";
    let cases = [
        (
            "validatingwebhookconfigurations",
            &*shop,
            webhooks("ValidatingWebhookConfiguration"),
            of_hooks,
        ),
        (
            "mutatingwebhookconfigurations",
            &*shop,
            webhooks("MutatingWebhookConfiguration"),
            of_hooks,
        ),
        (
            CRDS,
            &*definition_name,
            definition,
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
        ("apiservices", &*service, aggregated, "/spec/caBundle"),
    ];
    let entries = cases.each_ref().map(|(plural, name, object, _)| {
        let (group, _) = object["apiVersion"]
            .as_str()
            .and_then(|api| api.split_once('/'))
            .expect("it has a group");
        json!({"group": group, "resource": plural, "apiVersion": "v1", "objects": [name]})
    });
    for (.., object, _) in &cases {
        hub.apply_as("people", object).await;
    }
    select(&hub, &json!({"clusterScope": entries})).await;
    let syncer = pair.syncer(&[]);
    for (plural, name, object, field) in &cases {
        let api = object["apiVersion"].as_str().expect("it has one");
        let (at, target) = ([api, *plural, "", *name], path(api, plural, "", name));
        let fill_in = async |side: &Objects, manager: &str, bundle: &str| {
            let patch = json!([{"op": "add", "path": field, "value": bundle}]);
            let target = format!("{target}?fieldManager={manager}");
            side.send(Method::PATCH, &target, JSON_PATCH, Some(&patch))
                .await
                .expect("it is filled in");
        };
        let note = async |note: &str| {
            let patch = json!({"metadata": {"annotations": {"note": note}}});
            hub.merge_patch(api, plural, "", name, &patch).await;
            let is_there = |copy: &Value| copy["metadata"]["annotations"]["note"] == note;
            becomes(&edge, at, "has the note", is_there)
                .await
                .pointer(field)
                .cloned()
        };
        arrives(&edge, api, plural, "", name).await;
        fill_in(&hub, "injector", &of_hub).await;
        let has = |bundle: &str| {
            let bundle = json!(bundle);
            move |copy: &Value| copy.pointer(field) == Some(&bundle)
        };
        becomes(
            &edge,
            at,
            "has that of the hub, as long as there is no other",
            has(&of_hub),
        )
        .await;
        fill_in(&edge, "injector", &of_edge).await;
        assert_eq!(note("1").await, Some(json!(of_edge)), "{plural}");
        assert_eq!(note("2").await, Some(json!(of_edge)), "{plural}");
        // People want theirs.
        fill_in(&hub, "kubectl-patch", &of_people).await;
        becomes(&edge, at, "has that of the hub's people", has(&of_people)).await;
    }
    let log = syncer.log();
    assert!(!log.contains("CopyChangedRepeatedly"), "{log}");
    for (plural, name, object, _) in &cases {
        let api = object["apiVersion"].as_str().expect("it has one");
        hub.delete(api, plural, "", name).await;
        gone(&edge, api, plural, "", name).await;
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
