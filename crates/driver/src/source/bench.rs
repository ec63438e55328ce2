//! What the tests of both modes share: a server that answers from a script, and a reader of what a source reports.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream;
use http::Request;
use kube_lite::{ApiServer, Body, RateLimit, Response};
use tokio::sync::mpsc::{Receiver, UnboundedSender, channel, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout};

use super::*;

pub(super) type Answer = Result<Response, Error>;
pub(super) type Chunk = Result<Bytes, Error>;

/// A request that was made.
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) uri: String,
    pub(super) accept: String,
}

/// A server that answers from a script and keeps what it was asked for.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub(super) answers: Rc<RefCell<VecDeque<Answer>>>,
    pub(super) asked: Rc<RefCell<Vec<Asked>>>,
}

impl ApiServer for Script {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Answer> {
        // The probe whether the whole side has failed: it is always answered, whatever the script says next.
        if request.uri() == "/api" {
            let next = self
                .answers
                .borrow()
                .front()
                .map(|next| next.as_ref().map(|next| next.status).ok());
            let status = next.flatten().unwrap_or(200);
            return async move { answer(status, stream::empty().boxed_local()) }.boxed_local();
        }
        self.asked.borrow_mut().push(Asked {
            at: Instant::now(),
            uri: request.uri().to_string(),
            accept: request.headers()[http::header::ACCEPT].to_str().unwrap().to_owned(),
        });
        let answer = self.answers.borrow_mut().pop_front();
        async move { answer.expect("the script has an answer left") }.boxed_local()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "scripts hold failures too")]
