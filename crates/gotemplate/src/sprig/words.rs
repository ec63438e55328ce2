//! Functions on letters and words.

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::Sink;

const TEXT: &[Type] = &[Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("upper", TEXT, |args| args.heap.text(mapped(args, upper_of))),
    Function::new("lower", TEXT, |args| args.heap.text(mapped(args, lower_of))),
    Function::new("title", TEXT, |args| args.heap.text(title(&args.str(0)))),
    Function::new("untitle", TEXT, |args| args.heap.text(untitle(&args.str(0)))),
    Function::new("swapcase", TEXT, |args| args.heap.text(swap_case(&args.str(0)))),
    Function::new("nospace", TEXT, |args| args.heap.text(without_space(args.text(0)))),
    Function::new("initials", TEXT, |args| args.heap.text(initials(args.text(0)))),
    Function::new("camelcase", TEXT, |args| args.heap.text(camel_case(&args.str(0)))),
    Function::new("snakecase", TEXT, |args| args.heap.text(joined(&args.str(0), '_'))),
    Function::new("kebabcase", TEXT, |args| args.heap.text(joined(&args.str(0), '-'))),
    Function::new("abbrev", &[Type::Int, Type::Text], |args| {
        let (width, text) = (args.int(0), args.text(1));
        args.heap.text(if width < 4 {
            text.to_vec()
        } else {
            abbreviated(text, 0, width)
        })
    }),
    Function::new("abbrevboth", &[Type::Int, Type::Int, Type::Text], |args| {
        let (left, right, text) = (args.int(0), args.int(1), args.text(2));
        let is_too_narrow = right < 4 || left > 0 && right < 7;
        args.heap.text(if is_too_narrow {
            text.to_vec()
        } else {
            abbreviated(text, left, right)
        })
    }),
    Function::new("wrap", &[Type::Int, Type::Text], |args| {
        wrap(args, args.text(1), b"", false)
    }),
    Function::new("wrapWith", &[Type::Int, Type::Text, Type::Text], |args| {
        wrap(args, args.text(2), args.text(1), true)
    }),
];

/// The one letter that Go has for a letter in another case; what becomes several letters stays.
fn single(next: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => next,
    }
}

fn upper_of(next: char) -> char {
    single(next, next.to_uppercase())
}

fn lower_of(next: char) -> char {
    // The only letter that becomes two.
    if next == '\u{130}' {
        'i'
    } else {
        single(next, next.to_lowercase())
    }
}

fn mapped(args: &Args<'_>, map: fn(char) -> char) -> String {
    args.str(0).chars().map(map).collect()
}

/// What the parts of a word are made of, and what stands between words.
fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_' || next > '\u{7f}' && !next.is_whitespace()
}

/// Each word with a large letter first.
fn title(text: &str) -> String {
    let mut before = ' ';
    let large = text.chars().map(|next| {
        let begins = !is_word(before);
        before = next;
        if begins { upper_of(next) } else { next }
    });
    large.collect()
}

/// Each word with a small letter first.
fn untitle(text: &str) -> String {
    let mut begins = true;
    let small = text.chars().map(|next| {
        if next.is_whitespace() {
            begins = true;
            return next;
        }
        if std::mem::take(&mut begins) {
            lower_of(next)
        } else {
            next
        }
    });
    small.collect()
}

fn swap_case(text: &str) -> String {
    let mut after_space = true;
    let swapped = text.chars().map(|next| {
        if next.is_uppercase() || next.is_lowercase() {
            after_space = false;
        } else {
            after_space = next.is_whitespace();
        }
        match next {
            _ if next.is_uppercase() => lower_of(next),
            _ if next.is_lowercase() => upper_of(next),
            _ => next,
        }
    });
    swapped.collect()
}

/// A byte as the character of that number, as the library beneath sprig takes it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0x85 | 0xa0)
}

fn without_space(text: &[u8]) -> Vec<u8> {
    if !text.iter().copied().any(is_space) {
        return text.to_vec();
    }
    let kept = text.iter().copied().filter(|byte| !is_space(*byte));
    kept.map(char::from).collect::<String>().into_bytes()
}

fn initials(text: &[u8]) -> String {
    let mut after_space = true;
    let first = text.iter().copied().filter(|byte| {
        if is_space(*byte) {
            after_space = true;
            return false;
        }
        std::mem::take(&mut after_space)
    });
    first.map(char::from).collect()
}

fn is_connector(next: char) -> bool {
    matches!(next, '-' | '_') || next.is_whitespace()
}

/// `http_server` as `HttpServer`.
fn camel_case(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    let mut first = None;
    for next in rest.by_ref() {
        if is_connector(next) {
            out.push(next);
        } else {
            first = Some(next);
            break;
        }
    }
    let Some(first) = first else {
        // The last connector is written twice, as there.
        return match text.chars().count() {
            0 => out,
            _ => format!("{out}{}", text.chars().last().unwrap_or_default()),
        };
    };
    let mut first_is_large = first.is_uppercase();
    let mut last = upper_of(first);
    for mut next in rest {
        let before = last;
        if is_connector(next) && is_connector(before) {
            out.push(before);
            last = next;
            continue;
        }
        if is_connector(before) {
            first_is_large = next.is_uppercase();
            next = upper_of(next);
        } else {
            if first_is_large {
                if next.is_uppercase() {
                    next = lower_of(next);
                } else {
                    first_is_large = false;
                }
            }
            out.push(before);
        }
        last = next;
    }
    out.push(last);
    out
}

