//! Sources: one task per type, side and scope, reporting to the shell what a side holds, by watching or by polling.
//!
//! A source promises, whatever happens to the link:
//! - Between [`SourceEvent::Begin`] and [`SourceEvent::Complete`] it names every object of its scope; what it did not
//!   name then is gone. `Complete` is sent only when the server ended the list successfully.
//! - After `Complete` it names every change, in order: when it happens, resuming where it was after a cut, and
//!   beginning again when the server no longer knows that point (410); or, when polling, in one list each interval.
//! - It holds one object at a time and waits until the shell takes it: back-pressure up to the server.
//!
//! It does not know what is selected, decides nothing and writes nothing.

#[cfg(test)]
mod bench;
mod memory;
mod poll;
mod progress;
mod reporter;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::{Cluster, Content, Error, ListRequest, Object, ObjectName, ResourceType, Scope};
use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, spawn_local};

use self::memory::Memory;
use self::progress::Progress;
use self::reporter::Reporter;

/// The number of a source, unique in the process, so that late events of an ended one are recognised.
pub type SourceId = u64;

/// What a source reports.
#[derive(Debug)]
pub enum SourceEvent {
    /// A complete list begins. May come again at any time.
    Begin(Covers),
    /// The object is there, whole or metadata alone as asked for.
    Object(Box<Object>),
    /// The object is there as it was reported before; its metadata.
    Unchanged(Box<Object>),
    /// The object was deleted; how it was last.
    Gone(Box<Object>),
    /// Something is there that is no object, or was deleted. No API server sends such a thing.
    Unreadable(Error),
    /// The list that began is complete.
    Complete(Versions),
    /// The link works (again). Sent at the first success after a start or after `Down`.
    Up,
    /// The source cannot read now, and tries again by itself.
    Down(Error),
}

/// The version of a complete list. A number is 0 if the server's versions are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The resource version of the list: it knows of nothing later.
    pub list: u64,
    /// The version that the source knew the server to have reached before. A list that is older comes from a restored
    /// backup.
    pub before: u64,
    /// The highest version that the side had shown for any type when the list was requested; 0 if it is not known. A
    /// list that is older is that of a server that has lost something, or keeps the type elsewhere.
    pub side: u64,
    /// The server has lost a write of ours that it had confirmed, so that the list may lack more than what was deleted.
    pub has_lost: bool,
}

impl Versions {
    /// True if the server has gone back to older versions.
    pub fn go_back(self) -> bool {
        self.list != 0 && self.list < self.before
    }

    /// True if the list is older than what the side has shown for other types.
    pub fn are_behind_others(self) -> bool {
        self.list != 0 && self.list < self.side
    }

    /// True if the server is not what it was: what it has reported and confirmed before proves nothing any more.
    pub fn break_with_before(self) -> bool {
        self.has_lost || self.go_back()
    }
}

impl Covers {
    /// What a list of that request names.
    fn of(request: &ListRequest) -> Self {
        match request.label_selector {
            Some(_) => Self::Labelled,
            None => Self::Everything,
        }
    }
}

/// Which objects of a source's scope a list names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// All of them.
    Everything,
    /// Those with the label that the source's style names; it says nothing of others.
    Labelled,
}

/// How changes of a side are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All the time, by watches.
    Watch,
    /// Once in this time, give or take a tenth, for links where watches do not survive.
    Poll(Duration),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Whole objects.
    Whole,
    /// Whole objects with this label selector.
    Labelled(Rc<str>),
    /// Names only: metadata of every object.
    Metadata,
    /// One metadata-only poll of every object, to know what was there before, then a watch (or polls) of whole objects
    /// with this label selector.
    LookThenWatch(Rc<str>),
}

impl Reading {
    /// All objects of a type.
    pub fn of_all(resource: ResourceType, style: Style) -> Self {
        let scope = Scope::default();
        Self { resource, scope, style }
    }

