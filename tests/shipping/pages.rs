//! Writes the manual page and the completions of a binary, from what its help says; `scripts/package` runs it.
//!
//! Arguments: the binary, a folder, and the date of the page.

#![expect(clippy::panic, reason = "it ends with a message")]

mod complete;
mod help;
mod man;

use std::path::{Path, PathBuf};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [binary, folder, date] = &args[..] else {
        panic!("usage: pages BINARY FOLDER DATE");
    };
    let all = help::of_program(Path::new(binary));
    let completions = complete::of(&all);
    let folder = PathBuf::from(folder);
    for (name, text) in [
        ("edge-syncer.1", man::page(&all, date)),
        ("edge-syncer.bash", completions.bash),
        ("_edge-syncer", completions.zsh),
        ("edge-syncer.fish", completions.fish),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
