//! What the flags of the roles in kcp have in common: they are read as the Go agents read theirs.

use std::env;

use driver::serve::ListenAddress;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::logging::LogFormat;
use kube_lite::spelling;

use super::args::{OF_ALL, no_flag_of};
use super::usage::UsageError;

/// Where metrics are served unless set otherwise.
pub(super) const METRICS: &str = "127.0.0.1:8085";

/// The flags of a role.
pub(super) struct Known {
    /// The command, in messages.
    pub(super) command: &'static str,
    /// Those with a value.
    pub(super) options: &'static [&'static str],
    /// Those that need none.
    pub(super) switches: &'static [&'static str],
}

/// What was given, in the order of the flags that are known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Raw {
    options: Vec<Vec<String>>,
    switches: Vec<bool>,
}

/// What a command line is.
pub(super) enum Line {
    /// Its flags.
    Flags(Raw),
    /// A request for help.
    Help,
    /// A request for the version.
    Version,
}

impl Raw {
    /// The last value of an option.
    pub(super) fn last(&self, at: usize) -> Option<&str> {
        self.options[at].last().map(String::as_str)
    }

    /// All values of one that may be repeated.
    pub(super) fn all(&self, at: usize) -> &[String] {
        &self.options[at]
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, at: usize) -> bool {
        self.switches[at]
    }
}

impl Known {
    /// Reads the arguments of `check`: the format of what is printed, and the flags of the role. `None` asks for help.
    pub(super) fn of_check(&self, args: &[String]) -> Result<Option<(LogFormat, Vec<String>)>, UsageError> {
        let (mut format, mut others) = (LogFormat::Text, Vec::new());
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let glued = arg.strip_prefix("-o=").or_else(|| arg.strip_prefix("--output="));
            let value = match (arg.as_str(), glued) {
                ("-h" | "--help", _) => return Ok(None),
                ("-o" | "--output", _) => rest.next().map_or("", String::as_str),
                (_, Some(value)) => value,
                _ => {
                    others.push(arg.to_owned());
                    continue;
                }
            };
            if value != "json" {
                return Err(UsageError::new(format!("-o {value:?}: must be json")).seen_from(self.command));
            }
            format = LogFormat::Json;
        }
        Ok(Some((format, others)))
    }

    /// Reads a command line.
    pub(super) fn read(&self, args: &[String]) -> Result<Line, UsageError> {
        let mut raw = Raw {
            options: vec![Vec::new(); self.options.len()],
            switches: vec![false; self.switches.len()],
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "-h" | "--help" => return Ok(Line::Help),
                "-V" | "--version" => return Ok(Line::Version),
                _ => {}
            }
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            if let Some(at) = self.options.iter().position(|option| *option == name) {
                let missing = || self.wrong(format!("{name} needs a value"));
                let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(missing)?;
                raw.options[at].push(value.to_owned());
            } else if let Some(at) = self.switches.iter().position(|switch| *switch == name) {
                raw.switches[at] = self.switch(name, value)?;
            } else {
                let known = self.options.iter().chain(self.switches).copied().chain(OF_ALL);
                return Err(self.wrong(no_flag_of(known, arg)));
            }
        }
        Ok(Line::Flags(raw))
    }

    /// Wrong usage.
    pub(super) fn wrong(&self, why: impl Into<String>) -> UsageError {
        UsageError::new(why.into()).seen_from(self.command)
    }

    fn switch(&self, name: &str, value: Option<&str>) -> Result<bool, UsageError> {
        match value {
            None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Ok(true),
            Some("false" | "0" | "f" | "F" | "FALSE" | "False") => Ok(false),
            Some(other) => Err(self.wrong(format!("{name} {other:?}: must be true or false"))),
        }
    }

    /// The format of log lines.
    pub(super) fn format(&self, text: Option<&str>) -> Result<LogFormat, UsageError> {
        let text = text.unwrap_or("JSON");
        if text.eq_ignore_ascii_case("JSON") {
            Ok(LogFormat::Json)
        } else if text.eq_ignore_ascii_case("Console") {
            Ok(LogFormat::Text)
        } else {
            let hint = spelling::hint(text, ["JSON", "Console"]);
            Err(self.wrong(format!("--log-format {text:?}: must be JSON or Console{hint}")))
        }
    }

    /// Where to listen; nowhere for an empty text and for 0.
    pub(super) fn address(&self, flag: &'static str, text: &str) -> Result<Option<ListenAddress>, UsageError> {
        if matches!(text, "" | "0") {
            return Ok(None);
        }
        let wrong = || {
            let why = "must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none";
            self.wrong(format!("{flag} {text:?}: {why}"))
        };
        ListenAddress::parse(flag, text).map(Some).ok_or_else(wrong)
    }
}

/// A kubeconfig that a flag names.
pub(super) fn file(flag: &'static str, path: &str) -> AccessSource {
    let flags = Flags {
        kubeconfig: flag,
        context: flag,
    };
    AccessSource::Kubeconfig {
        path: path.into(),
        context: None,
        flags,
    }
}

/// The kubeconfig that is named, or that of the environment, or the pod's account, or that of the user's home, in the order
/// of client-go.
pub(super) fn source(kubeconfig: Option<&str>) -> AccessSource {
    const FLAG: &str = "--kubeconfig";
    let named = kubeconfig
        .map(str::to_owned)
        .or_else(|| env::var("KUBECONFIG").ok())
        .filter(|path| !path.is_empty());
    if let Some(path) = named {
        return file(FLAG, &path);
    }
    let home = env::var("HOME").unwrap_or_default();
    match env::var_os("KUBERNETES_SERVICE_HOST") {
        Some(_) => AccessSource::InCluster { flag: FLAG },
        None => file(FLAG, &format!("{home}/.kube/config")),
    }
}
