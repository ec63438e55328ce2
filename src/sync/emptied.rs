//! Objects and lists that are emptied at the origin: with an apply alone they would disappear from the copy.
//! Server-side apply removes from a copy what its manager no longer applies, and also what becomes empty by that
//! (structured-merge-diff): `{}` over an `{a: b}` of ours gives null or nothing, and so does `[]` over `[x]`. If a
//! schema requires an object there, the whole apply is refused, however often it is sent; otherwise the same apply
//! finds nothing to remove the next time, and so sets the empty value. [`apply`] handles both in one run: after a
//! refusal, a patch first removes what is ours there, which leaves `{}`; and what an answer shows as lost is applied
//! once more. It needs only one request unless something empty is applied and is lost by that.
//!
//! Nested more deeply than `serde_json` reads into values (128 levels), objects are applied as they are.

use std::collections::HashMap;

use bytes::Bytes;
use kube_lite::fields::from_text;
use kube_lite::{Cluster, Content, Error, pointer};
use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use super::managed_fields::owned;
use super::meta::Meta;
use super::object::{Address, Desired};
use super::top_fields::object_of;

/// Applies through `once`, which applies to the copy as it was at a version and returns the copy, and whether the apply
/// has created it.
pub(super) async fn apply(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    version: Option<&str>,
    once: impl AsyncFn(Option<&str>) -> Result<(Bytes, bool), Error>,
) -> Result<(Bytes, bool), Error> {
    let (mut applied, mut cleared) = (once(version).await, None);
    if let Err(refusal) = &applied
        && refusal.is_invalid()
        && desired.may_empty()
    {
        cleared = clear(copies, at, desired, version).await?;
        if cleared.is_some() {
            applied = once(cleared.as_deref()).await;
        }
    }
    let (object, created) = applied?;
    if created || !desired.may_empty() {
        return Ok((object, created));
    }
    let now = Meta::of(&at.name, &object)?.resource_version;
    // An apply that has changed nothing would change nothing the next time either.
    let is_new = cleared.as_deref().or(version) != Some(&*now);
    if is_new && has_lost(&desired.fields, &object) {
        return once(Some(&now)).await;
    }
    Ok((object, false))
}

/// Removes from the copy, as it was at a version, what we own where something empty is wanted. Returns the version that
/// the copy then has; `None` if there is nothing to remove, or it may not be removed.
async fn clear(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    version: Option<&str>,
) -> Result<Option<String>, Error> {
    let Address { resource, name } = at;
    let copy = match copies.get(resource, name, Content::Full).await {
        Ok(copy) => copy,
        // Then the refusal of the apply is logged.
        Err(error) if error.status().is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let seen = Meta::of(name, &copy)?.resource_version;
    let Some(patch) = clearing(&desired.fields, &copy, version.unwrap_or(&seen)) else {
        return Ok(None);
    };
    match copies.merge_patch_for(resource, name, patch, Content::Metadata).await {
        Ok(patched) => Ok(Some(Meta::of(name, &patched)?.resource_version)),
        Err(error) if error.is_rejection() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Desired {
    /// True if it may hold an empty object or list, so that the answer to an apply is needed whole.
    pub(super) fn may_empty(&self) -> bool {
        ["{}", "[]"].iter().any(|empty| self.fields.contains(empty))
    }
}

/// What the copy is to be, from fields that each have a comma before them, and the copy itself.
fn read(fields: &str, copy: &[u8]) -> Option<(Value, Value)> {
    let wanted = from_text(&object_of(fields)).ok()?;
    Some((wanted, serde_json::from_slice(copy).ok()?))
}

/// True if something that is empty in `fields` is not in the copy to which they were applied.
fn has_lost(fields: &str, copy: &[u8]) -> bool {
    let Some(((wanted, found), (ours, _))) = read(fields, copy).zip(owned(copy).ok()) else {
        return false;
    };
    lacks(&wanted, &found, &ours, Some(0))
}

fn lacks(wanted: &Value, found: &Value, ours: &FieldSet, node: Option<usize>) -> bool {
    match (wanted, found) {
        (wanted, Value::Null) => is_hollow(wanted),
        (Value::Object(fields), Value::Object(found)) => fields.iter().any(|(name, wanted)| {
            let below = node.and_then(|node| ours.below(node, &json!(format!("f:{name}")).to_string()));
            lacks(wanted, found.get(name).unwrap_or(&Value::Null), ours, below)
        }),
        (Value::Array(items), Value::Array(others)) => {
            let parts = |list| node.map(|node| parts(list, ours, node)).unwrap_or_default();
            let merged = parts(found);
            if merged.is_empty() {
                // A list that is applied as a whole is the same list.
                let mut pairs = items.iter().zip(others);
                return items.len() == others.len() && pairs.any(|(item, other)| lacks(item, other, ours, None));
            }
            let items = by_key(parts(wanted));
            let is_lacking = |part: &Part| {
                let item = items.get(part.key);
                item.is_some_and(|item| lacks(item, part.value, ours, Some(part.below)))
            };
            merged.iter().any(is_lacking)
        }
        _ => false,
    }
}

/// True for a value that contains nothing but empty values.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_hollow),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The JSON patch that removes from a copy at a version what only we own where `fields` have something empty; `None` if
/// there is nothing to remove.
fn clearing(fields: &str, copy: &[u8], version: &str) -> Option<Bytes> {
    let (wanted, found) = read(fields, copy)?;
    let (ours, others) = owned(copy).ok()?;
    let mut clearing = Clearing {
        ours: &ours,
        others: &others,
        steps: vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})],
    };
    let whole = At {
        path: String::new(),
        ours: 0,
        others: Some(0),
    };
    clearing.descend(&wanted, &found, &whole);
    (clearing.steps.len() > 1).then(|| Bytes::from(Value::from(clearing.steps).to_string()))
}

