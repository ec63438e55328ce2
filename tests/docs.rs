//! The docs against the program: the commands of the pages are run between real API servers, the tables of
//! `docs/reference/` are compared with the code, and links are followed.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "docs/console.rs"]
mod console;
#[path = "docs/flags.rs"]
mod flags;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/marks.rs"]
mod marks;
#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/shell.rs"]
mod shell;
