//! Watch mode: a list, then a watch, for as long as the process runs.
//!
//! Where the link may be slow or metered, at the hub, a list is read in pages: API servers compress these, and never what
//! they stream. At the edge it is streamed by the watch, which spares the server memory and a request. Each way has a
//! fault that the other has not: a stream whose reader is slow is closed, and pages are given a minute each, and no more
//! than some minutes together. So a source that does not get through in one way takes the other one.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::logging::log_line;
use kube_lite::{Cluster, Error, ListRequest, Object, WATCH_SILENCE, WatchEvent, Watching};
use tokio::time::{Instant, sleep, timeout};

use super::progress::Progress;
use super::reporter::{Closed, LONGEST_WAIT, Pages, ReadEnd, Reporter, jitter, version_number};
use super::{Covers, Reading, SourceEvent, Style, Versions};

/// How long the server keeps a watch open, in seconds, plus up to a tenth. Long, since each renewal costs a request;
/// servers and proxies that want a shorter one end it earlier, which costs no more than a resume.
const WATCH_SECONDS: u32 = 3300;
/// How long a streaming list may be silent before pages are taken instead: servers from before streaming lists ignore
/// the request for one and never send its end.
const STREAM_SILENCE: Duration = Duration::from_secs(60);
/// Broken streaming lists in a row before pages are taken instead: a server closes a stream whose reader is slow, and
/// pages are not closed.
const BROKEN_STREAMS: u32 = 2;
/// Lists in pages in a row that came too slowly before a stream is taken instead: a server forgets the version of a list
/// after some minutes, and gives each page one minute. Tried again, a list may be quicker: what has been synced by then
/// need not wait for workers.
const SLOW_LISTS: u32 = 2;
/// A list that failed later than this came too slowly, if its side answers.
const SLOW_LIST: Duration = Duration::from_secs(30);
/// Refusals of a watch from the same version, in a row, before a list is taken instead of it: the server may refuse
/// that version and accept the next one. Each time the number doubles, so that a type whose watches are always refused
/// is still synced now and then, and does not cost a list each minute.
const REFUSALS: u32 = 3;
/// The highest number of refusals, which is half an hour of waits.
const MOST_REFUSALS: u32 = 96;
/// A watch that ended sooner than this is not renewed at once, so that a server that closes each one is not flooded. One
/// that lived longer is the success that failures are counted from.
const SHORT_WATCH: Duration = Duration::from_secs(5);
/// The longest wait after such watches, and how many of them in a row are logged.
const LONGEST_REST: Duration = Duration::from_secs(60);
const SHORT_ONES: u32 = 4;
/// A watch without an event for this long, when API servers send a bookmark about once a minute, may wait for a version
/// that the server does not have yet (restored from a backup): the API lets it wait without an error.
const DEAF_WATCH: Duration = Duration::from_secs(150);
/// The longest that such a watch is kept. Each time that a list shows that the watch had missed nothing, the time is
/// doubled: some servers (kcp 0.32) send no bookmarks of a type in which nothing happens.
const LONGEST_SILENCE: Duration = Duration::from_secs(900);

pub(super) struct Source {
    cluster: Rc<Cluster>,
    /// The same objects are listed and watched, so that one stream can do both.
    streams: bool,
    list: ListRequest,
    watch: ListRequest,
    reporter: Reporter,
    /// Where to resume; absent when a complete list is needed.
    version: Option<String>,
    progress: Rc<RefCell<Progress>>,
    /// The server has lost a write of ours that it had confirmed.
    has_lost: bool,
    /// What the side had reached when the list was requested.
    side: u64,
    /// Broken streaming lists since a complete list.
    broken_streams: u32,
    /// Lists that came too slowly, and versions that were too old, since a watch that worked.
    slow_lists: u32,
    /// How long the next watch may be silent.
    silence: Duration,
    /// Watches from `version` that were refused in a row.
    refused: u32,
    /// How many of them it takes until a list is taken instead.
    patience: u32,
    /// Watches in a row that ended soon and reported nothing.
    short: u32,
}

