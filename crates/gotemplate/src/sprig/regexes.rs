//! Functions with regular expressions.

use regex::bytes::Regex;

use super::pattern::{Pattern, Replacing, expand, literal};
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::{Heap, Sink};
use crate::template::value::{Of, Value};

const TWO: &[Type] = &[Type::Text, Type::Text];
const THREE: &[Type] = &[Type::Text, Type::Text, Type::Text];
const WITH_COUNT: &[Type] = &[Type::Text, Type::Text, Type::Int];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "regexMatch",
        TWO,
        |args| Ok(matches(args).unwrap_or(Value::Bool(false))),
    ),
    Function::new("mustRegexMatch", TWO, matches),
    Function::new("regexFind", TWO, find),
    Function::new("mustRegexFind", TWO, find),
    Function::new("regexFindAll", WITH_COUNT, find_all),
    Function::new("mustRegexFindAll", WITH_COUNT, find_all),
    Function::new("regexReplaceAll", THREE, |args| replace_all(args, expand)),
    Function::new("mustRegexReplaceAll", THREE, |args| replace_all(args, expand)),
    Function::new("regexReplaceAllLiteral", THREE, |args| replace_all(args, literal)),
    Function::new("mustRegexReplaceAllLiteral", THREE, |args| replace_all(args, literal)),
    Function::new("regexSplit", WITH_COUNT, split),
    Function::new("mustRegexSplit", WITH_COUNT, split),
    Function::new("regexQuoteMeta", &[Type::Text], |args| {
        let mut out = Sink::new();
        for byte in args.text(0) {
            if b"\\.+*?()|[]{}^$".contains(byte) {
                out.push("\\")?;
            }
            out.push([*byte])?;
        }
        args.heap.text(out.into_bytes())
    }),
];

fn compiled(args: &Args<'_>) -> Result<Pattern, String> {
    let pattern = args.str(0);
    // What compiling and searching costs.
    args.heap.read((pattern.len() + 64) * 256)?;
    args.heap
        .read(args.text(1).len().saturating_mul(pattern.len().clamp(4, 64) * 2))?;
    Pattern::new(&pattern)
}

fn matches(args: &Args<'_>) -> Answer {
    Ok(Value::Bool(compiled(args)?.0.is_match(args.text(1))))
}

fn find(args: &Args<'_>) -> Answer {
    let found = compiled(args)?.0;
    args.heap
        .text(found.find(args.text(1)).map_or(&b""[..], |found| found.as_bytes()))
}

/// How many at most; a number below 0 stands for all.
fn limit(args: &Args<'_>) -> usize {
    usize::try_from(args.int(2)).unwrap_or(usize::MAX)
}

fn find_all(args: &Args<'_>) -> Answer {
    let regex = compiled(args)?.0;
    let found = go_matches(&regex, args.text(1))
        .take(limit(args))
        .map(|(start, end)| &args.text(1)[start..end]);
    let texts: Vec<Value> = found.map(|found| charged(args.heap, found)).collect::<Result<_, _>>()?;
    if texts.is_empty() {
        args.heap.nil_list(Of::Text)
    } else {
        args.heap.list(Of::Text, texts)
    }
}

/// A text of a list that is still being made.
fn charged(heap: &Heap, text: &[u8]) -> Answer {
    heap.elements(1)?;
    heap.text(text)
}

/// Where an expression is found. Go leaves out an empty match right after another match.
fn go_matches<'a>(regex: &'a Regex, text: &'a [u8]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut last_end = None;
    regex.find_iter(text).filter_map(move |found| {
        let (start, end) = (found.start(), found.end());
        let inside_of_char = start < text.len() && start == end && text[start] & 0xc0 == 0x80;
        let after_other = start == end && last_end == Some(start);
        last_end = Some(end);
        (!after_other && !inside_of_char).then_some((start, end))
    })
}

fn replace_all(args: &Args<'_>, replacing: Replacing) -> Answer {
    let replaced = compiled(args)?.replaced(args.text(1), args.text(2), replacing)?;
    args.heap.text(replaced)
}

fn split(args: &Args<'_>) -> Answer {
    let regex = compiled(args)?.0;
    let (text, limit) = (args.text(1), limit(args));
    if limit == 0 {
        return args.heap.nil_list(Of::Text);
    }
    if !args.text(0).is_empty() && text.is_empty() {
        return args.heap.texts([""]);
    }
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for (start, stop) in go_matches(&regex, text) {
        if parts.len() + 1 == limit {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(charged(args.heap, &text[begin..end])?);
        }
        begin = stop;
    }
    if end != text.len() {
        parts.push(charged(args.heap, &text[begin..])?);
    }
    args.heap.list(Of::Text, parts)
}
