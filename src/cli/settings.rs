//! Checked settings: what the rest of the program takes for granted.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use log::LevelFilter;

use super::args::RunArgs;
use super::klog::Klog;
use crate::cluster::Rate;
use crate::cluster::access::AccessSource;
use crate::source::Pace;

/// Requests per second and side, as in the Go syncer.
const DEFAULT_QPS: f64 = 30.0;

/// Requests at once and side, as in the Go syncer.
const DEFAULT_BURST: u32 = 20;

/// A wrong command line. Print it with the hint and exit with 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(String);

impl UsageError {
    /// `message` names the flag, the value and what is allowed.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (see edge-syncer run --help)", self.0)
    }
}

impl Error for UsageError {}

/// The settings of `edge-syncer run`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How to reach the hub.
    pub hub: AccessSource,
    /// How to reach the edge.
    pub edge: AccessSource,
    /// For the log only; may be empty.
    pub sync_target_name: String,
    /// Not empty.
    pub sync_target_uid: String,
    /// How often the hub is looked at.
    pub hub_pace: Pace,
    /// How often the edge is looked at.
    pub edge_pace: Pace,
    /// The limit for each side, separately; `None` for no limit.
    pub rate: Option<Rate>,
    /// Where health and metrics are to be served.
    pub listen_address: Option<SocketAddr>,
    /// The level of our own log lines that `-v` asks for; `Info` when it is absent.
    pub verbosity: LevelFilter,
    /// The namespace that the syncer runs in, from the environment variable `NAMESPACE` as the manifest sets it.
    pub own_namespace: Option<String>,
    /// Flags of the Go syncer that were given and have no effect.
    pub ignored_flags: Vec<String>,
}

impl Settings {
    /// Checks raw values. Reads no file and no environment.
    pub fn check(raw: RunArgs, klog: Klog) -> Result<Self, UsageError> {
        let interval = raw.poll_interval.as_deref();
        let hub = source(raw.from_kubeconfig, raw.from_context, "--from-context")?;
        if hub == AccessSource::InCluster {
            let message = "--from-kubeconfig is missing: it must be the kubeconfig file of the hub";
            return Err(UsageError::new(message));
        }
        let Some(sync_target_uid) = not_empty(raw.sync_target_uid) else {
            let message = "--sync-target-uid is missing: it must be the UID of the sync target";
            return Err(UsageError::new(message));
        };
        Ok(Self {
            hub,
            edge: source(raw.to_kubeconfig, raw.to_context, "--to-context")?,
            sync_target_name: raw.sync_target_name.unwrap_or_default(),
            sync_target_uid,
            hub_pace: pace("--mode", raw.mode.as_deref(), interval)?,
            edge_pace: pace("--edge-mode", raw.edge_mode.as_deref(), interval)?,
            rate: rate(raw.qps.as_deref(), raw.burst.as_deref())?,
            listen_address: raw.listen_address.as_deref().map(address).transpose()?,
            verbosity: klog.level(),
            own_namespace: None,
            ignored_flags: klog.ignored,
        })
    }
}

fn not_empty(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.is_empty())
}

fn source(path: Option<String>, context: Option<String>, flag: &str) -> Result<AccessSource, UsageError> {
    match (not_empty(path), not_empty(context)) {
        (Some(path), context) => Ok(AccessSource::Kubeconfig {
            path: path.into(),
            context,
        }),
        (None, None) => Ok(AccessSource::InCluster),
        (None, Some(context)) => {
            let kubeconfig = flag.replace("context", "kubeconfig");
            Err(UsageError::new(format!(
                "{flag} {context:?}: must come with {kubeconfig}"
            )))
        }
    }
}

fn pace(flag: &str, mode: Option<&str>, interval: Option<&str>) -> Result<Pace, UsageError> {
    match mode {
        None | Some("watch") => Ok(Pace::Watch),
        Some("poll") => Ok(Pace::Poll(duration(interval.unwrap_or("15s"))?)),
        Some(other) => Err(UsageError::new(format!("{flag} {other:?}: must be watch or poll"))),
    }
}

fn duration(text: &str) -> Result<Duration, UsageError> {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| UsageError::new(format!("--poll-interval {text:?}: must be a duration such as 15s")))
}

