//! Bodies that are sent in small pieces.
//!
//! API servers accept frames of 256 kB, but process a frame only when all of it is there: at 64 kbit/s they would send
//! nothing for half a minute, and our own pings would wait as long.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The largest piece, in bytes: 2 s at 64 kbit/s.
const PIECE: usize = 16 * 1024;

/// A body that is sent in small pieces, its length known before.
#[derive(Clone)]
pub(super) struct Pieces {
    /// What was not sent yet.
    rest: Bytes,
}

impl Pieces {
    pub(super) fn of(rest: Bytes) -> Self {
        Self { rest }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PIECE);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_large_body_goes_in_small_pieces_and_tells_its_length() {
        for length in [0, 1, PIECE, 2 * PIECE + 1] {
            let mut body = Pieces::of(Bytes::from(vec![b'x'; length]));
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
