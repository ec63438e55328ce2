//! What happens at the edge, or at the hub, reported by watches the moment it happens.

use std::time::Duration;

use futures_util::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// How long something may take to happen unless a caller says otherwise.
const DEADLINE: Duration = Duration::from_secs(30);

/// More than happens between two waits; were it full, the watches would wait and no event be lost.
const BACKLOG: usize = 1000;

/// An object at the edge that was created, changed or deleted.
pub struct Change {
    /// When the watch reported it.
    pub at: Instant,
    /// Whether it is gone now.
    pub deleted: bool,
    /// The object, the last state of a deleted one.
    pub object: Value,
}

impl Change {
    /// Whether it is the object called `name` of `kind` and exists.
    pub fn is(&self, kind: &str, name: &str) -> bool {
        !self.deleted && self.names(kind, name)
    }

    /// Whether it is the object called `name` of `kind` and is gone.
    pub fn is_end_of(&self, kind: &str, name: &str) -> bool {
        self.deleted && self.names(kind, name)
    }

    fn names(&self, kind: &str, name: &str) -> bool {
        self.object["kind"] == kind && self.object["metadata"]["name"] == name
    }
}

/// Watches on some types at the edge; they end when it is dropped.
pub struct EdgeWatch {
    changes: mpsc::Receiver<Change>,
    _tasks: JoinSet<()>,
}

impl EdgeWatch {
    /// Starts watches on these paths of the API, which may have a query (`?resourceVersion=7`: only what comes later),
    /// and returns when the server has accepted them.
    pub async fn start(client: &Client, paths: &[&str]) -> Self {
        let (sender, changes) = mpsc::channel(BACKLOG);
        let mut tasks = JoinSet::new();
        for path in paths {
            let joint = if path.contains('?') { '&' } else { '?' };
            let request = Request::get(format!("{path}{joint}watch=true"))
                .body(Vec::new())
                .expect("the paths of tests are valid");
            let events = client
                .request_events::<Value>(request)
                .await
                .unwrap_or_else(|error| panic!("cannot watch {path}: {error}"));
            let sender = sender.clone();
            tasks.spawn(async move {
                let mut events = std::pin::pin!(events);
                while let Some(Ok(event)) = events.next().await {
                    let at = Instant::now();
                    let (deleted, object) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
                        WatchEvent::Deleted(object) => (true, object),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    // Fails when nobody listens any more.
                    let _ = sender.send(Change { at, deleted, object }).await;
                }
            });
        }
        Self { changes, _tasks: tasks }
    }

    /// As [`EdgeWatch::start`] on one path without a query, but reports nothing that is there already. It also holds where
    /// the store behind the API server does not report its progress: there the server ends a watch that names no version
    /// after 3 s, unless the type watched is the one that was written to last.
    pub async fn from_now(client: &Client, path: &str) -> Self {
        let request = Request::get(format!("{path}?limit=1"))
            .body(Vec::new())
            .expect("the paths of tests are valid");
        let list: Value = client
            .request(request)
            .await
            .unwrap_or_else(|error| panic!("cannot list {path}: {error}"));
        let version = list["metadata"]["resourceVersion"]
            .as_str()
            .expect("a list has a version");
        Self::start(client, &[&format!("{path}?resourceVersion={version}")]).await
    }

    /// Waits for the first change not yet read that is `wanted`, and returns when it was. Panics after half a minute
    /// with `what` has not happened.
    pub async fn wait(&mut self, what: &str, wanted: impl Fn(&Change) -> bool) -> Instant {
        self.wait_within(DEADLINE, what, wanted).await
    }

    /// As [`EdgeWatch::wait`], with a deadline of the caller's.
    pub async fn wait_within(&mut self, deadline: Duration, what: &str, wanted: impl Fn(&Change) -> bool) -> Instant {
        let search = async {
            while let Some(change) = self.changes.recv().await {
                if wanted(&change) {
                    return change.at;
                }
            }
            panic!("the server ended its watches while waiting for this: {what}");
        };
        timeout(deadline, search)
            .await
            .unwrap_or_else(|_| panic!("this did not happen within {} s: {what}", deadline.as_secs()))
    }
}
