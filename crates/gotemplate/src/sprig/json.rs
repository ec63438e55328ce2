//! JSON in both directions, as Go's `encoding/json` has it.

use std::fmt;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::{Heap, Sink};
use crate::template::print;
use crate::template::value::{Entries, Of, Value};

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::Text];

/// How JSON is written.
const COMPACT: Style = Style {
    is_pretty: false,
    escapes_html: true,
};
const PRETTY: Style = Style {
    is_pretty: true,
    ..COMPACT
};
const RAW: Style = Style {
    escapes_html: false,
    ..COMPACT
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("toJson", ANY, |args| or_empty(args, COMPACT)),
    Function::new("mustToJson", ANY, |args| to_json(args, COMPACT)),
    Function::new("toPrettyJson", ANY, |args| or_empty(args, PRETTY)),
    Function::new("mustToPrettyJson", ANY, |args| to_json(args, PRETTY)),
    Function::new("toRawJson", ANY, |args| to_json(args, RAW)),
    Function::new("mustToRawJson", ANY, |args| to_json(args, RAW)),
    Function::new("fromJson", TEXT, |args| match from_json(args) {
        // What is wrong with the text is no error, but a bound is one.
        Err(Failure::Text(_)) => Ok(Value::Nil),
        Err(Failure::Bound(why)) => Err(why),
        Ok(value) => Ok(value),
    }),
    Function::new("mustFromJson", TEXT, |args| {
        from_json(args).map_err(|failure| match failure {
            Failure::Text(why) | Failure::Bound(why) => why,
        })
    }),
];

#[derive(Debug, Clone, Copy)]
struct Style {
    is_pretty: bool,
    escapes_html: bool,
}

/// Numbers that JSON does not have.
const UNSUPPORTED: &str = "json: unsupported value: ";

fn to_json(args: &Args<'_>, style: Style) -> Answer {
    let mut out = Sink::new();
    write(&mut out, args.value(0), style, 0, args.heap)?;
    args.heap.text(out.into_bytes())
}

/// Sprig gives nothing where there is no JSON.
fn or_empty(args: &Args<'_>, style: Style) -> Answer {
    match to_json(args, style) {
        Err(why) if why.starts_with(UNSUPPORTED) => args.heap.text(""),
        other => other,
    }
}

fn write(out: &mut Sink, value: &Value, style: Style, depth: usize, heap: &Heap) -> Result<(), String> {
    heap.work(1)?;
    match value {
        Value::Nil => out.push("null"),
        Value::Bool(_) | Value::Int(..) => print::display(out, value, heap),
        Value::Float(number) => match print::special(*number) {
            Some(special) => Err(format!("{UNSUPPORTED}{special}")),
            None => out.push(float(*number)),
        },
        Value::Text(text) => write_text(out, text, style),
        Value::Time(moment) => write_text(out, moment.rfc3339().as_bytes(), style),
        Value::Version(version) => write_text(out, version.to_string().as_bytes(), style),
        Value::List(list) if list.is_nil => out.push("null"),
        Value::List(list) => heap.deeper(|| {
            out.push("[")?;
            for (index, item) in list.items.iter().enumerate() {
                out.push(if index > 0 { "," } else { "" })?;
                line(out, style, depth + 1)?;
                write(out, item, style, depth + 1, heap)?;
            }
            if !list.items.is_empty() {
                line(out, style, depth)?;
            }
            out.push("]")
        }),
        Value::Map(map) => heap.deeper(|| {
            out.push("{")?;
            let entries = map.entries.borrow();
            for (index, (key, item)) in entries.iter().enumerate() {
                out.push(if index > 0 { "," } else { "" })?;
                line(out, style, depth + 1)?;
                write_text(out, key, style)?;
                out.push(if style.is_pretty { ": " } else { ":" })?;
                write(out, item, style, depth + 1, heap)?;
            }
            if !entries.is_empty() {
                line(out, style, depth)?;
            }
            out.push("}")
        }),
        Value::Data(data) => heap.deeper(|| {
            out.push("{")?;
            for (index, (name, value)) in data.fields.iter().enumerate() {
                out.push(if index > 0 { "," } else { "" })?;
                line(out, style, depth + 1)?;
                write_text(out, name.as_bytes(), style)?;
                out.push(if style.is_pretty { ": " } else { ":" })?;
                write(out, value, style, depth + 1, heap)?;
            }
            if !data.fields.is_empty() {
                line(out, style, depth)?;
            }
            out.push("}")
        }),
    }
}

fn line(out: &mut Sink, style: Style, depth: usize) -> Result<(), String> {
    if !style.is_pretty {
        return Ok(());
    }
    out.push("\n")?;
    out.push("  ".repeat(depth))
}

fn float(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let (digits, exponent) = print::shortest(number);
        // With an exponent of one digit, if that is enough.
        let text = print::scientific(number, &digits, exponent);
        return text.replace("e-0", "e-");
    }
    print::plain(number)
}

fn write_text(out: &mut Sink, text: &[u8], style: Style) -> Result<(), String> {
    out.push("\"")?;
    for chunk in text.utf8_chunks() {
        for next in chunk.valid().chars() {
            match next {
                '"' => out.push("\\\"")?,
                '\\' => out.push("\\\\")?,
                '\n' => out.push("\\n")?,
                '\r' => out.push("\\r")?,
                '\t' => out.push("\\t")?,
                '\u{8}' => out.push("\\b")?,
                '\u{c}' => out.push("\\f")?,
                '<' | '>' | '&' if style.escapes_html => out.push(format!("\\u{:04x}", u32::from(next)))?,
                '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => out.push(format!("\\u{:04x}", u32::from(next)))?,
                _ => out.char(next)?,
            }
        }
        for _ in chunk.invalid() {
            out.push("\\ufffd")?;
        }
    }
    out.push("\"")
}

/// Why a text gives no value.
enum Failure {
    Text(String),
    Bound(String),
}

fn from_json(args: &Args<'_>) -> Result<Value, Failure> {
    let mut reader = serde_json::Deserializer::from_slice(args.text(0));
    let bound = std::cell::RefCell::new(None);
    let seed = Seed {
        heap: args.heap,
        bound: &bound,
    };
    let found = seed
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match (found, bound.take()) {
        (Ok(value), _) => Ok(value),
        (Err(_), Some(bound)) => Err(Failure::Bound(bound)),
        (Err(error), None) => Err(Failure::Text(error.to_string())),
    }
}

/// Reads a value straight into lists and maps that are counted.
#[derive(Clone, Copy)]
struct Seed<'a> {
    heap: &'a Heap,
    bound: &'a std::cell::RefCell<Option<String>>,
}

impl Seed<'_> {
    fn kept<T, E: serde::de::Error>(&self, result: Result<T, String>) -> Result<T, E> {
        result.map_err(|why| {
            *self.bound.borrow_mut() = Some(why);
            E::custom("bound")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers of JSON are floats in Go")]
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Float(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers of JSON are floats in Go")]
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Float(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.kept(self.heap.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            self.kept(self.heap.elements(1))?;
            items.push(item);
        }
        self.kept(self.heap.list(Of::Any, items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Entries::new();
        while let Some(key) = map.next_key::<String>()? {
            self.kept(self.heap.elements(1))?;
            let value = map.next_value_seed(self)?;
            entries.insert(Rc::from(key.as_bytes()), value);
        }
        self.kept(self.heap.map(entries))
    }
}
