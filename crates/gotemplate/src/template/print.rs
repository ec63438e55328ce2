//! Values as text: what Go's `fmt` prints for `%v`.

use super::function::Answer;
use super::heap::{Heap, Sink};
use super::value::Value;

/// What an action prints.
pub(crate) fn printed(out: &mut Sink, value: &Value, heap: &Heap) -> Result<(), String> {
    match value {
        Value::Nil => out.push("<no value>"),
        other => display(out, other, heap),
    }
}

/// A value as `%v` prints it.
pub(crate) fn display(out: &mut Sink, value: &Value, heap: &Heap) -> Result<(), String> {
    match value {
        Value::Nil => out.push("<nil>"),
        Value::Bool(value) => out.push(if *value { "true" } else { "false" }),
        Value::Int(_, number) => out.push(number.to_string()),
        Value::Float(number) => out.push(float(*number)),
        Value::Text(text) => out.push(text),
        Value::List(list) => heap.deeper(|| {
            heap.work(1)?;
            out.push("[")?;
            for (index, item) in list.items.iter().enumerate() {
                out.push(if index > 0 { " " } else { "" })?;
                display(out, item, heap)?;
            }
            out.push("]")
        }),
        Value::Map(map) => heap.deeper(|| {
            heap.work(1)?;
            out.push("map[")?;
            for (index, (key, item)) in map.entries.borrow().iter().enumerate() {
                out.push(if index > 0 { " " } else { "" })?;
                out.push(key)?;
                out.push(":")?;
                display(out, item, heap)?;
            }
            out.push("]")
        }),
        Value::Time(moment) => out.push(moment.to_string()),
        Value::Version(version) => out.push(version.to_string()),
        Value::Data(data) => match &data.text {
            Some(text) => out.push(text),
            None => heap.deeper(|| {
                out.push("{")?;
                for (index, (_, value)) in data.fields.iter().enumerate() {
                    out.push(if index > 0 { " " } else { "" })?;
                    display(out, value, heap)?;
                }
                out.push("}")
            }),
        },
    }
}

/// A value as a text of its own.
pub(crate) fn bytes(value: &Value, heap: &Heap) -> Result<Vec<u8>, String> {
    let mut out = Sink::new();
    display(&mut out, value, heap)?;
    Ok(out.into_bytes())
}

/// A value in a message.
pub(crate) fn shown(value: &Value, heap: &Heap) -> Result<String, String> {
    let bytes = bytes(value, heap)?;
    Ok(String::from_utf8_lossy(&bytes).chars().take(100).collect())
}

/// Several values: with a space between two of which neither is a text.
pub(crate) fn sprint(values: &[Value], heap: &Heap) -> Answer {
    let mut out = Sink::new();
    let mut before_is_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !is_text && !before_is_text {
            out.push(" ")?;
        }
        display(&mut out, value, heap)?;
        before_is_text = is_text;
    }
    heap.text(out.into_bytes())
}

/// Several values, with spaces between them and a line break at the end.
pub(crate) fn sprintln(values: &[Value], heap: &Heap) -> Answer {
    let mut out = Sink::new();
    for (index, value) in values.iter().enumerate() {
        out.push(if index > 0 { " " } else { "" })?;
        display(&mut out, value, heap)?;
    }
    out.push("\n")?;
    heap.text(out.into_bytes())
}

/// A float in the shortest form that reads back as the same: `strconv.FormatFloat(f, 'g', -1, 64)`.
pub(crate) fn float(number: f64) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    let (digits, exponent) = shortest(number);
    if !(-4..6).contains(&exponent) {
        return scientific(number, &digits, exponent);
    }
    plain(number)
}

/// Infinite, or not a number.
pub(crate) fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// The digits of a float in its shortest form, and the exponent of the first one.
pub(crate) fn shortest(number: f64) -> (String, i32) {
    let text = format!("{:e}", number.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// Without an exponent.
pub(crate) fn plain(number: f64) -> String {
    format!("{number}")
}

/// With an exponent of at least two digits.
pub(crate) fn scientific(number: f64, digits: &str, exponent: i32) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let (exponent_sign, exponent) = (if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    format!("{sign}{first}{point}{rest}e{exponent_sign}{exponent:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_form_of_go() {
        let rows = [
            (1.0, "1"),
            (1000.0, "1000"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1.5e10, "1.5e+10"),
            (123_456_789.0, "1.23456789e+08"),
            (1_234_567.5, "1.2345675e+06"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (0.0, "0"),
            (-0.0, "-0"),
            (f64::INFINITY, "+Inf"),
            (1e300, "1e+300"),
        ];
        for (number, expected) in rows {
            assert_eq!(float(number), expected);
        }
    }
}
