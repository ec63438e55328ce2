//! What a watch gives, as long as it is open.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use super::request::Watch;
use super::{State, lock};

/// An open watch.
pub(crate) struct Following {
    state: Arc<Mutex<State>>,
    watch: Watch,
    /// All changes up to this version are given.
    since: u64,
    /// What is to be given next.
    text: String,
    changed: Receiver<u64>,
    /// When it gave a bookmark last.
    marked: Instant,
    end: Instant,
    /// How often watches had been cut when it began.
    cut: u64,
    /// Held only for the server to see that it is open.
    _open: Arc<()>,
}

impl Following {
    pub(crate) fn begin(state: &Arc<Mutex<State>>, watch: Watch, path: &str) -> Self {
        let (open, now) = (Arc::new(()), Instant::now());
        let ((text, since), changed, cut) = {
            let mut state = lock(state);
            state.open.push((path.to_owned(), Arc::downgrade(&open)));
            (
                first_lines(&state, &watch),
                state.changed.subscribe(),
                state.watches_cut,
            )
        };
        Self {
            state: Arc::clone(state),
            end: now + Duration::from_secs(watch.seconds.unwrap_or(1_800)),
            watch,
            since,
            text,
            changed,
            marked: now,
            cut,
            _open: open,
        }
    }

    pub(crate) fn lines(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static {
        unfold(self, async |mut following| {
            let bytes = following.next().await?;
            Some((Ok(Frame::data(bytes)), following))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.changed.borrow_and_update();
            let every = self.collect();
            if self.watch.bookmarks && !self.watch.deaf && self.marked.elapsed() >= every {
                self.text += &bookmark(&self.watch, self.since, &Value::Null);
                self.marked = Instant::now();
            }
            if !self.text.is_empty() {
                return Some(Bytes::from(std::mem::take(&mut self.text)));
            }
            if Instant::now() >= self.end || lock(&self.state).watches_cut > self.cut {
                return None;
            }
            let wake = if self.watch.bookmarks && !self.watch.deaf {
                self.end.min(self.marked + every)
            } else {
                self.end
            };
            // An error is that it is time, or that the server ends.
            let _ = timeout_at(wake, self.changed.changed()).await;
        }
    }

    /// Adds what has changed, and gives how often bookmarks are due.
    fn collect(&mut self) -> Duration {
        let state = lock(&self.state);
        if self.watch.deaf {
            return state.times.bookmarks;
        }
        for event in state.events(&self.watch.scope, self.since) {
            self.text += &line(&event);
        }
        self.since = self.since.max(state.version);
        state.times.bookmarks
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// What a watch gives at first, and after which version it goes on.
fn first_lines(state: &State, watch: &Watch) -> (String, u64) {
    if !watch.initial || watch.deaf {
        return (String::new(), watch.since);
    }
    let (items, version) = state.list(&watch.scope);
    let added = items
        .iter()
        .map(|object| line(&json!({"type": "ADDED", "object": object})));
    let mut lines: String = added.collect();
    if watch.bookmarks {
        let ends = json!({"k8s.io/initial-events-end": "true"});
        lines += &bookmark(watch, version, &ends);
    }
    (lines, version)
}

fn bookmark(watch: &Watch, version: u64, annotations: &Value) -> String {
    let of = &watch.scope;
    let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    if !annotations.is_null() {
        metadata["annotations"] = annotations.clone();
    }
    let api_version = if of.group.is_empty() {
        of.version.clone()
    } else {
        format!("{}/{}", of.group, of.version)
    };
    line(&json!({"type": "BOOKMARK", "object": {"apiVersion": api_version, "kind": watch.kind, "metadata": metadata}}))
}
