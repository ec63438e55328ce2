//! `prep`, with a plain API server that takes the place of all workspaces: it has kcp's types as CRDs, and what stands before it
//! notes which workspace each request is for. What a real kcp does is tested in `tests/kcp`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::header::{AUTHORIZATION, HOST};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::bench::{Finished, IMAGE, finish, kubeconfig_in, new_name, of_kind, token_in};
use crate::support::kubeconfig::ADMIN_TOKEN;
use crate::support::manifests::documents_in;
use crate::support::process::Folder;
use crate::support::stage::CONFIG_API;
use crate::support::story::install_crd;
use crate::support::{Objects, Server, ServerOptions, Syncer, install_crds};

/// What stands before the server.
struct Workspaces {
    url: String,
    /// The workspaces that were asked, each with method and path.
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Workspaces {
    async fn of(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::default();
        let (client, notes) = (server.client(), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, notes) = (client.clone(), Arc::clone(&notes));
                let service = service_fn(move |request| pass(client.clone(), Arc::clone(&notes), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, asked }
    }

    /// What was asked in a workspace since the last look.
    fn asked(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.asked.lock().expect("nobody panics with it"))
    }

    async fn prep(&self, args: &[&str]) -> Finished {
        let mut command = Command::new(Syncer::program());
        command.arg("prep").args(args).env_clear();
        command.arg(format!("--server={}/clusters/root:here", self.url));
        command.arg(format!("--token={ADMIN_TOKEN}"));
        finish(&mut command).await
    }
}

async fn pass(
    client: kube::Client,
    notes: Arc<Mutex<Vec<(String, String)>>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(HOST);
    head.headers.remove(AUTHORIZATION);
    let path = head.uri.path_and_query().expect("it has a path").as_str().to_owned();
    let rest = path
        .strip_prefix("/clusters/")
        .expect("every request is in a workspace");
    let (workspace, path) = rest.split_once('/').expect("and has a path there");
    let note = (workspace.to_owned(), format!("{} /{path}", head.method));
    notes.lock().expect("nobody panics with it").push(note);
    head.uri = format!("/{path}").parse().expect("it is a part of one");
    let body = body.collect().await.expect("the request is whole").to_bytes();
    let answer = client.send(Request::from_parts(head, Body::from(body.to_vec()))).await;
    Ok(answer.expect("the server answers"))
}

fn definition(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    let version = json!({"name": version, "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": group, "scope": "Cluster", "versions": [version],
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind}},
    })
}

/// The name of the mailbox workspace of a new `SyncTarget`.
async fn sync_target(hub: &Objects, name: &str) -> String {
    let target = hub
        .create(&json!({"apiVersion": CONFIG_API, "kind": "SyncTarget",
            "metadata": {"name": name, "annotations": {"kcp.io/cluster": "imw-id"}}}))
        .await;
    format!("imw-id-mb-{}", target["metadata"]["uid"].as_str().expect("it has one"))
}

fn workspace(name: &str, phase: &str) -> Value {
    json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"cluster": "mailbox-id"}, "status": {"phase": phase}})
}

