//! Checked settings, on which the rest of the program can rely.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use driver::queue;
use driver::serve::ListenAddress;
use driver::source::Mode;
use driver::systemd::Asked;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::dry_run::DryRun;
use kube_lite::logging::LogFormat;
use kube_lite::spelling;
use kube_lite::{ObjectName, Rate};
use log::LevelFilter;

use super::args::RunArgs;
use super::duration;
use super::klog::Klog;
use super::usage::UsageError;
use crate::model::Limits;
use crate::plan::{Filter, is_label};
use crate::renewal::Keep;
use crate::side::Side;
use crate::sync::ownership::SyncTarget;

/// Requests per second to each side, as in the Go syncer.
const DEFAULT_QPS: f64 = 30.0;

/// Requests at once to each side, as in the Go syncer.
const DEFAULT_BURST: u32 = 20;

/// Time between two polls: a change is seen soon, and a metered link carries only four requests a minute for each type.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Polling more often costs more than a watch.
const SHORTEST_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A controller may change a status all the time; the hub need not see each step.
const DEFAULT_STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Fewer copies than this are soon recreated.
const DEFAULT_HOLD_DELETES_ABOVE: usize = 20;
/// Long enough to wake somebody up, and short enough not to be in the way of deletes that were meant.
const DEFAULT_HOLD_DELETES_FOR: Duration = Duration::from_secs(600);

/// An edge that is offline is noticed within minutes, for one small request a minute.
const DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
const SHORTEST_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// As in client-go: a standby takes over within seconds of a crash, and an API server may restart meanwhile.
const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(15);
/// That is one renewal each second; with less, a slow disk would cost the lead.
const SHORTEST_LEASE_DURATION: Duration = Duration::from_secs(3);
const LONGEST_LEASE_DURATION: Duration = Duration::from_secs(3600);

/// Field managers of people: kubectl, and its subcommands such as `kubectl-edit`.
const DEFAULT_REVERT_CHANGES_FROM: [&str; 2] = ["kubectl", "kubectl-*"];

/// The flags that name the kubeconfig of a side.
const HUB: Flags = Flags {
    kubeconfig: "--from-kubeconfig",
    context: "--from-context",
};
const EDGE: Flags = Flags {
    kubeconfig: "--to-kubeconfig",
    context: "--to-context",
};

/// The settings of `edge-syncer run`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How to reach the hub.
    pub hub: AccessSource,
    /// How to reach the edge.
    pub edge: AccessSource,
    /// Where renewed tokens of the hub are kept; `None`: nothing is renewed.
    pub keep: Option<Keep>,
    /// For the log only; may be empty.
    pub sync_target_name: String,
    /// Not empty. Part of the owner mark of each copy.
    pub sync_target_uid: String,
    /// UIDs that the sync target had before: copies with their marks are taken over.
    pub former_sync_target_uids: Vec<String>,
    /// The limit for each side, separately; `None` for no limit.
    pub rate: Option<Rate>,
    /// The rate was not given: it does not apply at an edge with API priority and fairness.
    pub is_default_rate: bool,
    /// How changes at the hub are found.
    pub hub_mode: Mode,
    /// How changes at the edge are found.
    pub edge_mode: Mode,
    /// Adopted objects are deleted when their hub objects are deleted, as the Go syncer did, instead of released.
    pub delete_adopted: bool,
    /// Nothing is changed at either side: there is no heartbeat, no Lease and no renewal either.
    pub dry_run: Option<DryRun>,
    /// Field managers whose fields beside those that the hub sets are reverted at the edge: names, or the start of
    /// names before a `*`, which is allowed nowhere else. May be empty.
    pub revert_changes_from: Vec<String>,
    /// What the hub may not do here.
    pub filter: Filter,
    /// The shortest time between two writes of one object's status to the hub; may be zero.
    pub status_interval: Duration,
    /// The time between two heartbeats on the configs; `None` for none.
    pub heartbeat_interval: Option<Duration>,
    /// Conversions of `EdgeSyncConfig`s are followed, unless the environment variable `ENABLE_DENATURING` is `false`.
    pub renaming: bool,
    /// How many deletes at once are held, and for how long.
    pub delete_limits: Limits,
    /// Objects that may wait for their turn; others are read again later.
    pub queue_capacity: usize,
    /// How long the Lease lasts; nothing is synced without holding it. `None`: there is no Lease, it always syncs.
    pub lease_duration: Option<Duration>,
    /// The name of this machine or pod.
    pub host_name: String,
    /// Where health and metrics are served; nowhere if absent.
    pub listen_address: Option<ListenAddress>,
    /// The level of our own log lines that `-v` asks for; `Info` when it is absent.
    pub verbosity: LevelFilter,
    /// What log lines look like.
    pub log_format: LogFormat,
    /// The namespace that the syncer runs in: the environment variable `NAMESPACE`, which the manifest sets, or that of its
    /// service account.
    pub own_namespace: Option<String>,
    /// What the service manager wants to know.
    pub service_manager: Asked,
    /// Flags of the Go syncer that were given and have no effect.
    pub ignored_flags: Vec<String>,
}

