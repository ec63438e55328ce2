//! What is made at the hub, and that it is made once.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{IMAGE, generate, kubeconfig_in, manifest, new_name, of_kind, token_in};
use crate::support::objects::JSON;
use crate::support::story::SOON;
use crate::support::{AuditMark, Objects, SYNCER, Server, eventually, shared_pair};

const CONFIG: [&str; 2] = ["edge.kubestellar.io/v2alpha1", "edgesyncconfigs"];
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The id in the documents.
pub(crate) fn id_in(documents: &[Value]) -> String {
    let name = &of_kind(documents, "Deployment")["metadata"]["name"];
    name.as_str().expect("a name is text").to_owned()
}

/// The object that stands for the edge.
async fn edge_of(hub: &Objects, name: &str) -> Option<Value> {
    let of_it = format!("edge.kubestellar.io/sync-target-name={name}");
    let mut all = hub.list(CONFIG[0], "edges", "", &of_it).await;
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

/// What a registration has at the hub, but for what is in namespace `default` alone: config, service account, role, binding, and
/// the object that stands for the edge.
pub(crate) async fn registered(hub: &Objects, name: &str, id: &str) -> [Option<Value>; 5] {
    [
        hub.get(CONFIG[0], CONFIG[1], "", name).await,
        hub.get("v1", "serviceaccounts", "default", id).await,
        hub.get(RBAC, "clusterroles", "", id).await,
        hub.get(RBAC, "clusterrolebindings", "", id).await,
        edge_of(hub, name).await,
    ]
}

/// The role and the binding for Events on configs.
pub(crate) async fn for_events(hub: &Objects, id: &str) -> [Option<Value>; 2] {
    [
        hub.get(RBAC, "roles", "default", id).await,
        hub.get(RBAC, "rolebindings", "default", id).await,
    ]
}

/// The writes of `gen` since the mark, but for the tokens that it asks for.
async fn writes(server: &Server, mark: AuditMark, tokens: usize) -> Vec<String> {
    eventually("the requests are in the log", SOON, async || {
        let all = server.requests_since(SYNCER, mark);
        let writes = all
            .into_iter()
            .filter(|it| !matches!(it.verb.as_str(), "get" | "list" | "watch"));
        let (asked, writes): (Vec<_>, Vec<_>) = writes.partition(|it| it.uri.contains("/token"));
        if asked.len() < tokens {
            return Err(format!("{} of {tokens} tokens", asked.len()));
        }
        Ok(writes.into_iter().map(|it| format!("{} {}", it.verb, it.uri)).collect())
    })
    .await
}

#[tokio::test]
async fn a_registration_has_the_objects_of_the_go_generator() {
    let pair = shared_pair().await;
    let (hub, name) = (pair.hub.objects(), new_name());
    let documents = manifest(&pair.hub.kubeconfig(), &name, &["--uid=sync-target-uid", "--rbac=wide"]).await;
    let id = id_in(&documents);
    assert!(
        id.starts_with(&format!("kubestellar-syncer-{name}-")) && id.len() == 28 + name.len(),
        "{id}"
    );
    let [config, account, role, binding, edge] =
        registered(&hub, &name, &id).await.map(|it| it.expect("it was created"));
    assert_eq!(config["spec"], json!({}));
    let owner =
        json!([{"apiVersion": CONFIG[0], "kind": "EdgeSyncConfig", "name": name, "uid": config["metadata"]["uid"]}]);
    for object in [&account, &role, &binding] {
        assert_eq!(object["metadata"]["ownerReferences"], owner);
    }
    for object in [&config, &account, &role, &binding, &edge] {
        assert_eq!(
            object["metadata"]["labels"],
            json!({"edge.kubestellar.io/sync-target-name": name})
        );
    }
    let all = json!(["*"]);
    assert_eq!(
        role["rules"],
        json!([
            {"apiGroups": all, "resources": all, "verbs": all},
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
        ])
    );
    assert_eq!(binding["roleRef"]["name"], id.as_str());
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": id, "namespace": "default"}])
    );

    let kubeconfig = kubeconfig_in(&documents);
    let cluster = &kubeconfig["clusters"][0];
    assert_eq!(cluster["name"], "default-cluster");
    assert_eq!(cluster["cluster"]["server"], pair.hub.url());
    assert_eq!(
        cluster["cluster"]["certificate-authority-data"],
        crate::support::kubeconfig::base64(pair.hub.ca_pem())
    );
    let context = json!({"cluster": "default-cluster", "namespace": "default", "user": "default-user"});
    assert_eq!(
        kubeconfig["contexts"],
        json!([{"name": "default-context", "context": context}])
    );
    assert_eq!(kubeconfig["current-context"], "default-context");
    let account = format!("system:serviceaccount:default:{id}");
    assert_eq!(who(&hub, &token_in(&kubeconfig)).await, account);
}

