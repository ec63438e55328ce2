//! Bodies that are sent in small pieces.
//!
//! API servers accept frames of 256 kB, but process a frame only when all of it is there: at 64 kbit/s they would send
//! nothing for half a minute, and our own pings would wait as long.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The largest piece, in bytes: 2 s at 64 kbit/s.
const PIECE: usize = 16 * 1024;

/// A body that is sent in small pieces, its length known before if that of the inner one is.
pub(super) struct Pieces<B> {
    inner: B,
    /// What the inner body has given and was not sent yet.
    rest: Bytes,
}

impl<B> Pieces<B> {
    pub(super) fn of(inner: B) -> Self {
        Self {
            inner,
            rest: Bytes::new(),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Pieces<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn a_large_body_goes_in_small_pieces_and_tells_its_length() {
        for length in [0, 1, PIECE, 2 * PIECE + 1] {
            let mut body = Pieces::of(Full::new(Bytes::from(vec![b'x'; length])));
            let mut left = length;
            loop {
                assert_eq!(body.size_hint().exact(), Some(left as u64));
                let Some(frame) = body.frame().await else { break };
                let piece = frame.unwrap().into_data().unwrap().len();
                assert!((1..=PIECE).contains(&piece), "{piece}");
                left -= piece;
            }
            assert_eq!(left, 0);
            assert!(body.is_end_stream());
        }
    }
}
