//! What happened in a run, as lines: the last of them are printed when a promise is broken, and a hash of all tells
//! whether two runs were the same.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

/// Lines that are kept.
const KEPT: usize = 40_000;
/// Lines printed of the end of a run, and of the history of one object.
pub const SHORT: usize = 60;

/// See the module's doc.
pub struct Trace {
    start: Instant,
    lines: VecDeque<(Duration, String)>,
    hasher: DefaultHasher,
    count: u64,
}

impl Trace {
    /// An empty trace that begins now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            lines: VecDeque::new(),
            hasher: DefaultHasher::new(),
            count: 0,
        }
    }

    /// Adds a line.
    pub fn add(&mut self, line: String) {
        let at = self.start.elapsed();
        (at.as_millis(), &line).hash(&mut self.hasher);
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back((at, line));
    }

    /// How many lines there were, and a hash of them all.
    pub fn fingerprint(&self) -> (u64, u64) {
        (self.count, self.hasher.finish())
    }

    /// Takes the lines out.
    pub fn take(&mut self) -> Vec<(Duration, String)> {
        std::mem::take(&mut self.lines).into()
    }
}

/// The last lines, at most so many, and those about each of `subjects` (an object's `namespace/name`).
pub fn story(lines: &[(Duration, String)], subjects: &[String], most: usize) -> String {
    let mut story = String::new();
    for subject in subjects {
        let _ = writeln!(story, "--- history of {subject}");
        let about = |line: &&(Duration, String)| {
            line.1.match_indices(subject.as_str()).any(|(at, _)| {
                let next = line.1[at + subject.len()..].chars().next();
                next.is_none_or(|next| next == ' ' || next == ',')
            })
        };
        print(&mut story, lines.iter().filter(about), most);
    }
    let _ = writeln!(story, "--- the end");
    print(&mut story, lines.iter(), most);
    story
}

fn print<'a>(story: &mut String, lines: impl DoubleEndedIterator<Item = &'a (Duration, String)>, most: usize) {
    let mut last: Vec<_> = lines.rev().take(most).collect();
    last.reverse();
    for (at, line) in last {
        let _ = writeln!(story, "{:>12.3} {line}", at.as_secs_f64());
    }
}
