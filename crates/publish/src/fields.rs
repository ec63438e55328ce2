//! Fields of JSON, read by people's rules: what is null is not there, and what is wrong is collected with its path.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What was found to be wrong.
#[derive(Default)]
pub(crate) struct Errors(RefCell<Vec<String>>);

impl Errors {
    /// Adds an error at this path.
    pub(crate) fn add(&self, path: &str, why: &str) {
        self.0.borrow_mut().push(format!("{path}: {why}"));
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// The fields of a mapping.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    path: String,
    values: Option<&'a Map<String, Value>>,
    errors: &'a Errors,
}

impl<'a> Fields<'a> {
    /// Those of this value, which is at this path.
    pub(crate) fn new(path: &str, value: &'a Value, errors: &'a Errors) -> Self {
        let values = value.as_object();
        if values.is_none() {
            errors.add(path, "must be a mapping");
        }
        Self {
            path: path.to_owned(),
            values,
            errors,
        }
    }

    /// Says that the mapping, or this field of it, is wrong.
    pub(crate) fn error(&self, key: &str, why: &str) {
        self.errors.add(&self.at(key), why);
    }

    fn at(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (_, true) => self.path.clone(),
            (true, _) => key.to_owned(),
            _ => format!("{}.{key}", self.path),
        }
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.values?.get(key).filter(|value| !value.is_null())
    }

    /// True if the field is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// A text, which may be empty.
    pub(crate) fn any_text(&self, key: &str) -> Option<String> {
        let text = self.value(key)?.as_str();
        if text.is_none() {
            self.error(key, "must be a text");
        }
        text.map(str::to_owned)
    }

    /// A text, of which an empty one counts as none.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.any_text(key).filter(|text| !text.is_empty())
    }

    /// A text that must be there. It may be empty if `may_be_empty`.
    pub(crate) fn required(&self, key: &str, may_be_empty: bool) -> String {
        if self.values.is_some() && !self.has(key) {
            self.error(key, "is missing");
        }
        let text = self.any_text(key);
        if text.as_deref() == Some("") && !may_be_empty {
            self.error(key, "must not be empty");
        }
        text.unwrap_or_default()
    }

    /// A switch.
    pub(crate) fn switch(&self, key: &str) -> Option<bool> {
        let value = self.value(key)?.as_bool();
        if value.is_none() {
            self.error(key, "must be true or false");
        }
        value
    }

    /// A mapping.
    pub(crate) fn inner(&self, key: &str) -> Option<Self> {
        let value = self.value(key)?;
        Some(Self::new(&self.at(key), value, self.errors))
    }

    /// A mapping that must be there.
    pub(crate) fn required_inner(&self, key: &str) -> Option<Self> {
        if self.values.is_some() && !self.has(key) {
            self.error(key, "is missing");
        }
        self.inner(key)
    }

    /// A list of mappings.
    pub(crate) fn list(&self, key: &str) -> Vec<Self> {
        let items = self.items(key).unwrap_or_default();
        let with_index = items.iter().enumerate();
        with_index
            .map(|(index, item)| Self::new(&format!("{}[{index}]", self.at(key)), item, self.errors))
            .collect()
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &str) -> Option<Vec<String>> {
        let items = self.items(key)?;
        let text = |(index, item): (usize, &Value)| {
            let text = item.as_str();
            if text.is_none() {
                self.error(&format!("{key}[{index}]"), "must be a text");
            }
            text.map(str::to_owned)
        };
        Some(items.iter().enumerate().filter_map(text).collect())
    }

    fn items(&self, key: &str) -> Option<&'a [Value]> {
        let items = self.value(key)?.as_array();
        if items.is_none() {
            self.error(key, "must be a list");
        }
        items.map(Vec::as_slice)
    }

    /// A mapping of texts.
    pub(crate) fn text_map(&self, key: &str) -> BTreeMap<String, String> {
        let Some(inner) = self.inner(key) else {
            return BTreeMap::new();
        };
        let keys = inner.values.into_iter().flat_map(Map::keys);
        keys.filter_map(|name| Some((name.clone(), inner.any_text(name)?)))
            .collect()
    }
}
