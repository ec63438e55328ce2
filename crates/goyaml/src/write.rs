//! Values as YAML that every reader takes for the same, those of YAML 1.1 too.

use std::fmt::Write as _;

use serde_json::Value;

use super::scalar;

/// A value as a document.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => block(&mut out, value, 0),
        _ => {
            inline(&mut out, value, 0);
            out.push('\n');
        }
    }
    out
}

/// The lines of a list or mapping.
fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(entries) => {
            for (index, (key, value)) in entries.iter().enumerate() {
                // The first line of an item stands behind its dash.
                if index > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push_str(&text(key));
                out.push(':');
                entry(out, value, indent + 2, indent);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if index > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push('-');
                item(out, value, indent + 2);
            }
        }
        _ => {}
    }
}

/// What follows the colon.
fn entry(out: &mut String, value: &Value, inner: usize, outer: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            block(out, value, inner);
        }
        // Lists stand as deep as their key, as kubectl writes them.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, outer);
        }
        _ => {
            out.push(' ');
            inline(out, value, inner);
            out.push('\n');
        }
    }
}

/// What follows the dash.
fn item(out: &mut String, value: &Value, indent: usize) {
    out.push(' ');
    match value {
        Value::Object(entries) if !entries.is_empty() => block(out, value, indent),
        Value::Array(items) if !items.is_empty() => block(out, value, indent),
        _ => {
            inline(out, value, indent);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A scalar, or a list or mapping that is empty.
fn inline(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(text) if fits_block(text) => lines(out, text, indent),
        Value::String(string) => out.push_str(&text(string)),
    }
}

/// Whether a text can stand in lines of its own, as it is.
fn fits_block(text: &str) -> bool {
    let is_shown = |next: char| next == '\n' || next == '\t' || (!next.is_control() && next != '\u{feff}');
    let breaks = ['\u{85}', '\u{2028}', '\u{2029}'];
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(is_shown)
        && !text.contains(breaks)
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

fn lines(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push_str(match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
    // The line break at the end comes from the caller.
    for _ in 1..(text.len() - body.len()).max(1) {
        out.push('\n');
    }
}

/// A text in one line, in quotes where it would be something else without.
fn text(text: &str) -> String {
    let is_plain = |next: char| next.is_ascii_alphanumeric() || "_./:-@+ ".contains(next);
    let begins = |first: char| first.is_ascii_alphanumeric() || matches!(first, '_' | '/' | '.');
    let ends = |last: char| last != ' ' && last != ':';
    if text.starts_with(begins)
        && text.ends_with(ends)
        && text.chars().all(is_plain)
        && !text.contains(": ")
        && !looks_like_time(text)
        && matches!(scalar::plain(text), Ok(Value::String(_)))
    {
        return text.to_owned();
    }
    let json = Value::String(text.to_owned()).to_string();
    // What JSON leaves as it is and YAML does not show.
    let hidden = |next: char| next.is_control() || matches!(next, '\u{feff}' | '\u{2028}' | '\u{2029}');
    if !json.contains(hidden) {
        return json;
    }
    json.chars().fold(String::new(), |mut out, next| {
        if hidden(next) {
            let _ = write!(out, "\\u{:04x}", u32::from(next));
        } else {
            out.push(next);
        }
        out
    })
}

/// Whether other readers would take it for a time or a number in base 60.
fn looks_like_time(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['-', ':', '.', '_', ' '])
}
