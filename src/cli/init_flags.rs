//! The flags of `init`: those of kcp's init-agent, so that its manifests start this program.

use std::env;

use driver::serve::ListenAddress;
use edge_syncer_init::{ConfigWorkspace, Settings};
use kube_lite::access::{AccessSource, Flags};
use kube_lite::logging::LogFormat;
use kube_lite::{selector, spelling};
use log::LevelFilter;

use super::args::{Command, OF_ALL, no_flag_of};
use super::usage::UsageError;
use crate::init::Init;
use crate::version;

/// The name of the command in messages.
pub(super) const INIT: &str = "edge-syncer init";

const OPTIONS: [&str; 7] = [
    "--kubeconfig",
    "--config-workspace",
    "--init-target-selector",
    "--leader-election-namespace",
    "--metrics-address",
    "--health-address",
    "--log-format",
];
const SWITCHES: [&str; 2] = ["--enable-leader-election", "--log-debug"];

/// Where metrics are served unless set otherwise.
const METRICS: &str = "127.0.0.1:8085";

/// The values of the flags, the last one of each.
#[derive(Default)]
struct Raw {
    options: [Option<String>; OPTIONS.len()],
    switches: [bool; SWITCHES.len()],
}

/// Reads the flags after `init check`: those of `init`, and the format of what is printed.
pub(super) fn check(args: &[String]) -> Result<Command, UsageError> {
    let (mut format, mut others) = (LogFormat::Text, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let glued = arg.strip_prefix("-o=").or_else(|| arg.strip_prefix("--output="));
        let value = match (arg.as_str(), glued) {
            ("-h" | "--help", _) => return Ok(Command::InitHelp),
            ("-o" | "--output", _) => rest.next().map_or("", String::as_str),
            (_, Some(value)) => value,
            _ => {
                others.push(arg.to_owned());
                continue;
            }
        };
        if value != "json" {
            return Err(UsageError::new(format!("-o {value:?}: must be json")).seen_from(INIT));
        }
        format = LogFormat::Json;
    }
    Ok(match parse(&others)? {
        Command::InitRun(init) => Command::InitCheck(init, format),
        other => other,
    })
}

/// Reads the flags after `init`.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    let mut raw = Raw::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-h" | "--help" => return Ok(Command::InitHelp),
            "-V" | "--version" => return Ok(Command::Version),
            _ => {}
        }
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.as_str(), None),
        };
        if let Some(at) = OPTIONS.iter().position(|option| *option == name) {
            let missing = || UsageError::new(format!("{name} needs a value")).seen_from(INIT);
            let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(missing)?;
            raw.options[at] = Some(value.to_owned());
        } else if let Some(at) = SWITCHES.iter().position(|switch| *switch == name) {
            raw.switches[at] = switch(name, value)?;
        } else {
            let known = OPTIONS.into_iter().chain(SWITCHES).chain(OF_ALL);
            return Err(UsageError::new(no_flag_of(known, arg)).seen_from(INIT));
        }
    }
    checked(raw)
}

fn switch(name: &str, value: Option<&str>) -> Result<bool, UsageError> {
    match value {
        None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Ok(true),
        Some("false" | "0" | "f" | "F" | "FALSE" | "False") => Ok(false),
        Some(other) => Err(UsageError::new(format!("{name} {other:?}: must be true or false")).seen_from(INIT)),
    }
}

/// The settings. What the Go agent refuses with exit code 1 is refused so here.
fn checked(raw: Raw) -> Result<Command, UsageError> {
    let [
        kubeconfig,
        workspace,
        target_selector,
        namespace,
        metrics,
        health,
        format,
    ] = raw.options;
    let [elects, debug] = raw.switches;
    let format = format_of(format.as_deref().unwrap_or("JSON"))?;
    let metrics = address("--metrics-address", metrics.as_deref().unwrap_or(METRICS))?;
    let health = address("--health-address", health.as_deref().unwrap_or_default())?;
    let refused = |why: String| Ok(Command::InitRefused(why));
    let Some(workspace) = workspace.filter(|workspace| !workspace.is_empty()) else {
        return refused(
            "--config-workspace is missing: name the workspace with the InitTargets, such as root:org:ws".to_owned(),
        );
    };
    let config_workspace = match ConfigWorkspace::parse(&workspace) {
        Ok(found) => found,
        Err(why) => return refused(format!("--config-workspace {workspace:?}: {why}")),
    };
    let target_selector = target_selector.filter(|text| !text.trim().is_empty());
    if let Some(text) = &target_selector
        && let Err(why) = selector::check(text)
    {
        return refused(format!("--init-target-selector {text:?}: {why}"));
    }
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    if elects && namespace.is_none() {
        return refused(
            "--leader-election-namespace is missing: --enable-leader-election needs a namespace for the Lease"
                .to_owned(),
        );
    }
    let settings = Settings {
        source: source(kubeconfig),
        config_workspace,
        selector: target_selector,
        metrics,
        health,
        election: namespace.filter(|_| elects),
        host_name: super::host_name(),
        user_agent: version::user_agent(),
        version: version::VERSION,
    };
    Ok(Command::InitRun(Box::new(Init {
        settings,
        verbosity: if debug { LevelFilter::Debug } else { LevelFilter::Info },
        format,
    })))
}

