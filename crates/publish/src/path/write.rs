//! Writes by sjson's rules.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::find::get;
use super::node::{Key, Node, ValuePath, fits};
use super::syntax::index_of;
use super::{LONGEST_TEXT, MOST_ADDED, MOST_SEGMENTS, PathError, Work};

/// A key or an index of a path that names one place.
struct Part<'p> {
    /// As gjson reads it.
    path: &'p str,
    name: String,
    /// Whether it is a key although it looks like an index.
    is_key: bool,
}

impl Part<'_> {
    /// The index that it is. An empty one is the first, as in sjson.
    fn index(&self) -> Option<Result<usize, PathError>> {
        if self.is_key || !self.name.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if self.name.is_empty() {
            return Some(Ok(0));
        }
        Some(index_of(&self.name).ok_or_else(|| PathError::TooFar(self.name.clone())))
    }

    /// Whether it is the end of a list.
    fn is_end(&self) -> bool {
        !self.is_key && self.name == "-1"
    }
}

/// The parts of a path without patterns, queries, modifiers and pipes.
fn parts(path: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = Some(path);
    while let Some(path) = rest.take() {
        let stripped = path.strip_prefix(':');
        let (path, is_key) = (stripped.unwrap_or(path), stripped.is_some());
        let mut name = String::new();
        let mut end = path.len();
        let mut chars = path.char_indices();
        while let Some((index, next)) = chars.next() {
            match next {
                '.' => {
                    (end, rest) = (index, Some(&path[index + 1..]));
                    break;
                }
                '|' | '#' | '@' | '*' | '?' => return None,
                '\\' => name.extend(chars.next().map(|(_, next)| next)),
                next => name.push(next),
            }
        }
        let path = &path[..end];
        parts.push(Part { path, name, is_key });
    }
    Some(parts)
}

/// Whether this can be the path of a rule.
pub fn check(path: &str) -> Result<(), PathError> {
    let segments = segments(path);
    match segments {
        _ if path.is_empty() => Err(PathError::Empty),
        1..=MOST_SEGMENTS => Ok(()),
        _ => Err(PathError::TooLong(segments)),
    }
}

/// How many segments a path has, those of paths inside it included.
fn segments(path: &str) -> usize {
    let (mut count, mut bytes) = (1, path.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'.' | b'|' => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether what is at this path can be deleted.
pub fn check_delete(path: &str) -> Result<(), String> {
    let parts = parts(path).ok_or(PathError::Complex);
    parts.map(drop).map_err(|error| error.to_string())
}

/// Writes a value to a place. What is missing on the way there is made; a pattern or a query writes to what it finds.
pub fn set(document: &mut Value, path: &str, value: Value) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    match parts(path) {
        Some(parts) => set_at(document, &parts, value),
        None => set_found(document, path, &value),
    }
}

/// Removes what is at a place. If nothing is there, that is fine.
pub fn delete(document: &mut Value, path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    let parts = parts(path).ok_or(PathError::Complex)?;
    let Some((last, way)) = parts.split_last() else {
        return Ok(());
    };
    let mut parent = document;
    for part in way {
        match found(parent, part, true)? {
            Some(key) => parent = inner(parent, &key),
            None => return Ok(()),
        }
    }
    match (found(parent, last, true)?, parent) {
        (Some(Key::Name(name)), Value::Object(members)) => drop(members.remove(&name)),
        (Some(Key::Index(index)), Value::Array(items)) => drop(items.remove(index)),
        _ => {}
    }
    Ok(())
}

/// What a part names, if that is there.
fn found(parent: &Value, part: &Part<'_>, with_end: bool) -> Result<Option<Key>, PathError> {
    if let (true, true, Value::Array(items)) = (with_end, part.is_end(), parent) {
        return Ok(items.len().checked_sub(1).map(Key::Index));
    }
    let work = Work::new();
    let found = get(Some(&Node::root(parent)), part.path, &work);
    Ok(match work.done(found)?.map(|found| found.place) {
        Some(ValuePath::At(step)) if step.above.is_none() => Rc::into_inner(step).map(|step| step.key),
        _ => None,
    })
}

fn inner<'v>(parent: &'v mut Value, key: &Key) -> &'v mut Value {
    match key {
        Key::Name(name) => &mut parent[name.as_str()],
        Key::Index(index) => &mut parent[*index],
    }
}

fn set_at(parent: &mut Value, parts: &[Part<'_>], value: Value) -> Result<(), PathError> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(());
    };
    if let Some(key) = found(parent, part, false)? {
        let place = inner(parent, &key);
        if rest.is_empty() {
            *place = value;
            return Ok(());
        }
        return set_at(place, rest, value);
    }
    let index = part.index().transpose()?;
    if !parent.is_object() && !parent.is_array() {
        *parent = if index.is_some() {
            Value::Array(Vec::new())
        } else {
            Value::Object(Map::new())
        };
    }
    let value = built(rest, value)?;
    match parent {
        Value::Array(items) => match index {
            Some(index) => {
                fill(items, index)?;
                items.push(value);
            }
            None if part.is_end() => items.push(value),
            None => return Err(PathError::NoIndex(part.name.clone())),
        },
        other => other[part.name.as_str()] = value,
    }
    Ok(())
}

/// Fills a list up to an index.
fn fill(items: &mut Vec<Value>, index: usize) -> Result<(), PathError> {
    if index > items.len() + MOST_ADDED {
        return Err(PathError::TooFar(index.to_string()));
    }
    if index > items.len() {
        items.resize(index, Value::Null);
    }
    Ok(())
}

/// The value with all that is missing above it.
fn built(parts: &[Part<'_>], value: Value) -> Result<Value, PathError> {
    let mut value = value;
    for part in parts.iter().rev() {
        value = match part.index().transpose()? {
            Some(index) => {
                let mut items = Vec::new();
                fill(&mut items, index)?;
                items.push(value);
                Value::Array(items)
            }
            None if part.is_end() => Value::Array(vec![value]),
            None => Value::Object(Map::from_iter([(part.name.clone(), value)])),
        };
    }
    Ok(value)
}

/// Writes to what a path with patterns or queries finds.
fn set_found(document: &mut Value, path: &str, value: &Value) -> Result<(), PathError> {
    let work = Work::new();
    let found = get(Some(&Node::root(document)), path, &work);
    let places = match work.done(found)?.map(|found| found.place) {
        Some(ValuePath::At(step)) => vec![step],
        Some(ValuePath::Many(steps)) => steps.to_vec(),
        Some(ValuePath::Nowhere | ValuePath::Root) | None => return Ok(()),
    };
    let room = LONGEST_TEXT / places.len().max(1);
    if !fits(value, room) {
        return Err(PathError::TooMuch);
    }
    for step in places {
        let mut keys = Vec::new();
        let mut next = Some(&step);
        while let Some(step) = next {
            keys.push(&step.key);
            next = step.above.as_ref();
        }
        let place = keys.iter().rev().fold(&mut *document, |value, key| inner(value, key));
        *place = value.clone();
    }
    Ok(())
}
