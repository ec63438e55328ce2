//! What `gen` refuses, and that nothing is written then: at the hub, or in the place of a file that was there.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{IMAGE, command, finish, generate, kubeconfig_in, manifest, new_name};
use crate::hub::{id_in, registered};
use crate::support::manifests::documents;
use crate::support::objects::{edge_sync_config, namespace};
use crate::support::process::Folder;
use crate::support::rbac::{allow, disallow, limited};
use crate::support::story::SOON;
use crate::support::{Ca, KubeconfigParts, SYNCER, Server, ServerOptions, User, eventually, shared_pair, wait_for_crd};

#[tokio::test]
async fn wrong_input_is_one_line_and_touches_nothing() {
    let pair = shared_pair().await;
    let folder = Folder::create("refused");
    let file = folder.write("out.yaml", "what was there").display().to_string();
    let here = folder.path().display().to_string();
    let folder_of_service = folder.path().join("etc").display().to_string();
    let kubeconfig = pair.hub.kubeconfig();
    let mark = pair.hub.audit_mark();
    for (args, words) in [
        (vec!["Bad_Name", IMAGE, "-o", &file], "the name \"Bad_Name\" must be"),
        (vec!["site", "-o", &file], "--syncer-image is missing"),
        (
            vec!["site", IMAGE, "-o", &file, "--replicas", "3"],
            "--replicas \"3\": must be 0 or 1",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "--labels", "x"],
            "--labels \"x\": must be key=value",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "--lifetime", "5m"],
            "--lifetime \"5m\": must be at least 10m",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "-n", ""],
            "--namespace \"\": must be the name of a namespace",
        ),
        (
            vec!["site", IMAGE, "-o", &here],
            "cannot be written: is a directory: name a file, or add --format=systemd",
        ),
        (
            vec!["site", IMAGE, "-o", "--context=main"],
            "-o has no value: --context=main looks like a flag",
        ),
        (
            vec!["site", IMAGE, "-o", "/proc/out"],
            "-o /proc/out: cannot be written: ",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "--context", "none"],
            "--context: \"none\" is not in the file, which has context \"main\"",
        ),
        (
            vec!["site", "-o", &folder_of_service, "--format=systemd", "--ha"],
            "--ha: has no effect with --format=systemd",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "--hub-url=http://hub.example.org:6443"],
            "--hub-url: http://hub.example.org:6443/ has no TLS",
        ),
        (
            vec!["site", IMAGE, "-o", &file, "--password", "x"],
            "--password: API servers no longer accept passwords",
        ),
    ] {
        let refused = generate(&kubeconfig, &args).await;
        refused.refused(2, words);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    for args in [&["-o", file.as_str(), IMAGE][..], &["one", "two", "-o", &file, IMAGE]] {
        let help = generate(&kubeconfig, args).await.done();
        assert!(
            help.stdout.starts_with("Usage: edge-syncer gen NAME "),
            "{}",
            help.stdout
        );
    }
    let none = finish(&mut command(&["site", IMAGE, "-o", &file])).await;
    none.refused(
        2,
        "there is no kubeconfig: name the hub's with --kubeconfig or KUBECONFIG",
    );
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "what was there");
    assert_eq!(
        fs::read_dir(folder.path()).expect("it is ours").count(),
        1,
        "no other file was made"
    );
    // A request of somebody else comes later in the log than any of these.
    manifest(&kubeconfig, &new_name(), &[]).await;
    let requests = pair.hub.requests_since(SYNCER, mark);
    assert!(requests.iter().all(|it| !it.uri.ends_with("/site")), "{requests:?}");
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_touched() {
    let pair = shared_pair().await;
    let (hub, kubeconfig) = (pair.hub.objects(), pair.hub.kubeconfig());
    let name = new_name();
    let before = hub.create(&edge_sync_config(&name, json!({}))).await;
    let refused = generate(&kubeconfig, &[&name, IMAGE, "-o", "-"]).await;
    refused.refused(
        1,
        &format!("hub: cannot use EdgeSyncConfig//{name}: it is there already"),
    );
    assert_eq!(hub.reread(&before).await, Some(before.clone()));
    assert!(!refused.stderr.contains("done before"), "{}", refused.stderr);
    // Until somebody says that it is ours.
    let label = json!({"metadata": {"labels": {"edge.kubestellar.io/sync-target-name": name}}});
    hub.merge_patch("edge.kubestellar.io/v2alpha1", "edgesyncconfigs", "", &name, &label)
        .await;
    let (uid, uid_of_other) = (format!("--uid={name}-uid"), format!("--uid={name}-other"));
    let id = id_in(&manifest(&kubeconfig, &name, &[&uid]).await);

    // A role of the name that the id will be.
    let other = new_name();
    let role = registered(&hub, &name, &id).await[2].clone().expect("it was created");
    let id_of_other = id_in(&manifest(&kubeconfig, &other, &[&uid_of_other]).await);
    generate(&kubeconfig, &[&other, "--unregister"]).await.done();
    let role = hub
        .create(&json!({"apiVersion": role["apiVersion"], "kind": "ClusterRole", "metadata": {"name": id_of_other}, "rules": []}))
        .await;
    let refused = generate(&kubeconfig, &[&other, IMAGE, "-o", "-", &uid_of_other]).await;
    refused.refused(
        1,
        &format!("hub: cannot use ClusterRole//{id_of_other}: it is there already"),
    );
    let made = format!(
        "done before: EdgeSyncConfig//{other} created, ServiceAccount/default/{id_of_other} created, \
         Role/default/{id_of_other} created, RoleBinding/default/{id_of_other} created; the same command continues from there"
    );
    assert!(refused.stderr.contains(&made), "{}", refused.stderr);
    assert_eq!(hub.reread(&role).await, Some(role));
    generate(&kubeconfig, &[&other, "--unregister"]).await.done();
    assert!(
        hub.get("rbac.authorization.k8s.io/v1", "clusterroles", "", &id_of_other)
            .await
            .is_some()
    );

    for (name, flag, words) in [
        (
            &name,
            "--uid=another",
            format!("is registered with the UID {name}-uid, not another"),
        ),
        (
            &name,
            "--kcp-namespace=kube-system",
            "is registered in namespace default, not kube-system".to_owned(),
        ),
        // That of another edge.
        (&other, &uid, format!("the UID {name}-uid is that of {name}, ")),
    ] {
        generate(&kubeconfig, &[name, IMAGE, "-o", "-", flag])
            .await
            .refused(1, &words);
    }
}

