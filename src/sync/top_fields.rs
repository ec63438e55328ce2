//! The top-level fields of an object that are synced, as text with a comma before each: so they follow the metadata in what is
//! written.

use serde_json::{Map, Value, json};

/// The JSON of an object with these fields alone.
pub(super) fn object_of(fields: &str) -> String {
    format!("{{{}}}", fields.trim_start_matches(','))
}

/// These fields, each with a comma before it.
pub(super) fn fields_of(object: &Map<String, Value>) -> String {
    let fields = object.iter().map(|(key, value)| format!(",{}:{value}", json!(key)));
    fields.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_are_written() {
        for text in ["", r#","data":{"a":"1"}"#, r#","a\"b":1,"spec":[]"#] {
            let object: Map<String, Value> = serde_json::from_str(&object_of(text)).unwrap();
            assert_eq!(fields_of(&object), text);
        }
    }
}
