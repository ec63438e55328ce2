//! What is measured, step by step. Each step adds its figures.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::life::{Cost, Life, Snapshot};
use crate::link::Traffic;
use crate::progress;
use crate::requests::Requests;
use crate::support::edge_watch::EdgeWatch;
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::story::config_map_entry;
use crate::support::{Pair, PairOptions, eventually};
use crate::table::{bytes, megabytes, milliseconds, seconds};

const NAMESPACE: &str = "load";
/// Bytes in each `ConfigMap`.
const BODY: usize = 4096;
/// Requests in flight while the hub is filled.
const AT_ONCE: usize = 16;
/// How long a convergence or a change may take. Slow syncers are measured too.
const DEADLINE: Duration = Duration::from_secs(900);

/// What was found for one number of objects, in the order in which it was.
#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<(String, String)>,
    requests: Vec<(&'static str, Requests)>,
}

impl Figures {
    /// Adds a row.
    pub(crate) fn add(&mut self, what: impl Into<String>, figure: String) {
        self.rows.push((what.into(), figure));
    }

    /// All rows: what it is, and the figure.
    pub(crate) fn rows(&self) -> &[(String, String)] {
        &self.rows
    }

    /// The requests of each phase.
    pub(crate) fn requests(&self) -> &[(&'static str, Requests)] {
        &self.requests
    }

    fn add_cost(&mut self, phase: &'static str, cost: Cost) {
        let [hub, edge] = cost.traffic;
        let requests = [cost.requests.count("hub"), cost.requests.count("edge")];
        self.add(
            format!("{phase}: requests, hub + edge"),
            format!("{} + {}", requests[0], requests[1]),
        );
        self.add(format!("{phase}: bytes over the hub's link, in / out"), both_ways(hub));
        self.add(
            format!("{phase}: bytes over the edge's link, in / out"),
            both_ways(edge),
        );
        self.add(
            format!("{phase}: connections opened, hub + edge"),
            format!("{} + {}", hub.connections, edge.connections),
        );
        self.add(format!("{phase}: CPU time"), seconds(cost.cpu));
        self.requests.push((phase, cost.requests));
    }
}

/// Two servers with `count` objects at the hub, and the syncer between them.
pub(crate) struct Bench {
    count: u32,
    life: Life,
    before: Snapshot,
    figures: Figures,
    pair: Pair,
}

impl Bench {
    /// Starts the servers, fills the hub, and then starts the syncer.
    pub(crate) async fn start(count: u32) -> Self {
        progress(count, "starting two API servers");
        let pair = Pair::start(PairOptions::default()).await;
        progress(count, "creating the objects at the hub");
        fill(&pair, count).await;
        progress(count, "starting the syncer");
        let before = Snapshot::before_start(&pair);
        Self {
            count,
            life: Life::begin(&pair).await,
            before,
            figures: Figures::default(),
            pair,
        }
    }

    /// Waits until the edge has everything.
    pub(crate) async fn converge(&mut self) {
        self.await_copies().await;
        let took = self.life.start.elapsed();
        progress(self.count, &format!("converged after {}", seconds(took)));
        self.figures.add("first convergence", seconds(took));
        // What the edge then tells of the last copies belongs to it, if that comes to an end.
        let mut cost = self.life.end_period(&self.pair, &self.before);
        if self.life.settle().await.is_some() {
            cost = self.life.end_period(&self.pair, &self.before);
        }
        self.figures.add_cost("first convergence", cost);
        self.add_memory("after convergence");
    }

    /// Changes objects at the hub, one after the other, each when the change before has arrived.
    pub(crate) async fn time_updates(&mut self, updates: u32) {
        progress(
            self.count,
            &format!("changing {updates} objects at the hub, one by one"),
        );
        let hub = self.pair.hub.objects();
        let first = self.pair.edge.objects().read(&copies_path("?limit=1")).await;
        let version = first.expect("the edge can be listed")["metadata"]["resourceVersion"].take();
        let version = version.as_str().expect("a list has a version");
        let path = copies_path(&format!("?resourceVersion={version}"));
        let mut watch = EdgeWatch::start(&self.pair.edge.client(), &[&path]).await;
        let mut times = Vec::new();
        for update in 0..updates {
            let name = name(u64::from(update) * u64::from(self.count) / u64::from(updates));
            let change = json!({"data": {"update": update.to_string()}});
            hub.merge_patch("v1", "configmaps", NAMESPACE, &name, &change).await;
            let answered = Instant::now();
            let what = format!("change {update} of {name} arrives at the edge");
            let arrived = watch
                .wait_within(DEADLINE, &what, |copy| {
                    copy.is("ConfigMap", &name) && copy.object["data"]["update"] == change["data"]["update"]
                })
                .await;
            times.push(arrived.saturating_duration_since(answered));
        }
        times.sort();
        let (half, all) = (times[times.len() / 2], times[times.len() - 1]);
        self.figures.add(
            format!("hub change to edge, p50 / max of {updates}"),
            format!("{} / {}", milliseconds(half), milliseconds(all)),
        );
        self.life.settle().await;
    }

