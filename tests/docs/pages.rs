//! The pages as a reader has them: which there are, their blocks, tables, headings and links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names that the code or a page has.
pub(crate) type Names = BTreeSet<String>;

/// One page.
pub(crate) struct Page {
    /// Its file, from the root of the repository.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

/// A fenced block.
pub(crate) struct Block {
    /// What stands behind the fence, such as `console`.
    pub(crate) language: String,
    /// The number of its first line in the page.
    pub(crate) first_line: usize,
    /// The lines between the fences.
    pub(crate) lines: Vec<String>,
}

/// A row of a table.
pub(crate) struct Row {
    /// The heading above the table.
    pub(crate) heading: String,
    /// The cells.
    pub(crate) cells: Vec<String>,
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a folder of the repository whose names end so, sorted, from its root.
pub(crate) fn files(folder: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(from_root(path));
            }
        }
    }
    found.sort();
    found
}

fn from_root(path: PathBuf) -> String {
    let path = path.strip_prefix(root()).map(Path::to_owned).unwrap_or(path);
    path.display().to_string()
}

/// All pages.
pub(crate) fn all() -> Vec<Page> {
    let at_the_root = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    let paths = at_the_root.into_iter().chain(files("docs", ".md"));
    paths.map(|path| Page::open(&path)).collect()
}

impl Page {
    pub(crate) fn open(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: read(path),
        }
    }

    /// Its fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut is_open = false;
        for (at, line) in self.text.lines().enumerate() {
            match line.strip_prefix("```") {
                Some("") if is_open => is_open = false,
                Some(language) => {
                    assert!(!is_open, "{}:{}: a block within a block", self.path, at + 1);
                    is_open = true;
                    blocks.push(Block {
                        language: language.to_owned(),
                        first_line: at + 2,
                        lines: Vec::new(),
                    });
                }
                None if is_open => blocks.last_mut().expect("one is open").lines.push(line.to_owned()),
                None => {}
            }
        }
        assert!(!is_open, "{}: the last block has no end", self.path);
        blocks
    }

    /// Its text without the fenced blocks, of which empty lines are left.
    pub(crate) fn prose(&self) -> String {
        let mut is_open = false;
        let mut prose = String::new();
        for line in self.text.lines() {
            if line.starts_with("```") {
                is_open = !is_open;
            } else if !is_open {
                prose += line;
            }
            prose.push('\n');
        }
        prose
    }

    /// The paragraph that begins so.
    pub(crate) fn paragraph(&self, beginning: &str) -> String {
        let prose = self.prose();
        let found = prose.split("\n\n").find(|text| text.starts_with(beginning));
        let found = found.unwrap_or_else(|| panic!("{}: no paragraph begins with {beginning:?}", self.path));
        found.replace('\n', " ")
    }

    /// The headings, in order.
    pub(crate) fn headings(&self) -> Vec<String> {
        let prose = self.prose();
        let heading = |line: &str| {
            let text = line.trim_start_matches('#');
            (text.len() < line.len()).then(|| text.strip_prefix(' ').map(str::to_owned))?
        };
        prose.lines().filter_map(heading).collect()
    }

    /// The rows of all tables whose first column has this title.
    pub(crate) fn rows(&self, title: &str) -> Vec<Row> {
        let (mut heading, mut is_wanted, mut before_is_row) = (String::new(), false, false);
        let mut rows = Vec::new();
        for line in self.prose().lines() {
            if line.starts_with('#') {
                line.trim_start_matches('#').trim().clone_into(&mut heading);
            }
            let Some(row) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
                before_is_row = false;
                continue;
            };
            assert!(!row.contains("\\|"), "{}: no cell needs a bar: {row}", self.path);
            let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
            if !before_is_row {
                before_is_row = true;
                is_wanted = cells[0] == title;
            } else if is_wanted && !cells[0].starts_with("---") {
                let heading = heading.clone();
                rows.push(Row { heading, cells });
            }
        }
        assert!(!rows.is_empty(), "{}: no table begins with {title:?}", self.path);
        rows
    }

    /// Where its links lead that are not to other sites.
    pub(crate) fn links(&self) -> Vec<String> {
        let text = without_spans(&self.prose());
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let is_of_another_site = |link: &&str| link.contains("://") || link.starts_with("mailto:");
        links
            .filter(|link| !is_of_another_site(link))
            .map(str::to_owned)
            .collect()
    }
}

/// What stands between backticks.
pub(crate) fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn without_spans(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// The text of a cell without backticks.
pub(crate) fn plain(cell: &str) -> String {
    cell.replace('`', "")
}

/// Fails unless both are the same, and says what each has alone.
pub(crate) fn same(what: &str, in_docs: &Names, in_code: &Names) {
    assert!(!in_code.is_empty(), "{what}: none were found");
    let only = |one: &Names, other: &Names| one.difference(other).cloned().collect::<Vec<_>>().join(", ");
    let (docs, code) = (only(in_docs, in_code), only(in_code, in_docs));
    assert!(
        in_docs == in_code,
        "{what}: only in the docs: [{docs}]; only in the code: [{code}]"
    );
}
