//! The fields of a CRD in the order of Go's structs, and which of them Go leaves out: the names of schemas are hashes of
//! what it writes.

use serde_json::{Map, Value};

use crate::json::{push_float, push_text, push_value};

/// What a field holds. Those that are not written when they are empty say so.
#[derive(Clone, Copy)]
enum Shape {
    /// A text, left out when empty.
    Text,
    /// A text, written even when empty.
    AnyText,
    /// A text that is always there.
    RequiredText,
    /// Left out when false.
    Switch,
    /// Written even when false.
    AnySwitch,
    /// Always there.
    RequiredSwitch,
    Float,
    Int,
    /// Left out when zero.
    SmallInt,
    /// A list of texts, left out when empty.
    Texts,
    /// Whatever it is.
    Any,
    /// A list of whatever, left out when empty.
    AnyList,
    Struct(&'static [Field]),
    /// Left out when empty.
    Structs(&'static [Field]),
    /// Always there.
    RequiredStruct(&'static [Field]),
    RequiredStructs(&'static [Field]),
    Schema,
    /// Left out when empty.
    Schemas,
    /// Left out when empty.
    SchemaMap,
    SchemaOrBool,
    SchemaOrList,
    /// Schemas or lists of texts, left out when empty.
    Dependencies,
}

type Field = (&'static str, Shape);

const SPEC: &[Field] = &[
    ("group", Shape::RequiredText),
    ("names", Shape::RequiredStruct(NAMES)),
    ("scope", Shape::RequiredText),
    ("versions", Shape::RequiredStructs(VERSION)),
    // Not the conversion: schemas of kcp have none.
    ("preserveUnknownFields", Shape::Switch),
];

const NAMES: &[Field] = &[
    ("plural", Shape::RequiredText),
    ("singular", Shape::Text),
    ("shortNames", Shape::Texts),
    ("kind", Shape::RequiredText),
    ("listKind", Shape::Text),
    ("categories", Shape::Texts),
];

const VERSION: &[Field] = &[
    ("name", Shape::RequiredText),
    ("served", Shape::RequiredSwitch),
    ("storage", Shape::RequiredSwitch),
    ("deprecated", Shape::Switch),
    ("deprecationWarning", Shape::AnyText),
    ("schema", Shape::Struct(&[("openAPIV3Schema", Shape::Schema)])),
    ("subresources", Shape::Struct(SUBRESOURCES)),
    ("additionalPrinterColumns", Shape::Structs(COLUMN)),
    ("selectableFields", Shape::Structs(&[("jsonPath", Shape::RequiredText)])),
];

const SUBRESOURCES: &[Field] = &[
    ("status", Shape::Struct(&[])),
    (
        "scale",
        Shape::Struct(&[
            ("specReplicasPath", Shape::RequiredText),
            ("statusReplicasPath", Shape::RequiredText),
            ("labelSelectorPath", Shape::AnyText),
        ]),
    ),
];

const COLUMN: &[Field] = &[
    ("name", Shape::RequiredText),
    ("type", Shape::RequiredText),
    ("format", Shape::Text),
    ("description", Shape::Text),
    ("priority", Shape::SmallInt),
    ("jsonPath", Shape::RequiredText),
];

const SCHEMA: &[Field] = &[
    ("id", Shape::Text),
    ("$schema", Shape::Text),
    ("$ref", Shape::AnyText),
    ("description", Shape::Text),
    ("type", Shape::Text),
    ("format", Shape::Text),
    ("title", Shape::Text),
    ("default", Shape::Any),
    ("maximum", Shape::Float),
    ("exclusiveMaximum", Shape::Switch),
    ("minimum", Shape::Float),
    ("exclusiveMinimum", Shape::Switch),
    ("maxLength", Shape::Int),
    ("minLength", Shape::Int),
    ("pattern", Shape::Text),
    ("maxItems", Shape::Int),
    ("minItems", Shape::Int),
    ("uniqueItems", Shape::Switch),
    ("multipleOf", Shape::Float),
    ("enum", Shape::AnyList),
    ("maxProperties", Shape::Int),
    ("minProperties", Shape::Int),
    ("required", Shape::Texts),
    ("items", Shape::SchemaOrList),
    ("allOf", Shape::Schemas),
    ("oneOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("not", Shape::Schema),
    ("properties", Shape::SchemaMap),
    ("additionalProperties", Shape::SchemaOrBool),
    ("patternProperties", Shape::SchemaMap),
    ("dependencies", Shape::Dependencies),
    ("additionalItems", Shape::SchemaOrBool),
    ("definitions", Shape::SchemaMap),
    (
        "externalDocs",
        Shape::Struct(&[("description", Shape::Text), ("url", Shape::Text)]),
    ),
    ("example", Shape::Any),
    ("nullable", Shape::Switch),
    ("x-kubernetes-preserve-unknown-fields", Shape::AnySwitch),
    ("x-kubernetes-embedded-resource", Shape::Switch),
    ("x-kubernetes-int-or-string", Shape::Switch),
    ("x-kubernetes-list-map-keys", Shape::Texts),
    ("x-kubernetes-list-type", Shape::AnyText),
    ("x-kubernetes-map-type", Shape::AnyText),
    ("x-kubernetes-validations", Shape::Structs(RULE)),
];

const RULE: &[Field] = &[
    ("rule", Shape::RequiredText),
    ("message", Shape::Text),
    ("messageExpression", Shape::Text),
    ("reason", Shape::AnyText),
    ("fieldPath", Shape::Text),
    ("optionalOldSelf", Shape::AnySwitch),
];

/// The spec of a CRD as Go writes it, without its conversion. What Go does not know is left out.
pub(super) fn spec(spec: &Map<String, Value>) -> Result<String, String> {
    let mut out = String::new();
    write(&mut out, spec, SPEC)?;
    Ok(out)
}

/// Appends a struct. An error begins with the path of its field.
fn write(out: &mut String, object: &Map<String, Value>, fields: &[Field]) -> Result<(), String> {
    out.push('{');
    let mut is_first = true;
    for (key, shape) in fields {
        let value = object.get(*key).filter(|value| !value.is_null());
        let before = out.len();
        out.push_str(if is_first { "" } else { "," });
        push_text(out, key);
        out.push(':');
        let is_written = field(out, *shape, value).map_err(|why| below(key, &why))?;
        if is_written {
            is_first = false;
        } else {
            out.truncate(before);
        }
    }
    out.push('}');
    Ok(())
}

/// What is wrong, with one more step of its path.
fn below(key: &str, why: &str) -> String {
    let separator = if why.starts_with(['[', ':']) { "" } else { "." };
    format!("{key}{separator}{why}")
}

/// Appends the value of a field, or says that the field is left out.
fn field(out: &mut String, shape: Shape, value: Option<&Value>) -> Result<bool, String> {
    let Some(value) = value else {
        return match shape {
            Shape::RequiredText => Ok(pushed(out, "\"\"")),
            Shape::RequiredSwitch => Ok(pushed(out, "false")),
            Shape::RequiredStruct(fields) => write(out, &Map::new(), fields).map(|()| true),
            Shape::RequiredStructs(_) => Ok(pushed(out, "null")),
            _ => Ok(false),
        };
    };
    match shape {
        Shape::Text | Shape::AnyText | Shape::RequiredText => {
            let text = value.as_str().ok_or(": must be a text")?;
            push_text(out, text);
            Ok(!(text.is_empty() && matches!(shape, Shape::Text)))
        }
        Shape::Switch | Shape::AnySwitch | Shape::RequiredSwitch => {
            let is_on = value.as_bool().ok_or(": must be true or false")?;
            out.push_str(if is_on { "true" } else { "false" });
            Ok(is_on || !matches!(shape, Shape::Switch))
        }
        Shape::Float => {
            push_float(out, value.as_f64().ok_or(": must be a number")?);
            Ok(true)
        }
        Shape::Int | Shape::SmallInt => {
            let float = value.as_f64().filter(|float| float.fract() == 0.0);
            #[expect(clippy::cast_possible_truncation, reason = "what is too large is cut to the largest")]
            let number = value.as_i64().or(float.map(|float| float as i64));
            let number = number.ok_or(": must be a whole number")?;
            out.push_str(&number.to_string());
            Ok(number != 0 || !matches!(shape, Shape::SmallInt))
        }
        Shape::Any => {
            push_value(out, value);
            Ok(true)
        }
        Shape::Texts => list(out, value, |out, item| {
            push_text(out, item.as_str().ok_or(": must be a text")?);
            Ok(())
        }),
        Shape::AnyList => list(out, value, |out, item| {
            push_value(out, item);
            Ok(())
        }),
        Shape::Struct(fields) | Shape::RequiredStruct(fields) => structure(out, value, fields).map(|()| true),
        Shape::Structs(fields) => list(out, value, |out, item| structure(out, item, fields)),
        Shape::RequiredStructs(fields) => list(out, value, |out, item| structure(out, item, fields)).map(|_| true),
        Shape::Schema => structure(out, value, SCHEMA).map(|()| true),
        Shape::Schemas => list(out, value, |out, item| structure(out, item, SCHEMA)),
        Shape::SchemaMap => map(out, value, |out, item| structure(out, item, SCHEMA)),
        Shape::SchemaOrBool => match value {
            Value::Bool(_) => field(out, Shape::AnySwitch, Some(value)),
            _ => structure(out, value, SCHEMA).map(|()| true),
        },
        Shape::SchemaOrList => match value {
            Value::Array(items) if items.is_empty() => Ok(pushed(out, "null")),
            Value::Array(_) => field(out, Shape::Schemas, Some(value)),
            _ => structure(out, value, SCHEMA).map(|()| true),
        },
        Shape::Dependencies => map(out, value, |out, item| match item {
            Value::Array(items) if items.is_empty() => {
                out.push_str("null");
                Ok(())
            }
            Value::Array(_) => field(out, Shape::Texts, Some(item)).map(|_| ()),
            _ => structure(out, item, SCHEMA),
        }),
    }
}

fn pushed(out: &mut String, text: &str) -> bool {
    out.push_str(text);
    true
}

fn structure(out: &mut String, value: &Value, fields: &[Field]) -> Result<(), String> {
    write(out, value.as_object().ok_or(": must be a mapping")?, fields)
}

/// Appends a list, and says whether it has items.
fn list(
    out: &mut String,
    value: &Value,
    mut item: impl FnMut(&mut String, &Value) -> Result<(), String>,
) -> Result<bool, String> {
    let items = value.as_array().ok_or(": must be a list")?;
    out.push('[');
    for (index, value) in items.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        item(out, value).map_err(|why| below(&format!("[{index}]"), &why))?;
    }
    out.push(']');
    Ok(!items.is_empty())
}

/// Appends a map, and says whether it has entries.
fn map(
    out: &mut String,
    value: &Value,
    mut item: impl FnMut(&mut String, &Value) -> Result<(), String>,
) -> Result<bool, String> {
    let entries = value.as_object().ok_or(": must be a mapping")?;
    out.push('{');
    for (index, (key, value)) in entries.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        push_text(out, key);
        out.push(':');
        item(out, value).map_err(|why| below(key, &why))?;
    }
    out.push('}');
    Ok(!entries.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(value: &Value) -> Result<String, String> {
        let mut out = String::new();
        structure(&mut out, value, SCHEMA)?;
        Ok(out)
    }

    #[test]
    fn empty_fields_are_left_out_where_go_leaves_them_out() {
        for (value, expected) in [
            (json!({"type": "object", "description": ""}), r#"{"type":"object"}"#),
            (
                json!({"maximum": 0, "minLength": 0, "nullable": false}),
                r#"{"maximum":0,"minLength":0}"#,
            ),
            (
                json!({"maximum": 9_223_372_036_854_775_807_i64}),
                r#"{"maximum":9223372036854776000}"#,
            ),
            (
                json!({"additionalProperties": false}),
                r#"{"additionalProperties":false}"#,
            ),
            (json!({"additionalProperties": {}}), r#"{"additionalProperties":{}}"#),
            (json!({"items": {"type": "string"}}), r#"{"items":{"type":"string"}}"#),
            (json!({"items": [{}]}), r#"{"items":[{}]}"#),
            (json!({"properties": {}, "required": [], "enum": [], "allOf": []}), "{}"),
            (json!({"enum": [null, 1.0], "default": null}), r#"{"enum":[null,1]}"#),
            (
                json!({"default": {"b": 1, "a": "<"}}),
                r#"{"default":{"a":"\u003c","b":1}}"#,
            ),
            (
                json!({"x-kubernetes-preserve-unknown-fields": false, "x-kubernetes-int-or-string": false}),
                r#"{"x-kubernetes-preserve-unknown-fields":false}"#,
            ),
            (
                json!({"properties": {"b": {}, "a": {"not": {}}}}),
                r#"{"properties":{"a":{"not":{}},"b":{}}}"#,
            ),
            (
                json!({"dependencies": {"a": ["b"], "c": {}}}),
                r#"{"dependencies":{"a":["b"],"c":{}}}"#,
            ),
            (json!({"unknown": 1}), "{}"),
        ] {
            assert_eq!(schema(&value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_path() {
        for (value, expected) in [
            (
                json!({"properties": {"a": {"items": {"type": 1}}}}),
                "properties.a.items.type: must be a text",
            ),
            (
                json!({"allOf": [{}, {"minimum": "1"}]}),
                "allOf[1].minimum: must be a number",
            ),
            (json!({"required": ["a", 1]}), "required[1]: must be a text"),
            (json!({"maxLength": 0.5}), "maxLength: must be a whole number"),
            (json!({"properties": []}), "properties: must be a mapping"),
        ] {
            assert_eq!(schema(&value), Err(expected.to_owned()), "{value}");
        }
    }
}
