//! What templates compute with: the types of Go that its functions tell apart.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::moment::Moment;
use crate::version::Version;

/// A value. Clones share lists and maps, as in Go: what `set` changes is changed for all who have the map.
#[derive(Clone)]
pub(crate) enum Value {
    /// No value, and Go's `nil`.
    Nil,
    Bool(bool),
    Int(IntKind, i64),
    Float(f64),
    /// Bytes: `trunc` may cut a character in two.
    Text(Rc<[u8]>),
    List(Rc<List>),
    Map(Rc<Map>),
    Time(Rc<Moment>),
    Version(Rc<Version>),
    /// What a template is rendered for.
    Data(Rc<Struct>),
}

/// The integer types that functions return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntKind {
    Int,
    Int64,
    Uint8,
    Uint64,
}

/// The types of a list's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Any,
    Text,
    Int,
    Lists,
}

/// A list. It never changes.
pub(crate) struct List {
    pub(crate) of: Of,
    /// Whether it is Go's nil, which JSON tells from an empty one.
    pub(crate) is_nil: bool,
    pub(crate) items: Vec<Value>,
}

/// The entries of a map, in order.
pub(crate) type Entries = BTreeMap<Rc<[u8]>, Value>;

/// A map of texts.
pub(crate) struct Map {
    /// Whether its values are texts only, as `split` makes them: functions for maps do not take such a map.
    pub(crate) of_texts: bool,
    pub(crate) entries: RefCell<Entries>,
}

/// A struct. Templates only read it.
pub(crate) struct Struct {
    pub(crate) type_name: &'static str,
    /// Its fields, and what its methods give.
    pub(crate) fields: Vec<(&'static str, Value)>,
    /// What it prints, if not its fields.
    pub(crate) text: Option<String>,
}

impl Value {
    pub(crate) fn int(number: i64) -> Self {
        Self::Int(IntKind::Int, number)
    }

    pub(crate) fn int64(number: i64) -> Self {
        Self::Int(IntKind::Int64, number)
    }

    /// What `%T` prints.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(IntKind::Int, _) => "int",
            Self::Int(IntKind::Int64, _) => "int64",
            Self::Int(IntKind::Uint8, _) => "uint8",
            Self::Int(IntKind::Uint64, _) => "uint64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(list) => match list.of {
                Of::Any => "[]interface {}",
                Of::Text => "[]string",
                Of::Int => "[]int",
                Of::Lists => "[][]interface {}",
            },
            Self::Map(map) if map.of_texts => "map[string]string",
            Self::Map(_) => "map[string]interface {}",
            Self::Time(_) => "time.Time",
            Self::Version(_) => "*semver.Version",
            Self::Data(data) => data.type_name,
        }
    }

    /// Go's name of the kind of type.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Time(_) | Self::Data(_) => "struct",
            Self::Version(_) => "ptr",
            other => other.type_name(),
        }
    }

    /// Whether `if` takes it for true.
    pub(crate) fn is_true(&self) -> bool {
        !self.is_empty()
    }

    /// Whether `default` takes it for missing.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::Bool(value) => !value,
            Self::Int(_, number) => *number == 0,
            Self::Float(number) => *number == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Map(map) => map.entries.borrow().is_empty(),
            Self::Time(_) | Self::Version(_) | Self::Data(_) => false,
        }
    }
}
