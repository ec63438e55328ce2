//! Files and functions that the pages for developers name are there, and each file of tests has a row that says when it
//! is run.

use std::path::Path;

use crate::pages::{Names, Page, files, read, root, same, spans};

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

/// The code of a part: `kube-lite/stream.rs` and `driver/` are of crates, `model/` is in `src/`.
fn code_of(part: &str) -> Vec<(String, String)> {
    let of_crate = part.split_once('/');
    let of_crate = of_crate.map(|(first, rest)| format!("crates/{first}/src/{rest}"));
    let folder = of_crate.filter(|path| root().join(path).exists());
    let folder = folder.unwrap_or_else(|| format!("src/{part}"));
    let of_part = |path: &String| path.starts_with(&folder);
    // What a file has in a folder of its name belongs to it.
    let all = files("src", ".rs").into_iter().chain(files("crates", ".rs"));
    let all = all.filter(|path| of_part(path) || path.starts_with(&folder.replace(".rs", "/")));
    all.map(|path| (path.clone(), read(&path))).collect()
}

/// Where a function stands: one of a type is in a file with an `impl` of it, wherever that is; one of a module is in the
/// file of that name.
fn is_function(name: &str, part: &[(String, String)], all: &[(String, String)]) -> bool {
    let (of, name) = name.rsplit_once("::").unwrap_or(("", name));
    let has = |text: &str| text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"));
    let is_type = of.starts_with(char::is_uppercase);
    let is_of_type = |text: &str| {
        let mut heads = text.lines().filter(|line| line.starts_with("impl"));
        heads.any(|head| head.split(|c: char| !c.is_alphanumeric()).any(|word| word == of))
    };
    match (of, is_type) {
        ("", _) => part.iter().any(|(_, text)| has(text)),
        (_, true) => all.iter().any(|(_, text)| has(text) && is_of_type(text)),
        (of, false) => part
            .iter()
            .any(|(path, text)| has(text) && path.ends_with(&format!("/{of}.rs"))),
    }
}

#[test]
fn every_function_on_the_way_of_a_change_is_there() {
    let all = [code_of("kube-lite/"), code_of("driver/"), code_of("")].concat();
    let mut missing = Vec::new();
    let mut count = 0;
    let rows = Page::open("docs/architecture.md").rows("Part");
    for row in rows.iter().filter(|row| row.heading == "The way of a change") {
        for name in spans(&row.cells[1]) {
            let parts = spans(&row.cells[0]);
            let is_there = parts.iter().any(|part| is_function(name, &code_of(part), &all));
            count += 1;
            if !is_there {
                missing.push(format!("{}: {name}", row.cells[0]));
            }
        }
    }
    assert!(count > 20, "only {count} functions were found");
    assert!(missing.is_empty(), "there is no\n{}", missing.join("\n"));
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
