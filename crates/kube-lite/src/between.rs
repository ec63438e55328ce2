//! What stands between a side and its server: it sees each request, and may send another one or answer itself.

use std::rc::Rc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use http::Request;
use secrecy::SecretString;

use crate::{ApiServer, Credentials, Error, Place, Response};

/// Stands between a side and its server.
pub trait Between {
    /// Answers a request, with what the server says to it or to another one.
    fn send<'a>(
        &'a self,
        server: &'a dyn ApiServer,
        request: Request<Bytes>,
    ) -> LocalBoxFuture<'a, Result<Response, Error>>;
}

/// A server behind something else. It is the same in all but its answers.
pub(crate) struct Through<B>(pub(crate) Rc<dyn ApiServer>, pub(crate) B);

impl<B: Between> ApiServer for Through<B> {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        self.1.send(&*self.0, request)
    }

    fn link_bytes(&self) -> [u64; 2] {
        self.0.link_bytes()
    }

    fn time(&self) -> Option<u64> {
        self.0.time()
    }

    fn place(&self) -> Rc<Place> {
        self.0.place()
    }

    fn moves(&self) -> u64 {
        self.0.moves()
    }

    fn credentials(&self) -> u64 {
        self.0.credentials()
    }

    fn in_force(&self) -> Rc<Credentials> {
        self.0.in_force()
    }

    fn credentials_end(&self) -> Option<u64> {
        self.0.credentials_end()
    }

    fn use_token(&self, token: SecretString) {
        self.0.use_token(token);
    }

    fn check_files(&self) {
        self.0.check_files();
    }
}

/// An answer of one piece.
pub fn answer(status: u16, is_fair: bool, body: impl Into<Bytes>) -> Response {
    Response {
        status,
        retry_after: None,
        is_fair,
        body: futures_util::stream::iter([Ok(body.into())]).boxed_local(),
    }
}
