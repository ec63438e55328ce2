//! Seeded fuzzing of everything that reads data from a server, a config or a file: none of it may end the process.
//!
//! Each target is a test called `fuzz_…` beside what it is about, and tries a thousand inputs in `cargo test`. For longer
//! runs, one after the other, each for so many seconds:
//!
//! ```text
//! EDGE_SYNCER_FUZZ_SECONDS=3600 cargo test --release --workspace --lib fuzz_ -- --nocapture --test-threads=1
//! ```
//!
//! Inputs come from the samples of the target: bytes are changed, parts left out, repeated, or put in from other samples.
//! A failure names the seed and shows the input; `EDGE_SYNCER_FUZZ_SEED` begins with that seed.

use std::time::Duration;

use tokio::time::Instant;

/// Inputs that are tried if no time is given.
const ITERATIONS: u64 = 1000;
/// Texts that parsers have had trouble with before.
const WORDS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "null",
    "true",
    "-0.0",
    "1e999",
    "18446744073709551616",
    "\\ud83d",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "/",
    "%2F",
    "..",
    "*",
    "\n",
    " ",
];

/// What is being tried, printed if it fails.
struct Trying<'a> {
    target: &'a str,
    seed: u64,
    input: Vec<u8>,
}

impl Drop for Trying<'_> {
    #[expect(
        clippy::print_stderr,
        reason = "the test has failed, and people need to know at what"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let shown = String::from_utf8_lossy(self.input.get(..4000).unwrap_or(&self.input)).into_owned();
            eprintln!("fuzz target={} seed={} input={shown:?}", self.target, self.seed);
        }
    }
}

/// Gives inputs made of `samples` to `check`, which panics if one does harm.
#[expect(clippy::print_stderr, reason = "how much was tried is the result of a long run")]
pub fn fuzz(target: &str, samples: &[&[u8]], mut check: impl FnMut(&[u8], &mut fastrand::Rng)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let time = number("EDGE_SYNCER_FUZZ_SECONDS").map(Duration::from_secs);
    let first = number("EDGE_SYNCER_FUZZ_SEED").unwrap_or(0);
    let begin = Instant::now();
    let mut seed = first;
    loop {
        let tried = seed.wrapping_sub(first);
        match time {
            Some(time) if begin.elapsed() >= time => break,
            None if tried >= ITERATIONS => break,
            _ => {}
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let trying = Trying {
            target,
            seed,
            input: input(&mut random, samples),
        };
        check(&trying.input, &mut random);
        seed = seed.wrapping_add(1);
    }
    eprintln!(
        "fuzz target={target} seconds={} iterations={}",
        begin.elapsed().as_secs(),
        seed.wrapping_sub(first)
    );
}

fn input(random: &mut fastrand::Rng, samples: &[&[u8]]) -> Vec<u8> {
    let mut text = random.choice(samples).copied().unwrap_or_default().to_vec();
    for _ in 0..random.usize(0..8) {
        let at = random.usize(0..=text.len());
        let end = (at + random.usize(0..40)).min(text.len());
        match random.u32(0..10) {
            0 => text.extend(random.choice(samples).copied().unwrap_or_default()),
            1 => text.truncate(at),
            2 => drop(text.drain(at..end)),
            3 => {
                let part = text[at..end].repeat(random.usize(1..20));
                text.splice(at..at, part);
            }
            4 => {
                let other = random.choice(samples).copied().unwrap_or_default();
                let from = random.usize(0..=other.len());
                let to = (from + random.usize(0..80)).min(other.len());
                text.splice(at..end, other[from..to].iter().copied());
            }
            5 => drop(text.splice(at..at, [random.u8(..)])),
            6 if random.u32(0..20) == 0 => {
                let word = random.choice(WORDS).unwrap_or_default();
                let many = word.repeat(random.usize(1..70_000) / word.len());
                text.splice(at..at, many.into_bytes());
            }
            7 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.u32(0..8);
                }
            }
            _ => {
                let word = random.choice(WORDS).unwrap_or_default();
                text.splice(at..end.min(at + 1), word.bytes());
            }
        }
    }
    text
}