impl Source {
    pub(super) fn new(
        cluster: Rc<Cluster>,
        reading: &Reading,
        reporter: Reporter,
        progress: Rc<RefCell<Progress>>,
    ) -> Self {
        Self {
            cluster,
            streams: matches!(reading.style, Style::Whole | Style::Labelled(_)),
            list: reading.list_request(),
            watch: reading.watch_request(),
            reporter,
            version: None,
            progress,
            has_lost: false,
            side: 0,
            broken_streams: 0,
            slow_lists: 0,
            silence: WATCH_SILENCE,
            refused: 0,
            patience: REFUSALS,
            short: 0,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let start = Instant::now();
            match self.pass().await {
                Ok(()) if start.elapsed() < SHORT_WATCH => self.rest().await,
                Ok(()) => {}
                Err(ReadEnd::Closed) => return,
                Err(ReadEnd::Failed(error)) => {
                    if self.recover(error, start.elapsed()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Waits after a watch that ended soon: longer each time, if it reported nothing.
    async fn rest(&mut self) {
        let wait = SHORT_WATCH.saturating_mul(1 << self.short.min(8)).min(LONGEST_REST);
        self.short += 1;
        if self.short == SHORT_ONES {
            log_line!(
                Info,
                WatchShort,
                "each watch is ended at once, so there are fewer of them",
                side = self.cluster.name(),
                resource = self.list.resource.qualified()
            );
        }
        sleep(wait.mul_f64(jitter())).await;
    }

    /// Prepares the next pass, after one that failed within `took`: at once with a new list after the first version that
    /// was too old, otherwise after a back-off.
    async fn recover(&mut self, error: Error, took: Duration) -> Result<(), Closed> {
        let is_of_list = self.version.is_none() && took >= SLOW_LIST && !error.is_unreachable();
        self.slow_lists += u32::from(is_of_list || error.is_expired());
        if error.is_expired() || self.is_refused_for_good(&error) {
            self.version = None;
        }
        if self.reporter.forgives(&error) {
            log_line!(
                Debug,
                VersionExpired,
                "version too old, listing again",
                resource = self.list.resource.qualified()
            );
            return Ok(());
        }
        self.reporter.fail(error, LONGEST_WAIT).await
    }

    /// Counts the refusals of a watch from a version. True if there are enough of them for a list.
    fn is_refused_for_good(&mut self, error: &Error) -> bool {
        if self.version.is_none() || !is_about_the_watch(error) {
            return false;
        }
        self.refused += 1;
        if self.refused < self.patience {
            return false;
        }
        log_line!(
            Debug,
            WatchRefused,
            "watch refused again and again, listing instead",
            resource = self.list.resource.qualified(),
            error = error
        );
        self.refused = 0;
        self.patience = (self.patience * 2).min(MOST_REFUSALS);
        true
    }

    /// A watch reported something, or lived for a while.
    fn watch_works(&mut self) {
        self.refused = 0;
        self.patience = REFUSALS;
        self.slow_lists = 0;
    }

    /// One pass: a list if there is no version to resume from, then a watch until it ends.
    async fn pass(&mut self) -> Result<(), ReadEnd> {
        match self.version.clone() {
            Some(version) => self.watch(&version).await,
            None => self.list_then_watch().await,
        }
    }

    async fn list_then_watch(&mut self) -> Result<(), ReadEnd> {
        self.side = self.cluster.reached();
        if self.takes_a_stream()
            && let Some(watching) = self.list_stream().await?
        {
            return self.follow(watching).await;
        }
        let version = self.list_pages().await?;
        self.watch(&version).await
    }

    /// True if the next list is to be streamed.
    fn takes_a_stream(&self) -> bool {
        self.streams
            && self.cluster.streams_lists()
            && self.broken_streams < BROKEN_STREAMS
            && (self.cluster.is_near() || self.slow_lists >= SLOW_LISTS)
    }

    /// Reads a paged list to its end.
    async fn list_pages(&mut self) -> Result<String, ReadEnd> {
        let mut pages = Pages::of(&self.cluster, &self.list);
        while let Some(object) = pages.next(&mut self.reporter).await? {
            let event = object.map_or_else(SourceEvent::Unreadable, SourceEvent::Object);
            self.reporter.send(event).await?;
        }
        self.listed(pages.version()).await?;
        Ok(pages.version().to_owned())
    }

    /// Reads a streaming list; the watch it came by continues from there. `None` if the server turns out not to stream
    /// lists.
    async fn list_stream(&mut self) -> Result<Option<Watching>, ReadEnd> {
        let mut watching = match self.cluster.watch(&self.list, None, watch_seconds()).await {
            Ok(watching) => watching,
            Err(error) if is_status(&error, &[400, 422]) => return Ok(self.no_streams(&error.to_string())),
            // A list may still be allowed, if only the watch is refused. This answer says nothing about streaming
            // lists.
            Err(error) if error.is_forbidden() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.reporter.send(SourceEvent::Begin(Covers::of(&self.list))).await?;
        loop {
            let received = watching.received();
            let Ok(event) = timeout(STREAM_SILENCE, watching.next()).await else {
                if watching.received() > received || watching.waits_for_room() {
                    // A large object, and a slow link or other large ones.
                    continue;
                }
                return Ok(self.no_streams("silence before the end of the list"));
            };
            match event {
                Ok(Some(WatchEvent::Applied(object))) => self.reporter.send(SourceEvent::Object(object)).await?,
                Ok(Some(WatchEvent::Deleted(object))) => self.reporter.send(SourceEvent::Gone(object)).await?,
                Ok(Some(WatchEvent::Unreadable { error, .. })) => {
                    self.reporter.send(SourceEvent::Unreadable(error)).await?;
                }
                Ok(Some(WatchEvent::Bookmark {
                    resource_version,
                    initial_end: true,
                })) => {
                    self.reporter.works().await?;
                    self.listed(&resource_version).await?;
                    return Ok(Some(watching));
                }
                // A server that streams lists sends no other bookmark before that one.
                Ok(Some(WatchEvent::Bookmark { .. })) => return Ok(self.no_streams("a watch instead of a list")),
                Ok(None) => {
                    self.broken_streams += 1;
                    return Err(Error::Unanswered("the streaming list ended early".into()).into());
                }
                // Its storage cannot say when the list is complete (etcd 3.4 under a newer API server).
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
        log_line!(
            Debug,
            StreamingRefused,
            "no streaming lists, reading pages",
            side = self.cluster.name(),
            error = answer
        );
        self.cluster.stop_streaming_lists();
        None
    }

    async fn watch(&mut self, version: &str) -> Result<(), ReadEnd> {
        let watching = self.cluster.watch(&self.watch, Some(version), watch_seconds()).await?;
        self.reporter.works().await?;
        self.follow(watching).await
    }

    /// Passes on the events of a watch until it ends, and decides by how long it lasted how to continue.
    async fn follow(&mut self, mut watching: Watching) -> Result<(), ReadEnd> {
        let opened = Instant::now();
        let mut heard = false;
        watching.allow_silence(self.silence);
        loop {
            let event = watching.next().await;
            if opened.elapsed() >= SHORT_WATCH {
                self.reporter.succeeds();
                self.watch_works();
                self.short = 0;
            }
            match event {
                Ok(Some(event)) => {
                    self.pass_on(event).await?;
                    if self.has_lost {
                        self.version = None;
                        return Ok(());
                    }
                }
                end => {
                    if !heard && opened.elapsed() >= DEAF_WATCH {
                        self.version = None;
                        self.silence = (self.silence * 2).min(LONGEST_SILENCE);
                    }
                    return self.ended(end.err(), opened.elapsed());
                }
            }
            self.short = 0;
            if !std::mem::replace(&mut heard, true) {
                self.silence = WATCH_SILENCE;
                watching.allow_silence(WATCH_SILENCE);
            }
        }
    }

    /// What the end of a watch that was open for `lived` means. A server ends watches as it likes, and some say so by an
    /// error of their own: kcp does when the schema of a type changes. If it is one, the next watch fails soon too.
    fn ended(&self, error: Option<Error>, lived: Duration) -> Result<(), ReadEnd> {
        match error {
            Some(error) if lived >= SHORT_WATCH && error.is_internal() => {
                log_line!(
                    Debug,
                    WatchFailed,
                    "a watch was ended by an error, going on",
                    side = self.cluster.name(),
                    resource = self.list.resource.qualified(),
                    error = error
                );
                Ok(())
            }
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Passes on one event. An event that was passed on is never requested again.
    async fn pass_on(&mut self, event: WatchEvent) -> Result<(), ReadEnd> {
        let mut is_bookmark = false;
        let version = match event {
            WatchEvent::Applied(object) => {
                let version = version_of(&object)?;
                let (number, reached) = (version_number(&version), self.progress.borrow().reached());
                if number != 0 && number < reached {
                    // What sends this has lost the order, so it is not known what else is old or missing.
                    self.version = None;
                    let why = format!("a watch event at version {number} after {reached}");
                    return Err(Error::BadAnswer(why).into());
                }
                self.reporter.send(SourceEvent::Object(object)).await?;
                version
            }
            WatchEvent::Deleted(object) => {
                let version = version_of(&object)?;
                self.reporter.send(SourceEvent::Gone(object)).await?;
                version
            }
            WatchEvent::Unreadable {
                resource_version,
                error,
            } => {
                let Some(version) = resource_version else {
                    return Err(error.into());
                };
                self.reporter.send(SourceEvent::Unreadable(error)).await?;
                version
            }
            WatchEvent::Bookmark { resource_version, .. } => {
                is_bookmark = true;
                resource_version
            }
        };
        if self.version.as_ref() != Some(&version) {
            self.refused = 0;
        }
        let number = version_number(&version);
        let mut progress = self.progress.borrow_mut();
        self.has_lost |= if is_bookmark {
            progress.is_bookmarked(number)
        } else {
            progress.reports(number)
        };
        self.version = Some(version);
        self.cluster.reaches(number);
        Ok(())
    }

    async fn listed(&mut self, version: &str) -> Result<(), Closed> {
        self.version = Some(version.to_owned());
        self.broken_streams = 0;
        let list = version_number(version);
        let versions = Versions {
            list,
            before: self.progress.borrow_mut().is_listed(list),
            side: self.side,
            has_lost: std::mem::take(&mut self.has_lost),
        };
        if versions.are_behind_others() {
            self.cluster.is_back_at(list);
        } else {
            self.cluster.reaches(list);
        }
        self.reporter.send(SourceEvent::Complete(versions)).await
    }
}

fn is_status(error: &Error, codes: &[u16]) -> bool {
    error.status().is_some_and(|status| codes.contains(&status.code))
}

/// True for an answer that another version may change: neither that of a side that is unreachable or busy, nor one
/// about the credentials or permissions. (client-go's reflector lists again after each of them.)
fn is_about_the_watch(error: &Error) -> bool {
    match error {
        Error::Status(status) => !error.is_unreachable() && !matches!(status.code, 401 | 403 | 429),
        // No request could be made with the version.
        Error::BadAnswer(_) | Error::NotSent(_) => true,
        _ => false,
    }
}

/// The version that the watch can resume from.
fn version_of(object: &Object) -> Result<String, Error> {
    match object.meta.resource_version.as_str() {
        "" => Err(Error::BadAnswer(
            "an object in a watch without a resourceVersion".into(),
        )),
        version => Ok(version.to_owned()),
    }
}

fn watch_seconds() -> u32 {
    WATCH_SECONDS + fastrand::u32(0..WATCH_SECONDS / 10)
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
