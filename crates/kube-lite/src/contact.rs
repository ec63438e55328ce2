//! When a side last answered, and when it last failed to; and which task asks whether it is back. `verbs/verdict.rs`
//! decides what counts as either, and reports it here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use super::figures::Figures;
use super::refused::Refused;

/// How long tasks that do not ask themselves wait for a side that is unreachable.
const AWAY: Duration = Duration::from_secs(300);
/// The time between two lines about answers that do not come.
const LINES_APART: Duration = Duration::from_secs(60);
/// How long after an answer of a Kubernetes API another answer, which may come from something else, does not count
/// against it.
const PROOF: Duration = Duration::from_secs(60);
/// The time over which all of them begin to send requests again when it is back.
const RETURN: Duration = Duration::from_secs(2);

/// Contact with a side. Times are those of requests, so that answers to requests from before an outage do not end it.
#[derive(Debug, Default)]
pub(super) struct Contact {
    /// When the latest of the requests that were answered began.
    asked: Cell<Option<Instant>>,
    /// When a request last got no answer.
    failed: Cell<Option<Instant>>,
    /// When the latest of the requests began that were not refused for their credentials.
    accepted: Cell<Option<Instant>>,
    /// When the credentials were last refused.
    refused: Cell<Option<Instant>>,
    /// While they are refused: when to ask again.
    pub(super) credentials: Refused,
    /// Held by the task that asks whether the whole side fails.
    pub(super) checking: Mutex<()>,
    /// When the last such request began.
    checked: Cell<Option<Instant>>,
    /// When the latest of the requests began that were answered as only a Kubernetes API does.
    proved: Cell<Option<Instant>>,
    /// What answers instead of one, in its words, with the time at which the request that showed it began.
    stranger: RefCell<Option<(Instant, String)>>,
    /// When it was logged last that an answer does not come.
    logged: Cell<Option<Instant>>,
    /// A task asks whether the side is back.
    probing: Cell<bool>,
    /// Notified when it may be back, or no task asks any more.
    news: Notify,
    /// How often it was logged that the credentials end.
    pub(super) end_notices: Cell<u64>,
    /// What is counted.
    pub(super) figures: Rc<Figures>,
}

/// Held by the task that asks whether a side is back, at intervals of its own.
#[derive(Debug)]
pub struct Probe(Rc<Contact>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.probing.set(false);
        self.0.news.notify_waiters();
    }
}

impl Contact {
    /// One that counts into these figures.
    pub(super) fn counting(figures: &Rc<Figures>) -> Self {
        Self {
            figures: Rc::clone(figures),
            ..Self::default()
        }
    }

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
            // It says nothing about the side.
            _ if error.is_no_answer() => {}
            Error::Unauthorized(_) => {
                self.is_heard(began);
                self.refused.set(Some(Instant::now()));
            }
            Error::Status(status) if status.code == 401 => self.is_heard(began),
            _ => self.answered(began),
        }
    }

    /// True if the server has answered a request from this time or later.
    pub(super) fn is_heard_since(&self, time: Instant) -> bool {
        self.asked.get().is_some_and(|asked| asked >= time)
    }

    /// True if it has, and did not refuse the credentials.
    pub(super) fn is_accepted_since(&self, time: Instant) -> bool {
        self.accepted.get().is_some_and(|accepted| accepted >= time)
    }

    /// True if a task has begun to ask whether the side answers at all, at this time or later.
    pub(super) fn is_checked_since(&self, time: Instant) -> bool {
        self.checked.get().is_some_and(|checked| checked >= time)
    }

    /// A task that asked at that time whether the side answers at all has the result.
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

    /// Something else has answered the request, which began then, for a path that every Kubernetes API has.
    pub(super) fn is_stranger(&self, began: Instant, words: String) {
        *self.stranger.borrow_mut() = Some((began, words));
    }

    /// True if a request that began then, and whose answer is not that of a Kubernetes API, concerns only that path,
    /// not the whole server.
    pub(super) fn is_proved_about(&self, began: Instant) -> bool {
        let proved = self.proved.get();
        self.stranger.borrow().is_none() && proved.is_some_and(|at| began.duration_since(at) < PROOF)
    }

    /// What answers in the place of a Kubernetes API, in its words, if something else does.
    pub(super) fn stranger(&self) -> Option<String> {
        self.stranger.borrow().as_ref().map(|(_, words)| words.clone())
    }

    /// True if it has to be logged now that an answer does not come.
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

    /// True if a request from after the last failure was answered.
    pub(super) fn is_there(&self) -> bool {
        self.asked.get().is_some_and(|asked| Some(asked) >= self.failed.get())
    }

    /// Waits while the side is unreachable and another task asks whether it is back. `None` if it is, or if the wait is
    /// over; otherwise the caller is the one that asks from now on.
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

    /// True if the credentials were accepted since they were last refused.
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
