//! Which part may use which, as docs/architecture.md says it: nothing imports upward, neither among the parts nor among
//! the crates that they are to become, files do not import each other in circles, and circles of calls through `self` do
//! not grow.
//!
//! Read from the text of `src/`, without its tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The parts of `src/`, the lowest first. A part uses those before it.
const ORDER: [&[&str]; 14] = [
    &["bounded", "few", "spelling", "version"],
    &["logging"],
    &["cluster", "shutdown"],
    &["queue", "leader", "source", "serve"],
    &["systemd", "driver"],
    &["side"],
    &["report"],
    &["api"],
    &["plan", "renewal"],
    &["sync"],
    &["metrics", "permissions"],
    &["model", "engine", "survey"],
    &["join", "init", "cli"],
    &["sides", "ask", "check", "syncer", "main", "lib", "fuzz"],
];
/// Parts of one row that may use one another, in this order.
const WITHIN: [(&str, &str); 9] = [
    ("engine", "model"),
    ("survey", "engine"),
    ("survey", "model"),
    ("cli", "join"),
    ("cli", "init"),
    ("ask", "sides"),
    ("check", "sides"),
    ("check", "ask"),
    ("ask", "check"),
];
/// How many files of one folder may call each other in a circle through `self`. It may only fall.
const CALLS: [(&str, usize); 3] = [("cluster", 2), ("plan", 4), ("model", 34)];

/// A crate that parts are to become.
struct Crate {
    name: &'static str,
    /// Its parts, folders or files. The longest path that fits a file counts.
    parts: &'static [&'static str],
    /// The crates that it may use.
    uses: &'static [&'static str],
}

/// The crates, the lowest first. What is named nowhere is the syncer's, which is the program and may use all.
const CRATES: [Crate; 3] = [
    Crate {
        name: "kube-lite",
        parts: &["bounded", "spelling", "logging", "cluster"],
        uses: &[],
    },
    Crate {
        name: "driver",
        parts: &[
            "few",
            "driver",
            "shutdown",
            "queue",
            "leader",
            "source",
            "report/advice",
            "report/failures",
            "report/streak",
            "serve",
            "systemd",
            "cli/logger",
        ],
        uses: &["kube-lite"],
    },
    Crate {
        name: "admin",
        parts: &["join", "cluster/access/admin", "cluster/access/exec"],
        uses: &["kube-lite", "driver"],
    },
];
/// The imports that still run upward between them, each a file and the part that it uses: `gen` takes the names of the
/// config kinds, and the permissions of a syncer, from the syncer itself. There may be fewer.
const UPWARD: [(&str, &str); 11] = [
    ("join/client", "api"),
    ("join/hub", "api"),
    ("join/prep", "api"),
    ("join/register", "api"),
    ("join/rights", "api"),
    ("join/rights", "sync"),
    ("join/scoped", "permissions"),
    ("join/scoped", "plan"),
    ("join/scoped", "side"),
    ("join/scoped", "survey"),
    ("join/scoped", "sync"),
];

/// A file of `src/`: its modules from the crate on, and its text without tests and comments.
struct File {
    modules: Vec<String>,
    text: String,
}

fn files() -> Vec<File> {
    let (mut folders, mut files) = (vec![PathBuf::from("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("it is readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("it is a name");
            match (path.is_dir(), name) {
                (true, "tests") | (_, "tests.rs") => {}
                (true, _) if name.ends_with("_tests") => {}
                (true, _) => folders.push(path),
                (false, _) if name.ends_with("_tests.rs") || path.extension().is_none_or(|end| end != "rs") => {}
                (false, _) => files.push(read(&path)),
            }
        }
    }
    files
}

fn read(path: &Path) -> File {
    let text = std::fs::read_to_string(path).expect("it is text");
    let modules = path.with_extension("");
    let modules = modules.iter().skip(1).map(|part| part.to_str().expect("it is text"));
    let modules = modules.filter(|part| *part != "mod").map(str::to_owned).collect();
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    File {
        modules,
        text: code.collect::<Vec<_>>().join("\n"),
    }
}

/// The word at the beginning of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The words that follow a phrase wherever that stands by itself.
fn words_after<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(phrase).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        (!is_part).then(|| word(&text[at + phrase.len()..]))
    })
}

fn rank(part: &str) -> usize {
    let rank = ORDER.iter().position(|row| row.contains(&part));
    rank.expect("each part is in a row of ORDER")
}

