//! Watch mode: a streaming list (or pages), then a watch, for as long as the process runs.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Closed, Outlet, Reading, SourceEvent, Style};
use crate::cluster::{Cluster, Error, ListRequest, WatchEvent, Watching};

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
/// The longest that a `Retry-After` is believed, so that a nonsensical one does not end the source.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// A watch that ended sooner than this is not renewed at once, so that a server that closes each one is not flooded. One
/// that lived longer is the success that failures are counted from.
const SHORT_WATCH: Duration = Duration::from_secs(5);
/// A watch without a word for this long, when API servers send a bookmark about once a minute, may wait for a version
/// that the server does not have yet (restored from a backup): the API lets it wait without an error.
const DEAF_WATCH: Duration = Duration::from_secs(150);

pub(super) struct Source {
    cluster: Rc<Cluster>,
    style: Style,
    list: ListRequest,
    watch: ListRequest,
    outlet: Outlet,
    /// Where to resume; absent when a complete list is needed.
    version: Option<String>,
    /// Failures since a watch lived.
    failures: u32,
    /// A version was too old since a watch lived: if the next one is too, that is a failure.
    expired: bool,
    /// Broken streaming lists since a complete list.
    broken_streams: u32,
    /// `Up` was sent, and no `Down` since.
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
            expired: false,
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
                End::Failed(error) => {
                    if self.recover(error).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Gets ready for the next pass: at once with a new list after the first version that was too old, which is no
    /// failure of the link; otherwise after a back-off.
    async fn recover(&mut self, error: Error) -> Result<(), Closed> {
        if error.is_expired() {
            self.version = None;
            if !self.expired {
                self.expired = true;
                log::debug!(
                    "version too old, listing again resource={}",
                    self.list.resource.qualified()
                );
                return Ok(());
            }
        }
        self.fail(error).await
    }

    /// Reports a failure and waits its back-off, added to what the server asks for, so that the edges it asked at once
    /// do not come back at once.
    async fn fail(&mut self, error: Error) -> Result<(), Closed> {
        self.failures += 1;
        self.up = false;
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.min(10).saturating_sub(1));
        let wait = doubled.min(LONGEST_WAIT).mul_f64(jitter());
        let asked = error.retry_after().unwrap_or_default().min(LONGEST_ASKED);
        self.outlet.send(SourceEvent::Down(error)).await?;
        sleep(asked + wait).await;
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
        if streams && let Some(watching) = self.list_stream().await? {
            return self.follow(watching).await;
        }
        let version = self.list_pages().await?;
        self.watch(&version).await
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

    /// Reads a streaming list; the watch it came by goes on from there. `None` if the server turns out not to stream
    /// lists.
    async fn list_stream(&mut self) -> Result<Option<Watching>, End> {
        let mut watching = match self.cluster.watch(&self.list, None, watch_seconds()).await {
            Ok(watching) => watching,
            Err(error) if is_status(&error, &[400, 422]) => return Ok(self.no_streams(&error.to_string())),
            Err(error) => return Err(error.into()),
        };
        self.outlet.send(SourceEvent::Begin).await?;
        loop {
            let Ok(event) = timeout(STREAM_SILENCE, watching.next()).await else {
                return Ok(self.no_streams("silence before the end of the list"));
            };
            match event {
                Ok(Some(WatchEvent::Applied(object))) => self.outlet.send(SourceEvent::Object(object)).await?,
                Ok(Some(WatchEvent::Deleted(object))) => self.outlet.send(SourceEvent::Gone(object)).await?,
                Ok(Some(WatchEvent::Bookmark {
                    resource_version,
                    initial_end: true,
                })) => {
                    self.works().await?;
                    self.listed(&resource_version).await?;
                    return Ok(Some(watching));
                }
                // A server that streams lists sends no other bookmark before that one.
                Ok(Some(WatchEvent::Bookmark { .. })) => return Ok(self.no_streams("a watch instead of a list")),
                Ok(None) => {
                    self.broken_streams += 1;
                    return Err(Error::Unreachable("the streaming list ended early".into()).into());
                }
                // Its storage cannot tell when the list is complete (etcd 3.4 under a newer API server).
                Err(error) if is_status(&error, &[400, 422, 500]) => return Ok(self.no_streams(&error.to_string())),
                Err(error) => {
                    self.broken_streams += 1;
                    return Err(error.into());
                }
            }
        }
    }

    /// Remembers for every source of this side that pages have to be taken.
    fn no_streams(&self, answer: &str) -> Option<Watching> {
        log::debug!(
            "no streaming lists, taking pages side={} answer={answer}",
            self.cluster.side()
        );
        self.cluster.stop_streaming_lists();
        None
    }

    async fn watch(&mut self, version: &str) -> Result<(), End> {
        let watching = self.cluster.watch(&self.watch, Some(version), watch_seconds()).await?;
        self.works().await?;
        self.follow(watching).await
    }

    /// Passes on what a watch says until it ends, and judges by its life how to go on.
    async fn follow(&mut self, mut watching: Watching) -> Result<(), End> {
        let opened = Instant::now();
        let mut heard = false;
        loop {
            let event = watching.next().await;
            if opened.elapsed() >= SHORT_WATCH {
                self.failures = 0;
                self.expired = false;
            }
            match event {
                Ok(Some(event)) => self.pass_on(event).await?,
                end => {
                    if !heard && opened.elapsed() >= DEAF_WATCH {
                        self.version = None;
                    }
                    return end.map(|_| ()).map_err(End::from);
                }
            }
            heard = true;
        }
    }

    /// Passes on one event. What was passed on is never asked for again.
    async fn pass_on(&mut self, event: WatchEvent) -> Result<(), End> {
        let version = match event {
            WatchEvent::Applied(object) => {
                let version = resource_version(&object)?;
                self.outlet.send(SourceEvent::Object(object)).await?;
                version
            }
            WatchEvent::Deleted(object) => {
                let version = resource_version(&object)?;
                self.outlet.send(SourceEvent::Gone(object)).await?;
                version
            }
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
        };
        self.version = Some(version);
        Ok(())
    }

    async fn listed(&mut self, version: &str) -> Result<(), Closed> {
        self.version = Some(version.to_owned());
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

fn is_status(error: &Error, codes: &[u16]) -> bool {
    error.status().is_some_and(|status| codes.contains(&status.code))
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
