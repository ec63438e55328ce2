//! The logging flags of Go's klog, which existing manifests pass: `-v` has a meaning, the others are accepted.

use std::slice::Iter;

use log::LevelFilter;

use super::usage::UsageError;

/// klog's flags that stand alone or with `=true` or `=false`.
const SWITCHES: [&str; 6] = [
    "--logtostderr",
    "--alsologtostderr",
    "--one-output",
    "--add-dir-header",
    "--skip-headers",
    "--skip-log-headers",
];

/// klog's flags that have a value.
const OPTIONS: [&str; 6] = [
    "--vmodule",
    "--stderrthreshold",
    "--log-dir",
    "--log-file",
    "--log-file-max-size",
    "--log-backtrace-at",
];

/// What klog's flags said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Klog {
    /// The value of `-v`.
    pub verbosity: i32,
    /// The names of flags that have no effect here, in the order given.
    pub ignored: Vec<String>,
}

impl Klog {
    /// The level of our own log lines: klog's 4 is "debug", 6 is "wire".
    pub(super) fn level(&self) -> LevelFilter {
        match self.verbosity {
            ..=3 => LevelFilter::Info,
            4 | 5 => LevelFilter::Debug,
            6.. => LevelFilter::Trace,
        }
    }

    /// Takes the argument, and its value from `rest`, if it is one of klog's flags; returns whether it was.
    pub(super) fn take(&mut self, arg: &str, rest: &mut Iter<'_, String>) -> Result<bool, UsageError> {
        if let Some(tail) = after_verbosity(arg) {
            let value = match tail {
                "" => rest.next().map_or("", String::as_str),
                _ => tail.trim_start_matches('='),
            };
            let wrong = |_| {
                let found = if value.is_empty() {
                    String::new()
                } else {
                    format!(", not {value:?}")
                };
                UsageError::new(format!(
                    "-v needs a number after it: -v=4 for debug, -v=6 for trace{found}; the version is -V"
                ))
            };
            self.verbosity = value.parse().map_err(wrong)?;
            return Ok(true);
        }
        let Some((name, value)) = split_flag(arg) else {
            return Ok(false);
        };
        if OPTIONS.contains(&name.as_str()) {
            if value.is_none() && rest.next().is_none() {
                return Err(UsageError::new(format!("{name} needs a value")));
            }
        } else if !SWITCHES.contains(&name.as_str()) {
            return Ok(false);
        }
        self.ignored.push(name);
        Ok(true)
    }
}

/// What follows `-v` or `--v` in the same argument: nothing, `=` and a value, or, for `-v`, the value itself.
fn after_verbosity(arg: &str) -> Option<&str> {
    let (tail, is_short) = match arg.strip_prefix("--v") {
        Some(tail) => (tail, false),
        None => (arg.strip_prefix("-v")?, true),
    };
    // `-version` is something else.
    let is_value = tail.is_empty() || tail.starts_with('=') || is_short && !tail.starts_with(char::is_alphabetic);
    is_value.then_some(tail)
}

/// The name of a long flag, with `-` for `_`, and the value after `=`. `None` for anything else.
pub(super) fn split_flag(arg: &str) -> Option<(String, Option<&str>)> {
    if !arg.starts_with("--") || arg.len() == 2 {
        return None;
    }
    let (name, value) = match arg.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (arg, None),
    };
    Some((name.replace('_', "-"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_verbosity_to_levels() {
        for (verbosity, level) in [
            (-1, LevelFilter::Info),
            (0, LevelFilter::Info),
            (3, LevelFilter::Info),
            (4, LevelFilter::Debug),
            (5, LevelFilter::Debug),
            (6, LevelFilter::Trace),
            (10, LevelFilter::Trace),
        ] {
            assert_eq!(
                Klog {
                    verbosity,
                    ignored: Vec::new()
                }
                .level(),
                level
            );
        }
    }
}
