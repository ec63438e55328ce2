//! JSON as Go writes it, byte for byte: hashes of it are in names.

use std::fmt::Write as _;

use ring::digest;
use serde_json::{Map, Number, Value};

/// Appends a text in quotes. As Go does by default, what HTML would read is written by its number.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for next in text.chars() {
        match next {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(next));
            }
            _ => out.push(next),
        }
    }
    out.push('"');
}

/// Appends a value, with the keys of mappings in order.
pub(crate) fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => push_number(out, number),
        Value::String(text) => push_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                push_value(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                push_text(out, key);
                out.push(':');
                push_value(out, item);
            }
            out.push('}');
        }
    }
}

fn push_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => push_float(out, float),
        None => out.push_str(&number.to_string()),
    }
}

/// Appends a float in the shortest form that reads back as the same.
pub(crate) fn push_float(out: &mut String, number: f64) {
    let magnitude = number.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        let _ = write!(out, "{number}");
        return;
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    let _ = write!(out, "{digits}e{sign}{exponent}");
}

/// The mapping at this key, taken out.
pub(crate) fn taken(object: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match object.remove(key) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// A value as text.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    push_value(&mut out, value);
    out
}

/// The SHA-1 of a text, in hexadecimal.
pub fn hash(text: &str) -> String {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The SHA-1 of JSON as an encoder of Go writes it: with a line break at the end.
pub(crate) fn hash_of_json(json: &str) -> String {
    hash(&format!("{json}\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_go_writes_them() {
        for (value, expected) in [
            (json!({"b": 1, "a": [null, true]}), r#"{"a":[null,true],"b":1}"#),
            (
                json!("a <b> & \"c\"\u{2028}\u{1}\u{7f}é"),
                "\"a \\u003cb\\u003e \\u0026 \\\"c\\\"\\u2028\\u0001\u{7f}é\"",
            ),
            (json!("\t\n\r\u{8}\u{c}\\/"), r#""\t\n\r\b\f\\/""#),
            (
                json!([1.0, 0.5, 1e20, 1e21, 1.5e-7, 0.000_001]),
                "[1,0.5,100000000000000000000,1e+21,1.5e-7,0.000001]",
            ),
            (
                json!([9_223_372_036_854_775_807_i64, u64::MAX]),
                "[9223372036854775807,18446744073709551615]",
            ),
        ] {
            assert_eq!(text(&value), expected);
        }
    }

    #[test]
    fn hashes_are_those_of_the_contract() {
        assert_eq!(hash("web"), "ca84d1343b96baa8137c943ed1860e522cacb238");
    }
}
