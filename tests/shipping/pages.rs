//! Writes the manual page and the completions of a binary, from what its help says; `scripts/package` runs it, since the
//! binaries for edges cannot do that themselves.
//!
//! Arguments: the binary, a folder, and the date of the page.

#![expect(clippy::panic, reason = "it ends with a message")]

use std::path::{Path, PathBuf};
use std::process::Command;

use edge_syncer::cli::pages::{Shell, completion_of, manual_of, read};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [binary, folder, date] = &args[..] else {
        panic!("usage: pages BINARY FOLDER DATE");
    };
    let all = read(|args| say(Path::new(binary), args));
    let folder = PathBuf::from(folder);
    let of = |shell| completion_of(&all, shell);
    for (name, text) in [
        ("edge-syncer.1", manual_of(&all, date)),
        ("edge-syncer.bash", of(Shell::Bash)),
        ("_edge-syncer", of(Shell::Zsh)),
        ("edge-syncer.fish", of(Shell::Fish)),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn say(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{}: cannot be started: {error}", program.display()));
    assert!(output.status.success(), "{} {args:?} fails", program.display());
    String::from_utf8(output.stdout).expect("the help is UTF-8")
}
