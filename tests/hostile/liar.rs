//! A hub that lies about names: in its answers the object called `liar` has another name, which is a path.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::objects::{config_map, namespace};
use crate::support::process::Folder;
use crate::support::stage::{Stage, config_maps, select, stage};
use crate::support::story::arrives;
use crate::support::{SYNCER, Syncer};

/// Hands requests on to the hub, and its answers back with another name in place of `liar`.
async fn answer(
    hub: kube::Client,
    name: &'static str,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // Whoever lists does so in pages, and then asks again and again: a watch is not needed.
    let query = head.uri.query().unwrap_or_default();
    if query.contains("watch=true") {
        let refusal = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no watches"});
        let refusal = Full::from(refusal.to_string());
        return Ok(Response::builder().status(403).body(refusal).expect("it is a response"));
    }
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let mut asked = Request::builder().method(head.method).uri(head.uri);
    for key in ["accept", "content-type"] {
        if let Some(value) = head.headers.get(key) {
            asked = asked.header(key, value);
        }
    }
    let asked = asked.body(body.to_vec().into()).expect("it is a request");
    let Ok(reported) = hub.send(asked).await else {
        return Ok(Response::builder()
            .status(502)
            .body(Full::default())
            .expect("it is a response"));
    };
    let (head, body) = reported.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&body).replace("\"name\":\"liar\"", &format!("\"name\":\"{name}\""));
    let lie = Response::builder()
        .status(head.status)
        .header("content-type", "application/json");
    Ok(lie.body(Full::from(text)).expect("it is a response"))
}

/// Listens for a syncer that takes it for the hub; gives the kubeconfig that leads to it.
async fn lie(hub: kube::Client, name: &'static str, folder: &Folder) -> std::path::PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let hub = hub.clone();
            let serve = service_fn(move |request| answer(hub.clone(), name, request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
        }
    });
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "liar",
        "clusters": [{"name": "liar", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "liar", "context": {"cluster": "liar"}}]});
    folder.write("liar.kubeconfig", kubeconfig.to_string())
}

#[tokio::test]
async fn a_name_that_is_a_path_leads_nowhere() {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    for name in ["honest", "liar"] {
        hub.create(&config_map(&shop, name, json!({"a": "b"}))).await;
    }
    select(&hub, &config_maps(&shop, &["*"])).await;
    for lie_of in ["victim:7473/proxy/admin", "..", "a%2fb"] {
        edge.delete("v1", "configmaps", &shop, "honest").await;
        let mark = pair.edge.audit_mark();
        let folder = Folder::create("liar");
        let kubeconfig = lie(pair.hub.client(), lie_of, &folder).await;
        let mut syncer = Syncer::start(
            &kubeconfig,
            &pair.edge.kubeconfig(),
            &["--mode=poll", "--poll-interval=1s"],
        );
        let reported = format!("an object with the name {lie_of:?}");
        syncer
            .wait_for_log(&reported.replace('"', "\\\""), Duration::from_secs(60))
            .await;
        arrives(&edge, "v1", "configmaps", &shop, "honest").await;
        for request in pair.edge.requests_since(SYNCER, mark) {
            let path = request.uri.split('?').next().unwrap_or_default();
            let place = path.split_once("/configmaps/").map_or("", |(_, name)| name);
            assert!(!place.contains(['/', '%']) && place != "..", "{} {path}", request.verb);
        }
    }
}
