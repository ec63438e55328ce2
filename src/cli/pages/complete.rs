//! Completions for shells, by `argh_complete`.

use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, Optionality, SubCommandInfo};
use argh_complete::Generator as _;
use argh_complete::bash::Bash;
use argh_complete::fish::Fish;
use argh_complete::zsh::Zsh;

use super::{Entry, Help, Shell};
use crate::cli::usage::NAME;

/// What a shell reads of the program with this help. Each offers files for the value of a flag.
pub(super) fn of(all: &[Help], shell: Shell) -> String {
    let info = info(all);
    match shell {
        Shell::Bash => Bash::generate(NAME, &info),
        // Of itself it offers nothing for a value.
        Shell::Zsh => Zsh::generate(NAME, &info).replace("': :'", "': :_files'"),
        // Nor does this one; and what it calls is known from fish 4.0 on, under this name from 3.0 on.
        Shell::Fish => Fish::generate(NAME, &info)
            .replace(" -f -l ", " -l ")
            .replace("commandline -xpc", "commandline -opc"),
    }
}

/// The form of argh, in which all texts live as long as the program.
fn info(all: &[Help]) -> CommandInfoWithArgs {
    let mut root = command(NAME, "", Vec::new());
    for help in all.iter().skip(1) {
        let flags = help.flags().flat_map(flags).collect();
        let mut parent = &mut root;
        let (before, last) = help.command.rsplit_once(' ').unwrap_or(("", &help.command));
        for word in before.split(' ').filter(|word| !word.is_empty()) {
            let found = parent.commands.iter().position(|known| known.name == word);
            let at = found.unwrap_or_else(|| {
                add(parent, command(word, &help.summary, Vec::new()));
                parent.commands.len() - 1
            });
            parent = &mut parent.commands[at].command;
        }
        add(parent, command(last, &help.summary, flags));
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
