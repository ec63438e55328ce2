//! The only way to write a log line: a level, a reason, a constant message, and keys with what differs.
//!
//! Promises: each line is one line whatever it holds, in logfmt or JSON, and of bounded length. It depends on nothing
//! else in the program, since every part of it logs.

use std::fmt::{self, Display, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

pub use log::Level;
use log::Record;

pub use reasons::LogReason;

mod reasons;
pub mod times;

/// A longer word is cut: it is longer than any name, path or key of an API, so it is probably data.
const LONGEST_WORD: usize = 600;
/// The most characters that are written of all values of a line.
const LONGEST_LINE: usize = 8000;

/// Keys with values that are always in quotes, since they are sentences.
const SENTENCES: [&str; 3] = ["msg", "error", "advice"];

/// Lines are JSON. Set once, before the first line.
static JSON: AtomicBool = AtomicBool::new(false);

/// What log lines look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Time, level, and the rest in logfmt.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Chooses the format of all lines from now on.
pub fn set_format(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// The format that is in force.
pub(crate) fn format() -> LogFormat {
    if JSON.load(Ordering::Relaxed) {
        LogFormat::Json
    } else {
        LogFormat::Text
    }
}

/// Logs `log_line!(Warn, SideUnreachable, "cannot reach a side", side = side)`. A key whose value is empty is left out.
#[macro_export]
macro_rules! log_line {
    ($level:ident, $reason:ident, $message:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::logging::write(
            $crate::logging::Level::$level,
            module_path!(),
            $crate::logging::LogReason::$reason,
            $message,
            &[$((stringify!($key), &$value)),*],
        )
    };
}
pub use log_line;

/// What [`log_line`] does, for a level, reason or message that is chosen at run time.
pub fn write(level: Level, target: &str, reason: LogReason, message: &str, fields: &[(&str, &dyn Display)]) {
    if level > log::max_level() {
        return;
    }
    let mut body = Body::begin(format(), reason, message);
    for (key, value) in fields {
        body.field(key, value);
    }
    let text = body.text;
    let mut record = Record::builder();
    let record = record.level(level).target(target);
    log::logger().log(&record.args(format_args!("{text}")).build());
}

/// A line without its time and level.
pub struct Body {
    /// What is written of it so far.
    pub text: String,
    format: LogFormat,
    written: usize,
}

impl Body {
    /// The begin of a line.
    pub fn begin(format: LogFormat, reason: LogReason, message: &str) -> Self {
        let mut body = Self::from_text(format, String::new());
        body.field("reason", &reason.as_str());
        body.field("msg", &message);
        body
    }

    /// Continues the text of another one.
    pub fn from_text(format: LogFormat, text: String) -> Self {
        Self {
            text,
            format,
            written: 0,
        }
    }

    /// Adds a key, if there is a value.
    pub fn field(&mut self, key: &str, value: &dyn Display) {
        let value = value.to_string();
        if value.is_empty() {
            return;
        }
        let is_json = self.format == LogFormat::Json;
        let is_first = self.text.is_empty();
        let is_quoted = is_json || SENTENCES.contains(&key) || needs_quotes(&value);
        let (comma, mark) = match (is_json, is_first) {
            (true, true) => ("", "\""),
            (true, false) => (",", "\""),
            (false, true) => ("", ""),
            (false, false) => (" ", ""),
        };
        let colon = if is_json { ':' } else { '=' };
        let quote = if is_quoted { "\"" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{comma}{mark}{key}{mark}{colon}{quote}");
        self.escaped(&value);
        self.text.push_str(quote);
    }

    /// Adds a value, cut where it is too long, with `\` before what would end it.
    fn escaped(&mut self, value: &str) {
        let mut word = 0;
        for c in value.chars() {
            word = if c == ' ' { 0 } else { word + 1 };
            if word > LONGEST_WORD || self.written >= LONGEST_LINE {
                continue;
            }
            self.written += 1;
            if word == LONGEST_WORD || self.written == LONGEST_LINE {
                self.text.push('…');
                continue;
            }
            let _ = match c {
                '"' | '\\' => write!(self.text, "\\{c}"),
                '\n' => self.text.write_str("\\n"),
                '\r' => self.text.write_str("\\r"),
                '\t' => self.text.write_str("\\t"),
                c if c.is_control() => write!(self.text, "\\u{:04x}", u32::from(c)),
                c => self.text.write_char(c),
            };
        }
    }
}

fn needs_quotes(value: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '=' | '"' | '\\');
    !value.chars().all(is_plain)
}

/// A value that may be absent.
pub struct Maybe<T>(pub Option<T>);

impl<T: Display> Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

#[cfg(test)]
#[path = "logging/tests.rs"]
mod tests;
