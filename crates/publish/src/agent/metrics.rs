//! The figures of the agent, in the text format of Prometheus.

use driver::page::{Now, Page, Server};

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
    page(false).text
}

/// A page with the metrics of the process.
fn page(leads: bool) -> Page {
    let mut page = Page::new("edge_syncer_publish_");
    let help = "Whether this process does the work.";
    page.single("leading", "gauge", help, u8::from(leads));
    page.process();
    page
}

/// All figures as text.
pub(super) fn render(figures: &Figures, servers: &[Server], now: Now) -> String {
    let mut page = page(true);
    // As the Go agent has it.
    let name = "sync_agent_published_resource".to_owned();
    page.begin_named(name, "gauge", "PublishedResources that the selector matches.");
    page.line(&[], figures.published);
    for (name, help, value) in [
        (
            "workspaces_bound",
            "Workspaces that have bound the export.",
            figures.bound,
        ),
        ("objects", "Objects in workspaces that are synced.", figures.objects),
        ("objects_pending", "Objects that are not in sync now.", figures.pending),
        (
            "failing",
            "PublishedResources, objects and lists that fail now.",
            figures.failing,
        ),
    ] {
        page.single(name, "gauge", help, value);
    }
    page.single("passes_total", "counter", "Passes over objects.", figures.passes);
    page.servers(servers, now);
    page.text
}
