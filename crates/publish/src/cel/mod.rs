//! The Common Expression Language: the core of it, with its standard functions and macros, as cel-go 0.28 has it.
//!
//! Promises: what cel-go computes is computed; names and functions that are not there, and constants that cannot be
//! computed, are errors before any object is met; an evaluation ends soon and uses little memory (`Budget`); nothing here
//! panics.
//!
//! What differs, so that rules work which people write: numbers of a document are whole or not, as they are written, and
//! arithmetic takes different types of numbers together. Types are checked when they meet, not ahead.
//!
//! The crate `cel` evaluates without a bound, knows unknown functions only when they are called, and brings the runtime of
//! a parser generator.

mod budget;
mod eval;
mod functions;
mod lexer;
mod parser;
mod time;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use budget::Budget;
use eval::Scope;
use parser::Expr;
use value::Val;

/// The variables that there are.
const VARIABLES: [&str; 3] = ["self", "other", "value"];

/// The longest expression, in bytes.
const LONGEST: usize = 100_000;

/// What is wrong with an expression, or with what it meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CelError(String);

impl CelError {
    fn syntax(text: &str, at: usize, why: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self(format!("{line}:{column}: {why}"))
    }
}

impl fmt::Display for CelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CelError {}

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Program(Expr);

/// What the variables are.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// The object.
    pub this: &'a Value,
    /// Its counterpart.
    pub other: &'a Value,
    /// What is at the path of the rule.
    pub value: &'a Value,
}

impl Program {
    /// Parses an expression, and computes what in it is constant.
    pub fn parse(text: &str) -> Result<Self, CelError> {
        if text.len() > LONGEST {
            return Err(CelError(format!("expression of more than {LONGEST} bytes")));
        }
        let expr = parser::parse(text)?;
        eval::check_constants(&expr).map_err(CelError)?;
        Ok(Self(expr))
    }

    /// What it computes, as JSON.
    pub fn run(&self, variables: Variables<'_>) -> Result<Value, CelError> {
        let budget = Budget::new();
        let Variables { this, other, value } = variables;
        let mut scope = Scope::new([
            ("self", Val::of(this)),
            ("other", Val::of(other)),
            ("value", Val::of(value)),
        ]);
        let found = eval::eval(&self.0, &mut scope, &budget);
        let json = found.and_then(|found| {
            budget::room_for(&found, &budget)?;
            found.to_json()
        });
        json.map_err(CelError)
    }
}
