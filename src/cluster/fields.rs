//! Editing one object as raw JSON.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Error;

/// An object with these fields set to that JSON, whatever the other fields contain.
pub(crate) fn with_fields(object: &RawValue, set: &[(&str, &str)]) -> Result<String, Error> {
    let mut fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(object.get()).map_err(|error| no_object(&error))?;
    for (field, value) in set {
        let value: &RawValue = serde_json::from_str(value).map_err(|error| no_object(&error))?;
        fields.insert((*field).to_owned(), value);
    }
    serde_json::to_string(&fields).map_err(|error| no_object(&error))
}

/// The error for something that is no object.
pub(crate) fn no_object(error: &serde_json::Error) -> Error {
    Error::BadAnswer(format!("an object: {error}"))
}
