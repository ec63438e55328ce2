//! The figures for people and their monitoring, in the text format of Prometheus and in one line for a service manager.
//!
//! Counters grow where things happen; everything else is collected on request ([`Snapshot`]), so that metrics nobody
//! reads cost nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use driver::few::Few;
use driver::page::{Now, Page, Seconds, Server};
use kube_lite::logging::times::date_and_time;

use crate::api::HOLD_REASONS;
use crate::plan::Direction;
use crate::report::{Counters, SYNC_ENDS};
use crate::side::Side;
use crate::version;

/// The present state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Sides that answer.
    pub up: Vec<Side>,
    /// Objects that are synced, and out of sync, by direction.
    pub objects: Few<Direction, (usize, usize)>,
    /// Keys that wait for a worker or are being worked on.
    pub queue_length: usize,
    /// Keys that there is room for.
    pub queue_capacity: usize,
    /// Types with keys that found no room and are read again later.
    pub queue_overflowed: usize,
    /// How long there has been something to do for that key for which it is longest.
    pub queue_oldest: Duration,
    /// Deletes that are held, by direction and reason. What is absent is zero.
    pub held: BTreeMap<(Direction, &'static str), usize>,
    /// Things that have failed and not worked since.
    pub failing: usize,
    /// Copies that have somebody else's object in their place.
    pub conflicts: usize,
    /// What in the configs cannot be followed.
    pub config_problems: ConfigProblems,
    /// Statuses at the hub that the syncer of another sync target has lately written over.
    pub statuses_contested: usize,
    /// When the last heartbeat reached the hub, since 1970.
    pub last_heartbeat: Option<Duration>,
    /// When the credentials for a side end, in seconds since 1970, where that is known.
    pub credentials_end: Few<Side, u64>,
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
    page(false).text
}

/// All figures as text.
pub fn render(counters: &Counters, now: &Snapshot, servers: &[Server], moment: Now) -> String {
    let mut page = page(true);
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
    page.servers(servers, moment);
    page.text
}

/// A page with the metrics of the process, whether or not it leads.
fn page(leading: bool) -> Page {
    let mut page = Page::new("edge_syncer_");
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
    let help = "1 while it syncs, 0 while it stands by for another syncer.";
    page.single("leading", "gauge", help, u8::from(leading));
    page.process();
    page
}

fn objects(page: &mut Page, now: &Snapshot) {
    page.begin(
        "objects",
        "gauge",
        "Objects that are selected, by whether there is something to do for them.",
    );
    for direction in [Direction::Down, Direction::Up] {
        let (synced, out_of_sync) = now.objects.get(direction).copied().unwrap_or_default();
        for (state, count) in [("synced", synced), ("out_of_sync", out_of_sync)] {
            page.line(&[("direction", &direction), ("state", &state)], count);
        }
    }
    let help = "Sides, types and objects that failed and have not worked since.";
    page.single("failing", "gauge", help, now.failing);
    let help = "Copies that are not made because somebody else's object has their name.";
    page.single("conflicts", "gauge", help, now.conflicts);
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
    let help = "Statuses at the hub that the syncer of another sync target has lately written over.";
    page.single("statuses_contested", "gauge", help, now.statuses_contested);
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
    for (name, help, value) in [
        (
            "queue_length",
            "Objects that wait for their turn in memory.",
            now.queue_length,
        ),
        ("queue_capacity", "Objects that may wait in memory.", now.queue_capacity),
        (
            "queue_overflowed_groups",
            "Types with objects that found no room in the queue and are read again later.",
            now.queue_overflowed,
        ),
    ] {
        page.single(name, "gauge", help, value);
    }
    let help = "How long there has been something to do for the object for which it is longest.";
    page.single("queue_oldest_seconds", "gauge", help, Seconds(now.queue_oldest));
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
    let help = "Copies that somebody else had changed or deleted, and that are as they were.";
    page.single("drift_corrections_total", "counter", help, counters.corrections());
    page.begin(
        "sync_duration_seconds",
        "histogram",
        "Time from when there is something to do for an object until its copy is written.",
    );
    for direction in [Direction::Down, Direction::Up] {
        let lasted = counters.sync_duration(direction.copy());
        page.histogram(&[("direction", &direction)], &SYNC_ENDS, &lasted);
    }
}

