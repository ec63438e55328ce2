//! The real implementation of the border: connections to a server.

use std::error::Error as StdError;
use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use h2::Reason;
use http_body_util::BodyExt;

use super::causes::chain;
use super::connect::Connection;
use super::error::first_line;
use super::{ApiServer, Error, Response, gzip, http_date, tls};

/// An API server at the other end of a connection, which adds the server's address, credentials and TLS.
pub struct RealServer(pub Connection);

/// A header in each answer of a server with priority and fairness (KEP-1040). Go clients drop their own limit for it,
/// too.
const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

impl ApiServer for RealServer {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        async move {
            let Connection { outgoing, lanes, .. } = &self.0;
            let request = outgoing.complete(request)?;
            let again = request.clone();
            let mut answer = lanes.send(request).await;
            if answer.as_ref().is_err_and(|error| was_not_begun(error)) {
                answer = lanes.send(again).await;
            }
            let response = answer.map_err(|error| failure(&error))?;
            let (head, body) = response.into_parts();
            let is_page = head.status.is_success() && is_web_page(&head.headers);
            let retry_after = head
                .headers
                .get(http::header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs);
            let is_fair = head.headers.contains_key(FLOW_SCHEMA);
            let date = head.headers.get(http::header::DATE);
            let date = date.and_then(|date| date.as_bytes().try_into().ok());
            self.0.date.set(date.unwrap_or_default());
            let packed = head
                .headers
                .get(http::header::CONTENT_ENCODING)
                .is_some_and(|it| it == "gzip");
            let body = body
                .into_data_stream()
                .map(|chunk| chunk.map_err(|error| failure(&error)))
                .boxed_local();
            let mut body = if packed { gzip::unpack(body) } else { body };
            if is_page {
                let begin = body.next().await.and_then(Result::ok).unwrap_or_default();
                return Err(Error::BadAnswer(format!("a web page: {}", first_line(&begin))));
            }
            Ok(Response {
                status: head.status.as_u16(),
                retry_after,
                is_fair,
                body,
            })
        }
        .boxed_local()
    }

    fn link_bytes(&self) -> [u64; 2] {
        self.0.moved.bytes()
    }

    fn time(&self) -> Option<u64> {
        http_date::seconds_of_date(std::str::from_utf8(&self.0.date.get()).ok()?)
    }
}

/// True for a web page: no API server answers a request with one.
fn is_web_page(headers: &http::HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// The HTTP/2 error among the causes of a failure.
fn http2<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a h2::Error> {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.find_map(|cause| cause.downcast_ref())
}

/// True if the server has said that it has not begun to process the request: it was sent while the server was closing
/// the connection (GOAWAY), as it does before it restarts, and to distribute its clients again.
fn was_not_begun(error: &(dyn StdError + 'static)) -> bool {
    http2(error).is_some_and(|http2| {
        let is_refused = http2.is_reset() && http2.reason() == Some(Reason::REFUSED_STREAM);
        http2.is_remote() && (is_refused || http2.is_go_away())
    })
}

/// True if the server has ended this one stream, or the connection in an orderly way: the side need not be unreachable.
fn was_ended(error: &(dyn StdError + 'static)) -> bool {
    http2(error).is_some_and(|http2| {
        let is_closed = http2.is_go_away() && http2.reason() == Some(Reason::NO_ERROR);
        let by_server = http2.is_remote() && (http2.is_reset() || is_closed);
        // The error of h2 for a stream when TLS was closed in an orderly way (`close_notify`). A server that crashes
        // does not do that.
        by_server || http2.get_io().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    })
}

fn failure(error: &(dyn StdError + 'static)) -> Error {
    if let Some(words) = tls::words::of_certificate(error) {
        return Error::Unreachable(words);
    }
    let words = chain(error);
    // hyper begins with the name of its own type, which is of no help.
    let words = words.strip_prefix("client error (Connect): ").unwrap_or(&words);
    // rustls ends with the address of its manual.
    let words = words.split(": https://docs.rs/").next().unwrap_or(words).to_owned();
    if was_ended(error) {
        Error::Unanswered(words)
    } else {
        Error::Unreachable(words)
    }
}
