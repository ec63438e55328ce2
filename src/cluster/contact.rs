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
    /// When the latest of those began that were not refused for want of valid credentials.
    accepted: Cell<Option<Instant>>,
    /// When the credentials were refused last.
    refused: Cell<Option<Instant>>,
}

impl Contact {
    /// A request that began then is answered.
    pub(super) fn answered(&self, began: Instant) {
        raise(&self.asked, began);
        raise(&self.accepted, began);
    }

    /// A request that began then failed.
    pub(super) fn failed(&self, began: Instant, error: &Error) {
        if error.is_unreachable() {
            self.failed.set(Some(Instant::now()));
            return;
        }
        raise(&self.asked, began);
        if error.is_unauthorized() {
            self.refused.set(Some(Instant::now()));
        } else {
            raise(&self.accepted, began);
        }
    }

    /// An answer broke off.
    pub(super) fn broke_off(&self) {
        self.failed.set(Some(Instant::now()));
    }

    /// True if what was asked since the last failure was answered, at least once.
    pub(super) fn is_there(&self) -> bool {
        self.asked.get().is_some_and(|asked| Some(asked) >= self.failed.get())
    }

    /// True if what was asked since the credentials were last refused was not.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.get() >= self.refused.get()
    }
}

fn raise(cell: &Cell<Option<Instant>>, to: Instant) {
    cell.set(cell.get().max(Some(to)));
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
        contact.failed(early, &Error::BadAnswer("a page".into()));
        assert!(contact.is_there(), "somebody has answered");
        contact.failed(early, &Error::Unreachable("reset".into()));
        contact.answered(early);
        assert!(!contact.is_there(), "its answer was on its way when the link was cut");
        contact.answered(Instant::now());
        contact.answered(early);
        assert!(contact.is_there());
        contact.broke_off();
        assert!(contact.is_there(), "at the same moment");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_are_refused_until_something_asked_later_is_not() {
        let contact = Contact::default();
        assert!(contact.is_accepted());
        let early = Instant::now();
        tokio::time::advance(Duration::from_millis(5)).await;
        contact.failed(early, &Error::from_answer(401, None, b""));
        assert!(contact.is_there() && !contact.is_accepted());
        contact.answered(early);
        assert!(!contact.is_accepted(), "asked before");
        contact.failed(Instant::now(), &Error::from_answer(403, None, b""));
        assert!(contact.is_accepted(), "another refusal");
    }
}
