//! Watch mode: a streaming list (or pages), then a watch, for as long as the process runs.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Closed, Outlet, Reading, SourceEvent, Style};
use crate::cluster::{Cluster, Error, ListRequest, WatchEvent};

/// How long the server keeps a watch open, in seconds, plus up to a tenth. Renewals cost a request each, so rarely;
/// servers and proxies that want it shorter cut earlier, which costs no more than a resume.
const WATCH_SECONDS: u32 = 3300;
/// How long a streaming list may be silent before pages are taken instead: servers from before streaming lists ignore
/// the request for one and never send its end.
const STREAM_SILENCE: Duration = Duration::from_secs(60);
/// Broken streaming lists in a row before pages are taken instead: a server closes a stream whose reader is slow, and
/// pages are not closed.
const BROKEN_STREAMS: u32 = 2;
/// First and longest wait after a failure (DESIGN section 4).
const FIRST_WAIT: Duration = Duration::from_millis(800);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A watch that ended sooner than this is not renewed at once, so that a server that closes each one is not flooded.
const SHORT_WATCH: Duration = Duration::from_secs(5);

pub(super) struct Source {
    cluster: Rc<Cluster>,
    style: Style,
    list: ListRequest,
    watch: ListRequest,
    outlet: Outlet,
    /// Where to resume; absent when a complete list is needed.
    version: Option<String>,
    /// Failures since something worked.
    failures: u32,
    broken_streams: u32,
    up: bool,
}

/// Why a pass ended.
enum End {
    /// Everything was read to an orderly end.
    Orderly,
    /// The engine is gone.
    Closed,
    /// Reading failed.
    Failed(Error),
}

