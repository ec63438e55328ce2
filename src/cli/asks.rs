//! The command lines of the commands that ask and change nothing: `check`, `diff`, `status`, `bundle` and `gen rbac`. All
//! take the flags of `run`, and a few of their own, which are removed from the arguments first.

#[cfg(feature = "admin")]
use std::time::Duration;

use kube_lite::logging::LogFormat;
use kube_lite::spelling;

#[cfg(feature = "admin")]
use super::args::{BundleOptions, DiffOptions, StatusOptions, StatusOutput};
use super::args::{Command, RbacOptions, run};
#[cfg(feature = "admin")]
use super::duration;
use super::klog::Klog;
use super::usage::UsageError;
use crate::side::Side;

/// The names of these commands in messages.
pub(super) const CHECK: &str = "edge-syncer check";
#[cfg(feature = "admin")]
pub(super) const DIFF: &str = "edge-syncer diff";
#[cfg(feature = "admin")]
pub(super) const BUNDLE: &str = "edge-syncer bundle";
#[cfg(feature = "admin")]
pub(super) const STATUS: &str = "edge-syncer status";
pub(super) const RBAC: &str = "edge-syncer gen rbac";

/// Five heartbeats that did not come.
#[cfg(feature = "admin")]
const DEFAULT_STALE_AFTER: Duration = Duration::from_secs(300);

/// Reads the arguments after `check`.
pub(super) fn check(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    let mut rest = args.to_vec();
    let output = take_value(&mut rest, &["-o", "--output"]).map_err(|error| error.seen_from(CHECK))?;
    let format = match output.as_deref() {
        None => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            let hint = spelling::hint(other, ["json"]);
            return Err(UsageError::new(format!("-o {other:?}: must be json{hint}")).seen_from(CHECK));
        }
    };
    match run(&rest, klog).map_err(|error| error.seen_from(CHECK))? {
        Command::Run(raw, klog) => Ok(Command::Check(raw, klog, format)),
        Command::RunHelp => Ok(Command::CheckHelp),
        other => Ok(other),
    }
}

/// Reads the arguments after `diff`.
#[cfg(feature = "admin")]
pub(super) fn diff(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    let wrong = |error: UsageError| error.seen_from(DIFF);
    let mut rest = args.to_vec();
    let config = take_value(&mut rest, &["--config"]).map_err(wrong)?;
    let object = take_value(&mut rest, &["--object"]).map_err(wrong)?;
    let (mut raw, klog) = match run(&rest, klog).map_err(wrong)? {
        Command::Run(raw, klog) => (raw, klog),
        Command::RunHelp => return Ok(Command::DiffHelp),
        other => return Ok(other),
    };
    raw.dry_run = true;
    let config = config_of(config).map_err(wrong)?;
    let object = object.as_deref().map(object_of).transpose().map_err(wrong)?;
    Ok(Command::Diff(raw, klog, DiffOptions { config, object }))
}

/// Reads the arguments after `bundle`.
#[cfg(feature = "admin")]
pub(super) fn bundle(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    let wrong = |error: UsageError| error.seen_from(BUNDLE);
    let mut rest = args.to_vec();
    let address = take_value(&mut rest, &["--from-address"]).map_err(wrong)?;
    let output = take_value(&mut rest, &["-o", "--output"]).map_err(wrong)?;
    let (raw, klog) = match run(&rest, klog).map_err(wrong)? {
        Command::Run(raw, klog) => (raw, klog),
        Command::RunHelp => return Ok(Command::BundleHelp),
        other => return Ok(other),
    };
    for (flag, value) in [("--from-address", &address), ("-o", &output)] {
        if value.as_deref() == Some("") {
            return Err(wrong(UsageError::new(format!("{flag} \"\": must not be empty"))));
        }
    }
    let options = BundleOptions {
        address: address.unwrap_or_default(),
        output: output.unwrap_or_default(),
        flags: args.to_vec(),
    };
    Ok(Command::Bundle(raw, klog, options))
}

/// Reads the arguments after `status`.
#[cfg(feature = "admin")]
pub(super) fn status(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    status_of(args, klog).map_err(|error| error.seen_from(STATUS))
}

