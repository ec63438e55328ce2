//! What servers and controllers fill in in a copy, where the hub wants something else (issue 41): all rows of the table in
//! `sync/kinds/filled_in.rs` that can be changed at all.

use http::Method;
use serde_json::{Value, json};

use crate::managers::{CRD_API, CRDS, patch_as};
use crate::support::Objects;
use crate::support::certs::Authority;
use crate::support::eventually;
use crate::support::kubeconfig::base64;
use crate::support::objects::{JSON, JSON_PATCH, namespace, path};
use crate::support::stage::{Stage, all_of, cluster_objects, own_group, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, drop_crds, gone, install_crd};

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

const POLICIES: &str = "admissionregistration.k8s.io/v1";

/// From now on objects of a type with this name are refused at the edge unless this is so; `probe` is one that is refused.
async fn requires(edge: &Objects, name: &str, (group, plural): (&str, &str), expression: &str, probe: &Value) {
    let rules = json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": [plural]}]);
    let of_name = format!("object.metadata.name.startsWith('{name}')");
    edge.create(
        &json!({"apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": rules}, "failurePolicy": "Fail",
            "matchConditions": [{"name": "name", "expression": of_name}],
            "validations": [{"expression": expression, "message": "they exclude each other"}]}}),
    )
    .await;
    edge.create(
        &json!({"apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]}}),
    )
    .await;
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let space = probe["metadata"]["namespace"].as_str().unwrap_or_default();
    let target = format!("{}?dryRun=All", path(&text(&probe["apiVersion"]), plural, space, ""));
    // A policy takes effect some time after it was made.
    eventually("the policy counts", SOON, async || {
        match edge.send(Method::POST, &target, JSON, Some(probe)).await {
            Err(error) if error.to_string().contains("exclude each other") => Ok(()),
            other => Err(format!("{:?}", other.map(drop))),
        }
    })
    .await;
}

/// The class that a controller of the edge has filled in forbids the annotation by which the hub names another one.
#[tokio::test]
async fn a_class_that_was_filled_in_gives_way_to_the_one_that_the_hub_names_in_another_way() {
    const API: &str = "networking.k8s.io/v1";
    const CLASS: &str = "kubernetes.io/ingress.class";
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let mut ingress = json!({"apiVersion": API, "kind": "Ingress", "metadata": {"namespace": shop, "name": shop},
        "spec": {"defaultBackend": backend}});
    let excluded = format!(
        "!(has(object.metadata.annotations) && '{CLASS}' in object.metadata.annotations && has(object.spec.ingressClassName))"
    );
    let mut both = ingress.clone();
    both["metadata"]["annotations"] = json!({CLASS: "a"});
    both["spec"]["ingressClassName"] = json!("a");
    requires(&edge, &shop, ("networking.k8s.io", "ingresses"), &excluded, &both).await;
    hub.create(&ingress).await;
    select(&hub, &all_of(&shop, &[("networking.k8s.io", "ingresses")])).await;
    let _syncer = pair.syncer(&[]);
    let at = [API, "ingresses", &*shop, &*shop];
    arrives(&edge, API, "ingresses", &shop, &shop).await;
    let target = path(API, "ingresses", &shop, &shop);
    let filled_in = json!({"spec": {"ingressClassName": "of-the-edge"}});
    patch_as(&edge, "ingress-controller", &target, &filled_in).await;
    // As long as nothing excludes it, it stays.
    let note = json!({"metadata": {"annotations": {"note": "1"}}});
    hub.merge_patch(API, "ingresses", &shop, &shop, &note).await;
    becomes(&edge, at, "keeps what was filled in", |copy| {
        copy["metadata"]["annotations"]["note"] == "1" && copy["spec"]["ingressClassName"] == "of-the-edge"
    })
    .await;
    let named = json!({"metadata": {"annotations": {CLASS: "of-the-hub"}}});
    hub.merge_patch(API, "ingresses", &shop, &shop, &named).await;
    becomes(&edge, at, "has the class of the hub alone", |copy| {
        copy["metadata"]["annotations"][CLASS] == "of-the-hub" && copy["spec"]["ingressClassName"].is_null()
    })
    .await;
    // And the other way round, by its field.
    ingress["spec"]["ingressClassName"] = json!("by-its-field");
    hub.replace(&ingress).await;
    becomes(&edge, at, "has the class of the hub by its field", |copy| {
        copy["metadata"]["annotations"][CLASS].is_null() && copy["spec"]["ingressClassName"] == "by-its-field"
    })
    .await;
    edge.delete(POLICIES, "validatingadmissionpolicies", "", &shop).await;
}

/// What the controller of the edge has gathered for a role is neither the hub's nor in its way.
#[tokio::test]
async fn rules_that_were_gathered_give_way_once_the_hub_writes_them_itself() {
    const API: &str = "rbac.authorization.k8s.io/v1";
    const CONTROLLER: &str = "clusterrole-aggregation-controller";
    let Stage { pair, shop, hub, edge } = stage().await;
    let may_get = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"part-of": shop}}]});
    let role = |more: &Value| {
        let mut role = json!({"apiVersion": API, "kind": "ClusterRole", "metadata": {"name": shop}});
        for (field, value) in more.as_object().expect("it is one") {
            role[field] = value.clone();
        }
        role
    };
    hub.create(&role(&json!({"aggregationRule": selector}))).await;
    let roles = cluster_objects("rbac.authorization.k8s.io", "clusterroles", &[&shop]);
    select(&hub, &json!({"clusterScope": [roles]})).await;
    let _syncer = pair.syncer(&[]);
    let at = [API, "clusterroles", "", &*shop];
    let gathers = async |resource: &str| {
        edge.apply_as(CONTROLLER, &role(&json!({"rules": [may_get(resource)]})))
            .await;
    };
    let has = |is_aggregated: bool, rules: Value| {
        move |copy: &Value| {
            let found = copy["rules"].as_array().cloned().unwrap_or_default();
            copy["aggregationRule"].is_object() == is_aggregated && json!(found) == rules
        }
    };
    // With rules of its own, with none at all, and each time back.
    for (own, expected) in [
        (json!({"rules": [may_get("secrets")]}), json!([may_get("secrets")])),
        (json!({}), json!([])),
    ] {
        becomes(&edge, at, "gathers", |copy| copy["aggregationRule"].is_object()).await;
        gathers("pods").await;
        let mut noted = role(&json!({"aggregationRule": selector}));
        noted["metadata"]["annotations"] = json!({"note": expected.to_string()});
        hub.replace(&noted).await;
        let note = json!(expected.to_string());
        becomes(&edge, at, "keeps what was gathered", |copy| {
            copy["metadata"]["annotations"]["note"] == note && has(true, json!([may_get("pods")]))(copy)
        })
        .await;
        hub.replace(&role(&own)).await;
        becomes(&edge, at, "has the rules of the hub alone", has(false, expected)).await;
        hub.replace(&role(&json!({"aggregationRule": selector}))).await;
    }
    becomes(&edge, at, "gathers again", has(true, json!([]))).await;
}

