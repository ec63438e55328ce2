//! That a run which ends in the middle is completed by the next: it is killed after each of its requests in turn, when the hub
//! has done what was asked and the answer is still on the way.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::bench::{IMAGE, command, finish, manifest, new_name};
use crate::hub::{id_in, registered};
use crate::support::kubeconfig::ADMIN_TOKEN;
use crate::support::process::Folder;
use crate::support::{Server, shared_pair};

/// How long it may take to say that it waits.
const REPORT_DEADLINE: Duration = Duration::from_secs(60);

/// What stands before the hub and holds back one answer.
struct Front {
    url: String,
    /// The answer is there, and will not be passed on.
    held: Arc<Notify>,
}

impl Front {
    /// Holds back the answer to this request, counted from 1, and all later ones.
    async fn holding(server: &Server, number: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (count, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (client, counted, holds) = (server.client(), count, Arc::clone(&held));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, count, held) = (client.clone(), Arc::clone(&counted), Arc::clone(&holds));
                let service = service_fn(move |request| {
                    pass(client.clone(), Arc::clone(&count), Arc::clone(&held), number, request)
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, held }
    }
}

async fn pass(
    client: kube::Client,
    count: Arc<AtomicUsize>,
    holds: Arc<Notify>,
    number: usize,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let this = count.fetch_add(1, Ordering::SeqCst) + 1;
    let (mut head, body) = request.into_parts();
    head.headers.remove(HOST);
    head.headers.remove(http::header::AUTHORIZATION);
    let body = body.collect().await.expect("the request is whole").to_bytes();
    let answer = client.send(Request::from_parts(head, Body::from(body.to_vec()))).await;
    if this >= number {
        holds.notify_one();
        std::future::pending::<()>().await;
    }
    Ok(answer.expect("the hub answers"))
}

#[tokio::test]
async fn a_run_that_was_killed_after_any_request_is_completed_by_the_next() {
    let pair = shared_pair().await;
    let (hub, kubeconfig) = (pair.hub.objects(), pair.hub.kubeconfig());
    let folder = Folder::create("interrupted");
    let file = folder.path().join("out.yaml");
    let path = file.display().to_string();
    let mut number = 0;
    loop {
        number += 1;
        let name = new_name();
        let front = Front::holding(&pair.hub, number).await;
        let args = [
            name.as_str(),
            IMAGE,
            "-o",
            &path,
            "--server",
            &front.url,
            "--token",
            ADMIN_TOKEN,
        ];
        let mut running = command(&args)
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program can be run");
        let ended = tokio::select! {
            status = running.wait() => Some(status.expect("it is ours to wait for")),
            () = front.held.notified() => None,
        };
        if let Some(status) = ended {
            // It has no more requests than that.
            assert!(status.success(), "{status:?}");
            break;
        }
        running.kill().await.expect("it is ours to end");
        assert!(!file.exists(), "nothing is written before all is done");

        let accounts = async || {
            let label = format!("edge.kubestellar.io/sync-target-name={name}");
            let all = hub.list("v1", "serviceaccounts", "", &label).await;
            all.iter().map(|it| it["metadata"]["name"].clone()).collect::<Vec<_>>()
        };
        let before = accounts().await;
        let id = id_in(&manifest(&kubeconfig, &name, &[]).await);
        assert_eq!(accounts().await, [id.as_str()]);
        assert!(before.is_empty() || before == [id.as_str()], "{before:?}");
        assert!(
            registered(&hub, &name, &id).await.iter().all(Option::is_some),
            "after request {number}"
        );
        let label = format!("edge.kubestellar.io/sync-target-name={name}");
        let roles = async || {
            let mut found = Vec::new();
            for kind in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
                found.push(hub.list("rbac.authorization.k8s.io/v1", kind, "", &label).await.len());
            }
            found
        };
        assert_eq!(roles().await, [1; 4], "after request {number}");
        finish(&mut command(&[
            &name,
            "--unregister",
            "--kubeconfig",
            &kubeconfig.display().to_string(),
        ]))
        .await
        .done();
        assert_eq!(registered(&hub, &name, &id).await, [const { None }; 5]);
        assert_eq!(roles().await, [0; 4]);
    }
    assert!(number > 10, "it has several requests: {number}");
    assert!(file.exists());
}

#[tokio::test]
async fn while_the_hub_holds_back_an_answer_it_says_what_it_waits_for() {
    let pair = shared_pair().await;
    let front = Front::holding(&pair.hub, 2).await;
    let name = new_name();
    let mut running = command(&[&name, IMAGE, "-o", "-", "--server", &front.url, "--token", ADMIN_TOKEN])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program can be run");
    let lines = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    let waits = timeout(REPORT_DEADLINE, async {
        let mut lines = lines;
        while let Some(line) = lines.next_line().await.expect("it is text") {
            if line.contains("waiting for the hub to answer") {
                return line;
            }
        }
        panic!("it has ended and has not said what it waits for");
    });
    let line = waits.await.expect("it says so before the deadline");
    assert!(line.contains(" GET /") && line.ends_with(" s of 70 s)"), "{line}");
    assert!(!line.contains(ADMIN_TOKEN), "{line}");
    running.kill().await.expect("it is ours to end");
}
