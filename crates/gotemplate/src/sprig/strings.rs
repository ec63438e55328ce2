//! Functions on texts as a whole.

use memchr::memmem;

use super::cast;
use crate::template::format;
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::Sink;
use crate::template::print;
use crate::template::value::{Entries, Value};

const TEXT: &[Type] = &[Type::Text];
const TEXTS: &[Type] = &[Type::Text, Type::Text];
const THREE_TEXTS: &[Type] = &[Type::Text, Type::Text, Type::Text];
const INT_TEXT: &[Type] = &[Type::Int, Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("hello", &[], |args| args.heap.text("Hello!")),
    Function::new("trim", TEXT, |args| args.heap.text(args.str(0).trim())),
    Function::new("trimAll", TEXTS, trim_all),
    Function::new("trimall", TEXTS, trim_all),
    Function::new("trimSuffix", TEXTS, |args| {
        let text = args.text(1);
        args.heap.text(text.strip_suffix(args.text(0)).unwrap_or(text))
    }),
    Function::new("trimPrefix", TEXTS, |args| {
        let text = args.text(1);
        args.heap.text(text.strip_prefix(args.text(0)).unwrap_or(text))
    }),
    Function::new("contains", TEXTS, |args| {
        Ok(Value::Bool(memmem::find(args.text(1), args.text(0)).is_some()))
    }),
    Function::new("hasPrefix", TEXTS, |args| {
        Ok(Value::Bool(args.text(1).starts_with(args.text(0))))
    }),
    Function::new("hasSuffix", TEXTS, |args| {
        Ok(Value::Bool(args.text(1).ends_with(args.text(0))))
    }),
    Function::new("replace", THREE_TEXTS, |args| {
        let replaced = replace(args.text(2), args.text(0), args.text(1))?;
        args.heap.text(replaced)
    }),
    Function::new("repeat", INT_TEXT, repeat),
    Function::new("trunc", INT_TEXT, trunc),
    Function::new("substr", &[Type::Int, Type::Int, Type::Text], substr),
    Function::with_more("quote", &[], Type::Any, quote),
    Function::with_more("squote", &[], Type::Any, squote),
    Function::with_more("cat", &[], Type::Any, cat),
    Function::new("indent", INT_TEXT, |args| indent(args, "")),
    Function::new("nindent", INT_TEXT, |args| indent(args, "\n")),
    Function::new("plural", &[Type::Text, Type::Text, Type::Int], |args| {
        Ok(args.value(usize::from(args.int(2) != 1)).clone())
    }),
    Function::new("toString", &[Type::Any], |args| {
        args.heap.text(cast::text(args.value(0), args.heap)?)
    }),
    Function::new("toStrings", &[Type::Any], |args| {
        args.heap.texts(cast::texts(args.value(0), args.heap)?)
    }),
    Function::new("join", &[Type::Text, Type::Any], join),
    Function::new("splitList", TEXTS, |args| {
        let parts = split(args.text(1), args.text(0), usize::MAX);
        args.heap.elements(parts.len() / 8)?;
        args.heap.texts(parts)
    }),
    Function::new("split", TEXTS, |args| parts(args, args.text(1), usize::MAX)),
    Function::new(
        "splitn",
        &[Type::Text, Type::Int, Type::Text],
        |args| match usize::try_from(args.int(1)) {
            Ok(0) => args.heap.text_map(Entries::new()),
            Ok(limit) => parts(args, args.text(2), limit),
            Err(_) => parts(args, args.text(2), usize::MAX),
        },
    ),
];

/// The parts between separators, at most so many. An empty separator stands between all characters.
fn split<'t>(text: &'t [u8], separator: &[u8], limit: usize) -> Vec<&'t [u8]> {
    let mut parts = Vec::new();
    if separator.is_empty() {
        let mut rest = text;
        for chunk in text.utf8_chunks() {
            let widths = chunk.valid().chars().map(char::len_utf8);
            for width in widths.chain(chunk.invalid().iter().map(|_| 1)) {
                if parts.len() + 1 == limit {
                    parts.push(rest);
                    return parts;
                }
                let (part, after) = rest.split_at(width);
                parts.push(part);
                rest = after;
            }
        }
        return parts;
    }
    let mut begin = 0;
    for at in memmem::find_iter(text, separator).take(limit.saturating_sub(1)) {
        parts.push(&text[begin..at]);
        begin = at + separator.len();
    }
    parts.push(&text[begin..]);
    parts
}

fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Sink::new();
    if old.is_empty() {
        out.push(new)?;
        for part in split(text, old, usize::MAX) {
            out.push(part)?;
            out.push(new)?;
        }
        return Ok(out.into_bytes());
    }
    for (index, part) in split(text, old, usize::MAX).into_iter().enumerate() {
        if index > 0 {
            out.push(new)?;
        }
        out.push(part)?;
    }
    Ok(out.into_bytes())
}

fn trim_all(args: &Args<'_>) -> Answer {
    let set = args.str(0).into_owned();
    args.heap.read(args.text(1).len() * set.len())?;
    args.heap.text(args.str(1).trim_matches(|next| set.contains(next)))
}

fn repeat(args: &Args<'_>) -> Answer {
    let count = usize::try_from(args.int(0)).map_err(|_| "strings: negative Repeat count".to_owned())?;
    let text = args.text(1);
    args.heap.room(text.len().saturating_mul(count))?;
    args.heap.text(text.repeat(if text.is_empty() { 0 } else { count }))
}

fn trunc(args: &Args<'_>) -> Answer {
    let (count, text) = (args.int(0), args.text(1));
    let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    args.heap.text(match count {
        ..0 if length < text.len() => &text[text.len() - length..],
        0.. if length < text.len() => &text[..length],
        _ => text,
    })
}

fn substr(args: &Args<'_>) -> Answer {
    let (start, end, text) = (args.int(0), args.int(1), args.text(2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (start, end) = match (start, end) {
        (..0, end) => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = bounds.and_then(|(start, end)| text.get(start..end));
    let part = part.ok_or_else(|| format!("slice bounds out of range [{start}:{end}] with length {length}"))?;
    args.heap.text(part)
}

fn quote(args: &Args<'_>) -> Answer {
    let mut out = Sink::new();
    for value in args.all().iter().filter(|value| !matches!(value, Value::Nil)) {
        if !out.as_bytes().is_empty() {
            out.push(" ")?;
        }
        format::quote(&cast::text(value, args.heap)?, &mut out)?;
    }
    args.heap.text(out.into_bytes())
}

fn squote(args: &Args<'_>) -> Answer {
    let mut out = Sink::new();
    for value in args.all().iter().filter(|value| !matches!(value, Value::Nil)) {
        out.push(if out.as_bytes().is_empty() { "'" } else { " '" })?;
        print::display(&mut out, value, args.heap)?;
        out.push("'")?;
    }
    args.heap.text(out.into_bytes())
}

fn cat(args: &Args<'_>) -> Answer {
    let mut out = Sink::new();
    let values = args.all().iter().filter(|value| !matches!(value, Value::Nil));
    for (index, value) in values.enumerate() {
        out.push(if index > 0 { " " } else { "" })?;
        print::display(&mut out, value, args.heap)?;
    }
    args.heap.text(out.into_bytes())
}

fn indent(args: &Args<'_>, before: &str) -> Answer {
    let spaces = usize::try_from(args.int(0)).map_err(|_| "strings: negative Repeat count".to_owned())?;
    args.heap.room(spaces)?;
    let pad = " ".repeat(spaces);
    let mut out = Sink::new();
    out.push(before)?;
    for (index, line) in args.text(1).split(|byte| *byte == b'\n').enumerate() {
        out.push(if index > 0 { "\n" } else { "" })?;
        out.push(&pad)?;
        out.push(line)?;
    }
    args.heap.text(out.into_bytes())
}

fn join(args: &Args<'_>) -> Answer {
    let mut out = Sink::new();
    for (index, text) in cast::texts(args.value(1), args.heap)?.iter().enumerate() {
        if index > 0 {
            out.push(args.text(0))?;
        }
        out.push(text)?;
    }
    args.heap.text(out.into_bytes())
}

/// The parts of a text as a map: `_0`, `_1` and so on.
fn parts(args: &Args<'_>, text: &[u8], limit: usize) -> Answer {
    let parts = split(text, args.text(0), limit);
    let mut entries = Entries::new();
    args.heap.elements(parts.len())?;
    for (index, part) in parts.into_iter().enumerate() {
        entries.insert(format!("_{index}").into_bytes().into(), args.heap.text(part)?);
    }
    args.heap.text_map(entries)
}
