//! Answers that arrive piece by piece: a list in pages, and a watch. Not requesting the next piece is the
//! back-pressure.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::contact::Contact;
use super::fields::from_text;
use super::json::{LONGEST_VERSION, ListMeta, ListSplitter, OBJECT_LIMIT};
use super::room::{SMALL_ITEM, Share};
use super::verbs::page::Sizes;
use super::{Body, Cluster, Error, ListRequest, Object};
use crate::logging::log_line;

/// How long a watch may be silent unless it is given more time. API servers send a bookmark about once a minute; dead
/// connections are noticed earlier, by the HTTP/2 ping of the connection.
pub const WATCH_SILENCE: Duration = Duration::from_secs(180);
/// A watch line carries one object.
const LINE_LIMIT: usize = OBJECT_LIMIT;
/// The most white space before an event; API servers send none. Without a limit it would only cost time.
const BLANKS_LIMIT: usize = 64 << 10;
/// The most pages without an item, in a row, that may name another page. API servers continue to read until a page is
/// full.
const EMPTY_PAGES: u32 = 2;

/// A complete list that is being read, page by page.
pub struct Listing {
    cluster: Rc<Cluster>,
    request: ListRequest,
    page: Option<Page>,
    end: Option<ListMeta>,
    continue_token: String,
    course: Course,
    sizes: Sizes,
}

/// A page that is being read.
struct Page {
    body: Body,
    /// What has arrived and was not read yet.
    chunk: Bytes,
    splitter: ListSplitter,
    share: Share,
    last: Option<Bytes>,
    asked: Instant,
}

/// Detects pages of a list that repeat without end. Since the length of such a circle is not known, the last item of
/// one page is remembered, each time for twice as many pages (Brent's algorithm).
#[derive(Default)]
struct Course {
    /// A hash of that item: no two of a list are the same.
    seen: Option<u64>,
    pages: u64,
    /// The number of pages after which another one is remembered.
    due: u64,
    /// Pages without an item, in a row.
    empty: u32,
}

impl Course {
    /// A page that ends with this item, if it has any, names another page.
    fn goes_on(&mut self, last: Option<&Bytes>) -> Result<(), Error> {
        let Some(last) = last else {
            self.empty += 1;
            if self.empty > EMPTY_PAGES {
                return Err(Error::BadAnswer("a list of empty pages without an end".into()));
            }
            return Ok(());
        };
        self.empty = 0;
        let mut hasher = DefaultHasher::new();
        last.hash(&mut hasher);
        let last = hasher.finish();
        if self.seen == Some(last) {
            return Err(Error::BadAnswer("a list whose pages repeat".into()));
        }
        self.pages += 1;
        if self.pages >= self.due {
            self.due = self.pages * 2;
            self.seen = Some(last);
        }
        Ok(())
    }
}

impl Listing {
    pub(super) fn new(cluster: Rc<Cluster>, request: ListRequest) -> Self {
        Self {
            cluster,
            request,
            page: None,
            end: None,
            continue_token: String::new(),
            course: Course::default(),
            sizes: Sizes::default(),
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
                    let page = self.cluster.page(&self.request, self.sizes, &self.continue_token);
                    let body = page.await?;
                    none.insert(Page {
                        body,
                        chunk: Bytes::new(),
                        splitter: ListSplitter::default(),
                        share: self.cluster.room.share(),
                        last: None,
                        asked,
                    })
                }
            };
            if let Some(item) = page.splitter.next_item(&mut page.chunk).map_err(Error::BadAnswer)? {
                page.share.ends();
                self.sizes.add(item.len());
                page.last = Some(item.clone());
                return Ok(Some(item));
            }
            page.share.grow(page.splitter.held(), SMALL_ITEM).await;
            match page.share.in_time(self.cluster.chunk(&mut page.body)).await {
                Ok(Some(bytes)) => page.chunk = bytes,
                Ok(None) => self.page_ends()?,
                // The same page is requested again, but smaller: its first items are reported twice.
                Err(_)
                    if self
                        .cluster
                        .takes_smaller_pages(self.request.content, self.sizes, page.asked.elapsed()) =>
                {
                    self.page = None;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The version of the list, from which a watch continues. Known once `next` has given `None`.
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
            self.course.goes_on(page.last.as_ref())?;
            self.cluster.full_page_came(page.asked.elapsed());
            self.continue_token = meta.continue_token;
        }
        Ok(())
    }
}

