//! Which command a command line is about; the module of that command reads its words.

use kube_lite::spelling;

use super::args::{Command, OF_ALL, flag, no_flag_of, run};
use super::asks;
#[cfg(feature = "init")]
use super::init_args;
use super::klog::{self, Klog};
#[cfg(feature = "admin")]
use super::pages::Shell;
#[cfg(feature = "publish")]
use super::publish_args;
use super::usage::UsageError;

/// The words that a command line may begin with.
const COMMANDS: &[&str] = &[
    "run",
    "check",
    #[cfg(feature = "admin")]
    "diff",
    #[cfg(feature = "admin")]
    "bundle",
    #[cfg(feature = "admin")]
    "status",
    "gen",
    #[cfg(feature = "admin")]
    "prep",
    #[cfg(feature = "admin")]
    "completion",
    #[cfg(feature = "admin")]
    "man",
    #[cfg(feature = "init")]
    "init",
    #[cfg(feature = "publish")]
    "publish",
    "version",
    "help",
];

/// Reads the arguments after the program's name.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    let mut klog = Klog::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let found = match arg.as_str() {
            "run" => return run(rest.as_slice(), klog),
            "check" => return asks::check(rest.as_slice(), klog),
            #[cfg(feature = "admin")]
            "diff" => return asks::diff(rest.as_slice(), klog),
            #[cfg(feature = "admin")]
            "bundle" => return asks::bundle(rest.as_slice(), klog),
            #[cfg(feature = "admin")]
            "status" => return asks::status(rest.as_slice(), klog),
            "gen" => return generate(rest.as_slice(), klog),
            #[cfg(feature = "init")]
            "init" => return init_args::parse(rest.as_slice()),
            #[cfg(feature = "publish")]
            "publish" => return publish_args::parse(rest.as_slice()),
            #[cfg(feature = "admin")]
            "prep" => return Ok(Command::Prep(rest.as_slice().to_vec(), klog)),
            #[cfg(feature = "admin")]
            "completion" => completion(rest.next().map(String::as_str))?,
            #[cfg(feature = "admin")]
            "man" => Command::Manual,
            #[cfg(not(feature = "admin"))]
            "diff" | "status" | "bundle" | "prep" | "completion" | "man" => {
                return Err(UsageError::of_commands(format!(
                    "the binary for edges has no {arg}, edge-syncer-admin has"
                )));
            }
            "-V" | "--version" => Command::Version,
            "version" => Command::Build,
            "-h" | "--help" => Command::Help,
            "help" => match rest.next().map(String::as_str) {
                None | Some("help" | "version" | "completion" | "man" | "-h" | "--help") => Command::Help,
                Some("run") => Command::RunHelp,
                #[cfg(feature = "admin")]
                Some("gen") => Command::GenHelp,
                #[cfg(not(feature = "admin"))]
                Some("gen") => Command::RbacHelp,
                Some("check") => Command::CheckHelp,
                #[cfg(feature = "admin")]
                Some("diff") => Command::DiffHelp,
                #[cfg(feature = "admin")]
                Some("bundle") => Command::BundleHelp,
                #[cfg(feature = "admin")]
                Some("status") => Command::StatusHelp,
                #[cfg(feature = "admin")]
                Some("prep") => Command::PrepHelp,
                #[cfg(feature = "init")]
                Some("init") => Command::InitHelp,
                #[cfg(feature = "publish")]
                Some("publish") => Command::PublishHelp,
                Some(other) => return Err(unknown_command(other)),
            },
            _ if klog.take(arg, &mut rest)? => continue,
            flag if flag.starts_with('-') => return Err(misplaced_flag(flag)),
            word => return Err(unknown_command(word)),
        };
        return match rest.next().map(String::as_str) {
            None => Ok(found),
            Some("-h" | "--help") => Ok(Command::Help),
            Some(_) if found == Command::Help => Ok(found),
            Some(other) => Err(UsageError::of_commands(format!("unexpected argument {other:?}"))),
        };
    }
    Ok(Command::Nothing)
}

/// What is to be made: roles, or else what an edge needs to join a hub.
fn generate(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    match args.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        Some(("rbac", rest)) => asks::rbac(rest, klog),
        #[cfg(feature = "admin")]
        _ => Ok(Command::Gen(args.to_vec(), klog)),
        #[cfg(not(feature = "admin"))]
        None | Some(("-h" | "--help" | "help", _)) => Ok(Command::RbacHelp),
        #[cfg(not(feature = "admin"))]
        Some((word, _)) => Err(UsageError::of_commands(format!(
            "gen {word:?}: must be rbac{}; the binary for edges has no other gen, edge-syncer-admin has",
            spelling::hint(word, ["rbac"])
        ))),
    }
}

/// For which shell.
#[cfg(feature = "admin")]
fn completion(word: Option<&str>) -> Result<Command, UsageError> {
    let wrong = match (word, word.and_then(Shell::called)) {
        (_, Some(shell)) => return Ok(Command::Completion(shell)),
        (Some("-h" | "--help"), _) => return Ok(Command::Help),
        (Some(word), None) => format!(
            "completion {word:?}: must be bash, zsh or fish{}",
            spelling::hint(word, Shell::ALL.map(|(name, _)| name))
        ),
        (None, _) => "completion: name the shell: bash, zsh or fish".to_owned(),
    };
    Err(UsageError::of_commands(wrong))
}

fn unknown_command(word: &str) -> UsageError {
    UsageError::of_commands(format!(
        "unknown command {word:?}{}",
        spelling::hint(word, COMMANDS.iter().copied())
    ))
}

/// A flag before the command.
fn misplaced_flag(arg: &str) -> UsageError {
    match klog::split_flag(arg) {
        Some((name, _)) if flag(&name).is_some() => UsageError::new(format!(
            "{name} is a flag of run, which is missing before it: edge-syncer run {name} ..."
        )),
        _ => UsageError::of_commands(no_flag_of(OF_ALL, arg)),
    }
}
