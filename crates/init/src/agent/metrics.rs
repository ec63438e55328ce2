//! The figures of the agent, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use super::group::Group;

/// The upper ends of the buckets, in seconds.
const BUCKETS: [f64; 8] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// What is counted of a target.
#[derive(Debug, Default)]
pub(super) struct Counters {
    initialized: u64,
    pub(super) failed_runs: u64,
    seconds: f64,
    /// How many took no longer than the end of each bucket.
    buckets: [u64; BUCKETS.len()],
}

impl Counters {
    /// A workspace is initialized, so long after it was seen first.
    pub(super) fn initialized(&mut self, lasted: Duration) {
        let seconds = lasted.as_secs_f64();
        self.initialized += 1;
        self.seconds += seconds;
        for (count, end) in self.buckets.iter_mut().zip(BUCKETS) {
            *count += u64::from(seconds <= end);
        }
    }
}

/// The figures of an agent that stands by while another one leads.
pub(crate) fn render_standby() -> String {
    let mut page = Page::default();
    page.begin("leading", "gauge", "Whether this process does the work.");
    page.line("leading", "", &0);
    page.0
}

/// All figures as text.
pub(super) fn render(
    counters: &BTreeMap<Box<str>, Counters>,
    groups: &BTreeMap<Rc<str>, Group>,
    failing: usize,
) -> String {
    let mut page = Page::default();
    page.begin("leading", "gauge", "Whether this process does the work.");
    page.line("leading", "", &1);
    page.begin(
        "failing",
        "gauge",
        "Targets, types, shards and workspaces that fail now.",
    );
    page.line("failing", "", &failing);
    page.begin(
        "workspaces_waiting",
        "gauge",
        "Workspaces that wait for an initializer, by the targets that it stands for.",
    );
    for group in groups.values() {
        for target in &*group.targets {
            page.line("workspaces_waiting", &of(&target.metadata.name), &group.waiting());
        }
    }
    page.begin(
        "workspaces_initialized_total",
        "counter",
        "Workspaces whose initializer was taken off.",
    );
    page.count("workspaces_initialized_total", counters, |counters| {
        counters.initialized
    });
    page.begin(
        "failed_runs_total",
        "counter",
        "Runs over a workspace that have failed.",
    );
    page.count("failed_runs_total", counters, |counters| counters.failed_runs);
    page.begin(
        "seconds",
        "histogram",
        "From the first sight of a workspace until its initializer was taken off.",
    );
    for (target, counters) in counters {
        for (count, end) in counters.buckets.iter().zip(BUCKETS) {
            page.line("seconds_bucket", &format!("{},le=\"{end}\"", of(target)), count);
        }
        page.line(
            "seconds_bucket",
            &format!("{},le=\"+Inf\"", of(target)),
            &counters.initialized,
        );
        page.line("seconds_sum", &of(target), &counters.seconds);
        page.line("seconds_count", &of(target), &counters.initialized);
    }
    page.0
}

/// The label of a target. Its name has no character that would have to be escaped.
fn of(target: &str) -> String {
    format!("target=\"{target}\"")
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = write!(
            self.0,
            "# HELP edge_syncer_init_{name} {help}\n# TYPE edge_syncer_init_{name} {kind}\n"
        );
    }

    /// A line for each target.
    fn count(&mut self, name: &str, counters: &BTreeMap<Box<str>, Counters>, of_target: fn(&Counters) -> u64) {
        for (target, counters) in counters {
            self.line(name, &of(target), &of_target(counters));
        }
    }

    fn line(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let _ = writeln!(self.0, "edge_syncer_init_{name}{labels} {value}");
    }
}
