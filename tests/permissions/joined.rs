//! An edge that joins with `gen --rbac=scoped`: what its configs need, and no more.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{RBAC, ensure_namespace, pair};
use crate::join_bench::{IMAGE, generate, kubectl_at, manifest, new_name, of_kind};
use crate::printed::{nothing_was_refused, plays_the_story, selection};
use crate::support::objects::{JSON, config_map, syncer_config};
use crate::support::pod::start_as_pod;
use crate::support::process::Folder;
use crate::support::stage::CONFIG_API;
use crate::support::story::SOON;
use crate::support::{Objects, eventually};

/// What the rules of a role say of a resource: all verbs for it.
fn verbs(rules: &Value, resource: &str) -> Vec<String> {
    let rules = rules.as_array().expect("a role has rules").iter();
    let about = rules.filter(|rule| {
        rule["resources"]
            .as_array()
            .is_some_and(|all| all.contains(&json!(resource)))
    });
    let verbs = about.flat_map(|rule| rule["verbs"].as_array().expect("a rule has verbs"));
    verbs
        .map(|verb| verb.as_str().expect("a verb is text").to_owned())
        .collect()
}

#[tokio::test]
async fn the_story_of_the_demo_needs_no_more_than_a_scoped_edge_has() {
    let pair = pair().await;
    let (shop, space, name) = (pair.namespace("shop"), pair.namespace("own"), new_name());
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&syncer_config("demo", selection(&shop))).await;
    let folder = Folder::create("scoped");
    let file = folder.path().join("all.yaml").display().to_string();
    let args = [name.as_str(), IMAGE, "--rbac=scoped", "-n", &space, "-o", &file];
    let said = generate(&pair.hub.kubeconfig(), &args).await.done().stderr;
    assert!(!said.contains("note: no config"), "{said}");
    let text = std::fs::read_to_string(&file).expect("it was written");
    for comment in ["# Downsync: the selected types", "# Renewal: the Secret"] {
        assert!(text.contains(comment), "{text}");
    }
    let documents = crate::support::manifests::documents(&text);
    let at_edge = &of_kind(&documents, "ClusterRole")["rules"];
    assert!(
        verbs(at_edge, "services").is_empty() && verbs(at_edge, "secrets").is_empty(),
        "{at_edge}"
    );
    assert!(!at_edge.to_string().contains('*'), "{at_edge}");

    kubectl_at(&pair.edge.kubeconfig(), &["apply", "--validate=strict", "-f", &file])
        .await
        .done();
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let mut syncer = start_as_pod(&pair.edge, &folder, &documents).await;
    plays_the_story(&hub, &edge, &shop).await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", syncer.log());
    nothing_was_refused(&pair, marks);

    // What is so already is not written again.
    let again = generate(&pair.hub.kubeconfig(), &args).await.done().stderr;
    let roles = again.lines().filter(|line| line.contains(": ClusterRole"));
    assert!(
        roles.clone().count() == 2 && roles.clone().all(|line| line.contains(": unchanged")),
        "{again}"
    );
}

/// Whether the account of an id at the hub may write Events in a namespace.
async fn may_write_events(hub: &Objects, id: &str, namespace: &str) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:default:{id}"),
        "resourceAttributes": {"group": "events.k8s.io", "resource": "events", "verb": "create", "namespace": namespace},
    }});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = hub.send(Method::POST, path, JSON, Some(&review)).await;
    answer.expect("the hub knows its accounts")["status"]["allowed"] == true
}

/// An API server takes Events on an object that is in no namespace in `default` alone.
#[tokio::test]
async fn a_scoped_edge_has_events_on_its_config_and_may_write_none_in_other_namespaces() {
    let pair = pair().await;
    let (shop, space, name) = (pair.namespace("shop"), pair.namespace("own"), new_name());
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let folder = Folder::create("events");
    let file = folder.path().join("all.yaml").display().to_string();
    let args = [name.as_str(), IMAGE, "--rbac=scoped", "-n", &space, "-o", &file];
    // Without configs, and with them: the same.
    for selects in [false, true] {
        if selects {
            hub.create(&syncer_config("demo", selection(&shop))).await;
        }
        generate(&pair.hub.kubeconfig(), &args).await.done();
        let text = std::fs::read_to_string(&file).expect("it was written");
        let id = of_kind(&crate::support::manifests::documents(&text), "Deployment")["metadata"]["name"].clone();
        let id = id.as_str().expect("a name is text");
        for (namespace, may) in [("default", true), ("kube-public", false), ("", false)] {
            assert_eq!(
                may_write_events(&hub, id, namespace).await,
                may,
                "{namespace:?}, {selects}"
            );
        }
    }
    kubectl_at(&pair.edge.kubeconfig(), &["apply", "--validate=strict", "-f", &file])
        .await
        .done();
    // Somebody else's object is in the place of a copy at the hub.
    for side in [&hub, &edge] {
        ensure_namespace(side, &shop).await;
        side.create(&config_map(&shop, "sales", json!({}))).await;
    }
    let documents = crate::support::manifests::documents(&std::fs::read_to_string(&file).expect("it was written"));
    let mut syncer = start_as_pod(&pair.edge, &folder, &documents).await;
    let config = hub.get(CONFIG_API, "syncerconfigs", "", "demo").await;
    let uid = &config.expect("it was created")["metadata"]["uid"];
    eventually("the config has an Event", SOON, async || {
        let found = hub.list("events.k8s.io/v1", "events", "default", "").await;
        let is_it = |event: &&Value| event["regarding"]["uid"] == *uid && event["reason"] == "ConflictDetected";
        found.iter().find(is_it).map(drop).ok_or(found.len())
    })
    .await;
    syncer.terminate().await;
    assert!(!syncer.log().contains("EventsRefused"), "{}", syncer.log());
}

