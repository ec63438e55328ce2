//! The figures of the agent, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use driver::page::{Now, Page, Server};
use kube_lite::figures::{Ends, Histogram};

use super::group::Group;

/// The ends of the buckets of what it takes to initialize a workspace.
const ENDS: Ends = [
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1000, "1"),
    (5000, "5"),
    (15_000, "15"),
    (60_000, "60"),
];

/// What is counted of a target.
#[derive(Debug, Default)]
pub(super) struct Counters {
    initialized: Histogram,
    pub(super) failed_runs: u64,
}

impl Counters {
    /// A workspace is initialized, so long after it was seen first.
    pub(super) fn initialized(&mut self, lasted: Duration) {
        self.initialized.add(&ENDS, lasted);
    }
}

/// The figures of an agent that stands by while another one leads.
pub(crate) fn render_standby() -> String {
    page(false).text
}

/// A page with the metrics of the process.
fn page(leads: bool) -> Page {
    let mut page = Page::new("edge_syncer_init_");
    page.begin("leading", "gauge", "Whether this process does the work.");
    page.line(&[], u8::from(leads));
    page.process();
    page
}

/// All figures as text.
pub(super) fn render(
    counters: &BTreeMap<Box<str>, Counters>,
    groups: &BTreeMap<Rc<str>, Group>,
    failing: usize,
    servers: &[Server],
    now: Now,
) -> String {
    let mut page = page(true);
    page.begin(
        "failing",
        "gauge",
        "Targets, types, shards and workspaces that fail now.",
    );
    page.line(&[], failing);
    page.begin(
        "workspaces_waiting",
        "gauge",
        "Workspaces that wait for an initializer, by the targets that it stands for.",
    );
    for group in groups.values() {
        for target in &*group.targets {
            page.line(&[("target", &target.metadata.name)], group.waiting());
        }
    }
    page.begin(
        "workspaces_initialized_total",
        "counter",
        "Workspaces whose initializer was taken off.",
    );
    for (target, counters) in counters {
        page.line(&[("target", target)], counters.initialized.count());
    }
    page.begin(
        "failed_runs_total",
        "counter",
        "Runs over a workspace that have failed.",
    );
    for (target, counters) in counters {
        page.line(&[("target", target)], counters.failed_runs);
    }
    page.begin(
        "seconds",
        "histogram",
        "From the first sight of a workspace until its initializer was taken off.",
    );
    for (target, counters) in counters {
        page.histogram(&[("target", target)], &ENDS, &counters.initialized);
    }
    page.servers(servers, now);
    page.text
}
