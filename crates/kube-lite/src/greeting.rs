//! What an HTTP/2 server says first on a connection: among other things, how many streams it allows on it.
//!
//! hyper respects that number by letting requests wait, and its pool does not report it. So the number is read from the
//! bytes of the connection, in the SETTINGS frame that opens it (RFC 9113, sections 3.4 and 6.5). If a server does not
//! send the setting, or does not speak HTTP/2, the number stays as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::watch;

/// What is assumed until a server says otherwise: what Go's servers allow, and kube-apiserver with them.
const USUAL: u32 = 100;
/// The most that is used: [`super::connect`] has room for so many stalled streams on a connection.
const MOST: u32 = 200;

/// The length of a frame's header.
const HEADER: usize = 9;
/// The type of a SETTINGS frame.
const SETTINGS: u8 = 4;
/// The identifier of `SETTINGS_MAX_CONCURRENT_STREAMS`.
const MAX_CONCURRENT_STREAMS: u16 = 3;
/// The longest frame that is waited for; settings are six bytes each, and there are ten or so.
const LONGEST: usize = 1024;

/// How many streams the server allows on one connection, as it said last.
#[derive(Clone, Debug)]
pub(super) struct Streams(Arc<AtomicU32>);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(USUAL)))
    }
}

impl Streams {
    pub(super) fn allowed(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Zero, which a server may say for a moment, is as good as one: requests wait.
    pub(super) fn set(&self, allowed: u32) {
        self.0.store(allowed.clamp(1, MOST), Ordering::Relaxed);
    }
}

/// How connections report that they are made. True from the first one on.
pub(super) type Up = Arc<watch::Sender<bool>>;

/// Reads the beginning of a connection.
#[derive(Clone, Debug)]
pub(super) struct Greeting {
    seen: Vec<u8>,
    streams: Streams,
    up: Up,
}

impl Greeting {
    pub(super) fn new(streams: Streams, up: Up) -> Self {
        Self {
            seen: Vec::new(),
            streams,
            up,
        }
    }

    /// The connection is made, and there is no number in its beginning.
    pub(super) fn is_none(&self) {
        self.up.send_replace(true);
    }

    /// Reads what has arrived. True as soon as nothing more is needed.
    pub(super) fn heard(&mut self, bytes: &[u8]) -> bool {
        let missing = (HEADER + LONGEST).saturating_sub(self.seen.len());
        self.seen.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        match parse(&self.seen) {
            Parsed::TooShort => return false,
            Parsed::Streams(allowed) => self.streams.set(allowed),
            Parsed::Nothing => {}
        }
        self.up.send_replace(true);
        true
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// More has to come.
    TooShort,
    Streams(u32),
    /// No settings, or none of streams.
    Nothing,
}

fn parse(seen: &[u8]) -> Parsed {
    let Some(&[high, middle, low, kind]) = seen.first_chunk() else {
        return Parsed::TooShort;
    };
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if kind != SETTINGS || length > LONGEST {
        return Parsed::Nothing;
    }
    let Some(settings) = seen.get(HEADER..HEADER + length) else {
        return Parsed::TooShort;
    };
    // The last one counts.
    let allowed = settings.chunks_exact(6).rev().find_map(|setting| {
        let (identifier, value) = setting.split_first_chunk()?;
        let is_meant = u16::from_be_bytes(*identifier) == MAX_CONCURRENT_STREAMS;
        is_meant.then_some(u32::from_be_bytes(*value.first_chunk()?))
    });
    allowed.map_or(Parsed::Nothing, Parsed::Streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame on stream 0 that announces a length.
    fn frame(kind: u8, length: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, length, kind, 0, 0, 0, 0, 0], payload].concat()
    }

    const WINDOW: [u8; 6] = [0, 4, 0, 3, 0, 0];
    const TWENTY: [u8; 6] = [0, 3, 0, 0, 0, 20];

    #[test]
    fn reads_how_many_streams_are_allowed_however_the_bytes_come() {
        for (said, allowed) in [
            (frame(4, 12, &[WINDOW, TWENTY].concat()), 20),
            (frame(4, 12, &[[0, 3, 0, 0, 0, 7], TWENTY].concat()), 20),
            (frame(4, 6, &[0, 3, 255, 255, 255, 255]), MOST),
            (frame(4, 6, &[0, 3, 0, 0, 0, 0]), 1),
            // Settings without that one.
            (frame(4, 6, &WINDOW), USUAL),
            (frame(4, 0, &[]), USUAL),
            (frame(4, 5, &TWENTY[..5]), USUAL),
            (frame(0, 6, &TWENTY), USUAL),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), USUAL),
            ([&[255, 255, 255, 4, 0, 0, 0, 0, 0], &TWENTY[..]].concat(), USUAL),
        ] {
            for piece in [1, 2, 7, 1000] {
                let streams = Streams::default();
                let up = Up::default();
                let mut greeting = Greeting::new(streams.clone(), Arc::clone(&up));
                let done = said.chunks(piece).any(|bytes| greeting.heard(bytes));
                assert!(done && *up.borrow(), "{said:?}");
                assert_eq!(streams.allowed(), allowed, "{said:?}");
            }
        }
    }

    #[test]
    fn a_greeting_that_does_not_end_is_waited_for_and_costs_no_more_than_it_may() {
        let mut greeting = Greeting::new(Streams::default(), Up::default());
        assert!(!greeting.heard(&frame(4, 12, &WINDOW)));
        assert!(!*greeting.up.borrow());
        assert!(greeting.heard(&vec![0; 100_000]));
        assert!(greeting.seen.len() <= HEADER + LONGEST);
    }
}
