//! Answers that arrive piece by piece: a list in pages, and a watch. Not asking for the next piece is the back-pressure.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::contact::Contact;
use super::json::{ListMeta, ListSplitter, OBJECT_LIMIT};
use super::{Body, Cluster, Error, ListRequest};

/// How long a watch may be silent unless it is given more time. API servers send a bookmark about once a minute; dead
/// connections are noticed earlier, by the HTTP/2 ping of the connection.
pub const WATCH_SILENCE: Duration = Duration::from_secs(180);
/// A watch line carries one object.
const LINE_LIMIT: usize = OBJECT_LIMIT;

/// A complete list that is being read, page by page.
pub struct Listing {
    cluster: Rc<Cluster>,
    request: ListRequest,
    page: Option<Page>,
    end: Option<ListMeta>,
    continue_token: String,
}

/// A page that is being read.
struct Page {
    body: Body,
    /// What has come and was not looked at yet.
    chunk: Bytes,
    splitter: ListSplitter,
    asked: Instant,
}

impl Listing {
    pub(super) fn new(cluster: Rc<Cluster>, request: ListRequest) -> Self {
        Self {
            cluster,
            request,
            page: None,
            end: None,
            continue_token: String::new(),
        }
    }

    /// The next item, or `None` when the list was read completely and successfully to its end. Not calling it is the
    /// back-pressure. An item may come twice.
    ///
    /// Any error means that the list is not complete: begin again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while self.end.is_none() {
            let page = match &mut self.page {
                Some(page) => page,
                none => {
                    let asked = Instant::now();
                    let body = self.cluster.page(&self.request, &self.continue_token).await?;
                    none.insert(Page {
                        body,
                        chunk: Bytes::new(),
                        splitter: ListSplitter::default(),
                        asked,
                    })
                }
            };
            if let Some(item) = page.splitter.next_item(&mut page.chunk).map_err(Error::BadAnswer)? {
                return Ok(Some(item));
            }
            match self.cluster.chunk(&mut page.body).await {
                Ok(Some(bytes)) => page.chunk = bytes,
                Ok(None) => self.page_ends()?,
                // The same page again, smaller: its first items are told twice.
                Err(_)
                    if self
                        .cluster
                        .takes_smaller_pages(self.request.content, page.asked.elapsed()) =>
                {
                    self.page = None;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The version of the list, from which a watch goes on. Known once `next` has given `None`.
    pub fn resource_version(&self) -> Option<&str> {
        self.end.as_ref().map(|end| end.resource_version.as_str())
    }

    fn page_ends(&mut self) -> Result<(), Error> {
        let Some(page) = self.page.take() else { return Ok(()) };
        let meta = page.splitter.finish().map_err(Error::BadAnswer)?;
        if meta.continue_token.is_empty() {
            if meta.resource_version.is_empty() {
                return Err(Error::BadAnswer("a list without a resourceVersion".into()));
            }
            self.end = Some(meta);
        } else {
            self.cluster.full_page_came(page.asked.elapsed());
            self.continue_token = meta.continue_token;
        }
        Ok(())
    }
}

/// One event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The object was added or changed; its JSON.
    Applied(Bytes),
    /// The object is gone; its last JSON.
    Deleted(Bytes),
    /// Everything up to this resource version has been sent.
    Bookmark {
        /// The version to resume from.
        resource_version: String,
        /// True for the one that ends the initial events of a streaming list.
        initial_end: bool,
    },
}

/// A watch that is open.
pub struct Watching {
    body: Body,
    contact: Rc<Contact>,
    buffer: BytesMut,
    received: u64,
    silence: Duration,
}

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct WireBookmark {
    metadata: WireBookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Watching {
    pub(super) fn new(body: Body, contact: Rc<Contact>) -> Self {
        Self {
            body,
            contact,
            buffer: BytesMut::new(),
            received: 0,
            silence: WATCH_SILENCE,
        }
    }

    /// Lets it be silent for so long.
    pub fn allow_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// How many bytes have come. While it grows, an event that does not come is large and its link slow.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next event, or `None` when the server has ended the watch or its connection in an orderly way, as it does before
    /// it restarts or to spread its clients anew, or has been silent for too long between two events. Not calling it is the back-pressure. Giving up waiting for it loses nothing.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        let mut searched = 0;
        loop {
            let end = self.buffer.iter().skip(searched).position(|&byte| byte == b'\n');
            if let Some(end) = end {
                // There are so many bytes: the end is one of them.
                let line = self.buffer.split_to(searched + end + 1).freeze();
                if self.buffer.is_empty() {
                    // Even empty, the rest would keep the memory of a large line as long as the watch is silent.
                    self.buffer = BytesMut::new();
                }
                if line.iter().all(u8::is_ascii_whitespace) {
                    searched = 0;
                    continue;
                }
                return parse_event(&line).map(Some);
            }
            searched = self.buffer.len();
            if searched > LINE_LIMIT {
                return Err(Error::BadAnswer(format!(
                    "a watch event of more than {LINE_LIMIT} bytes"
                )));
            }
            let Ok(chunk) = timeout(self.silence, self.body.next()).await else {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                return Err(Error::Unanswered("the watch stalled in the middle of an event".into()));
            };
            let chunk = match chunk.transpose() {
                Ok(chunk) => chunk,
                // What has begun is told again by the next watch.
                Err(Error::Unanswered(why)) => {
                    log::debug!("the server has ended a watch error={why:?}");
                    return Ok(None);
                }
                Err(error) => {
                    self.contact.broke_off();
                    return Err(error);
                }
            };
            self.received += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
            match chunk {
                Some(bytes) if self.buffer.is_empty() => self.buffer = BytesMut::from(bytes),
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Error::Unanswered("the watch ended in the middle of an event".into())),
            }
        }
    }
}

fn parse_event(line: &Bytes) -> Result<WatchEvent, Error> {
    let bad = |error: serde_json::Error| {
        Error::BadAnswer(format!("watch event: {error}: {}", super::error::first_line(line)))
    };
    let event: WireEvent = serde_json::from_slice(line).map_err(bad)?;
    let object = || line.slice_ref(event.object.get().as_bytes());
    match event.kind {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Applied(object())),
        "DELETED" => Ok(WatchEvent::Deleted(object())),
        "BOOKMARK" => {
            let bookmark: WireBookmark = serde_json::from_str(event.object.get()).map_err(bad)?;
            let end = bookmark.metadata.annotations.get("k8s.io/initial-events-end");
            Ok(WatchEvent::Bookmark {
                initial_end: end.is_some_and(|value| value == "true"),
                resource_version: bookmark.metadata.resource_version,
            })
        }
        "ERROR" => Err(Error::from_watch_error(event.object.get().as_bytes())),
        other => Err(Error::BadAnswer(format!("watch event of unknown type {other:?}"))),
    }
}
