//! The command line as people write it: commands and flags in, raw values out.
//!
//! Promises: it takes what Go's pflag takes, since manifests and wrapper scripts were written for that (`--flag value`,
//! `--flag=value`, `_` for `-`, the last of two counts, klog's flags). Not a library, as none does all of this and has
//! groups in its help.

use super::klog::{self, Klog};
use super::settings::UsageError;
use crate::spelling;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// No command was given.
    Nothing,
    Help,
    RunHelp,
    Version,
    Run(Box<RunArgs>, Klog),
}

/// The flags of `run`, as they were given.
#[derive(Debug, Default, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "flags that stand alone")]
pub(super) struct RunArgs {
    pub from_kubeconfig: Option<String>,
    pub from_context: Option<String>,
    pub to_kubeconfig: Option<String>,
    pub to_context: Option<String>,
    pub sync_target_name: Option<String>,
    pub sync_target_uid: Option<String>,
    pub former_sync_target_uid: Vec<String>,
    pub qps: Option<String>,
    pub burst: Option<String>,
    pub mode: Option<String>,
    pub edge_mode: Option<String>,
    pub poll_interval: Option<String>,
    pub delete_adopted: bool,
    pub take_back_from: Vec<String>,
    pub deny: Vec<String>,
    pub allow_namespace: Vec<String>,
    pub deny_namespace: Vec<String>,
    pub filter_file: Option<String>,
    pub allow_system: bool,
    pub status_interval: Option<String>,
    pub heartbeat_interval: Option<String>,
    pub hold_deletes_above: Option<String>,
    pub hold_deletes_for: Option<String>,
    pub queue_capacity: Option<String>,
    pub leader_elect: bool,
    pub lease_duration: Option<String>,
    pub listen_address: Option<String>,
}

/// Where the value of a flag goes.
#[derive(Clone, Copy)]
enum Slot {
    /// The last value counts.
    One(fn(&mut RunArgs) -> &mut Option<String>),
    /// Values add up.
    Many(fn(&mut RunArgs) -> &mut Vec<String>),
    /// It stands alone, or with `=true` or `=false`.
    Switch(fn(&mut RunArgs) -> &mut bool),
}

/// All flags of `run` but klog's; what they mean is in [`help::RUN`](super::help::RUN).
const FLAGS: [(&str, Slot); 27] = [
    ("--from-kubeconfig", Slot::One(|raw| &mut raw.from_kubeconfig)),
    ("--from-context", Slot::One(|raw| &mut raw.from_context)),
    ("--to-kubeconfig", Slot::One(|raw| &mut raw.to_kubeconfig)),
    ("--to-context", Slot::One(|raw| &mut raw.to_context)),
    ("--sync-target-name", Slot::One(|raw| &mut raw.sync_target_name)),
    ("--sync-target-uid", Slot::One(|raw| &mut raw.sync_target_uid)),
    (
        "--former-sync-target-uid",
        Slot::Many(|raw| &mut raw.former_sync_target_uid),
    ),
    ("--qps", Slot::One(|raw| &mut raw.qps)),
    ("--burst", Slot::One(|raw| &mut raw.burst)),
    ("--mode", Slot::One(|raw| &mut raw.mode)),
    ("--edge-mode", Slot::One(|raw| &mut raw.edge_mode)),
    ("--poll-interval", Slot::One(|raw| &mut raw.poll_interval)),
    ("--delete-adopted", Slot::Switch(|raw| &mut raw.delete_adopted)),
    ("--take-back-from", Slot::Many(|raw| &mut raw.take_back_from)),
    ("--deny", Slot::Many(|raw| &mut raw.deny)),
    ("--allow-namespace", Slot::Many(|raw| &mut raw.allow_namespace)),
    ("--deny-namespace", Slot::Many(|raw| &mut raw.deny_namespace)),
    ("--filter-file", Slot::One(|raw| &mut raw.filter_file)),
    ("--allow-system", Slot::Switch(|raw| &mut raw.allow_system)),
    ("--status-interval", Slot::One(|raw| &mut raw.status_interval)),
    ("--heartbeat-interval", Slot::One(|raw| &mut raw.heartbeat_interval)),
    ("--hold-deletes-above", Slot::One(|raw| &mut raw.hold_deletes_above)),
    ("--hold-deletes-for", Slot::One(|raw| &mut raw.hold_deletes_for)),
    ("--queue-capacity", Slot::One(|raw| &mut raw.queue_capacity)),
    ("--leader-elect", Slot::Switch(|raw| &mut raw.leader_elect)),
    ("--lease-duration", Slot::One(|raw| &mut raw.lease_duration)),
    ("--listen-address", Slot::One(|raw| &mut raw.listen_address)),
];