#[cfg(feature = "admin")]
fn status_of(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    let mut rest = args.to_vec();
    let config = take_value(&mut rest, &["--config"])?;
    let object = take_value(&mut rest, &["--object"])?;
    let output = take_value(&mut rest, &["-o", "--output"])?;
    let stale_after = take_value(&mut rest, &["--stale-after"])?;
    let (mut raw, klog) = match run(&rest, klog)? {
        Command::Run(raw, klog) => (raw, klog),
        Command::RunHelp => return Ok(Command::StatusHelp),
        other => return Ok(other),
    };
    let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    let options = StatusOptions {
        config: config_of(config)?,
        object: object.as_deref().map(object_of).transpose()?,
        output: output_of(output.as_deref())?,
        stale_after: stale_after_of(stale_after.as_deref())?,
        sync_target: given(&raw.sync_target_uid),
        asks_edge: given(&raw.to_kubeconfig).is_some(),
    };
    // The hub knows all that follow its configs.
    if options.sync_target.is_none() {
        raw.sync_target_uid = Some("all".to_owned());
    }
    Ok(Command::Status(raw, klog, options))
}

#[cfg(feature = "admin")]
fn output_of(text: Option<&str>) -> Result<StatusOutput, UsageError> {
    match text {
        None => Ok(StatusOutput::Table),
        Some("wide") => Ok(StatusOutput::Wide),
        Some("json") => Ok(StatusOutput::Json),
        Some(other) => {
            let hint = spelling::hint(other, ["wide", "json"]);
            Err(UsageError::new(format!("-o {other:?}: must be wide or json{hint}")))
        }
    }
}

#[cfg(feature = "admin")]
fn stale_after_of(text: Option<&str>) -> Result<Duration, UsageError> {
    let Some(text) = text else {
        return Ok(DEFAULT_STALE_AFTER);
    };
    let found = duration::parse(text).filter(|found| !found.is_zero());
    found.ok_or_else(|| {
        let allowed = "must be a duration above 0s, such as 5m or 1h30m";
        UsageError::new(format!("--stale-after {text:?}: {allowed}"))
    })
}

#[cfg(feature = "admin")]
fn config_of(name: Option<String>) -> Result<Option<String>, UsageError> {
    if name.as_deref() == Some("") {
        return Err(UsageError::new("--config \"\": must be the name of a config"));
    }
    Ok(name)
}

/// Kind, namespace and name, as all lines have them.
#[cfg(feature = "admin")]
fn object_of(text: &str) -> Result<[String; 3], UsageError> {
    match *text.split('/').collect::<Vec<_>>() {
        [kind, namespace, name] if !kind.is_empty() && !name.is_empty() => {
            Ok([kind, namespace, name].map(str::to_owned))
        }
        _ => Err(UsageError::new(format!(
            "--object {text:?}: must be Kind/namespace/name, such as ConfigMap/shop/prices, or Kind//name, such as Namespace//shop"
        ))),
    }
}

/// Reads the arguments after `gen rbac`.
pub(super) fn rbac(args: &[String], klog: Klog) -> Result<Command, UsageError> {
    let mut rest = args.to_vec();
    let side = take_value(&mut rest, &["--side"]).map_err(|error| error.seen_from(RBAC))?;
    let before = rest.len();
    rest.retain(|arg| arg != "--allow-escalation");
    let allow_escalation = rest.len() < before;
    let (raw, klog) = match run(&rest, klog).map_err(|error| error.seen_from(RBAC))? {
        Command::Run(raw, klog) => (raw, klog),
        Command::RunHelp => return Ok(Command::RbacHelp),
        other => return Ok(other),
    };
    let side = match side.as_deref() {
        Some("hub") => Side::Hub,
        Some("edge") => Side::Edge,
        other => {
            let given = other.map_or_else(|| "is missing".to_owned(), |other| format!("{other:?}"));
            return Err(UsageError::new(format!("--side {given}: must be hub or edge")).seen_from(RBAC));
        }
    };
    let options = RbacOptions { side, allow_escalation };
    Ok(Command::Rbac(raw, klog, options))
}

