//! One streak of failures: since when, which kinds of failure were logged of it, and whether another one is worth a line.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use kube_lite::Error;
use kube_lite::logging::LogReason;
use tokio::time::Instant;

/// How many kinds of failure a streak logs at once. A kind that it has logged is not logged again.
const KINDS: usize = 3;
/// The time between two further lines: something may fail for a year, and be corrected and wrong again meanwhile. Kinds
/// that alternate have no further lines, as long as there are no more than these.
const RARELY: Duration = Duration::from_secs(3600);

/// The last failure of something that fails, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The reason that its line has, or would have.
    pub reason: LogReason,
    /// What was being done, such as a verb; empty where nothing was asked, or too many things fail.
    pub doing: Box<str>,
    /// The server's words, [`shortened`]; empty where too many things fail.
    pub message: Box<str>,
    /// The time of the wall clock at which it began to fail, in RFC 3339.
    pub since: Box<str>,
    /// How often it has failed since then.
    pub tries: u32,
}

/// What was being done when something failed, and how often by then, as it follows on its reason.
pub fn tried(doing: &str, tries: u32) -> String {
    let comma = if doing.is_empty() { "" } else { ", " };
    match tries {
        0 | 1 => format!("{comma}{doing}"),
        tries => format!("{comma}{doing}, tried {tries} times"),
    }
}

/// How many characters of a failure are kept.
const LONGEST: usize = 256;

/// What is kept of these words.
pub fn shortened(words: &str) -> &str {
    let end = words.char_indices().nth(LONGEST).map_or(words.len(), |(end, _)| end);
    &words[..end]
}

/// One thing that fails.
#[derive(Debug)]
pub(super) struct Streak {
    since: Instant,
    /// The same since it last returned.
    pub(super) fails_since: Instant,
    /// The kinds that were logged last, the newest first; 0 where there was none.
    logged: [u32; KINDS],
    /// When the last of them was logged.
    pub(super) last: Instant,
    /// It has had a line, so that its end is to have one.
    pub(super) is_logged: bool,
    /// Since when it works again, if it does. Should it fail soon, the streak continues.
    pub(super) paused: Option<Instant>,
    /// How often it has continued after a pause.
    pub(super) returns: u8,
    /// It has continued after a pause, which is not counted yet: that may soon pass.
    pub(super) has_returned: bool,
    /// The reason that it has in common with others, if any, and whether it has the line for all of them.
    pub(super) shared: Option<(u64, bool)>,
    /// The common reasons for which it has had the line, the newest first; 0 where there was none. It may fail for
    /// several of them in turn, such as several missing permissions.
    said: [u32; KINDS],
    /// The last failure, if it fails now and has more than soon passed.
    pub(super) note: Option<Box<Note>>,
}

impl Streak {
    /// A streak that begins with this kind of failure, or with one that has no line.
    pub(super) fn begin(kind: Option<u32>, now: Instant) -> Self {
        let mut logged = [0; KINDS];
        logged[0] = kind.unwrap_or_default();
        Self {
            since: now,
            fails_since: now,
            logged,
            last: now,
            is_logged: false,
            paused: None,
            returns: 0,
            has_returned: false,
            shared: None,
            said: [0; KINDS],
            note: None,
        }
    }

    /// It continues after a pause. What has never had a kind of failure begins again.
    pub(super) fn returns_at(&mut self, now: Instant) {
        self.fails_since = now;
        if self.logged == [0; KINDS] {
            self.since = now;
        } else {
            self.has_returned = true;
        }
    }

    /// Counts that it has continued after a pause. False if it has not, or that is counted.
    pub(super) fn is_counted_as_return(&mut self) -> bool {
        let has_returned = std::mem::take(&mut self.has_returned);
        self.returns = self.returns.saturating_add(u8::from(has_returned));
        has_returned
    }

    /// True if it has had the line for this common reason.
    pub(super) fn has_said(&self, shared: u64) -> bool {
        self.said.contains(&part_of(shared))
    }

    /// It now has the line for this common reason.
    pub(super) fn says(&mut self, shared: u64) {
        if !self.has_said(shared) {
            self.said.rotate_right(1);
            self.said[0] = part_of(shared);
        }
    }

    /// True if a failure of this kind is to have a line.
    pub(super) fn is_news(&mut self, kind: u32, now: Instant) -> bool {
        let is_full = self.logged.iter().all(|logged| *logged != 0);
        if self.logged.contains(&kind) || is_full && now.duration_since(self.last) < RARELY {
            return false;
        }
        self.logged.rotate_right(1);
        self.logged[0] = kind;
        self.last = now;
        true
    }

