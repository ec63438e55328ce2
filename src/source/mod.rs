//! Sources: one task per list-and-watch, telling the engine what a side holds.
//!
//! A source promises, whatever happens to the link:
//! - Between [`SourceEvent::Begin`] and [`SourceEvent::Complete`] it names every object of its scope; what it did not
//!   name then is gone. `Complete` is sent only when the server ended the list successfully.
//! - After `Complete` it names every change, in order, resuming where it was after a cut. When the server no longer
//!   knows that point (410), it begins again.
//! - It holds one object at a time and waits until the engine takes it: back-pressure up to the server.
//!
//! It does not know what is selected, decides nothing and writes nothing.

mod watch;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, spawn_local};

use crate::cluster::{Cluster, Content, Error, ListRequest, ResourceType, Scope};

/// Numbers sources through the life of the process, so that what an ended one left behind is recognised.
pub type SourceId = u64;

/// How the sources of a side learn of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// From open watches, at once.
    #[default]
    Watch,
    /// From one look per interval.
    Poll(Duration),
}

/// What a source tells.
#[derive(Debug)]
pub enum SourceEvent {
    /// A complete list begins. May come again at any time.
    Begin,
    /// The object is there; its JSON, whole or metadata alone as asked for.
    Object(Bytes),
    /// The object was deleted; its last JSON.
    Gone(Bytes),
    /// The list that began is complete.
    Complete,
    /// The link works (again). Sent at the first success after a start or after `Down`.
    Up,
    /// The source cannot read now, and tries again by itself.
    Down(Error),
}

/// What a source reads.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The type.
    pub resource: ResourceType,
    /// Which of its objects.
    pub scope: Scope,
    /// How it is listed and watched.
    pub style: Style,
}

/// How a source lists and watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Whole objects.
    Whole,
    /// Names only: metadata of every object.
    Metadata,
    /// One metadata-only look at every object, to know what was there before (DESIGN section 4, Adoption), then a watch
    /// of whole objects with this label selector.
    LookThenWatch(&'static str),
}

impl Reading {
    fn list_request(&self) -> ListRequest {
        ListRequest {
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            label_selector: None,
            content: match self.style {
                Style::Whole => Content::Full,
                Style::Metadata | Style::LookThenWatch(_) => Content::Metadata,
            },
        }
    }

    fn watch_request(&self) -> ListRequest {
        match self.style {
            Style::Whole | Style::Metadata => self.list_request(),
            Style::LookThenWatch(labels) => ListRequest {
                label_selector: Some(labels),
                content: Content::Full,
                ..self.list_request()
            },
        }
    }
}

/// A running source; dropping it ends the source.
#[derive(Debug)]
pub struct SourceHandle(AbortHandle);

impl Drop for SourceHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a source that sends to `events`. Needs a tokio `LocalSet`.
pub fn start(
    cluster: &Rc<Cluster>,
    reading: &Reading,
    id: SourceId,
    events: Sender<(SourceId, SourceEvent)>,
) -> SourceHandle {
    let source = watch::Source::new(Rc::clone(cluster), reading, Outlet { id, events });
    SourceHandle(spawn_local(source.run()).abort_handle())
}

/// Where a source sends to.
struct Outlet {
    id: SourceId,
    events: Sender<(SourceId, SourceEvent)>,
}

/// The engine is gone; the source ends.
struct Closed;

impl Outlet {
    async fn send(&self, event: SourceEvent) -> Result<(), Closed> {
        self.events.send((self.id, event)).await.map_err(|_| Closed)
    }
}
