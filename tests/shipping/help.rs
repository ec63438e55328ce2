//! The help texts of the program, taken apart: they are made of the one table of flags, and so is all that is made of
//! them.

use std::path::Path;
use std::process::Command;

/// Where the texts of flags and variables begin.
const COLUMN: usize = 30;

/// A flag, a command or a variable, with what it means.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// As the help has it: `-v, --v NUMBER`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What stands below a head such as `Connection:`; the first one has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) head: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) paragraphs: Vec<String>,
}

/// The help of one command.
#[derive(Clone, Debug)]
pub(crate) struct Help {
    /// Its words, such as `gen rbac`; none for the program as a whole.
    pub(crate) command: String,
    /// What the program says of it in one line.
    pub(crate) summary: String,
    pub(crate) usage: String,
    pub(crate) sections: Vec<Section>,
}

/// That of the program first, then of each command.
pub(crate) fn of_program(program: &Path) -> Vec<Help> {
    let whole = parse("", "", &say(program, &["help"]));
    let commands = whole.section("Commands").map(|section| section.entries.clone());
    let commands = commands.expect("the help names commands");
    let mut all = vec![whole];
    for Entry { name, text } in commands {
        let mut args: Vec<&str> = name.split(' ').collect();
        // Help has none of its own.
        args.push(if name == "help" { "help" } else { "--help" });
        let help = say(program, &args);
        // Those without flags of their own have the help of the program.
        let help = if help.starts_with("Usage: edge-syncer <command>") {
            format!("Usage: edge-syncer {name}\n")
        } else {
            help
        };
        all.push(parse(&name, &text, &help));
    }
    all
}

fn say(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{}: cannot be started: {error}", program.display()));
    assert!(output.status.success(), "{} {args:?} fails", program.display());
    String::from_utf8(output.stdout).expect("the help is UTF-8")
}

fn parse(command: &str, summary: &str, help: &str) -> Help {
    let usage = help.lines().next().unwrap_or_default();
    let mut sections = vec![Section::default()];
    let mut is_open = false;
    for line in help.lines().skip(1) {
        let section = sections.last_mut().expect("there is one");
        if line.trim().is_empty() {
            is_open = false;
        } else if let Some(head) = line.strip_suffix(':').filter(|head| is_head(head)) {
            is_open = false;
            sections.push(Section {
                head: head.to_owned(),
                ..Section::default()
            });
        } else if is_open {
            join(section.paragraphs.last_mut().expect("one is open"), line);
        } else if let Some(entry) = entry(line, &section.head) {
            section.entries.push(entry);
        } else if line.starts_with("          ") {
            let entry = section.entries.last_mut().expect("a text belongs to an entry");
            join(&mut entry.text, line);
        } else {
            is_open = true;
            section.paragraphs.push(line.trim().to_owned());
        }
    }
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
    pub(crate) fn section(&self, head: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.head == head)
    }

    /// All flags.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.filter(|entry| entry.name.starts_with('-'))
    }
}

impl Entry {
    /// The names of a flag: `-v`, `--v`.
    pub(crate) fn names(&self) -> Vec<&str> {
        let words = self.name.split([' ', ',']);
        words.filter(|word| word.starts_with('-')).collect()
    }

    /// What a flag takes, if it takes something.
    pub(crate) fn value(&self) -> Option<&str> {
        let (_, last) = self.name.rsplit_once(' ')?;
        (!last.starts_with('-')).then_some(last)
    }
}
