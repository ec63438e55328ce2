//! One streak of failures: what was told of it last, and whether another text is worth a line.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use tokio::time::Instant;

/// Lines that a streak has in [`SPAN`]: two faults that take turns would otherwise have one each time.
const LINES: u8 = 3;
const SPAN: Duration = Duration::from_secs(300);

/// One thing that fails.
#[derive(Debug)]
pub(super) struct Streak {
    /// The kind of the text that was told last.
    told: u64,
    begin: Instant,
    lines: u8,
}

impl Streak {
    /// It begins with a line about this text.
    pub(super) fn begin(text: &str, now: Instant) -> Self {
        Self {
            told: kind(text),
            begin: now,
            lines: 1,
        }
    }

    /// True if this text is to have a line: it is of another kind than the last one that had, and there were few.
    pub(super) fn is_news(&mut self, text: &str, now: Instant) -> bool {
        let kind = kind(text);
        if kind == self.told {
            return false;
        }
        if now.duration_since(self.begin) >= SPAN {
            (self.begin, self.lines) = (now, 0);
        }
        if self.lines >= LINES {
            return false;
        }
        self.lines += 1;
        self.told = kind;
        true
    }
}

/// What makes two error texts the same news: the text without digits (versions, ports, times), and without what stands in
/// quotes, which are names and values.
fn kind(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut quoted = false;
    for character in text.chars() {
        quoted ^= character == '"';
        if !quoted && !character.is_ascii_digit() {
            character.hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_text_is_news_and_faults_that_take_turns_are_not_for_long() {
        let begin = Instant::now();
        let mut streak = Streak::begin("port 1: \"web-a\" is invalid", begin);
        for same in ["port 1: \"web-a\" is invalid", "port 22: \"web-b\" is invalid"] {
            assert!(!streak.is_news(same, begin), "{same}");
        }
        let mut lines = 0;
        for _ in 0..100 {
            for text in ["it is too long", "it is forbidden"] {
                lines += u8::from(streak.is_news(text, begin));
            }
        }
        assert_eq!(lines, LINES - 1);
        assert!(streak.is_news("it is gone", begin + SPAN));
    }
}
