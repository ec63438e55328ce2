//! The command line: arguments and environment in, checked settings, exit codes and messages out.
//!
//! Promises: nothing else in the program reads arguments or our environment variables; every failure is one line on
//! stderr and one of three exit codes; nothing here panics.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process;

use driver::logger::{self, Targets};
use driver::systemd::Asked;
use kube_lite::access::AccessSource;
use kube_lite::claims::Claims;
use kube_lite::files;
use kube_lite::logging::log_line;
#[cfg(feature = "admin")]
use kube_lite::spelling;
use log::LevelFilter;

#[cfg(feature = "init")]
use crate::init::Init;
use crate::plan::{Bounds, Filter, is_label};
use crate::version;
use args::{Command, RunArgs};
use klog::Klog;
pub use kube_lite::logging::LogFormat;
use usage::NAME;

pub use args::RbacOptions;
#[cfg(feature = "admin")]
pub use args::{BundleOptions, DiffOptions, StatusOptions, StatusOutput};
pub use exit::*;
#[cfg(feature = "admin")]
pub use screen::Screen;
pub use settings::Settings;
pub use usage::UsageError;

mod args;
mod asks;
mod command;
mod duration;
mod exit;
#[cfg(feature = "admin")]
mod gen_args;
#[cfg(feature = "admin")]
mod gen_settings;
mod help;
#[cfg(feature = "init")]
mod init_args;
#[cfg(feature = "init")]
mod init_flags;
mod klog;
#[cfg(feature = "admin")]
pub mod pages;
#[cfg(feature = "admin")]
mod prep_args;
#[cfg(feature = "publish")]
mod publish_args;
#[cfg(feature = "publish")]
mod publish_flags;
#[cfg(any(feature = "init", feature = "publish"))]
mod role_flags;
#[cfg(feature = "admin")]
mod screen;
mod settings;
mod usage;

/// The name of the Go syncer's executable: existing manifests call it with the flags of `run` and nothing else.
const GO_NAME: &str = "syncer";

/// The names that make the program a plugin of kubectl: `kubectl kubestellar syncer-gen` and `prep-for-syncer`.
#[cfg(feature = "admin")]
const PLUGIN_NAME: &str = "kubectl-kubestellar-syncer_gen";
#[cfg(feature = "admin")]
const PREP_PLUGIN_NAME: &str = "kubectl-kubestellar-prep_for_syncer";

/// The name of kcp's init-agent, of which the role `init` takes the place.
#[cfg(feature = "init")]
const INIT_NAME: &str = "init-agent";

/// The name of kcp's api-syncagent, of which the role `publish` takes the place.
#[cfg(feature = "publish")]
const PUBLISH_NAME: &str = "api-syncagent";

/// The environment variable of the log filter.
const LOG: &str = "EDGE_SYNCER_LOG";

/// Log filters name the modules of the program as they were before two of its parts became crates.
static TARGETS: Targets = Targets {
    program: "edge_syncer",
    crates: &[("kube_lite", "edge_syncer::cluster"), ("driver", "edge_syncer")],
};

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// Run the syncer.
    Run(Box<Settings>),
    /// Register an edge at a hub.
    #[cfg(feature = "admin")]
    Gen(Box<crate::join::Settings>),
    /// Check whether that would work, and print what was found in this format.
    Check(Box<Settings>, LogFormat),
    /// Show what the syncer would change.
    #[cfg(feature = "admin")]
    Diff(Box<Settings>, DiffOptions),
    /// Write an archive for people who help.
    #[cfg(feature = "admin")]
    Bundle(Box<Settings>, BundleOptions),
    /// Say what is synced, and what is not.
    #[cfg(feature = "admin")]
    Status(Box<Settings>, StatusOptions),
    /// Print roles.
    Rbac(Box<Settings>, RbacOptions),
    /// Run the role `init`.
    #[cfg(feature = "init")]
    Init(Box<Init>),
    /// Check whether that would work, and print what was found in this format.
    #[cfg(feature = "init")]
    InitCheck(Box<Init>, LogFormat),
    /// Print this line on stderr and exit with 1.
    #[cfg(any(feature = "init", feature = "publish"))]
    Refuse(String),
    /// Print the objects of an InitTarget.
    #[cfg(feature = "init")]
    Render(Box<crate::init::Render>),
    /// Check whether the role `publish` would work, and print what was found in this format.
    #[cfg(feature = "publish")]
    PublishCheck(Box<crate::publish::Publish>, LogFormat),
    /// Run the role `publish`.
    #[cfg(feature = "publish")]
    Publish(Box<crate::publish::Publish>),
    /// Print the schema of a PublishedResource, and the copy of an object.
    #[cfg(feature = "publish")]
    PublishRender(Box<crate::publish::Render>),
    /// Print this text on stdout and exit with 0.
    Print(String),
    /// Print this text on stderr and exit with 2: no command was given.
    Help(&'static str),
}

