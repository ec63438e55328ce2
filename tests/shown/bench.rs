//! Commands, requests to a running syncer, and a webhook that quotes what it denies.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;

use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
pub(crate) use crate::support::serving::{ANYWHERE, address_of};
use crate::support::{Objects, Printed, Syncer};

/// The head and the body of an answer.
pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str) -> (String, String) {
    let answered = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = answered.await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it has a head");
    (head.to_owned(), body.to_owned())
}

/// What a command says that takes the flags of `run`.
pub(crate) async fn command(name: &str, sides: [&Path; 2], more: &[&str], env: &[(&str, &str)]) -> Printed {
    let output = Command::new(Syncer::program())
        .arg(name)
        .arg(format!("--from-kubeconfig={}", sides[0].display()))
        .arg(format!("--to-kubeconfig={}", sides[1].display()))
        .arg("--sync-target-uid=test")
        .args(more)
        .envs(env.iter().copied())
        .output()
        .await
        .expect("the binary can be started");
    Printed::of(&output)
}

/// A webhook that denies Secrets and `ConfigMap`s of a namespace called `denied...`, and the deletes of those called
/// `kept...` and the changes of those called `fixed...`, with these words before all that it can quote of them.
pub(crate) async fn quoting_webhook(at: &Objects, shop: &str, words: &'static str) {
    let ca = Authority::new("webhooks");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(ca.serving(&["127.0.0.1"]).tls()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.expect("the API server trusts it");
                let service = service_fn(move |request| judge(request, words));
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await
            });
        }
    });
    at.create(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": shop},
        "webhooks": [{
            "name": "quoting.example.org",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}"), "caBundle": base64(&ca.certificate)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["secrets", "configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop}},
            // What is left when the test has ended can be deleted.
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    }))
    .await;
}

async fn judge(request: Request<Incoming>, words: &str) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request
        .into_body()
        .collect()
        .await
        .expect("the API server sends it")
        .to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("it is an AdmissionReview");
    let request = &review["request"];
    let name = request["name"].as_str().unwrap_or_default();
    let (is_denied, object) = match request["operation"].as_str() {
        Some("DELETE") => (name.starts_with("kept"), "oldObject"),
        Some("UPDATE") if name.starts_with("fixed") => (true, "oldObject"),
        _ => (name.starts_with("denied"), "object"),
    };
    let object = &request[object];
    let mut quoted = String::new();
    for value in object["data"].as_object().into_iter().flatten().map(|(_, value)| value) {
        let text = value.as_str().unwrap_or_default();
        let plain = decoded(text);
        quoted.extend([" ", text, " ", &plain, &format!(" {plain:?}")]);
    }
    let object = object.to_string();
    let answer = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": !is_denied,
            "status": {"code": 422, "message": format!("{words}{quoted} in {object:?}")}},
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}

/// A text from base64.
fn decoded(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|&digit| digit == byte));
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0, 0);
    for digit in digits {
        (bits, count) = (bits << 6 | digit, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("it is a byte"));
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