impl From<Closed> for End {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Source {
    pub(super) fn new(cluster: Rc<Cluster>, reading: &Reading, outlet: Outlet) -> Self {
        Self {
            cluster,
            style: reading.style,
            list: reading.list_request(),
            watch: reading.watch_request(),
            outlet,
            version: None,
            failures: 0,
            broken_streams: 0,
            up: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let start = Instant::now();
            match self.pass().await {
                End::Closed => return,
                End::Orderly if start.elapsed() < SHORT_WATCH => sleep(SHORT_WATCH.mul_f64(jitter())).await,
                End::Orderly => {}
                End::Failed(error) if error.is_expired() && self.version.is_some() => {
                    log::debug!(
                        "resume point too old, listing again resource={}",
                        self.list.resource.qualified()
                    );
                    self.version = None;
                }
                End::Failed(error) => {
                    if self.fail(error).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Reports a failure and waits its back-off, or longer if the server asks for it.
    async fn fail(&mut self, error: Error) -> Result<(), Closed> {
        self.failures += 1;
        self.up = false;
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.min(10).saturating_sub(1));
        let wait = doubled.min(LONGEST_WAIT).mul_f64(jitter());
        let wait = wait.max(error.retry_after().unwrap_or_default());
        self.outlet.send(SourceEvent::Down(error)).await?;
        sleep(wait).await;
        Ok(())
    }

    /// One connection's worth: a list if there is nowhere to resume, then a watch until it ends.
    async fn pass(&mut self) -> End {
        let result = match self.version.clone() {
            Some(version) => self.watch(&version).await,
            None => self.list_then_watch().await,
        };
        result.err().unwrap_or(End::Orderly)
    }

    async fn list_then_watch(&mut self) -> Result<(), End> {
        let streams =
            self.style == Style::Whole && self.cluster.streams_lists() && self.broken_streams < BROKEN_STREAMS;
        if !streams {
            let version = self.list_pages().await?;
            return self.watch(&version).await;
        }
        match self.list_stream().await {
            Err(End::Failed(error)) if refuses_streaming(&error) => {
                log::debug!(
                    "no streaming lists, taking pages side={} answer={error}",
                    self.cluster.side()
                );
                self.cluster.stop_streaming_lists();
                let version = self.list_pages().await?;
                self.watch(&version).await
            }
            other => other,
        }
    }

    /// Reads a paged list to its end.
    async fn list_pages(&mut self) -> Result<String, End> {
        let mut listing = self.cluster.list(self.list.clone());
        let mut first = true;
        loop {
            let item = listing.next().await?;
            if first {
                self.works().await?;
                self.outlet.send(SourceEvent::Begin).await?;
                first = false;
            }
            match item {
                Some(object) => self.outlet.send(SourceEvent::Object(object)).await?,
                None => break,
            }
        }
        let version = listing
            .resource_version()
            .expect("the list was read to its end")
            .to_owned();
        self.listed(&version).await?;
        Ok(version)
    }

    /// Reads a streaming list and, once it is complete, goes on watching on the same stream.
    async fn list_stream(&mut self) -> Result<(), End> {
        let mut watching = self.cluster.watch(&self.list, None, watch_seconds()).await?;
        self.outlet.send(SourceEvent::Begin).await?;
        loop {
            let event = match timeout(STREAM_SILENCE, watching.next()).await {
                Ok(event) => event.inspect_err(|_| self.broken_streams += 1)?,
                Err(_) => {
                    self.cluster.stop_streaming_lists();
                    return Err(Error::Unreachable("the streaming list does not end".into()).into());
                }
            };
            match event {
                Some(WatchEvent::Applied(object)) => self.outlet.send(SourceEvent::Object(object)).await?,
                Some(WatchEvent::Deleted(object)) => self.outlet.send(SourceEvent::Gone(object)).await?,
                Some(WatchEvent::Bookmark {
                    resource_version,
                    initial_end: true,
                }) => {
                    self.works().await?;
                    self.listed(&resource_version).await?;
                    return self.follow(watching).await;
                }
                Some(WatchEvent::Bookmark { .. }) => {}
                None => {
                    self.broken_streams += 1;
                    return Err(Error::Unreachable("the streaming list ended early".into()).into());
                }
            }
        }
    }

    async fn watch(&mut self, version: &str) -> Result<(), End> {
        let watching = self.cluster.watch(&self.watch, Some(version), watch_seconds()).await?;
        self.works().await?;
        self.follow(watching).await
    }

    /// Passes on what a watch says until it ends.
    async fn follow(&mut self, mut watching: crate::cluster::Watching) -> Result<(), End> {
        while let Some(event) = watching.next().await? {
            self.failures = 0;
            match event {
                WatchEvent::Applied(object) => {
                    let version = resource_version(&object)?;
                    self.outlet.send(SourceEvent::Object(object)).await?;
                    self.version = Some(version);
                }
                WatchEvent::Deleted(object) => {
                    let version = resource_version(&object)?;
                    self.outlet.send(SourceEvent::Gone(object)).await?;
                    self.version = Some(version);
                }
                WatchEvent::Bookmark { resource_version, .. } => self.version = Some(resource_version),
            }
        }
        Ok(())
    }

    async fn listed(&mut self, version: &str) -> Result<(), Closed> {
        self.version = Some(version.to_owned());
        self.failures = 0;
        self.broken_streams = 0;
        self.outlet.send(SourceEvent::Complete).await
    }

    /// Tells that the side answers, once per streak.
    async fn works(&mut self) -> Result<(), Closed> {
        if self.up {
            return Ok(());
        }
        self.up = true;
        self.outlet.send(SourceEvent::Up).await
    }
}

/// True if the server says that it cannot stream lists: an invalid request (the feature is off), or an internal error
/// in the stream (its storage cannot tell when the list is complete, as etcd 3.4).
fn refuses_streaming(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| matches!(status.code, 400 | 422 | 500))
}

fn resource_version(object: &[u8]) -> Result<String, Error> {
    #[derive(serde::Deserialize)]
    struct Wire {
        metadata: Meta,
    }
    #[derive(serde::Deserialize)]
    struct Meta {
        #[serde(rename = "resourceVersion")]
        resource_version: String,
    }
    serde_json::from_slice::<Wire>(object)
        .map(|wire| wire.metadata.resource_version)
        .map_err(|error| Error::BadAnswer(format!("an object in a watch: {error}")))
}

fn watch_seconds() -> u32 {
    WATCH_SECONDS + fastrand::u32(0..WATCH_SECONDS / 10)
}

/// A factor that spreads what many edges do over time.
fn jitter() -> f64 {
    0.5 + fastrand::f64() / 2.0
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
