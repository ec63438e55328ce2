//! The figures for people and their monitoring, in the text format of Prometheus and in one line for a service manager.
//!
//! Counters grow where things happen; everything else is collected on request ([`Snapshot`]), so that metrics nobody
//! reads cost nothing.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use kube_lite::logging::times::date_and_time;

use crate::api::HOLD_REASONS;
use crate::plan::Direction;
use crate::report::Counters;
use crate::side::Side;
use crate::version;

/// What comes before every name.
const PREFIX: &str = "edge_syncer_";

/// The present state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Sides that answer.
    pub up: Vec<Side>,
    /// Objects that are synced, and out of sync, by direction.
    pub objects: BTreeMap<Direction, (usize, usize)>,
    /// Keys that wait for a worker or are being worked on.
    pub queue_length: usize,
    /// Keys that there is room for.
    pub queue_capacity: usize,
    /// Types with keys that found no room and are read again later.
    pub queue_overflowed: usize,
    /// Deletes that are held, by direction and reason. What is absent is zero.
    pub held: BTreeMap<(Direction, &'static str), usize>,
    /// Things that have failed and not worked since.
    pub failing: usize,
    /// What in the configs cannot be followed.
    pub config_problems: ConfigProblems,
    /// Statuses at the hub that the syncer of another sync target has lately written over.
    pub statuses_contested: usize,
    /// When the last heartbeat reached the hub, since 1970.
    pub last_heartbeat: Option<Duration>,
    /// When the credentials for a side end, in seconds since 1970, where that is known.
    pub credentials_end: BTreeMap<Side, u64>,
    /// Sides that do not answer, and for how long.
    pub silent: Vec<(Side, Duration)>,
    /// Sides that refuse the credentials.
    pub refusing: Vec<Side>,
}

/// How much of the configs cannot be followed, by what is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfigProblems {
    /// Configs that cannot be read, and parts that cannot be followed whatever the sides have.
    pub invalid: usize,
    /// Selected types that a side does not serve.
    pub types_not_served: usize,
    /// Selected namespaces that the hub lacks.
    pub namespaces_missing: usize,
}

/// The figures of a syncer that stands by while another one leads.
pub fn render_standby() -> String {
    Page::of_process(false).text
}

/// All figures as text.
pub fn render(counters: &Counters, now: &Snapshot) -> String {
    let mut page = Page::of_process(true);
    page.begin(
        "side_up",
        "gauge",
        "Whether the side answers and accepts the credentials.",
    );
    for side in [Side::Hub, Side::Edge] {
        let is_up = now.up.contains(&side) && !now.refusing.contains(&side);
        page.line(&[("side", &side)], u8::from(is_up));
    }
    objects(&mut page, now);
    queue(&mut page, now);
    since_start(&mut page, counters);
    last_known(&mut page, now);
    page.text
}

fn objects(page: &mut Page, now: &Snapshot) {
    page.begin(
        "objects",
        "gauge",
        "Objects that are selected, by whether there is something to do for them.",
    );
    for direction in [Direction::Down, Direction::Up] {
        let (synced, out_of_sync) = now.objects.get(&direction).copied().unwrap_or_default();
        for (state, count) in [("synced", synced), ("out_of_sync", out_of_sync)] {
            page.line(&[("direction", &direction), ("state", &state)], count);
        }
    }
    page.begin(
        "failing",
        "gauge",
        "Sides, types and objects that failed and have not worked since.",
    );
    page.line(&[], now.failing);
    page.begin(
        "config_problems",
        "gauge",
        "What in the configs cannot be followed, by what is wrong.",
    );
    let problems = now.config_problems;
    for (problem, count) in [
        ("invalid", problems.invalid),
        ("type_not_served", problems.types_not_served),
        ("namespace_missing", problems.namespaces_missing),
    ] {
        page.line(&[("problem", &problem)], count);
    }
    page.begin(
        "statuses_contested",
        "gauge",
        "Statuses at the hub that the syncer of another sync target has lately written over.",
    );
    page.line(&[], now.statuses_contested);
    page.begin("deletes_held", "gauge", "Deletes that wait for time or a confirmation.");
    for direction in [Direction::Down, Direction::Up] {
        // Each reason has its line from the start, so that an alert on it always has data.
        for reason in HOLD_REASONS {
            let count = now.held.get(&(direction, reason)).copied().unwrap_or_default();
            page.line(&[("direction", &direction), ("reason", &reason)], count);
        }
    }
}

