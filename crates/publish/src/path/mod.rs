//! Paths in the syntax of gjson, for reading, and of sjson, for writing, on JSON values.
//!
//! Promises: what Go's gjson 1.18 finds is found, with its text; what sjson 1.2 writes is written; integers keep all of
//! their digits. A path ends soon and makes little of much, whatever it says (`Work`); nothing here panics.
//!
//! What differs: where sjson cuts a text at the wrong place, which makes no JSON any more (`#` inside `#`, writes behind a
//! pipe), this writes to each of the places, or not at all. `@pretty` and `@ugly` change no value. No crate has this: gjson
//! 0.8 has other modifiers, works on texts and cannot write.

mod brackets;
mod find;
mod modifiers;
mod node;
mod query;
mod syntax;
mod wildcard;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub(crate) use node::{fits, is_deeper};
pub use write::{check, check_delete, delete, set};

use find::get;
use node::Node;

/// The longest text that a path may make, in bytes.
const LONGEST_TEXT: usize = 3 << 20;

/// Steps of one search: a value that is visited, or a key.
const STEPS: usize = 1_000_000;

/// How deep paths may be nested in each other: pipes, queries and selections.
const DEEPEST: usize = 100;

/// How many segments a path may have.
const MOST_SEGMENTS: usize = 100;

/// How deep what is read of a server may be nested: no object is nested deeper.
pub(crate) const DEEPEST_OBJECT: usize = 127;

/// How many elements a write may add to a list to reach its index.
const MOST_ADDED: usize = 10_000;

/// Why a path cannot be followed. People have to change the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// It is empty.
    Empty,
    /// It has so many segments.
    TooLong(usize),
    /// What is deleted is named by keys and indexes alone.
    Complex,
    /// A list has no element of this name.
    NoIndex(String),
    /// The element is too far behind the end of the list.
    TooFar(String),
    /// It visits too much, is nested too deeply, or makes too large a text.
    TooMuch,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("path cannot be empty"),
            Self::TooLong(segments) => write!(f, "path has {segments} segments, and may have {MOST_SEGMENTS}"),
            Self::Complex => f.write_str("cannot delete value from a complex path"),
            Self::NoIndex(key) => write!(f, "cannot set array element for non-numeric key '{key}'"),
            Self::TooFar(key) => write!(f, "element {key} is more than {MOST_ADDED} behind the end of the list"),
            Self::TooMuch => f.write_str("the path visits or makes too much"),
        }
    }
}

impl std::error::Error for PathError {}

/// What a path has found.
#[derive(Debug)]
pub struct Found<'a>(Node<'a>);

impl Found<'_> {
    /// As a value. An object that the path has put together has its keys in order.
    pub fn value(&self) -> Result<Value, PathError> {
        let mut room = LONGEST_TEXT;
        self.0.to_value(&mut room)
    }

    /// As text: a string as it is, nothing for null, anything else as JSON, the way Go's encoder writes it.
    pub fn text(&self) -> Result<String, PathError> {
        self.0.string()
    }

    /// As JSON, the way Go's encoder writes it.
    pub fn json(&self) -> Result<String, PathError> {
        self.0.raw()
    }

    /// The elements of a list. A scalar and an object are one element, null is none.
    pub fn texts(&self) -> Result<Vec<String>, PathError> {
        match self.0.elements() {
            Some(elements) => elements.iter().map(Node::string).collect(),
            None if self.0.is_null() => Ok(Vec::new()),
            None => Ok(vec![self.0.string()?]),
        }
    }
}

/// What this path names in a document, if anything.
pub fn read<'a>(document: &'a Value, path: &str) -> Result<Option<Found<'a>>, PathError> {
    let work = Work::new();
    let found = get(Some(&Node::root(document)), path, &work);
    work.done(found).map(|found| found.map(Found))
}

/// What one search has used. When it is used up, nothing is found any more.
struct Work {
    steps: std::cell::Cell<usize>,
    depth: std::cell::Cell<usize>,
}

impl Work {
    fn new() -> Self {
        let (steps, depth) = (STEPS.into(), 0.into());
        Self { steps, depth }
    }

    /// Whether there is something left for this many steps.
    fn spend(&self, steps: usize) -> bool {
        let left = self.steps.get().saturating_sub(steps);
        self.steps.set(left);
        left > 0
    }

    /// Goes a level deeper while `inner` runs.
    fn deeper<T>(&self, inner: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.depth.get() == DEEPEST {
            self.steps.set(0);
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let result = inner();
        self.depth.set(self.depth.get() - 1);
        result
    }

    /// A result, unless the search was cut off.
    fn done<T>(&self, result: T) -> Result<T, PathError> {
        if self.steps.get() == 0 {
            return Err(PathError::TooMuch);
        }
        Ok(result)
    }
}
