//! The example of docs/init-templates.md, that of `manifests/init`, and the flags of docs/init.md.

use std::process::Command;

use crate::pages::{Names, Page, plain, root, same};
use crate::support::Syncer;

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
    let mut program = Command::new(Syncer::program_with("init"));
    let output = program
        .args(words)
        .current_dir(folder.path())
        .output()
        .expect("it can be started");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn the_page_of_a_role_has_each_of_its_flags_and_no_other() {
    for role in ["init", "publish"] {
        let output = Command::new(Syncer::program_with("init"))
            .args([role, "--help"])
            .output();
        let output = output.expect("it can be started");
        let help = String::from_utf8(output.stdout).expect("the help is UTF-8");
        let (_, flags) = help.split_once("\nFlags:\n").expect("the help has flags");
        let (flags, _) = flags.split_once("\nOthers:\n").expect("others follow");
        let in_help: Names = flags
            .lines()
            .filter(|line| line.starts_with("  --"))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect();
        let rows = Page::open(&format!("docs/{role}.md")).rows("flag");
        let in_page: Names = rows.iter().map(|row| plain(&row.cells[0])).collect();
        same(&format!("flags of {role}"), &in_page, &in_help);
    }
}

#[test]
fn the_example_of_the_manifests_gives_a_namespace_and_what_is_in_it() {
    let file = |name: &str| root().join("manifests/init/example").join(name).display().to_string();
    let output = Command::new(Syncer::program_with("init"))
        .args([
            "init",
            "render",
            "--cluster-name=2abc",
            "--cluster-path=root:platform:red",
        ])
        .args([
            "--target",
            &file("inittarget.yaml"),
            "--target",
            &file("inittemplate.yaml"),
        ])
        .output()
        .expect("it can be started");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let printed = String::from_utf8_lossy(&output.stdout);
    let objects = crate::support::manifests::documents(&printed);
    let kinds: Vec<&serde_json::Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap"]);
    assert_eq!(objects[1]["data"]["path"], "root:platform:red");
}