#[tokio::test]
async fn an_admin_who_may_not_do_all_learns_what_was_done_and_goes_on_later() {
    let pair = shared_pair().await;
    let (hub, name) = (pair.hub.objects(), new_name());
    let role = format!("of-{name}");
    let mut rules = json!([
        {"apiGroups": ["edge.kubestellar.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["*"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
    ]);
    allow(&hub, &role, rules.clone()).await;
    let folder = Folder::create("half-way");
    let file = folder.path().join("out.yaml").display().to_string();
    let args = [name.as_str(), IMAGE, "-o", &file];
    let refused = generate(&limited(&pair.hub), &args).await;
    refused.refused(1, "hub: cannot create Role/default/");
    for words in [
        "roles.rbac.authorization.k8s.io is forbidden: User \"limited\" cannot create",
        &format!("done before: EdgeSyncConfig//{name} created, ServiceAccount/default/"),
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("it is ours").count(), 0);
    disallow(&hub, &role).await;
    rules =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    allow(&hub, &role, rules).await;
    let done = generate(&limited(&pair.hub), &args).await.done();
    assert_eq!(done.stderr.matches(": unchanged").count(), 2, "{}", done.stderr);
    disallow(&hub, &role).await;
    assert!(fs::metadata(&file).is_ok());
}

#[tokio::test]
async fn a_hub_that_cannot_be_trusted_or_reached_is_named() {
    let pair = shared_pair().await;
    let parts = KubeconfigParts::with(|parts| parts.ca = Ca::Absent);
    let untrusted = pair.hub.write_kubeconfig("untrusted", &parts);
    generate(&untrusted, &["site", IMAGE, "-o", "-"])
        .await
        .refused(1, "hub: cannot read /apis/edge.kubestellar.io/v2alpha1 at https://");
    let parts = KubeconfigParts::with(|parts| parts.server = Some("https://127.0.0.1:1".to_owned()));
    let away = pair.hub.write_kubeconfig("away", &parts);
    generate(&away, &["site", IMAGE, "-o", "-"]).await.refused(1, "refused");
    let parts = KubeconfigParts::with(|parts| parts.user = User::Limited);
    let nobody = pair.hub.write_kubeconfig("nobody", &parts);
    let refused = generate(&nobody, &["site", IMAGE, "-o", "-"]).await;
    refused.refused(1, "User \"limited\" cannot get resource \"edgesyncconfigs\"");
    let missing = generate(
        &pair.hub.kubeconfig(),
        &[&new_name(), IMAGE, "-o", "-", "--kcp-namespace=none"],
    )
    .await;
    missing.refused(1, "namespaces \"none\" not found");
}

/// The definition of `SyncerConfig`s alone.
fn definition() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/manifests/crds/edge.kubestellar.io_syncerconfigs.yaml"
    );
    documents(&fs::read_to_string(path).expect("it is there")).remove(0)
}

