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
    /// Not empty.
    pub sync_target_uid: String,
    /// The limit for each side, separately; `None` for no limit.
    pub rate: Option<Rate>,
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
    /// The namespace that the syncer runs in, from the environment variable `NAMESPACE` as the manifest sets it.
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
        assert_eq!((found.hub_pace, found.edge_pace), (Pace::Watch, Pace::Watch));
        assert!(!found.delete_adopted && found.filter.is_empty());
        assert_eq!(found.take_back_from, ["kubectl", "kubectl-*"]);
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
    fn paces_each_side_by_its_own_mode() {
        let poll = |seconds| Pace::Poll(Duration::from_secs(seconds));
        for (hub, edge, interval, expected) in [
            ("watch", "watch", "30s", (Pace::Watch, Pace::Watch)),
            ("poll", "watch", "", (poll(15), Pace::Watch)),
            ("watch", "poll", "1m30s", (Pace::Watch, poll(90))),
            ("poll", "poll", "1s", (poll(1), poll(1))),
        ] {
            let set = |raw: &mut RunArgs| {
                raw.mode = Some(hub.to_owned());
                raw.edge_mode = Some(edge.to_owned());
                raw.poll_interval = not_empty(Some(interval.to_owned()));
            };
            let found = check(set).unwrap();
            assert_eq!((found.hub_pace, found.edge_pace), expected, "{hub} {edge} {interval}");
        }
    }

    #[test]
    fn holds_a_lease_only_where_it_is_asked_for() {
        for (elect, duration, expected) in [
            (false, None, None),
            (false, Some("10s"), None),
            (true, None, Some(15)),
            (true, Some("3s"), Some(3)),
            (true, Some("1h"), Some(3600)),
        ] {
            let set = |raw: &mut RunArgs| {
                raw.leader_elect = elect;
                raw.lease_duration = duration.map(str::to_owned);
            };
            let found = check(set).unwrap().lease_duration;
            assert_eq!(found, expected.map(Duration::from_secs), "{elect} {duration:?}");
        }
        for text in ["", "15", "2999ms", "61m"] {
            let message = check(|raw| raw.lease_duration = Some(text.to_owned())).unwrap_err();
            let expected = format!("--lease-duration {text:?}: must be a duration from 3s to 1h");
            assert_eq!(message, expected);
        }
    }

    fn texts(given: &[&str]) -> Vec<String> {
        given.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn takes_back_from_the_given_managers_alone() {
        for (given, expected) in [
            (&[""][..], &[][..]),
            (&["", "a"], &["a"]),
            (&["a,b-*", "c d , *"], &["a", "b-*", "c d", "*"]),
        ] {
            let found = check(|raw| raw.take_back_from = texts(given)).unwrap();
            assert_eq!(found.take_back_from, expected, "{given:?}");
        }
    }

    #[test]
    fn takes_the_flags_of_the_filter_for_rules() {
        let set = |raw: &mut RunArgs| {
            raw.deny = texts(&["secrets, *.apps", "pods"]);
            raw.allow_namespace = texts(&["shop-*"]);
            raw.deny_namespace = texts(&["a,b"]);
        };
        let mut expected = Filter::default();
        let text = "deny secrets\ndeny *.apps\ndeny pods\nallow-namespace shop-*\ndeny-namespace a\ndeny-namespace b";
        expected.add_file("", text).unwrap();
        assert_eq!(check(set).unwrap().filter, expected);
    }

    #[test]
    fn says_what_is_allowed_of_paces_and_patterns() {
        let some = |text: &str| Some(text.to_owned());
        for (found, expected) in [
            (
                check(|raw| raw.edge_mode = some("")),
                "--edge-mode \"\": must be watch or poll",
            ),
            (
                check(|raw| raw.poll_interval = some("15")),
                "--poll-interval \"15\": must be a duration of at least 1s, such as 15s or 1m30s",
            ),
            (
                check(|raw| raw.poll_interval = some("999ms")),
                "--poll-interval \"999ms\": must be a duration of at least 1s, such as 15s or 1m30s",
            ),
            (
                check(|raw| raw.take_back_from = texts(&["a,k*l"])),
                "--take-back-from \"k*l\": must be the name of a field manager, with a * at its end for all names that \
                 begin so",
            ),
            (
                check(|raw| raw.deny = texts(&["deployments"])),
                "--deny \"deployments\": is no plural of the core group; write the group too, such as deployments.apps",
            ),
        ] {
            assert_eq!(found.err().as_deref(), Some(expected));
        }
    }

    #[test]
    fn refuses_an_empty_bound() {
        for (flag, found) in [
            ("--deny", check(|raw| raw.deny = texts(&[""]))),
            ("--deny", check(|raw| raw.deny = texts(&["secrets,"]))),
            ("--allow-namespace", check(|raw| raw.allow_namespace = texts(&[""]))),
            ("--deny-namespace", check(|raw| raw.deny_namespace = texts(&["a", ""]))),
        ] {
            let message = found.unwrap_err();
            assert!(message.starts_with(&format!("{flag} \"\": must be ")), "{message}");
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
