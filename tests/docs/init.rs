//! The example of docs/init-templates.md.

use std::process::Command;

/// The text of the first block of this language.
fn block(page: &str, language: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("```{language}\n"))
        .expect("the page has such a block");
    let (block, _) = rest.split_once("```").expect("the block ends");
    block.to_owned()
}

#[test]
fn the_example_of_templates_prints_what_the_page_shows() {
    let page = std::fs::read_to_string("docs/init-templates.md").expect("the page is there");
    let console = block(&page, "console");
    let (command, expected) = console.split_once('\n').expect("a command and what it prints");
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("dev.yaml"), block(&page, "yaml")).expect("a file can be written");
    let mut words = command.trim_start_matches("$ ").split(' ');
    assert_eq!(words.next(), Some("edge-syncer"));
    let mut program = Command::new(env!("CARGO_BIN_EXE_edge-syncer"));
    let output = program
        .args(words)
        .current_dir(folder.path())
        .output()
        .expect("it can be started");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
