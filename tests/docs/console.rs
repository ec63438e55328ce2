//! The commands of the pages, run as a reader types them, against two new clusters each.

use std::path::Path;

use crate::pages::Page;
use crate::scripts::Demo;
use crate::shell::Shell;
use crate::support::story::SOON;
use crate::support::{Server, ServerOptions, eventually};

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

/// Runs all commands of a page with two new clusters: each works, and prints what the page shows.
async fn follow(path: &str, at_least: usize) {
    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    follow_with(&mut shell, &hub, path, at_least).await;
    // A page stops what it has started, and that ends well.
    let answer = shell.run("wait $!").await;
    assert_eq!(
        answer.code, 0,
        "{path}: what it has stopped at its end: {:#?}",
        answer.lines
    );
}

/// Runs all commands of a page that goes on where the quick start of the README ends.
async fn follow_from_quick_start(path: &str, at_least: usize) {
    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    let (_, commands, _) = quick_start();
    for command in commands {
        // What the syncer logs would stand between what the commands of the page print.
        let answer = shell.run(&command.replace(" &", " >quick-start.log 2>&1 &")).await;
        assert_eq!(answer.code, 0, "$ {command}\n{:#?}", answer.lines);
    }
    follow_with(&mut shell, &hub, path, at_least).await;
    let answer = shell.run("kill $!; wait $!").await;
    assert_eq!(answer.code, 0, "{path}: how the syncer has ended: {:#?}", answer.lines);
}

async fn follow_with(shell: &mut Shell, hub: &Server, path: &str, at_least: usize) {
    let page = Page::open(path);
    let steps = steps(&page);
    assert!(
        steps.len() >= at_least,
        "{path}: only {} commands were found",
        steps.len()
    );
    for Step { line, command, output } in steps {
        let answer = shell.run(&command.replace(HUB, hub.url())).await;
        let (found, shown) = (answer.lines.join("\n"), output.join("\n"));
        assert!(
            answer.code == 0 && is_as_shown(&found, &shown),
            "{path}:{line}: $ {command}\nends with {} and prints:\n{found}\nwhere the page shows:\n{shown}",
            answer.code
        );
    }
}

#[tokio::test]
async fn the_quick_start_works_as_it_is_written() {
    follow("docs/quickstart.md", 30).await;
}

#[tokio::test]
async fn the_page_about_installing_works_as_it_is_written() {
    follow("docs/install.md", 15).await;
}

#[tokio::test]
async fn the_page_about_a_pause_works_as_it_is_written() {
    follow_from_quick_start("docs/pause.md", 20).await;
}

#[tokio::test]
async fn the_page_about_fields_of_the_edge_works_as_it_is_written() {
    follow_from_quick_start("docs/fields.md", 15).await;
}

#[tokio::test]
async fn the_page_about_what_would_change_works_as_it_is_written() {
    follow_from_quick_start("docs/diff.md", 15).await;
}

#[tokio::test]
async fn the_page_about_what_is_synced_works_as_it_is_written() {
    follow_from_quick_start("docs/status-command.md", 10).await;
}

/// The quick start of the README: what makes the clusters, the commands, and what the last one prints.
fn quick_start() -> (Vec<String>, Vec<String>, String) {
    let page = Page::open("README.md");
    let (_, section) = page.text.split_once("\n## Quick start\n").expect("the README has one");
    let blocks: Vec<&str> = section.split("```sh\n").skip(1).take(2).collect();
    let [clusters, commands] = blocks[..] else {
        panic!("it has two blocks");
    };
    let (clusters, _) = clusters.split_once("```\n").expect("the block ends");
    let (commands, after) = commands.split_once("```\n").expect("the block ends");
    let (_, shown) = after
        .split_once("The last command prints `")
        .expect("it says what is printed");
    let lines = |block: &str| block.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = shown.split('`').next().unwrap_or_default().to_owned();
    (lines(clusters), lines(commands), shown)
}

/// Types the commands of the README's quick start.
async fn follow_quick_start(shell: &mut Shell) {
    let (clusters, commands, shown) = quick_start();
    assert_eq!((clusters.len(), commands.len()), (3, 6));
    let mut printed = Vec::new();
    for command in commands {
        let answer = shell.run(&command).await;
        assert_eq!(answer.code, 0, "$ {command}\n{:#?}", answer.lines);
        printed = answer.lines;
    }
    // The syncer prints into the same terminal.
    assert!(printed.contains(&shown), "{printed:#?}");
}

/// The clusters and the binary are there already.
#[tokio::test]
async fn the_quick_start_of_the_readme_works_as_it_is_written() {
    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    follow_quick_start(&mut shell).await;
}

#[tokio::test]
async fn the_quick_start_of_the_readme_works_in_what_the_demo_keeps() {
    let mut demo = Demo::start();
    let line = demo.wait_for("  cd ").await;
    let mut shell = Shell::bare().await;
    // As in a terminal that knows nothing of the demo.
    let answer = shell.run(&line).await;
    assert_eq!(answer.code, 0, "$ {line}\n{:#?}", answer.lines);
    follow_quick_start(&mut shell).await;
    let folder = shell.run("pwd").await.lines;
    drop(shell);
    demo.interrupt().await;
    eventually("all files of the demo are removed", SOON, async || {
        let is_there = Path::new(&folder[0]).exists();
        if is_there { Err(&folder[0]) } else { Ok(()) }
    })
    .await;
}
