//! Poll mode: one complete list, then one poll of metadata each interval; each object that a poll finds changed is read
//! with a request of its own.
//!
//! Beyond what every source promises: between two polls there is no request; a poll in which nothing has changed is one
//! request a page; an object that cannot be read does not keep the others from being reported; what a failed poll has found
//! is not read again. When the server turns out to be older than it was (restored from a backup), its versions no
//! longer say what is known, and the next poll is a complete list again.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::meta::Meta;
use kube_lite::read::not_older;
use kube_lite::{Cluster, Content, Error, Object, ObjectName};
use tokio::time::sleep;

use super::memory::{Memory, version_of};
use super::reporter::{LONGEST_WAIT, Pages, ReadEnd, Reporter, version_number};
use super::{Reading, SourceEvent, Style, Versions};

pub(super) struct Source {
    cluster: Rc<Cluster>,
    reading: Reading,
    interval: Duration,
    reporter: Reporter,
    memory: Rc<RefCell<Memory>>,
    /// Everything has been listed, so that polls are enough.
    listed: bool,
    /// The version of the last complete list.
    version: u64,
    /// A poll has ended since the start: the next one keeps the interval.
    synced: bool,
    /// The last complete poll left an object unread, which was reported as `Down`.
    left_unread: bool,
}

impl Source {
    pub(super) fn new(
        cluster: Rc<Cluster>,
        reading: &Reading,
        interval: Duration,
        reporter: Reporter,
        memory: Rc<RefCell<Memory>>,
    ) -> Self {
        Self {
            cluster,
            reading: reading.clone(),
            interval,
            reporter,
            memory,
            listed: false,
            version: 0,
            synced: false,
            left_unread: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            match self.pass().await {
                Ok(()) => {
                    self.reporter.succeeds();
                    sleep(self.pause()).await;
                }
                Err(ReadEnd::Closed) => return,
                Err(ReadEnd::Failed(error)) if self.reporter.forgives(&error) => {}
                Err(ReadEnd::Failed(error)) => {
                    let longest = LONGEST_WAIT.max(self.interval);
                    if self.reporter.fail(error, longest).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// The time between the end of one poll and the next. The first one is anything up to the interval, since all types
    /// of all edges may have started together.
    fn pause(&mut self) -> Duration {
        let spread = if std::mem::replace(&mut self.synced, true) {
            0.9 + fastrand::f64() / 5.0
        } else {
            fastrand::f64()
        };
        self.interval.mul_f64(spread)
    }

    /// One complete list or poll.
    async fn pass(&mut self) -> Result<(), ReadEnd> {
        let request = if self.listed {
            self.reading.metadata_request()
        } else {
            self.reading.list_request()
        };
        let mut pages = Pages::of(&self.cluster, &request);
        let mut unread = None;
        self.memory.borrow_mut().list_begins();
        while let Some(object) = pages.next(&mut self.reporter).await? {
            let failed = match object {
                // No API server sends such a thing. The role logs it.
                Err(error) => {
                    self.reporter.send(SourceEvent::Unreadable(error)).await?;
                    None
                }
                Ok(mut object) => {
                    object.is_at(self.cluster.workspaces());
                    if self.listed {
                        self.read_metadata(object).await?
                    } else {
                        self.send_listed(object).await?;
                        None
                    }
                }
            };
            unread = unread.or(failed);
        }
        self.memory.borrow_mut().list_completes();
        let versions = Versions {
            list: version_number(pages.version()),
            before: self.version,
            // All types are listed all the time.
            side: 0,
            has_lost: false,
        };
        self.reporter.send(SourceEvent::Complete(versions)).await?;
        self.listed = !versions.go_back();
        self.version = versions.list;
        self.send_unread(unread).await
    }

    /// Passes on an object of a complete list.
    async fn send_listed(&mut self, object: Box<Object>) -> Result<(), ReadEnd> {
        if self.is_searched_for(&object.meta) {
            return self.send_known(object).await;
        }
        Ok(self.reporter.send(SourceEvent::Object(object)).await?)
    }

    /// Passes on an object that the role knows then at this version.
    async fn send_known(&mut self, object: Box<Object>) -> Result<(), ReadEnd> {
        let (name, version) = (object.meta.object_name(), version_of(&object.meta.resource_version));
        self.reporter.send(SourceEvent::Object(object)).await?;
        self.memory.borrow_mut().insert(&name, version);
        Ok(())
    }

    /// True if later polls will name the object.
    fn is_searched_for(&self, meta: &Meta) -> bool {
        let Style::LookThenWatch(labels) = &self.reading.style else {
            return true;
        };
        let Some((key, value)) = labels.split_once('=') else {
            return true;
        };
        meta.labels.get(key).is_some_and(|found| found == value)
    }

    /// Passes on an object that a poll has named, as a whole if it has changed. Returns the error if only this object
    /// cannot be read.
    async fn read_metadata(&mut self, metadata: Box<Object>) -> Result<Option<Error>, ReadEnd> {
        let name = metadata.meta.object_name();
        let version = version_of(&metadata.meta.resource_version);
        let known = self.memory.borrow_mut().is_named(&name, version);
        if known {
            self.reporter.send(SourceEvent::Unchanged(metadata)).await?;
            return Ok(None);
        }
        if self.reading.style == Style::Metadata {
            self.send_known(metadata).await?;
            return Ok(None);
        }
        match self.read(&name, version).await {
            Ok(object) => {
                self.send_known(object).await?;
                Ok(None)
            }
            // Gone since the poll began: not named.
            Err(error) if error.proves_absent(&name.name) => Ok(None),
            Err(error) if concerns_one_object(&error) => {
                self.reporter.send(SourceEvent::Unchanged(metadata)).await?;
                Ok(Some(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object that a poll has named at this version.
    async fn read(&self, name: &ObjectName, version: u64) -> Result<Box<Object>, Error> {
        let object = self.cluster.get(&self.reading.resource, name, Content::Full).await?;
        let object = Box::new(Object::named(name, object)?);
        not_older(&object.meta, version)?;
        Ok(object)
    }

    /// Reports objects that a complete poll could not read: once as long as there are any, and when there are none.
    async fn send_unread(&mut self, unread: Option<Error>) -> Result<(), ReadEnd> {
        let before = std::mem::replace(&mut self.left_unread, unread.is_some());
        match unread {
            Some(error) => self.reporter.send(SourceEvent::Down(error)).await?,
            None if before => self.reporter.send(SourceEvent::Up).await?,
            None => {}
        }
        Ok(())
    }
}

/// True if the error may be about the object that was asked for and no other: stored in a form that the server cannot
/// read, or broken in its conversion.
fn concerns_one_object(error: &Error) -> bool {
    match error {
        Error::BadAnswer(_)
        | Error::NotSent(_)
        | Error::WithoutEffect(_)
        | Error::Ending(_)
        | Error::NotServedYet(_)
        | Error::Outdated { .. }
        | Error::Unanswered(_) => true,
        Error::Status(status) => status.code == 500,
        Error::Unreachable(_) | Error::Unauthorized(_) => false,
    }
}

#[cfg(test)]
#[path = "poll_tests.rs"]
mod tests;
