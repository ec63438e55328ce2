//! Each rule with a value that the hub's servers wrote, and with one that its user set.

use super::filled_in::KINDS;
use super::*;

const ADMISSION: &str = "admissionregistration.k8s.io";

fn resource(kind: &str) -> ResourceType {
    let (group, plural) = match kind {
        "ConfigMap" => ("", "configmaps"),
        "Endpoints" => ("", "endpoints"),
        "EndpointSlice" => ("discovery.k8s.io", "endpointslices"),
        "Namespace" => ("", "namespaces"),
        "PersistentVolume" => ("", "persistentvolumes"),
        "PersistentVolumeClaim" => ("", "persistentvolumeclaims"),
        "Pod" => ("", "pods"),
        "Service" => ("", "services"),
        "ServiceAccount" => ("", "serviceaccounts"),
        "MutatingWebhookConfiguration" => (ADMISSION, "mutatingwebhookconfigurations"),
        "ValidatingWebhookConfiguration" => (ADMISSION, "validatingwebhookconfigurations"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "customresourcedefinitions"),
        "APIService" => ("apiregistration.k8s.io", "apiservices"),
        "DaemonSet" => ("apps", "daemonsets"),
        "Deployment" => ("apps", "deployments"),
        "ReplicaSet" => ("apps", "replicasets"),
        "ReplicationController" => ("", "replicationcontrollers"),
        "StatefulSet" => ("apps", "statefulsets"),
        "CronJob" => (BATCH, "cronjobs"),
        "Job" => (BATCH, "jobs"),
        "Ingress" => ("networking.k8s.io", "ingresses"),
        "VolumeSnapshotContent" => ("snapshot.storage.k8s.io", "volumesnapshotcontents"),
        "ClusterRole" => ("rbac.authorization.k8s.io", "clusterroles"),
        // A custom type with a plural that has rules in another group.
        "Knative" => ("serving.knative.dev", "services"),
        _ => panic!("the test does not know {kind}"),
    };
    ResourceType {
        group: group.into(),
        version: "v1".into(),
        resource: plural.into(),
        kind: kind.into(),
        namespaced: true,
    }
}

fn fields_of(direction: Direction, resource: &ResourceType, text: &str) -> String {
    let object = Object::parse(text.to_owned().into()).unwrap();
    synced_fields(direction, resource, &object, &object.top()).unwrap_or_default()
}

