//! Modifiers (`@keys`) and constants (`!"text"`) of paths.

use serde_json::Value;

use super::Work;
use super::brackets::balanced;
use super::node::Node;
use super::syntax::is_modifier;

/// What was made, and what of the path follows.
pub(super) struct Applied<'a, 'p> {
    pub(super) found: Option<Node<'a>>,
    pub(super) rest: &'p str,
}

/// A modifier at the start of a path.
pub(super) struct Modifier<'p> {
    pub(super) name: &'p str,
    pub(super) argument: &'p str,
    pub(super) rest: &'p str,
}

/// The modifier at the start of this path, if it is one.
pub(super) fn parse(path: &str) -> Option<Modifier<'_>> {
    let end = path[1..].find([':', '|', '.']).map_or(path.len(), |end| end + 1);
    let name = &path[1..end];
    if !is_modifier(name) {
        return None;
    }
    let (argument, rest) = match path[end..].strip_prefix(':') {
        Some(behind) => argument(behind),
        None => ("", &path[end..]),
    };
    Some(Modifier { name, argument, rest })
}

/// How much of a value the modifiers go through.
fn weight(node: &Node<'_>) -> usize {
    1 + node
        .length()
        .or_else(|| node.members().map(|members| members.len()))
        .unwrap_or_default()
}

/// The argument of a modifier: JSON, or all up to the next pipe.
fn argument(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    if matches!(bytes.first(), Some(b'{' | b'[' | b'"')) {
        return text.split_at(balanced(text));
    }
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'|' => break,
            b'{' | b'[' | b'"' | b'(' => index += balanced(&text[index..]),
            _ => index += 1,
        }
    }
    text.split_at(index)
}

/// What a modifier makes. `dig` is a search of its own.
pub(super) fn apply<'a>(from: Option<&Node<'a>>, name: &str, argument: &str, work: &Work) -> Option<Node<'a>> {
    if !work.spend(from.map_or(1, weight)) {
        return None;
    }
    match name {
        "keys" => Some(keys(from)),
        "values" => Some(values(from)),
        "tostr" => {
            let text = from.map_or(Ok(String::new()), Node::raw);
            text.ok().map(|text| Node::owned(Value::String(text)))
        }
        "fromstr" => match from?.scalar() {
            Some(Value::String(text)) => first_value(text),
            Some(Value::Null) => None,
            _ => from.cloned(),
        },
        "reverse" => from.map(reversed),
        "flatten" => {
            let elements = from.and_then(Node::elements);
            let Some(elements) = elements else { return from.cloned() };
            let deep = flag(argument, "deep");
            let mut flat = Vec::new();
            for element in elements {
                flatten(element, deep, &mut flat, work);
            }
            Some(Node::list(flat))
        }
        "join" => from.map(|from| joined(from, flag(argument, "preserve"))),
        "group" => group(from?),
        // "this", "valid", "pretty" and "ugly" change no value.
        _ => from.cloned(),
    }
}

fn flag(argument: &str, name: &str) -> bool {
    let argument: Option<Value> = serde_json::from_str(argument).ok();
    argument
        .and_then(|argument| argument.get(name)?.as_bool())
        .unwrap_or_default()
}

fn keys<'a>(from: Option<&Node<'a>>) -> Node<'a> {
    let Some(from) = from else {
        return Node::list(Vec::new());
    };
    let keys = match from.members() {
        Some(members) => members
            .into_iter()
            .map(|(key, _)| Node::owned(Value::String(key.into_owned())))
            .collect(),
        None => vec![Node::owned(Value::Null); from.length().unwrap_or(1)],
    };
    Node::list(keys)
}

fn values<'a>(from: Option<&Node<'a>>) -> Node<'a> {
    match from {
        None => Node::list(Vec::new()),
        Some(list) if list.is_list() => list.clone(),
        Some(from) => Node::list(match from.members() {
            Some(members) => members.into_iter().map(|(_, value)| value).collect(),
            None => vec![from.clone()],
        }),
    }
}

fn reversed<'a>(from: &Node<'a>) -> Node<'a> {
    if let Some(mut elements) = from.elements() {
        elements.reverse();
        return Node::list(elements);
    }
    match from.members() {
        Some(members) => {
            let members = members.into_iter().rev().map(|(key, value)| (key.into_owned(), value));
            Node::object(members.collect())
        }
        None => from.clone(),
    }
}

fn flatten<'a>(element: Node<'a>, deep: bool, flat: &mut Vec<Node<'a>>, work: &Work) {
    let Some(inner) = element.elements().filter(|_| work.spend(1)) else {
        flat.push(element);
        return;
    };
    for value in inner {
        if deep && value.is_list() {
            let _ = work.deeper(|| {
                flatten(value, deep, flat, work);
                Some(())
            });
        } else if work.spend(1) {
            flat.push(value);
        }
    }
}

/// One object of all objects in a list. Of members with the same key, the last one counts.
fn joined<'a>(from: &Node<'a>, preserve: bool) -> Node<'a> {
    let Some(elements) = from.elements() else {
        return from.clone();
    };
    let mut members: Vec<(String, Node<'a>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (key, value) in elements.iter().filter_map(Node::members).flatten() {
        let key = key.into_owned();
        match known.get(&key) {
            Some(index) if !preserve => {
                let index: usize = *index;
                members[index].1 = value;
            }
            _ => {
                known.insert(key.clone(), members.len());
                members.push((key, value));
            }
        }
    }
    Node::object(members)
}

/// A list of objects of an object of lists.
fn group<'a>(from: &Node<'a>) -> Option<Node<'a>> {
    let mut all: Vec<Vec<(String, Node<'a>)>> = Vec::new();
    for (key, value) in from.members()? {
        for (index, item) in value.elements().unwrap_or_default().into_iter().enumerate() {
            if index == all.len() {
                all.push(Vec::new());
            }
            all[index].push((key.clone().into_owned(), item));
        }
    }
    Some(Node::list(all.into_iter().map(Node::object).collect()))
}

/// A constant at the start of a path.
pub(super) fn constant(path: &str) -> Option<Applied<'static, '_>> {
    let text = &path[1..];
    let end = match text.as_bytes().first()? {
        b'{' | b'[' => balanced(text),
        b'"' | b'+' | b'-' | b'0'..=b'9' => text.len(),
        _ => text.find(['|', '.']).unwrap_or(text.len()),
    };
    let (text, rest) = text.split_at(end);
    let is_word = matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null");
    if !is_word && !text.starts_with(['{', '[', '"', '+', '-']) && !text.starts_with(|next: char| next.is_ascii_digit())
    {
        return None;
    }
    let found = first_value(text);
    Some(Applied { found, rest })
}

/// The JSON at the start of a text.
fn first_value(text: &str) -> Option<Node<'static>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    values.next()?.ok().map(Node::owned)
}