#[tokio::test]
async fn what_the_syncer_keeps_for_itself_is_granted_apart_from_configs_that_select_all_of_it() {
    let pair = pair().await;
    let (shop, name) = (pair.namespace("shop"), new_name());
    let mut spec = selection(&shop);
    let secrets = json!({"group": "", "resource": "secrets", "apiVersion": "v1"});
    spec["namespaceScope"]["resources"]
        .as_array_mut()
        .expect("it selects some")
        .push(secrets);
    pair.hub.objects().create(&syncer_config("demo", spec)).await;
    let documents = manifest(&pair.hub.kubeconfig(), &name, &["--rbac=scoped"]).await;
    let at_edge = &of_kind(&documents, "ClusterRole")["rules"];
    for resource in ["configmaps", "secrets"] {
        assert!(verbs(at_edge, resource).contains(&"patch".to_owned()), "{at_edge}");
    }
    let own = &of_kind(&documents, "Role")["rules"];
    for resource in ["configmaps", "secrets"] {
        assert!(verbs(own, resource).contains(&"patch".to_owned()), "{own}");
    }
}

#[tokio::test]
async fn the_permissions_follow_the_configs_and_the_flags() {
    let pair = pair().await;
    let (shop, space, name) = (pair.namespace("shop"), pair.namespace("own"), new_name());
    let (hub, kubeconfig) = (pair.hub.objects(), pair.hub.kubeconfig());
    let args = [name.as_str(), IMAGE, "--rbac=scoped", "-n", &space, "-o", "-"];
    let before = generate(&kubeconfig, &args).await.done().stderr;
    let notes: Vec<&str> = before
        .lines()
        .filter(|line| line.contains("note: no config at the hub"))
        .collect();
    assert!(
        notes.len() == 1 && notes[0].contains("run the same command again"),
        "{before}"
    );

    let mut spec = selection(&shop);
    spec["clusterScope"] = json!([
        {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": ["reader"]},
        {"group": "none.example.org", "resource": "gauges", "apiVersion": "v1", "objects": ["a"]},
    ]);
    hub.create(&syncer_config("demo", spec)).await;
    let after = generate(&kubeconfig, &args).await.done().stderr;
    for words in [
        "note: nothing is given for clusterroles.rbac.authorization.k8s.io: ",
        "note: the hub does not serve resource=gauges group=\"none.example.org\" version=v1, which ",
    ] {
        assert_eq!(after.matches(words).count(), 1, "{words}: {after}");
    }
    assert!(!after.contains("note: no config"), "{after}");

    let flags = ["--rbac=scoped", "-n", &space, "--ha", "--poll"];
    let documents = manifest(&kubeconfig, &name, &flags).await;
    let own = &of_kind(&documents, "Role")["rules"];
    assert_eq!(verbs(own, "leases"), ["create", "get", "patch"]);
    let id = of_kind(&documents, "Deployment")["metadata"]["name"]
        .as_str()
        .expect("a name is text");
    let role = hub.get(RBAC, "clusterroles", "", id).await.expect("it was created");
    assert_eq!(
        verbs(&role["rules"], "configmaps"),
        ["get", "list", "create", "patch", "delete"]
    );
    assert!(!role["rules"].to_string().contains("watch"), "{role}");
    assert_eq!(verbs(&role["rules"], "serviceaccounts/token"), ["create"]);
    // The edge is watched as before.
    let at_edge = &of_kind(&documents, "ClusterRole")["rules"];
    assert!(verbs(at_edge, "configmaps").contains(&"watch".to_owned()), "{at_edge}");
}
