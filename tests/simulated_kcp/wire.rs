//! Answers as they are on the wire.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::Objects;
use crate::support::objects::JSON;

/// An answer as it is on the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) is_json: bool,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn is(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.body()
    }

    /// Checks that it is a `Status` of this code and reason.
    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Value {
        let body = self.is(code);
        assert_eq!(
            (&body["kind"], &body["reason"]),
            (&json!("Status"), &json!(reason)),
            "{body}"
        );
        body
    }

    /// Checks that it is plain text of this code, with these words.
    #[track_caller]
    pub(crate) fn says(self, code: u16, words: &str) {
        assert!(
            self.code == code && !self.is_json && self.text.contains(words),
            "{self:?}"
        );
    }

    /// Checks that it is what is said of a type that is not served: text, or a `Status` without details of an object.
    #[track_caller]
    pub(crate) fn says_not_served(self) {
        assert!(self.code == 404 && self.body()["details"]["kind"].is_null(), "{self:?}");
    }
}

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

pub(crate) async fn send(at: &Objects, method: Method, path: &str, content_type: &str, body: &Value) -> Answer {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", DISCOVERY)
        .body(Body::from(text.into_bytes()))
        .expect("paths of tests are valid");
    let response = at.client().send(request).await.expect("it answers");
    let code = response.status().as_u16();
    let of_type = response.headers().get("content-type").cloned();
    let is_json = of_type.is_some_and(|of_type| of_type.as_bytes().starts_with(b"application/json"));
    let bytes: Bytes = response.into_body().collect().await.expect("it answers").to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Answer { code, is_json, text }
}

pub(crate) async fn get(at: &Objects, path: &str) -> Answer {
    send(at, Method::GET, path, JSON, &Value::Null).await
}

pub(crate) async fn post(at: &Objects, path: &str, body: &Value) -> Answer {
    send(at, Method::POST, path, JSON, body).await
}

/// The status code and the body of a GET.
pub(crate) async fn fetch(port: u16, path: &str) -> Result<(u16, String), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(said)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(said)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.map_err(said)?;
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((code.ok_or("it is no HTTP")?, text))
}
