//! Whose failure it is when a request gets no proper answer: its own, or that of the whole side.
//!
//! No answer in time, a stream that the server has ended, a 502, 503 or 504 of whatever stands before the server, a 401:
//! each may be one slow webhook or one API behind the server, or the side is away, or the credentials have expired. What
//! is taken for the whole side stops everything, and what is not is tried again by each object and source for itself; so
//! neither is guessed. It is the side's only if the side also fails a small question, [`QUESTION`], that was asked later.
//! If anything else was asked since and answered, the question is not needed; and of many that fail at once, one asks for
//! all. A connection that breaks, is refused or is found dead (`alive.rs`) needs no question: it is the side's.
//!
//! The same question tells whether a Kubernetes API is there at all, where an answer came that none gives: a page, a
//! redirect, a bare 404. Nothing hangs on that but what people read.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Method;
use tokio::time::Instant;

use super::Cluster;
use super::exchange::request;
use crate::cluster::error::first_line;
use crate::cluster::{Body, Error};
use crate::logging::log_line;

/// What every API server answers to everybody whose credentials it accepts, in some hundred bytes. A refusal is an answer
/// too.
const QUESTION: &str = "/api";
/// How long the answer may take on a link over which nothing else moves.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);
/// Its answer is not read further.
const ANSWER_LIMIT: usize = 16 << 10;
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
            error => {
                if error.may_be_of_no_api() && !(error.is_bare() && contact.is_proved_about(began)) {
                    self.check(began).await;
                }
                error
            }
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
        let sent = async {
            let answer = self.server.send(question?).await?;
            Ok((answer.status, begin_of(answer.body).await))
        };
        let answer = match self.while_it_moves(QUESTION_LIMIT, BUSY_LIMIT, sent).await {
            Some(Ok((200..=299, body))) if is_of_api(&body) => {
                self.contact.is_api(began);
                Ok(())
            }
            Some(Ok((200..=299, body))) => {
                self.contact.is_stranger(began, first_line(&body));
                Ok(())
            }
            Some(Ok((status, body))) => Err(Error::from_answer(status, None, &body)),
            Some(Err(error)) => Err(error),
            None => Err(Error::Unreachable("no answer".into())),
        };
        match &answer {
            Err(error) if error.may_be_of_no_api() => self.contact.is_stranger(began, error.to_string()),
            Err(error) if error.is_of_api() => self.contact.is_api(began),
            _ => {}
        }
        log_line!(
            Debug,
            SideProbed,
            "is it the whole side?",
            side = self.side.word(),
            answer = format_args!("{answer:?}")
        );
        match &answer {
            Ok(()) => self.contact.answered(began),
            Err(error) => self.contact.failed(began, error),
        }
        self.contact.is_checked(began);
    }
}

/// As much of a body as is read, or as came before it broke off.
async fn begin_of(mut body: Body) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        all.extend_from_slice(&piece);
        if all.len() >= ANSWER_LIMIT {
            break;
        }
    }
    all
}

/// True for the answer of an API server, which is an object of some kind.
fn is_of_api(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Wire {
        #[serde(rename = "kind")]
        _kind: String,
    }
    serde_json::from_slice::<Wire>(body).is_ok()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
