//! The objects that a text of YAML holds.

use serde_json::{Map, Value, json};

use crate::yaml::{self, Document, DocumentError};

/// How deep lists may hold lists.
const DEEPEST_LIST: usize = 8;

/// An object that has a kind and an apiVersion.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its fields.
    pub fields: Map<String, Value>,
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> &str {
        text(&self.fields, "kind")
    }

    /// The group and version of its kind.
    pub fn api_version(&self) -> &str {
        text(&self.fields, "apiVersion")
    }

    /// The group of its kind; empty for core kinds.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }
}

/// The objects of a text, as they stand there.
pub fn of_text(text: &str) -> Result<Vec<Object>, DocumentError> {
    let mut objects = Vec::new();
    for document in yaml::documents(text)? {
        let Document { number, line, value } = document;
        unpack(value, &mut objects, 0).map_err(|message| DocumentError {
            document: number,
            line,
            message,
        })?;
    }
    Ok(objects)
}

/// Adds an object, or all of a list.
fn unpack(value: Value, objects: &mut Vec<Object>, depth: usize) -> Result<(), String> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => return Err("is a list, not a mapping".to_owned()),
        Value::String(_) => return Err("is a text, not a mapping".to_owned()),
        _ => return Err("is a single value, not a mapping".to_owned()),
    };
    for key in ["kind", "apiVersion"] {
        if text(&fields, key).is_empty() {
            return Err(format!("the object{} has no {key}", named(&fields)));
        }
    }
    if text(&fields, "kind") != "List" || text(&fields, "apiVersion") != "v1" {
        objects.push(Object { fields });
        return Ok(());
    }
    if depth == DEEPEST_LIST {
        return Err("lists hold lists too deep".to_owned());
    }
    match fields.remove("items") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(items)) => (1..).zip(items).try_for_each(|(number, item)| {
            unpack(item, objects, depth + 1).map_err(|why| format!("item {number} of the List: {why}"))
        }),
        Some(_) => Err("items of the List is no list".to_owned()),
    }
}

/// Objects as people are shown them: as documents of YAML, or as JSON of one List.
pub fn printed(objects: &[Value], json: bool) -> String {
    if json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return format!("{list:#}\n");
    }
    let documents: Vec<String> = objects.iter().map(yaml::write).collect();
    documents.join("---\n")
}

/// The name of an object, in a message.
fn named(fields: &Map<String, Value>) -> String {
    let name = fields.get("metadata").and_then(|metadata| metadata.get("name"));
    match name.and_then(Value::as_str) {
        Some(name) => format!(" {name}"),
        None => String::new(),
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}
