//! What a scalar means in YAML 1.1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

/// Without quotes and tag.
pub(super) fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => return Err(format!("{text} is no number that an object may have")),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    })
}

/// With a tag of YAML itself, such as `str` or `int`.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Value, String> {
    let wrong = || format!("cannot read {text:?} as !!{tag}");
    match tag {
        "binary" => {
            let digits: String = text.chars().filter(|next| !next.is_whitespace()).collect();
            let bytes = STANDARD.decode(digits).map_err(|_| wrong())?;
            Ok(Value::String(String::from_utf8(bytes).map_err(|_| wrong())?))
        }
        "int" => plain(text)
            .ok()
            .filter(|value| value.is_i64() || value.is_u64())
            .ok_or_else(wrong),
        "float" => plain(text).ok().filter(Value::is_number).ok_or_else(wrong),
        "bool" => plain(text).ok().filter(Value::is_boolean).ok_or_else(wrong),
        "null" => plain(text).ok().filter(Value::is_null).ok_or_else(wrong),
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// An integer with an optional base prefix and underscores, as `strconv.ParseInt` with base 0 reads it.
pub fn int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) if text.starts_with('-') => ("-", rest),
        Some(rest) => ("", rest),
        None => ("", text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some(two) if two.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if !underscores_fit(&lower) || digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), base).ok()
}

/// Whether underscores stand between digits only, or after a base prefix.
fn underscores_fit(text: &str) -> bool {
    !text.starts_with('_') && !text.ends_with('_') && !text.contains("__")
}

fn number(text: &str) -> Option<Value> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return None;
    }
    let digits = text.replace('_', "");
    if let Some(int) = int(&digits) {
        return Some(Value::Number(int.into()));
    }
    if let Ok(int) = digits.strip_prefix('+').unwrap_or(&digits).parse::<u64>() {
        // A leading zero makes an octal number, or if it is none, a float.
        if !digits.trim_start_matches('+').starts_with('0') {
            return Some(Value::Number(int.into()));
        }
    }
    if !is_float(&digits) {
        return None;
    }
    Some(Value::Number(of_float(digits.parse().ok()?)?))
}

/// The number of a float; an integer, if it is one, as JSON does not tell `1.0` from `1`.
fn of_float(float: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and fits")]
    if float.fract() == 0.0 && (float != 0.0 || float.is_sign_positive()) && (-9.2e18..9.2e18).contains(&float) {
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}

/// Digits with a point, then an exponent.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_fits = exponent.is_none_or(|digits| !digits.is_empty() && is_digits(digits));
    has_digits && is_digits(whole) && is_digits(fraction) && exponent_fits
}

/// A key of a mapping as JSON has it: only texts are keys there.
pub(super) fn key(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err("null is no key of an object".to_owned()),
        Value::Array(_) | Value::Object(_) => Err("a list or mapping is no key of an object".to_owned()),
    }
}
