//! Which part may use which, as docs/architecture.md says it: no crate beside the program knows the syncer, no part uses
//! one above it, files do not import each other in circles, and circles of calls through `self` do not grow.
//!
//! Which crate may use which is kept by the compiler, by what their `Cargo.toml` name. The rest is read from the text of
//! the sources, without their tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The row of all parts that are in no other. They may use one another.
const REST: &[&str] = &["*"];

/// The order of a crate's parts, the lowest first: a part uses those before it.
struct Order {
    /// The crate's folder.
    folder: &'static str,
    /// The crates of the workspace that it uses.
    uses: &'static [&'static str],
    /// Its parts.
    rows: &'static [&'static [&'static str]],
}

/// The program and the crates beside it.
const ORDERS: [Order; 7] = [
    Order {
        folder: ".",
        uses: &[
            "driver",
            "edge-syncer-init",
            "edge-syncer-publish",
            "gotemplate",
            "kube-lite",
        ],
        rows: &[
            &["version"],
            &["side"],
            &["report"],
            &["api"],
            &["plan", "renewal", "clocks"],
            &["sync"],
            &["metrics", "on_site", "permissions"],
            &["model"],
            &["engine"],
            &["survey"],
            &["join", "init", "publish"],
            &["cli"],
            &["sides"],
            &["ask", "syncer"],
            &["check"],
            &["diff", "status", "bundle", "main", "lib"],
        ],
    },
    Order {
        folder: "crates/goyaml",
        uses: &[],
        rows: &[REST],
    },
    Order {
        folder: "crates/kube-lite",
        uses: &["goyaml"],
        rows: &[&["bounded", "spelling"], &["logging"], REST],
    },
    Order {
        folder: "crates/driver",
        uses: &["kube-lite"],
        rows: &[
            &["few", "advice", "streak", "logger"],
            &["shutdown"],
            &["queue", "leader", "source", "serve", "failures"],
            &["systemd", "timers"],
            REST,
        ],
    },
    Order {
        folder: "crates/gotemplate",
        uses: &["goyaml"],
        rows: &[REST],
    },
    Order {
        folder: "crates/init",
        uses: &["driver", "gotemplate", "kube-lite"],
        rows: &[REST],
    },
    Order {
        folder: "crates/publish",
        uses: &["driver", "gotemplate", "kube-lite"],
        rows: &[REST],
    },
];
/// How many files may call each other in a circle through `self`, in a folder of the program or in a crate. It may only
/// fall.
const CALLS: [(&str, usize); 3] = [("crates/kube-lite", 2), ("plan", 3), ("model", 25)];

/// A file: its modules from its crate on, and its text without tests and comments.
struct File {
    modules: Vec<String>,
    text: String,
}

/// The files of a crate.
fn files(order: &Order) -> Vec<File> {
    let root = Path::new(order.folder).join("src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("it is readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("it is a name");
            match (path.is_dir(), name) {
                (true, "tests") | (_, "tests.rs") => {}
                (true, _) if name.ends_with("_tests") => {}
                (true, _) => folders.push(path),
                (false, _) if name.ends_with("_tests.rs") || path.extension().is_none_or(|end| end != "rs") => {}
                (false, _) => files.push(read(&root, &path)),
            }
        }
    }
    files
}

