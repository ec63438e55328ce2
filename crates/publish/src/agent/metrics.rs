//! The figures of the agent, in the text format of Prometheus.

use std::fmt::Write as _;

/// What is counted.
pub(super) struct Figures {
    pub(super) published: usize,
    pub(super) bound: usize,
    pub(super) objects: usize,
    pub(super) pending: usize,
    pub(super) failing: usize,
    pub(super) passes: u64,
}

/// The figures of an agent that stands by while another one leads.
pub(crate) fn render_standby() -> String {
    let mut page = String::new();
    leading(&mut page, 0);
    page
}

/// All figures as text.
pub(super) fn render(figures: &Figures) -> String {
    let mut page = String::new();
    leading(&mut page, 1);
    let gauges = [
        (
            "sync_agent_published_resource",
            "PublishedResources that the selector matches.",
            figures.published,
        ),
        (
            "edge_syncer_publish_workspaces_bound",
            "Workspaces that have bound the export.",
            figures.bound,
        ),
        (
            "edge_syncer_publish_objects",
            "Objects in workspaces that are synced.",
            figures.objects,
        ),
        (
            "edge_syncer_publish_objects_pending",
            "Objects that are not in sync now.",
            figures.pending,
        ),
        (
            "edge_syncer_publish_failing",
            "PublishedResources, objects and lists that fail now.",
            figures.failing,
        ),
    ];
    for (name, help, value) in gauges {
        line(&mut page, [name, "gauge", help], value as u64);
    }
    let passes = ["edge_syncer_publish_passes_total", "counter", "Passes over objects."];
    line(&mut page, passes, figures.passes);
    page
}

fn leading(page: &mut String, value: u64) {
    let leading = [
        "edge_syncer_publish_leading",
        "gauge",
        "Whether this process does the work.",
    ];
    line(page, leading, value);
}

fn line(page: &mut String, [name, kind, help]: [&str; 3], value: u64) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}