/// Whose token it is.
async fn who(hub: &Objects, token: &str) -> String {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = hub
        .send(Method::POST, path, JSON, Some(&review))
        .await
        .expect("the hub knows tokens");
    answer["status"]["user"]["username"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_second_run_finds_the_first_and_writes_nothing() {
    let pair = shared_pair().await;
    let (hub, name, kubeconfig) = (pair.hub.objects(), new_name(), pair.hub.kubeconfig());
    let mark = pair.hub.audit_mark();
    let first = manifest(&kubeconfig, &name, &["-n", "own"]).await;
    assert_eq!(writes(&pair.hub, mark, 1).await.len(), 7);
    let before = registered(&hub, &name, &id_in(&first)).await;
    assert!(before.iter().all(Option::is_some));
    let for_events = for_events(&hub, &id_in(&first)).await;
    let [Some(role), Some(binding)] = &for_events else {
        panic!("{for_events:?}");
    };
    assert_eq!(
        role["metadata"]["ownerReferences"],
        before[1].as_ref().expect("it is")["metadata"]["ownerReferences"]
    );
    let events = json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]);
    assert_eq!(role["rules"], events);
    assert_eq!(
        (&binding["roleRef"]["kind"], &binding["subjects"][0]["namespace"]),
        (&json!("Role"), &json!("default"))
    );

    let mark = pair.hub.audit_mark();
    let mut second = manifest(&kubeconfig, &name, &[]).await;
    assert_eq!(writes(&pair.hub, mark, 1).await, [""; 0]);
    assert_eq!(registered(&hub, &name, &id_in(&second)).await, before);
    // All but the token is the same, and the namespace is remembered.
    let secret = second
        .iter_mut()
        .find(|object| !object["stringData"].is_null())
        .expect("there is one");
    let of_first = first
        .iter()
        .find(|object| !object["stringData"].is_null())
        .expect("there is one");
    secret["stringData"] = of_first["stringData"].clone();
    assert_eq!(second, first);
    assert_eq!(of_kind(&second, "Namespace")["metadata"]["name"], "own");
}

/// `kubectl delete -f` would delete it, with everything in it.
#[tokio::test]
async fn a_namespace_that_every_cluster_has_is_not_in_the_manifest() {
    let pair = shared_pair().await;
    let (name, kubeconfig) = (new_name(), pair.hub.kubeconfig());
    for flags in [&["-n", "kube-system"][..], &[]] {
        let args = [&[name.as_str(), IMAGE, "-o", "-"], flags].concat();
        let done = generate(&kubeconfig, &args).await.done();
        let noted = "note: every cluster has the namespace kube-system, so the manifest leaves it out";
        assert!(done.stderr.contains(noted), "{}", done.stderr);
        let documents = crate::support::manifests::documents(&done.stdout);
        assert!(documents.iter().all(|object| object["kind"] != "Namespace"));
        let deployment = of_kind(&documents, "Deployment");
        assert_eq!(deployment["metadata"]["namespace"], "kube-system");
    }
    let done = generate(&kubeconfig, &[&new_name(), IMAGE, "-o", "-", "-n", "own"])
        .await
        .done();
    assert!(!done.stderr.contains("every cluster"), "{}", done.stderr);
}