    /// Does nothing for the time of `period`.
    pub(crate) async fn stay_idle(&mut self, period: Duration) {
        progress(self.count, &format!("idle for {} s", period.as_secs()));
        let begin = self.life.begin_period(&self.pair);
        // Not to wait for something: this is what is measured.
        sleep(period).await;
        let cost = self.life.end_period(&self.pair, &begin);
        let [hub, edge] = cost.traffic.map(|traffic| per_minute(traffic.bytes(), period));
        let [hub_requests, edge_requests] =
            ["hub", "edge"].map(|side| per_minute(cost.requests.count(side) as u64, period));
        self.add_memory("after the idle time");
        let figures = &mut self.figures;
        figures.add(
            "idle: requests a minute, hub + edge",
            format!("{hub_requests} + {edge_requests}"),
        );
        figures.add("idle: bytes a minute, both links", bytes(hub + edge));
        figures.add(
            "idle: bytes a minute, hub + edge",
            format!("{} + {}", bytes(hub), bytes(edge)),
        );
        let cpu = cost.cpu.mul_f64(60.0 / period.as_secs_f64());
        figures.add("idle: CPU time a minute", seconds(cpu));
        figures.requests.push(("idle", cost.requests));
    }

    /// Ends the syncer as a power cut does and starts it again.
    pub(crate) async fn restart(&mut self) {
        progress(self.count, "restarting the syncer");
        let copies = self.versions().await;
        self.life.syncer.kill();
        self.before = Snapshot::before_start(&self.pair);
        self.life = Life::begin(&self.pair).await;
        let quiet = self.life.settle().await;
        let cost = self.life.end_period(&self.pair, &self.before);
        let now = self.versions().await;
        let changed =
            now.len().abs_diff(copies.len()) + now.iter().zip(&copies).filter(|(one, other)| one != other).count();
        self.figures.add(
            "restart: until quiet",
            quiet.map_or_else(|| "never".to_owned(), seconds),
        );
        self.figures.add_cost("restart", cost);
        self.figures.add("restart: copies changed", changed.to_string());
    }

    /// Ends everything; gives what was found.
    pub(crate) fn end(self) -> Figures {
        progress(self.count, "done");
        self.figures
    }

    async fn await_copies(&self) {
        let edge = self.pair.edge.objects();
        let path = copies_path("?limit=1");
        eventually("the edge has all copies", DEADLINE, async || {
            let list = edge.read(&path).await.map_err(|error| error.to_string())?;
            let first = list["items"].as_array().map_or(0, Vec::len) as u64;
            let found = first + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
            if found == u64::from(self.count) {
                Ok(())
            } else {
                Err(format!("{found} of {}", self.count))
            }
        })
        .await;
    }

    /// Name, UID and version of each copy, in the order of names.
    async fn versions(&self) -> Vec<[Value; 3]> {
        let mut copies = self.pair.edge.objects().list("v1", "configmaps", NAMESPACE, "").await;
        let fields = |copy: &mut Value| ["name", "uid", "resourceVersion"].map(|field| copy["metadata"][field].take());
        copies.iter_mut().map(fields).collect()
    }

    fn add_memory(&mut self, when: &str) {
        let syncer = &mut self.life.syncer;
        let (resident, peak) = (syncer.resident_kb() * 1024, syncer.peak_kb() * 1024);
        self.figures.add(
            format!("resident memory (peak) {when}"),
            format!("{} ({})", megabytes(resident), megabytes(peak)),
        );
    }
}

/// Creates the objects at the hub and a config that selects them.
async fn fill(pair: &Pair, count: u32) {
    let hub = pair.hub.objects();
    hub.create(&namespace(NAMESPACE)).await;
    // Text that compresses as badly as what people sync, and is the same each time.
    let mut random = fastrand::Rng::with_seed(1);
    let bodies = (0..count).map(|index| {
        let body: String = std::iter::repeat_with(|| random.alphanumeric()).take(BODY).collect();
        config_map(NAMESPACE, &name(index.into()), json!({"body": body}))
    });
    futures_util::stream::iter(bodies)
        .for_each_concurrent(AT_ONCE, async |object| {
            hub.create(&object).await;
        })
        .await;
    let selection = json!({"namespacedObjects": [config_map_entry(NAMESPACE, &["*"])]});
    hub.create(&syncer_config("the-one", selection)).await;
}

fn name(index: u64) -> String {
    format!("c{index:05}")
}

fn copies_path(query: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps{query}")
}

fn both_ways(traffic: Traffic) -> String {
    format!("{} / {}", bytes(traffic.received), bytes(traffic.sent))
}

fn per_minute(count: u64, period: Duration) -> u64 {
    count * 60 / period.as_secs()
}
