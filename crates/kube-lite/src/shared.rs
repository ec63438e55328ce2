//! Reads with one answer for all that ask at the same time.
//!
//! Before each delete a syncer asks the other side which cluster it is and what defines the type. Many workers ask
//! that at the same time, and one request answers them all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::{Cluster, Content, Error, ObjectName, ResourceType};

/// How long a read waits for one that is under way, to share the next one: that one may be lost. One that has already
/// taken longer is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

type Answer = Result<Bytes, Error>;

/// What is being read of one side, by path.
#[derive(Debug, Default)]
pub(super) struct SharedReads(RefCell<BTreeMap<String, Rc<Read>>>);

/// The last answer to one read, for those that asked before the request was sent.
#[derive(Debug, Default)]
struct Read {
    /// How many requests have begun.
    begun: Cell<u64>,
    /// When the last one did.
    begun_at: Cell<Option<Instant>>,
    /// The last answer, and the number of its request, counted from 1. Held while a request is under way.
    last: Mutex<Option<(u64, Answer)>>,
}

impl SharedReads {
    async fn ask(&self, path: String, question: impl AsyncFn() -> Answer) -> Answer {
        let read = Rc::clone(self.0.borrow_mut().entry(path).or_default());
        let answer = read.ask(question).await;
        drop(read);
        // A read that nothing waits for is not kept, nor that of a task that was stopped meanwhile.
        self.0.borrow_mut().retain(|_, read| Rc::strong_count(read) > 1);
        answer
    }
}

impl Read {
    /// The answer to a request that begins after the call: one that is already under way may not know what was seen
    /// meanwhile.
    async fn ask(&self, question: impl AsyncFn() -> Answer) -> Answer {
        let before = self.begun.get();
        let is_late = self.begun_at.get().is_some_and(|at| at.elapsed() > LONGEST_WAIT);
        let wait = if is_late { Duration::ZERO } else { LONGEST_WAIT };
        let Ok(mut last) = timeout(wait, self.last.lock()).await else {
            return question().await;
        };
        if let Some((_, answer)) = last.as_ref().filter(|(to, _)| *to > before) {
            return answer.clone();
        }
        self.begun.update(|begun| begun + 1);
        self.begun_at.set(Some(Instant::now()));
        let to = self.begun.get();
        let answer = question().await;
        *last = Some((to, answer.clone()));
        answer
    }
}

impl Cluster {
    /// As [`Cluster::get`]. The answer is that to a request that began after the call, perhaps for another caller.
    pub async fn get_shared(&self, resource: &ResourceType, name: &ObjectName, content: Content) -> Answer {
        let path = self.object_path(resource, name)?;
        self.shared
            .ask(path, async || self.get(resource, name, content).await)
            .await
    }

    /// The same as [`Cluster::get_path`].
    pub async fn get_path_shared(&self, path: &str) -> Answer {
        self.shared
            .ask(path.to_owned(), async || self.get_path(path).await)
            .await
    }
}
