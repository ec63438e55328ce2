//! The parser's events as values, with aliases and merge keys resolved.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::{Document, DocumentError, scalar};

/// How deep lists and mappings may be nested.
const DEEPEST: usize = 100;

/// A list or mapping that is still open.
struct Open {
    anchor: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Mapping { entries: Map<String, Value>, key: Key },
}

/// Where in an entry of a mapping.
enum Key {
    /// Its key comes next.
    Awaited,
    /// The value of this one comes next.
    Given(String),
    /// The mappings to merge come next.
    Merge,
}

/// A node as it was read.
struct Node {
    value: Value,
    /// `<<` without quotes: as a key, it merges.
    is_merge: bool,
}

/// The documents of this text. The first has this number and line.
pub(super) fn all(text: &str, first: usize, line: usize, room: &mut usize) -> Result<Vec<Document>, DocumentError> {
    let mut composer = Composer {
        documents: Vec::new(),
        number: first,
        first_line: line,
        begins: line,
        is_cut_off: !text.ends_with('\n'),
        last_line: text.split('\n').count(),
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        room,
    };
    for next in Parser::new_from_str(text) {
        match next {
            Ok((event, span)) => {
                let line = composer.line(&span);
                composer
                    .event(event, &span, line)
                    .map_err(|message| composer.wrong(line, message))?;
            }
            Err(error) => {
                let line = composer.first_line + error.marker().line() - 1;
                return Err(composer.wrong(line, error.info().clone()));
            }
        }
    }
    Ok(composer.documents)
}

struct Composer<'r> {
    documents: Vec<Document>,
    number: usize,
    /// The line at which the text begins.
    first_line: usize,
    /// The line at which the document begins.
    begins: usize,
    /// Whether the text ends without a line break. Then a block scalar at its end has none either, as in Go.
    is_cut_off: bool,
    /// The last line of the text.
    last_line: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    root: Option<Value>,
    room: &'r mut usize,
}

impl Composer<'_> {
    fn line(&self, span: &Span) -> usize {
        self.first_line + span.start.line() - 1
    }

    fn wrong(&self, line: usize, message: String) -> DocumentError {
        let document = self.number;
        DocumentError {
            document,
            line,
            message,
        }
    }

    fn event(&mut self, event: Event<'_>, span: &Span, line: usize) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.root = None;
                self.begins = 0;
            }
            Event::DocumentEnd => {
                let (number, line) = (self.number, self.begins.max(self.first_line));
                let value = self.root.take().unwrap_or(Value::Null);
                self.documents.push(Document { number, line, value });
                self.number += 1;
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.starts(line, 1)?;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_cut_off = is_block && self.is_cut_off && span.end.line() >= self.last_line;
                let text = text.strip_suffix('\n').filter(|_| is_cut_off).unwrap_or(&text);
                let node = read(text, style, tag.as_deref())?;
                self.anchor(anchor, &node.value)?;
                self.node(node)?;
            }
            Event::SequenceStart(_, anchor, _) => self.begin(line, anchor, Kind::List(Vec::new()))?,
            Event::MappingStart(_, anchor, _) => {
                let (entries, key) = (Map::new(), Key::Awaited);
                self.begin(line, anchor, Kind::Mapping { entries, key })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id) else {
                    return Err("an alias of what it is a part of".to_owned());
                };
                let (value, size) = (value.clone(), *size);
                self.starts(line, size)?;
                self.node(Node { value, is_merge: false })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts values that begin here.
    fn starts(&mut self, line: usize, count: usize) -> Result<(), String> {
        if self.begins == 0 {
            self.begins = line;
        }
        match self.room.checked_sub(count) {
            Some(room) => *self.room = room,
            None => {
                return Err(format!(
                    "more than {} values, with what aliases repeat",
                    super::MOST_VALUES
                ));
            }
        }
        Ok(())
    }

    fn begin(&mut self, line: usize, anchor: usize, kind: Kind) -> Result<(), String> {
        self.starts(line, 1)?;
        if self.open.len() == DEEPEST {
            return Err(format!("nested more than {DEEPEST} deep"));
        }
        self.open.push(Open { anchor, kind });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Open { anchor, kind }) = self.open.pop() else {
            return Ok(());
        };
        let value = match kind {
            Kind::List(items) => Value::Array(items),
            Kind::Mapping { entries, .. } => Value::Object(entries),
        };
        self.anchor(anchor, &value)?;
        self.node(Node { value, is_merge: false })
    }

    /// Remembers what an alias may stand for.
    fn anchor(&mut self, anchor: usize, value: &Value) -> Result<(), String> {
        if anchor > 0 {
            let size = size(value);
            self.starts(0, size)?;
            if depth(value) + self.open.len() > DEEPEST {
                return Err(format!("nested more than {DEEPEST} deep"));
            }
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(())
    }

    /// Puts a node where it belongs.
    fn node(&mut self, node: Node) -> Result<(), String> {
        let depth_left = DEEPEST - self.open.len();
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };
        if matches!(node.value, Value::Array(_) | Value::Object(_)) && depth(&node.value) > depth_left {
            return Err(format!("nested more than {DEEPEST} deep"));
        }
        match &mut open.kind {
            Kind::List(items) => items.push(node.value),
            Kind::Mapping { entries, key } => match std::mem::replace(key, Key::Awaited) {
                Key::Awaited if node.is_merge => *key = Key::Merge,
                Key::Awaited => *key = Key::Given(scalar::key(&node.value)?),
                // Of two that are alike, the last one counts.
                Key::Given(name) => {
                    entries.insert(name, node.value);
                }
                Key::Merge => merge(entries, node.value)?,
            },
        }
        Ok(())
    }
}

fn read(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, String> {
    let is_plain = style == ScalarStyle::Plain;
    let value = match tag.map(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:")) {
        None if is_plain => scalar::plain(text)?,
        Some(Some(name)) => scalar::tagged(&name, text)?,
        None | Some(None) => Value::String(text.to_owned()),
    };
    let is_merge = tag.is_none() && is_plain && text == "<<";
    Ok(Node { value, is_merge })
}

/// Adds the entries of a mapping, or of several: the first of them that has a key wins.
fn merge(entries: &mut Map<String, Value>, source: Value) -> Result<(), String> {
    match source {
        Value::Object(source) => {
            entries.extend(source);
            Ok(())
        }
        Value::Array(sources) => sources.into_iter().rev().try_for_each(|source| match source {
            Value::Object(source) => {
                entries.extend(source);
                Ok(())
            }
            _ => Err(NO_MAPPING.to_owned()),
        }),
        _ => Err(NO_MAPPING.to_owned()),
    }
}

const NO_MAPPING: &str = "map merge requires map or sequence of maps as the value";

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
