//! An object as a server has sent it, taken apart in one pass: whoever has to know something of it reads it from here.
//!
//! Its bytes are kept as they came, and no tree of values: of a field it is known where it is written. Only metadata are
//! copied.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::{from_text, no_object};
use super::meta::{Meta, RawManagers, check_size};
use super::{Error, ObjectName, Workspaces};

/// See the module's doc. `M` is what is read of its field managers: nothing, before somebody asks.
pub struct Object<M = IgnoredAny> {
    bytes: Bytes,
    /// Its metadata.
    pub meta: Meta<M>,
    /// Where each of its other fields is written.
    top: BTreeMap<String, Range<usize>>,
    /// Where its managed fields are written; nowhere, if there are none.
    managed_fields: Range<usize>,
}

/// What the pass finds.
struct Parts<'a> {
    meta: Meta<RawManagers<'a>>,
    top: BTreeMap<String, &'a RawValue>,
}

impl<'de> Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Parts<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Parts<'de>, A::Error> {
                let (mut meta, mut top) = (None, BTreeMap::new());
                while let Some(key) = fields.next_key::<String>()? {
                    if key == "metadata" {
                        meta = Some(fields.next_value()?);
                    } else {
                        top.insert(key, fields.next_value()?);
                    }
                }
                let meta = meta.ok_or_else(|| A::Error::missing_field("metadata"))?;
                Ok(Parts { meta, top })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl Object {
    /// Takes it apart. Its field managers are not read.
    pub fn take_apart(bytes: Bytes) -> Result<Self, Error> {
        check_size(&bytes)?;
        let Parts { meta, top } = serde_json::from_slice(&bytes).map_err(|error| no_object(&error))?;
        let begin = bytes.as_ptr().addr();
        let place = |text: &RawValue| {
            let at = text.get().as_ptr().addr() - begin;
            at..at + text.get().len()
        };
        Ok(Self {
            top: top.into_iter().map(|(key, text)| (key, place(text))).collect(),
            managed_fields: meta.managers.map_or(0..0, place),
            meta: meta.with(IgnoredAny).checked()?,
            bytes,
        })
    }

    /// It with what its field managers say.
    pub fn with_managers<M: DeserializeOwned + Default>(self) -> Result<Object<M>, Error> {
        let managers = match self.managed_fields() {
            "" => M::default(),
            text => from_text(text).map_err(|error| no_object(&error))?,
        };
        let Self {
            bytes,
            meta,
            top,
            managed_fields,
        } = self;
        Ok(Object {
            bytes,
            meta: meta.with(managers),
            top,
            managed_fields,
        })
    }
}

impl<M: DeserializeOwned + Default> Object<M> {
    /// Takes it apart, with what its field managers say.
    pub fn parse(bytes: Bytes) -> Result<Self, Error> {
        Object::take_apart(bytes)?.with_managers()
    }

    /// The same of an answer that has to be about `name`.
    pub fn named(name: &ObjectName, answer: Bytes) -> Result<Self, Error> {
        let mut object = Self::parse(answer)?;
        object.meta = object.meta.about(name)?;
        Ok(object)
    }
}

impl<M> Object<M> {
    /// It is of a side with one workspace or many.
    pub fn is_at(&mut self, workspaces: Workspaces) {
        self.meta.is_at(workspaces);
    }

    /// All of it, as it is written.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A field other than its metadata, as it is written.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.top.get(name).map(|place| self.text(place))
    }

    /// All of these, in the order of their names.
    pub fn top(&self) -> BTreeMap<&str, &str> {
        let all = self.top.iter();
        all.map(|(key, place)| (key.as_str(), self.text(place))).collect()
    }

    /// Its managed fields, as they are written; empty if it has none.
    pub fn managed_fields(&self) -> &str {
        self.text(&self.managed_fields)
    }

    fn text(&self, place: &Range<usize>) -> &str {
        str::from_utf8(&self.bytes[place.clone()]).expect("it was read as text")
    }
}

/// Without its content, which may be secret.
impl<M> fmt::Debug for Object<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.meta.name, self.bytes.len())
    }
}

impl<M> PartialEq for Object<M> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<M> Eq for Object<M> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::METADATA_LIMIT;

    fn take_apart(text: &str) -> Result<Object, Error> {
        Object::take_apart(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn metadata_and_fields_are_those_of_the_object() {
        let text = r#"{"status":{"b": 1},"metadata":{"managedFields":[{"manager":"x"}],"name":"a","resourceVersion":"7"},"d":"\u0061"}"#;
        let object = take_apart(text).unwrap();
        assert_eq!(object.meta, <Meta>::parse(text.as_bytes()).unwrap());
        assert_eq!(object.bytes(), text.as_bytes());
        assert_eq!(object.field("status"), Some(r#"{"b": 1}"#));
        assert_eq!(object.field("spec"), None);
        assert_eq!(object.field("metadata"), None);
        assert_eq!(object.managed_fields(), r#"[{"manager":"x"}]"#);
        let all: Vec<_> = object.top().into_iter().collect();
        assert_eq!(all, [("d", r#""\u0061""#), ("status", r#"{"b": 1}"#)]);
        let read = object.with_managers::<serde_json::Value>().unwrap();
        assert_eq!(read.meta.managers, serde_json::json!([{"manager": "x"}]));
        let name = ObjectName::new("", "a");
        let answer = || Bytes::copy_from_slice(text.as_bytes());
        assert!(<Object>::named(&name, answer()).is_ok());
        assert!(<Object>::named(&ObjectName::new("", "b"), answer()).is_err());
    }

    #[test]
    fn a_name_is_read_whatever_escapes_it_is_written_with() {
        let text =
            r#"{"met\u0061data":{"n\u0061me":"\u0061","annotations":{"kubernetes.io\/x":"a\/b"}},"\u0064ata":{}}"#;
        let object = take_apart(text).unwrap();
        assert_eq!(object.meta.name, "a");
        assert_eq!(object.meta.annotations["kubernetes.io/x"], "a/b");
        assert_eq!(object.field("data"), Some("{}"));
        assert_eq!(object.managed_fields(), "");
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in [
            "",
            "<html>",
            "[]",
            "{}",
            r#"{"metadata":null}"#,
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"name":"a/b"}}"#,
            r#"{"metadata":{"name":"a"}} {}"#,
        ] {
            assert!(take_apart(text).is_err(), "{text}");
        }
        let long = "x".repeat(METADATA_LIMIT);
        let large = |place: &str| take_apart(&format!(r#"{{"metadata":{{"name":"a"{place}}}}}"#));
        assert!(large(&format!(r#","annotations":{{"a":"{long}"}}"#)).is_err());
        assert!(large(&format!(r#"}},"data":{{"a":"{long}""#)).is_ok());
    }

    #[test]
    fn what_is_shown_of_it_has_no_content() {
        let object = take_apart(r#"{"metadata":{"name":"a"},"data":{"key":"c2VjcmV0"}}"#).unwrap();
        assert_eq!(format!("{object:?}"), "a of 51 bytes");
    }
}
