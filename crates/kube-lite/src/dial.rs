//! What makes a connection, whatever its layers are.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{self as legacy, Connected};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

/// Any stream behind a pointer: with or without a proxy, hyper and TLS are compiled for this one type.
pub(super) struct Stream(Box<dyn Transport>);

pub(super) trait Transport: Read + Write + legacy::Connection + Send + Unpin {}

impl<T: Read + Write + legacy::Connection + Send + Unpin> Transport for T {}

/// Makes connections.
pub(super) type Dial = BoxCloneSyncService<Uri, Stream, BoxError>;

/// Turns any connector into that type.
pub(super) fn erase<C>(connector: C) -> Dial
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Transport + 'static,
    C::Error: Into<BoxError> + 'static,
    C::Future: Send + 'static,
{
    BoxCloneSyncService::new(
        connector
            .map_response(|stream| Stream(Box::new(stream)))
            .map_err(Into::into),
    )
}

impl legacy::Connection for Stream {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write_vectored(cx, bufs)
    }
}
