//! The commands of the pages, run as a reader types them, against two new clusters each.

use crate::pages::Page;
use crate::shell::Shell;
use crate::support::{Server, ServerOptions};

/// A command of a page, and what it shows below.
struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The commands in the `console` blocks of a page, in order.
fn steps(page: &Page) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.blocks() {
        if block.language != "console" {
            continue;
        }
        let place = |at: usize| format!("{}:{}", page.path, block.first_line + at);
        assert!(!block.lines.is_empty(), "{}: the block is empty", place(0));
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                assert!(!command.ends_with('\\'), "{}: a command has one line", place(at));
                steps.push(Step {
                    line: block.first_line + at,
                    command: command.to_owned(),
                    output: Vec::new(),
                });
            } else {
                assert!(at > 0, "{}: a block begins with a command", place(at));
                let step = steps.last_mut().expect("a block begins with a command");
                step.output.push(line.clone());
            }
        }
    }
    steps
}

/// Two clusters that have nothing yet.
pub(crate) async fn clusters() -> (Server, Server) {
    tokio::join!(
        Server::start("hub", ServerOptions::default()),
        Server::start("edge", ServerOptions::default())
    )
}

/// Whether a text is the one that a page shows, where three dots stand for anything in a line.
fn is_as_shown(found: &str, shown: &str) -> bool {
    let is_line = |(found, shown): (&str, &str)| match shown.split_once("...") {
        None => found == shown,
        Some((begin, end)) => {
            found.len() >= begin.len() + end.len() && found.starts_with(begin) && found.ends_with(end)
        }
    };
    found.lines().count() == shown.lines().count() && found.lines().zip(shown.lines()).all(is_line)
}

#[test]
fn three_dots_stand_for_what_differs_each_time() {
    assert!(is_as_shown("a 1 b\nc", "a ... b\nc") && is_as_shown("", "") && is_as_shown("a", "a"));
    for (found, shown) in [
        ("a 1 c", "a ... b"),
        ("a", "b"),
        ("a\nb", "a"),
        ("a", "a...a"),
        ("", "a"),
    ] {
        assert!(!is_as_shown(found, shown), "{found} {shown}");
    }
}

/// The hub as edges reach it, on the pages.
const HUB: &str = "https://hub.example.org:6443";

/// Runs all commands of a page: each works, and prints what the page shows.
async fn follow(path: &str, at_least: usize) {
    let page = Page::open(path);
    let steps = steps(&page);
    assert!(
        steps.len() >= at_least,
        "{path}: only {} commands were found",
        steps.len()
    );
    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    for Step { line, command, output } in steps {
        let answer = shell.run(&command.replace(HUB, hub.url())).await;
        let (found, shown) = (answer.lines.join("\n"), output.join("\n"));
        assert!(
            answer.code == 0 && is_as_shown(&found, &shown),
            "{path}:{line}: $ {command}\nends with {} and prints:\n{found}\nwhere the page shows:\n{shown}",
            answer.code
        );
    }
    // A page stops what it has started, and that ends well.
    let answer = shell.run("wait $!").await;
    assert_eq!(
        answer.code, 0,
        "{path}: what it has stopped at its end: {:#?}",
        answer.lines
    );
}

#[tokio::test]
async fn the_quick_start_works_as_it_is_written() {
    follow("docs/quickstart.md", 30).await;
}

#[tokio::test]
async fn the_page_about_installing_works_as_it_is_written() {
    follow("docs/install.md", 15).await;
}

/// That of the README makes the clusters and the binary too, which are there already.
#[tokio::test]
async fn the_quick_start_of_the_readme_works_as_it_is_written() {
    let page = Page::open("README.md");
    let (_, section) = page.text.split_once("\n## Quick start\n").expect("the README has one");
    let (_, block) = section.split_once("```sh\n").expect("it has a block");
    let (block, after) = block.split_once("```\n").expect("the block ends");
    let (_, shown) = after
        .split_once("The last command prints `")
        .expect("it says what is printed");
    let shown = shown.split('`').next().unwrap_or_default();

    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    let is_there = |command: &&str| command.starts_with("kind ") || command.starts_with("PATH=");
    let (before, commands): (Vec<&str>, Vec<&str>) = block.lines().partition(is_there);
    assert_eq!((before.len(), commands.len()), (3, 6));
    let mut printed = Vec::new();
    for command in commands {
        let answer = shell.run(command).await;
        assert_eq!(answer.code, 0, "$ {command}\n{:#?}", answer.lines);
        printed = answer.lines;
    }
    // The syncer prints into the same terminal.
    assert!(printed.iter().any(|line| line == shown), "{printed:#?}");
}
