//! One word for each idea, that of the field: phrases that nobody outside of this project uses stand nowhere that users read.

use std::path::Path;
use std::process::Command;

/// Phrases, and what is said instead.
const BANNED: [(&str, &str); 33] = [
    ("in step", "synced"),
    ("in_step", "synced"),
    ("out of step", "out of sync"),
    ("out_of_step", "out of sync"),
    ("told", "logged, reported"),
    ("put right", "corrected"),
    ("puts right", "corrects"),
    ("taken back", "reverted"),
    ("takes back", "reverts"),
    ("travels", "is synced"),
    ("travel ", "be synced"),
    ("two looks", "two polls"),
    ("tells of", "reports"),
    ("a fight", "contention"),
    ("beaten", "heartbeat"),
    ("take others along", "cascading delete"),
    ("lent", "created"),
    ("never travel", "are never synced"),
    ("looked at", "read, checked"),
    ("looked up", "read, found"),
    ("elder", "older, legacy"),
    ("anew", "again, recreated"),
    ("at rest", "idle"),
    ("for want of", "missing"),
    ("in vain", "without success"),
    ("disaster", "accident"),
    ("ever more rarely", "with increasing back-off"),
    ("without a word", "silently"),
    ("take along", "delete too"),
    ("takes along", "deletes too"),
    ("left alone", "preserved, not changed"),
    ("hands off", "create only"),
    ("goes on by itself", "continues by itself"),
];

/// Each banned phrase in a text, after the name of the text.
fn banned(name: &str, text: &str) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: usize, phrase: &str| {
        let before = words[..at].chars().next_back();
        let after = words[at + phrase.len()..].chars().next();
        !before.is_some_and(is_word) && (phrase.ends_with(' ') || !after.is_some_and(is_word))
    };
    let found = BANNED.iter().filter(|(phrase, _)| {
        let mut places = words.match_indices(phrase);
        places.any(|(at, _)| stands_alone(at, phrase))
    });
    found
        .map(|(phrase, instead)| format!("{name}: {phrase:?}, better {instead}"))
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file can be read")
}

/// All files below a folder that end so.
fn below(folder: &Path, end: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            found.extend(below(&path, end));
        } else if path.extension().is_some_and(|extension| extension == end) {
            found.push(path);
        }
    }
    found
}

/// A text without what stands in backticks: names, and labels that are no longer used.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" x ")
}

/// The string literals of a source file, without its comments and its tests.
fn literals(text: &str) -> String {
    let (text, _) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("\\\"", "'")
        .replace("'\"'", "");
    code.split('"').skip(1).step_by(2).collect::<Vec<_>>().join("\n. ")
}

#[test]
fn docs_use_the_words_of_the_field() {
    let mut wrong = Vec::new();
    let mut pages = below(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    for page in pages {
        wrong.extend(banned(&page.display().to_string(), &without_code(&read(&page))));
    }
    let changes = read(&root().join("CHANGELOG.md"));
    let newest = changes.split("\n## ").nth(1).expect("it has a version");
    wrong.extend(banned("CHANGELOG.md", &without_code(newest)));
    for page in below(&root().join("manifests"), "yaml") {
        wrong.extend(banned(&page.display().to_string(), &read(&page)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The most words of a sentence.
const LONGEST_SENTENCE: usize = 50;

/// The sentences of a page. Cells of tables and items of lists are texts of their own; blocks of code have none.
fn sentences(page: &str) -> Vec<String> {
    let (mut texts, mut is_code) = (vec![String::new()], false);
    for line in page.lines().map(str::trim) {
        is_code ^= line.starts_with("```");
        if line.starts_with('|') {
            texts.extend(line.split('|').map(str::to_owned));
        }
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = line.strip_prefix("- ").or(number.strip_prefix(". "));
        let is_apart = is_code || line.is_empty() || line.starts_with(['|', '#']) || line.starts_with("```");
        if is_apart || item.is_some() {
            texts.push(String::new());
        }
        if !is_apart {
            let text = texts.last_mut().expect("there is one");
            text.push_str(item.unwrap_or(line));
            text.push(' ');
        }
    }
    let ends = [". ", "? ", "! "];
    let mut sentences = Vec::new();
    for mut text in texts.iter().map(String::as_str) {
        while let Some(at) = ends.iter().filter_map(|end| text.find(end)).min() {
            sentences.push(text[..=at].trim().to_owned());
            text = &text[at + 1..];
        }
        sentences.push(text.trim().to_owned());
    }
    sentences
}

#[test]
fn no_sentence_of_the_docs_is_too_long() {
    let mut pages = below(&root().join("docs"), "md");
    pages.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let mut long = Vec::new();
    for page in pages {
        let sentences = sentences(&read(&page)).into_iter();
        let too_long = sentences.filter(|sentence| sentence.split_whitespace().count() > LONGEST_SENTENCE);
        long.extend(too_long.map(|sentence| format!("{}: {sentence}", page.display())));
    }
    assert!(
        long.is_empty(),
        "more than {LONGEST_SENTENCE} words:\n{}",
        long.join("\n")
    );
}

#[test]
fn sentences_end_with_their_paragraph_item_or_cell() {
    let page =
        "# A b\nOne\ntwo. Three?\n- four\n  five\n1. six\n```sh\nseven. eight\n```\n| nine | ten. el |\n`twelve` x\n";
    let found = sentences(page);
    let found: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    assert_eq!(
        found,
        [
            "One two.",
            "Three?",
            "four five",
            "six",
            "nine",
            "ten.",
            "el",
            "`twelve` x"
        ]
    );
}

#[test]
fn the_help_uses_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["check", "--help"],
        &["diff", "--help"],
        &["bundle", "--help"],
        &["status", "--help"],
        &["gen", "--help"],
        &["gen", "rbac", "--help"],
        &["prep", "--help"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_edge-syncer"));
        let output = command.args(args).output().expect("the binary can be started");
        wrong.extend(banned("--help", &String::from_utf8_lossy(&output.stdout)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn log_lines_and_messages_use_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for path in ["src", "crates"]
        .iter()
        .flat_map(|folder| below(&root().join(folder), "rs"))
    {
        let name = path.display().to_string();
        let is_test = name.contains("test") || name.ends_with("bench.rs") || name.ends_with("memory.rs");
        let checks = |line: &str| line.contains(".expect(");
        let text = read(&path);
        let text: Vec<&str> = text.lines().filter(|line| !checks(line)).collect();
        if !is_test {
            wrong.extend(banned(&name, &literals(&text.join("\n"))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_and_comments_in_the_code_use_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for path in ["src", "crates", "tests", "examples"]
        .iter()
        .flat_map(|folder| below(&root().join(folder), "rs"))
    {
        // The list itself.
        if !path.ends_with("words.rs") || path.starts_with(root().join("src")) {
            wrong.extend(banned(&path.display().to_string(), &read(&path).replace('_', " ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_banned_phrase_is_found_also_across_lines_and_in_no_other_word() {
    assert_eq!(banned("x", "kept\nin  step.").len(), 1);
    assert!(banned("x", "begin step, panewal, an elderly").is_empty());
    assert!(without_code("a `in_step` b") == "a  x  b");
    assert_eq!(
        literals("let x = \"a\"; // b\n// \"c\"\nlet y = \"d \\\"e\\\"\";"),
        "a\n. d 'e'"
    );
}
