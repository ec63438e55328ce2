use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::Request;

use super::*;
use crate::{Response, WatchEvent};

/// A status code and the chunks of a body.
type Answer = (u16, Vec<Result<Bytes, Error>>);

/// A server that answers from a script and keeps the paths it was asked for.
struct Scripted {
    answers: RefCell<VecDeque<Answer>>,
    paths: Rc<RefCell<Vec<String>>>,
}

impl ApiServer for Scripted {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        self.paths.borrow_mut().push(request.uri().to_string());
        let answer = self
            .answers
            .borrow_mut()
            .pop_front()
            .expect("the script has an answer left");
        async move {
            Ok(Response {
                status: answer.0,
                retry_after: None,
                is_fair: false,
                body: futures_util::stream::iter(answer.1).boxed_local(),
            })
        }
        .boxed_local()
    }
}

fn cluster(answers: Vec<Answer>) -> (Rc<Cluster>, Rc<RefCell<Vec<String>>>) {
    let paths = Rc::default();
    let server = Scripted {
        answers: RefCell::new(answers.into()),
        paths: Rc::clone(&paths),
    };
    (
        Rc::new(Cluster::new(
            "hub",
            Box::new(server),
            RateLimit::new(None),
            "edge-syncer",
        )),
        paths,
    )
}

fn request() -> ListRequest {
    ListRequest {
        resource: ResourceType {
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            kind: "ConfigMap".into(),
            namespaced: true,
        },
        scope: Scope {
            namespace: Some("shop".into()),
            name: Some("prices".into()),
        },
        label_selector: Some("a=b".into()),
        field_selector: None,
        content: Content::Full,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "stands among chunks that fail")]
