//! Rules that rewrite a text.

use gotemplate::Pattern;

/// A pattern and what takes its place, or a text that takes the place of any value.
#[derive(Debug)]
pub(crate) struct Rewrite {
    pattern: Option<Pattern>,
    replacement: String,
}

impl Rewrite {
    pub(crate) fn new(pattern: &str, replacement: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            let replacement = replacement.to_owned();
            return Ok(Self {
                pattern: None,
                replacement,
            });
        }
        let (pattern, replacement) = (Some(Pattern::new(pattern)?), with_groups(replacement));
        Ok(Self { pattern, replacement })
    }

    pub(crate) fn apply(&self, text: &str) -> Result<String, String> {
        match &self.pattern {
            Some(pattern) => pattern.replace_all(text, &self.replacement),
            None => Ok(self.replacement.clone()),
        }
    }
}

/// `\1` as the documentation of the Go agent has it, in the form that patterns know.
fn with_groups(replacement: &str) -> String {
    let mut out = String::with_capacity(replacement.len() + 8);
    let mut chars = replacement.chars().peekable();
    while let Some(next) = chars.next() {
        match chars.peek() {
            Some(digit) if next == '\\' && digit.is_ascii_digit() => {
                out.push_str("${");
                out.push(*digit);
                out.push('}');
                chars.next();
            }
            _ => out.push(next),
        }
    }
    out
}
