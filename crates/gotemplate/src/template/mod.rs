//! Go's `text/template`: parses a template and renders it.
//!
//! Promises: what Go renders is rendered to the same bytes; what Go refuses is refused, with the line and column; a
//! rendering ends soon and uses little memory, whatever the template does (`heap`); nothing here panics.
//!
//! No crate has this. `gotmpl` comes near, but its maps cannot be changed (`set` and `merge` do), its errors of a rendering
//! have no position, its texts cannot hold what `trunc` cuts off, a stray `end` cuts the template off silently, and a
//! function's types are not checked.

use std::time::SystemTime;

pub use data::{Data, Field};
pub use error::TemplateError;
use heap::Heap;
pub use library::Library;
use node::Trees;

mod builtins;
mod data;
mod equal;
mod error;
mod exec;
mod fields;
pub(crate) mod format;
pub(crate) mod function;
pub(crate) mod heap;
mod lexer;
pub(crate) mod library;
pub(crate) mod literal;
mod node;
mod parser;
pub(crate) mod print;
pub(crate) mod value;

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

/// A template that can be rendered.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    trees: Trees,
}

impl Template {
    /// Parses this text. Functions and variables that are not there are errors already.
    pub fn parse(name: &str, text: &str, library: &Library) -> Result<Self, TemplateError> {
        let trees = parser::parse(name, text, library)?;
        let (name, text) = (name.to_owned(), text.to_owned());
        Ok(Self { name, text, trees })
    }

    /// What it renders for this data at this time.
    pub fn render(&self, data: &Data, now: SystemTime) -> Result<String, TemplateError> {
        let bytes = self.render_bytes(data, now)?;
        String::from_utf8(bytes).map_err(|error| {
            let rendered = error.into_bytes();
            let valid = String::from_utf8_lossy(&rendered);
            let line = valid[..valid.find('\u{fffd}').unwrap_or(0)].matches('\n').count() + 1;
            let message = format!("line {line} of what it renders is not UTF-8");
            TemplateError::at(&self.name, &self.text, 0, &message)
        })
    }

    fn render_bytes(&self, data: &Data, now: SystemTime) -> Result<Vec<u8>, TemplateError> {
        let heap = Heap::new(now);
        let value = data.value(&heap);
        let value = value.map_err(|why| TemplateError::at(&self.name, &self.text, 0, &why))?;
        exec::render(self, &value, &heap)
    }
}
