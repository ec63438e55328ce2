use serde_json::Value;

use super::super::managed_fields::tests::{entry, ours};
use super::*;

fn take(entries: &[Value]) -> Option<Value> {
    take_of(&ResourceType::config_maps(), entries)
}

fn take_of(resource: &ResourceType, entries: &[Value]) -> Option<Value> {
    let object = json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries}}).to_string();
    let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
    take_over(object.as_bytes(), resource, Whose::Reverted(Some(&patterns)))
        .unwrap()
        .map(|patch| serde_json::from_str(&patch).unwrap())
}

#[test]
fn fields_of_people_and_of_the_go_syncer_become_ours() {
    for (manager, operation) in [("kubectl-edit", "Update"), ("kubectl", "Apply"), ("syncer", "Update")] {
        let patch = take(&[entry(manager, operation, &json!({"f:data": {"f:b": {}}})), ours()]).unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let kept = patch["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(kept.len(), 1, "{manager}");
        assert_eq!(kept[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    }
}

#[test]
fn fields_as_deep_as_the_object_are_taken_too() {
    let deep = format!("{}{{}}{}", "{\"f:a\":".repeat(500), "}".repeat(500));
    let entry = |manager: &str, operation: &str, fields: &str| {
        format!(r#"{{"manager":"{manager}","operation":"{operation}","fieldsV1":{fields}}}"#)
    };
    let entries = [
        entry("kubectl-edit", "Update", &deep),
        entry("edge-syncer", "Apply", r#"{"f:b":{}}"#),
    ];
    let object = format!(
        r#"{{"metadata":{{"resourceVersion":"7","managedFields":[{}]}}}}"#,
        entries.join(",")
    );
    let patterns = ["kubectl-*".to_owned()];
    let reverted = Whose::Reverted(Some(&patterns));
    let patch = take_over(object.as_bytes(), &ResourceType::config_maps(), reverted)
        .unwrap()
        .unwrap();
    let whole = format!("{},\"f:b\":{{}}}}", &deep[..deep.len() - 1]);
    assert!(patch.contains(&format!("\"fieldsV1\":{whole}")), "{patch}");
}

fn of(group: &str, resource: &str) -> ResourceType {
    ResourceType {
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        kind: resource.into(),
        namespaced: true,
    }
}

#[test]
fn what_the_edge_has_filled_in_is_not_taken() {
    let port = json!({".": {}, "f:nodePort": {}, "f:port": {}});
    let service = json!({"f:spec": {"f:clusterIP": {}, "f:type": {}, "f:ports": {"k:{\"port\":80}": port}},
        "f:metadata": {"f:finalizers": {}, "f:labels": {"f:x": {}}}});
    let claim = json!({"f:spec": {"f:volumeName": {}, "f:storageClassName": {}, "f:resources": {}}});
    let replicas = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    for (resource, fields, taken) in [
        (
            of("", "services"),
            service,
            json!({"f:spec": {"f:type": {}, "f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}},
                "f:metadata": {"f:labels": {"f:x": {}}}}),
        ),
        (
            of("", "persistentvolumeclaims"),
            claim,
            json!({"f:spec": {"f:resources": {}}}),
        ),
        (of("apps", "deployments"), replicas, json!({"f:spec": {"f:paused": {}}})),
    ] {
        let patch = take_of(&resource, &[entry("before-first-apply", "Update", &fields), ours()]).unwrap();
        let mut expected = taken;
        expected["f:data"] = json!({"f:a": {}});
        let entries = &patch["metadata"]["managedFields"];
        assert_eq!(entries[0]["manager"], "before-first-apply", "the rest stays theirs");
        assert_eq!(entries[1]["fieldsV1"], expected, "{resource:?}");
    }
    let bundle = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
    let webhooks = of("admissionregistration.k8s.io", "validatingwebhookconfigurations");
    assert_eq!(take_of(&webhooks, &[entry("syncer", "Update", &bundle), ours()]), None);
}

#[test]
fn what_people_have_set_is_taken_where_a_controller_might_have() {
    let fields = json!({"f:spec": {"f:ingressClassName": {}}});
    for (manager, is_taken) in [("kubectl-edit", true), ("before-first-apply", false)] {
        let ingresses = of("networking.k8s.io", "ingresses");
        let taken = take_of(&ingresses, &[entry(manager, "Update", &fields), ours()]);
        assert_eq!(taken.is_some(), is_taken, "{manager}");
    }
}

// Found by the simulation: a Deployment that people had created was scaled to the default when it was adopted.
#[test]
fn a_number_of_replicas_is_taken_from_nobody() {
    let fields = json!({"f:spec": {"f:replicas": {}}});
    for manager in ["kubectl-edit", "kubectl-create", "before-first-apply", "syncer"] {
        for resource in [
            of("apps", "deployments"),
            of("apps", "statefulsets"),
            of("g.io", "engines"),
        ] {
            assert_eq!(
                take_of(&resource, &[entry(manager, "Update", &fields), ours()]),
                None,
                "{manager}"
            );
        }
    }
}

// Found from outside: a copy that a create had made at another version kept what its origin dropped.
#[test]
fn fields_of_another_version_of_the_type_take_the_place_of_ours() {
    let at = |version: &str, mut entry: Value| {
        entry["apiVersion"] = json!(format!("example.org/{version}"));
        entry
    };
    let fields = json!({"f:spec": {"f:b": {}}});
    let people = entry("kubectl-edit", "Update", &fields);
    let ours = at("v1", ours());
    let patch = take(&[at("v2", people.clone()), ours.clone()]).unwrap();
    let taken = at("v2", entry("edge-syncer", "Apply", &fields));
    assert_eq!(patch["metadata"]["managedFields"], json!([taken]));
    // One version after the other.
    let both = [at("v2", people.clone()), at("v1", people.clone()), ours];
    let patch = take(&both).unwrap();
    let sum = json!({"f:data": {"f:a": {}}, "f:spec": {"f:b": {}}});
    let first = json!([at("v2", people), at("v1", entry("edge-syncer", "Apply", &sum))]);
    assert_eq!(patch["metadata"]["managedFields"], first);
}

// Found from outside: what people added under these names was left in objects of any type, wherever it was.
#[test]
fn what_only_has_the_name_of_something_filled_in_is_taken() {
    let fields = json!({"f:spec": {"f:clusterIP": {}, "f:caBundle": {}, "f:finalizers": {}, "f:volumeName": {},
        "f:template": {"f:spec": {"f:imagePullSecrets": {}}}, "f:status": {}}});
    let patch = take_of(
        &of("example.org", "services"),
        &[entry("kubectl-edit", "Update", &fields), ours()],
    )
    .unwrap();
    let taken = &patch["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert_eq!(*taken, fields["f:spec"]);
}

#[test]
fn where_we_have_applied_nothing_yet_the_first_entry_becomes_ours() {
    let fields = json!({"f:spec": {"f:a": {}}});
    let helm = entry(
        "helm",
        "Update",
        &json!({"f:spec": {"f:b": {}}, "f:metadata": {"f:labels": {}}}),
    );
    let mut made = entry("edge-syncer", "Update", &fields);
    made["apiVersion"] = json!("example.org/v1");
    let object = json!({"metadata": {"resourceVersion": "7", "managedFields": [helm, made]}}).to_string();
    let take = |whose| {
        let patch = take_over(object.as_bytes(), &of("", "x"), whose).unwrap().unwrap();
        serde_json::from_str::<Value>(&patch).unwrap()["metadata"]["managedFields"].clone()
    };
    let mut expected = made.clone();
    expected["operation"] = json!("Apply");
    assert_eq!(take(Whose::Made(&[])), json!([helm, expected]));
    let now = take(Whose::Everybodys { filled_in: false });
    let theirs = json!({"f:metadata": {"f:labels": {}}});
    assert_eq!(now[0], entry("helm", "Update", &theirs));
    assert_eq!(now[1], made, "what we have written in another way");
    assert_eq!(now[2], entry("edge-syncer", "Apply", &json!({"f:spec": {"f:b": {}}})));
}

// Found from outside: what the hub dropped stayed in copies that had been installed by other tools.
#[test]
fn what_others_have_besides_us_becomes_ours_alone() {
    let shared = |resource: &ResourceType, entries: &[Value]| {
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}}).to_string();
        let patch = take_shared(object.as_bytes(), resource, None, None).unwrap();
        patch.map(|patch| serde_json::from_str::<Value>(&patch).unwrap()["metadata"].clone())
    };
    let config_maps = ResourceType::config_maps();
    let both = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    let rest = json!({"f:data": {".": {}, "f:b": {}}});
    for (manager, operation) in [("helm", "Update"), ("argocd", "Apply")] {
        let patch = shared(&config_maps, &[entry(manager, operation, &both), ours()]);
        let kept = json!([entry(manager, operation, &rest), ours()]);
        assert_eq!(patch, Some(json!({"resourceVersion": "7", "managedFields": kept})));
        let all = entry(manager, operation, &json!({"f:data": {".": {}, "f:a": {}}}));
        assert_eq!(
            shared(&config_maps, &[all, ours()]).unwrap()["managedFields"],
            json!([ours()])
        );
        assert_eq!(shared(&config_maps, &[entry(manager, operation, &rest), ours()]), None);
        assert_eq!(
            shared(&config_maps, &[entry(manager, operation, &both)]),
            None,
            "not yet applied"
        );
    }
    let controller = entry("kube-controller-manager", "Update", &both);
    assert_eq!(shared(&config_maps, &[controller, ours()]), None);
    // By our mark it is known that the server has made up an entry for a copy of ours.
    let mark = json!({"f:metadata": {"f:annotations": {"f:edge.kubestellar.io/owner": {}}}});
    let marked = [
        entry("before-first-apply", "Update", &mark),
        entry("edge-syncer", "Apply", &mark),
    ];
    assert_eq!(shared(&config_maps, &marked), None);
    // Without it, the update would be refused.
    let volume = |manager: &str, operation: &str| entry(manager, operation, &json!({"f:spec": {"f:volumeName": {}}}));
    let claims = of("", "persistentvolumeclaims");
    let entries = [volume("helm", "Update"), volume("edge-syncer", "Apply")];
    assert_eq!(shared(&claims, &entries), None);
}

#[test]
fn what_is_filled_in_gives_way_with_the_rest_and_a_restart_does_not() {
    let webhook = json!({"f:clientConfig": {"f:caBundle": {}, "f:service": {"f:name": {}}}});
    let fields = json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:conversion": {"f:webhook": webhook}}});
    let crds = of("apiextensions.k8s.io", "customresourcedefinitions");
    let object =
        json!({"metadata": {"resourceVersion": "7", "managedFields": [entry("ca", "Update", &fields), ours()]}});
    let take = |filled_in| {
        let whose = Whose::Everybodys { filled_in };
        let patch = take_over(object.to_string().as_bytes(), &crds, whose).unwrap().unwrap();
        let entries = serde_json::from_str::<Value>(&patch).unwrap()["metadata"]["managedFields"].clone();
        (entries[0]["fieldsV1"].clone(), entries[1]["fieldsV1"].clone())
    };
    let labels = json!({"f:labels": {"f:x": {}}});
    let (rest, taken) = take(true);
    assert_eq!(rest, json!({"f:metadata": labels}));
    assert_eq!(taken["f:spec"], fields["f:spec"]);
    let (rest, taken) = take(false);
    let bundle = json!({"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}});
    assert_eq!(rest, json!({"f:metadata": labels, "f:spec": {"f:conversion": bundle}}));
    assert_eq!(
        taken["f:spec"]["f:conversion"]["f:webhook"]["f:clientConfig"],
        json!({"f:service": {"f:name": {}}})
    );

    let annotations = json!({"f:kubectl.kubernetes.io/restartedAt": {}});
    let restart = json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": annotations}}}});
    let deployments = of("apps", "deployments");
    assert_eq!(
        take_of(&deployments, &[entry("kubectl-rollout", "Update", &restart), ours()]),
        None
    );
}

#[test]
fn fields_of_controllers_and_of_subresources_stay_theirs() {
    let mut scaled = entry("kubectl", "Update", &json!({"f:spec": {"f:replicas": {}}}));
    scaled["subresource"] = json!("scale");
    for other in [
        entry("kube-controller-manager", "Update", &json!({"f:spec": {}})),
        entry("syncer-x", "Update", &json!({})),
        scaled,
    ] {
        assert_eq!(take(&[other, ours()]), None);
    }
}

#[test]
fn where_nothing_is_reverted_nothing_is_taken() {
    for manager in ["kubectl-edit", "syncer", "before-first-apply"] {
        let theirs = entry(manager, "Update", &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
        let object = json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": [ours(), theirs]}});
        let taken = take_over(
            object.to_string().as_bytes(),
            &ResourceType::config_maps(),
            Whose::Reverted(None),
        );
        assert_eq!(taken.unwrap(), None, "{manager}");
    }
}

#[test]
fn what_we_have_created_becomes_what_we_apply() {
    // Replicas were found by seed 465: what a create had said of them stayed when the origin dropped it.
    for fields in [json!({"f:data": {"f:b": {}}}), json!({"f:spec": {"f:replicas": {}}})] {
        let object = json!({"metadata": {"name": "a", "resourceVersion": "7",
            "managedFields": [entry("edge-syncer", "Update", &fields), ours()]}})
        .to_string();
        let take = |whose| take_over(object.as_bytes(), &of("apps", "deployments"), whose).unwrap();
        let patch: Value = serde_json::from_str(&take(Whose::Made(&[])).unwrap()).unwrap();
        let entries = patch["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(entries.len(), 1);
        let mut all = fields.clone();
        all["f:data"]["f:a"] = json!({});
        assert_eq!(entries[0]["fieldsV1"], all);
        assert_eq!(take(Whose::Reverted(Some(&[]))), None);
    }
}

// Found from outside: a list that names a port twice was taken, and so removed and set again, at each start.
#[test]
fn what_is_only_ever_patched_is_not_taken_with_what_we_have_created() {
    let ports = json!({".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {}});
    let container = |more: &[(&str, &Value)]| {
        let mut fields = json!({"f:image": {}});
        for (key, value) in more {
            fields[*key] = (*value).clone();
        }
        json!({"f:containers": {"k:{\"name\":\"c\"}": fields}})
    };
    let (listed, free) = (container(&[("f:ports", &ports)]), container(&[]));
    let kept = json!({"f:imagePullSecrets": {}, "f:status": {"f:phase": {}}});
    let mut fields = kept.clone();
    fields["f:spec"] = listed;
    let object = json!({"metadata": {"resourceVersion": "7",
        "managedFields": [entry("edge-syncer", "Update", &fields)]}})
    .to_string();
    let list = ["f:spec", "f:containers", r#"k:{\"name\":\"c\"}"#, "f:ports"].map(str::to_owned);
    let patch = take_over(object.as_bytes(), &of("", "pods"), Whose::Made(&[list.to_vec()]));
    let patch: Value = serde_json::from_str(&patch.unwrap().unwrap()).unwrap();
    let entries = &patch["metadata"]["managedFields"];
    let mut left = kept;
    left["f:spec"] = json!({"f:containers": {"k:{\"name\":\"c\"}": {"f:ports": ports}}});
    assert_eq!(entries[0]["fieldsV1"], left);
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": free}));
}

#[test]
fn secrets_that_others_have_listed_stay_theirs() {
    let listed = json!({"f:secrets": {".": {}, "k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}});
    let patterns = ["kubectl-*".to_owned()];
    for (manager, whose, is_taken) in [
        ("edge-syncer", Whose::Made(&[]), true),
        ("before-first-apply", Whose::Reverted(Some(&patterns)), false),
        ("kubectl-edit", Whose::Reverted(Some(&patterns)), false),
    ] {
        let entries = [entry(manager, "Update", &listed), ours()];
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}}).to_string();
        let patch = take_over(object.as_bytes(), &of("", "serviceaccounts"), whose).unwrap();
        assert_eq!(patch.is_some(), is_taken, "{manager}");
    }
}

// A helm chart had set them, too, and they stayed when the hub dropped them.
#[test]
fn a_number_of_replicas_that_we_apply_too_becomes_ours_alone() {
    let fields = json!({"f:spec": {"f:replicas": {}}});
    let ours = entry("edge-syncer", "Apply", &fields);
    let entries = [entry("helm", "Update", &fields), ours.clone()];
    let object = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}}).to_string();
    let patch = take_shared(object.as_bytes(), &of("apps", "deployments"), None, None).unwrap();
    let patch: Value = serde_json::from_str(&patch.unwrap()).unwrap();
    assert_eq!(patch["metadata"]["managedFields"], json!([ours]));
}

// Found from outside: Flux had applied the variable, without the default that we have, while we were away.
#[test]
fn of_an_item_that_is_dropped_others_keep_nothing() {
    let variable = |value: Value| json!({r#"k:{"name":"POD"}"#: value});
    let of_env = |env: Value| json!({"f:spec": {"f:containers": {r#"k:{"name":"c"}"#: {".": {}, "f:name": {}, "f:image": {}, "f:env": env}}}});
    let theirs = of_env(variable(
        json!({".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}}),
    ));
    let ours = entry(
        "edge-syncer",
        "Apply",
        &of_env(variable(json!({".": {}, "f:name": {}}))),
    );
    let entries = [entry("kustomize-controller", "Apply", &theirs), ours.clone()];
    let object = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}}).to_string();
    let left = |env: Value| {
        let wanted = json!({"spec": {"containers": [{"name": "c", "env": env}]}});
        let patch = take_shared(object.as_bytes(), &of("apps", "deployments"), None, wanted.as_object());
        let patch: Value = serde_json::from_str(&patch.unwrap().unwrap()).unwrap();
        patch["metadata"]["managedFields"].clone()
    };
    assert_eq!(left(json!([])), json!([ours]));
    assert_eq!(left(json!([{"name": "OTHER"}])), json!([ours]));
    // As long as it is wanted, what is in it is theirs.
    let kept = json!({"f:spec": {"f:containers": {r#"k:{"name":"c"}"#:
        {".": {}, "f:name": {}, "f:env": variable(json!({".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}}))}}}});
    assert_eq!(
        left(json!([{"name": "POD"}])),
        json!([entry("kustomize-controller", "Apply", &kept), ours])
    );
}
