//! Regular expressions of Go.

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::rewrite;
use crate::template::heap::Sink;

/// How large an expression may become, in bytes.
const LARGEST: usize = 512 << 10;

/// A regular expression by the rules of Go.
#[derive(Debug, Clone)]
pub struct Pattern(pub(super) Regex);

impl Pattern {
    /// Compiles an expression. It may not become large.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("regexp: cannot use {pattern:?}: {why}");
        let rewritten = rewrite::rewritten(pattern).map_err(|why| wrong(&why))?;
        let mut builder = RegexBuilder::new(&rewritten);
        builder.size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(100);
        builder.build().map(Self).map_err(|error| {
            let error = error.to_string();
            wrong(error.lines().last().unwrap_or_default().trim_start_matches("error: "))
        })
    }

    /// Whether a text has it somewhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }

    /// A text with all that matches replaced. `$1`, `${1}` and `${name}` stand for groups. What becomes too long is an
    /// error.
    pub fn replace_all(&self, text: &str, replacement: &str) -> Result<String, String> {
        let bytes = self.replaced(text.as_bytes(), replacement.as_bytes(), expand)?;
        // Matches begin and end between characters: all parts are texts.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn replaced(&self, text: &[u8], replacement: &[u8], replacing: Replacing) -> Result<Vec<u8>, String> {
        let mut out = Sink::new();
        let mut done = 0;
        for found in self.0.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            let is_empty_after_other = whole.is_empty() && whole.start() == done && done > 0;
            let inside_of_char = whole.is_empty() && text.get(whole.start()).is_some_and(|byte| byte & 0xc0 == 0x80);
            if is_empty_after_other || inside_of_char {
                continue;
            }
            out.push(&text[done..whole.start()])?;
            replacing(&found, replacement, &mut out)?;
            done = whole.end();
        }
        out.push(&text[done..])?;
        Ok(out.into_bytes())
    }
}

pub(super) type Replacing = fn(&Captures<'_>, &[u8], &mut Sink) -> Result<(), String>;

pub(super) fn literal(_: &Captures<'_>, replacement: &[u8], out: &mut Sink) -> Result<(), String> {
    out.push(replacement)
}

/// `$1`, `${1}` and `${name}` stand for groups; a name after a bare `$` is as long as it can be.
pub(super) fn expand(found: &Captures<'_>, replacement: &[u8], out: &mut Sink) -> Result<(), String> {
    let mut rest = replacement;
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        out.push(&rest[..dollar])?;
        rest = &rest[dollar + 1..];
        if rest.first() == Some(&b'$') {
            out.push("$")?;
            rest = &rest[1..];
            continue;
        }
        let is_braced = rest.first() == Some(&b'{');
        let inner = if is_braced { &rest[1..] } else { rest };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = inner.iter().take_while(|byte| is_name(byte)).count();
        let is_closed = !is_braced || inner.get(length) == Some(&b'}');
        if length == 0 || !is_closed {
            // No reference: the dollar is a dollar.
            out.push("$")?;
            continue;
        }
        let name = std::str::from_utf8(&inner[..length]).unwrap_or_default();
        let group = match name.parse::<usize>() {
            Ok(index) => found.get(index),
            Err(_) => found.name(name),
        };
        if let Some(group) = group {
            out.push(group.as_bytes())?;
        }
        rest = &inner[length + usize::from(is_braced)..];
    }
    out.push(rest)
}
