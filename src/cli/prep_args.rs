//! The command line of `prep`: the flags of `gen`, and those of the script `kubectl kubestellar prep-for-syncer`, which
//! are removed from the arguments first.

use super::asks::take_value;
use super::gen_args::{self, Gen};
use super::gen_settings;
use super::klog::Klog;
use super::usage::UsageError;
use crate::join::{Mailbox, Settings};

/// The name of the command.
pub(super) const COMMAND: &str = "edge-syncer prep";

/// The workspace that is used unless another one is given, as by the script.
const HERE: &str = ".";
const PROVIDER: &str = "root:espw";

/// What the command line asks for.
pub(super) enum Prep {
    Help,
    Version,
    Do(Box<Settings>),
}

/// Reads the arguments after the command.
pub(super) fn parse(args: &[String], klog: Klog) -> Result<Prep, UsageError> {
    read(args, klog).map_err(|error| error.seen_from(COMMAND))
}

fn read(args: &[String], klog: Klog) -> Result<Prep, UsageError> {
    let mut rest = args.to_vec();
    let imw = workspace("--imw", take_value(&mut rest, &["--imw"])?, HERE)?;
    let espw = workspace("--espw", take_value(&mut rest, &["--espw"])?, PROVIDER)?;
    let is_silent = take_switch(&mut rest, &["-s", "--silent"]);
    // In the script, it prints each command; here there are none.
    take_switch(&mut rest, &["-X"]);
    let asks_for_help = rest.iter().any(|arg| arg == "-h" || arg == "--help");
    let (name, mut raw) = match gen_args::parse(&rest, klog)? {
        Gen::Help if asks_for_help => return Ok(Prep::Help),
        Gen::Help => return Err(UsageError::new("there must be one name, that of a SyncTarget")),
        Gen::Version => return Ok(Prep::Version),
        Gen::Do(name, raw) => (name, raw),
    };
    let is_manifest = raw.format.as_deref().is_none_or(|format| format == "manifest");
    if is_manifest && !raw.rotate && !raw.unregister {
        raw.output_file.get_or_insert_with(|| format!("{name}-syncer.yaml"));
    }
    let settings = gen_settings::check(name, *raw)?;
    Ok(Prep::Do(Box::new(Settings {
        mailbox: Some(Mailbox { imw, espw }),
        is_silent,
        ..settings
    })))
}

/// A workspace: words with `:` between, or `.` for the current one.
fn workspace(flag: &str, value: Option<String>, default: &str) -> Result<String, UsageError> {
    let value = value.unwrap_or_else(|| default.to_owned());
    let is_word = |word: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !word.is_empty() && word.bytes().all(is_allowed)
    };
    let path = value.strip_prefix(':').unwrap_or(&value);
    if value == HERE || path.split(':').all(is_word) {
        return Ok(value);
    }
    Err(UsageError::new(format!(
        "{flag} {value:?}: must be a workspace such as root:imw1, or . for that of the kubeconfig"
    )))
}

/// Takes a switch out of the arguments; true if it was there.
fn take_switch(args: &mut Vec<String>, names: &[&str]) -> bool {
    let before = args.len();
    args.retain(|arg| !names.contains(&&**arg));
    args.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::Output;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn settings(line: &str) -> Settings {
        match parse(&words(line), Klog::default()) {
            Ok(Prep::Do(settings)) => *settings,
            Ok(_) => panic!("{line}: asks for a text"),
            Err(error) => panic!("{line}: {error}"),
        }
    }

    #[test]
    fn has_the_defaults_of_the_script() {
        let found = settings("site-7 --syncer-image=i");
        let mailbox = |imw: &str, espw: &str| {
            Some(Mailbox {
                imw: imw.to_owned(),
                espw: espw.to_owned(),
            })
        };
        assert_eq!(found.mailbox, mailbox(".", "root:espw"));
        assert_eq!(found.output, Output::File("site-7-syncer.yaml".into()));
        assert!(!found.is_silent);
        let found = settings("--imw root:imw1 --espw=:root:x -s -X -o - site-7 --syncer-image i");
        assert_eq!(found.mailbox, mailbox("root:imw1", ":root:x"));
        assert_eq!((found.output, found.is_silent), (Output::Stdout, true));
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (line, expected) in [
            (
                "",
                "there must be one name, that of a SyncTarget (see edge-syncer prep --help)",
            ),
            (
                "a b --syncer-image=i",
                "there must be one name, that of a SyncTarget (see edge-syncer prep --help)",
            ),
            (
                "a",
                "--syncer-image is missing: it must be the image of the syncer (see edge-syncer prep --help)",
            ),
            (
                "a --imw=Root/x",
                "--imw \"Root/x\": must be a workspace such as root:imw1, or . for that of the kubeconfig (see edge-syncer \
                 prep --help)",
            ),
            ("a --espw", "--espw needs a value (see edge-syncer prep --help)"),
            ("a --nonsense", "unknown flag --nonsense (see edge-syncer prep --help)"),
        ] {
            let found = parse(&words(line), Klog::default())
                .err()
                .map(|error| error.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{line}");
        }
        for line in ["-h", "a b --help"] {
            assert!(matches!(parse(&words(line), Klog::default()), Ok(Prep::Help)), "{line}");
        }
    }
}
