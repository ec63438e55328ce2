//! The command lines of the commands that ask and change nothing: `check`, `diff`, `bundle` and `gen rbac`. All take
//! the flags of `run`, and a few of their own, which are removed from the arguments first.

use kube_lite::logging::LogFormat;
use kube_lite::spelling;

#[cfg(feature = "admin")]
use super::args::{BundleOptions, DiffOptions};
use super::args::{Command, RbacOptions, run};
use super::klog::Klog;
use super::usage::UsageError;
use crate::side::Side;

/// The names of these commands in messages.
pub(super) const CHECK: &str = "edge-syncer check";
#[cfg(feature = "admin")]
pub(super) const DIFF: &str = "edge-syncer diff";
#[cfg(feature = "admin")]
pub(super) const BUNDLE: &str = "edge-syncer bundle";
pub(super) const RBAC: &str = "edge-syncer gen rbac";

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
    if config.as_deref() == Some("") {
        return Err(wrong(UsageError::new("--config \"\": must be the name of a config")));
    }
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
