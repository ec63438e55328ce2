//! Checked settings: what the rest of the program takes for granted.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use log::LevelFilter;

use super::args::RunArgs;
use super::duration;
use super::klog::Klog;
use crate::cluster::Rate;
use crate::cluster::access::AccessSource;
use crate::engine::Limits;
use crate::plan::Filter;
use crate::queue;
use crate::source::Pace;

/// Requests per second and side, as in the Go syncer.
const DEFAULT_QPS: f64 = 30.0;

/// Requests at once and side, as in the Go syncer.
const DEFAULT_BURST: u32 = 20;

/// Between two looks: a change is seen soon, and a metered link carries four requests a minute for each type.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Looking more often costs more than a watch.
const SHORTEST_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A controller may count something in a status all the time; the hub need not see each step of it.
const DEFAULT_STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Fewer copies than this are soon made again.
const DEFAULT_HOLD_DELETES_ABOVE: usize = 20;
/// Long enough for people to be woken, short enough to forget that it was asked for.
const DEFAULT_HOLD_DELETES_FOR: Duration = Duration::from_secs(600);

/// An edge that is offline is noticed within minutes, for one small request a minute.
const DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
const SHORTEST_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// As in client-go: a standby takes over within seconds of a crash, and an API server may restart meanwhile.
const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);
/// A renewal a second; less would be lost to a slow disk.
const SHORTEST_LEASE_DURATION: Duration = Duration::from_secs(3);
const LONGEST_LEASE_DURATION: Duration = Duration::from_secs(3600);

/// Field managers of people at work: kubectl, and its subcommands such as `kubectl-edit`.
const DEFAULT_TAKE_BACK_FROM: [&str; 2] = ["kubectl", "kubectl-*"];

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
    /// Not empty. Part of the owner mark of each copy.
    pub sync_target_uid: String,
    /// UIDs that the sync target had before: copies with their marks are taken over.
    pub former_sync_target_uids: Vec<String>,
    /// The limit for each side, separately; `None` for no limit.
    pub rate: Option<Rate>,
    /// Nobody has asked for it: it does not count at an edge that shares itself out among its clients.
    pub is_default_rate: bool,
    /// How changes at the hub are found.
    pub hub_pace: Pace,
    /// How changes at the edge are found.
    pub edge_pace: Pace,
    /// Adopted objects are deleted when their hub objects go, as the Go syncer did, instead of released.
    pub delete_adopted: bool,
    /// Field managers whose fields beside those that the hub sets are taken back at the edge: names, or the start of
    /// names before a `*`, which stands nowhere else. May be empty.
    pub take_back_from: Vec<String>,
    /// What the hub may not do here.
    pub filter: Filter,
    /// Between two writes of one object's status to the hub; may be zero.
    pub status_interval: Duration,
    /// Between two heartbeats on the configs; `None` for none.
    pub heartbeat_interval: Option<Duration>,
    /// Conversions of `EdgeSyncConfig`s are followed, unless the environment variable `ENABLE_DENATURING` is `false`.
    pub renaming: bool,
    /// How many deletes at once are held, and for how long.
    pub delete_limits: Limits,
    /// Objects that may wait for their turn; what is beyond is looked up again later.
    pub queue_capacity: usize,
    /// How long the Lease lasts without which nothing is synced; `None`: there is no Lease, it always syncs.
    pub lease_duration: Option<Duration>,
    /// What this machine or pod is called.
    pub host_name: String,
    /// Where health and metrics are served; nowhere if absent.
    pub listen_address: Option<SocketAddr>,
    /// The level of our own log lines that `-v` asks for; `Info` when it is absent.
    pub verbosity: LevelFilter,
    /// The namespace that the syncer runs in: the environment variable `NAMESPACE`, which the manifest sets, or that of its
    /// service account.
    pub own_namespace: Option<String>,
    /// Flags of the Go syncer that were given and have no effect.
    pub ignored_flags: Vec<String>,
}

