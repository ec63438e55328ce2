//! The real implementation of the border: a kube client.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt};
use http_body_util::BodyExt;
use kube::client::Body as KubeBody;

use super::connect::Connection;
use super::{ApiServer, Error, Response, gzip};

/// An API server behind a kube client, which adds the server's address, credentials and TLS.
pub struct RealServer(pub Connection);

impl ApiServer for RealServer {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        async move {
            let request = request.map(KubeBody::from);
            let response = self.0.client.send(request).await.map_err(|error| unreachable(&error))?;
            let (head, body) = response.into_parts();
            let retry_after = head
                .headers
                .get(http::header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs);
            let packed = head
                .headers
                .get(http::header::CONTENT_ENCODING)
                .is_some_and(|it| it == "gzip");
            let body = body
                .into_data_stream()
                .map(|chunk| chunk.map_err(|error| unreachable(&error)))
                .boxed_local();
            let body = if packed { gzip::unpack(body) } else { body };
            Ok(Response {
                status: head.status.as_u16(),
                retry_after,
                body,
            })
        }
        .boxed_local()
    }

    fn bytes_moved(&self) -> u64 {
        self.0.moved.bytes()
    }
}

fn unreachable(error: &dyn StdError) -> Error {
    let words = chain(error);
    // kube and hyper begin with the names of their own types, which help nobody.
    let words = words.trim_start_matches("ServiceError: ");
    let words = words.strip_prefix("client error (Connect): ").unwrap_or(words);
    // rustls ends with the address of its manual.
    let words = words.split(": https://docs.rs/").next().unwrap_or(words);
    Error::Unreachable(words.to_owned())
}

/// The whole chain of causes: the outermost one of a connection error says nothing that helps.
pub(super) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            write!(text, ": {cause_text}").expect("writing to a String cannot fail");
        }
        source = cause.source();
    }
    text
}
