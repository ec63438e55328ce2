//! A page of metrics, in the text format of Prometheus.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use kube_lite::Standing;
use kube_lite::figures::{Ends, Histogram, REQUEST_ENDS};
use tokio::time::Instant;

use crate::process::Process;

/// The ways of [`Standing::link_bytes`].
const WAYS: [&str; 2] = ["received", "sent"];

/// The text so far.
pub struct Page {
    /// All metrics.
    pub text: String,
    /// What comes before the names of metrics of the program.
    prefix: &'static str,
    /// The metric that was begun last, with the prefix.
    name: String,
}

/// A time as seconds, to the millisecond.
pub struct Seconds(pub Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.as_secs(), self.0.subsec_millis())
    }
}

/// A server whose figures are on the page.
pub struct Server {
    /// The value of its label.
    pub side: &'static str,
    /// The contact with it.
    pub standing: Standing,
}

impl Server {
    /// Those of the contacts that have a name here.
    pub fn all_of<S: Copy + PartialEq>(contacts: &[(S, Standing)], names: &[(S, &'static str)]) -> Vec<Self> {
        let of = |&(side, name): &(S, &'static str)| {
            let (_, standing) = contacts.iter().find(|(other, _)| *other == side)?;
            Some(Self {
                side: name,
                standing: standing.clone(),
            })
        };
        names.iter().filter_map(of).collect()
    }
}

/// The same moment by two clocks.
#[derive(Clone, Copy)]
pub struct Now {
    /// That of the loop.
    pub at: Instant,
    /// The wall clock, since 1970.
    pub since_1970: Duration,
}

impl Page {
    /// A page whose metrics begin with this prefix.
    pub fn new(prefix: &'static str) -> Self {
        Self {
            text: String::new(),
            prefix,
            name: String::new(),
        }
    }

    /// Begins a metric.
    pub fn begin(&mut self, name: &str, kind: &str, help: &str) {
        self.begin_named(format!("{}{name}", self.prefix), kind, help);
    }

    /// The same for one with another prefix.
    pub fn begin_named(&mut self, name: String, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self.name = name;
    }

    /// Adds a value of it. Label values are words of ours that need no escaping.
    pub fn line(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.line_of("", labels, &value);
    }

    fn line_of(&mut self, suffix: &str, labels: &[(&str, &dyn Display)], value: &dyn Display) {
        let mut labelled = String::new();
        for (label, text) in labels {
            let comma = if labelled.is_empty() { "" } else { "," };
            let _ = write!(labelled, "{comma}{label}=\"{text}\"");
        }
        let braces = if labels.is_empty() { ["", ""] } else { ["{", "}"] };
        let _ = writeln!(
            self.text,
            "{}{suffix}{}{labelled}{} {value}",
            self.name, braces[0], braces[1]
        );
    }

    /// Adds a metric without labels.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.begin(name, kind, help);
        self.line(&[], value);
    }

    /// Adds the buckets of a histogram, whose ends are these, its sum and its count.
    pub fn histogram(&mut self, labels: &[(&str, &dyn Display)], ends: &Ends, histogram: &Histogram) {
        let ends = ends.iter().map(|(_, text)| *text).chain(["+Inf"]);
        for (end, count) in ends.zip(histogram.counts()) {
            let bucket = [labels, &[("le", &end)]].concat();
            self.line_of("_bucket", &bucket, &count);
        }
        self.line_of("_sum", labels, &Seconds(histogram.sum()));
        self.line_of("_count", labels, &histogram.count());
    }

    /// Adds what the system counts of this process, under the names that all programs have for it.
    pub fn process(&mut self) {
        let Process {
            cpu,
            began,
            resident,
            files,
        } = Process::now();
        let (cpu, began) = (cpu.map(Seconds), began.map(Seconds));
        let all: [(&str, &str, &str, Option<&dyn Display>); 4] = [
            (
                "cpu_seconds_total",
                "counter",
                "Time on a processor.",
                cpu.as_ref().map(|it| it as _),
            ),
            (
                "start_time_seconds",
                "gauge",
                "When the process began.",
                began.as_ref().map(|it| it as _),
            ),
            (
                "resident_memory_bytes",
                "gauge",
                "Memory that is there.",
                resident.as_ref().map(|it| it as _),
            ),
            (
                "open_fds",
                "gauge",
                "Open file descriptors.",
                files.as_ref().map(|it| it as _),
            ),
        ];
        for (name, kind, help, value) in all {
            if let Some(value) = value {
                self.begin_named(format!("process_{name}"), kind, help);
                self.line_of("", &[], value);
            }
        }
    }

    /// Adds what was counted of the requests to servers, and the contact with them.
    pub fn servers(&mut self, servers: &[Server], now: Now) {
        self.contact(servers, now);
        self.begin("requests_total", "counter", "Requests, by the code of the answer.");
        for Server { side, standing } in servers {
            for (kind, count) in standing.figures.requests() {
                let (verb, code): (&dyn Display, &dyn Display) = match &kind {
                    Some((verb, 0)) => (verb, &"none"),
                    Some((verb, code)) => (verb, code),
                    None => (&"other", &"other"),
                };
                self.line(&[("side", side), ("verb", verb), ("code", code)], count);
            }
        }
        self.begin(
            "request_duration_seconds",
            "histogram",
            "Time until the head of the answer is there.",
        );
        for Server { side, standing } in servers {
            for (verb, histogram) in standing.figures.durations() {
                self.histogram(&[("side", side), ("verb", &verb)], &REQUEST_ENDS, &histogram);
            }
        }
        self.begin(
            "link_bytes_total",
            "counter",
            "Bytes over the link to the side, without those of TLS.",
        );
        for Server { side, standing } in servers {
            for (way, bytes) in WAYS.into_iter().zip(standing.link_bytes) {
                self.line(&[("side", side), ("way", &way)], bytes);
            }
        }
    }

    fn contact(&mut self, servers: &[Server], now: Now) {
        let heard = |server: &Server| {
            let ago = now.at.duration_since(server.standing.figures.heard()?);
            Some(Seconds(now.since_1970.saturating_sub(ago)))
        };
        self.of_each(
            [
                "last_contact_timestamp_seconds",
                "When something last came from the side.",
            ],
            servers,
            heard,
        );
        let ahead = |server: &Server| server.standing.figures.clock_ahead(now.at, now.since_1970);
        self.of_each(
            [
                "clock_skew_seconds",
                "How far the side's clock is ahead of this machine's; negative where it is behind.",
            ],
            servers,
            ahead,
        );
    }

    /// Adds a gauge of each server that has it; nothing if none has.
    fn of_each<T: Display>(&mut self, [name, help]: [&str; 2], servers: &[Server], of: impl Fn(&Server) -> Option<T>) {
        let mut is_begun = false;
        for server in servers {
            let Some(value) = of(server) else { continue };
            if !std::mem::replace(&mut is_begun, true) {
                self.begin(name, "gauge", help);
            }
            self.line(&[("side", &server.side)], value);
        }
    }
}
