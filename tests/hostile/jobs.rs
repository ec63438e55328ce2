//! Jobs that end, are cleared away and leave Pods behind; and copies that something at the edge deletes for ever.

use serde_json::{Value, json};

use crate::bench::{At, LONG_ENOUGH, delete_with_all, is_recreated, says, uid};
use crate::front::Front;
use crate::support::objects::{MERGE_PATCH, namespace, path};
use crate::support::stage::{Stage, all_of, config_maps, select, stage, stock};
use crate::support::story::{SOON, arrives, becomes, gone, stays_absent};
use crate::support::{Objects, PairLease, Syncer, eventually, holds_throughout, shared_pair_with_controllers};

/// A Job called `it`, whose Pods have an image of this tag.
fn job(shop: &str, tag: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": shop, "name": "it"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": format!("example.org/a:{tag}")}]}}},
    })
}

fn the_job(shop: &str) -> At<'_> {
    ["batch/v1", "jobs", shop, "it"]
}

/// A Job that is synced to an edge whose controllers run it.
struct Running {
    // First, so that on drop the syncer ends before what it talks to.
    syncer: Syncer,
    pair: PairLease,
    shop: String,
    hub: Objects,
    edge: Objects,
    copy: String,
}

impl Running {
    async fn begin(change: impl Fn(&mut Value)) -> Self {
        let pair = shared_pair_with_controllers().await;
        let shop = pair.namespace("shop");
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        let mut object = job(&shop, "1");
        change(&mut object);
        hub.create(&namespace(&shop)).await;
        hub.create(&object).await;
        select(&hub, &all_of(&shop, &[("batch", "jobs")])).await;
        let syncer = pair.syncer(&[]);
        let copy = uid(&arrives(&edge, "batch/v1", "jobs", &shop, "it").await);
        Self {
            syncer,
            pair,
            shop,
            hub,
            edge,
            copy,
        }
    }

    /// Waits until a Pod runs for the Job of this UID, and gives its name.
    async fn pod_of(&self, job: &str) -> String {
        let selector = format!("batch.kubernetes.io/controller-uid={job}");
        eventually("the job has a pod", SOON, async || {
            let pods = self.edge.try_list("v1", "pods", &self.shop, &selector).await;
            let pods = pods.map_err(|error| error.to_string())?;
            let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
            name.map(str::to_owned).ok_or_else(|| "it has none".to_owned())
        })
        .await
    }

    /// Lets a Pod end well, as a kubelet would.
    async fn ends_well(&self, pod: &str) {
        self.ends(pod, "Succeeded").await;
    }

    async fn ends(&self, pod: &str, phase: &str) {
        let target = format!("{}/status", path("v1", "pods", &self.shop, pod));
        let body = json!({"status": {"phase": phase}});
        let patched = self
            .edge
            .send(http::Method::PATCH, &target, MERGE_PATCH, Some(&body))
            .await;
        patched.unwrap_or_else(|error| panic!("cannot end {pod}: {error}"));
    }

    /// Deletes the copy, lets the next one end well, and waits until the hub knows that.
    async fn ends_well_when_made_again(&self) {
        let the_job = || the_job(&self.shop);
        delete_with_all(&self.edge, the_job()).await;
        is_recreated(&self.edge, the_job(), &self.copy).await;
        let again = arrives(&self.edge, "batch/v1", "jobs", &self.shop, "it").await;
        let pod = self.pod_of(&uid(&again)).await;
        self.ends_well(&pod).await;
        let is_complete = |job: &Value| job["status"]["succeeded"] == 1 && job["status"]["completionTime"].is_string();
        becomes(&self.hub, the_job(), "is complete at the hub", is_complete).await;
    }

    /// Waits until a record at the edge says that the Job has finished.
    async fn is_in_the_record(&self) {
        let line = format!("jobs.batch {}/it ", self.shop);
        eventually("the job is in the record", SOON, async || {
            let found = self.edge.try_list("v1", "configmaps", "default", "").await;
            let found = found.map_err(|error| error.to_string())?;
            let says = |record: &Value| record["data"]["finished"].as_str().is_some_and(|it| it.contains(&line));
            if found.iter().any(says) {
                Ok(())
            } else {
                Err("it is not".to_owned())
            }
        })
        .await;
    }

