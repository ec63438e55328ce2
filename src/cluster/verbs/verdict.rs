//! Whose failure it is when a request gets no proper answer: its own, or that of the whole side.
//!
//! No answer in time, a stream that the server has ended, a 502, 503 or 504 of whatever stands before the server, a 401:
//! each may be one slow webhook or one API behind the server, or the side is away, or the credentials have expired. What
//! is taken for the whole side stops everything, and what is not is tried again by each object and source for itself; so
//! neither is guessed. It is the side's only if the side also fails a small question, [`QUESTION`], that was asked later.
//! If anything else was asked since and answered, the question is not needed; and of many that fail at once, one asks for
//! all. A connection that breaks, is refused or is found dead (`alive.rs`) needs no question: it is the side's.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::time::Instant;

use super::Cluster;
use super::exchange::request;
use crate::cluster::Error;

/// What every API server answers to everybody whose credentials it accepts, in some hundred bytes. A refusal is an answer
/// too.
const QUESTION: &str = "/api";
/// How long the answer may take on a link over which nothing else moves.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);
/// The same on a busy link: it may be waiting behind other bodies.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

impl Cluster {
    /// The error of a request that began then, once it is known whose failure it is.
    pub(super) async fn judge(&self, began: Instant, error: Error) -> Error {
        let contact = &self.contact;
        match error {
            Error::Status(status) if status.code == 401 => {
                if !contact.is_accepted_since(began) {
                    self.check(began).await;
                }
                if contact.is_accepted_since(began) {
                    Error::Status(status)
                } else {
                    Error::Unauthorized(status)
                }
            }
            error if error.is_no_answer() && !self.lives(began).await => Error::Unreachable(error.to_string()),
            error => error,
        }
    }

    /// True if the side answers anything that is asked from this time on.
    pub(super) async fn lives(&self, since: Instant) -> bool {
        if !self.contact.is_heard_since(since) {
            self.check(since).await;
        }
        self.contact.is_heard_since(since)
    }

    /// Asks whether the side answers at all, unless somebody has since.
    async fn check(&self, since: Instant) {
        let _turn = self.contact.checking.lock().await;
        if !self.contact.is_checked_since(since) {
            self.ask().await;
        }
    }

    async fn ask(&self) {
        let began = Instant::now();
        let question = request(Method::GET, QUESTION, "application/json", None, Bytes::new());
        let sent = async { self.server.send(question?).await };
        let answer = match self.while_it_moves(QUESTION_LIMIT, BUSY_LIMIT, sent).await {
            Some(Ok(response)) if (200..300).contains(&response.status) => Ok(()),
            Some(Ok(refusal)) => Err(Error::from_answer(refusal.status, None, b"")),
            Some(Err(error)) => Err(error),
            None => Err(Error::Unreachable("no answer".into())),
        };
        log::debug!("is it the whole side? side={} answer={answer:?}", self.side);
        match &answer {
            Ok(()) => self.contact.answered(began),
            Err(error) => self.contact.failed(began, error),
        }
        self.contact.is_checked(began);
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
