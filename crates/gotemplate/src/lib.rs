//! Go's `text/template` with the functions of sprig, for roles that take templates of people.
//!
//! - `template`: parses and renders; `sprig`: the functions beside Go's own; `moment` and `version` are what some of them
//!   know.
//! - `objects`: those that a rendered text holds, as `yaml` reads it.
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_wraps, reason = "all functions of templates have one type")]

mod moment;
pub mod objects;
mod sprig;
mod template;
mod version;

pub use goyaml as yaml;
pub use sprig::{LIBRARY, Pattern, SYNCAGENT};
pub use template::{Data, Field, Library, Template, TemplateError};
