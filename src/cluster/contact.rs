//! When a side was last heard of, and when it last failed to answer.

use std::cell::Cell;

use tokio::time::Instant;

use super::Error;

/// Contact with a side. Times are those of requests, so that answers to what was asked before an outage say nothing of
/// its end.
#[derive(Debug, Default)]
pub(super) struct Contact {
    /// When the latest of the requests that were answered began.
    asked: Cell<Option<Instant>>,
    /// When nothing answered last.
    failed: Cell<Option<Instant>>,
}

impl Contact {
    /// A request that began then is answered.
    pub(super) fn answered(&self, began: Instant) {
        self.asked.set(self.asked.get().max(Some(began)));
    }

    /// Something failed; takes note if that was for want of an answer.
    pub(super) fn fails(&self, error: &Error) {
        if error.is_unreachable() {
            self.failed.set(Some(Instant::now()));
        }
    }

    /// True if what was asked since the last failure was answered, at least once.
    pub(super) fn is_there(&self) -> bool {
        self.asked.get().is_some_and(|asked| Some(asked) >= self.failed.get())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_before_an_outage_does_not_end_it() {
        let contact = Contact::default();
        assert!(!contact.is_there(), "nobody has asked");
        let early = Instant::now();
        contact.answered(early);
        assert!(contact.is_there());
        tokio::time::advance(Duration::from_millis(5)).await;
        contact.fails(&Error::BadAnswer("a page".into()));
        assert!(contact.is_there(), "somebody has answered");
        contact.fails(&Error::Unreachable("reset".into()));
        contact.answered(early);
        assert!(!contact.is_there(), "its answer was on its way when the link was cut");
        contact.answered(Instant::now());
        contact.answered(early);
        assert!(contact.is_there());
    }
}