/// The words that a command line may begin with.
const COMMANDS: [&str; 3] = ["run", "version", "help"];

/// Reads the arguments after the program's name.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    let mut klog = Klog::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let found = match arg.as_str() {
            "run" => return run(rest.as_slice(), klog),
            "-V" | "--version" | "version" => Command::Version,
            "-h" | "--help" => Command::Help,
            "help" => match rest.next().map(String::as_str) {
                None | Some("help" | "version") => Command::Help,
                Some("run") => Command::RunHelp,
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

fn unknown_command(word: &str) -> UsageError {
    UsageError::of_commands(format!("unknown command {word:?}{}", spelling::hint(word, COMMANDS)))
}

/// A flag before the command.
fn misplaced_flag(arg: &str) -> UsageError {
    match klog::split_flag(arg) {
        Some((name, _)) if slot(&name).is_some() => UsageError::new(format!(
            "{name} is a flag of run, which is missing before it: edge-syncer run {name} ..."
        )),
        _ => {
            let name = arg.split('=').next().unwrap_or(arg);
            let hint = spelling::hint(&doubled(name), ["--help", "--version"]);
            UsageError::of_commands(format!("unknown flag {name}{hint}"))
        }
    }
}

/// Reads the flags of `run`.
fn run(args: &[String], mut klog: Klog) -> Result<Command, UsageError> {
    let mut raw = RunArgs::default();
    let mut rest = args.iter();
    // The switch without a value that stands before.
    let mut switch = None;
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-h" | "--help" | "help" => return Ok(Command::RunHelp),
            "-V" | "--version" => return Ok(Command::Version),
            "--" => match rest.next() {
                Some(word) => return Err(unexpected(word, None)),
                None => break,
            },
            _ => {}
        }
        let before = switch.take();
        if klog.take(arg, &mut rest)? {
            switch = Some(arg.clone());
            continue;
        }
        if !arg.starts_with('-') {
            return Err(unexpected(arg, before));
        }
        let (name, value) = klog::split_flag(arg).unwrap_or_else(|| (arg.clone(), None));
        let mut value_of = |value: Option<String>| {
            let missing = || UsageError::new(format!("{name} needs a value"));
            value.or_else(|| rest.next().cloned()).ok_or_else(missing)
        };
        match slot(&name) {
            None => return Err(unknown_flag(&name)),
            Some(Slot::One(slot)) => *slot(&mut raw) = Some(value_of(value)?),
            Some(Slot::Many(slot)) => slot(&mut raw).push(value_of(value)?),
            Some(Slot::Switch(slot)) => {
                *slot(&mut raw) = is_on(&name, value.as_deref())?;
                switch = value.is_none().then_some(name);
            }
        }
    }
    Ok(Command::Run(Box::new(raw), klog))
}

fn slot(name: &str) -> Option<Slot> {
    let (_, slot) = FLAGS.iter().find(|(flag, _)| *flag == name)?;
    Some(*slot)
}

/// What the value of a switch says; alone it is on.
fn is_on(name: &str, value: Option<&str>) -> Result<bool, UsageError> {
    match value {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(UsageError::new(format!("{name} {other:?}: must be true or false"))),
    }
}

fn unexpected(word: &str, switch: Option<String>) -> UsageError {
    match switch {
        Some(switch) if matches!(word, "true" | "false") => UsageError::new(format!(
            "{switch} {word}: the value of this flag must follow a =: {switch}={word}"
        )),
        _ => UsageError::new(format!("unexpected argument {word:?}")),
    }
}

fn unknown_flag(arg: &str) -> UsageError {
    let name = arg.split('=').next().unwrap_or(arg);
    let known = FLAGS.iter().map(|(flag, _)| *flag).chain(["--help", "--version"]);
    let hint = spelling::hint(&doubled(name), known);
    UsageError::new(format!("unknown flag {name}{hint}"))
}

/// With two dashes, since Go's own flag package is content with one.
fn doubled(name: &str) -> String {
    format!("--{}", name.trim_start_matches('-'))
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
