use std::collections::BTreeSet;

use super::*;

fn values(rbac: Rbac, is_ha: bool) -> Values<'static> {
    Values {
        id: "kubestellar-syncer-site-7-12345678",
        name: "site-7",
        uid: "the-uid",
        namespace: "own",
        image: "registry.example.org/edge-syncer:1",
        qps: Some("7"),
        burst: Some("8"),
        replicas: 1,
        components: Components {
            is_ha,
            ..Components::default()
        },
        rbac,
        scope: None,
        kubeconfig: "a: 1\nb: ${token}\n",
    }
}

fn heads(documents: &[Value]) -> Vec<String> {
    let head = |object: &Value| {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let (kind, meta) = (text(&object["kind"]), &object["metadata"]);
        format!("{kind} {}/{}", text(&meta["namespace"]), text(&meta["name"]))
    };
    documents.iter().map(head).collect()
}

#[test]
fn prints_the_documents_of_the_go_syncer_in_their_order() {
    let id = "kubestellar-syncer-site-7-12345678";
    let documents = documents(&values(Rbac::Wide, false));
    assert_eq!(
        heads(&documents),
        [
            "Namespace /own".to_owned(),
            format!("ServiceAccount own/{id}"),
            format!("Secret own/{id}-token"),
            format!("ClusterRole /{id}"),
            format!("ClusterRoleBinding /{id}"),
            format!("Secret own/{id}"),
            format!("Deployment own/{id}"),
        ]
    );
    let all = json!(["*"]);
    assert_eq!(documents[2]["type"], "kubernetes.io/service-account-token");
    assert_eq!(
        documents[2]["metadata"]["annotations"],
        json!({"kubernetes.io/service-account.name": id})
    );
    assert_eq!(
        documents[3]["rules"],
        json!([
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"], "verbs": all},
            {"apiGroups": all, "resources": all, "verbs": all},
        ])
    );
    assert_eq!(documents[4]["roleRef"]["name"], id);
    assert_eq!(
        documents[4]["subjects"],
        json!([{"kind": "ServiceAccount", "name": id, "namespace": "own"}])
    );
    let spec = &documents[6]["spec"];
    assert_eq!(
        (&spec["replicas"], &spec["strategy"]["type"]),
        (&json!(1), &json!("Recreate"))
    );
    assert_eq!(spec["selector"]["matchLabels"], json!({"app": id}));
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "kubestellar-syncer");
    assert_eq!(container["command"], json!(["/ko-app/syncer"]));
    let args = container["args"].as_array().unwrap();
    let of_go = [
        "--from-kubeconfig=/kubestellar/kubeconfig",
        "--sync-target-name=site-7",
        "--sync-target-uid=the-uid",
        "--v=3",
    ];
    assert_eq!(args[..4], of_go.map(Value::from));
    assert_eq!(args[6..], ["--qps=7", "--burst=8"].map(Value::from));
    assert!(rate(None, None).is_empty(), "the syncer's own defaults count");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/kubestellar/");
    assert_eq!(
        pod["volumes"][0]["secret"],
        json!({"secretName": id, "optional": false})
    );
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
}

#[test]
fn a_kubeconfig_is_kept_as_it_is_and_all_else_is_filled_in() {
    for rbac in [Rbac::Wide, Rbac::Scoped] {
        for is_ha in [false, true] {
            let values = values(rbac, is_ha);
            let documents = documents(&values);
            let text = print(&documents, None).unwrap();
            assert_eq!(text.matches("${").count(), 1, "only that of the kubeconfig: {text}");
            let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            assert_eq!(read, documents);
            let secret = secret(&values);
            assert_eq!(secret.len(), 1);
            assert_eq!(secret[0]["stringData"]["kubeconfig"], values.kubeconfig);
        }
    }
}

#[test]
fn a_scoped_syncer_reaches_its_own_objects_and_no_secret_but_its_own() {
    let documents = documents(&values(Rbac::Scoped, true));
    let kinds: Vec<&str> = documents.iter().filter_map(|object| object["kind"].as_str()).collect();
    let expected = [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
        "Deployment",
        "PodDisruptionBudget",
    ];
    assert_eq!(kinds, expected);
    let rules = documents[4]["rules"].as_array().unwrap();
    let named: BTreeSet<(&str, &str)> = rules
        .iter()
        .filter_map(|rule| Some((rule["resources"][0].as_str()?, rule["resourceNames"][0].as_str()?)))
        .collect();
    let expected = [
        ("configmaps", "edge-syncer-types-the-uid"),
        ("leases", "edge-syncer-the-uid"),
        ("secrets", "kubestellar-syncer-site-7-12345678"),
    ];
    assert_eq!(named, BTreeSet::from(expected));
    assert_eq!(crate::sync::own_objects::record_name("the-uid"), expected[0].1);
    assert_eq!(crate::sync::own_objects::lease_name("the-uid"), expected[1].1);
}

#[test]
fn zero_replicas_are_zero() {
    let documents = documents(&Values {
        replicas: 0,
        ..values(Rbac::Wide, false)
    });
    assert_eq!(documents[6]["spec"]["replicas"], 0);
    let documents = super::documents(&values(Rbac::Wide, true));
    assert_eq!(documents[6]["spec"]["replicas"], 2);
}

#[test]
fn the_syncer_may_renew_its_own_token_and_write_its_own_edge_at_the_hub_and_no_other() {
    let Rules {
        everywhere: rules,
        within,
    } = hub_rules(Rbac::Scoped, "the-id", "the-edge");
    let token = rules
        .as_array()
        .unwrap()
        .iter()
        .find(|rule| rule["resources"][0] == "serviceaccounts/token");
    assert_eq!(token.unwrap()["resourceNames"], json!(["the-id"]));
    let of_edges = rules.as_array().unwrap().iter().filter(|rule| {
        let resources = rule["resources"].as_array().into_iter().flatten();
        resources
            .filter_map(Value::as_str)
            .any(|resource| resource == "edges" || resource == "edges/status")
    });
    let names: Vec<&Value> = of_edges.map(|rule| &rule["resourceNames"]).collect();
    assert_eq!(names, [&json!(["the-edge"]), &json!(["the-edge"])]);
    let events = json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]);
    assert_eq!(within, [("default".to_owned(), events)].into());
    assert!(!rules.to_string().contains("events.k8s.io"), "{rules}");
    let wide = Rules {
        everywhere: json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
        ]),
        within: [].into(),
    };
    assert_eq!(hub_rules(Rbac::Wide, "the-id", "the-edge"), wide);
}

#[test]
fn what_yaml_would_take_for_something_else_is_quoted() {
    for text in [
        "yes",
        "y",
        "n",
        "no",
        "on",
        "1e3",
        "0x10",
        "1_000",
        "012",
        "null",
        "~",
        "",
        "a: b",
        "- a",
        "2001-01-01",
        "=",
        "#a",
        "a #b",
        "\u{85}",
        "'",
        "\"",
        "a\n",
        "\n",
        " a",
        "0o7",
        "1:30",
        ".inf",
        "<<",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
    ] {
        let document = json!({"a": text, "b": [text]});
        let text = yaml(&document).unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, document, "{text}");
    }
}