/// Reads a command line, program name first.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_default();
    let is_called = |by: &str| Path::new(&program).file_name().is_some_and(|name| name == by);
    let is_go_name = is_called(GO_NAME);
    #[cfg(feature = "admin")]
    if is_called(PLUGIN_NAME) {
        return words(args).and_then(|words| generate(&words, Klog::default()));
    }
    #[cfg(feature = "admin")]
    if is_called(PREP_PLUGIN_NAME) {
        return words(args).and_then(|words| prepare(&words, Klog::default()));
    }
    #[cfg(feature = "init")]
    if is_called(INIT_NAME) {
        let as_command = |words: Vec<String>| [vec!["init".to_owned()], words].concat();
        return words(args).and_then(|words| invocation(as_command(words), false));
    }
    #[cfg(feature = "publish")]
    if is_called(PUBLISH_NAME) {
        let as_command = |words: Vec<String>| [vec!["publish".to_owned()], words].concat();
        return words(args).and_then(|words| invocation(as_command(words), false));
    }
    let found = words(args).and_then(|words| invocation(words, is_go_name));
    found.map_err(|error| if is_go_name { error.seen_from(GO_NAME) } else { error })
}

/// Called by its Go name, the program takes the flags of `run` without that word, as existing manifests have them.
fn invocation(mut words: Vec<String>, is_go_name: bool) -> Result<Invocation, UsageError> {
    let is_command = matches!(
        words.first().map(String::as_str),
        Some("run" | "check" | "diff" | "status" | "bundle" | "gen" | "prep" | "version" | "completion" | "man")
    );
    if is_go_name && !is_command {
        words.insert(0, "run".to_owned());
    }
    Ok(match command::parse(&words)? {
        Command::Nothing => Invocation::Help(help::PROGRAM),
        Command::Help => Invocation::Print(help::PROGRAM.to_owned()),
        Command::RunHelp => Invocation::Print(help::run()),
        Command::Version => version_line(),
        Command::Build => Invocation::Print(version::text(NAME)),
        Command::CheckHelp => Invocation::Print(help::check()),
        Command::RbacHelp => Invocation::Print(help::rbac()),
        Command::Run(raw, klog) => Invocation::Run(Box::new(settings(*raw, klog)?)),
        Command::Check(raw, klog, format) => {
            let settings = settings(*raw, klog).map_err(|error| error.seen_from(asks::CHECK))?;
            Invocation::Check(Box::new(settings), format)
        }
        #[cfg(feature = "admin")]
        Command::DiffHelp => Invocation::Print(help::diff()),
        #[cfg(feature = "admin")]
        Command::Diff(raw, klog, options) => {
            let settings = settings(*raw, klog).map_err(|error| error.seen_from(asks::DIFF))?;
            Invocation::Diff(Box::new(settings), options)
        }
        #[cfg(feature = "admin")]
        Command::BundleHelp => Invocation::Print(help::bundle()),
        #[cfg(feature = "admin")]
        Command::Bundle(raw, klog, options) => {
            let settings = settings(*raw, klog).map_err(|error| error.seen_from(asks::BUNDLE))?;
            Invocation::Bundle(Box::new(settings), options)
        }
        #[cfg(feature = "admin")]
        Command::StatusHelp => Invocation::Print(help::status()),
        #[cfg(feature = "admin")]
        Command::Status(raw, klog, options) => {
            let settings = settings(*raw, klog).map_err(|error| error.seen_from(asks::STATUS))?;
            Invocation::Status(Box::new(settings), options)
        }
        Command::Rbac(raw, klog, options) => {
            let settings = settings(*raw, klog).map_err(|error| error.seen_from(asks::RBAC))?;
            Invocation::Rbac(Box::new(settings), options)
        }
        #[cfg(feature = "init")]
        Command::InitHelp => Invocation::Print(help::INIT.to_owned()),
        #[cfg(feature = "init")]
        Command::InitRun(init) => Invocation::Init(init),
        #[cfg(feature = "init")]
        Command::InitCheck(init, format) => Invocation::InitCheck(init, format),
        #[cfg(any(feature = "init", feature = "publish"))]
        Command::RoleRefused(why) => Invocation::Refuse(why),
        #[cfg(feature = "init")]
        Command::RenderHelp => Invocation::Print(help::RENDER.to_owned()),
        #[cfg(feature = "init")]
        Command::Render(settings) => Invocation::Render(settings),
        #[cfg(feature = "publish")]
        Command::PublishCheck(publish, format) => Invocation::PublishCheck(publish, format),
        #[cfg(feature = "publish")]
        Command::PublishRun(publish) => Invocation::Publish(publish),
        #[cfg(feature = "publish")]
        Command::PublishHelp => Invocation::Print(help::PUBLISH.to_owned()),
        #[cfg(feature = "publish")]
        Command::PublishRenderHelp => Invocation::Print(help::PUBLISH_RENDER.to_owned()),
        #[cfg(feature = "publish")]
        Command::PublishRender(settings) => Invocation::PublishRender(settings),
        #[cfg(feature = "admin")]
        Command::Gen(words, klog) => return generate(&words, klog),
        #[cfg(feature = "admin")]
        Command::GenHelp => Invocation::Print(help::generate()),
        #[cfg(feature = "admin")]
        Command::Prep(words, klog) => return prepare(&words, klog),
        #[cfg(feature = "admin")]
        Command::PrepHelp => Invocation::Print(help::prepare()),
        #[cfg(feature = "admin")]
        Command::Completion(shell) => Invocation::Print(pages::completion(shell)),
        #[cfg(feature = "admin")]
        Command::Manual => Invocation::Print(pages::manual()),
    })
}

