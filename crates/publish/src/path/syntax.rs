//! How a path is written. Which signs mean something depends on what the path has reached: an object or a list.

use super::brackets::{balanced, end_of_string};
use super::query::Query;

/// The part of a path that names members of an object.
#[derive(Debug, Default)]
pub(super) struct Member<'p> {
    pub(super) name: String,
    /// Whether the name is a pattern.
    pub(super) wild: bool,
    pub(super) rest: Rest<'p>,
}

/// What follows a part.
#[derive(Debug, Default, Clone, Copy)]
pub(super) enum Rest<'p> {
    #[default]
    Nothing,
    /// A path for each value found.
    Path(&'p str),
    /// A path for what has been found in the end.
    Pipe(&'p str),
}

impl<'p> Rest<'p> {
    pub(super) fn path(self) -> Option<&'p str> {
        match self {
            Self::Path(path) => Some(path),
            _ => None,
        }
    }
}

const MODIFIERS: [&str; 13] = [
    "pretty", "ugly", "reverse", "this", "flatten", "join", "valid", "keys", "values", "tostr", "fromstr", "group",
    "dig",
];

/// Whether there is a modifier of this name.
pub(super) fn is_modifier(name: &str) -> bool {
    MODIFIERS.contains(&name)
}

/// What is behind the dot: a modifier or a selection works on what has been found.
fn behind_dot(rest: &str) -> Rest<'_> {
    let is_pipe = match rest.as_bytes().first() {
        Some(b'@') => {
            let end = rest.find(['.', '|', ':']).unwrap_or(rest.len());
            is_modifier(&rest[1..end])
        }
        Some(b'[' | b'{') => true,
        _ => false,
    };
    if is_pipe { Rest::Pipe(rest) } else { Rest::Path(rest) }
}

pub(super) fn member(path: &str) -> Member<'_> {
    let mut member = Member::default();
    let mut chars = path.char_indices();
    // gjson forgets that a `*` or `?` was escaped, if there is another one that is not.
    while let Some((index, next)) = chars.next() {
        match next {
            '|' => {
                member.rest = Rest::Pipe(&path[index + 1..]);
                return member;
            }
            '.' => {
                member.rest = behind_dot(&path[index + 1..]);
                return member;
            }
            '\\' => member.name.extend(chars.next().map(|(_, next)| next)),
            next => {
                member.wild |= matches!(next, '*' | '?');
                member.name.push(next);
            }
        }
    }
    member
}

/// The part of a path that names elements of a list.
#[derive(Debug)]
pub(super) enum Element<'p> {
    /// One of them, if the part is a number.
    Index(Option<usize>, Rest<'p>),
    /// How many there are.
    Count(Rest<'p>),
    /// This path in each of them.
    Each(&'p str),
    /// Those that match.
    Query(Query<'p>, Rest<'p>),
    /// A name with a `#` in it.
    None(Rest<'p>),
}

pub(super) fn element(path: &str) -> Element<'_> {
    if let Some(path) = path.strip_prefix("#.") {
        return Element::Each(path);
    }
    let mut query = None;
    let mut has_hash = false;
    let bytes = path.as_bytes();
    let mut index = 0;
    let (mut part, mut rest) = (path, Rest::Nothing);
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'|' => {
                (part, rest) = (&path[..index], Rest::Pipe(&path[index + 1..]));
                break;
            }
            b'.' => {
                let behind = &path[index + 1..];
                rest = if has_hash {
                    Rest::Path(behind)
                } else {
                    behind_dot(behind)
                };
                part = &path[..index];
                break;
            }
            b'#' => {
                has_hash = true;
                if index == 0 && matches!(bytes.get(1), Some(b'(' | b'[')) {
                    let Some((parsed, length)) = Query::parse(path) else {
                        query = Some(Query::default());
                        break;
                    };
                    query = Some(parsed);
                    index = length;
                    continue;
                }
            }
            _ => {}
        }
        index += 1;
    }
    match query {
        Some(query) => Element::Query(query, rest),
        None if part == "#" => Element::Count(rest),
        None if has_hash => Element::None(rest),
        None => Element::Index(index_of(part), rest),
    }
}

/// An index: digits only.
pub(super) fn index_of(part: &str) -> Option<usize> {
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| part.parse().ok()).flatten()
}

/// Splits a path at its first pipe that is in no query.
pub(super) fn split_pipe(path: &str) -> Option<(&str, &str)> {
    let bytes = path.as_bytes();
    if bytes.first() == Some(&b'{') {
        let end = balanced(path);
        return (bytes.get(end) == Some(&b'|')).then(|| (&path[..end], &path[end + 1..]));
    }
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' => index += 1,
            b'.' if bytes.get(index + 1) == Some(&b'#') => {
                index += 2;
                if matches!(bytes.get(index), Some(b'(' | b'[')) {
                    index += balanced(&path[index..]).max(1) - 1;
                }
            }
            b'|' => return Some((&path[..index], &path[index + 1..])),
            _ => {}
        }
        index += 1;
    }
    None
}

/// The paths of a selection, each with the name that it has there, and what follows the selection.
pub(super) fn selection(path: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let bytes = path.as_bytes();
    let mut found = Vec::new();
    let (mut depth, mut start, mut index) = (1usize, 1, 1);
    let (mut modifier, mut colon) = (false, None);
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' => index += 1,
            b'@' if matches!(bytes[index - 1], b'.' | b'|') => modifier = true,
            b':' if !modifier && colon.is_none() && depth == 1 => colon = Some(index),
            b'"' => index = end_of_string(bytes, index),
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && *byte == b',') {
            found.push(match colon.take() {
                Some(colon) => (&path[start..colon], &path[colon + 1..index]),
                None => ("", &path[start..index]),
            });
            (modifier, start) = (false, index + 1);
        }
        if depth == 0 {
            return Some((found, &path[start..]));
        }
        index += 1;
    }
    None
}

/// The last part of a path: the name that a selection gives to what it finds.
pub(super) fn last_name(path: &str) -> &str {
    let bytes = path.as_bytes();
    let is_border = |index: &usize| matches!(bytes[*index], b'.' | b'|') && (*index == 0 || bytes[*index - 1] != b'\\');
    let border = (0..bytes.len()).rev().find(is_border);
    border.map_or(path, |border| &path[border + 1..])
}

/// Whether a part of a path can be a name.
pub(super) fn is_simple_name(name: &str) -> bool {
    !name.bytes().any(|byte| byte < b' ' || b"[]{}()#|!".contains(&byte))
}
