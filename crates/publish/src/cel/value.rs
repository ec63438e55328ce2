//! What CEL computes with. Values of the documents are borrowed.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::time::Moment;

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Arc<[u8]>),
    List(List<'a>),
    Map(MapOf<'a>),
    Timestamp(Moment),
    /// Nanoseconds.
    Duration(i64),
    Type(&'static str),
}

#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Json(&'a str),
    Made(Arc<str>),
}

#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Json(&'a [Value]),
    Made(Arc<[Val<'a>]>),
}

#[derive(Debug, Clone)]
pub(super) enum MapOf<'a> {
    Json(&'a Map<String, Value>),
    Made(Arc<[(Val<'a>, Val<'a>)]>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Json(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(Val::of),
            Self::Made(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> MapOf<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(members) => members.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    pub(super) fn get(&self, key: &Val<'_>) -> Option<Val<'a>> {
        match self {
            Self::Json(members) => match key {
                Val::Text(key) => members.get(key.as_str()).map(Val::of),
                _ => None,
            },
            Self::Made(entries) => entries
                .iter()
                .find(|(known, _)| known.equals(key))
                .map(|(_, value)| value.clone()),
        }
    }

    pub(super) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Json(members) => members.keys().map(|key| Val::Text(Text::Json(key))).collect(),
            Self::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'a> Val<'a> {
    /// A value of a document. Whole numbers stay whole.
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                _ => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(Text::Json(text)),
            Value::Array(items) => Self::List(List::Json(items)),
            Value::Object(members) => Self::Map(MapOf::Json(members)),
        }
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
        }
    }

    /// Whether two values are equal. Numbers are, whatever their types.
    pub(super) fn equals(&self, other: &Val<'_>) -> bool {
        match (self, other) {
            (Self::Null, Val::Null) => true,
            (Self::Bytes(a), Val::Bytes(b)) => a == b,
            (Self::Type(a), Val::Type(b)) => a == b,
            (Self::List(a), Val::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(&b)),
            (Self::Map(a), Val::Map(b)) => {
                let same = |key: Val<'a>| match (a.get(&key), b.get(&key)) {
                    (Some(a), Some(b)) => a.equals(&b),
                    _ => false,
                };
                a.len() == b.len() && a.keys().into_iter().all(same)
            }
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// Which comes first, if that can be said.
    pub(super) fn compare(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Val::Text(b)) => Some(a.as_str().cmp(b.as_str())),
            (Self::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Val::Timestamp(b)) => Some(a.at.cmp(&b.at)),
            (Self::Duration(a), Val::Duration(b)) => Some(a.cmp(b)),
            (Self::Double(a), Val::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), b) => compare_to_whole(*a, b.whole()?),
            (a, Val::Double(b)) => compare_to_whole(*b, a.whole()?).map(Ordering::reverse),
            (a, b) => Some(a.whole()?.cmp(&b.whole()?)),
        }
    }

    /// As a whole number, if it is one.
    pub(super) fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    /// As JSON. What JSON does not have is text, as protobuf writes it.
    pub(super) fn to_json(&self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(number) => Value::from(*number),
            Self::Uint(number) => Value::from(*number),
            Self::Double(number) => json_number(*number)?,
            Self::Text(text) => Value::from(text.as_str()),
            Self::Bytes(bytes) => Value::from(base64(bytes)),
            Self::List(List::Json(items)) => Value::Array(items.to_vec()),
            Self::List(items) => Value::Array(items.iter().map(|item| item.to_json()).collect::<Result<_, _>>()?),
            Self::Map(MapOf::Json(members)) => Value::Object((*members).clone()),
            Self::Map(MapOf::Made(entries)) => {
                let entry = |(key, value): &(Val<'_>, Val<'_>)| {
                    let key = match key.to_json()? {
                        Value::String(key) => key,
                        other => other.to_string(),
                    };
                    Ok::<_, String>((key, value.to_json()?))
                };
                Value::Object(entries.iter().map(entry).collect::<Result<_, _>>()?)
            }
            Self::Timestamp(moment) => Value::from(moment.to_string()),
            Self::Duration(nanoseconds) => Value::from(super::time::seconds(*nanoseconds)),
            Self::Type(_) => return Err("a type is no JSON".to_owned()),
        })
    }
}

/// A double next to a whole number. The number is exact; the double has a whole part and a rest.
fn compare_to_whole(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() >= 1e30 {
        return Some(if double > 0.0 {
            Ordering::Greater
        } else {
            Ordering::Less
        });
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let floor = double.floor() as i128;
    Some(floor.cmp(&whole).then(if double.fract() == 0.0 {
        Ordering::Equal
    } else {
        Ordering::Greater
    }))
}

/// A double as Go's encoder writes it: a whole one has no point.
fn json_number(number: f64) -> Result<Value, String> {
    if number.fract() == 0.0
        && number.abs() < 1e21
        && let Ok(whole) = format!("{number}").parse::<i64>()
    {
        return Ok(Value::from(whole));
    }
    let number = Number::from_f64(number).ok_or_else(|| format!("json: unsupported value: {number}"))?;
    Ok(Value::Number(number))
}

/// A double as `%g` of Go prints it.
pub(super) fn general(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    let mut out = digits.to_owned();
    let sign = if power < 0 { '-' } else { '+' };
    // Writing to a String cannot fail.
    let _ = write!(out, "e{sign}{:02}", power.unsigned_abs());
    out
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for index in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * index)) as usize & 63];
            out.push(if index <= group.len() { char::from(sign) } else { '=' });
        }
    }
    out
}
