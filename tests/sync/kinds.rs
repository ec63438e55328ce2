//! Kinds that API servers and controllers write into, between two real sides with controller managers (spec 3.4, 3.8):
//! what the hub's servers filled in stays there, what the user set is synced, and what the edge filled in survives.

use std::sync::LazyLock;

use crate::support::journey::{Journey, Kind, check, managed_pair};
use crate::support::objects::namespace;
use crate::support::story::arrives;
use base64::Engine as _;
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A workload of the apps group; its pods stay pending, since there are no nodes.
fn workload(kind: &str, mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": "a"}});
    spec["template"] = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "example.org/a:1"}]},
    });
    json!({"kind": kind, "spec": spec})
}

/// A change of `spec.KEY`.
fn spec_change(key: &str, pointer: &'static str, value: Value) -> (Value, &'static str, Value) {
    (json!({"spec": {key: value}}), pointer, value)
}

#[tokio::test]
async fn a_deployment_keeps_the_status_and_the_revision_of_the_edge() {
    check(Kind {
        api_version: "apps/v1",
        plural: "deployments",
        object: workload("Deployment", json!({})),
        // The hub is at revision 2 then.
        before: json!({"spec": {"template": {"metadata": {"labels": {"second": "1"}}}}}),
        fills: &[
            "/metadata/annotations/deployment.kubernetes.io~1revision",
            "/status/unavailableReplicas",
        ],
        changes: [
            spec_change("paused", "/spec/paused", json!(true)),
            spec_change("minReadySeconds", "/spec/minReadySeconds", json!(5)),
        ],
        ..Kind::default()
    })
    .await;
}

#[tokio::test]
async fn a_stateful_set_keeps_the_status_of_the_edge() {
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    check(Kind {
        api_version: "apps/v1",
        plural: "statefulsets",
        object: workload(
            "StatefulSet",
            json!({"serviceName": "a", "volumeClaimTemplates": claims}),
        ),
        fills: &["/status/currentRevision"],
        changes: [
            spec_change("replicas", "/spec/replicas", json!(2)),
            spec_change("minReadySeconds", "/spec/minReadySeconds", json!(5)),
        ],
        ..Kind::default()
    })
    .await;
}

#[tokio::test]
async fn a_status_that_flaps_at_the_edge_causes_no_write() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    pair.hub.objects().create(&namespace(&space)).await;
    let kind = Kind {
        api_version: "apps/v1",
        plural: "statefulsets",
        object: workload("StatefulSet", json!({"serviceName": "a"})),
        fills: &["/status/currentRevision"],
        ..Kind::default()
    };
    let journey = Journey::new(pair, kind, &space, "it");
    journey.create_at_hub().await;
    journey.select().await;
    let _syncer = journey.pair.syncer(&[]);
    arrives(&journey.edge, "apps/v1", "statefulsets", &space, "it").await;
    journey.filled_in(&journey.edge).await;
    journey.quiet().await;
    let before = journey.writes().len();
    for count in 1..=30 {
        let status = json!({"collisionCount": count, "replicas": count});
        journey
            .edge
            .patch_status("apps/v1", "statefulsets", &space, "it", &status)
            .await;
    }
    journey.quiet().await;
    assert_eq!(journey.writes().len(), before, "{:#?}", journey.writes());
}

#[tokio::test]
async fn a_replica_count_that_no_user_set_is_left_to_the_edge() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    let hub = pair.hub.objects();
    hub.create(&namespace(&space)).await;
    let mut object = workload("Deployment", json!({}));
    object["apiVersion"] = json!("apps/v1");
    object["metadata"] = json!({"namespace": space, "name": "it"});
    hub.apply_as("kubectl", &object).await;
    let kind = Kind {
        api_version: "apps/v1",
        plural: "deployments",
        ..Kind::default()
    };
    let journey = Journey::new(pair, kind, &space, "it");
    journey.select().await;
    let _syncer = journey.pair.syncer(&[]);
    journey.copy_has("/spec/replicas", &json!(1)).await;
    journey.change(&journey.edge, &json!({"spec": {"replicas": 3}})).await;
    journey.change(&journey.hub, &json!({"spec": {"paused": true}})).await;
    let copy = journey.copy_has("/spec/paused", &json!(true)).await;
    assert_eq!(copy["spec"]["replicas"], json!(3));
    journey.change(&journey.hub, &json!({"spec": {"replicas": 2}})).await;
    journey.copy_has("/spec/replicas", &json!(2)).await;
}