    /// True if no kind of failure was logged of it for so long.
    pub(super) fn is_quiet_for(&self, time: Duration, now: Instant) -> bool {
        now.duration_since(self.last) >= time
    }

    /// How long it has lasted.
    pub(super) fn lasted(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }
}

/// What makes two errors the same news: their code and reason, and the words without what may differ each time. That is
/// all with a digit in it (versions, ports, times, request ids), and what is in quotes, which are names and values. The
/// order of the words does not count, since a server may write a list in any order. Never 0.
pub fn kind(error: &Error) -> u32 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(error).hash(&mut hasher);
    match error {
        // The text is a part of the answer, which may be anything.
        Error::BadAnswer(_) => {}
        // A proxy before the server may use any of them.
        Error::Status(status) if matches!(status.code, 502..=504) && status.reason.is_empty() => 502.hash(&mut hasher),
        Error::Status(status) | Error::Unauthorized(status) => {
            (status.code, &status.reason, words(&status.message)).hash(&mut hasher);
        }
        _ => words(&error.to_string()).hash(&mut hasher),
    }
    part_of(hasher.finish())
}

/// The same for a text that is no error.
pub fn kind_of_words(text: &str) -> u32 {
    part_of(words(text))
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a hash is one too")]
fn part_of(hash: u64) -> u32 {
    (hash as u32).max(1)
}

/// A number for the words that count.
fn words(text: &str) -> u64 {
    let unquoted = text.split('"').step_by(2);
    let words = unquoted.flat_map(|part| part.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')')));
    let words = words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    words.fold(0, |sum, word| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> Error {
        let body = serde_json::json!({"kind": "Status", "reason": "Invalid", "message": message});
        Error::from_answer(code, None, body.to_string().as_bytes())
    }

    #[test]
    fn of_the_words_256_characters_are_kept_however_many_bytes_each_has() {
        for letter in ["a", "ü", "語", "🐦"] {
            for (count, kept) in [(0, 0), (1, 1), (255, 255), (256, 256), (257, 256), (5000, 256)] {
                assert_eq!(
                    shortened(&letter.repeat(count)),
                    letter.repeat(kept),
                    "{letter} {count}"
                );
            }
        }
    }

    #[test]
    fn what_may_differ_each_time_makes_no_other_kind() {
        let invalid = |message: &str| kind(&refused(422, message));
        let first = invalid("port 1: \"web-a\" is invalid, request 7f3c-aa: allowed a, b");
        for same in [
            "port 22: \"web-b\" is invalid, request 8e-4bb: allowed a, b",
            "port 1: \"web a 5 ä\" is invalid, request 0: allowed b, a",
        ] {
            assert_eq!(invalid(same), first, "{same}");
        }
        for other in [
            "\"web-a\" is invalid",
            "port 1: \"web-a\" is forbidden, request 7f3c-aa: allowed a, b",
        ] {
            assert_ne!(invalid(other), first, "{other}");
        }
        let away = |code| kind(&Error::from_answer(code, None, b"<html>away</html>"));
        assert_eq!(away(502), away(503));
        assert_ne!(kind(&refused(403, "no")), kind(&refused(422, "no")));
        assert_ne!(
            kind(&Error::Unanswered("no".into())),
            kind(&Error::BadAnswer("no".into()))
        );
    }

    #[test]
    fn a_kind_that_was_logged_is_never_logged_again_in_turn_with_others() {
        let begin = Instant::now();
        let mut streak = Streak::begin(Some(1), begin);
        let mut lines = 0;
        for second in 0..86_400 {
            let kind = second % 3 + 1;
            lines += u32::from(streak.is_news(kind, begin + Duration::from_secs(second.into())));
        }
        assert_eq!(lines, 2, "the second and the third");
    }

    #[test]
    fn however_many_kinds_there_are_a_streak_has_few_lines_and_a_new_one_still_has_one() {
        let begin = Instant::now();
        let mut streak = Streak::begin(Some(1), begin);
        let lines = (1..3600_u32).filter(|&kind| streak.is_news(kind, begin + Duration::from_secs(kind.into())));
        assert_eq!(lines.count(), KINDS - 1);
        assert!(streak.is_news(5000, begin + RARELY + Duration::from_secs(3)));
    }
}
