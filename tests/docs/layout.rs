//! Files that the pages for developers name are there, and each file of tests has a row that says when it is run.

use std::path::Path;

use crate::pages::{Names, Page, files, root, same, spans};

/// The pages that say in which file something is.
const OF_FILES: [&str; 3] = ["docs/architecture.md", "docs/model.md", "docs/adding-a-role.md"];

#[test]
fn every_file_that_is_named_is_there() {
    let mut count = 0;
    let mut missing = Vec::new();
    for path in OF_FILES {
        let text = Page::open(path).prose();
        for name in spans(&text).into_iter().filter(|name| is_of_a_file(name)) {
            count += 1;
            if !is_there(name) {
                missing.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(count > 50, "only {count} files were found");
    assert!(missing.is_empty(), "there is no\n{}", missing.join("\n"));
}

/// `sync/kinds.rs` and `driver/queue/`, but no path of a URL.
fn is_of_a_file(name: &str) -> bool {
    let ends = name.ends_with('/') || Path::new(name).extension().is_some_and(|end| end == "rs");
    ends && !name.starts_with('/')
}

/// A path that the pages shorten: `driver/shell.rs` is in that crate, `sync/kinds.rs` in `src/`, and `upsync.rs` in the part
/// that the sentence is about.
fn is_there(name: &str) -> bool {
    let of_crate = name.split_once('/');
    let of_crate = of_crate.map(|(first, rest)| format!("crates/{first}/src/{rest}"));
    let bases = ["", "src/", "crates/driver/src/", "crates/kube-lite/src/"];
    let mut known = bases.iter().map(|base| format!("{base}{name}")).chain(of_crate);
    let is_part_of = |file: &String| match name.split_once('*') {
        Some((before, after)) => file.contains(before) && file.ends_with(after),
        None => !name.contains('/') && file.ends_with(&format!("/{name}")),
    };
    let mut all = files("src", ".rs").into_iter().chain(files("crates", ".rs"));
    known.any(|path| root().join(path).exists()) || all.any(|file| is_part_of(&file))
}

#[test]
fn every_file_of_tests_and_every_script_for_tests_says_what_it_is_for() {
    let page = Page::open("CONTRIBUTING.md");
    let mut named = Names::new();
    for row in page.rows("I change") {
        for command in spans(&row.cells[1]) {
            let mut words = command.split(' ');
            let script = words.next().unwrap_or_default();
            assert!(root().join(script).is_file(), "{script} is named and not there");
            let (_, test) = command.split_once("--test ").unwrap_or_default();
            named.extend((!test.is_empty()).then(|| test.split(' ').next().unwrap_or_default().to_owned()));
        }
    }
    let of_tests = |path: &String| {
        let (_, name) = path.strip_suffix(".rs")?.rsplit_once("tests/")?;
        let name = name.strip_suffix("/main").unwrap_or(name);
        (!name.contains('/')).then(|| name.to_owned())
    };
    let driver = files("crates/driver/tests", ".rs");
    let there = files("tests", ".rs")
        .iter()
        .chain(&driver)
        .filter_map(of_tests)
        .collect();
    same("files of tests", &named, &there);
}
