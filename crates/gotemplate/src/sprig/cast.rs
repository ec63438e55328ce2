//! Any value as a number or text, by the rules of the library that sprig converts with.

use std::num::IntErrorKind;

use crate::template::heap::Heap;
use crate::template::literal;
use crate::template::print;
use crate::template::value::Value;

/// As an integer; 0 if it is none.
#[expect(clippy::cast_possible_truncation, reason = "what Go does on amd64 comes next to it")]
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Bool(value) => i64::from(*value),
        Value::Int(_, number) => *number,
        Value::Float(number) if number.is_nan() || !(-9.3e18..9.2e18).contains(number) => i64::MIN,
        Value::Float(number) => *number as i64,
        Value::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| literal::int(without_zero_decimals(text)))
            .unwrap_or(0),
        _ => 0,
    }
}

/// As a float; 0 if it is none.
#[expect(clippy::cast_precision_loss, reason = "as Go does it")]
pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Int(_, number) => *number as f64,
        Value::Float(number) => *number,
        Value::Text(text) => std::str::from_utf8(text).ok().and_then(literal::float).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// A decimal integer in a text; the largest or smallest if it is beyond, as `strconv.Atoi` gives beside its error.
pub(super) fn decimal(text: &str) -> i64 {
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => i64::MAX,
            IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        },
    }
}

/// `1.00` is 1.
fn without_zero_decimals(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) if trimmed.len() < text.len() => whole,
        _ => text,
    }
}

/// As text.
pub(super) fn text(value: &Value, heap: &Heap) -> Result<Vec<u8>, String> {
    match value {
        Value::Text(text) => Ok(text.to_vec()),
        other => print::bytes(other, heap),
    }
}

/// The elements of a list as texts, without nil; any other value as the only one.
pub(super) fn texts(value: &Value, heap: &Heap) -> Result<Vec<Vec<u8>>, String> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            let items = list.items.iter().filter(|item| !matches!(item, Value::Nil));
            // Each of many may be long.
            let mut length = 0;
            items
                .map(|item| {
                    let text = text(item, heap)?;
                    length += text.len();
                    heap.room(length)?;
                    Ok(text)
                })
                .collect()
        }
        other => Ok(vec![text(other, heap)?]),
    }
}
