//! One request and its answer, with the patience that slow links need.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use http::{Method, Request, Uri};
use tokio::time::{Instant, timeout};

use super::Cluster;
use crate::covered::Secret;
use crate::figures::Verb;
use crate::json::OBJECT_LIMIT;
use crate::logging::log_line;
use crate::rate::Permit;
use crate::room::SMALL_ANSWER;
use crate::{Body, Error, Response};

/// How long an answer, or the next piece of a body, may take on a link over which nothing else moves, before the side
/// is probed. If it does not answer, it is unreachable; if it does, the request may take longer.
///
/// Not the time of a whole transfer: a large list over a slow link continues as long as bytes keep coming.
const PROBE_AFTER: Duration = Duration::from_secs(20);
/// How often that may happen for one answer: API servers give a write 34 s and a read 60 s, and then answer that it
/// took too long.
const PROBES: u32 = 4;
/// How long an answer may take while the link is busy: it may be waiting behind other bodies, 64 kB of each stream,
/// which at 64 kbit/s is 8 s each.
const BUSY_LIMIT: Duration = Duration::from_secs(300);
/// A link that moves fewer bytes than this in [`PROBE_AFTER`] is not busy: answers to pings and bookmarks are smaller.
const BUSY: u64 = 4096;
/// The bytes per second with which a large object is sent at least, an eighth of a link with 64 kbit/s: the time that
/// follows is added to these limits.
const SLOWEST_UPLOAD: u64 = 1024;
/// Bodies on their way to the server at once, in kB: what a link with 64 kbit/s sends in 16 s. API servers end a write
/// that is not complete after 34 s, so many large ones at the same time would all fail; a larger one is sent alone. A
/// link with 600 ms of latency still carries 200 kB/s.
pub(super) const UPLOADS: u32 = 128;

/// A link over which nothing has moved for so long has sent what it was given. Far more than its latency.
const UPLOADED: Duration = Duration::from_secs(3);
/// What still moves after this time, and that of the body, is something else.
const LONGEST_UPLOAD: Duration = Duration::from_secs(24);
/// The largest answer to a write that is read. It is one object, which is at most 1.5 MiB in etcd, and `managedFields`.
const WRITTEN_LIMIT: usize = 4 << 20;
/// The largest error answer that is read: of a longer one the code alone counts.
const REFUSAL_LIMIT: usize = 1 << 20;

