//! The steps of the story. Each prints a heading, and a line for each thing that happens.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::print::{heading, invite, line, line_with, megabytes, stop, timed_line};
use crate::support::edge_watch::{Change, EdgeWatch};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::process::Folder;
use crate::support::{Pair, PairOptions, Server, Syncer};

/// Not the one of the quick start, which can be followed when the story is over.
const NAMESPACE: &str = "market";
/// The `ConfigMap` that most steps are about.
const PRICES: &str = "prices";
const DEPLOYMENT: &str = "web";
/// That of the quick start: two syncers of one sync target do no harm to each other.
const UID: &str = "--sync-target-uid=site-7";
/// A `ConfigMap` that only the edge has.
const NOTES: &str = "notes";
/// A `ConfigMap` that goes up from the edge.
const SALES: &str = "sales";
/// How long the hub is away, besides the time that it takes to start.
const OUTAGE: Duration = Duration::from_secs(3);
/// How many updates to measure latency with.
const UPDATES: usize = 30;

/// Two servers, the syncer between them, and what has been seen so far.
pub(crate) struct Story {
    syncer: Syncer,
    edge_watch: EdgeWatch,
    hub_watch: EdgeWatch,
    /// The `ConfigMap` that only the edge has, as it was created.
    notes: Value,
    pair: Pair,
}

impl Story {
    /// Starts the servers and the syncer.
    pub(crate) async fn begin() -> Self {
        heading("Start two real Kubernetes API servers");
        let start = Instant::now();
        let pair = Pair::start(PairOptions::default()).await;
        line("hub", &format!("kube-apiserver at {}", pair.hub.url()));
        line("edge", &format!("kube-apiserver at {}", pair.edge.url()));
        timed_line(
            "hub",
            "the type SyncerConfig is installed; both are ready",
            start.elapsed(),
        );

        heading("Start the syncer between them");
        let watched = ["/api/v1/namespaces", "/api/v1/configmaps", "/apis/apps/v1/deployments"];
        let edge_watch = EdgeWatch::start(&pair.edge.client(), &watched).await;
        let hub_watch = EdgeWatch::start(&pair.hub.client(), &watched).await;
        let from = format!("--from-kubeconfig={}", pair.hub.kubeconfig().display());
        let to = format!("--to-kubeconfig={}", pair.edge.kubeconfig().display());
        // By default it sends no more than 30 requests a second; the times below would be those of the limit.
        let syncer = Syncer::start_raw(&["run", &from, &to, UID, "--qps=-1"], &[]);
        line(
            "syncer",
            &format!(
                "runs as process {}, without a limit on requests (--qps=-1)",
                syncer.pid()
            ),
        );
        Self {
            syncer,
            edge_watch,
            hub_watch,
            notes: Value::Null,
            pair,
        }
    }

    /// What is created at the hub appears at the edge.
    pub(crate) async fn create(&mut self) {
        heading("Create objects at the hub");
        let (hub, edge) = (self.pair.hub.objects(), self.pair.edge.objects());
        hub.create(&namespace(NAMESPACE)).await;
        line(
            "hub",
            &format!("Namespace {NAMESPACE} is created; so far nothing asks for it at the edge"),
        );

        hub.create(&syncer_config("demo", selection())).await;
        let answered = Instant::now();
        line(
            "hub",
            &format!(
                "SyncerConfig demo asks for ConfigMaps and Deployments in {NAMESPACE}, and for ConfigMap {SALES} of the edge"
            ),
        );
        self.arrival("Namespace", NAMESPACE, answered).await;

        hub.create(&config_map(NAMESPACE, PRICES, json!({"apple": "1"}))).await;
        let answered = Instant::now();
        line("hub", &format!("ConfigMap {PRICES} is created, with apple=1"));
        self.arrival("ConfigMap", PRICES, answered).await;

        hub.create(&deployment()).await;
        let answered = Instant::now();
        line("hub", &format!("Deployment {DEPLOYMENT} is created"));
        self.arrival("Deployment", DEPLOYMENT, answered).await;

        let notes = config_map(NAMESPACE, NOTES, json!({"opens": "at nine"}));
        self.notes = edge.create(&notes).await;
        line(
            "edge",
            &format!("ConfigMap {NOTES} is created here, by somebody at the edge"),
        );
    }

