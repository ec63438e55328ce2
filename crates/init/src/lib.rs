//! What kcp's init-agent makes of its templates: the objects of an InitTarget for a workspace, in the order in which they
//! are created.
//!
//! No I/O, no clock: texts and the time in, objects out.
//!
//! - `template`: Go's `text/template`.
//! - `sprig`: the functions that templates have beside Go's own; `moment` and `version` are what some of them know.
//! - `yaml`: rendered text as values, by the rules of YAML 1.1.
//! - `objects`: those values as objects, in the order in which they are created.
//! - `kinds`: InitTarget and InitTemplate.
#![forbid(unsafe_code)]
#![allow(clippy::unnecessary_wraps, reason = "all functions of templates have one type")]

pub mod kinds;
mod moment;
pub mod objects;
mod sprig;
pub mod template;
mod version;
pub mod yaml;
