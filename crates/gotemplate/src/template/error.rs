//! What is wrong with a template, and where.

use std::fmt;

/// A template that cannot be rendered. It has to be repaired by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The template.
    pub template: String,
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl TemplateError {
    /// An error at this byte of the text.
    pub(crate) fn at(template: &str, text: &str, byte: usize, message: &str) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            template: template.to_owned(),
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.to_owned(),
        }
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (template, line, column) = (&self.template, self.line, self.column);
        write!(f, "template {template}, line {line}, column {column}: {}", self.message)
    }
}

impl std::error::Error for TemplateError {}
