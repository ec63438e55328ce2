use std::cell::RefCell;
use std::collections::VecDeque;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::*;
use crate::cluster::WatchEvent;

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
        Rc::new(Cluster::new(Side::Hub, Box::new(server), RateLimit::new(None))),
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
        label_selector: Some("a=b"),
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
    let base = "/api/v1/namespaces/shop/configmaps?limit=250";
    let selectors = "&fieldSelector=metadata.name%3Dprices&labelSelector=a%3Db";
    assert_eq!(
        *paths.borrow(),
        [
            format!("{base}{selectors}"),
            format!("{base}&continue=n%2F2{selectors}")
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
        assert_eq!(watching.next().await, Ok(Some(WatchEvent::Applied(object.clone()))));
        let bookmark = WatchEvent::Bookmark {
            resource_version: "9".into(),
            initial_end: true,
        };
        assert_eq!(watching.next().await, Ok(Some(bookmark)));
        assert_eq!(watching.next().await, Ok(Some(WatchEvent::Deleted(object))));
        assert_eq!(watching.next().await, Ok(None));
    }
}

#[tokio::test]
async fn a_watch_that_is_cut_in_an_event_is_an_error_and_not_an_end() {
    let (cluster, _) = cluster(vec![(200, vec![text(r#"{"type":"ADDED","obj"#)])]);
    let mut watching = cluster.watch(&request(), None, 60).await.unwrap();
    assert!(matches!(watching.next().await, Err(Error::Unreachable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_becomes_an_error() {
    struct Silent;
    impl ApiServer for Silent {
        fn send(&self, _: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            std::future::pending().boxed_local()
        }
    }
    let cluster = Cluster::new(Side::Edge, Box::new(Silent), RateLimit::new(None));
    let error = cluster.get_path("/api").await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 30 s");
}