impl Settings {
    /// The sync target of the syncer.
    pub(crate) fn sync_target(&self) -> SyncTarget {
        SyncTarget {
            uid: self.sync_target_uid.clone(),
            former: self.former_sync_target_uids.clone(),
        }
    }

    /// The sides that are polled.
    pub(crate) fn polled(&self) -> Vec<Side> {
        let sides = [(Side::Hub, self.hub_mode), (Side::Edge, self.edge_mode)];
        let polled = sides.into_iter().filter(|(_, mode)| matches!(mode, Mode::Poll(_)));
        polled.map(|(side, _)| side).collect()
    }

    /// Checks raw values. Reads no file and no environment, so `filter` holds the rules of the flags alone, and
    /// what the environment says is empty.
    pub(super) fn check(raw: RunArgs, klog: Klog) -> Result<Self, UsageError> {
        let interval = duration_of(&POLL_INTERVAL, raw.poll_interval.as_deref())?;
        let (Some(hub), Some(sync_target_uid)) = (
            not_empty(raw.from_kubeconfig.clone()),
            not_empty(raw.sync_target_uid.clone()),
        ) else {
            return Err(missing(&raw));
        };
        check_path("--filter-file", raw.filter_file.as_deref().unwrap_or_default())?;
        Ok(Self {
            hub: source(Some(hub), raw.from_context, HUB)?,
            edge: source(raw.to_kubeconfig, raw.to_context, EDGE)?,
            keep: keep(raw.credentials_secret, raw.credentials_file)?,
            sync_target_name: raw.sync_target_name.unwrap_or_default(),
            sync_target_uid,
            former_sync_target_uids: raw.former_sync_target_uid,
            is_default_rate: is_default(raw.qps.as_deref()),
            rate: rate(raw.qps.as_deref(), raw.burst.as_deref())?,
            hub_mode: mode("--mode", raw.mode.as_deref(), interval)?,
            edge_mode: mode("--edge-mode", raw.edge_mode.as_deref(), interval)?,
            delete_adopted: raw.delete_adopted,
            dry_run: dry_run(raw.dry_run)?,
            revert_changes_from: revert_changes_from(&raw.revert_changes_from)?,
            filter: filter(&[
                ("deny", &raw.deny),
                ("allow-namespace", &raw.allow_namespace),
                ("deny-namespace", &raw.deny_namespace),
            ])?,
            status_interval: duration_of(&STATUS_INTERVAL, raw.status_interval.as_deref())?,
            heartbeat_interval: Some(duration_of(&HEARTBEAT_INTERVAL, raw.heartbeat_interval.as_deref())?)
                .filter(|interval| !interval.is_zero() && !raw.dry_run),
            renaming: true,
            queue_capacity: queue_capacity(raw.queue_capacity.as_deref())?,
            delete_limits: delete_limits(raw.hold_deletes_above.as_deref(), raw.hold_deletes_for.as_deref())?,
            lease_duration: Some(duration_of(&LEASE_DURATION, raw.lease_duration.as_deref())?)
                .filter(|_| raw.leader_elect && !raw.dry_run),
            host_name: String::new(),
            listen_address: raw.listen_address.as_deref().map(address).transpose()?,
            verbosity: klog.level(),
            log_format: log_format(raw.log_format.as_deref())?,
            own_namespace: None,
            service_manager: Asked::default(),
            ignored_flags: klog.ignored,
        })
    }
}

impl Settings {
    /// The file with renewed tokens, if they are kept in one.
    pub(crate) fn kept_in_file(&self) -> Option<PathBuf> {
        match &self.keep {
            Some(Keep::File(path)) => Some(path.clone()),
            Some(Keep::Secret(_)) | None => None,
        }
    }
}

