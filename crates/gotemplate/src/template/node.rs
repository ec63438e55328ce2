//! A template after parsing: what is printed as it is, and what is evaluated.

use std::collections::BTreeMap;
use std::ops::Range;

use super::function::Function;

/// A part of the template's text, in bytes. Errors say where it begins and quote it.
pub(crate) type Span = Range<usize>;

/// The trees of a template by name: its own, and those of `define` and `block`.
pub(crate) type Trees = BTreeMap<String, Vec<Node>>;

/// A piece of a template.
#[derive(Debug)]
pub(crate) enum Node {
    /// Printed as it is.
    Text(Span),
    /// Printed, unless it declares a variable.
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    /// Another tree, with what the pipeline gives as its dot.
    Template {
        span: Span,
        name: String,
        pipe: Option<Pipe>,
    },
    Break,
    Continue,
}

/// What `if`, `with` and `range` have in common.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) span: Span,
    /// The variables that get the result, with their `$`.
    pub(crate) variables: Vec<String>,
    /// Whether they exist already.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// A function or value with its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) span: Span,
    pub(crate) words: Vec<Expr>,
}

/// An operand.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) span: Span,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Text(Vec<u8>),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`, with the `$`.
    Variable(String, Vec<String>),
    Function(&'static Function),
    Pipe(Box<Pipe>),
    /// Fields of what another operand gives: `(f).a`.
    Chain(Box<Expr>, Vec<String>),
}

/// A constant. Which of its forms is meant depends on where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) float: f64,
    /// Whether it is a float where nothing says which.
    pub(crate) is_float: bool,
}
