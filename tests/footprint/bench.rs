//! What is measured, step by step. Each step adds its figures.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bystander::Bystander;
use crate::life::{Cost, Life, Snapshot};
use crate::link::Traffic;
use crate::load::{await_count, config_maps, create_all};
use crate::progress;
use crate::requests::Requests;
use crate::support::objects::{namespace, syncer_config};
use crate::support::story::config_map_entry;
use crate::support::{Pair, PairOptions};
use crate::table::{bytes, memory, seconds};

/// Of the objects that go from hub to edge.
pub(crate) const NAMESPACE: &str = "load";
/// Bytes in each `ConfigMap`.
pub(crate) const BODY: usize = 4096;
/// For how long another client asks while nothing happens.
const BYSTANDER_IDLE: Duration = Duration::from_secs(5);
/// How long a convergence or a change may take. Slow syncers are measured too.
pub(crate) const DEADLINE: Duration = Duration::from_secs(900);

/// What was found for one number of objects, in the order in which it was.
#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<(String, String)>,
    requests: Vec<(String, Requests)>,
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
    pub(crate) fn requests(&self) -> &[(String, Requests)] {
        &self.requests
    }

    /// Adds the requests of a phase.
    pub(crate) fn add_requests(&mut self, phase: impl Into<String>, requests: Requests) {
        self.requests.push((phase.into(), requests));
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
        self.add_requests(phase, cost.requests);
    }
}

/// Two servers with `count` objects at the hub, and the syncer between them.
pub(crate) struct Bench {
    pub(crate) count: u32,
    pub(crate) life: Life,
    before: Snapshot,
    pub(crate) figures: Figures,
    pub(crate) pair: Pair,
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
            life: Life::begin(&pair, &[]).await,
            before,
            figures: Figures::default(),
            pair,
        }
    }

    /// Waits until the edge has everything; another client may look on.
    pub(crate) async fn converge(&mut self, with_bystander: bool) {
        let edge = self.pair.edge.objects();
        let bystander = with_bystander.then(|| Bystander::begin(&self.pair.edge));
        await_count(&edge, "v1", "configmaps", NAMESPACE, self.count).await;
        let took = self.life.start.elapsed();
        let waits = bystander.map(Bystander::end);
        progress(self.count, &format!("converged after {}", seconds(took)));
        self.figures.add("first convergence", seconds(took));
        // What the edge then reports of the last copies belongs to it, if that comes to an end.
        let mut cost = self.life.end_period(&self.pair, &self.before);
        if self.life.settle().await.is_some() {
            cost = self.life.end_period(&self.pair, &self.before);
        }
        self.figures.add_cost("first convergence", cost);
        if let Some(waits) = waits {
            self.figures.add(
                "first convergence: a GET of another client at the edge, p50 / p99",
                waits,
            );
            let bystander = Bystander::begin(&self.pair.edge);
            sleep(BYSTANDER_IDLE).await;
            self.figures
                .add("idle: a GET of another client at the edge, p50 / p99", bystander.end());
        }
        self.add_memory("after convergence");
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
        figures.add_requests("idle", cost.requests);
    }

    /// Ends the syncer as a power cut does and starts it again.
    pub(crate) async fn restart(&mut self) {
        progress(self.count, "restarting the syncer");
        let copies = self.versions().await;
        self.life.syncer.kill();
        self.before = Snapshot::before_start(&self.pair);
        self.life = Life::begin(&self.pair, &[]).await;
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

    /// Name, UID and version of each copy, in the order of names.
    async fn versions(&self) -> Vec<[Value; 3]> {
        let mut copies = self.pair.edge.objects().list("v1", "configmaps", NAMESPACE, "").await;
        let fields = |copy: &mut Value| ["name", "uid", "resourceVersion"].map(|field| copy["metadata"][field].take());
        copies.iter_mut().map(fields).collect()
    }

    /// Adds what memory the syncer holds at this moment, and the most that it has held.
    pub(crate) fn add_memory(&mut self, when: &str) {
        let figure = memory(&mut self.life.syncer);
        self.figures.add(format!("resident memory (peak) {when}"), figure);
    }
}

/// Creates the objects at the hub and a config that selects them.
async fn fill(pair: &Pair, count: u32) {
    let hub = pair.hub.objects();
    hub.create(&namespace(NAMESPACE)).await;
    create_all(&hub, config_maps(NAMESPACE, 0..count, BODY)).await;
    let selection = json!({"namespacedObjects": [config_map_entry(NAMESPACE, &["*"])]});
    hub.create(&syncer_config("the-one", selection)).await;
}

fn both_ways(traffic: Traffic) -> String {
    format!("{} / {}", bytes(traffic.received), bytes(traffic.sent))
}

fn per_minute(count: u64, period: Duration) -> u64 {
    count * 60 / period.as_secs()
}