    /// A change at the hub reaches the edge.
    pub(crate) async fn update(&mut self) {
        heading("Update an object at the hub");
        let took = self.change_price("2").await;
        line("hub", &format!("ConfigMap {PRICES} gets apple=2"));
        timed_line("edge", "has apple=2", took);
    }

    /// A copy that somebody edits at the edge becomes what the hub wants again.
    pub(crate) async fn repair_edit(&mut self) {
        heading("Edit the copy at the edge");
        let edited = set_price(&self.pair.edge, "999").await;
        let answered = Instant::now();
        line("edge", &format!("somebody sets apple=999 in ConfigMap {PRICES}"));
        let is_back = |change: &Change| has_price(change, "2") && version(&change.object) > version(&edited);
        shows(&mut self.edge_watch, "edge", "has apple=2 again", answered, is_back).await;
    }

    /// A copy that somebody deletes at the edge comes back.
    pub(crate) async fn repair_delete(&mut self) {
        heading("Delete the copy at the edge");
        self.pair
            .edge
            .objects()
            .delete("v1", "configmaps", NAMESPACE, PRICES)
            .await;
        let answered = Instant::now();
        line("edge", &format!("somebody deletes ConfigMap {PRICES}"));
        self.edge_watch
            .wait("the edge tells that the copy was deleted", |change| {
                change.is_end_of("ConfigMap", PRICES)
            })
            .await;
        let is_back = |change: &Change| has_price(change, "2");
        shows(
            &mut self.edge_watch,
            "edge",
            "it is there again, with apple=2",
            answered,
            is_back,
        )
        .await;
    }

    /// The status that the edge gives a copy comes back to the hub's object.
    pub(crate) async fn return_status(&mut self) {
        heading("Report a status at the edge");
        let status = json!({"replicas": 2, "readyReplicas": 2});
        let edge = self.pair.edge.objects();
        edge.patch_status("apps/v1", "deployments", NAMESPACE, DEPLOYMENT, &status)
            .await;
        let answered = Instant::now();
        line(
            "edge",
            &format!("Deployment {DEPLOYMENT} reports readyReplicas=2, as its controller would"),
        );
        let has_status =
            |change: &Change| change.is("Deployment", DEPLOYMENT) && change.object["status"]["readyReplicas"] == 2;
        shows(
            &mut self.hub_watch,
            "hub",
            "its status says readyReplicas=2",
            answered,
            has_status,
        )
        .await;
    }

    /// What the edge makes and the config names goes up, follows, and goes.
    pub(crate) async fn send_up(&mut self) {
        heading("Create an object at the edge that goes up");
        let edge = self.pair.edge.objects();
        edge.create(&config_map(NAMESPACE, SALES, json!({"apples": "1"}))).await;
        let answered = Instant::now();
        line("edge", &format!("ConfigMap {SALES} is created, with apples=1"));
        let is_there = |change: &Change| change.is("ConfigMap", SALES) && change.object["data"]["apples"] == "1";
        let what = format!("ConfigMap {SALES} is there");
        shows(&mut self.hub_watch, "hub", &what, answered, is_there).await;
        let patch = json!({"data": {"apples": "2"}});
        edge.merge_patch("v1", "configmaps", NAMESPACE, SALES, &patch).await;
        let answered = Instant::now();
        line("edge", &format!("ConfigMap {SALES} gets apples=2"));
        let follows = |change: &Change| change.is("ConfigMap", SALES) && change.object["data"]["apples"] == "2";
        shows(&mut self.hub_watch, "hub", "has apples=2", answered, follows).await;
        edge.delete("v1", "configmaps", NAMESPACE, SALES).await;
        let answered = Instant::now();
        line("edge", &format!("ConfigMap {SALES} is deleted"));
        let is_gone = |change: &Change| change.is_end_of("ConfigMap", SALES);
        let what = format!("ConfigMap {SALES} is gone");
        shows(&mut self.hub_watch, "hub", &what, answered, is_gone).await;
    }

