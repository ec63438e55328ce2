//! The command line as people write it: commands and flags in, raw values out.
//!
//! Promises: what a flag is called, takes and means stands in [`RunArgs`] alone; argh parses it, and the help is made of
//! it. Before argh sees them, words are put into its form, since manifests and wrapper scripts were written for Go's
//! pflag (`--flag=value`, `_` for `-`, the last of two counts, klog's flags), and what is wrong is reported in our own words.

use argh::{ArgsInfo, FlagInfo, FlagInfoKind, FromArgs, Optionality};

use super::asks::{self, RbacOptions};
use super::klog::{self, Klog};
use super::usage::UsageError;
use crate::logging::LogFormat;
use crate::spelling;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// No command was given.
    Nothing,
    Help,
    RunHelp,
    Version,
    /// The version and more about the build.
    Build,
    Run(Box<RunArgs>, Klog),
    #[cfg(feature = "admin")]
    GenHelp,
    /// With the words that follow.
    #[cfg(feature = "admin")]
    Gen(Vec<String>, Klog),
    CheckHelp,
    Check(Box<RunArgs>, Klog, LogFormat),
    RbacHelp,
    Rbac(Box<RunArgs>, Klog, RbacOptions),
}

// In the order of the help. It adds what the types say: which flags are repeatable, and which are switches.
/// Syncs between the hub and the edge until stopped by SIGTERM or SIGINT.
#[derive(FromArgs, ArgsInfo, Debug, Default, Clone, PartialEq)]
pub(super) struct RunArgs {
    /// kubeconfig file of the hub (required)
    #[argh(option, arg_name = "FILE")]
    pub from_kubeconfig: Option<String>,

    /// context in it (default: its current context)
    #[argh(option, arg_name = "NAME")]
    pub from_context: Option<String>,

    /// kubeconfig file of the edge (default: the service account of the pod)
    #[argh(option, arg_name = "FILE")]
    pub to_kubeconfig: Option<String>,

    /// context in it (default: its current context)
    #[argh(option, arg_name = "NAME")]
    pub to_context: Option<String>,

    /// renew the hub's token at half of its life, and keep it in this Secret at the edge, which has the hub's kubeconfig
    /// (default: nothing is renewed)
    #[argh(option, arg_name = "NAMESPACE/NAME")]
    pub credentials_secret: Option<String>,

    /// the same, and keep it in this file: the hub's kubeconfig, or a copy of it
    #[argh(option, arg_name = "FILE")]
    pub credentials_file: Option<String>,

    /// requests per second to each side (default: 30, but no limit at an edge with API priority and fairness; negative:
    /// no limit)
    #[argh(option, arg_name = "NUMBER")]
    pub qps: Option<String>,

    /// requests that may be sent at once to each side (default: 20)
    #[argh(option, arg_name = "NUMBER")]
    pub burst: Option<String>,

    /// UID of the sync target (required)
    #[argh(option, arg_name = "UID")]
    pub sync_target_uid: Option<String>,

    /// name of the sync target, for the log
    #[argh(option, arg_name = "NAME")]
    pub sync_target_name: Option<String>,

    /// UID that the sync target had before, or of a syncer that is gone for good, whose copies are taken over
    #[argh(option, arg_name = "UID")]
    pub former_sync_target_uid: Vec<String>,

    /// how changes at the hub are found (default: watch)
    #[argh(option, arg_name = "watch|poll")]
    pub mode: Option<String>,

    /// how changes at the edge are found (default: watch)
    #[argh(option, arg_name = "watch|poll")]
    pub edge_mode: Option<String>,

    /// time between two polls where the mode is poll (default: 15s; at least 1s)
    #[argh(option, arg_name = "DURATION")]
    pub poll_interval: Option<String>,

    /// shortest time between two writes of one object's status to the hub (default: 1s; 0s: every change)
    #[argh(option, arg_name = "DURATION")]
    pub status_interval: Option<String>,

    /// time between two heartbeats on the configs at the hub (default: 1m; at least 1s; 0s: none)
    #[argh(option, arg_name = "DURATION")]
    pub heartbeat_interval: Option<String>,

    /// objects that may wait for their turn in memory; others are read again later (default: 1024; at least 32)
    #[argh(option, arg_name = "NUMBER")]
    pub queue_capacity: Option<String>,

    /// field managers whose fields are reverted at the edge, beside those that the hub sets (default:
    /// kubectl,kubectl-*; empty: nobody; trailing * for all names that begin so)
    #[argh(option, arg_name = "NAMES")]
    pub revert_changes_from: Vec<String>,

    /// hold deletes that are more than so many, and more than half of all copies, at once (default: 20)
    #[argh(option, arg_name = "NUMBER")]
    pub hold_deletes_above: Option<String>,

    /// how long these are held unless they are confirmed (default: 10m; 0s: none are held)
    #[argh(option, arg_name = "DURATION")]
    pub hold_deletes_for: Option<String>,

    /// delete objects that were there before when their hub objects are deleted, instead of releasing them
    #[argh(switch)]
    pub delete_adopted: bool,

    /// never sync objects of this type, such as secrets, deployments.apps or *.example.org
    #[argh(option, arg_name = "RESOURCE[.GROUP]")]
    pub deny: Vec<String>,

    /// write namespaced objects, and create namespaces, only here (trailing * for all names that begin so)
    #[argh(option, arg_name = "NAME")]
    pub allow_namespace: Vec<String>,

