//! Single changes, timed one after the other: from hub to edge, of a status on its way back, and up from the edge.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bench::{BODY, Bench, DEADLINE, NAMESPACE};
use crate::load::{GAUGES_V1, GROUP, await_count, config_maps, create_all, gauges, name, select_gauges};
use crate::progress;
use crate::support::edge_watch::EdgeWatch;
use crate::support::objects::{MERGE_PATCH, namespace, path};
use crate::support::story::{crd, install_crd, reselect, upsync_all};
use crate::support::{Objects, Pair, Server};
use crate::table::{milliseconds, seconds};

/// Of the objects that go up.
const UP: &str = "load-up";
/// How often one status is changed in a moment.
const FLAPS: u32 = 100;

/// A way that changes take.
struct Route {
    /// What the figures call it.
    what: &'static str,
    /// What they call the time that it takes.
    latency: &'static str,
    from: Side,
    api_version: &'static str,
    plural: &'static str,
    namespace: &'static str,
    /// The part of the object that is changed.
    field: &'static str,
    /// Where that is written: nothing, or the subresource.
    subresource: &'static str,
}

/// A side.
enum Side {
    Hub,
    Edge,
}

const DOWNSYNC: Route = Route {
    what: "downsync",
    latency: "hub change to edge",
    from: Side::Hub,
    api_version: "v1",
    plural: "configmaps",
    namespace: NAMESPACE,
    field: "data",
    subresource: "",
};

const STATUS: Route = Route {
    what: "status return",
    latency: "edge status change to hub",
    from: Side::Edge,
    api_version: GAUGES_V1,
    plural: "gauges",
    namespace: NAMESPACE,
    field: "status",
    subresource: "/status",
};

const UPSYNC: Route = Route {
    what: "upsync",
    latency: "upsync latency",
    from: Side::Edge,
    api_version: "v1",
    plural: "configmaps",
    namespace: UP,
    field: "data",
    subresource: "",
};

/// The first change of an object takes its fields over from the create, later ones do not.
const UPSYNC_AGAIN: Route = Route {
    what: "upsync, the same objects again",
    latency: "upsync latency, the same objects again",
    ..UPSYNC
};

impl Route {
    /// Where changes come from, and where they arrive.
    fn ends<'a>(&self, pair: &'a Pair) -> [&'a Server; 2] {
        match self.from {
            Side::Hub => [&pair.hub, &pair.edge],
            Side::Edge => [&pair.edge, &pair.hub],
        }
    }

    /// Writes `value` into one object where changes come from.
    async fn change(&self, from: &Objects, name: &str, value: &Value) {
        let target = path(self.api_version, self.plural, self.namespace, name) + self.subresource;
        let body = json!({self.field: {"update": value}});
        let written = from.send(Method::PATCH, &target, MERGE_PATCH, Some(&body)).await;
        written.expect("an object can be changed");
    }

    /// A watch where changes arrive, which reports nothing that is there already.
    async fn watch(&self, pair: &Pair) -> EdgeWatch {
        let [_, to] = self.ends(pair);
        let path = path(self.api_version, self.plural, self.namespace, "");
        EdgeWatch::from_now(&to.client(), &path).await
    }

    /// Waits until `value` has arrived in the object called `name`, and gives the moment.
    async fn arrival(&self, watch: &mut EdgeWatch, name: &str, value: &Value) -> Instant {
        let what = format!("the {} of {value} into {name} arrives", self.what);
        let arrived = watch.wait_within(DEADLINE, &what, |change| {
            let object = &change.object;
            !change.deleted && object["metadata"]["name"] == name && object[self.field]["update"] == *value
        });
        arrived.await
    }

    /// Changes `updates` of `count` objects, each when the change before has arrived. Gives how long each took from the
    /// answer to the change until it was seen.
    async fn time(&self, pair: &Pair, count: u32, updates: u32) -> Vec<Duration> {
        let from = self.ends(pair)[0].objects();
        let mut watch = self.watch(pair).await;
        let mut times = Vec::new();
        for update in 0..updates {
            let index = u64::from(update) * u64::from(count) / u64::from(updates);
            let name = name(index.try_into().expect("it is less than the count"));
            let value = json!(format!("{} {update}", self.what));
            self.change(&from, &name, &value).await;
            let answered = Instant::now();
            let arrived = self.arrival(&mut watch, &name, &value).await;
            times.push(arrived.saturating_duration_since(answered));
        }
        times.sort();
        times
    }
}