/// Takes a flag with its value out of the arguments. The last one counts.
pub(super) fn take_value(args: &mut Vec<String>, names: &[&str]) -> Result<Option<String>, UsageError> {
    let mut found = None;
    let mut at = 0;
    while at < args.len() {
        let (name, value) = match args[at].split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*args[at], None),
        };
        if !names.contains(&name) {
            at += 1;
            continue;
        }
        let missing = UsageError::new(format!("{name} needs a value"));
        args.remove(at);
        found = Some(match value {
            Some(value) => value,
            None if at < args.len() => args.remove(at),
            None => return Err(missing),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn their_own_flags_stand_anywhere_among_those_of_run() {
        let flags = "--from-kubeconfig=a --sync-target-uid=b";
        let expected = run(&words(flags), Klog::default());
        let Ok(Command::Run(raw, _)) = expected else {
            panic!("{expected:?}");
        };
        for (line, side, allow_escalation) in [
            (format!("--side hub {flags}"), Side::Hub, false),
            (format!("{flags} --side=edge"), Side::Edge, false),
            (
                format!("--side hub --allow-escalation {flags} --side=edge"),
                Side::Edge,
                true,
            ),
        ] {
            let options = RbacOptions { side, allow_escalation };
            let expected = Command::Rbac(raw.clone(), Klog::default(), options);
            assert_eq!(rbac(&words(&line), Klog::default()), Ok(expected), "{line}");
        }
        for (line, format) in [
            (flags.to_owned(), LogFormat::Text),
            (format!("-o json {flags}"), LogFormat::Json),
            (format!("{flags} --output=json"), LogFormat::Json),
        ] {
            let expected = Command::Check(raw.clone(), Klog::default(), format);
            assert_eq!(check(&words(&line), Klog::default()), Ok(expected), "{line}");
        }
    }

    #[cfg(feature = "admin")]
    #[test]
    fn a_status_needs_the_hub_alone() {
        let all = StatusOptions {
            stale_after: Duration::from_secs(300),
            ..StatusOptions::default()
        };
        let with = |change: fn(&mut StatusOptions)| {
            let mut options = all.clone();
            change(&mut options);
            options
        };
        for (line, expected) in [
            ("", all.clone()),
            ("-o wide", with(|of| of.output = StatusOutput::Wide)),
            ("--output=json", with(|of| of.output = StatusOutput::Json)),
            ("--config demo", with(|of| of.config = Some("demo".to_owned()))),
            (
                "--stale-after=1h",
                with(|of| of.stale_after = Duration::from_secs(3600)),
            ),
            ("--to-kubeconfig=e", with(|of| of.asks_edge = true)),
            ("--sync-target-uid=u", with(|of| of.sync_target = Some("u".to_owned()))),
            (
                "--object ConfigMap/shop/a",
                with(|of| of.object = Some(["ConfigMap", "shop", "a"].map(str::to_owned))),
            ),
        ] {
            match status(&words(&format!("--from-kubeconfig=a {line}")), Klog::default()) {
                Ok(Command::Status(_, _, options)) => assert_eq!(options, expected, "{line}"),
                other => panic!("{line}: {other:?}"),
            }
        }
        for (line, expected) in [
            ("-o yaml", "-o \"yaml\": must be wide or json"),
            ("-o jsn", "-o \"jsn\": must be wide or json, did you mean json?"),
            (
                "--object a/b",
                "--object \"a/b\": must be Kind/namespace/name, such as ConfigMap/shop/prices, or Kind//name, such as Namespace//shop",
            ),
            (
                "--stale-after 0s",
                "--stale-after \"0s\": must be a duration above 0s, such as 5m or 1h30m",
            ),
            (
                "--stale-after 5",
                "--stale-after \"5\": must be a duration above 0s, such as 5m or 1h30m",
            ),
            ("--config=", "--config \"\": must be the name of a config"),
            ("--nonsense", "unknown flag --nonsense"),
        ] {
            let error = status(&words(line), Klog::default()).unwrap_err().to_string();
            assert_eq!(error, format!("{expected} (see edge-syncer status --help)"));
        }
        assert_eq!(status(&words("-h"), Klog::default()), Ok(Command::StatusHelp));
    }

    #[cfg(feature = "admin")]
    #[test]
    fn a_diff_is_of_all_or_of_what_is_named() {
        let flags = "--from-kubeconfig=a --sync-target-uid=b";
        let dry = run(&words(&format!("{flags} --dry-run")), Klog::default());
        let Ok(Command::Run(raw, _)) = dry else {
            panic!("{dry:?}");
        };
        let object = |parts: [&str; 3]| Some(parts.map(str::to_owned));
        for (line, config, expected) in [
            ("", None, None),
            ("--config demo", Some("demo"), None),
            ("--object=ConfigMap/shop/a", None, object(["ConfigMap", "shop", "a"])),
            (
                "--object Namespace//shop --config=x",
                Some("x"),
                object(["Namespace", "", "shop"]),
            ),
        ] {
            let options = DiffOptions {
                config: config.map(str::to_owned),
                object: expected,
            };
            let expected = Command::Diff(raw.clone(), Klog::default(), options);
            assert_eq!(
                diff(&words(&format!("{flags} {line}")), Klog::default()),
                Ok(expected),
                "{line}"
            );
        }
        for wrong in ["x", "ConfigMap/a", "/shop/a", "ConfigMap/shop/", "a/b/c/d"] {
            let error = diff(&words(&format!("{flags} --object {wrong}")), Klog::default()).unwrap_err();
            let begin = format!("--object {wrong:?}: must be Kind/namespace/name, such as ");
            assert!(error.to_string().starts_with(&begin), "{error}");
        }
        assert_eq!(diff(&words("--help"), Klog::default()), Ok(Command::DiffHelp));
    }

    #[cfg(feature = "admin")]
    #[test]
    fn a_bundle_keeps_the_flags_as_they_were_given() {
        let flags = "--from-kubeconfig=a --sync-target-uid=b";
        let Ok(Command::Run(raw, _)) = run(&words(flags), Klog::default()) else {
            panic!("{flags}");
        };
        for (line, address, output) in [
            (flags.to_owned(), "", ""),
            (format!("--from-address :8080 {flags} -o x.tar.gz"), ":8080", "x.tar.gz"),
            (format!("{flags} --output=- --from-address=h:1"), "h:1", "-"),
        ] {
            let options = BundleOptions {
                address: address.into(),
                output: output.into(),
                flags: words(&line),
            };
            let expected = Command::Bundle(raw.clone(), Klog::default(), options);
            assert_eq!(bundle(&words(&line), Klog::default()), Ok(expected), "{line}");
        }
        let wrong = bundle(&words(&format!("{flags} -o=")), Klog::default()).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "-o \"\": must not be empty (see edge-syncer bundle --help)"
        );
        assert_eq!(bundle(&words("-h"), Klog::default()), Ok(Command::BundleHelp));
    }

    #[test]
    fn what_is_wrong_with_them_is_one_line() {
        let rbac = |line: &str| rbac(&words(line), Klog::default()).unwrap_err().to_string();
        let check = |line: &str| check(&words(line), Klog::default()).unwrap_err().to_string();
        for (found, expected) in [
            (
                rbac(""),
                "--side is missing: must be hub or edge (see edge-syncer gen rbac --help)",
            ),
            (rbac("--side"), "--side needs a value (see edge-syncer gen rbac --help)"),
            (
                rbac("--side both"),
                "--side \"both\": must be hub or edge (see edge-syncer gen rbac --help)",
            ),
            (
                rbac("--side hub --nonsense"),
                "unknown flag --nonsense (see edge-syncer gen rbac --help)",
            ),
            (
                check("-o yaml"),
                "-o \"yaml\": must be json (see edge-syncer check --help)",
            ),
            (
                check("--nonsense"),
                "unknown flag --nonsense (see edge-syncer check --help)",
            ),
        ] {
            assert_eq!(found, expected);
        }
        assert_eq!(super::rbac(&words("--help"), Klog::default()), Ok(Command::RbacHelp));
        assert_eq!(super::check(&words("-h"), Klog::default()), Ok(Command::CheckHelp));
    }
}