/// Where renewed tokens are kept. A place that is given and empty is a mistake: nothing would be renewed.
fn keep(secret: Option<String>, file: Option<String>) -> Result<Option<Keep>, UsageError> {
    match (secret, file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(UsageError::new(
            "--credentials-secret and --credentials-file: must not be given both".to_owned(),
        )),
        (Some(secret), None) => {
            let parts = secret.split_once('/');
            let parts = parts.filter(|(namespace, name)| is_label(namespace) && is_subdomain(name));
            let (namespace, name) = parts.ok_or_else(|| {
                let allowed = "must be namespace and name of a Secret, such as edge-syncer/site-7";
                UsageError::new(format!("--credentials-secret {secret:?}: {allowed}"))
            })?;
            Ok(Some(Keep::Secret(ObjectName::new(namespace, name))))
        }
        (None, Some(file)) => {
            check_path("--credentials-file", &file)?;
            if file.is_empty() {
                return Err(UsageError::new(
                    "--credentials-file \"\": must be the path of a file".to_owned(),
                ));
            }
            Ok(Some(Keep::File(file.into())))
        }
    }
}

/// True for what can be the name of a Secret.
fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}

fn not_empty(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.is_empty())
}

fn source(path: Option<String>, context: Option<String>, flags: Flags) -> Result<AccessSource, UsageError> {
    match (not_empty(path), not_empty(context)) {
        (Some(path), context) => {
            check_path(flags.kubeconfig, &path)?;
            Ok(AccessSource::Kubeconfig {
                path: path.into(),
                context,
                flags,
            })
        }
        (None, None) => Ok(AccessSource::InCluster { flag: flags.kubeconfig }),
        (None, Some(context)) => {
            let Flags {
                kubeconfig,
                context: flag,
            } = flags;
            Err(UsageError::new(format!(
                "{flag} {context:?}: must come with {kubeconfig}"
            )))
        }
    }
}

/// The error for all missing flags that have no default.
fn missing(raw: &RunArgs) -> UsageError {
    let flags = [
        (
            "--from-kubeconfig",
            &raw.from_kubeconfig,
            "the kubeconfig file of the hub",
        ),
        ("--sync-target-uid", &raw.sync_target_uid, "the UID of the sync target"),
    ];
    let missing = flags
        .iter()
        .filter(|(_, value, _)| value.as_deref().is_none_or(str::is_empty));
    let (names, values): (Vec<&str>, Vec<&str>) = missing.map(|(name, _, value)| (*name, *value)).unzip();
    let (are, they) = if names.len() == 1 {
        ("is", "it")
    } else {
        ("are", "they")
    };
    let note = if names.contains(&"--sync-target-uid") {
        ": any name that stays the same will do, such as site-7"
    } else {
        ""
    };
    let (names, values) = (names.join(" and "), values.join(" and "));
    UsageError::new(format!("{names} {are} missing: {they} must be {values}{note}"))
}

/// A `~` that no shell has expanded is no path: shells do so only at the beginning of a word, service managers never.
fn check_path(flag: &str, path: &str) -> Result<(), UsageError> {
    if !path.starts_with('~') {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "{flag} {path:?}: ~ was not expanded, which shells do only where a word begins: write {flag} {path} without a = in a \
         shell, and the whole path elsewhere"
    )))
}

/// The durations that a flag accepts.
struct Span {
    flag: &'static str,
    default: Duration,
    range: RangeInclusive<Duration>,
    /// `0s` is allowed outside of the range, with a meaning of its own.
    or_zero: bool,
    allowed: &'static str,
}

const POLL_INTERVAL: Span = Span {
    flag: "--poll-interval",
    default: DEFAULT_POLL_INTERVAL,
    range: SHORTEST_POLL_INTERVAL..=Duration::MAX,
    or_zero: false,
    allowed: "a duration of at least 1s, such as 15s or 1m30s",
};

const STATUS_INTERVAL: Span = Span {
    flag: "--status-interval",
    default: DEFAULT_STATUS_INTERVAL,
    range: Duration::ZERO..=Duration::MAX,
    or_zero: true,
    allowed: "a duration, such as 500ms or 10s, or 0s for every change",
};

