//! A function of templates: what it takes, and how it runs.

use super::heap::Heap;
use super::value::{Map, Value};
use std::rc::Rc;

/// What a function gives, or why it cannot.
pub(crate) type Answer = Result<Value, String>;

/// A type of an argument. Go checks them before the function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Text,
    Int,
    Float,
    Bool,
    Map,
    Time,
}

impl Type {
    /// Go's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Map => "map[string]interface {}",
            Self::Time => "time.Time",
        }
    }
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// The arguments that it must have.
    pub(crate) takes: &'static [Type],
    /// What each further argument must be, if it takes more.
    pub(crate) more: Option<Type>,
    pub(crate) run: Run,
}

/// How it runs.
#[derive(Debug)]
pub(crate) enum Run {
    Call(fn(&Args<'_>) -> Answer),
    /// `and` and `or` evaluate no more arguments than they need.
    And,
    Or,
}

impl Function {
    /// A function of exactly these arguments.
    pub(crate) const fn new(name: &'static str, takes: &'static [Type], run: fn(&Args<'_>) -> Answer) -> Self {
        let (more, run) = (None, Run::Call(run));
        Self { name, takes, more, run }
    }

    /// One that takes any number of further arguments.
    pub(crate) const fn with_more(
        name: &'static str,
        takes: &'static [Type],
        more: Type,
        run: fn(&Args<'_>) -> Answer,
    ) -> Self {
        let (more, run) = (Some(more), Run::Call(run));
        Self { name, takes, more, run }
    }
}

/// The arguments of a call, of the types that the function takes.
pub(crate) struct Args<'a> {
    pub(crate) heap: &'a Heap,
    values: Vec<Value>,
}

impl<'a> Args<'a> {
    pub(crate) fn new(heap: &'a Heap, values: Vec<Value>) -> Self {
        Self { heap, values }
    }

    pub(crate) fn value(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Nil)
    }

    pub(crate) fn text(&self, index: usize) -> &[u8] {
        match self.value(index) {
            Value::Text(text) => text,
            _ => &[],
        }
    }

    /// A text as characters. What is no UTF-8 is replaced, as Go does it where it works on characters.
    pub(crate) fn str(&self, index: usize) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.text(index))
    }

    pub(crate) fn int(&self, index: usize) -> i64 {
        match self.value(index) {
            Value::Int(_, number) => *number,
            _ => 0,
        }
    }

    pub(crate) fn float(&self, index: usize) -> f64 {
        match self.value(index) {
            Value::Float(number) => *number,
            _ => 0.0,
        }
    }

    pub(crate) fn bool(&self, index: usize) -> bool {
        matches!(self.value(index), Value::Bool(true))
    }

    /// A map, unless it is nil.
    pub(crate) fn map(&self, index: usize) -> Option<&Rc<Map>> {
        match self.value(index) {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn all(&self) -> &[Value] {
        &self.values
    }

    /// The arguments from this one on.
    pub(crate) fn from(&self, index: usize) -> &[Value] {
        self.values.get(index..).unwrap_or_default()
    }
}
