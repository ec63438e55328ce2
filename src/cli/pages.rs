//! The manual page and the completions for shells. They are made of the help texts, taken apart, and those of the one table
//! of flags.
//!
//! Promises: whatever the help of a program of this kind says, it is text that comes out, and nothing panics.

mod complete;
mod man;

use std::collections::VecDeque;

use super::{Invocation, parse as invocation_of};
use crate::version;

/// Where the texts of flags and variables begin.
const COLUMN: usize = 30;
/// A command has fewer words than that: the help of the last one may be that of the one before.
const DEEPEST: usize = 3;

/// A shell that has completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    /// All of them, each with its name.
    pub const ALL: [(&str, Self); 3] = [("bash", Self::Bash), ("zsh", Self::Zsh), ("fish", Self::Fish)];

    /// The one with this name.
    pub(super) fn called(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, shell)| *shell)
    }
}

/// A flag, a command or a variable, with what it means.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// As the help has it: `-v, --v NUMBER`.
    pub name: String,
    /// What it means.
    pub text: String,
}

/// What stands below a head such as `Connection:`; the first one has none.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The words of the head.
    pub head: String,
    /// Flags, commands or variables.
    pub entries: Vec<Entry>,
    /// Other text.
    pub paragraphs: Vec<String>,
}

/// The help of one command.
#[derive(Clone, Debug)]
pub struct Help {
    /// Its words, such as `gen rbac`; none for the program as a whole.
    pub command: String,
    /// What the program says of it in one line.
    pub summary: String,
    /// The line that shows how it is called.
    pub usage: String,
    /// The rest, by its heads.
    pub sections: Vec<Section>,
}

/// That of the program first, then of each command. `say` gives what the program prints for these arguments.
pub fn read(mut say: impl FnMut(&[&str]) -> String) -> Vec<Help> {
    let whole = take_apart("", "", &say(&["help"]));
    let commands = whole.section("Commands").map(|section| section.entries.clone());
    let mut all = vec![whole];
    let mut commands: VecDeque<Entry> = commands.unwrap_or_default().into();
    while let Some(Entry { name, text }) = commands.pop_front() {
        let mut args: Vec<&str> = name.split(' ').collect();
        args.push("--help");
        let help = say(&args);
        // Those without flags of their own have the help of the program.
        let help = if help.starts_with("Usage: edge-syncer <command>") {
            format!("Usage: edge-syncer {name}\n")
        } else {
            help
        };
        let help = take_apart(&name, &text, &help);
        // Those that are commands of a command follow it.
        let own = help.section("Commands").map(|section| section.entries.clone());
        for Entry { name: own, text } in own.unwrap_or_default().into_iter().rev() {
            let name = format!("{name} {own}");
            if name.split(' ').count() < DEEPEST && commands.iter().all(|known| known.name != name) {
                commands.push_front(Entry { name, text });
            }
        }
        all.push(help);
    }
    all
}

/// Those of this program.
fn own() -> Vec<Help> {
    read(|args| {
        let args = std::iter::once(super::usage::NAME).chain(args.iter().copied());
        match invocation_of(args.map(Into::into)) {
            Ok(Invocation::Print(text)) => text,
            _ => String::new(),
        }
    })
}

/// The completions of this program for a shell.
pub(super) fn completion(shell: Shell) -> String {
    completion_of(&own(), shell)
}

/// The manual page of this program.
pub(super) fn manual() -> String {
    manual_of(&own(), version::DATE)
}

/// The completions of a program with this help for a shell.
pub fn completion_of(all: &[Help], shell: Shell) -> String {
    complete::of(all, shell)
}

/// The manual page of a program with this help, in mdoc. `date` is as `2026-11-24`.
pub fn manual_of(all: &[Help], date: &str) -> String {
    man::page(all, date)
}

fn take_apart(command: &str, summary: &str, help: &str) -> Help {
    let usage = help.lines().next().unwrap_or_default();
    let (mut sections, mut section) = (Vec::new(), Section::default());
    let mut is_open = false;
    for line in help.lines().skip(1) {
        if line.trim().is_empty() {
            is_open = false;
        } else if let Some(head) = line.strip_suffix(':').filter(|head| is_head(head)) {
            is_open = false;
            let next = Section {
                head: head.to_owned(),
                ..Section::default()
            };
            sections.push(std::mem::replace(&mut section, next));
        } else if is_open && let Some(open) = section.paragraphs.last_mut() {
            join(open, line);
        } else if let Some(entry) = entry(line, &section.head) {
            section.entries.push(entry);
        } else if line.starts_with("          ")
            && let Some(entry) = section.entries.last_mut()
        {
            join(&mut entry.text, line);
        } else {
            is_open = true;
            section.paragraphs.push(line.trim().to_owned());
        }
    }
    sections.push(section);
    Help {
        command: command.to_owned(),
        summary: summary.to_owned(),
        usage: usage.trim_start_matches("Usage: ").to_owned(),
        sections,
    }
}

/// A few words in a line of their own; a sentence may end with a colon too.
fn is_head(line: &str) -> bool {
    !line.starts_with(' ') && !line.contains(['.', ',']) && line.len() < 30
}

fn entry(line: &str, head: &str) -> Option<Entry> {
    let rest = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
    let (name, text) = match rest.split_at_checked(COLUMN - 2) {
        // The longest names have one blank behind them.
        Some((name, text)) if head != "Commands" && name.ends_with(' ') => (name.trim_end(), text),
        _ => rest.split_once("  ").unwrap_or((rest, "")),
    };
    let is_flag = name.starts_with('-');
    let is_named = matches!(head, "Commands" | "Environment") && (!text.is_empty() || !name.contains(". "));
    let entry = Entry {
        name: name.to_owned(),
        text: text.trim().to_owned(),
    };
    (is_flag || is_named).then_some(entry)
}

fn join(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    *text += line.trim();
}

impl Help {
    /// The section with this head.
    pub fn section(&self, head: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.head == head)
    }

    /// All flags.
    pub fn flags(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.filter(|entry| entry.name.starts_with('-'))
    }
}

impl Entry {
    /// The names of a flag: `-v`, `--v`.
    pub fn names(&self) -> Vec<&str> {
        let words = self.name.split([' ', ',']);
        words.filter(|word| word.starts_with('-')).collect()
    }

    /// What a flag takes, if it takes something.
    pub fn value(&self) -> Option<&str> {
        let (_, last) = self.name.rsplit_once(' ')?;
        (!last.starts_with('-')).then_some(last)
    }
}