fn text(text: &str) -> Result<Bytes, Error> {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn a_list_follows_its_pages_and_ends_with_the_version_to_watch_from() {
    let (cluster, paths) = cluster(vec![
        (
            200,
            vec![
                text(r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5","continue":"n/2"},"items":[{"a""#),
                text(":1}]}"),
            ],
        ),
        (
            200,
            vec![text(
                r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[{"b":1}]}"#,
            )],
        ),
    ]);
    let mut listing = cluster.list(request());
    assert_eq!(listing.next().await.unwrap().unwrap(), r#"{"a":1}"#);
    assert_eq!(listing.resource_version(), None);
    assert_eq!(listing.next().await.unwrap().unwrap(), r#"{"b":1}"#);
    assert_eq!(listing.next().await, Ok(None));
    assert_eq!(listing.resource_version(), Some("5"));
    let base = "/api/v1/namespaces/shop/configmaps?limit=";
    let selectors = "&fieldSelector=metadata.name%3Dprices&labelSelector=a%3Db";
    assert_eq!(
        *paths.borrow(),
        [
            format!("{base}85{selectors}"),
            // The first one came quickly, and its object is small.
            format!("{base}500&continue=n%2F2{selectors}")
        ]
    );
}

#[tokio::test]
async fn a_list_that_is_cut_or_is_no_list_never_ends_well() {
    let cut = Error::Unreachable("reset".into());
    for (chunks, expected_bad_answer) in [
        (
            vec![text(
                r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":["#,
            )],
            true,
        ),
        (vec![text(r#"{"kind":"ConfigMapList","#), Err(cut)], false),
        (vec![text("<html>welcome to the hotel</html>")], true),
        (vec![], true),
    ] {
        let (cluster, _) = cluster(vec![(200, chunks)]);
        let error = cluster.list(request()).next().await.unwrap_err();
        assert_eq!(matches!(error, Error::BadAnswer(_)), expected_bad_answer, "{error}");
    }
}

#[tokio::test]
async fn a_watch_gives_events_whatever_the_chunks() {
    let lines = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#,
        "\n",
    );
    for size in [1, 10, 1000] {
        let chunks = lines
            .as_bytes()
            .chunks(size)
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        let (cluster, _) = cluster(vec![(200, chunks)]);
        let mut watching = cluster.watch(&request(), Some("1"), 60).await.unwrap();
        let object = Bytes::from_static(br#"{"metadata":{"name":"a"}}"#);
        let object = || Box::new(crate::Object::take_apart(object.clone()).unwrap());
        assert_eq!(watching.next().await, Ok(Some(WatchEvent::Applied(object()))));
        let bookmark = WatchEvent::Bookmark {
            resource_version: "9".into(),
            initial_end: true,
        };
        assert_eq!(watching.next().await, Ok(Some(bookmark)));
        assert_eq!(watching.next().await, Ok(Some(WatchEvent::Deleted(object()))));
        assert_eq!(watching.next().await, Ok(None));
    }
}

#[tokio::test]
async fn a_watch_that_is_cut_in_an_event_is_an_error_and_not_an_end() {
    let (cluster, _) = cluster(vec![(200, vec![text(r#"{"type":"ADDED","obj"#)])]);
    let mut watching = cluster.watch(&request(), None, 60).await.unwrap();
    assert!(matches!(watching.next().await, Err(Error::Unanswered(_))));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_becomes_an_error() {
    struct Silent;
    impl ApiServer for Silent {
        fn send(&self, _: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            std::future::pending().boxed_local()
        }
    }
    let cluster = Cluster::new("edge", Box::new(Silent), RateLimit::new(None), "edge-syncer");
    let error = cluster.get_path("/api").await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 30 s");
}

/// A server that answers each request after a time, while so many bytes pass the link each second.
struct Slow {
    answers_after: Duration,
    bytes_a_second: u64,
    start: tokio::time::Instant,
}

impl ApiServer for Slow {
    fn send(&self, _: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        async move {
            tokio::time::sleep(self.answers_after).await;
            Ok(Response::whole(200, "{}"))
        }
        .boxed_local()
    }

    fn link_bytes(&self) -> [u64; 2] {
        [self.start.elapsed().as_secs() * self.bytes_a_second, 0]
    }
}

fn slow(answers_after: u64, bytes_a_second: u64) -> Cluster {
    let server = Slow {
        answers_after: Duration::from_secs(answers_after),
        bytes_a_second,
        start: tokio::time::Instant::now(),
    };
    Cluster::new("hub", Box::new(server), RateLimit::new(None), "edge-syncer")
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_wait_behind_others_on_a_busy_link_but_not_for_ever() {
    // 64 kbit/s.
    assert_eq!(slow(250, 8000).get_path("/api").await.unwrap(), "{}");
    let error = slow(400, 8000).get_path("/api").await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 300 s");
    // Bookmarks and answers to pings.
    let error = slow(250, 100).get_path("/api").await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 30 s");
}

#[tokio::test(start_paused = true)]
async fn a_large_object_has_the_time_that_a_slow_link_needs_to_send_it() {
    let resource = request().resource;
    let name = ObjectName::new("shop", "large");
    // The link is shared with seven others like it.
    let body = Bytes::from(vec![b' '; 1 << 20]);
    let cluster = slow(8 * 131, 8000);
    // It is sent; what comes is no answer about it.
    let applied = cluster.apply(&resource, &name, body, Content::Full).await;
    assert_eq!(applied.map(|_| ()), Err(Error::BadAnswer("{}".into())));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_takes_too_long_is_asked_for_again_in_smaller_pieces() {
    /// Sends as many items as were asked for, one a second, and gives up after a minute.
    struct Impatient(Rc<RefCell<Vec<usize>>>);
    impl ApiServer for Impatient {
        fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let query = request.uri().query().unwrap();
            let value = |key| query.split('&').find_map(|pair| pair.strip_prefix(key));
            let limit: usize = value("limit=").unwrap().parse().unwrap();
            let from: usize = value("continue=").map_or(0, |token| token.parse().unwrap());
            self.0.borrow_mut().push(limit);
            let to = (from + limit).min(100);
            let token = if to < 100 { to.to_string() } else { String::new() };
            let head = format!(
                r#"{{"kind":"ConfigMapList","metadata":{{"resourceVersion":"5","continue":"{token}"}},"items":["#
            );
            let items = (from..to).map(move |item| {
                let comma = if item == from { "" } else { "," };
                format!(r#"{comma}{{"name":"{item}"}}"#)
            });
            let chunks = futures_util::stream::iter([head].into_iter().chain(items).chain(["]}".into()]));
            let start = tokio::time::Instant::now();
            let body = chunks.then(move |chunk| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if start.elapsed() > Duration::from_secs(60) {
                    return Err(Error::Unreachable("stream error: internal error".into()));
                }
                text(&chunk)
            });
            let response = Response {
                status: 200,
                retry_after: None,
                is_fair: false,
                body: body.boxed_local(),
            };
            async { Ok(response) }.boxed_local()
        }
    }
    let limits = Rc::default();
    let server = Impatient(Rc::clone(&limits));
    let cluster = Rc::new(Cluster::new(
        "hub",
        Box::new(server),
        RateLimit::new(None),
        "edge-syncer",
    ));
    let mut listing = cluster.list(request());
    let mut items = 0;
    while listing.next().await.unwrap().is_some() {
        items += 1;
    }
    assert!(items >= 100, "{items}");
    assert_eq!(*limits.borrow(), [85, 62, 15, 15, 15, 15, 15, 15, 15]);
}

#[tokio::test(start_paused = true)]
async fn large_bodies_go_one_after_the_other_and_small_ones_together() {
    for (bytes, seconds) in [(1 << 20, 50), (60 * 1024, 30), (1000, 10)] {
        let cluster = slow(10, 8000);
        let resource = request().resource;
        let name = ObjectName::new("shop", "large");
        let body = Bytes::from(vec![b' '; bytes]);
        let start = tokio::time::Instant::now();
        let all = (0..5).map(|_| cluster.apply(&resource, &name, body.clone(), Content::Full));
        futures_util::future::join_all(all).await;
        assert_eq!(start.elapsed().as_secs(), seconds, "{bytes}");
    }
}

/// An aggregated API server that cannot send metadata alone: 406 if nothing else is accepted.
struct KnowsNoMetadata;

impl ApiServer for KnowsNoMetadata {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        const OBJECT: &str =
            r#"{"kind":"Flunder","metadata":{"name":"a","namespace":"shop","resourceVersion":"5"},"spec":{}}"#;
        let accept = request.headers()[http::header::ACCEPT].to_str().unwrap();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let whole = accept.split(',').any(|clause| clause.trim() == "application/json");
        let (status, body) = match (whole, query.contains("watch=true")) {
            (false, _) => (
                406,
                r#"{"kind":"Status","reason":"NotAcceptable","message":"only the following media types are accepted: application/json","code":406}"#.to_owned(),
            ),
            (true, true) => (200, format!("{{\"type\":\"ADDED\",\"object\":{OBJECT}}}\n")),
            (true, false) if path.ends_with("/flunders") && request.method() == Method::GET => (
                200,
                format!(r#"{{"kind":"FlunderList","metadata":{{"resourceVersion":"9"}},"items":[{OBJECT}]}}"#),
            ),
            (true, false) => (200, OBJECT.to_owned()),
        };
        let body = futures_util::stream::iter([Ok(Bytes::from(body))]).boxed_local();
        async move {
            Ok(Response {
                status,
                retry_after: None,
                is_fair: false,
                body,
            })
        }
        .boxed_local()
    }
}

#[tokio::test]
async fn a_server_that_knows_no_metadata_alone_gives_whole_objects() {
    let server = Box::new(KnowsNoMetadata);
    let cluster = Rc::new(Cluster::new("hub", server, RateLimit::new(None), "edge-syncer"));
    let mut request = request();
    request.resource.resource = "flunders".into();
    request.resource.kind = "Flunder".into();
    request.scope.name = None;
    request.content = Content::Metadata;
    let resource = request.resource.clone();
    let name = ObjectName::new("shop", "a");
    let body = Bytes::from_static(b"{}");

    cluster.get(&resource, &name, Content::Metadata).await.unwrap();
    assert_eq!(cluster.find(&resource, &name).await.unwrap(), (true, 9));
    cluster.create(&resource, &name, body.clone()).await.unwrap();
    let applied = cluster.apply(&resource, &name, body.clone(), Content::Metadata);
    applied.await.unwrap();
    let patched = cluster.merge_patch_for(&resource, &name, body, Content::Metadata);
    patched.await.unwrap();
    let status = cluster.replace_status(&resource, &name, OnlyWith::Anything, &STATUS);
    status.await.unwrap();
    let mut listing = cluster.list(request.clone());
    assert!(listing.next().await.unwrap().is_some());
    assert!(listing.next().await.unwrap().is_none());
    let mut watching = cluster.watch(&request, Some("5"), 60).await.unwrap();
    assert!(matches!(watching.next().await, Ok(Some(WatchEvent::Applied(_)))));
}

const STATUS: NewStatus<'_> = NewStatus {
    status: "{}",
    subresource: true,
    manager: "edge-syncer-status",
    answer: Content::Metadata,
};

#[tokio::test]
async fn what_nobody_could_read_is_not_sent() {
    let (cluster, asked) = cluster(Vec::new());
    let name = ObjectName::new("shop", "victim:7473/proxy/admin");
    let resource = request().resource;
    let only_if = Precondition {
        uid: "u".into(),
        resource_version: "1".into(),
        ..Precondition::default()
    };
    for result in [
        cluster.get_path(&"/x".repeat(40_000)).await,
        cluster.get(&resource, &name, Content::Full).await,
        cluster.merge_patch(&resource, &name, Bytes::new()).await,
        cluster
            .apply(&resource, &name, Bytes::new(), Content::Full)
            .await
            .map(|(object, _)| object),
        cluster
            .create(&resource, &ObjectName::new("x/../y", "a"), Bytes::new())
            .await,
        cluster
            .delete(&resource, &ObjectName::new("shop", ""), &only_if)
            .await
            .map(Option::unwrap_or_default),
        cluster
            .replace_status(&resource, &name, OnlyWith::Anything, &STATUS)
            .await,
    ] {
        assert!(matches!(result, Err(Error::NotSent(_))), "{result:?}");
    }
    let mut scoped = request();
    scoped.scope.namespace = Some("x".repeat(66_000).into());
    assert!(matches!(
        cluster.list(scoped.clone()).next().await,
        Err(Error::NotSent(_))
    ));
    let watched = cluster.watch(&scoped, Some("1"), 10).await;
    assert!(matches!(watched.err(), Some(Error::NotSent(_))));
    assert!(asked.borrow().is_empty());
}

#[tokio::test]
async fn no_answer_is_read_without_end() {
    let megabytes = |count: usize| {
        (0..count)
            .map(|_| Ok(Bytes::from(vec![b' '; 1 << 20])))
            .collect::<Vec<_>>()
    };
    let (cluster, _) = cluster(vec![
        (200, megabytes(7)),
        (200, megabytes(1000)),
        (500, megabytes(1000)),
        (200, megabytes(1000)),
    ]);
    assert_eq!(cluster.get_path("/api").await.unwrap().len(), 7 << 20);
    let error = cluster.get_path("/api").await.unwrap_err();
    assert!(matches!(error, Error::BadAnswer(_)), "{error}");
    let error = cluster.get_path("/api").await.unwrap_err();
    assert_eq!(error.to_string(), "HTTP 500");
    let error = cluster.list(request()).next().await.unwrap_err();
    assert!(matches!(error, Error::BadAnswer(_)), "{error}");
}

#[path = "verbs/limits_tests.rs"]
mod limits;

#[tokio::test]
async fn a_side_with_many_workspaces_is_listed_whole_and_asked_for_objects_of_each() {
    const LIST: &str = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}"#;
    const OBJECT: &str = r#"{"kind":"ConfigMap","metadata":{"namespace":"shop","name":"prices"}}"#;
    let (cluster, paths) = cluster(vec![
        (200, vec![text(LIST)]),
        (200, vec![text(OBJECT)]),
        (201, vec![text(OBJECT)]),
        (200, vec![text("{}")]),
    ]);
    let cluster = Rc::new(Rc::into_inner(cluster).unwrap().with(Workspaces::Many));
    assert_eq!(cluster.list(request()).next().await, Ok(None));
    let resource = request().resource;
    let name = ObjectName::in_workspace("2zdmkx5", "shop", "prices");
    cluster.get(&resource, &name, Content::Full).await.unwrap();
    cluster.create(&resource, &name, Bytes::from(OBJECT)).await.unwrap();
    cluster.get_path("/apis").await.unwrap();
    let nowhere = ObjectName::new("shop", "prices");
    let error = cluster.get(&resource, &nowhere, Content::Full).await.unwrap_err();
    assert!(matches!(error, Error::NotSent(_)), "{error:?}");
    let asked: Vec<String> = paths
        .borrow()
        .iter()
        .map(|path| path.split('?').next().unwrap().into())
        .collect();
    assert_eq!(
        asked,
        [
            "/clusters/*/api/v1/namespaces/shop/configmaps",
            "/clusters/2zdmkx5/api/v1/namespaces/shop/configmaps/prices",
            "/clusters/2zdmkx5/api/v1/namespaces/shop/configmaps",
            "/clusters/*/apis",
        ]
    );
}
