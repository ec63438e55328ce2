//! Functions on maps. `set`, `unset` and `merge` change the map that they are given.

use std::rc::Rc;

use super::cast;
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::Heap;
use crate::template::value::{Entries, List, Map, Of, Value};

const MAP: &[Type] = &[Type::Map];
const MAP_TEXT: &[Type] = &[Type::Map, Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_more("dict", &[], Type::Any, dict),
    Function::new("get", MAP_TEXT, |args| match entry(args.map(0), args.text(1)) {
        Some(value) => Ok(value),
        None => args.heap.text(""),
    }),
    Function::new("set", &[Type::Map, Type::Text, Type::Any], set),
    Function::new("unset", MAP_TEXT, |args| match args.map(0) {
        Some(map) => {
            map.entries.borrow_mut().remove(args.text(1));
            Ok(args.value(0).clone())
        }
        None => args.heap.map(Entries::new()),
    }),
    Function::new("hasKey", MAP_TEXT, |args| {
        Ok(Value::Bool(entry(args.map(0), args.text(1)).is_some()))
    }),
    Function::with_more("pluck", &[Type::Text], Type::Map, pluck),
    Function::with_more("keys", &[], Type::Map, keys),
    Function::new("values", MAP, |args| {
        let values = args.map(0).map(|map| map.entries.borrow().values().cloned().collect());
        args.heap.list(Of::Any, values.unwrap_or_default())
    }),
    Function::with_more("pick", MAP, Type::Text, |args| chosen(args, true)),
    Function::with_more("omit", MAP, Type::Text, |args| chosen(args, false)),
    Function::with_more("merge", MAP, Type::Map, |args| merged(args, false)),
    Function::with_more("mustMerge", MAP, Type::Map, |args| merged(args, false)),
    Function::with_more("mergeOverwrite", MAP, Type::Map, |args| merged(args, true)),
    Function::with_more("mustMergeOverwrite", MAP, Type::Map, |args| merged(args, true)),
    Function::new("deepCopy", &[Type::Any], deep_copy),
    Function::new("mustDeepCopy", &[Type::Any], deep_copy),
    Function::with_more("dig", &[], Type::Any, dig),
];

fn entry(map: Option<&Rc<Map>>, key: &[u8]) -> Option<Value> {
    map?.entries.borrow().get(key).cloned()
}

fn dict(args: &Args<'_>) -> Answer {
    let mut entries = Entries::new();
    for pair in args.all().chunks(2) {
        let key = cast::text(pair.first().unwrap_or(&Value::Nil), args.heap)?;
        let value = match pair.get(1) {
            Some(value) => value.clone(),
            None => args.heap.text("")?,
        };
        entries.insert(key.into(), value);
    }
    args.heap.map(entries)
}

fn set(args: &Args<'_>) -> Answer {
    let map = args.map(0).ok_or("assignment to entry in nil map")?;
    args.heap.elements(1)?;
    args.heap.room(args.text(1).len())?;
    let key = args.heap.text(args.text(1))?;
    if let Value::Text(key) = key {
        map.entries.borrow_mut().insert(key, args.value(2).clone());
    }
    Ok(args.value(0).clone())
}

fn pluck(args: &Args<'_>) -> Answer {
    let maps = (1..args.all().len()).map(|index| args.map(index));
    let found = maps.filter_map(|map| entry(map, args.text(0)));
    args.heap.list(Of::Any, found.collect())
}

fn keys(args: &Args<'_>) -> Answer {
    let mut keys = Vec::new();
    for index in 0..args.all().len() {
        if let Some(map) = args.map(index) {
            let entries = map.entries.borrow();
            args.heap.elements(entries.len())?;
            keys.extend(entries.keys().cloned().map(Value::Text));
        }
    }
    args.heap.list(Of::Text, keys)
}