    /// Checks for a while that the edge has no Job.
    async fn is_not_run_again(&self) {
        let [api_version, plural, namespace, name] = the_job(&self.shop);
        holds_throughout("the job is not run again", LONG_ENOUGH / 2, async || {
            match self.edge.try_get(api_version, plural, namespace, name).await {
                Ok(Some(job)) => Err(format!("it is there: {}", job["metadata"]["uid"])),
                _ => Ok(()),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_finished_job_that_the_edge_clears_away_is_not_run_again_until_it_is_recreated() {
    // Long enough for its status to return.
    let mut running = Running::begin(|job| job["spec"]["ttlSecondsAfterFinished"] = json!(4)).await;
    let shop = running.shop.clone();
    let pod = running.pod_of(&running.copy).await;
    running.ends_well(&pod).await;
    let is_complete = |job: &Value| job["status"]["succeeded"] == 1 && job["status"]["completionTime"].is_string();
    becomes(&running.hub, the_job(&shop), "is complete at the hub", is_complete).await;
    is_cleared_away(&running.edge, &shop, &running.copy).await;
    running.is_not_run_again().await;
    // What its copy waited for in its last moment is no failure.
    let log = running.syncer.log();
    assert!(!log.contains("reason=DeleteBlocked"), "{log}");
    // What is known of it is at the hub.
    running.syncer.terminate().await;
    running.syncer = running.pair.syncer(&[]);
    running.is_not_run_again().await;
    delete_with_all(&running.hub, the_job(&shop)).await;
    running.hub.create(&job(&shop, "1")).await;
    let again = arrives(&running.edge, "batch/v1", "jobs", &shop, "it").await;
    running.pod_of(&uid(&again)).await;
}

/// Nothing but the record says then that it has run.
#[tokio::test]
async fn a_job_that_ended_while_the_hub_was_away_is_not_run_again_by_another_process() {
    let mut running = Running::begin(|job| job["spec"]["ttlSecondsAfterFinished"] = json!(2)).await;
    let shop = running.shop.clone();
    running.syncer.terminate().await;
    let front = Front::of(&running.pair.hub).await;
    let hub_file = front.kubeconfig(&running.pair.hub);
    let edge_file = running.pair.edge.kubeconfig();
    running.syncer = Syncer::start(&hub_file, &edge_file, &[]);
    let label = json!({"metadata": {"labels": {"seen": "true"}}});
    running.hub.merge_patch("batch/v1", "jobs", &shop, "it", &label).await;
    let is_labelled = |job: &Value| job["metadata"]["labels"]["seen"] == "true";
    becomes(&running.edge, the_job(&shop), "follows the hub", is_labelled).await;
    let pod = running.pod_of(&running.copy).await;
    front.answers(|_, _| Some((503, "<html>no server is available</html>")));
    running.ends_well(&pod).await;
    is_cleared_away(&running.edge, &shop, &running.copy).await;
    running.is_in_the_record().await;
    running.syncer.kill();
    front.passes();
    running.syncer = Syncer::start(&hub_file, &edge_file, &[]);
    let is_complete = |job: &Value| job["status"]["succeeded"] == 1 && job["status"]["completionTime"].is_string();
    becomes(&running.hub, the_job(&shop), "is complete at the hub", is_complete).await;
    running.is_not_run_again().await;
    delete_with_all(&running.hub, the_job(&shop)).await;
    running.hub.create(&job(&shop, "1")).await;
    arrives(&running.edge, "batch/v1", "jobs", &shop, "it").await;
}

/// What both sides report in one moment comes in any order.
#[tokio::test]
async fn a_job_that_was_recreated_while_the_former_one_ended_is_run() {
    let mut running = Running::begin(|job| job["spec"]["ttlSecondsAfterFinished"] = json!(0)).await;
    let shop = running.shop.clone();
    for round in 0..3 {
        let before = running.copy.clone();
        let pod = running.pod_of(&before).await;
        running.syncer.signal("STOP");
        running.ends_well(&pod).await;
        is_cleared_away(&running.edge, &shop, &before).await;
        delete_with_all(&running.hub, the_job(&shop)).await;
        let mut next = job(&shop, &round.to_string());
        next["spec"]["ttlSecondsAfterFinished"] = json!(0);
        running.hub.create(&next).await;
        running.syncer.signal("CONT");
        let copy = arrives(&running.edge, "batch/v1", "jobs", &shop, "it").await;
        running.copy = uid(&copy);
        assert_ne!(running.copy, before);
        let at_hub = running
            .hub
            .get("batch/v1", "jobs", &shop, "it")
            .await
            .expect("it is there");
        assert!(
            at_hub["status"]["completionTime"].is_null(),
            "it has not ended: {at_hub}"
        );
    }
}

/// When a Job has begun can be set once at the hub, and never again.
#[tokio::test]
async fn the_status_returns_of_a_job_whose_copy_was_deleted_and_made_again() {
    let running = Running::begin(|_| {}).await;
    let shop = &running.shop;
    let has_begun = |job: &Value| job["status"]["startTime"].is_string();
    becomes(&running.hub, the_job(shop), "has begun at the hub", has_begun).await;
    // Times have seconds.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    running.ends_well_when_made_again().await;
}

/// What the hub has counted, it never counts again from zero.
#[tokio::test]
async fn the_status_returns_of_a_job_that_begins_again_after_a_failure() {
    let running = Running::begin(|_| {}).await;
    let shop = &running.shop;
    let pod = running.pod_of(&running.copy).await;
    running.ends(&pod, "Failed").await;
    let has_failed = |job: &Value| job["status"]["failed"] == 1;
    becomes(&running.hub, the_job(shop), "has failed once at the hub", has_failed).await;
    running.ends_well_when_made_again().await;
}

/// Waits until the Job of this UID is gone.
async fn is_cleared_away(edge: &Objects, shop: &str, job: &str) {
    eventually("the job is cleared away", SOON, async || {
        let [api_version, plural, namespace, name] = the_job(shop);
        match edge.try_get(api_version, plural, namespace, name).await {
            Ok(Some(found)) if found["metadata"]["uid"] == job => Err("it is there".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

#[tokio::test]
async fn the_pods_of_a_deleted_job_go_with_it() {
    let running = Running::begin(|_| {}).await;
    let pod = running.pod_of(&running.copy).await;
    delete_with_all(&running.hub, the_job(&running.shop)).await;
    gone(&running.edge, "batch/v1", "jobs", &running.shop, "it").await;
    gone(&running.edge, "v1", "pods", &running.shop, &pod).await;
}

#[tokio::test]
async fn the_pods_of_a_replaced_job_go_with_it() {
    let replace = |job: &mut Value| job["metadata"]["annotations"] = json!({"edge.kubestellar.io/replace": "true"});
    let running = Running::begin(replace).await;
    let pod = running.pod_of(&running.copy).await;
    delete_with_all(&running.hub, the_job(&running.shop)).await;
    let mut other = job(&running.shop, "2");
    replace(&mut other);
    running.hub.create(&other).await;
    is_recreated(&running.edge, the_job(&running.shop), &running.copy).await;
    gone(&running.edge, "v1", "pods", &running.shop, &pod).await;
}

/// So many deletes are corrected soon; what comes then is a contention. Its pauses double.
const DELETES: u32 = 8;

#[tokio::test]
async fn a_copy_that_is_deleted_again_and_again_is_named_and_made_with_increasing_back_off() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&[]);
    for _ in 0..DELETES {
        arrives(&edge, "v1", "configmaps", &shop, "a").await;
        edge.delete("v1", "configmaps", &shop, "a").await;
    }
    says(&mut syncer, &["WARN", &format!("ConfigMap/{shop}/a")]).await;
    stays_absent(&edge, "v1", "configmaps", &shop, "a").await;
    // Only that one has to wait.
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
    edge.delete("v1", "configmaps", &shop, "b").await;
    arrives(&edge, "v1", "configmaps", &shop, "b").await;
    // It is not given up.
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
}