    /// While the hub is away the copies stay; when it is back, so is the sync.
    pub(crate) async fn survive_outage(&mut self) {
        heading("Stop the hub for a while");
        self.pair.hub.stop_apiserver();
        let start = Instant::now();
        line("hub", "the API server is killed");
        while start.elapsed() < OUTAGE {
            self.check_copies_stay().await;
            // Between two polls: the outage is to last, whatever they show.
            sleep(Duration::from_millis(100)).await;
        }
        timed_line(
            "edge",
            "the copies are still there, and the syncer still runs",
            start.elapsed(),
        );
        self.pair.hub.start_apiserver().await;
        timed_line("hub", "the API server is back, after an outage of", start.elapsed());
        self.check_copies_stay().await;
        let took = self.change_price("3").await;
        line("hub", &format!("ConfigMap {PRICES} gets apple=3"));
        timed_line("edge", "has apple=3: the syncer has found the hub again", took);
    }

    /// Many updates in a row, each sent when the one before has arrived.
    pub(crate) async fn measure_latency(&mut self) {
        heading(&format!("Update it {UPDATES} times in a row"));
        let mut times = Vec::new();
        for update in 1..=UPDATES {
            times.push(self.change_price(&format!("{}", 100 + update)).await);
        }
        times.sort();
        timed_line("edge", "half of the updates were there within", times[UPDATES / 2]);
        timed_line("edge", "all of the updates were there within", times[UPDATES - 1]);
    }

    /// What is deleted at the hub goes from the edge.
    pub(crate) async fn delete(&mut self) {
        heading("Delete objects at the hub");
        let hub = self.pair.hub.objects();
        for (api_version, kind, name) in [("v1", "ConfigMap", PRICES), ("apps/v1", "Deployment", DEPLOYMENT)] {
            hub.delete(api_version, kind, NAMESPACE, name).await;
            let answered = Instant::now();
            line("hub", &format!("{kind} {name} is deleted"));
            let is_gone = |change: &Change| change.is_end_of(kind, name);
            let what = format!("{kind} {name} is gone");
            shows(&mut self.edge_watch, "edge", &what, answered, is_gone).await;
        }
    }

    /// What others have created at the edge is as it was.
    pub(crate) async fn leave_others_alone(&mut self) {
        heading("Look at what the edge had of its own");
        let now = self.pair.edge.objects().reread(&self.notes).await;
        assert!(
            now.as_ref() == Some(&self.notes),
            "ConfigMap {NOTES} at the edge was touched: now it is {now:?}"
        );
        line(
            "edge",
            &format!("ConfigMap {NOTES} is untouched, down to its resourceVersion"),
        );
    }

    /// What all of this took of the machine.
    pub(crate) fn measure_memory(&mut self) {
        heading("What the syncer took");
        assert!(self.syncer.is_running(), "the syncer has ended");
        let (resident, peak) = (self.syncer.resident_kb(), self.syncer.peak_kb());
        let binary = std::fs::metadata(Syncer::program())
            .expect("the binary has been run")
            .len();
        line_with("syncer", "resident memory now", &megabytes(resident * 1024));
        line_with("syncer", "resident memory at its peak", &megabytes(peak * 1024));
        line_with("syncer", "size of the binary", &megabytes(binary));
    }

