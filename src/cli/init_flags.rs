//! The flags of `init`: those of kcp's init-agent, so that its manifests start this program.

use edge_syncer_init::{ConfigWorkspace, Settings};
use kube_lite::selector;
use log::LevelFilter;

use super::args::Command;
use super::role_flags::{self, Known, Line, METRICS, Raw, Wrong};
use super::usage::UsageError;
use crate::init::Init;
use crate::version;

/// The name of the command in messages.
pub(super) const INIT: &str = "edge-syncer init";

const KNOWN: Known = Known {
    command: INIT,
    options: &[
        "--kubeconfig",
        "--config-workspace",
        "--init-target-selector",
        "--leader-election-namespace",
        "--metrics-address",
        "--health-address",
        "--log-format",
    ],
    switches: &["--enable-leader-election", "--log-debug"],
};

/// Reads the flags after `init check`: those of `init`, and the format of what is printed.
pub(super) fn check(args: &[String]) -> Result<Command, UsageError> {
    let Some((format, others)) = KNOWN.of_check(args)? else {
        return Ok(Command::InitHelp);
    };
    Ok(match parse(&others)? {
        Command::InitRun(init) => Command::InitCheck(init, format),
        other => other,
    })
}

/// Reads the flags after `init`.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    match KNOWN.read(args) {
        Line::Help => Ok(Command::InitHelp),
        Line::Version => Ok(Command::Version),
        Line::Flags(raw) => checked(&raw),
    }
}

/// The settings. All that is wrong is said together; what the Go agent refuses with exit code 1 is refused so here.
fn checked(raw: &Raw) -> Result<Command, UsageError> {
    let [
        kubeconfig,
        workspace,
        target_selector,
        namespace,
        metrics,
        health,
        format,
    ] = std::array::from_fn(|at| raw.last(at));
    let (elects, debug) = (raw.is_on(0), raw.is_on(1));
    let mut wrong = Wrong::of(raw);
    let format = wrong.format(format);
    let metrics = wrong.address("--metrics-address", metrics.unwrap_or(METRICS));
    let health = wrong.address("--health-address", health.unwrap_or_default());
    let config_workspace = if let Some(workspace) = workspace.filter(|workspace| !workspace.is_empty()) {
        ConfigWorkspace::parse(workspace)
            .map_err(|why| wrong.push(format!("--config-workspace {workspace:?}: {why}")))
            .ok()
    } else {
        wrong.push("--config-workspace is missing: name the workspace with the InitTargets, such as root:org:ws");
        None
    };
    let target_selector = target_selector.filter(|text| !text.trim().is_empty());
    if let Some(text) = target_selector
        && let Err(why) = selector::check(text)
    {
        wrong.push(format!("--init-target-selector {text:?}: {why}"));
    }
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    if elects && namespace.is_none() {
        wrong.push("--leader-election-namespace is missing: --enable-leader-election needs a namespace for the Lease");
    }
    let config_workspace = match (wrong.refusal(&KNOWN), config_workspace) {
        (None, Some(workspace)) => workspace,
        (refusal, _) => return refusal.unwrap_or_else(|| Err(KNOWN.wrong("--config-workspace is missing"))),
    };
    let settings = Settings {
        source: role_flags::source(kubeconfig),
        config_workspace,
        selector: target_selector.map(str::to_owned),
        metrics,
        health,
        election: namespace.filter(|_| elects).map(str::to_owned),
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

#[cfg(test)]
mod tests {
    use kube_lite::logging::LogFormat;

    use driver::serve::ListenAddress;
    use kube_lite::access::AccessSource;

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
        let alone = "--config-workspace=root:org:conf --enable-leader-election=false --leader-election-namespace=kcp-init-agent \
                     --kubeconfig=/etc/init-agent/kcp/kubeconfig";
        assert_eq!(run(alone).settings.election, None);
        assert_eq!(settings.selector.as_deref(), Some("a=b"));
        assert_eq!(
            settings.health,
            ListenAddress::parse("--health-address", "0.0.0.0:8086")
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
            assert_eq!(check(line), Ok(Command::RoleRefused(expected.to_owned())), "{line}");
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
            let line = format!("--config-workspace=root {line}");
            assert_eq!(
                check(&line),
                Err(format!("{expected} (see edge-syncer init --help)")),
                "{line}"
            );
        }
    }

    #[test]
    fn all_that_is_wrong_is_said_together() {
        let said = check("--log-format=yaml --nothing x --init-target-selector=a=b=c").unwrap_err();
        let expected = "unknown flag --nothing; --log-format \"yaml\": must be JSON or Console; --config-workspace is missing: name \
                        the workspace with the InitTargets, such as root:org:ws; --init-target-selector \"a=b=c\": \"b=c\" is no \
                        value of a label (see edge-syncer init --help)";
        assert_eq!(said, expected);
    }
}
