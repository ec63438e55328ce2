//! Go's `text/template` with the functions of sprig, for roles that take templates of people, and YAML as Go's programs
//! read it.
//!
//! - `template`: parses and renders; `sprig`: the functions beside Go's own; `moment` and `version` are what some of them
//!   know.
//! - `yaml`: text as values, by the rules of YAML 1.1; `objects`: those that such a text holds.
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_wraps, reason = "all functions of templates have one type")]

mod moment;
pub mod objects;
mod sprig;
mod template;
mod version;
pub mod yaml;

pub use sprig::{LIBRARY, Pattern, SYNCAGENT};
pub use template::{Data, Field, Library, Template, TemplateError};
