//! What the edge gets: that API servers take it, that its Pod passes `PodSecurity`, and that a syncer that has it and nothing
//! else syncs.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::bench::{kubectl_at, manifest, new_name, of_kind, write};
use crate::hub::id_in;
use crate::support::objects::{JSON, config_map, namespace, syncer_config};
use crate::support::pod::start_as_pod;
use crate::support::process::Folder;
use crate::support::statuses::{deployment, returns, set_status, web};
use crate::support::story::{arrives, copy_equals, edit};
use crate::support::{Pair, SYNCER, Server, shared_pair};

/// Applies documents at the edge as people do: the namespace first, then all as a dry run, then for good.
async fn apply(edge: &Server, folder: &Folder, documents: &[Value]) {
    let (all, kubeconfig) = (write(folder, "all.yaml", documents), edge.kubeconfig());
    let first = write(folder, "first.yaml", &documents[..1]);
    assert_eq!(documents[0]["kind"], "Namespace");
    let apply = async |file: &Path, flags: &[&str]| {
        let file = file.to_str().expect("it is UTF-8");
        kubectl_at(&kubeconfig, &[&["apply", "-f", file], flags].concat()).await
    };
    // Without the namespace a server refuses even the dry run.
    let refused = apply(&all, &["--dry-run=server"]).await;
    assert!(refused.stderr.contains("not found"), "{}", refused.stderr);
    apply(&first, &[]).await.done();
    let strict = ["--dry-run=server", "--validate=strict"];
    apply(&all, &strict).await.done();
    apply(&all, &["--validate=strict"]).await.done();
}

/// Downsync, a change, status return and a delete.
async fn plays_the_story(pair: &Pair, shop: &str) {
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace(shop)).await;
    hub.create(&config_map(shop, "prices", json!({"apple": "1"}))).await;
    hub.create(&deployment(shop, "web:1")).await;
    let resources = json!([
        {"group": "", "resource": "configmaps", "apiVersion": "v1"},
        {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
    ]);
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": resources}});
    hub.create(&syncer_config(shop, spec)).await;
    copy_equals(&edge, shop, "prices", &json!({"apple": "1"})).await;
    edit(&hub, shop, "prices", &json!({"data": {"apple": "2"}})).await;
    copy_equals(&edge, shop, "prices", &json!({"apple": "2"})).await;
    arrives(&edge, "apps/v1", "deployments", shop, "web").await;
    let status = json!({"observedGeneration": 1, "replicas": 2});
    set_status(&edge, web(shop), true, &status).await;
    returns(&hub, web(shop), &status).await;
}

async fn an_edge_syncs_with(flags: &[&str]) {
    let pair = shared_pair().await;
    let (name, shop, space) = (new_name(), pair.namespace("shop"), pair.namespace("own"));
    let folder = Folder::create("edge");
    let flags = [flags, &["-n", &space]].concat();
    let documents = manifest(&pair.hub.kubeconfig(), &name, &flags).await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    apply(&pair.edge, &folder, &documents).await;
    let mut syncer = start_as_pod(&pair.edge, &folder, &documents).await;
    plays_the_story(&pair, &shop).await;
    for (server, mark) in [&pair.hub, &pair.edge].into_iter().zip(marks) {
        let requests = server.requests_since(SYNCER, mark);
        assert!(!requests.is_empty(), "the {} was asked nothing", server.name());
        let mut refused = requests.iter().filter(|request| matches!(request.code, 401 | 403));
        assert_eq!(refused.next(), None, "refused at the {}", server.name());
    }
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0));

    // What was applied goes by the same file; what was synced stays.
    let file = folder.path().join("all.yaml");
    let delete = ["delete", "--wait=false", "-f", file.to_str().expect("it is UTF-8")];
    kubectl_at(&pair.edge.kubeconfig(), &delete).await.done();
    let edge = pair.edge.objects();
    let id = id_in(&documents);
    for (api, kind, space) in [
        ("apps/v1", "deployments", space.as_str()),
        ("v1", "secrets", &space),
        ("rbac.authorization.k8s.io/v1", "clusterroles", ""),
        ("rbac.authorization.k8s.io/v1", "clusterrolebindings", ""),
    ] {
        assert_eq!(edge.get(api, kind, space, &id).await, None, "{kind}");
    }
    for (api, kind, object) in [("v1", "configmaps", "prices"), ("apps/v1", "deployments", "web")] {
        assert!(
            edge.get(api, kind, &shop, object).await.is_some(),
            "{kind} is preserved"
        );
    }
}

#[tokio::test]
async fn an_edge_with_all_permissions_syncs_and_is_removed_by_the_same_file() {
    an_edge_syncs_with(&["--rbac=wide"]).await;
}

#[tokio::test]
async fn a_scoped_edge_of_two_syncs_and_is_refused_nothing() {
    an_edge_syncs_with(&["--rbac=scoped", "--ha"]).await;
}

#[tokio::test]
async fn the_pod_passes_the_restricted_policy_and_one_that_may_be_root_does_not() {
    let pair = shared_pair().await;
    let edge = pair.edge.objects();
    let space = pair.namespace("own");
    let mut strict = namespace(&space);
    strict["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    edge.create(&strict).await;
    let path = format!("/api/v1/namespaces/{space}/pods?dryRun=All&fieldValidation=Strict");
    for flags in [&["--rbac=wide"][..], &["--ha"], &["--rbac=scoped"]] {
        let flags = [flags, &["-n", &space]].concat();
        let documents = manifest(&pair.hub.kubeconfig(), &new_name(), &flags).await;
        edge.create(of_kind(&documents, "ServiceAccount")).await;
        let mut pod = of_kind(&documents, "Deployment")["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!("syncer");
        let taken = edge.send(Method::POST, &path, JSON, Some(&pod)).await;
        assert!(taken.is_ok(), "{taken:?}");
        let context = pod["spec"]["securityContext"].as_object_mut().expect("it has one");
        context.remove("runAsNonRoot");
        let refused = edge
            .send(Method::POST, &path, JSON, Some(&pod))
            .await
            .expect_err("it may be root");
        assert!(refused.to_string().contains("runAsNonRoot"), "{refused}");
    }
}

#[tokio::test]
async fn the_patches_for_others_are_taken_too() {
    let pair = shared_pair().await;
    let space = pair.namespace("own");
    let edge = pair.edge.objects();
    edge.create(&namespace(&space)).await;
    let folder = Folder::create("patches");
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    std::os::unix::fs::symlink(manifests, folder.path().join("manifests")).expect("the folder can be written");
    for component in ["priority", "network-policy", "poll", "metered", "ha"] {
        let text = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["manifests/base"],
            "components": ["manifests/components/wide", format!("manifests/components/{component}")],
        });
        folder.write("kustomization.yaml", text.to_string());
        let path = folder.path().to_str().expect("it is UTF-8").to_owned();
        let build = ["kustomize", "--load-restrictor=LoadRestrictionsNone", &path];
        let mut text = kubectl_at(&pair.edge.kubeconfig(), &build).await.done().stdout;
        for (name, value) in [
            ("syncer_id", component),
            ("sync_target_name", "x"),
            ("sync_target_uid", "x"),
            ("downstream_namespace", &space),
            ("image", "i"),
        ] {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        let file = folder.write("all.yaml", text);
        let file = file.to_str().expect("it is UTF-8").to_owned();
        let flags = ["apply", "--dry-run=server", "--validate=strict", "-f", &file];
        kubectl_at(&pair.edge.kubeconfig(), &flags).await.done();
    }
}