fn version_line() -> Invocation {
    Invocation::Print(format!("{NAME} {}\n", version::VERSION))
}

/// What the words after `gen` ask for.
#[cfg(feature = "admin")]
fn generate(words: &[String], klog: Klog) -> Result<Invocation, UsageError> {
    // A wrong command line whose first word is nearly that of another command is probably one of that.
    let first = words.first().map(String::as_str).unwrap_or_default();
    let hint = spelling::nearest(first, ["rbac"]).map_or("", |_| "; did you mean edge-syncer gen rbac?");
    register(words, klog).map_err(|error| error.hinting(hint))
}

/// What they ask for if a registration is meant.
#[cfg(feature = "admin")]
fn register(words: &[String], klog: Klog) -> Result<Invocation, UsageError> {
    Ok(match gen_args::parse(words, klog)? {
        gen_args::Gen::Help => Invocation::Print(help::generate()),
        gen_args::Gen::Version => version_line(),
        gen_args::Gen::Do(name, raw) => Invocation::Gen(Box::new(gen_settings::check(name, *raw)?)),
    })
}

/// What the words after `prep` ask for.
#[cfg(feature = "admin")]
fn prepare(words: &[String], klog: Klog) -> Result<Invocation, UsageError> {
    Ok(match prep_args::parse(words, klog)? {
        prep_args::Prep::Help => Invocation::Print(help::prepare()),
        prep_args::Prep::Version => version_line(),
        prep_args::Prep::Do(settings) => Invocation::Gen(settings),
    })
}

/// Checked settings from the flags, files and the environment.
fn settings(raw: RunArgs, klog: Klog) -> Result<Settings, UsageError> {
    let (filter_file, allow_system) = (raw.filter_file.clone(), raw.allow_system);
    let mut settings = Settings::check(raw, klog)?;
    if let Some(path) = filter_file {
        read_filter(&path, &mut settings.filter)?;
    }
    if let Some(path) = settings.kept_in_file() {
        check_place(&path)?;
    }
    let namespace = set("NAMESPACE");
    if let Some(name) = namespace.as_deref().filter(|name| !is_label(name)) {
        return Err(UsageError::new(format!(
            "NAMESPACE={name:?}: is no name of a namespace"
        )));
    }
    settings.own_namespace = namespace.or_else(|| pod_namespace(&settings.edge));
    if !allow_system {
        let (namespace, account) = (settings.own_namespace.as_deref(), pod_account(&settings.edge));
        settings.filter.keep_out_of(Bounds::new(namespace, account.as_deref()));
    }
    settings.host_name = host_name();
    settings.service_manager = Asked::from(|name| env::var_os(name), process::id());
    settings.renaming = set("ENABLE_DENATURING").as_deref() != Some("false");
    Ok(settings)
}

