//! Whether a request without a proper answer has failed by itself, or the whole side has.
//!
//! No answer in time, a stream that the server has ended, a 502, 503 or 504 of a proxy before the server, a 401: each
//! may come from one slow webhook or one API behind the server, or the side is unreachable, or the credentials have
//! expired. A failure of the whole side stops everything; any other is retried by each object and source by itself. So
//! this is not guessed. It counts as a failure of the side only if a small request that is sent later, [`QUESTION`],
//! fails too. If another request that was sent later was answered, this probe is not needed; and of many requests that
//! fail at the same time, one sends it for all. A connection that breaks, is refused or is found dead (`alive.rs`)
//! needs no probe: it is a failure of the side.
//!
//! After an answer that no Kubernetes API gives (a page, a redirect, a bare 404), the same probe shows whether one is
//! there at all. Only log lines depend on that.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Method;
use tokio::time::Instant;

use super::Cluster;
use super::exchange::request;
use crate::error::first_line;
use crate::figures::Verb;
use crate::logging::log_line;
use crate::{Body, Error};

/// A path that every API server answers to all whose credentials it accepts, in some hundred bytes. A refusal is an
/// answer too.
const QUESTION: &str = "/api";
/// How long the answer may take on a link over which nothing else moves.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);
/// The most that is read of its answer.
const ANSWER_LIMIT: usize = 16 << 10;
/// The same on a busy link: it may be waiting behind other bodies.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

impl Cluster {
    /// The error of a request that began then, once it is known whether the request or the whole side has failed.
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

    /// True if the side answers any request from this time on.
    pub(super) async fn lives(&self, since: Instant) -> bool {
        if !self.contact.is_heard_since(since) {
            self.check(since).await;
        }
        self.contact.is_heard_since(since)
    }

    /// Asks whether the side answers at all, unless another task has done so since.
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
        let answer = self.while_it_moves(QUESTION_LIMIT, BUSY_LIMIT, sent).await;
        let code = answer.as_ref().and_then(|answer| answer.as_ref().ok());
        self.count(Verb::Read, code.map(|(code, _)| *code), began);
        let answer = match answer {
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
            side = self.name,
            answer = format_args!("{answer:?}")
        );
        match &answer {
            Ok(()) => self.contact.answered(began),
            Err(error) => self.contact.failed(began, error),
        }
        self.contact.is_checked(began);
    }
}

/// The beginning of a body, or as much as arrived before it broke off.
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
