//! What the token of an edge may do at the hub: what its configs need, unless somebody says otherwise, and that stays.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{IMAGE, generate, kubeconfig_in, new_name, token_in};
use crate::hub::id_in;
use crate::support::manifests::documents;
use crate::support::objects::{JSON, config_map, namespace, syncer_config};
use crate::support::story::install_crd;
use crate::support::{Objects, Server, ServerOptions, install_crds, shared_pair};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// What `gen` has said, and the documents that it has printed.
async fn joined(hub: &Server, name: &str, flags: &[&str]) -> (String, Vec<Value>) {
    let args = [&[name, IMAGE, "-o", "-"], flags].concat();
    let done = generate(&hub.kubeconfig(), &args).await.done();
    (done.stderr, documents(&done.stdout))
}

/// Whether the account of an id may do this with all that the hub has.
async fn may(hub: &Objects, id: &str, verb: &str) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:default:{id}"),
        "resourceAttributes": {"group": "*", "resource": "*", "verb": verb},
    }});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = hub.send(Method::POST, path, JSON, Some(&review)).await;
    answer.expect("the hub knows its accounts")["status"]["allowed"] == true
}

#[tokio::test]
async fn an_edge_may_do_what_its_configs_need_unless_somebody_says_wide_and_that_stays() {
    let pair = shared_pair().await;
    let (hub, name) = (pair.hub.objects(), new_name());
    let shop = pair.namespace("shop");
    let resource = json!({"group": "", "resource": "configmaps", "apiVersion": "v1"});
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [resource]}});
    hub.create(&namespace(&shop)).await;
    hub.create(&config_map(&shop, "prices", json!({}))).await;
    hub.create(&syncer_config(&shop, spec)).await;
    let (wide, scoped) = (
        "note: --rbac=wide",
        "note: --rbac=scoped: the syncer may do what the configs",
    );
    let as_registered = "note: --rbac=wide, as it is registered: whoever has the token";
    let from_before = json!({"metadata": {"annotations": {"edge.kubestellar.io/rbac": null}}});
    for (flags, is_from_before, may_all, said, unsaid) in [
        (&[][..], false, false, scoped, wide),
        (&[], false, false, ": unchanged", "note: --rbac"),
        (
            &["--rbac=wide"],
            false,
            true,
            "note: the permissions were scoped, and are wide now",
            scoped,
        ),
        // It widened and narrowed silently before.
        (&[], false, true, as_registered, scoped),
        // A registration of an earlier version does not say it; its role does.
        (&[], true, true, as_registered, scoped),
        (
            &["--rbac=scoped"],
            false,
            false,
            "note: the permissions were wide, and are scoped now",
            wide,
        ),
        (&[], true, false, ": changed", "note: --rbac"),
    ] {
        if is_from_before {
            let accounts = hub.list("v1", "serviceaccounts", "default", "").await;
            let label = |it: &Value| it["metadata"]["labels"]["edge.kubestellar.io/sync-target-name"] == name.as_str();
            let account = accounts.into_iter().find(label).expect("it is registered");
            let id = account["metadata"]["name"].as_str().expect("a name is text");
            hub.merge_patch("v1", "serviceaccounts", "default", id, &from_before)
                .await;
        }
        let (stderr, documents) = joined(&pair.hub, &name, flags).await;
        assert!(stderr.contains(said) && !stderr.contains(unsaid), "{flags:?}: {stderr}");
        let id = id_in(&documents);
        for verb in ["get", "*"] {
            assert_eq!(may(&hub, &id, verb).await, may_all, "{flags:?} {verb}");
        }
        let at_edge = documents.iter().find(|it| it["kind"] == "ClusterRole");
        let at_edge = at_edge.expect("there is one")["rules"].to_string();
        assert_eq!(at_edge.contains('*'), may_all, "{flags:?} {at_edge}");
        assert!(!token_in(&kubeconfig_in(&documents)).is_empty());
    }
    let role = hub
        .get(RBAC, "clusterroles", "", &id_in(&joined(&pair.hub, &name, &[]).await.1))
        .await;
    assert!(role.expect("it is there")["rules"].to_string().contains("configmaps"));
}

fn of_kcp(group: &str, plural: &str, kind: &str) -> Value {
    let mut definition = crate::support::story::crd(group, plural, false);
    definition["spec"]["names"]["kind"] = json!(kind);
    definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    definition
}

/// As `gen` sees it, this is a workspace of kcp: it serves kcp's groups.
#[tokio::test]
async fn the_only_edge_of_a_workspace_may_do_all_there_and_a_second_one_is_warned_of_what_is_shared() {
    let server = Server::start("hub", ServerOptions::default()).await;
    let hub = server.objects();
    install_crds(&hub).await;
    for (group, plural, kind) in [
        ("apis.kcp.io", "apibindings", "APIBinding"),
        ("core.kcp.io", "logicalclusters", "LogicalCluster"),
    ] {
        install_crd(&[&hub], &of_kcp(group, plural, kind)).await;
    }
    let (first, documents) = joined(&server, "site-1", &[]).await;
    assert!(
        first.contains("note: --rbac=wide, since this workspace of kcp has one edge"),
        "{first}"
    );
    assert!(!first.contains("warning"), "{first}");
    assert!(may(&hub, &id_in(&documents), "*").await);
    let (again, _) = joined(&server, "site-1", &[]).await;
    assert!(!again.contains("warning"), "it is no other edge: {again}");

    let (second, documents) = joined(&server, "site-2", &[]).await;
    for words in [
        "warning: at this hub there are other edges, such as site-1: ",
        "its heartbeat",
        "the status of one edge",
        "each edge may read what is meant for the others",
        "note: --rbac=scoped: ",
    ] {
        assert!(second.contains(words), "{words}: {second}");
    }
    assert!(!may(&hub, &id_in(&documents), "*").await);
    let (again, _) = joined(&server, "site-1", &[]).await;
    assert!(
        again.contains("such as site-2: "),
        "the first edge is warned too: {again}"
    );
}