#[tokio::test]
async fn an_aggregated_role_has_the_rules_of_the_edge() {
    let pair = managed_pair().await;
    let name = pair.namespace("kinds");
    for (side, resource) in [(pair.hub.objects(), "secrets"), (pair.edge.objects(), "pods")] {
        let part = json!({
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": format!("{name}-part"), "labels": {"part-of": name}},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}],
        });
        side.create(&part).await;
    }
    let selector = json!({"matchLabels": {"part-of": name}});
    let kind = Kind {
        api_version: RBAC,
        plural: "clusterroles",
        object: json!({"kind": "ClusterRole", "aggregationRule": {"clusterRoleSelectors": [selector]}}),
        fills: &["/rules/0/resources/0"],
        ..Kind::default()
    };
    let journey = Journey::new(pair, kind, "", &name);
    journey.tell().await;
    journey.copy_has("/rules/0/resources/0", &json!("pods")).await;
}

/// A Service and what changes in it.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
fn service(spec: Value) -> Kind {
    let mut object =
        json!({"kind": "Service", "spec": {"selector": {"app": "a"}, "ports": [{"name": "a", "port": 80}]}});
    for (key, value) in spec.as_object().expect("a spec is an object") {
        object["spec"][key] = value.clone();
    }
    Kind {
        plural: "services",
        object,
        changes: [
            (
                json!({"spec": {"selector": {"app": "b"}}}),
                "/spec/selector/app",
                json!("b"),
            ),
            spec_change("sessionAffinity", "/spec/sessionAffinity", json!("ClientIP")),
        ],
        ..Kind::default()
    }
}

#[tokio::test]
async fn a_service_keeps_the_addresses_of_the_edge() {
    check(Kind {
        fills: &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/ipFamilies",
            "/spec/ipFamilyPolicy",
        ],
        ..service(json!({}))
    })
    .await;
}

#[tokio::test]
async fn a_service_keeps_the_node_ports_of_the_edge() {
    check(Kind {
        fills: &["/spec/clusterIP", "/spec/ports/0/nodePort", "/spec/healthCheckNodePort"],
        ..service(json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}))
    })
    .await;
}

#[tokio::test]
async fn a_headless_service_stays_headless() {
    check(Kind {
        added: &["/spec/clusterIP"],
        ..service(json!({"clusterIP": "None"}))
    })
    .await;
}

#[tokio::test]
async fn what_the_user_set_in_a_service_is_synced() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    pair.hub.objects().create(&namespace(&space)).await;
    // Of those that servers do not give out by themselves as long as there are others.
    let kind =
        service(json!({"type": "NodePort", "clusterIP": "10.96.0.200", "ports": [{"port": 80, "nodePort": 30_017}]}));
    let journey = Journey::new(pair, kind, &space, "it");
    journey.create_at_hub().await;
    journey.select().await;
    let _syncer = journey.pair.syncer(&[]);
    let copy = journey.copy_has("/spec/clusterIP", &json!("10.96.0.200")).await;
    assert_eq!(copy["spec"]["ports"][0]["nodePort"], json!(30_017));
    journey
        .change(
            &journey.hub,
            &json!({"spec": {"ports": [{"port": 80, "nodePort": 30_018}]}}),
        )
        .await;
    journey.copy_has("/spec/ports/0/nodePort", &json!(30_018)).await;
}

