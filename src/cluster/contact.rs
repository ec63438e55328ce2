//! When a side was last heard of, and when it last failed to answer; and who asks whether it is back. What counts as
//! either is reported to it by whoever judges failures (`verbs/verdict.rs`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use super::refused::Refused;

/// How long those who do not ask for a side that is away believe that it still is.
const AWAY: Duration = Duration::from_secs(300);
/// The time between two lines about answers that do not come.
const LINES_APART: Duration = Duration::from_secs(60);
/// How long the answer of a Kubernetes API proves that there is one, against an answer that may come from elsewhere.
const PROOF: Duration = Duration::from_secs(60);
/// The time in which all of them begin to ask when it is back.
const RETURN: Duration = Duration::from_secs(2);

/// Contact with a side. Times are those of requests, so that answers to what was asked before an outage say nothing of
/// its end.
#[derive(Debug, Default)]
pub(super) struct Contact {
    /// When the latest of the requests that were answered began.
    asked: Cell<Option<Instant>>,
    /// When nothing answered last.
    failed: Cell<Option<Instant>>,
    /// When the latest of those began that were not refused because credentials were invalid.
    accepted: Cell<Option<Instant>>,
    /// When the credentials were refused last.
    refused: Cell<Option<Instant>>,
    /// While they are refused: when to ask again.
    pub(super) credentials: Refused,
    /// Held by the one who asks whether it is the whole side that fails.
    pub(super) checking: Mutex<()>,
    /// When the last such question began.
    checked: Cell<Option<Instant>>,
    /// When the latest of those began that were answered as only a Kubernetes API does.
    proved: Cell<Option<Instant>>,
    /// What answers instead of one, in its words, as it was found when a question that began then was answered.
    stranger: RefCell<Option<(Instant, String)>>,
    /// When it was logged last that an answer does not come.
    logged: Cell<Option<Instant>>,
    /// Somebody asks whether the side is back.
    probing: Cell<bool>,
    /// It may be back, or nobody asks any more.
    news: Notify,
}

/// Held by the one who asks whether a side is back, at its own mode.
#[derive(Debug)]
pub(crate) struct Probe(Rc<Contact>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.probing.set(false);
        self.0.news.notify_waiters();
    }
}

impl Contact {
    /// A request that began then is answered.
    pub(super) fn answered(&self, began: Instant) {
        self.is_heard(began);
        self.is_let_in(began);
    }

    fn is_let_in(&self, began: Instant) {
        raise(&self.accepted, began);
        if self.is_accepted() {
            self.credentials.are_accepted();
        }
    }

    fn is_heard(&self, began: Instant) {
        raise(&self.asked, began);
        self.news.notify_waiters();
    }

    /// A request that began then failed.
    pub(super) fn failed(&self, began: Instant, error: &Error) {
        match error {
            Error::Unreachable(_) => self.failed.set(Some(Instant::now())),
            // It says nothing of the side.
            _ if error.is_no_answer() => {}
            Error::Unauthorized(_) => {
                self.is_heard(began);
                self.refused.set(Some(Instant::now()));
            }
            Error::Status(status) if status.code == 401 => self.is_heard(began),
            _ => self.answered(began),
        }
    }

    /// True if the server has answered something that was asked at this time or later.
    pub(super) fn is_heard_since(&self, time: Instant) -> bool {
        self.asked.get().is_some_and(|asked| asked >= time)
    }

    /// True if it has, and not refused the credentials.
    pub(super) fn is_accepted_since(&self, time: Instant) -> bool {
        self.accepted.get().is_some_and(|accepted| accepted >= time)
    }

    /// True if somebody has begun to ask whether the side answers at all, at this time or later.
    pub(super) fn is_checked_since(&self, time: Instant) -> bool {
        self.checked.get().is_some_and(|checked| checked >= time)
    }

    /// Somebody has asked then whether the side answers at all, and knows.
    pub(super) fn is_checked(&self, began: Instant) {
        raise(&self.checked, began);
    }