/// Of an object that may have no name.
fn synced(kind: &str, object: &Value) -> String {
    let mut object = object.clone();
    let name = &mut object["metadata"]["name"];
    if name.is_null() {
        *name = json!("a");
    }
    fields_of(Direction::Down, &resource(kind), &object.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
#[track_caller]
fn check(kind: &str, object: Value, expected: Value) {
    let fields = synced(kind, &object);
    let fields: Value = serde_json::from_str(&format!("{{{}}}", fields.trim_start_matches(','))).unwrap();
    assert_eq!(fields, expected, "{kind} {object}");
}

/// Checks an object whose `spec.field` is `value`, its fields set by `owners`: whether the field is synced.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
#[track_caller]
fn check_spec(kind: &str, field: &str, value: Value, owners: Option<Value>, is_synced: bool) {
    let mut metadata = json!({"name": "a"});
    if let Some(owners) = owners {
        metadata["managedFields"] = owners;
    }
    let object = json!({"metadata": metadata, "spec": {"kept": 1, field: value}});
    let mut expected = json!({"spec": {"kept": 1}});
    if is_synced {
        expected["spec"][field] = object["spec"][field].clone();
    }
    check(kind, object, expected);
}

#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
fn owner(manager: &str, fields: Value) -> Value {
    json!([{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}])
}

fn nobody() -> Value {
    owner("kubectl", json!({"f:other": {}}))
}

#[test]
fn kinds_without_rules_are_synced_byte_by_byte() {
    let text = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":{ "z":1e2, "a":null,"clusterIP":"10.0.0.1"},"status":{},"n":null}"#;
    for kind in ["ConfigMap", "CronJob", "DaemonSet", "ReplicaSet", "Knative"] {
        let fields = fields_of(Direction::Down, &resource(kind), text);
        assert_eq!(
            fields, r#","n":null,"spec":{ "z":1e2, "a":null,"clusterIP":"10.0.0.1"}"#,
            "{kind}"
        );
    }
}

#[test]
fn only_what_a_rule_names_is_taken_apart() {
    let text = r#"{"metadata":{"name":"a"},"spec":{"versions":[{ "schema": {} }],"conversion":{"strategy":"None"}}}"#;
    let fields = fields_of(Direction::Down, &resource("CustomResourceDefinition"), text);
    assert_eq!(
        fields,
        r#","spec":{"conversion":{"strategy":"None"},"versions":[{ "schema": {} }]}"#
    );
    let plain = r#"{"metadata":{"name":"a"},"spec":{ "b":1, "a":2}}"#;
    let fields = fields_of(Direction::Down, &resource("Deployment"), plain);
    assert_eq!(fields, r#","spec":{ "b":1, "a":2}"#);
}

#[test]
fn a_value_of_another_shape_is_no_panic() {
    let of_kind = |(group, plural, all): &(&'static str, &'static str, &'static [filled_in::FilledIn])| {
        let (group, plural) = (*group, *plural);
        all.iter().map(move |(path, ..)| (group, plural, *path))
    };
    for (group, plural, path) in KINDS.iter().flat_map(of_kind) {
        let path: Vec<&str> = path.iter().map(|key| key.trim_start_matches("f:")).collect();
        for value in [
            json!(null),
            json!([]),
            json!([null, 1]),
            json!({}),
            json!({path[path.len() - 1]: 7}),
        ] {
            let text = json!({"metadata": {"name": "a", "managedFields": [{"fieldsV1": 7}]}, path[0]: value});
            let resource = ResourceType {
                group: group.into(),
                resource: plural.into(),
                ..resource("ConfigMap")
            };
            // Some are no objects any more.
            if let Ok(object) = Object::parse(text.to_string().into()) {
                drop(synced_fields(Direction::Down, &resource, &object, &object.top()));
            }
        }
    }
}

#[test]
fn what_is_allocated_to_a_service_stays_at_the_hub_unless_a_user_set_it() {
    for (field, value) in [
        ("clusterIP", json!("10.96.0.7")),
        ("clusterIPs", json!(["10.96.0.7"])),
        ("healthCheckNodePort", json!(30829)),
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
    ] {
        let owned = json!({format!("f:{field}"): {}});
        check_spec("Service", field, value.clone(), None, false);
        check_spec("Service", field, value.clone(), Some(nobody()), false);
        check_spec(
            "Service",
            field,
            value.clone(),
            Some(owner("before-first-apply", owned.clone())),
            false,
        );
        check_spec("Service", field, value.clone(), Some(owner("kubectl", owned)), true);
    }
    check_spec("Service", "clusterIP", json!("None"), None, true);
    check_spec("Service", "type", json!("ExternalName"), None, true);
    let headless = json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}});
    check("Service", headless.clone(), headless);
}

