//! JSON text taken apart without recursion, so that deep nesting does not exhaust the stack: API servers allow 10,000
//! levels, and a parse into values is refused after 128.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kube_lite::fields::from_text;

/// One piece of JSON text. Commas and colons are not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `{` or `[`.
    Open(u8),
    /// `}` or `]`.
    Close,
    /// A string in its quotes, a number or a word.
    Scalar(&'a str),
}

/// The pieces of a text that is valid JSON; of any other text, some pieces.
pub(super) struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(text)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.0.split_at_checked(length).unwrap_or((self.0, ""));
        self.0 = rest;
        taken
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let between = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | ':');
        self.0 = self.0.trim_start_matches(between);
        let first = *self.0.as_bytes().first()?;
        Some(match first {
            b'{' | b'[' => {
                self.take(1);
                Token::Open(first)
            }
            b'}' | b']' => {
                self.take(1);
                Token::Close
            }
            b'"' => Token::Scalar(self.take(string_length(self.0.as_bytes()))),
            _ => {
                let ends = |c: char| between(c) || matches!(c, '{' | '}' | '[' | ']' | '"');
                let length = self.0.find(ends).unwrap_or(self.0.len());
                Token::Scalar(self.take(length))
            }
        })
    }
}

/// The length of the string, with its quotes, that the text begins with.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// What was read so far of a value with values in it.
enum Open {
    /// Its fields added up, so that their order does not count, and the key of the next one.
    Object { fields: u64, key: Option<u64> },
    /// Its items, one after the other.
    List { items: u64 },
}

/// A hash of what a JSON text means: whatever the order of fields, the white space, the escapes, and the form in which a
/// number is written. Never 0.
pub(super) fn canonical_hash(text: &str) -> u64 {
    let mut open: Vec<Open> = Vec::new();
    let mut whole = 0;
    for token in Tokens::of(text) {
        let value = match token {
            Token::Open(b'{') => {
                open.push(Open::Object { fields: 0, key: None });
                continue;
            }
            Token::Open(_) => {
                open.push(Open::List { items: 0 });
                continue;
            }
            Token::Close => match open.pop() {
                Some(Open::Object { fields, .. }) => hash(&('{', fields)),
                Some(Open::List { items }) => hash(&('[', items)),
                None => break,
            },
            Token::Scalar(text) => hash_of_scalar(text),
        };
        match open.last_mut() {
            None => whole = value,
            Some(Open::List { items }) => *items = hash(&(*items, value)),
            Some(Open::Object { fields, key }) => match key.take() {
                None => *key = Some(value),
                Some(key) => *fields = fields.wrapping_add(hash(&(key, value))),
            },
        }
    }
    whole.max(1)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hash_of_scalar(text: &str) -> u64 {
    if text.starts_with('"') {
        // Half a surrogate pair is no text; then it is hashed as it is written.
        return match from_text::<String>(text) {
            Ok(text) => hash(&('"', text)),
            Err(_) => hash(&('\\', text)),
        };
    }
    match number(text) {
        Some((negative, digits, exponent)) => hash(&(negative, digits, exponent)),
        None => hash(&text),
    }
}

/// Sign, digits without zeros at their ends, and the power of ten that the last digit stands for. Servers may write a
/// number in several ways (1.0, 1, 1e0), and none of them changes these.
fn number(text: &str) -> Option<(bool, String, i64)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{part}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_end_matches('0');
    if digits.trim_start_matches('0').is_empty() {
        return Some((negative, "0".to_owned(), 0));
    }
    let dropped = i64::try_from(all.len() - digits.len()).ok()?;
    let exponent = exponent
        .checked_sub(i64::try_from(part.len()).ok()?)?
        .checked_add(dropped)?;
    Some((negative, digits.trim_start_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_has_the_same_hash() {
        for (one, other) in [
            (r#"{"a":1,"b":[1,2]}"#, "{ \"b\" : [1, 2],\n\"a\":1 }"),
            (r#"{"a":"\u00e9\/"}"#, "{\"a\":\"é/\"}"),
            ("[1.0,100,1e21,-0.50]", "[1,1e2,1000000000000000000000,-5E-1]"),
            ("[0.0,0e5]", "[0,0]"),
        ] {
            assert_eq!(canonical_hash(one), canonical_hash(other), "{one} {other}");
        }
    }

    #[test]
    fn what_does_not_has_another() {
        let texts = [
            "{}",
            "[]",
            "null",
            "0",
            "-0",
            "\"\"",
            "\"0\"",
            "[{}]",
            "[[]]",
            "[0]",
            "[0,0]",
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[1,[2]]",
            "{\"a\":1}",
            "{\"a\":2}",
            "{\"b\":1}",
            "{\"a\":\"b\"}",
            "{\"b\":\"a\"}",
            "{\"a\":{\"b\":1}}",
            "{\"a\":{},\"b\":1}",
            "10",
            "1",
            "100",
            "0.1",
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            "0.1000000000000000055",
            "true",
            "\"\\ud800\"",
            "\"\\ud801\"",
        ];
        let mut hashes: Vec<u64> = texts.iter().map(|text| canonical_hash(text)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), texts.len());
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = |depth: usize| format!("{}1{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
        assert_ne!(canonical_hash(&deep(200_000)), canonical_hash(&deep(200_001)));
    }

    #[test]
    fn text_that_is_no_json_is_no_harm() {
        let text = r#"{"a\"":[1,"\u00e9é",{}],}] 3 {"x"#;
        for (end, _) in text.char_indices() {
            let _ = canonical_hash(&text[..end]);
        }
    }
}
