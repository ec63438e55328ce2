//! One piece of work as a dry run: its writes, each asked of the real server, and what they would make of the objects.
//!
//! A server forgets a dry run at once, and a piece of work may write one object several times, each time on the ground of
//! the answer before. So what the first write has answered stays here, and what follows is read from that and done to it:
//! patches as they are defined, an apply by asking the server once more.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{Method, Request, header};
use kube_lite::between::{Between, answer};
use kube_lite::dry_run::{is_dry, merged};
use kube_lite::{ApiServer, Cluster, Error, Response, encode};
use serde_json::{Value, json};

use super::elsewhere::Elsewhere;
use crate::side::Side;
use crate::sync::given_up::without_given_up;

/// The largest answer that is read: one object, or a page of a list.
const ANSWER_LIMIT: usize = 16 << 20;

/// What would become of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Played {
    /// As it is; absent if it is not there.
    pub(super) before: Option<Value>,
    /// As it would be.
    pub(super) now: Option<Value>,
    /// It would be deleted on the way.
    pub(super) is_replaced: bool,
    /// It is shown as it was sent: no server can say what it would make of it.
    pub(super) is_as_sent: bool,
}

/// What one piece of work would do, by side and path.
pub(super) type Stage = Rc<RefCell<BTreeMap<(Side, String), Played>>>;

/// Stands between a worker and one of its sides.
pub(super) struct Rehearsal {
    pub(super) base: Rc<Cluster>,
    pub(super) stage: Stage,
    pub(super) elsewhere: Rc<RefCell<Elsewhere>>,
    is_fair: Cell<bool>,
}

impl Rehearsal {
    pub(super) fn new(base: &Rc<Cluster>, stage: &Stage, elsewhere: &Rc<RefCell<Elsewhere>>) -> Self {
        Self {
            base: Rc::clone(base),
            stage: Rc::clone(stage),
            elsewhere: Rc::clone(elsewhere),
            is_fair: Cell::new(true),
        }
    }
}

impl Between for Rehearsal {
    fn send<'a>(
        &'a self,
        server: &'a dyn ApiServer,
        request: Request<Bytes>,
    ) -> LocalBoxFuture<'a, Result<Response, Error>> {
        async move {
            if is_dry(&request) {
                return match self.played(request.uri().path()) {
                    Some(played) if request.method() == Method::GET => {
                        Ok(self.shown(200, request.uri().path(), &played))
                    }
                    _ if self.is_list_to_change(&request) => self.list(server, request).await,
                    _ => server.send(request).await,
                };
            }
            match place(request.method(), request.uri().path(), request.body()) {
                Some(path) => self.write(server, path, request).await,
                None => server.send(request).await,
            }
        }
        .boxed_local()
    }
}

impl Rehearsal {
    fn side(&self) -> Side {
        Side::of(&self.base)
    }

    fn played(&self, path: &str) -> Option<Played> {
        self.stage.borrow().get(&(self.side(), path.to_owned())).cloned()
    }

    fn keep(&self, path: String, played: Played) {
        self.stage.borrow_mut().insert((self.side(), path), played);
    }

    /// The answer about an object as it would be.
    fn shown(&self, status: u16, path: &str, played: &Played) -> Response {
        match &played.now {
            Some(object) => answer(status, self.is_fair.get(), object.to_string()),
            None => self.not_there(path),
        }
    }