/// As the CRD of snapshots has it, in small: a content that is bound may not be one that is retained.
fn contents() -> Value {
    let mut definition = crd("snapshot.storage.k8s.io", "volumesnapshotcontents", false);
    definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    definition["spec"]["names"]["kind"] = json!("VolumeSnapshotContent");
    let text = json!({"type": "string"});
    let reference =
        json!({"type": "object", "properties": {"kind": text, "namespace": text, "name": text, "uid": text}});
    let exclusive = json!([{"rule": "!(has(self.volumeSnapshotRef.uid) && self.deletionPolicy == 'Retain')",
        "message": "what is bound is not retained"}]);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["volumeSnapshotRef", "deletionPolicy"], "x-kubernetes-validations": exclusive,
        "properties": {"deletionPolicy": text, "volumeSnapshotRef": reference}}}});
    definition
}

/// The UID of a snapshot that the edge has filled in goes where it excludes what the hub wants, and its name stays.
#[tokio::test]
async fn the_uid_of_a_snapshot_gives_way_to_what_it_excludes() {
    const API: &str = "snapshot.storage.k8s.io/v1";
    const CONTENTS: &str = "volumesnapshotcontents";
    let Stage { pair, shop, hub, edge } = stage().await;
    install_crd(&[&hub, &edge], &contents()).await;
    let snapshot = json!({"kind": "VolumeSnapshot", "namespace": shop, "name": "daily", "uid": "of-the-hub"});
    hub.create(
        &json!({"apiVersion": API, "kind": "VolumeSnapshotContent", "metadata": {"name": shop},
        "spec": {"deletionPolicy": "Delete", "volumeSnapshotRef": snapshot}}),
    )
    .await;
    let all = cluster_objects("snapshot.storage.k8s.io", CONTENTS, &[&shop]);
    select(&hub, &json!({"clusterScope": [all]})).await;
    let _syncer = pair.syncer(&[]);
    let at = [API, CONTENTS, "", &*shop];
    let has = |policy: &'static str, uid: Option<&'static str>| {
        move |copy: &Value| {
            let spec = &copy["spec"];
            let reference = &spec["volumeSnapshotRef"];
            spec["deletionPolicy"] == policy && reference["name"] == "daily" && reference["uid"].as_str() == uid
        }
    };
    becomes(&edge, at, "has no UID of the hub", has("Delete", None)).await;
    let bound = json!({"spec": {"volumeSnapshotRef": {"uid": "of-the-edge"}}});
    patch_as(&edge, "snapshot-controller", &path(API, CONTENTS, "", &shop), &bound).await;
    let note = json!({"metadata": {"annotations": {"note": "1"}}});
    hub.merge_patch(API, CONTENTS, "", &shop, &note).await;
    becomes(&edge, at, "keeps the UID of the edge", |copy| {
        copy["metadata"]["annotations"]["note"] == "1" && has("Delete", Some("of-the-edge"))(copy)
    })
    .await;
    // At the hub it is not bound.
    let retained = json!({"spec": {"deletionPolicy": "Retain", "volumeSnapshotRef": {"uid": null}}});
    hub.merge_patch(API, CONTENTS, "", &shop, &retained).await;
    becomes(&edge, at, "is as the hub wants it", has("Retain", None)).await;
    drop_crds(&[&hub, &edge], &["volumesnapshotcontents.snapshot.storage.k8s.io"]).await;
}