/// After so many questions, one a second, it has said that it waits.
const ASKED: usize = 8;

#[tokio::test]
async fn an_api_that_is_bound_late_is_waited_for_and_one_kind_is_enough() {
    let server = Server::start("hub", ServerOptions::default()).await;
    let (hub, kubeconfig) = (server.objects(), server.kubeconfig());
    let name = new_name();
    let never = generate(&kubeconfig, &[&name, IMAGE, "-o", "-", "--timeout=2s"]).await;
    never.refused(1, "/apis/edge.kubestellar.io/v2alpha1 is not served at ");
    assert!(never.stderr.contains(" after 2 s: "), "{}", never.stderr);
    assert!(never.stderr.contains("apply manifests/crds/"), "{}", never.stderr);

    // What is not there yet cannot be rotated or unregistered either, so nothing is waited for.
    for flag in ["--rotate", "--unregister"] {
        let nothing = generate(&kubeconfig, &[&name, flag]).await;
        nothing.refused(1, "/apis/edge.kubestellar.io/v2alpha1 is not served at ");
        assert!(!nothing.stderr.contains("waiting"), "{}", nothing.stderr);
    }

    hub.create(&namespace("accounts")).await;
    let flags = [
        name.as_str(),
        IMAGE,
        "-o",
        "-",
        "--kcp-namespace=accounts",
        "--timeout=100s",
    ];
    let mark = server.audit_mark();
    let install = async {
        // It asks every second, and says every few seconds that it waits.
        eventually("it has asked for a while", SOON, async || {
            let asked = server.requests_since(SYNCER, mark).into_iter();
            match asked.filter(|one| one.uri.ends_with("/v2alpha1")).count() {
                count if count < ASKED => Err(count),
                _ => Ok(()),
            }
        })
        .await;
        hub.create(&definition()).await;
        wait_for_crd(&hub, "syncerconfigs.edge.kubestellar.io").await;
    };
    let (finished, ()) = tokio::join!(generate(&kubeconfig, &flags), install);
    let finished = finished.done();
    assert!(
        finished.stderr.contains("waiting for the hub to serve"),
        "{}",
        finished.stderr
    );
    let without = "note: the hub does not serve edges.edge.kubestellar.io";
    assert!(finished.stderr.contains(without), "{}", finished.stderr);
    let found = documents(&finished.stdout);
    let config = hub
        .get("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", &name)
        .await;
    assert_eq!(config.expect("it was created")["spec"], json!({}));
    assert!(
        hub.get("v1", "serviceaccounts", "accounts", &id_in(&found))
            .await
            .is_some()
    );
    assert_eq!(kubeconfig_in(&found)["contexts"][0]["context"]["namespace"], "accounts");
    // The namespace is found again.
    let again = manifest(&kubeconfig, &name, &[]).await;
    assert_eq!(id_in(&again), id_in(&found));
}

/// Its answers look like those of a hub without the CRDs.
#[tokio::test]
async fn a_wrong_path_in_the_url_is_named_at_once() {
    let pair = shared_pair().await;
    let url = format!("--server={}/clusters/none", pair.hub.url());
    for more in [&[IMAGE, "-o", "-"][..], &["--rotate"], &["--unregister"]] {
        let name = new_name();
        let args = [&[name.as_str(), url.as_str()], more].concat();
        let wrong = generate(&pair.hub.kubeconfig(), &args).await;
        wrong.refused(
            1,
            "/clusters/none: 404 page not found (HTTP 404); the path /clusters/none in the kubeconfig's server",
        );
        assert!(!wrong.stderr.contains("waiting"), "{}", wrong.stderr);
    }
}