impl Settings {
    /// Checks raw values. Reads no file and no environment, so `filter` holds the rules of the flags alone, and
    /// what the environment says is empty.
    pub fn check(raw: RunArgs, klog: Klog) -> Result<Self, UsageError> {
        let interval = poll_interval(raw.poll_interval.as_deref())?;
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
            former_sync_target_uids: raw.former_sync_target_uid,
            is_default_rate: is_default(raw.qps.as_deref()),
            rate: rate(raw.qps.as_deref(), raw.burst.as_deref())?,
            hub_pace: pace("--mode", raw.mode.as_deref(), interval)?,
            edge_pace: pace("--edge-mode", raw.edge_mode.as_deref(), interval)?,
            delete_adopted: raw.delete_adopted,
            take_back_from: take_back_from(&raw.take_back_from)?,
            filter: filter(&[
                ("deny", &raw.deny),
                ("allow-namespace", &raw.allow_namespace),
                ("deny-namespace", &raw.deny_namespace),
            ])?,
            status_interval: interval_of(
                "--status-interval",
                raw.status_interval.as_deref(),
                DEFAULT_STATUS_INTERVAL,
            )?,
            heartbeat_interval: heartbeat_interval(raw.heartbeat_interval.as_deref())?,
            renaming: true,
            queue_capacity: queue_capacity(raw.queue_capacity.as_deref())?,
            delete_limits: delete_limits(raw.hold_deletes_above.as_deref(), raw.hold_deletes_for.as_deref())?,
            lease_duration: Some(lease_duration(raw.lease_duration.as_deref())?).filter(|_| raw.leader_elect),
            host_name: String::new(),
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

fn poll_interval(text: Option<&str>) -> Result<Duration, UsageError> {
    let Some(text) = text else {
        return Ok(DEFAULT_POLL_INTERVAL);
    };
    let allowed = "must be a duration of at least 1s, such as 15s or 1m30s";
    duration::parse(text)
        .filter(|&interval| interval >= SHORTEST_POLL_INTERVAL)
        .ok_or_else(|| UsageError::new(format!("--poll-interval {text:?}: {allowed}")))
}

fn interval_of(flag: &str, text: Option<&str>, default: Duration) -> Result<Duration, UsageError> {
    let Some(text) = text else { return Ok(default) };
    let allowed = "must be a duration, such as 500ms or 10s, or 0s";
    duration::parse(text).ok_or_else(|| UsageError::new(format!("{flag} {text:?}: {allowed}")))
}

fn delete_limits(above: Option<&str>, grace: Option<&str>) -> Result<Limits, UsageError> {
    let most = match above {
        None => DEFAULT_HOLD_DELETES_ABOVE,
        Some(text) => text.parse().map_err(|_| {
            UsageError::new(format!(
                "--hold-deletes-above {text:?}: must be a whole number, 0 or more"
            ))
        })?,
    };
    let grace = interval_of("--hold-deletes-for", grace, DEFAULT_HOLD_DELETES_FOR)?;
    Ok(Limits { most, grace })
}

fn queue_capacity(text: Option<&str>) -> Result<usize, UsageError> {
    let Some(text) = text else { return Ok(queue::CAPACITY) };
    let allowed = format!("must be a whole number of at least {}", queue::LEAST_CAPACITY);
    let number = text.parse().ok().filter(|&number| number >= queue::LEAST_CAPACITY);
    number.ok_or_else(|| UsageError::new(format!("--queue-capacity {text:?}: {allowed}")))
}

fn heartbeat_interval(text: Option<&str>) -> Result<Option<Duration>, UsageError> {
    let interval = interval_of("--heartbeat-interval", text, DEFAULT_HEARTBEAT_INTERVAL)?;
    if !interval.is_zero() && interval < SHORTEST_HEARTBEAT_INTERVAL {
        let text = text.unwrap_or_default();
        return Err(UsageError::new(format!(
            "--heartbeat-interval {text:?}: must be at least 1s, or 0s for no heartbeat"
        )));
    }
    Ok(Some(interval).filter(|interval| !interval.is_zero()))
}

fn lease_duration(text: Option<&str>) -> Result<Duration, UsageError> {
    let Some(text) = text else {
        return Ok(DEFAULT_LEASE_DURATION);
    };
    duration::parse(text)
        .filter(|duration| (SHORTEST_LEASE_DURATION..=LONGEST_LEASE_DURATION).contains(duration))
        .ok_or_else(|| UsageError::new(format!("--lease-duration {text:?}: must be a duration from 3s to 1h")))
}

fn pace(flag: &str, mode: Option<&str>, interval: Duration) -> Result<Pace, UsageError> {
    match mode {
        None | Some("watch") => Ok(Pace::Watch),
        Some("poll") => Ok(Pace::Poll(interval)),
        Some(other) => Err(UsageError::new(format!("{flag} {other:?}: must be watch or poll"))),
    }
}

fn take_back_from(given: &[String]) -> Result<Vec<String>, UsageError> {
    if given.is_empty() {
        return Ok(DEFAULT_TAKE_BACK_FROM.map(str::to_owned).to_vec());
    }
    let names: Vec<String> = items(given)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    for name in &names {
        if name.strip_suffix('*').unwrap_or(name).contains('*') {
            let allowed = "must be the name of a field manager, with a * at its end for all names that begin so";
            return Err(UsageError::new(format!("--take-back-from {name:?}: {allowed}")));
        }
    }
    Ok(names)
}

/// The rules of the flags, each under the word that it begins with in a filter file. An empty value is wrong: it must
/// not pass for a bound that was never asked for.
fn filter(flags: &[(&str, &[String])]) -> Result<Filter, UsageError> {
    let mut filter = Filter::default();
    for (word, values) in flags {
        for value in items(values) {
            let rule = Filter::parse_rule(&format!("{word} {value}"));
            filter.add(rule.map_err(|error| UsageError::new(format!("--{error}")))?);
        }
    }
    Ok(filter)
}

/// The items of comma-separated lists.
fn items(lists: &[String]) -> impl Iterator<Item = &str> {
    lists.iter().flat_map(|list| list.split(',')).map(str::trim)
}

/// The lowest rate that can be meant: one request in a quarter of an hour.
const LOWEST_QPS: f64 = 0.001;

/// True if the flag leaves the rate to us, also by 0, as for Go clients.
fn is_default(qps: Option<&str>) -> bool {
    qps.is_none_or(|text| text.parse() == Ok(0.0))
}

fn rate(qps: Option<&str>, burst: Option<&str>) -> Result<Option<Rate>, UsageError> {
    let qps = match qps {
        None => DEFAULT_QPS,
        Some(text) => match text.parse::<f64>() {
            Ok(0.0) => DEFAULT_QPS,
            Ok(number) if (0.0..LOWEST_QPS).contains(&number) => {
                let why = format!("must be at least {LOWEST_QPS}, or 0 for the default, or less for no limit");
                return Err(UsageError::new(format!("--qps {text:?}: {why}")));
            }
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
#[path = "settings_tests.rs"]
mod tests;