impl Cluster {
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        kind: Option<&str>,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        let request = request(method, path, accept, kind, body)?;
        self.exchange(request).await.map(|(_, body)| body)
    }

    /// Sends a request once there is room for its body, and reads the answer to its end: a write is answered with the
    /// whole object, so the room is needed until then. But a body that the server is already working on is no longer on
    /// the link.
    pub(super) async fn exchange(&self, request: Request<Bytes>) -> Result<(u16, Bytes), Error> {
        let kilobytes = u32::try_from(request.body().len().div_ceil(1024)).unwrap_or(UPLOADS);
        // An error would mean that the semaphore is closed, which never happens here.
        let room = self.uploads.acquire_many(kilobytes.min(UPLOADS)).await.ok();
        // After that, since a request that waits for room does not occupy the server.
        let permit = self.turn().await?;
        let longest = LONGEST_UPLOAD + upload(&request);
        let most = if request.method() == Method::GET {
            OBJECT_LIMIT
        } else {
            WRITTEN_LIMIT
        };
        let mut whole = pin!(async {
            let response = self.send(request, permit).await?;
            Ok((response.status, self.collect(response.body, most).await?))
        });
        if let Some(answer) = self.while_it_moves(UPLOADED, longest, &mut whole).await {
            return answer;
        }
        drop(room);
        whole.await
    }

    /// Sends a request and turns every answer that is no success into an error, once it is known whether the request or
    /// the whole side has failed.
    pub(super) async fn answer(&self, request: Request<Bytes>) -> Result<Response, Error> {
        let permit = self.turn().await?;
        self.send(request, permit).await
    }

    /// Waits until a request may be sent. While the credentials are refused, most requests are refused here.
    async fn turn(&self) -> Result<Permit<'_>, Error> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        Ok(self.rate.turn().await)
    }

    async fn send(&self, mut request: Request<Bytes>, permit: Permit<'_>) -> Result<Response, Error> {
        request.extensions_mut().get_or_insert(self.traffic);
        let credentials = self.server.credentials();
        log_line!(
            Trace,
            Request,
            "request",
            side = self.name,
            method = request.method(),
            path = request.uri()
        );
        let (verb, began) = (Verb::of(&request), Instant::now());
        let most = BUSY_LIMIT + upload(&request);
        let about = (request.method().clone(), request.uri().clone());
        let secret = Secret::of(&request);
        let sent = self.patiently(most, "no answer", Some(about), permit.spend(self.server.send(request)));
        let answer = sent.await.flatten();
        self.count(verb, answer.as_ref().ok().map(|response| response.status), began);
        if let Ok(response) = &answer {
            self.rate.server_is_fair(response.is_fair);
        }
        let answer = match answer {
            Ok(response) if (200..300).contains(&response.status) => Ok(response),
            Ok(refusal) => {
                let body = self.collect(refusal.body, REFUSAL_LIMIT).await.unwrap_or_default();
                let mut refusal = Error::from_answer(refusal.status, refusal.retry_after, &body);
                if let Some(secret) = secret {
                    refusal.change_words(|words| secret.hidden_in(words));
                }
                Err(refusal)
            }
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(response) => Ok(response),
            Err(error) => Err(self.judge(began, error).await),
        };
        match &answer {
            Err(error) => self.contact.failed(began, error),
            Ok(_) => self.contact.answered(began),
        }
        if answer.as_ref().map_or_else(Error::is_of_api, |_| true) {
            self.contact.is_api(began);
        }
        if let Err(Error::Unauthorized(status)) = &answer {
            let refused = &self.contact.credentials;
            refused.refuse(credentials, status, Instant::now(), fastrand::f64());
        }
        answer
    }

    /// Counts a request that began then, and has this code for an answer, or none.
    pub(super) fn count(&self, verb: Verb, code: Option<u16>, began: Instant) {
        self.contact.figures.ends(verb, code, began, self.server.time());
    }

    /// The error that makes it needless to send a request.
    fn refusal(&self) -> Option<Error> {
        let refused = &self.contact.credentials;
        if !refused.are_refused() {
            return None;
        }
        self.server.check_files();
        let status = refused.answer(self.server.credentials(), Instant::now())?;
        Some(Error::Unauthorized(Box::new(status)))
    }

    /// The next piece of a body.
    pub(crate) async fn chunk(&self, body: &mut Body) -> Result<Option<Bytes>, Error> {
        let began = Instant::now();
        let piece = self.patiently(BUSY_LIMIT, "the answer stalled: nothing", None, body.next());
        match piece.await.and_then(Option::transpose) {
            Ok(piece) => {
                self.contact.figures.hears();
                Ok(piece)
            }
            Err(error) => {
                let error = self.judge(began, error).await;
                if error.is_unreachable() {
                    self.contact.broke_off();
                }
                Err(error)
            }
        }
    }

    /// A whole body of at most so many bytes, unpacked. A large one waits until no other one is being collected.
    async fn collect(&self, mut body: Body, most: usize) -> Result<Bytes, Error> {
        let mut share = self.room.share();
        let Some(first) = self.chunk(&mut body).await? else {
            return Ok(Bytes::new());
        };
        let mut all = BytesMut::from(first);
        while all.len() <= most {
            share.grow(all.len(), SMALL_ANSWER).await;
            let Some(next) = share.in_time(self.chunk(&mut body)).await? else {
                return Ok(all.freeze());
            };
            all.extend_from_slice(&next);
        }
        Err(Error::too_long(most))
    }

    /// Waits while the side answers: for [`PROBES`] times [`PROBE_AFTER`], and as long as the link is busy, up to `most`.
    async fn patiently<F: Future>(
        &self,
        most: Duration,
        what: &str,
        about: Option<(Method, Uri)>,
        future: F,
    ) -> Result<F::Output, Error> {
        let mut future = pin!(future);
        let start = Instant::now();
        for _ in 0..PROBES {
            let left = most.saturating_sub(start.elapsed());
            if let Some(output) = self.while_it_moves(PROBE_AFTER, left, &mut future).await {
                return Ok(output);
            }
            if start.elapsed() >= most {
                break;
            }
            // Since when nothing has moved.
            let since = start + start.elapsed().saturating_sub(PROBE_AFTER);
            match select(&mut future, pin!(self.lives(since))).await {
                Either::Left((output, _)) => return Ok(output),
                Either::Right((true, _)) => self.log_wait(what, about.as_ref(), start),
                Either::Right((false, _)) => return Err(Error::Unreachable(too_late(what, start))),
            }
        }
        Err(Error::Unanswered(too_late(what, start)))
    }

    /// Logs what has been waited for since `start`, though the side answers others. Not for each request: many may wait
    /// for the same.
    fn log_wait(&self, what: &str, about: Option<&(Method, Uri)>, start: Instant) {
        if !self.contact.is_to_be_logged(Instant::now()) {
            return;
        }
        let about = about.map_or_else(String::new, |(method, uri)| format!("{method} {uri}"));
        log_line!(
            Info,
            StillWaiting,
            "still waiting for a side, which answers others",
            side = self.name,
            because = too_late(what, start),
            request = about
        );
    }

    /// Waits for `quiet`, and as long as the link is busy, up to `most`. `None` if that was too short.
    pub(super) async fn while_it_moves<F: Future>(
        &self,
        quiet: Duration,
        most: Duration,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let start = Instant::now();
        loop {
            let moved = self.bytes_moved();
            if let Ok(output) = timeout(quiet, &mut future).await {
                return Some(output);
            }
            let busy = self.bytes_moved().saturating_sub(moved) >= BUSY;
            if !busy || start.elapsed() >= most {
                return None;
            }
        }
    }

    fn bytes_moved(&self) -> u64 {
        self.server.link_bytes().iter().sum()
    }
}

/// How long a slow link may take to send a request.
fn upload(request: &Request<Bytes>) -> Duration {
    Duration::from_secs(request.body().len() as u64 / SLOWEST_UPLOAD)
}

fn too_late(what: &str, start: Instant) -> String {
    format!("{what} within {} s", start.elapsed().as_secs())
}

/// A request whose answer may be compressed. An error if no server could read it: a path of more than 64 kB.
pub(super) fn request(
    method: Method,
    path: &str,
    accept: &str,
    kind: Option<&str>,
    body: Bytes,
) -> Result<Request<Bytes>, Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::ACCEPT, accept)
        .header(http::header::ACCEPT_ENCODING, "gzip");
    if let Some(kind) = kind {
        request = request.header(http::header::CONTENT_TYPE, kind);
    }
    request
        .body(body)
        .map_err(|error| Error::NotSent(format!("a path of {} bytes: {error}", path.len())))
}