    /// The answer about one that would not be there.
    fn not_there(&self, path: &str) -> Response {
        let name = path.rsplit('/').next().unwrap_or_default();
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
            "reason": "NotFound", "details": {"name": name}});
        answer(404, self.is_fair.get(), status.to_string())
    }

    /// True for a list of a whole collection, once anything would be gone.
    fn is_list_to_change(&self, request: &Request<Bytes>) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let is_of_all = !query.contains("fieldSelector=") && !query.contains("watch=");
        request.method() == Method::GET && is_of_all && self.elsewhere.borrow().lacks_any()
    }

    /// A list without what would be gone by then.
    async fn list(&self, server: &dyn ApiServer, request: Request<Bytes>) -> Result<Response, Error> {
        let path = request.uri().path().to_owned();
        let (status, body) = self.whole(server, request).await?;
        let page = self.elsewhere.borrow().without_gone(self.side(), &path, &body);
        Ok(answer(status, self.is_fair.get(), page.map_or(body, Bytes::from)))
    }

    async fn write(&self, server: &dyn ApiServer, path: String, request: Request<Bytes>) -> Result<Response, Error> {
        match self.played(&path) {
            None => self.first(server, path, request).await,
            Some(played) => self.next(server, path, request, played).await,
        }
    }

    /// The first write of an object.
    async fn first(&self, server: &dyn ApiServer, path: String, request: Request<Bytes>) -> Result<Response, Error> {
        let before = match self.base.get_path(&path).await {
            Ok(object) => serde_json::from_slice(&object).ok(),
            Err(error) if error.status().is_some_and(|status| status.code == 404) => None,
            Err(error) => return Err(error),
        };
        let is_delete = request.method() == Method::DELETE;
        let sent = request.body().clone();
        let (status, body) = self.asked(server, request).await?;
        let mut played = Played {
            before,
            ..Played::default()
        };
        if self.is_in_new_namespace(status, &body) && !is_delete {
            played.now = Some(as_sent(&sent));
            played.is_as_sent = true;
            let shown = self.shown(201, &path, &played);
            self.keep(path, played);
            return Ok(shown);
        }
        if (200..300).contains(&status) {
            played.now = serde_json::from_slice(&body).ok().filter(|_| !is_delete);
            self.keep(path, played);
        }
        Ok(answer(status, self.is_fair.get(), body))
    }

    /// A write of an object that was written before.
    async fn next(
        &self,
        server: &dyn ApiServer,
        path: String,
        request: Request<Bytes>,
        mut played: Played,
    ) -> Result<Response, Error> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let sent = request.body().clone();
        let mut status = 200;
        match (request.method().clone(), played.now.take()) {
            (Method::DELETE, now) => {
                let done = match now {
                    Some(_) => answer(200, self.is_fair.get(), DONE),
                    None => self.not_there(&path),
                };
                self.keep(path, played);
                return Ok(done);
            }
            // It was deleted before.
            (method, None) if method == Method::POST || kind.starts_with(APPLY) => {
                played.now = Some(as_sent(&sent));
                played.is_replaced = played.before.is_some();
                played.is_as_sent = true;
                status = 201;
            }
            (_, None) => {}
            (_, Some(now)) if kind.starts_with(MERGE_PATCH) => {
                played.now = serde_json::from_slice(&sent)
                    .ok()
                    .map(|patch| merged(Some(now), &patch));
            }
            // What the server does not have cannot be applied to there.
            (_, Some(now)) if played.is_as_sent || played.before.is_none() => {
                played.now = Some(if kind.starts_with(APPLY) {
                    merged(Some(now), &as_sent(&sent))
                } else {
                    now
                });
            }
            (_, Some(now)) => {
                let (status, body) = self.asked(server, request).await?;
                if !(200..300).contains(&status) {
                    return Ok(answer(status, self.is_fair.get(), body));
                }
                played.now = serde_json::from_slice(&body)
                    .ok()
                    .map(|applied| without_given_up(applied, &now));
            }
        }
        let shown = self.shown(status, &path, &played);
        self.keep(path, played);
        Ok(shown)
    }

    /// What the server says to a write, as far as an object may be: whole, whatever part of it was asked for.
    async fn asked(&self, server: &dyn ApiServer, mut request: Request<Bytes>) -> Result<(u16, Bytes), Error> {
        let json = header::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::ACCEPT, json);
        self.whole(server, request).await
    }

    /// The whole answer.
    async fn whole(&self, server: &dyn ApiServer, request: Request<Bytes>) -> Result<(u16, Bytes), Error> {
        let mut response = server.send(request).await?;
        self.is_fair.set(response.is_fair);
        let mut all = BytesMut::new();
        while let Some(piece) = response.body.next().await {
            all.extend_from_slice(&piece?);
            if all.len() > ANSWER_LIMIT {
                return Err(Error::BadAnswer(format!("more than {ANSWER_LIMIT} bytes")));
            }
        }
        Ok((response.status, all.freeze()))
    }

    /// True for a refusal because a namespace is missing that would be there by now.
    fn is_in_new_namespace(&self, status: u16, body: &[u8]) -> bool {
        let error = Error::from_answer(status, None, body);
        let missing = error.missing_namespace().filter(|_| status == 404);
        missing.is_some_and(|name| self.elsewhere.borrow().has_namespace(self.side(), name))
    }
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The answer to a delete.
const DONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;

/// The object that a request has in its body, as if the server had made it.
fn as_sent(body: &[u8]) -> Value {
    let mut object: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}

/// The path of the object that a write is about, also if it is written through its status; `None` for one that is about no
/// object: a review, an eviction, a token.
fn place(method: &Method, path: &str, body: &[u8]) -> Option<String> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let below = match parts.first() {
        Some(&"api") => parts.get(2..)?,
        Some(&"apis") => parts.get(3..)?,
        _ => return None,
    };
    let is_namespaced = below.first() == Some(&"namespaces") && below.len() > 2;
    if *method == Method::POST {
        let is_collection = below.len() == 1 || is_namespaced && below.len() == 3;
        let object: Value = serde_json::from_slice(body).ok().filter(|_| is_collection)?;
        let name = object["metadata"]["name"].as_str()?;
        let mut path = format!("{path}/");
        encode(&mut path, name);
        return Some(path);
    }
    match below {
        [_, _] | ["namespaces", _, _, _] => Some(path.to_owned()),
        [_, _, "status"] | ["namespaces", _, _, _, "status"] => path.strip_suffix("/status").map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_about_one_object_or_about_none() {
        let named = r#"{"metadata":{"name":"a:b"}}"#;
        for (method, path, body, expected) in [
            (
                Method::PATCH,
                "/api/v1/namespaces/shop",
                "",
                Some("/api/v1/namespaces/shop"),
            ),
            (
                Method::PATCH,
                "/api/v1/namespaces/shop/status",
                "",
                Some("/api/v1/namespaces/shop"),
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/shop/configmaps/status",
                "",
                Some("/api/v1/namespaces/shop/configmaps/status"),
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/shop/deployments/a/status",
                "",
                Some("/apis/apps/v1/namespaces/shop/deployments/a"),
            ),
            (
                Method::PATCH,
                "/apis/g/v1/things/a/status",
                "",
                Some("/apis/g/v1/things/a"),
            ),
            (Method::POST, "/apis/g/v1/things", named, Some("/apis/g/v1/things/a:b")),
            (
                Method::POST,
                "/api/v1/namespaces/shop/configmaps",
                named,
                Some("/api/v1/namespaces/shop/configmaps/a:b"),
            ),
            (
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                "{}",
                None,
            ),
            (
                Method::POST,
                "/api/v1/namespaces/shop/serviceaccounts/a/token",
                named,
                None,
            ),
            (Method::PUT, "/healthz", "", None),
        ] {
            let found = place(&method, path, body.as_bytes());
            assert_eq!(found.as_deref(), expected, "{method} {path}");
        }
    }
}
