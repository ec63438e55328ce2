//! One life of a syncer, from its start to its end, seen from outside.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::link::{Link, Traffic};
use crate::requests::Requests;
use crate::support::{KubeconfigParts, Pair, Server, Syncer};

/// Silence on both links that counts as quiet: longer than any answer takes, shorter than the pause between two pings.
const QUIET: Duration = Duration::from_secs(2);

/// How long to wait for quiet: a syncer that polls may never be.
const UNREST: Duration = Duration::from_secs(60);

/// A syncer that runs, with links of its own.
pub(crate) struct Life {
    /// The process.
    pub(crate) syncer: Syncer,
    /// When it was started.
    pub(crate) start: Instant,
    /// To the hub.
    pub(crate) hub: Link,
    /// To the edge.
    pub(crate) edge: Link,
    /// Reported of each byte on either link.
    activity: Arc<Notify>,
}

/// What had happened up to one moment.
pub(crate) struct Snapshot {
    cpu: Duration,
    traffic: [Traffic; 2],
    requests: Requests,
}

/// What happened between two moments.
pub(crate) struct Cost {
    /// Processor time.
    pub(crate) cpu: Duration,
    /// At the hub's link and at the edge's.
    pub(crate) traffic: [Traffic; 2],
    /// At both sides.
    pub(crate) requests: Requests,
}

impl Life {
    /// Starts a syncer between the two sides, with a link to each and more flags, beside those of `EDGE_SYNCER_FLAGS`.
    pub(crate) async fn begin(pair: &Pair, flags: &[&str]) -> Self {
        let activity = Arc::new(Notify::new());
        let hub = Link::open(pair.hub.url(), &activity).await;
        let edge = Link::open(pair.edge.url(), &activity).await;
        let program = Syncer::program();
        let from = format!("--from-kubeconfig={}", kubeconfig(&pair.hub, &hub));
        let to = format!("--to-kubeconfig={}", kubeconfig(&pair.edge, &edge));
        let mut args: Vec<&str> = subcommand(&program).into_iter().collect();
        args.extend([from.as_str(), &to]);
        args.extend(["--sync-target-uid=footprint", "--qps=2000", "--burst=2000"]);
        args.extend(flags);
        let more = std::env::var("EDGE_SYNCER_FLAGS").unwrap_or_default();
        args.extend(more.split_whitespace());
        let start = Instant::now();
        Self {
            syncer: Syncer::start_program(&program, &args, &[]),
            start,
            hub,
            edge,
            activity,
        }
    }

    /// What has happened until now. The logs are read first, so that this has ended when a period begins.
    pub(crate) fn begin_period(&mut self, pair: &Pair) -> Snapshot {
        let requests = Requests::read(pair);
        Snapshot {
            requests,
            cpu: self.syncer.cpu_time(),
            traffic: self.traffic(),
        }
    }

    /// What has happened since `earlier`. The logs are read last, so that this is not measured.
    pub(crate) fn end_period(&mut self, pair: &Pair, earlier: &Snapshot) -> Cost {
        let [hub, edge] = self.traffic();
        Cost {
            cpu: self.syncer.cpu_time().saturating_sub(earlier.cpu),
            traffic: [hub.since(earlier.traffic[0]), edge.since(earlier.traffic[1])],
            requests: Requests::read(pair).since(&earlier.requests),
        }
    }

    /// Waits until nothing passes either link, and returns how long after the syncer's start the last byte passed.
    /// `None` if there is no quiet.
    pub(crate) async fn settle(&self) -> Option<Duration> {
        let begin = Instant::now();
        let mut last = begin;
        while timeout(QUIET, self.activity.notified()).await.is_ok() {
            last = Instant::now();
            if last - begin > UNREST {
                return None;
            }
        }
        Some(last - self.start)
    }

    fn traffic(&self) -> [Traffic; 2] {
        [self.hub.traffic(), self.edge.traffic()]
    }
}

impl Snapshot {
    /// Before the start of a syncer.
    pub(crate) fn before_start(pair: &Pair) -> Self {
        Self {
            cpu: Duration::ZERO,
            traffic: [Traffic::default(); 2],
            requests: Requests::read(pair),
        }
    }
}

/// A kubeconfig that leads to `server` through `link`. The serving certificate is good for every port of 127.0.0.1.
fn kubeconfig(server: &Server, link: &Link) -> String {
    let parts = KubeconfigParts {
        server: Some(link.url()),
        ..KubeconfigParts::default()
    };
    server.write_kubeconfig("link.kubeconfig", &parts).display().to_string()
}

/// The Go syncer has no subcommands, and edge-syncer needs none when it is called by that name.
fn subcommand(program: &Path) -> Option<&'static str> {
    let is_go = program.file_name().is_some_and(|name| name == "syncer");
    (!is_go).then_some("run")
}