struct Clearing<'a> {
    ours: &'a FieldSet,
    others: &'a FieldSet,
    steps: Vec<Value>,
}

/// A place in a copy.
struct At {
    /// As a JSON pointer.
    path: String,
    /// Its node in the field set of what we own, and in that of all others if they own anything there.
    ours: usize,
    others: Option<usize>,
}

impl Clearing<'_> {
    fn settle(&mut self, wanted: &Value, found: &Value, at: &At) {
        match (wanted, found) {
            (Value::Object(fields), Value::Object(_)) if fields.is_empty() => self.take_out(found, at),
            (Value::Array(items), Value::Array(_)) if items.is_empty() => self.take_out(found, at),
            _ => self.descend(wanted, found, at),
        }
    }

    fn descend(&mut self, wanted: &Value, found: &Value, at: &At) {
        let ours = self.ours;
        let wanted = by_key(parts(wanted, ours, at.ours));
        for part in parts(found, ours, at.ours) {
            if let Some(wanted) = wanted.get(part.key) {
                self.settle(wanted, part.value, &self.below(at, &part));
            }
        }
    }

    fn take_out(&mut self, found: &Value, at: &At) {
        let parts = parts(found, self.ours, at.ours);
        let places: Vec<(&Value, At)> = parts.iter().map(|part| (part.value, self.below(at, part))).collect();
        let (size, nothing) = match found {
            Value::Array(items) => (items.len(), json!([])),
            _ => (found.as_object().map_or(0, Map::len), json!({})),
        };
        if size == places.len() && places.iter().all(|(_, place)| place.others.is_none()) {
            if size > 0 {
                self.steps
                    .push(json!({"op": "replace", "path": at.path, "value": nothing}));
            }
            return;
        }
        for (value, place) in places {
            if place.others.is_none() {
                self.steps.push(json!({"op": "remove", "path": place.path}));
            } else {
                self.take_out(value, &place);
            }
        }
    }

    fn below(&self, at: &At, part: &Part) -> At {
        At {
            path: format!("{}{}", at.path, pointer(&[&part.step])),
            ours: part.below,
            others: at.others.and_then(|node| self.others.below(node, part.key)),
        }
    }
}

/// A field of an object or an item of a list that a field set names.
pub(super) struct Part<'a> {
    /// As the field set names it.
    pub(super) key: &'a str,
    /// Its name, or its place in a list.
    step: String,
    /// What is there.
    pub(super) value: &'a Value,
    /// Its node in the field set.
    pub(super) below: usize,
}

/// The parts of a value that a node of a field set names, those of a list from its end, so that removing one does not
/// move those that follow.
pub(super) fn parts<'a>(value: &'a Value, set: &'a FieldSet, node: usize) -> Vec<Part<'a>> {
    let named = set.fields(node).filter_map(|(key, below)| {
        let text: String = from_text(key).ok()?;
        let (kind, name) = text.split_once(':')?;
        Some((key, below, kind.to_owned(), name.to_owned()))
    });
    match value {
        Value::Object(fields) => {
            let part = |(key, below, kind, name): (&'a str, usize, String, String)| {
                let value = fields.get(&name).filter(|_| kind == "f")?;
                Some(Part {
                    key,
                    step: name,
                    value,
                    below,
                })
            };
            named.filter_map(part).collect()
        }
        Value::Array(items) => {
            let named = named.filter(|(_, _, kind, _)| kind == "k" || kind == "v");
            let named = named.filter_map(|(key, below, _, text)| {
                let mark: Value = from_text(&text).ok()?;
                Some((key, below, mark))
            });
            items_of(items, &named.collect::<Vec<_>>())
        }
        _ => Vec::new(),
    }
}

/// The items of a list that these keys name: values, or objects with the fields that distinguish items.
fn items_of<'a>(items: &'a [Value], named: &[(&'a str, usize, Value)]) -> Vec<Part<'a>> {
    let first = named.first().and_then(|(_, _, mark)| mark.as_object());
    let fields: Option<Vec<&String>> = first.map(|mark| mark.keys().collect());
    let mark_of = |item: &Value| match &fields {
        Some(fields) => fields
            .iter()
            .map(|field| item.get(field.as_str()).cloned())
            .collect::<Value>()
            .to_string(),
        None => item.to_string(),
    };
    let places: HashMap<String, usize> = items.iter().enumerate().map(|(at, item)| (mark_of(item), at)).collect();
    let mut found: Vec<(usize, Part)> = named
        .iter()
        .filter_map(|(key, below, mark)| {
            let at = *places.get(&mark_of(mark))?;
            let (step, below) = (at.to_string(), *below);
            let value = items.get(at)?;
            Some((
                at,
                Part {
                    key,
                    step,
                    value,
                    below,
                },
            ))
        })
        .collect();
    found.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    found.into_iter().map(|(_, part)| part).collect()
}

fn by_key(parts: Vec<Part<'_>>) -> HashMap<&str, &Value> {
    parts.into_iter().map(|part| (part.key, part.value)).collect()
}

#[cfg(test)]
#[path = "emptied_tests.rs"]
mod tests;