fn queue(page: &mut Page, now: &Snapshot) {
    page.begin("queue_length", "gauge", "Objects that wait for their turn in memory.");
    page.line(&[], now.queue_length);
    page.begin("queue_capacity", "gauge", "Objects that may wait in memory.");
    page.line(&[], now.queue_capacity);
    page.begin(
        "queue_overflowed_groups",
        "gauge",
        "Types with objects that found no room in the queue and are read again later.",
    );
    page.line(&[], now.queue_overflowed);
}

fn since_start(page: &mut Page, counters: &Counters) {
    page.begin(
        "writes_total",
        "counter",
        "Writes accepted by the side, by what they were for.",
    );
    for (side, result, count) in counters.writes() {
        page.line(&[("side", &side), ("result", &result)], count);
    }
    page.begin(
        "failures_total",
        "counter",
        "Requests and objects that failed, each time.",
    );
    for side in [Side::Hub, Side::Edge] {
        page.line(&[("side", &side)], counters.failures(side));
    }
}

fn last_known(page: &mut Page, now: &Snapshot) {
    if !now.credentials_end.is_empty() {
        page.begin(
            "credentials_expiration_timestamp_seconds",
            "gauge",
            "When the credentials for the side end.",
        );
        for (side, end) in &now.credentials_end {
            page.line(&[("side", side)], end);
        }
    }
    if let Some(at) = now.last_heartbeat {
        page.begin(
            "last_heartbeat_timestamp_seconds",
            "gauge",
            "When the last heartbeat reached the hub.",
        );
        page.line(&[], at.as_secs());
    }
}

