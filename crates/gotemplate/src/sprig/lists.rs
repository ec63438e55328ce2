//! Functions on lists. Each has a twin whose name begins with `must`, which fails where the other does in Go too.

use super::cast;
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::heap::Heap;
use crate::template::value::{List, Of, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const INT_ANY: &[Type] = &[Type::Int, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_more("list", &[], Type::Any, |args| {
        args.heap.list(Of::Any, args.all().to_vec())
    }),
    Function::with_more("tuple", &[], Type::Any, |args| {
        args.heap.list(Of::Any, args.all().to_vec())
    }),
    Function::new("first", ANY, first),
    Function::new("mustFirst", ANY, first),
    Function::new("last", ANY, last),
    Function::new("mustLast", ANY, last),
    Function::new("rest", ANY, rest),
    Function::new("mustRest", ANY, rest),
    Function::new("initial", ANY, initial),
    Function::new("mustInitial", ANY, initial),
    Function::new("append", TWO, append),
    Function::new("mustAppend", TWO, append),
    Function::new("push", TWO, append),
    Function::new("mustPush", TWO, append),
    Function::new("prepend", TWO, prepend),
    Function::new("mustPrepend", TWO, prepend),
    Function::with_more("concat", &[], Type::Any, concat),
    Function::new("reverse", ANY, reverse),
    Function::new("mustReverse", ANY, reverse),
    Function::new("uniq", ANY, uniq),
    Function::new("mustUniq", ANY, uniq),
    Function::with_more("without", ANY, Type::Any, without),
    Function::with_more("mustWithout", ANY, Type::Any, without),
    Function::new("has", TWO, has),
    Function::new("mustHas", TWO, has),
    Function::new("compact", ANY, compact),
    Function::new("mustCompact", ANY, compact),
    Function::with_more("slice", ANY, Type::Any, slice),
    Function::with_more("mustSlice", ANY, Type::Any, slice),
    Function::new("chunk", INT_ANY, chunk),
    Function::new("mustChunk", INT_ANY, chunk),
    Function::new("sortAlpha", ANY, sort_alpha),
];

/// A list argument. What Go says of others depends on the function.
fn list<'a>(value: &'a Value, wrong: &str) -> Result<&'a List, String> {
    match value {
        Value::List(list) => Ok(list),
        Value::Nil => Err("invalid memory address or nil pointer dereference".to_owned()),
        other => Err(format!("{wrong} {}", other.kind_name())),
    }
}

fn first(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot find first on type")?;
    Ok(list.items.first().cloned().unwrap_or(Value::Nil))
}

fn last(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot find last on type")?;
    Ok(list.items.last().cloned().unwrap_or(Value::Nil))
}

fn rest(args: &Args<'_>) -> Answer {
    match list(args.value(0), "Cannot find rest on type")?.items.as_slice() {
        [] => args.heap.nil_list(Of::Any),
        [_, rest @ ..] => copied(args.heap, rest),
    }
}

fn initial(args: &Args<'_>) -> Answer {
    match list(args.value(0), "Cannot find initial on type")?.items.as_slice() {
        [] => args.heap.nil_list(Of::Any),
        [initial @ .., _] => copied(args.heap, initial),
    }
}

fn copied(heap: &Heap, items: &[Value]) -> Answer {
    heap.list(Of::Any, items.to_vec())
}

fn append(args: &Args<'_>) -> Answer {
    let mut items = list(args.value(0), "Cannot push on type")?.items.clone();
    items.push(args.value(1).clone());
    args.heap.list(Of::Any, items)
}

fn prepend(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot prepend on type")?;
    let items = std::iter::once(args.value(1)).chain(&list.items);
    args.heap.list(Of::Any, items.cloned().collect())
}

fn concat(args: &Args<'_>) -> Answer {
    let mut items = Vec::new();
    for value in args.all() {
        let Value::List(list) = value else {
            let kind = value.kind_name();
            return Err(format!("Cannot concat type {kind} as list"));
        };
        args.heap.elements(list.items.len() / 2)?;
        items.extend_from_slice(&list.items);
    }
    if items.is_empty() {
        args.heap.nil_list(Of::Any)
    } else {
        args.heap.list(Of::Any, items)
    }
}

fn reverse(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot find reverse on type")?;
    args.heap.list(Of::Any, list.items.iter().rev().cloned().collect())
}

fn is_in(items: &[Value], wanted: &Value, heap: &Heap) -> Result<bool, String> {
    for item in items {
        if item.equals(wanted, heap)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot find uniq on type")?;
    let mut items: Vec<Value> = Vec::new();
    for item in &list.items {
        if !is_in(&items, item, args.heap)? {
            items.push(item.clone());
        }
    }
    args.heap.list(Of::Any, items)
}

fn without(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot find without on type")?;
    let mut items = Vec::new();
    for item in &list.items {
        if !is_in(args.from(1), item, args.heap)? {
            items.push(item.clone());
        }
    }
    args.heap.list(Of::Any, items)
}

fn has(args: &Args<'_>) -> Answer {
    if matches!(args.value(1), Value::Nil) {
        return Ok(Value::Bool(false));
    }
    let list = list(args.value(1), "Cannot find has on type")?;
    is_in(&list.items, args.value(0), args.heap).map(Value::Bool)
}

fn compact(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "Cannot compact on type")?;
    let items = list.items.iter().filter(|item| !item.is_empty());
    args.heap.list(Of::Any, items.cloned().collect())
}

fn slice(args: &Args<'_>) -> Answer {
    let list = list(args.value(0), "list should be type of slice or array but")?;
    if list.items.is_empty() {
        return Ok(Value::Nil);
    }
    let bound = |index: usize, default: usize| match args.all().get(index) {
        Some(value) => usize::try_from(cast::int(value)).ok(),
        None => Some(default),
    };
    let length = list.items.len();
    let part = bound(1, 0)
        .zip(bound(2, length))
        .and_then(|(start, end)| list.items.get(start..end));
    let part = part.ok_or("reflect.Value.Slice: slice index out of bounds")?;
    args.heap.list(list.of, part.to_vec())
}

fn chunk(args: &Args<'_>) -> Answer {
    let list = list(args.value(1), "Cannot chunk type")?;
    let size = usize::try_from(args.int(0)).unwrap_or(0);
    if size == 0 {
        return if list.items.is_empty() {
            args.heap.list(Of::Lists, Vec::new())
        } else {
            Err("runtime error: makeslice: len out of range".to_owned())
        };
    }
    let chunks = list.items.chunks(size).map(|chunk| copied(args.heap, chunk));
    args.heap.list(Of::Lists, chunks.collect::<Result<_, _>>()?)
}

fn sort_alpha(args: &Args<'_>) -> Answer {
    let mut texts = cast::texts(args.value(0), args.heap)?;
    if matches!(args.value(0), Value::Nil) {
        texts.push(b"<nil>".to_vec());
    }
    texts.sort_unstable();
    args.heap.texts(texts)
}
