//! Servers that do not come to an end.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream;
use tokio::time::{sleep, timeout};

use super::*;

const CHUNK: usize = 32 << 10;

/// What all answers hold that nobody has ended yet.
#[derive(Default)]
struct Held {
    now: Cell<usize>,
    most: Cell<usize>,
}

/// The same of one of them.
struct Part(Rc<Held>, usize);

impl Part {
    fn grows(&mut self) {
        self.1 += CHUNK;
        let now = self.0.now.get() + CHUNK;
        self.0.now.set(now);
        self.0.most.set(self.0.most.get().max(now));
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.now.set(self.0.now.get() - self.1);
    }
}

/// Answers everything with what begins well and has no end.
struct Endless(Rc<Held>);

impl ApiServer for Endless {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let query = request.uri().query().unwrap_or_default();
        let begin = if query.contains("watch=true") {
            r#"{"type":"ADDED","object":{"a":""#
        } else if query.contains("limit=") {
            r#"{"kind":"ConfigMapList","items":[{"a":""#
        } else {
            r#"{"a":""#
        };
        let chunks = stream::unfold(Part(Rc::clone(&self.0), 0), |mut part| async {
            sleep(Duration::from_millis(1)).await;
            part.grows();
            Some((Ok(Bytes::from(vec![b'x'; CHUNK])), part))
        });
        let body = stream::iter([text(begin)]).chain(chunks).boxed_local();
        let response = Response {
            status: 200,
            retry_after: None,
            is_fair: false,
            body,
        };
        async { Ok(response) }.boxed_local()
    }
}

fn endless() -> (Rc<Cluster>, Rc<Held>) {
    let held = Rc::<Held>::default();
    let server = Box::new(Endless(Rc::clone(&held)));
    (
        Rc::new(Cluster::new("edge", server, RateLimit::new(None), "edge-syncer")),
        held,
    )
}