/// The entries of a map that have these keys, or that have none of them.
fn chosen(args: &Args<'_>, has: bool) -> Answer {
    let Some(map) = args.map(0) else {
        return args.heap.map(Entries::new());
    };
    let is_named = |key: &[u8]| (1..args.all().len()).any(|index| args.text(index) == key);
    let entries = map.entries.borrow();
    args.heap.work((entries.len() * args.all().len()) as u64)?;
    let chosen = entries.iter().filter(|(key, _)| is_named(key) == has);
    let chosen = chosen.map(|(key, value)| (Rc::clone(key), value.clone()));
    args.heap.map(chosen.collect())
}

fn merged(args: &Args<'_>, overwrites: bool) -> Answer {
    let Some(target) = args.map(0) else {
        // A map of its own, which nobody else has.
        let target = args.heap.map(Entries::new())?;
        if let Value::Map(target) = &target {
            merge_all(target, args, overwrites)?;
        }
        return Ok(target);
    };
    merge_all(target, args, overwrites)?;
    Ok(args.value(0).clone())
}

fn merge_all(target: &Rc<Map>, args: &Args<'_>, overwrites: bool) -> Result<(), String> {
    for index in 1..args.all().len() {
        if let Some(source) = args.map(index) {
            merge(target, source, overwrites, args.heap)?;
        }
    }
    Ok(())
}

/// Adds what is missing or empty in a map, and in the maps that it holds; with `overwrites`, all else too.
fn merge(target: &Rc<Map>, source: &Rc<Map>, overwrites: bool, heap: &Heap) -> Result<(), String> {
    if Rc::ptr_eq(target, source) {
        return Ok(());
    }
    // Both may be one and the same deeper down.
    let entries: Entries = source.entries.borrow().clone();
    for (key, value) in entries {
        heap.work(1)?;
        let old = target.entries.borrow().get(&key).cloned();
        if matches!(value, Value::Nil) {
            if overwrites {
                heap.elements(1)?;
                target.entries.borrow_mut().insert(key, value);
            }
            continue;
        }
        match (&old, &value) {
            (Some(Value::Map(old)), Value::Map(new)) if is_mergeable(old, new) => {
                heap.deeper(|| merge(old, new, overwrites, heap))?;
                continue;
            }
            (Some(old), _) if !overwrites && !old.is_empty() => continue,
            _ => {}
        }
        heap.elements(1)?;
        target.entries.borrow_mut().insert(key, value);
    }
    Ok(())
}

fn is_mergeable(old: &Map, new: &Map) -> bool {
    !old.of_texts && !new.of_texts
}

fn deep_copy(args: &Args<'_>) -> Answer {
    match args.value(0) {
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        value => copy(value, args.heap),
    }
}

/// A copy that shares no list or map.
fn copy(value: &Value, heap: &Heap) -> Answer {
    match value {
        Value::List(list) if list.is_nil => heap.nil_list(list.of),
        Value::List(list) => {
            let List { of, items, .. } = &**list;
            let items = heap.deeper(|| items.iter().map(|item| copy(item, heap)).collect::<Result<_, _>>())?;
            heap.list(*of, items)
        }
        Value::Map(map) => {
            let entries = map.entries.borrow();
            let copies = entries
                .iter()
                .map(|(key, value)| Ok((Rc::clone(key), copy(value, heap)?)));
            let copies = heap.deeper(|| copies.collect::<Result<_, String>>())?;
            if map.of_texts {
                heap.text_map(copies)
            } else {
                heap.map(copies)
            }
        }
        other => Ok(other.clone()),
    }
}

/// What is found along these keys, or the default.
fn dig(args: &Args<'_>) -> Answer {
    let [keys @ .., default, map] = args.all() else {
        return Err("dig needs at least three arguments".to_owned());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let not = |value: &Value, wanted: &str| {
        let found = value.type_name();
        format!("interface conversion: interface {{}} is {found}, not {wanted}")
    };
    let mut value = map.clone();
    if let Some(wrong) = keys.iter().find(|key| !matches!(key, Value::Text(_))) {
        return Err(not(wrong, "string"));
    }
    for key in keys {
        let next = match (&value, key) {
            (Value::Map(map), Value::Text(key)) if !map.of_texts => map.entries.borrow().get(key).cloned(),
            (other, _) => return Err(not(other, "map[string]interface {}")),
        };
        match next {
            Some(next) => value = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}
