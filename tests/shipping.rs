//! What is shipped besides the binary, and what the scripts that make it refuse. It needs no servers.

#[path = "shipping/of_program.rs"]
mod of_program;
#[path = "shipping/scripts.rs"]
mod scripts;
