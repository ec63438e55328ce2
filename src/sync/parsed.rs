//! An object as a server has sent it, taken apart once: whoever has to know something of it reads it from here.
//!
//! It lives as long as the event or the answer that it came with, and borrows from that: only metadata is copied.

use std::collections::BTreeMap;

use bytes::Bytes;
use kube_lite::fields::no_object;
use kube_lite::{Error, ObjectName, Workspaces};
use serde_json::value::RawValue;

use super::meta::Meta;

/// See the module's doc.
pub struct Parsed<'a> {
    /// All of it.
    pub bytes: &'a Bytes,
    /// Its metadata.
    pub meta: Meta,
    /// Its fields, each as it is written.
    pub top: BTreeMap<String, &'a RawValue>,
}

impl<'a> Parsed<'a> {
    /// Takes an object apart.
    pub fn parse(object: &'a Bytes) -> Result<Self, Error> {
        let top: BTreeMap<String, &RawValue> = serde_json::from_slice(object).map_err(|error| no_object(&error))?;
        let metadata = top.get("metadata").copied();
        let metadata = metadata.ok_or_else(|| Error::BadAnswer("an object: missing field `metadata`".into()))?;
        Ok(Self {
            bytes: object,
            meta: Meta::of_field(metadata)?,
            top,
        })
    }

    /// The same of a side with one workspace or many.
    pub fn at(workspaces: Workspaces, object: &'a Bytes) -> Result<Self, Error> {
        let mut parsed = Self::parse(object)?;
        parsed.meta = parsed.meta.at(workspaces);
        Ok(parsed)
    }

    /// The same of an answer that has to be about `name`.
    pub fn named(name: &ObjectName, answer: &'a Bytes) -> Result<Self, Error> {
        let mut parsed = Self::parse(answer)?;
        parsed.meta = parsed.meta.about(name)?;
        Ok(parsed)
    }

    /// A field, as it is written.
    pub fn field(&self, name: &str) -> Option<&'a RawValue> {
        self.top.get(name).copied()
    }

    /// Its metadata, as they are written.
    pub(super) fn metadata(&self) -> &'a str {
        self.field("metadata").expect("it was parsed").get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_and_fields_are_those_of_the_object() {
        let object = Bytes::from(r#"{"metadata":{"name":"a","resourceVersion":"7"},"status":{"b": 1}}"#);
        let parsed = Parsed::parse(&object).unwrap();
        assert_eq!(parsed.meta, Meta::parse(&object).unwrap());
        assert_eq!(parsed.field("status").map(RawValue::get), Some(r#"{"b": 1}"#));
        assert!(parsed.field("spec").is_none());
        let name = ObjectName::new("", "a");
        assert!(Parsed::named(&name, &object).is_ok());
        assert!(Parsed::named(&ObjectName::new("", "b"), &object).is_err());
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "<html>", "[]", "{}", r#"{"metadata":null}"#, r#"{"metadata":{}}"#] {
            assert!(Parsed::parse(&Bytes::from(text)).is_err(), "{text}");
        }
    }
}