#[tokio::test]
async fn what_was_changed_is_corrected() {
    let pair = shared_pair().await;
    let (hub, name, kubeconfig) = (pair.hub.objects(), new_name(), pair.hub.kubeconfig());
    let id = id_in(&manifest(&kubeconfig, &name, &[]).await);
    let before = registered(&hub, &name, &id).await;
    hub.merge_patch(RBAC, "clusterroles", "", &id, &json!({"rules": []}))
        .await;
    hub.merge_patch(
        "v1",
        "serviceaccounts",
        "default",
        &id,
        &json!({"metadata": {"ownerReferences": null}}),
    )
    .await;
    hub.delete(RBAC, "clusterrolebindings", "", &id).await;
    let mut other = before[3].clone().expect("it was there");
    other["metadata"] = json!({"name": id, "labels": other["metadata"]["labels"]});
    other["roleRef"]["name"] = json!("view");
    hub.create(&other).await;

    let mark = pair.hub.audit_mark();
    manifest(&kubeconfig, &name, &[]).await;
    assert_eq!(
        writes(&pair.hub, mark, 1).await.len(),
        4,
        "two patches, a delete and a create"
    );
    let after = registered(&hub, &name, &id).await;
    for (before, after) in before.iter().zip(&after) {
        let (before, after) = (
            before.as_ref().expect("it was there"),
            after.as_ref().expect("it is there"),
        );
        for field in ["rules", "roleRef", "subjects"] {
            assert_eq!(before[field], after[field]);
        }
        assert_eq!(
            before["metadata"]["ownerReferences"],
            after["metadata"]["ownerReferences"]
        );
    }
}

#[tokio::test]
async fn a_new_token_needs_nothing_but_the_name() {
    let pair = shared_pair().await;
    let (hub, name, kubeconfig) = (pair.hub.objects(), new_name(), pair.hub.kubeconfig());
    let unknown = generate(&kubeconfig, &[&name, "--rotate", "-o", "-"]).await;
    unknown.refused(1, "it is not registered: run the command without --rotate");
    let uid = format!("--uid={name}-uid");
    let first = manifest(&kubeconfig, &name, &["-n", "own", &uid]).await;
    let mark = pair.hub.audit_mark();
    // As the syncer's log names the command.
    let dry = generate(&kubeconfig, &[&name, "--rotate", "--dry-run"]).await.done();
    assert!(
        dry.stdout.is_empty() && dry.stderr.contains("token: would be requested for "),
        "{}",
        dry.stderr
    );
    let finished = generate(&kubeconfig, &[&name, "--rotate"]).await.done();
    let second = crate::support::manifests::documents(&finished.stdout);
    assert_eq!(writes(&pair.hub, mark, 1).await, [""; 0]);
    assert_eq!(second.len(), 1);
    let of_first = first
        .iter()
        .find(|object| !object["stringData"].is_null())
        .expect("there is one");
    assert_eq!(second[0]["metadata"], of_first["metadata"]);
    let tokens = [kubeconfig_in(&first), kubeconfig_in(&second)].map(|it| token_in(&it));
    assert_ne!(tokens[0], tokens[1]);
    let account = format!("system:serviceaccount:default:{}", id_in(&first));
    assert_eq!(who(&hub, &tokens[1]).await, account);
    hub.delete("v1", "serviceaccounts", "default", &id_in(&first)).await;
    let lost = generate(&kubeconfig, &[&name, "--rotate", "-o", "-"]).await;
    lost.refused(
        1,
        "its ServiceAccount is missing at the hub: run the command without --rotate",
    );
}

