//! Constants of a template, by the rules of Go's `strconv`.

pub(crate) use goyaml::int;

use super::node::Number;

/// What a text in quotes or back quotes holds. Escapes may make bytes that are not UTF-8.
pub(crate) fn text(quoted: &str) -> Result<Vec<u8>, &'static str> {
    const WRONG: &str = "invalid syntax of a quoted text";
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).ok_or(WRONG)?;
    if quoted.starts_with('`') {
        return Ok(inner.replace('\r', "").into_bytes());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(next) = rest.chars().next() {
        let (unit, after) = if next == '\\' {
            unescape(rest, '"').ok_or(WRONG)?
        } else {
            (Unit::Char(next), &rest[next.len_utf8()..])
        };
        match unit {
            Unit::Char(found) => bytes.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(found) => bytes.push(found),
        }
        rest = after;
    }
    Ok(bytes)
}

/// The number of a character in quotes.
pub(crate) fn character(quoted: &str) -> Result<Number, String> {
    let wrong = || format!("malformed character constant: {quoted}");
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).ok_or_else(wrong)?;
    let next = inner.chars().next().ok_or_else(wrong)?;
    let (unit, after) = if next == '\\' {
        unescape(inner, '\'').ok_or_else(wrong)?
    } else {
        (Unit::Char(next), &inner[next.len_utf8()..])
    };
    if !after.is_empty() {
        return Err(wrong());
    }
    let int = match unit {
        Unit::Char(found) => i64::from(u32::from(found)),
        Unit::Byte(found) => i64::from(found),
    };
    Ok(of_int(int))
}

/// A number of any form.
pub(crate) fn number(text: &str) -> Result<Number, String> {
    if let Some(int) = int(text) {
        return Ok(of_int(int));
    }
    let wrong = || format!("illegal number syntax: {text:?}");
    let is_hex = text
        .trim_start_matches(['+', '-'])
        .to_ascii_lowercase()
        .starts_with("0x");
    if !is_hex && !text.contains(['.', 'e', 'E']) {
        return Err(
            if text
                .trim_start_matches(['+', '-'])
                .bytes()
                .all(|digit| digit.is_ascii_digit())
            {
                format!("integer overflow: {text:?}")
            } else {
                wrong()
            },
        );
    }
    let float = float(text).ok_or_else(wrong)?;
    Ok(Number {
        int: whole(float),
        float,
        is_float: true,
    })
}

#[expect(clippy::cast_precision_loss, reason = "as Go does it")]
fn of_int(int: i64) -> Number {
    Number {
        int: Some(int),
        float: int as f64,
        is_float: false,
    }
}

/// A float as an integer, if that loses nothing.
#[expect(
    clippy::cast_possible_truncation,
    reason = "within the bounds it cannot be truncated"
)]
fn whole(float: f64) -> Option<i64> {
    let is_whole = float.fract() == 0.0 && (-9.2e18..9.2e18).contains(&float);
    is_whole.then_some(float as i64)
}

/// A float as `strconv.ParseFloat` reads it.
pub(crate) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let float = hex_float(digits)?;
        return Some(if text.starts_with('-') { -float } else { float });
    }
    let special = unsigned.to_ascii_lowercase();
    if matches!(special.as_str(), "inf" | "infinity") {
        return Some(if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    if special == "nan" && unsigned.len() == text.len() {
        return Some(f64::NAN);
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let between_digits = |(at, _): (usize, &str)| {
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        at > 0 && is_digit(text.as_bytes().get(at - 1)) && is_digit(text.as_bytes().get(at + 1))
    };
    if !text.match_indices('_').all(between_digits) {
        return None;
    }
    // What is out of range is an error in Go and infinite in Rust.
    text.replace('_', "")
        .parse::<f64>()
        .ok()
        .filter(|float| float.is_finite())
}

/// What follows `0x`: digits with a point, and the power of two.
fn hex_float(text: &str) -> Option<f64> {
    let (digits, power) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 12 {
        return None;
    }
    let bits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let shift = i32::try_from(fraction.len()).ok()? * 4;
    let power: i32 = power.parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "twelve digits fit into 53 bits")]
    let float = bits as f64 * 2_f64.powi(power.checked_sub(shift)?);
    float.is_finite().then_some(float)
}

/// What an escape stands for.
enum Unit {
    Char(char),
    Byte(u8),
}

/// The escape that a text begins with, and what follows it.
fn unescape(text: &str, quote: char) -> Option<(Unit, &str)> {
    let rest = text.strip_prefix('\\')?;
    let kind = rest.chars().next()?;
    let after = &rest[kind.len_utf8()..];
    let simple = |found: char| Some((Unit::Char(found), after));
    match kind {
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        '\\' => simple('\\'),
        _ if kind == quote => simple(quote),
        'x' => {
            let byte = u8::from_str_radix(digits(after, 2)?, 16).ok()?;
            Some((Unit::Byte(byte), &after[2..]))
        }
        'u' | 'U' => {
            let length = if kind == 'u' { 4 } else { 8 };
            let code = u32::from_str_radix(digits(after, length)?, 16).ok()?;
            Some((Unit::Char(char::from_u32(code)?), &after[length..]))
        }
        '0'..='7' => {
            let byte = u8::from_str_radix(digits(rest, 3)?, 8).ok()?;
            Some((Unit::Byte(byte), &rest[3..]))
        }
        _ => None,
    }
}

fn digits(text: &str, length: usize) -> Option<&str> {
    text.get(..length)
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_forms_of_go() {
        let rows = [
            ("0x1f", Some(31)),
            ("0755", Some(493)),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("0", Some(0)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("08", None),
            ("0x_1f", Some(31)),
            ("1_000", Some(1000)),
            ("_1", None),
            ("1__0", None),
            ("0x", None),
            ("", None),
            ("é", None),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("0x-5", None),
        ];
        for (text, expected) in rows {
            assert_eq!(int(text), expected, "{text}");
        }
    }

    #[test]
    fn escapes_make_characters_and_bytes() {
        let rows: [(&str, Result<&[u8], ()>); 7] = [
            (r#""a\tb\n""#, Ok(b"a\tb\n")),
            (r#""\xff""#, Ok(b"\xff")),
            (r#""\u00e9""#, Ok("é".as_bytes())),
            (r#""\101""#, Ok(b"A")),
            (r#""\q""#, Err(())),
            (r#""\ud800""#, Err(())),
            ("`a\\t\r\n`", Ok(b"a\\t\n")),
        ];
        for (quoted, expected) in rows {
            assert_eq!(
                text(quoted).map_err(|_| ()).as_deref(),
                expected.as_ref().copied(),
                "{quoted}"
            );
        }
    }
}