#[tokio::test(start_paused = true)]
async fn answers_to_writes_that_do_not_end_hold_little_however_many_there_are() {
    let (cluster, held) = endless();
    let resource = request().resource;
    let name = ObjectName::new("shop", "prices");
    let writes = (0..16).map(|_| cluster.apply(&resource, &name, Bytes::from_static(b"{}"), Content::Full));
    for answer in join_all(writes).await {
        assert!(matches!(answer, Err(Error::BadAnswer(_))), "{answer:?}");
    }
    let most = held.most.get() >> 20;
    assert!((4..10).contains(&most), "{most} MiB");
    assert_eq!(held.now.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn lists_watches_and_reads_that_do_not_end_hold_little_together() {
    let (cluster, held) = endless();
    let lists = (0..8).map(|_| async { cluster.list(request()).next().await.err() }.boxed_local());
    let watches = (0..8).map(|_| {
        let watched = async { cluster.watch(&request(), Some("1"), 60).await?.next().await };
        watched.map(Result::err).boxed_local()
    });
    let reads = (0..8).map(|_| cluster.get_path("/api").map(Result::err).boxed_local());
    for error in join_all(lists.chain(watches).chain(reads)).await {
        assert!(matches!(error, Some(Error::BadAnswer(_))), "{error:?}");
    }
    let most = held.most.get() >> 20;
    assert!((8..14).contains(&most), "{most} MiB");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_goes_on_with_holds_up_nothing() {
    let large = "x".repeat(1 << 20);
    let list = format!(
        r#"{{"kind":"ConfigMapList","metadata":{{"resourceVersion":"5"}},"items":[{{"a":"{large}"}},{{"a":"{large}"}}]}}"#
    );
    let line = format!("{{\"type\":\"ADDED\",\"object\":{{\"a\":\"{large}\"}}}}\n");
    let chunks = |text: &str| {
        let chunks = text.as_bytes().chunks(CHUNK);
        chunks
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect::<Vec<_>>()
    };
    let (cluster, _) = cluster(vec![
        (200, chunks(&list)),
        (200, chunks(&line.repeat(2))),
        (200, chunks(&large)),
    ]);
    let mut listing = cluster.list(request());
    assert!(listing.next().await.unwrap().is_some());
    let mut watching = cluster.watch(&request(), Some("1"), 60).await.unwrap();
    assert!(watching.next().await.unwrap().is_some());
    let read = timeout(Duration::from_secs(1), cluster.get_path("/api")).await;
    assert_eq!(read.expect("nobody has a turn").unwrap().len(), large.len());
    assert!(watching.next().await.unwrap().is_some());
    assert!(listing.next().await.unwrap().is_some());
    assert!(listing.next().await.unwrap().is_none());
}

/// The result of a list with pages that have so many items and name these as the next, over and over.
async fn listed(pages: &[(usize, &str)]) -> Result<usize, Error> {
    let answers = pages
        .iter()
        .enumerate()
        .cycle()
        .take(200)
        .map(|(page, (items, token))| {
            let items: Vec<_> = (0..*items)
                .map(|item| format!(r#"{{"name":"{page}-{item}"}}"#))
                .collect();
            let items = items.join(",");
            let meta = format!(r#"{{"resourceVersion":"5","continue":"{token}"}}"#);
            let page = format!(r#"{{"kind":"ConfigMapList","metadata":{meta},"items":[{items}]}}"#);
            (200, vec![text(&page)])
        });
    let (cluster, _) = cluster(answers.collect());
    let mut listing = cluster.list(request());
    let mut items = 0;
    while listing.next().await?.is_some() {
        items += 1;
    }
    Ok(items)
}

#[tokio::test]
async fn a_list_whose_pages_do_not_end_is_no_list() {
    for pages in [
        &[(0, "same")][..],
        &[(1, "same")],
        &[(0, "a"), (0, "b"), (0, "c")],
        &[(1, "a"), (1, "b")],
        &[(1, "a"), (2, "b"), (0, "c"), (3, "d"), (4, "e")],
    ] {
        let result = listed(pages).await;
        assert!(matches!(result, Err(Error::BadAnswer(_))), "{pages:?}: {result:?}");
    }
    // Another token each time, and the same items.
    let tokens: Vec<String> = (0..200).map(|token| token.to_string()).collect();
    let answers = tokens.iter().map(|token| {
        let meta = format!(r#"{{"resourceVersion":"5","continue":"{token}"}}"#);
        let page = format!(r#"{{"kind":"ConfigMapList","metadata":{meta},"items":[{{"name":"a"}},{{"name":"b"}}]}}"#);
        (200, vec![text(&page)])
    });
    let (cluster, asked) = cluster(answers.collect());
    let mut listing = cluster.list(request());
    while listing.next().await.is_ok_and(|item| item.is_some()) {}
    assert_eq!(asked.borrow().len(), 2);
    let honest = [(1, "a"), (0, "b"), (0, "c"), (2, "d"), (0, "e"), (0, "f"), (3, "")];
    assert_eq!(listed(&honest).await, Ok(6));
}

fn event(version: usize) -> String {
    format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n")
}

async fn watched(chunks: impl Iterator<Item = String>) -> Result<usize, Error> {
    let chunks = chunks.map(|chunk| text(&chunk)).collect();
    let (cluster, _) = cluster(vec![(200, chunks)]);
    let mut watching = cluster.watch(&request(), Some("1"), 60).await.unwrap();
    let mut events = 0;
    while watching.next().await?.is_some() {
        events += 1;
    }
    Ok(events)
}

#[tokio::test]
async fn a_watch_of_white_space_is_no_watch() {
    for blanks in ["\n", " ", "\r\n", "  \n"] {
        let endless = [event(1)].into_iter().chain((0..1000).map(|_| blanks.repeat(1000)));
        let result = watched(endless).await;
        assert!(matches!(result, Err(Error::BadAnswer(_))), "{blanks:?}: {result:?}");
        let some = (0..10).map(|version| blanks.repeat(10_000) + &event(version));
        assert_eq!(watched(some).await, Ok(10), "{blanks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn white_space_is_no_sign_of_life_of_a_watch() {
    struct Blank;
    impl ApiServer for Blank {
        fn send(&self, _: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let body = stream::repeat(()).then(|()| async {
                sleep(Duration::from_secs(10)).await;
                text("\n")
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
    let cluster = Cluster::new("hub", Box::new(Blank), RateLimit::new(None), "edge-syncer");
    let mut watching = cluster.watch(&request(), Some("1"), 3000).await.unwrap();
    let end = timeout(Duration::from_secs(200), watching.next()).await;
    assert_eq!(end.expect("it ends"), Ok(None));
    assert_eq!(watching.received(), 0);
}