const HEARTBEAT_INTERVAL: Span = Span {
    flag: "--heartbeat-interval",
    default: DEFAULT_HEARTBEAT_INTERVAL,
    range: SHORTEST_HEARTBEAT_INTERVAL..=Duration::MAX,
    or_zero: true,
    allowed: "a duration of at least 1s, such as 30s or 5m, or 0s for no heartbeat",
};

const HOLD_DELETES_FOR: Span = Span {
    flag: "--hold-deletes-for",
    default: DEFAULT_HOLD_DELETES_FOR,
    range: Duration::ZERO..=Duration::MAX,
    or_zero: true,
    allowed: "a duration, such as 10m or 1h30m, or 0s to hold none",
};

const LEASE_DURATION: Span = Span {
    flag: "--lease-duration",
    default: DEFAULT_LEASE_DURATION,
    range: SHORTEST_LEASE_DURATION..=LONGEST_LEASE_DURATION,
    or_zero: false,
    allowed: "a duration from 3s to 1h, such as 15s",
};

fn duration_of(span: &Span, text: Option<&str>) -> Result<Duration, UsageError> {
    let Some(text) = text else { return Ok(span.default) };
    let fits = |text: &str| {
        let found = duration::parse(text)?;
        (span.range.contains(&found) || span.or_zero && found.is_zero()).then_some(found)
    };
    fits(text).ok_or_else(|| {
        let (flag, allowed, in_seconds) = (span.flag, span.allowed, format!("{text}s"));
        let hint = match fits(&in_seconds) {
            Some(_) => format!("; did you mean {in_seconds}?"),
            None => String::new(),
        };
        UsageError::new(format!("{flag} {text:?}: must be {allowed}{hint}"))
    })
}

fn dry_run(is_asked: bool) -> Result<Option<DryRun>, UsageError> {
    match DryRun::if_able() {
        None if is_asked => Err(UsageError::new(
            "--dry-run: the binary for edges has no dry runs, edge-syncer-admin has".to_owned(),
        )),
        able => Ok(able.filter(|_| is_asked)),
    }
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
    let grace = duration_of(&HOLD_DELETES_FOR, grace)?;
    Ok(Limits { most, grace })
}

fn queue_capacity(text: Option<&str>) -> Result<usize, UsageError> {
    let Some(text) = text else { return Ok(queue::CAPACITY) };
    let allowed = format!("must be a whole number of at least {}", queue::LEAST_CAPACITY);
    let number = text.parse().ok().filter(|&number| number >= queue::LEAST_CAPACITY);
    number.ok_or_else(|| UsageError::new(format!("--queue-capacity {text:?}: {allowed}")))
}

fn mode(flag: &str, mode: Option<&str>, interval: Duration) -> Result<Mode, UsageError> {
    match mode {
        None | Some("watch") => Ok(Mode::Watch),
        Some("poll") => Ok(Mode::Poll(interval)),
        Some(other) => Err(UsageError::new(format!("{flag} {other:?}: must be watch or poll"))),
    }
}

fn log_format(text: Option<&str>) -> Result<LogFormat, UsageError> {
    match text {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => {
            let hint = spelling::hint(other, ["text", "json"]);
            Err(UsageError::new(format!(
                "--log-format {other:?}: must be text or json{hint}"
            )))
        }
    }
}

fn revert_changes_from(given: &[String]) -> Result<Vec<String>, UsageError> {
    if given.is_empty() {
        return Ok(DEFAULT_REVERT_CHANGES_FROM.map(str::to_owned).to_vec());
    }
    let names: Vec<String> = items(given)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    for name in &names {
        if name.strip_suffix('*').unwrap_or(name).contains('*') {
            let allowed = "must be the name of a field manager, with a * at its end for all names that begin so";
            return Err(UsageError::new(format!("--revert-changes-from {name:?}: {allowed}")));
        }
    }
    Ok(names)
}

/// The rules of the flags, each under the word that it begins with in a filter file. An empty value is an error: it
/// must not count as if no bound had been wanted.
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

/// The lowest plausible rate: one request in a quarter of an hour.
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

fn address(text: &str) -> Result<ListenAddress, UsageError> {
    let example =
        "must be a port after an address, such as :8080 for every address, localhost:8080, 10.0.0.1:8080 or [::1]:8080";
    let flag = "--listen-address";
    ListenAddress::parse(flag, text).ok_or_else(|| UsageError::new(format!("{flag} {text:?}: {example}")))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
