//! The flags of `run` as people write them: words in, raw values out.
//!
//! Promises: the name, value and meaning of a flag are in [`RunArgs`] alone; argh parses it, and the help is made from
//! it. Before that, words are put into the form that argh expects, since manifests and wrapper scripts were written for
//! Go's pflag (`--flag=value`, `_` for `-`, the last of two counts, klog's flags), and what is wrong is reported in our
//! own words.

#[cfg(feature = "admin")]
use std::time::Duration;

use argh::{ArgsInfo, FlagInfo, FlagInfoKind, FromArgs, Optionality};
use kube_lite::logging::LogFormat;
use kube_lite::spelling;

use super::klog::{self, Klog};
use super::usage::UsageError;
use crate::side::Side;

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
    /// The words after `prep`.
    #[cfg(feature = "admin")]
    Prep(Vec<String>, Klog),
    #[cfg(feature = "admin")]
    PrepHelp,
    #[cfg(feature = "admin")]
    Completion(super::pages::Shell),
    #[cfg(feature = "admin")]
    Manual,
    #[cfg(feature = "init")]
    InitHelp,
    #[cfg(feature = "init")]
    InitRun(Box<crate::init::Init>),
    #[cfg(feature = "init")]
    InitCheck(Box<crate::init::Init>, LogFormat),
    #[cfg(feature = "publish")]
    PublishCheck(Box<crate::publish::Publish>, LogFormat),
    /// A role cannot run so.
    #[cfg(any(feature = "init", feature = "publish"))]
    RoleRefused(String),
    #[cfg(feature = "init")]
    RenderHelp,
    #[cfg(feature = "init")]
    Render(Box<crate::init::Render>),
    #[cfg(feature = "publish")]
    PublishHelp,
    #[cfg(feature = "publish")]
    PublishRun(Box<crate::publish::Publish>),
    #[cfg(feature = "publish")]
    PublishRenderHelp,
    #[cfg(feature = "publish")]
    PublishRender(Box<crate::publish::Render>),
    #[cfg(feature = "admin")]
    DiffHelp,
    #[cfg(feature = "admin")]
    Diff(Box<RunArgs>, Klog, DiffOptions),
    #[cfg(feature = "admin")]
    BundleHelp,
    #[cfg(feature = "admin")]
    Bundle(Box<RunArgs>, Klog, BundleOptions),
    #[cfg(feature = "admin")]
    StatusHelp,
    #[cfg(feature = "admin")]
    Status(Box<RunArgs>, Klog, StatusOptions),
    CheckHelp,
    Check(Box<RunArgs>, Klog, LogFormat),
    RbacHelp,
    Rbac(Box<RunArgs>, Klog, RbacOptions),
}

/// What `gen rbac` is to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RbacOptions {
    /// For which side.
    pub side: Side,
    /// Also for types that grant permissions.
    pub allow_escalation: bool,
}

/// What `diff` is to show: all, unless something is named.
#[cfg(feature = "admin")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// What this config selects.
    pub config: Option<String>,
    /// This object: kind, namespace and name.
    pub object: Option<[String; 3]>,
}

/// What `bundle` is to write, and where.
#[cfg(feature = "admin")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleOptions {
    /// The `--listen-address` of a running syncer; empty for none.
    pub address: String,
    /// The file; empty for one in this folder, `-` for stdout.
    pub output: String,
    /// The flags as they were given.
    pub flags: Vec<String>,
}

/// What `status` is to say, and how.
#[cfg(feature = "admin")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusOptions {
    /// Of this config alone.
    pub config: Option<String>,
    /// Of this object: kind, namespace and name.
    pub object: Option<[String; 3]>,
    /// In which form.
    pub output: StatusOutput,
    /// An edge that was silent for longer cannot be judged.
    pub stale_after: Duration,
    /// Of this sync target alone.
    pub sync_target: Option<String>,
    /// The edge is asked too.
    pub asks_edge: bool,
}

