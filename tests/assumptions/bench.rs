//! What the cases are written in: requests through the border of the crate, and answers as plain JSON.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request};
use kube_lite::{ApiServer, Body};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// How long a server may take for anything. Far longer than it does.
const SOON: Duration = Duration::from_secs(120);
/// How long a watch in which nothing may happen is listened to.
const A_WHILE: Duration = Duration::from_millis(300);

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// A server under test, and a namespace in it that exists and is empty.
pub(crate) struct Bench<'a> {
    pub(crate) server: &'a dyn ApiServer,
    pub(crate) namespace: String,
    /// Makes the server forget all that is not current.
    pub(crate) compact: &'a dyn Fn() -> LocalBoxFuture<'a, ()>,
}

/// An answer: its status code and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Checks the code, and gives the body.
    #[track_caller]
    pub(crate) fn is(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// Checks that it is a `Status` with this code and reason, and gives it.
    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Value {
        let body = self.is(code);
        assert_eq!(body["kind"], "Status", "{body}");
        assert_eq!(body["status"], "Failure", "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["reason"], reason, "{body}");
        body
    }
}

/// `metadata.resourceVersion`.
pub(crate) fn version(object: &Value) -> String {
    let version = &object["metadata"]["resourceVersion"];
    version.as_str().expect("it has a version").to_owned()
}

/// The same as a number.
pub(crate) fn number(object: &Value) -> u64 {
    version(object).parse().expect("versions are numbers")
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(is_so: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let end = Instant::now() + SOON;
        while !is_so().await {
            assert!(Instant::now() < end, "at {place}: it is not so");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Bench<'_> {
    /// The path of a `ConfigMap`, or of all in the namespace when `name` is empty; it may have a query.
    pub(crate) fn path(&self, name: &str) -> String {
        let joint = if name.is_empty() || name.starts_with('?') {
            ""
        } else {
            "/"
        };
        format!("/api/v1/namespaces/{}/configmaps{joint}{name}", self.namespace)
    }

    /// A `ConfigMap` with one value.
    pub(crate) fn object(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
            "metadata": {"namespace": self.namespace, "name": name},
        })
    }

    pub(crate) async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Answer {
        let body = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        self.send_accepting(JSON, method, path, kind, body).await
    }

    async fn send_accepting(&self, accept: &str, method: Method, path: &str, kind: &str, body: Bytes) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept", accept)
            .header("content-type", kind)
            .body(body)
            .expect("paths of tests are valid");
        let answer = async {
            let mut response = self.server.send(request).await.expect("the server answers");
            let mut text = BytesMut::new();
            while let Some(chunk) = response.body.next().await {
                text.extend_from_slice(&chunk.expect("the answer comes whole"));
            }
            Answer {
                code: response.status,
                body: serde_json::from_slice(&text)
                    .unwrap_or_else(|_| String::from_utf8_lossy(&text).into_owned().into()),
            }
        };
        timeout(SOON, answer).await.expect("the server answers soon")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_as(JSON, path).await
    }

    pub(crate) async fn get_as(&self, accept: &str, path: &str) -> Answer {
        self.send_accepting(accept, Method::GET, path, JSON, Bytes::new()).await
    }

    /// Creates a `ConfigMap` that can be created.
    pub(crate) async fn create(&self, name: &str) -> Value {
        self.create_object(&self.object(name, "1")).await
    }

    pub(crate) async fn create_object(&self, object: &Value) -> Value {
        self.send(Method::POST, &self.path(""), JSON, object).await.is(201)
    }

    pub(crate) async fn put(&self, object: &Value) -> Answer {
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        self.send(Method::PUT, &self.path(name), JSON, object).await
    }

    /// Gives a `ConfigMap` another value, which it can have.
    pub(crate) async fn change(&self, name: &str, value: &str) -> Value {
        self.merge(name, &json!({"data": {"value": value}})).await.is(200)
    }

    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Answer {
        self.send(Method::PATCH, &self.path(name), MERGE, patch).await
    }

    /// Server-side apply of a `ConfigMap`.
    pub(crate) async fn apply(&self, manager: &str, force: bool, object: &Value) -> Answer {
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        let path = self.path(&format!("{name}?fieldManager={manager}&force={force}"));
        self.send(Method::PATCH, &path, APPLY, object).await
    }

    pub(crate) async fn delete(&self, name: &str, options: &Value) -> Answer {
        self.send(Method::DELETE, &self.path(name), JSON, options).await
    }

    pub(crate) async fn delete_if(&self, name: &str, preconditions: &Value) -> Answer {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        self.delete(name, &options).await
    }

    /// Starts a watch on the namespace's `ConfigMap`s.
    pub(crate) async fn watch(&self, query: &str) -> Watch {
        self.watch_at(&self.path(""), query).await
    }

    /// Starts a watch on any collection.
    pub(crate) async fn watch_at(&self, path: &str, query: &str) -> Watch {
        let path = format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds=60&{query}");
        let request = Request::get(path).header("accept", JSON).body(Bytes::new());
        let response = self.server.send(request.expect("paths of tests are valid"));
        let response = timeout(SOON, response).await.expect("the server answers soon");
        let response = response.expect("the server answers");
        assert_eq!(response.status, 200);
        Watch {
            body: response.body,
            buffer: BytesMut::new(),
        }
    }
}

/// A watch that is open.
pub(crate) struct Watch {
    body: Body,
    buffer: BytesMut,
}

impl Watch {
    /// The next event: its type and its object. Bookmarks are left out but for the one that ends the initial events.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        let event = timeout(SOON, self.read()).await.expect("an event comes soon");
        event.expect("the watch is open")
    }

    /// Checks the next event, and gives its object.
    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, kind: &'a str, name: &'a str) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let (found, object) = self.next().await;
            let found = (found.as_str(), object["metadata"]["name"].as_str().unwrap_or_default());
            assert_eq!(found, (kind, name), "at {place}: {object}");
            object
        }
    }

    /// Checks that nothing comes for a while.
    pub(crate) async fn is_quiet(&mut self) {
        let event = timeout(A_WHILE, self.read()).await;
        assert!(event.is_err(), "{event:?}");
    }

    async fn read(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                let mut event: Value = serde_json::from_slice(&line).expect("an event is JSON");
                let kind = event["type"].as_str().expect("an event has a type").to_owned();
                let object = event["object"].take();
                let ends = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
                if kind == "BOOKMARK" && ends != "true" {
                    continue;
                }
                return Some((kind, object));
            }
            let chunk = self.body.next().await?.expect("the watch is not cut");
            self.buffer.extend_from_slice(&chunk);
        }
    }
}