fn read(root: &Path, path: &Path) -> File {
    let text = std::fs::read_to_string(path).expect("it is text");
    let modules: PathBuf = path.strip_prefix(root).expect("it is there").with_extension("");
    let modules = modules.iter().map(|part| part.to_str().expect("it is text"));
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

/// Where a phrase stands by itself.
fn places_of<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> {
    text.match_indices(phrase).map(|(at, _)| at).filter(|&at| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

/// The words that follow a phrase wherever that stands by itself.
fn words_after<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = &'a str> {
    places_of(text, phrase).map(move |at| word(&text[at + phrase.len()..]))
}

impl Order {
    /// The row of a part.
    fn rank(&self, part: &str) -> usize {
        let row_with = |name: &str| self.rows.iter().position(|row| row.contains(&name));
        let rank = row_with(part).or_else(|| row_with("*"));
        rank.expect("each part is in a row")
    }

    /// True if the first of two parts may use the second.
    fn may_use(&self, part: &str, used: &str) -> bool {
        let (own, other) = (self.rank(part), self.rank(used));
        other < own || other == own && self.rows[own] == REST
    }
}

#[test]
fn no_part_uses_one_above_it() {
    let mut wrong = BTreeSet::new();
    for order in &ORDERS {
        let files = files(order);
        let parts: BTreeSet<&str> = files.iter().map(|file| &*file.modules[0]).collect();
        for file in &files {
            let part = &*file.modules[0];
            let used: BTreeSet<String> = used(file)
                .into_iter()
                .filter_map(|path| path.into_iter().next())
                .collect();
            let others = used.iter().filter(|used| *used != part && parts.contains(&***used));
            for used in others.filter(|used| !order.may_use(part, used)) {
                wrong.insert(format!("{}/{} uses {used}", order.folder, file.modules.join("/")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Tests of a crate could use what the compiler keeps from it.
#[test]
fn no_crate_names_one_above_it() {
    for order in &ORDERS {
        let text = std::fs::read_to_string(Path::new(order.folder).join("Cargo.toml")).expect("it is there");
        let named = text
            .lines()
            .filter(|line| line.contains("path = \"") && line.contains("version = "));
        let named: BTreeSet<&str> = named.filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(named, order.uses.iter().copied().collect(), "{}", order.folder);
    }
}

/// All that a file uses of the library, as paths from the crate on.
fn used(File { modules, text }: &File) -> BTreeSet<Vec<String>> {
    let imports = text.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let imported = imports.flat_map(|(import, _)| paths_of(import));
    let begins = ["crate::", "super::"].into_iter();
    let named = begins.flat_map(|begin| places_of(text, begin)).map(|at| {
        let end = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        text[at..end.map_or(text.len(), |end| at + end)].to_owned()
    });
    let named = named.filter(|path| !path.ends_with(':'));
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
    for order in &ORDERS {
        let files = files(order);
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
        assert!(found.is_empty(), "{}: {found:#?}", order.folder);
    }
}

#[test]
fn circles_of_calls_through_self_do_not_grow() {
    let mut found = Vec::new();
    for order in &ORDERS {
        let files = files(order);
        // A folder of the program, or a crate.
        let room = |file: &'_ File| match order.folder {
            "." => file.modules[0].clone(),
            folder => folder.to_owned(),
        };
        let mut defined: BTreeMap<(String, &str), BTreeSet<usize>> = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            for name in words_after(&file.text, "fn ") {
                defined.entry((room(file), name)).or_default().insert(at);
            }
        }
        let mut edges = Edges::new();
        for (from, file) in files.iter().enumerate() {
            for name in words_after(&file.text, "self.") {
                let called = file.text.contains(&format!("self.{name}("));
                let homes = defined.get(&(room(file), name));
                let homes = homes.filter(|homes| called && homes.len() == 1);
                let elsewhere = homes.into_iter().flatten().filter(|&&to| to != from);
                edges.entry(from).or_default().extend(elsewhere);
            }
        }
        for circle in circles(files.len(), &edges) {
            let room = room(&files[circle[0]]);
            let most = CALLS.iter().find(|(of, _)| *of == room).map_or(1, |(_, most)| *most);
            if circle.len() > most {
                let names = names(&files, &circle);
                found.push(format!("{} files in {room}: {names:?}", circle.len()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_use_is_read_with_its_braces() {
    let all = paths_of("super::{a::{B, C}, d}");
    assert_eq!(all, ["super::a::B", "super::a::C", "super::d"]);
    let file = File {
        modules: vec!["a".into()],
        text: "use crate::{b, c::D};\nfn f() {\n    super::e::f(crate::g::H);\n}".into(),
    };
    let parts: Vec<String> = used(&file).into_iter().map(|path| path.join("::")).collect();
    assert_eq!(parts, ["b", "c::D", "e::f", "g::H"]);
    let edges = Edges::from([(0, BTreeSet::from([1])), (1, BTreeSet::from([0, 2]))]);
    assert_eq!(circles(3, &edges), [vec![0, 1]]);
}