/// The state in one line: `hub unreachable since 14:03 UTC; 41 synced, 1 failing`. `clock` is the time since 1970.
pub fn status(now: &Snapshot, clock: Duration) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (side, silent) in &now.silent {
        let since = date_and_time(clock.saturating_sub(*silent));
        // 2026-11-21T14:03:07Z
        let (day, time) = since.split_once('T').unwrap_or(("", &since));
        let time = time.get(..5).unwrap_or(time);
        let is_today = date_and_time(clock).starts_with(day);
        let (day, space) = if is_today { ("", "") } else { (day, " ") };
        let _ = write!(text, "{side} unreachable since {day}{space}{time} UTC; ");
    }
    for side in &now.refusing {
        let _ = write!(text, "{side} refuses the credentials; ");
    }
    let add = |sum: (usize, usize), one: &(usize, usize)| (sum.0 + one.0, sum.1 + one.1);
    let (synced, waiting) = now.objects.values().fold((0, 0), add);
    let held: usize = now.held.values().sum();
    let _ = write!(text, "{synced} synced");
    for (count, what) in [
        (waiting, "out of sync"),
        (now.failing, "failing"),
        (held, "deletes held"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}

/// The text so far.
#[derive(Default)]
struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    /// A page with the metrics of the process, whether or not it leads.
    fn of_process(leading: bool) -> Self {
        let mut page = Self::default();
        page.begin("build_info", "gauge", "The version that runs; always 1.");
        let target = version::target();
        page.line(
            &[
                ("version", &version::VERSION),
                ("commit", &version::COMMIT),
                ("target", &target),
                ("date", &version::DATE),
            ],
            1,
        );
        page.begin(
            "leading",
            "gauge",
            "1 while it syncs, 0 while it stands by for another syncer.",
        );
        page.line(&[], u8::from(leading));
        page
    }

    /// Begins a metric.
    fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
    }

    /// Adds a value of it. Label values are words of ours that need no escaping.
    fn line(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) {
        let mut labelled = String::new();
        for (label, text) in labels {
            let comma = if labelled.is_empty() { "" } else { "," };
            let _ = write!(labelled, "{comma}{label}=\"{text}\"");
        }
        let braces = if labels.is_empty() { ["", ""] } else { ["{", "}"] };
        let _ = writeln!(
            self.text,
            "{PREFIX}{}{}{labelled}{} {value}",
            self.name, braces[0], braces[1]
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(page: &str) -> Vec<&str> {
        page.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn every_line_is_a_value_of_a_metric_that_was_begun() {
        let page = render(&Counters::default(), &Snapshot::default());
        let mut begun = "";
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["gauge", "counter"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                begun = name;
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert_eq!(name.split('{').next(), Some(begun), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(page.ends_with('\n'));
    }

    #[test]
    fn figures_stand_by_their_labels() {
        let mut counters = Counters::default();
        counters.wrote(Side::Edge, "created");
        counters.wrote(Side::Edge, "created");
        counters.failed(Side::Hub);
        let now = Snapshot {
            up: vec![Side::Hub, Side::Edge],
            refusing: vec![Side::Hub],
            config_problems: ConfigProblems {
                invalid: 2,
                types_not_served: 0,
                namespaces_missing: 1,
            },
            objects: BTreeMap::from([(Direction::Down, (5, 1))]),
            queue_length: 3,
            statuses_contested: 4,
            held: BTreeMap::from([((Direction::Up, "TooMany"), 30)]),
            last_heartbeat: Some(Duration::from_millis(1_795_269_787_123)),
            credentials_end: BTreeMap::from([(Side::Hub, 1_795_269_787)]),
            ..Snapshot::default()
        };
        let page = render(&counters, &now);
        let found = values(&page);
        for expected in [
            &*format!(
                "edge_syncer_build_info{{version=\"{}\",commit=\"{}\",target=\"{}\",date=\"{}\"}} 1",
                env!("CARGO_PKG_VERSION"),
                version::COMMIT,
                version::target(),
                version::DATE,
            ),
            "edge_syncer_side_up{side=\"hub\"} 0",
            "edge_syncer_side_up{side=\"edge\"} 1",
            "edge_syncer_objects{direction=\"downsync\",state=\"synced\"} 5",
            "edge_syncer_objects{direction=\"downsync\",state=\"out_of_sync\"} 1",
            "edge_syncer_objects{direction=\"upsync\",state=\"synced\"} 0",
            "edge_syncer_config_problems{problem=\"invalid\"} 2",
            "edge_syncer_config_problems{problem=\"type_not_served\"} 0",
            "edge_syncer_config_problems{problem=\"namespace_missing\"} 1",
            "edge_syncer_queue_length 3",
            "edge_syncer_statuses_contested 4",
            "edge_syncer_deletes_held{direction=\"upsync\",reason=\"TooMany\"} 30",
            "edge_syncer_deletes_held{direction=\"downsync\",reason=\"OtherCluster\"} 0",
            "edge_syncer_writes_total{side=\"edge\",result=\"created\"} 2",
            "edge_syncer_failures_total{side=\"hub\"} 1",
            "edge_syncer_failures_total{side=\"edge\"} 0",
            "edge_syncer_last_heartbeat_timestamp_seconds 1795269787",
            "edge_syncer_credentials_expiration_timestamp_seconds{side=\"hub\"} 1795269787",
        ] {
            assert!(found.contains(&expected), "{expected} is not in {found:#?}");
        }
    }

    #[test]
    fn says_how_it_is_in_one_line() {
        let now = Duration::from_secs(1_795_269_787);
        let mut snapshot = Snapshot::default();
        let check = |snapshot: &Snapshot, expected: &str| assert_eq!(status(snapshot, now), expected);
        check(&snapshot, "0 synced");
        snapshot.objects.insert(Direction::Down, (40, 0));
        snapshot.objects.insert(Direction::Up, (1, 0));
        snapshot.failing = 1;
        snapshot.silent = vec![(Side::Hub, Duration::from_secs(600))];
        check(&snapshot, "hub unreachable since 13:53 UTC; 41 synced, 1 failing");
        snapshot.silent.push((Side::Edge, Duration::from_secs(2 * 86_400)));
        snapshot.objects.insert(Direction::Down, (40, 2));
        snapshot.held.insert((Direction::Up, "TooMany"), 30);
        check(
            &snapshot,
            "hub unreachable since 13:53 UTC; edge unreachable since 2026-11-19 14:03 UTC; 41 synced, 2 out of sync, \
             1 failing, 30 deletes held",
        );
        let refusing = Snapshot {
            refusing: vec![Side::Hub],
            ..Snapshot::default()
        };
        check(&refusing, "hub refuses the credentials; 0 synced");
    }
}