    /// The one cluster-scoped object of a type with this name.
    pub fn of_one(resource: ResourceType, name: Rc<str>, style: Style) -> Self {
        let scope = Scope {
            namespace: None,
            name: Some(name),
        };
        Self { resource, scope, style }
    }

    fn list_request(&self) -> ListRequest {
        ListRequest {
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            label_selector: match &self.style {
                Style::Labelled(labels) => Some(Rc::clone(labels)),
                Style::Whole | Style::Metadata | Style::LookThenWatch(_) => None,
            },
            field_selector: None,
            content: match self.style {
                Style::Whole | Style::Labelled(_) => Content::Full,
                Style::Metadata | Style::LookThenWatch(_) => Content::Metadata,
            },
        }
    }

    fn watch_request(&self) -> ListRequest {
        match &self.style {
            Style::Whole | Style::Labelled(_) | Style::Metadata => self.list_request(),
            Style::LookThenWatch(labels) => ListRequest {
                label_selector: Some(Rc::clone(labels)),
                content: Content::Full,
                ..self.list_request()
            },
        }
    }

    /// The request of a poll: metadata only.
    fn metadata_request(&self) -> ListRequest {
        ListRequest {
            content: Content::Metadata,
            ..self.watch_request()
        }
    }
}

/// A running source; dropping it ends the source.
#[derive(Debug)]
pub struct SourceHandle {
    task: AbortHandle,
    knowledge: Knowledge,
}

/// What a source has to hear of what workers see.
#[derive(Debug)]
enum Knowledge {
    /// One that polls need not read what is known already.
    Polls(Rc<RefCell<Memory>>),
    /// One that watches has to know what was written.
    Watches(Rc<RefCell<Progress>>),
}

impl SourceHandle {
    /// The role has the whole object at this version (its own write was answered with it), so that a poll need not
    /// read it. Not to be called after a write that leaves what others may have changed meanwhile, unless all of the
    /// answer was read. A hint; 0 is no version.
    pub fn is_known(&self, name: &ObjectName, version: u64) {
        if let Knowledge::Polls(memory) = &self.knowledge
            && version != 0
        {
            memory.borrow_mut().insert(name, version);
        }
    }

    /// The role has seen that the object is gone, and knows nothing of it any more: if a restore brings it back at
    /// the same version, it has to be reported.
    pub fn is_gone(&self, name: &ObjectName) {
        if let Knowledge::Polls(memory) = &self.knowledge {
            memory.borrow_mut().remove(name);
        }
    }

    /// The server has answered a write to an object that the source covers with this version; 0 is no version. A watch that
    /// never reports it has shown that the server has lost it.
    pub fn is_written(&self, version: u64) {
        if let Knowledge::Watches(progress) = &self.knowledge {
            progress.borrow_mut().is_written(version);
        }
    }
}

impl Drop for SourceHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a source that sends to `events`. Needs a tokio `LocalSet`.
pub fn start(
    cluster: &Rc<Cluster>,
    reading: &Reading,
    mode: Mode,
    id: SourceId,
    events: Sender<(SourceId, SourceEvent)>,
) -> SourceHandle {
    let cluster = Rc::clone(cluster);
    let reporter = Reporter::new(id, events, Rc::clone(&cluster));
    match mode {
        Mode::Watch => {
            let progress = Rc::new(RefCell::new(Progress::default()));
            let source = watch::Source::new(cluster, reading, reporter, Rc::clone(&progress));
            SourceHandle {
                task: spawn_local(source.run()).abort_handle(),
                knowledge: Knowledge::Watches(progress),
            }
        }
        Mode::Poll(interval) => {
            let memory = Rc::new(RefCell::new(Memory::default()));
            let source = poll::Source::new(cluster, reading, interval, reporter, Rc::clone(&memory));
            SourceHandle {
                task: spawn_local(source.run()).abort_handle(),
                knowledge: Knowledge::Polls(memory),
            }
        }
    }
}
