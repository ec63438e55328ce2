//! What is shipped besides the binary, and what the scripts that make it refuse. It needs no servers.

#![expect(clippy::panic, reason = "in tests a failure is one")]

#[path = "shipping/complete.rs"]
mod complete;
#[path = "shipping/help.rs"]
mod help;
#[path = "shipping/man.rs"]
mod man;
#[path = "shipping/of_program.rs"]
mod of_program;
#[path = "shipping/scripts.rs"]
mod scripts;