impl Bench {
    /// Changes objects at the hub.
    pub(crate) async fn time_downsync(&mut self, updates: u32) {
        self.time(&DOWNSYNC, updates).await;
    }

    /// Changes statuses at the edge, each of another object as far as there are enough: those of one are paced.
    pub(crate) async fn time_status(&mut self, updates: u32) {
        self.time(&STATUS, updates).await;
    }

    /// Changes upsynced objects at the edge, and each once more.
    pub(crate) async fn time_upsync(&mut self, updates: u32) {
        self.time(&UPSYNC, updates).await;
        self.time(&UPSYNC_AGAIN, updates).await;
    }

    /// Adds as many objects with a status, and as many that go up, to those that are synced already.
    pub(crate) async fn add_load_both_ways(&mut self) {
        let count = self.count;
        progress(count, "adding as many objects with a status, and as many that go up");
        let (hub, edge) = (self.pair.hub.objects(), self.pair.edge.objects());
        install_crd(&[&hub, &edge], &crd(GROUP, "gauges", true)).await;
        edge.create(&namespace(UP)).await;
        create_all(&hub, gauges(NAMESPACE, count)).await;
        create_all(&edge, config_maps(UP, 0..count, BODY)).await;
        let more = json!({"namespaceScope": select_gauges(NAMESPACE), "upsync": [upsync_all("", &["configmaps"], UP)]});
        reselect(&hub, &more).await;
        await_count(&edge, GAUGES_V1, "gauges", NAMESPACE, count).await;
        await_count(&hub, "v1", "configmaps", UP, count).await;
        self.life.settle().await;
        self.add_memory("with 3 n objects, both ways");
    }

    /// Changes one status many times in a moment, and counts what the hub gets of it.
    pub(crate) async fn flap_status(&mut self) {
        progress(self.count, &format!("changing one status {FLAPS} times"));
        let begin = self.life.begin_period(&self.pair);
        let (name, last) = (name(self.count - 1), json!(format!("flap {FLAPS}")));
        let edge = self.pair.edge.objects();
        let mut watch = STATUS.watch(&self.pair).await;
        let start = Instant::now();
        for flap in 1..=FLAPS {
            STATUS.change(&edge, &name, &json!(format!("flap {flap}"))).await;
        }
        let took = start.elapsed();
        STATUS.arrival(&mut watch, &name, &last).await;
        self.life.settle().await;
        let cost = self.life.end_period(&self.pair, &begin);
        self.figures.add(
            format!("{FLAPS} changes of one status: writes at the hub (changes made in)"),
            format!("{} ({})", cost.requests.writes("hub"), seconds(took)),
        );
    }

    async fn time(&mut self, route: &Route, updates: u32) {
        let what = route.what;
        progress(self.count, &format!("{what}: {updates} changes, one by one"));
        let begin = self.life.begin_period(&self.pair);
        let times = route.time(&self.pair, self.count, updates).await;
        self.life.settle().await;
        let cost = self.life.end_period(&self.pair, &begin);
        let (half, all) = (times[times.len() / 2], times[times.len() - 1]);
        let figures = &mut self.figures;
        figures.add(
            format!("{}, p50 / max of {updates}", route.latency),
            format!("{} / {}", milliseconds(half), milliseconds(all)),
        );
        let [hub, edge] = ["hub", "edge"].map(|side| per_change(cost.requests.naming(side), updates));
        figures.add(
            format!("{what}: requests per change, hub + edge"),
            format!("{hub} + {edge}"),
        );
        figures.add_requests(format!("{what}, {updates} changes"), cost.requests);
    }
}

/// How many that is for each of `changes`, to a tenth.
fn per_change(requests: usize, changes: u32) -> String {
    let tenths = (requests * 10).div_ceil(changes as usize);
    format!("{}.{}", tenths / 10, tenths % 10)
}
