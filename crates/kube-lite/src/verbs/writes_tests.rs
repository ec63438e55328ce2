use std::cell::RefCell;
use std::rc::Rc;

use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use http::Request;

use super::*;
use crate::{ApiServer, RateLimit, Response, Workspaces};

/// A server that gives each request the same answer, and keeps the requests.
struct Same(&'static str, Rc<RefCell<Vec<String>>>);

impl ApiServer for Same {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let body = String::from_utf8_lossy(request.body());
        let kind = request.headers()[http::header::CONTENT_TYPE].to_str().unwrap();
        let line = format!("{} {} {kind} {body}", request.method(), request.uri());
        self.1.borrow_mut().push(line);
        let body = Bytes::from_static(self.0.as_bytes());
        Box::pin(async move {
            Ok(Response {
                status: 200,
                retry_after: None,
                is_fair: false,
                body: futures_util::stream::iter([Ok(body)]).boxed_local(),
            })
        })
    }
}

fn cluster(answer: &'static str) -> (Cluster, Rc<RefCell<Vec<String>>>) {
    let asked = Rc::default();
    let server = Box::new(Same(answer, Rc::clone(&asked)));
    (
        Cluster::new("hub", server, RateLimit::new(None), "role of/tests"),
        asked,
    )
}

const PRICES: &str = r#"{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"prices","resourceVersion":"7"}}"#;
const BARE: &str = r#"{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"prices"}}"#;

fn name() -> ObjectName {
    ObjectName::new("shop", "prices")
}

#[tokio::test]
async fn a_write_says_as_whom_where_and_on_what_condition() {
    let (cluster, asked) = cluster(PRICES);
    let (maps, name) = (ResourceType::config_maps(), name());
    let (old, new) = (json!("1"), json!({"a": 2}));
    let operations = [
        Operation::Test(&["metadata", "annotations", "a.b/c~d"], &old),
        Operation::Add(&["data"], &new),
        Operation::Replace(&["data", "b"], &old),
        Operation::Remove(&["immutable"]),
    ];
    let patched = cluster.json_patch(&maps, &name, &operations, Content::Metadata).await;
    let replaced = cluster.replace(&maps, &name, PRICES.into(), Content::Full).await;
    let like = ObjectName::new("shop", "pri");
    let generated = cluster.create_generated(&maps, &like, "{}".into()).await;
    let of_it = cluster.create_subresource(&maps, &name, "eviction", "{}".into()).await;
    let status = cluster.replace_subresource(&maps, &name, "status", PRICES.into()).await;
    for answer in [patched, replaced, generated, of_it, status] {
        assert_eq!(answer.as_deref(), Ok(PRICES.as_bytes()));
    }
    let maps = "/api/v1/namespaces/shop/configmaps";
    let manager = "?fieldManager=role%20of%2Ftests";
    let patch = r#"[{"op":"test","path":"/metadata/annotations/a.b~1c~0d","value":"1"},{"op":"add","path":"/data","value":{"a":2}},{"op":"replace","path":"/data/b","value":"1"},{"op":"remove","path":"/immutable"}]"#;
    assert_eq!(
        *asked.borrow(),
        [
            format!("PATCH {maps}/prices{manager} application/json-patch+json {patch}"),
            format!("PUT {maps}/prices{manager} application/json {PRICES}"),
            format!("POST {maps}{manager} application/json {{}}"),
            format!("POST {maps}/prices/eviction{manager} application/json {{}}"),
            format!("PUT {maps}/prices/status{manager} application/json {PRICES}"),
        ]
    );
}

#[tokio::test]
async fn what_would_overwrite_whatever_is_there_is_not_sent() {
    let (cluster, asked) = cluster(PRICES);
    let (maps, name) = (ResourceType::config_maps(), name());
    let other = r#"{"metadata":{"namespace":"shop","name":"b","resourceVersion":"7"}}"#;
    for body in [BARE, other, "{}", ""] {
        let replaced = cluster.replace(&maps, &name, body.into(), Content::Full).await;
        let status = cluster.replace_subresource(&maps, &name, "status", body.into()).await;
        for result in [replaced, status] {
            assert!(matches!(result, Err(Error::NotSent(_))), "{body}: {result:?}");
        }
    }
    for subresource in ["", "..", "a/b", "a b", "a%2Fb"] {
        let status = cluster
            .replace_subresource(&maps, &name, subresource, PRICES.into())
            .await;
        let of_it = cluster.create_subresource(&maps, &name, subresource, "{}".into()).await;
        for result in [status, of_it] {
            assert!(matches!(result, Err(Error::NotSent(_))), "{subresource}: {result:?}");
        }
    }
    assert!(asked.borrow().is_empty());
}

#[tokio::test]
async fn a_write_is_done_only_if_the_answer_is_about_it() {
    const OTHER: &str = r#"{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"other"}}"#;
    const SECRET: &str = r#"{"kind":"Secret","metadata":{"namespace":"shop","name":"prices"}}"#;
    let (maps, name) = (ResourceType::config_maps(), name());
    for answer in [OTHER, SECRET, "<html>", ""] {
        let (cluster, _) = cluster(answer);
        let patched = cluster.json_patch(&maps, &name, &[], Content::Full).await;
        let replaced = cluster.replace(&maps, &name, PRICES.into(), Content::Full).await;
        let generated = cluster.create_generated(&maps, &name, "{}".into()).await;
        for result in [patched, replaced, generated] {
            assert!(matches!(result, Err(Error::BadAnswer(_))), "{answer}: {result:?}");
        }
        // What belongs to an object is of another kind.
        let status = cluster.replace_subresource(&maps, &name, "scale", PRICES.into()).await;
        assert_eq!(status.is_ok(), answer == SECRET, "{status:?}");
        let of_it = cluster.create_subresource(&maps, &name, "token", "{}".into()).await;
        assert_eq!(of_it.is_ok(), answer.starts_with('{'), "{of_it:?}");
    }
}

#[tokio::test]
async fn a_name_that_the_server_makes_begins_as_it_was_asked_to() {
    let (cluster, asked) = cluster(r#"{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"prices-x7k2p"}}"#);
    let cluster = cluster.with(Workspaces::Many);
    let maps = ResourceType::config_maps();
    for (prefix, is_it) in [("prices-", true), ("costs-", false), ("prices-x7k2p", false)] {
        let like = ObjectName::in_workspace("w", "shop", prefix);
        let made = cluster.create_generated(&maps, &like, "{}".into()).await;
        assert_eq!(made.is_ok(), is_it, "{prefix}");
    }
    assert!(asked.borrow()[0].starts_with("POST /clusters/w/api/v1/namespaces/shop/configmaps?"));
}
