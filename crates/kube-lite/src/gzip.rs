//! Answers that the server has compressed. API servers do that to those of more than 128 kB, but never to watches.

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::{Body, Error};

/// The most compressed bytes that are unpacked at a time.
const BITE: usize = 1024;
/// The most bytes that come of it at a time.
const PIECE: usize = 32 << 10;
/// The longest header of a member, with a name and a comment.
const LONGEST_HEADER: usize = 4096;
/// What follows the data of a member: their checksum and their length.
const TRAILER: usize = 8;

/// The state of a compressed body that is being unpacked.
struct Packed {
    body: Body,
    /// What has arrived and was not unpacked yet.
    rest: Bytes,
    unpacked: Members,
}

/// The unpacked form of a compressed body. As with other bodies, not polling it is the back-pressure: there is never
/// more of it in memory than its next piece. A body that is not compressed, or incomplete, ends in
/// [`Error::BadAnswer`].
pub(super) fn unpack(body: Body) -> Body {
    let packed = Packed {
        body,
        rest: Bytes::new(),
        unpacked: Members::new(),
    };
    stream::try_unfold(packed, async |mut packed| {
        let piece = packed.next().await?;
        Ok(piece.map(|piece| (piece, packed)))
    })
    .boxed_local()
}

impl Packed {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let bad = |why: &str| Error::BadAnswer(format!("a compressed body: {why}"));
        loop {
            let bite = &self.rest[..self.rest.len().min(BITE)];
            let (taken, piece) = self.unpacked.take(bite).map_err(bad)?;
            self.rest.advance(taken);
            if !piece.is_empty() {
                return Ok(Some(Bytes::from(piece)));
            }
            if taken > 0 {
                continue;
            }
            if !self.rest.is_empty() {
                return Err(bad("it cannot be unpacked"));
            }
            match self.body.next().await {
                Some(more) => self.rest = more?,
                None if self.unpacked.are_whole() => return Ok(None),
                None => return Err(bad("it ends early")),
            }
        }
    }
}

/// Where in a member the next byte belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Data,
    Trailer,
}

/// The members of a body in the format of RFC 1952: several too, as a proxy may send them, since Go clients read such a
/// body. Only what is between header and trailer is left to the library: its checksums take 37 kB of the program.
struct Members {
    part: Part,
    /// What has arrived of a header or trailer.
    begun: Vec<u8>,
    data: Decompress,
    checksum: u32,
    length: u32,
    /// How many are complete.
    whole: usize,
}

impl Members {
    fn new() -> Self {
        Self {
            part: Part::Header,
            begun: Vec::new(),
            data: Decompress::new(false),
            checksum: !0,
            length: 0,
            whole: 0,
        }
    }

    /// True if the last one has ended, and there was one.
    fn are_whole(&self) -> bool {
        self.whole > 0 && self.part == Part::Header && self.begun.is_empty()
    }

    /// Unpacks some of the input. Returns how much of it, and what came of it: both are nothing if more is needed.
    fn take(&mut self, input: &[u8]) -> Result<(usize, Vec<u8>), &'static str> {
        if self.part == Part::Data {
            return self.unpack(input);
        }
        let Some(&byte) = input.first() else {
            return Ok((0, Vec::new()));
        };
        self.begun.push(byte);
        match self.part {
            Part::Header if is_header(&self.begun)? => {
                self.part = Part::Data;
                self.begun.clear();
            }
            Part::Trailer if self.begun.len() == TRAILER => {
                let expected = [(!self.checksum).to_le_bytes(), self.length.to_le_bytes()].concat();
                if self.begun != expected {
                    return Err("its checksum is wrong");
                }
                let whole = self.whole + 1;
                *self = Self { whole, ..Self::new() };
            }
            _ => {}
        }
        Ok((1, Vec::new()))
    }

    fn unpack(&mut self, input: &[u8]) -> Result<(usize, Vec<u8>), &'static str> {
        let mut piece = Vec::with_capacity(PIECE);
        let before = self.data.total_in();
        let status = self.data.decompress_vec(input, &mut piece, FlushDecompress::None);
        if status.map_err(|_| "it is damaged")? == Status::StreamEnd {
            self.part = Part::Trailer;
        }
        self.checksum = piece.iter().fold(self.checksum, |sum, byte| checksum(sum, *byte));
        self.length = self.length.wrapping_add(u32::try_from(piece.len()).unwrap_or_default());
        // Whoever keeps a part of it keeps all.
        piece.shrink_to_fit();
        let taken = usize::try_from(self.data.total_in() - before).unwrap_or_default();
        Ok((taken, piece))
    }
}

