//! What a search finds: a value of the document and its place, or one that the path has made.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::{LONGEST_TEXT, PathError};
use crate::json;

/// A key or an index, and those above.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) above: Option<Rc<Segment>>,
    pub(super) key: Key,
}

#[derive(Debug)]
pub(super) enum Key {
    Name(String),
    Index(usize),
}

/// Where a value is in the document.
#[derive(Debug, Clone)]
pub(super) enum ValuePath {
    /// Nowhere: the path has made it.
    Nowhere,
    Root,
    At(Rc<Segment>),
    /// It is a list of values that are at these places.
    Many(Rc<Vec<Rc<Segment>>>),
}

impl ValuePath {
    fn below(&self, key: impl FnOnce() -> Key) -> Self {
        let above = match self {
            Self::Nowhere | Self::Many(_) => return Self::Nowhere,
            Self::Root => None,
            Self::At(step) => Some(Rc::clone(step)),
        };
        let key = key();
        Self::At(Rc::new(Segment { above, key }))
    }
}

#[derive(Debug, Clone)]
pub(super) enum Shape<'a> {
    /// A value of the document, or a scalar.
    Of(&'a Value),
    Scalar(Rc<Value>),
    List(Rc<Vec<Node<'a>>>),
    /// Members in their order; a key may be there twice.
    Object(Rc<Vec<(String, Node<'a>)>>),
}

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) shape: Shape<'a>,
    pub(super) place: ValuePath,
}

impl<'a> Node<'a> {
    pub(super) fn root(document: &'a Value) -> Self {
        let (shape, place) = (Shape::Of(document), ValuePath::Root);
        Self { shape, place }
    }

    fn made(shape: Shape<'a>) -> Self {
        let place = ValuePath::Nowhere;
        Self { shape, place }
    }

    pub(super) fn list(items: Vec<Node<'a>>) -> Self {
        Self::made(Shape::List(items.into()))
    }

    pub(super) fn object(members: Vec<(String, Node<'a>)>) -> Self {
        Self::made(Shape::Object(members.into()))
    }

    /// A value that is not of the document.
    pub(super) fn owned(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::list(items.into_iter().map(Self::owned).collect()),
            Value::Object(members) => {
                let members = members.into_iter().map(|(key, value)| (key, Self::owned(value)));
                Self::object(members.collect())
            }
            scalar => Self::made(Shape::Scalar(scalar.into())),
        }
    }

    /// The same value without its place.
    pub(super) fn detached(mut self) -> Self {
        self.place = ValuePath::Nowhere;
        self
    }

    /// As a scalar: a list or an object is none.
    pub(super) fn scalar(&self) -> Option<&Value> {
        let value = match &self.shape {
            Shape::Of(value) => *value,
            Shape::Scalar(value) => value.as_ref(),
            Shape::List(_) | Shape::Object(_) => return None,
        };
        (!value.is_array() && !value.is_object()).then_some(value)
    }

    pub(super) fn is_null(&self) -> bool {
        self.scalar().is_some_and(Value::is_null)
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.shape, Shape::Of(Value::Array(_)) | Shape::List(_))
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self.shape, Shape::Of(Value::Object(_)) | Shape::Object(_))
    }

    /// The number of elements of a list.
    pub(super) fn length(&self) -> Option<usize> {
        match &self.shape {
            Shape::Of(Value::Array(items)) => Some(items.len()),
            Shape::List(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The element of a list at this index.
    pub(super) fn element(&self, index: usize) -> Option<Node<'a>> {
        match &self.shape {
            Shape::Of(Value::Array(items)) => items.get(index).map(|item| self.child(item, || Key::Index(index))),
            Shape::List(items) => items.get(index).cloned().map(Self::detached),
            _ => None,
        }
    }

    pub(super) fn elements(&self) -> Option<Vec<Node<'a>>> {
        let length = self.length()?;
        Some((0..length).filter_map(|index| self.element(index)).collect())
    }

    /// The first member of an object with this key.
    pub(super) fn member(&self, name: &str) -> Option<Node<'a>> {
        match &self.shape {
            Shape::Of(Value::Object(members)) => {
                let (key, value) = members.get_key_value(name)?;
                Some(self.child(value, || Key::Name(key.clone())))
            }
            Shape::Object(members) => {
                let (_, value) = members.iter().find(|(key, _)| key == name)?;
                Some(value.clone().detached())
            }
            _ => None,
        }
    }

    /// The members of an object.
    pub(super) fn members(&self) -> Option<Vec<(Cow<'a, str>, Node<'a>)>> {
        Some(match &self.shape {
            Shape::Of(Value::Object(members)) => {
                let member = |(key, value): (&'a String, &'a Value)| {
                    let child = self.child(value, || Key::Name(key.clone()));
                    (Cow::Borrowed(key.as_str()), child)
                };
                members.iter().map(member).collect()
            }
            Shape::Object(members) => {
                let member = |(key, value): &(String, Node<'a>)| (Cow::Owned(key.clone()), value.clone().detached());
                members.iter().map(member).collect()
            }
            _ => return None,
        })
    }

    fn child(&self, value: &'a Value, key: impl FnOnce() -> Key) -> Node<'a> {
        let (shape, place) = (Shape::Of(value), self.place.below(key));
        Node { shape, place }
    }

    /// gjson's text of it.
    pub(super) fn string(&self) -> Result<String, PathError> {
        match self.scalar() {
            Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(plain(number)),
            _ => self.raw(),
        }
    }

    /// Its JSON.
    pub(super) fn raw(&self) -> Result<String, PathError> {
        let mut out = String::new();
        self.write(&mut out)?;
        Ok(out)
    }

    fn write(&self, out: &mut String) -> Result<(), PathError> {
        match &self.shape {
            Shape::Of(value) => json::push_value(out, value),
            Shape::Scalar(value) => json::push_value(out, value),
            Shape::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    out.push(if index == 0 { '[' } else { ',' });
                    item.write(out)?;
                }
                out.push_str(if items.is_empty() { "[]" } else { "]" });
            }
            Shape::Object(members) => {
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push(if index == 0 { '{' } else { ',' });
                    json::push_text(out, key);
                    out.push(':');
                    value.write(out)?;
                }
                out.push_str(if members.is_empty() { "{}" } else { "}" });
            }
        }
        if out.len() > LONGEST_TEXT {
            return Err(PathError::TooMuch);
        }
        Ok(())
    }

    /// As a value, while there is room for it.
    pub(super) fn to_value(&self, room: &mut usize) -> Result<Value, PathError> {
        let value = match &self.shape {
            Shape::Of(value) => (*value).clone(),
            Shape::Scalar(value) => (**value).clone(),
            Shape::List(items) => {
                let items = items.iter().map(|item| item.to_value(room));
                return items.collect::<Result<_, _>>().map(Value::Array);
            }
            Shape::Object(members) => {
                let mut object = Map::new();
                for (key, value) in members.iter() {
                    object.insert(key.clone(), value.to_value(room)?);
                }
                return Ok(Value::Object(object));
            }
        };
        *room = room.saturating_sub(size(&value));
        if *room == 0 {
            return Err(PathError::TooMuch);
        }
        Ok(value)
    }
}

/// Whether a value takes no more than about this many bytes.
pub(crate) fn fits(value: &Value, room: usize) -> bool {
    size(value) <= room
}

/// Whether a value is nested deeper than so many levels.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_deeper_within = |value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_deeper_within),
        Value::Object(members) => levels == 0 || members.values().any(is_deeper_within),
        _ => false,
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(members) => {
            members
                .iter()
                .map(|(key, value)| key.len() + size(value))
                .sum::<usize>()
                + 2
        }
        _ => 8,
    }
}

/// A number without an exponent.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}