    /// Tells how to go on by hand.
    pub(crate) fn explain_how_to_play(&self) -> Folder {
        let hub = format!("kubectl --kubeconfig hub.kubeconfig -n {NAMESPACE}");
        let edge = format!("kubectl --kubeconfig edge.kubeconfig -n {NAMESPACE}");
        let log = self.syncer.log_path().display();
        invite(
            "All of it keeps running. Play with it from another terminal:",
            &self.pair,
            &[
                (
                    "What is created at the hub appears at the edge",
                    format!(
                        "{hub} create configmap hours --from-literal=open=9-17\n{edge} get configmap hours -o yaml"
                    ),
                ),
                (
                    "What is changed at the edge is corrected",
                    format!(
                        "{edge} patch configmap hours -p '{{\"data\":{{\"open\":\"never\"}}}}'\n\
                        {edge} get configmap hours -o yaml"
                    ),
                ),
                (
                    "What the syncer copies, and what it says",
                    format!("{hub} get syncerconfig demo -o yaml\ntail -f {log}"),
                ),
            ],
        )
    }

    /// Ends the syncer as a service manager would, and then all the rest.
    pub(crate) async fn end(mut self) {
        stop(&mut self.syncer).await;
        drop(self);
        line("", "the servers have been stopped and all files removed");
    }

    async fn arrival(&mut self, kind: &str, name: &str, answered: Instant) {
        let is_there = |change: &Change| change.is(kind, name);
        let what = format!("{kind} {name} is there");
        shows(&mut self.edge_watch, "edge", &what, answered, is_there).await;
    }

    /// Changes the price of an apple at the hub and waits until the edge has it.
    async fn change_price(&mut self, price: &str) -> Duration {
        set_price(&self.pair.hub, price).await;
        let answered = Instant::now();
        let what = format!("apple={price}, set at the hub, arrives at the edge");
        let at = self.edge_watch.wait(&what, |change| has_price(change, price)).await;
        at.saturating_duration_since(answered)
    }

    async fn check_copies_stay(&mut self) {
        assert!(self.syncer.is_running(), "the syncer ended while the hub was away");
        let edge = self.pair.edge.objects();
        for (api_version, kind, name) in [("v1", "ConfigMap", PRICES), ("apps/v1", "Deployment", DEPLOYMENT)] {
            let copy = edge.get(api_version, kind, NAMESPACE, name).await;
            assert!(copy.is_some(), "the copy of {kind} {name} went while the hub was away");
        }
    }
}

/// Waits until a side shows what is expected of it, and says how long that took.
async fn shows(watch: &mut EdgeWatch, side: &str, what: &str, since: Instant, expected: impl Fn(&Change) -> bool) {
    let at = watch.wait(&format!("{side}: {what}"), expected).await;
    timed_line(side, what, at.saturating_duration_since(since));
}

/// What the `SyncerConfig` asks for.
fn selection() -> Value {
    json!({
        "namespaceScope": {
            "namespaces": [NAMESPACE],
            "resources": [
                {"group": "", "resource": "configmaps", "apiVersion": "v1"},
                {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
            ],
        },
        "upsync": [{"apiGroup": "", "resources": ["configmaps"], "namespaces": [NAMESPACE], "names": [SALES]}],
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": NAMESPACE, "name": DEPLOYMENT},
        "spec": {
            "selector": {"matchLabels": {"app": DEPLOYMENT}},
            "template": {
                "metadata": {"labels": {"app": DEPLOYMENT}},
                "spec": {"containers": [{"name": "server", "image": "nginx"}]},
            },
        },
    })
}

/// Sets the price of an apple at one side; returns the object as stored there.
async fn set_price(server: &Server, price: &str) -> Value {
    let patch = json!({"data": {"apple": price}});
    server
        .objects()
        .merge_patch("v1", "configmaps", NAMESPACE, PRICES, &patch)
        .await
}

fn has_price(change: &Change, price: &str) -> bool {
    change.is("ConfigMap", PRICES) && change.object["data"]["apple"] == price
}

/// The number in `metadata.resourceVersion`, which grows with each change at one server.
fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