/// The form in which `status` says it.
#[cfg(feature = "admin")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusOutput {
    /// A table, as wide as the terminal.
    #[default]
    Table,
    /// The same with all columns, however wide.
    Wide,
    /// One JSON object.
    Json,
}

// In the order of the help. The help adds what the types say: which flags are repeatable, and which are switches.
/// Syncs between the hub and the edge until stopped by SIGTERM or SIGINT.
#[derive(FromArgs, ArgsInfo, Debug, Default, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
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

    /// UID of the sync target: any name for this edge that stays the same, such as site-7 (required)
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

    /// time between two polls in poll mode (default: 15s; at least 1s)
    #[argh(option, arg_name = "DURATION")]
    pub poll_interval: Option<String>,

    /// shortest time between two writes of one object's status to the hub (default: 1s; 0s: every change)
    #[argh(option, arg_name = "DURATION")]
    pub status_interval: Option<String>,

    /// time between two heartbeats at the hub, on the edge, and one of four on the configs (default: 1m; at least 1s; 0s: none)
    #[argh(option, arg_name = "DURATION")]
    pub heartbeat_interval: Option<String>,

    /// objects that may wait for their turn in memory; others are read again later (default: 1024; at least 32)
    #[argh(option, arg_name = "NUMBER")]
    pub queue_capacity: Option<String>,

    /// field managers whose changes at the edge are reverted, also in fields that the hub does not set (default:
    /// kubectl,kubectl-*; empty: nobody; a trailing * matches any ending)
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

    /// change nothing at either side: log what would be changed, by dry runs that both servers are asked for; the binary for
    /// edges has none
    #[argh(switch)]
    pub dry_run: bool,

    /// never sync objects of this type, such as secrets, deployments.apps or *.example.org
    #[argh(option, arg_name = "RESOURCE[.GROUP]")]
    pub deny: Vec<String>,

    /// the only namespaces to write into and to create (a trailing * matches any ending)
    #[argh(option, arg_name = "NAME")]
    pub allow_namespace: Vec<String>,

    /// namespaces never to write into, even if allowed (a trailing * matches any ending)
    #[argh(option, arg_name = "NAME")]
    pub deny_namespace: Vec<String>,

    /// file with one 'deny secrets', 'allow-namespace shop-*' or 'deny-namespace kube-*' a line, and # comments
    #[argh(option, arg_name = "FILE")]
    pub filter_file: Option<String>,

    /// let configs write into kube-system, the syncer's own namespace and its roles, and upsync the Secrets there, as
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

pub(super) fn flag(name: &str) -> Option<&'static FlagInfo<'static>> {
    let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
    let name = former.map_or(name, |(_, name)| *name);
    flags().find(|flag| flag.long == name)
}

/// Flags that every command has.
pub(super) const OF_ALL: [&str; 2] = ["--help", "--version"];

/// Reads the flags of `run`.
pub(super) fn run(args: &[String], mut klog: Klog) -> Result<Command, UsageError> {
    // The flags that count, with their values.
    let mut given: Vec<(&str, Option<&str>)> = Vec::new();
    let mut rest = args.iter();
    // The switch without a value that comes before.
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

/// The flags and values as argh parses them. They were checked before, so that it has nothing to refuse.
fn raw(given: Vec<(&str, Option<&str>)>) -> Result<RunArgs, UsageError> {
    let mut words = Vec::new();
    for (name, value) in given {
        words.push(name);
        words.extend(value);
    }
    RunArgs::from_args(&[], &words).map_err(|refusal| UsageError::new(refusal.output))
}

/// The value of a switch; without a value it is on.
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
pub(super) fn no_flag_of(known: impl IntoIterator<Item = &'static str>, arg: &str) -> String {
    let name = arg.split('=').next().unwrap_or(arg);
    if OF_ALL.contains(&name) {
        return format!("{name} takes no value");
    }
    let hint = spelling::hint(&doubled(name), known);
    format!("unknown flag {name}{hint}")
}

/// The name with two dashes, since Go's own flag package accepts one.
fn doubled(name: &str) -> String {
    format!("--{}", name.trim_start_matches('-'))
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
