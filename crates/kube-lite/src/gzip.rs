//! Answers that the server has compressed. API servers do that to those of more than 128 kB, but never to watches.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::{Body, Error};

/// The most compressed bytes that are unpacked at a time: fewer if they give more than some ten kilobytes.
const BITE: usize = 1024;

/// The state of a compressed body that is being unpacked.
struct Packed {
    body: Body,
    /// What has arrived and was not unpacked yet.
    rest: Bytes,
    /// Takes a body of several members too, as a proxy may send it: Go clients read such a one.
    unpacked: MultiGzDecoder<Vec<u8>>,
    ended: bool,
}

/// The unpacked form of a compressed body. As with other bodies, not polling it is the back-pressure: there is never
/// more of it in memory than its next piece. A body that is not compressed, or incomplete, ends in
/// [`Error::BadAnswer`].
pub(super) fn unpack(body: Body) -> Body {
    let packed = Packed {
        body,
        rest: Bytes::new(),
        unpacked: MultiGzDecoder::new(Vec::new()),
        ended: false,
    };
    stream::try_unfold(packed, async |mut packed| {
        let piece = packed.next().await?;
        Ok(piece.map(|piece| (piece, packed)))
    })
    .boxed_local()
}

impl Packed {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let bad = |error: std::io::Error| Error::BadAnswer(format!("a compressed body: {error}"));
        while !self.ended {
            if self.rest.is_empty() {
                if let Some(more) = self.body.next().await {
                    self.rest = more?;
                } else {
                    self.ended = true;
                    self.unpacked.try_finish().map_err(bad)?;
                }
            }
            let bite = self.rest.slice(..self.rest.len().min(BITE));
            let taken = self.unpacked.write(&bite).map_err(bad)?;
            if taken == 0 && !bite.is_empty() {
                return Err(bad(std::io::ErrorKind::WriteZero.into()));
            }
            self.rest.advance(taken.min(bite.len()));
            let piece = std::mem::take(self.unpacked.get_mut());
            if !piece.is_empty() {
                return Ok(Some(Bytes::from(piece)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// What comes of a body in pieces of so many bytes, and the longest piece that it came in.
    async fn unpacked(packed: &[u8], pieces: usize) -> Result<(Vec<u8>, usize), Error> {
        let pieces: Vec<_> = packed
            .chunks(pieces)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let mut body = unpack(stream::iter(pieces).boxed_local());
        let (mut all, mut longest) = (Vec::new(), 0);
        while let Some(piece) = body.next().await {
            let piece = piece?;
            longest = longest.max(piece.len());
            all.extend_from_slice(&piece);
        }
        Ok((all, longest))
    }

    fn some_text() -> Vec<u8> {
        let lines = (0..5000_u32).map(|index| format!("line {} {}\n", index, index.wrapping_mul(2_654_435_761)));
        lines.collect::<String>().into_bytes()
    }

    #[tokio::test]
    async fn a_body_comes_out_as_it_went_in_however_it_is_cut() {
        for text in [some_text(), Vec::new()] {
            let packed = packed(&text);
            for pieces in [1, 7, BITE, usize::MAX] {
                assert_eq!(unpacked(&packed, pieces).await.unwrap().0, text, "{pieces}");
            }
        }
    }

    #[tokio::test]
    async fn a_body_of_several_members_is_one() {
        let (text, other) = (some_text(), b"and more".as_slice());
        for members in [&[&text[..], other][..], &[other, &text, other], &[&b""[..], other, b""]] {
            let packed: Vec<u8> = members.iter().flat_map(|member| packed(member)).collect();
            for pieces in [1, 7, BITE, usize::MAX] {
                assert_eq!(unpacked(&packed, pieces).await.unwrap().0, members.concat(), "{pieces}");
            }
            let cut = &packed[..packed.len() - 3];
            assert!(matches!(unpacked(cut, 100).await, Err(Error::BadAnswer(_))));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_cut_or_changed_or_was_never_compressed_is_no_answer() {
        let whole = packed(&some_text());
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        let cuts = [1, 5, whole.len() / 2, whole.len() - 8, whole.len() - 1];
        let mut bad: Vec<&[u8]> = cuts.iter().map(|&cut| &whole[..cut]).collect();
        bad.extend([&changed[..], b"", b"{\"kind\":\"List\"}"]);
        for body in bad {
            let result = unpacked(body, 100).await;
            assert!(
                matches!(result, Err(Error::BadAnswer(_))),
                "{} bytes: {result:?}",
                body.len()
            );
        }
    }

    #[tokio::test]
    async fn a_small_body_that_stands_for_a_huge_one_comes_in_pieces() {
        let huge = vec![b' '; 64 << 20];
        let (all, longest) = unpacked(&packed(&huge), usize::MAX).await.unwrap();
        assert_eq!(all.len(), huge.len());
        assert!(longest <= 128 << 10, "{longest}");
    }
}
