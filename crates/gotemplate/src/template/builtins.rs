//! The functions that Go's `text/template` itself has.

use std::cmp::Ordering;

use super::format;
use super::function::{Answer, Args, Function, Run, Type};
use super::heap::{Heap, Sink};
use super::print;
use super::value::{IntKind, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

/// `and` and `or` are a part of how commands are evaluated. `slice` is sprig's.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function {
        name: "and",
        takes: ANY,
        more: Some(Type::Any),
        run: Run::And,
    },
    Function {
        name: "or",
        takes: ANY,
        more: Some(Type::Any),
        run: Run::Or,
    },
    Function::new("not", ANY, |args| Ok(Value::Bool(!args.value(0).is_true()))),
    Function::with_more("eq", ANY, Type::Any, |args| equal(args).map(Value::Bool)),
    Function::new("ne", TWO, |args| equal(args).map(|equal| Value::Bool(!equal))),
    Function::new("lt", TWO, |args| less(args, Ordering::is_lt)),
    Function::new("le", TWO, |args| less(args, Ordering::is_le)),
    Function::new("gt", TWO, |args| less(args, Ordering::is_gt)),
    Function::new("ge", TWO, |args| less(args, Ordering::is_ge)),
    Function::new("len", ANY, length),
    Function::with_more("index", ANY, Type::Any, index),
    Function::with_more("call", ANY, Type::Any, |args| {
        Err(match args.value(0) {
            Value::Nil => "call of nil".to_owned(),
            other => format!("non-function of type {}", other.type_name()),
        })
    }),
    Function::with_more("print", &[], Type::Any, |args| print::sprint(args.all(), args.heap)),
    Function::with_more("println", &[], Type::Any, |args| print::sprintln(args.all(), args.heap)),
    Function::with_more("printf", &[Type::Text], Type::Any, |args| {
        format::sprintf(args.text(0), args.from(1), args.heap)
    }),
    Function::with_more("html", &[], Type::Any, |args| escaped(args, html)),
    Function::with_more("js", &[], Type::Any, |args| escaped(args, js)),
    Function::with_more("urlquery", &[], Type::Any, |args| escaped(args, url_query)),
];

/// Whether the first value is one of the others.
fn equal(args: &Args<'_>) -> Result<bool, String> {
    let (first, others) = (args.value(0), args.from(1));
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        if equal_to(first, other, args.heap)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_to(first: &Value, other: &Value, heap: &Heap) -> Result<bool, String> {
    Ok(match (first, other) {
        (Value::Nil, other) | (other, Value::Nil) => is_nil(other),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_, a), Value::Int(_, b)) => a == b,
        #[expect(clippy::float_cmp, reason = "as Go compares them")]
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Time(_) | Value::Version(_) | Value::Data(_), _) if first.type_name() == other.type_name() => {
            first.equals(other, heap)?
        }
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            if is_nil(first) || is_nil(other) {
                return Ok(is_nil(first) == is_nil(other));
            }
            return Err(format!(
                "non-comparable type {}: {}",
                print::shown(other, heap)?,
                other.type_name()
            ));
        }
        _ => return Err(incompatible(first, other)),
    })
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil,
        _ => false,
    }
}

fn incompatible(first: &Value, other: &Value) -> String {
    let (first, other) = (first.type_name(), other.type_name());
    format!("incompatible types for comparison: {first} and {other}")
}

fn less(args: &Args<'_>, wanted: fn(Ordering) -> bool) -> Answer {
    let order = match (args.value(0), args.value(1)) {
        (Value::Int(_, a), Value::Int(_, b)) => a.cmp(b),
        // What is not a number is neither less nor equal, and so greater, as in Go.
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Greater),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (a, b) if is_ordered(a) && is_ordered(b) => return Err(incompatible(a, b)),
        _ => return Err("invalid type for comparison".to_owned()),
    };
    Ok(Value::Bool(wanted(order)))
}

fn is_ordered(value: &Value) -> bool {
    matches!(value, Value::Int(..) | Value::Float(_) | Value::Text(_))
}

fn length(args: &Args<'_>) -> Answer {
    let length = match args.value(0) {
        Value::Text(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.borrow().len(),
        Value::Nil => return Err("len of nil pointer".to_owned()),
        other => return Err(format!("len of type {}", other.type_name())),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(args: &Args<'_>) -> Answer {
    let mut value = args.value(0).clone();
    if matches!(value, Value::Nil) {
        return Err("index of untyped nil".to_owned());
    }
    for index in args.from(1) {
        value = match &value {
            Value::Text(text) => Value::Int(IntKind::Uint8, i64::from(text[position(index, text.len())?])),
            Value::List(list) => list.items[position(index, list.items.len())?].clone(),
            Value::Map(map) => match index {
                Value::Text(key) => match map.entries.borrow().get(key) {
                    Some(entry) => entry.clone(),
                    None if map.of_texts => args.heap.text("")?,
                    None => Value::Nil,
                },
                Value::Nil => return Err("value is nil; should be of type string".to_owned()),
                other => {
                    let other = other.type_name();
                    return Err(format!("value has type {other}; should be string"));
                }
            },
            Value::Nil => return Err("index of nil pointer".to_owned()),
            other => return Err(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(value)
}

fn position(index: &Value, length: usize) -> Result<usize, String> {
    match index {
        Value::Int(_, number) => usize::try_from(*number)
            .ok()
            .filter(|index| *index < length)
            .ok_or_else(|| format!("index out of range: {number}")),
        Value::Nil => Err("cannot index slice/array with nil".to_owned()),
        other => Err(format!("cannot index slice/array with type {}", other.type_name())),
    }
}

/// The arguments as one text, escaped.
fn escaped(args: &Args<'_>, escape: fn(&[u8], &mut Sink) -> Result<(), String>) -> Answer {
    let text = match args.all() {
        [Value::Nil] => b"<no value>".to_vec(),
        [Value::Text(text)] => text.to_vec(),
        values => match print::sprint(values, args.heap)? {
            Value::Text(text) => text.to_vec(),
            _ => Vec::new(),
        },
    };
    let mut out = Sink::new();
    escape(&text, &mut out)?;
    args.heap.text(out.into_bytes())
}

fn html(text: &[u8], out: &mut Sink) -> Result<(), String> {
    for byte in text {
        match byte {
            0 => out.push("\u{fffd}")?,
            b'"' => out.push("&#34;")?,
            b'\'' => out.push("&#39;")?,
            b'&' => out.push("&amp;")?,
            b'<' => out.push("&lt;")?,
            b'>' => out.push("&gt;")?,
            other => out.push([*other])?,
        }
    }
    Ok(())
}

fn js(text: &[u8], out: &mut Sink) -> Result<(), String> {
    for next in String::from_utf8_lossy(text).chars() {
        match next {
            '\\' => out.push("\\\\")?,
            '\'' => out.push("\\'")?,
            '"' => out.push("\\\"")?,
            '<' | '>' | '&' | '=' | '\0'..='\u{1f}' => out.push(format!("\\u{:04X}", u32::from(next)))?,
            '\u{7f}' => out.char(next)?,
            next if format::is_printed(next) => out.char(next)?,
            next => out.push(format!("\\u{:04X}", u32::from(next)))?,
        }
    }
    Ok(())
}

fn url_query(text: &[u8], out: &mut Sink) -> Result<(), String> {
    for byte in text {
        match byte {
            b' ' => out.push("+")?,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push([*byte])?,
            other => out.push(format!("%{other:02X}"))?,
        }
    }
    Ok(())
}
