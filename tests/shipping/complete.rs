//! Completions for shells, by `argh_complete`.

use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, Optionality, SubCommandInfo};
use argh_complete::Generator as _;
use argh_complete::bash::Bash;
use argh_complete::fish::Fish;
use argh_complete::zsh::Zsh;

use crate::help::{Entry, Help};

/// What a shell reads.
pub(crate) struct Completions {
    pub(crate) bash: String,
    pub(crate) zsh: String,
    pub(crate) fish: String,
}

/// For the program with this help.
pub(crate) fn of(all: &[Help]) -> Completions {
    let info = info(all);
    let name = "edge-syncer";
    Completions {
        bash: Bash::generate(name, &info),
        zsh: Zsh::generate(name, &info),
        fish: Fish::generate(name, &info),
    }
}

/// The form of argh, in which all texts live as long as the program.
fn info(all: &[Help]) -> CommandInfoWithArgs {
    let (_, commands) = all.split_first().expect("the program has a help");
    let mut root = command("edge-syncer", "", Vec::new());
    for help in commands {
        let flags = help.flags().flat_map(flags).collect();
        let mut parent = &mut root;
        let words: Vec<&str> = help.command.split(' ').collect();
        for word in &words[..words.len() - 1] {
            let found = parent.commands.iter().position(|known| known.name == *word);
            let at = found.unwrap_or_else(|| {
                add(parent, command(word, &help.summary, Vec::new()));
                parent.commands.len() - 1
            });
            parent = &mut parent.commands[at].command;
        }
        add(parent, command(words[words.len() - 1], &help.summary, flags));
    }
    root
}

fn add(parent: &mut CommandInfoWithArgs, command: CommandInfoWithArgs) {
    parent.commands.push(SubCommandInfo {
        name: command.name,
        command,
    });
}

fn command(name: &str, description: &str, flags: Vec<FlagInfo<'static>>) -> CommandInfoWithArgs {
    CommandInfoWithArgs {
        name: kept(name),
        description: kept(description),
        flags: flags.leak(),
        ..CommandInfoWithArgs::default()
    }
}

/// A flag under each of its long names. One without any has no completion: it is accepted for the sake of old scripts.
fn flags(entry: &Entry) -> Vec<FlagInfo<'static>> {
    let names = entry.names();
    let short = names.iter().find(|name| !name.starts_with("--"));
    let short = short.and_then(|name| name.chars().nth(1));
    let long = names.iter().filter(|name| name.starts_with("--"));
    let kind = || match entry.value() {
        Some(value) => FlagInfoKind::Option { arg_name: kept(value) },
        None => FlagInfoKind::Switch,
    };
    let flag = |name: &&str| FlagInfo {
        kind: kind(),
        optionality: Optionality::Optional,
        long: kept(name),
        short,
        description: kept(&entry.text),
        hidden: false,
    };
    long.map(flag).collect()
}

fn kept(text: &str) -> &'static str {
    text.to_owned().leak()
}
