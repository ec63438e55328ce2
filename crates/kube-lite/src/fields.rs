//! Reading JSON, and editing one object of it as it is.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;

/// What a text of JSON holds. By its bytes, as the answers of servers are read: for each form of input, the binary would
/// have another reader of each type.
pub fn from_text<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    serde_json::from_slice(json.as_bytes())
}

/// An object with these fields set to that JSON, whatever the other fields contain.
pub fn with_fields(object: &RawValue, set: &[(&str, &str)]) -> Result<String, Error> {
    let mut fields: BTreeMap<String, &RawValue> = from_text(object.get()).map_err(|error| no_object(&error))?;
    for (field, value) in set {
        let value: &RawValue = from_text(value).map_err(|error| no_object(&error))?;
        fields.insert((*field).to_owned(), value);
    }
    serde_json::to_string(&fields).map_err(|error| no_object(&error))
}

/// The error for something that is no object.
pub fn no_object(error: &serde_json::Error) -> Error {
    Error::BadAnswer(format!("an object: {error}"))
}