#[test]
fn node_ports_are_synced_port_by_port() {
    let port = |name: &str, protocol: &str| json!({"name": name, "port": 80, "protocol": protocol, "nodePort": 30200});
    let mut object = json!({"metadata": {}, "spec": {"ports": [port("t", "TCP"), port("u", "UDP")]}});
    let without = |name: &str, protocol: &str| json!({"name": name, "port": 80, "protocol": protocol});
    check(
        "Service",
        object.clone(),
        json!({"spec": {"ports": [without("t", "TCP"), without("u", "UDP")]}}),
    );
    object["metadata"]["managedFields"] = owner(
        "kubectl",
        json!({"f:ports": {r#"k:{"port":80,"protocol":"UDP"}"#: {"f:nodePort": {}}}}),
    );
    check(
        "Service",
        object,
        json!({"spec": {"ports": [without("t", "TCP"), port("u", "UDP")]}}),
    );
}

#[test]
fn generated_pull_secrets_of_a_service_account_stay_at_the_hub() {
    let object = json!({
        "metadata": {"name": "app"},
        "imagePullSecrets": [{"name": "mine"}, {"name": "app-dockercfg-7x2kp"}],
        "automountServiceAccountToken": false,
    });
    check(
        "ServiceAccount",
        object,
        json!({"imagePullSecrets": [{"name": "mine"}], "automountServiceAccountToken": false}),
    );
    let object = json!({"metadata": {"name": "app"}, "imagePullSecrets": [{"name": "app-dockercfg-7x2kp"}]});
    check("ServiceAccount", object, json!({}));
}

// Issue 41: names that people had set never arrived.
#[test]
fn secrets_that_people_have_listed_are_synced_and_those_that_controllers_have_made_are_not() {
    const TOKEN: &str = "app-token-7x2kp";
    const CREDENTIALS: &str = "app-dockercfg-7x2kp";
    for (name, listed_by, is_synced) in [
        ("mine", None, true),
        (TOKEN, None, false),
        (CREDENTIALS, None, false),
        // Almost such names.
        ("app-token", None, true),
        ("app-token-admin-2", None, true),
        ("app-token-ADMIN", None, true),
        ("other-token-7x2kp", None, true),
        // Who has listed it says more than its name.
        ("mine", Some(("kube-controller-manager", "Update")), false),
        ("mine", Some(("openshift-controller-manager", "Update")), false),
        ("mine", Some(("helm", "Update")), true),
        (TOKEN, Some(("kubectl-edit", "Update")), true),
        (TOKEN, Some(("argocd-controller", "Apply")), true),
        (CREDENTIALS, Some(("kubectl", "Apply")), true),
        // Perhaps a controller, perhaps an import of what one has made.
        (TOKEN, Some(("velero-server", "Update")), false),
        (TOKEN, Some(("before-first-apply", "Update")), false),
        ("mine", Some(("before-first-apply", "Update")), true),
    ] {
        let mut metadata = json!({"name": "app"});
        if let Some((manager, operation)) = listed_by {
            let item = format!("k:{}", json!({"name": name}));
            metadata["managedFields"] = json!([{"manager": manager, "operation": operation,
                "fieldsV1": {"f:secrets": {".": {}, item: {".": {}, "f:name": {}}}}}]);
        }
        let object = json!({"metadata": metadata, "secrets": [{"name": name}]});
        let expected = if is_synced {
            json!({"secrets": [{"name": name}]})
        } else {
            json!({})
        };
        check("ServiceAccount", object, expected);
    }
    // Names are cut where API servers cut them when they generate names.
    let long = "a".repeat(60);
    let token = format!("{}7x2kp", "a".repeat(58));
    let object = json!({"metadata": {"name": long}, "secrets": [{"name": token}]});
    check("ServiceAccount", object, json!({}));
}

#[test]
fn secrets_of_a_service_account_have_a_name_each_and_nothing_of_the_object_at_the_hub() {
    let secrets = json!([
        {"name": "b", "namespace": "n", "uid": "1", "resourceVersion": "7"}, {"name": "a"}, {"name": "b"}, {"name": ""},
        {"uid": "2"}, "?"
    ]);
    let object = json!({"metadata": {"name": "app"}, "secrets": secrets});
    check(
        "ServiceAccount",
        object,
        json!({"secrets": [{"name": "b", "namespace": "n"}, {"name": "a"}]}),
    );
    for none in [json!([]), json!(null), json!([{}])] {
        check(
            "ServiceAccount",
            json!({"metadata": {"name": "app"}, "secrets": none}),
            json!({}),
        );
    }
}

#[test]
fn what_admission_and_scheduler_add_to_a_pod_stays_at_the_hub() {
    let toleration = |key: &str, seconds: u32| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    let mount = |name: &str| json!({"name": name, "mountPath": "/x"});
    let object = json!({"spec": {
        "serviceAccountName": "app", "serviceAccount": "app", "nodeName": "n1", "priority": 0, "overhead": {},
        "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": true, "ephemeralContainers": [{"name": "debug"}],
        "tolerations": [toleration("mine", 300), toleration("node.kubernetes.io/not-ready", 300),
            toleration("node.kubernetes.io/unreachable", 300), toleration("node.kubernetes.io/not-ready", 60)],
        "volumes": [{"name": "kube-api-access-qtvc5"}, {"name": "data"}],
        "containers": [{"name": "c", "volumeMounts": [mount("data"), mount("kube-api-access-qtvc5")]}],
        "initContainers": [{"name": "i", "volumeMounts": [mount("kube-api-access-qtvc5")]}],
    }});
    let expected = json!({"spec": {
        "serviceAccountName": "app", "enableServiceLinks": true,
        "tolerations": [toleration("mine", 300), toleration("node.kubernetes.io/not-ready", 60)],
        "volumes": [{"name": "data"}],
        "containers": [{"name": "c", "volumeMounts": [mount("data")]}],
        "initContainers": [{"name": "i"}],
    }});
    check("Pod", object, expected);
    for (field, value, unknown) in [
        ("nodeName", json!("n1"), false),
        ("imagePullSecrets", json!([{"name": "s"}]), true),
        ("priorityClassName", json!("high"), true),
    ] {
        check_spec("Pod", field, value.clone(), None, unknown);
        check_spec("Pod", field, value.clone(), Some(nobody()), false);
        check_spec(
            "Pod",
            field,
            value.clone(),
            Some(owner("kubectl", json!({format!("f:{field}"): {}}))),
            true,
        );
    }
}

#[test]
fn the_node_of_a_pod_is_synced_to_the_hub_alone() {
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "preemptionPolicy": "Never"}});
    for (direction, expected) in [
        (Direction::Up, r#","spec":{"nodeName":"n1"}"#),
        (Direction::Down, r#","spec":{}"#),
    ] {
        assert_eq!(fields_of(direction, &resource("Pod"), &pod.to_string()), expected);
    }
}

#[test]
fn the_generated_selector_of_a_job_stays_at_the_hub() {
    let job = |manual: bool| {
        json!({"spec": {
            "manualSelector": manual, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "template": {"metadata": {"labels": {"app": "a", "controller-uid": "u", "job-name": "j",
                "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j"}}, "spec": {}},
        }})
    };
    check("Job", job(true), job(true));
    check(
        "Job",
        job(false),
        json!({"spec": {"manualSelector": false, "completions": 1, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {}}}}),
    );
    check(
        "Job",
        json!({"spec": {"template": {"spec": {}}}}),
        json!({"spec": {"template": {"spec": {}}}}),
    );
}

#[test]
fn the_binding_of_volumes_stays_at_the_hub() {
    let owned = |field: &str| json!({format!("f:{field}"): {}});
    let bound = |manager: &str| Some(owner(manager, owned("volumeName")));
    let claim = "PersistentVolumeClaim";
    check_spec(claim, "volumeName", json!("v"), None, false);
    check_spec(claim, "volumeName", json!("v"), bound("kube-controller-manager"), false);
    check_spec(claim, "volumeName", json!("v"), bound("k3s"), false);
    check_spec(claim, "volumeName", json!("v"), bound("kubectl"), true);
    check_spec(claim, "storageClassName", json!("std"), None, true);
    check_spec(claim, "storageClassName", json!("std"), Some(nobody()), false);
    check_spec(
        claim,
        "storageClassName",
        json!(""),
        Some(owner("kubectl", owned("storageClassName"))),
        true,
    );
    let claimed = json!({"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "5"});
    check(
        "PersistentVolume",
        json!({"spec": {"claimRef": claimed, "capacity": {}}}),
        json!({"spec": {"claimRef": {"name": "c", "namespace": "n"}, "capacity": {}}}),
    );
    check(
        "PersistentVolume",
        json!({"metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}, "spec": {"claimRef": claimed, "capacity": {}}}),
        json!({"spec": {"capacity": {}}}),
    );
}

#[test]
fn the_uid_of_another_object_stays_at_the_hub() {
    let full = |kind: &str| json!({"kind": kind, "namespace": "n", "name": "c", "uid": "u", "resourceVersion": "5"});
    let named = |kind: &str| json!({"kind": kind, "namespace": "n", "name": "c"});
    for (kind, path, of) in [
        ("VolumeSnapshotContent", "volumeSnapshotRef", "VolumeSnapshot"),
        ("PersistentVolume", "claimRef", "PersistentVolumeClaim"),
    ] {
        check(
            kind,
            json!({"spec": {path: full(of)}}),
            json!({"spec": {path: named(of)}}),
        );
    }
    check(
        "Endpoints",
        json!({"subsets": [{"addresses": [{"ip": "192.0.2.1", "targetRef": full("Pod")}, {"ip": "192.0.2.2"}]}]}),
        json!({"subsets": [{"addresses": [{"ip": "192.0.2.1", "targetRef": named("Pod")}, {"ip": "192.0.2.2"}]}]}),
    );
    check(
        "EndpointSlice",
        json!({"endpoints": [{"addresses": ["192.0.2.1"], "targetRef": full("Pod")}]}),
        json!({"endpoints": [{"addresses": ["192.0.2.1"], "targetRef": named("Pod")}]}),
    );
}

#[test]
fn defaults_that_nobody_asked_for_stay_at_the_hub() {
    let owned = |field: &str| json!({format!("f:{field}"): {}});
    for kind in ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"] {
        check_spec(kind, "replicas", json!(1), None, true);
        check_spec(kind, "replicas", json!(1), Some(nobody()), false);
        check_spec(
            kind,
            "replicas",
            json!(3),
            Some(owner("kubectl", owned("replicas"))),
            true,
        );
        let mut scaled = owner("kube-controller-manager", owned("replicas"));
        scaled[0]["subresource"] = json!("scale");
        check_spec(kind, "replicas", json!(3), Some(scaled), true);
        // Of `kubectl scale`, a server names nobody where nobody had the field before.
        check_spec(kind, "replicas", json!(0), Some(nobody()), true);
        check_spec(kind, "replicas", json!(3), Some(nobody()), true);
        let of_controller = Some(owner("kube-controller-manager", owned("replicas")));
        check_spec(kind, "replicas", json!(3), of_controller, false);
    }
    // Only the definition of a custom type says what its default is, if there is one.
    for number in [0, 1, 3] {
        check_spec("Knative", "replicas", json!(number), Some(nobody()), true);
    }
    check_spec("Ingress", "ingressClassName", json!("nginx"), None, true);
    check_spec("Ingress", "ingressClassName", json!("nginx"), Some(nobody()), false);
    check_spec(
        "Ingress",
        "ingressClassName",
        json!("nginx"),
        Some(owner("kubectl", owned("ingressClassName"))),
        true,
    );
}

// Found from outside: `kubectl apply` is named for the default, and autoscalers at the edge were set back to it.
#[test]
fn a_default_is_not_wanted_where_a_client_notes_what_it_was_given() {
    const NOTE: &str = "f:kubectl.kubernetes.io/last-applied-configuration";
    let entry = |manager: &str, operation: &str, notes: bool| {
        let mut fields = json!({"f:spec": {"f:replicas": {}}});
        if notes {
            fields["f:metadata"] = json!({"f:annotations": {NOTE: {}}});
        }
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    };
    let given = r#"{"spec":{"replicas":1}}"#;
    for (entries, note, is_synced) in [
        (
            vec![entry("kubectl-client-side-apply", "Update", true)],
            r#"{"spec":{"x":1}}"#,
            false,
        ),
        (vec![entry("argocd-controller", "Update", true)], "{}", false),
        (
            vec![entry("kubectl-client-side-apply", "Update", true)],
            r#"{"spec":{"replicas":null}}"#,
            false,
        ),
        (vec![entry("kubectl-client-side-apply", "Update", true)], given, true),
        // Whoever else has set it wants it.
        (
            vec![
                entry("kubectl-client-side-apply", "Update", true),
                entry("kubectl-edit", "Update", false),
            ],
            "{}",
            true,
        ),
        (vec![entry("helm", "Update", false)], "{}", true),
        (vec![entry("x", "Apply", true)], "{}", true),
        // What cannot be read says nothing.
        (vec![entry("kubectl-client-side-apply", "Update", true)], "{", true),
        (vec![entry("kubectl-client-side-apply", "Update", true)], "[]", true),
    ] {
        let metadata = json!({"name": "a", "managedFields": entries,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": note}});
        let expected = if is_synced {
            json!({"spec": {"a": 1, "replicas": 1}})
        } else {
            json!({"spec": {"a": 1}})
        };
        let object = json!({"metadata": metadata, "spec": {"a": 1, "replicas": 1}});
        check("Deployment", object, expected);
    }
}

#[test]
fn a_namespace_is_synced_without_its_finalizers_and_an_aggregated_role_without_rules() {
    check("Namespace", json!({"spec": {"finalizers": ["kubernetes"]}}), json!({}));
    let rules = json!([{"verbs": ["get"]}]);
    check("ClusterRole", json!({"rules": rules}), json!({"rules": rules}));
    check(
        "ClusterRole",
        json!({"rules": rules, "aggregationRule": null}),
        json!({"rules": rules, "aggregationRule": null}),
    );
    check(
        "ClusterRole",
        json!({"rules": rules, "aggregationRule": {"clusterRoleSelectors": []}}),
        json!({"aggregationRule": {"clusterRoleSelectors": []}}),
    );
    check("ClusterRole", json!({"rules": null}), json!({"rules": []}));
}

#[test]
fn an_empty_or_injected_ca_bundle_stays_at_the_hub_and_one_of_the_user_is_synced() {
    for (bundle, annotation, is_synced) in [
        (json!("Q0E="), "note", true),
        (json!(""), "note", false),
        (json!("Cg=="), "note", false),
        (Value::Null, "note", false),
        (json!("Q0E="), "cert-manager.io/inject-ca-from", false),
        (json!("Q0E="), "service.beta.openshift.io/inject-cabundle", false),
    ] {
        let metadata = json!({"annotations": {annotation: "x"}});
        let mut config = json!({"url": "https://x"});
        let with = {
            let mut with = config.clone();
            with["caBundle"] = bundle;
            with
        };
        if is_synced {
            config = with.clone();
        }
        for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
            let webhooks = |config: &Value| json!([{"name": "a", "clientConfig": config}, {"name": "b"}]);
            let object = json!({"metadata": metadata, "webhooks": webhooks(&with)});
            check(kind, object, json!({"webhooks": webhooks(&config)}));
        }
        let spec = |config: &Value| json!({"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": config}}});
        let object = json!({"metadata": metadata, "spec": spec(&with)});
        check("CustomResourceDefinition", object, json!({"spec": spec(&config)}));
        check(
            "APIService",
            json!({"metadata": metadata, "spec": with}),
            json!({"spec": config}),
        );
    }
}

#[test]
fn labels_and_annotations_of_controllers_stay_at_the_hub() {
    for (kind, key, is_synced) in [
        ("Job", "controller-uid", false),
        ("Job", "job-name", false),
        ("Job", "batch.kubernetes.io/controller-uid", false),
        ("Job", "batch.kubernetes.io/job-name", false),
        ("Job", "app", true),
        ("Pod", "job-name", true),
    ] {
        assert_eq!(is_synced_label(&resource(kind), key), is_synced, "{kind} {key}");
    }
    for (kind, key, is_synced) in [
        ("PersistentVolumeClaim", "pv.kubernetes.io/bind-completed", false),
        ("PersistentVolumeClaim", "pv.kubernetes.io/bound-by-controller", false),
        (
            "PersistentVolumeClaim",
            "volume.beta.kubernetes.io/storage-provisioner",
            false,
        ),
        (
            "PersistentVolumeClaim",
            "volume.kubernetes.io/storage-provisioner",
            false,
        ),
        ("PersistentVolumeClaim", "volume.kubernetes.io/selected-node", false),
        ("PersistentVolumeClaim", "volume.beta.kubernetes.io/storage-class", true),
        ("PersistentVolume", "pv.kubernetes.io/bound-by-controller", false),
        ("PersistentVolume", "pv.kubernetes.io/provisioned-by", true),
        ("Deployment", "deployment.kubernetes.io/revision", false),
        ("StatefulSet", "deployment.kubernetes.io/revision", true),
        ("DaemonSet", "deprecated.daemonset.template.generation", false),
        ("Namespace", "openshift.io/sa.scc.uid-range", false),
        ("Namespace", "openshift.io/description", true),
        (
            "ServiceAccount",
            "openshift.io/internal-registry-pull-secret-ref",
            false,
        ),
        ("ConfigMap", "pv.kubernetes.io/bind-completed", true),
    ] {
        assert_eq!(is_synced_annotation(&resource(kind), key), is_synced, "{kind} {key}");
    }
}
