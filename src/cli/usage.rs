//! What is wrong with a command line.

use std::error::Error;
use std::fmt;

/// The name in usage and error messages.
pub(super) const NAME: &str = "edge-syncer";

/// A wrong command line. Print it with the hint and exit with 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError {
    message: String,
    /// The command whose help is named in the hint.
    see: &'static str,
}

impl UsageError {
    /// `message` names the flag of `run`, the value and what is allowed.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            see: "edge-syncer run",
        }
    }

    /// An error about the program as a whole.
    pub(super) fn of_commands(message: String) -> Self {
        Self {
            message,
            see: "edge-syncer",
        }
    }

    /// The same with what may have been meant.
    #[cfg(feature = "admin")]
    pub(super) fn hinting(mut self, hint: &str) -> Self {
        self.message.push_str(hint);
        self
    }

    /// The same where the program was called by this name.
    pub(super) fn seen_from(self, name: &'static str) -> Self {
        Self { see: name, ..self }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (see {} --help)", self.message, self.see)
    }
}

impl Error for UsageError {}
