//! Go's `text/template` with the functions of sprig, for roles that take templates of people; and the objects that a
//! rendered text holds.
//!
//! Promises: what Go renders is rendered to the same bytes; what Go refuses is refused, with its line and column; a
//! rendering ends soon and uses little memory, whatever the template does; nothing here panics.
//!
//! It never reads a file or the environment, talks to a server, or knows a role.
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
