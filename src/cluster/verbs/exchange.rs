//! One request and its answer, with the patience that slow links need.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{Method, Request};
use tokio::time::{Instant, timeout};

use super::Cluster;
use crate::cluster::{Body, Error, Response};

/// How long the head of an answer, or the next piece of a body, may take before the side counts as unreachable, on a
/// link over which nothing else moves.
///
/// Not the time of a whole transfer: a large list over a slow link goes on as long as bytes keep coming.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take while the link is busy: what was asked for may be waiting behind other bodies, 64 kB of each
/// stream, which at 64 kbit/s is 8 s each.
const BUSY_LIMIT: Duration = Duration::from_secs(300);
/// A link that moves fewer bytes than this in [`ANSWER_LIMIT`] is not busy: answers to pings and bookmarks are fewer.
const BUSY: u64 = 4096;
/// What a large object may take to send is added to [`BUSY_LIMIT`]: an eighth of a link with 64 kbit/s.
const SLOWEST_UPLOAD: u64 = 1024;
/// Bodies on their way to the server at once, in kB: what a link with 64 kbit/s sends in 16 s. API servers end a write
/// that is not complete after 34 s, so many large ones side by side would all fail; a larger one goes alone. A link with
/// 600 ms of latency still carries 200 kB/s.
pub(super) const UPLOADS: u32 = 128;

impl Cluster {
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        kind: Option<&str>,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        let request = request(method, path, accept, kind, body);
        self.exchange(request).await.map(|(_, body)| body)
    }

    /// Sends a request once there is room for its body, and reads the answer to its end: a write is answered with the
    /// whole object, so the room is needed until then.
    pub(super) async fn exchange(&self, request: Request<Bytes>) -> Result<(u16, Bytes), Error> {
        let kilobytes = u32::try_from(request.body().len().div_ceil(1024)).unwrap_or(UPLOADS);
        let room = self.uploads.acquire_many(kilobytes.min(UPLOADS)).await;
        let _room = room.expect("it is never closed");
        let response = self.answer(request).await?;
        Ok((response.status, self.collect(response.body).await?))
    }

    /// Sends a request and turns every answer that is no success into an error.
    pub(super) async fn answer(&self, request: Request<Bytes>) -> Result<Response, Error> {
        self.rate.turn().await;
        log::trace!(
            "request side={} method={} path={}",
            self.side,
            request.method(),
            request.uri()
        );
        let upload = Duration::from_secs(request.body().len() as u64 / SLOWEST_UPLOAD);
        let began = Instant::now();
        let sent = self.patiently(BUSY_LIMIT + upload, "no answer", self.server.send(request));
        let answer = match sent.await.flatten() {
            Ok(response) if (200..300).contains(&response.status) => Ok(response),
            Ok(refusal) => {
                let body = self.collect(refusal.body).await.unwrap_or_default();
                Err(Error::from_answer(refusal.status, refusal.retry_after, &body))
            }
            Err(error) => Err(error),
        };
        match &answer {
            Err(error) => self.contact.failed(began, error),
            Ok(_) => self.contact.answered(began),
        }
        answer
    }

    /// The next piece of a body.
    pub(in crate::cluster) async fn chunk(&self, body: &mut Body) -> Result<Option<Bytes>, Error> {
        let piece = self.patiently(BUSY_LIMIT, "the answer stalled: nothing", body.next());
        let piece = piece.await.and_then(Option::transpose);
        piece.inspect_err(|_| self.contact.broke_off())
    }

    async fn collect(&self, mut body: Body) -> Result<Bytes, Error> {
        let Some(first) = self.chunk(&mut body).await? else {
            return Ok(Bytes::new());
        };
        let mut all = BytesMut::from(first);
        while let Some(next) = self.chunk(&mut body).await? {
            all.extend_from_slice(&next);
        }
        Ok(all.freeze())
    }

    /// Waits for [`ANSWER_LIMIT`], and as long as the link is busy, up to `most`.
    async fn patiently<F: Future>(&self, most: Duration, what: &str, future: F) -> Result<F::Output, Error> {
        let mut future = pin!(future);
        let start = Instant::now();
        loop {
            let moved = self.server.bytes_moved();
            if let Ok(output) = timeout(ANSWER_LIMIT, &mut future).await {
                return Ok(output);
            }
            // The counter begins again when the client is replaced.
            let busy = self.server.bytes_moved().abs_diff(moved) >= BUSY;
            if !busy || start.elapsed() >= most {
                let seconds = start.elapsed().as_secs();
                return Err(Error::Unreachable(format!("{what} within {seconds} s")));
            }
        }
    }
}

/// A request whose answer may come compressed.
pub(super) fn request(method: Method, path: &str, accept: &str, kind: Option<&str>, body: Bytes) -> Request<Bytes> {
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
        .expect("paths are percent-encoded and headers are constants")
}