fn rate(qps: Option<&str>, burst: Option<&str>) -> Result<Option<Rate>, UsageError> {
    let qps = match qps {
        None => DEFAULT_QPS,
        Some(text) => match text.parse::<f64>() {
            Ok(0.0) => DEFAULT_QPS,
            Ok(number) if number.is_finite() => number,
            _ => return Err(UsageError::new(format!("--qps {text:?}: must be a number"))),
        },
    };
    let allowed = if qps < 0.0 {
        "an integer"
    } else {
        "an integer greater than 0"
    };
    let wrong = |text| UsageError::new(format!("--burst {text:?}: must be {allowed}"));
    let burst = match burst {
        None => i64::from(DEFAULT_BURST),
        Some(text) => text.parse().map_err(|_| wrong(text))?,
    };
    if qps < 0.0 {
        return Ok(None);
    }
    match u32::try_from(burst) {
        Ok(burst) if burst > 0 => Ok(Some(Rate { qps, burst })),
        _ => Err(wrong(&burst.to_string())),
    }
}

fn address(text: &str) -> Result<SocketAddr, UsageError> {
    let example = "must be an address and a port such as 0.0.0.0:8080 or [::]:8080";
    text.parse()
        .map_err(|_| UsageError::new(format!("--listen-address {text:?}: {example}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> RunArgs {
        RunArgs {
            from_kubeconfig: Some("hub".to_owned()),
            sync_target_uid: Some("u".to_owned()),
            ..RunArgs::default()
        }
    }

    /// Sets one flag beside the required ones and returns the message, if there is one.
    fn check(change: impl FnOnce(&mut RunArgs)) -> Result<Settings, String> {
        let mut raw = raw();
        change(&mut raw);
        let checked = Settings::check(raw, Klog::default());
        checked.map_err(|error| error.to_string().replace(" (see edge-syncer run --help)", ""))
    }

    #[test]
    fn has_the_defaults_of_the_go_syncer() {
        let found = check(|_| {}).unwrap();
        let hub = AccessSource::Kubeconfig {
            path: "hub".into(),
            context: None,
        };
        assert_eq!(found.hub, hub);
        assert_eq!(found.edge, AccessSource::InCluster);
        assert_eq!(found.rate, Some(Rate { qps: 30.0, burst: 20 }));
        assert_eq!(found.verbosity, LevelFilter::Info);
        assert_eq!(found.listen_address, None);
    }

    #[test]
    fn limits_the_rate_as_client_go_does() {
        for (qps, burst, expected) in [
            ("5", "7", Some(Rate { qps: 5.0, burst: 7 })),
            ("0.5", "1", Some(Rate { qps: 0.5, burst: 1 })),
            ("0", "1", Some(Rate { qps: 30.0, burst: 1 })),
            ("-1", "0", None),
        ] {
            let set = |raw: &mut RunArgs| {
                raw.qps = Some(qps.to_owned());
                raw.burst = Some(burst.to_owned());
            };
            assert_eq!(check(set).unwrap().rate, expected, "{qps} {burst}");
        }
    }

    #[test]
    fn takes_an_empty_value_for_none() {
        let found = check(|raw| {
            raw.to_kubeconfig = Some(String::new());
            raw.to_context = Some(String::new());
        });
        assert_eq!(found.unwrap().edge, AccessSource::InCluster);
    }

    #[test]
    fn says_which_flag_is_wrong_and_what_is_allowed() {
        let some = |text: &str| Some(text.to_owned());
        let qps = |text: &str| {
            let text = some(text);
            check(move |raw| raw.qps = text)
        };
        let burst = |text: &str| {
            let text = some(text);
            check(move |raw| raw.burst = text)
        };
        let mode = |text: &str| {
            let text = some(text);
            check(move |raw| raw.mode = text)
        };
        for (found, expected) in [
            (
                check(|raw| raw.from_kubeconfig = None),
                "--from-kubeconfig is missing: it must be the kubeconfig file of the hub",
            ),
            (
                check(|raw| raw.sync_target_uid = some("")),
                "--sync-target-uid is missing: it must be the UID of the sync target",
            ),
            (
                check(|raw| raw.to_context = some("x")),
                "--to-context \"x\": must come with --to-kubeconfig",
            ),
            (qps("x"), "--qps \"x\": must be a number"),
            (qps("NaN"), "--qps \"NaN\": must be a number"),
            (qps("inf"), "--qps \"inf\": must be a number"),
            (burst("0"), "--burst \"0\": must be an integer greater than 0"),
            (burst("-1"), "--burst \"-1\": must be an integer greater than 0"),
            (burst("1.5"), "--burst \"1.5\": must be an integer greater than 0"),
            (
                burst("99999999999"),
                "--burst \"99999999999\": must be an integer greater than 0",
            ),
            (mode("x"), "--mode \"x\": must be watch or poll"),
            (
                check(|raw| raw.listen_address = some(":8080")),
                "--listen-address \":8080\": must be an address and a port such as 0.0.0.0:8080 or [::]:8080",
            ),
        ] {
            assert_eq!(found.err().as_deref(), Some(expected));
        }
    }
}