    /// never write here, even if allowed (trailing * for all names that begin so)
    #[argh(option, arg_name = "NAME")]
    pub deny_namespace: Vec<String>,

    /// file with one 'deny secrets', 'allow-namespace shop-*' or 'deny-namespace kube-*' a line, and # comments
    #[argh(option, arg_name = "FILE")]
    pub filter_file: Option<String>,

    /// let configs write into kube-system, the syncer's own namespace and its roles, and send up the Secrets there, as
    /// the Go syncer did
    #[argh(switch)]
    pub allow_system: bool,

    /// sync only while holding a Lease at the edge, so that one of several syncers is active
    #[argh(switch)]
    pub leader_elect: bool,

    /// how long that Lease lasts when its holder is gone (default: 15s; 3s to 1h)
    #[argh(option, arg_name = "DURATION")]
    pub lease_duration: Option<String>,

    /// where to serve /healthz, /livez, /readyz and /metrics over plain HTTP, such as :8080 (every address),
    /// localhost:8080 or 10.0.0.1:8080 (default: nothing is served)
    #[argh(option, arg_name = "[IP]:PORT")]
    pub listen_address: Option<String>,

    /// how log lines are written: logfmt, or one JSON object each (default: text)
    #[argh(option, arg_name = "text|json")]
    pub log_format: Option<String>,
}

/// All flags of `run` but klog's and those that every command has.
pub(super) fn flags() -> impl Iterator<Item = &'static FlagInfo<'static>> {
    let flags = RunArgs::get_args_info().flags;
    flags.iter().filter(|flag| flag.long != "--help")
}

/// Flags that had another name before, which works as well.
const FORMER_NAMES: [(&str, &str); 1] = [("--take-back-from", "--revert-changes-from")];

fn flag(name: &str) -> Option<&'static FlagInfo<'static>> {
    let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
    let name = former.map_or(name, |(_, name)| *name);
    flags().find(|flag| flag.long == name)
}

/// The words that a command line may begin with.
const COMMANDS: [&str; 5] = ["run", "check", "gen", "version", "help"];

/// Reads the arguments after the program's name.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    let mut klog = Klog::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let found = match arg.as_str() {
            "run" => return run(rest.as_slice(), klog),
            "check" => return asks::check(rest.as_slice(), klog),
            "gen" => return generate(rest.as_slice(), klog),
            "-V" | "--version" => Command::Version,
            "version" => Command::Build,
            "-h" | "--help" => Command::Help,
            "help" => match rest.next().map(String::as_str) {
                None | Some("help" | "version") => Command::Help,
                Some("run") => Command::RunHelp,
                #[cfg(feature = "admin")]
                Some("gen") => Command::GenHelp,
                #[cfg(not(feature = "admin"))]
                Some("gen") => Command::RbacHelp,
                Some("check") => Command::CheckHelp,
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

fn unknown_command(word: &str) -> UsageError {
    UsageError::of_commands(format!(
        "unknown command {word:?}{}",
        spelling::hint(word, COMMANDS.iter().copied())
    ))
}

/// Flags that every command has.
const OF_ALL: [&str; 2] = ["--help", "--version"];

/// A flag before the command.
fn misplaced_flag(arg: &str) -> UsageError {
    match klog::split_flag(arg) {
        Some((name, _)) if flag(&name).is_some() => UsageError::new(format!(
            "{name} is a flag of run, which is missing before it: edge-syncer run {name} ..."
        )),
        _ => UsageError::of_commands(no_flag_of(OF_ALL, arg)),
    }
}

/// Reads the flags of `run`.
pub(super) fn run(args: &[String], mut klog: Klog) -> Result<Command, UsageError> {
    // The flags that count, with their values.
    let mut given: Vec<(&str, Option<&str>)> = Vec::new();
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
        let Some(flag) = flag(&name) else {
            return Err(unknown_flag(&name));
        };
        if flag.optionality != Optionality::Repeating {
            // argh refuses a flag that is given twice.
            given.retain(|(earlier, _)| *earlier != flag.long);
        }
        if flag.kind == FlagInfoKind::Switch {
            if is_on(&name, value)? {
                given.push((flag.long, None));
            }
            switch = value.is_none().then_some(name);
        } else {
            let missing = || UsageError::new(format!("{name} needs a value"));
            let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(missing)?;
            given.push((flag.long, Some(value)));
        }
    }
    Ok(Command::Run(Box::new(raw(given)?), klog))
}

/// What argh makes of flags and values that were checked before, so that it has nothing to refuse.
fn raw(given: Vec<(&str, Option<&str>)>) -> Result<RunArgs, UsageError> {
    let mut words = Vec::new();
    for (name, value) in given {
        words.push(name);
        words.extend(value);
    }
    RunArgs::from_args(&[], &words).map_err(|refusal| UsageError::new(refusal.output))
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
    UsageError::new(no_flag_of(flags().map(|flag| flag.long).chain(OF_ALL), arg))
}

/// What is wrong with a flag that is none of the `known` ones in this form.
fn no_flag_of(known: impl IntoIterator<Item = &'static str>, arg: &str) -> String {
    let name = arg.split('=').next().unwrap_or(arg);
    if OF_ALL.contains(&name) {
        return format!("{name} takes no value");
    }
    let hint = spelling::hint(&doubled(name), known);
    format!("unknown flag {name}{hint}")
}

/// With two dashes, since Go's own flag package is content with one.
fn doubled(name: &str) -> String {
    format!("--{}", name.trim_start_matches('-'))
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