/// A file of renewed credentials is written days later, when nobody watches: what can be found to be wrong is reported
/// at start.
fn check_place(path: &Path) -> Result<(), UsageError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = if path.is_dir() {
        "it is a folder"
    } else if folder.is_some_and(|folder| !folder.is_dir()) {
        "its folder is not there"
    } else {
        return Ok(());
    };
    Err(UsageError::new(format!(
        "--credentials-file {:?}: {why}",
        path.display().to_string()
    )))
}

/// Adds the rules of a filter file. A file that cannot be read is an error, and so is an empty path: syncing without
/// the bounds that were asked for is worse than not syncing.
fn read_filter(path: &str, filter: &mut Filter) -> Result<(), UsageError> {
    let wrong = |why: String| UsageError::new(format!("--filter-file {why}"));
    let text = files::read_text(path).map_err(|error| wrong(format!("{path:?}: cannot be read: {error}")))?;
    filter.add_file(path, &text).map_err(|error| wrong(error.to_string()))
}

fn words(args: impl Iterator<Item = OsString>) -> Result<Vec<String>, UsageError> {
    args.map(|arg| {
        let word = arg.into_string();
        word.map_err(|arg| UsageError::new(format!("{}: is not UTF-8", arg.display())))
    })
    .collect()
}

/// The value of an environment variable, if it has one.
fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The namespace of the pod that this process runs in, if the edge is the cluster of that pod.
fn pod_namespace(edge: &AccessSource) -> Option<String> {
    let file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    let name = files::read_text(file)
        .ok()
        .filter(|_| matches!(edge, AccessSource::InCluster { .. }))?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The service account that this process is at the edge, if the edge is the cluster of its pod.
fn pod_account(edge: &AccessSource) -> Option<String> {
    let file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let token = files::read_text(file)
        .ok()
        .filter(|_| matches!(edge, AccessSource::InCluster { .. }))?;
    Some(Claims::of(&token)?.account()?.name.to_string())
}

/// The name of this machine or pod: from the variable that container runtimes set, or from the kernel.
fn host_name() -> String {
    let of_kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = set("HOSTNAME").or_else(of_kernel).unwrap_or_default();
    match name.trim() {
        "" => NAME.to_owned(),
        name => name.to_owned(),
    }
}

/// Sets up the log for these settings, and logs which flags have no effect.
pub fn start_log(settings: &Settings) -> Result<(), UsageError> {
    log_as(settings.verbosity, settings.log_format)?;
    if !settings.ignored_flags.is_empty() {
        let flags = settings.ignored_flags.join(",");
        log_line!(Debug, FlagsIgnored, "some flags have no effect", flags = flags);
    }
    Ok(())
}

/// Sets up the log. An invalid filter in `EDGE_SYNCER_LOG` is an error; `RUST_LOG` may be meant for other programs, and is
/// then ignored.
pub fn log_as(verbosity: LevelFilter, format: LogFormat) -> Result<(), UsageError> {
    let ours = set(LOG);
    if let Some(filter) = &ours {
        logger::check(filter, TARGETS.program).map_err(|why| UsageError::new(format!("{LOG} {filter:?}: {why}")))?;
    }
    let others = set("RUST_LOG").filter(|_| ours.is_none());
    let unusable = others
        .as_deref()
        .and_then(|filter| logger::check(filter, TARGETS.program).err());
    let filter = ours.or(others).filter(|_| unusable.is_none());
    logger::init(&TARGETS, filter.as_deref(), verbosity, format);
    if let Some(why) = unusable {
        log_line!(
            Warn,
            LogFilterInvalid,
            "RUST_LOG cannot be used, the log is as without it",
            error = why
        );
    }
    Ok(())
}

/// Sets up the log of a command that prints what it finds: warnings alone, unless more was asked for.
#[cfg(feature = "admin")]
pub fn start_quiet_log(settings: &Settings) -> Result<(), UsageError> {
    let is_default = settings.verbosity == LevelFilter::Info;
    let level = if is_default {
        LevelFilter::Warn
    } else {
        settings.verbosity
    };
    log_as(level, settings.log_format)
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
