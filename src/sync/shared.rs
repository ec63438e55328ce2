//! A question to a server whose answer those share who ask it at once.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a question waits for one under way, so as to be shared: that one may be lost.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The last answer to one question, for those who asked before it was put.
#[derive(Debug)]
pub(super) struct Shared<T> {
    /// How many questions have begun.
    begun: Cell<u64>,
    /// The last answer, and which question it is to, counted from 1. Held while a question is under way.
    last: Mutex<Option<(u64, T)>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            begun: Cell::default(),
            last: Mutex::default(),
        }
    }
}

impl<T: Clone> Shared<T> {
    /// The answer to a question that begins after the call: one that is under way already is no answer to what was seen
    /// meanwhile.
    pub(super) async fn ask(&self, question: impl AsyncFn() -> T) -> T {
        let before = self.begun.get();
        let Ok(mut last) = timeout(LONGEST_WAIT, self.last.lock()).await else {
            return question().await;
        };
        if let Some((_, answer)) = last.as_ref().filter(|(to, _)| *to > before) {
            return answer.clone();
        }
        self.begun.update(|begun| begun + 1);
        let to = self.begun.get();
        let answer = question().await;
        *last = Some((to, answer.clone()));
        answer
    }

    /// What is answered to a question that has begun is no answer to one from now on.
    pub(super) fn expire(&self) {
        self.begun.update(|begun| begun + 1);
    }
}
