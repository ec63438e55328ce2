//! The text of an error with all its causes.

use std::error::Error;
use std::fmt::Write as _;

/// The whole chain of causes: the outermost one of a connection error is not helpful.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}
