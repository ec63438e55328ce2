//! Queries: the elements of a list that match.

use std::borrow::Cow;

use serde_json::Value;

use super::brackets::end_of_string;
use super::node::Node;
use super::{Work, wildcard};

/// `#(path operator value)`, and whether `#` follows: all that match.
#[derive(Debug, Default)]
pub(super) struct Query<'p> {
    pub(super) path: &'p str,
    operator: &'p str,
    value: Cow<'p, str>,
    pub(super) all: bool,
}

/// gjson takes all of these as white space.
fn trim(text: &str) -> &str {
    text.trim_matches(|next: char| next <= ' ')
}

impl<'p> Query<'p> {
    /// The query at the start of a path, and its length.
    pub(super) fn parse(path: &'p str) -> Option<(Self, usize)> {
        let bytes = path.as_bytes();
        let (mut depth, mut index, mut operator) = (1usize, 2, None);
        loop {
            let byte = *bytes.get(index)?;
            if depth == 1 && operator.is_none() && b"!=<>%".contains(&byte) {
                operator = Some(index);
                index += 1;
                continue;
            }
            match byte {
                b'\\' => index += 1,
                b'(' | b'[' => depth += 1,
                b')' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'"' => index = end_of_string(bytes, index),
                _ => {}
            }
            index += 1;
        }
        let all = bytes.get(index + 1) == Some(&b'#');
        let length = index + 1;
        let Some(start) = operator else {
            let path = trim(&path[2..index]);
            return Some((
                Self {
                    path,
                    all,
                    ..Self::default()
                },
                length,
            ));
        };
        let (operator, value) = comparison(trim(&path[start..index]));
        let path = trim(&path[2..start]);
        let value = unquoted(value);
        Some((
            Self {
                path,
                operator,
                value,
                all,
            },
            length,
        ))
    }

    /// Whether a value that the query's path has found matches.
    pub(super) fn matches(&self, found: Option<&Node<'_>>, work: &Work) -> bool {
        if let Some(kind) = self.value.strip_prefix('~') {
            let Some(is_so) = is_like(kind, found) else {
                return false;
            };
            return self.operator.is_empty() || compare_bools(is_so, self.operator, "true");
        }
        let Some(found) = found else { return false };
        if self.operator.is_empty() {
            return true;
        }
        match found.scalar() {
            Some(Value::String(text)) => self.compare_texts(text, work),
            Some(Value::Number(number)) => {
                let wanted = self.value.parse().unwrap_or(0.0);
                number
                    .as_f64()
                    .is_some_and(|number| compare(&number, self.operator, &wanted))
            }
            Some(Value::Bool(is_so)) => compare_bools(*is_so, self.operator, &self.value),
            _ => false,
        }
    }

    fn compare_texts(&self, text: &str, work: &Work) -> bool {
        match self.operator {
            "%" | "!%" => {
                if !work.spend(text.len() * self.value.len() / 64) {
                    return false;
                }
                wildcard::matches(text, &self.value) == (self.operator == "%")
            }
            _ => compare(text, self.operator, self.value.as_ref()),
        }
    }
}

/// The operator at the start of a text, and what follows it. `==` is `=`.
fn comparison(text: &str) -> (&str, &str) {
    if let Some(value) = text.strip_prefix("==") {
        return ("=", trim(value));
    }
    let long = ["!=", "!%", "<=", ">="]
        .iter()
        .any(|operator| text.starts_with(operator));
    let length = if long {
        2
    } else {
        // A lone `!` is none, unless it is all there is.
        usize::from(text.len() == 1 || !text.starts_with('!'))
    };
    (&text[..length], trim(&text[length..]))
}

fn unquoted(value: &str) -> Cow<'_, str> {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return Cow::Borrowed(value);
    };
    if inner.contains('\\') {
        return serde_json::from_str(value).map_or(Cow::Borrowed(inner), Cow::Owned);
    }
    Cow::Borrowed(inner)
}

fn compare<T: PartialOrd + ?Sized>(found: &T, operator: &str, wanted: &T) -> bool {
    match operator {
        "=" => found == wanted,
        "!=" => found != wanted,
        "<" => found < wanted,
        "<=" => found <= wanted,
        ">" => found > wanted,
        ">=" => found >= wanted,
        _ => false,
    }
}

fn compare_bools(found: bool, operator: &str, wanted: &str) -> bool {
    match (found, operator) {
        (_, "=") => wanted == if found { "true" } else { "false" },
        (_, "!=") => wanted != if found { "true" } else { "false" },
        (true, ">") => wanted == "false",
        (false, "<") => wanted == "true",
        (true, ">=") | (false, "<=") => true,
        _ => false,
    }
}

/// Whether what was found is nearly this, if that is something to be near to.
fn is_like(kind: &str, found: Option<&Node<'_>>) -> Option<bool> {
    let scalar = found.and_then(Node::scalar);
    let truth = match scalar {
        Some(Value::String(text)) => match text.to_lowercase().as_str() {
            "1" | "t" | "true" => Some(true),
            "0" | "f" | "false" => Some(false),
            _ => None,
        },
        Some(Value::Number(number)) => Some(number.as_f64() != Some(0.0)),
        Some(Value::Bool(is_so)) => Some(*is_so),
        _ => None,
    };
    let is_null = found.is_none_or(Node::is_null);
    match kind {
        "*" => Some(found.is_some()),
        "null" => Some(is_null),
        "true" => Some(truth == Some(true)),
        "false" => Some(is_null || truth == Some(false)),
        _ => None,
    }
}