fn format_of(text: &str) -> Result<LogFormat, UsageError> {
    if text.eq_ignore_ascii_case("JSON") {
        Ok(LogFormat::Json)
    } else if text.eq_ignore_ascii_case("Console") {
        Ok(LogFormat::Text)
    } else {
        let hint = spelling::hint(text, ["JSON", "Console"]);
        Err(UsageError::new(format!("--log-format {text:?}: must be JSON or Console{hint}")).seen_from(INIT))
    }
}

/// Where to listen; nowhere for an empty text and for 0.
fn address(flag: &'static str, text: &str) -> Result<Option<ListenAddress>, UsageError> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let wrong = || {
        let why = "must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none";
        UsageError::new(format!("{flag} {text:?}: {why}")).seen_from(INIT)
    };
    ListenAddress::parse(text)
        .map(|found| Some(found.of_flag(flag)))
        .ok_or_else(wrong)
}

/// The kubeconfig that is named, or that of the environment, or the pod's account, or that of the user's home, in the order
/// of client-go.
fn source(kubeconfig: Option<String>) -> AccessSource {
    let flags = Flags {
        kubeconfig: "--kubeconfig",
        context: "--kubeconfig",
    };
    let at = |path: String| AccessSource::Kubeconfig {
        path: path.into(),
        context: None,
        flags,
    };
    let named = kubeconfig
        .or_else(|| env::var("KUBECONFIG").ok())
        .filter(|path| !path.is_empty());
    if let Some(path) = named {
        return at(path);
    }
    let home = env::var("HOME").unwrap_or_default();
    match env::var_os("KUBERNETES_SERVICE_HOST") {
        Some(_) => AccessSource::InCluster { flag: "--kubeconfig" },
        None => at(format!("{home}/.kube/config")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    fn run(line: &str) -> Init {
        match check(line) {
            Ok(Command::InitRun(init)) => *init,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_helm_charts_arguments_are_taken() {
        let init = run(
            "--config-workspace=root:org:conf --enable-leader-election=true --leader-election-namespace=kcp-init-agent \
                        --kubeconfig=/etc/init-agent/kcp/kubeconfig --init-target-selector=a=b --health-address=0.0.0.0:8086 \
                        --log-format=console --log-debug",
        );
        let settings = init.settings;
        assert_eq!(settings.election.as_deref(), Some("kcp-init-agent"));
        assert_eq!(settings.selector.as_deref(), Some("a=b"));
        assert_eq!(
            settings.health,
            ListenAddress::parse("0.0.0.0:8086").map(|it| it.of_flag("--health-address"))
        );
        assert_eq!((init.verbosity, init.format), (LevelFilter::Debug, LogFormat::Text));
        assert!(matches!(settings.source, AccessSource::Kubeconfig { path, .. } if path.ends_with("kubeconfig")));
    }

    #[test]
    fn what_is_not_given_has_the_agents_defaults() {
        let init = run("--kubeconfig k --config-workspace root --metrics-address 0 --enable-leader-election=false");
        assert_eq!((init.settings.metrics, init.settings.health), (None, None));
        assert_eq!((init.settings.election, init.settings.selector), (None, None));
        assert_eq!((init.verbosity, init.format), (LevelFilter::Info, LogFormat::Json));
        let metrics = run("--kubeconfig k --config-workspace root").settings.metrics;
        assert_eq!(metrics.map(|it| it.to_string()).as_deref(), Some(METRICS));
    }

    #[test]
    fn what_the_go_agent_refuses_with_1_is_refused_so() {
        for (line, expected) in [
            (
                "--kubeconfig=k",
                "--config-workspace is missing: name the workspace with the InitTargets, such as root:org:ws",
            ),
            (
                "--config-workspace=Root",
                "--config-workspace \"Root\": it must be the path of a workspace, such as root:org:ws, or a cluster id",
            ),
            (
                "--config-workspace=root --init-target-selector=a=b=c",
                "--init-target-selector \"a=b=c\": \"b=c\" is no value of a label",
            ),
            (
                "--config-workspace=root --enable-leader-election",
                "--leader-election-namespace is missing: --enable-leader-election needs a namespace for the Lease",
            ),
        ] {
            assert_eq!(check(line), Ok(Command::InitRefused(expected.to_owned())), "{line}");
        }
    }

    #[test]
    fn other_mistakes_are_wrong_usage() {
        for (line, expected) in [
            (
                "--config-workspac=root",
                "unknown flag --config-workspac, did you mean --config-workspace?",
            ),
            ("--log-format=yaml", "--log-format \"yaml\": must be JSON or Console"),
            ("--log-debug=maybe", "--log-debug \"maybe\": must be true or false"),
            ("--kubeconfig", "--kubeconfig needs a value"),
            (
                "--metrics-address=x",
                "--metrics-address \"x\": must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none",
            ),
        ] {
            assert_eq!(
                check(line),
                Err(format!("{expected} (see edge-syncer init --help)")),
                "{line}"
            );
        }
    }
}
