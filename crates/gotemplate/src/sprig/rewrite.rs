//! Regular expressions as Go has them, written for the crate that runs them.
//!
//! Both have RE2's rules. What differs is how some things are written: in Go, classes such as `\d` hold ASCII only, a
//! bracket inside of brackets is a character, and `\z`, `\Q`, `\C` and octal escapes are known.

use std::fmt::Write as _;

/// The same expression for the crate.
pub(super) fn rewritten(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        match next {
            '\\' => rest = escape(rest, &mut out, false)?,
            '[' => rest = class(rest, &mut out)?,
            '#' | '&' | '~' => {
                out.push('\\');
                out.push(next);
                rest = &rest[1..];
            }
            _ => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    Ok(out)
}

/// What is between brackets.
fn class<'t>(text: &'t str, out: &mut String) -> Result<&'t str, String> {
    let mut rest = &text[1..];
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = after;
    }
    while let Some(next) = rest.chars().next() {
        match next {
            ']' => {
                out.push(']');
                return Ok(&rest[1..]);
            }
            '\\' => rest = escape(rest, out, true)?,
            '[' if rest.starts_with("[:") && rest.contains(":]") => {
                let end = rest.find(":]").unwrap_or(0) + 2;
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(next);
                rest = &rest[1..];
            }
            // Two of them would be a difference of classes.
            '-' if rest.starts_with("--") => {
                out.push_str("\\-");
                rest = &rest[1..];
            }
            _ => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    Err("missing closing ]".to_owned())
}

/// What follows a backslash.
fn escape<'t>(text: &'t str, out: &mut String, in_class: bool) -> Result<&'t str, String> {
    let rest = &text[1..];
    let next = rest.chars().next().ok_or("trailing backslash at end of expression")?;
    let after = &rest[next.len_utf8()..];
    let bracketed = |inside: &str, negated: bool| match (in_class, negated) {
        (true, false) => inside.to_owned(),
        (_, false) => format!("[{inside}]"),
        (_, true) => format!("[^{inside}]"),
    };
    match next {
        'd' | 'D' => out.push_str(&bracketed("0-9", next == 'D')),
        'w' | 'W' => out.push_str(&bracketed("0-9A-Za-z_", next == 'W')),
        's' | 'S' => out.push_str(&bracketed("\\t\\n\\f\\r ", next == 'S')),
        'b' | 'B' if !in_class => out.push_str(if next == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" }),
        'A' | 'z' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'x' | 'p' | 'P' => {
            out.push('\\');
            out.push(next);
        }
        'Q' if !in_class => {
            let (quoted, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(quoted));
            return Ok(after);
        }
        '0'..='7' => {
            let length = rest
                .bytes()
                .take(3)
                .take_while(|digit| matches!(digit, b'0'..=b'7'))
                .count();
            if next != '0' && length < 2 {
                return Err(format!("invalid escape sequence: \\{next}"));
            }
            let code = u32::from_str_radix(&rest[..length], 8).unwrap_or(0);
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{{{code:x}}}");
            return Ok(&rest[length..]);
        }
        _ if next.is_ascii_punctuation() => {
            out.push('\\');
            out.push(next);
        }
        _ => return Err(format!("invalid escape sequence: \\{next}")),
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_written_for_the_crate() {
        let rows = [
            (r"a\d+", Ok(r"a[0-9]+")),
            (r"[\w.-]", Ok(r"[0-9A-Za-z_.-]")),
            (r"[[]", Ok(r"[\[]")),
            (r"[]a]", Ok(r"[\]a]")),
            (r"[[:alpha:]_]", Ok(r"[[:alpha:]_]")),
            (r"a&&b", Ok(r"a\&\&b")),
            (r"\Qa.b\E+", Ok(r"a\.b+")),
            (r"\101", Ok(r"\x{41}")),
            (r"\q", Err("invalid escape sequence: \\q")),
            (r"[a", Err("missing closing ]")),
        ];
        for (pattern, expected) in rows {
            let found = rewritten(pattern);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{pattern}");
        }
    }
}