#[test]
fn no_part_uses_one_above_it() {
    let mut wrong = BTreeSet::new();
    for File { modules, text } in files() {
        let part = modules.first().expect("it has a name");
        for used in words_after(text.as_str(), "crate::").filter(|used| used != part) {
            // Macros and the names of the library itself.
            let is_part = ORDER.iter().any(|row| row.contains(&used));
            let may = || rank(used) < rank(part) || WITHIN.contains(&(part, used));
            if is_part && !may() {
                wrong.insert(format!("{} uses {used}", modules.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// All that a file uses of the library, as paths from the crate on.
fn used(File { modules, text }: &File) -> BTreeSet<Vec<String>> {
    let imports = text.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let imported = imports.flat_map(|(import, _)| paths_of(import));
    let named = text.match_indices("crate::").map(|(at, _)| {
        let end = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        text[at..end.map_or(text.len(), |end| at + end)].to_owned()
    });
    imported
        .chain(named)
        .filter_map(|path| from_crate(modules, &path))
        .collect()
}

/// A path that begins at the crate, or at this module, from the crate on.
fn from_crate(modules: &[String], path: &str) -> Option<Vec<String>> {
    let mut words: Vec<&str> = path.split("::").collect();
    let mut base = match words.first() {
        Some(&"crate") => Vec::new(),
        Some(&"super") => modules[..modules.len() - 1].to_vec(),
        Some(&"self") => modules.to_vec(),
        _ => return None,
    };
    words.remove(0);
    while words.first() == Some(&"super") {
        words.remove(0);
        base.pop();
    }
    base.extend(words.iter().map(|word| word.trim().to_owned()));
    Some(base)
}

/// The crate that a path belongs to; `None` for the syncer.
fn crate_of(path: &[String]) -> Option<&'static Crate> {
    let path = path.join("/") + "/";
    let all = CRATES.iter().flat_map(|it| it.parts.iter().map(move |part| (it, part)));
    let fitting = all.filter(|(_, part)| path.starts_with(&format!("{part}/")));
    fitting.max_by_key(|(_, part)| part.len()).map(|(it, _)| it)
}

#[test]
fn no_crate_to_be_uses_one_above_it() {
    let all = files();
    let parts: BTreeSet<&str> = ORDER.iter().flat_map(|row| row.iter().copied()).collect();
    let mut wrong = BTreeSet::new();
    for file in &all {
        let Some(own) = crate_of(&file.modules) else { continue };
        for path in used(file) {
            let other = crate_of(&path).map_or("syncer", |other| other.name);
            let is_part = path.first().is_some_and(|part| parts.contains(&**part));
            if is_part && other != own.name && !own.uses.contains(&other) {
                wrong.insert((file.modules.join("/"), path[0].clone()));
            }
        }
    }
    let known: BTreeSet<_> = UPWARD.map(|(file, part)| (file.to_owned(), part.to_owned())).into();
    let (new, gone) = (&wrong - &known, &known - &wrong);
    assert!(new.is_empty(), "{new:#?}");
    assert!(
        gone.is_empty(),
        "no longer there, so to be taken out of UPWARD: {gone:#?}"
    );
}

/// The files that each file leads to, by their places in the list.
type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// Circles: all files that lead to each other, of more than one.
fn circles(count: usize, edges: &Edges) -> Vec<Vec<usize>> {
    let reached = |from: usize| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            let next = edges.get(&at).into_iter().flatten();
            open.extend(next.filter(|next| reached.insert(**next)));
        }
        reached
    };
    let reached: Vec<_> = (0..count).map(reached).collect();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for from in 0..count {
        let circle: Vec<usize> = (0..count)
            .filter(|&to| reached[from].contains(&to) && reached[to].contains(&from))
            .collect();
        if circle.len() > 1 && circle.iter().all(|file| seen.insert(*file)) {
            all.push(circle);
        }
    }
    all
}

/// The names of a circle's files.
fn names(files: &[File], circle: &[usize]) -> Vec<String> {
    circle.iter().map(|&file| files[file].modules.join("/")).collect()
}

/// The file that a path from the crate on leads to: the longest beginning that is one.
fn file_at(files: &[File], path: &[String]) -> Option<usize> {
    (1..=path.len())
        .rev()
        .find_map(|length| files.iter().position(|file| file.modules == path[..length]))
}

/// All paths of a `use`, with its braces resolved.
fn paths_of(text: &str) -> Vec<String> {
    let Some((begin, rest)) = text.split_once('{') else {
        return vec![text.trim().to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| paths_of(part).into_iter().map(|path| format!("{}{path}", begin.trim())))
        .collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let files = files();
    let mut edges = Edges::new();
    for (from, file) in files.iter().enumerate() {
        for path in used(file) {
            // What a folder's own file has for its files is no border between them.
            let is_border = |to: &usize| *to != from && !file.modules.starts_with(&files[*to].modules);
            let to = file_at(&files, &path).filter(is_border);
            edges.entry(from).or_default().extend(to);
        }
    }
    let found = circles(files.len(), &edges);
    let found: Vec<_> = found.iter().map(|circle| names(&files, circle)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn circles_of_calls_through_self_do_not_grow() {
    let files = files();
    let mut defined: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        for name in words_after(&file.text, "fn ") {
            defined.entry((&file.modules[0], name)).or_default().insert(at);
        }
    }
    let mut edges = Edges::new();
    for (from, file) in files.iter().enumerate() {
        for name in words_after(&file.text, "self.") {
            let called = file.text.contains(&format!("self.{name}("));
            let homes = defined
                .get(&(&*file.modules[0], name))
                .filter(|homes| called && homes.len() == 1);
            let elsewhere = homes.into_iter().flatten().filter(|&&to| to != from);
            edges.entry(from).or_default().extend(elsewhere);
        }
    }
    let mut found = Vec::new();
    for circle in circles(files.len(), &edges) {
        let folder = &*files[circle[0]].modules[0];
        let most = CALLS.iter().find(|(of, _)| *of == folder).map_or(1, |(_, most)| *most);
        if circle.len() > most {
            found.push(format!(
                "{} files in {folder}: {:?}",
                circle.len(),
                names(&files, &circle)
            ));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_use_is_read_with_its_braces() {
    let all = paths_of("super::{a::{B, C}, d}");
    assert_eq!(all, ["super::a::B", "super::a::C", "super::d"]);
    let edges = Edges::from([(0, BTreeSet::from([1])), (1, BTreeSet::from([0, 2]))]);
    assert_eq!(circles(3, &edges), [vec![0, 1]]);
}