#[tokio::test]
async fn joins_in_the_mailbox_workspace_and_nowhere_else() {
    let server = Server::start("hub", ServerOptions::default()).await;
    let (hub, workspaces) = (server.objects(), Workspaces::of(&server).await);
    install_crds(&hub).await;
    for (group, version, plural, kind) in [
        ("edge.kubestellar.io", "v2alpha1", "synctargets", "SyncTarget"),
        ("apis.kcp.io", "v1alpha1", "apiexports", "APIExport"),
        ("core.kcp.io", "v1alpha1", "logicalclusters", "LogicalCluster"),
        ("tenancy.kcp.io", "v1alpha1", "workspaces", "Workspace"),
    ] {
        install_crd(&[&hub], &definition(group, version, plural, kind)).await;
    }
    let (folder, name) = (Folder::create("prep"), new_name());
    let mailbox = sync_target(&hub, &name).await;
    let file = folder.path().join("out.yaml");
    let path = file.display().to_string();
    let args = [name.as_str(), IMAGE, "--imw=root:imw1", "--timeout=2s", "-o", &path];

    // Each step names what it lacks, and where.
    workspaces.prep(&args).await.refused(
        1,
        "hub: root:espw is not the workspace of the edge service provider: it has no APIExport",
    );
    hub.create(&json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport",
        "metadata": {"name": "edge.kubestellar.io"}, "spec": {}}))
        .await;
    let absent = workspaces.prep(&args).await;
    absent.refused(
        1,
        &format!("hub: Workspace//{mailbox} in workspace root is not ready after 2 s: it is not there"),
    );
    assert!(
        absent.stderr.contains("is the mailbox controller running?"),
        "{}",
        absent.stderr
    );
    hub.create(&workspace(&mailbox, "Initializing")).await;
    workspaces.prep(&args).await.refused(1, "its phase is Initializing");
    let none = ["site-none", IMAGE, "--imw=root:imw1", "-o", &path];
    workspaces.prep(&none).await.refused(
        1,
        "hub: cannot read SyncTarget//site-none in workspace root:imw1: it is not there; give the workspace",
    );
    assert!(!file.exists());
    assert!(
        workspaces
            .asked()
            .iter()
            .all(|(_, request)| request.starts_with("GET "))
    );

    let ready = json!({"status": {"phase": "Ready"}});
    hub.merge_patch("tenancy.kcp.io/v1alpha1", "workspaces", "", &mailbox, &ready)
        .await;
    let said = workspaces.prep(&args).await.done().stderr;
    assert!(
        said.contains(&format!("its mailbox workspace is root:{mailbox}")),
        "{said}"
    );
    assert!(
        said.contains("note: --rbac=wide, since this workspace of kcp has one edge"),
        "{said}"
    );
    for (workspace, request) in workspaces.asked() {
        let expected = match request.as_str() {
            other if other.contains("/synctargets/") => "root:imw1",
            other if other.contains("/apiexports/") || other.ends_with("/apis/apis.kcp.io") => "root:espw",
            other if other.contains("/apis/tenancy.kcp.io") => "root",
            "GET /apis/edge.kubestellar.io" => "root:imw1",
            _ => "mailbox-id",
        };
        assert_eq!(workspace, expected, "{request}");
    }
    let written = documents_in(&file);
    let kubeconfig = kubeconfig_in(&written);
    // This server's tokens name no workspace, so that the path is kept.
    let server_url = &kubeconfig["clusters"][0]["cluster"]["server"];
    assert_eq!(server_url, &json!(format!("{}/clusters/mailbox-id", workspaces.url)));
    assert_ne!(token_in(&kubeconfig), ADMIN_TOKEN);
    of_kind(&written, "Deployment");
    assert!(hub.get(CONFIG_API, "edgesyncconfigs", "", &name).await.is_some());

    let again = workspaces.prep(&[&args[..], &["-s"]].concat()).await.done();
    assert_eq!((again.stdout.as_str(), again.stderr.as_str()), ("", ""));
    workspaces
        .prep(&[&name, "--unregister", "--imw=root:imw1"])
        .await
        .done();
    assert_eq!(hub.get(CONFIG_API, "edgesyncconfigs", "", &name).await, None);
}

#[tokio::test]
async fn a_hub_without_workspaces_is_for_gen() {
    let server = Server::start("hub", ServerOptions::default()).await;
    let (folder, kubeconfig) = (Folder::create("prep"), server.kubeconfig().display().to_string());
    let run = async |args: &[&str]| {
        let mut command = Command::new(Syncer::program());
        command
            .arg("prep")
            .args(args)
            .args(["--kubeconfig", &kubeconfig])
            .env_clear();
        finish(command.current_dir(folder.path())).await
    };
    let refused = run(&["site-7", IMAGE]).await;
    refused.refused(2, "is no workspace of kcp");
    assert!(refused.stderr.contains("run edge-syncer gen"), "{}", refused.stderr);
    run(&[])
        .await
        .refused(2, "there must be one name, that of a SyncTarget");
    run(&["site-7"]).await.refused(2, "--syncer-image is missing");
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is ours").count(), 0);
}
