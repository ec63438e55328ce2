//! What a template is rendered for: structs of Go, made of JSON.

use std::rc::Rc;

use serde_json::Value as Json;

use super::heap::Heap;
use super::value::{Entries, Of, Struct, Value};

/// A struct of Go as templates see it: its fields, and its methods that take no argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    type_name: &'static str,
    fields: Vec<(&'static str, Field)>,
    text: Option<String>,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A text, a map, or whatever else JSON has. Whole numbers are of the type int64.
    Json(Json),
    /// A struct.
    Struct(Data),
}

impl Data {
    /// A struct without fields. An error about a field calls its type so.
    pub fn new(type_name: &'static str) -> Self {
        let (fields, text) = (Vec::new(), None);
        Self {
            type_name,
            fields,
            text,
        }
    }

    /// With this field, or method.
    #[must_use]
    pub fn with(mut self, name: &'static str, field: impl Into<Field>) -> Self {
        self.fields.push((name, field.into()));
        self
    }

    /// Printed as this text, in the place of its fields: what its method `String` gives.
    #[must_use]
    pub fn printed_as(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// As a value of a rendering.
    pub(crate) fn value(&self, heap: &Heap) -> Result<Value, String> {
        let fields = self.fields.iter().map(|(name, field)| {
            let value = match field {
                Field::Json(json) => of_json(json, heap)?,
                Field::Struct(data) => data.value(heap)?,
            };
            Ok((*name, value))
        });
        Ok(Value::Data(Rc::new(Struct {
            type_name: self.type_name,
            fields: fields.collect::<Result<_, String>>()?,
            text: self.text.clone(),
        })))
    }
}

impl From<Json> for Field {
    fn from(json: Json) -> Self {
        Self::Json(json)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Json(text.into())
    }
}

impl From<Data> for Field {
    fn from(data: Data) -> Self {
        Self::Struct(data)
    }
}

/// JSON as Kubernetes reads it: whole numbers that fit are no floats.
fn of_json(json: &Json, heap: &Heap) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::int64(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => heap.text(text)?,
        Json::Array(items) => {
            let items = heap.deeper(|| items.iter().map(|item| of_json(item, heap)).collect::<Result<_, _>>())?;
            heap.list(Of::Any, items)?
        }
        Json::Object(entries) => {
            let entry = |(key, item): (&String, &Json)| Ok::<_, String>((key.as_bytes().into(), of_json(item, heap)?));
            let entries = heap.deeper(|| entries.iter().map(entry).collect::<Result<Entries, _>>())?;
            heap.map(entries)?
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::*;
    use crate::{LIBRARY, Template};

    fn check(text: &str) -> Result<String, String> {
        let result = Data::new("gjson.Result").with("String", "7").with("Int", json!(7));
        let object = json!({
            "metadata": {"name": "web", "labels": {"a": "b"}},
            "spec": {"big": 9_007_199_254_740_993_i64, "half": 0.5, "list": [1, "x", null], "nil": null},
        });
        let data = Data::new("the data")
            .with("Object", object)
            .with("Name", "c1")
            .with("Value", result.printed_as("7"));
        let template = Template::parse("t", text, &LIBRARY).map_err(|error| error.message)?;
        let rendered = template.render(&data, SystemTime::UNIX_EPOCH);
        rendered.map_err(|error| error.message)
    }

    #[test]
    fn objects_are_maps_with_whole_numbers() {
        for (text, expected) in [
            ("{{ .Name }}-{{ .Object.metadata.name }}", "c1-web"),
            ("{{ .Object.spec.big }} {{ .Object.spec.half }}", "9007199254740993 0.5"),
            ("{{ printf \"%T\" .Object.spec.big }}", "int64"),
            ("{{ .Object.spec.list }}", "[1 x <nil>]"),
            ("{{ .Object.spec.nope.deeper }}", "<no value>"),
            ("{{ .Object.metadata.labels | toJson }}", "{\"a\":\"b\"}"),
            (
                "{{ .Value }} {{ .Value.String | quote }} {{ add .Value.Int 1 }}",
                "7 \"7\" 8",
            ),
            ("{{ if eq .Name \"c1\" }}yes{{ end }}", "yes"),
        ] {
            assert_eq!(check(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_field_that_a_struct_has_not_is_an_error() {
        for (text, expected) in [
            (
                "{{ .Nope }}",
                "executing \"t\" at <.Nope>: can't evaluate field Nope in type the data",
            ),
            (
                "{{ .Value.Nope }}",
                "executing \"t\" at <.Value.Nope>: can't evaluate field Nope in type gjson.Result",
            ),
            (
                "{{ .Object.metadata.namespace | upper }}",
                "executing \"t\" at <upper>: invalid value; expected string",
            ),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }
}
