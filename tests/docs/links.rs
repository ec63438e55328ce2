//! Links and their anchors, and the sizes of pages.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::pages::{self, Names, Page, files, plain, root};

/// The most that the README may have.
const MOST_LINES_OF_README: usize = 160;
/// The most that a page of docs/ may have.
const MOST_BYTES: usize = 12_000;

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages::all() {
        for link in page.links() {
            count += 1;
            if let Err(why) = follow(&page, &link) {
                wrong.push(format!("{}: {link}: {why}", page.path));
            }
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An error if a link leads nowhere.
fn follow(page: &Page, link: &str) -> Result<(), String> {
    let target = target(page, link)?;
    let (_, anchor) = link.split_once('#').unwrap_or((link, ""));
    if !root().join(&target).exists() {
        return Err("there is no such file".to_owned());
    }
    let anchor_is_there = || anchors(&Page::open(&target)).contains(anchor);
    if anchor.is_empty() || anchor_is_there() {
        Ok(())
    } else {
        Err(format!("{target} has no such heading"))
    }
}

/// The file that a link leads to, from the root of the repository.
fn target(page: &Page, link: &str) -> Result<String, String> {
    let path = link.split('#').next().unwrap_or_default();
    if path.is_empty() {
        return Ok(page.path.clone());
    }
    let mut target = PathBuf::from(&page.path);
    target.pop();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => target.push(name),
            Component::ParentDir if target.pop() => {}
            Component::CurDir => {}
            _ => return Err("it leads out of the repository".to_owned()),
        }
    }
    Ok(target.display().to_string())
}

/// The anchors of a page, as GitHub makes them.
fn anchors(page: &Page) -> Names {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut unique = |anchor: String| {
        let count = seen.entry(anchor.clone()).or_default();
        *count += 1;
        match *count {
            1 => anchor,
            count => format!("{anchor}-{}", count - 1),
        }
    };
    page.headings().iter().map(|heading| unique(anchor(heading))).collect()
}

/// The anchor of a heading: lowercase, spaces as hyphens, without punctuation.
fn anchor(heading: &str) -> String {
    let mut text = plain(heading);
    // Of a link, only what it is called counts.
    while let Some((before, rest)) = text.split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{}{after}", before.replace('[', ""));
    }
    let letter = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    };
    text.to_lowercase().chars().filter_map(letter).collect()
}

#[test]
fn anchors_are_those_of_github() {
    for (heading, expected) in [
        ("Run it by hand", "run-it-by-hand"),
        (
            "Sizes, of `both` kinds (in KiB): what's new?",
            "sizes-of-both-kinds-in-kib-whats-new",
        ),
        ("[Links](to.md#it) and snake_case", "links-and-snake_case"),
        ("A – B", "a--b"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
    let page = Page {
        path: "page.md".to_owned(),
        text: "# Title\n## Twice\n```sh\n# comment\n```\n### Twice\n".to_owned(),
    };
    let expected = ["title", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(&page), Names::from(expected));
}

#[test]
fn every_page_and_every_example_is_named_in_another_page() {
    let pages = pages::all();
    let leads_to = |page: &Page, path: &str| {
        let mut targets = page.links().into_iter().filter_map(|link| target(page, &link).ok());
        page.path != path && (page.text.contains(path) || targets.any(|target| target == path))
    };
    let wanted = files("docs", ".md").into_iter().chain(files("examples", ".yaml"));
    let missing: Vec<String> = wanted
        .filter(|path| !pages.iter().any(|page| leads_to(page, path)))
        .collect();
    assert!(missing.is_empty(), "no page names {missing:?}");
}

#[test]
fn no_page_is_too_long() {
    let lines = Page::open("README.md").text.lines().count();
    assert!(
        lines <= MOST_LINES_OF_README,
        "README.md has {lines} lines, and may have {MOST_LINES_OF_README}"
    );
    let sizes = files("docs", ".md")
        .into_iter()
        .map(|path| (Page::open(&path).text.len(), path));
    let long: Vec<(usize, String)> = sizes.filter(|(size, _)| *size > MOST_BYTES).collect();
    assert!(long.is_empty(), "more than {MOST_BYTES} bytes: {long:?}");
}
