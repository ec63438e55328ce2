//! Rules that are templates.

use std::time::SystemTime;

use gotemplate::{Data, Template};
use serde_json::{Value, json};

use crate::path::{Found, PathError};
use crate::templates;

/// A template of a rule.
#[derive(Debug)]
pub(super) struct Rendering(Template);

impl Rendering {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        templates::parse("mutation", text)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// The text for what was found at the path of the rule.
    pub(super) fn render(
        &self,
        found: Option<&Found<'_>>,
        object: &Value,
        other: &Value,
        now: SystemTime,
    ) -> Result<String, String> {
        // A counterpart that is not there is a map without keys.
        let other = if other.is_null() { json!({}) } else { other.clone() };
        let data = Data::new("transformer.templateMutationContext")
            .with("Value", result(found).map_err(|error| error.to_string())?)
            .with("LocalObject", object.clone())
            .with("RemoteObject", other);
        templates::render(&self.0, &data, now).map_err(|error| error.to_string())
    }
}

/// gjson's result: what people use of it are the methods without arguments.
fn result(found: Option<&Found<'_>>) -> Result<Data, PathError> {
    let value = found.map_or(Ok(Value::Null), Found::value)?;
    let text = found.map_or(Ok(String::new()), Found::text)?;
    let raw = found.map_or(Ok(String::new()), Found::json)?;
    let float = number(&value);
    Ok(Data::new("gjson.Result")
        .with("Exists", json!(found.is_some()))
        .with("IsObject", json!(value.is_object()))
        .with("IsArray", json!(value.is_array()))
        .with("IsBool", json!(value.is_boolean()))
        .with("Bool", json!(truth(&value)))
        .with("Int", json!(whole(&value)))
        .with("Uint", json!(whole(&value).max(0)))
        .with("Float", json!(float))
        .with("Num", json!(if value.is_number() { float } else { 0.0 }))
        .with("Str", value.as_str().unwrap_or_default())
        .with("Raw", raw.as_str())
        .with("String", text.as_str())
        .with("Array", list(&value))
        .with("Map", if value.is_object() { value.clone() } else { json!({}) })
        .with("Value", value)
        .printed_as(text))
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => matches!(text.to_lowercase().as_str(), "1" | "t" | "true"),
        Value::Number(_) => number(value) != 0.0,
        _ => false,
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Bool(true) => 1.0,
        Value::String(text) => text.parse().unwrap_or(0.0),
        value => value.as_f64().unwrap_or(0.0),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is not whole loses its rest")]
fn whole(value: &Value) -> i64 {
    match value {
        Value::String(text) => text.parse().unwrap_or(0),
        value => value.as_i64().unwrap_or_else(|| number(value) as i64),
    }
}

fn list(value: &Value) -> Value {
    match value {
        Value::Array(_) => value.clone(),
        Value::Null => json!([]),
        one => json!([one]),
    }
}
