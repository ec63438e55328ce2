//! YAML as values, by the rules of YAML 1.1, as kubectl, client-go and kcp's agents read it; and so JSON too.
//!
//! Promises: integers beyond 2^53 are kept; an error says in which document and line it is; what anchors multiply is
//! bounded; nothing here panics.
//!
//! It never reads a file, keeps comments or the order of keys, or knows what a value is for.
#![forbid(unsafe_code)]

use std::fmt;

use serde_json::Value;

mod compose;
mod scalar;
mod write;

pub use scalar::int;
pub use write::write;

/// How many values all documents of a text may have, with what aliases repeat.
const MOST_VALUES: usize = 200_000;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The number of the document, from 1. Empty ones count.
    pub number: usize,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// What it holds.
    pub value: Value,
}

/// Text that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    /// The number of the document, from 1.
    pub document: usize,
    /// The line of the whole text, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {}, line {}: {}", self.document, self.line, self.message)
    }
}

impl std::error::Error for DocumentError {}

/// The documents of a text, but for those that are empty.
///
/// They are separated by lines that begin with `---`, after which only blanks and a comment may follow.
pub fn documents(text: &str) -> Result<Vec<Document>, DocumentError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let mut room = MOST_VALUES;
    let mut number = 0;
    for part in parts(text) {
        // Most are cut by far more often than they are read: a loop that leaves out all but the separators.
        if is_empty(part.text) {
            number += 1;
            continue;
        }
        for document in compose::all(part.text, number + 1, part.line, &mut room)? {
            number = document.number;
            if !document.value.is_null() {
                documents.push(document);
            }
        }
    }
    Ok(documents)
}

/// A part of a text between separators.
struct Part<'a> {
    text: &'a str,
    /// Its first line, from 1.
    line: usize,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut at, mut first_line) = (0, 0, 1);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        if !line.strip_prefix("---").is_some_and(is_blank_or_comment) {
            continue;
        }
        // What is before the first separator is a document only if there is something.
        if start > 0 && !(parts.is_empty() && is_empty(&text[..start])) {
            let text = &text[begin..start];
            let line = first_line;
            parts.push(Part { text, line });
        }
        begin = at;
        first_line = index + 2;
    }
    let text = &text[begin..];
    let line = first_line;
    parts.push(Part { text, line });
    parts
}

fn is_blank_or_comment(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with('#')
}

/// Whether there are only blank lines, comments and directives.
fn is_empty(text: &str) -> bool {
    text.lines()
        .all(|line| is_blank_or_comment(line) || line.starts_with('%'))
}

#[cfg(test)]
mod tests;