    /// A Kubernetes API has answered a request that began then.
    pub(super) fn is_api(&self, began: Instant) {
        raise(&self.proved, began);
        if self.stranger.borrow().as_ref().is_some_and(|(since, _)| began > *since) {
            *self.stranger.borrow_mut() = None;
        }
    }

    /// Something else has answered the question for what every Kubernetes API has, which began then.
    pub(super) fn is_stranger(&self, began: Instant, words: String) {
        *self.stranger.borrow_mut() = Some((began, words));
    }

    /// True if a request that began then and was answered as by something else has met one path, not another server.
    pub(super) fn is_proved_about(&self, began: Instant) -> bool {
        let proved = self.proved.get();
        self.stranger.borrow().is_none() && proved.is_some_and(|at| began.duration_since(at) < PROOF)
    }

    /// What answers in the place of a Kubernetes API, in its words, if something else does.
    pub(super) fn stranger(&self) -> Option<String> {
        self.stranger.borrow().as_ref().map(|(_, words)| words.clone())
    }

    /// True if a line is due that says that an answer does not come.
    pub(super) fn is_to_be_logged(&self, now: Instant) -> bool {
        let is_due = self.logged.get().is_none_or(|at| now.duration_since(at) >= LINES_APART);
        if is_due {
            self.logged.set(Some(now));
        }
        is_due
    }

    /// An answer broke off.
    pub(super) fn broke_off(&self) {
        self.failed.set(Some(Instant::now()));
    }

    /// True if what was asked since the last failure was answered, at least once.
    pub(super) fn is_there(&self) -> bool {
        self.asked.get().is_some_and(|asked| Some(asked) >= self.failed.get())
    }

    /// Waits while the side is away and somebody else asks whether it is back. `None` if it is, or if it is time to see;
    /// otherwise it is the caller who asks from now on.
    pub(super) async fn wait_for_return(self: &Rc<Self>) -> Option<Probe> {
        let back = async {
            let mut spread = Duration::ZERO;
            loop {
                let news = self.news.notified();
                if self.is_there() {
                    sleep(spread).await;
                    return None;
                }
                spread = RETURN.mul_f64(fastrand::f64());
                if !self.probing.replace(true) {
                    return Some(Probe(Rc::clone(self)));
                }
                news.await;
            }
        };
        timeout(AWAY.mul_f64(0.5 + fastrand::f64() / 2.0), back).await.ok()?
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
    async fn one_asks_for_all_whether_a_side_is_back() {
        let contact = Rc::new(Contact::default());
        let away = || contact.failed(Instant::now(), &Error::Unreachable("reset".into()));
        away();
        let probe = contact.wait_for_return().await;
        assert!(probe.is_some(), "nobody else does");
        let start = Instant::now();
        let another = contact.wait_for_return().await;
        assert!(
            another.is_none() && start.elapsed() >= AWAY / 2,
            "{:?}",
            start.elapsed()
        );
        // It is back.
        let (start, waits) = (Instant::now(), contact.wait_for_return());
        let returns = async {
            sleep(Duration::from_secs(10)).await;
            contact.answered(Instant::now());
        };
        assert!(tokio::join!(waits, returns).0.is_none());
        assert!(
            start.elapsed() <= Duration::from_secs(10) + RETURN,
            "{:?}",
            start.elapsed()
        );
        // Who asks has no reason to any more.
        tokio::time::advance(Duration::from_millis(5)).await;
        away();
        let (waits, ends) = (contact.wait_for_return(), async { drop(probe) });
        assert!(tokio::join!(waits, ends).0.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_are_refused_until_something_asked_later_is_not() {
        let contact = Contact::default();
        assert!(contact.is_accepted());
        let early = Instant::now();
        tokio::time::advance(Duration::from_millis(5)).await;
        contact.failed(early, &Error::from_answer(401, None, b""));
        assert!(contact.is_there() && contact.is_accepted(), "one request alone");
        contact.failed(early, &Error::Unauthorized(Box::default()));
        assert!(contact.is_there() && !contact.is_accepted());
        contact.answered(early);
        assert!(!contact.is_accepted(), "asked before");
        contact.failed(Instant::now(), &Error::from_answer(403, None, b""));
        assert!(contact.is_accepted(), "another refusal");
    }
}
