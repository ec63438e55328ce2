//! The story of a policy engine; `scripts/demo policy` tells it. The engine and its policies come from the hub, it judges
//! what is at the edge, and the hub gets to know.

use serde_json::json;
use tokio::time::Instant;

use crate::print::{heading, invite, line, line_with, megabytes, stop, timed_line};
use crate::support::edge_watch::{Change, EdgeWatch};
use crate::support::objects::{config_map, namespace, path, syncer_config};
use crate::support::policy::{
    Crd, ENGINE_NAMESPACE, Engine, JUDGED, JUDGED_NAMESPACES, NAMESPACE_POLICY, OWNER_POLICY, POLICY_VERSION,
    REPORT_VERSION, Subject, crds, engine_objects, has_verdict, policies, selection,
};
use crate::support::process::Folder;
use crate::support::story::arrives;
use crate::support::{Pair, PairOptions, Syncer, wait_for_crd};

const SHOP: &str = JUDGED_NAMESPACES[0];
const PLANT: &str = JUDGED_NAMESPACES[1];

/// A `ConfigMap` that the hub has.
const PRICES: Subject = Subject {
    kind: "ConfigMap",
    namespace: SHOP,
    name: "prices",
};
/// The hub's namespace itself.
const THE_SHOP: Subject = Subject {
    kind: "Namespace",
    namespace: "",
    name: SHOP,
};
/// A `ConfigMap` that only the edge has.
const SHIFTS: Subject = Subject {
    kind: "ConfigMap",
    namespace: PLANT,
    name: "shifts",
};

/// Two servers, the syncer between them, the engine, and those whom it judges.
pub(crate) struct PolicyStory {
    engine: Engine,
    followed: Vec<Followed>,
    syncer: Syncer,
    pair: Pair,
}

/// An object, and what is reported about it at either side.
struct Followed {
    subject: Subject,
    edge: EdgeWatch,
    hub: EdgeWatch,
}

impl PolicyStory {
    /// Starts all there is; what the edge needs comes from the hub.
    pub(crate) async fn begin() -> Self {
        heading("Start two real Kubernetes API servers");
        let pair = Pair::start(PairOptions::default()).await;
        line("hub", &format!("kube-apiserver at {}", pair.hub.url()));
        line("edge", &format!("kube-apiserver at {}", pair.edge.url()));
        let crds = crds();
        fill_the_hub(&pair, &crds).await;
        fill_the_edge(&pair).await;
        let syncer = start_the_syncer(&pair, &crds).await;
        let engine = start_the_engine(&pair).await;
        let mut followed = Vec::new();
        for subject in [PRICES, THE_SHOP, SHIFTS] {
            let reports = path(REPORT_VERSION, subject.report_kind(), subject.namespace, "");
            followed.push(Followed {
                subject,
                edge: EdgeWatch::start(&pair.edge.client(), &[&reports]).await,
                hub: EdgeWatch::start(&pair.hub.client(), &[&reports]).await,
            });
        }
        Self {
            engine,
            followed,
            syncer,
            pair,
        }
    }

    /// The engine finds that nothing has an owner, and the hub gets to know.
    pub(crate) async fn judge(&mut self) {
        heading("Let Kyverno judge; it looks 30 s after a change and reports 10 s later");
        self.verdicts("fail", Instant::now()).await;
        line(
            "hub",
            &format!("Namespace {PLANT} was not here; it came with the report"),
        );
    }

    /// What is corrected is judged again.
    pub(crate) async fn corrected(&mut self) {
        heading("Give each of them an owner");
        let (hub, edge) = (self.pair.hub.objects(), self.pair.edge.objects());
        PRICES.set_owner(&hub, "anna").await;
        THE_SHOP.set_owner(&hub, "anna").await;
        let changed = Instant::now();
        line(
            "hub",
            &format!(
                "ConfigMap {} and Namespace {SHOP} get the label owner=anna",
                PRICES.name
            ),
        );
        SHIFTS.set_owner(&edge, "paul").await;
        line("edge", &format!("ConfigMap {} gets the label owner=paul", SHIFTS.name));
        self.verdicts("pass", changed).await;
    }

    /// Without policies there is nothing to report.
    pub(crate) async fn revert(&mut self) {
        heading("Delete the policies at the hub");
        let hub = self.pair.hub.objects();
        for name in [OWNER_POLICY, NAMESPACE_POLICY] {
            hub.delete(POLICY_VERSION, "clusterpolicies", "", name).await;
        }
        let deleted = Instant::now();
        line("hub", "both are deleted");
        for followed in &mut self.followed {
            let subject = followed.subject;
            let (report, about) = (subject.report_kind(), format!("{} {}", subject.kind, subject.name));
            let what = format!("the {report} on {about} goes");
            let is_gone = |change: &Change| change.deleted && subject.is_of(&change.object);
            let at_edge = followed.edge.wait_within(JUDGED, &what, is_gone).await;
            timed_line(
                "edge",
                &format!("the {report} on {about} is gone"),
                at_edge.saturating_duration_since(deleted),
            );
            let at_hub = followed.hub.wait(&what, is_gone).await;
            timed_line("hub", "it is gone here too", at_hub.saturating_duration_since(at_edge));
        }
    }

    /// What all of this took of the machine.
    pub(crate) fn measure_memory(&mut self) {
        heading("What they took");
        assert!(self.syncer.is_running(), "the syncer has ended");
        assert!(self.engine.is_running(), "the policy engine has ended");
        let peak = self.syncer.peak_kb() * 1024;
        line_with("syncer", "resident memory at its peak", &megabytes(peak));
        line_with(
            "edge",
            "resident memory of Kyverno's reports controller",
            &megabytes(self.engine.resident_kb() * 1024),
        );
    }

