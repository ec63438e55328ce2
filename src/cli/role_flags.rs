//! What the flags of the roles in kcp have in common: they are read as the Go agents read theirs.

use std::env;

use driver::serve::ListenAddress;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::logging::LogFormat;
use kube_lite::spelling;

use super::args::{Command, OF_ALL, no_flag_of};
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
    wrong: Vec<String>,
}

/// All that is wrong with a command line, which is said together.
#[derive(Debug, Default)]
pub(super) struct Wrong {
    /// Wrong usage.
    usage: Vec<String>,
    /// Settings that cannot be used.
    settings: Vec<String>,
}

impl Wrong {
    /// What was wrong with the flags already.
    pub(super) fn of(raw: &Raw) -> Self {
        Self {
            usage: raw.wrong.clone(),
            settings: Vec::new(),
        }
    }

    /// A setting cannot be used.
    pub(super) fn push(&mut self, why: impl Into<String>) {
        self.settings.push(why.into());
    }

    /// What ends the program, if something is wrong: with exit code 2 if the usage is, otherwise with 1, as the Go agents
    /// have it.
    pub(super) fn refusal(self, known: &Known) -> Option<Result<Command, UsageError>> {
        let is_usage = !self.usage.is_empty();
        let all = [self.usage, self.settings].concat().join("; ");
        if is_usage {
            return Some(Err(known.wrong(all)));
        }
        (!all.is_empty()).then_some(Ok(Command::RoleRefused(all)))
    }
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
    pub(super) fn read(&self, args: &[String]) -> Line {
        let mut raw = Raw {
            options: vec![Vec::new(); self.options.len()],
            switches: vec![false; self.switches.len()],
            wrong: Vec::new(),
        };
        let mut rest = args.iter().peekable();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "-h" | "--help" => return Line::Help,
                "-V" | "--version" => return Line::Version,
                _ => {}
            }
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            if let Some(at) = self.options.iter().position(|option| *option == name) {
                match value.or_else(|| rest.next().map(String::as_str)) {
                    Some(value) => raw.options[at].push(value.to_owned()),
                    None => raw.wrong.push(format!("{name} needs a value")),
                }
            } else if let Some(at) = self.switches.iter().position(|switch| *switch == name) {
                raw.switches[at] = switch(name, value).unwrap_or_else(|why| {
                    raw.wrong.push(why);
                    false
                });
            } else {
                let known = self.options.iter().chain(self.switches).copied().chain(OF_ALL);
                raw.wrong.push(no_flag_of(known, arg));
                // What follows may be its value.
                rest.next_if(|next| value.is_none() && !next.starts_with('-'));
            }
        }
        Line::Flags(raw)
    }

    /// Wrong usage.
    pub(super) fn wrong(&self, why: impl Into<String>) -> UsageError {
        UsageError::new(why.into()).seen_from(self.command)
    }
}

fn switch(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Ok(true),
        Some("false" | "0" | "f" | "F" | "FALSE" | "False") => Ok(false),
        Some(other) => Err(format!("{name} {other:?}: must be true or false")),
    }
}

impl Wrong {
    /// The format of log lines.
    pub(super) fn format(&mut self, text: Option<&str>) -> LogFormat {
        let text = text.unwrap_or("JSON");
        if text.eq_ignore_ascii_case("JSON") {
            return LogFormat::Json;
        }
        if !text.eq_ignore_ascii_case("Console") {
            let hint = spelling::hint(text, ["JSON", "Console"]);
            self.usage
                .push(format!("--log-format {text:?}: must be JSON or Console{hint}"));
        }
        LogFormat::Text
    }

    /// Where to listen; nowhere for an empty text and for 0.
    pub(super) fn address(&mut self, flag: &'static str, text: &str) -> Option<ListenAddress> {
        if matches!(text, "" | "0") {
            return None;
        }
        let found = ListenAddress::parse(flag, text);
        if found.is_none() {
            let why = "must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none";
            self.usage.push(format!("{flag} {text:?}: {why}"));
        }
        found
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