/// One event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The object was added or changed.
    Applied(Box<Object>),
    /// The object is gone; how it was last.
    Deleted(Box<Object>),
    /// Something was added, changed or deleted that is no object. No API server sends such a thing.
    Unreadable {
        /// Its version, if that can be read.
        resource_version: Option<String>,
        /// What is wrong with it.
        error: Error,
    },
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
    /// White space since the last event.
    blanks: usize,
    share: Share,
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
    pub(super) fn new(body: Body, contact: Rc<Contact>, share: Share) -> Self {
        Self {
            body,
            contact,
            buffer: BytesMut::new(),
            received: 0,
            blanks: 0,
            share,
            silence: WATCH_SILENCE,
        }
    }

    /// Lets it be silent for so long.
    pub fn allow_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// How many bytes of events have come. While it grows, an event that does not arrive is large, or the link slow.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// True if the last wait for an event was given up while others had the room that it needs.
    pub fn waits_for_room(&self) -> bool {
        self.share.waits()
    }

    /// The next event, or `None` when the server has ended the watch or its connection in an orderly way, as it does
    /// before it restarts or to distribute its clients again, or has been silent for too long between two events. Not
    /// calling it is the back-pressure. Giving up waiting for it loses nothing.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        let mut searched = 0;
        let mut heard = Instant::now();
        loop {
            if searched == 0 {
                self.skip_blanks()?;
            }
            if let Some(line) = self.line(searched) {
                self.share.ends();
                self.blanks = 0;
                return parse_event(&line).map(Some);
            }
            searched = self.buffer.len();
            if searched > LINE_LIMIT {
                return Err(Error::BadAnswer(format!(
                    "a watch event of more than {LINE_LIMIT} bytes"
                )));
            }
            if self.share.grow(searched, SMALL_ITEM).await {
                heard = Instant::now();
            }
            match self.chunk(heard + self.silence).await? {
                Some(bytes) => {
                    if !is_blank(&bytes) {
                        self.received += bytes.len() as u64;
                        heard = Instant::now();
                    }
                    if self.buffer.is_empty() {
                        self.buffer = BytesMut::from(bytes);
                    } else {
                        self.buffer.extend_from_slice(&bytes);
                    }
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Error::Unanswered("the watch ended in the middle of an event".into())),
            }
        }
    }

    /// The next piece, or `None` when the server has ended the watch, or has been silent until then.
    async fn chunk(&mut self, silent: Instant) -> Result<Option<Bytes>, Error> {
        let until = self.share.until().map_or(silent, |turn| turn.min(silent));
        let Ok(chunk) = timeout_at(until, self.body.next()).await else {
            if self.buffer.is_empty() {
                return Ok(None);
            }
            return Err(Error::Unanswered("the watch stalled in the middle of an event".into()));
        };
        match chunk.transpose() {
            // An event that has begun is reported again by the next watch.
            Err(Error::Unanswered(why)) => {
                log_line!(Debug, WatchEnded, "the server has ended a watch", error = why);
                self.buffer.clear();
                Ok(None)
            }
            Err(error) => {
                self.contact.broke_off();
                Err(error)
            }
            chunk => {
                self.contact.figures.hears();
                chunk
            }
        }
    }

    /// Drops the white space before an event.
    fn skip_blanks(&mut self) -> Result<(), Error> {
        let blanks = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.buffer.advance(blanks);
        self.blanks += blanks;
        if self.blanks > BLANKS_LIMIT {
            return Err(Error::BadAnswer(format!(
                "a watch with more than {BLANKS_LIMIT} bytes of white space between two events"
            )));
        }
        Ok(())
    }

    /// The next line, if it is complete; its end is not in the first `searched` bytes.
    fn line(&mut self, searched: usize) -> Option<Bytes> {
        let end = self.buffer.iter().skip(searched).position(|&byte| byte == b'\n')?;
        // The buffer has that many bytes, since the end is one of them.
        let line = self.buffer.split_to(searched + end + 1).freeze();
        if self.buffer.is_empty() || line.len() > SMALL_ITEM {
            // Even an empty rest would keep the memory of a large line as long as the watch is silent.
            self.buffer = BytesMut::from(self.buffer.as_ref());
        }
        Some(line)
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// The type of an event and its object, if it is written as API servers do, with nothing else in it: found without a pass
/// over the object. What it gives is an event only if the object turns out to be one.
fn as_usual(line: &Bytes) -> Option<(&str, Bytes)> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let kind = rest.split(|&byte| byte == b'"').next()?;
    let object = rest[kind.len()..].strip_prefix(br#"","object":"#)?;
    let object = object.trim_ascii_end().strip_suffix(b"}")?;
    Some((str::from_utf8(kind).ok()?, line.slice_ref(object)))
}

fn parse_event(line: &Bytes) -> Result<WatchEvent, Error> {
    let found = as_usual(line).and_then(|(kind, object)| Some((variant(kind)?, Object::take_apart(object).ok()?)));
    if let Some((event, object)) = found {
        return Ok(event(Box::new(object)));
    }
    let bad = |error: serde_json::Error| {
        Error::BadAnswer(format!("watch event: {error}: {}", super::error::first_line(line)))
    };
    let event: WireEvent = serde_json::from_slice(line).map_err(bad)?;
    let object = event.object.get();
    match event.kind {
        "BOOKMARK" => {
            let bookmark: WireBookmark = from_text(object).map_err(bad)?;
            let end = bookmark.metadata.annotations.get("k8s.io/initial-events-end");
            Ok(WatchEvent::Bookmark {
                initial_end: end.is_some_and(|value| value == "true"),
                resource_version: checked_version(bookmark.metadata.resource_version)?,
            })
        }
        "ERROR" => Err(Error::from_watch_error(object.as_bytes())),
        kind => match variant(kind) {
            Some(event) => Ok(match Object::take_apart(line.slice_ref(object.as_bytes())) {
                Ok(object) => event(Box::new(object)),
                Err(error) => unreadable(object, error),
            }),
            None => Err(Error::BadAnswer(format!("watch event of unknown type {kind:?}"))),
        },
    }
}

/// What an event of that type says of an object, if it says something of one.
fn variant(kind: &str) -> Option<fn(Box<Object>) -> WatchEvent> {
    match kind {
        "ADDED" | "MODIFIED" => Some(WatchEvent::Applied),
        "DELETED" => Some(WatchEvent::Deleted),
        _ => None,
    }
}

/// The event of an object that is none.
fn unreadable(object: &str, error: Error) -> WatchEvent {
    #[derive(Deserialize)]
    struct Wire {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: String,
    }
    let version = from_text(object).map(|wire: Wire| wire.metadata.resource_version);
    WatchEvent::Unreadable {
        resource_version: version.ok().and_then(|version| checked_version(version).ok()),
        error,
    }
}

fn checked_version(version: String) -> Result<String, Error> {
    match version.len() {
        ..=LONGEST_VERSION => Ok(version),
        length => Err(Error::BadAnswer(format!(
            "a bookmark with a version of {length} characters"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<WatchEvent, Error> {
        parse_event(&Bytes::copy_from_slice(line.as_bytes()))
    }

    fn object(text: &str) -> Box<Object> {
        Box::new(Object::take_apart(Bytes::copy_from_slice(text.as_bytes())).unwrap())
    }

    #[test]
    fn an_event_is_read_however_it_is_written() {
        let text = r#"{"metadata":{"name":"a","resourceVersion":"7"},"type":"DELETED"}"#;
        for line in [
            format!("{{\"type\":\"ADDED\",\"object\":{text}}}\n"),
            format!(" {{\"type\" : \"MODIFIED\", \"object\": {text} }}\r\n"),
            format!("{{\"object\":{text},\"type\":\"ADDED\"}}\n"),
            format!("{{\"type\":\"ADDED\",\"object\":{text},\"more\":{{}}}}\n"),
        ] {
            assert_eq!(read(&line), Ok(WatchEvent::Applied(object(text))), "{line}");
        }
        let line = format!("{{\"type\":\"DELETED\",\"object\":{text}}}\n");
        assert_eq!(read(&line), Ok(WatchEvent::Deleted(object(text))));
        for line in [
            format!("{{\"type\":\"SPOILED\",\"object\":{text}}}\n"),
            format!("{{\"type\":\"ADDED\",\"object\":{text},\"type\":\"DELETED\"}}\n"),
            format!("{{\"type\":\"ADDED\",\"object\":{text}\n"),
            format!("{{\"type\":\"ADDED\",\"object\":{text}}}}}\n"),
        ] {
            assert!(matches!(read(&line), Err(Error::BadAnswer(_))), "{line}");
        }
    }

    #[test]
    fn an_object_that_is_none_does_not_hide_how_far_the_watch_is() {
        for (object, expected) in [
            (r#"{"metadata":{"resourceVersion":"7"}}"#, Some("7")),
            (r#"{"metadata":{"name":"a/b","resourceVersion":"8"}}"#, Some("8")),
            (r#"{"metadata":{"name":"a/b"}}"#, None),
            ("[]", None),
        ] {
            let line = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
            let Ok(WatchEvent::Unreadable { resource_version, .. }) = read(&line) else {
                unreachable!("{object}");
            };
            assert_eq!(resource_version.as_deref(), expected);
        }
    }
}
