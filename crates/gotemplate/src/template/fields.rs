//! What stands after a dot: entries of maps, fields of the data, and the methods of times and versions.

use super::function::Answer;
use super::heap::Heap;
use super::value::{IntKind, Value};

/// A field of a value, or nothing if a map has no such key. What is missing has no fields either, and that is no error;
/// an entry that is nil has none, and that is one.
pub(crate) fn field(
    receiver: Option<Value>,
    name: &str,
    arguments: Option<Vec<Value>>,
    heap: &Heap,
) -> Result<Option<Value>, String> {
    let Some(receiver) = receiver else { return Ok(None) };
    let has_arguments = arguments.is_some();
    let arguments = arguments.unwrap_or_default();
    let plain = |value: Value| {
        if has_arguments {
            Err(format!("{name} is not a method but has arguments"))
        } else {
            Ok(Some(value))
        }
    };
    match &receiver {
        Value::Nil => Err(format!("nil pointer evaluating interface {{}}.{name}")),
        Value::Map(map) => match map.entries.borrow().get(name.as_bytes()) {
            Some(value) => plain(value.clone()),
            None => plain(Value::Nil).map(|_| None),
        },
        Value::Data(data) => match data.fields.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => plain(value.clone()),
            None => Err(no_field(&receiver, name)),
        },
        _ => match method(&receiver, name, &arguments, heap) {
            Some(answer) => answer.map(Some),
            None => Err(no_field(&receiver, name)),
        },
    }
}

fn no_field(receiver: &Value, name: &str) -> String {
    format!("can't evaluate field {name} in type {}", receiver.type_name())
}

/// What a method gives, if there is one of this name.
fn method(receiver: &Value, name: &str, arguments: &[Value], heap: &Heap) -> Option<Answer> {
    let answer = match (receiver, name, arguments) {
        (Value::Version(version), _, []) => match name {
            "Major" => number(version.major),
            "Minor" => number(version.minor),
            "Patch" => number(version.patch),
            "Prerelease" => heap.text(&version.prerelease),
            "Metadata" => heap.text(&version.metadata),
            "Original" => heap.text(&version.original),
            "String" => heap.text(version.to_string()),
            _ => return None,
        },
        (Value::Time(moment), "Format", [Value::Text(layout)]) => {
            heap.text(moment.format(&String::from_utf8_lossy(layout)))
        }
        (Value::Time(moment), _, []) => match name {
            "Unix" => Ok(Value::int64(moment.unix())),
            "UnixNano" => Ok(Value::int64(moment.unix_nano())),
            "UTC" => Ok(Value::Time(moment.utc().into())),
            "String" => heap.text(moment.to_string()),
            _ => Ok(Value::int(moment.part(name)?)),
        },
        (Value::Version(_) | Value::Time(_), _, _) => {
            let count = arguments.len();
            Err(format!("wrong arguments for {name}: got {count}"))
        }
        _ => return None,
    };
    Some(answer)
}

fn number(part: u64) -> Answer {
    let number = i64::try_from(part).map_err(|_| "version segment out of range".to_owned())?;
    Ok(Value::Int(IntKind::Uint64, number))
}
