//! A small API server: its objects can be listed and watched, and it counts what is written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, StreamExt};
use http::{Method, Request};
use kube_lite::{ApiServer, Body, Cluster, Error, RateLimit, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// See the module's doc.
#[derive(Default)]
pub struct Server {
    version: Cell<u64>,
    objects: RefCell<BTreeMap<String, Value>>,
    watches: RefCell<Vec<UnboundedSender<Bytes>>>,
    /// How many writes have begun, and how many were given up.
    pub written: Cell<usize>,
    pub given_up: Cell<usize>,
    /// What the last write had.
    pub last: RefCell<Bytes>,
    /// No write is answered.
    pub is_silent: Cell<bool>,
    /// It forbids all writes.
    pub forbids: Cell<bool>,
    /// The next watch is from too long ago.
    is_expired: Cell<bool>,
}

impl Server {
    /// A client of it.
    pub fn cluster(self: &Rc<Self>, name: &str) -> Cluster {
        let port = Port(Rc::clone(self));
        Cluster::new(name, Box::new(port), RateLimit::new(None), "greeter")
    }

    /// Somebody makes an object.
    pub fn create(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": self.next().to_string(),
        }});
        self.tell("ADDED", &object);
        self.objects.borrow_mut().insert(name.to_owned(), object);
    }

    /// Somebody deletes it.
    pub fn delete(&self, name: &str) {
        let mut object = self.objects.borrow_mut().remove(name).expect("it is there");
        object["metadata"]["resourceVersion"] = self.next().to_string().into();
        self.tell("DELETED", &object);
    }

    /// It ends its watches, and knows nothing any more of what was before.
    pub fn expire(&self) {
        self.watches.borrow_mut().clear();
        self.is_expired.set(true);
    }

    fn next(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    fn tell(&self, what: &str, object: &Value) {
        let line = Bytes::from(format!("{}\n", json!({"type": what, "object": object})));
        self.watches
            .borrow_mut()
            .retain(|watch| watch.send(line.clone()).is_ok());
    }

    fn list(&self) -> Response {
        let objects = self.objects.borrow();
        let items: Vec<&Value> = objects.values().collect();
        let metadata = json!({"resourceVersion": self.version.get().to_string()});
        whole(
            200,
            &json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}),
        )
    }

    fn watch(&self) -> Response {
        if self.is_expired.take() {
            return whole(
                410,
                &json!({"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}),
            );
        }
        let (sender, mut receiver) = unbounded_channel();
        self.watches.borrow_mut().push(sender);
        let events = stream::poll_fn(move |context| receiver.poll_recv(context));
        response(200, events.map(Ok).boxed_local())
    }

    async fn write(&self, body: Bytes) -> Response {
        self.written.set(self.written.get() + 1);
        self.last.replace(body);
        if self.is_silent.get() {
            let _given_up = GivenUp(&self.given_up);
            return pending().await;
        }
        if self.forbids.get() {
            return whole(
                403,
                &json!({"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}),
            );
        }
        whole(
            200,
            &json!({"kind": "ConfigMap", "metadata": {"name": "hello", "namespace": "default"}}),
        )
    }
}

struct GivenUp<'a>(&'a Cell<usize>);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

struct Port(Rc<Server>);

impl ApiServer for Port {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_list = request.uri().path() == "/api/v1/configmaps";
        async move {
            Ok(match *request.method() {
                Method::GET if is_list && watches => self.0.watch(),
                Method::GET if is_list => self.0.list(),
                Method::GET => whole(200, &json!({"kind": "APIVersions"})),
                _ => self.0.write(request.into_body()).await,
            })
        }
        .boxed_local()
    }
}

fn whole(status: u16, body: &Value) -> Response {
    let body = Bytes::from(body.to_string());
    response(status, stream::iter([Ok(body)]).boxed_local())
}

fn response(status: u16, body: Body) -> Response {
    Response {
        status,
        retry_after: None,
        is_fair: false,
        body,
    }
}