#[tokio::test]
async fn an_unregistered_edge_leaves_what_is_not_of_the_registration() {
    let pair = shared_pair().await;
    let (hub, name, kubeconfig) = (pair.hub.objects(), new_name(), pair.hub.kubeconfig());
    let id = id_in(&manifest(&kubeconfig, &name, &[]).await);
    let other = new_name();
    let id_of_other = id_in(&manifest(&kubeconfig, &other, &[]).await);
    // Somebody has come to use the config.
    let selected = json!({"apiVersion": "v1", "kind": "ConfigMap", "group": "", "name": "b", "namespace": "a"});
    let spec = json!({"spec": {"upSyncedResources": [selected]}});
    hub.merge_patch(CONFIG[0], CONFIG[1], "", &other, &spec).await;

    let dry = generate(&kubeconfig, &[&name, "--unregister", "--dry-run"])
        .await
        .done();
    assert_eq!(dry.stderr.matches("would be deleted").count(), 7, "{}", dry.stderr);
    assert!(dry.stderr.ends_with(": nothing was written\n"), "{}", dry.stderr);
    assert!(registered(&hub, &name, &id).await.iter().all(Option::is_some));

    let done = generate(&kubeconfig, &[&name, "--unregister"]).await.done();
    assert_eq!(done.stderr.matches(": deleted\n").count(), 7, "{}", done.stderr);
    assert!(done.stderr.contains("what stays: "), "{}", done.stderr);
    assert_eq!(registered(&hub, &name, &id).await, [const { None }; 5]);
    assert_eq!(for_events(&hub, &id).await, [const { None }; 2]);
    assert!(for_events(&hub, &id_of_other).await.iter().all(Option::is_some));
    assert!(registered(&hub, &other, &id_of_other).await.iter().all(Option::is_some));
    let again = generate(&kubeconfig, &[&name, "--unregister"]).await.done();
    let nothing = format!("nothing of the name {name} is registered at {}", pair.hub.url());
    assert!(again.stderr.contains(&nothing), "{}", again.stderr);

    let done = generate(&kubeconfig, &[&other, "--unregister"]).await.done();
    assert!(
        done.stderr.contains("stays, since it selects objects"),
        "{}",
        done.stderr
    );
    let left = registered(&hub, &other, &id_of_other).await.map(|it| it.is_some());
    assert_eq!(left, [true, false, false, false, false]);
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    let pair = shared_pair().await;
    let (hub, name, kubeconfig) = (pair.hub.objects(), new_name(), pair.hub.kubeconfig());
    let folder = crate::support::process::Folder::create("dry");
    let file = folder.path().join("out");
    let file = file.to_str().expect("it is UTF-8");
    let mark = pair.hub.audit_mark();
    let done = generate(&kubeconfig, &[&name, IMAGE, "-o", file, "--uid=u", "--dry-run"])
        .await
        .done();
    assert_eq!(done.stderr.matches("would be created").count(), 7, "{}", done.stderr);
    assert!(!std::path::Path::new(file).exists());
    manifest(&kubeconfig, &new_name(), &[]).await;
    assert_eq!(writes(&pair.hub, mark, 1).await.len(), 7, "those of the other run");
    assert_eq!(hub.get(CONFIG[0], CONFIG[1], "", &name).await, None);
}

#[tokio::test]
async fn a_syncer_that_moves_to_another_namespace_is_noted() {
    let pair = shared_pair().await;
    let (name, kubeconfig) = (new_name(), pair.hub.kubeconfig());
    let id = id_in(&manifest(&kubeconfig, &name, &[]).await);
    let moved = generate(&kubeconfig, &[&name, IMAGE, "-o", "-", "--namespace=next"])
        .await
        .done();
    let note = format!("note: the syncer was in the namespace {id} at the edge, and is in next now: ");
    assert!(moved.stderr.contains(&note), "{}", moved.stderr);
    let again = generate(&kubeconfig, &[&name, IMAGE, "-o", "-"]).await.done();
    assert!(!again.stderr.contains("note: the syncer was"), "{}", again.stderr);
}