/// True if this is a whole header, false if it is the beginning of one.
fn is_header(begun: &[u8]) -> Result<bool, &'static str> {
    const FIXED: usize = 10;
    const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
    let [checksum, extra, name, comment, reserved] = [2, 4, 8, 16, 0xe0];
    let known = begun.len().min(MAGIC.len());
    if begun[..known] != MAGIC[..known] {
        return Err("it is not compressed");
    }
    let Some(&flags) = begun.get(3).filter(|_| begun.len() >= FIXED) else {
        return Ok(false);
    };
    if flags & reserved != 0 || begun.len() > LONGEST_HEADER {
        return Err("its header is not known");
    }
    let mut at = FIXED;
    if flags & extra != 0 {
        let Some(length) = begun.get(at..at + 2) else {
            return Ok(false);
        };
        at += 2 + usize::from(length[0]) + (usize::from(length[1]) << 8);
    }
    for text in [name, comment] {
        if flags & text != 0 {
            let rest = begun.get(at..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| *byte == 0) else {
                return Ok(false);
            };
            at += length + 1;
        }
    }
    if flags & checksum != 0 {
        at += 2;
    }
    Ok(begun.len() >= at)
}

/// CRC-32 with one more byte, by halves of it.
fn checksum(sum: u32, byte: u8) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut index = 0;
        while index < 16 {
            let mut entry = index;
            let mut bit = 0;
            while bit < 4 {
                entry = (entry >> 1) ^ (0xedb8_8320 * (entry & 1));
                bit += 1;
            }
            table[index as usize] = entry;
            index += 1;
        }
        table
    };
    let half = |sum: u32| (sum >> 4) ^ TABLE[(sum & 15) as usize];
    half(half(sum ^ u32::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};

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
    async fn a_header_may_have_a_name_a_comment_and_more() {
        let text = some_text();
        for (extra, name, comment) in [(&b""[..], "", "x"), (b"ab", "n", ""), (&[0; 300], "name", "comment")] {
            let header = GzBuilder::new().extra(extra).filename(name).comment(comment);
            let mut encoder = header.write(Vec::new(), Compression::fast());
            encoder.write_all(&text).unwrap();
            let mut packed = encoder.finish().unwrap();
            for pieces in [1, 7, usize::MAX] {
                assert_eq!(unpacked(&packed, pieces).await.unwrap().0, text, "{name} {pieces}");
            }
            packed[3] |= 0x20;
            assert!(matches!(unpacked(&packed, 7).await, Err(Error::BadAnswer(_))));
        }
        let mut endless = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0];
        endless.resize(1 << 20, b'n');
        assert!(matches!(unpacked(&endless, 100).await, Err(Error::BadAnswer(_))));
    }

    #[tokio::test]
    async fn a_body_that_is_cut_or_changed_or_was_never_compressed_is_no_answer() {
        let whole = packed(&some_text());
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        let cuts = [1, 5, whole.len() / 2, whole.len() - 8, whole.len() - 1];
        let mut bad: Vec<&[u8]> = cuts.iter().map(|&cut| &whole[..cut]).collect();
        let [mut checksum, mut length] = [whole.clone(), whole.clone()];
        checksum[whole.len() - 8] ^= 1;
        length[whole.len() - 1] ^= 1;
        let more = [&whole[..], b"\0"].concat();
        bad.extend([&changed[..], &checksum, &length, &more, b"", b"{\"kind\":\"List\"}"]);
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