#[tokio::test]
async fn a_job_keeps_the_selector_of_the_edge() {
    check(Kind {
        api_version: "batch/v1",
        plural: "jobs",
        object: json!({"kind": "Job", "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "example.org/a:1"}]}}}}),
        fills: &[
            "/spec/selector",
            "/spec/template/metadata/labels/batch.kubernetes.io~1controller-uid",
            "/status/startTime",
        ],
        changes: [
            spec_change("parallelism", "/spec/parallelism", json!(2)),
            spec_change("backoffLimit", "/spec/backoffLimit", json!(9)),
        ],
        ..Kind::default()
    })
    .await;
}

#[tokio::test]
async fn a_claim_keeps_the_volume_of_the_edge() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    pair.hub.objects().create(&namespace(&space)).await;
    for server in [&pair.hub, &pair.edge] {
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("{space}-{}", server.name())},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": space, "hostPath": {"path": "/x"}},
        });
        server.objects().create(&volume).await;
    }
    let kind = Kind {
        plural: "persistentvolumeclaims",
        object: json!({"kind": "PersistentVolumeClaim", "spec": {"storageClassName": space,
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        fills: &[
            "/spec/volumeName",
            "/metadata/annotations/pv.kubernetes.io~1bind-completed",
        ],
        ..Kind::default()
    };
    let journey = Journey::new(pair, kind, &space, "it");
    journey.tell().await;
    journey
        .copy_has("/spec/volumeName", &json!(format!("{space}-edge")))
        .await;
    journey.copy_has("/status/phase", &json!("Bound")).await;
}

#[tokio::test]
async fn a_volume_keeps_the_claim_of_the_edge() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": space, "name": "it"},
        "spec": {"storageClassName": space, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    for side in [pair.hub.objects(), pair.edge.objects()] {
        side.create(&namespace(&space)).await;
        side.create(&claim).await;
    }
    let kind = Kind {
        plural: "persistentvolumes",
        object: json!({"kind": "PersistentVolume", "spec": {"storageClassName": space, "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, "claimRef": {"namespace": space, "name": "it"}}}),
        fills: &["/spec/claimRef/uid", "/spec/claimRef/resourceVersion"],
        ..Kind::default()
    };
    Journey::new(pair, kind, "", &space).tell().await;
}

#[tokio::test]
async fn a_service_account_keeps_the_secrets_of_the_edge() {
    check(Kind {
        plural: "serviceaccounts",
        object: json!({"kind": "ServiceAccount", "secrets": [{"name": "it-token-7x2kp"}], "imagePullSecrets": [{"name": "mine"}]}),
        adds: |object| {
            object["secrets"] = json!([{"name": "edge-token"}]);
            object["imagePullSecrets"] = json!([{"name": "mine"}, {"name": "edge-registry"}]);
        },
        added: &["/secrets", "/imagePullSecrets"],
        changes: [
            (
                json!({"automountServiceAccountToken": false}),
                "/automountServiceAccountToken",
                json!(false),
            ),
            (
                json!({"automountServiceAccountToken": true}),
                "/automountServiceAccountToken",
                json!(true),
            ),
        ],
        ..Kind::default()
    })
    .await;
}

#[tokio::test]
async fn a_namespace_selected_whole_keeps_its_finalizers() {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    let kind = Kind {
        plural: "namespaces",
        object: json!({"kind": "Namespace"}),
        fills: &["/spec/finalizers", "/status/phase"],
        ..Kind::default()
    };
    Journey::new(pair, kind, "", &space).tell().await;
}

/// The certificate of the edge's controller.
static EDGE_CA: LazyLock<String> = LazyLock::new(ca_bundle);

/// A certificate that every API server takes for a CA, as `caBundle` has it.
fn ca_bundle() -> String {
    let key = rcgen::KeyPair::generate().expect("a key can be made");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate can be made");
    base64::engine::general_purpose::STANDARD.encode(certificate.pem())
}

#[tokio::test]
async fn a_crd_keeps_the_ca_bundle_of_the_edge() {
    let pair = managed_pair().await;
    let group = format!("{}.example.org", pair.namespace("kinds"));
    let mut object = crate::support::story::crd(&group, "gauges", true);
    object["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "a", "name": "b"}, "caBundle": ca_bundle()}}});
    // cert-manager runs at both sides.
    object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
    let kind = Kind {
        api_version: "apiextensions.k8s.io/v1",
        plural: "customresourcedefinitions",
        object,
        fills: &["/status/acceptedNames/kind"],
        adds: |object| object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(*EDGE_CA),
        added: &["/spec/conversion/webhook/clientConfig/caBundle"],
        changes: [
            (
                json!({"spec": {"names": {"shortNames": ["gg"]}}}),
                "/spec/names/shortNames",
                json!(["gg"]),
            ),
            (
                json!({"spec": {"names": {"categories": ["all"]}}}),
                "/spec/names/categories",
                json!(["all"]),
            ),
        ],
        ..Kind::default()
    };
    Journey::new(pair, kind, "", &format!("gauges.{group}")).tell().await;
}

#[tokio::test]
async fn webhook_configurations_keep_the_ca_bundle_of_the_edge() {
    for (kind, plural) in [
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ] {
        let pair = managed_pair().await;
        let name = pair.namespace("kinds");
        let webhook = |name: &str, seconds: u32| {
            json!({"name": format!("{name}.example.org"), "timeoutSeconds": seconds, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "clientConfig": {"service": {"namespace": "a", "name": "b"}, "caBundle": "Cg=="},
                "rules": [{"apiGroups": ["nowhere.example.org"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]})
        };
        let kind = Kind {
            api_version: "admissionregistration.k8s.io/v1",
            plural,
            object: json!({"kind": kind, "webhooks": [webhook("a", 5)]}),
            adds: |object| object["webhooks"][0]["clientConfig"]["caBundle"] = json!(*EDGE_CA),
            added: &["/webhooks/0/clientConfig/caBundle"],
            changes: [
                (
                    json!({"webhooks": [webhook("a", 7)]}),
                    "/webhooks/0/timeoutSeconds",
                    json!(7),
                ),
                (
                    json!({"webhooks": [webhook("a", 7), webhook("b", 8)]}),
                    "/webhooks/1/timeoutSeconds",
                    json!(8),
                ),
            ],
            ..Kind::default()
        };
        Journey::new(pair, kind, "", &name).tell().await;
    }
}