    /// Tells how to go on by hand.
    pub(crate) async fn explain_how_to_play(&self) -> Folder {
        for policy in &policies() {
            self.pair.hub.objects().create(policy).await;
        }
        let (hub, edge) = (
            "kubectl --kubeconfig hub.kubeconfig",
            "kubectl --kubeconfig edge.kubeconfig",
        );
        let logs = [self.syncer.log_path().display(), self.engine.log_path().display()];
        invite(
            "The policies are back, and all of it keeps running. Play with it from another terminal:",
            &self.pair,
            &[
                (
                    "What Kyverno says at the edge is known at the hub; a change takes 40 s to be judged",
                    format!(
                        "{edge} -n {PLANT} create configmap menu --from-literal=today=soup\n\
                        {hub} get policyreports,clusterpolicyreports -A --watch"
                    ),
                ),
                (
                    "Who owns it is written at the hub",
                    format!("{hub} -n {SHOP} label --overwrite configmap prices owner-"),
                ),
                (
                    "What the syncer copies, and what it and Kyverno say",
                    format!(
                        "{hub} get syncerconfig demo -o yaml\ntail -f {}\ntail -f {}",
                        logs[0], logs[1]
                    ),
                ),
            ],
        )
    }

    /// Ends the syncer as a service manager would, and then all the rest.
    pub(crate) async fn end(mut self) {
        stop(&mut self.syncer).await;
        drop(self);
        line("", "the servers and the engine have been stopped and all files removed");
    }

    /// Waits until each is reported with this verdict, first at the edge and then at the hub.
    async fn verdicts(&mut self, verdict: &str, since: Instant) {
        for followed in &mut self.followed {
            let subject = followed.subject;
            let about = format!("{} on {} {}", subject.report_kind(), subject.kind, subject.name);
            let what = format!("{about}: {verdict}");
            let says = |change: &Change| {
                !change.deleted && subject.is_of(&change.object) && has_verdict(&change.object, verdict)
            };
            let at_edge = followed.edge.wait_within(JUDGED, &what, says).await;
            timed_line("edge", &what, at_edge.saturating_duration_since(since));
            let at_hub = followed.hub.wait(&format!("{what}, at the hub"), says).await;
            timed_line("hub", "has it too", at_hub.saturating_duration_since(at_edge));
        }
    }
}

async fn fill_the_hub(pair: &Pair, crds: &[Crd]) {
    heading("Put the engine, its policies and something to judge at the hub");
    let hub = pair.hub.objects();
    for crd in crds {
        crd.create(&hub).await;
    }
    for crd in crds {
        wait_for_crd(&hub, &crd.name).await;
    }
    line(
        "hub",
        &format!(
            "the {} CRDs of Kyverno are created, as they lie in its module",
            crds.len()
        ),
    );
    for object in engine_objects().iter().chain(&policies()) {
        hub.create(object).await;
    }
    line(
        "hub",
        &format!("Namespace {ENGINE_NAMESPACE}: configuration and a Deployment of the reports controller"),
    );
    line("hub", &format!("ClusterPolicies {OWNER_POLICY} and {NAMESPACE_POLICY}"));
    hub.create(&namespace(SHOP)).await;
    hub.create(&config_map(SHOP, PRICES.name, json!({"apple": "1"}))).await;
    line(
        "hub",
        &format!(
            "Namespace {SHOP} and ConfigMap {} in it, both without an owner",
            PRICES.name
        ),
    );
}

async fn fill_the_edge(pair: &Pair) {
    let edge = pair.edge.objects();
    edge.create(&namespace(PLANT)).await;
    edge.create(&config_map(PLANT, SHIFTS.name, json!({"early": "6-14"})))
        .await;
    line(
        "edge",
        &format!(
            "Namespace {PLANT} and ConfigMap {}, which the hub does not know",
            SHIFTS.name
        ),
    );
}

async fn start_the_syncer(pair: &Pair, crds: &[Crd]) -> Syncer {
    heading("Start the syncer between them");
    let from = format!("--from-kubeconfig={}", pair.hub.kubeconfig().display());
    let to = format!("--to-kubeconfig={}", pair.edge.kubeconfig().display());
    let syncer = Syncer::start_raw(&["run", &from, &to, "--sync-target-uid=demo", "--qps=-1"], &[]);
    line(
        "syncer",
        &format!(
            "runs as process {}, without a limit on requests (--qps=-1)",
            syncer.pid()
        ),
    );
    let config = syncer_config("demo", selection(crds, &[PRICES.name]));
    pair.hub.objects().create(&config).await;
    let answered = Instant::now();
    line(
        "hub",
        "SyncerConfig demo asks for all of this, and for the edge's reports",
    );
    let edge = pair.edge.objects();
    for crd in crds {
        wait_for_crd(&edge, &crd.name).await;
    }
    timed_line("edge", "all CRDs are there and served", answered.elapsed());
    for name in [OWNER_POLICY, NAMESPACE_POLICY] {
        arrives(&edge, POLICY_VERSION, "clusterpolicies", "", name).await;
    }
    arrives(&edge, "v1", "configmaps", PRICES.namespace, PRICES.name).await;
    timed_line("edge", "the policies and what they judge are there", answered.elapsed());
    syncer
}

async fn start_the_engine(pair: &Pair) -> Engine {
    heading("Run the engine at the edge");
    let engine = Engine::start(&pair.edge).await;
    line(
        "edge",
        &format!(
            "the command of the Deployment runs as process {}, since no node is here",
            engine.pid()
        ),
    );
    engine
}