fn last_known(page: &mut Page, now: &Snapshot) {
    if !now.credentials_end.is_empty() {
        page.begin(
            "credentials_expiration_timestamp_seconds",
            "gauge",
            "When the credentials for the side end.",
        );
        for (side, end) in now.credentials_end.iter() {
            page.line(&[("side", &side)], end);
        }
    }
    if let Some(at) = now.last_heartbeat {
        let help = "When the last heartbeat reached the hub.";
        page.single("last_heartbeat_timestamp_seconds", "gauge", help, at.as_secs());
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use futures_util::future::LocalBoxFuture;
    use kube_lite::{ApiServer, Cluster, Error, RateLimit, Response};
    use tokio::time::Instant;

    use super::*;

    const MOMENT: Duration = Duration::from_secs(1_795_269_787);

    fn rendered(counters: &Counters, now: &Snapshot, servers: &[Server]) -> String {
        let at = Instant::now();
        let moment = Now { at, since_1970: MOMENT };
        render(counters, now, servers, moment)
    }

    fn values(page: &str) -> Vec<&str> {
        page.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn every_line_is_a_value_of_a_metric_that_was_begun() {
        let page = rendered(&Counters::default(), &Snapshot::default(), &[]);
        let (mut begun, mut of) = ("", "");
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["gauge", "counter", "histogram"].contains(&kind), "{line}");
                of = kind;
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                begun = name;
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let name = name.split('{').next().unwrap_or_default();
                let rest = name.strip_prefix(begun).unwrap_or_else(|| panic!("{line}"));
                let is_part = ["_bucket", "_sum", "_count"].contains(&rest);
                assert!(if of == "histogram" { is_part } else { rest.is_empty() }, "{line}");
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
            objects: [(Direction::Down, (5, 1))].into_iter().collect(),
            queue_length: 3,
            statuses_contested: 4,
            conflicts: 6,
            queue_oldest: Duration::from_millis(61_005),
            held: BTreeMap::from([((Direction::Up, "TooMany"), 30)]),
            last_heartbeat: Some(Duration::from_millis(1_795_269_787_123)),
            credentials_end: [(Side::Hub, 1_795_269_787)].into_iter().collect(),
            ..Snapshot::default()
        };
        counters.corrected();
        counters.synced(Side::Hub, Duration::from_millis(1500));
        let page = rendered(&counters, &now, &[]);
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
            "edge_syncer_queue_oldest_seconds 61.005",
            "edge_syncer_conflicts 6",
            "edge_syncer_drift_corrections_total 1",
            "edge_syncer_sync_duration_seconds_bucket{direction=\"upsync\",le=\"0.5\"} 0",
            "edge_syncer_sync_duration_seconds_bucket{direction=\"upsync\",le=\"2\"} 1",
            "edge_syncer_sync_duration_seconds_bucket{direction=\"upsync\",le=\"+Inf\"} 1",
            "edge_syncer_sync_duration_seconds_sum{direction=\"upsync\"} 1.500",
            "edge_syncer_sync_duration_seconds_count{direction=\"downsync\"} 0",
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

    /// Answers each request with the next code, and says a time that no clock has.
    struct Fails(Cell<u16>);

    impl ApiServer for Fails {
        fn send(&self, _: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            self.0.set(self.0.get() + 1);
            Box::pin(async { Ok(Response::whole(self.0.get(), "{}")) })
        }

        fn time(&self) -> Option<u64> {
            Some(0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_has_two_hundred_lines_at_most_whatever_fails() {
        let mut counters = Counters::default();
        let mut now = Snapshot {
            last_heartbeat: Some(Duration::ZERO),
            ..Snapshot::default()
        };
        let mut servers = Vec::new();
        for side in [Side::Hub, Side::Edge] {
            now.credentials_end.insert(side, 0);
            let changes = [
                "created",
                "updated",
                "deleted",
                "adopted",
                "released",
                "replaced",
                "create_only",
                "status",
                "heartbeat",
            ];
            // The hub alone has heartbeats.
            for result in &changes[..changes.len() - usize::from(side == Side::Edge)] {
                counters.wrote(side, result);
            }
            let server = Box::new(Fails(Cell::new(403)));
            let cluster = Cluster::new(side.word(), server, RateLimit::new(None), "edge-syncer");
            for _ in 0..40 {
                cluster.get_path("/apis").await.unwrap_err();
            }
            servers.push(Server {
                side: side.word(),
                standing: cluster.standing(),
            });
        }
        let page = rendered(&counters, &now, &servers);
        for part in [
            "clock_skew_seconds{side=\"edge\"} -1795269787\n",
            "last_contact_timestamp_seconds{side=\"hub\"} 1795269787.000\n",
            "requests_total{side=\"hub\",verb=\"read\",code=\"404\"} 1\n",
            "requests_total{side=\"edge\",verb=\"other\",code=\"other\"} 3",
            "request_duration_seconds_count{side=\"edge\",verb=\"read\"} ",
            "link_bytes_total{side=\"edge\",way=\"sent\"} 0\n",
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
            "process_open_fds ",
            "process_start_time_seconds ",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        let lines = page.lines().count();
        assert!(lines <= 200, "{lines} lines:\n{page}");
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
