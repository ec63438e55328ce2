//! The tables of annotations, labels and reasons.

use edge_syncer::api::HOLD_REASONS;

use crate::pages::{self, Names, Page, files, plain, read, same, spans};

/// How our keys begin.
const PREFIX: &str = "edge.kubestellar.io/";

/// The constants of the API by their values, with their names.
fn constants() -> Vec<(String, String)> {
    let source = read("src/api/mod.rs");
    let constant = |line: &str| {
        let (name, value) = line.strip_prefix("pub const ")?.split_once(": &str = \"")?;
        Some((value.strip_suffix("\";")?.to_owned(), name.to_owned()))
    };
    source.lines().filter_map(constant).collect()
}

/// The keys in the code.
fn keys() -> Names {
    let values = constants().into_iter().map(|(value, _)| value);
    // A selector is a key and a value.
    values
        .filter(|value| value.starts_with(PREFIX) && !value.contains('='))
        .collect()
}

#[test]
fn the_annotations_and_labels_are_those_of_the_code() {
    let rows = Page::open("docs/reference/annotations.md").rows("key");
    let in_page = rows.iter().map(|row| plain(&row.cells[0])).collect();
    same("annotations", &in_page, &keys());

    let constants = constants();
    let has_label_value = |name: &str| {
        let of_label = format!("{name}_LABEL_VALUE");
        constants.iter().any(|(_, other)| *other == of_label)
    };
    let labels = constants.iter().filter(|(_, name)| has_label_value(name));
    let labels = labels.map(|(value, _)| value.clone()).collect();
    let of_page = rows.iter().filter(|row| row.cells[1] == "annotation and label");
    let of_page = of_page.map(|row| plain(&row.cells[0])).collect();
    same("labels", &of_page, &labels);
}

#[test]
fn the_reasons_of_events_are_those_of_the_code() {
    let reasons = edge_syncer::model::EventReason::ALL.iter();
    let in_code: Vec<[&str; 2]> = reasons
        .map(|reason| [reason.as_str(), if reason.is_warning() { "Warning" } else { "Normal" }])
        .collect();
    let rows = Page::open("docs/reference/events.md").rows("reason");
    let in_page: Vec<[String; 2]> = rows
        .iter()
        .map(|row| [plain(&row.cells[0]), row.cells[1].clone()])
        .collect();
    assert_eq!(in_page, in_code);
}

/// The lines of a source file before its unit tests, without comments.
fn code(source: &str) -> impl Iterator<Item = &str> {
    let begins = |at: &usize| source[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let mut marks = source.match_indices("#[cfg(test)]").map(|(at, _)| at);
    let end = marks.find(begins).unwrap_or(source.len());
    let lines = source[..end].lines();
    lines.filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn no_key_stands_anywhere_else_in_the_code() {
    let is_of_tests = |path: &String| path.contains("tests") || path == "src/api/mod.rs";
    for path in ["src", "crates"].into_iter().flat_map(|folder| files(folder, ".rs")) {
        if !is_of_tests(&path) {
            let source = read(&path);
            let found = code(&source).find(|line| line.contains(&format!("\"{PREFIX}")));
            assert!(found.is_none(), "{path}: {found:?}");
        }
    }
}

#[test]
fn every_key_that_a_page_names_exists() {
    let mut known = keys();
    known.insert(format!("{PREFIX}v2alpha1"));
    let mut count = 0;
    for page in pages::all() {
        for (at, _) in page.text.match_indices(PREFIX) {
            // `syncerconfig.edge.kubestellar.io/NAME` is an object.
            if page.text[..at].ends_with('.') {
                continue;
            }
            let rest = &page.text[at + PREFIX.len()..];
            let is_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
            // With a hyphen at its end, kubectl removes it.
            let name = rest.split(is_end).next().unwrap_or_default().trim_end_matches('-');
            let key = format!("{PREFIX}{name}");
            assert!(known.contains(&key), "{}: there is no {key}", page.path);
            count += 1;
        }
    }
    assert!(count > 20, "only {count} keys were found");
}

#[test]
fn the_reasons_for_holds_are_those_of_the_code() {
    let in_code = HOLD_REASONS.iter().map(|&reason| reason.to_owned()).collect();
    for path in ["docs/reference/conditions.md", "docs/operate.md"] {
        let rows = Page::open(path).rows("reason");
        let in_page = rows.iter().map(|row| plain(&row.cells[0])).collect();
        same(&format!("reasons in {path}"), &in_page, &in_code);
    }
    let rows = Page::open("docs/reference/metrics.md").rows("label");
    let row = rows.iter().find(|row| row.cells[0] == "`reason`");
    let row = row.expect("the metrics have reasons");
    let in_page = spans(&row.cells[1]).into_iter().map(str::to_owned).collect();
    same("reasons in the metrics", &in_page, &in_code);
}
