//! URLs in their parts, as Go's `net/url` has them.

use std::fmt::Write as _;

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::value::{Entries, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("urlParse", &[Type::Text], parse),
    Function::new("urlJoin", &[Type::Map], join),
];

fn parse(args: &Args<'_>) -> Answer {
    let text = args.str(0);
    let wrong = |why: &str| format!("unable to parse url: parse {text:?}: {why}");
    if text.chars().any(|next| next.is_ascii_control()) {
        return Err(wrong("net/url: invalid control character in URL"));
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((&text, ""));
    let (scheme, rest) = scheme(rest).map_err(wrong)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut authority, mut path, mut opaque) = ("", rest, "");
    if !scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty() {
        (opaque, path) = (rest, "");
    } else if let Some(after) = rest
        .strip_prefix("//")
        .filter(|after| !scheme.is_empty() || !after.starts_with('/'))
    {
        let end = after.find('/').unwrap_or(after.len());
        (authority, path) = after.split_at(end);
    }
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let unescaped = |part: &str| unescape(part).ok_or_else(|| wrong("invalid URL escape"));
    let hostname = host_name(host).ok_or_else(|| wrong("invalid port after host"))?;
    let parts: [(&str, Vec<u8>); 8] = [
        ("scheme", scheme.to_ascii_lowercase().into_bytes()),
        ("host", unescaped(host)?),
        ("hostname", unescaped(hostname)?),
        ("path", unescaped(path)?),
        ("query", query.as_bytes().to_vec()),
        ("opaque", opaque.as_bytes().to_vec()),
        ("fragment", unescaped(fragment)?),
        ("userinfo", user.as_bytes().to_vec()),
    ];
    let mut entries = Entries::new();
    for (name, value) in parts {
        entries.insert(name.as_bytes().into(), args.heap.text(value)?);
    }
    args.heap.map(entries)
}

/// The scheme of a URL and what follows it.
fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, next) in text.char_indices() {
        match next {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    let first = text.split('/').next().unwrap_or_default();
    if first.contains(':') {
        Err("first path segment in URL cannot contain colon")
    } else {
        Ok(("", text))
    }
}

/// A host without its port, and without the brackets of an address.
fn host_name(host: &str) -> Option<&str> {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.split_once(']').map(|(name, _)| name);
    }
    match host.split_once(':') {
        None => Some(host),
        Some((name, port)) => port.bytes().all(|digit| digit.is_ascii_digit()).then_some(name),
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(out)
}

fn escape(text: &[u8], allowed: &[u8]) -> String {
    let mut out = String::new();
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(byte) || allowed.contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn join(args: &Args<'_>) -> Answer {
    let part = |name: &str| {
        let entries = args.map(0).map(|map| map.entries.borrow());
        match entries.as_ref().and_then(|entries| entries.get(name.as_bytes())) {
            None => Ok(Vec::new()),
            Some(Value::Text(text)) => Ok(text.to_vec()),
            Some(other) => {
                let kind = other.kind_name();
                Err(format!(
                    "unable to parse {name} key, must be of type string, but {kind} found"
                ))
            }
        }
    };
    let lossy = |name: &str| part(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (scheme, opaque, user, query) = (lossy("scheme")?, lossy("opaque")?, lossy("userinfo")?, lossy("query")?);
    let (host, path, fragment) = (part("host")?, part("path")?, part("fragment")?);
    let mut out = String::new();
    if !scheme.is_empty() {
        let _ = write!(out, "{scheme}:");
    }
    if opaque.is_empty() {
        let has_authority = !host.is_empty() || !user.is_empty();
        if has_authority || !scheme.is_empty() && path.starts_with(b"/") {
            out.push_str("//");
            if !user.is_empty() {
                let _ = write!(out, "{user}@");
            }
            out.push_str(&escape(&host, b"[]<>\"!'()*"));
        }
        if !path.is_empty() && path[0] != b'/' && !host.is_empty() {
            out.push('/');
        }
        out.push_str(&escape(&path, b""));
    } else {
        out.push_str(&opaque);
    }
    if !query.is_empty() {
        let _ = write!(out, "?{query}");
    }
    if !fragment.is_empty() {
        let _ = write!(out, "#{}", escape(&fragment, b"!()*?"));
    }
    args.heap.text(out)
}
