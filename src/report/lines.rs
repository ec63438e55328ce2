//! The words of the lines, and how they are written.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use driver::failures::{Line, STEADY};
use kube_lite::Error;
use kube_lite::logging::{self, LogReason};
use log::Level;

use super::changes::Word;
use super::subject::{Subject, Topic};
use crate::side::Side;

/// The words about copies that somebody else has changed or deleted, where they have no lines of their own.
pub(super) const DRIFT: Word = ("changed by somebody else, and corrected", LogReason::CopyDrifted);

pub(super) fn log_sums(changes: BTreeMap<(Side, Word), u32>) {
    for ((side, (word, reason)), count) in changes {
        let keys: [(&str, &dyn Display); 2] = [("side", &side.word()), ("more", &count)];
        logging::write(Level::Info, module_path!(), reason, word, &keys);
    }
}

/// The reason and message of the line about a failure.
pub(super) fn reason(subject: &Subject, error: &Error) -> (LogReason, &'static str) {
    match subject {
        Subject::Side(_) => (
            LogReason::SideUnreachable,
            "cannot reach a side, trying again until it answers",
        ),
        Subject::Credentials(_) => (
            LogReason::CredentialsRefused,
            "a side refuses the syncer's credentials, trying again",
        ),
        Subject::Stranger(_) => (
            LogReason::NotAnApi,
            "what answers as a side is no Kubernetes API, trying again",
        ),
        Subject::Thing(_, topic, _) => topic.reason(error),
    }
}

/// Logs that something fails. Only lines about whole sides have the address.
pub(super) fn log_failure(
    subject: &Subject,
    (reason, message): (LogReason, &'static str),
    line: Line,
    server: &str,
    [doing, error, advice]: &[(&str, &dyn Display); 3],
) {
    let note = match line {
        Line::News => String::new(),
        Line::Last => format!(
            "it fails repeatedly; not logged again at this level until it has worked for {}",
            lasted(STEADY)
        ),
    };
    let (server, doing) = match subject {
        Subject::Thing(..) => ("", doing.1),
        _ => (server, &"" as &dyn Display),
    };
    let [(key, name), (space, namespace)] = subject.keys();
    let side = subject.side().word();
    logging::write(
        Level::Warn,
        module_path!(),
        reason,
        message,
        &[
            ("side", &side),
            ("server", &server),
            (key, &name),
            (space, &namespace),
            *error,
            *advice,
            ("doing", doing),
            ("note", &note),
        ],
    );
}

/// Logs that something does not fail any more.
pub(super) fn log_end(subject: &Subject, level: Level, time: Duration) {
    let (reason, message) = match subject {
        Subject::Side(_) => (LogReason::SideReachable, "a side answers again"),
        Subject::Credentials(_) => (
            LogReason::CredentialsAccepted,
            "a side accepts the syncer's credentials again",
        ),
        Subject::Stranger(_) => (LogReason::ApiReachable, "a Kubernetes API answers as a side again"),
        Subject::Thing(_, Topic::Heartbeat, _) => (LogReason::Recovered, "the heartbeat works again"),
        Subject::Thing(_, Topic::Record, _) => (LogReason::RecordKept, "the record of synced types can be kept now"),
        Subject::Thing(..) => (LogReason::Recovered, "works again"),
    };
    let [(key, name), (space, namespace)] = subject.keys();
    let (side, after) = (subject.side().word(), lasted(time));
    let keys: [(&str, &dyn Display); 4] = [("side", &side), (key, &name), (space, &namespace), ("after", &after)];
    logging::write(level, module_path!(), reason, message, &keys);
}

/// How long something lasted, for people: two units at most.
fn lasted(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_two_units() {
        for (seconds, expected) in [(0, "0s"), (59, "59s"), (95, "1m35s"), (7260, "2h1m"), (200_000, "2d7h")] {
            assert_eq!(lasted(Duration::from_secs(seconds)), expected);
        }
    }
}