pub(super) fn answer(status: u16, body: Body) -> Answer {
    Ok(Response {
        status,
        retry_after: None,
        is_fair: false,
        body,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "scripts hold failures too")]
pub(super) fn chunk(text: &str) -> Chunk {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

pub(super) fn chunks(texts: &[String]) -> Vec<Chunk> {
    texts.iter().map(|text| chunk(text)).collect()
}

/// Says this and ends in an orderly way.
pub(super) fn ends(texts: &[String]) -> Answer {
    answer(200, stream::iter(chunks(texts)).boxed_local())
}

/// Says this and is cut.
pub(super) fn cut(texts: &[String]) -> Answer {
    let reset = stream::iter([Err(Error::Unreachable("reset".into()))]);
    answer(200, stream::iter(chunks(texts)).chain(reset).boxed_local())
}

/// Says nothing until the server ends it after a minute, as API servers do with a page.
pub(super) fn slow() -> Answer {
    let end = async {
        sleep(Duration::from_secs(60)).await;
        Err(Error::Unanswered("stream error".into()))
    };
    answer(200, stream::once(end).boxed_local())
}

/// Says this and nothing more, without an end.
pub(super) fn open(texts: &[String]) -> Answer {
    answer(200, stream::iter(chunks(texts)).chain(stream::pending()).boxed_local())
}

/// Says what it is fed, and ends when the feeder is dropped.
pub(super) fn fed() -> (UnboundedSender<Chunk>, Answer) {
    let (feed, mut chunks) = unbounded_channel();
    let body = stream::poll_fn(move |context| chunks.poll_recv(context));
    (feed, answer(200, body.boxed_local()))
}

pub(super) fn unreachable() -> Answer {
    Err(Error::Unreachable("no route".into()))
}

/// An error answer with a `Status` object.
pub(super) fn refused(code: u16) -> Answer {
    answer(code, stream::iter([chunk(&status(code))]).boxed_local())
}

pub(super) fn status(code: u16) -> String {
    format!(r#"{{"kind":"Status","message":"no","reason":"","code":{code}}}"#)
}

pub(super) fn object(name: &str, version: u32) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
}

pub(super) fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub(super) fn added(name: &str, version: u32) -> String {
    line("ADDED", &object(name, version))
}

pub(super) fn modified(name: &str, version: u32) -> String {
    line("MODIFIED", &object(name, version))
}

pub(super) fn deleted(name: &str, version: u32) -> String {
    line("DELETED", &object(name, version))
}

pub(super) fn bookmark(version: u32) -> String {
    line("BOOKMARK", &object("", version))
}

pub(super) fn initial_end(version: u32) -> String {
    let end = r#"{"k8s.io/initial-events-end":"true"}"#;
    let object = format!(r#"{{"metadata":{{"resourceVersion":"{version}","annotations":{end}}}}}"#);
    line("BOOKMARK", &object)
}

pub(super) fn error(code: u16) -> String {
    line("ERROR", &status(code))
}

/// One page of a list; `next` is the token of the following one.
pub(super) fn page(version: u32, next: &str, objects: &[String]) -> Answer {
    let items = objects.join(",");
    let meta = format!(r#"{{"resourceVersion":"{version}","continue":"{next}"}}"#);
    ends(&[format!(
        r#"{{"kind":"ConfigMapList","metadata":{meta},"items":[{items}]}}"#
    )])
}

/// A scripted server and the sources that read it.
pub(super) struct Bench {
    pub(super) script: Script,
    pub(super) cluster: Rc<Cluster>,
}

impl Bench {
    /// A server nearby, as the edge's is.
    pub(super) fn new(answers: Vec<Answer>) -> Self {
        Self::of(answers, Cluster::nearby)
    }

    /// A server over a link that may be slow, as the hub's is.
    pub(super) fn far(answers: Vec<Answer>) -> Self {
        Self::of(answers, |cluster| cluster)
    }

    fn of(answers: Vec<Answer>, at: fn(Cluster) -> Cluster) -> Self {
        let script = Script::default();
        script.answers.borrow_mut().extend(answers);
        let cluster = Cluster::new("side", Box::new(script.clone()), RateLimit::new(None), "edge-syncer");
        Self {
            script,
            cluster: Rc::new(at(cluster)),
        }
    }

    /// A server that is known not to stream lists.
    pub(super) fn paged(answers: Vec<Answer>) -> Self {
        let bench = Self::new(answers);
        bench.cluster.stop_streaming_lists();
        bench
    }

    /// A source that watches.
    pub(super) fn source(&self, style: Style) -> Reader {
        self.start(style, Mode::Watch)
    }

    pub(super) fn start(&self, style: Style, mode: Mode) -> Reader {
        let reading = Reading {
            resource: ResourceType {
                group: String::new(),
                version: "v1".into(),
                resource: "configmaps".into(),
                kind: "ConfigMap".into(),
                namespaced: false,
            },
            scope: Scope::default(),
            style,
        };
        let (sender, events) = channel(1);
        let handle = start(&self.cluster, &reading, mode, 7, sender);
        Reader { events, handle }
    }

    /// What was asked for: `stream`, `watch VERSION`, `list` or `list TOKEN`.
    pub(super) fn asked(&self) -> Vec<String> {
        let summary = |asked: &Asked| {
            let query = asked.uri.split_once('?').unwrap().1;
            let value = |key| query.split('&').find_map(|pair| pair.strip_prefix(key));
            match (value("watch="), value("sendInitialEvents=")) {
                (Some(_), Some(_)) => "stream".to_owned(),
                (Some(_), None) => format!("watch {}", value("resourceVersion=").unwrap()),
                _ => value("continue=").map_or("list".to_owned(), |token| format!("list {token}")),
            }
        };
        self.script.asked.borrow().iter().map(summary).collect()
    }

    /// The seconds between one request and the next.
    pub(super) fn gaps(&self) -> Vec<f64> {
        let asked = self.script.asked.borrow();
        let pairs = asked.windows(2);
        pairs.map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
    }
}

/// The receiving end of a source.
pub(super) struct Reader {
    pub(super) events: Receiver<(SourceId, SourceEvent)>,
    pub(super) handle: SourceHandle,
}

impl Reader {
    pub(super) async fn next(&mut self) -> String {
        let limit = Duration::from_secs(24 * 3600);
        let event = timeout(limit, self.events.recv()).await.expect("an event within a day");
        let (id, event) = event.expect("the source runs");
        assert_eq!(id, 7);
        match event {
            SourceEvent::Begin(Covers::Everything) => "begin".into(),
            SourceEvent::Begin(Covers::Labelled) => "begin labelled".into(),
            SourceEvent::Object(object) => format!("object {}", name_at_version(object.bytes())),
            SourceEvent::Unchanged(object) => format!("still {}", name_at_version(object.bytes())),
            SourceEvent::Gone(object) => format!("gone {}", name_at_version(object.bytes())),
            SourceEvent::Complete(versions) if versions.go_back() => format!("complete, back at {}", versions.list),
            SourceEvent::Complete(_) => "complete".into(),
            SourceEvent::Unreadable(error) => format!("unreadable: {error}"),
            SourceEvent::Up => "up".into(),
            SourceEvent::Down(error) => format!("down {error}"),
        }
    }

    pub(super) async fn expect(&mut self, expected: &[&str]) {
        for (at, expected) in expected.iter().enumerate() {
            assert_eq!(self.next().await, *expected, "event {at}");
        }
    }

    /// Lets time pass in which nothing may be reported.
    pub(super) async fn quiet(&mut self, seconds: u64) {
        let event = timeout(Duration::from_secs(seconds), self.events.recv()).await;
        assert!(event.is_err(), "{event:?}");
    }
}

pub(super) fn name_at_version(object: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(object).unwrap();
    let text = |key: &str| value["metadata"][key].as_str().unwrap().to_owned();
    format!("{}@{}", text("name"), text("resourceVersion"))
}

/// Asserts that each wait is a jittered step of the back-off, the first being step `first`.
#[track_caller]
pub(super) fn assert_backs_off(waits: &[f64], first: i32) {
    for (step, wait) in (first..).zip(waits) {
        let most = (0.8 * 2_f64.powi(step)).min(30.0);
        // Timers are as fine as a millisecond.
        assert!((most / 2.0..most + 0.002).contains(wait), "step {step} of {waits:?}");
    }
}

pub(super) async fn local(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}