/// What the words of a name are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn is_punctuation(next: char) -> bool {
    // Go's class leaves out what Unicode calls symbols.
    match next {
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => false,
        _ if next.is_ascii() => next.is_ascii_punctuation(),
        '¡'
        | '§'
        | '«'
        | '¶'
        | '·'
        | '»'
        | '¿'
        | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}'
        | '\u{3001}'..='\u{3003}'
        | '\u{3008}'..='\u{3011}'
        | '\u{ff01}'..='\u{ff0f}' => true,
        _ => false,
    }
}

fn is_letter(next: char) -> bool {
    next.is_alphabetic()
}

/// The first word of a text, and the rest.
fn next_word(text: &str) -> (Word, &str, &str) {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return (Word::None, "", "");
    };
    let run = |belongs: fn(char) -> bool| text.find(|next| !belongs(next)).unwrap_or(text.len());
    let (word, length) = match first {
        _ if is_connector(first) => (Word::Connector, run(is_connector)),
        _ if is_punctuation(first) => (Word::Punctuation, run(is_punctuation)),
        _ if first.is_uppercase() => (Word::Upper, upper_word(text)),
        _ if is_letter(first) => (Word::Alphabet, run(|next| is_letter(next) && !next.is_uppercase())),
        _ if first.is_numeric() => (Word::Number, run(char::is_numeric)),
        _ => {
            let is_other =
                |next: char| !(is_connector(next) || is_letter(next) || next.is_numeric() || is_punctuation(next));
            (Word::Other, run(is_other))
        }
    };
    (word, &text[..length], &text[length..])
}

/// The length of a word that begins with a large letter: `HTTP` of `HTTPStatus`, `Status` of `StatusCode`.
fn upper_word(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let rest = &text[first..];
    let is_small = |next: char| is_letter(next) && !next.is_uppercase();
    match rest.chars().next() {
        Some(second) if second.is_uppercase() => {
            let uppers = rest.find(|next: char| !next.is_uppercase()).unwrap_or(rest.len());
            let goes_on = rest[uppers..].chars().next().is_some_and(is_letter);
            let last = rest[..uppers].chars().last().map_or(0, char::len_utf8);
            first + uppers - if goes_on { last } else { 0 }
        }
        Some(second) if is_letter(second) => first + rest.find(|next| !is_small(next)).unwrap_or(rest.len()),
        _ => first,
    }
}

/// `FirstName` as `first_name`.
fn joined(text: &str, connector: char) -> String {
    let mut out = String::new();
    let ends = |word: Word| matches!(word, Word::None | Word::Connector | Word::Punctuation);
    let (mut kind, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !ends(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind == Word::Alphabet {
                    out.push(connector);
                    push_lower(&mut out, Word::Number, number, connector);
                    while matches!(kind, Word::Alphabet | Word::Number) {
                        push_lower(&mut out, kind, word, connector);
                        (kind, word, rest) = next_word(rest);
                    }
                    if !ends(kind) {
                        out.push(connector);
                    }
                } else {
                    push_lower(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    push_lower(&mut out, kind, word, connector);
    out
}

fn push_lower(out: &mut String, kind: Word, word: &str, connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        out.push_str(word);
        return;
    }
    out.extend(
        word.chars()
            .map(|next| if is_connector(next) { connector } else { lower_of(next) }),
    );
}

/// A text cut to a width in bytes, with dots where something is left out.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let size = |number: i64| usize::try_from(number).unwrap_or(0);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if text.is_empty() || length <= width {
        return text.to_vec();
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return [&text[..size(width - 3)], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    let tail = if offset + width - 3 < length {
        // Narrower than the least width, nothing is left.
        match width - 3 {
            ..4 => Vec::new(),
            narrower => abbreviated(&text[size(offset)..], 0, narrower),
        }
    } else {
        text[size(length - (width - 3))..].to_vec()
    };
    [b"...", tail.as_slice()].concat()
}

/// A text in lines of at most so many bytes, broken at spaces.
fn wrap(args: &Args<'_>, text: &[u8], separator: &[u8], breaks_words: bool) -> Answer {
    let width = usize::try_from(args.int(0).max(1)).unwrap_or(usize::MAX);
    let separator = if separator.is_empty() { b"\n" } else { separator };
    let mut out = Sink::new();
    let mut rest = text;
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let space = rest[..=width].iter().rposition(|byte| *byte == b' ');
        let (end, skipped) = match space {
            Some(space) => (space, 1),
            None if breaks_words => (width, 0),
            None => match rest[width..].iter().position(|byte| *byte == b' ') {
                Some(space) => (width + space, 1),
                None => break,
            },
        };
        out.push(&rest[..end])?;
        out.push(separator)?;
        rest = &rest[end + skipped..];
    }
    out.push(rest)?;
    args.heap.text(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_text_that_is_cut_twice() {
        assert_eq!(abbreviated(b"0123456789abcdefghij", 6, 7), b"...6...");
    }
}
